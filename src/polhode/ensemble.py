"""Many bodies at once: each with its own inertia, state, parameters and step, the same method for all."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .adaptive import LARGEST, PARTS, SMALLEST, depends_on_time, is_smooth, taylor_order
from .adaptive import taylor as stage_of_series
from .analysis import observables
from .backends import floats
from .crowd import Crowd, check_axial, components, gathered, laid_out, model_problem, step_counts
from .engine import beginning, identity, torque_kernel
from .errors import InputError
from .fields import Field, FieldTemplate
from .loop import COLUMNS, kept_rows
from .methods import Method, methods
from .methods.jacobi import jacobi
from .methods.lie_taylor import taylor
from .problem import Problem, finite_number
from .so3 import conj, matrix, mul, rotate
from .solve import whole_number
from .statistics import Statistic, Watch, watch

if TYPE_CHECKING:
    import xarray

NOT_YET = -2
"""What `failed` says of a body that has not been run yet, in the file of a run that was stopped."""


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
    """States of many bodies. Arrays are float64 with time first, then the body.

    Attributes
    ----------
    t : (n,) times, or (n, N) where every body has its own step or its own times
    quaternion : (n, N, 4) attitude, body to space, SCALAR FIRST
    momentum : (n, N, 3) body frame
    moments : (N, 3) principal moments
    failed : (N,) number of the step that failed, -1 where none did. After it a body's states are NaN,
        except the last, which is its last good one. In the file of a run that was stopped, -2 where a body
        has not been run yet; its states are NaN.
    method : name of the method
    seconds : time of the compiled loop
    statistics : what was asked for, by name; with it only the start and the end are kept as states
    steps : (N,) numbers of steps where bodies chose their own, else None
    """

    t: np.ndarray
    quaternion: np.ndarray
    momentum: np.ndarray
    moments: np.ndarray
    failed: np.ndarray
    method: str
    seconds: float
    statistics: Mapping[str, Statistic] = dataclasses.field(default_factory=dict)
    steps: np.ndarray | None = None

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, N, 3, 3), body to space."""
        q = self.quaternion
        return observables.matrices(q.reshape(-1, 4)).reshape(*q.shape[:-1], 3, 3)

    @functools.cached_property
    def spatial_momentum(self) -> np.ndarray:
        """Angular momentum (n, N, 3) in the space frame."""
        return np.stack(rotate(components(self.quaternion), components(self.momentum)), -1)

    def to_xarray(self) -> xarray.Dataset:
        """The arrays with labelled dimensions, conventions in the attributes; one in a file is read when needed."""
        from . import crowd_store

        return crowd_store.dataset(self)

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write to ``.zarr`` or ``.nc`` (NetCDF), by suffix."""
        from . import crowd_store

        return crowd_store.save(self, path, overwrite)

    def __len__(self) -> int:
        return len(self.failed)

    def __repr__(self) -> str:
        failures, waiting = int((self.failed >= 0).sum()), int((self.failed == NOT_YET).sum())
        left = f", {waiting} not run yet" if waiting else ""
        return f"<Ensemble of {len(self)} bodies, {len(self.t)} states each, {self.method}, {failures} failed{left}>"


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
    method : a name, an expression, or a Method; none with `tol`
    field : a torque or potential, bound or not
    params : values of its parameters, one for all or with a first dimension N
    dt : step, one for all or (N,)
    steps : number of steps, one for all or (N,): then only the start and the end are kept, and bodies with as many
        steps run together, so that a few different numbers are better than many
    tol, t_end : instead of a method, `dt` and `steps`: the error allowed in a step (an angle in radians, and as much
        relative to the largest momentum of a body), and the time at the end. Every body takes steps of its own, by its
        Taylor series; free bodies are exact. The start and the end are kept; ``.steps`` says how many each took
    every : keep steps 0, every, 2 every, ... and the last; by default the start and the end
    device : "cpu", or "cuda" for an NVIDIA card (extra `cuda`); the results agree to round-off
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
    """
    if tol is not None or t_end is not None:
        _refuse_with_tolerance(
            method=method, dt=dt, steps=steps, every=every, statistics=statistics, out=out, scheduler=scheduler
        )
        return to_tolerance(bodies, attitudes, momenta, tol, t_end, field, params, t0, device).run()
    if method is None or dt is None or steps is None:
        raise InputError("an ensemble needs a method, dt and steps, or instead of all of them tol and t_end")
    alike = not np.ndim(steps)
    task = prepared(
        bodies, attitudes, momenta, method, field=field, params=params, dt=dt, steps=steps if alike else 1,
        every=every if alike else None, t0=t0, device=device, statistics=statistics,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, statistics=statistics, out=out, scheduler=scheduler)
        return _by_count(task, step_counts(steps, task.crowd.number))
    if out is None and scheduler is None:
        _refuse_without_file(overwrite=overwrite, resume=resume, unit=unit)
        return task.run()
    if statistics is not None:
        raise InputError("statistics are not written to a file yet; leave out=, or statistics=, out")
    from . import units

    return units.run(
        task, out, overwrite=overwrite, resume=resume, scheduler=scheduler, unit=unit, progress=progress
    )  # fmt: skip


def _refuse_with_own_steps(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} needs the same number of steps for all bodies; leave it out, or give one number")


def _refuse_with_tolerance(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"with tol and t_end bodies choose their own steps, and only their ends are kept; leave {name} out"
            )


def _refuse_without_file(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"{name} is about a file; give out='crowd.zarr' too")


@dataclasses.dataclass(frozen=True)
class Task:
    """Bodies and what is asked of them, checked; the bodies `begin` to `end` of it are a task too."""

    crowd: Crowd
    method: Method
    model: Problem
    t0: float
    count: int
    every: int
    device: str
    wanted: Watch | None = None
    tolerance: float | None = None
    """With one, every body goes through its only step `dt` in steps of its own."""

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the steps after which the states are kept."""
        return np.append(np.arange(0, self.count, self.every), self.count)

    @property
    def own_times(self) -> bool:
        """Has every body times of its own."""
        return self.crowd.own_dt or self.method.clock

    def times(self) -> np.ndarray:
        """The times of the states kept, where they are the same for all bodies."""
        return self.t0 + self.kept * self.crowd.dt[0]

    @property
    def identity(self) -> str:
        """What its compiled run is made of."""
        return identity(self.method, self.model) + (f"|{self.wanted.identity}" if self.wanted else "")

    def times_and_rows(self, data: np.ndarray) -> tuple[float, int, int, np.ndarray, int, int]:
        """The start, the steps and the data for a run; behind them the numbers of a row and the rows of a body."""
        columns = COLUMNS + self.method.clock
        shape = (columns, kept_rows(self.count, self.every))
        if self.wanted is not None:
            shape = (columns + self.wanted.columns, 1)
        return self.t0, self.count, self.every, data, *shape

    def energies(self, quaternion: np.ndarray, momentum: np.ndarray) -> np.ndarray:
        """Kinetic plus potential energy (kinetic where there is no potential) of states of all bodies."""
        crowd = self.crowd
        m, q = crowd.principal_momentum(components(momentum)), components(quaternion)
        inverse = np.divide(1.0, crowd.moments, out=np.zeros_like(crowd.moments), where=crowd.moments > 0)
        kinetic = sum(i * x * x for i, x in zip(components(inverse), m, strict=True)) / 2
        if crowd.field is None:
            return np.asarray(kinetic)
        return np.asarray(kinetic + crowd.field.potential_kernel(floats.number)(matrix(q), components(crowd.values)))

    def run(self, threads: int | None = None) -> Ensemble:
        """Run all bodies, by default on all cores."""
        rows, failed, seconds = _DEVICES[self.device](self, threads)
        if self.tolerance is not None:
            counts = rows[0, :, COLUMNS].astype(np.int64)
            return dataclasses.replace(_result(self, rows, failed, seconds), steps=counts)
        if self.wanted is None:
            return _result(self, rows, failed, seconds)
        columns = COLUMNS + self.method.clock
        samples = 1 + np.where(failed < 0, kept_rows(self.count, self.every), failed // self.every)
        ends = dataclasses.replace(self, every=self.count)
        states = _result(ends, rows[..., :columns], failed, seconds)
        return dataclasses.replace(states, statistics=self.wanted.results(rows[0, :, columns:], samples))


def prepared(
    bodies: Any, attitudes: Any, momenta: Any, method: str | Method, *, field: Any = None,
    params: dict[str, Any] | None = None, dt: Any, steps: int, every: int | None = None, t0: float = 0.0,
    device: str = "cpu", statistics: Any = None,
) -> Task:  # fmt: skip
    """What `ensemble` is given, checked."""
    if not isinstance(device, str) or device not in _DEVICES:
        raise InputError(f"device must be one of {', '.join(map(repr, _DEVICES))}; got {device!r}")
    chosen = methods[method]
    count = whole_number("steps", steps)
    every = (count if statistics is None else 1) if every is None else min(whole_number("every", every), count)
    t0 = finite_number("t0", t0)
    crowd = gathered(bodies, attitudes, momenta, field, params or {}, dt)
    model = model_problem(crowd, chosen, t0)
    check_axial(crowd)
    return Task(crowd, chosen, model, t0, count, every, device, watch(statistics, model))


def to_tolerance(
    bodies: Any, attitudes: Any, momenta: Any, tol: Any, t_end: Any, field: Any, params: Any, t0: Any, device: str
) -> Task:
    """What `ensemble` is given with a tolerance, checked."""
    if tol is None or t_end is None:
        raise InputError(f"tol and t_end belong together; got tol={tol!r} and t_end={t_end!r}")
    tol, t_end, t0 = finite_number("tol", tol), finite_number("t_end", t_end), finite_number("t0", t0)
    if not SMALLEST <= tol <= LARGEST:
        raise InputError(f"tol must be from {SMALLEST:g} to {LARGEST:g}; got {tol:g}")
    if t_end <= t0:
        raise InputError(f"t_end must be later than t0 = {t0:g}; got {t_end:g}")
    crowd = gathered(bodies, attitudes, momenta, field, params or {}, t_end - t0)
    free = crowd.field is None
    if device != "cpu" and not free:
        raise InputError("steps that bodies choose themselves need device='cpu'; give a method, dt and steps")
    if not (free or is_smooth(crowd.field)):
        raise InputError("tol needs a field without branches (where, abs, comparisons); give a method, dt and steps")
    chosen = jacobi if free else taylor(taylor_order(tol))
    model = model_problem(crowd, chosen, t0)
    check_axial(crowd)
    return Task(crowd, chosen, model, t0, 1, 1, device, tolerance=None if free else tol)


_RUNS: dict[str, Any] = {}
"""Compiled runs of this process."""

_MAKING = threading.Lock()
"""Held while one is made, so that threads that need the same do not each make it."""


def _by_count(task: Task, counts: np.ndarray) -> Ensemble:
    """Every body with its own number of steps: those with as many together, the longest runs first."""
    order = np.argsort(-counts, kind="stable")
    together = np.split(order, np.flatnonzero(np.diff(counts[order])) + 1)
    parts = []
    for chosen in together:
        count = int(counts[chosen[0]])
        parts.append(dataclasses.replace(task, crowd=task.crowd.some(chosen), count=count, every=count).run())
    back = np.argsort(order, kind="stable")

    def joined(name: str, axis: int) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts], axis=axis).take(back, axis=axis)

    t = [np.broadcast_to(part.t.reshape(2, -1), (2, len(part))) for part in parts]
    states = (np.concatenate(t, axis=1)[:, back], joined("quaternion", 1), joined("momentum", 1))
    seconds = sum(part.seconds for part in parts)
    return Ensemble(*states, joined("moments", 0), joined("failed", 0), task.method.name, seconds)


def _run(task: Task, threads: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """States kept (kept, N, 7 or with the time 8) in principal axes, the failed steps, and the seconds it took.

    Statistics follow the state in the only row there is then.
    """
    from .backends import simd

    if task.tolerance is not None:
        return _travel(task, threads)
    crowd, method = task.crowd, task.method
    data = laid_out(crowd, simd.padded(crowd.number))
    parameters = len(data) - simd.PARAMETERS - 1
    name = f"{task.identity}|{crowd.own_dt}"
    with _MAKING:
        if name not in _RUNS:
            torque = torque_kernel(task.model, floats.number, method)
            parts = method.build(floats.number), torque, parameters, crowd.own_dt, beginning(method), name
            _RUNS[name], _ = simd.loop(*parts, *method.processors(floats.number), method.clock, task.wanted)
    began = time.perf_counter()
    rows, failed = simd.run_on_cores(_RUNS[name], float(crowd.dt[0]), *task.times_and_rows(data), threads)
    seconds = time.perf_counter() - began
    return simd.by_body(rows)[:, : crowd.number], failed[: crowd.number], seconds


def _travel(task: Task, threads: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """The same where bodies choose their steps; their numbers follow the state."""
    from .backends import simd, travel

    crowd, problem, tolerance = task.crowd, task.model, task.tolerance
    assert tolerance is not None
    data = laid_out(crowd, crowd.number)
    stage, order = stage_of_series(problem), int(task.method.order)
    name = f"travel|{stage.name}|{stage.text}"
    with _MAKING:
        if name not in _RUNS:
            _RUNS[name], _ = travel.loop(stage.make(), len(data) - simd.PARAMETERS - 1, name)
    span = float(crowd.dt[0])
    longest = span / PARTS if depends_on_time(problem) else math.inf
    began = time.perf_counter()
    rows, failed = travel.run_on_cores(
        _RUNS[name], (task.t0, task.t0 + span), longest, span / 1000, tolerance, order, data, threads
    )  # fmt: skip
    return rows[None], failed, time.perf_counter() - began


def _run_on_card(task: Task, threads: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """The same by a card."""
    from .backends import cuda

    cuda.card()
    method = task.method
    data = laid_out(task.crowd, task.crowd.number)
    name = f"cuda|{task.identity}"
    if name not in _RUNS:
        torque, parameters = torque_kernel(task.model, floats.number, method), len(data) - cuda.PARAMETERS - 1
        parts = method.build(floats.number), torque, parameters, beginning(method)
        _RUNS[name] = cuda.loop(*parts, *method.processors(floats.number), method.clock, task.wanted)
    began = time.perf_counter()
    rows, failed = cuda.run_on_card(_RUNS[name], *task.times_and_rows(data))
    return rows, failed, time.perf_counter() - began


_DEVICES = {"cpu": _run, "cuda": _run_on_card}
"""How a crowd is run, by the word a user says."""


def _result(task: Task, rows: np.ndarray, failed: np.ndarray, seconds: float) -> Ensemble:
    crowd = task.crowd
    q, m = rows[..., :4], rows[..., 4:COLUMNS]
    if crowd.own is not None:
        own = components(crowd.own)
        q, m = np.stack(mul(components(q), conj(own)), -1), np.stack(rotate(own, components(m)), -1)
    q, m = _with_start(crowd.quaternion, q), _with_start(crowd.momentum, m)
    t = task.t0 + task.kept[:, None] * crowd.dt if task.own_times else task.times()
    if task.method.clock:
        t = _with_start(np.array(task.t0), rows[..., COLUMNS])
    moments = np.broadcast_to(crowd.moments, (crowd.number, 3))
    return Ensemble(t, q, m, moments, failed, task.method.name, seconds)


def _with_start(start: np.ndarray, now: np.ndarray) -> np.ndarray:
    states = np.empty((len(now) + 1, *now.shape[1:]))
    states[0], states[1:] = start, now
    return states
