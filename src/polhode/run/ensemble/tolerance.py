"""Ensembles to an accuracy at the end: every body is run with tighter steps until two runs of it agree.

Runs with the step tolerances s_0 > s_1 > ... (each `RATIO` times smaller) are compared body by body. The difference
between the ends of two successive runs is the error of the coarser one, and errors follow the step tolerance nearly in
proportion, so the finer one has an error of about the difference over `RATIO`; `SHARE` of the difference is assumed.
Which runs a body needs depends on that body alone, so its bits do not depend on its neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from ..step_control import EPS

FIRST = 4.0
"""The first step tolerance over the error allowed at the end: most bodies are done after the second run, at an eighth.

Measured with `validation/ensemble_tolerance.py`: tighter first runs cost more, and the final errors are the same.
"""

RATIO = 32.0
"""Each run has step tolerances so much smaller than the one before it."""

SHARE = 1 / 2
"""The part of the difference between two runs that is taken for the error of the finer one: sixteen times more than
proportional errors would give, since the difference at a single time may be small by accident."""

FINEST = EPS / 64
"""Below this step tolerance nothing changes but round-off."""


@dataclasses.dataclass
class Ends:
    """Where bodies are at the end of a run: one entry a body."""

    quaternion: np.ndarray
    momentum: np.ndarray
    steps: np.ndarray
    largest: np.ndarray
    """Largest |momentum| on the way."""
    failed: np.ndarray

    def some(self, chosen: np.ndarray) -> Ends:
        """Those of some bodies."""
        return Ends(*(array[chosen] for array in vars(self).values()))

    def put(self, chosen: np.ndarray, other: Ends) -> None:
        """Replace those of some bodies."""
        for mine, new in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[chosen] = new


def distances(one: Ends, other: Ends) -> np.ndarray:
    """The larger of the angle between attitudes and the difference of momenta over the largest momentum on the way.

    Infinite where just one of the runs failed, NaN where both did.
    """
    p, q = one.quaternion, other.quaternion
    with np.errstate(all="ignore"):
        scalar = np.abs((p * q).sum(-1))
        vector = p[:, :1] * q[:, 1:] - q[:, :1] * p[:, 1:] - np.cross(p[:, 1:], q[:, 1:])
        angle = 2 * np.arctan2(np.linalg.norm(vector, axis=-1), scalar)
        gap, size = np.linalg.norm(one.momentum - other.momentum, axis=-1), np.fmax(one.largest, other.largest)
        apart = np.maximum(angle, np.divide(gap, size, out=np.zeros_like(gap), where=size > 0))
    lost, gone = one.failed >= 0, other.failed >= 0
    return np.where(lost & gone, np.nan, np.where((lost != gone) | np.isnan(apart), np.inf, apart))


def step_tolerance(tol: float, level: int) -> float:
    """The tolerance of the steps of a run."""
    return max(FIRST * tol / RATIO**level, FINEST)


def last_level(tol: float) -> int:
    """The level from which on step tolerances are as small as they get."""
    return max(1, math.ceil(math.log(FIRST * tol / FINEST) / math.log(RATIO)))


def run(number: int, tol: float, integrate: Callable[[np.ndarray, float], Ends]) -> tuple[Ends, np.ndarray]:
    """The ends of `number` bodies and the estimates of their errors, which are above `tol` where it is out of reach.

    ``integrate(chosen, step tolerance)`` runs some bodies. The estimate is NaN for a body that fails.
    """
    last, bodies = last_level(tol), np.arange(number)
    before = integrate(bodies, step_tolerance(tol, 0))
    best, error = before.some(bodies), np.full(number, np.inf)
    reached, coming = np.zeros(number, dtype=int), np.ones(number, dtype=int)
    while (coming <= last).any():
        level = int(coming.min())
        chosen, steps = np.flatnonzero(coming == level), step_tolerance(tol, level)
        now = integrate(chosen, steps)
        near = reached[chosen] == level - 1  # compared only with the run next to it
        found = distances(before.some(chosen), now) * max(SHARE, min(1.0, 4 * EPS / steps))
        found = np.maximum(found, EPS * now.steps)  # round-off, which both runs have
        better = near & ~(found > error[chosen])
        best.put(chosen[better], now.some(better))
        error[chosen[better]] = found[better]
        before.put(chosen, now)
        reached[chosen] = level
        coming[chosen] = np.where(near, level + _ahead(found / tol, last - level), level + 1)
    return best, np.where(best.failed >= 0, np.nan, error)


def _ahead(excess: np.ndarray, left: int) -> np.ndarray:
    """How many levels further a body is to be run next, by its error over the tolerance; beyond the last: it is done.

    A body that is far off leaves out runs, up to the one before the run that is expected to do.
    """
    with np.errstate(all="ignore"):
        needed = np.ceil(np.log(excess) / math.log(RATIO))
    needed = np.where(np.isfinite(needed), np.maximum(needed, 1), 1)
    ahead = np.where(needed > 1, needed - 1, 1).astype(int)
    ahead = np.minimum(ahead, max(1, left - 1))
    return np.where((excess <= 1) | np.isnan(excess), left + 1, ahead)
