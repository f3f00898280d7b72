"""The journal of a run to a tolerance: what was computed, in the file that the run will write.

A run to a tolerance is a sequence of adaptive runs: the result, and finer ones that estimate its error. Each of them
writes its steps, and where it stands, into the folder `runs` of the unfinished file. A run that was killed is made
again with the same arguments: what the journal holds is read instead of computed, and the first run that is not
complete goes on from the end of its last piece. Pieces are those of `adaptive.Run`, so that every number is the same
as in a run without interruption. The steps of the first run are also the rows of the unfinished file, for readers.

A file of the journal that is damaged or of another run is not used: its steps are computed again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from .. import _files
from ..compile.clock import Stopwatch
from ..errors import InputError
from ..kernels.loops import COLUMNS
from ..numbers.precision import GUARD_DIGITS
from ..physics.problem import Problem
from ..physics.units import Units
from ..results.convert import states
from ..results.recorder import FLUSH_SECONDS, interrupts_after, unwritable
from ..results.store import trajectory_store
from ..results.store.checkpoint import number_of, number_text
from ..results.trajectory import Info
from .adaptive import Path, Run, Standing

FOLDER = "runs"
"""Folder of the journal in an unfinished file."""


@dataclasses.dataclass
class Journal:
    """The runs made so far for one result; `adaptive.journaled` makes the runs of a context use it."""

    problem: Problem
    units: Units
    """The units of the runs."""
    info: Info
    path: FilePath
    """The file of the result."""
    attrs: dict[str, str]
    found: trajectory_store.Stored | None = None
    """The unfinished file of the same run, if there is one."""

    def __post_init__(self) -> None:
        self.runs, self.flushed = 0, time.monotonic()
        self.waiting: dict[int, list[Path]] = {}
        self.keys: dict[int, str] = {}
        self.blocks: dict[int, int] = {}
        self.kept: dict[int, int] = {}
        self.writer: trajectory_store.Writer | None = None
        self.shown, self.watch = 0, Stopwatch()
        self.earlier = 0.0 if self.found is None else float(self.found.attrs["seconds"])

    def pieces(self, run: Run) -> Iterator[Path]:
        """Yield the pieces of a run: those of the journal, then those that remain to be computed."""
        number, self.runs = self.runs, self.runs + 1
        self.keys[number], self.blocks[number], self.kept[number] = _key(run), 0, 0
        last: Path | None = None
        for last in self._read(number, run.controlled_step.digits):
            yield last
        if last is not None and last.standing is None:
            return
        if number == 0:
            self.info = dataclasses.replace(self.info, method=run.controlled_step.label(run.order))
        for piece in run.computed(None if last is None else last.standing):
            self.waiting.setdefault(number, []).append(piece)
            if time.monotonic() - self.flushed >= FLUSH_SECONDS:
                self.flush()
            yield piece

    def _read(self, number: int, digits: int | None) -> Iterator[Path]:
        """Yield the pieces of a run that the journal holds."""
        if self.found is None:
            return
        while True:
            file = self.found.path / FOLDER / _name(number, self.blocks[number])
            try:
                pieces = _pieces(file, self._label(number), digits)
            except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, MemoryError):
                return
            self._count(number, len(pieces))
            self.shown += sum(len(piece.times) for piece in pieces) if number == 0 else 0
            yield from pieces

    def _label(self, number: int) -> str:
        """Text of the next block of a run: which run it is, and how many pieces come before."""
        return f"{self.keys[number]} {self.kept[number]}"

    def _count(self, number: int, pieces: int) -> None:
        self.blocks[number] += 1
        self.kept[number] += pieces

    def flush(self) -> None:
        """Write what was computed since the last time: first the rows for readers, then the journal."""
        with interrupts_after(), self._explained():
            if self.writer is None:
                self.writer = self._opened()
            rows = [(piece.times, piece.rows) for piece in self.waiting.get(0, [])]
            if rows:
                t, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
                t, y = self.units.times(t, back=True), self.units.rows(y, back=True)
                self.shown += len(t)
                told: dict[str, Any] = {"steps": self.shown - 1, "method": self.info.method}
                told["seconds"] = self.earlier + self.watch.seconds
                self.writer.append(states(self.problem, t, y, self.info.digits), {}, **told)
            folder = self.writer.folder / FOLDER
            folder.mkdir(exist_ok=True)
            for number, pieces in self.waiting.items():
                _write(folder / _name(number, self.blocks[number]), self._label(number), pieces)
                self._count(number, len(pieces))
            self.waiting, self.flushed = {}, time.monotonic()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise unwritable(self.path, fault) from fault

    def _opened(self) -> trajectory_store.Writer:
        """Open the unfinished file, new or at the end of the rows whose steps the journal holds."""
        attrs = self.attrs | trajectory_store.problem_attribute(self.problem)
        if self.found is None or not self.shown:
            return trajectory_store.Writer.create(self.path, self.info, attrs, overwrite=True)
        held = contextlib.ExitStack()
        return trajectory_store.Writer.continued(self.path, self.found, self.shown, self.info, attrs, held)

    def stop(self) -> None:
        """Write the rest of a run that was interrupted, if it has a file."""
        if self.writer is not None:
            with contextlib.suppress(OSError, InputError):
                self.flush()
                self.writer.target.close(dataclasses.replace(self.writer.info, status="interrupted"))


def _name(number: int, block: int) -> str:
    return f"{number}.{block}.npz"


def _key(run: Run) -> str:
    """What distinguishes the runs of one result, as text."""
    texts = [number_text(x) for x in (run.tolerance, run.end, *run.longest, *_numbers_of(run.y))]
    return json.dumps([run.controlled_step.label(run.order), run.order, *texts])


def _numbers_of(y: Any) -> list[Any]:
    """All numbers of a state: attitude, momentum, and what follows them."""
    return [x for part in y for x in part]


def _state_of(numbers: list[Any]) -> tuple[tuple[Any, ...], ...]:
    """Inverse of `_numbers_of`."""
    plain = tuple(numbers[:4]), tuple(numbers[4:COLUMNS])
    return (*plain, tuple(numbers[COLUMNS:])) if len(numbers) > COLUMNS else plain


def _write(file: FilePath, key: str, pieces: list[Path]) -> None:
    """Write pieces of a run; the file appears complete or not at all."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {
        f"{name}{i}": _storable(getattr(p, name)) for i, p in enumerate(pieces) for name in ("times", "rows")
    }
    np.savez(buffer, text=np.array(json.dumps({"key": key, "pieces": [_summary(p) for p in pieces]})), **arrays)
    new = file.with_name(f"{file.name}.{os.getpid()}.partial")
    new.write_bytes(buffer.getvalue())
    new.replace(file)


def _pieces(file: FilePath, key: str, digits: int | None) -> list[Path]:
    """Read pieces of a run; ValueError if they are of another run."""
    with _files.ordinary(file) as source, np.load(source, allow_pickle=False) as found:
        described = json.loads(str(found["text"]))
        if described["key"] != key:
            raise ValueError(f"{file} is of another run")
        return [
            _piece(one, _numbers(found[f"times{i}"], digits), _numbers(found[f"rows{i}"], digits), digits)
            for i, one in enumerate(described["pieces"])
        ]


def _storable(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == float else np.array([number_text(x) for x in values.ravel()]).reshape(values.shape)


def _numbers(values: np.ndarray, digits: int | None) -> np.ndarray:
    if digits is None:
        return values
    numbers = np.empty(values.size, dtype=object)
    numbers[:] = [number_of(x, digits + GUARD_DIGITS) for x in values.ravel().tolist()]
    return numbers.reshape(values.shape)


SCALARS = ("largest", "turned")


def _summary(piece: Path) -> dict[str, Any]:
    """The piece without its arrays, exact to the last bit."""
    found: dict[str, Any] = {
        "rejected": piece.rejected,
        "finished": bool(piece.finished),
        "crawling": bool(piece.crawling),
    }
    found |= {name: number_text(getattr(piece, name)) for name in SCALARS}
    at = piece.standing
    if at is not None:
        numbers = [number_text(x) for x in (at.t, at.proposal, at.largest, *_numbers_of(at.y))]
        found["standing"] = [at.leg, at.size, at.attempted, numbers]
    return found


def _piece(one: dict[str, Any], times: np.ndarray, rows: np.ndarray, digits: int | None) -> Path:
    """Inverse of `_summary`."""

    def number(text: str) -> Any:
        exact = digits is not None and "0x" not in text
        return number_of(text, None if digits is None or not exact else digits + GUARD_DIGITS)

    standing = None
    if "standing" in one:
        leg, size, attempted, texts = one["standing"]
        t, proposal, largest, *y = map(number, texts)
        standing = Standing(leg, t, _state_of(y), proposal, largest, size, attempted)
    scalars = {name: number(one[name]) for name in SCALARS}
    return Path(times, rows, one["rejected"], one["finished"], one["crawling"], **scalars, standing=standing)
