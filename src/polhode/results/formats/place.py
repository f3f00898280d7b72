"""New files of an export: made under hidden names, moved to their places when all of them are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from ...physics.validate import file_path, flag
from ..store import atomic


class Place:
    """Where the files of an export are made.

    Attributes
    ----------
    path : the name that the main file will have
    file : the hidden name under which it is written
    """

    def __init__(self, path: Path, overwrite: bool) -> None:
        self.path, self.overwrite = path, overwrite
        self.file = atomic.hidden(path)
        self._beside: dict[Path, Path] = {}
        _check_free(path, overwrite)

    def beside(self, name: str) -> Path:
        """Return the hidden name of a further file, or folder, beside the main one."""
        path = self.path.with_name(name)
        atomic.tidy(path, alone=False)  # its lock is that of the main file
        _check_free(path, self.overwrite)
        self._beside[path] = atomic.hidden(path)
        return self._beside[path]

    def move(self) -> None:
        """Move all files to their places, the main one last: it names the others."""
        for path, new in (self._beside | {self.path: self.file}).items():
            atomic.replace(path, new)
        atomic.sync([self.path.parent])

    def discard(self) -> None:
        """Remove what was not moved."""
        for new in (self.file, *self._beside.values()):
            atomic.discard(new)


def _check_free(path: Path, overwrite: bool) -> None:
    """Refuse a name that exists, unless it may be overwritten; a folder must hold nothing but exported files."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise InputError(f"{path} exists; choose another name or give overwrite=True (--overwrite)")
    if path.is_dir() and not all(part.suffix == ".vtu" for part in path.iterdir()):
        raise InputError(f"{path} is a folder that holds other files, so it is not replaced; choose another name")


def ready(path: str | Path, overwrite: bool = False) -> Path:
    """Return the path if a file may be written there; to be called before the work whose result it will hold."""
    path = file_path(path, "the new file must be a path")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    _check_free(path, flag("overwrite", overwrite))
    return atomic.place_for(path)


@contextlib.contextmanager
def placed(path: str | Path, overwrite: bool = False) -> Iterator[Place]:
    """Yield the place of a new file. The file appears complete at the end of the block, or not at all."""
    path = ready(path, overwrite)
    try:
        with atomic.writing(path):
            place = Place(path, overwrite)
            try:
                yield place
                place.move()
            finally:
                place.discard()
    except OSError as fault:
        raise InputError(f"{path} cannot be written: {fault.strerror or fault}") from fault
