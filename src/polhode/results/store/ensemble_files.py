"""Ensembles in files: reading with checksums, conversion to xarray, saving as Zarr or NetCDF."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._extras import needed
from ...errors import InputError
from ...physics.bodies import Bodies
from ...physics.observers.statistics import Statistic
from .. import one_body
from ..ensemble import NOT_YET, Ensemble
from ..trajectory import Trajectory
from . import atomic, ensemble_store, event_files, file_format, integrity, netcdf, trajectory_store
from .ensemble_store import (
    CHECKED,
    FORMAT,
    PLAIN,
    SAID,
    WITHOUT_CHECKSUMS,
    body_axis,
    counted_from_one,
    dims_of,
    labelled,
    state_variables,
    states_attribute,
    statistics_names,
)
from .integrity import CHECKSUMS, DIGEST, Damage
from .targets import consolidated

if TYPE_CHECKING:
    import xarray


# --- reading ----------------------------------------------------------------------------------------


class StoredEnsemble(Ensemble):
    """An ensemble in a file; its arrays are read and checked on first access, then cached."""

    def __init__(self, path: Path, bodies: Bodies | None = None) -> None:
        """Open a file; `bodies` are those of the run that wrote it, if it ran in this process."""
        attrs = _attributes(path)
        self.__dict__.update(
            path=path, method=str(attrs["method"]), seconds=float(attrs.get("seconds", 0.0)), attributes=attrs,
            of_run=bodies, tol=float(attrs["tol"]) if attrs.get("tol") else None,
        )  # fmt: skip

    @functools.cached_property
    def steps(self) -> np.ndarray | None:
        """Numbers of steps, if the bodies chose their own."""
        return self._own("steps")

    @functools.cached_property
    def error_estimate(self) -> np.ndarray | None:
        """Estimated errors at the end, of a run with `tol`."""
        return self._own("error_estimate")

    def _own(self, name: str) -> np.ndarray | None:
        """Read a variable that not all files have."""
        attrs = self.__dict__["attributes"]
        written = str(attrs.get(CHECKED, "")).split()
        saved = integrity.checksums_of(attrs) or {}
        return self._variable(name) if name in written or name in saved else None

    @functools.cached_property
    def events(self) -> list[list[Trajectory]]:
        """For each event, the states at which it occurred, one Trajectory for each body; [] if there are none."""
        path, attrs = self.__dict__["path"], self.__dict__["attributes"]
        names = str(attrs.get("events", "")).split()
        if not names or CHECKED not in attrs:
            return []
        if (self.failed == NOT_YET).any():
            raise InputError(f"{path} has bodies that have not been run yet; the same call with resume=True runs them")
        root, found = ensemble_store.opened(path), [list[Trajectory]() for _ in names]
        try:
            for number in range(ensemble_store.number_of_units(root)):
                begin, end = ensemble_store.bounds(root, number)
                infos = [
                    one_body.info(self, i, self.t if self.t.ndim == 1 else self.t[:, i]) for i in range(begin, end)
                ]
                parts = event_files.trajectories(event_files.read(path, number), infos)
                for of_event, part in zip(found, parts, strict=True):
                    of_event += part
        except Damage as problem:
            raise _damaged(path, str(problem)) from problem
        return found

    @functools.cached_property
    def bodies(self) -> Bodies | None:
        """The bodies, if the file has their axes; with their field only if they were run in this process."""
        attrs, of_run = (self.__dict__[name] for name in ("attributes", "of_run"))
        if of_run is not None:
            found: Bodies = of_run
            return found
        if (has_axes := str(attrs.get("own_axes"))) not in (*YES, *NO):
            return None
        variable = "inputs/own" if CHECKED in attrs else "axes"
        own = self._variable(variable) if has_axes in YES else None
        return Bodies(moments=self.moments, own=own, number=len(self.moments))

    @property
    def _saved_energy(self) -> bool:
        """True if the file has energies."""
        return "energy" in str(self.__dict__["attributes"].get(CHECKSUMS, ""))

    @property
    def has_energy(self) -> bool:
        """True if energies are known: they are saved, or there is no field, or the field is that of this process."""
        return self._saved_energy or (self.knows_field and self.bodies is not None)

    @property
    def knows_field(self) -> bool:
        """True if there is no field, or if it was run in this process."""
        return self.__dict__["of_run"] is not None or self.__dict__["attributes"].get("field") == ""

    @functools.cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy (n, N): as saved, or computed if the field is known."""
        if self._saved_energy:
            return self._variable("energy")
        if not self.knows_field:
            raise InputError(
                f"{self.__dict__['path']} has no energies, and not the formula of its field; `to_xarray()` may have "
                "energy_change, the largest relative change"
            )
        return self.known_bodies.energies(self.quaternion, self.momentum)

    def energy_of(self, i: int, chosen: np.ndarray) -> np.ndarray:
        """Energies of some states of body i."""
        return self.energy[chosen, i]

    @functools.cached_property
    def states(self) -> dict[str, np.ndarray]:
        """States of the field, by name: what a controller decided, for example."""
        return {name: self._variable(file_format.STATE + name) for name, _ in self._kept_states}

    @property
    def _kept_states(self) -> file_format.States:
        found: file_format.States = self._explained(
            "states", lambda: file_format.states_of(self.__dict__["attributes"])
        )
        return found

    @property
    def status(self) -> str:
        """Return finished if all bodies have been run, else running."""
        return "running" if (self.failed == NOT_YET).any() else "finished"

    def __getattr__(self, name: str) -> Any:
        if name not in (*PLAIN, "statistics"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value: Any = self._variable(name) if name != "statistics" else self._explained(name, self._read_statistics)
        value = counted_from_one(value, self.__dict__["attributes"]) if name == "failed" else value
        self.__dict__[name] = value
        return value

    def _variable(self, name: str) -> np.ndarray:
        """Read and check a variable."""
        return self._explained(name, lambda: _read(self.__dict__["path"], name))

    def _explained(self, name: str, read: Callable[[], Any]) -> Any:
        """Read something; an error says what is damaged."""
        try:
            return read()
        except InputError:
            raise
        except Exception as problem:
            raise _damaged(self.__dict__["path"], f"{name} cannot be read ({integrity.line(problem)})") from problem

    def last_state(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Attitude and momentum of body i at the end; from a Zarr store, only their chunks are read."""
        path = self.__dict__["path"]
        if path.suffix != ".zarr":
            return super().last_state(i)
        root = ensemble_store.opened(path)
        return np.asarray(root["quaternion"][-1, i]), np.asarray(root["momentum"][-1, i])

    def _read_statistics(self) -> dict[str, Statistic]:
        names = str(self.__dict__["attributes"].get("statistics", "")).split()
        if not names:
            return {}
        with _reading(self.__dict__["path"]) as read:
            return {name: Statistic(*map(read, statistics_names([name]))) for name in names}

    def __repr__(self) -> str:
        old = " (a file without checksums)" if CHECKSUMS not in self.__dict__["attributes"] else ""
        return super().__repr__()[:-1] + f"{old}>"


YES, NO = ("True", "1"), ("False", "0")
"""Values of the attribute `own_axes` in Zarr and NetCDF files: True if principal and user axes differ."""

AGAIN = "the same call with resume=True (--resume) runs the bodies again whose numbers are damaged"


def _damaged(path: Path, what: str) -> InputError:
    """Error for a damaged file; in the store of a run, the damaged bodies can be computed again."""
    shards = path.suffix == ".zarr" and CHECKED in _attributes(path)
    return integrity.damaged(path, what, AGAIN) if shards else integrity.damaged(path, what)


def _attributes(path: Path) -> dict[str, Any]:
    if path.suffix == ".zarr":
        return dict(ensemble_store.described(path)["attributes"])
    with netcdf.opened(path) as file:
        return file.attrs


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Callable[[str], np.ndarray]]:
    """Yield a function that reads and checks a variable; a NetCDF file is opened and verified only once."""
    if path.suffix != ".nc":
        yield lambda name: _read_from_store(path, name)
        return
    with netcdf.opened(path) as file:
        sums = integrity.checksums_of(file.attrs)
        yield lambda name: _checked(name, file[name], sums)


def _read(path: Path, name: str) -> np.ndarray:
    """Read and check one variable."""
    with _reading(path) as read:
        return read(name)


def _read_from_store(path: Path, name: str) -> np.ndarray:
    """Read and check a variable of a Zarr store: as a whole if it was written at once, else unit by unit."""
    found = ensemble_store.described(path)
    attrs, metadata = found["attributes"], integrity.arrays(found)
    sums, root = integrity.checksums_of(attrs), ensemble_store.opened(path)
    if name not in metadata:
        raise Damage(f"{name} is missing")
    if sums is not None and name in str(attrs.get(CHECKED, "")).split():
        return _read_shards(path, root, name, metadata)
    if sums is not None or name == "moments":  # files without checksums omit chunks of NaN
        integrity.check_chunks(path, name, metadata[name])
    return _checked(name, root[name], sums)


def _checked(name: str, array: Any, sums: Mapping[str, int] | None) -> np.ndarray:
    _check_memory(name, array)
    values = np.asarray(array[...])
    integrity.check(name, integrity.checksum(values, axis=min(body_axis(name), values.ndim - 1)), sums)
    return values


def _check_memory(name: str, array: Any) -> None:
    if 8 * math.prod(array.shape) > integrity.memory():
        raise InputError(f"{name} of shape {tuple(array.shape)} does not fit into memory; read a part of .to_xarray()")


def _read_shards(path: Path, root: Any, name: str, metadata: Mapping[str, Any]) -> np.ndarray:
    """Read and check a variable that is written unit by unit; units that are not done are NaN (`failed`: -2)."""
    integrity.check_chunks(path, "moments", metadata["moments"])  # the store has as many bodies as it claims
    _check_memory(name, root[name])
    done = _done(path, root)
    integrity.check_chunks(path, name, metadata[name], functools.partial(_is_of, done, body_axis(name)))
    column = str(root.attrs[CHECKED]).split().index(name)
    if done.any():
        integrity.check_chunks(path, "checks/units", metadata["checks/units"], functools.partial(_is_of, done, 0))
    expected, values = root["checks/units"][:, column], np.asarray(root[name][...])
    for number, is_done in enumerate(done):
        begin, end = ensemble_store.bounds(root, number)
        part = values[(slice(None),) * body_axis(name) + (slice(begin, end),)]
        if is_done:
            found = integrity.checksum(part, axis=body_axis(name))
            integrity.check(f"{name} of bodies {begin} to {end - 1}", found, {
                f"{name} of bodies {begin} to {end - 1}": int(expected[number])
            })  # fmt: skip
        elif values.dtype.kind == "f":
            part[...] = np.nan
    return values


def _is_of(shards: np.ndarray, axis: int, index: tuple[int, ...]) -> bool:
    """True if a chunk belongs to one of these units."""
    return bool(shards[index[axis]])


def _done(path: Path, root: Any) -> np.ndarray:
    """Mask of the units that are done; in a finished store, all must be."""
    marks = np.asarray(root["failed"][...])[:: root.attrs["unit"]] != NOT_YET
    if root.attrs.get("status") == "finished" and not marks.all():
        raise Damage(f"a part of failed is missing (failed/c/{int(np.flatnonzero(~marks)[0])})")
    return np.asarray(marks)


def loaded(path: Path) -> StoredEnsemble | None:
    """Open the ensemble in a file; None if there is no file or it holds something else."""
    try:
        attrs = _attributes(path)
        if attrs.get("format") not in (FORMAT, WITHOUT_CHECKSUMS):
            return None
        if attrs["format"] == FORMAT and not {DIGEST, CHECKSUMS} <= attrs.keys():
            return None
        return StoredEnsemble(path)
    except Exception:
        return None


def dataset(many: Ensemble) -> xarray.Dataset:
    """An ensemble as an xarray Dataset; a file is opened but not read."""
    xarray = needed("xarray")

    if isinstance(many, StoredEnsemble):
        path = many.__dict__["path"]
        if path.suffix == ".zarr":
            _check_presence(path)
            data = xarray.open_zarr(path, chunks=None, consolidated=True, zarr_format=3)
        else:
            data = xarray.open_dataset(path, engine="h5netcdf")
        bodies = many.bodies
        if bodies is not None and bodies.own is not None and "axes" not in data:  # a run stores them among its inputs
            data = data.assign(axes=_variable("axes", _rows_of_axes(bodies)))
        return _recounted(data)
    per_body_times = many.t.ndim == 2
    plain = {name: getattr(many, name) for name in PLAIN} | _saved(many) | _of_tolerance(many)
    variables = {name: _variable(name, values, per_body_times) for name, values in plain.items()}
    t = variables.pop("t")
    for of, one in many.statistics.items():
        for name, values in zip(statistics_names([of]), vars(one).values(), strict=True):
            dims = ("body", "axis")[: values.ndim]
            variables[name] = xarray.Variable(dims, values, labelled(name))
    for name, (dims, values) in state_variables(many.states).items():
        variables[name] = xarray.Variable(dims, values, labelled(name))
    attrs = {"method": many.method, "seconds": many.seconds, "statistics": " ".join(many.statistics)}
    attrs |= {} if many.tol is None else {"tol": many.tol}
    attrs |= states_attribute({name: values.shape[2:] for name, values in many.states.items()})
    if many.bodies is not None:
        field = many.bodies.field
        attrs |= {"own_axes": int(many.bodies.own is not None), "field": "" if field is None else field.name}
    return xarray.Dataset(variables, {"t": t, **file_format.LABELS}, SAID | attrs)


def _saved(many: Ensemble) -> dict[str, np.ndarray]:
    """Further variables of a file: energies, and the principal axes if they differ from the user's."""
    if many.bodies is None:
        return {}
    axes = {} if many.bodies.own is None else {"axes": _rows_of_axes(many.bodies)}
    return {"energy": many.energy, **axes}


def _of_tolerance(many: Ensemble) -> dict[str, np.ndarray]:
    """Further variables of runs to a tolerance."""
    known = {"steps": many.steps, "error_estimate": many.error_estimate}
    return {name: values for name, values in known.items() if values is not None}


def _rows_of_axes(bodies: Bodies) -> np.ndarray:
    """Rotation of every body from principal to user axes."""
    return np.broadcast_to(np.asarray(bodies.own), (bodies.number, 4))


def _variable(name: str, values: np.ndarray, per_body_times: bool = False) -> xarray.Variable:
    """A variable with its dimensions, meaning and unit."""
    xarray = needed("xarray")

    return xarray.Variable(dims_of(name, per_body_times), values, labelled(name))


def _recounted(data: xarray.Dataset) -> xarray.Dataset:
    """Dataset in which failed steps count from 1, whatever the format of the file."""
    if data.attrs.get("format") == FORMAT:
        return data
    failed = data["failed"].copy(data=counted_from_one(data["failed"].values, data.attrs))
    return data.assign(failed=failed).assign_attrs(format=FORMAT)


def _check_presence(path: Path) -> None:
    """Check that everything xarray will read exists; it verifies the checksums of the chunks itself."""
    found = ensemble_store.described(path)
    metadata, attrs = integrity.arrays(found), found["attributes"]
    if CHECKSUMS not in attrs:
        return
    try:
        root = ensemble_store.opened(path)
        done = _done(path, root) if attrs.get(CHECKED) else None
        shards = str(attrs.get(CHECKED, "")).split()
        for name, one in metadata.items():
            if name in shards and done is not None:
                integrity.check_chunks(path, name, one, functools.partial(_is_of, done, body_axis(name)))
            elif "/" not in name:
                integrity.check_chunks(path, name, one)
    except InputError:
        raise
    except Exception as problem:
        raise _damaged(path, integrity.line(problem)) from problem


# --- saving -----------------------------------------------------------------------------------------


def save(many: Ensemble, path: str | Path, overwrite: bool) -> Path:
    """Write an ensemble with bounded memory; the file appears complete or not at all."""
    try:
        with trajectory_store.writing(path, overwrite) as path:
            if isinstance(many, StoredEnsemble):
                check_all(many.__dict__["path"])
            _save(many, path)
            return path
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem}") from problem


def check_all(path: Path) -> None:
    """Read a whole file and verify its checksums; with bounded memory if it was written in units."""
    if path.suffix == ".zarr" and CHECKED in _attributes(path):
        ensemble_store.check_constant(path, ensemble_store.opened(path))
        _check_presence(path)
        if bad := ensemble_store.check_units(path):
            raise _damaged(path, f"unit {bad[0]} does not have the checksums it was written with")
        return
    names = integrity.checksums_of(_attributes(path)) or ()
    with _reading(path) as read:
        for name in names:
            try:
                read(name)
            except InputError:
                raise
            except Exception as problem:
                raise _damaged(path, f"{name} cannot be read ({integrity.line(problem)})") from problem


def _save(many: Ensemble, path: Path) -> None:
    new, data = atomic.hidden(path), dataset(many)
    attrs = {str(k): v for k, v in data.attrs.items() if k not in (CHECKSUMS, DIGEST, CHECKED)} | {"format": FORMAT}
    try:
        if path.suffix == ".zarr":
            copy = _ZarrCopy(new)
            copy.sizes = {str(name): size for name, size in data.sizes.items()}
            _copy(data, copy)
            copy.seal(attrs)
        else:
            with netcdf.created(new) as file:
                file.file.dimensions = {str(name): size for name, size in data.sizes.items()}
                _copy(data, file)
                file.seal({k: str(v) if isinstance(v, list | bool) else v for k, v in attrs.items()})
            check_all(new)
        atomic.replace(path, new)
        atomic.sync([path.parent])
    finally:
        data.close()
        atomic.discard(new)


class _ZarrCopy:
    """A new Zarr store, with the checksums of its variables."""

    def __init__(self, path: Path) -> None:
        zarr = needed("zarr")

        self.path, self.root, self.sums = path, zarr.open_group(path, mode="w", zarr_format=3), dict[str, int]()
        self.sizes: Mapping[str, int] = {}

    def variable(self, name: str, dims: tuple[str, ...], dtype: Any, chunks: tuple[int, ...], attrs: Any) -> None:
        """Create a variable of numbers."""
        shape = tuple(self.sizes[d] for d in dims)
        integrity.created(
            self.root, name, compressed=False, shape=shape, chunks=chunks, dtype=dtype, dimension_names=dims,
            attributes=attrs,
        )  # fmt: skip

    def text(self, name: str, dims: tuple[str, ...], words: Any) -> None:
        """Create a variable of strings."""
        integrity.created_words(self.root, name, dims, words)

    def write(self, name: str, where: Any, values: np.ndarray, axis: int = 0) -> None:
        """Write a part of a variable; the parts must come in order along an axis."""
        self.root[name][where] = values
        self.sums[name] = integrity.checksum(values, self.sums.get(name, 0), axis)

    def seal(self, attrs: Mapping[str, Any]) -> None:
        """Write the description of the whole store, with attributes and checksums."""
        consolidated(self.root)
        integrity.replace_attributes(self.path, dict(attrs) | {CHECKSUMS: integrity.checksums_text(self.sums)})


SAVED_AT_ONCE = 1 << 20
"""Numbers of a variable that are copied at a time; also the size of a chunk."""


def _copy(data: xarray.Dataset, file: Any) -> None:
    """Copy every variable into a new one, some bodies at a time."""
    labels = " ".join(str(n) for n in data.coords if data[n].dims == ("body",))
    for key, variable in data.variables.items():
        name, dims = str(key), tuple(map(str, variable.dims))
        if variable.dtype.kind not in "fiu":
            file.text(name, dims, variable.values.tolist())
            continue
        attributes = {k: v for k, v in variable.attrs.items() if isinstance(v, str)}
        if name in data.data_vars:
            attributes["coordinates"] = "t" if "time" in dims else labels
        axis = dims.index("body") if "body" in dims else 0
        length = variable.shape[axis]
        step = min(length, max(1, SAVED_AT_ONCE * length // max(variable.size, 1)))
        chunks = (*variable.shape[:axis], step, *variable.shape[axis + 1 :])
        file.variable(name, dims, variable.dtype, chunks, attributes)
        for where in _slices(axis, length, step):
            file.write(name, where, variable[where].values, axis)


def _slices(axis: int, length: int, step: int) -> Iterator[tuple[slice, ...]]:
    """Consecutive slices along an axis."""
    for begin in range(0, length, step):
        yield (slice(None),) * axis + (slice(begin, begin + step),)
