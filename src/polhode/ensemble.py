"""Many bodies at once: each with its own inertia, state, parameters and step, the same method for all."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .adaptive import LARGEST, PARTS, SMALLEST, depends_on_time, is_smooth, mixed_orders, mixed_taylor, taylor_order
from .analysis import observables
from .backends import floats
from .crowd import Crowd, components, gathered, model_problem, step_counts
from .engine import beginning, identity, torque_kernel
from .errors import InputError
from .fields import Field, FieldTemplate
from .inputs import flag
from .loop import COLUMNS, kept_rows
from .memo import Memo
from .methods import Method, methods
from .methods.jacobi import jacobi
from .methods.lie_taylor import taylor
from .problem import Problem, finite_number
from .so3 import matrix, rotate
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
    steps : number of steps, one for all or (N,): then only the start and the end are kept
    tol, t_end : instead of a method, `dt` and `steps`: the error allowed in a step (an angle in radians, and as much
        relative to the largest momentum of a body, less long before the end, as a wrong momentum turns the body until
        then), and the time at the end. Every body takes steps of its own, by its Taylor series, whose smallest terms
        are of single precision; free bodies are exact. The start and the end are kept; ``.steps`` says how many each
        took
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
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    if params is not None and not isinstance(params, Mapping):
        raise InputError(f"params must be a dictionary such as {{'mgl': 1.0}}; got {params!r}")
    if tol is not None or t_end is not None:
        _refuse_with_tolerance(
            method=method, dt=dt, steps=steps, every=every, statistics=statistics, out=out, scheduler=scheduler
        )
        return to_tolerance(bodies, attitudes, momenta, tol, t_end, field, params, t0, device).run()
    if method is None or dt is None or steps is None:
        raise InputError("an ensemble needs a method, dt and steps, or instead of all of them tol and t_end")
    alike = not (isinstance(steps, list | tuple) or bool(getattr(steps, "ndim", 0)))
    task = prepared(
        bodies, attitudes, momenta, method, field=field, params=params, dt=dt, steps=steps if alike else 1,
        every=every if alike else None, t0=t0, device=device, statistics=statistics,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, statistics=statistics, out=out, scheduler=scheduler)
        counts = step_counts(steps, task.crowd.number)
        longest = int(counts.max())
        return dataclasses.replace(task, count=longest, every=longest, counts=counts).run()
    if out is None and scheduler is None:
        _refuse_without_file(overwrite=overwrite, resume=resume, unit=unit)
        return task.run()
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
        if value is not None and value is not False:
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
    counts: np.ndarray | None = None
    tolerance: float | None = None
    """With one, every body goes through its only step `dt` in steps of its own."""

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the steps after which the states are kept; with statistics the start and the end."""
        every = self.every if self.wanted is None else self.count
        return np.append(np.arange(0, self.count, every), self.count)

    @property
    def own_times(self) -> bool:
        """Has every body times of its own."""
        return self.crowd.own_dt or self.method.clock or self.counts is not None

    def times(self) -> np.ndarray:
        """The times of the states kept, where they are the same for all bodies."""
        return self.t0 + self.kept * self.crowd.dt[0]

    @property
    def identity(self) -> str:
        """What its compiled run is made of."""
        return identity(self.method, self.model) + (f"|{self.wanted.identity}" if self.wanted else "")

    @property
    def behind(self) -> int:
        """Numbers that follow the state in a row: a time or a number of steps of a body's own, and statistics."""
        own = self.method.clock or self.tolerance is not None
        return own + (self.wanted.columns if self.wanted is not None else 0)

    def given(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """The bodies as a loop takes them, and their order."""
        from .backends.layout import EVERYBODY

        if self.counts is None:
            return self.crowd.given(self.count), EVERYBODY
        return self.crowd.given(self.counts), _by_steps(self.counts)

    def found(self) -> tuple[np.ndarray, ...]:
        """Empty arrays for the attitudes and momenta kept, the start first, what follows them, and the failed steps."""
        kept, n = len(self.kept) - 1, self.crowd.number
        q, m, behind = np.empty((kept + 1, n, 4)), np.empty((kept + 1, n, 3)), np.empty((kept, n, self.behind))
        return q, m, behind, np.empty(n, dtype=np.int64)

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
        found = self.found()
        seconds = _DEVICES[self.device](self, found, threads)
        return _result(self, found, seconds)


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
    return Task(crowd, chosen, model, t0, 1, 1, device, tolerance=None if free else tol)


NEAR = 4096
"""Bodies sorted by their steps together: few enough to stay in the cache, and a vector has nearly equal numbers."""


def _by_steps(counts: np.ndarray) -> np.ndarray:
    """The order in which bodies with their own numbers of steps are run: some after some, the longest runs first."""
    longest = counts.max()
    missing = (longest - counts).astype(np.min_scalar_type(longest))  # short numbers are sorted in one pass
    firsts = range(0, len(counts), NEAR)
    return np.concatenate([first + np.argsort(missing[first : first + NEAR], kind="stable") for first in firsts])


_RUNS = Memo()
"""Compiled runs of this process."""


def _run(task: Task, found: Any, threads: int | None) -> float:
    """Run a task into the arrays `found`; the seconds it took."""
    from .backends import layout, simd

    if task.tolerance is not None:
        return _travel(task, found, threads)
    crowd, method = task.crowd, task.method
    given, order = task.given()
    name = f"{task.identity}|{crowd.own_dt}"

    def made() -> Any:
        torque = torque_kernel(task.model, floats.number, method)
        parts = method.build(floats.number), torque, layout.sizes(given), crowd.own_dt, beginning(method), name
        return simd.loop(*parts, *method.processors(floats.number), method.clock, task.wanted)[0]

    run = _RUNS(name, made)
    began = time.perf_counter()
    simd.run_on_cores(run, float(crowd.dt[0]), task.t0, task.every, given, order, found, threads)
    return time.perf_counter() - began


def _travel(task: Task, found: Any, threads: int | None) -> float:
    """The same where bodies choose their steps; their numbers follow the state."""
    from .backends import layout, travel

    problem, tolerance, span = task.model, task.tolerance, float(task.crowd.dt[0])
    assert tolerance is not None
    given, _ = task.given()
    stage, order = mixed_taylor(problem), int(task.method.order)
    name = f"travel|{stage.name}|{stage.text}"
    run = _RUNS(name, lambda: travel.loop(stage.make(), layout.sizes(given), name)[0])
    longest = span / PARTS if depends_on_time(problem) else math.inf
    began = time.perf_counter()
    times = (task.t0, task.t0 + span, longest)
    orders = mixed_orders(tolerance, order)
    travel.run_on_cores(run, times, tolerance, orders, given, found, threads)
    return time.perf_counter() - began


def _run_on_card(task: Task, found: Any, threads: int | None) -> float:
    """The same by a card."""
    from .backends import cuda, layout

    if task.crowd.field is not None and task.crowd.field.has_tables:
        raise InputError("a table of more than 64 rows does not go on a card; use device='cpu', or fewer rows")
    cuda.card()
    method = task.method
    given, order = task.given()
    name = f"cuda|{task.identity}"

    def made() -> Any:
        torque = torque_kernel(task.model, floats.number, method)
        parts = method.build(floats.number), torque, layout.sizes(given), beginning(method)
        return cuda.loop(*parts, *method.processors(floats.number), method.clock, task.wanted)

    run = _RUNS(name, made)
    began = time.perf_counter()
    cuda.run_on_card(run, task.t0, task.every, given, order, COLUMNS + task.behind, found)
    return time.perf_counter() - began


_DEVICES = {"cpu": _run, "cuda": _run_on_card}
"""How a crowd is run, by the word a user says."""


def _result(task: Task, found: tuple[np.ndarray, ...], seconds: float) -> Ensemble:
    q, m, behind, failed = found
    crowd, clock = task.crowd, task.method.clock
    if clock:
        t = np.concatenate([np.full((1, crowd.number), task.t0), behind[..., 0]])
    else:
        steps = task.kept[:, None] if task.counts is None else np.stack([np.zeros_like(task.counts), task.counts])
        t = task.t0 + steps * crowd.dt if task.own_times else task.times()
    moments = np.broadcast_to(crowd.moments, (crowd.number, 3))
    states = Ensemble(t, q, m, moments, failed, task.method.name, seconds)
    if task.tolerance is not None:
        return dataclasses.replace(states, steps=behind[0, :, 0].astype(np.int64))
    if task.wanted is None:
        return states
    samples = 1 + np.where(failed < 0, kept_rows(task.count, task.every), failed // task.every)
    return dataclasses.replace(states, statistics=task.wanted.results(behind[0, :, int(clock) :], samples))
