"""Proof by interval arithmetic that a field needs no rescaling and no time schedule for any moderate state.

`physics.units.units_of` decides this for one state from the torque there. Here a bound of the torque over all attitudes
and all moderate angular velocities decides it for all states at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..physics.problem import Problem
from ..physics.units import NEAR, WIDE
from ..symbolic import bounds

FASTEST, SLOWEST = 2.0**10, 2.0 ** (1 - NEAR)
"""Largest component of the angular velocity, and its smallest value, for which a run surely needs no other units."""

LONGEST, SHORTEST = 2.0**200, 2.0**-200
"""Time spans that surely need no check of their length."""

SPARSE = 2.0**-40
"""Time span, relative to the end time, above which there surely are enough doubles for the times of steps."""

WIDER = 4.0
"""Factor by which parameters may change before the bounds of a torque are computed again."""

LIGHTER = 64.0
"""Factor by which the inertia may become smaller, too, if the bounds allow it."""


MOST_KNOWN = 8
"""Bounds that are kept: programs may use a few bodies and parameter values in turn."""

MOST_MISSES = 4
"""Motions in a row without a bound of the torque after which none is looked for."""


class Moderate:
    """Whether the motion of a body in the fields of one formula is moderate at all moderate angular velocities."""

    def __init__(self) -> None:
        self._known: list[tuple[float, tuple[bounds.Interval, ...]]] = []
        """Bounds of the torque, and the intervals of parameters for which they hold; the last one found first."""
        self._misses = 0

    def holds(self, problem: Problem) -> bool:
        """Return whether it is for this body and these parameters; False if that is not certain."""
        inertia = max(problem.body.principal.moments)
        if problem.body.linear_axis is not None or abs(math.frexp(inertia)[1]) > WIDE:
            return False
        field = problem.field
        if field is None:
            return True
        if "t" in field.reads:
            return False
        limit, values = inertia * 4.0 ** (NEAR - 1), field.parameters
        for known, intervals in self._known:
            if known <= limit and all(low <= x <= high for x, (low, high) in zip(values, intervals, strict=True)):
                return True
        if self._misses >= MOST_MISSES:
            return False
        found = self._is_bounded(limit, field.graph[0], values)
        self._misses = 0 if found else self._misses + 1
        return found

    def _is_bounded(self, limit: float, torque: Any, values: Any) -> bool:
        """Return whether the torque is below a limit, for these parameters at least; keep the bound that was found."""
        if not all(type(x) is float for x in values):
            return False
        wide = tuple((min(x / WIDER, x * WIDER), max(x / WIDER, x * WIDER)) for x in values)
        for bound, intervals in ((limit / LIGHTER, wide), (limit, wide), (limit, tuple((x, x) for x in values))):
            if bounds.is_below(bound, torque, _within(intervals)):
                self._known = [(bound, intervals), *self._known[: MOST_KNOWN - 1]]
                return True
        return False


def _within(parameters: tuple[bounds.Interval, ...]) -> Callable[[str], bounds.Interval]:
    """Return the intervals of symbols: attitudes, moderate angular velocities, and parameters in these intervals."""
    ranges = {"R": (-1.0, 1.0), "w": (-FASTEST, FASTEST)}

    def interval(name: str) -> bounds.Interval:
        return parameters[int(name[1:])] if name[0] == "p" else ranges.get(name[0], bounds.EVERYTHING)

    return interval
