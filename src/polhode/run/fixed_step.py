"""The driver of all fixed-step runs, in any space: in chunks, with progress, into a recorder.

A space provides an `Engine` (the loop, the start, the layout of a row), a function that builds its result from times
and rows (`recorder.Memory`), and a function that explains a failed step. It serves bodies, vectors, Lie groups and N
dimensions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sized
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ..compile import notice
from ..compile.clock import Stopwatch
from ..errors import InputError, StepError
from ..kernels.loops import COLUMNS
from ..methods import Method
from ..physics.units import NO_UNITS, Units
from ..results.progress import Progress
from ..results.recorder import DiskError, Memory, Recorder
from ..results.store import integrity
from .integrator import Engine, to_output
from .step_count import Timed, _about

CHUNK_SECONDS = 0.1
"""Run time of compiled code between checks for Ctrl-C and updates of the progress bar."""

CHUNK_ROWS = 16384
"""Largest number of states between two calls of the recorder."""

Start = TypeVar("Start", bound=Timed)
Result = TypeVar("Result", bound=Sized)


@dataclasses.dataclass
class RunState(Generic[Start]):
    """A run in progress: its current state, and the residual of a failed step."""

    run: Engine
    problem: Start
    dt: float
    count: int
    every: int
    done: int = 0
    y: Any = None
    residual: Any = None
    method: Method = dataclasses.field(kw_only=True)
    end: float = math.inf
    """The end time of the run, if steps vary."""
    units: Units = NO_UNITS
    """The units of problem, dt and y, if they differ from the user's."""
    step: str = "dt"
    """The user's name for dt."""
    fault: str = ""
    """The error message of the user's function in the failed step, if any."""

    @property
    def t(self) -> float:
        """Current time."""
        if self.run.has_own_time and self.done:
            return float(self.y[2][0])
        return self.problem.t0 + self.done * self.dt

    @property
    def over(self) -> bool:
        """Whether the end is reached."""
        return self.done >= self.count or self.t >= self.end

    @property
    def progress(self) -> int:
        """Completed steps; if steps vary, the elapsed time in nominal steps."""
        return self.done if self.end == math.inf else _about(min(self.t, self.end) - self.problem.t0, self.dt)


def solved(
    state: RunState[Start],
    kept: Recorder[Result],
    bar: Progress,
    reason: Callable[[RunState[Start]], str],
    what: str = "state",
) -> Result:
    """Make all steps and return the result of the recorder; messages call its entries `what`.

    A failed step raises a StepError with the explanation from `reason`. This and any other exception that ends the run
    carry the result so far as `partial`.
    """
    if isinstance(kept, Memory):
        steps = state.count if state.end == math.inf else _about(state.end - state.problem.t0, state.dt)
        integrity.check_memory(steps // state.every + 2, _bytes_of_row(state))
    watch = Stopwatch()

    def result(status: str) -> Result:
        return kept.finish(
            status=status, seconds=watch.seconds, compile_seconds=watch.compile_seconds, steps=state.done
        )

    try:
        try:
            with contextlib.nullcontext() if state.run.warm else _compiling(state, bar):
                integrate_in_chunks(state, kept, bar)
        except DiskError:
            raise
        except BaseException as stop:
            with contextlib.suppress(Exception):
                stop.partial = result("interrupted")  # type: ignore[attr-defined]  # any exception may carry it
            raise
        finally:
            bar.close()
        whole = result("finished" if state.residual is None else "failed")
    except DiskError as fault:
        raise _stopped_writing(state, fault) from fault
    finally:
        kept.release()
    if state.residual is None:
        return whole
    with state.run.precision():
        why = reason(state)
    states = f"{what} before it is" if len(whole) == 1 else f"{len(whole)} {what}s before it are"
    t, dt = state.units.times((state.t, state.dt), back=True)
    head = f"{state.method.name} failed in step {state.done + 1} (from t = {t:g} with {state.step} = {dt:g})"
    raise StepError(f"{head}: {why}", cast(Any, whole), f"the {states} in .partial")


def _compiling(state: RunState[Any], bar: Progress) -> notice.about:
    """Say what is compiled, if somebody watches the run."""
    return notice.about(notice.named(state.method.name, state.problem), bar.visible)


def _bytes_of_row(state: RunState[Any]) -> int:
    """Return the memory for a state."""
    return integrity.bytes_of(math.prod(state.run.buffer(0).shape[1:]))


def _stopped_writing(state: RunState[Any], fault: DiskError) -> StepError:
    """Return the error for a file that could not be written."""
    partial = fault.disk.rescue()
    return StepError(
        f"{state.method.name} stopped at step {state.done}: {fault.disk.writer.path} cannot be written ({fault})",
        partial,
        f"the {len(partial)} states written before are in .partial and in {fault.disk.writer.folder}; free some "
        "disk space and continue with resume=True (--resume)",
    )


def integrate_in_chunks(state: RunState[Any], kept: Recorder[Any], bar: Progress) -> None:
    """Run the loop in chunks."""
    run, problem, count, every = state.run, state.problem, state.count, state.every
    with run.precision():
        if state.y is None:
            state.y = run.y
            _keep(state, kept, np.array([run.number(problem.t0)]), _row(state, run.y))
            kept.reached(0, run.y)
        chunk = 1 if run.digits or run.singly else 64
        buffer = run.buffer(0)
        while not state.over:
            chunk = min(chunk, count - state.done, CHUNK_ROWS * every)
            if len(buffer) < chunk // every + 2:
                buffer = run.buffer(chunk // every + 2)
            began, first = time.perf_counter(), state.done
            filled = _advance(state, chunk, buffer)
            spent = time.perf_counter() - began
            if filled:
                _keep(state, kept, _times(state, first, buffer[:filled]), _states(state, buffer[:filled]))
            kept.reached(state.done, state.y)
            if state.residual is not None:
                if state.done % every:
                    seen = to_output(run, problem, state.method, state.dt, state.t, state.y)
                    if seen is not None:
                        _keep(state, kept, np.array([state.run.number(state.t)]), _row(state, seen))
                return
            bar.update(state.progress)
            if not (run.digits or run.singly):
                chunk = max(1, int(chunk * min(8.0, CHUNK_SECONDS / max(spent, 1e-9))))


def _advance(state: RunState[Any], chunk: int, buffer: np.ndarray) -> int:
    """Make a chunk of steps and return the number of rows filled."""
    run = state.run
    h, t0 = run.number(state.dt), run.number(state.problem.t0)
    last = run.last(state.count, state.end)
    try:
        y, reached, filled, residual, fine = run.advance(
            h, t0, state.done, chunk, state.every, last, state.y, run.system, buffer
        )
    except (ArithmeticError, TypeError, ValueError) as problem:
        if not (run.digits or run.plain):
            raise
        state.fault = str(problem) if isinstance(problem, InputError) else ""
        if chunk > 1:  # keep the steps before the one that fails
            return _advance(state, 1, buffer)
        state.residual = math.nan
        return 0
    if run.digits and fine and not all(hasattr(x, "_mpf_") for part in y for x in np.ravel(np.array(part, object))):
        state.residual = math.nan
        return 0
    state.y, state.done, state.residual = y, reached, None if fine else residual
    return int(filled)


def _keep(state: RunState[Any], kept: Recorder[Any], t: np.ndarray, rows: np.ndarray) -> None:
    """Pass these states to the recorder, in the user's units."""
    if state.units is not NO_UNITS:
        t, rows = state.units.times(t, back=True), state.units.rows(rows, back=True)
    kept.add(t, rows)


def _row(state: RunState[Any], y: Any) -> np.ndarray:
    row = _states(state, state.run.buffer(1))
    row[0] = [x for part in y for x in part][: row.shape[1]]  # without low parts or a memory
    return row


def _states(state: RunState[Any], rows: np.ndarray) -> np.ndarray:
    """Return the rows without the time column after the state."""
    return rows[:, :COLUMNS] if state.run.has_own_time else rows


def _times(state: RunState[Any], first: int, rows: np.ndarray) -> np.ndarray:
    """Return the times of the rows written after step `first`; if steps vary, the rows contain them."""
    if state.run.has_own_time:
        return rows[:, COLUMNS].copy()
    n = np.arange(first // state.every + 1, state.done // state.every + 1) * state.every
    if state.done == state.count and state.count % state.every:
        n = np.append(n, state.count)
    if state.run.digits is None:
        return np.asarray(state.problem.t0 + n * state.dt)
    return state.run.number(state.problem.t0) + n.astype(object) * state.run.number(state.dt)
