"""Langevin dynamics of rotation: kicks, drifts by a free flow, and exact Ornstein-Uhlenbeck steps of the momentum.

The equations of a body in a heat bath,

    dR = R hat(I^-1 Pi) dt,   dPi = (Pi x I^-1 Pi + T(R) - Gamma I^-1 Pi) dt + sqrt(2 kT Gamma) dW,

are split into B, the kick by the torque, A, the free motion, and O, friction and noise at a fixed attitude
(`kernels/ornstein_uhlenbeck`). The letters of a scheme's name are its parts in turn; a letter that occurs twice takes
half the step each time. R. L. Davidchack, T. E. Ouldridge and M. V. Tretyakov, J. Chem. Phys. 142 (2015) 144114, for
rigid bodies, and 147 (2017) 224103, with friction tensors; B. Leimkuhler and C. Matthews, Appl. Math. Res. Express
2013, 34-56, for the letters.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.ornstein_uhlenbeck import relaxation, relaxed
from ...kernels.so3 import along
from ...kernels.state import counted
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...numbers.philox import normals
from ..queries import HeatBath, Torque
from ..record import ENDS, Build, Method, Noise
from ..registry import declare, methods
from ..tables.compositions import Flow, Part
from .compose import require_fixed_step

Number = Callable[[Any], Any]

PLACES = 3
"""Numbers in the memory before the matrices: the number of the step, the seed, the number of the body."""

MEMORY = PLACES + 18
"""Numbers in the memory: then the matrices of an O step, nine numbers each."""


def _matrix(first: int) -> Callable[[Any], Any]:
    """Kernel: the three vectors in the memory from a place on."""
    rows = (", ".join(f"x[{first + 3 * i + j}]" for j in range(3)) for i in range(3))
    return unrolled_kernel("x", f"({', '.join(f'({row})' for row in rows)})")


mean_of, noise_of = _matrix(PLACES), _matrix(PLACES + 9)


def _filled(share: Any) -> Step:
    """Kernel that fills the memory at the start of a run; `share` is the part of h that an O step takes."""

    @kernel
    def filled(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        kT, diagonal, off, seed, body, first = torque(t, y[0], y[1], system, h)
        a, b = relaxation(share * h, kT, (diagonal, off), system)
        zero = 0 * h
        places = zero + first, zero + seed, zero + body
        return (y[0], y[1], (*places, *a[0], *a[1], *a[2], *b[0], *b[1], *b[2])), zero

    return filled


KINDS: dict[str, Flow] = {"A": "T", "B": "U", "O": "O"}
"""Letters of a scheme and the names of their flows in `Method.sequence`."""


def sequence_of(word: str) -> tuple[Part, ...]:
    """The parts of a scheme; a letter that occurs twice takes half the step each time."""
    return tuple(Part(KINDS[letter], Fraction(1, word.count(letter))) for letter in word)


def _step(
    sequence: Sequence[Part], flow: Step | None, draw: Callable[..., Any], number: Number, drawn: int = 0
) -> Step:
    """Step kernel of kicks, drifts and Ornstein-Uhlenbeck steps, straight-line source with one or two lines for each.

    `drawn` is the number of vectors of normal numbers that the step has drawn before. The matrices in the memory are
    those of an Ornstein-Uhlenbeck step.
    """
    lines, passed = ["q, m, memory = y", "residual = 0 * h"], Fraction(0)
    space: dict[str, Any] = {}
    for i, part in enumerate(sequence):
        space[f"c{i}"], space[f"t{i}"] = converted(part.time, number), converted(passed, number)
        now = f"t + t{i} * h" if passed else "t"
        if part.flow == "U":
            lines.append(f"m = along(m, c{i} * h, torque({now}, q, m, system))")
        elif part.flow == "T":
            lines.append(f"(q, m), more = flow(c{i} * h, {now}, (q, m), system, torque)")
            lines.append("residual = residual + more")
            passed += part.time
        else:
            lines.append(f"xi = draw(memory[1], memory[2], memory[0], {drawn})")
            lines.append("m = relaxed(m, mean_of(memory), noise_of(memory), xi)")
            drawn += 1
    return unrolled_kernel(
        "h, t, y, system, torque", "(q, m, counted(memory)), residual", *lines, along=along, flow=flow, draw=draw,
        relaxed=relaxed, mean_of=mean_of, noise_of=noise_of, counted=counted, **space,
    )  # fmt: skip


def _before(sequence: Sequence[Part]) -> Build:
    """Builder of the kernel that fills the memory for these parts."""
    share = next(part.time for part in sequence if part.flow == "O")
    return lambda number: _filled(converted(share, number))


@functools.cache
def without_kicks(drift: Method, sequence: tuple[Part, ...], drawn: int) -> Method:
    """Neighbouring drifts and Ornstein-Uhlenbeck steps of a scheme as a method, for kicks that are made elsewhere.

    drawn : number of Ornstein-Uhlenbeck steps of the scheme before these parts
    """
    return dataclasses.replace(
        drift, name=f"{drift.name} with noise", aliases=(), asks=Torque() & HeatBath(), needs="attitude", memory=MEMORY,
        before=_before(sequence), noise=Noise(0, None, None, 0, _no_driven), flows=(),
        build=lambda number: _step(sequence, drift.build(number), normals, number, drawn),
    )  # fmt: skip


def _no_driven(number: Number, draw: Callable[..., Any]) -> Step:
    raise TypeError("a part of a scheme declares nothing about its noise")


def _drift(name: str, flow: str | Method) -> Method:
    """The free flow of a scheme."""
    chosen = require_fixed_step(methods[flow])
    if chosen.needs != "free" or chosen.memory or chosen.before is not None or chosen.compensated:
        raise InputError(
            f"{name}() needs a method for free bodies as its drift, such as {name}(jacobi); {chosen.name} integrates "
            "torques itself or carries more than attitude and momentum"
        )
    return chosen


def langevin(word: str, cite: str, where: str) -> Callable[[str | Method], Method]:
    """Return the combinator of a scheme; its name is the word in lower case."""
    name = word.lower()

    def combine(flow: str | Method) -> Method:
        drift, sequence = _drift(name, flow), sequence_of(word)

        def driven(number: Number, draw: Callable[..., Any]) -> Step:
            return _step(sequence, drift.build(number), draw, number)

        def build(number: Number) -> Step:
            return driven(number, normals)

        order = int(min(2, drift.order_free))
        kept = drift.poisson and "energy" in drift.conserves  # then it keeps the density and the volume of momenta
        noise = Noise(order, order, math.inf if kept else drift.order_free, word.count("O"), driven)
        return declare(
            build, register=False, name=f"{name}({drift.name})", order=order, order_free=drift.order_free,
            symmetric=False, symplectic=False, poisson=False, implicit=drift.implicit,
            solves=drift.solves * word.count("A"), torque_evals=sum(_kicks(word)),
            torque_at=ENDS if _kicks(word)[0] else (), conserves=(), needs="attitude",
            asks=Torque() & HeatBath(), memory=MEMORY, before=_before(sequence), noise=noise, sequence=sequence,
            drift=drift, linear_bodies=drift.linear_bodies, flat_bodies=drift.flat_bodies, cite=cite, where=where,
            doc=f"Langevin dynamics, {word}, with the drift {drift.name}.\n{_formula(word)}{drift.formula}",
        )  # fmt: skip

    combine.__name__, combine.__doc__ = name, f"Langevin dynamics in a heat bath, {word}: {where} ({cite})."
    return combine


def _kicks(word: str) -> list[bool]:
    """Whether there is a kick before the first drift, between drifts, and after the last; O moves no attitude."""
    return ["B" in part for part in word.split("A")]


FORMULA = r"""
A step consists of these parts, the first to act on the right:

$$\Phi_h = %s$$

$\mathrm A(s)$ is the step of the free flow over $s$, $\mathrm B(s)$ the kick $\Pi \leftarrow \Pi + s\,T(t, R)$, and
$\mathrm O(s)$ the exact step of friction and noise with the friction tensor $\Gamma$ and the temperature $kT$:

$$\Pi \leftarrow E\,\Pi + C\,\xi, \qquad E = e^{-s\,\Gamma I^{-1}}, \qquad
C C^{\mathsf T} = kT\,(I - E\,I\,E^{\mathsf T})$$

with $\xi$ three normal numbers, given by the seed, the number of the body and the number of the step. The drift:

"""


def _formula(word: str) -> str:
    parts = (rf"\mathrm {x}({'h' if word.count(x) == 1 else 'h/2'})" for x in reversed(word))
    return FORMULA % r" \circ ".join(parts)


SCHEMES = {
    "BAOAB": ("davidchack2015", "kick, drift, Ornstein-Uhlenbeck step, drift, kick: Langevin C"),
    "OBABO": ("leimkuhler2013", "Ornstein-Uhlenbeck steps around kick, drift, kick"),
    "ABOBA": ("leimkuhler2013", "drift, kick, Ornstein-Uhlenbeck step, kick, drift"),
    "OABAO": ("leimkuhler2013", "Ornstein-Uhlenbeck steps around drift, kick, drift"),
}
"""Words with their sources."""

for _word, (_cite, _where) in SCHEMES.items():
    methods.add_combinator(_word.lower(), langevin(_word, _cite, _where))
