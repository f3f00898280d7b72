"""Atomic file operations and locks: files stay consistent even if a process is killed."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import InputError

try:
    import fcntl
except ImportError:  # not available on every system
    fcntl = None  # type: ignore[assignment]


def hidden(path: Path) -> Path:
    """Temporary path at which a file is made before it is moved to its place."""
    return path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")


def place_for(path: Path) -> Path:
    """Return the path if a file can be created there; to be called before the work whose result it will hold."""
    return _writable(path, path)


def folder_for(folder: Path) -> Path:
    """Return the folder if it exists or can be created, and files in it can be created."""
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    return _writable(folder, there / "polhode")


def _writable(wanted: Path, file: Path) -> Path:
    """Return the path `wanted` if `file` can be written."""
    trial = file.with_name(f".{file.name}.{os.getpid()}.trial")
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        trial.touch()
        trial.unlink()
        if file.exists() and not os.access(file, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as fault:
        raise InputError(f"{wanted} cannot be written: {fault.strerror or fault}") from None
    return wanted


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists; a folder is first renamed to a hidden name, so it vanishes atomically."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    if not path.name.startswith("."):
        gone = _aside(path, "gone")
        path.rename(gone)
        path = gone
    shutil.rmtree(path)


def discard(path: Path) -> None:
    """Remove a file or folder that is no longer needed; if that fails, the next run does it (`tidy`)."""
    with contextlib.suppress(OSError):
        remove(path)


def _aside(path: Path, kind: str) -> Path:
    """Hidden name beside a file, used while the file is replaced or removed."""
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


def replace(path: Path, new: Path) -> None:
    """Replace the old file or folder by the new one; the old one is removed last."""
    if not os.path.lexists(path) or (path.is_file() and new.is_file()):
        new.replace(path)
        return
    old = _aside(path, "old")
    path.rename(old)
    new.rename(path)
    discard(old)


def tidy(path: Path, alone: bool) -> None:
    """Remove unfinished files of killed processes beside a file, and restore a file that one was about to replace.

    `alone` is True for the holder of the lock: all such files are then left over. Without locks, dead processes are
    recognised by their process ids, which are valid only on this machine.
    """
    for left in sorted(path.parent.glob(f".{glob.escape(path.name)}.*")):
        number, _, kind = left.name.removeprefix(f".{path.name}.").partition(".")
        if not number.isdigit() or not (alone or not _alive(int(number))):
            continue
        if kind == "old" and not os.path.lexists(path):
            left.rename(path)
        else:
            remove(left)
    for left in path.parent.glob(f"{glob.escape(path.name)}.*"):
        writer = _PARTIAL.fullmatch(left.name)
        if writer is not None and (alone or _is_left_over(int(writer[1]))):
            left.unlink(missing_ok=True)


def tidy_within(store: Path) -> None:
    """Remove unfinished files of dead processes within a store that is opened for writing."""
    for left in store.rglob("*.partial*"):
        number = _PARTIAL.fullmatch(left.name)
        if left.suffix == ".partial" if number is None else _is_left_over(int(number[1])):
            left.unlink(missing_ok=True)


_PARTIAL = re.compile(r".+\.(\d+)\.partial(?:\.[a-z]+)?")
"""Name of a file that a process is writing, with the number of the process; zarr's own names have other numbers."""


def _is_left_over(process: int) -> bool:
    """True for the number of a dead process, and for this one, which has not begun to write: numbers are used again."""
    return process == os.getpid() or not _alive(process)


def _alive(process: int) -> bool:
    """True if the process exists, or if that is unknown."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# --- one writer -------------------------------------------------------------------------------------

PARTIAL = ".partial.zarr"
"""Suffix added to the name of a NetCDF file for the store that holds its rows until the run is done."""

NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK}
READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


class Lock:
    """Exclusive right to write a file, held until it is released or the process ends in any way."""

    def __init__(self, handle: int, place: Path | None) -> None:
        self.handle, self.place, self.process = handle, place, os.getpid()

    def release(self) -> None:
        """Release the lock. Its file is removed while it is still locked, so another process's is never removed."""
        if self.handle < 0:
            return
        if self.place is not None and self.process == os.getpid():
            with contextlib.suppress(OSError):
                self.place.unlink()
        os.close(self.handle)
        self.handle = -1


def lock_file(path: Path) -> Path:
    """Path of the lock file of a store or a NetCDF file; a partial store shares the lock file of its NetCDF file."""
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.name.removesuffix(PARTIAL)}.lock")


def locked(path: Path) -> Lock | None:
    """Lock a file that is about to be created, changed or replaced; None if the system has no locks.

    The operating system drops the lock when the process dies (flock). The lock is on a separate file beside the store,
    so that the store can be locked before it exists, and renamed and replaced while it is locked.
    """
    if fcntl is None:
        return None
    place = lock_file(path)
    while True:
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as fault:
            if fault.errno in READ_ONLY:  # no file can be created here; a store may still be changed
                return _lock(path, os.open(path, os.O_RDONLY), None) if path.is_dir() else None
            raise
        lock = _lock(path, handle, place)
        if lock is None or _is_at(handle, place):
            return lock
        os.close(handle)  # its holder removed it in the meantime: try again with the current one


def _lock(path: Path, handle: int, place: Path | None) -> Lock | None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        os.close(handle)
        if isinstance(fault, BlockingIOError):
            raise InputError(
                f"{path} is being written by another run; wait until it has finished, or choose another name"
            ) from None
        if fault.errno not in NO_LOCKS:
            raise
        return None
    return Lock(handle, place)


def _is_at(handle: int, place: Path) -> bool:
    """True if an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(handle), place.stat())
    except FileNotFoundError:
        return False


def released(held: Lock | None) -> None:
    """Release the lock, if there is one."""
    if held is not None:
        held.release()


_HELD = threading.local()
"""Lock files that this thread holds for a run that writes its file at the end."""


@contextlib.contextmanager
def writing(path: Path, at_the_end: bool = False) -> Iterator[None]:
    """Hold the lock of a file, and remove what killed runs left beside it.

    With `at_the_end`, the lock is held for a run whose result the same thread saves within the block.
    """
    mine = _HELD.__dict__.setdefault("places", set())
    place = lock_file(path)
    if place in mine:
        yield
        return
    held = locked(path)
    try:
        for there in (path, path.with_name(path.name + PARTIAL)):
            tidy(there, held is not None)
        if at_the_end:
            mine.add(place)
        yield
    finally:
        mine.discard(place)
        released(held)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file to write, with the same suffix; it then replaces `path`, and is removed after an error."""
    new = path.with_name(f"{path.name}.{os.getpid()}.partial{path.suffix}")
    try:
        yield new
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes, durable: bool) -> None:
    """Replace a file atomically: at any time it is either the old or the new one."""
    raw = content.encode() if isinstance(content, str) else content
    with replacing(path) as new, new.open("wb") as file:
        file.write(raw)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def sync(paths: Iterable[Path]) -> None:
    """Flush files and folders to the disk (fsync)."""
    for path in paths:
        with contextlib.suppress(PermissionError, FileNotFoundError):  # folders cannot be opened on every system
            held = os.open(path, os.O_RDONLY)
            try:
                os.fsync(held)
            finally:
                os.close(held)
