"""The driver of runs with fixed steps: in chunks, with progress, into a recorder."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS
from ..methods import Method
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, Units
from ..results import recorder
from ..results.progress import Progress
from .integrator import Engine, looked
from .step_count import _about

CHUNK_SECONDS = 0.1
"""How long compiled code runs before Python looks at Ctrl-C and the progress bar."""

CHUNK_ROWS = 16384
"""States kept between two visits to the recorder."""


@dataclasses.dataclass
class Ride:
    """A run under way: where it is, and the miss of a step that failed."""

    run: Engine
    problem: Problem
    dt: float
    count: int
    every: int
    done: int = 0
    y: Any = None
    miss: Any = None
    method: Method | None = None
    end: float = math.inf
    """Where steps vary: the time at which the run ends."""
    units: Units = NO_UNITS
    """The units of problem, dt and y, if they are not those of the user."""

    @property
    def t(self) -> float:
        """The time reached."""
        if self.run.clock and self.done:
            return float(self.y[2][0])
        return self.problem.t0 + self.done * self.dt

    @property
    def over(self) -> bool:
        """Is the end reached."""
        return self.done >= self.count or self.t >= self.end

    @property
    def progress(self) -> int:
        """Steps made, or where steps vary, how many nominal ones fit into the time that went by."""
        return self.done if self.end == math.inf else _about(min(self.t, self.end) - self.problem.t0, self.dt)


def drive(ride: Ride, kept: recorder.Recorder, bar: Progress) -> None:
    """Drive the loop in chunks."""
    run, problem, count, every = ride.run, ride.problem, ride.count, ride.every
    with run.precision():
        if ride.y is None:
            ride.y = run.y
            kept.add(np.array([problem.t0]), _row(ride, run.y))
            kept.reached(0, run.y)
        chunk = 1 if run.digits else 64
        buffer = run.buffer(0)
        while not ride.over:
            chunk = min(chunk, count - ride.done, CHUNK_ROWS * every)
            if len(buffer) < chunk // every + 2:
                buffer = run.buffer(chunk // every + 2)
            began, first = time.perf_counter(), ride.done
            filled = _advance(ride, chunk, buffer)
            spent = time.perf_counter() - began
            if filled:
                kept.add(_times(ride, first, buffer[:filled]), _states(ride, buffer[:filled]))
            kept.reached(ride.done, ride.y)
            if ride.miss is not None:
                if ride.done % every:
                    seen = looked(run, problem, ride.method, ride.dt, ride.t, ride.y)
                    if seen is not None:
                        kept.add(np.array([ride.t]), _row(ride, seen))
                return
            bar.update(ride.progress)
            if not run.digits:
                chunk = max(1, int(chunk * min(8.0, CHUNK_SECONDS / max(spent, 1e-9))))


def _advance(ride: Ride, chunk: int, buffer: np.ndarray) -> int:
    """Make a chunk of steps; returns the rows filled."""
    run = ride.run
    h, t0 = run.number(ride.dt), run.number(ride.problem.t0)
    last = run.last(ride.count, ride.end)
    try:
        y, reached, filled, miss, fine = run.advance(
            h, t0, ride.done, chunk, ride.every, last, ride.y, run.system, buffer
        )
    except (ArithmeticError, TypeError, ValueError):
        if run.digits is None:
            raise
        ride.miss = math.nan
        return 0
    if run.digits and fine and not all(hasattr(x, "_mpf_") for part in y for x in part):
        ride.miss = math.nan
        return 0
    ride.y, ride.done, ride.miss = y, reached, None if fine else miss
    return int(filled)


def _row(ride: Ride, y: Any) -> np.ndarray:
    row = _states(ride, ride.run.buffer(1))
    row[0] = (*y[0], *y[1])
    return row


def _states(ride: Ride, rows: np.ndarray) -> np.ndarray:
    """The rows without the time behind the state."""
    return rows[:, :COLUMNS] if ride.run.clock else rows


def _times(ride: Ride, first: int, rows: np.ndarray) -> np.ndarray:
    """Times of the rows written after step `first`; where steps vary they stand in the rows."""
    if ride.run.clock:
        return rows[:, COLUMNS].astype(float)
    n = np.arange(first // ride.every + 1, ride.done // ride.every + 1) * ride.every
    if ride.done == ride.count and ride.count % ride.every:
        n = np.append(n, ride.count)
    return np.asarray(ride.problem.t0 + n * ride.dt)
