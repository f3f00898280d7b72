"""Run a method on a problem."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import checkpoint, record, store
from .backends import floats
from .compose import in_turn
from .engine import Engine, engine, looked, torque_kernel
from .errors import InputError, StepError
from .events import checked
from .inputs import check_times, flag
from .loop import COLUMNS, NO_STATE
from .methods import EXAMPLE, Method, methods
from .methods.step_density import RUNAWAY
from .problem import Problem, finite_number
from .progress import Progress
from .scaling import NO_UNITS, ScaledRecorder, Units, rescaled, units_of_steps
from .schedule import Bounds
from .tolerance import dense_of, solve_to, with_events
from .trajectory import Info, Trajectory, info_of

CHUNK_SECONDS = 0.1
"""How long compiled code runs before Python looks at Ctrl-C and the progress bar."""

CHUNK_ROWS = 16384
"""States kept between two visits to the recorder."""

MOST_STEPS = 2**53
"""Steps that a double can count, one by one."""

BYTES_PER_ROW = 200
"""Memory for one state while a trajectory is put together."""

HALVINGS = 40
"""How often a failed step is halved in search of one that works."""

REACH = 1e3
"""A momentum this much larger than before a failed step is the fault of the iteration, not of the field."""


def solve(
    problem: Problem,
    method: str | Method | None = None,
    *,
    dt: float | None = None,
    tol: float | None = None,
    t_end: float | None = None,
    steps: int | None = None,
    every: int = 1,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    digits: int | None = None,
    progress: bool | Callable[[float], Any] | None = None,
    events: Any = (),
    stops: Any = None,
    max_step: float | None = None,
) -> Trajectory:
    """Integrate a problem with a method and a fixed step, or to a tolerance.

    Parameters
    ----------
    problem : Problem
    method : a name, an alias, an expression such as ``"mkrk(rk4)"``, or a Method; left out with `tol`, one is chosen
    dt : step size, positive; the first one where steps vary
    tol : instead of dt, the error allowed at the end: of the attitude as an angle, of the momentum relative to its size
    t_end, steps : end time or number of steps (one of them; by default the problem's own end time). Where steps vary,
        the run ends with the first step at or past t_end.
    every : keep steps 0, every, 2 every, ... and always the last
    out : also write to this file (``.zarr`` or ``.nc``) as the run goes, memory then stays bounded; with tol at the end
    overwrite : replace an existing file
    resume : go on with the run in `out` where it stands (killed, interrupted, or complete and now with a later end), to
        the bits of a run in one go; begin it where there is no file. What differs from the run in the file is refused.
    digits : run the same kernels in mpmath with this many digits (slow); see ``Trajectory.mp``
    events : made by `ph.event`; ``sol.events`` holds the states at which each happened
    progress : None shows a bar on a terminal after two seconds; True, False, or a function of the fraction
    stops : with tol, times at which steps shall end: where a torque of your own jumps, or a short pulse begins and ends
        (fields with `ph.where` of t, thrusters and tables know theirs)
    max_step : with tol, the longest step allowed

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
    wanted = checked(events, problem)
    _check_resume(out, overwrite, resume, bool(wanted))
    if tol is not None:
        others = {"dt": dt, "steps": steps, "every": every, "digits": digits}
        limits = {"stops": stops, "max_step": max_step}
        with store.reserved(out):
            return _to_tolerance(problem, method, tol, t_end, out, overwrite, resume, wanted, progress, others, limits)
    Bounds.refuse(stops, max_step)
    if method is None or dt is None:
        raise InputError(
            f"give a method and dt, such as ph.solve(problem, '{EXAMPLE}', dt=0.01), or a tolerance, such as "
            "ph.solve(problem, tol=1e-10)"
        )
    chosen = methods[method]
    dt = finite_number("dt", dt)
    if dt <= 0:
        raise InputError(f"dt must be positive; got {dt:g}")
    every = whole_number("every", every)
    digits = None if digits is None else whole_number("digits", digits)
    if wanted and (every > 1 or digits is not None or out is not None):
        raise InputError(
            "events need every step in memory in double precision; remove the arguments every, digits and out"
        )
    count, end = length(problem, chosen, dt, t_end, steps)
    units = NO_UNITS if chosen.clock or digits is not None else units_of_steps(problem, dt, count)
    inner = rescaled(problem, units)
    run = engine(inner, chosen, digits)
    info = info_of(problem, method=chosen.name, dt=dt, every=every, digits=digits)
    if out is None:
        _check_memory(count // every + 2)
    bar = Progress(progress, chosen.name, count)
    most = count if end == math.inf else MOST_STEPS
    ride = Ride(run, inner, float(units.times(dt)), most, every, method=chosen, end=end, units=units)
    kept = _recorder(problem, dt, ride, info, out, overwrite, resume)
    if isinstance(kept, Trajectory):
        bar.note(f"{out} is complete; nothing is changed")
        return _finished(kept, problem, ride)
    if not run.warm:
        bar.note(f"compiling {chosen.name} (once; kept for later runs)")
    began = time.perf_counter()

    def result(status: str) -> Trajectory:
        return kept.finish(status=status, seconds=time.perf_counter() - began, steps=ride.done)

    try:
        try:
            drive(ride, kept if units is NO_UNITS else ScaledRecorder(kept, units), bar)
        except record.DiskError:
            raise
        except BaseException as stop:
            with contextlib.suppress(Exception):
                stop.partial = result("interrupted")  # type: ignore[attr-defined]
            raise
        finally:
            bar.close()
        whole = _finished(result("finished" if ride.miss is None else "failed"), problem, ride)
    except record.DiskError as problem_of_disk:
        raise _stopped_writing(chosen, ride, problem_of_disk) from problem_of_disk
    finally:
        kept.release()
    if ride.miss is not None:
        raise StepError(explain(chosen, ride, len(whole)), whole)
    return with_events(problem, chosen.part or chosen, whole, wanted) if wanted else whole


def _check_resume(out: Any, overwrite: bool, resume: bool, events: bool) -> None:
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    if resume and out is None:
        raise InputError("resume=True continues the run in a file; name the file with out")
    if resume and overwrite:
        raise InputError("give resume or overwrite, not both: a file is either continued or replaced")
    if resume and events:
        raise InputError(
            "events are not stored in the file, so resume and events cannot be combined; remove one of them"
        )


def _recorder(
    problem: Problem, dt: float, ride: Ride, info: Info, out: Any, overwrite: bool, resume: bool
) -> record.Recorder | Trajectory:
    """The recorder of a run, which is moved to where the run in its file stands; a complete run itself."""
    if out is None:
        return record.recorder(problem, info, out, overwrite)
    how = checkpoint.begun(problem, ride.method, dt=dt, every=ride.every, digits=ride.run.digits)
    end = checkpoint.until(ride.count, ride.end)
    found = record.continued(problem, store.folder_checked(out), how, end) if resume else None
    if found is None:
        return record.recorder(problem, info, out, overwrite, checkpoint.first_words(how, end))
    mark = found.mark if isinstance(found, record.Disk) else None
    if mark is not None:
        ride.done, ride.y = mark.step, mark.state
    return found


def _same_run(path: Path, how: dict[str, Any]) -> Trajectory:
    """The trajectory of a file that was written as a whole, if it is of the run that is asked for."""
    whole, said = store.read(path)
    checkpoint.check_same(path, checkpoint.words(path, said, checkpoint.BEGUN), how)
    whole.stored.checked(0)
    return whole


def _finished(whole: Trajectory, problem: Problem, ride: Ride) -> Trajectory:
    """A run with the motion between its steps, if every one was kept in doubles."""
    if ride.every == 1 and ride.run.digits is None and ride.method is not None:
        whole.dense = dense_of(problem, ride.method.part or ride.method, whole)
    return whole


def _to_tolerance(
    problem: Problem, method: Any, tol: Any, t_end: Any, out: Any, overwrite: bool, resume: bool, events: Any,
    progress: Any, others: dict[str, Any], limits: dict[str, Any],
) -> Trajectory:  # fmt: skip
    """A solution to a tolerance, kept in a file too if asked; the file is written at the end, in one go."""
    plain = {"dt": None, "steps": None, "every": 1, "digits": None}
    for name, value in others.items():
        if value != plain[name]:
            why = {"dt": "steps follow from tol", "steps": "steps follow from tol", "every": "sol.at(times) thins out"}
            raise InputError(f"give {name} or tol, not both: {why.get(name, 'tol is for doubles')}")
    chosen = None if method is None else methods[method]
    if chosen is not None and chosen.clock:
        raise InputError(f"{chosen.name} chooses its steps by its own rule, without a tolerance; give dt")
    end = end_time(problem, t_end)
    bounds = Bounds.of(problem.t0, end, **limits)
    how = checkpoint.begun(
        problem, chosen, tol=finite_number("tol", tol), t_end=end, events=len(events), **bounds.said
    )  # fmt: skip
    if resume:
        there = store.standing(store.folder_checked(out))
        whole = None if there is None else _same_run(there, how)
        if whole is not None and whole.status == "finished":
            return whole
        overwrite = whole is not None
    path = None if out is None else store.fresh(out, overwrite)
    said = checkpoint.first_words(how)
    try:
        sol = solve_to(problem, tol, end, chosen, events, progress, bounds)
    except StepError as failed:
        if path is not None and failed.partial is not None:
            store.save(failed.partial, path, overwrite, said)
        raise
    if path is not None:
        store.save(sol, path, overwrite, said)
    return sol


# --- reading the arguments --------------------------------------------------------------------------


def whole_number(name: str, value: Any) -> int:
    """A whole number of at least 1 that a double can hold."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 1 <= value <= MOST_STEPS or value != int(value):
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}")
    return int(value)


def number_of_steps(problem: Problem, dt: float, t_end: float | None, steps: int | None) -> int:
    """How many steps of dt lead to the end; it must be a whole number."""
    if steps is not None:
        if t_end is not None:
            raise InputError("give t_end or steps, not both")
        steps = whole_number("steps", steps)
        check_times(problem.t0, dt, steps)
        return steps
    end = end_time(problem, t_end)
    exact = (end - problem.t0) / dt
    if exact > MOST_STEPS:
        raise InputError(
            f"t_end = {end:g} is {exact:.3g} steps of dt = {dt:g} away, and at most {MOST_STEPS:.3g} can be counted; "
            f"choose a larger dt"
        )
    if not _is_whole(exact):
        low = max(1, math.floor(exact))
        raise InputError(
            f"t_end - t0 = {end - problem.t0:g} is not a whole number of steps dt = {dt:g} ({exact:.6g}); "
            f"the nearest t_end are {_end_time(problem.t0, dt, low)} and {_end_time(problem.t0, dt, low + 1)}"
        )
    check_times(problem.t0, dt, round(exact))
    return round(exact)


def length(problem: Problem, method: Method, dt: float, t_end: float | None, steps: int | None) -> tuple[int, float]:
    """How many steps a run makes, and where it ends if that is by the time; then the number is a guess."""
    if not method.clock or steps is not None:
        return number_of_steps(problem, dt, t_end, steps), math.inf
    end = end_time(problem, t_end)
    check_times(problem.t0, dt, _about(end - problem.t0, dt))
    return _about(end - problem.t0, dt), end


def end_time(problem: Problem, t_end: float | None) -> float:
    """The end time asked for, or the problem's own."""
    end = problem.t_end if t_end is None else finite_number("t_end", t_end)
    if end is None:
        raise InputError("give t_end or steps: this problem has no end time")
    if end <= problem.t0:
        raise InputError(f"t_end must lie after t0 = {problem.t0:g}; got {end:g}")
    return end


def _about(time: float, dt: float) -> int:
    """About how many steps lead there, where they vary."""
    return max(1, min(MOST_STEPS, math.ceil(time / dt)))


def _is_whole(steps: float) -> bool:
    """Is this a whole number of steps to 1e-9 (or to the round-off of a very large one)."""
    return steps > 0.5 and abs(steps - round(steps)) <= max(1e-9, 4e-16 * steps)


def _end_time(t0: float, dt: float, count: int) -> str:
    """The end of that many steps, in the fewest digits that are still read as it."""
    for digits in range(6, 17):
        text = f"{t0 + count * dt:.{digits}g}"
        steps = (float(text) - t0) / dt
        if round(steps) == count and _is_whole(steps):
            return text
    return repr(t0 + count * dt)


def _check_memory(rows: int) -> None:
    """Refuse what cannot be kept in memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    needed = rows * BYTES_PER_ROW
    if needed > memory:
        raise InputError(
            f"keeping {rows:.3g} states needs about {needed / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g} GB; "
            f"keep fewer with every, or write to a file with out"
        )


# --- the run ----------------------------------------------------------------------------------------


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


def drive(ride: Ride, kept: record.Recorder, bar: Progress) -> None:
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


# --- what went wrong --------------------------------------------------------------------------------


def explain(method: Method, ride: Ride, kept: int, what: str = "state") -> str:
    """One clear sentence about a step that failed."""
    with ride.run.precision():
        fault = _field_fault(method, ride)
        smaller, length = (None, "") if fault else (_smaller_step(ride), _length(ride))
    if not fault:
        fault = (NO_STATE if ride.miss <= 0 else unsolved(float(ride.miss))) + length
        fault += f"; try dt = {ride.units.times(smaller, back=True):.2g}" if smaller else ""
    states = f"{what} before it is" if kept == 1 else f"{kept} {what}s before it are"
    t, dt = ride.units.times((ride.t, ride.dt), back=True)
    head = f"{method.name} failed in step {ride.done + 1} (from t = {t:g} with dt = {dt:g})"
    return f"{head}: {fault}; the {states} in .partial"


def unsolved(residual: float) -> str:
    """Why a step whose equation has this residual is no step."""
    if residual == RUNAWAY:
        return "the monitor function of the step size changed by more than its own value within one step"
    size = f"{residual:.1e}" if math.isfinite(residual) else "infinite"
    return f"its equation was not solved (relative residual {size})"


def _field_fault(method: Method, ride: Ride) -> str:
    """What the field did wrong in the failed step, if it did: the step is repeated in plain Python."""
    run, problem = ride.run, ride.problem
    if problem.field is None:
        return ""
    number = floats.number if run.digits is None else run.number
    torque = torque_kernel(problem, number, method)
    reach = REACH * max(abs(x) for x in ride.y[1]) or math.inf

    def watched(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        if all(abs(x) <= 2 for x in q) and all(abs(x) <= reach for x in m):
            problem.check_field(float(t), *problem.user_axes(q, m), f"at t = {float(t):g}")
        return torque(t, q, m, system, *more)

    try:
        before, after = method.processors(number)
        step = in_turn([part for part in (None if ride.done else before, method.build(number), after) if part])
        step(number(ride.dt), number(ride.t), ride.y, run.system, watched)
    except InputError as fault:
        return str(fault)
    except (ArithmeticError, TypeError, ValueError):
        pass
    return ""


def _rate(ride: Ride, vector: Any) -> float:
    """The length of I^-1 times a vector: the angular velocity of a momentum, the acceleration of a torque."""
    return math.hypot(*(float(i * x) for i, x in zip(ride.run.system[1], vector, strict=True)))


LONG_STEP = 0.5
"""Radians in a step from which on a message names them."""


def _length(ride: Ride) -> str:
    """How far the body turns in the failed step by itself and by its torque, where that is far."""
    number = floats.number if ride.run.digits is None else ride.run.number
    turn, push = ride.dt * _rate(ride, ride.y[1]), 0.0
    if ride.problem.field is not None:
        try:
            force = torque_kernel(ride.problem, number)(number(ride.t), ride.y[0], ride.y[1], ride.run.system)
            push = ride.dt**2 / 2 * _rate(ride, force)
        except (ArithmeticError, TypeError, ValueError):
            pass  # a torque without a value here is not what is explained
    if not max(turn, push) > LONG_STEP:
        return ""
    pushed = f" and its torque turns it by {push:.2g} rad more" if push > 0 else ""
    return f"; the step is long: the body turns by {turn:.2g} rad in it{pushed}"


def _smaller_step(ride: Ride) -> float | None:
    """A step size with which the failed step can be made: at most half, and less than a radian."""
    run = ride.run
    if ride.run.clock:
        return ride.dt / 2
    speed = _rate(ride, ride.y[1])
    h = min(ride.dt / 2, 1 / speed) if speed > 0 else ride.dt / 2
    for _ in range(HALVINGS):
        try:
            *_, fine = run.advance(run.number(h), run.number(ride.t), 0, 1, 2, 0, ride.y, run.system, run.buffer(1))
        except (ArithmeticError, TypeError, ValueError):
            fine = False
        if fine:
            return h
        h /= 2
    return None


def _stopped_writing(method: Method, ride: Ride, problem: record.DiskError) -> StepError:
    """The error when a file could not be written."""
    partial = problem.disk.rescue()
    return StepError(
        f"{method.name} stopped at step {ride.done}: {problem.disk.writer.path} cannot be written ({problem}); "
        f"the {len(partial)} states written before are in .partial and in {problem.disk.writer.folder}; free some "
        "disk space and continue with resume=True (--resume)",
        partial,
    )
