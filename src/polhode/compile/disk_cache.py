"""Disk cache of compiled code: one verified file per compiled signature, in a folder that only its owner can write.

Reading an entry executes code (it is a pickle with machine code). So an entry is read only if folder and file belong
to the user, nobody else can write them, and the digest at its head matches the rest. If anything is wrong with the
cache (damage, a full disk, no permission), the function is compiled instead, and one warning says why.

The cache has a size limit. Entries carry the time of their last use, and the least recently used are removed. Any
number of processes may share a folder: a process whose entry is gone compiles and writes it again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pickle
import re
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from .. import _files
from ..errors import CacheWarning

HEAD = b"polhode compiled code 1\n"
DIGEST_BYTES = 32

LIMIT = 1 << 30
"""Default size limit in bytes; $POLHODE_CACHE_SIZE overrides it."""

LARGEST = 1 << 28
"""Largest entry in bytes; those of the library's methods have less than a hundredth of it."""

FOLDER = "[0-9a-f]" * 16
"""Pattern of folder names: digests of the compilation environment."""

ENTRY = re.compile(r"[0-9a-f]{24,32}-[0-9a-f]{32}\.nbc")
"""Pattern of entry names: a key, and a digest of the signature and the processor."""

ABANDONED = 3600.0
"""Age in seconds after which a temporary file is considered left behind by a killed process."""

_warned: set[str] = set()


def warn_once(fault: str, message: str) -> None:
    """Warn about one kind of fault, once per process."""
    if fault not in _warned:
        _warned.add(fault)
        warnings.warn(message, CacheWarning, stacklevel=2)


def cache_folder() -> Path:
    """Folder of the cache: $POLHODE_CACHE, or polhode in the user's cache folder."""
    setting = os.environ.get("POLHODE_CACHE")
    return Path(setting) if setting else platformdirs.user_cache_path("polhode", appauthor=False)


def size_limit() -> int:
    """Size limit in bytes: $POLHODE_CACHE_SIZE, such as 500M or 2G, or `LIMIT`."""
    setting = os.environ.get("POLHODE_CACHE_SIZE")
    if not setting:
        return LIMIT
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?\s*", setting, re.IGNORECASE)
    if found is None:
        warn_once(
            "limit",
            f"POLHODE_CACHE_SIZE must be a number of bytes such as 500M or 2G; got {setting!r}; using {shown(LIMIT)}",
        )
        return LIMIT
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def shown(size: float) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _is_private(status: os.stat_result) -> bool:
    """True if this user owns the file or folder and nobody else can write it (always True without POSIX owners)."""
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def private_folder(name: str) -> Path | None:
    """The folder of this name in the cache, created if needed; None, with a warning, if it is not safe to use."""
    try:
        root = cache_folder()
        for folder in (root, root / name):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(folder.stat()):
                warn_once(
                    "owner",
                    f"{folder} belongs to another user or is writable by others, so compiled code is neither read "
                    "from it nor stored there; set POLHODE_CACHE to a folder of your own, or remove the others' "
                    f"permission (chmod go-w {folder})",
                )
                return None
    except (OSError, ValueError, RuntimeError) as fault:  # RuntimeError: no home folder
        _not_kept(fault)
        return None
    return root / name


def _not_kept(fault: Exception) -> None:
    where = os.environ.get("POLHODE_CACHE") or "the user's cache folder"
    reason = getattr(fault, "strerror", None) or fault
    warn_once(
        "unusable",
        f"compiled code is not cached, so the next process compiles again: {where} cannot be used ({reason}); "
        "set POLHODE_CACHE to a writable folder",
    )


class DiskCache(_Cache):
    """The cache of one function, for numba's dispatcher. `key` is a digest of everything the function depends on.

    numba's own key covers neither edits in other files nor the functions in a closure, and numba reads its files
    without any check.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(self.folder)

    @property
    def is_warm(self) -> bool:
        """True if an entry exists (from any machine that shares the folder)."""
        return any(self.folder.glob(f"{self.key}-*.nbc"))

    def enable(self) -> None:
        """Do nothing: required by numba's interface, but the cache is always enabled."""

    def disable(self) -> None:
        """Do nothing: required by numba's interface, but the cache is always enabled."""

    def flush(self) -> None:
        """Remove the entries of this function."""
        for path in self.folder.glob(f"{self.key}-*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path:
        made_for = repr((str(signature), codegen.magic_tuple())).encode()
        return self.folder / f"{self.key}-{hashlib.blake2b(made_for, digest_size=16).hexdigest()}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for a signature; None if there is no trusted entry, so that numba compiles."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        content = read_verified(path)
        if content is None:
            return None
        try:
            *parts, environments = pickle.loads(content)
            found = CompileResult._rebuild(target_context, *parts, ())
            check_loaded(found.library)
            for environment in environments:
                found.library.codegen.set_env(environment.env_name, environment)
            _mark_used(path)
            return found
        except ImportError:  # it refers to a namespace that is not a module of this process
            return None
        except Exception as fault:
            _damaged(path, f"{type(fault).__name__}: {fault}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code."""
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            return
        check_not_interrupted(data.library)
        try:
            write_verified(self._path(sig, data.codegen), dumps(data._reduce()))
            trim(self.folder.parent, size_limit())
        except OSError as fault:
            _not_kept(fault)


def check_not_interrupted(library: Any) -> None:
    """Raise the KeyboardInterrupt that was lost while LLVM handed over the machine code, if so.

    LLVM does that in a callback of ctypes, which prints exceptions and drops them; numba then has no machine code to
    store and raises a RuntimeError.
    """
    try:
        library._get_compiled_object()
    except RuntimeError:
        raise KeyboardInterrupt("while code was compiled") from None


def check_loaded(library: Any) -> None:
    """Raise the KeyboardInterrupt that was lost while LLVM took over machine code from the cache, if so.

    LLVM then has no code under these names, or that of another program that another process gave the same names.
    """
    if library._compiled_object is not None:  # numba drops it where LLVM takes it
        raise KeyboardInterrupt("while compiled code was loaded")


def _digest(path: Path, content: bytes) -> bytes:
    """Digest of an entry and its name: a renamed entry is not valid."""
    return hashlib.blake2b(path.name.encode() + b"\n" + content, digest_size=DIGEST_BYTES).digest()


def read_verified(path: Path) -> bytes | None:
    """The content of an entry; None if it does not exist, or (with a warning) is damaged or owned by another user."""
    try:
        with _files.ordinary(path, LARGEST, getattr(os, "O_NOFOLLOW", 0)) as file:
            if not _is_private(os.fstat(file.fileno())):
                _damaged(path, "it belongs to another user or is writable by others")
                return None
            data = file.read(LARGEST)
    except FileNotFoundError:
        return None
    except OSError as fault:
        if fault.errno in (errno.EINVAL, errno.EFBIG):
            _damaged(path, str(fault.strerror))
        else:
            _not_kept(fault)
        return None
    start = len(HEAD) + DIGEST_BYTES
    content = data[start:]
    if data[:start] != HEAD + _digest(path, content):
        _damaged(path, "its digest does not match")
        return None
    return content


def write_verified(path: Path, content: bytes) -> None:
    """Write an entry atomically: other processes see all of it or nothing, and the last writer wins."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")  # readable by the owner only
    try:
        with open(handle, "wb") as file:
            file.write(HEAD + _digest(path, content) + content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _damaged(path: Path, reason: str) -> None:
    """Warn that an entry is not used, and remove it so that a good one can replace it."""
    with contextlib.suppress(OSError):
        path.unlink()
    warn_once("damaged", f"compiled code in {path} is not used, {reason}; the function is compiled again")


# --- all entries ------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A file of the cache, its time of last use, and its size."""

    used: float
    size: int
    path: Path


def entries(root: Path) -> list[Entry]:
    """The entries in a cache folder, least recently used first."""
    found = []
    for path in root.glob(f"{FOLDER}/*.nbc"):
        if not ENTRY.fullmatch(path.name):
            continue
        with contextlib.suppress(OSError):  # another process may have removed it
            status = path.lstat()
            found.append(Entry(max(status.st_atime, status.st_mtime), status.st_size, path))
    return sorted(found)


def trim(root: Path, limit: int) -> int:
    """Remove the least recently used entries until the rest take at most `limit` bytes; return the number removed."""
    kept = entries(root)
    total, removed = sum(entry.size for entry in kept), 0
    for entry in kept:
        if total <= limit:
            break
        _remove(entry.path)
        total, removed = total - entry.size, removed + 1
    if removed:
        _sweep(root, time.time() - ABANDONED)
    return removed


def clear(root: Path) -> int:
    """Remove all entries and their folders, and nothing else; return the number of entries."""
    found = entries(root)
    for entry in found:
        _remove(entry.path)
    _sweep(root, time.time())
    for folder in root.glob(FOLDER):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()
    return len(found)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sweep(root: Path, before: float) -> None:
    """Remove temporary files last changed before a given time."""
    for path in root.glob(f"{FOLDER}/.*.tmp"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime <= before:
                path.unlink()


def _mark_used(path: Path) -> None:
    """Set the access time, which many file systems do not update, and keep the modification time."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
