"""Files that appear, change and vanish in one go, and holds on folders: what survives the death of a process."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from .errors import InputError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]


def hidden(path: Path) -> Path:
    """Where a file is made before it takes its place."""
    return path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")


def place_for(path: Path) -> Path:
    """The path, if a file can be made there; it is found out before the work for it is done."""
    trial = path.with_name(f".{path.name}.{os.getpid()}.trial")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        trial.touch()
        trial.unlink()
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as fault:
        raise InputError(f"{path} cannot be written: {fault.strerror or fault}") from None
    return path


def folder_for(folder: Path) -> Path:
    """The folder, if it is there or can be made, and files in it."""
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    try:
        place_for(there / "polhode")
    except InputError as fault:
        raise InputError(f"{folder}{str(fault).partition('polhode')[2]}") from None
    return folder


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def put(path: Path, new: Path) -> None:
    """Put the new file or folder in the place of the old one, which is removed last."""
    if not os.path.lexists(path) or (path.is_file() and new.is_file()):
        new.replace(path)
        return
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    path.rename(old)
    new.rename(path)
    remove(old)


def tidy(path: Path) -> None:
    """Remove what killed processes of this machine left unfinished beside a file."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        number, _, kind = left.name.removeprefix(f".{path.name}.").partition(".")
        if number.isdigit() and not _alive(int(number)) and (kind != "old" or path.exists()):
            remove(left)


def _alive(process: int) -> bool:
    """Is there such a process; True where that cannot be known."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def locked(folder: Path) -> int | None:
    """A hold on a store, which ends with the process; refused where another one has it, None where there are no locks.

    The folder itself is locked: no file beside it stays behind when the process is killed.
    """
    if fcntl is None:
        return None
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:  # what is wrong with the folder is said by whoever uses it
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise InputError(f"{folder} is being written by another run") from None
    except OSError:  # a file system without locks
        os.close(held)
        return None
    return held


def released(held: int | None) -> None:
    """Give the hold back."""
    if held is not None:
        os.close(held)


def write_whole(path: Path, text: str, durable: bool) -> None:
    """Replace a file in one go: at any moment it is the old one or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def sync(paths: Iterable[Path]) -> None:
    """Bring files and folders from the memory of the operating system to the disk."""
    for path in paths:
        with contextlib.suppress(PermissionError, FileNotFoundError):  # folders cannot be opened on every system
            held = os.open(path, os.O_RDONLY)
            try:
                os.fsync(held)
            finally:
                os.close(held)
