"""Chains of Nosé and Hoover: a thermostat as further degrees of freedom, which rescale the momenta.

With K the kinetic energy of f degrees of freedom and masses Q_1 = f kT tau^2, Q_k = kT tau^2, the chain moves by

    p' = -v_1 p,   eta_k' = v_k,
    v_1' = (2 K - f kT)/Q_1 - v_2 v_1,   v_k' = (Q_(k-1) v_(k-1)^2 - kT)/Q_k - v_(k+1) v_k,

and with that of the bodies its energy is conserved:

    sum_k Q_k v_k^2/2 + f kT eta_1 + kT sum_(k > 1) eta_k.

G. J. Martyna, M. L. Klein and M. Tuckerman, J. Chem. Phys. 97 (1992) 2635-2643; the step: G. J. Martyna,
M. E. Tuckerman, D. J. Tobias and M. L. Klein, Mol. Phys. 87 (1996) 1117-1157; for rigid bodies: Kamberaj, Li and
Hansen, J. Chem. Phys. 122 (2005) 224114.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..numbers.primitives import exp
from ..numbers.types import Number


class Chain(NamedTuple):
    """A chain for f degrees of freedom: kT, f, the masses, positions and velocities of its links."""

    kT: Any
    degrees: Any
    masses: tuple[Any, ...]
    positions: tuple[Any, ...]
    velocities: tuple[Any, ...]


def chain_of(length: int, kT: Number, tau: Number, degrees: Number) -> Chain:
    """A chain at rest, whose links oscillate with a period of about 2 pi tau."""
    mass, zero = kT * tau * tau, 0 * kT
    return Chain(kT, degrees, (degrees * mass, *(mass,) * (length - 1)), (zero,) * length, (zero,) * length)


def chain_energy(chain: Chain) -> Number:
    """The energy of a chain."""
    kT, degrees, masses, positions, velocities = chain
    total = degrees * kT * positions[0]
    for x in positions[1:]:
        total = total + kT * x
    for mass, v in zip(masses, velocities, strict=True):
        total = total + mass * v * v / 2
    return total


def chain_step(h: Number, kinetic: Number, chain: Chain, weights: Sequence[Number]) -> tuple[Number, Chain]:
    """Move a chain by the time h; return the factor of the momenta, and the chain.

    A symmetric splitting, composed with the `weights` of a symmetric composition.

    kinetic : twice the kinetic energy at the start
    """
    factor = 0 * h + 1
    for weight in weights:
        one, chain = _stage(weight * h, factor * factor * kinetic, chain)
        factor = factor * one
    return factor, chain


def _stage(h: Number, kinetic: Number, chain: Chain) -> tuple[Number, Chain]:
    """Half a step of the velocities from the last link to the first, the positions, and the same backwards."""
    v, last = list(chain.velocities), len(chain.velocities) - 1
    for k in range(last, -1, -1):
        _push(h, k, v, kinetic, chain)
    factor = exp(-h * v[0])
    positions = tuple(x + h * w for x, w in zip(chain.positions, v, strict=True))
    for k in range(last + 1):
        _push(h, k, v, factor * factor * kinetic, chain)
    return factor, chain._replace(positions=positions, velocities=tuple(v))


def _push(h: Number, k: int, v: list[Any], kinetic: Number, chain: Chain) -> None:
    """Half a step of velocity k, by its force, between two quarters of a step of its friction."""
    kT, degrees, masses, _, _ = chain
    friction = exp(-h * v[k + 1] / 4) if k + 1 < len(v) else 0 * h + 1
    force = kinetic - degrees * kT if k == 0 else masses[k - 1] * v[k - 1] * v[k - 1] - kT
    v[k] = (v[k] * friction + h / 2 * force / masses[k]) * friction
