"""Events of a stored ensemble: a file ``events/NUMBER.npz`` for each unit, because their number differs among bodies.

It has ``count`` (events, bodies), the numbers of occurrences, and the states at all of them, in the order of the events
and then of the bodies: ``t``, ``quaternion``, ``momentum`` and ``energy``. A digest of all arrays detects damage.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ... import _files
from ..trajectory import PRIMARY, Info, Trajectory
from .integrity import Damage

FOLDER = "events"
NAMES = ("count", *PRIMARY)


def file_of(store: Path, number: int) -> Path:
    """Return the file of a unit."""
    return store / FOLDER / f"{number}.npz"


def write(store: Path, number: int, events: Sequence[Sequence[Trajectory]]) -> None:
    """Write the events of a unit, atomically, and wait until they are on the disk."""
    every = [one for of_event in events for one in of_event]
    arrays = {"count": np.array([[len(one) for one in of_event] for of_event in events], dtype=np.int64)}
    arrays |= {name: np.concatenate([getattr(one, name) for one in every]) for name in PRIMARY}
    file = file_of(store, number)
    file.parent.mkdir(exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}.partial")
    try:
        with new.open("wb") as written:
            np.savez(written, digest=np.array(_digest(arrays)), **arrays)  # type: ignore[arg-type]
            written.flush()
            os.fsync(written.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def read(store: Path, number: int) -> dict[str, np.ndarray]:
    """Read the arrays of a unit; raise `Damage` if they are not what was written."""
    try:
        with _files.ordinary(file_of(store, number)) as opened, np.load(opened, allow_pickle=False) as kept:
            arrays, digest = {name: kept[name] for name in NAMES}, str(kept["digest"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, MemoryError) as problem:
        raise Damage(f"the events of unit {number} cannot be read ({problem})") from problem
    if digest != _digest(arrays):
        raise Damage(f"the events of unit {number} do not match their digest")
    return arrays


def trajectories(arrays: Mapping[str, np.ndarray], infos: Sequence[Info]) -> list[list[Trajectory]]:
    """Return, for each event, the states at which it occurred, one Trajectory for each body."""
    count, found, first = arrays["count"], list[list[Trajectory]](), 0
    for of_event in count.tolist():
        found.append([])
        for number, info in zip(of_event, infos, strict=True):
            part = slice(first, first + number)
            found[-1].append(Trajectory({name: arrays[name][part] for name in PRIMARY}, info))
            first += number
    return found


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name in NAMES:
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.data if array.size else b"")
    return found.hexdigest()
