"""Trajectories as files: Zarr (appended as a run goes) and NetCDF, opened by xarray.

Variables are named like the attributes of `Trajectory`; units and conventions stand in the attributes.
A store is readable at any moment: rows count only once the description of the whole store, one file that
is replaced in one go, says so.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _version
from .analysis import observables
from .errors import InputError
from .trajectory import PRIMARY, Info, Trajectory

if TYPE_CHECKING:
    import xarray

SUFFIXES = (".zarr", ".nc")
FORMAT = "polhode trajectory 1"
ROWS_PER_CHUNK = 16384

VARIABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "quaternion": (("time", "component"), "attitude, body to space, unit quaternion, scalar first (w, x, y, z)"),
    "matrix": (("time", "row", "column"), "attitude, body to space, rotation matrix"),
    "momentum": (("time", "axis"), "angular momentum in the body frame"),
    "omega": (("time", "axis"), "angular velocity in the body frame"),
    "spatial_momentum": (("time", "axis"), "angular momentum in the space frame"),
    "energy": (("time",), "kinetic plus potential energy (kinetic where there is no potential)"),
    "t": (("time",), "time"),
}
SIZES = {"component": 4, "row": 3, "column": 3, "axis": 3}
LABELS = {"component": ["w", "x", "y", "z"], "axis": ["x", "y", "z"]}
SAID_OF_ALL = {
    "format": FORMAT,
    "polhode_version": _version.__version__,
    "units": "consistent units of the user: none are converted",
    "conventions": "R maps body to space; quaternions are scalar first; vectors are in the body frame unless the "
    "name says space or spatial",
}


# --- what a file says -------------------------------------------------------------------------------


def attributes(info: Info) -> dict[str, Any]:
    """What a file says about itself: strings, numbers, and the inertia tensor as nine numbers, row by row."""
    said = {k: v for k, v in dataclasses.asdict(info).items() if v is not None}
    return SAID_OF_ALL | said | {"inertia": [x for row in info.inertia for x in row]}


def _info(said: Mapping[str, Any]) -> Info:
    """The same, read back."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Info):
        if field.name in said:
            value = said[field.name]
            values[field.name] = value.item() if isinstance(value, np.generic) else value
    rows = np.array(values["inertia"], dtype=float).reshape(3, 3).tolist()
    values["inertia"] = tuple(tuple(row) for row in rows)
    return Info(**values)


def _described(name: str) -> dict[str, str]:
    """Attributes of a variable; `coordinates` makes readers put the times beside it."""
    text = {"long_name": VARIABLES[name][1]}
    return text if name == "t" else text | {"coordinates": "t"}


def derived(data: Mapping[str, np.ndarray], info: Info) -> dict[str, np.ndarray]:
    """All variables of a file from the primary ones."""
    q, m = data["quaternion"], data["momentum"]
    return {
        **data,
        "matrix": observables.matrices(q),
        "omega": observables.angular_velocity(m, np.array(info.inertia)),
        "spatial_momentum": observables.to_space(q, m),
    }


def dataset(trajectory: Trajectory) -> xarray.Dataset:
    """A trajectory as an xarray Dataset."""
    import xarray

    variables = {
        name: xarray.Variable(dims, getattr(trajectory, name), {"long_name": text})
        for name, (dims, text) in VARIABLES.items()
    }
    t = variables.pop("t")
    return xarray.Dataset(variables, {"t": t, **LABELS}, attributes(trajectory.info))


# --- paths ------------------------------------------------------------------------------------------


def checked(path: str | Path) -> Path:
    """The path, if its suffix names a format."""
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"a trajectory file must be a path that ends in .zarr or .nc; got {path!r}") from None
    if path.suffix not in SUFFIXES:
        raise InputError(f"a trajectory file must end in .zarr or .nc; got {path.name!r}")
    if path.suffix == ".nc" and importlib.util.find_spec("h5py") is None:
        raise InputError(f"{path.name} needs the package h5py, which is not installed; use a name that ends in .zarr")
    return path


def staging(path: Path) -> Path:
    """Where a run writes its rows: a Zarr store, of which a NetCDF file is made at the end."""
    return path if path.suffix == ".zarr" else path.with_name(path.name + ".partial.zarr")


def fresh(path: str | Path, overwrite: bool) -> Path:
    """A path that may be written: free, or to be overwritten on request."""
    path = checked(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first")
    if overwrite:
        return path
    if os.path.lexists(path):
        raise InputError(f"{path} exists; choose another name or say overwrite=True (--overwrite)")
    if os.path.lexists(staging(path)):
        raise InputError(
            f"{staging(path)} holds an unfinished run; load it, choose another name or say overwrite=True (--overwrite)"
        )
    return path


def _hidden(path: Path) -> Path:
    """Where a file is made before it takes its place."""
    return path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, new: Path) -> None:
    """Put the new file or folder in the place of the old one, which is removed last."""
    if not os.path.lexists(path) or (path.is_file() and new.is_file()):
        new.replace(path)
        return
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    path.rename(old)
    new.rename(path)
    _remove(old)


# --- writing ----------------------------------------------------------------------------------------


class Target(Protocol):
    """A file that takes primary variables block by block."""

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""

    def close(self, info: Info) -> None:
        """Say how the trajectory was made."""


class ZarrTarget:
    """A Zarr store; what is not described in its consolidated metadata does not exist for its readers."""

    def __init__(self, path: Path, info: Info) -> None:
        import zarr

        self.rows, self.info = 0, info
        self.root = zarr.open_group(path, mode="w")
        for name, (dims, _) in VARIABLES.items():
            shape = tuple(SIZES[d] for d in dims[1:])
            self.root.create_array(
                name, shape=(0, *shape), chunks=(ROWS_PER_CHUNK, *shape), dtype="f8",
                fill_value=np.nan, dimension_names=dims, attributes=_described(name),
            )  # fmt: skip
        for name, labels in LABELS.items():
            array = self.root.create_array(name, shape=(len(labels),), dtype="str", dimension_names=(name,))
            array[:] = np.array(labels, dtype=object)
        self.close(dataclasses.replace(info, status="running"))

    def move(self, path: Path) -> None:
        """Go on at another path, in the place of what is there."""
        import zarr

        _replace(path, Path(self.root.store.root))
        self.root = zarr.open_group(path, mode="r+", use_consolidated=False)

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows, then describe them."""
        everything = derived(data, self.info)
        end = self.rows + len(data["t"])
        for name in VARIABLES:
            array = self.root[name]
            array.resize((end, *array.shape[1:]))
            array[self.rows : end] = everything[name]
        self._publish()
        self.rows = end

    def close(self, info: Info) -> None:
        """Say how the trajectory was made."""
        for name in VARIABLES:
            array = self.root[name]
            if array.shape[0] != self.rows:
                array.resize((self.rows, *array.shape[1:]))
        self._publish().attrs.update(attributes(info))

    def _publish(self) -> Any:
        """Write the description of all arrays into the store's root, in one go."""
        import zarr

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            return zarr.consolidate_metadata(self.root.store)


class NetcdfTarget:
    """A NetCDF file of a known number of rows."""

    def __init__(self, path: Path, info: Info, rows: int) -> None:
        import h5netcdf

        self.rows, self.info = 0, info
        self.file = h5netcdf.File(path, "w")
        self.file.dimensions = {"time": rows, **SIZES}
        for name, (dims, _) in VARIABLES.items():
            self.file.create_variable(name, dims, dtype="f8").attrs.update(_described(name))
        text = importlib.import_module("h5py").string_dtype()
        for name, labels in LABELS.items():
            self.file.create_variable(name, (name,), dtype=text)[:] = np.array(labels, dtype=object)

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""
        end = self.rows + len(data["t"])
        for name, values in derived(data, self.info).items():
            self.file[name][self.rows : end] = values
        self.rows = end

    def close(self, info: Info) -> None:
        """Say how the trajectory was made."""
        for name, value in attributes(info).items():
            self.file.attrs[name] = value
        self.file.close()


def _blocks(data: Mapping[str, Any], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Primary variables, a bounded number of rows at a time."""
    for start in range(0, rows, ROWS_PER_CHUNK):
        stop = min(start + ROWS_PER_CHUNK, rows)
        yield {name: np.asarray(data[name][start:stop], dtype=float) for name in PRIMARY}


def _write(data: Mapping[str, Any], rows: int, info: Info, path: Path) -> Path:
    """Write a whole trajectory; the file appears complete or not at all."""
    new = _hidden(path)
    try:
        target: Target = NetcdfTarget(new, info, rows) if path.suffix == ".nc" else ZarrTarget(new, info)
        for block in _blocks(data, rows):
            target.append(block)
        target.close(info)
        _replace(path, new)
    finally:
        _remove(new)
    return path


def save(trajectory: Trajectory, path: str | Path, overwrite: bool = False) -> Path:
    """Write a trajectory; the file appears complete or not at all."""
    path = fresh(path, overwrite)
    data = {name: getattr(trajectory, name) for name in PRIMARY}
    try:
        return _write(data, len(trajectory), trajectory.info, path)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem}") from problem


class Writer:
    """Writes a run as it goes."""

    def __init__(self, path: Path, info: Info) -> None:
        self.path, self.info, self.folder = path, info, staging(path)
        self.target = ZarrTarget(_hidden(self.folder), info)
        self.target.move(self.folder)

    @property
    def rows(self) -> int:
        """Rows that are safe on disk."""
        return self.target.rows

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""
        self.target.append(data)

    def close(self, **changes: Any) -> Path:
        """Say how the run ended; returns the file."""
        info = dataclasses.replace(self.info, **changes)
        self.target.close(info)
        if self.folder != self.path:
            _write({name: self.target.root[name] for name in PRIMARY}, self.rows, info, self.path)
            _remove(self.folder)
        return self.path


# --- reading ----------------------------------------------------------------------------------------


class _Arrays(Mapping[str, np.ndarray]):
    """Variables of a file, read when asked for: the rows it had when it was opened."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.rows = path, rows

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            if self.path.suffix == ".zarr":
                import zarr

                return np.asarray(zarr.open_group(self.path, mode="r")[name][: self.rows])
            import h5netcdf

            with h5netcdf.File(self.path, "r") as file:
                return np.asarray(file[name][: self.rows])
        except Exception as problem:
            raise InputError(f"{self.path} is damaged: {name} cannot be read ({_line(problem)})") from problem

    def __iter__(self) -> Iterator[str]:
        return iter(VARIABLES)

    def __len__(self) -> int:
        return len(VARIABLES)


def _line(problem: BaseException) -> str:
    """Kind and text of an exception, on one line."""
    return " ".join(f"{type(problem).__name__} {problem}".split())


def _opened(path: Path) -> tuple[dict[str, Any], int]:
    """Attributes of a file, and how many rows it has."""
    if path.suffix == ".zarr":
        import zarr

        group = zarr.open_group(path, mode="r")
        return dict(group.attrs), group["t"].shape[0] if "t" in group else 0
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        return dict(file.attrs), file["t"].shape[0] if "t" in file.variables else 0


def load(path: str | Path) -> Any:
    """Open a saved Trajectory or Ensemble, also of an interrupted run. Nothing in a file is executed."""
    path = checked(path)
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        said, rows = _opened(path)
    except Exception as problem:
        raise InputError(f"{path} cannot be read as a trajectory: {_line(problem)}") from problem
    from . import crowd_store

    if said.get("format") == crowd_store.FORMAT:
        return crowd_store.StoredEnsemble(path)
    if said.get("format") != FORMAT:
        raise InputError(f"{path} is not a polhode trajectory (format {said.get('format')!r}, expected {FORMAT!r})")
    try:
        info = _info(said)
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"{path} is damaged: its attributes are incomplete ({_line(problem)})") from problem
    return Trajectory(_Arrays(path, rows), info)
