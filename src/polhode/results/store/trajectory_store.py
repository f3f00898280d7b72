"""Trajectories as files: Zarr (appended to during a run) and NetCDF, both readable with xarray.

Variables are named like the attributes of `Trajectory`; units and conventions are in the attributes.
A store is readable at any time: rows exist only once the description of the whole store, a single file that is
replaced atomically, includes them. The same file holds the checkpoint of the run, so that the two always agree.
Only one process at a time writes a file: it holds the lock (`atomic.locked`) from before the file is created until it
is done.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..._extras import needed
from ...errors import InputError
from ...physics import problem_data
from ...physics.problem import Problem
from ...physics.validate import file_path, flag
from ..trajectory import PRIMARY, STATES, Info, Trajectory
from . import atomic, integrity, netcdf, stored_control, stored_events
from .file_format import (
    FORMAT,
    ROWS_PER_CHUNK,
    STATE,
    WITHOUT_CHECKSUMS,
    States,
    info_of_attributes,
    primary,
    sizes,
    states_of,
    variables,
)
from .integrity import Damage, line
from .targets import NetcdfTarget, Target, ZarrTarget

SUFFIXES = (".zarr", ".nc")

KEPT = ("begun", "software")
"""Attributes beside those of `Info` that are copied; a copy has no checkpoint."""


# --- paths ------------------------------------------------------------------------------------------


def checked(path: str | Path) -> Path:
    """Return the path if its suffix is .zarr or .nc."""
    path = file_path(path, "a trajectory file must be a path that ends in .zarr or .nc")
    if path.suffix not in SUFFIXES:
        raise InputError(f"a trajectory file must end in .zarr or .nc; got {path.name!r}")
    needed("zarr" if path.suffix == ".zarr" else "h5netcdf")
    return path


def staging_path(path: Path) -> Path:
    """Path of the Zarr store to which a run writes its rows; a NetCDF file is made from it at the end."""
    return path if path.suffix == ".zarr" else path.with_name(path.name + atomic.PARTIAL)


def folder_checked(path: str | Path) -> Path:
    """Return the path if its suffix is .zarr or .nc and its folder exists."""
    path = checked(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    return path


def new_path(path: str | Path, overwrite: bool) -> Path:
    """Return a path that may be written: nothing is there, or it may be overwritten."""
    path = folder_checked(path)
    if flag("overwrite", overwrite):
        for there in {path, staging_path(path)}:
            _check_ours(there)
        return path
    if os.path.lexists(path):
        raise InputError(f"{path} exists; choose another name or give overwrite=True (--overwrite){_or_resume(path)}")
    if os.path.lexists(staging_path(path)):
        raise InputError(
            f"{staging_path(path)} holds an unfinished run; load it, choose another name or give overwrite=True "
            "(--overwrite), or continue it with resume=True (--resume)"
        )
    return path


def _check_ours(path: Path) -> None:
    """Refuse to replace a folder unless it is empty or a store of this library, damaged or not."""
    if not path.is_dir() or path.is_symlink() or not any(path.iterdir()):
        return
    with contextlib.suppress(integrity.NotAStore):
        if b'"polhode ' in integrity.description_text(path):
            return
    if all((path / name / "zarr.json").is_file() for name in ("t", "quaternion", "momentum")):
        return
    raise InputError(
        f"{path} is a folder that is not a store of this library, so it is not replaced; choose another name, or "
        "remove it yourself"
    )


@contextlib.contextmanager
def writing(path: str | Path, overwrite: bool) -> Iterator[Path]:
    """Lock a path, check that it may be written, and hold the lock until the end of the block."""
    path = folder_checked(path)
    with atomic.writing(path):
        yield new_path(path, overwrite)


@contextlib.contextmanager
def reserved(path: str | Path | None) -> Iterator[None]:
    """Hold the lock of a file, if a path is given, during a run that is saved at its end."""
    with contextlib.ExitStack() as held:
        if path is not None:
            try:
                held.enter_context(atomic.writing(folder_checked(path), at_the_end=True))
            except OSError as fault:
                raise InputError(f"{path} cannot be written: {fault.strerror or fault}") from fault
        yield


def _or_resume(path: Path) -> str:
    """Text for an error message: an unfinished run can be continued."""
    try:
        unfinished = load(path).status in ("running", "interrupted")
    except InputError:
        return ""
    return ", or continue it with resume=True (--resume)" if unfinished else ""


def existing(path: Path) -> Path | None:
    """Existing file of a run to this path, finished or not; None if there is none."""
    return next((there for there in (staging_path(path), path) if os.path.lexists(there)), None)


# --- writing ----------------------------------------------------------------------------------------


def _blocks(data: Mapping[str, Any], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Iterate over primary variables in memory, a bounded number of rows at a time."""
    for start in range(0, rows, ROWS_PER_CHUNK):
        stop = min(start + ROWS_PER_CHUNK, rows)
        yield {name: np.asarray(values[start:stop], dtype=float) for name, values in data.items()}


def _write(
    blocks: Iterator[Mapping[str, np.ndarray]],
    rows: int,
    info: Info,
    path: Path,
    attrs: Mapping[str, str] | None = None,
) -> Target:
    """Write a whole trajectory. The file appears complete or not at all; NetCDF is first read back and verified."""
    new = atomic.hidden(path)
    try:
        target: Target = NetcdfTarget(new, info, rows, attrs) if path.suffix == ".nc" else ZarrTarget(new, info, attrs)
        try:
            for block in blocks:
                target.append(block)
            target.close(info)
        finally:
            target.release()
        if path.suffix == ".nc":
            stored = read(new)[0].stored
            for _ in stored.blocks(stored):
                pass
        atomic.replace(path, new)
        atomic.sync([path.parent])
    finally:
        atomic.discard(new)
    return target


def save(
    trajectory: Trajectory, path: str | Path, overwrite: bool = False, attrs: Mapping[str, str] | None = None
) -> Path:
    """Write a trajectory and the further attributes `attrs`; the file appears complete or not at all.

    A trajectory in a file is copied with bounded memory.
    """
    try:
        with writing(path, overwrite) as path:
            source = trajectory.stored
            if isinstance(source, Stored):
                blocks, rows = source.blocks(source.primary), source.rows
                held = {name: str(source.attrs[name]) for name in HELD if name in source.attrs}
            else:
                data = {name: getattr(trajectory, name) for name in PRIMARY}
                data |= {STATE + name: trajectory.states[name] for name, _ in trajectory.info.states}
                blocks, rows = _blocks(data, len(trajectory)), len(trajectory)
                held = problem_attribute(trajectory.problem) | stored_control.attribute_of(trajectory)
            held |= stored_events.attribute(trajectory)
            _write(blocks, rows, trajectory.info, path, held | dict(attrs or {}))
            if staging_path(path) != path:
                atomic.remove(staging_path(path))
            return path
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem}") from problem


PROBLEM = "problem_data"
"""Attribute of a file: the problem as text, see `physics.problem_data`."""

HELD = PROBLEM, stored_control.CONTROL
"""Attributes that belong to the run of a file, whoever writes it."""


def problem_attribute(problem: Problem | None) -> dict[str, str]:
    """The attribute that holds a problem; none if it cannot be written as text."""
    text = None if problem is None else problem_data.to_text(problem)
    return {} if text is None else {PROBLEM: text}


def export(source: str | Path, path: str | Path, overwrite: bool = False) -> Path:
    """Copy a file, also of an interrupted run, to a new file of either format, with bounded memory."""
    many = _ensemble(source)
    whole, attrs = read(source) if many is None else (many, {})
    if Path(path).resolve() == Path(source).resolve():
        raise InputError(f"{path} cannot be exported to itself; choose another name")
    if many is not None:
        return Path(many.save(path, overwrite))
    return save(whole, path, overwrite, {name: attrs[name] for name in KEPT if name in attrs})


class Writer:
    """Writes the rows of a run as they come, and keeps other processes from writing the same file."""

    def __init__(self, path: Path, target: ZarrTarget, held: contextlib.ExitStack) -> None:
        self.path, self.target, self.held = path, target, held

    @classmethod
    def create(cls, path: str | Path, info: Info, attrs: Mapping[str, str], overwrite: bool = False) -> Writer:
        """Create a file; an existing one is replaced only with `overwrite`."""
        with contextlib.ExitStack() as held:
            path = held.enter_context(writing(path, overwrite))
            new = atomic.hidden(staging_path(path))
            try:
                target = ZarrTarget(new, info, attrs)
                target.move(staging_path(path))
            finally:
                atomic.discard(new)
            return cls(path, target, held.pop_all())
        raise AssertionError  # unreachable: this ExitStack suppresses no exception

    @classmethod
    def continued(
        cls, path: Path, source: Stored, rows: int, info: Info, attrs: Mapping[str, str], held: contextlib.ExitStack
    ) -> Writer:
        """Continue a file after `rows` of its rows; all rows are checked first.

        A NetCDF file, or a store without checksums, is copied. For NetCDF, the copy replaces the file at the end.
        """
        folder, sums = staging_path(path), source.checked(rows)
        if not folder.exists() or source.sums is None:
            copied = _write(source.blocks(source.primary, rows), rows, info, folder, attrs)
            sums = copied.sums if isinstance(copied, ZarrTarget) else sums
        return cls(path, ZarrTarget.reopened(folder, rows, info, attrs, sums), held)

    @property
    def folder(self) -> Path:
        """Path of the rows until the run is done."""
        return self.target.folder

    @property
    def info(self) -> Info:
        """Metadata of the run."""
        return self.target.info

    @property
    def rows(self) -> int:
        """Rows that are safe on disk."""
        return self.target.rows

    def append(self, data: Mapping[str, np.ndarray], attrs: Mapping[str, str], **changes: Any) -> None:
        """Write these rows and their attributes in one atomic step."""
        before, self.target.info = self.info, dataclasses.replace(self.info, **changes)
        try:
            self.target.append(data, **attrs)
        except BaseException:
            self.target.info = before
            raise

    def close(self, **changes: Any) -> Path:
        """Record how the run ended; return the path of the file."""
        info = dataclasses.replace(self.info, **changes)
        self.target.close(info)
        if self.folder != self.path:
            source = read(self.folder)[0].stored
            _write(source.blocks(source.primary), self.rows, info, self.path, self.target.attrs)
            atomic.discard(self.folder)
        return self.path

    def release(self) -> None:
        """Release the lock, so that others can write the file."""
        self.held.close()


# --- reading ----------------------------------------------------------------------------------------


class Stored(Mapping[str, np.ndarray]):
    """Variables of a file, read and checked on access; only the rows it had when it was opened."""

    def __init__(self, path: Path, rows: int, sums: dict[str, int] | None, attrs: Mapping[str, Any]) -> None:
        self.path, self.rows, self.sums, self.attrs = path, rows, sums, attrs
        self.kept = states_of(attrs)
        self.variables, self.primary = variables(self.kept), primary(self.kept)

    def states(self) -> dict[str, np.ndarray]:
        """States of the method, by name."""
        return {name: self[STATE + name] for name, _ in self.kept}

    def with_states(self, data: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Data of some rows as those of a trajectory in memory."""
        found: dict[str, Any] = {name: data[name] for name in PRIMARY}
        return found | {STATES: {name: data[STATE + name] for name, _ in self.kept}}

    @functools.cached_property
    def problem(self) -> Problem | None:
        """The problem that was solved, rebuilt from its text; None if the file does not hold it."""
        if PROBLEM not in self.attrs:
            return None
        try:
            return problem_data.from_text(str(self.attrs[PROBLEM]))
        except Exception as fault:  # the text may be anything
            raise integrity.damaged(self.path, f"its problem cannot be read ({line(fault)})") from fault

    def __getitem__(self, name: str) -> np.ndarray:
        with self._errors_explained(name), self._opened((name,)) as data:
            if 8 * self.rows * math.prod(data[name].shape[1:]) > integrity.memory():
                raise InputError(
                    f"{name} of {self.path} does not fit into memory; open it with xarray, or load fewer rows"
                )
            values = np.asarray(data[name][: self.rows])
            integrity.check(name, integrity.checksum(values), self.sums)
            return values

    def blocks(self, names: Any, rows: int | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Iterate over some variables, a bounded number of rows at a time; checksums are verified at the last row."""
        names, found, rows = tuple(names), dict.fromkeys(names, 0), self.rows if rows is None else rows
        with self._errors_explained("its rows"), self._opened(names) as data:
            for start in range(0, rows, ROWS_PER_CHUNK):
                stop = min(start + ROWS_PER_CHUNK, rows)
                block = {name: np.asarray(data[name][start:stop], dtype=float) for name in names}
                for name, values in block.items():
                    found[name] = integrity.checksum(values, found[name])
                if stop == self.rows:
                    for name in names:
                        integrity.check(name, found[name], self.sums)
                yield block

    def last(self) -> dict[str, Any]:
        """Last row of the primary variables."""
        with self._errors_explained("its last row"), self._opened(self.primary) as data:
            last = {name: np.asarray(data[name][self.rows - 1 : self.rows], dtype=float) for name in self.primary}
            return self.with_states(last)

    def checked(self, rows: int) -> dict[str, int]:
        """Read and check all variables; return the checksums of the first `rows` rows."""
        found, seen, at = dict.fromkeys(self, 0), 0, dict.fromkeys(self, 0)
        for block in self.blocks(self):
            some = max(0, min(rows - seen, len(block["t"])))
            for name, values in block.items() if some else ():
                at[name] = integrity.checksum(values[:some], found[name])
                found[name] = integrity.checksum(values, found[name])
            seen += len(block["t"])
        return at

    @contextlib.contextmanager
    def _opened(self, names: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
        """Arrays that are read slice by slice."""
        if self.path.suffix == ".nc":
            with netcdf.opened(self.path) as file:
                yield {name: _of_rows(self.kept, name, file[name], self.rows) for name in names}
            return
        described = integrity.arrays(integrity.described(self.path))
        group = integrity.opened(self.path)
        for name in names:
            if name not in described:
                raise Damage(f"{name} is missing")
            if integrity.chunk_shape(described[name])[0] > ROWS_PER_CHUNK:
                raise Damage(f"{name} has larger chunks than this library writes")
            if self.sums is not None or name == "t":  # files without checksums omit chunks of NaN
                shape = [self.rows, *described[name]["shape"][1:]]
                integrity.check_chunks(self.path, name, described[name] | {"shape": shape})
        yield {name: _of_rows(self.kept, name, group[name], self.rows) for name in names}

    @contextlib.contextmanager
    def _errors_explained(self, what: str) -> Iterator[None]:
        """Convert any error to an InputError that explains it; a file that changed in the meantime is not damaged."""
        try:
            yield
        except InputError:
            raise
        except Exception as problem:
            raise self._damaged(what, problem) from problem

    def _damaged(self, what: str, problem: Exception) -> InputError:
        with contextlib.suppress(Exception):
            if _opened(self.path)[0] != self.attrs:
                return InputError(f"{self.path} was changed while it was read; load it again")
        return integrity.damaged(self.path, f"{what} cannot be read ({line(problem)})")

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


def _of_rows(states: States, name: str, array: Any, rows: int) -> Any:
    """Return an array if it has the type and shape of the variable and at least these rows."""
    size = sizes(states)
    shape = tuple(size[d] for d in variables(states)[name][0][1:])
    if array.dtype != np.dtype("f8") or tuple(array.shape[1:]) != shape or array.shape[0] < rows:
        raise Damage(f"{name} has the shape {tuple(array.shape)}, and there are {rows} times")
    return array


def _opened(path: Path) -> tuple[dict[str, Any], int]:
    """Attributes of a file, and its number of rows."""
    if path.suffix == ".zarr":
        described = integrity.described(path)
        t = integrity.arrays(described).get("t", {"shape": [0]})
        return dict(described["attributes"]), t["shape"][0]
    with netcdf.opened(path) as file:
        attrs = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in file.attrs.items()}
        return attrs, file["t"].shape[0] if "t" in file else 0


def load(path: str | Path) -> Any:
    """Open a saved Trajectory or Ensemble, also of an interrupted run. Nothing in a file is executed.

    Attributes are checked at once, arrays when they are read; an InputError says what is damaged.
    """
    many = _ensemble(path)
    return read(path)[0] if many is None else many


def _ensemble(path: str | Path) -> Any:
    """Open a saved ensemble; None if the file holds something else."""
    from . import ensemble_files

    return ensemble_files.loaded(checked(path))


def read(path: str | Path) -> tuple[Trajectory, dict[str, Any]]:
    """Open a saved trajectory; return it with all attributes of its file."""
    path = checked(path)
    if not path.exists():
        raise InputError(f"there is no file {path}")
    try:
        attrs, rows = _opened(path)
        sums = integrity.checksums_of(attrs)
    except Exception as problem:
        if isinstance(problem, Damage):
            raise integrity.damaged(path, line(problem)) from problem
        raise InputError(f"{path} cannot be read as a trajectory: {line(problem)}") from problem
    if attrs.get("format") not in (FORMAT, WITHOUT_CHECKSUMS):
        raise InputError(f"{path} is not a polhode trajectory (format {attrs.get('format')!r}, expected {FORMAT!r})")
    if attrs["format"] == FORMAT and (sums is None or integrity.DIGEST not in attrs):
        raise integrity.damaged(path, "its checksums are missing")
    try:
        info = info_of_attributes(attrs)
        found = Trajectory(Stored(path, rows, sums, attrs), info)
        stored_control.restore(found, attrs)
        events = stored_events.read(attrs, info)
    except Exception as problem:
        raise integrity.damaged(path, f"its attributes are incomplete ({line(problem)})") from problem
    found.events = events
    return found, attrs
