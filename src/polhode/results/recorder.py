"""Recorders: they store the states of a run, in memory or in a file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import signal
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..compile.clock import Stopwatch
from ..errors import InputError, ResultWarning, StepError
from ..kernels.loops import COLUMNS
from ..numbers import arrays  # noqa: F401 - makes arrays a number type
from ..physics.problem import Problem
from .convert import Lazy, states
from .store import atomic, integrity, trajectory_store
from .store.checkpoint import CHECKPOINT, RUN_END, RUN_SPEC, SOFTWARE, Checkpoint, resume_from, software
from .trajectory import Info, Trajectory

NO_ROWS = np.empty(0), np.empty((0, COLUMNS))
NOTHING: Mapping[str, str] = types.MappingProxyType({})

FLUSH_SECONDS = 1.0
"""Longest time before rows are written to disk (plus the time until the next chunk of steps is done)."""


Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class Recorder(Protocol[Made]):
    """Collects rows as they come and builds the result at the end; for the motion of a body, a Trajectory."""

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Store these states (principal axes)."""

    def reached(self, step: int, y: Any) -> None:
        """Record that the rows so far lead up to the state y after this step."""

    def finish(self, **changes: Any) -> Made:
        """The result so far; `changes` are metadata of the run (status, seconds, steps)."""

    def release(self) -> None:
        """Release locks and files."""


class Memory(Generic[Result]):
    """Stores everything in memory; ``result(t, rows, **attrs)`` builds the result of a run in any space."""

    def __init__(self, result: Callable[..., Result]) -> None:
        self.result = result
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []
        self.count = 0

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Store a copy: the loop reuses its buffer. If steps vary, it is not known before how many there will be."""
        self.kept.append((t, rows.copy()))
        self.count += len(t)
        if said := integrity.shortage(self.count, integrity.bytes_of(math.prod(rows.shape[1:]))):
            raise StepError(f"{said}; keep fewer with every, or write to a file with out; they are in .partial")

    def reached(self, step: int, y: Any) -> None:
        """Do nothing: memory does not outlive the process."""

    def release(self) -> None:
        """Do nothing: no resources are held."""

    def finish(self, **changes: Any) -> Result:
        """The result so far."""
        t, rows = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
        return self.result(t, rows, **changes)


class Parts:
    """Times and rows that came in parts, joined on first access."""

    def __init__(self, kept: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.kept = kept

    @functools.cached_property
    def times(self) -> np.ndarray:
        """The times."""
        return np.concatenate([t for t, _ in self.kept])

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """The rows."""
        return np.concatenate([rows for _, rows in self.kept])

    def last(self) -> Parts:
        """Return the last state."""
        t, rows = self.kept[-1]
        return Parts([(t[-1:], rows[-1:])])


class States(Memory[Trajectory]):
    """Stores the states of a body in memory; an interrupted run does not wait for their conversion."""

    def __init__(self, problem: Problem, info: Info) -> None:
        super().__init__(functools.partial(trajectory_of, problem, info))
        self.problem, self.info = problem, info

    def finish(self, **changes: Any) -> Trajectory:
        """The result so far."""
        if changes["status"] != "interrupted" or self.info.digits is not None or not self.kept:
            return super().finish(**changes)
        info = dataclasses.replace(self.info, **changes)
        return Trajectory(Lazy(self.problem, Parts(self.kept)), info, problem=self.problem)


def trajectory_of(problem: Problem, info: Info, t: np.ndarray, rows: np.ndarray, **attrs: Any) -> Trajectory:
    """Trajectory from the rows of a run in principal axes."""
    info = dataclasses.replace(info, **attrs)
    return Trajectory(states(problem, t, rows, info.digits), info)


class DiskError(Exception):
    """A recorder could not write."""

    def __init__(self, disk: Disk, problem: OSError) -> None:
        super().__init__(problem.strerror or str(problem))
        self.disk = disk


class Disk:
    """Appends rows and the state they lead up to (the checkpoint) to a file during the run, with bounded memory."""

    def __init__(self, problem: Problem, writer: trajectory_store.Writer, start: Checkpoint | None = None) -> None:
        self.problem, self.writer = problem, writer
        self.waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self.mark, self.marked = start, False
        self.flushed = -FLUSH_SECONDS
        self.watch, self.seconds = Stopwatch(), writer.info.seconds

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Buffer these states until the state they lead up to is known and a write is due."""
        self.waiting.append((t, rows.copy()))

    def reached(self, step: int, y: Any) -> None:
        """Write the buffered rows if there are enough of them or a write is due.

        A last step that is no multiple of `every` is not counted as a row: a longer run would not store it.
        """
        self.mark, self.marked = Checkpoint(step, 1 + step // self.writer.info.every, y), True
        waiting = sum(len(t) for t, _ in self.waiting)
        if waiting >= trajectory_store.ROWS_PER_CHUNK or time.monotonic() - self.flushed >= FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        """Write the buffered rows; Ctrl-C is deferred until the write is complete."""
        with interrupts_after():
            waiting, self.waiting = self.waiting, []
            if waiting or self.marked:
                t, rows = (np.concatenate(parts) for parts in zip(*waiting, strict=True)) if waiting else NO_ROWS
                attrs = {CHECKPOINT: self.mark.text()} if self.mark else {}
                steps = self.mark.step if self.mark else 0
                with self._watched():
                    data = states(self.problem, t, rows, self.writer.info.digits)
                    self.writer.append(data, attrs, steps=steps, seconds=self.spent)
                self.marked = False
            self.flushed = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds of this run and of the runs it continues, without compilation."""
        return self.seconds + self.watch.seconds

    def finish(self, **changes: Any) -> Trajectory:
        """Write the rest, close the file and open it as a trajectory."""
        self._flush()
        with self._watched():
            path = self.writer.close(**changes | {"seconds": self.spent})
        whole = trajectory_store.load(path)
        whole.info = dataclasses.replace(whole.info, compile_seconds=self.watch.compile_seconds)
        return whole

    def release(self) -> None:
        """Release the lock, so that others can write the file."""
        self.writer.release()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise DiskError(self, problem) from problem

    def rescue(self) -> Trajectory:
        """The rows that are safe on disk, after writing failed."""
        with contextlib.suppress(OSError, InputError):
            self.writer.target.close(dataclasses.replace(self.writer.info, status="failed"))
        return trajectory_store.load(self.writer.folder)


@contextlib.contextmanager
def interrupts_after() -> Iterator[None]:
    """Defer Ctrl-C until the block is done."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    pressed: list[Any] = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if pressed:
            usual(*pressed[-1])


def recorder(
    problem: Problem, info: Info, out: Any, overwrite: bool, attrs: Mapping[str, str] = NOTHING
) -> Recorder[Trajectory]:
    """A recorder to memory, or to a new file that records how its run was started."""
    if out is None:
        return States(problem, info)
    try:
        return Disk(problem, trajectory_store.Writer.create(out, info, attrs, overwrite))
    except OSError as fault:
        raise unwritable(out, fault) from fault


def unwritable(path: str | Path, fault: OSError) -> InputError:
    """Error for a file that cannot be created or changed."""
    return InputError(f"{path} cannot be written: {fault.strerror or fault}")


def continued(problem: Problem, path: Path, how: Mapping[str, Any], end: Mapping[str, Any]) -> Disk | Trajectory | None:
    """A recorder that continues the file of a run; its trajectory if it is complete; None if there is no file.

    `how` and `end` describe the requested run: `checkpoint.run_spec` and `checkpoint.run_end`.
    """
    try:
        with contextlib.ExitStack() as held:
            held.enter_context(atomic.writing(path))
            there = trajectory_store.existing(path)
            if there is None:
                return None
            whole, attrs = trajectory_store.read(there)
            mark = resume_from(there, attrs, how, end, len(whole))
            done = mark is not None and mark.is_end(end)
            if there == path and whole.status == "finished" and done:
                whole.stored.checked(0)
                return whole
            names = (RUN_SPEC, CHECKPOINT, SOFTWARE, *trajectory_store.HELD)
            kept = {name: str(attrs[name]) for name in names if name in attrs}
            kept |= {RUN_END: json.dumps(end), SOFTWARE: _software(there, kept.get(SOFTWARE, ""), mark)}
            if whole.stored.sums is None:
                warnings.warn(
                    f"{there} was written by an earlier version, without checksums: damage cannot be detected; "
                    "from now on it has checksums",
                    ResultWarning,
                    stacklevel=4,
                )
            info = dataclasses.replace(whole.info, status="running")
            rows = 0 if mark is None else len(whole) if done else mark.rows
            return Disk(
                problem, trajectory_store.Writer.continued(path, whole.stored, rows, info, kept, held.pop_all()), mark
            )
    except OSError as fault:
        raise unwritable(path, fault) from fault
    raise AssertionError  # unreachable: this ExitStack suppresses no exception


def _software(path: Path, then: str, mark: Checkpoint | None) -> str:
    """Software that computed a run so far and that computes it from now on; warn if they differ."""
    now = software()
    if then.rpartition(": ")[2] == now:
        return then
    warnings.warn(
        f"{path} was computed by {then or 'an unknown version'}, and is resumed with {now}: its last bits may "
        "differ from those of an uninterrupted run",
        stacklevel=4,
    )
    return f"{then}; from step {mark.step if mark else 0} on: {now}"
