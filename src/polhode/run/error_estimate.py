"""Estimate the error of an adaptive run at its end from a second run with a smaller step tolerance.

The second run has a `RATIO` times smaller tolerance. Its error is about `RATIO` times smaller too, so the difference
between the two runs is nearly the error of the first. For 99 % of random problems the estimate is between 0.6 and 1.5
times the error (docs/tolerance.md). The second run costs about 1.45 times the first with the pair 8(7), 1.25 times with
Taylor steps. The coarser run is the result, because its error is the one that is known.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

RATIO = 20.0
"""Ratio of the step tolerances of the two compared runs."""

FIRST = 0.5
"""First step tolerance divided by the error allowed at the end: sufficient for five of six random problems."""

AIM = 0.4
"""Target error of a further run, as a fraction of the tolerance."""

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
    """Repeat a run (`adaptive.Run`) with decreasing tolerances until its error at the end is at most `tol`.

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
        fine = coarse.finer(path, RATIO, finest / RATIO)
        fine_path = fine()
        error = coarse.difference(path, fine_path) if fine_path.finished else math.inf
        found = Estimated(coarse, path, error, error <= tol)
        if best is None or error < best.error:
            best = found
        if found.reached or coarse.tolerance <= finest:
            break
        tolerance = next_tolerance(coarse.tolerance, fine.tolerance, finest, error, tol)
        if tolerance == fine.tolerance:
            coarse, path = fine, fine_path
        else:
            coarse = coarse.again(tolerance)
            path = coarse()
    return best or Estimated(coarse, path, math.inf, False)


def first_tolerance(tol: float, eps: float) -> float:
    """Return the step tolerance of the first attempt."""
    return max(FIRST * tol, FINEST * eps)


def next_tolerance(coarse: float, fine: float, finest: float, error: float, tol: float) -> float:
    """Return the step tolerance of the next attempt after two runs with an error above `tol`.

    It is that of the finer run, which needs no new run, if its error is expected to be small enough.
    """
    factor = AIM * tol / error if error < 1 else JUMP
    return fine if RATIO * factor >= 1 and fine >= finest else max(coarse * max(factor, JUMP), finest)
