"""Compiled code kept on disk: one verified file for each compiled signature, in a folder that only its owner can write.

Reading an entry runs code (it is a pickle with machine code in it). So an entry is read only if folder and file belong
to the user and nobody else can write them, and only if the digest at its head matches the rest. Whatever is wrong with
the cache (damage, a full disk, no permission), the function is compiled instead, and one warning says why.

The cache has a size limit. Entries carry the time of their last use, and those not used for longest are removed. Any
number of processes may share a folder: a process that finds an entry gone compiles, and writes it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import stat
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ..errors import CacheWarning

HEAD = b"polhode compiled code 1\n"
DIGEST_BYTES = 32

LIMIT = 1 << 30
"""Bytes that the cache may take, unless $POLHODE_CACHE_SIZE says otherwise."""

FOLDER = "[0-9a-f]" * 16
"""Pattern of the names of folders: digests of what the code in them was compiled with."""

ENTRY = re.compile(r"[0-9a-f]{24,32}-[0-9a-f]{32}\.nbc")
"""Names of entries: a key, and a digest of the signature and the processor."""

ABANDONED = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""

_warned: set[str] = set()


def warn_once(fault: str, message: str) -> None:
    """Warn about one kind of fault, once for each process."""
    if fault not in _warned:
        _warned.add(fault)
        warnings.warn(message, CacheWarning, stacklevel=2)


def cache_folder() -> Path:
    """Where compiled code is kept: $POLHODE_CACHE, or polhode under the user's cache folder."""
    given = os.environ.get("POLHODE_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("polhode", appauthor=False)


def size_limit() -> int:
    """Bytes that the cache may take: $POLHODE_CACHE_SIZE, such as 500M or 2G, or `LIMIT`."""
    given = os.environ.get("POLHODE_CACHE_SIZE")
    if not given:
        return LIMIT
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?\s*", given, re.IGNORECASE)
    if found is None:
        warn_once(
            "limit",
            f"POLHODE_CACHE_SIZE must be a number of bytes such as 500M or 2G; got {given!r}, so it is {shown(LIMIT)}",
        )
        return LIMIT
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def shown(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _is_private(status: os.stat_result) -> bool:
    """Does a file or folder belong to this user, and can nobody else write it (always True without POSIX owners)."""
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def private_folder(name: str) -> Path | None:
    """The folder of this name in the cache, made if need be; None, with a warning, where it cannot be used safely."""
    try:
        root = cache_folder()
        for folder in (root, root / name):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(folder.stat()):
                warn_once(
                    "owner",
                    f"{folder} belongs to another user or can be written by others, so compiled code is neither read "
                    "from it nor kept there; set POLHODE_CACHE to a folder of your own, or remove the others' "
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
        f"compiled code is not kept, so the next process compiles again: {where} cannot be used ({reason}); "
        "set POLHODE_CACHE to a folder that can be written",
    )


class DiskCache(_Cache):
    """The cache of one function, for numba's dispatcher. `key` stands for everything the function is made of.

    numba's own key sees neither an edit in another file nor the functions a closure was made of; its own files are
    read without any check.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(self.folder)

    @property
    def is_warm(self) -> bool:
        """Has this been compiled before (on any machine that shares the folder)."""
        return any(self.folder.glob(f"{self.key}-*.nbc"))

    def enable(self) -> None:
        """Asked for by numba's interface; the cache is always enabled."""

    def disable(self) -> None:
        """Asked for by numba's interface; the cache is always enabled."""

    def flush(self) -> None:
        """Forget the entries of this function."""
        for path in self.folder.glob(f"{self.key}-*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path:
        made_for = repr((str(signature), codegen.magic_tuple())).encode()
        return self.folder / f"{self.key}-{hashlib.blake2b(made_for, digest_size=16).hexdigest()}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for a signature; None, so that numba compiles, if there is none that can be trusted."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        content = read_verified(path)
        if content is None:
            return None
        try:
            found = CompileResult._rebuild(target_context, *pickle.loads(content))
            _mark_used(path)
            return found
        except ImportError:  # it refers to a namespace that is no module of this process
            return None
        except Exception as fault:
            _damaged(path, f"{type(fault).__name__}: {fault}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code."""
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            return
        try:
            write_verified(self._path(sig, data.codegen), dumps(data._reduce()))
            trim(self.folder.parent, size_limit())
        except OSError as fault:
            _not_kept(fault)


def _digest(path: Path, content: bytes) -> bytes:
    """Digest of an entry and of its name: an entry that was moved to another name is not valid there."""
    return hashlib.blake2b(path.name.encode() + b"\n" + content, digest_size=DIGEST_BYTES).digest()


def read_verified(path: Path) -> bytes | None:
    """The content of an entry; None if there is none, and, with a warning, if it is damaged or somebody else's."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as fault:
        _not_kept(fault)
        return None
    try:
        with open(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_private(status):
                _damaged(path, "it belongs to another user, or others can write it")
                return None
            data = file.read()
    except OSError as fault:
        _not_kept(fault)
        return None
    start = len(HEAD) + DIGEST_BYTES
    content = data[start:]
    if data[:start] != HEAD + _digest(path, content):
        _damaged(path, "its digest does not match")
        return None
    return content


def write_verified(path: Path, content: bytes) -> None:
    """Write an entry in one go: another process sees all of it or nothing, and the last of several writers wins."""
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
    """Say that an entry is not used, and remove it so that a good one takes its place."""
    with contextlib.suppress(OSError):
        path.unlink()
    warn_once("damaged", f"compiled code in {path} is not used, {reason}; the function is compiled again")


# --- all entries ------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A file of the cache, when it was last used, and its size."""

    used: float
    size: int
    path: Path


def entries(root: Path) -> list[Entry]:
    """The entries below a cache folder, the one not used for longest first."""
    found = []
    for path in root.glob(f"{FOLDER}/*.nbc"):
        if not ENTRY.fullmatch(path.name):
            continue
        with contextlib.suppress(OSError):  # another process may have removed it
            status = path.lstat()
            found.append(Entry(max(status.st_atime, status.st_mtime), status.st_size, path))
    return sorted(found)


def trim(root: Path, limit: int) -> int:
    """Remove the entries not used for longest until the rest take at most `limit` bytes; how many were removed."""
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
    """Remove all entries and the folders they were in, and nothing else; how many entries there were."""
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
    """Remove temporary files older than some time."""
    for path in root.glob(f"{FOLDER}/.*.tmp"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime <= before:
                path.unlink()


def _mark_used(path: Path) -> None:
    """Set the time of access, which many file systems do not, and leave that of the last change."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
