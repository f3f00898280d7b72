"""The problems on which methods are measured.

They are generic: three different moments, no zero or equal components, torques neither linear nor constant. `LINEAR`
and `FLAT` are the degenerate bodies that some methods cannot integrate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..physics.body import Body
from ..physics.fields import heat_bath, nose_hoover, potential, torque
from ..physics.problem import Problem


@potential
def hills(R: Any, a: Any, b: Any) -> Any:
    """A potential that is neither linear nor symmetric."""
    return a * R[2][2] * R[0][1] + b * R[1][0] ** 2 + (a - b) * R[2][1] ** 3


@potential
def linear(R: Any, a: Any, b: Any, c: Any) -> Any:
    """A potential linear in R, with no symmetry."""
    return a * R[2][2] + b * R[0][1] + c * R[2][0]


@torque(frame="space")
def push(t: Any, R: Any, a: Any) -> Any:
    """A torque of time and attitude without a potential."""
    return (a * R[0][2] * t, R[1][1] * R[2][0] - a * t * t, R[2][2] * R[0][0] + a)


@torque
def stir(t: Any, R: Any, omega: Any, a: Any) -> Any:
    """A torque of time, attitude and angular velocity."""
    return (
        a * omega[1] * omega[2] - omega[0] / 3 + R[0][1] * t,
        R[2][2] * omega[0] - a * omega[1] / 4,
        a * R[1][2] - omega[2] * omega[0] / 5,
    )


STARTS: tuple[dict[str, Any], ...] = (
    {"inertia": (0.6, 0.8, 1.0), "attitude": (0.8, 0.4, 0.2, -0.4), "momentum": (1.8, 0.4, -0.9), "t0": 0.25},
    {"inertia": (1.9, 0.7, 1.4), "attitude": (0.5, -0.5, 0.1, 0.7), "momentum": (-0.7, 1.1, 0.6), "t0": -0.375},
    {"inertia": (3.0, 2.0, 4.5), "attitude": (0.1, 0.7, 0.5, 0.5), "momentum": (2.1, -1.7, 3.2), "t0": 0.5},
)
"""Generic starts. The axis of the intermediate moment is the second, the third, and the first. The first two bodies
rotate about the axis of their smallest moment; the last, near the separatrix, about that of its largest."""
ALL_STARTS = tuple(range(len(STARTS)))
Which = int | str
"""A generic start by its index, or a degenerate one by its name."""


def _placed(values: tuple[float, ...], axis: int) -> tuple[float, ...]:
    """The values permuted cyclically so that the last one is at this axis."""
    return tuple(values[(i - axis - 1) % 3] for i in range(3))


LINEAR: dict[str, dict[str, Any]] = {
    f"linear, axis {k + 1}, momentum {m}": STARTS[1]
    | {"inertia": _placed((1.3, 1.3, 0.0), k), "momentum": _placed(m, k)}
    for k in range(3)
    for m in ((0.9, -1.2, 0.0), (2.3, 0.7, 0.0))
}
"""Linear bodies (zero moment about one axis, and no momentum there)."""
FLAT: dict[str, dict[str, Any]] = {
    f"flat, normal {k + 1}": STARTS[0] | {"inertia": _placed((0.75, 1.25, 2.0), k)} for k in range(3)
}
"""Flat bodies: the moment about the normal is the sum of the others."""
DEGENERATE = LINEAR | FLAT


FIELDS: dict[str, Callable[[], Any]] = {
    "free": lambda: None,
    "potential": lambda: hills(0.7, -0.4),
    "linear": lambda: linear(0.8, 0.3, -0.5),
    "attitude": lambda: push(0.6),
    "velocity": lambda: stir(0.7),
}


KT = 0.75
FRICTION = ((0.9, 0.2, -0.1), (0.2, 1.3, 0.3), (-0.1, 0.3, 0.7))
"""Temperature and friction tensor of the heat bath of methods with noise."""


TAU = 0.625
"""Time constant of the thermostat of methods with a chain."""


def chain_start(links: int) -> Any:
    """Positions and velocities of a generic chain."""
    return [[(3 * k + 1) / 8 - 0.5 for k in range(links)], [0.75 - 0.5 * k + (k % 2) / 4 for k in range(links)]]


@functools.cache
def generic(kind: str, which: Which = 0, bath: bool = False, links: int = 0) -> Problem:
    """A generic problem with this kind of field, and with a heat bath or a thermostat of some links if asked for."""
    start, field = DEGENERATE[which] if isinstance(which, str) else STARTS[which], FIELDS[kind]()
    if bath or links:
        more = nose_hoover(KT, TAU, chain_start(links)) if links else heat_bath(kT=KT, friction=FRICTION)
        field = more if field is None else field + more
    q = start["attitude"]
    length = math.sqrt(sum(x * x for x in q))
    return Problem(
        Body(start["inertia"]), field, attitude=[x / length for x in q], momentum=start["momentum"],
        t0=start["t0"],
    )  # fmt: skip
