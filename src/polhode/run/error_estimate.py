"""Estimate the error of an adaptive run at its end from a second, more accurate run.

The second run repeats the steps of the first, all shortened by the factor that makes errors `REPEATED` times smaller.
It chooses nothing, so it costs about as much as the first run. Where steps are bounded by more than their errors
(branches, torques of time, control, many digits) it has a `RATIO` times smaller step tolerance instead. In both cases
the difference between the two runs is nearly the error of the first, which is the result.

The second run must be the more accurate one: local errors add up like the steps of a random walk, so that the errors of
two runs with different steps have a known ratio on average only. An error deduced from a coarser run is wrong by more
than a factor of 5 for 6 to 16 % of random problems, and for 20 to 30 % if Taylor steps differ in their tolerance.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

RATIO = 20.0
"""Ratio of the step tolerances of two compared runs."""

REPEATED = 8.0
"""Ratio of the errors of a run and of its repetition with shorter steps."""

FIRST = 0.1
"""First step tolerance divided by the error allowed at the end: sufficient for four of five random problems.

On average a larger value costs nearly as much (more attempts fail), and leaves larger errors.
"""

LOOSE = 1e-5
"""Tolerance above which the share is smaller, by (LOOSE/tol)^(1/8): there errors grow faster than the tolerance."""

NEAR = 64.0
"""Error, in units of the tolerance, up to which the more accurate run is the next attempt, and not a new run."""

AIM = 0.4
"""Target error of a new run, as a fraction of the tolerance."""

FINEST = 1 / 16
"""Smallest step tolerance, relative to the distance of neighbouring numbers: below it only round-off changes."""

JUMP = 1e-4
"""Smallest factor between the tolerances of two attempts: a large error does not predict much smaller ones."""

TRIES = 8


@dataclasses.dataclass
class Estimated:
    """A run, its path, and an estimate of its error at the end."""

    run: Any
    path: Any
    error: float
    reached: bool
    """Whether the error is within the tolerance."""


def estimated(first: Any, tol: float) -> Estimated:
    """Repeat a run (`adaptive.Run`) more and more accurately until its error at the end is at most `tol`.

    If no run reaches `tol`, return the one with the smallest error. The error is infinite if a run or its finer
    companion fails.
    """
    eps = first.controlled_step.eps
    coarse, finest = first.again(first_tolerance(tol, eps)), FINEST * eps
    path, best = coarse(), None
    for tried in range(TRIES):
        if not path.finished:
            if tried or path.crawling:
                break  # smaller steps do not help
            coarse = coarse.again(max(coarse.tolerance * JUMP, finest))
            path = coarse()
            continue
        fine = coarse.finer(path)
        fine_path = fine()
        error = coarse.difference(path, fine_path) if fine_path.finished else math.inf
        found = Estimated(coarse, path, error, error <= tol)
        if best is None or error < best.error:
            best = found
        if found.reached or coarse.tolerance <= finest:
            break
        if error <= NEAR * tol and fine.tolerance >= finest:
            coarse, path = fine, fine_path
        else:
            coarse = coarse.again(next_tolerance(coarse.tolerance, finest, error, tol))
            path = coarse()
    return best or Estimated(coarse, path, math.inf, False)


def first_tolerance(tol: float, eps: float) -> float:
    """Return the step tolerance of the first attempt."""
    return max(FIRST * tol * min(1.0, (LOOSE / tol) ** 0.125), FINEST * eps)


def next_tolerance(tolerance: float, finest: float, error: float, tol: float) -> float:
    """Return the step tolerance of a new run after one with an error far above `tol`."""
    factor = AIM * tol / error if error < 1 else JUMP
    return max(tolerance * max(factor, JUMP), finest)


def finer_tolerance(tolerance: float, eps: float) -> float:
    """Return the step tolerance of a run that is compared with one of a given tolerance."""
    return max(tolerance, FINEST * eps) / RATIO


def more_steps(count: int, order: int) -> int:
    """Return how many steps replace `count` ones of an order, to make errors `REPEATED` times smaller."""
    return max(count + 1, math.ceil(count * REPEATED ** (1 / order)))
