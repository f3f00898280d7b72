"""Run a method on a problem."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..compile import notice
from ..errors import InputError, StepError
from ..methods import EXAMPLE, Method, methods
from ..methods.adaptive.verner87 import verner87
from ..physics.observers.event import checked
from ..physics.problem import Problem, finite_number
from ..physics.units import BACKWARD, NO_UNITS, ScaledRun, rescaled, units_of_steps
from ..physics.validate import MOST_STEPS, check_unit_of_time, flag, number_of_digits, whole_number
from ..results.progress import Progress
from ..results.store import checkpoint, integrity, stored_control, trajectory_store
from ..results.trajectory import Trajectory, info_of
from . import control as sampled_control
from . import control_fixed, control_tangent, control_to_tolerance, with_states
from .cut_steps import can_cut, cut_at_edges, warn_of_edges
from .dense import Steps, dense_between, dense_of, in_principal_axes
from .event_search import with_events
from .exact import top_at_steps
from .failures import explain, warn_of_lost_motion
from .fixed_step import RunState, solved
from .growing_file import Place
from .integrator import check_compiled, keeping
from .into_file import written
from .journal import Journal
from .kept import FOR_FILE, STEPS, Kept
from .located_steps import LocatedSteps, can_locate, warn_of_jumps
from .noise import between_steps_without_noise, check_forward, check_moving, check_noise
from .parts import has_states
from .quick_solve import quickly
from .schedule import Bounds
from .step_count import end_time, length, signed_step
from .system import engine
from .tangent import check_tangent, with_tangent
from .tolerance import Wish, solve_to


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
    times: Any = None,
    max_turn: float | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    digits: int | None = None,
    progress: bool | Callable[[float], Any] | None = None,
    events: Any = (),
    stops: Any = None,
    max_step: float | None = None,
    tangent: bool = False,
    control: Any = None,
    period: float | None = None,
    statistics: Any = None,
) -> Trajectory:
    """Integrate a problem with a method and a fixed step, or to a tolerance.

    Parameters
    ----------
    problem : Problem
    method : a name, an alias, an expression such as ``"mkrk(rk4)"``, or a Method; optional with `tol`
    dt : step size; the first one if steps vary. With `steps`, a negative dt runs backwards in time
    tol : instead of dt, the error allowed at the end: attitude error in radians, momentum error relative to its size
    step_tol : instead of tol, the error allowed in each step: one run, no estimate of the error at the end
    t_end, steps : end time or number of steps (one of them; by default the problem's end time). A t_end before t0 runs
        backwards in time. If steps vary, the run ends with the first step at or past t_end.
    every : keep steps 0, every, 2 every, ... and the last
    times : keep the states at these times instead, by dense output (`t_eval` elsewhere); the last is the default t_end
    max_turn : keep all steps, and states between them, so that the body turns by at most this angle (radians) from one
        to the next. The default is 0.25 for files of runs to a tolerance, so that they can be drawn
    out : also write to this file (``.zarr`` or ``.nc``) during the run; with a fixed step, memory is bounded
    overwrite : replace an existing file
    resume : continue the run in `out` (killed, interrupted, or complete and now with a later end), bit-identical to an
        uninterrupted run; start it if the file does not exist. Arguments that differ from the file are an error.
    digits : run the same kernels in mpmath with this many digits (slow); see ``Trajectory.mp``. Dense output, events
        and tolerances, such as ``tol=1e-25, digits=30``, are in the same digits
    events : events from `ph.event`; ``sol.events`` holds the states at which each occurred
    progress : None shows, on a terminal, a bar after two seconds and what is compiled after one; True, False, or a
        function of the fraction
    stops : with tol, times at which a step must end: jumps of a torque of your own, start and end of a short pulse.
        Those of thrusters, of tables and of conditions on t in `ph.where` are found automatically
    max_step : with tol, the longest step allowed
    tangent : also give the derivatives of the states with respect to the initial state, the inertia and the parameters
        of the field: ``sol.tangent``, exact for the discrete steps
    control : a function of t, R, omega that returns the torque of a controller, or one made by `ph.controller`; it is
        called once in each period, and what it returns is held until the next sample. ``sol.control`` has the samples
    period : the time between two samples; no step crosses a sample
    statistics : as in `ph.ensemble`: names such as "energy", "megno" or "lyapunov", functions, or a list of these. The
        motion is integrated a second time to evaluate them (with `tol`, by another method); ``sol.statistics``

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError : an argument is invalid; nothing was changed
    StepError : a step failed; ``.partial`` holds the states before it

    Examples
    --------
    >>> top = ph.problems.fast_top()
    >>> sol = ph.solve(top, "imidm", dt=0.01, t_end=1.0)
    >>> len(sol.t), sol.quaternion.shape
    (101, (101, 4))
    >>> to_tolerance = ph.solve(top, tol=1e-9, t_end=1.0)
    >>> to_tolerance.error_estimate < 1e-9
    True
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if (
        method is None and dt is None and (tol is None) is not (step_tol is None) and steps is None and digits is None
        and type(every) is int and every == 1 and times is None and max_turn is None and stops is None
        and max_step is None and out is None and resume is False and overwrite is False and tangent is False
        and control is None and period is None and statistics is None and type(events) is tuple and not events
        and (progress is None or progress is False)
    ):  # fmt: skip
        with notice.shown(False) if progress is False else contextlib.nullcontext():
            quick = quickly(problem, tol, step_tol, t_end)
        if quick is not None:
            return quick
    Progress.check(progress)
    if statistics is not None:
        from .ensemble.of_one_run import solved_with

        given = {
            "dt": dt, "tol": tol, "step_tol": step_tol, "t_end": t_end, "steps": steps, "every": every, "times": times,
            "max_turn": max_turn, "out": out, "overwrite": overwrite, "resume": resume, "digits": digits,
            "progress": progress, "events": events, "stops": stops, "max_step": max_step, "tangent": tangent,
            "control": control, "period": period,
        }  # fmt: skip
        return solved_with(statistics, problem, method, given)
    asked = None
    sampled_control.refuse_controlled(problem.field)
    if control is not None or period is not None:
        asked = sampled_control.read(control, period)
        sampled_control.refuse(digits=digits)
    if has_states(problem):
        with_states.check_arguments(problem, method, out=out, resume=resume, digits=digits)
    if tangent is not False and flag("tangent", tangent):
        if asked is not None:
            control_tangent.check(problem, *asked, verner87 if method is None else methods[method])
        _check_tangent(problem, method, out, resume, digits)
    wanted = [] if type(events) is tuple and not events else checked(events, problem)
    if out is not None or resume is not False or overwrite is not False:
        _check_resume(out, overwrite, resume)
    if resume:
        checkpoint.check_resumable(problem.field, out)
    law: dict[str, Any] = {}
    if asked is not None and out is not None:
        law = sampled_control.run_spec(problem, *asked, out if resume else None)
    if tol is not None or step_tol is not None:
        check_noise(None, problem)
        _refuse_with_tol(dt, steps)
        wish, kept = read_wish(method, tol, step_tol, digits), Kept.of(every, times, max_turn)
        if problem.field is not None and problem.field.opaque:
            check_compiled(problem, wish.name, "give a method and dt")
        end = end_time(problem, kept.end(t_end), backward=True)
        kept.check(problem.t0, end)
        wish.times = None if wanted else kept.with_ends(problem.t0, end)
        if stops is not None or max_step is not None:
            wish.bounds = Bounds.of(problem.t0, end, stops, max_step)
        if asked is not None and out is None:
            sol = control_to_tolerance.solve_to(problem, *asked, wish, end, wanted, progress)
            return kept.applied(control_tangent.with_tangent(problem, *asked, verner87, sol) if tangent else sol)
        if out is None:
            sol = solve_to(problem, wish, end, wanted, progress)
            return kept.applied(with_tangent(problem, methods[sol.method], sol) if tangent else sol)
        how = checkpoint.run_spec(
            problem, wish.method, **{wish.name: wish.tol}, t_end=end, events=checkpoint.events_spec(wanted),
            **wish.bounds.attributes, **kept.attributes, **({} if wish.digits is None else {"digits": wish.digits}),
            **law,
        )  # fmt: skip
        kept = FOR_FILE if kept is STEPS else kept
        if asked is None:
            run_to = functools.partial(solve_to, problem, wish, end, wanted, progress)
            moving, units, attributes = problem, wish.units(problem, end - problem.t0), {}
        else:
            run_to = functools.partial(control_to_tolerance.solve_to, problem, *asked, wish, end, wanted, progress)
            moving, units = sampled_control.with_controller(problem, *asked), NO_UNITS
            attributes = stored_control.attribute(sampled_control.sampling_of(moving, asked[1]))
        told = info_of(moving, method="", dt=0.0, digits=wish.digits, status="running", **{wish.name: wish.tol})
        growing = functools.partial(Journal, moving, units, told)
        return written(out, overwrite, resume, how, lambda: kept.applied(run_to()), growing, attributes)
    Bounds.refuse(stops, max_step)
    if method is None or dt is None:
        raise InputError(
            f"give a method and dt, such as ph.solve(problem, '{EXAMPLE}', dt=0.01), or a tolerance, such as "
            "ph.solve(problem, tol=1e-10)"
        )
    chosen = methods[method]
    problem = keeping(problem, chosen)
    if times is not None or max_turn is not None or wanted:
        between_steps_without_noise(chosen)
    if times is not None or max_turn is not None or (wanted and out is not None):
        kept = Kept.of(every, times, max_turn)
        _refuse_between_steps(kept.every, wanted)
        if kept is not STEPS:
            name = "max_turn" if times is None else "times"
            check_compiled(problem, f"{name} with dt", f"leave out `{name}`, and keep states with every")
        given = (
            {"dt": dt, "t_end": t_end, "steps": steps}
            | ({"tangent": True} if tangent else {})
            | ({} if digits is None else {"digits": digits})
            | ({} if asked is None else {"control": control, "period": period})
        )
        sampled = functools.partial(_between_steps, kept, problem, chosen, progress, wanted, given)
        if out is None:
            return sampled()
        how = checkpoint.run_spec(
            problem, chosen, **given | law, events=checkpoint.events_spec(wanted), **kept.attributes
        )
        return written(out, overwrite, resume, how, sampled)
    dt, every = signed_step(problem, dt, t_end, steps), whole_number("every", every)
    digits = None if digits is None else number_of_digits(digits)
    check_forward(chosen, dt)
    check_moving(chosen, problem.momentum)
    if wanted:
        _refuse_between_steps(every, wanted)
    if asked is not None:
        place, each = Place(out, overwrite, resume), 1 if tangent else every
        sol = control_fixed.solve_fixed(problem, *asked, chosen, dt, t_end, steps, each, progress, wanted, place, law)
        if not can_locate(problem, chosen):
            _warn_of_jumps(problem, chosen, digits, sol)
        if not tangent:
            return sol
        return Kept.of(every, None, None).applied(control_tangent.with_tangent(problem, *asked, chosen, sol))
    if has_states(problem):
        return with_states.solve_fixed(problem, dt, t_end, steps, every, progress, wanted)
    count, end = length(problem, chosen, dt, t_end, steps)
    if not chosen.has_step:
        if wanted or out is not None:
            raise InputError(f"{chosen.name} is evaluated at the times asked for; leave out `events` and `out`")
        integrity.check_memory(count // every + 2)
        bar = Progress(progress, chosen.name, count)
        sol = top_at_steps(problem, dt, count, every, digits)
        bar.update(count)
        return sol
    units = NO_UNITS if dt > 0 or chosen.states else BACKWARD  # steps of a chain go backwards themselves
    if digits is None and (chosen.states or chosen.has_own_time):
        check_unit_of_time("dt", abs(dt), abs(dt))
    elif digits is None:
        units = units_of_steps(problem, dt, count)
    inner = rescaled(problem, units)
    located, reached = None, inner.t0 + count * float(units.times(dt))
    if can_locate(inner, chosen, digits):
        located = LocatedSteps.until(reached, inner, chosen)
        inner = located.problem
    else:
        inner = cut_at_edges(inner, chosen, reached, digits)
    run = engine(inner, chosen, digits) if located is None else located.engine()
    steps_of_run = None if located is None else ScaledRun(located, units)
    if wanted:
        check_compiled(problem, "an event search", "leave out `events`")
    info = info_of(problem, method=chosen.name, dt=dt, every=every, digits=digits)
    bar = Progress(progress, chosen.name, count)
    most = count if end == math.inf else MOST_STEPS
    last = end if end == math.inf else float(units.times(end))
    state = RunState(run, inner, float(units.times(dt)), most, every, method=chosen, end=last, units=units)
    into = Place(out, overwrite, resume).recorder(
        problem, state, info, lambda: checkpoint.run_spec(problem, chosen, dt=dt, every=every, digits=digits),
        lambda: trajectory_store.problem_attribute(problem),
    )  # fmt: skip
    if isinstance(into, Trajectory):
        bar.note(f"{out} is complete; nothing is changed")
        return _finished(into, problem, state, steps_of_run)
    try:
        whole = solved(state, into, bar, explain)
    except StepError as failed:
        if failed.partial is not None and state.residual is not None:
            _finished(failed.partial, problem, state, steps_of_run)
        raise
    _finished(whole, problem, state, steps_of_run)
    warn_of_lost_motion(state)
    if located is None:
        _warn_of_jumps(problem, chosen, digits, whole)
        if not can_cut(problem, chosen):
            warn_of_edges(problem, chosen, float(whole.t[-1]))
    else:
        located.warn_of_sliding(count)
    if tangent:
        with_tangent(problem, chosen, whole, steps_of_run)
    return _with_events(problem, chosen, whole, wanted, steps_of_run) if wanted else whole


def _with_events(problem: Problem, method: Method, sol: Trajectory, events: Any, located: Any) -> Trajectory:
    steps = located or Steps(problem, method.base or method, sol.dt, sol.info.digits)
    return with_events(problem, steps, sol, events)


def _check_tangent(problem: Problem, method: Any, out: Any, resume: bool, digits: Any) -> None:
    """Refuse what does not go with tangents."""
    for name, value in {"out": out, "resume": resume or None, "digits": digits}.items():
        if value is not None:
            raise InputError(f"derivatives are computed in memory, in doubles; leave out `{name}` or `tangent`")
    if method is not None:
        check_tangent(problem, methods[method], located=can_locate(problem, methods[method]))


def _check_resume(out: Any, overwrite: bool, resume: bool) -> None:
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    if resume and out is None:
        raise InputError("resume=True continues the run in a file; name the file with out")
    if resume and overwrite:
        raise InputError("give resume or overwrite, not both: a file is either continued or replaced")


def _warn_of_jumps(problem: Problem, method: Method, digits: int | None, sol: Trajectory) -> None:
    """Say that the steps of a result crossed jumps of its field in the state, if they may have.

    If it has some of the steps only, that is not known.
    """
    seen = len(sol) if sol.info.every == 1 else math.inf
    warn_of_jumps(problem, method, digits, seen, lambda: in_principal_axes(
        problem.axes_quaternion, sol.t, sol.quaternion, sol.momentum
    ))  # fmt: skip


def _finished(whole: Trajectory, problem: Problem, state: RunState[Problem], located: Any) -> Trajectory:
    """Add the problem to a run, and dense output if every step was kept in the precision of the run."""
    whole._problem = problem
    if located is not None:
        if state.every == 1:
            whole.dense = dense_between(problem, located, whole)
        return whole
    if (
        state.method.noise is None
        and state.every == 1
        and (state.run.digits is None or whole.mp is not None)
        and not state.run.singly
    ):
        whole.dense = dense_of(problem, state.method.base or state.method, whole)
    return whole


def _refuse_between_steps(every: Any, events: Any) -> None:
    """Refuse what does not go with states between steps: they come from every step."""
    what = "events" if events else "states between steps"
    if every != 1:
        raise InputError(f"{what} are found by dense output, which needs every step; leave out `every`")


def _between_steps(
    kept: Kept, problem: Problem, method: Method, progress: Any, events: Any, given: dict[str, Any]
) -> Trajectory:
    """Run with fixed steps, all in memory, and keep states between them."""
    if given["t_end"] is None and given["steps"] is None and kept.times is not None:
        dt = signed_step(problem, given["dt"], kept.end(None), None)
        length = (kept.end(None) - problem.t0) / dt
        if length > MOST_STEPS:
            raise InputError(
                f"the last of times, {kept.end(None):g}, is {length:.3g} steps of dt = {dt:g} away, and at most "
                f"{MOST_STEPS:.3g} can be counted; choose a larger dt", "times",
            )  # fmt: skip
        steps = max(1, math.ceil(length - 1e-9))
        given = given | {"dt": dt, "t_end": None, "steps": steps}
    sol = solve(problem, method, **given, progress=progress, events=events)
    if kept.times is not None and not sol.events:
        kept.check(problem.t0, float(sol.t[-1]))
    return kept.applied(sol)


def _refuse_with_tol(dt: Any, steps: Any) -> None:
    """Refuse the arguments of runs with fixed steps."""
    if dt is None and steps is None:
        return
    raise InputError(f"give {'steps' if dt is None else 'dt'} or tol, not both: steps follow from tol")


def read_wish(method: Any, tol: Any, step_tol: Any, digits: Any = None) -> Wish:
    """Read the tolerance, and the method if one is given."""
    if tol is not None and step_tol is not None:
        raise InputError("give tol (the error at the end) or step_tol (the error of each step), not both")
    chosen = None if method is None else methods[method]
    if chosen is not None and not chosen.has_step:
        raise InputError(f"{chosen.name} is exact, so that no steps follow from a tolerance; give dt")
    if chosen is not None and chosen.has_own_time:
        raise InputError(f"{chosen.name} chooses its steps by its own rule, without a tolerance; give dt")
    name, allowed = ("tol", tol) if step_tol is None else ("step_tol", step_tol)
    precision = None if digits is None else number_of_digits(digits)
    return Wish(finite_number(name, allowed), step_tol is not None, chosen, digits=precision)
