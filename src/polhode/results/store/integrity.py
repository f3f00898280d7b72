"""Checksums of file contents, and the allowed contents of a Zarr store: damage is detected, nothing is executed.

Three checks cover a file. Every chunk carries a CRC of its bytes (the crc32c codec of Zarr, fletcher32 in HDF5), which
any reader verifies. Every variable has a CRC over its numbers, in an attribute of the file: it detects chunks that are
missing, swapped, or left over from an earlier state. A SHA-256 digest covers the description with all attributes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import _files
from ..._extras import needed
from ...errors import InputError
from . import atomic

CHECKSUMS, DIGEST = "checksums", "digest"
"""Attributes of a file: the checksums of its variables as JSON, and the digest of the rest of its description."""

DESCRIPTION_BYTES = 1 << 28
"""Longest description of a store, in bytes."""

CODECS = {"bytes", "vlen-utf8", "zstd", "crc32c"}
TYPES = {"float64", "int64", "uint32", "string"}
"""Codecs and types that this library writes; the codecs only decode numbers and text."""

COMPRESSED_CHUNK = 1 << 26
"""Largest size of a compressed chunk after decoding, in bytes: a small file cannot demand much memory."""

REMEDY = "restore it from a copy, or compute it again with overwrite=True (--overwrite)"


class Damage(Exception):
    """A file is damaged; the message says how."""


class NotAStore(Exception):
    """A folder is not a store of this library; the message says why."""


def damaged(path: Path, what: str, remedy: str = REMEDY) -> InputError:
    """Error for a file whose content is not what was written."""
    return InputError(f"{path} is damaged: {what}; {remedy}")


def line(problem: BaseException) -> str:
    """Text of an exception on one line, with its type if it is not an exception of this library."""
    text = " ".join(str(problem).split())
    return text if isinstance(problem, Damage | NotAStore | InputError) else f"{type(problem).__name__} {text}"


# --- numbers ----------------------------------------------------------------------------------------


def checksum(values: np.ndarray, before: int = 0, axis: int = 0) -> int:
    """CRC-32 of numbers as little-endian bytes, slice by slice along an axis, continued from the CRC `before`."""
    ordered = np.moveaxis(np.asarray(values), axis, 0)
    plain = np.ascontiguousarray(ordered, dtype=ordered.dtype.newbyteorder("<"))
    return zlib.crc32(plain.reshape(-1).view(np.uint8).data, before)


def checksums_text(sums: Mapping[str, int]) -> str:
    """Checksums as the text of an attribute."""
    return json.dumps({name: f"{value:08x}" for name, value in sorted(sums.items())})


def checksums_of(attrs: Mapping[str, Any]) -> dict[str, int] | None:
    """Checksums from the attributes of a file; None for files of format 1, which have none."""
    if CHECKSUMS not in attrs:
        return None
    try:
        return {str(name): int(value, 16) for name, value in json.loads(attrs[CHECKSUMS]).items()}
    except (TypeError, ValueError, AttributeError):
        raise Damage("its checksums cannot be read") from None


def check(name: str, found: int, sums: Mapping[str, int] | None) -> None:
    """Compare the checksum of a variable that was read with the one in the file; without rows there is none."""
    if sums is not None and sums.get(name, 0) != found:
        raise Damage(f"{name} does not have the checksum it was written with")


def memory() -> float:
    """Memory of this machine in bytes; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


BYTES_PER_ROW = 200
"""Memory for one state while a trajectory is assembled: time, attitude, momentum and what is derived from them."""


def bytes_of(columns: int) -> int:
    """Memory for one state of so many numbers, seven of them attitude and momentum."""
    return BYTES_PER_ROW + 24 * max(0, columns - 7)


def shortage(rows: float, bytes_per_row: float = BYTES_PER_ROW) -> str:
    """What is said of more states than fit in memory; empty if they fit."""
    available, needed = memory(), rows * bytes_per_row
    if needed <= available:
        return ""
    return f"keeping {rows:.3g} states needs about {needed / 1e9:.3g} GB, and this machine has {available / 1e9:.3g} GB"


def check_memory(rows: float, bytes_per_row: float = BYTES_PER_ROW) -> None:
    """Refuse more states than fit in memory."""
    if said := shortage(rows, bytes_per_row):
        raise InputError(f"{said}; keep fewer with every, or write to a file with out")


# --- descriptions -----------------------------------------------------------------------------------


def digest(attrs: Any) -> str:
    """SHA-256 of a JSON value, independent of the order of keys and of white space."""
    return hashlib.sha256(json.dumps(attrs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(description: Mapping[str, Any]) -> str:
    """Text of the description of a Zarr store, with its digest among the attributes."""
    attrs = {name: value for name, value in description["attributes"].items() if name != DIGEST}
    whole = {**description, "attributes": attrs}
    return json.dumps({**whole, "attributes": attrs | {DIGEST: digest(whole)}}, indent=2)


def description_text(path: Path) -> bytes:
    """Text of the description of a store, which is an ordinary file."""
    try:
        with _files.ordinary(path / "zarr.json", DESCRIPTION_BYTES) as file:
            return file.read()
    except FileNotFoundError:
        raise NotAStore("it has no zarr.json, which describes a Zarr store of version 3") from None
    except OSError as fault:
        raise NotAStore(f"zarr.json cannot be read: {fault.strerror or fault}") from None


def described(path: Path) -> dict[str, Any]:
    """Read and check the description of a whole Zarr store (`zarr.json` of its root) before Zarr reads anything."""
    try:
        found = json.loads(description_text(path))
    except (ValueError, RecursionError):
        raise NotAStore("zarr.json is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("attributes"), dict):
        raise NotAStore("zarr.json does not describe a Zarr store")
    attrs = found["attributes"]
    if not str(attrs.get("format")).startswith("polhode "):  # not of this library: only its attributes are used
        return {"attributes": attrs, "consolidated_metadata": {"metadata": {}}}
    if DIGEST in attrs:
        rest = {name: value for name, value in attrs.items() if name != DIGEST}
        if attrs[DIGEST] != digest({**found, "attributes": rest}):
            raise Damage("zarr.json does not have the digest it was written with")
    try:
        _check_members(found)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise Damage(f"zarr.json is not what this library writes ({type(problem).__name__} {problem})") from None
    return found


def replace_attributes(path: Path, attrs: Mapping[str, Any]) -> None:
    """Replace the attributes of a Zarr store atomically, and update the digest."""
    file = path / "zarr.json"
    whole = json.loads(description_text(path)) | {"attributes": dict(attrs)}
    atomic.write_whole(file, sealed(whole), durable=True)


def arrays(description: Mapping[str, Any]) -> dict[str, Any]:
    """Descriptions of the arrays of a store, by name."""
    members = description["consolidated_metadata"]["metadata"]
    return {name: one for name, one in members.items() if one["node_type"] == "array"}


def _check_members(description: Mapping[str, Any]) -> None:
    """Accept only groups, and plain arrays with codecs that only decode."""
    if description["zarr_format"] != 3 or description["node_type"] != "group":
        raise NotAStore("it is not a Zarr store of version 3")
    for name, one in description["consolidated_metadata"]["metadata"].items():
        if any(part in ("", ".", "..") for part in name.split("/")) or one["zarr_format"] != 3:
            raise Damage(f"{name!r} is not an array of this library")
        if one["node_type"] == "array":
            _check_array(name, one)


def _check_array(name: str, one: Mapping[str, Any]) -> None:
    codecs = [codec["name"] for codec in one["codecs"]]
    strange = [*(set(codecs) - CODECS), *({one["data_type"]} - TYPES)]
    if strange:
        raise Damage(f"{name} is stored as {strange[0]!r}, which is not read: this library does not write it")
    if one.get("storage_transformers") or one["chunk_grid"]["name"] != "regular":
        raise Damage(f"{name} is stored in a way that this library does not write")
    keys = one["chunk_key_encoding"]
    if keys["name"] != "default" or keys.get("configuration", {}).get("separator", "/") != "/":
        raise Damage(f"{name} has names of chunks that this library does not write")
    shape, chunk = one["shape"], chunk_shape(one)
    numbers = [*shape, *chunk]
    if len(shape) != len(chunk) or not all(type(n) is int and n >= 0 for n in numbers) or 0 in chunk:
        raise Damage(f"{name} has no shape: {shape} in chunks of {chunk}")
    if "zstd" in codecs and one["data_type"] != "string" and 8 * math.prod(chunk) > COMPRESSED_CHUNK:
        raise Damage(f"{name} has compressed chunks of {chunk}, larger than this library writes")


def chunk_shape(one: Mapping[str, Any]) -> list[int]:
    """The shape of the chunks of an array."""
    return list(one["chunk_grid"]["configuration"]["chunk_shape"])


def check_chunks(
    path: Path, name: str, one: Mapping[str, Any], wanted: Callable[[tuple[int, ...]], Any] | None = None
) -> None:
    """Check that the chunks of an array exist: Zarr treats a missing chunk as one that holds only the fill value.

    Nothing is read yet. Uncompressed chunks must have the size of their numbers, and compressed ones no larger one than
    this library writes.
    """
    size = _chunk_bytes(one)
    for index in _indices(one):
        if wanted is not None and not wanted(index):
            continue
        file = path.joinpath(name, "c", *map(str, index))
        try:
            found = file.lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise Damage(f"a part of {name} is missing ({file.relative_to(path)})") from None
        fits = found.st_size == size if size is not None else found.st_size <= 2 * COMPRESSED_CHUNK
        if not stat.S_ISREG(found.st_mode) or not fits:
            raise Damage(f"a part of {name} has the wrong size ({file.relative_to(path)})")


def _indices(one: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    counts = (-(-n // c) for n, c in zip(one["shape"], chunk_shape(one), strict=True))
    return itertools.product(*map(range, counts))


def _chunk_bytes(one: Mapping[str, Any]) -> int | None:
    """Size of a chunk on disk in bytes; None if it depends on the content."""
    codecs = [codec["name"] for codec in one["codecs"]]
    width = {"float64": 8, "int64": 8, "uint32": 4}.get(one["data_type"])
    if width is None or "zstd" in codecs:
        return None
    return width * math.prod(chunk_shape(one)) + 4 * codecs.count("crc32c")


# --- Zarr -------------------------------------------------------------------------------------------


def opened(path: Path, mode: str = "r") -> Any:
    """Open the group of a store whose description has been checked."""
    zarr = needed("zarr")

    return zarr.open_group(path, mode=mode, zarr_format=3, use_consolidated=True)


def created(group: Any, name: str, compressed: bool = True, **attrs: Any) -> Any:
    """Create an array with a checksum in every chunk; chunks that hold only the fill value are written too."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    codecs = [ZstdCodec(level=0), Crc32cCodec()] if compressed else [Crc32cCodec()]
    return group.create_array(name, compressors=codecs, config=WHOLE, **attrs)


def created_words(group: Any, name: str, dims: tuple[str, ...], words: Any) -> None:
    """Create an array of strings."""
    array = created(group, name, shape=np.shape(words), dtype="str", dimension_names=dims)
    array[...] = np.array(words, dtype=object)


WHOLE = {"write_empty_chunks": True}


def writable(group: Any, name: str) -> Any:
    """Array of a store, for writing. Chunks that hold only the fill value are written too, so none may be missing."""
    return group[name].with_config(WHOLE)
