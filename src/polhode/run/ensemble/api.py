"""Ensembles: many bodies, each with its own inertia, state, parameters and step, and one method for all."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...compile.clock import Stopwatch
from ...errors import InputError, ResultWarning
from ...kernels.loops import kept_rows
from ...methods import Method, methods
from ...methods.families.jacobi import jacobi
from ...physics.fields import Field, FieldTemplate, places
from ...physics.fields.switches import switches_of
from ...physics.observers.event import Event
from ...physics.observers.statistics import Watch, watch
from ...physics.problem import Problem, finite_number
from ...physics.validate import check_times, check_unit_of_time, flag, whole_number
from ...results.ensemble import Ensemble
from ...results.store import checkpoint
from ...results.trajectory import Trajectory
from .. import with_states
from ..dense import dense_of
from ..noise import check_forward
from ..schedule import Bounds
from ..step_control import EPS, LARGEST, SMALLEST, has_series, is_smooth
from ..step_count import end_time, step_numbers
from . import events as event_search
from . import kept_times
from . import tolerance as ensemble_tolerance
from .batch import BodyBatch, model_problem, step_counts
from .events import wanted_events
from .inputs import Inputs, read
from .lane_steps import adaptive_method
from .run import DEVICES
from .schedule import longest_steps
from .start import Start
from .tolerance import Ends


def ensemble(
    bodies: Any,
    attitudes: Any = None,
    momenta: Any = None,
    method: str | Method | None = None,
    *,
    body: Any = None,
    attitude: Any = None,
    euler: Any = None,
    euler_deg: Any = None,
    momentum: Any = None,
    omega: Any = None,
    spatial_momentum: Any = None,
    spatial_omega: Any = None,
    field: Field | FieldTemplate | None = None,
    params: dict[str, Any] | None = None,
    dt: Any = None,
    steps: Any = None,
    tol: float | None = None,
    step_tol: float | None = None,
    max_step: float | None = None,
    t_end: float | None = None,
    every: int | None = None,
    times: Any = None,
    t0: float | None = None,
    device: str = "cpu",
    statistics: Any = None,
    events: Any = None,
    scheduler: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    unit: int | None = None,
    progress: Any = None,
) -> Ensemble:
    """Integrate many bodies with one method, in the SIMD lanes of all cores, or on an NVIDIA GPU with one thread each.

    There are two forms:

        ph.ensemble(problem, method, omega=(N, 3), params={"mgl": (N,)}, ...)
        ph.ensemble(bodies, attitudes, momenta, method, ...)

    In the first, omitted arguments take the values of the problem for all bodies: body, field, parameters, attitude,
    momentum (in the body frame), t0 and t_end. `problem` may be a list of problems whose fields share one formula.

    Parameters
    ----------
    bodies : a Problem, or a list of them; or (N, 3) principal moments, (N, 3, 3) tensors, a list of `ph.Body`, or one
        of these for all
    attitudes : as `attitude`; None is the identity
    momenta : (N, 3) angular momenta in the body frame, or one for all
    body : with a Problem, other bodies, in the forms of `bodies`
    attitude : (N, 4) unit quaternions, SCALAR FIRST, body to space, (N, 3, 3) rotation matrices, or a scipy Rotation;
        or one for all
    euler, euler_deg : instead of `attitude`, ("ZXZ", angles) with a scipy axis sequence and angles (N, 3) or (3,), in
        radians or degrees
    momentum, omega, spatial_momentum, spatial_omega : (N, 3) or one for all: the initial rotation, exactly one of
        them; the first two are in the body frame
    method : a name, an expression, or a Method; none with `tol` or `step_tol`
    field : a torque or potential, bound or not
    params : values of its parameters: for each parameter one value for all bodies, or an array with one value for each
        body, with first dimension N (or 1). The shape of one value is known from a bound field or from the default;
        otherwise it is the shape that the field's function accepts
    dt : step, one for all or (N,). With `steps`, a negative dt runs backwards in time
    steps : number of steps, one for all or (N,); with (N,) only the start and the end are kept
    t_end : end time, instead of steps, and with `tol`; by default the last of `times`, or that of the problem. A t_end
        before t0 runs backwards in time
    tol : instead of a method, `dt` and `steps`: the final error allowed for every body, of the attitude in radians, of
        the momentum relative to its largest size in the run. Every body takes its own adaptive Taylor steps, with the
        smallest terms in single precision; free bodies are exact. ``.steps`` has the number of steps of each body,
        ``.error_estimate`` its accuracy, ``.method`` the highest order of the series (in a file, that of a step
        tolerance `tol`). A ResultWarning names bodies for which `tol` is unreachable
    step_tol : instead of `tol`, the error allowed in each step. The momentum tolerance is tighter far from the end,
        because momentum errors accumulate in the attitude. Errors at the end are not estimated
    max_step : with `tol` or `step_tol`, the longest step, for torques that act only for a short time
    every : keep steps 0, every, 2 every, ... and the last; by default the start and the end. Not with `tol`, because
        every body has its own steps: give `times`
    times : keep the states at these times, at the start and at the end. Adaptive steps end there; with a method and
        `dt` they must be ends of steps, t0 + n dt
    device : "cpu", or "cuda" for an NVIDIA GPU (extra `cuda`); the results agree to round-off, with
        tol or step_tol to the tolerance
    statistics : observables to accumulate instead of storing the path: "energy", "momentum_norm", "spatial_momentum",
        "momentum", "omega", functions of t, R, omega and parameters that return a number (as for `ph.event`), or
        a list of these. They are evaluated at the start, after every `every`-th step (by default every step) and
        at the end: ``.statistics["energy"].drift`` and so on. With `times` they are evaluated at the start, at these
        times and at the end. Adaptive steps need `times`: a mean over steps would count fast phases more often
    events : events from `ph.event`, none of them terminal; ``.events[k][i]`` holds the states of body i at event k.
        Every step is kept, unless `every`, `times`, `statistics` or `out` is given. Each body takes some milliseconds;
        with `tol` or `step_tol` it is run by itself for the search, as by `ph.solve`
    out : a ``.zarr`` store to which finished bodies are written; the result then reads from it
    overwrite : replace an existing store
    resume : continue the store of an interrupted run; all arguments must be the same. Of a run with a method a shard is
        continued from its checkpoint, with `tol` it is run again
    scheduler : a Dask cluster, "tcp://host:port" or a `distributed.Client`, whose workers write to `out`
    unit : shard size, the number of bodies run and written together; by default about a second of work
    progress : None (a bar if stderr is a terminal), True, False, or a function of the fraction done

    Returns
    -------
    Ensemble

    Warns
    -----
    ResultWarning : bodies failed (`failed` has the step numbers), or may be less accurate than `tol`
    """
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    said = {
        "body": body, "attitude": attitude, "euler": euler, "euler_deg": euler_deg, "momentum": momentum,
        "omega": omega, "spatial_momentum": spatial_momentum, "spatial_omega": spatial_omega, "field": field,
        "params": params, "t0": t0, "t_end": t_end,
    }  # fmt: skip
    inputs, method = read(bodies, attitudes, momenta, method, said, timed=steps is None)
    inputs = kept_times.ending(inputs, times, t_end)
    if tol is not None or step_tol is not None or (t_end is not None and method is None):
        _refuse_with_tolerance(every, method=method, dt=dt, steps=steps)
        task = to_tolerance(inputs, tol, step_tol, max_step, device, times, statistics)
        task = dataclasses.replace(task, events=wanted_events(task, events))
        return _with_warnings(task, _run(task, out, overwrite, resume, scheduler, unit, progress), tol)
    Bounds.refuse(None, max_step)
    if method is None or dt is None or (steps is None and inputs.t_end is None):
        raise InputError("an ensemble needs either method, dt and steps (or t_end), or tol and t_end")
    dt, steps = inputs.steps(methods[method], dt, steps, t_end)
    alike = not (isinstance(steps, list | tuple) or bool(getattr(steps, "ndim", 0)))
    if events is not None and every is None and statistics is None and times is None and out is None and alike:
        every = 1
    task = fixed_step(
        inputs, method, dt=dt, steps=steps if alike else 1, every=every if alike else None, device=device,
        statistics=statistics,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, times=times, statistics=statistics, out=out, scheduler=scheduler)
        counts = step_counts(steps, task.batch.number)
        longest = int(counts.max())
        task = dataclasses.replace(task, count=longest, every=longest, counts=counts)
    elif times is not None:
        if every is not None:
            raise InputError("give every or times, not both: each of them chooses the states that are kept")
        task = kept_times.among_steps(task, times)
    task = dataclasses.replace(task, events=wanted_events(task, events))
    return _with_warnings(task, _run(task, out, overwrite, resume, scheduler, unit, progress))


def _run(task: Task, out: Any, overwrite: bool, resume: bool, scheduler: Any, unit: Any, progress: Any) -> Ensemble:
    """Run a task in memory, or shard by shard into a store."""
    if task.states:
        with_states.refuse(out=out, scheduler=scheduler)
    if out is None and scheduler is None:
        _refuse_without_file(overwrite=overwrite, resume=resume, unit=unit)
        return task.run()
    from . import shards

    if resume:
        checkpoint.check_resumable(task.model.field, out)
    return shards.run(
        task, out, overwrite=overwrite, resume=resume, scheduler=scheduler, shard_size=unit, progress=progress
    )


def _with_warnings(task: Task, many: Ensemble, tol: float | None = None) -> Ensemble:
    """Return the result, and warn about each of its shortcomings."""
    from . import report

    for message in report.shortcomings(task, many, tol):
        warnings.warn(message, ResultWarning, stacklevel=3)
    return many


def _refuse_with_own_steps(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} needs the same number of steps for all bodies; remove the argument {name}, or give one "
                "number of steps"
            )


def _refuse_with_tolerance(every: Any, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"with tol or step_tol the steps are adaptive; remove the argument {name}")
    if every is not None:
        raise InputError(
            "with tol or step_tol every body has its own steps, so that every k-th of them are different times and "
            "numbers of states; give times=[...], the times to keep for all bodies"
        )


def _refuse_without_file(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{name} needs a file; also give out='crowd.zarr'")


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
    step_tol: float | None = None
    """The error allowed in a step, if the user gave it."""
    events: tuple[Event, ...] = ()
    """Events to be found; none of them is terminal."""

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
    def per_body_times(self) -> bool:
        """Whether every body has its own times."""
        return self.batch.per_body_dt or self.method.has_own_time or self.counts is not None

    def times(self) -> np.ndarray:
        """Return the times of the kept states, if they are the same for all bodies."""
        if self.stops is not None:
            return np.append(self.t0, self.stops if self.wanted is None else self.stops[-1])
        return self.t0 + self.kept * self.batch.dt[0]

    @property
    def extra_columns(self) -> int:
        """Number of columns after the state in a row: own time and statistics, or step count and largest momentum.

        Or the states of the field.
        """
        if self.tolerance is not None:
            return 2 + self.states
        return self.states + self.method.has_own_time + (self.wanted.columns if self.wanted is not None else 0)

    @property
    def states(self) -> int:
        """Number of numbers of the states of the field."""
        return 0 if self.batch.field is None else len(places(self.batch.field))

    def given(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Return the bodies as arguments of a loop, and their order."""
        from ...compile.batch.layout import EVERYBODY

        if self.counts is None:
            return self.batch.given(self.count), EVERYBODY
        return self.batch.given(self.counts), _by_steps(self.counts)

    def found(self) -> tuple[np.ndarray, ...]:
        """Return empty arrays for attitudes and momenta (start first), extra columns, and failed steps."""
        kept, n = len(self.kept) - 1, self.batch.number
        q, m, extra_columns = (
            np.empty((kept + 1, n, 4)),
            np.empty((kept + 1, n, 3)),
            np.empty((kept, n, self.extra_columns)),
        )
        return q, m, extra_columns, np.empty(n, dtype=np.int64)

    def run(self, threads: int | None = None) -> Ensemble:
        """Run all bodies, by default on all cores."""
        if self.tol is not None:
            return event_search.added(self, _to_accuracy(self, self.tol, threads))
        watch, task = Stopwatch(), kept_times.inner(self) if self.stops is not None else self
        found = task.found()
        DEVICES[task.device](task, found, threads)
        return self.finished(task.result(found, watch))

    def finished(self, many: Ensemble) -> Ensemble:
        """Return the result of this task from that of the loops, which may have more states and no statistics."""
        return event_search.added(self, kept_times.applied(self, many))

    def dense(self, i: int, sol: Trajectory) -> Callable[[Any], Any] | None:
        """Return the dense output of body i if every step was kept, as for `ph.solve`."""
        kept = self.every == 1 and self.wanted is None and self.counts is None
        if not kept or self.tolerance is not None or self.method.has_own_time or self.method.noise is not None:
            return None
        if with_states.has_states(self.model):
            return lambda t: with_states.dense_of(self.problem(i), sol)(t)
        method = self.method.base or self.method
        return lambda t: dense_of(self.problem(i), method, sol)(t)

    def problem(self, i: int) -> Problem:
        """Return body i as a problem."""
        batch = self.batch
        q, m = batch.of(batch.quaternion, i), batch.of(batch.momentum, i)
        return Problem(batch.body(i), batch.field_of(i), attitude=q, momentum=m, t0=self.t0)

    def result(self, found: tuple[np.ndarray, ...], watch: Stopwatch) -> Ensemble:
        """Return the result of a run from its arrays `found`."""
        return _result(self, found, watch)


def prepared(
    bodies: Any, attitudes: Any, momenta: Any, method: str | Method, *, field: Any = None,
    params: dict[str, Any] | None = None, t0: float = 0.0, **run: Any,
) -> Task:  # fmt: skip
    """Check the array arguments of `ensemble`; `run` has the keywords of `fixed_step`."""
    inputs = Inputs(bodies, attitudes, Start("momenta", momenta), field, params or {}, finite_number("t0", t0))
    return fixed_step(inputs, method, **run)


def fixed_step(
    inputs: Inputs, method: str | Method, *, dt: Any, steps: int, every: int | None = None, device: str = "cpu",
    statistics: Any = None,
) -> Task:  # fmt: skip
    """Check the arguments of `ensemble` with fixed steps."""
    check_device(device)
    chosen = methods[method]
    count = whole_number("steps", steps)
    every = (count if statistics is None else 1) if every is None else min(whole_number("every", every), count)
    t0, batch = inputs.t0, inputs.batch(dt)
    if batch.field is not None and batch.field.states:
        with_states.refuse(statistics=statistics, device=None if device == "cpu" else device)
    check_times(t0, float(batch.dt[np.abs(batch.dt).argmin()]), count)
    check_unit_of_time("dt", float(np.abs(batch.dt).min()), float(np.abs(batch.dt).max()))
    check_forward(chosen, float(batch.dt.min()))
    model = model_problem(batch, chosen, t0)
    return Task(batch, chosen, model, t0, count, every, device, watch(statistics, model))


def check_device(device: Any) -> None:
    """Refuse an unknown device."""
    if not isinstance(device, str) or device not in DEVICES:
        raise InputError(f"device must be one of {', '.join(map(repr, DEVICES))}; got {device!r}")


def to_tolerance(
    inputs: Inputs, tol: Any, step_tol: Any, max_step: Any, device: str, times: Any = None, statistics: Any = None
) -> Task:
    """Check the arguments of `ensemble` with a tolerance."""
    t0, t_end = inputs.t0, inputs.t_end
    if (tol is None) == (step_tol is None) or t_end is None:
        raise InputError(
            "give t_end, and either tol, the error allowed at the end, or step_tol, the error of one step; got "
            f"tol={tol!r}, step_tol={step_tol!r} and t_end={t_end!r}"
        )
    name, given = ("tol", tol) if step_tol is None else ("step_tol", step_tol)
    given, t_end = finite_number(name, given), finite_number("t_end", t_end)
    if not SMALLEST <= given <= LARGEST:
        raise InputError(f"{name} must be from {SMALLEST:g} to {LARGEST:g}; got {given:g}")
    t_end = end_time(inputs, t_end, backward=True)
    check_unit_of_time("t_end - t0", abs(t_end - t0), abs(t_end - t0))
    batch = inputs.batch(t_end - t0)
    free = batch.field is None
    check_device(device)
    if batch.field is not None and batch.field.states:
        with_states.refuse(device=None if device == "cpu" else device)
    if not (free or is_smooth(batch.field) or _can_use_pair(batch.field)):
        raise InputError(
            f"{name} needs a field without branches (where, abs, comparisons); give a method, dt and steps"
        )
    chosen = jacobi if batch.field is None else adaptive_method(batch.field, given, device)
    model = model_problem(batch, chosen, t0)
    longest = None if free else longest_steps(batch, t0, t_end, max_step)
    if statistics is not None and times is None:
        raise InputError(
            f"with {name} give times=[...], at which statistics are evaluated: adaptive steps are shorter where the "
            "motion is fast, so that a mean over steps would count fast phases more often"
        )
    stops = kept_times.checked(times, t0, t_end)
    return Task(
        batch, chosen, model, t0, 1, 1, device, watch(statistics, model), tolerance=None if free else given,
        longest=longest, tol=None if tol is None else given, stops=np.array([t_end]) if stops is None else stops,
        step_tol=None if step_tol is None else given,
    )  # fmt: skip


def _can_use_pair(field: Any) -> bool:
    """Return whether steps of the pair 8(7) solve a field with branches: it has no series, and no edges in time."""
    return not has_series(field) and not switches_of(field)


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
        method = adaptive_method(field, step_tol, task.device)
        highest = max(highest, method, key=lambda method: method.order)
        part = dataclasses.replace(task, batch=batch, method=method, tolerance=step_tol, longest=longest, wanted=None)
        found = part.found()
        DEVICES[task.device](part, found, threads)
        q, m, extra_columns, failed = found
        steps, largest, states = extra_columns[-1, :, 0], extra_columns[-1, :, 1], extra_columns[..., 2:]
        path = np.concatenate([q[1:-1], m[1:-1], states[:-1]], axis=2).swapaxes(0, 1)
        return Ends(q[-1], m[-1], steps.astype(np.int64), largest, failed, states[-1], path)

    ends, error = ensemble_tolerance.run(task.batch.number, tol, integrate, with_states.groups(field))
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
    many = Ensemble(
        times, q, m, moments, ends.failed, highest.name, watch.seconds, steps=ends.steps, error_estimate=error,
        bodies=task.batch.bodies, tol=tol, compile_seconds=watch.compile_seconds,
        states=_states_of_fields(task.batch, np.concatenate([path[..., 7:], ends.states[None]])),
    )  # fmt: skip
    return kept_times.applied(task, many)


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
    states = Ensemble(
        t, q, m, moments, failed, task.method.name, watch.seconds, bodies=batch.bodies, every=task.every,
        dense=task.dense, compile_seconds=watch.compile_seconds,
        dt=None if clock or task.tolerance is not None else batch.dt,
    )  # fmt: skip
    if task.states:
        states = dataclasses.replace(states, states=_states_of_fields(batch, extra_columns[..., -task.states :]))
    if task.tolerance is not None:
        return dataclasses.replace(states, steps=extra_columns[-1, :, 0].astype(np.int64))
    if task.wanted is None:
        return states
    samples = 1 + np.where(failed < 0, kept_rows(task.count, task.every), (failed - 1) // task.every)
    return dataclasses.replace(states, statistics=task.wanted.results(extra_columns[0, :, int(clock) :], samples))


def _states_of_fields(batch: BodyBatch, extra_columns: np.ndarray) -> dict[str, np.ndarray]:
    """Return the states of the fields by name, from those at the start and those after the kept steps."""
    if batch.field is None:
        return {}
    start = np.broadcast_to(batch.values[:, places(batch.field)], extra_columns.shape[1:])
    numbers, found, first = np.concatenate([start[None], extra_columns]), dict[str, np.ndarray](), 0
    for name, value in batch.field.states.items():
        last = first + math.prod(np.shape(value))
        found[name], first = numbers[..., first:last].reshape(*numbers.shape[:2], *np.shape(value)), last
    return found
