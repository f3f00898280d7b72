"""Run a method on a problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, StepError
from ..methods import EXAMPLE, Method, methods
from ..physics.observers.event import checked
from ..physics.problem import Problem, finite_number
from ..physics.units import NO_UNITS, rescaled, units_of_steps
from ..physics.validate import MOST_STEPS, flag, number_of_digits, positive, whole_number
from ..results import recorder
from ..results.progress import Progress
from ..results.store import checkpoint, integrity, trajectory_store
from ..results.trajectory import Info, Trajectory, info_of
from . import with_states
from .dense import dense_of
from .event_search import with_events
from .exact import top_at_steps
from .failures import explain
from .fixed_step import RunState, solved
from .integrator import check_compiled, engine
from .schedule import Bounds
from .step_count import end_time, length
from .tolerance import Wish, solve_to

BYTES_PER_ROW = 200
"""Memory for one state while a trajectory is assembled."""


def solve(
    problem: Problem,
    method: str | Method | None = None,
    *,
    dt: float | None = None,
    tol: float | None = None,
    step_tol: float | None = None,
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
    method : a name, an alias, an expression such as ``"mkrk(rk4)"``, or a Method; optional with `tol`
    dt : step size, positive; the first one if steps vary
    tol : instead of dt, the error allowed at the end: attitude error in radians, momentum error relative to its size
    step_tol : instead of tol, the error allowed in each step: one run, no estimate of the error at the end
    t_end, steps : end time or number of steps (one of them; by default the problem's end time). If steps vary, the run
        ends with the first step at or past t_end.
    every : keep steps 0, every, 2 every, ... and the last
    out : also write to this file (``.zarr`` or ``.nc``) during the run, with bounded memory; with tol, at the end
    overwrite : replace an existing file
    resume : continue the run in `out` (killed, interrupted, or complete and now with a later end), bit-identical to an
        uninterrupted run; start it if the file does not exist. Arguments that differ from the file are refused.
    digits : run the same kernels in mpmath with this many digits (slow); see ``Trajectory.mp``
    events : events from `ph.event`; ``sol.events`` holds the states at which each occurred
    progress : None shows a bar on a terminal after two seconds; True, False, or a function of the fraction
    stops : with tol, times at which steps must end: jumps of a custom torque, start and end of a short pulse (those of
        `ph.where` conditions on t, thrusters and tables are found automatically)
    max_step : with tol, the longest step allowed

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError : an argument is invalid; nothing was changed
    StepError : a step failed; ``.partial`` holds the states before it
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if with_states.has_states(problem):
        with_states.check_arguments(problem, method, out=out, resume=resume, digits=digits, events=events)
    wanted = checked(events, problem)
    _check_resume(out, overwrite, resume, bool(wanted))
    if resume:
        checkpoint.check_resumable(problem.field, out)
    if tol is not None or step_tol is not None:
        check_compiled(problem, "tol", "give a method and dt")
        others = {"dt": dt, "steps": steps, "every": every, "digits": digits}
        limits = {"stops": stops, "max_step": max_step}
        with trajectory_store.reserved(out):
            return _to_tolerance(
                problem, method, tol, step_tol, t_end, out, overwrite, resume, wanted, progress, others, limits
            )
    Bounds.refuse(stops, max_step)
    if method is None or dt is None:
        raise InputError(
            f"give a method and dt, such as ph.solve(problem, '{EXAMPLE}', dt=0.01), or a tolerance, such as "
            "ph.solve(problem, tol=1e-10)"
        )
    if with_states.has_states(problem):
        return with_states.solve_fixed(problem, dt, t_end, steps, every, progress)
    chosen = methods[method]
    dt, every = positive("dt", dt), whole_number("every", every)
    digits = None if digits is None else number_of_digits(digits)
    if wanted and (every > 1 or digits is not None or out is not None):
        raise InputError(
            "events need every step in memory in double precision; remove the arguments every, digits and out"
        )
    count, end = length(problem, chosen, dt, t_end, steps)
    if not chosen.has_step:
        if wanted or out is not None:
            raise InputError(f"{chosen.name} is evaluated at the times asked for; remove the arguments events and out")
        _check_memory(count // every + 2)
        return top_at_steps(problem, dt, count, every, digits)
    units = NO_UNITS if chosen.has_own_time or digits is not None else units_of_steps(problem, dt, count)
    inner = rescaled(problem, units)
    run = engine(inner, chosen, digits)
    if wanted:
        check_compiled(problem, "an event search", "remove the argument events")
    info = info_of(problem, method=chosen.name, dt=dt, every=every, digits=digits)
    if out is None:
        _check_memory(count // every + 2)
    bar = Progress(progress, chosen.name, count)
    most = count if end == math.inf else MOST_STEPS
    state = RunState(run, inner, float(units.times(dt)), most, every, method=chosen, end=end, units=units)
    kept = _recorder(problem, dt, state, info, out, overwrite, resume)
    if isinstance(kept, Trajectory):
        bar.note(f"{out} is complete; nothing is changed")
        return _finished(kept, problem, state)
    try:
        whole = solved(state, kept, bar, explain)
    except StepError as failed:
        if failed.partial is not None and state.residual is not None:
            _finished(failed.partial, problem, state)
        raise
    _finished(whole, problem, state)
    return with_events(problem, chosen.base or chosen, whole, wanted) if wanted else whole


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
    problem: Problem, dt: float, state: RunState[Problem], info: Info, out: Any, overwrite: bool, resume: bool
) -> recorder.Recorder[Trajectory] | Trajectory:
    """Return the recorder of a run, with `state` moved to the checkpoint in its file; or the run, if it is complete."""
    if out is None:
        return recorder.recorder(problem, info, out, overwrite)
    how = checkpoint.run_spec(problem, state.method, dt=dt, every=state.every, digits=state.run.digits)
    end = checkpoint.run_end(state.count, state.end)
    found = recorder.continued(problem, trajectory_store.folder_checked(out), how, end) if resume else None
    if found is None:
        return recorder.recorder(problem, info, out, overwrite, checkpoint.initial_attributes(how, end))
    mark = found.mark if isinstance(found, recorder.Disk) else None
    if mark is not None:
        state.done, state.y = mark.step, mark.state
    return found


def _same_run(path: Path, how: dict[str, Any]) -> Trajectory:
    """Return the trajectory of a file written at the end of a run; refuse one of another run."""
    whole, attrs = trajectory_store.read(path)
    checkpoint.check_same(path, checkpoint.run_attribute(path, attrs, checkpoint.RUN_SPEC), how)
    whole.stored.checked(0)
    return whole


def _finished(whole: Trajectory, problem: Problem, state: RunState[Problem]) -> Trajectory:
    """Add dense output to a run if every step was kept in double precision."""
    if state.every == 1 and state.run.digits is None and not state.run.singly:
        whole.dense = dense_of(problem, state.method.base or state.method, whole)
    return whole


def _to_tolerance(
    problem: Problem, method: Any, tol: Any, step_tol: Any, t_end: Any, out: Any, overwrite: bool, resume: bool,
    events: Any, progress: Any, others: dict[str, Any], limits: dict[str, Any],
) -> Trajectory:  # fmt: skip
    """Solve to a tolerance; with `out`, write the file at the end, as a whole."""
    if tol is not None and step_tol is not None:
        raise InputError("give tol (the error at the end) or step_tol (the error of each step), not both")
    plain = {"dt": None, "steps": None, "every": 1, "digits": None}
    for name, value in others.items():
        if value != plain[name]:
            why = {"dt": "steps follow from tol", "steps": "steps follow from tol", "every": "sol.at(times) thins out"}
            raise InputError(f"give {name} or tol, not both: {why.get(name, 'tol is for doubles')}")
    chosen = None if method is None else methods[method]
    if chosen is not None and not chosen.has_step:
        raise InputError(f"{chosen.name} is exact, so that no steps follow from a tolerance; give dt")
    if chosen is not None and chosen.has_own_time:
        raise InputError(f"{chosen.name} chooses its steps by its own rule, without a tolerance; give dt")
    end = end_time(problem, t_end)
    bounds = Bounds.of(problem.t0, end, **limits)
    name, allowed = ("tol", tol) if step_tol is None else ("step_tol", step_tol)
    wish = Wish(finite_number(name, allowed), step_tol is not None, chosen, bounds)
    if out is None:
        return solve_to(problem, wish, end, events, progress)
    how = checkpoint.run_spec(
        problem, chosen, **{name: wish.tol}, t_end=end, events=len(events), **bounds.attributes
    )  # fmt: skip
    if resume:
        there = trajectory_store.existing(trajectory_store.folder_checked(out))
        whole = None if there is None else _same_run(there, how)
        if whole is not None and whole.status == "finished":
            return whole
        overwrite = whole is not None
    path = trajectory_store.new_path(out, overwrite)
    attrs = checkpoint.initial_attributes(how)
    try:
        sol = solve_to(problem, wish, end, events, progress)
    except StepError as failed:
        if failed.partial is not None:
            trajectory_store.save(failed.partial, path, overwrite, attrs)
        raise
    trajectory_store.save(sol, path, overwrite, attrs)
    return sol


# --- reading the arguments --------------------------------------------------------------------------


def _check_memory(rows: int) -> None:
    """Refuse more states than fit in memory."""
    memory, needed = integrity.memory(), rows * BYTES_PER_ROW
    if needed > memory:
        raise InputError(
            f"keeping {rows:.3g} states needs about {needed / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g} GB; "
            f"keep fewer with every, or write to a file with out"
        )
