"""Equal steps of a method in a field that jumps with the state: a step that meets a jump is made in parts.

Between two jumps the field is held on one side of its conditions (`physics/fields/sides.py`). A step in which a
condition changes ends there (`run/located.py`), and a further step on the other side leads to the end of the
first. So all states stay on the grid of times t0 + n h, every part is a step in a smooth field, and the order of the
method is kept. What a method conserves by the equality of its steps is lost in such a step: it is neither symplectic
nor symmetric.

Where both sides lead back to the surface (sliding), no parts are found. Such a step crosses the jump, as one step.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ResultWarning
from ..methods import Method
from ..methods.queries import DiscreteGradient
from ..numbers import floats
from ..physics.fields import Field
from ..physics.fields.sides import SidedField, conditions_of, has_jumps
from ..physics.fields.switches import PiecewiseField, between, edges
from ..physics.problem import Problem
from ..physics.units import ScaledRun, rescaled, units_of_steps
from .adaptive import Path
from .event_search import GLANCES, grazes, with_edges
from .integrator import Engine, check_fit
from .located import FEW, MANY, SHORT, Change, gaps, glimpsed, located, off_side, placed, settled, signed_gaps
from .system import System

MOST_PARTS = 16
"""Most parts of a step: with more of them, the motion slides along a surface."""


NEXT = 1 / 64
"""Time after a change, in parts of the time between two looks, in which its two sides are compared."""


MOST_SEEN = 1_000_000
"""Most states of a run at which conditions are evaluated for a message."""


def can_locate(problem: Problem, method: Method, digits: int | None = None) -> bool:
    """Return whether steps of a method end at the jumps of a field in the state, if it has some."""
    carries = method.memory or method.has_own_time or method.before is not None or method.noise is not None
    if digits is not None or carries or not method.has_step or method.asks.find(DiscreteGradient) is not None:
        return False
    field = problem.field
    return field is not None and not field.opaque and field.bath is None and bool(conditions_of(field))


INSTEAD_OF_STEP_TOL = "give tol instead of step_tol: then the error at the end is estimated"


def warn_of_jumps(
    problem: Problem, method: Method, digits: int | None, count: float, states: Callable[[], Path], remedy: str = ""
) -> None:
    """Say that the steps of a run with `count` states crossed jumps of its field in the state, if they may have.

    `remedy` is what helps where no method locates them.
    """
    field = problem.field
    if (
        field is None
        or field.states
        or field.bath is not None
        or not has_jumps(field)
        or not (count > MOST_SEEN or _may_cross(problem, states))
    ):
        return
    warnings.warn(crossing(problem, method, digits, remedy), ResultWarning, stacklevel=4)


def warn_of_adaptive_steps(problem: Problem, how: str, count: int, states: Callable[[], Path]) -> None:
    """Say that steps to a tolerance of each of them crossed jumps of the field in the state, if they may have.

    A step that crosses a jump is as short as its estimate asks for, and that is one for smooth fields. `how` names the
    steps.
    """
    field = problem.field
    if field is None or not has_jumps(field) or not (field.states or count > MOST_SEEN or _may_cross(problem, states)):
        return
    warnings.warn(conditions_crossed(field, how, INSTEAD_OF_STEP_TOL), ResultWarning, stacklevel=4)


def crossing(problem: Problem, method: Method, digits: int | None = None, remedy: str = "") -> str:
    """Return the message that steps of a method may cross jumps in the state; `remedy` as in `warn_of_jumps`."""
    field = problem.field
    assert field is not None
    how = f"{method.name} with digits" if digits is not None else method.name
    instead = remedy or "use another one-step method"
    if not conditions_of(field):
        instead = "use a smooth formula instead of ==, and instead of a table of the state"
    elif digits is not None and can_locate(problem, method):
        instead = "leave out `digits`"
    return conditions_crossed(field, how, instead)


def conditions_crossed(field: Field, how: str, remedy: str) -> str:
    """Return the message that steps cross conditions of a field on the state; `how` names the steps."""
    return (
        f"{field.name} has conditions on the state (where, abs, comparisons of R or omega), and steps of {how} do not "
        f"end where they change, so that the order is lost at a jump; {remedy}"
    )


def _may_cross(problem: Problem, states: Callable[[], Path]) -> bool:
    """Return whether a condition on the state differs among the states of a run; True if that is not known."""
    field = between(problem.field)
    if field is None or not conditions_of(field):
        return True
    held = copy.copy(problem)
    held.field = SidedField(field)
    path = states()
    t, rows = path.times.astype(float), path.rows.astype(float)
    sides = settled(held, t, rows, t, held.kernel_data(floats.number)[1])
    return sides is None or bool((sides != sides[0]).any())


class Part(NamedTuple):
    """A part of a step: the time and the state at its start, and the kernel data in it."""

    t: float
    row: np.ndarray
    system: Any


@dataclasses.dataclass(frozen=True)
class Parts:
    """All steps of a run, in parts.

    Attributes
    ----------
    times, rows : the states of the run, and those on the surfaces of jumps
    systems : kernel data
    which : the place of the data of each part among these; -1 in a step that crosses a jump
    """

    times: np.ndarray
    rows: np.ndarray
    systems: list[Any]
    which: np.ndarray


class LocatedSteps:
    """Equal steps that are divided where a branch of the field changes with the state.

    Parameters
    ----------
    problem : Problem, in the units of the run
    method : a method for which `can_locate` is true
    stops : the edges of the field in time inside the run, and its end
    """

    def __init__(self, problem: Problem, method: Method, stops: Sequence[float]) -> None:
        held = between(problem.field)
        assert held is not None
        self.whole, self.method = problem, method
        self.problem = copy.copy(problem)
        self.problem.field = SidedField(held)
        self.edges = np.array([problem.t0, *stops])
        self.slid = 0
        """Steps that crossed a jump on which the motion slides."""

    @classmethod
    def until(cls, end: float, problem: Problem, method: Method) -> LocatedSteps:
        """Return the steps of a run to an end time."""
        return cls(problem, method, [*edges(problem.field, problem.t0, end).tolist(), end])

    @classmethod
    def of_run(cls, problem: Problem, method: Method, dt: float, count: int) -> ScaledRun:
        """Return the steps of a run of `count` equal steps, in the units that `ph.solve` chooses."""
        units = units_of_steps(problem, dt, count)
        inner = rescaled(problem, units)
        return ScaledRun(cls.until(inner.t0 + count * float(units.times(dt)), inner, method), units)

    @property
    def field(self) -> SidedField:
        """The field, held on one side."""
        assert isinstance(self.problem.field, SidedField)
        return self.problem.field

    @functools.cached_property
    def sides(self) -> System:
        """The steps on one side of every condition."""
        return System(self.problem, self.method)

    @functools.cached_property
    def crossing(self) -> System:
        """The steps that cross jumps."""
        return System(self.whole, self.method)

    @property
    def held(self) -> Engine:
        """The loop on one side of every condition."""
        return self.sides.engine

    def engine(self) -> Engine:
        """Return the engine of a run."""
        check_fit(self.method, self.whole)
        return dataclasses.replace(self.held, advance=self.advance)

    # --- one step in parts ------------------------------------------------------------------------

    def between(self, system: Any) -> Callable[..., np.ndarray | None]:
        """Return the dense output on the sides of a system."""
        return functools.partial(self.sides.state_at, data=system)

    def across(self, system: Any) -> Callable[..., np.ndarray | None]:
        """Return the dense output across jumps."""
        return functools.partial(self.crossing.state_at, data=system)

    def parts(self, t: float, row: np.ndarray, end: float) -> tuple[list[Part], np.ndarray] | None:
        """Return the parts of a step from a state at `t`, and the state at its end; None if the motion slides."""
        found, tiny = list[Part](), SHORT * (end - t)
        for stop in [*self.edges[(self.edges > t + tiny) & (self.edges < end - tiny)].tolist(), end]:
            more = self._parts_to(t, row, stop, tiny)
            if more is None:
                return None
            t, row = stop, more[1]
            found += more[0]
        return found, row

    def _parts_to(self, t: float, row: np.ndarray, end: float, tiny: float) -> tuple[list[Part], np.ndarray] | None:
        """Return the parts of a step between two edges in time."""
        found, short, moment = list[Part](), 0, self.moments(np.array([(t + end) / 2]))
        while len(found) < MOST_PARTS and short <= self.field.count:
            here = self._settled(t, row, moment)
            last = None if here is None else self.between(here)(np.array([end]), np.array([t]), row[None])
            if last is None:
                return None
            found.append(Part(t, row, here))
            step = np.array([t, end]), np.stack([row, last[0]])
            change = glimpsed(self.problem, self.between(here), *step, here)
            if change is None:
                return found, last[0]
            at = None if self._is_held(change, here, moment) else located(
                self.problem, self.between(here), change, *step, here
            )  # fmt: skip
            if at is None:
                return None
            if at[0] >= end:
                return found, last[0]
            short = short + 1 if at[0] - t <= tiny else 0
            t, row = at
        return None

    def _is_held(self, change: Change, system: Any, moment: np.ndarray) -> bool:
        """Return whether both sides lead back to the surface of a change: then the motion slides along it.

        That is so if g of a condition that changed grows on the side before, and falls on the side beyond (Filippov).
        """
        t, row = np.array([change.high]), change.row[None]
        beyond, later = self._settled(change.high, change.row, moment), t + (change.high - change.low) * NEXT
        if beyond is None:
            return True
        ahead, back = (self.between(x)(later, t, row) for x in (system, beyond))
        if ahead is None or back is None:
            return False
        here, onward, returned = (
            gaps(self.problem, when, where, system) for when, where in ((t, row), (later, ahead), (later, back))
        )
        held = (here * (onward - here) > 0) & (here * (returned - here) < 0)
        return bool((held & self._differ(system, beyond)).any())

    def _differ(self, one: Any, other: Any) -> np.ndarray:
        first, count = len(self.field.whole.parameters), self.field.count
        return np.not_equal(*(np.array(x[2][first : first + count]) for x in (one, other)))

    def moments(self, t: np.ndarray) -> np.ndarray:
        """Return times in the middle between the edges around some times."""
        k = np.clip(np.searchsorted(self.edges, t), 1, len(self.edges) - 1)
        return np.asarray(self.edges[k - 1] + (self.edges[k] - self.edges[k - 1]) / 2)

    def _settled(self, t: float, row: np.ndarray, moment: np.ndarray) -> Any:
        """Return the kernel data on the sides on which a state is; None if no sides agree with the conditions."""
        sides = settled(self.problem, np.array([t]), row[None], moment, self.held.system)
        return None if sides is None else self._system(float(moment[0]), sides[0])

    def _system(self, moment: float, sides: np.ndarray) -> Any:
        return placed(self.field, self.held.system, moment, tuple(sides.tolist()))

    # --- the loop ---------------------------------------------------------------------------------

    def advance(
        self, h: Any, t0: Any, first: int, count: int, every: int, last: int, y: Any, system: Any, rows: Any
    ) -> Any:
        """Make steps, as the loops of `kernels.loops.stepping` do; the data in `system` are those of the engine."""
        filled, n, size, residual, fine = 0, first, FEW, 0.0, True
        while fine and n < first + count:
            y, made, residual, fine, changed = self._block(h, t0, n, min(size, first + count - n), y)
            for k, row in enumerate(made, n + 1):
                if k % every == 0 or k == last:
                    rows[filled], filled = row, filled + 1
            n, size = n + len(made), FEW if changed else min(2 * size, MANY)
        return y, n, filled, residual, fine

    def path(self, h: float, count: int) -> Path:
        """Return all states of a run."""
        rows = self.held.buffer(count + 1)
        rows[0] = self.sides.row(self.held.y)
        self.advance(h, self.problem.t0, 0, count, 1, count, self.held.y, self.held.system, rows[1:])
        return Path(self.problem.t0 + np.arange(count + 1) * h, rows)

    def _block(self, h: float, t0: float, n: int, count: int, y: Any) -> tuple[Any, np.ndarray, float, bool, bool]:
        """Make some steps on one side; the last one may be made in parts, or cross a jump.

        Return the state, the rows, the residual, whether all steps succeeded, and whether a condition changed. States
        do not depend on `count`: sides follow from the state at the start of a step.
        """
        row, t = self.sides.row(y), t0 + n * h
        count = self._without_edge(t, h, count)
        here = self._settled(t, row, self.moments(np.array([t + h / 2])))
        buffer, filled = self.held.buffer(count), 0
        if here is not None and count:
            new, _, filled, _, _ = self.held.advance(h, t0, n, count, 1, n + count, y, here, buffer)
        before = 0
        if filled:
            times = t0 + np.arange(n, n + filled + 1) * h
            change = glimpsed(
                self.problem, self.between(here), times, np.concatenate([row[None], buffer[:filled]]), here
            )
            before = filled if change is None else int(np.searchsorted(times, change.low, side="right")) - 1
            if before == count:
                return new, buffer, 0.0, True, False
        if before:
            y = self.held.advance(h, t0, n, before, 1, n + before, y, here, self.held.buffer(before))[0]
        return self._last(h, t0, n + before, y, buffer[:before])

    def _last(self, h: float, t0: float, n: int, y: Any, made: np.ndarray) -> tuple[Any, np.ndarray, float, bool, bool]:
        """Make one step in parts, or across a jump, after those of a block."""
        found = self.parts(t0 + n * h, self.sides.row(y), t0 + (n + 1) * h)
        if found is not None:
            return self.sides.state(found[1]), np.concatenate([made, found[1][None]]), 0.0, True, True
        buffer = self.held.buffer(1)
        y, _, filled, residual, fine = self.crossing.engine.advance(
            h, t0, n, 1, 1, n + 1, y, self._crossing_system(t0 + (n + 0.5) * h), buffer
        )
        self.slid += int(fine)
        return y, np.concatenate([made, buffer[:filled]]), residual, fine, True

    def _without_edge(self, t: float, h: float, count: int) -> int:
        """Return how many steps end before the next edge in time, or on it."""
        tiny = SHORT * h
        ahead = self.edges[self.edges > t + tiny]
        return min(count, int((ahead[0] + tiny - t) // h)) if len(ahead) else count

    def _crossing_system(self, t: float) -> Any:
        inertia, inverse, p = self.crossing.engine.system
        if isinstance(self.whole.field, PiecewiseField):
            last = len(self.whole.field.parameters) - 1
            p = (*p[:last], float(self.moments(np.array([t]))[0]), *p[last + 1 :])
        return inertia, inverse, p

    def warn_of_sliding(self, count: int) -> None:
        """Say how many of the steps of a run crossed a jump."""
        if self.slid:
            warnings.warn(
                f"in {self.slid} of {count} steps {self.field.name} holds the motion on the surface of a jump: these "
                "steps cross it, with an error of first order; make the jump a steep slope (tanh) to keep the order",
                ResultWarning, stacklevel=3,
            )  # fmt: skip

    # --- between the steps ------------------------------------------------------------------------

    def in_parts(self, times: np.ndarray, rows: np.ndarray) -> Parts:
        """Return all steps of a run in parts, from its states."""
        moments = self.moments((times[:-1] + times[1:]) / 2)
        sides = settled(self.problem, times[:-1], rows[:-1], moments, self.held.system)
        keys = np.full((len(moments), 1), np.nan) if sides is None else np.column_stack([moments, sides])
        systems: list[Any] = []
        which = np.full(len(moments), -1)
        for key in np.unique(keys[~np.isnan(keys[:, 0])], axis=0):
            group = np.flatnonzero((keys == key).all(1))
            system = self._system(key[0], key[1:])
            which[group[~self._changes(times, rows, group, system)]] = len(systems)
            systems.append(system)
        found, marks = [], []
        for k in range(len(moments)):
            step = None if which[k] >= 0 else self.parts(times[k], rows[k], times[k + 1])
            if step is None:
                found.append((times[k], rows[k]))
                marks.append(int(which[k]))
                continue
            for part in step[0]:
                found.append((part.t, part.row))
                marks.append(len(systems))
                systems.append(part.system)
        found.append((times[-1], rows[-1]))
        return Parts(np.array([t for t, _ in found]), np.array([row for _, row in found]), systems, np.array(marks))

    def _changes(self, times: np.ndarray, rows: np.ndarray, steps: np.ndarray, system: Any) -> np.ndarray:
        """Return in which of some steps a condition may change, or an edge in time lies."""
        starts, lengths = times[steps], times[steps + 1] - times[steps]
        looks = starts[:, None] + lengths[:, None] * np.arange(GLANCES + 1) / GLANCES
        looks[:, -1] = times[steps + 1]
        looks = with_edges(looks)
        moments = looks.ravel()
        seen = self.between(system)(moments, times, rows)
        tiny = SHORT * lengths
        ahead = np.searchsorted(self.edges, times[steps + 1] - tiny) > np.searchsorted(self.edges, starts + tiny)
        if seen is None:
            return np.ones(len(steps), bool)
        off = off_side(self.problem, moments, seen, system).reshape(looks.shape)[:, 1:].any(1)
        g = signed_gaps(self.problem, moments, seen, system).reshape(*looks.shape, -1)
        return np.asarray(ahead | off | grazes(looks, g).any((1, 2)))

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        key = (len(path_times), float(path_times[-1]))
        if self._known is None or self._known[0] != key:
            self._known = key, self.in_parts(path_times, rows)
        parts = self._known[1]
        first = np.clip(np.searchsorted(parts.times, times, side="right") - 1, 0, len(parts.which) - 1)
        seen = np.empty((len(times), rows.shape[1]))
        for k in np.unique(parts.which[first]):
            here = parts.which[first] == k
            between = self.between(parts.systems[k]) if k >= 0 else None
            found = self._across_at(times[here], parts) if between is None else between(
                times[here], parts.times, parts.rows
            )  # fmt: skip
            if found is None:
                return None
            seen[here] = found
        return seen

    def _across_at(self, times: np.ndarray, parts: Parts) -> np.ndarray | None:
        """Return rows in steps that cross a jump."""
        found = np.empty((len(times), parts.rows.shape[1]))
        for k, t in enumerate(times):
            row = self.across(self._crossing_system(t))(np.array([t]), parts.times, parts.rows)
            if row is None:
                return None
            found[k] = row[0]
        return found

    _known: tuple[Any, Parts] | None = None
