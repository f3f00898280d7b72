"""Explain why a step failed, and suggest a step size that works."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, ResultWarning
from ..kernels.loops import COLUMNS, NO_STATE
from ..kernels.so3 import conj, matrix, mul
from ..methods import Method, methods
from ..methods.combinators.compose import in_turn, whole
from ..methods.combinators.reversible import RUNAWAY
from ..numbers import floats
from ..physics.fields import Field
from ..physics.fields.edged import EdgedField
from ..physics.fields.sides import has_jumps
from ..physics.problem import Problem
from .adaptive import Path
from .exact import exact
from .fixed_step import RunState
from .integrator import torque_kernel
from .system import System, engine

HALVINGS = 40
"""Largest number of halvings of a failed step in search of one that works."""

NOT_FINITE = "the state became infinite or NaN"

REACH = 1e3
"""A momentum that grows by more than this factor in a failed step is due to the iteration, not to the field."""


def explain(state: RunState[Problem]) -> str:
    """Explain why the next step of a body fails, and suggest a dt."""
    fault = state.fault or _field_fault(state)
    if fault:
        return fault
    smaller = _shorter_turn(state)
    fault = (NO_STATE if state.residual <= 0 else unsolved(float(state.residual))) + _length(state)
    if not smaller and state.run.digits is None:
        fault += without_derivatives(problem_at(state), state.method)
    return fault + (f"; try dt = {state.units.times(smaller, back=True):.2g}" if smaller else "")


def problem_at(state: RunState[Problem]) -> Problem:
    """Return the problem of a run with its last good state as the initial one."""
    made = copy.copy(state.problem)
    made.t0, (made.quaternion, made.momentum) = float(state.t), state.problem.user_axes(*state.y[:2])
    return made


def without_derivatives(problem: Problem, method: Method) -> str:
    """Say that a method needs derivatives of the torque that do not exist at the initial state, if so."""
    if problem.field is None or method.asks.values_only:
        return ""
    (y, system), torque = problem.kernel_data(floats.number), torque_kernel(problem, floats.number, method)
    try:
        (q, m, *_), _ = whole(method)(floats.number)(TINY, problem.t0, y, system, torque)
        if math.isfinite(math.fsum((*q, *m))):
            return ""
    except (ArithmeticError, ValueError):
        pass
    except TypeError:
        return ""
    return NO_DERIVATIVES


TINY = 2.0**-60
"""A step in which nothing but a derivative that does not exist makes the state undefined."""

NO_DERIVATIVES = (
    "; the torque has no derivatives or Taylor series at this state, such as the root of a quantity that is zero; use "
    "a method that takes values of the torque only"
)


def explain_in(state: RunState[Any], check: Callable[[float], object]) -> str:
    """Explain a failed step in other spaces; `check(t)` refuses invalid user function values at the last good state."""
    for t in (state.t, state.t + state.dt):
        try:
            check(t)
        except InputError as fault:
            return str(fault)
    is_solved = state.residual <= 0 or not (state.residual > 0 or state.method.implicit)
    why = NOT_FINITE if is_solved else unsolved(float(state.residual))
    return f"{why}; try {state.step} = {state.dt / 2:g}"


def unsolved(residual: float) -> str:
    """Explain the failure of a step whose equation has this residual."""
    if residual == RUNAWAY:
        return "the monitor function of the step size changed by more than its own value within one step"
    size = f"{residual:.1e}" if math.isfinite(residual) else "infinite"
    return f"its equation was not solved (relative residual {size})"


def _field_fault(state: RunState[Problem]) -> str:
    """Return the fault of the field in the failed step, if any: the step is repeated in plain Python."""
    run, problem, method = state.run, state.problem, state.method
    if problem.field is None:
        return ""
    number = floats.number if run.digits is None else run.number
    system = System(problem, method, run.digits)
    torque = system.torque()
    reach = REACH * max(abs(x) for x in state.y[1]) or math.inf

    def watched(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        if all(abs(x) <= 2 for x in q) and all(abs(x) <= reach for x in m):
            problem.check_field(
                _inside(problem.field, float(t), system), *problem.user_axes(q, m), f"at t = {float(t):g}"
            )
        return torque(t, q, m, system, *more)

    try:
        before, after = method.processors(number)
        step = in_turn([part for part in (None if state.done else before, system.step(), after) if part])
        step(number(state.dt), number(state.t), state.y, run.system, watched)
    except InputError as fault:
        return str(fault)
    except (ArithmeticError, TypeError, ValueError):
        pass
    return ""


INSIDE = 1e-9
"""Share of the way to the middle between two edges at which a field is checked: an edge may belong to either side."""


def _inside(field: Field | None, t: float, system: Any) -> float:
    """Return a time between the same edges of a field as the moment in the kernel data."""
    return t + INSIDE * (float(system[2][field.moment_place]) - t) if isinstance(field, EdgedField) else t


def _rate(state: RunState[Problem], vector: Any) -> float:
    """Return |I^-1 v|: the angular speed of a momentum, or the angular acceleration of a torque."""
    return math.hypot(*(float(i * x) for i, x in zip(state.run.system[1], vector, strict=True)))


LONG_STEP = 0.5
"""Rotation in a step, in radians, above which the message mentions it."""


def _length(state: RunState[Problem]) -> str:
    """Describe the rotation in the failed step due to momentum and torque, if it is large."""
    number = floats.number if state.run.digits is None else state.run.number
    turn, push = state.dt * _rate(state, state.y[1]), 0.0
    if state.problem.field is not None:
        try:
            force = torque_kernel(state.problem, number)(number(state.t), state.y[0], state.y[1], state.run.system)
            push = state.dt**2 / 2 * _rate(state, force)
        except (ArithmeticError, TypeError, ValueError):
            pass  # an undefined torque is explained elsewhere
    if not max(turn, push) > LONG_STEP:
        return ""
    pushed = f" and its torque turns it by {push:.2g} rad more" if push > 0 else ""
    return f"; the step is long: the body turns by {turn:.2g} rad in it{pushed}"


def _shorter_turn(state: RunState[Problem]) -> float | None:
    """Return a step size for which the failed step succeeds: at most dt/2, and at most one radian."""
    if state.run.has_own_time:
        return state.dt / 2
    speed = _rate(state, state.y[1])
    return smaller_step(state, min(state.dt / 2, 1 / speed) if speed > 0 else state.dt / 2)


def smaller_step(state: RunState[Any], h: float) -> float | None:
    """Return the first of h, h/2, h/4, ... for which the failed step succeeds."""
    run = state.run
    for _ in range(HALVINGS):
        try:
            *_, fine = run.advance(run.number(h), run.number(state.t), 0, 1, 2, 0, state.y, run.system, run.buffer(1))
        except (ArithmeticError, TypeError, ValueError):
            fine = False
        if fine:
            return h
        h /= 2
    return None


# --- runs to a tolerance ----------------------------------------------------------------------------

NO_STEP = "no step, however short, gives a finite state"

COARSE = 0.1
"""Rotation in radians between two neighbouring doubles of the time above which these are too far apart for steps."""

AHEAD = 1e-9
"""Share of a run by which the field is also evaluated after its end: a step fails ahead of its fault."""

GROWTH = 1e3
"""Factor by which a torque has grown at the end of a run that it seems to have ended."""


def gave_up(problem: Problem, path: Path, method: str) -> str:
    """Explain why a run to a tolerance ended early, in the units of the user."""
    t = float(path.times[-1])
    if not path.crawling:
        why = why_no_step(problem, path)
        return f"{method} failed at t = {t:g}: {why}" + (_series_fault(problem, path, method) if why == NO_STEP else "")
    tried = len(path.times) + path.rejected
    return f"{method} gave up at t = {t:g} after {tried} tried steps: {_why_short(problem, path)}"


def _series_fault(problem: Problem, path: Path, method: str) -> str:
    """Say that the method with this label has no series at the last state of a path, if so."""
    with contextlib.suppress(InputError):  # orders above those of steps in doubles
        made = copy.copy(problem)
        made.t0, made.quaternion, made.momentum = _last(problem, path)
        return without_derivatives(made, methods[method])
    return ""


def why_no_step(problem: Problem, path: Path) -> str:
    """Explain why no step leads on from the last state: a fault of the field, times too far apart, or a pole."""
    t, q, m = _last(problem, path)
    start, before = (float(path.times[k]) for k in (0, max(-2, -len(path.times))))
    ahead = t + AHEAD * (t - start)
    for later in (t, math.nextafter(t, ahead), 2 * t - before, ahead):
        try:
            problem.check_field(later, q, m, f"at t = {later:g}")
        except InputError as fault:
            return str(fault)
    return coarse_times(problem, t, m) or NO_STEP + _pole(problem, path)


def coarse_times(problem: Problem, t: float, m: Any) -> str:
    """Say that neighbouring doubles are too far apart at a time for steps of the motion, if they are."""
    gap = math.ulp(t)
    turn = gap * math.hypot(*problem._velocity(m))
    if not turn > COARSE:
        return ""
    return (
        f"neighbouring doubles at this time are {gap:.2g} apart, in which the body turns by {turn:.2g} rad; choose "
        "a t0 closer to 0"
    )


def _why_short(problem: Problem, path: Path) -> str:
    """Explain why steps became so short that the run was abandoned."""
    pole = _pole(problem, path)
    if pole:
        return f"steps become ever shorter{pole}"
    if problem.field is not None and has_jumps(problem.field):
        return (
            "the field jumps there and holds the motion at the jump, so that steps become ever shorter; make the jump "
            "a steep slope (tanh), or use a fixed dt"
        )
    return (
        "the field changes the motion so fast that a run takes more steps than that (a stiff field, or a very fast "
        "rotation); give a larger tolerance or an earlier t_end, or use a fixed dt"
    )


def _pole(problem: Problem, path: Path) -> str:
    """Say that the torque grows without bounds, if it seems to."""
    halfway = int(np.argmin(np.abs(np.asarray(path.times, float) - float(path.times[0] + path.times[-1]) / 2)))
    sizes = [_torque_size(problem, path, i) for i in (0, halfway, -1)]
    if not sizes[-1] > GROWTH * max(sizes[:-1]):
        return ""
    return f"; the torque grows beyond all bounds there (from {max(sizes[:-1]):.2g} to {sizes[-1]:.2g})"


def _torque_size(problem: Problem, path: Path, i: int) -> float:
    """Return the size of the torque at a state of a path; 0 if the field has more arguments than the state."""
    field, row = problem.field, [float(x) for x in path.rows[i][:COLUMNS]]
    if field is None or field.states:
        return 0.0
    q, m = problem.user_axes(tuple(row[:4]), tuple(row[4:]))
    try:
        return math.hypot(*map(float, field.torque_value(float(path.times[i]), matrix(q), problem._velocity(m))))
    except (ArithmeticError, TypeError, ValueError):
        return 0.0


def _last(problem: Problem, path: Path) -> tuple[float, Any, Any]:
    """Return the last time of a path, with attitude and momentum in the user's axes."""
    row = [float(x) for x in path.rows[-1][:COLUMNS]]
    q, m = problem.user_axes(tuple(row[:4]), tuple(row[4:]))
    return float(path.times[-1]), q, m


# --- steps that do not follow a body ----------------------------------------------------------------

UNRESOLVED = 2.0
"""Radians by which the angular velocity may turn within the body in a step before the steps are compared."""

FOLLOWED = 0.1
"""Largest error of the attitude after a radian of rotation with which a method still follows a body."""

MOST_COMPARED = 1000
"""Most steps of a comparison: some tenths of a millisecond."""


def turn_of_velocity(momentum: Any, smallest: Any, largest: Any, dt: Any) -> Any:
    """Return a bound of the angle by which omega turns within a free body in a step, from |Pi| and two moments.

    From Pi' = Pi x I^-1 Pi: |Pi| (1/I_min - 1/I_max). It is large for a slender body, even if the body itself hardly
    turns: a small change of Pi about the axis of the small moment is then a large change of omega.
    """
    return momentum * (1 / smallest - 1 / largest) * abs(dt)


def hardest_to_follow(sizes: np.ndarray, moments: np.ndarray, dt: Any) -> int:
    """Return the body, of many with |Pi| and moments, whose omega turns most in a step; -1 if none turns unresolved."""
    with np.errstate(all="ignore"):  # linear bodies, and those that failed
        turns = np.atleast_1d(turn_of_velocity(sizes, moments.min(axis=1), moments.max(axis=1), dt))
    turns[~np.isfinite(turns)] = 0
    i = int(np.argmax(turns))
    return i if turns[i] > UNRESOLVED else -1


INSTEAD = ", or give tol instead"
"""What else helps in a run."""


def lost_motion(problem: Problem, method: Method, dt: float, count: int, shown: float, instead: str = INSTEAD) -> str:
    """Say by how much so many steps of a method miss the free motion of a body, if they do not follow it; else "".

    A torque changes little in that: what steps of this length cannot follow is the inertia of the body. `shown` is the
    step in the units of the user, and `instead` what else helps.
    """
    base, moments = method.base or method, np.array(problem.body.moments)
    tried = base.order_free < math.inf and base.has_step and not (base.noise or base.states or base.has_own_time)
    if not tried or problem.body.linear_axis is not None:
        return ""
    free = Problem(problem.body, attitude=problem.quaternion, momentum=problem.momentum)
    error = _error_of_free_steps(free, base, abs(dt), count)
    if not error > FOLLOWED:
        return ""
    return (
        f"steps of {method.name} with dt = {shown:g} do not follow a body whose moments differ by a factor of "
        f"{moments.max() / moments.min():.2g}: without a torque, its attitude would be off by {error:.2g} rad after a "
        f"radian of rotation; choose a shorter dt or another method{instead}"
    )


def _error_of_free_steps(free: Problem, method: Method, dt: float, count: int) -> float:
    """Return the error of the attitude of a free body after a radian of rotation, in proportion if that is too long."""
    turn = dt * math.hypot(*free.velocity)
    n = int(min(count, MOST_COMPARED, max(1, 1 / turn)))
    run = engine(free, method)
    row = run.buffer(1)
    _, _, filled, _, fine = run.advance(dt, free.t0, 0, n, n, n, run.y, run.system, row)
    if not (fine and filled):
        return 0.0  # the steps of the run itself did not fail
    q, _ = free.user_axes(tuple(row[0, :4].tolist()), tuple(row[0, 4:7].tolist()))
    away = mul(conj(tuple(exact(free, [n * dt]).quaternion[0].tolist())), q)
    return 2 * math.atan2(math.hypot(*away[1:]), abs(away[0])) / min(1.0, n * turn)


def warn_of_lost_motion(state: RunState[Problem]) -> None:
    """Say that the steps of a finished run do not follow its body, with the momentum at the start or at the end."""
    if state.run.digits is not None or not state.done or state.problem.body.linear_axis is not None:
        return
    moments, shown = state.problem.body.moments.tolist(), float(state.units.times(state.dt, back=True))
    for momentum in (state.problem.momentum, state.y[1]):
        size = math.hypot(*map(float, momentum))
        if UNRESOLVED < turn_of_velocity(size, min(moments), max(moments), state.dt) < math.inf:
            problem = state.problem if momentum is state.problem.momentum else problem_at(state)
            if why := lost_motion(problem, state.method, state.dt, state.done, shown):
                warnings.warn(why, ResultWarning, stacklevel=4)
                return
