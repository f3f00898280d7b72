"""Runs whose steps end where a condition on the state changes: on the surface of a jump, a kink or a dead band.

Between two changes the field is held on one side of every condition (`physics/fields/sides.py`), so it is smooth and
steps keep their order. Each step is looked at in a few places, and where a condition approaches its change and leaves
again. The first place at which a condition differs from its side is bracketed to two neighbouring doubles with the
dense output, and the run goes on from there on the other side. Where both sides lead back to the surface (sliding, as
in Coulomb friction at rest), the run stops unfinished.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..kernels.so3 import matrix
from ..numbers.arrays import components
from ..physics.fields.sides import SidedField, conditions_of
from ..physics.fields.switches import PiecewiseField
from ..physics.problem import Problem
from ..physics.units import ScaledRun
from .adaptive import Path, Run, Standing
from .event_search import GLANCES, dip, grazes, with_edges
from .schedule import Leg, Schedule
from .step_control import EPS
from .system import interpolated

FEW, MANY = 4, 256
"""Steps between two looks for changes: the first number after a change, doubled up to the last while there is none."""

SHORT = 1e-9
"""Time between two changes, relative to the run, that counts as none."""

PARTS = 32
"""Parts into which an interval with a change is divided, again and again."""

MOST_SHORT = 100
"""Most changes in a row without time between them: then the motion slides along the surface."""


def placed(field: SidedField, system: Any, moment: Any, sides: Any) -> Any:
    """Return the kernel data on these sides, at a moment between two edges in time, of one state or of many.

    The moment in `system` stays if None is given.
    """
    inertia, inverse, p = system
    first = len(field.whole.parameters)
    own = p[:first]
    if moment is not None and isinstance(field.whole, PiecewiseField):
        own = (*own[:-1], moment)
    return inertia, inverse, (*own, *sides, *p[first + field.count :])


def truths(problem: Problem, times: np.ndarray, rows: np.ndarray, system: Any) -> np.ndarray:
    """Return whether the conditions hold at some states, as numbers 1 and 0: (states, conditions)."""
    return _evaluated(problem, "truths", times, rows, system)


def gaps(problem: Problem, times: np.ndarray, rows: np.ndarray, system: Any) -> np.ndarray:
    """Return g of every condition at some states, zero where it changes: (states, conditions)."""
    return _evaluated(problem, "gaps", times, rows, system)


def _evaluated(problem: Problem, what: str, times: np.ndarray, rows: np.ndarray, system: Any) -> np.ndarray:
    q, m = problem.user_axes(components(rows[:, :4]), components(rows[:, 4:7]))
    omega = problem._velocity(m)
    with np.errstate(all="ignore"):
        found = getattr(problem.field, what)(times, matrix(q), omega, system[2])
    return np.stack([np.broadcast_to(x, times.shape) for x in found], -1).astype(float)


def settled(problem: Problem, times: np.ndarray, rows: np.ndarray, moments: Any, system: Any) -> np.ndarray | None:
    """Return the sides (states, conditions) on which some states are; None if no sides agree with the conditions.

    A condition inside another one may change with the side of the other.
    """
    field = problem.field
    assert isinstance(field, SidedField)
    sides = np.zeros((len(times), field.count))
    for _ in range(field.count + 1):
        found = truths(problem, times, rows, placed(field, system, moments, components(sides)))
        if (found == sides).all():
            return sides
        sides = found
    return None


Between = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray | None]
"""Dense output (moments, times, rows): the rows at some moments, from the states at some times; None if it fails."""


class Change(NamedTuple):
    """Two moments of a run, before and after a change of a condition, and the state at the second."""

    low: float
    high: float
    row: np.ndarray


def glimpsed(problem: Problem, between: Between, times: np.ndarray, rows: np.ndarray, system: Any) -> Change | None:
    """Look at steps in a few places each; return the first change of a condition from its side in `system`."""
    glances = glanced(times)
    seen = between(glances, times, rows)
    if seen is None:
        return Change(glances[0], glances[1], rows[0])
    at = np.flatnonzero(off_side(problem, glances, seen, system)[1:])
    last = at[0] + 1 if len(at) else len(glances) - 1

    def seen_at(moments: np.ndarray) -> np.ndarray | None:
        return between(moments, times, rows)

    brief = _grazed(problem, seen_at, glances[: last + 1], seen[: last + 1], system)
    if brief is not None or not len(at):
        return brief
    return Change(glances[at[0]], glances[last], seen[last])


def _grazed(
    problem: Problem, seen_at: Callable[[np.ndarray], np.ndarray | None], times: np.ndarray, rows: np.ndarray,
    system: Any,
) -> Change | None:  # fmt: skip
    """Return the first change of a condition that changes back before the next of these times."""
    edged = with_edges(times)
    close = seen_at(edged[[1, -2]])
    if close is None:
        return None
    seen = np.concatenate([rows[:1], close[:1], rows[1:-1], close[1:], rows[-1:]])
    g = signed_gaps(problem, edged, seen, system)
    for i, k in np.argwhere(grazes(edged, g)):

        def gap(t: float, k: int = k) -> float:
            row = seen_at(np.array([t]))
            return math.nan if row is None else float(signed_gaps(problem, np.array([t]), row, system)[0, k])

        found = dip(gap, *((edged[j], g[j, k]) for j in (i, i + 1, i + 2)))
        row = None if found is None else seen_at(np.array(found[1:]))
        if found is not None and row is not None:
            return Change(*found, row[0])
    return None


def signed_gaps(problem: Problem, times: np.ndarray, rows: np.ndarray, system: Any) -> np.ndarray:
    """Return g of every condition at some states, positive on its side in `system`: (states, conditions)."""
    field = problem.field
    assert isinstance(field, SidedField)
    first = len(field.whole.parameters)
    holds = np.array([1.0 if node.op == "abs" else -1.0 for node in conditions_of(field.whole)])
    sides = 2 * np.array(system[2][first : first + field.count]) - 1
    return np.asarray(holds * sides * gaps(problem, times, rows, system))


def located(
    problem: Problem, between: Between, change: Change, times: np.ndarray, rows: np.ndarray, system: Any
) -> tuple[float, np.ndarray] | None:
    """Return the time of a change, bracketed to two neighbouring doubles, and the state there; None on failure."""

    def differs(moments: np.ndarray) -> np.ndarray:
        seen = between(moments, times, rows)
        return np.ones(len(moments), bool) if seen is None else off_side(problem, moments, seen, system)

    moment = bracketed(differs, change.low, change.high)
    seen = between(np.array([moment]), times, rows)
    return None if seen is None else (moment, seen[0])


def glanced(times: np.ndarray) -> np.ndarray:
    """Return the times at which steps are looked at for changes."""
    parts = np.arange(GLANCES) / GLANCES
    return np.append((times[:-1, None] + np.diff(times)[:, None] * parts).ravel(), times[-1])


def off_side(problem: Problem, times: np.ndarray, rows: np.ndarray, system: Any) -> np.ndarray:
    """Return at which states some condition differs from its side in `system`."""
    field = problem.field
    assert isinstance(field, SidedField)
    first = len(field.whole.parameters)
    sides = np.array(system[2][first : first + field.count])
    return np.asarray((truths(problem, times, rows, system) != sides).any(axis=1))


def held(legs: Schedule) -> Schedule | None:
    """The schedule with the field held on one side of its conditions; None if there are none that can be located."""
    field = legs.problem.field
    if field is None or not conditions_of(field):
        return None
    problem = copy.copy(legs.problem)
    problem.field = SidedField(field)
    return dataclasses.replace(legs, problem=problem)


class LocatedRun(Run):
    """A run of a problem whose field is a `SidedField`; it is not finished if the motion slides, or if a step fails."""

    steps_are_free = False

    @property
    def field(self) -> SidedField:
        """The field, held on one side."""
        assert isinstance(self.problem.field, SidedField)
        return self.problem.field

    def computed(self, start: Standing | None = None) -> Iterator[Path]:
        """Compute the pieces, all of them or those after `start`."""
        return _Walk(self, start).pieces()

    def state(self, row: np.ndarray) -> Any:
        """Return the state in a row: attitude, momentum, and what a controller holds."""
        numbers, sizes = row.tolist(), itertools.accumulate((0, *map(len, self.y)))
        return tuple(tuple(numbers[a:b]) for a, b in itertools.pairwise(sizes))

    def at(self, leg: Leg, sides: np.ndarray) -> Any:
        """Return the kernel data of a leg, on these sides."""
        return placed(self.field, self.system, leg.moment, tuple(sides.tolist()))

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run, each by one step from the last stored state on its side."""
        first = np.clip(np.searchsorted(path_times, times, side="right") - 1, 0, len(path_times) - 1)
        seen = rows[first].copy()
        ends = np.array([leg.end for leg in self.schedule.legs])
        legs = np.minimum(np.searchsorted(ends, path_times[first], side="right"), len(ends) - 1)
        for number in np.unique(legs):
            leg = self.schedule.legs[number]
            here = np.flatnonzero((legs == number) & (times != path_times[first]))
            sides = settled(self.problem, path_times[first[here]], rows[first[here]], leg.moment, self.system)
            if sides is None:
                return None
            for one in np.unique(sides, axis=0):
                group = here[(sides == one).all(1)]
                part = self._between(self.at(leg, one), times[group], path_times, rows)
                if part is None:
                    return None
                seen[group] = part
        return seen

    def _between(self, system: Any, times: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        return interpolated(self.controlled_step.interpolate, times, starts, rows, system, self.order)


def is_located(run: Any) -> bool:
    """Return whether the steps of a run end where conditions change."""
    return isinstance(run.run if isinstance(run, ScaledRun) else run, LocatedRun)


class _Walk:
    """One run, or the rest of one: where it stands, and the states that were not yielded yet."""

    def __init__(self, run: LocatedRun, start: Standing | None) -> None:
        at = start or Standing(0, run.problem.t0, run.y, run.proposal(), 0.0, FEW, 0)
        self.run, self.number, self.t, self.y, self.proposal = run, at.leg, at.t, at.y, at.proposal
        self.largest, self.size, self.tried = at.largest, at.size, at.attempted
        self.row = np.array([x for part in at.y for x in part])
        self.short, self.changed = 0, -math.inf
        self.times: list[np.ndarray] = [] if start else [np.array([self.t])]
        self.rows: list[np.ndarray] = [] if start else [self.row[None]]
        self.rejected, self.turned = 0, 0.0

    def _forget(self) -> None:
        """Begin a new piece."""
        self.times, self.rows, self.rejected, self.turned = [], [], 0, 0.0

    def pieces(self) -> Iterator[Path]:
        """Walk to the end.

        No piece ends at a change: how often conditions changed lately is not kept from one piece to the next.
        """
        legs = list(zip(self.run.schedule.legs, self.run.longest, strict=True))
        for number in range(self.number, len(legs)):
            self.number = number
            for fine in self._leg(*legs[number]):
                if not fine:
                    yield self._piece(finished=False)
                    return
                if sum(map(len, self.times)) >= MANY and self.t < self.run.end:
                    yield self._piece(after=self._standing())
        yield self._piece()

    def _piece(self, finished: bool = True, after: Standing | None = None) -> Path:
        largest = max(self.largest, math.hypot(*self.y[1]))
        times = np.concatenate([*self.times, np.empty(0)])
        rows = np.concatenate([*self.rows, np.empty((0, len(self.row)))])
        made = Path(times, rows, self.rejected, finished, largest=largest, turned=self.turned, standing=after)
        self._forget()
        return made

    def _standing(self) -> Standing:
        return Standing(self.number, self.t, self.y, self.proposal, self.largest, self.size, self.tried)

    def _leg(self, leg: Leg, longest: float) -> Iterator[bool]:
        """Walk to the end of a leg; yield whether all is well, whenever no condition changes."""
        run = self.run
        while self.t < leg.end:
            system = self._settled(leg)
            if system is None or self.short > MOST_SHORT or self.tried > run.controlled_step.most:
                yield False
                return
            change = None
            while change is None and self.t < leg.end:
                times, rows, fine = self._steps(leg, longest, system, self.size)
                change = self._change(times, rows, system)
                self._keep(times, rows, change)
                self.size = FEW if change else min(2 * self.size, MANY)
                if change is None:
                    yield fine

    def _settled(self, leg: Leg) -> Any:
        """Return the kernel data with the sides of the current state; None if no sides agree with the conditions."""
        run = self.run
        sides = settled(run.problem, np.array([self.t]), self.row[None], leg.moment, run.system)
        return None if sides is None else run.at(leg, sides[0])

    def _steps(self, leg: Leg, longest: float, system: Any, size: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Make some steps; return the state now and those after it."""
        run = self.run
        times, rows = np.empty(size + 1), np.empty((size + 1, len(self.row)))
        times[0], rows[0] = self.t, self.row
        self.y, self.t, self.proposal, self.largest, angle, count, lost, fine = run.controlled_step.adaptive_loop(
            self.t, leg.end, run.end, longest, self.proposal, self.y, system, run.tolerance, self.largest, run.order,
            times[1:], rows[1:],
        )  # fmt: skip
        self.rejected, self.tried, self.turned = self.rejected + lost, self.tried + count + lost, self.turned + angle
        run._tell(self.t)
        return times[: count + 1], rows[: count + 1], fine

    def _change(self, times: np.ndarray, rows: np.ndarray, system: Any) -> tuple[float, np.ndarray] | None:
        """Return the first time at which a condition differs from its side, and the state there; None if none does."""
        if len(times) < 2:
            return None
        between = functools.partial(self.run._between, system)
        change = glimpsed(self.run.problem, between, times, rows, system)
        return None if change is None else located(self.run.problem, between, change, times, rows, system)

    def _keep(self, times: np.ndarray, rows: np.ndarray, change: Any) -> None:
        """Keep the steps up to the change, and the state there."""
        if change is None:
            self.times.append(times[1:])
            self.rows.append(rows[1:])
            self.row = rows[-1]
            return
        moment, row = change
        before = times < moment
        self.times.append(np.append(times[before][1:], moment))
        self.rows.append(np.concatenate([rows[before][1:], row[None]]))
        self.t, self.row, self.y = moment, row, self.run.state(row)
        self.proposal = self.run.proposal()
        near = moment - self.changed <= SHORT * (self.run.end - self.run.problem.t0)
        self.short, self.changed = self.short + 1 if near else 0, moment


def bracketed(differs: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """Return the first time at which `differs` is true, between `low`, where it is not, and `high`, where it is.

    It is exact to the spacing of doubles, or to round-off of the interval if that is more (near t = 0). The interval is
    divided into `PARTS` at a time: many states cost little more than one.
    """
    smallest = EPS * (high - low)
    while high - low > smallest:
        inside = np.unique(low + (high - low) * np.arange(1, PARTS) / PARTS)
        inside = inside[(inside > low) & (inside < high)]
        if not len(inside):
            break
        at = np.flatnonzero(differs(inside))
        first = int(at[0]) if len(at) else len(inside)
        low, high = inside[first - 1] if first else low, inside[first] if first < len(inside) else high
    return float(high)
