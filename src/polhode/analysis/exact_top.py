"""Verification of the exact Lagrange top in 50 digits: it is the flow of every top and rejects other problems."""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath

from ..errors import InputError
from ..methods import Method
from ..numbers.multiprecision import number
from ..physics.body import Body
from ..physics.fields import potential
from ..physics.problem import Problem
from ..run.exact import top_at_steps
from .generic_problems import FIELDS, STARTS, generic
from .measurements import invariants
from .reference import flow
from .setting import DIGITS, EXACT, LARGE_STEP, distance, fifty


@potential
def tilted(R: Any, a: Any, b: Any, c: Any) -> Any:
    """A uniform field along (a, b, c) in space, acting on a point of the third body axis."""
    return a * R[0][2] + b * R[1][2] + c * R[2][2]


MOMENTS = ((1.2, 1.2, 0.7), (0.9, 0.9, 1.6), (1.5, 1.5, 3.0), (1.3, 1.3, 0.0))
"""Slender and oblate, flat and linear bodies."""


def tops() -> list[Problem]:
    """Tops with the generic starts of `measurements`; a linear body has no momentum along its axis."""
    found = []
    for i, moments in enumerate(MOMENTS):
        start = STARTS[i % len(STARTS)]
        x, y, z = start["momentum"]
        length = math.hypot(*start["attitude"])
        found.append(
            Problem(
                Body(moments), tilted(0.3, -0.5, 0.8), attitude=[q / length for q in start["attitude"]],
                momentum=(x, y, z if moments[2] else 0.0), t0=start["t0"],
            )
        )  # fmt: skip
    return found


@fifty
def top_errors(problem: Problem, h: float) -> tuple[Any, Any]:
    """Distance from the flow after a time h, and the change of the energy."""
    sol = top_at_steps(problem, h, 1, 1, DIGITS)
    assert sol.mp is not None
    end = tuple(sol.mp.quaternion[-1]), tuple(sol.mp.momentum[-1])
    start, system = problem.kernel_data(number)
    energies = [invariants(problem, y, system)[0] for y in (start, end)]
    return distance(end, flow(problem, h, digits=DIGITS)), abs(energies[1] - energies[0])


def refusals() -> list[str]:
    """Problems that are not Lagrange tops and yet are accepted, among free bodies and generic ones with any field."""
    taken = []
    for kind in FIELDS:
        for which in range(len(STARTS)):
            try:
                top_at_steps(generic(kind, which), LARGE_STEP, 1, 1, DIGITS)
            except InputError:
                continue
            taken.append(f"start {which} with the field {kind!r}")
    return taken


FLOW = {
    "order": math.inf, "order_free": math.inf, "symmetric": True, "symplectic": True, "poisson": None,
    "implicit": False, "solves": 0, "torque_evals": 0, "torque_at": frozenset(),
    "conserves": frozenset({"energy_linear_potential"}), "linear_bodies": True, "flat_bodies": True,
    "increments": False, "estimate_order": 0,
}  # fmt: skip
"""Properties of the flow of these tops, evaluated at given times. Being a Poisson map applies to free bodies only."""


@functools.cache
def evaluation_faults() -> tuple[str, ...]:
    """Deviations of the motion from the flow, forwards or backwards, and accepted problems that are not tops."""
    faults = []
    for i, problem in enumerate(tops()):
        for h in (LARGE_STEP, -LARGE_STEP):
            for word, error in zip(("from the flow", "in energy"), top_errors(problem, h), strict=True):
                if not error <= EXACT:
                    faults.append(f"top {i} is off by {mpmath.nstr(error, 3)} {word} after a time {h}")
    return (*faults, *(f"declared for tops only, but it accepts {problem}" for problem in refusals()))


def check_exact_top(method: Method) -> list[str]:
    """The motion is the flow of all tops, other problems are rejected, and the declaration follows from this."""
    declared = {name: getattr(method, name) for name in FLOW}
    wrong = [
        f"declared {name}={declared[name]!r}, and it is {FLOW[name]!r}" for name in FLOW if declared[name] != FLOW[name]
    ]
    return [*evaluation_faults(), *wrong]
