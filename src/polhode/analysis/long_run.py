"""Growth of round-off in very long runs: errors of conserved quantities after increasing numbers of steps.

The states are measured with all their digits, including low parts, so the result is the error of the run and not of
its output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from ..errors import StepError
from ..kernels.so3 import dot, norm, rotate, times, unit
from ..kernels.state import collapse
from ..methods import Method
from ..numbers.multiprecision import number
from ..physics.problem import Problem
from ..run.system import engine
from .invariants import conserved_directions

DIGITS = 50
"""Working digits of the measurement."""


@dataclasses.dataclass(frozen=True)
class Drift:
    """Errors after a number of steps, relative to the start.

    `spatial_momentum` is the error of its conserved part, as a vector; NaN if there is none.
    """

    steps: int
    energy: float
    spatial_momentum: float
    momentum_norm: float


def drifts(problem: Problem, method: Method, dt: float, counts: Sequence[int]) -> list[Drift]:
    """The errors of one run after each of these numbers of steps, in ascending order."""
    run = engine(problem, method)
    y, done, rows = run.y, 0, run.buffer(2)
    never = counts[-1] + 1
    with mpmath.workdps(DIGITS):
        measure = _measure(problem)
        start = measure(y)
        found = []
        for count in counts:
            y, done, _, residual, fine = run.advance(
                dt, problem.t0, done, count - done, never, run.last(never), y, run.system, rows
            )
            if not fine:
                raise StepError(f"{method.name} failed in step {done + 1} with dt = {dt:g} (residual {residual:.1e})")
            found.append(_compared(count, start, measure(y)))
    return found


Seen = tuple[Any, list[Any], Any]
"""Energy, conserved components of the spatial momentum, length of the momentum."""


def _measure(problem: Problem) -> Callable[[Any], Seen]:
    """The function that measures a state of this problem; the conserved directions are computed once."""
    _, (_, inverse, _) = problem.kernel_data(number)
    directions = [tuple(number(x) for x in d) for d in conserved_directions(problem).tolist()]

    def measure(y: Any) -> Seen:
        q, m = collapse(tuple(tuple(number(x) for x in part) for part in y))
        q = unit(q)
        kinetic = dot(m, times(inverse, m)) / 2
        q, m = problem.user_axes(q, m, number)
        space = rotate(q, m)
        return kinetic + problem.potential(q, number), [dot(d, space) for d in directions], norm(m)

    return measure


def _compared(count: int, start: Seen, end: Seen) -> Drift:
    change = [a - b for a, b in zip(end[1], start[1], strict=True)]
    return Drift(
        count,
        float((end[0] - start[0]) / abs(start[0])),
        float(mpmath.norm(change) / start[2]) if change else float("nan"),
        float(end[2] / start[2] - 1),
    )


def scattered_starts(problem: Problem, count: int, seed: int = 0) -> list[Problem]:
    """The problem with random attitudes and momentum directions, for a root mean square over them."""
    draw = np.random.default_rng(seed)
    size = float(np.linalg.norm(problem.momentum))
    made = []
    for _ in range(count):
        attitude, direction = unit(tuple(draw.normal(size=4).tolist())), draw.normal(size=3)
        momentum = size * direction / np.linalg.norm(direction)
        made.append(Problem(problem.body, problem.field, attitude=attitude, momentum=momentum, t0=problem.t0))
    return made


def root_mean_square(runs: Sequence[Sequence[Drift]], what: str) -> np.ndarray:
    """Root mean square over several runs of one of the errors, after each number of steps."""
    errors = np.array([[getattr(drift, what) for drift in run] for run in runs])
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def growth_exponent(steps: Sequence[int], errors: Sequence[float] | np.ndarray) -> float:
    """The exponent p of errors that grow as steps^p: slope of the line through their logarithms."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
