"""Run a method on a problem."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import record
from .engine import Engine, engine
from .errors import InputError, StepError
from .methods import Method, methods
from .problem import Problem, _finite_number
from .progress import Progress
from .trajectory import Info, Trajectory

CHUNK_SECONDS = 0.1
"""How long compiled code runs before Python looks at Ctrl-C and the progress bar."""

CHUNK_ROWS = 16384
"""States kept between two visits to the recorder."""


def solve(
    problem: Problem,
    method: str | Method,
    *,
    dt: float,
    t_end: float | None = None,
    steps: int | None = None,
    every: int = 1,
    out: str | Path | None = None,
    overwrite: bool = False,
    digits: int | None = None,
    progress: bool | None | Callable[[float], Any] = None,
) -> Trajectory:
    """Integrate a problem with a method and a fixed step.

    Parameters
    ----------
    problem : Problem
    method : a name, an alias, an expression such as ``"mkrk(rk4)"``, or a Method
    dt : step size, positive
    t_end, steps : end time or number of steps (one of them; by default the problem's own end time)
    every : keep steps 0, every, 2 every, ... and always the last
    out : also write to this file as the run goes (``.zarr`` or ``.nc``); memory then stays bounded
    overwrite : replace an existing file
    digits : run the same kernels in mpmath with this many digits (slow); see ``Trajectory.mp``
    progress : None shows a bar on a terminal after two seconds; True, False, or a function of the fraction

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError : something given cannot be right; nothing was changed
    StepError : a step failed; ``.partial`` holds what was computed before
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    chosen = methods[method]
    dt = _finite_number("dt", dt)
    if dt <= 0:
        raise InputError(f"dt must be positive; got {dt:g}")
    every = _count("every", every)
    count = _number_of_steps(problem, dt, t_end, steps)
    run = engine(problem, chosen, digits)
    info = Info(
        method=chosen.name, dt=dt, inertia=tuple(map(tuple, problem.body.inertia.tolist())), problem=problem.name,
        field=repr(problem.field) if problem.field else "", every=every, digits=digits,
    )  # fmt: skip
    kept = record.recorder(problem, info, out, overwrite)
    bar = Progress(progress, chosen.name, count)
    if not run.warm:
        bar.note(f"compiling {chosen.name} (once; kept for later runs)")
    began = time.perf_counter()
    try:
        failure = _run(run, problem, dt, count, every, kept, bar)
    except KeyboardInterrupt as stop:
        partial = kept.finish("interrupted", time.perf_counter() - began)
        stop.partial = partial  # type: ignore[attr-defined]
        raise
    finally:
        bar.close()
    status = "finished" if failure is None else "failed"
    result = kept.finish(status, time.perf_counter() - began)
    if failure is not None:
        raise StepError(_explain(chosen, problem, dt, result, *failure), result)
    return result


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}")
    return int(value)


def _number_of_steps(problem: Problem, dt: float, t_end: float | None, steps: int | None) -> int:
    if steps is not None:
        if t_end is not None:
            raise InputError("give t_end or steps, not both")
        return _count("steps", steps)
    end = problem.t_end if t_end is None else _finite_number("t_end", t_end)
    if end is None:
        raise InputError("give t_end or steps: this problem has no end time of its own")
    if end <= problem.t0:
        raise InputError(f"t_end must lie after t0 = {problem.t0:g}; got {end:g}")
    exact = (end - problem.t0) / dt
    count = round(exact)
    if count < 1 or abs(exact - count) > max(1e-9, 4e-16 * exact):
        low, high = (problem.t0 + n * dt for n in (math.floor(exact), math.ceil(exact)))
        raise InputError(
            f"t_end - t0 = {end - problem.t0:g} is not a whole number of steps dt = {dt:g} ({exact:.6g}); "
            f"the nearest t_end are {low:.12g} and {high:.12g}"
        )
    return count


def _run(
    run: Engine, problem: Problem, dt: float, count: int, every: int, kept: record.Recorder, bar: Progress
) -> tuple[int, Any, Any] | None:
    """Drive the loop in chunks; returns None, or (step, state, miss) of a failure."""
    with run.precision():
        h, t0, y = run.number(dt), run.number(problem.t0), run.y
        first_row = run.buffer(1)
        first_row[0] = (*y[0], *y[1])
        kept.add(np.array([problem.t0]), first_row)
        done, chunk = 0, 1 if run.digits else 64
        buffer = run.buffer(0)
        while done < count:
            chunk = min(chunk, count - done, CHUNK_ROWS * every)
            if len(buffer) < chunk // every + 2:
                buffer = run.buffer(chunk // every + 2)
            began = time.perf_counter()
            y, reached, filled, miss, fine = run.advance(h, t0, done, chunk, every, count, y, run.system, buffer)
            spent = time.perf_counter() - began
            if filled:
                kept.add(_times(problem.t0, dt, done, reached, every, count, filled), buffer[:filled])
            done = reached
            if not fine:
                return done, y, miss
            bar.update(done)
            chunk = max(1, int(chunk * min(8.0, CHUNK_SECONDS / max(spent, 1e-9))))
    return None


def _times(t0: float, dt: float, first: int, reached: int, every: int, last: int, filled: int) -> np.ndarray:
    """Times of the rows written between two steps."""
    n = np.arange(first + 1, reached + 1)
    n = n[(n % every == 0) | (n == last)][:filled]
    return np.asarray(t0 + n * dt)


def _explain(method: Method, problem: Problem, dt: float, partial: Trajectory, step: int, y: Any, miss: Any) -> str:
    """One clear sentence about a step that failed."""
    t = problem.t0 + step * dt
    head = f"{method.name} failed in step {step + 1} (from t = {t:g}, dt = {dt:g}): "
    tail = f"; the {len(partial)} states before it are in .partial"
    for moment in (t, t + dt):
        try:
            problem.check_field(moment, *problem.user_axes(*y), f"in step {step + 1} (t = {moment:g})")
        except InputError as fault:
            return f"{head}{fault}{tail}"
    if miss > 0:
        return (
            f"{head}its equation was not solved (relative correction left: {float(miss):.1e}); "
            f"try dt = {dt / 2:g}{tail}"
        )
    return f"{head}the state became infinite or NaN; try dt = {dt / 2:g}{tail}"
