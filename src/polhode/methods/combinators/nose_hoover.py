"""A Nosé-Hoover chain for one body: a deterministic thermostat; a scheme moves the body between its half steps.

With K the rotational kinetic energy, f its degrees of freedom (three; two of a linear body), the temperature kT and the
time constant tau of the thermostat,

    R' = R hat(omega),   Pi' = Pi x omega + T(t, R) - v_1 Pi,   eta_k' = v_k,

and the velocities v_k of the links as in `kernels/nose_hoover`. The energy of body and chain is conserved, and so is
the measure exp(f eta_1 + eta_2 + ...) dR dPi deta dv. If the motion were ergodic, the body would have the distribution
of Gibbs.

H. Kamberaj, R. J. Low and M. P. Neal, J. Chem. Phys. 122 (2005) 224114.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.nose_hoover import chain_kernel, energy_kernel, masses_kernel
from ...kernels.so3 import dot, scale, times
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ..queries import ChainStart
from ..record import CHAIN_ENERGY, Method, Thermostat
from ..registry import declare, methods
from ..tables.compositions import Composition, compositions
from .compose import scheme_of, whole
from .rescaling import third_degree

Number = Callable[[Any], Any]

LINKS, COMPOSITION, REPEATED = 3, "suzuki4", 1
"""The chain if nothing else is said: its links, the composition by which it moves, and how often in half a step."""

CONSTANTS = 3
"""Numbers at the end of the memory: kT, tau and the degrees of freedom."""


def chain_states(links: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What a run keeps of the chain: its energy, the positions and the velocities of its links."""
    return (CHAIN_ENERGY, ()), ("chain_position", (links,)), ("chain_velocity", (links,))


def _numbers(first: int, count: int) -> str:
    return "".join(f"memory[{i}], " for i in range(first, first + count))


def _opened(links: int) -> Callable[..., Any]:
    """Kernel: memory -> (kT, degrees, masses, positions, velocities)."""
    last = 1 + 2 * links
    return unrolled_kernel(
        "memory", f"kT, degrees, masses(kT, tau, degrees), ({_numbers(1, links)}), ({_numbers(1 + links, links)})",
        f"kT, tau, degrees = {_numbers(last, CONSTANTS)}", masses=masses_kernel(links),
    )  # fmt: skip


def _closed(links: int) -> Callable[..., Any]:
    """Kernel: (memory, positions, velocities) -> the memory with these, and the energy of the chain."""
    x, v = ("".join(f"{letter}[{k}], " for k in range(links)) for letter in "xv")
    return unrolled_kernel(
        "memory, x, v", f"(energy(kT, degrees, masses(kT, tau, degrees), x, v), {x}{v}kT, tau, degrees)",
        f"kT, tau, degrees = {_numbers(1 + 2 * links, CONSTANTS)}",
        masses=masses_kernel(links), energy=energy_kernel(links),
    )  # fmt: skip


def _filling(links: int) -> Step:
    """Step kernel: fill the memory at the start of a run."""
    start = "".join(f"asked[{2 + i}], " for i in range(2 * links))
    memory = unrolled_kernel("asked, zero, third", f"(zero, {start}zero + asked[0], zero + asked[1], 2 + third)")
    opened, closed = _opened(links), _closed(links)

    @kernel
    def filled(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        zero = 0 * h
        numbers = memory(torque(t, y[0], y[1], system, h), 0 * y[1][0], third_degree(system[0], 0 * y[1][0]))
        _, _, _, x, v = opened(numbers)
        return (y[0], y[1], closed(numbers, x, v)), zero

    return filled


def _step(scheme: Step, links: int, weights: tuple[Any, ...]) -> Step:
    """Step kernel: the chain over half a step, the scheme, the chain over half a step."""
    move, opened, closed = chain_kernel(links, weights), _opened(links), _closed(links)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, memory = y
        kT, degrees, masses, x, v = opened(memory)
        factor, x, v = move(h / 2, dot(m, times(system[1], m)), kT, degrees, masses, x, v)
        (q, m), residual = scheme(h, t, (q, scale(factor, m)), system, torque)
        factor, x, v = move(h / 2, dot(m, times(system[1], m)), kT, degrees, masses, x, v)
        return (q, scale(factor, m), closed(memory, x, v)), residual

    return step


def _whole(name: str, given: int | str) -> int:
    """A whole number of at least 1, which may come as text."""
    if not str(given).isdecimal() or int(given) < 1:
        raise InputError(f"the {name} of nose_hoover() must be a whole number of at least 1; got {given!r}")
    return int(given)


def _composition(given: str) -> Composition:
    if not isinstance(given, str) or given not in compositions:
        raise InputError(f"the composition of nose_hoover() must be one of {', '.join(compositions)}; got {given!r}")
    return compositions[given]


def _energies(base: Method, chain: int) -> tuple[float, float]:
    """Orders of the extended energy, in a potential and free: that of the scheme's energy error, at most the chain's.

    Neither part changes the extended energy by more than its own error, so the splitting adds nothing.
    """
    kept = base.conserves & {"energy_potential"}, base.conserves & {"energy"}
    orders = base.order, base.order_free
    found = (chain if exact else min(order, chain) for exact, order in zip(kept, orders, strict=True))
    potential, free = found
    return potential, free


def _keeps_measure(base: Method) -> bool | None:
    """Whether a scheme keeps the volume dR dPi: if it is symplectic, or made of kicks and of drifts that are Poisson.

    A drift rotates by an angle that follows from the momentum, which keeps dR; a Poisson map keeps dPi.
    """
    return True if base.poisson and base.drift is not None else base.symplectic


def _named(base: Method, *chosen: Any) -> str:
    """The expression of a method; what was chosen as by default is left out at the end."""
    said, usual = [str(x) for x in chosen], [str(x) for x in (LINKS, COMPOSITION, REPEATED)]
    while said and said[-1] == usual[len(said) - 1]:
        said.pop()
    return f"nose_hoover({','.join([base.name, *said])})"


FORMULA = r"""
A step is one of %s between two half steps of a chain of %d links. These multiply the momentum by
$\exp(-\int v_1\,dt)$ and move the chain by

$$\dot\eta_k = v_k, \qquad \dot v_1 = \frac{2 K - f\,kT}{Q_1} - v_2 v_1, \qquad
\dot v_k = \frac{Q_{k-1} v_{k-1}^2 - kT}{Q_k} - v_{k+1} v_k,$$

with the kinetic energy $K$, the temperature $kT$, the $f$ degrees of freedom (three; two of a linear body) and the
masses $Q_1 = f\,kT\,\tau^2$, $Q_k = kT\,\tau^2$: a symmetric splitting composed with the weights of %s. The energy of
body and chain,

$$H + \sum_k \tfrac12 Q_k v_k^2 + f\,kT\,\eta_1 + kT \sum_{k>1} \eta_k,$$

changes by the errors of the parts only. The scheme:

"""


def nose_hoover(
    scheme: str | Method, links: int | str = LINKS, composition: str = COMPOSITION, repeated: int | str = REPEATED
) -> Method:
    """A Nosé-Hoover chain for one body, over any scheme or free flow (kamberaj2005).

    links : number of links; composition : that of the chain's steps; repeated : number of these in half a step
    """
    base, weights = scheme_of("nose_hoover", scheme), _composition(composition)
    length, times_made = _whole("number of links", links), _whole("number of repeated steps", repeated)

    def build(number: Number) -> Step:
        parts = tuple(converted(weight, number) / number(times_made) for weight in weights.weights)
        return _step(whole(base)(number), length, parts * times_made)

    return declare(
        build, register=False, name=_named(base, length, weights.name, times_made), order=min(2, base.order),
        order_free=min(2, base.order_free), symmetric=base.symmetric, symplectic=False, poisson=False,
        implicit=base.implicit, solves=base.solves, torque_evals=base.torque_evals, torque_at=base.torque_at,
        conserves=(), needs=base.needs, asks=base.asks & ChainStart(length),
        memory=sum(math.prod(shape) for _, shape in chain_states(length)) + CONSTANTS, states=chain_states(length),
        before=lambda number: _filling(length),
        thermostat=Thermostat(length, *_energies(base, weights.order), _keeps_measure(base)),
        linear_bodies=base.linear_bodies, flat_bodies=base.flat_bodies, cite="kamberaj2005",
        where="for the rotation of one body",
        doc=f"Nosé-Hoover chain over {base.name}.\n{FORMULA % (base.name, length, weights.name)}{base.formula}",
    )  # fmt: skip


methods.add_combinator("nose_hoover", nose_hoover)
