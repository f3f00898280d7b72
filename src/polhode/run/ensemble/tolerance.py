"""Ensembles to a tolerance at the end: every body is run with tighter step tolerances until two runs agree.

Runs with the step tolerances s_0 > s_1 > ... (each `RATIO` times smaller) are compared body by body. The difference
between the ends of two successive runs is the error of the coarser one. Errors are nearly proportional to the step
tolerance, so the error of the finer run is about the difference divided by `RATIO`; `SHARE` of the difference is
assumed. The runs of a body depend on that body only, so its bits do not depend on its neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from ..step_control import EPS

FIRST = 4.0
"""First step tolerance divided by the error allowed at the end: most bodies finish with the second run, at 1/8.

Measured with `validation/ensemble_tolerance.py`: tighter first runs cost more, and the final errors are the same.
"""

RATIO = 32.0
"""Ratio of the step tolerances of two successive runs."""

SHARE = 1 / 2
"""Error of the finer of two runs, as a fraction of their difference: sixteen times more than proportional errors
would give, because the difference at a single time may be small by accident."""

FINEST = EPS / 64
"""Smallest step tolerance: below it only round-off changes."""


@dataclasses.dataclass
class Ends:
    """Final states of the bodies of a run, one entry per body."""

    quaternion: np.ndarray
    momentum: np.ndarray
    steps: np.ndarray
    largest: np.ndarray
    """Largest |momentum| during the run."""
    failed: np.ndarray
    states: np.ndarray
    """States of the field, (N, k)."""
    path: np.ndarray
    """States kept before the end, (body, time, 7 + k): no error is judged by them."""
    step_tolerance: np.ndarray
    """Step tolerance of the run."""

    def some(self, chosen: np.ndarray) -> Ends:
        """Return the final states of some bodies."""
        return Ends(*(array[chosen] for array in vars(self).values()))

    def put(self, chosen: np.ndarray, other: Ends) -> None:
        """Replace the final states of some bodies."""
        for mine, new in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[chosen] = new


def distances(one: Ends, other: Ends, groups: tuple[int, ...] = ()) -> np.ndarray:
    """Return the larger of the angle between attitudes and the momentum difference relative to the largest momentum.

    States of the field count too, in groups of several numbers, each difference relative to the size of the group.
    Infinite if one of the runs failed, NaN if both did.
    """
    p, q = one.quaternion, other.quaternion
    with np.errstate(all="ignore"):
        scalar = np.abs((p * q).sum(-1))
        vector = p[:, :1] * q[:, 1:] - q[:, :1] * p[:, 1:] - np.cross(p[:, 1:], q[:, 1:])
        angle = 2 * np.arctan2(np.linalg.norm(vector, axis=-1), scalar)
        gap, size = np.linalg.norm(one.momentum - other.momentum, axis=-1), np.fmax(one.largest, other.largest)
        apart = np.maximum(angle, np.divide(gap, size, out=np.zeros_like(gap), where=size > 0))
        for part in np.split(np.arange(sum(groups)), np.cumsum(groups)[:-1]) if groups else ():
            a, b = one.states[:, part], other.states[:, part]
            gap, size = np.linalg.norm(a - b, axis=-1), np.fmax(*(np.linalg.norm(x, axis=-1) for x in (a, b)))
            apart = np.maximum(apart, np.divide(gap, size, out=np.zeros_like(gap), where=size > 0))
    lost, gone = one.failed >= 0, other.failed >= 0
    return np.where(lost & gone, np.nan, np.where((lost != gone) | np.isnan(apart), np.inf, apart))


def step_tolerance(tol: float, level: int) -> float:
    """Return the step tolerance of a run."""
    return max(FIRST * tol / RATIO**level, FINEST)


def last_level(tol: float) -> int:
    """Return the first level with the smallest step tolerance."""
    return max(1, math.ceil(math.log(FIRST * tol / FINEST) / math.log(RATIO)))


def run(
    number: int, tol: float, integrate: Callable[[np.ndarray, float], Ends], groups: tuple[int, ...] = ()
) -> tuple[Ends, np.ndarray]:
    """Return the final states of `number` bodies and their error estimates, which exceed `tol` if it is unreachable.

    ``integrate(chosen, step tolerance)`` runs some bodies. `groups` are the sizes of the states of the field. The
    estimate is NaN for a body that fails.
    """
    last, bodies = last_level(tol), np.arange(number)
    before = integrate(bodies, step_tolerance(tol, 0))
    best, error = before.some(bodies), np.full(number, np.inf)
    reached, coming = np.zeros(number, dtype=int), np.ones(number, dtype=int)
    while (coming <= last).any():
        level = int(coming.min())
        chosen, steps = np.flatnonzero(coming == level), step_tolerance(tol, level)
        now = integrate(chosen, steps)
        near = reached[chosen] == level - 1  # compare only successive levels
        found = distances(before.some(chosen), now, groups) * max(SHARE, min(1.0, 4 * EPS / steps))
        found = np.maximum(found, EPS * now.steps)  # round-off is common to both runs
        better = near & ~(found > error[chosen])
        best.put(chosen[better], now.some(better))
        error[chosen[better]] = found[better]
        before.put(chosen, now)
        reached[chosen] = level
        coming[chosen] = np.where(near, level + _ahead(found / tol, last - level), level + 1)
    return best, np.where(best.failed >= 0, np.nan, error)


def _ahead(excess: np.ndarray, left: int) -> np.ndarray:
    """Return the number of levels to the next run of a body, from error/tolerance; past the last level it is done.

    A body with a large error skips levels, up to the one before the level that is expected to suffice.
    """
    with np.errstate(all="ignore"):
        needed = np.ceil(np.log(excess) / math.log(RATIO))
    needed = np.where(np.isfinite(needed), np.maximum(needed, 1), 1)
    ahead = np.where(needed > 1, needed - 1, 1).astype(int)
    ahead = np.minimum(ahead, max(1, left - 1))
    return np.where((excess <= 1) | np.isnan(excess), left + 1, ahead)
