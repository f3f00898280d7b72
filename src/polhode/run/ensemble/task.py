"""A checked run of an ensemble: bodies, method, times and output; run it for its result."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compile.clock import Stopwatch
from ...kernels.loops import COLUMNS, kept_rows
from ...methods import Method
from ...numbers import floats
from ...numbers.arrays import components
from ...physics.fields.states import places
from ...physics.observers.event import Event
from ...physics.observers.statistics import Watch
from ...physics.problem import Problem
from ...results.ensemble import Ensemble
from ...results.trajectory import Trajectory
from .. import control, control_fixed
from ..dense import Steps, dense_between
from ..integrator import keeping, with_first_states
from ..located_steps import LocatedSteps, can_locate
from ..parts import Commands, groups, has_states
from ..step_control import EPS
from ..step_count import step_numbers
from . import alone, kept_times, one_by_one, tangents, varying
from . import events as event_search
from . import tolerance as ensemble_tolerance
from .batch import BodyBatch
from .lane_steps import adaptive_method
from .memory import MEMORY, check_memory
from .run import DEVICES
from .tolerance import Ends

if TYPE_CHECKING:
    from ...compile.batch.lane_tangents import Places


@dataclasses.dataclass(frozen=True)
class Task:
    """A checked ensemble run: bodies, method, times and output."""

    batch: BodyBatch
    method: Method
    model: Problem
    t0: float
    count: int
    every: int
    device: str
    wanted: Watch | None = None
    counts: np.ndarray | None = None
    tolerance: float | None = None
    """If set, every body covers its single interval `dt` in its own adaptive steps."""
    longest: np.ndarray | None = None
    """Longest of these steps, for each body or for all."""
    tol: float | None = None
    """If set, the error allowed at the end: runs with smaller and smaller `tolerance` are compared."""
    stops: np.ndarray | None = None
    """If set, the times after the start, the end among them, whose states are kept or enter the statistics."""
    asked: np.ndarray | None = None
    """The times of the states that the user asks for; by default all of those that are kept."""
    step_tol: float | None = None
    """The error allowed in a step, if the user gave it."""
    events: tuple[Event, ...] = ()
    """Events to be found; none of them is terminal."""
    tangent: bool = False
    """Whether the result has derivatives."""
    pulsed: bool = False
    """Whether the field has pulses in time so short that each body must have steps of its own."""
    in_lanes: bool = False
    """Whether bodies stay in lanes, which cross jumps that differ from body to body: those of a store."""

    @functools.cached_property
    def one_by_one(self) -> bool:
        """Whether every body is run by itself, with equal steps."""
        return one_by_one.needed(self)

    @property
    def alone(self) -> bool:
        """Whether every body is run by itself."""
        return self.tolerance is not None and (self.pulsed or alone.needed(self.batch.field))

    @property
    def lands(self) -> bool:
        """Whether steps end at the kept times, wherever these are: adaptive steps, and the exact motion."""
        return self.tolerance is not None or (self.stops is not None and self.count == 1)

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the steps whose states are kept; with statistics, the start and the end."""
        if self.stops is not None and self.wanted is None:
            first = np.arange(1, len(self.stops) + 1)
            return np.append(0, first if self.lands else step_numbers(self.t0, float(self.batch.dt[0]), self.stops))
        every = self.every if self.wanted is None else self.count
        return np.append(np.arange(0, self.count, every), self.count)

    @property
    def number_kept(self) -> int:
        """How many states of each body are kept, also of a run so long that `kept` does not fit in memory."""
        if self.stops is not None and self.wanted is None:
            return len(self.stops) + 1
        return -(-self.count // (self.every if self.wanted is None else self.count)) + 1

    @property
    def per_body_times(self) -> bool:
        """Whether every body has its own times."""
        return self.batch.per_body_dt or self.method.has_own_time or self.counts is not None

    def times(self) -> np.ndarray:
        """Return the times of the states that are kept, if they are the same for all bodies."""
        if self.stops is not None:
            return np.append(self.t0, self.stops if self.wanted is None else self.stops[-1])
        return self.t0 + self.kept * self.batch.dt[0]

    @property
    def shown(self) -> np.ndarray:
        """The times of the states of the result, if they are the same for all bodies."""
        return self.times() if self.asked is None else self.asked

    @property
    def extra_columns(self) -> int:
        """Number of columns after the state in a row: own time and statistics, or step count and largest momentum.

        Or the states of the field or of the method.
        """
        if self.tolerance is not None:
            return 1 if self.keeps_steps_only else 2 + self.states
        return self.states + self.method.kept_memory + (self.wanted.columns if self.wanted is not None else 0)

    @property
    def keeps_steps_only(self) -> bool:
        """Whether the only column after the state is the number of adaptive steps, as integers.

        Between the start and the end a body that fails has no state, and NaN is no integer.
        """
        return self.tolerance is not None and self.step_tol is not None and not self.states and len(self.kept) == 2

    @property
    def states(self) -> int:
        """Number of numbers of the states of the field, or of a tangent."""
        if self.tangent_places is not None:
            return len(self.tangent_places.states)
        return 0 if self.batch.field is None else len(places(self.batch.field))

    @property
    def chaos(self) -> bool:
        """Whether a variation is integrated beside each body, for chaos indicators."""
        return self.wanted is not None and self.wanted.chaos

    @property
    def tangent_places(self) -> Places | None:
        """The places of the numbers of a tangent beside each body; None if there is none."""
        batch = self.batch
        if batch.tangents is None:
            return None
        from ...compile.batch.lane_tangents import SIZE, Places

        if self.chaos:
            return Places(batch.values.shape[1], 0 if batch.own is None else 4, size=batch.tangents.shape[1])
        axes, columns = 0 if batch.own is None else 4, () if batch.field is None else tuple(batch.field.columns)
        more = batch.tangents.shape[1] - SIZE
        return Places(batch.values.shape[1], axes, columns, more > 0, more - 3 - axes if more else 0)

    def given(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Return the bodies as arguments of a loop, and their order."""
        from ...compile.batch.layout import EVERYBODY

        if self.counts is None:
            return self.batch.given(self.count), EVERYBODY
        return self.batch.given(self.counts), _by_steps(self.counts)

    def found(self) -> tuple[np.ndarray, ...]:
        """Return empty arrays for attitudes and momenta (start first), extra columns, and failed steps."""
        kept, batch, memory = self.number_kept - 1, self.batch, MEMORY[self.device]()
        check_memory(self.number_kept * batch.number, COLUMNS + self.extra_columns)
        n, extra = batch.number, np.int64 if self.keeps_steps_only else float
        after = memory.empty_after if batch.dt[0] > 0 else lambda _, shape: memory.empty(shape)
        q, m = after(batch.quaternion, (kept + 1, n, 4)), after(batch.momentum, (kept + 1, n, 3))
        return q, m, memory.empty((kept, n, self.extra_columns), extra), memory.empty((n,), np.int64)

    def run(self, threads: int | None = None) -> Ensemble:
        """Run all bodies, by default on all cores."""
        if self.alone:
            return event_search.added(self, kept_times.applied(self, alone.run(self)))
        if self.one_by_one:
            return event_search.added(self, one_by_one.run(self))
        if self.tol is not None:
            return event_search.added(self, _to_accuracy(self, self.tol, threads))
        watch, task = Stopwatch(), kept_times.inner(self) if self.stops is not None else self
        found = task.found()
        DEVICES[task.device](task, found, threads)
        return self.finished(task.result(found, watch))

    def finished(self, many: Ensemble) -> Ensemble:
        """Return the result of this task from that of the loops, which may have more states and no statistics."""
        return event_search.added(self, tangents.added(self, kept_times.applied(self, many)))

    def dense(self, i: int, sol: Trajectory) -> Callable[[Any], Any] | None:
        """Return the dense output of body i if every step was kept, as for `ph.solve`."""
        kept = self.every == 1 and self.wanted is None and self.counts is None
        if not kept or self.method.has_own_time or self.method.noise is not None:
            return None
        return lambda t: dense_between(self.problem(i), self.steps(i, sol), sol)(t)

    def steps(self, i: int, sol: Trajectory) -> Any:
        """Return what makes the states between the equal steps of body i."""
        problem, located = self.problem(i), self.one_by_one and can_locate(self.model, self.method)
        if control.is_controlled(problem):
            return control_fixed.steps_of(problem, self.method, float(sol.t[-1]), located)
        if located and not has_states(problem):
            return LocatedSteps.of_run(problem, self.method, sol.dt, len(sol) - 1)
        return Steps(problem, self.method.base or self.method, sol.dt)

    def problem(self, i: int) -> Problem:
        """Return body i as a problem."""
        batch = self.batch
        q, m = batch.of(batch.quaternion, i), batch.of(batch.momentum, i)
        return keeping(Problem(batch.body(i), batch.field_of(i), attitude=q, momentum=m, t0=self.t0), self.method)

    def result(self, found: tuple[np.ndarray, ...], watch: Stopwatch) -> Ensemble:
        """Return the result of a run from its arrays `found`."""
        return _result(self, found, watch)


def _to_accuracy(task: Task, tol: float, threads: int | None = None) -> Ensemble:
    """Run a task until the estimated errors at the end are below `tol`, or cannot be reduced."""
    field = task.batch.field
    if field is None:
        free = dataclasses.replace(task, tol=None, events=()).run(threads)
        error = 10 * EPS * (1 + task.batch.speeds() * abs(float(task.batch.dt[0])))
        return dataclasses.replace(free, error_estimate=error, tol=tol)
    watch, highest = Stopwatch(), task.method

    def integrate(chosen: np.ndarray, step_tol: float) -> Ends:
        nonlocal highest
        batch = task.batch if len(chosen) == task.batch.number else task.batch.some(chosen)
        longest = None if task.longest is None else task.longest[chosen if len(task.longest) > 1 else [0]]
        method = adaptive_method(field, step_tol, task.device, task.tangent, estimated=True)
        highest = max(highest, method, key=lambda method: method.order)
        part = dataclasses.replace(task, batch=batch, method=method, tolerance=step_tol, longest=longest, wanted=None)
        found = part.found()
        DEVICES[task.device](part, found, threads)
        q, m, extra_columns, failed = found
        steps, largest, states = extra_columns[-1, :, 0], extra_columns[-1, :, 1], extra_columns[..., 2:]
        path = np.concatenate([q[1:-1], m[1:-1], states[:-1]], axis=2).swapaxes(0, 1)
        used = np.full(len(chosen), step_tol)
        return Ends(q[-1], m[-1], _whole_numbers(steps), largest, failed, states[-1], path, used)

    ends, error = ensemble_tolerance.run(task.batch.number, tol, integrate, groups(field))
    path = ends.path.swapaxes(0, 1)
    triples = (
        (task.batch.quaternion, path[..., :4], ends.quaternion),
        (task.batch.momentum, path[..., 4:7], ends.momentum),
    )
    q, m = (
        np.concatenate([np.broadcast_to(start, end.shape)[None], between, end[None]]) for start, between, end in triples
    )
    moments = np.broadcast_to(task.batch.moments, (task.batch.number, 3))
    times = kept_times.inner(task).times()
    m = varying.momenta(task.batch, times, m, ends.failed)
    many = Ensemble(
        times, q, m, moments, ends.failed, highest.name, watch.seconds, steps=ends.steps, error_estimate=error,
        bodies=task.batch.bodies, tol=tol, compile_seconds=watch.compile_seconds,
        states=_states_of_fields(task.batch, np.concatenate([path[..., 7:], ends.states[None]])),
    )  # fmt: skip
    return tangents.added(task, kept_times.applied(task, many), ends.step_tolerance)


NEAR = 4096
"""Bodies sorted together by step count: few enough for the cache, enough for nearly equal counts in a vector."""


def _by_steps(counts: np.ndarray) -> np.ndarray:
    """Return the order in which bodies with their own step counts are run: in blocks, longest runs first."""
    longest = counts.max()
    missing = (longest - counts).astype(np.min_scalar_type(longest))  # short integers are sorted in one pass
    firsts = range(0, len(counts), NEAR)
    return np.concatenate([first + np.argsort(missing[first : first + NEAR], kind="stable") for first in firsts])


def _result(task: Task, found: tuple[np.ndarray, ...], watch: Stopwatch) -> Ensemble:
    q, m, extra_columns, failed = found
    batch, clock = task.batch, task.method.has_own_time
    if clock:
        t = np.concatenate([np.full((1, batch.number), task.t0), extra_columns[..., 0]])
    else:
        steps = task.kept[:, None] if task.counts is None else np.stack([np.zeros_like(task.counts), task.counts])
        t = task.t0 + steps * batch.dt if task.per_body_times else task.times()
    moments = np.broadcast_to(batch.moments, (batch.number, 3))
    m = varying.momenta(batch, t, m, failed)
    states = Ensemble(
        t, q, m, moments, failed, task.method.name, watch.seconds, bodies=batch.bodies, every=task.every,
        dense=task.dense if task.tolerance is None else None, compile_seconds=watch.compile_seconds,
        dt=None if clock or task.tolerance is not None else batch.dt,
    )  # fmt: skip
    if task.states and task.tangent_places is None:
        first = _first_samples(task) if control.is_controlled(task.model) else None
        found_states = _states_of_fields(batch, extra_columns[..., -task.states :], first)
        states = dataclasses.replace(states, states=found_states)
    if task.method.states:
        numbers = np.concatenate([_first_memory(task)[None], extra_columns[..., : task.method.kept_memory]])
        kept = tuple(name for name, _ in task.method.states)
        states = dataclasses.replace(states, states=_by_name(numbers, task.method.states), kept=kept)
    if task.tolerance is not None:
        steps = extra_columns[-1, :, 0]
        return dataclasses.replace(states, steps=steps if task.keeps_steps_only else _whole_numbers(steps))
    if task.wanted is None:
        return states
    numbers_of_statistics = extra_columns[0, :, task.method.kept_memory + task.states :]
    samples = 1 + np.where(failed < 0, kept_rows(task.count, task.every), (failed - 1) // task.every)
    return dataclasses.replace(states, statistics=task.wanted.results(numbers_of_statistics, samples))


def _whole_numbers(column: np.ndarray) -> np.ndarray:
    """Return a column of the results as integers."""
    return column.astype(np.int64)


def _first_samples(task: Task) -> np.ndarray:
    """Return what a controller decides at the start."""
    batch = task.batch
    omega = batch.omega_of(batch.momentum)
    q, w, values = (np.broadcast_to(x, (batch.number, x.shape[-1])) for x in (batch.quaternion, omega, batch.values))
    return Commands(task.model).first_samples(task.t0, q, w, values)


def _states_of_fields(
    batch: BodyBatch, extra_columns: np.ndarray, first_states: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the states of the fields by name, from those at the start and those after the kept steps."""
    if batch.field is None:
        return {}
    start = batch.values[:, places(batch.field)] if first_states is None else first_states
    start = np.broadcast_to(start, extra_columns.shape[1:])
    shapes = tuple((name, np.shape(value)) for name, value in batch.field.states.items())
    return _by_name(np.concatenate([start[None], extra_columns]), shapes)


def _by_name(numbers: np.ndarray, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> dict[str, np.ndarray]:
    """Return the states of all bodies by name, from their numbers (n, N, ...) one after the other."""
    found, first = dict[str, np.ndarray](), 0
    for name, shape in shapes:
        last = first + math.prod(shape)
        found[name], first = numbers[..., first:last].reshape(*numbers.shape[:2], *shape), last
    return found


def _first_memory(task: Task) -> np.ndarray:
    """Return the numbers that a method keeps, at the start."""
    batch, number = task.batch, task.batch.number
    inverse = np.divide(1.0, batch.moments, out=np.zeros_like(batch.moments), where=batch.moments > 0)
    columns = (np.broadcast_to(x, (number, x.shape[-1])) for x in (
        batch.quaternion, batch.momentum, batch.moments, inverse, batch.values
    ))  # fmt: skip
    q, m, inertia, inverse, values = (components(x) for x in columns)
    y = with_first_states(task.model, task.method, (q, m), (inertia, inverse, values), floats.number)
    return np.stack([np.broadcast_to(x, number) for x in y[2][: task.method.kept_memory]], axis=-1)
