"""The error of an adaptive run at its end, from a second run with smaller errors of its steps.

The difference between a run and one with a `RATIO` times smaller tolerance is the error of the first, but for that of
the second, which is about `RATIO` times smaller: over random problems the estimate is between 0.6 and 1.5 times the
error in 99 % (docs/tolerance.md). The second run costs about 1.45 times the first with the pair 8(7), 1.25 times with
Taylor steps. The coarser run is the result, since its error is the one that is known.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .adaptive import Path, Run, distance, round_off, scale_of_momentum
from .step_control import EPS

RATIO = 20.0
"""Ratio of the tolerances of the two runs that are compared."""

FIRST = 0.5
"""The first tolerance of the steps over the error allowed at the end: enough for five of six random problems."""

AIM = 0.4
"""The part of the tolerance at which a further run aims."""

FINEST = EPS / 16
"""Below this tolerance of the steps nothing changes but round-off."""

JUMP = 1e-4
"""The smallest factor between the tolerances of two tries: beyond it a large error says little about smaller ones."""

TRIES = 8


@dataclasses.dataclass
class Estimated:
    """A run, its path, and an estimate of its error at the end."""

    run: Any
    path: Path
    error: float
    reached: bool
    """Is the error within the tolerance."""


def estimated(first: Run, tol: float) -> Estimated:
    """The first of runs with smaller and smaller tolerances whose error at the end is at most `tol`.

    If none is, the one with the smallest error. The error is infinite if a run or its finer companion fails.
    """
    coarse = first.again(max(FIRST * tol, FINEST))
    path, best = coarse(), None
    for tried in range(TRIES):
        if not path.finished:
            if tried or path.crawling:
                break  # smaller steps do not help
            coarse = coarse.again(max(coarse.tolerance * JUMP, FINEST))
            path = coarse()
            continue
        fine = coarse.finer(path, RATIO, FINEST / RATIO)
        fine_path = fine()
        error = _difference(coarse, path, fine_path)
        found = Estimated(coarse, path, error, error <= tol)
        if best is None or error < best.error:
            best = found
        if found.reached or coarse.tolerance <= FINEST:
            break
        factor = AIM * tol / error if error < 1 else JUMP
        if RATIO * factor >= 1 and fine.tolerance >= FINEST:
            coarse, path = fine, fine_path
        else:
            coarse = coarse.again(max(coarse.tolerance * max(factor, JUMP), FINEST))
            path = coarse()
    return best or Estimated(coarse, path, math.inf, False)


def _difference(run: Run, path: Path, fine: Path) -> float:
    """The error of a run against a finer one, at least that of rounding."""
    if not (path.finished and fine.finished):
        return math.inf
    scale = scale_of_momentum(run.problem, path, fine)
    return max(distance(path.rows[-1], fine.rows[-1], scale), round_off(path))
