"""Nosé-Hoover chains: a thermostat as further degrees of freedom, which rescale the momenta.

With K the kinetic energy of f degrees of freedom and masses Q_1 = f kT tau^2, Q_k = kT tau^2, the chain moves by

    p' = -v_1 p,   eta_k' = v_k,
    v_1' = (2 K - f kT)/Q_1 - v_2 v_1,   v_k' = (Q_(k-1) v_(k-1)^2 - kT)/Q_k - v_(k+1) v_k,

and with that of the bodies its energy is conserved:

    sum_k Q_k v_k^2/2 + f kT eta_1 + kT sum_(k > 1) eta_k.

G. J. Martyna, M. L. Klein and M. Tuckerman, J. Chem. Phys. 97 (1992) 2635-2643; the step: G. J. Martyna,
M. E. Tuckerman, D. J. Tobias and M. L. Klein, Mol. Phys. 87 (1996) 1117-1157; for rigid bodies: H. Kamberaj,
R. J. Low and M. P. Neal, J. Chem. Phys. 122 (2005) 224114.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..numbers.dispatch import NO_FMA
from ..numbers.primitives import exp
from ..numbers.types import Number
from .unroll import unrolled_kernel


class Chain(NamedTuple):
    """A chain for f degrees of freedom: kT, f, the masses, positions and velocities of its links."""

    kT: Any
    degrees: Any
    masses: tuple[Any, ...]
    positions: tuple[Any, ...]
    velocities: tuple[Any, ...]


def chain_of(length: int, kT: Number, tau: Number, degrees: Number) -> Chain:
    """A chain at rest, whose links oscillate with a period of about 2 pi tau."""
    zero = 0 * kT
    return Chain(kT, degrees, masses_kernel(length)(kT, tau, degrees), (zero,) * length, (zero,) * length)


def chain_energy(chain: Chain) -> Number:
    """The energy of a chain."""
    energy: Number = energy_kernel(len(chain.masses))(*chain)
    return energy


def chain_step(h: Number, kinetic: Number, chain: Chain, weights: Sequence[Number]) -> tuple[Number, Chain]:
    """Move a chain by the time h; return the factor of the momenta, and the chain.

    kinetic : twice the kinetic energy at the start; weights : as for `chain_kernel`
    """
    factor, positions, velocities = chain_kernel(len(chain.masses), tuple(weights))(h, kinetic, *chain)
    return factor, chain._replace(positions=positions, velocities=velocities)


# --- kernels for chains of a given length ----------------------------------------------------------


def _rounded(*text: str, **space: Any) -> Callable[..., Any]:
    """Kernel that rounds after every operation: a b - c d could be fused in two ways, by the code around it."""
    made = unrolled_kernel(*text, **space)
    NO_FMA.add(made)
    return made


@functools.cache
def masses_kernel(length: int) -> Callable[..., Any]:
    """Kernel (kT, tau, degrees) -> the masses of the links."""
    return _rounded("kT, tau, degrees", f"(degrees * mass, {'mass, ' * (length - 1)})", "mass = kT * tau * tau")


@functools.cache
def energy_kernel(length: int) -> Callable[..., Any]:
    """Kernel (kT, degrees, masses, positions, velocities) -> the energy of a chain."""
    terms = ["degrees * kT * x[0]", *(f"kT * x[{k}]" for k in range(1, length))]
    terms += [f"masses[{k}] * v[{k}] * v[{k}] / 2" for k in range(length)]
    return _rounded("kT, degrees, masses, x, v", " + ".join(terms))


@functools.cache
def chain_kernel(length: int, weights: tuple[Any, ...]) -> Callable[..., Any]:
    """Kernel (h, kinetic, kT, degrees, masses, positions, velocities) -> (factor, positions, velocities).

    A symmetric splitting, composed with the `weights` of a symmetric composition; `kinetic` is twice the kinetic energy
    at the start, `factor` that of the momenta.
    """
    lines = ["factor = 0 * h + 1"]
    for i in range(len(weights)):
        lines.append(f"one, x, v = stage(w{i} * h, factor * factor * kinetic, kT, degrees, masses, x, v)")
        lines.append("factor = factor * one")
    named = {f"w{i}": weight for i, weight in enumerate(weights)}
    return _rounded(
        "h, kinetic, kT, degrees, masses, x, v", "factor, x, v", *lines, stage=_stage_kernel(length), **named
    )


@functools.cache
def _stage_kernel(length: int) -> Callable[..., Any]:
    """Kernel: half a step of the velocities from the last link to the first, the positions, and the same backwards."""
    lines = [f"v{k} = v[{k}]" for k in range(length)]
    for k in reversed(range(length)):
        lines += _push(k, length, "kinetic")
    lines.append("factor = exp(-h * v0)")
    lines += [f"x{k} = x[{k}] + h * v{k}" for k in range(length)]
    for k in range(length):
        lines += _push(k, length, "factor * factor * kinetic")
    positions, velocities = ("".join(f"{letter}{k}, " for k in range(length)) for letter in "xv")
    return _rounded("h, kinetic, kT, degrees, masses, x, v", f"factor, ({positions}), ({velocities})", *lines, exp=exp)


def _push(k: int, length: int, kinetic: str) -> list[str]:
    """Half a step of velocity k, by its force, between two quarters of a step of its friction."""
    force = f"{kinetic} - degrees * kT" if k == 0 else f"masses[{k - 1}] * v{k - 1} * v{k - 1} - kT"
    push = f"h / 2 * ({force}) / masses[{k}]"
    if k + 1 == length:
        return [f"v{k} = v{k} + {push}"]
    return [f"friction = exp(-h * v{k + 1} / 4)", f"v{k} = (v{k} * friction + {push}) * friction"]
