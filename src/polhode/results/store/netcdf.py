"""NetCDF files: safe writing, and checksums verified before reading.

HDF5 does not survive a failed write: closing the file afterwards may crash the process, and some errors are not
reported at all. So HDF5 writes to a file object (`Sink`) that never fails: it keeps the first error and raises it when
HDF5 is done. A file is accepted only after it has been read back and verified. HDF5 does not survive every damaged file
either, so a checksum of all bytes follows the HDF5 data and is verified before HDF5 opens the file.
"""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import _files
from ..._extras import needed
from . import atomic, integrity
from .integrity import CHECKSUMS, DIGEST, Damage

VERSION = ("v110", "v110")
"""Version of the HDF5 file format, the first in which HDF5 stores checksums of its own structures."""


class Sink(io.RawIOBase):
    """A file for HDF5 in which no write fails; `fault` is the first error.

    Bytes that could not be written stay in memory, because HDF5 may read them again before it is done.
    """

    def __init__(self, path: Path) -> None:
        self.file = path.open("w+b", buffering=0)
        self.fault: BaseException | None = None
        self.place = 0
        self.unwritten: list[tuple[int, bytes]] = []

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position."""
        start = {0: 0, 1: self.place, 2: self.length}[whence]
        self.place = start + offset
        return self.place

    def tell(self) -> int:
        """Return the position."""
        return self.place

    @property
    def length(self) -> int:
        """Length of the file in bytes."""
        written = self.file.seek(0, 2)
        return max([written, *(start + len(some) for start, some in self.unwritten)])

    def write(self, some: Any) -> int:
        """Write bytes, or keep them in memory after a fault."""
        view, start = memoryview(some).cast("B"), self.place
        self.place += len(view)
        if self.fault is None:
            try:
                self._put(start, view)
                return len(view)
            except BaseException as fault:  # Ctrl-C too: HDF5 must be able to finish
                self.fault = fault
        self.unwritten.append((start, bytes(view)))
        return len(view)

    def _put(self, start: int, view: memoryview) -> None:
        self.file.seek(start)
        done = 0
        while done < len(view):
            done += self.file.write(view[done:]) or 0

    def readinto(self, into: Any) -> int:
        """Read bytes back, including those kept in memory."""
        view, start = memoryview(into).cast("B"), self.place
        view[:] = bytes(len(view))
        try:
            self.file.seek(start)
            self.file.readinto(view)
        except BaseException as fault:
            self.fault = self.fault or fault
        for place, some in self.unwritten:
            low, high = max(place, start), min(place + len(some), start + len(view))
            if low < high:
                view[low - start : high - start] = some[low - place : high - place]
        self.place += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Shorten or extend the file."""
        size = self.place if size is None else size
        try:
            if self.fault is None:
                self.file.truncate(size)
        except BaseException as fault:
            self.fault = fault
        return size

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Close the file and raise the first fault."""
        if not self.closed:
            super().close()
            try:
                self.file.close()
            except BaseException as fault:
                self.fault = self.fault or fault
        told, self.fault = self.fault, None
        if told is not None:
            raise told


@contextlib.contextmanager
def created(path: Path) -> Iterator[Any]:
    """Create a file to fill; on exit from the block it is closed and on disk, and every error has been raised."""
    h5netcdf = needed("h5netcdf")

    with contextlib.closing(Sink(path)) as sink:
        file = h5netcdf.File(sink, "w", libver=VERSION)
        try:
            yield Guarded(file, sink)
        finally:
            file.close()
    with path.open("ab") as whole:
        whole.write(_trailer(path, path.stat().st_size))
    atomic.sync([path])


class Guarded:
    """An open file that raises the first write error of its `Sink`."""

    def __init__(self, file: Any, sink: Sink) -> None:
        self.file, self.sink, self.sums = file, sink, dict[str, int]()

    def variable(self, name: str, dims: tuple[str, ...], dtype: Any, chunks: tuple[int, ...], attrs: Any) -> None:
        """Create a variable with a checksum in every chunk."""
        checked = {"chunks": chunks, "fletcher32": True} if all(chunks) else {}
        self.file.create_variable(name, dims, dtype=dtype, **checked).attrs.update(attrs)

    def text(self, name: str, dims: tuple[str, ...], words: Any) -> None:
        """Create a variable of strings."""
        kind = needed("h5py").string_dtype()
        self.file.create_variable(name, dims, dtype=kind)[...] = np.array(words, dtype=object)

    def write(self, name: str, where: Any, values: np.ndarray, axis: int = 0) -> None:
        """Write a part of a variable; the parts must come in order along an axis."""
        self.file[name][where] = values
        self.sums[name] = integrity.checksum(values, self.sums.get(name, 0), axis)
        if self.sink.fault is not None:
            raise self.sink.fault

    def seal(self, attrs: Mapping[str, Any]) -> None:
        """Write the attributes, the checksums and the digest of both."""
        for name, value in (*attrs.items(), (CHECKSUMS, integrity.checksums_text(self.sums))):
            self.file.attrs[str(name)] = value
        self.file.attrs[DIGEST] = integrity.digest(_described(self.file))


def _described(file: Any) -> dict[str, Any]:
    """All attributes, and the variables with dimensions, shapes, types and attributes; short string arrays in full."""
    variables = {}
    for name, one in file.variables.items():
        shape, text = list(one.shape), np.dtype(one.dtype).kind not in "fiu"
        content = [_plain(word) for word in np.ravel(one[...])] if text and np.prod(shape) <= 64 else str(one.dtype)
        variables[str(name)] = [list(one.dimensions), shape, content, _plain_attributes(one.attrs)]
    return {"attributes": _plain_attributes(file.attrs), "variables": variables}


def _plain_attributes(attrs: Any) -> dict[str, Any]:
    return {str(name): _plain(attrs[name]) for name in attrs if name != DIGEST}


def _plain(value: Any) -> Any:
    """Convert a value to a JSON type."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


class Source:
    """A file open for reading: its attributes and variables. Links to data outside the file are rejected."""

    def __init__(self, raw: Any) -> None:
        h5netcdf = needed("h5netcdf")

        h5py = needed("h5py")
        for name in raw:
            kind = raw.get(name, getclass=True)
            if not isinstance(raw.get(name, getlink=True), h5py.HardLink) or kind is not h5py.Dataset:
                raise Damage(f"{name} is not a variable in the file itself")
            if raw[name].external or raw[name].is_virtual:
                raise Damage(f"{name} is not in the file itself")
        self.raw, self.file = raw, h5netcdf.File(raw, "r")
        self.attrs = dict(self.file.attrs)
        if DIGEST in self.attrs and str(self.attrs[DIGEST]) != integrity.digest(_described(self.file)):
            raise Damage("its attributes do not have the digest they were written with")

    def __contains__(self, name: str) -> bool:
        return name in self.file.variables

    def __getitem__(self, name: str) -> Any:
        """A variable, checked to be complete: HDF5 would read missing numbers as zero."""
        if name not in self:
            raise Damage(f"{name} is missing")
        data = self.raw[name]
        if data.dtype.kind not in "fiu" or data.id.get_storage_size() < data.size * data.dtype.itemsize:
            raise Damage(f"a part of {name} is missing")
        return self.file[name]


_SOUND: dict[tuple[int, ...], bool] = {}
"""Files whose checksum has been verified; they are not verified again unless they change."""


def _trailer(path: Path, size: int) -> bytes:
    """Trailer after the end of the HDF5 data: a checksum of all its bytes."""
    found = 0
    with path.open("rb") as file:
        while size > 0 and (some := file.read(min(size, 1 << 22))):
            found, size = zlib.crc32(some, found), size - len(some)
    return b"polhode crc32 %08x\n" % found


TRAILER = len(b"polhode crc32 00000000\n")


def _check_whole(path: Path) -> bool:
    """Verify the checksum at the end of a file; return False if it has none.

    HDF5 must not open a damaged file: it may read it forever.
    """
    with _files.ordinary(path) as file:
        known = os.fstat(file.fileno())
        file.seek(max(0, known.st_size - TRAILER))
        end = file.read()
    if not end.startswith(b"polhode crc32 "):
        return False
    key = known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns
    if key not in _SOUND:
        if end != _trailer(path, known.st_size - TRAILER):
            raise Damage("it does not have the checksum it was written with")
        _SOUND[key] = True
    return True


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a file for reading, after verifying its checksum and digest if it has them."""
    whole = _check_whole(path)
    with needed("h5py").File(path, "r") as raw:
        source = Source(raw)
        if not whole and DIGEST in source.attrs:
            raise Damage("the checksum at its end is missing")
        yield source
