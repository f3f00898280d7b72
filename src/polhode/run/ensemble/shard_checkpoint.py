"""Checkpoint of a shard of a stored ensemble, in a separate file: a kill then costs seconds, even for a long shard.

The file holds the arrays of a `Course` (the results so far, the state, the step number, the accumulators of the
statistics), the software that computed them, and a digest of all this. It is replaced atomically, lies in a hidden
folder of the store, and is removed once the shard is written. A checkpoint that is damaged, or was written by other
software or on another kind of processor, is not used: the shard then restarts, and its bits are the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ... import _files
from ...compile.clock import Stopwatch
from ...compile.simd.vector_types import LANES
from ...results.ensemble import Ensemble
from ...results.store import atomic, checkpoint
from . import kept_times
from .run import Course
from .task import Task

SECONDS = 30.0
"""Time between two checkpoints of a shard."""

WORTHWHILE = 1.0
"""Seconds of work worth a checkpoint when a run is stopped; less is repeated."""

FOLDER = ".checkpoints"


class Stopped(Exception):
    """A run was told to stop, and left its checkpoint."""


def file_of(store: Path, number: int) -> Path:
    """Return the checkpoint file of a shard."""
    return store / FOLDER / f"{number}.npz"


def run(task: Task, store: Path, number: int, stop: threading.Event | None) -> Ensemble:
    """Run a shard from its checkpoint, or from its start, with regular checkpoints, until told to stop.

    Adaptive runs have no checkpoints: the steps of a body are few.
    """
    if task.lands:
        if stop is not None and stop.is_set():
            raise Stopped
        return task.run(threads=1)
    file, inner = file_of(store, number), kept_times.inner(task) if task.stops is not None else task
    course, watch = Course(inner, read(file, number)), Stopwatch()
    saved = time.monotonic()
    for _ in course:
        waited, told = time.monotonic() - saved, stop is not None and stop.is_set()
        if waited > SECONDS or (told and waited > WORTHWHILE):
            save(file, number, course.arrays)
            saved = time.monotonic()
        if told:
            raise Stopped
    return task.finished(inner.result(course.found, watch))


def save(file: Path, number: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace a checkpoint atomically, and wait until it is on the disk."""
    file.parent.mkdir(exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}.partial")
    label = _label(number)
    try:
        with new.open("wb") as written:
            np.savez(written, said=np.array(label), digest=np.array(_digest(label, arrays)), **arrays)  # type: ignore[arg-type]
            written.flush()
            os.fsync(written.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def read(file: Path, number: int) -> dict[str, np.ndarray] | None:
    """Return the arrays of a checkpoint; None if none is usable."""
    try:
        with _files.ordinary(file) as opened, np.load(opened, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in Course.NAMES}
            label, digest = str(kept["said"]), str(kept["digest"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, MemoryError):
        return None
    return arrays if label == _label(number) and digest == _digest(label, arrays) else None


def remove(store: Path, number: int) -> None:
    """Remove a checkpoint, once its shard is written."""
    file_of(store, number).unlink(missing_ok=True)


def remove_all(store: Path) -> None:
    """Remove the folder, once all shards are written."""
    with contextlib.suppress(FileNotFoundError):
        atomic.remove(store / FOLDER)


def _label(number: int) -> str:
    """Identify a checkpoint by shard, lanes and software: bits may differ if any of these does."""
    return f"unit {number}, {LANES} lanes, {checkpoint.software()}"


def _digest(label: str, arrays: Mapping[str, np.ndarray]) -> str:
    found = hashlib.blake2b(label.encode(), digest_size=16)
    for name in Course.NAMES:
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.data if array.size else b"")
    return found.hexdigest()
