"""Trajectories as files: Zarr (appended as a run goes) and NetCDF, opened by xarray.

Variables are named like the attributes of `Trajectory`; units and conventions stand in the attributes.
A store is readable at any moment: `t` is written last, and rows without a time do not count.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _version
from .analysis import observables
from .errors import InputError
from .trajectory import Info, Trajectory

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
UNITS = "consistent units of the user: none are converted"


def checked(path: str | Path) -> Path:
    """The path, if its suffix names a format."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"a trajectory file must end in .zarr or .nc; got {path.name!r}")
    return path


def fresh(path: str | Path, overwrite: bool) -> Path:
    """A path that may be written: free, or to be overwritten on request."""
    path = checked(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another name or say overwrite=True (--overwrite)")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist")
    return path


def attributes(info: Info) -> dict[str, Any]:
    """What a file says about itself."""
    return {
        "format": FORMAT,
        "polhode_version": _version.__version__,
        "units": UNITS,
        "conventions": "R maps body to space; quaternions are scalar first; vectors in the body frame unless _space or spatial",
        **{k: json.dumps(v) for k, v in dataclasses.asdict(info).items()},
    }


def derived(data: Mapping[str, np.ndarray], info: Info) -> dict[str, np.ndarray]:
    """All variables of a file from the primary ones."""
    q, m = data["quaternion"], data["momentum"]
    return {
        **data,
        "matrix": observables.matrices(q),
        "omega": observables.angular_velocity(m, np.array(info.inertia)),
        "spatial_momentum": observables.to_space(q, m),
    }


class Writer:
    """Appends to a Zarr store; a NetCDF file is made of it at the end."""

    def __init__(self, path: Path, info: Info) -> None:
        import zarr

        self.path, self.info = path, info
        self.folder = path if path.suffix == ".zarr" else path.with_name(path.name + ".partial.zarr")
        _remove(self.folder)
        self.root = zarr.open_group(self.folder, mode="w")
        self.root.attrs.update(attributes(dataclasses.replace(info, status="running")))
        for name, (dims, text) in VARIABLES.items():
            shape = tuple(SIZES[d] for d in dims[1:])
            array = self.root.create_array(
                name, shape=(0, *shape), chunks=(ROWS_PER_CHUNK, *shape), dtype="f8",
                fill_value=np.nan, dimension_names=dims,
            )  # fmt: skip
            array.attrs.update({"long_name": text})
        for name, labels in LABELS.items():
            self.root.create_array(name, data=np.array([ord(x) for x in labels], dtype="i4"), dimension_names=(name,))
        self.rows = 0

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows, the times last."""
        everything = derived(data, self.info)
        end = self.rows + len(data["t"])
        for name in VARIABLES:
            array = self.root[name]
            array.resize((end, *array.shape[1:]))
            array[self.rows : end] = everything[name]
        self.rows = end

    def close(self, **changes: Any) -> Path:
        """Say how the run ended; returns the file."""
        self.info = dataclasses.replace(self.info, **changes)
        self.root.attrs.update(attributes(self.info))
        if self.folder != self.path:
            save(load(self.folder), self.path, overwrite=True)
            _remove(self.folder)
        return self.path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


def dataset(trajectory: Trajectory) -> xarray.Dataset:
    """A trajectory as an xarray Dataset."""
    import xarray

    variables = {
        name: xarray.Variable(dims, getattr(trajectory, name), {"long_name": text})
        for name, (dims, text) in VARIABLES.items()
    }
    t = variables.pop("t")
    return xarray.Dataset(variables, {"t": t, **LABELS}, attributes(trajectory.info))


def save(trajectory: Trajectory, path: str | Path, overwrite: bool = False) -> Path:
    """Write a trajectory; the file appears whole or not at all."""
    path = fresh(path, overwrite)
    new = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        if path.suffix == ".nc":
            dataset(trajectory).to_netcdf(new, engine="h5netcdf")
        else:
            writer = Writer(new, trajectory.info)
            writer.append({name: getattr(trajectory, name) for name in ("t", "quaternion", "momentum", "energy")})
            writer.close(status=trajectory.status)
        _remove(path)
        new.rename(path)
    finally:
        _remove(new)
    return path


class _Lazy(Mapping[str, np.ndarray]):
    """Variables of a file, read when asked for; rows without a time are left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        t = self._read("t")
        bad = np.flatnonzero(np.isnan(t))
        self.rows = int(bad[0]) if bad.size else len(t)

    def _read(self, name: str) -> np.ndarray:
        if self.path.suffix == ".zarr":
            import zarr

            return np.asarray(zarr.open_group(self.path, mode="r")[name][...])
        import h5netcdf

        with h5netcdf.File(self.path, "r") as file:
            return np.asarray(file[name][...])

    def __getitem__(self, name: str) -> np.ndarray:
        return self._read(name)[: self.rows]

    def __iter__(self) -> Iterator[str]:
        return iter(VARIABLES)

    def __len__(self) -> int:
        return len(VARIABLES)


def _attributes_of(path: Path) -> dict[str, Any]:
    if path.suffix == ".zarr":
        import zarr

        return dict(zarr.open_group(path, mode="r").attrs)
    import h5netcdf

    with h5netcdf.File(path, "r") as file:
        return dict(file.attrs)


def load(path: str | Path) -> Trajectory:
    """Open a saved trajectory, also one of an interrupted run. Nothing in a file is executed."""
    path = checked(path)
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        said = _attributes_of(path)
    except Exception as problem:
        raise InputError(f"{path} cannot be read as a trajectory: {problem}") from problem
    if said.get("format") != FORMAT:
        raise InputError(f"{path} is not a polhode trajectory (format {said.get('format')!r}, expected {FORMAT!r})")
    names = {f.name for f in dataclasses.fields(Info)}
    values = {k: json.loads(v) for k, v in said.items() if k in names}
    values["inertia"] = tuple(map(tuple, values["inertia"]))
    return Trajectory(_Lazy(path), Info(**values))
