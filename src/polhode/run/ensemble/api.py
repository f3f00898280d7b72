"""Many bodies at once: each with its own inertia, state, parameters and step, the same method for all."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...kernels.loops import kept_rows
from ...kernels.so3 import matrix
from ...methods import Method, methods
from ...methods.families.jacobi import jacobi
from ...methods.families.taylor import taylor
from ...numbers import floats
from ...physics.fields import Field, FieldTemplate
from ...physics.observers.statistics import Watch, watch
from ...physics.problem import Problem, finite_number
from ...physics.validate import check_times, check_unit_of_time, flag, whole_number
from ...results.ensemble import Ensemble
from ...results.observables import components
from ...results.store import checkpoint
from ..adaptive import EPS, LARGEST, SMALLEST, is_smooth, taylor_order
from ..schedule import Bounds
from . import tolerance as ensemble_tolerance
from .batch import BodyBatch, from_arrays, model_problem, step_counts
from .run import DEVICES, run_on_cores
from .schedule import longest_steps
from .tolerance import Ends

if TYPE_CHECKING:
    pass


def ensemble(
    bodies: Any,
    attitudes: Any,
    momenta: Any,
    method: str | Method | None = None,
    *,
    field: Field | FieldTemplate | None = None,
    params: dict[str, Any] | None = None,
    dt: Any = None,
    steps: Any = None,
    tol: float | None = None,
    step_tol: float | None = None,
    max_step: float | None = None,
    t_end: float | None = None,
    every: int | None = None,
    t0: float = 0.0,
    device: str = "cpu",
    statistics: Any = None,
    scheduler: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    unit: int | None = None,
    progress: Any = None,
) -> Ensemble:
    """Integrate many bodies with one method, a vector of them at a time in the lanes of the processor, on all cores.

    Or on an NVIDIA card, one thread a body.

    Parameters
    ----------
    bodies : (N, 3) principal moments, (N, 3, 3) tensors, a list of `ph.Body`, or one of these for all
    attitudes : (N, 4) unit quaternions, SCALAR FIRST, body to space; or one for all; None is the identity
    momenta : (N, 3) angular momenta in the body frame, or one for all
    method : a name, an expression, or a Method; none with `tol` or `step_tol`
    field : a torque or potential, bound or not
    params : values of its parameters: for each the value for all bodies, or an array with one value for each body, with
        a first dimension N (or 1). The shape of one value is that of the parameter in a bound field, or of its default;
        otherwise the one that the field's function takes
    dt : step, one for all or (N,)
    steps : number of steps, one for all or (N,): then only the start and the end are kept
    tol, t_end : instead of a method, `dt` and `steps`: the time at the end, and the error allowed there in every body:
        an angle in radians, and as much for the momentum relative to its largest size on the way. Every body takes
        steps of its own, by its Taylor series, whose smallest terms are of single precision; free bodies are exact. The
        start and the end are kept; ``.steps`` says how many steps each took, ``.error_estimate`` how accurate it is,
        ``.method`` the highest order of the series. A
        ResultWarning names bodies for which `tol` is out of reach
    step_tol : instead of `tol`, the error allowed in a single step; that of the momentum is smaller long before the
        end, as a wrong momentum turns the body until then. Errors at the end are not estimated
    max_step : with `tol` or `step_tol`, the longest step: for torques that act for a short time only
    every : keep steps 0, every, 2 every, ... and the last; by default the start and the end
    device : "cpu", or "cuda" for an NVIDIA GPU (extra `cuda`); the results agree to round-off
    statistics : observables to follow instead of keeping the path: "energy", "momentum_norm", "spatial_momentum",
        "momentum", "omega", functions of t, R, omega and parameters that return a number (as `ph.event` takes them), or
        a list of these. They are looked at at the start, at every `every`-th step (by default every one) and at the
        end: ``.statistics["energy"].drift`` and so on
    out : a ``.zarr`` store to which the bodies are written as they are done; the result then reads from it
    overwrite : replace what is there
    resume : go on with the store of a run that was stopped; everything given must be the same
    scheduler : a Dask cluster, "tcp://host:port" or a `distributed.Client`, whose workers write to `out`
    unit : bodies run and written together: what a stop costs at most; by default a second or so of work
    progress : None (a bar if stderr is a terminal), True, False, or a function of the fraction done

    Returns
    -------
    Ensemble

    Warns
    -----
    ResultWarning : bodies failed (`failed` says in which step), or may be less accurate than `tol`
    """
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    if params is not None and not isinstance(params, Mapping):
        raise InputError(f"params must be a dictionary such as {{'mgl': 1.0}}; got {params!r}")
    if tol is not None or step_tol is not None or t_end is not None:
        _refuse_with_tolerance(
            method=method, dt=dt, steps=steps, every=every, statistics=statistics, out=out, scheduler=scheduler
        )
        task = to_tolerance(bodies, attitudes, momenta, tol, step_tol, max_step, t_end, field, params, t0, device)
        return _with_warnings(task, task.run() if tol is None else _to_accuracy(task, tol), tol)
    Bounds.refuse(None, max_step)
    if method is None or dt is None or steps is None:
        raise InputError("an ensemble needs either method, dt and steps, or tol and t_end")
    alike = not (isinstance(steps, list | tuple) or bool(getattr(steps, "ndim", 0)))
    task = prepared(
        bodies, attitudes, momenta, method, field=field, params=params, dt=dt, steps=steps if alike else 1,
        every=every if alike else None, t0=t0, device=device, statistics=statistics,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, statistics=statistics, out=out, scheduler=scheduler)
        counts = step_counts(steps, task.batch.number)
        longest = int(counts.max())
        task = dataclasses.replace(task, count=longest, every=longest, counts=counts)
        return _with_warnings(task, task.run())
    if out is None and scheduler is None:
        _refuse_without_file(overwrite=overwrite, resume=resume, unit=unit)
        return _with_warnings(task, task.run())
    from . import shards

    if resume:
        checkpoint.check_resumable(task.model.field, out)
    many = shards.run(
        task, out, overwrite=overwrite, resume=resume, scheduler=scheduler, shard_size=unit, progress=progress
    )  # fmt: skip
    return _with_warnings(task, many)


def _with_warnings(task: Task, many: Ensemble, tol: float | None = None) -> Ensemble:
    """The result, with a warning where it is not everything that was asked for."""
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


def _refuse_with_tolerance(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"with tol or step_tol the steps are adaptive, and only the final states are kept; remove "
                f"the argument {name}"
            )


def _refuse_without_file(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{name} needs a file; also give out='crowd.zarr'")


@dataclasses.dataclass(frozen=True)
class Task:
    """Bodies and what is asked of them, checked; the bodies `begin` to `end` of it are a task too."""

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
    """With one, every body goes through its only step `dt` in steps of its own."""
    longest: np.ndarray | None = None
    """The longest of these steps, for every body or for all of them."""

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the steps after which the states are kept; with statistics the start and the end."""
        every = self.every if self.wanted is None else self.count
        return np.append(np.arange(0, self.count, every), self.count)

    @property
    def per_body_times(self) -> bool:
        """Has every body times of its own."""
        return self.batch.per_body_dt or self.method.has_own_time or self.counts is not None

    def times(self) -> np.ndarray:
        """The times of the states kept, where they are the same for all bodies."""
        return self.t0 + self.kept * self.batch.dt[0]

    @property
    def extra_columns(self) -> int:
        """Numbers that follow the state in a row: its own time and statistics, or its steps and largest momentum."""
        if self.tolerance is not None:
            return 2
        return self.method.has_own_time + (self.wanted.columns if self.wanted is not None else 0)

    def given(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """The bodies as a loop takes them, and their order."""
        from ...compile.batch.layout import EVERYBODY

        if self.counts is None:
            return self.batch.given(self.count), EVERYBODY
        return self.batch.given(self.counts), _by_steps(self.counts)

    def found(self) -> tuple[np.ndarray, ...]:
        """Empty arrays for the attitudes and momenta kept, the start first, what follows them, and the failed steps."""
        kept, n = len(self.kept) - 1, self.batch.number
        q, m, extra_columns = (
            np.empty((kept + 1, n, 4)),
            np.empty((kept + 1, n, 3)),
            np.empty((kept, n, self.extra_columns)),
        )
        return q, m, extra_columns, np.empty(n, dtype=np.int64)

    def energies(self, quaternion: np.ndarray, momentum: np.ndarray) -> np.ndarray:
        """Kinetic plus potential energy (kinetic where there is no potential) of states of all bodies."""
        batch = self.batch
        m, q = batch.principal_momentum(components(momentum)), components(quaternion)
        inverse = np.divide(1.0, batch.moments, out=np.zeros_like(batch.moments), where=batch.moments > 0)
        kinetic = sum(i * x * x for i, x in zip(components(inverse), m, strict=True)) / 2
        if batch.field is None:
            return np.asarray(kinetic)
        return np.asarray(kinetic + batch.field.potential_kernel(floats.number)(matrix(q), components(batch.values)))

    def run(self, threads: int | None = None) -> Ensemble:
        """Run all bodies, by default on all cores."""
        found = self.found()
        seconds = DEVICES[self.device](self, found, threads)
        return self.result(found, seconds)

    def result(self, found: tuple[np.ndarray, ...], seconds: float) -> Ensemble:
        """What a run left in the arrays `found`."""
        return _result(self, found, seconds)


def prepared(
    bodies: Any, attitudes: Any, momenta: Any, method: str | Method, *, field: Any = None,
    params: dict[str, Any] | None = None, dt: Any, steps: int, every: int | None = None, t0: float = 0.0,
    device: str = "cpu", statistics: Any = None,
) -> Task:  # fmt: skip
    """What `ensemble` is given, checked."""
    if not isinstance(device, str) or device not in DEVICES:
        raise InputError(f"device must be one of {', '.join(map(repr, DEVICES))}; got {device!r}")
    chosen = methods[method]
    count = whole_number("steps", steps)
    every = (count if statistics is None else 1) if every is None else min(whole_number("every", every), count)
    t0 = finite_number("t0", t0)
    batch = from_arrays(bodies, attitudes, momenta, field, params or {}, dt)
    check_times(t0, float(np.min(batch.dt)), count)
    check_unit_of_time("dt", float(np.abs(batch.dt).min()), float(np.abs(batch.dt).max()))
    model = model_problem(batch, chosen, t0)
    return Task(batch, chosen, model, t0, count, every, device, watch(statistics, model))


def to_tolerance(
    bodies: Any, attitudes: Any, momenta: Any, tol: Any, step_tol: Any, max_step: Any, t_end: Any, field: Any,
    params: Any, t0: Any, device: str,
) -> Task:  # fmt: skip
    """What `ensemble` is given with a tolerance, checked."""
    if (tol is None) == (step_tol is None) or t_end is None:
        raise InputError(
            "give t_end, and either tol, the error allowed at the end, or step_tol, the error of one step; got "
            f"tol={tol!r}, step_tol={step_tol!r} and t_end={t_end!r}"
        )
    name, given = ("tol", tol) if step_tol is None else ("step_tol", step_tol)
    given, t_end, t0 = finite_number(name, given), finite_number("t_end", t_end), finite_number("t0", t0)
    if not SMALLEST <= given <= LARGEST:
        raise InputError(f"{name} must be from {SMALLEST:g} to {LARGEST:g}; got {given:g}")
    if t_end <= t0:
        raise InputError(f"t_end must be later than t0 = {t0:g}; got {t_end:g}")
    check_unit_of_time("t_end - t0", t_end - t0, t_end - t0)
    batch = from_arrays(bodies, attitudes, momenta, field, params or {}, t_end - t0)
    free = batch.field is None
    if device != "cpu" and not free:
        raise InputError("adaptive steps need device='cpu'; give a method, dt and steps")
    if not (free or is_smooth(batch.field)):
        raise InputError(
            f"{name} needs a field without branches (where, abs, comparisons); give a method, dt and steps"
        )
    chosen = jacobi if free else taylor(taylor_order(given))
    model = model_problem(batch, chosen, t0)
    longest = None if free else longest_steps(batch, t0, t_end, max_step)
    return Task(batch, chosen, model, t0, 1, 1, device, tolerance=None if free else given, longest=longest)


def _to_accuracy(task: Task, tol: float) -> Ensemble:
    """Run a task until the estimated errors at the end are below `tol`, or as small as they get."""
    if task.batch.field is None:
        free = task.run()
        return dataclasses.replace(free, error_estimate=10 * EPS * (1 + task.batch.speeds() * float(task.batch.dt[0])))
    seconds, highest = 0.0, task.method

    def integrate(chosen: np.ndarray, step_tol: float) -> Ends:
        nonlocal seconds, highest
        batch = task.batch if len(chosen) == task.batch.number else task.batch.some(chosen)
        longest = None if task.longest is None else task.longest[chosen if len(task.longest) > 1 else [0]]
        series = taylor(taylor_order(step_tol))
        highest = max(highest, series, key=lambda method: method.order)
        part = dataclasses.replace(task, batch=batch, method=series, tolerance=step_tol, longest=longest)
        found = part.found()
        seconds += run_on_cores(part, found, None)
        q, m, extra_columns, failed = found
        return Ends(q[1], m[1], extra_columns[0, :, 0].astype(np.int64), extra_columns[0, :, 1], failed)

    ends, error = ensemble_tolerance.run(task.batch.number, tol, integrate)
    pairs = (task.batch.quaternion, ends.quaternion), (task.batch.momentum, ends.momentum)
    q, m = (np.stack(np.broadcast_arrays(start, end)) for start, end in pairs)
    moments = np.broadcast_to(task.batch.moments, (task.batch.number, 3))
    return Ensemble(
        task.times(), q, m, moments, ends.failed, highest.name, seconds, steps=ends.steps, error_estimate=error
    )


NEAR = 4096
"""Bodies sorted by their steps together: few enough to stay in the cache, and a vector has nearly equal numbers."""


def _by_steps(counts: np.ndarray) -> np.ndarray:
    """The order in which bodies with their own numbers of steps are run: some after some, the longest runs first."""
    longest = counts.max()
    missing = (longest - counts).astype(np.min_scalar_type(longest))  # short numbers are sorted in one pass
    firsts = range(0, len(counts), NEAR)
    return np.concatenate([first + np.argsort(missing[first : first + NEAR], kind="stable") for first in firsts])


def _result(task: Task, found: tuple[np.ndarray, ...], seconds: float) -> Ensemble:
    q, m, extra_columns, failed = found
    batch, clock = task.batch, task.method.has_own_time
    if clock:
        t = np.concatenate([np.full((1, batch.number), task.t0), extra_columns[..., 0]])
    else:
        steps = task.kept[:, None] if task.counts is None else np.stack([np.zeros_like(task.counts), task.counts])
        t = task.t0 + steps * batch.dt if task.per_body_times else task.times()
    moments = np.broadcast_to(batch.moments, (batch.number, 3))
    states = Ensemble(t, q, m, moments, failed, task.method.name, seconds)
    if task.tolerance is not None:
        return dataclasses.replace(states, steps=extra_columns[0, :, 0].astype(np.int64))
    if task.wanted is None:
        return states
    samples = 1 + np.where(failed < 0, kept_rows(task.count, task.every), (failed - 1) // task.every)
    return dataclasses.replace(states, statistics=task.wanted.results(extra_columns[0, :, int(clock) :], samples))
