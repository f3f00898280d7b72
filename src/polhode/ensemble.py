"""Many bodies at once: each with its own inertia, state, parameters and step, the same method for all."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .analysis import observables
from .backends import arrays, floats  # noqa: F401 - makes arrays a number type
from .body import TOLERANCE, Body, real_array
from .engine import beginning, check_fit, identity, torque_kernel
from .errors import InputError
from .fields import Field, FieldTemplate
from .loop import COLUMNS, kept_rows
from .methods import Method, methods
from .problem import ROTATION_TOLERANCE, Problem, finite_number, quaternion_of
from .so3 import conj, matrix, mul, rotate, unit, unrotate
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
    """

    t: np.ndarray
    quaternion: np.ndarray
    momentum: np.ndarray
    moments: np.ndarray
    failed: np.ndarray
    method: str
    seconds: float
    statistics: Mapping[str, Statistic] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, N, 3, 3), body to space."""
        q = self.quaternion
        return observables.matrices(q.reshape(-1, 4)).reshape(*q.shape[:-1], 3, 3)

    @functools.cached_property
    def spatial_momentum(self) -> np.ndarray:
        """Angular momentum (n, N, 3) in the space frame."""
        return np.stack(rotate(_parts(self.quaternion), _parts(self.momentum)), -1)

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
    method: str | Method,
    *,
    field: Field | FieldTemplate | None = None,
    params: dict[str, Any] | None = None,
    dt: Any,
    steps: Any,
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
    method : a name, an expression, or a Method
    field : a torque or potential, bound or not
    params : values of its parameters, one for all or with a first dimension N
    dt : step, one for all or (N,)
    steps : number of steps, one for all or (N,): then only the start and the end are kept, and bodies with as many
        steps run together, so that a few different numbers are better than many
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
    alike = not np.ndim(steps)
    task = prepared(
        bodies, attitudes, momenta, method, field=field, params=params, dt=dt, steps=steps if alike else 1,
        every=every if alike else None, t0=t0, device=device, statistics=statistics,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, statistics=statistics, out=out, scheduler=scheduler)
        return _by_count(task, _counts(steps, task.crowd.number))
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
        m, q = crowd.principal_momentum(_parts(momentum)), _parts(quaternion)
        inverse = np.divide(1.0, crowd.moments, out=np.zeros_like(crowd.moments), where=crowd.moments > 0)
        kinetic = sum(i * x * x for i, x in zip(_parts(inverse), m, strict=True)) / 2
        if crowd.field is None:
            return np.asarray(kinetic)
        return np.asarray(kinetic + crowd.field.potential_kernel(floats.number)(matrix(q), _parts(crowd.values)))

    def run(self, threads: int | None = None) -> Ensemble:
        """Run all bodies, by default on all cores."""
        rows, failed, seconds = _DEVICES[self.device](self, threads)
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
    crowd = _crowd(bodies, attitudes, momenta, field, params or {}, dt)
    model = _model(crowd, chosen, t0)
    _check_axial(crowd)
    return Task(crowd, chosen, model, t0, count, every, device, watch(statistics, model))


# --- what was given ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Crowd:
    """What was given, checked: arrays whose first dimension is the body, or 1 for all bodies."""

    moments: np.ndarray
    own: np.ndarray | None
    quaternion: np.ndarray
    momentum: np.ndarray
    dt: np.ndarray
    field: Field | None
    values: np.ndarray
    number: int
    own_dt: bool

    def of(self, array: np.ndarray, i: int) -> np.ndarray:
        """The entry of body i."""
        return np.asarray(array[i if len(array) > 1 else 0])

    def principal_momentum(self, m: Any) -> Any:
        """Momenta, a tuple of components, from the users' into principal axes."""
        return m if self.own is None else unrotate(_parts(self.own), m)

    def some(self, chosen: np.ndarray) -> Crowd:
        """Some of the bodies."""

        def part(array: np.ndarray) -> np.ndarray:
            return array[chosen] if len(array) > 1 else array

        own = None if self.own is None else part(self.own)
        numbers = (part(self.moments), own, part(self.quaternion), part(self.momentum), part(self.dt))
        return Crowd(*numbers, self.field, part(self.values), len(chosen), self.own_dt)

    def body(self, i: int) -> Body:
        """Body i as a user would give it."""
        moments = self.of(self.moments, i)
        if self.own is None:
            return Body(moments)
        axes: np.ndarray = np.array(matrix(tuple(self.of(self.own, i).tolist())))
        return Body(axes * moments @ axes.T)


def _crowd(bodies: Any, attitudes: Any, momenta: Any, field: Any, params: dict[str, Any], dt: Any) -> Crowd:
    moments, own = _bodies(bodies)
    q, m, h = _quaternions(attitudes), _rows("momenta", momenta, 3), _steps(dt)
    sizes = {"bodies": len(moments), "attitudes": len(q), "momenta": len(m), "dt": len(h)}
    number = _agreed(sizes)
    bound, values = _parameters(field, params, number)
    number = _agreed(sizes | {"params": len(values)})
    return Crowd(moments, own, q, m, h, bound, values, number, len(h) > 1)


def _agreed(sizes: dict[str, int]) -> int:
    """The number of bodies: the same wherever it is not 1."""
    several = {name: n for name, n in sizes.items() if n != 1}
    if len(set(several.values())) > 1:
        said = ", ".join(f"{name} {n}" for name, n in several.items())
        raise InputError(f"the number of bodies must be the same everywhere (or 1, for all); got {said}")
    return next(iter(several.values()), 1)


def _bodies(bodies: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Principal moments (N, 3), and the quaternions that turn principal into user axes where some differ."""
    if isinstance(bodies, Body):
        bodies = [bodies]
    if isinstance(bodies, list | tuple) and bodies and all(isinstance(b, Body) for b in bodies):
        moments = np.array([b.moments for b in bodies])
        if not any(b.has_own_axes for b in bodies):
            return moments, None
        return moments, np.array([quaternion_of(b.axes.tolist()) for b in bodies])
    expected = "bodies must be ph.Body objects, principal moments (N, 3) or tensors (N, 3, 3)"
    given = real_array(bodies, expected)
    if given.shape in ((3,), (3, 3)):
        return _bodies(Body(given))
    if given.ndim not in (2, 3) or given.shape[1:] not in ((3,), (3, 3)) or not len(given):
        raise InputError(f"{expected}; got shape {given.shape}")
    if given.ndim == 3:
        return _bodies([_body(i, tensor) for i, tensor in enumerate(given)])
    return _moments(given), None


def _body(i: int, inertia: np.ndarray) -> Body:
    try:
        return Body(inertia)
    except InputError as fault:
        raise InputError(f"body {i}: {fault}") from None


def _moments(given: np.ndarray) -> np.ndarray:
    """Rows of moments; those that are not plainly right are looked at one by one."""
    with np.errstate(invalid="ignore", over="ignore"):
        low, high, total = _extremes(given)
        plain = (low > 1e-9 * high) & (2 * high <= total) & (high < 1e90) & (low > 1e-90)
    for i in np.flatnonzero(~plain):
        given[i] = _body(int(i), given[i]).moments
    return given


def _extremes(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest and the largest of every body's moments, and their sum (by columns: rows of three are slow)."""
    x, y, z = _parts(moments)
    return np.minimum(np.minimum(x, y), z), np.maximum(np.maximum(x, y), z), x + y + z


def _rows(name: str, value: Any, width: int) -> np.ndarray:
    """Finite numbers in rows of a given width."""
    given = np.atleast_2d(real_array(value, f"{name} must be numbers of shape (N, {width}) or ({width},)"))
    if given.ndim != 2 or given.shape[1] != width or not len(given):
        raise InputError(f"{name} must have the shape (N, {width}) or ({width},); got {np.shape(value)}")
    _check_finite(name, given)
    return given


def _check_finite(name: str, given: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(given.sum()):  # one pass over the numbers; they are looked at where it is not enough
            return
    if not np.isfinite(given).all():
        i = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise InputError(f"{name} must be finite; those of body {i} are {given[i].tolist()}")


def _quaternions(attitudes: Any) -> np.ndarray:
    """Unit quaternions, scalar first."""
    if attitudes is None:
        return np.array([[1.0, 0.0, 0.0, 0.0]])
    given = _rows("attitudes", attitudes.as_quat(scalar_first=True) if hasattr(attitudes, "as_quat") else attitudes, 4)
    w, x, y, z = _parts(given)
    length = np.sqrt(w * w + x * x + y * y + z * z)
    bad = np.flatnonzero(np.abs(length - 1) > ROTATION_TOLERANCE)
    if bad.size:
        raise InputError(
            f"attitudes must be unit quaternions (scalar first); that of body {bad[0]} has length {length[bad[0]]:.8g}"
        )
    return np.stack(unit(_parts(given)), -1)


def _steps(dt: Any) -> np.ndarray:
    given = np.atleast_1d(real_array(dt, "dt must be a positive number, or one for each body"))
    if given.ndim != 1 or not given.size or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(f"dt must be a positive number, or one for each body; got {dt!r}")
    return given


def _parameters(field: Any, params: dict[str, Any], number: int) -> tuple[Field | None, np.ndarray]:
    """The field with the parameters of the first body, and the flattened parameters (N or 1, k) of all."""
    if field is None:
        if params:
            raise InputError(f"params are given ({', '.join(params)}) but no field")
        return None, np.empty((1, 0))
    if not isinstance(field, Field | FieldTemplate):
        raise InputError(f"field must be made by @ph.torque or @ph.potential; got {type(field).__name__}")
    template, known = (field.template, field.values) if isinstance(field, Field) else (field, {})
    unknown = [name for name in params if name not in template.parameters]
    if unknown:
        takes = ", ".join(template.parameters) or "none"
        raise InputError(
            f"the {template.kind} {template.function.__name__} has no parameter {unknown[0]!r}; it has {takes}"
        )
    given = {name: real_array(value, f"parameter {name} must be numbers") for name, value in params.items()}
    own = {name: array for name, array in given.items() if _varies(array, number, known.get(name))}
    first = known | {name: (array[0] if name in own else array).tolist() for name, array in given.items()}
    bound = _bound(template, first)
    count = _agreed({name: len(array) for name, array in own.items()} | {"bodies": number})
    columns = [
        own[name].reshape(count, -1) if name in own else np.tile(np.ravel(np.array(value)), (count, 1))
        for name, value in bound.values.items()
    ]
    for name, column, value in zip(bound.values, columns, bound.values.values(), strict=True):
        if column.shape[1] != np.size(value):
            raise InputError(
                f"parameter {name} must be {np.size(value)} numbers for each body; got shape {given[name].shape}"
            )
    values = np.concatenate(columns, axis=1) if columns else np.empty((1, 0))
    _check_finite("params", values)
    return bound, values


_BOUND: dict[tuple[FieldTemplate, str], Field] = {}
"""Fields bound before: the formulas made of one are kept with it, and calls with the same arrays need the same."""


def _bound(template: FieldTemplate, values: dict[str, Any]) -> Field:
    key = (template, repr(values))
    if key not in _BOUND:
        if len(_BOUND) >= 64:
            _BOUND.clear()
        _BOUND[key] = template(**values)
    return _BOUND[key]


def _varies(array: np.ndarray, number: int, known: Any) -> bool:
    """Has a parameter a first dimension that counts bodies."""
    if array.ndim == 0 or (known is not None and array.shape == np.shape(known)):
        return False
    return number == 1 or len(array) == number


def _counts(steps: Any, number: int) -> np.ndarray:
    """Numbers of steps, one for each body."""
    given = np.asarray(steps)
    if given.shape != (number,) or given.dtype.kind not in "iu" or (given < 1).any():
        raise InputError(f"steps must be a whole number above 0, or one for each of the {number} bodies; got {steps!r}")
    return given.astype(np.int64)


# --- the run ----------------------------------------------------------------------------------------


def _model(crowd: Crowd, method: Method, t0: float) -> Problem:
    """One of the problems, whose torque kernel serves all; the method must fit the awkward ones too."""
    low, high, total = _extremes(crowd.moments)
    awkward = np.flatnonzero(low == 0)
    turned = np.flatnonzero((crowd.own[:, 1:] != 0).any(axis=1)) if crowd.own is not None else awkward[:0]
    flat = np.flatnonzero(total - 2 * high <= TOLERANCE * high)
    chosen = [int(indices[0]) for indices in (flat, awkward, turned) if len(indices)] or [0]
    found = []
    for i in chosen:
        q, m = crowd.of(crowd.quaternion, i), crowd.of(crowd.momentum, i)
        found.append(Problem(crowd.body(i), crowd.field, attitude=q, momentum=m, t0=t0))
        check_fit(method, found[-1])
    return found[-1]


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

    crowd, method = task.crowd, task.method
    data = _data(crowd, simd.padded(crowd.number))
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


def _run_on_card(task: Task, threads: int | None) -> tuple[np.ndarray, np.ndarray, float]:
    """The same by a card."""
    from .backends import cuda

    if task.crowd.field is not None and task.crowd.field.has_tables:
        raise InputError("a table of more than 64 rows does not go on a card; use device='cpu', or fewer rows")
    cuda.card()
    method = task.method
    data = _data(task.crowd, task.crowd.number)
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


def _data(crowd: Crowd, width: int) -> np.ndarray:
    """A row for every number of a body (state, moments, inverses, parameters, step), in principal axes.

    Columns beyond the last body repeat it.
    """
    q, m, moments = _parts(crowd.quaternion), _parts(crowd.momentum), _parts(crowd.moments)
    own: tuple[Any, ...] = ()
    if crowd.own is not None:
        own = _parts(crowd.own)
        q, m = mul(q, own), crowd.principal_momentum(m)
    with np.errstate(divide="ignore"):
        inverse = tuple(1.0 / i for i in moments)
    if any(not i.all() for i in moments):
        m = tuple(np.where(i > 0, x, 0.0) for i, x in zip(moments, m, strict=True))
        inverse = tuple(np.where(i > 0, x, 0.0) for i, x in zip(moments, inverse, strict=True))
    rows = (*q, *m, *moments, *inverse, *_parts(crowd.values), *own, crowd.dt)
    data = np.empty((len(rows), width))
    for row, numbers in zip(data, rows, strict=True):
        row[: crowd.number] = numbers
        row[crowd.number :] = numbers[-1]
    return data


def _check_axial(crowd: Crowd) -> None:
    """A linear body carries no momentum along its axis."""
    zero = crowd.moments == 0
    if zero.any():
        m = crowd.principal_momentum(_parts(crowd.momentum))
        size = np.sqrt(m[0] ** 2 + m[1] ** 2 + m[2] ** 2)
        bad = np.flatnonzero(np.abs(np.where(zero, np.stack(m, -1), 0)).max(axis=1) > TOLERANCE * size)
        if bad.size:
            raise InputError(f"body {bad[0]} is linear and must carry no momentum along its axis")


def _parts(array: np.ndarray) -> Any:
    """The columns as a tuple, for kernels."""
    return tuple(array[..., i] for i in range(array.shape[-1]))


def _result(task: Task, rows: np.ndarray, failed: np.ndarray, seconds: float) -> Ensemble:
    crowd = task.crowd
    q, m = rows[..., :4], rows[..., 4:COLUMNS]
    if crowd.own is not None:
        own = _parts(crowd.own)
        q, m = np.stack(mul(_parts(q), conj(own)), -1), np.stack(rotate(own, _parts(m)), -1)
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
