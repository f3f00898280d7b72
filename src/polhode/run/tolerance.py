"""Solve a problem to a tolerance: choose a method, and report the choice, its reason and the error."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..compile import notice
from ..compile.clock import Stopwatch
from ..errors import InputError, StepError, ToleranceWarning
from ..kernels.so3 import norm
from ..methods import Method
from ..methods.adaptive.verner87 import verner87
from ..methods.families.jacobi import jacobi
from ..numbers.precision import guarded, in_digits
from ..physics.fields.pulses import UNRESOLVED
from ..physics.fields.sides import has_jumps
from ..physics.fields.switches import PiecewiseField
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..physics.units import BACKWARD, NO_UNITS, ScaledRun, Units, rescaled, units_of
from ..physics.validate import apart, excess
from ..results.progress import Runs
from ..results.trajectory import Info, Trajectory, info_of
from . import adaptive, located, precise_steps, step_control, with_states
from .adaptive import Path, Run, joined
from .dense import Dense, states_of
from .error_estimate import FIRST, REPEATED, estimated
from .event_search import found_on
from .exact import exact_error
from .failures import coarse_times, gave_up
from .fixed_to_tolerance import MOST_STEPS, measured_steps
from .integrator import check_fit
from .kept import SHOWN
from .located import LocatedRun
from .located_steps import warn_of_adaptive_steps, warn_of_jumps
from .parts import has_states
from .schedule import NO_BOUNDS, Bounds, Schedule, scheduled
from .step_control import (
    EPS,
    LARGEST,
    MOST_DIGITS,
    PAIR_FINEST,
    SMALLEST,
    AdaptiveStep,
    Formula,
    formula,
    ranked,
    working_eps,
)

FEWEST_TIMES = 64
"""Smallest number of doubles between the start and the end of a run."""


@dataclasses.dataclass
class Solution:
    """A path to an end time, the run that computed it, and how it was found."""

    run: Any
    path: Path
    method: str
    reason: Callable[[], str]
    """Returns why this method was chosen; the text is needed only if somebody reads it."""
    error: float | None = None
    """Estimate of the error at the end."""
    dt: float = 0.0
    """The step, if all are equal."""


@dataclasses.dataclass
class ExactRun:
    """The exact solution of a free body; call it for a path with states dense enough to plot."""

    problem: Problem
    end: float
    times: np.ndarray | None = None
    """Times of the states; by default enough of them for a picture."""
    digits: int | None = None

    def __post_init__(self) -> None:
        from .exact import prepared

        self.t0, self.rows_at = self.problem.t0, prepared(self.problem, self.digits)

    @functools.cached_property
    def turned(self) -> float:
        """The rotation angle."""
        return math.hypot(*self.problem.velocity) * (self.end - self.t0)

    @property
    def parts(self) -> int:
        """Number of states after the first one."""
        return min(2000, max(100, math.ceil(self.turned / SHOWN))) if self.times is None else len(self.times) - 1

    @property
    def moments(self) -> np.ndarray:
        """The given times, or equally spaced ones."""
        times = self.times
        if times is None:
            times = np.linspace(self.t0, self.end, 1 + self.parts)
        return times if self.digits is None else in_digits(times)

    def __call__(self) -> Path:
        """Return states at the given times, or at equally spaced ones."""
        times = self.moments
        return Path(times, self.state_at(times, times, times), turned=self.turned)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return rows at any times."""
        return self.rows_at(times)


# --- choosing ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Wish:
    """The user's request: an error at the end or of each step, an optional method, and bounds on the steps."""

    tol: float
    of_steps: bool = False
    """Whether `tol` is the error of each step; the error at the end is then not estimated."""
    method: Method | None = None
    bounds: Bounds = NO_BOUNDS
    times: np.ndarray | None = None
    """The times of the states asked for: an exact solution is not evaluated at others."""
    digits: int | None = None
    """Digits of the numbers; None for doubles."""

    @property
    def eps(self) -> float:
        """The relative distance of two neighbouring numbers."""
        return EPS if self.digits is None else working_eps(self.digits)

    def units(self, problem: Problem, span: float) -> Units:
        """Return the units of a run; numbers with many digits have any size, so that only the direction matters."""
        if self.digits is None:
            return units_of(problem, span)
        return NO_UNITS if span > 0 else BACKWARD

    def schedule(self, problem: Problem, end: float) -> Schedule:
        """Return the schedule of a run of a problem in its units."""
        if has_states(problem):
            return with_states.schedule(problem, end, self.bounds, self.tol)
        legs = scheduled(problem, end, self.tol, self.bounds)
        return legs if self.digits is None else precise_steps.with_exact_edges(problem, legs, self.digits)

    def kinds(self, legs: Schedule) -> tuple[AdaptiveStep, ...]:
        """Return the kinds of adaptive steps to try, least work first."""
        if has_states(legs.problem):
            return (step_control.estimated(legs.problem, verner87),)
        if self.digits is not None:
            return (precise_steps.kind_of(legs.problem, self.digits),)
        return ranked(self.step, self.finer, legs)

    @property
    def step(self) -> float:
        """The tolerance of a step in the first run; for a large `tol` that one is smaller (`first_tolerance`)."""
        return self.tol if self.of_steps else FIRST * self.tol

    @property
    def finer(self) -> float:
        """The finest tolerance of a step divided by that one: smaller if a second run estimates the error."""
        return 1.0 if self.of_steps else 1 / REPEATED

    @property
    def is_too_fine_for_pairs(self) -> bool:
        """Whether round-off does not allow Runge-Kutta pairs, so that they are used only where there are no series."""
        return self.step * self.finer < PAIR_FINEST

    @property
    def name(self) -> str:
        """The user's name for the tolerance."""
        return "step_tol" if self.of_steps else "tol"


def run_to(problem: Problem, end: float, wish: Wish) -> Solution:
    """Run a problem to an end time, in units that give its numbers moderate size."""
    units = wish.units(problem, end - problem.t0)
    if units is NO_UNITS:
        return _in_moderate_units(problem, end, wish, end, 0)
    inner = rescaled(problem, units)
    times = None if wish.times is None else units.times(wish.times)
    scaled = dataclasses.replace(wish, bounds=wish.bounds.scaled(units), times=times)
    try:
        found = _in_moderate_units(inner, float(units.times(end)), scaled, end, units.time)
    except BaseException as stop:
        if hasattr(stop, "path"):
            stop.path = ScaledRun(None, units).back(stop.path)
        raise
    run = ScaledRun(found.run, units)
    dt = float(units.times(found.dt, back=True))
    return dataclasses.replace(found, run=run, path=run.back(found.path), dt=dt)


def _in_moderate_units(problem: Problem, end: float, wish: Wish, t_end: float, exponent: int) -> Solution:
    """Run a rescaled problem; `t_end` is the end time in user units, and 2**exponent converts times to them."""
    if problem.field is None and wish.method is None:
        return _exact(problem, end, wish, t_end)
    legs = wish.schedule(problem, end)
    if has_states(problem):
        found = _adaptively(legs, wish.kinds(legs)[0], wish, lambda: with_states.reason(problem))
        _warn_of_jumps(problem, found, wish)
        return _with_hidden_pulses(found, legs, wish)
    sided = _with_located_jumps(legs, wish)
    found = sided or (_with_best_method if wish.method is None else _with_given_method)(legs, wish, t_end)
    if sided is None:
        _warn_of_jumps(problem, found, wish)
    if legs.spacing:
        reason, spacing = found.reason, math.ldexp(legs.spacing, exponent)
        found.reason = lambda: f"{reason()}; {sampled_every(spacing)}"
    return _with_hidden_pulses(found, legs, wish)


def _with_hidden_pulses(found: Solution, legs: Schedule, wish: Wish) -> Solution:
    """Return a solution whose error is not below what pulses that nobody has found may cause; without one, say so."""
    if found.error is None:
        legs.warn_of_hidden_pulses(wish.tol)
        return found
    return dataclasses.replace(found, error=max(found.error, legs.hidden))


def _warn_of_jumps(problem: Problem, found: Solution, wish: Wish) -> None:
    """Say that steps which crossed jumps had no estimate of the error at the end, which would count them."""
    if wish.of_steps and found.path.finished:
        how = found.method if wish.digits is None else f"{found.method} with digits"
        warn_of_adaptive_steps(problem, how, len(found.path.times), lambda: found.path)


def sampled_every(spacing: float) -> str:
    """Return the part of a reason that says what steps may miss."""
    return f"the torque was sampled every {spacing:.2g}: name what lasts less than a few of these in stops or max_step"


def _exact(problem: Problem, end: float, wish: Wish, t_end: float) -> Solution:
    """Solve a free body exactly."""
    turned = norm(problem.velocity) * (end - problem.t0)
    error = exact_error(turned, wish.eps)
    if error > 1:
        raise InputError(
            f"t_end = {t_end:g} is {turned:.2g} radians away: one rounding error in the data rotates the body "
            f"by about {error:.2g}; choose an earlier t_end"
        )
    run = ExactRun(problem, end, wish.times, wish.digits)
    return exact_solution(run, run(), error, wish)


def exact_solution(run: ExactRun, path: Any, error: float, wish: Wish) -> Solution:
    """Return the exact solution of a free body along a path."""
    return Solution(run, path, jacobi.name, lambda: EXACT + _limit(error, wish), error)


EXACT = "free body: the exact solution, by elliptic functions"


def _with_given_method(legs: Schedule, wish: Wish, t_end: float) -> Solution:
    """Run the given method: adaptive if it estimates its errors, otherwise with enough equal steps for tol."""
    problem, method = legs.problem, wish.method
    assert method is not None
    end = legs.legs[-1].end
    if method.estimated is not None:
        check_fit(method, problem)
        make = step_control.estimated if wish.digits is None else precise_steps.estimated
        kind = make(problem, method, *filter(None, [wish.digits]))
        return _adaptively(legs, kind, wish, lambda: "given; steps chosen by its estimates of their errors")
    if wish.of_steps:
        raise InputError(f"{method.name} does not estimate the errors of its steps; give dt or tol instead of step_tol")
    turned = max(1.0, float(np.linalg.norm(problem.omega)) * (end - problem.t0))
    if 4 * turned > MOST_STEPS:
        raise InputError(
            f"t_end = {t_end:g} is {turned:.2g} radians away, too far for {method.name} with at most "
            f"{MOST_STEPS} steps; give dt, or leave out `method`"
        )
    found = measured_steps(legs, method, wish.tol, max(4, math.ceil(4 * turned)), wish.digits)
    if found is None:
        raise InputError(
            f"{method.name} does not reach {wish.tol:g} at t = {t_end:g} with a reasonable number of steps; give a "
            "larger tol, or leave out `method`"
        )
    if not found.path.finished:
        return Solution(found.run, found.path, method.name, lambda: "given")
    if found.run.located is None:
        warn_of_jumps(problem, method, wish.digits, len(found.path.times), lambda: found.path)
    else:
        found.run.located.warn_of_sliding(found.run.count)
    reason = f"given; {found.run.count} steps give the accuracy asked for"
    return Solution(found.run, found.path, method.name, lambda: reason, found.error, found.run.dt)


def _with_best_method(legs: Schedule, wish: Wish, t_end: float) -> Solution:
    """Run the kind of step that needs the least work for the formula; if it does not reach tol, try the other."""
    kept = formula(legs.problem)
    found: list[Solution] = []
    for kind in wish.kinds(legs):
        made = _adaptively(
            legs, kind, wish, functools.partial(_why, legs.problem, kind, kept, tuple(x.error for x in found))
        )
        found.append(made)
        if _is_enough(made, wish):
            return made
    return min(found, key=lambda x: (not x.path.finished, x.error or 0.0))


def _is_enough(made: Solution, wish: Wish) -> bool:
    """Return whether no other kind of step need be tried: the error is small enough, or round-off in that of others."""
    error = made.error or 0.0
    return made.path.finished and (error <= wish.tol or (error < math.inf and wish.is_too_fine_for_pairs))


def _with_located_jumps(legs: Schedule, wish: Wish) -> Solution | None:
    """Run with steps that end where conditions on the state change; None if they cannot be located, or miss tol."""
    inner = None if wish.method or wish.digits else located.held(legs)
    if inner is None:
        return None
    for kind in ranked(wish.step, wish.finer, inner):
        found = _adaptively(inner, kind, wish, lambda: LOCATED, LocatedRun)
        if _is_enough(found, wish):
            return found
    return None


LOCATED = "the field has branches: steps end where a condition on the state changes, and keep their order between"


def _adaptively(
    legs: Schedule, kind: AdaptiveStep, wish: Wish, reason: Callable[[], str], make: type[Run] = Run
) -> Solution:
    run = make(legs.problem, kind, legs.legs[-1].end, wish.tol, legs)
    if wish.of_steps:
        return Solution(run, run(), kind.label(run.order), lambda: reason() + NOT_ESTIMATED)
    found = estimated(run, wish.tol)
    label, error = kind.label(found.run.order), found.error
    return Solution(found.run, found.path, label, lambda: reason() + _limit(error, wish), error)


def reason_of_first(problem: Problem, kind: AdaptiveStep, error: float | None, wish: Wish) -> str:
    """Return why a kind of step was chosen that was the first to be tried and reached the tolerance."""
    return _why(problem, kind, formula(problem), ()) + (NOT_ESTIMATED if error is None else _limit(error, wish))


NOT_ESTIMATED = "; each step keeps step_tol, the error at the end is not estimated"


def _why(problem: Problem, kind: AdaptiveStep, kept: Formula, before: Sequence[float | None]) -> str:
    """Explain the choice of this kind of step, after others with the errors `before`, which missed the tolerance."""
    field = "potential" if problem.needs == "potential" else "torque"
    if not kept.smooth:
        return "the field has branches: an embedded pair of Munthe-Kaas methods, steps chosen by their difference"
    if len(kept.kinds) == 1:
        return f"smooth {field} with a sum over rows of data, which has no Taylor series: a Runge-Kutta pair 8(7)"
    held = isinstance(problem.field, PiecewiseField)
    smooth = f"{field} smooth between the times at which it switches" if held else f"smooth {field}"
    if kind.digits is not None:
        return f"{smooth}, {kind.digits} digits: Taylor steps, their order follows from the tolerance"
    this, other = "Taylor steps", "a Runge-Kutta pair 8(7)"
    if kind.has_proposal:
        order = kind.order_for(EPS)
        this, other = f"a Runge-Kutta pair {order}({order - 1})", this
    if before and kind.has_proposal and before[0] == math.inf:
        return f"{field} without a Taylor series somewhere on the way: {this}"
    if before:
        return f"{smooth}: {this}, as {other} did not reach the tolerance"
    return f"{smooth}: {this} at this tolerance need{'s' * kind.has_proposal} less work than {other}"


def _limit(error: float, wish: Wish) -> str:
    if error <= wish.tol or wish.of_steps:
        return ""
    if math.isinf(error):
        return "; its error is not known, as runs with other tolerances fail"
    about = excess(error, wish.tol)
    least = "below what round-off and the sensitivity of this motion allow"
    return f"; {wish.tol:g} is {least}; the estimated error is {about}"


def missed(error: float, wish: Wish, problem: Problem, run: Any) -> str:
    """What a user is told whose tolerance was not reached."""
    if wish.digits is None and (fault := coarse_times(problem, problem.t0, problem.momentum)):
        return f"the error at the end may be of any size, as {fault}"
    legs = getattr(run.run if isinstance(run, ScaledRun) else run, "schedule", None)
    if legs is not None and legs.hidden >= error:
        return f"the error at the end is about {excess(error, wish.tol)}, more than tol={wish.tol:g}: {UNRESOLVED}"
    if problem.field is not None and has_jumps(problem.field) and not located.is_located(run):
        size = "not known" if math.isinf(error) else f"about {excess(error, wish.tol)}, more than tol={wish.tol:g}"
        return (
            f"the error at the end is {size}: the field jumps with the state, and at a jump that holds the motion "
            "steps become very short and many; make the jump a steep slope (tanh), or give a larger tol"
        )
    if math.isinf(error):
        return f"the error at the end is not known, as runs with other tolerances fail; tol={wish.tol:g} may be missed"
    more = "digits" if wish.digits is None else "more digits"
    return (
        f"the error at the end is about {excess(error, wish.tol)}, more than tol={wish.tol:g}: that is what "
        f"round-off and the sensitivity of this motion allow; give a larger tol, or {more}"
    )


def _info(problem: Problem, wish: Wish, **details: Any) -> Info:
    return info_of(problem, **{wish.name: wish.tol}, digits=wish.digits, **details)


# --- running ----------------------------------------------------------------------------------------


def solve_to(
    problem: Problem,
    wish: Wish,
    end: float,
    events: Sequence[Event] = (),
    progress: bool | Callable[[float], Any] | None = None,
) -> Trajectory:
    """Solve a problem to a tolerance, with the given method or the one that needs the least work."""
    check_tolerance(wish)
    if wish.digits is None and abs(end - problem.t0) / FEWEST_TIMES < math.ulp(max(abs(problem.t0), abs(end))):
        raise InputError(
            f"there are fewer than {FEWEST_TIMES} doubles between t0 = {problem.t0:g} and t_end = {end:g}, too few "
            "for the times of the steps; choose a t0 closer to 0"
        )
    watch = Stopwatch()
    with running(problem, wish, progress):
        solution, happened = _with_events(problem, wish, end, events)
    path, problem = solution.path, problem.snapshot()
    described = describing(problem, wish, solution, watch.seconds, watch.compile_seconds)
    dense = Dense(problem, solution.run, path, wish.digits)
    sol = Trajectory(states_of(problem, path, wish.digits), described, dense=dense, problem=problem)
    if happened:
        sol.events = [sol.at(times) for times in happened]
    if not path.finished:
        many = f"the {len(path.times)} states before it are in .partial"
        raise StepError(gave_up(problem, path, solution.method), sol, many)
    if not wish.of_steps and solution.error is not None and solution.error > wish.tol:
        warnings.warn(missed(solution.error, wish, problem, solution.run), ToleranceWarning, stacklevel=3)
    return sol


def interrupted(problem: Problem, wish: Wish, path: Path, method: str = "") -> Trajectory:
    """Return what an interrupted run has computed."""
    info = _info(problem, wish, method=method, dt=0.0, status="interrupted")
    return Trajectory(states_of(problem, path, wish.digits), info, problem=problem)


def check_tolerance(wish: Wish) -> None:
    """Refuse a tolerance that the numbers of the run do not allow, and one that allows anything."""
    smallest = SMALLEST if wish.digits is None else 10.0 ** -min(wish.digits, MOST_DIGITS)
    if smallest <= wish.tol <= LARGEST:
        return
    more = ""
    if 0 < wish.tol < smallest:
        digits = math.ceil(-math.log10(wish.tol)) + 5
        more = f"; for {wish.tol:g} give digits={digits} (--digits {digits})"
    where = "in double precision" if wish.digits is None else f"with digits={wish.digits}"
    low, high, got = apart(smallest, LARGEST, wish.tol)
    raise InputError(f"{wish.name} must lie between {low} and {high} {where}; got {got}{more}")


def describing(
    problem: Problem, wish: Wish, solution: Solution, seconds: float, compile_seconds: float
) -> Callable[[], Info]:
    """Return a function that makes the metadata of a trajectory; it does not hold the path."""
    path = solution.path
    return functools.partial(
        _info_of_run, problem, wish, solution.reason, solution.method, solution.dt, solution.error, seconds,
        compile_seconds, path.steps, path.rejected, path.finished,
    )  # fmt: skip


def _info_of_run(
    problem: Problem, wish: Wish, reason: Callable[[], str], method: str, dt: float, error: float | None,
    seconds: float, compile_seconds: float, steps: int, rejected: int, finished: bool,
) -> Info:  # fmt: skip
    return _info(
        problem, wish, method=method, dt=dt, reason=reason(), error_estimate=error, seconds=seconds,
        compile_seconds=compile_seconds, steps=steps, accepted=steps, rejected=rejected,
        status="finished" if finished else "failed",
    )  # fmt: skip


@contextlib.contextmanager
def running(problem: Problem, wish: Wish, progress: bool | Callable[[float], Any] | None) -> Iterator[None]:
    """Report the progress of the runs within, if somebody can see it; an exception carries the states as `partial`."""
    try:
        runs = Runs(progress, f"to {wish.tol:g}")
        watched = adaptive.watched(runs) if runs.has_reader else contextlib.nullcontext()
        with guarded(wish.digits), runs, notice.shown(runs.progress.visible), watched:
            yield
    except BaseException as stop:
        if hasattr(stop, "path"):
            stop.partial = interrupted(problem, wish, stop.path, getattr(stop, "method", ""))  # type: ignore[attr-defined]
        raise


def _with_events(
    problem: Problem, wish: Wish, end: float, events: Sequence[Event]
) -> tuple[Solution, list[np.ndarray]]:
    """Return a solution up to the first terminal event, and the times of all events."""
    if not events:
        return run_to(problem, end, wish), []
    stop = end
    if any(event.terminal for event in events) and problem.field is not None and wish.method is None:
        stop = _end_of_run(problem, end, wish, events)
    while True:
        solution = run_to(problem, stop, wish)
        path, happened = found_on(solution.path, solution.run, problem, events, wish.digits)
        if stop == end or path.times[-1] != stop:
            return dataclasses.replace(solution, path=path), happened
        longer = (stop - problem.t0) * (17 / 16)  # the event lies just past the end: go a little further
        stop = end if abs(longer) >= abs(end - problem.t0) else problem.t0 + longer


def _end_of_run(problem: Problem, end: float, wish: Wish, events: Sequence[Event]) -> float:
    """Return the end of the step after the first terminal event, so that later motion is not computed."""
    units = wish.units(problem, end - problem.t0)
    scaled = dataclasses.replace(wish, bounds=wish.bounds.scaled(units))
    legs = scaled.schedule(rescaled(problem, units), float(units.times(end)))
    inner = Run(legs.problem, wish.kinds(legs)[0], legs.legs[-1].end, wish.tol, legs)
    run: Any = inner if units is NO_UNITS else ScaledRun(inner, units)
    before: list[Path] = []
    for made in run.pieces():
        if not len(made.times):
            break
        piece = joined([*before, made])
        terminal = [event for event in events if event.terminal]
        ends = found_on(piece, run, problem, terminal, wish.digits)[0].times[-1]
        if ends != piece.times[-1]:
            after = int(np.searchsorted(abs(piece.times - piece.times[0]), abs(ends - piece.times[0]), side="right"))
            return float(piece.times[min(after + 1, len(piece.times) - 1)])
        before = [dataclasses.replace(made, times=made.times[-1:], rows=made.rows[-1:])]
    return end
