"""Files to which a trajectory is written block by block: a Zarr store, readable at any time, and NetCDF."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..._extras import needed
from ..trajectory import Info
from . import atomic, integrity, netcdf
from .file_format import LABELS, ROWS_PER_CHUNK, attributes, derived, described, sizes, variables
from .integrity import CHECKSUMS

SYNC_SECONDS = 5.0
"""Interval at which written data are synced (fsync) to the disk; they are also synced at the end."""


class Target(Protocol):
    """A file to which primary variables are written block by block."""

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""

    def close(self, info: Info) -> None:
        """Write the final metadata of the trajectory."""

    def release(self) -> None:
        """Release the file."""


class ZarrTarget:
    """A Zarr store; data that its consolidated metadata do not describe do not exist for readers.

    That description, `zarr.json` of the root, also holds the attributes. So `info`, the further attributes `attrs`
    (run specification, checkpoint) and the checksums always belong to the rows that it describes.
    """

    def __init__(self, path: Path, info: Info, attrs: Mapping[str, str] | None = None) -> None:
        zarr = needed("zarr")

        self.rows, self.info, self.attrs = 0, dataclasses.replace(info, status="running"), dict(attrs or {})
        known, size = variables(info.states), sizes(info.states)
        self.sums = dict.fromkeys(known, 0)
        self.root = zarr.open_group(path, mode="w", zarr_format=3)
        for name, (dims, *_) in known.items():
            shape = tuple(size[d] for d in dims[1:])
            integrity.created(
                self.root, name, shape=(0, *shape), chunks=(ROWS_PER_CHUNK, *shape), dtype="f8",
                fill_value=np.nan, dimension_names=dims, attributes=described(name, known),
            )  # fmt: skip
        for name, labels in LABELS.items():
            integrity.created_words(self.root, name, (name,), labels)
        consolidated(self.root)
        self._start()
        self._publish(0, self.info, self.attrs, self.sums)

    @classmethod
    def reopened(
        cls, path: Path, rows: int, info: Info, attrs: Mapping[str, str], sums: Mapping[str, int]
    ) -> ZarrTarget:
        """Reopen a store for appending, truncated after `rows` rows, whose checksums are `sums`."""
        zarr = needed("zarr")

        target = cls.__new__(cls)
        target.rows, target.info, target.attrs, target.sums = rows, info, dict(attrs), dict(sums)
        target.root = zarr.open_group(path, mode="r+", zarr_format=3, use_consolidated=False)
        target._start()
        target._publish(rows, info, target.attrs, target.sums)  # first: readers no longer see what is removed next
        for name in variables(info.states):
            one = target.description["consolidated_metadata"]["metadata"][name]
            atomic.write_whole(path / name / "zarr.json", json.dumps(one, indent=2), durable=False)
            for chunk in (path / name).glob("c/*"):
                if chunk.name.isdigit() and int(chunk.name) * ROWS_PER_CHUNK >= rows:
                    atomic.remove(chunk)
        atomic.tidy_within(path)
        return target

    def _start(self) -> None:
        self.description = json.loads(integrity.description_text(self.folder))
        self.synced, self.synced_rows = time.monotonic(), self.rows

    @property
    def folder(self) -> Path:
        """Path of the store."""
        return Path(self.root.store.root)

    def move(self, path: Path) -> None:
        """Move the store to another path, replacing what is there."""
        zarr = needed("zarr")

        atomic.replace(path, self.folder)
        self.root = zarr.open_group(path, mode="r+", zarr_format=3, use_consolidated=False)

    def append(self, data: Mapping[str, np.ndarray], **attrs: str) -> None:
        """Write these rows, then publish their description together with the new attributes."""
        end, sums = self.rows + len(data["t"]), self.sums
        if end > self.rows:
            everything = derived(data, self.info)
            sums = {name: integrity.checksum(everything[name], self.sums[name]) for name in variables(self.info.states)}
            for name in sums:
                array = integrity.writable(self.root, name)
                array.resize((end, *array.shape[1:]))
                with _readable():
                    array[self.rows : end] = everything[name]
        self._publish(end, self.info, self.attrs | attrs, sums, time.monotonic() - self.synced >= SYNC_SECONDS)

    def close(self, info: Info) -> None:
        """Write the final metadata of the trajectory."""
        for name in variables(self.info.states):
            array = self.root[name]
            if array.shape[0] != self.rows:
                array.resize((self.rows, *array.shape[1:]))
        self._publish(self.rows, info, self.attrs, self.sums, sync=True)

    def release(self) -> None:
        """Do nothing: no resources are held."""

    def _publish(self, rows: int, info: Info, attrs: dict[str, str], sums: dict[str, int], sync: bool = False) -> None:
        """Write the description of all arrays and the attributes into the root of the store, atomically.

        `rows`, `attrs` and `sums` are set only afterwards: if the disk is full, the old rows keep their attributes.
        """
        for name in variables(self.info.states):
            self.description["consolidated_metadata"]["metadata"][name]["shape"][0] = rows
        self.description["attributes"] = attributes(info) | attrs | {CHECKSUMS: integrity.checksums_text(sums)}
        if sync:
            atomic.sync(self._since(rows))
        atomic.write_whole(self.folder / "zarr.json", integrity.sealed(self.description), sync)
        self.rows, self.attrs, self.sums = rows, attrs, sums
        if sync:
            atomic.sync([self.folder])
            self.synced, self.synced_rows = time.monotonic(), rows

    def _since(self, rows: int) -> Iterator[Path]:
        """Files and folders changed since the last sync to the disk."""
        for name in variables(self.info.states):
            for i in range(self.synced_rows // ROWS_PER_CHUNK, -(-rows // ROWS_PER_CHUNK)):
                chunk = self.folder / name / "c" / str(i)
                yield from (*chunk.rglob("*"), chunk)
            yield from (self.folder / name / "zarr.json", self.folder / name / "c", self.folder / name)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Report a damaged chunk as a disk error: Zarr reads a chunk before it writes to a part of it."""
    try:
        yield
    except ValueError as problem:
        raise OSError(errno.EIO, f"what was written cannot be read any more: {problem}") from problem


def consolidated(root: Any) -> None:
    """Write the descriptions of all arrays into the root of a store."""
    zarr = needed("zarr")

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(root.store, zarr_format=3)


class NetcdfTarget:
    """A NetCDF file of a known number of rows."""

    def __init__(self, path: Path, info: Info, rows: int, attrs: Mapping[str, str] | None = None) -> None:
        self.rows, self.info, self.attrs = 0, info, dict(attrs or {})
        self.left = contextlib.ExitStack()
        self.file = self.left.enter_context(netcdf.created(path))
        with self._stopping():
            known, size = variables(info.states), sizes(info.states)
            self.file.file.dimensions = {"time": rows, **size}
            for name, (dims, *_) in known.items():
                chunks = (min(rows, ROWS_PER_CHUNK), *(size[d] for d in dims[1:]))
                self.file.variable(name, dims, "f8", chunks, described(name, known))
            for name, labels in LABELS.items():
                self.file.text(name, (name,), labels)

    @contextlib.contextmanager
    def _stopping(self) -> Iterator[None]:
        """Close the file if something fails."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        """Write these rows."""
        with self._stopping():
            end = self.rows + len(data["t"])
            for name, values in derived(data, self.info).items():
                self.file.write(name, slice(self.rows, end), values)
            self.rows = end

    def close(self, info: Info) -> None:
        """Write the final metadata of the trajectory."""
        with self._stopping():
            self.file.seal(attributes(info) | self.attrs)
        self.left.close()

    def release(self) -> None:
        """Close a file that will not be complete; the cause is reported elsewhere."""
        with contextlib.suppress(OSError):
            self.left.close()
