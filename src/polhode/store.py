"""Trajectories as files: Zarr (appended as a run goes) and NetCDF, opened by xarray.

Variables are named like the attributes of `Trajectory`; units and conventions stand in the attributes.
A store is readable at any moment: rows count only once the description of the whole store, one file that
is replaced in one go, says so; and the same file says how far the run is that wrote them, so that both agree.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import _version, files, shapes
from .analysis import observables
from .errors import InputError
from .inputs import file_path, flag
from .trajectory import PRIMARY, Info, Trajectory

if TYPE_CHECKING:
    import xarray

SUFFIXES = (".zarr", ".nc")
FORMAT = "polhode trajectory 1"
ROWS_PER_CHUNK = 16384

SYNC_SECONDS = 5.0
"""So often, and at the end, what was written is brought from the memory of the operating system to the disk."""

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "quaternion": (("time", "component"), "1", "attitude, body to space, unit quaternion, scalar first (w, x, y, z)"),
    "matrix": (("time", "row", "column"), "1", "attitude, body to space, rotation matrix"),
    "momentum": (("time", "axis"), "M L^2 T^-1", "angular momentum in the body frame"),
    "omega": (("time", "axis"), "rad T^-1", "angular velocity in the body frame"),
    "spatial_momentum": (("time", "axis"), "M L^2 T^-1", "angular momentum in the space frame"),
    "energy": (("time",), "M L^2 T^-2", "kinetic plus potential energy (kinetic where there is no potential)"),
    "t": (("time",), "T", "time"),
}
"""Dimensions, unit and meaning of every variable."""

KEPT = ("begun", "software")
"""Attributes beside those of `Info` that a copy says too; where the run stood is no part of a copy."""

SIZES = {"component": 4, "row": 3, "column": 3, "axis": 3}
LABELS = {"component": ["w", "x", "y", "z"], "axis": ["x", "y", "z"]}
SAID_OF_ALL = {
    "format": FORMAT,
    "polhode_version": _version.__version__,
    "units": "M, L, T are the user's consistent units of mass, length and time: none are converted",
    "conventions": "R maps body to space; quaternions are scalar first; vectors are in the body frame unless the "
    "name says space or spatial",
}


# --- what a file says -------------------------------------------------------------------------------


def attributes(info: Info) -> dict[str, Any]:
    """What a file says about itself: strings, numbers, and the inertia tensor as nine numbers, row by row."""
    said = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    said |= {"inertia": [x for row in info.inertia for x in row], "looks": shapes.written(said.pop("shapes"))}
    return SAID_OF_ALL | {name: value for name, value in said.items() if value is not None}


def _info(said: Mapping[str, Any]) -> Info:
    """The same, read back."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Info):
        if field.name in said:
            value = said[field.name]
            values[field.name] = value.item() if isinstance(value, np.generic) else value
    rows = np.array(values["inertia"], dtype=float).reshape(3, 3).tolist()
    values["inertia"] = tuple(tuple(row) for row in rows)
    return Info(**values, shapes=shapes.read(said.get("looks", "")))


def _described(name: str) -> dict[str, str]:
    """Attributes of a variable; `coordinates` makes readers put the times beside it."""
    return _labelled(name) if name == "t" else _labelled(name) | {"coordinates": "t"}


def _labelled(name: str) -> dict[str, str]:
    return {"long_name": VARIABLES[name][2], "units": VARIABLES[name][1]}


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
        name: xarray.Variable(dims, getattr(trajectory, name), _labelled(name))
        for name, (dims, *_) in VARIABLES.items()
    }
    t = variables.pop("t")
    return xarray.Dataset(variables, {"t": t, **LABELS}, attributes(trajectory.info))


# --- paths ------------------------------------------------------------------------------------------


def checked(path: str | Path) -> Path:
    """The path, if its suffix names a format."""
    path = file_path(path, "a trajectory file must be a path that ends in .zarr or .nc")
    if path.suffix not in SUFFIXES:
        raise InputError(f"a trajectory file must end in .zarr or .nc; got {path.name!r}")
    if path.suffix == ".nc" and importlib.util.find_spec("h5py") is None:
        raise InputError(f"{path.name} needs the package h5py, which is not installed; use a name that ends in .zarr")
    return path


def staging(path: Path) -> Path:
    """Where a run writes its rows: a Zarr store, of which a NetCDF file is made at the end."""
    return path if path.suffix == ".zarr" else path.with_name(path.name + ".partial.zarr")


def folder_checked(path: str | Path) -> Path:
    """The path, if its suffix names a format and its folder is there."""
    path = checked(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first")
    return path


def fresh(path: str | Path, overwrite: bool) -> Path:
    """A path that may be written: free, or to be overwritten on request."""
    path = folder_checked(path)
    if flag("overwrite", overwrite):
        if staging(path).is_dir():
            files.released(files.locked(staging(path)))
        return path
    if os.path.lexists(path):
        raise InputError(f"{path} exists; choose another name or say overwrite=True (--overwrite){_or_resume(path)}")
    if os.path.lexists(staging(path)):
        raise InputError(
            f"{staging(path)} holds an unfinished run; load it, choose another name or say overwrite=True "
            f"(--overwrite), or go on with it by resume=True (--resume)"
        )
    return path


def _or_resume(path: Path) -> str:
    """What else can be done with a file: a run that did not come to its end can be continued."""
    try:
        unfinished = load(path).status in ("running", "interrupted")
    except InputError:
        return ""
    return ", or go on with it by resume=True (--resume)" if unfinished else ""


def standing(path: Path) -> Path | None:
    """The file of a run to this path that is there already, finished or not."""
    return next((there for there in (staging(path), path) if os.path.lexists(there)), None)


# --- writing ----------------------------------------------------------------------------------------


class Target(Protocol):
    """A file that takes primary variables block by block."""

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""

    def close(self, info: Info) -> None:
        """Say how the trajectory was made."""


class ZarrTarget:
    """A Zarr store; what is not described in its consolidated metadata does not exist for its readers.

    That description, `zarr.json` of the root, also holds the attributes: what is `said` of the store beside `info` (how
    the run was begun, where it stands) always belongs to the rows it describes.
    """

    def __init__(self, path: Path, info: Info, said: Mapping[str, str] | None = None) -> None:
        import zarr

        self.rows, self.info, self.said = 0, dataclasses.replace(info, status="running"), dict(said or {})
        self.root = zarr.open_group(path, mode="w")
        for name, (dims, *_) in VARIABLES.items():
            shape = tuple(SIZES[d] for d in dims[1:])
            self.root.create_array(
                name, shape=(0, *shape), chunks=(ROWS_PER_CHUNK, *shape), dtype="f8",
                fill_value=np.nan, dimension_names=dims, attributes=_described(name),
            )  # fmt: skip
        for name, labels in LABELS.items():
            array = self.root.create_array(name, shape=(len(labels),), dtype="str", dimension_names=(name,))
            array[:] = np.array(labels, dtype=object)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(self.root.store)
        self._start()
        self._publish(0, self.info, self.said)

    @classmethod
    def reopened(cls, path: Path, rows: int, info: Info, said: Mapping[str, str]) -> ZarrTarget:
        """The store at a path cut behind some of its rows, to be appended to."""
        import zarr

        target = cls.__new__(cls)
        target.rows, target.info, target.said = rows, info, dict(said)
        target.root = zarr.open_group(path, mode="r+", use_consolidated=False)
        target._start()
        target._publish(rows, info, target.said)  # first: from here on nobody reads what is removed next
        for name in VARIABLES:
            described = target.description["consolidated_metadata"]["metadata"][name]
            files.write_whole(path / name / "zarr.json", json.dumps(described, indent=2), durable=False)
            for chunk in (path / name).glob("c/*"):
                if chunk.name.isdigit() and int(chunk.name) * ROWS_PER_CHUNK >= rows:
                    files.remove(chunk)
        for left in path.rglob("*.partial"):
            left.unlink(missing_ok=True)
        return target

    def _start(self) -> None:
        self.description = json.loads((self.folder / "zarr.json").read_bytes())
        self.synced, self.synced_rows = time.monotonic(), self.rows

    @property
    def folder(self) -> Path:
        """Where the store is."""
        return Path(self.root.store.root)

    def move(self, path: Path, replace: bool = True) -> None:
        """Go on at another path, in the place of what is there."""
        import zarr

        if replace:
            files.put(path, self.folder)
        else:
            self.folder.rename(path)
        self.root = zarr.open_group(path, mode="r+", use_consolidated=False)

    def append(self, data: Mapping[str, np.ndarray], **said: str) -> None:
        """Write these rows, then describe them, and with them what is said from now on."""
        everything = derived(data, self.info)
        end = self.rows + len(data["t"])
        for name in VARIABLES if end > self.rows else ():
            array = self.root[name]
            array.resize((end, *array.shape[1:]))
            array[self.rows : end] = everything[name]
        self._publish(end, self.info, self.said | said, time.monotonic() - self.synced >= SYNC_SECONDS)

    def close(self, info: Info) -> None:
        """Say how the trajectory was made."""
        for name in VARIABLES:
            array = self.root[name]
            if array.shape[0] != self.rows:
                array.resize((self.rows, *array.shape[1:]))
        self._publish(self.rows, info, self.said, sync=True)

    def _publish(self, rows: int, info: Info, said: dict[str, str], sync: bool = False) -> None:
        """Write the description of all arrays and the attributes into the store's root, in one go.

        Only when that is done they hold here too: after a full disk the old rows keep the words that belong to them.
        """
        for name in VARIABLES:
            self.description["consolidated_metadata"]["metadata"][name]["shape"][0] = rows
        self.description["attributes"] = attributes(info) | said
        if sync:
            files.sync(self._since(rows))
        files.write_whole(self.folder / "zarr.json", json.dumps(self.description, indent=2), sync)
        self.rows, self.said = rows, said
        if sync:
            files.sync([self.folder])
            self.synced, self.synced_rows = time.monotonic(), rows

    def _since(self, rows: int) -> Iterator[Path]:
        """The files and folders changed since they were last brought to the disk."""
        for name in VARIABLES:
            for i in range(self.synced_rows // ROWS_PER_CHUNK, -(-rows // ROWS_PER_CHUNK)):
                chunk = self.folder / name / "c" / str(i)
                yield from (*chunk.rglob("*"), chunk)
            yield from (self.folder / name / "zarr.json", self.folder / name / "c", self.folder / name)


class NetcdfTarget:
    """A NetCDF file of a known number of rows."""

    def __init__(self, path: Path, info: Info, rows: int, said: Mapping[str, str] | None = None) -> None:
        import h5netcdf

        self.path, self.rows, self.info, self.said = path, 0, info, dict(said or {})
        self.file = h5netcdf.File(path, "w")
        self.file.dimensions = {"time": rows, **SIZES}
        for name, (dims, *_) in VARIABLES.items():
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
        for name, value in (attributes(info) | self.said).items():
            self.file.attrs[name] = value
        self.file.close()
        files.sync([self.path])


def _blocks(data: Mapping[str, Any], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Primary variables, a bounded number of rows at a time."""
    for start in range(0, rows, ROWS_PER_CHUNK):
        stop = min(start + ROWS_PER_CHUNK, rows)
        yield {name: np.asarray(data[name][start:stop], dtype=float) for name in PRIMARY}


def _write(data: Mapping[str, Any], rows: int, info: Info, path: Path, said: Mapping[str, str] | None = None) -> Path:
    """Write a whole trajectory; the file appears complete or not at all."""
    new = files.hidden(path)
    try:
        target: Target = NetcdfTarget(new, info, rows, said) if path.suffix == ".nc" else ZarrTarget(new, info, said)
        for block in _blocks(data, rows):
            target.append(block)
        target.close(info)
        files.put(path, new)
    finally:
        files.remove(new)
    return path


def save(
    trajectory: Trajectory, path: str | Path, overwrite: bool = False, said: Mapping[str, str] | None = None
) -> Path:
    """Write a trajectory, and what else is `said` of it; the file appears complete or not at all.

    One that was loaded is copied with bounded memory.
    """
    path, source = fresh(path, overwrite), trajectory.stored
    try:
        if not isinstance(source, _Arrays):
            data = {name: getattr(trajectory, name) for name in PRIMARY}
            return _write(data, len(trajectory), trajectory.info, path, said)
        with _sliced(source.path) as slices:
            return _write(slices, source.rows, trajectory.info, path, said)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem}") from problem


def export(source: str | Path, path: str | Path, overwrite: bool = False) -> Path:
    """Copy a file, also that of an interrupted run, into a new one of either format, with bounded memory."""
    many = _ensemble(source)
    whole, said = read(source) if many is None else (many, {})
    if Path(path).resolve() == Path(source).resolve():
        raise InputError(f"{path} cannot be exported to itself; choose another name")
    if many is not None:
        return Path(many.save(path, overwrite))
    return save(whole, path, overwrite, {name: said[name] for name in KEPT if name in said})


class Writer:
    """Writes a run as it goes, and keeps others from writing the same file."""

    def __init__(self, path: Path, target: ZarrTarget, held: int | None) -> None:
        self.path, self.target, self.held = path, target, held

    @classmethod
    def begun(cls, path: Path, info: Info, said: Mapping[str, str], overwrite: bool = False) -> Writer:
        """Begin a file, in the place of what is there only on request."""
        folder = staging(path)
        for place in {folder, path}:
            files.tidy(place)
        held = None
        try:
            target = ZarrTarget(files.hidden(folder), info, said)
            held = files.locked(target.folder)
            target.move(folder, replace=overwrite)
        except BaseException:
            files.released(held)
            files.remove(files.hidden(folder))
            raise
        return cls(path, target, held)

    @classmethod
    def continued(cls, path: Path, rows: int, info: Info, said: Mapping[str, str], held: int | None) -> Writer:
        """Go on with a file behind some of its rows; of a NetCDF file, with a copy that replaces it at the end."""
        folder = staging(path)
        for place in {folder, path}:
            files.tidy(place)
        if folder.exists():
            return cls(path, ZarrTarget.reopened(folder, rows, info, said), held)
        files.released(held)
        with _sliced(path) as data:
            _write(data, rows, info, folder, said)
        held = files.locked(folder)
        return cls(path, ZarrTarget.reopened(folder, rows, info, said), held)

    @property
    def folder(self) -> Path:
        """Where the rows are until the run is done."""
        return self.target.folder

    @property
    def info(self) -> Info:
        """How the run is made."""
        return self.target.info

    @property
    def rows(self) -> int:
        """Rows that are safe on disk."""
        return self.target.rows

    def append(self, data: Mapping[str, np.ndarray], said: Mapping[str, str], **changes: Any) -> None:
        """Write these rows, and in the same moment what is said of them."""
        before, self.target.info = self.info, dataclasses.replace(self.info, **changes)
        try:
            self.target.append(data, **said)
        except BaseException:
            self.target.info = before
            raise

    def close(self, **changes: Any) -> Path:
        """Say how the run ended; returns the file."""
        info = dataclasses.replace(self.info, **changes)
        self.target.close(info)
        if self.folder != self.path:
            _write({name: self.target.root[name] for name in PRIMARY}, self.rows, info, self.path, self.target.said)
            files.remove(self.folder)
        return self.path

    def release(self) -> None:
        """Let others write the file."""
        files.released(self.held)
        self.held = None


# --- reading ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _sliced(path: Path) -> Iterator[Mapping[str, Any]]:
    """Variables of a file that are read slice by slice."""
    if path.suffix == ".zarr":
        import zarr

        group = zarr.open_group(path, mode="r")
        yield {name: group[name] for name in PRIMARY}
        return
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        yield {name: file[name] for name in PRIMARY}


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
    many = _ensemble(path)
    return read(path)[0] if many is None else many


def _ensemble(path: str | Path) -> Any:
    """A saved ensemble; None where a file holds something else."""
    from . import crowd_store

    return crowd_store.loaded(checked(path))


def read(path: str | Path) -> tuple[Trajectory, dict[str, Any]]:
    """A saved trajectory, and all attributes of its file."""
    path = checked(path)
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        said, rows = _opened(path)
    except Exception as problem:
        raise InputError(f"{path} cannot be read as a trajectory: {_line(problem)}") from problem
    if said.get("format") != FORMAT:
        raise InputError(f"{path} is not a polhode trajectory (format {said.get('format')!r}, expected {FORMAT!r})")
    try:
        info = _info(said)
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"{path} is damaged: its attributes are incomplete ({_line(problem)})") from problem
    return Trajectory(_Arrays(path, rows), info), said
