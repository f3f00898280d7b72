"""Many bodies as files: a Zarr store that is written unit by unit, and NetCDF, opened by xarray.

A *unit* is a slice of the bodies, one chunk of the store along `body`. A body's bits do not depend on its neighbours,
so a unit may be run anywhere and any number of times. What a unit has found is written chunk by chunk, each file in one
go; the chunk of `failed` comes last, once the others are on the disk, and is the mark that the unit is done. So the
store is readable at any moment: a body not run yet has `failed` = -2 and states that are NaN.

What went in stands in the group `inputs`, so that whoever runs a unit needs no more than the store's path, and a run
that goes on can be compared with the one that was stopped.
"""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _version, files, store
from .crowd import Crowd
from .ensemble import NOT_YET, Ensemble, Task
from .errors import InputError
from .statistics import PARTS, Statistic

if TYPE_CHECKING:
    import xarray

FORMAT = "polhode ensemble 1"
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "t": (("time", "body"), *store.VARIABLES["t"][1:]),
    "quaternion": (("time", "body", "component"), *store.VARIABLES["quaternion"][1:]),
    "momentum": (("time", "body", "axis"), *store.VARIABLES["momentum"][1:]),
    "moments": (("body", "axis"), "M L^2", "principal moments of inertia"),
    "energy_change": (
        ("body",),
        "1",
        "largest relative change, among the states kept, of kinetic plus potential energy (kinetic where there is no "
        "potential)",
    ),
    "failed": (("body",), "1", "number of the step that failed, counting from 1; -1: none did; -2: not run yet"),
}
PLAIN = ("t", "quaternion", "momentum", "moments", "failed")
"""Those an `Ensemble` has."""

UNITS = {name: unit for name, (_, unit, _) in store.VARIABLES.items()} | {
    "momentum_norm": store.VARIABLES["momentum"][1]
}
"""Units of the observables that have a name; those of a user's function are the user's."""

INPUTS = {"own": "axes of the bodies", "quaternion": "attitudes", "momentum": "momenta", "dt": "dt", "values": "params"}
"""Arrays of a `Crowd` that are stored as they are, besides the moments, and what a user calls them."""


# --- a new store ------------------------------------------------------------------------------------


def create(path: Path, task: Task, unit: int, labels: Mapping[str, np.ndarray], said: Mapping[str, Any]) -> None:
    """Make a store for a task, with no unit done; it appears complete or not at all."""
    import zarr

    new = files.hidden(path)
    try:
        root = zarr.open_group(new, mode="w")
        sizes = {"time": len(task.kept), "body": task.crowd.number, **store.SIZES}
        observed = {} if task.wanted is None else task.wanted.sizes
        for name in (*VARIABLES, *statistics_names(observed)):
            _variable(root, name, _dims(name, task.own_times, observed), sizes, unit)
        if not task.own_times:
            root["t"][:] = task.times()
        root["moments"][:] = np.broadcast_to(task.crowd.moments, root["moments"].shape)
        _write_labels(root, labels, unit)
        inputs = root.create_group("inputs")
        for name in INPUTS:
            if (array := getattr(task.crowd, name)) is not None:
                rows = min(len(array), unit)
                kept = inputs.create_array(name, shape=array.shape, dtype="f8", chunks=_chunks(array.shape, rows))
                kept[...] = array
        root.attrs.update(SAID | description(task) | {"unit": unit} | dict(said))
        _publish(root)
        files.put(path, new)
    finally:
        files.remove(new)


COUNTED = "failed_counts_from"
"""Attribute: the number of the first step. Files without it were written when `failed` counted from 0."""

SAID = {**store.SAID_OF_ALL, "format": FORMAT, COUNTED: 1}


def counted(failed: np.ndarray, said: Mapping[str, Any]) -> np.ndarray:
    """Numbers of failed steps, counting from 1, as they are in a file with these attributes."""
    return failed if said.get(COUNTED) else np.where(failed >= 0, failed + 1, failed)


def statistics_names(observed: Iterable[str]) -> list[str]:
    """Variables of the statistics of some observables."""
    return [f"{name}_{part}" for name in observed for part in PARTS]


def _dims(name: str, own_times: bool, observed: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Dimensions of a variable; of a statistic by the components of its observable."""
    if name in VARIABLES:
        return ("time",) if name == "t" and not own_times else VARIABLES[name][0]
    of, _, part = name.rpartition("_")
    return ("body", "axis") if (observed or {})[of] > 1 and part != "drift" else ("body",)


def _labelled(name: str) -> dict[str, str]:
    if name in VARIABLES:
        return {"long_name": VARIABLES[name][2], "units": VARIABLES[name][1]}
    of, _, part = name.rpartition("_")
    unit = "1" if part == "drift" else UNITS.get(of)
    return {"long_name": f"{of}, {PARTS[part]}"} | ({} if unit is None else {"units": unit})


def _chunks(shape: tuple[int, ...], first: int) -> tuple[int, ...]:
    return (first, *(max(n, 1) for n in shape[1:]))


def _variable(root: Any, name: str, dims: tuple[str, ...], sizes: Mapping[str, int], unit: int) -> None:
    """An array with nothing in it; doubles of a motion do not compress, so their bytes are written as they are."""
    largest = {"time": store.ROWS_PER_CHUNK, "body": unit}
    shape = tuple(sizes[d] for d in dims)
    attributes = _labelled(name) | ({"coordinates": "t"} if "time" in dims and name != "t" else {})
    whole = name == "failed"
    root.create_array(
        name, shape=shape, chunks=tuple(min(largest.get(d, n), n) for d, n in zip(dims, shape, strict=True)),
        dtype="i8" if whole else "f8", fill_value=NOT_YET if whole else np.nan, compressors=None,
        dimension_names=dims, attributes=attributes,
    )  # fmt: skip


def _write_labels(root: Any, labels: Mapping[str, np.ndarray], unit: int) -> None:
    """The names of components and axes, and what a sweep varies, a number for each body."""
    for name, words in store.LABELS.items():
        array = root.create_array(name, shape=(len(words),), dtype="str", dimension_names=(name,))
        array[:] = np.array(words, dtype=object)
    for name, values in labels.items():
        text = {"long_name": f"{name}, varied by the sweep"}
        array = root.create_array(
            name, shape=values.shape, chunks=(min(unit, len(values)),), dtype="f8", dimension_names=("body",),
            attributes=text,
        )  # fmt: skip
        array[:] = values
    for name, array in root.arrays() if labels else ():
        if name not in labels and tuple(array.metadata.dimension_names) == ("body",):
            array.attrs["coordinates"] = " ".join(labels)


def _publish(root: Any) -> None:
    """Write the description of all arrays into the store's root, in one go."""
    import zarr

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(root.store)


def description(task: Task) -> dict[str, Any]:
    """What a run is made of besides arrays: what must be the same when it goes on, in words a user knows."""
    field = task.model.field
    formula = "" if field is None else _digest(repr(field.text[0]))
    return {
        "polhode_version": _version.__version__,
        "method": task.method.name,
        "method_identity": _digest(task.method.identity),
        "field": "" if field is None else field.name,
        "field_formula": formula,
        "parameters": [] if field is None else list(field.values),
        "device": task.device,
        "steps": task.count,
        "every": task.every,
        "t0": task.t0,
        "bodies": task.crowd.number,
        "own_dt": task.crowd.own_dt,
        "own_axes": task.crowd.own is not None,
        "statistics": "" if task.wanted is None else " ".join(task.wanted.sizes),
        "statistics_formula": "" if task.wanted is None else _digest(task.wanted.identity),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- units ------------------------------------------------------------------------------------------


def opened(path: Path, mode: str = "r") -> Any:
    """The group of a store, if it is one of ours; the description of all arrays is read at once."""
    import zarr

    try:
        root = zarr.open_group(path, mode=mode)
        found = root.attrs.get("format")
    except Exception as problem:
        raise InputError(f"{path} cannot be read as an ensemble: {store._line(problem)}") from problem
    if found != FORMAT:
        raise InputError(f"{path} is not a polhode ensemble (format {found!r}, expected {FORMAT!r})")
    return root


def missing(path: Path) -> list[int]:
    """Numbers of the units that are not done."""
    root = opened(path)
    first = root["failed"][:][:: root.attrs["unit"]]
    return [int(u) for u in np.flatnonzero(first == NOT_YET)]


def bounds(root: Any, number: int) -> tuple[int, int]:
    """First body of a unit, and the one after its last."""
    unit = root.attrs["unit"]
    return number * unit, min((number + 1) * unit, root.attrs["bodies"])


def is_done(root: Any, number: int) -> bool:
    """Has a unit been run and written."""
    return bool(root["failed"][number * root.attrs["unit"]] != NOT_YET)


def crowd(root: Any, number: int, field: Any) -> Crowd:
    """The bodies of a unit."""
    begin, end = bounds(root, number)
    inputs = root["inputs"]
    given = {}
    for name in INPUTS:
        if name != "own" or root.attrs["own_axes"]:
            array = inputs[name]
            given[name] = array[begin:end] if array.shape[0] > 1 else array[:]
    moments, own = root["moments"][begin:end], given.pop("own", None)
    return Crowd(moments=moments, own=own, field=field, number=end - begin, own_dt=root.attrs["own_dt"], **given)


def write(root: Any, number: int, task: Task, part: Ensemble) -> None:
    """Write what a unit has found, and when that is on the disk, that it is done."""
    begin, end = bounds(root, number)
    arrays = {"quaternion": part.quaternion, "momentum": part.momentum, "energy_change": _energy_change(task, part)}
    if task.own_times:
        arrays["t"] = part.t
    for name, one in part.statistics.items():
        arrays |= dict(zip(statistics_names([name]), vars(one).values(), strict=True))
    for name, values in arrays.items():
        where = (slice(None), slice(begin, end)) if _has_time(name) else slice(begin, end)
        root[name][where] = values
    _to_disk(Path(root.store.root), number, list(arrays))
    root["failed"][begin:end] = part.failed


def _has_time(name: str) -> bool:
    return name in VARIABLES and "time" in VARIABLES[name][0]


def _energy_change(task: Task, part: Ensemble) -> np.ndarray:
    with np.errstate(all="ignore"):
        energy = task.energies(part.quaternion, part.momentum)
        change, scale = np.nanmax(np.abs(energy - energy[0]), axis=0), np.abs(energy[0])
        return np.asarray(np.where(scale > 0, change / scale, change))


def _to_disk(folder: Path, number: int, names: list[str]) -> None:
    """Wait until the chunks of a unit are on the disk, so that no power cut leaves its mark without them."""
    for name in names:
        position = f"*/{number}" if _has_time(name) else f"{number}"
        for place in (folder / name / "c").glob(position):
            files.sync(place.iterdir() if place.is_dir() else (place,))


def finish(path: Path, seconds: float) -> None:
    """Say that all units are done, and how long the last run took."""
    import zarr

    root = zarr.open_group(path, mode="r+", use_consolidated=False)
    root.attrs["seconds"] = seconds
    _publish(root)


# --- going on with a run ----------------------------------------------------------------------------


def check_same(path: Path, task: Task, unit: int | None, labels: Mapping[str, np.ndarray]) -> None:
    """Refuse to go on with a store that was made of something else, and name the first difference."""
    root = opened(path)
    for name, now in (description(task) | {COUNTED: 1} | ({} if unit is None else {"unit": unit})).items():
        then = root.attrs.get(name)
        if (then or None) != (now or None):  # what a store of an earlier version does not say is nothing
            raise _different(path, f"{_WORDS.get(name, name)} {_told(then)}, and now {_told(now)}")
    given = task.crowd
    shape = (given.number, 3)
    _check_array(path, "bodies", root["moments"], np.broadcast_to(given.moments, shape))
    for name, word in INPUTS.items():
        if (now := getattr(given, name)) is not None:
            _check_array(path, word, root["inputs"][name], now)
    for name, values in labels.items():
        if name not in root:
            raise _different(path, f"no {name} varied")
        _check_array(path, name, root[name], values)


_WORDS = {
    "method_identity": "the method's coefficients",
    "field_formula": "the field's formula",
    "bodies": "the number of bodies",
    "own_dt": "a dt for each body",
    "own_axes": "bodies with axes of their own",
    "parameters": "the field's parameters",
    "statistics_formula": "the statistics' formulas",
    "polhode_version": "polhode",
    COUNTED: "steps that count from",
}


def _told(value: Any) -> str:
    return "none" if value in ("", None, []) else str(value)


def _different(path: Path, what: str) -> InputError:
    return InputError(f"{path} was made with {what}; going on needs the same, or choose another file")


def _check_array(path: Path, name: str, then: Any, now: np.ndarray) -> None:
    """Compare two arrays with a row for each body, or one for all, to the last bit; a bounded part at a time."""
    if then.shape[1:] != now.shape[1:]:
        raise _different(path, f"{name} of shape {then.shape}, and now {now.shape}")
    block = max(then.chunks[0], 1 << 16)
    for begin in range(0, max(then.shape[0], len(now)), block):
        a, b = (x[begin : begin + block] if x.shape[0] > 1 else x[:] for x in (then, now))
        a, b = np.broadcast_arrays(a, b)
        rows = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
        if rows.size:
            i = int(rows[0])
            raise _different(
                path,
                f"other {name}: of body {begin + i} {np.squeeze(a[i]).tolist()}, and now {np.squeeze(b[i]).tolist()}",
            )


def tidy(path: Path) -> None:
    """Remove what a killed writer has left: files that did not get their names."""
    for rest in path.rglob("*.partial"):
        rest.unlink(missing_ok=True)


# --- reading ----------------------------------------------------------------------------------------


class StoredEnsemble(Ensemble):
    """An ensemble in a file; its arrays are read when asked for, and kept."""

    def __init__(self, path: Path) -> None:
        said = _attributes(path)
        self.__dict__.update(
            path=path, method=str(said["method"]), seconds=float(said.get("seconds", 0.0)), attributes=said
        )

    @property
    def status(self) -> str:
        """Whether all bodies have been run."""
        return "running" if (self.failed == NOT_YET).any() else "finished"

    def __getattr__(self, name: str) -> Any:
        if name not in (*PLAIN, "statistics"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        path = self.__dict__["path"]
        try:
            value: Any = _read(path, name) if name != "statistics" else self._read_statistics()
        except Exception as problem:
            raise InputError(f"{path} is damaged: {name} cannot be read ({store._line(problem)})") from problem
        value = counted(value, self.__dict__["attributes"]) if name == "failed" else value
        self.__dict__[name] = value
        return value

    def last_state(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Attitude and momentum of body i at the end, read alone."""
        path = self.__dict__["path"]
        if path.suffix != ".zarr":
            return super().last_state(i)
        root = opened(path)
        return np.asarray(root["quaternion"][-1, i]), np.asarray(root["momentum"][-1, i])

    def _read_statistics(self) -> dict[str, Statistic]:
        names = str(self.__dict__["attributes"].get("statistics", "")).split()
        path = self.__dict__["path"]
        return {name: Statistic(*(_read(path, variable) for variable in statistics_names([name]))) for name in names}


def _attributes(path: Path) -> dict[str, Any]:
    if path.suffix == ".zarr":
        return dict(opened(path).attrs)
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        return dict(file.attrs)


def _read(path: Path, name: str) -> np.ndarray:
    if path.suffix == ".zarr":
        return np.asarray(opened(path)[name][...])
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        return np.asarray(file[name][...])


def loaded(path: Path) -> StoredEnsemble | None:
    """The ensemble in a file; None where there is no file, or one that holds something else."""
    try:
        return StoredEnsemble(path) if _attributes(path).get("format") == FORMAT else None
    except Exception:
        return None


def dataset(many: Ensemble) -> xarray.Dataset:
    """An ensemble as an xarray Dataset; one in a file is opened, not read."""
    import xarray

    if isinstance(many, StoredEnsemble):
        path = many.__dict__["path"]
        zarr = path.suffix == ".zarr"
        data = xarray.open_zarr(path, chunks=None) if zarr else xarray.open_dataset(path, engine="h5netcdf")
        return data if data.attrs.get(COUNTED) else _recounted(data)
    own_times = many.t.ndim == 2
    variables = {name: xarray.Variable(_dims(name, own_times), getattr(many, name), _labelled(name)) for name in PLAIN}
    t = variables.pop("t")
    for of, one in many.statistics.items():
        for name, values in zip(statistics_names([of]), vars(one).values(), strict=True):
            dims = ("body", "axis")[: values.ndim]
            variables[name] = xarray.Variable(dims, values, _labelled(name))
    said = {"method": many.method, "seconds": many.seconds, "statistics": " ".join(many.statistics)}
    return xarray.Dataset(variables, {"t": t, **store.LABELS}, SAID | said)


def _recounted(data: xarray.Dataset) -> xarray.Dataset:
    """A dataset of an earlier version, with steps counted from 1."""
    failed = data["failed"].copy(data=counted(data["failed"].values, data.attrs))
    return data.assign(failed=failed).assign_attrs({COUNTED: 1})


def save(many: Ensemble, path: str | Path, overwrite: bool) -> Path:
    """Write an ensemble to a file that appears complete or not at all, a bounded part at a time."""
    path = store.fresh(path, overwrite)
    new = files.hidden(path)
    data = dataset(many)
    try:
        if path.suffix == ".zarr":
            _save_zarr(data, new)
        else:
            _save_netcdf(data, new)
        files.put(path, new)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem}") from problem
    finally:
        data.close()
        files.remove(new)
    return path


SAVED_AT_ONCE = 1 << 22
"""Numbers of a variable that are copied at a time."""


def _save_zarr(data: xarray.Dataset, path: Path) -> None:
    import zarr

    root = zarr.open_group(path, mode="w")

    def made(name: str, variable: Any, text: bool, attributes: dict[str, str]) -> Any:
        return root.create_array(
            name, shape=variable.shape, dtype="str" if text else variable.dtype, dimension_names=variable.dims,
            attributes=attributes,
        )  # fmt: skip

    _copy(data, made)
    root.attrs.update(data.attrs)
    _publish(root)


def _save_netcdf(data: xarray.Dataset, path: Path) -> None:
    import h5netcdf

    text_type = importlib.import_module("h5py").string_dtype()

    with h5netcdf.File(path, "w") as file:
        file.dimensions = {str(name): size for name, size in data.sizes.items()}

        def made(name: str, variable: Any, text: bool, attributes: dict[str, str]) -> Any:
            new = file.create_variable(name, variable.dims, dtype=text_type if text else variable.dtype)
            new.attrs.update(attributes)
            return new

        _copy(data, made)
        for name, value in data.attrs.items():
            file.attrs[str(name)] = str(value) if isinstance(value, list | bool) else value


def _copy(data: xarray.Dataset, made: Callable[[str, Any, bool, dict[str, str]], Any]) -> None:
    """Every variable into a new one, some bodies at a time."""
    labels = " ".join(str(n) for n in data.coords if data[n].dims == ("body",))
    for name, variable in data.variables.items():
        text = variable.dtype.kind not in "fi"
        attributes = {k: v for k, v in variable.attrs.items() if isinstance(v, str)}
        if name in data.data_vars:
            attributes["coordinates"] = "t" if "time" in variable.dims else labels
        new = made(str(name), variable, text, attributes)
        for where in _blocks(variable):
            new[where] = variable[where].values.astype(object) if text else variable[where].values


def _blocks(variable: Any) -> Iterator[tuple[slice, ...]]:
    """Slices of a variable along its bodies, or along its first dimension."""
    axis = variable.dims.index("body") if "body" in variable.dims else 0
    length = variable.shape[axis]
    step = max(1, SAVED_AT_ONCE * length // max(variable.size, 1))
    for begin in range(0, length, step):
        yield (slice(None),) * axis + (slice(begin, begin + step),)
