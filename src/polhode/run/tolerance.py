"""Solve a problem to an accuracy: a method is chosen, and the result says which, why, and with what error."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._memo import Memo
from ..errors import InputError, StepError
from ..methods import Method
from ..methods.families.jacobi import jacobi
from ..physics.observers.event import Event
from ..physics.problem import Problem, finite_number
from ..physics.units import NO_UNITS, ScaledRun, rescaled, units_of
from ..results.progress import Progress
from ..results.trajectory import Info, Trajectory, info_of
from . import adaptive
from . import candidates as choice
from .adaptive import LARGEST, SMALLEST, Measured, Path, is_smooth
from .dense import Dense, Lazy
from .event_search import found_on
from .integrator import check_fit
from .schedule import NO_BOUNDS, Bounds, Schedule, scheduled

ROUGH = 1e-4
"""The tolerance of the run that tells how large the momentum becomes."""

FEWEST_TIMES = 64
"""Doubles between the start and the end of a run, at least."""

WORTH, FEW_STEPS = 8.0, 10_000
"""How much more work a pair may try before it is given up, and the steps it may always try."""

SHOWN = 0.25
"""Radians between the states that are kept of an exact solution, at most 2000 of them."""

PLANS = Memo(64)
"""The plans and the measured splittings used last, so that a problem solved again is not measured again."""


@dataclasses.dataclass
class Plan:
    """How a problem is solved to a tolerance."""

    run: Any
    error: float
    info: Info

    def __call__(self) -> Path:
        """Run it."""
        path: Path = self.run()
        return path


@dataclasses.dataclass
class ExactRun:
    """The exact solution of a free body; call it for a path with states close enough to be drawn."""

    problem: Problem
    end: float

    def __post_init__(self) -> None:
        from .exact import prepared

        self.rows_at = prepared(self.problem)

    def __call__(self) -> Path:
        """States at equal times."""
        span = self.end - self.problem.t0
        turned = float(np.linalg.norm(self.problem.omega)) * span
        times = np.linspace(self.problem.t0, self.end, 1 + min(2000, max(100, math.ceil(turned / SHOWN))))
        return Path(times, self.state_at(times, times, times), 0, True)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rows at any times."""
        return self.rows_at(times)


# --- choosing ---------------------------------------------------------------------------------------


def plan(
    problem: Problem,
    end: float,
    tol: float,
    method: Method | None = None,
    bounds: Bounds = NO_BOUNDS,
) -> Plan:
    """The plan for an end time and a tolerance, made once."""
    key = ("plan", *_content(problem), end, tol, method, bounds.stops, bounds.max_step)
    made: Plan = PLANS(key, lambda: _planned(problem, end, tol, method, bounds))
    return made


def _content(problem: Problem) -> tuple[Any, ...]:
    """The problem, and what it says now: a problem that was changed is another one."""
    start = tuple(problem.quaternion), tuple(problem.momentum), problem.t0
    return problem, problem.name, problem.body, problem.field, *start


def _planned(problem: Problem, end: float, tol: float, method: Method | None, bounds: Bounds) -> Plan:
    """A plan made in units in which the numbers of the problem are of moderate size."""
    units = units_of(problem, end - problem.t0)
    inner = rescaled(problem, units)
    legs = scheduled(inner, float(units.times(end)), tol, bounds.scaled(-units.time))
    made = (
        _with_best_method(inner, legs, tol, end)
        if method is None
        else _with_given_method(inner, legs, tol, method, end)
    )
    if legs.spacing:
        spacing = float(units.times(legs.spacing, back=True))
        made.info = dataclasses.replace(made.info, reason=f"{made.info.reason}; {_sampled(spacing)}")
    if units == NO_UNITS:
        return made
    details = {name: getattr(made.info, name) for name in ("method", "tol", "reason", "error_estimate")}
    info = info_of(problem, dt=float(units.times(made.info.dt, back=True)), **details)
    return Plan(ScaledRun(made.run, units), made.error, info)


def _sampled(spacing: float) -> str:
    return f"the torque was sampled every {spacing:.2g}: name what lasts less than a few of these in stops or max_step"


def _with_given_method(problem: Problem, legs: Schedule, tol: float, method: Method, end: float) -> Plan:
    """Steps of a given method: by its own estimates, or equal and so many that the error is below tol.

    `end` is the time as the user gave it.
    """
    if method.estimated is not None:
        check_fit(method, problem)
        controlled_step = adaptive.estimated(legs.problem, method)  # the field between two of its edges
        rough = adaptive.Run(legs.problem, controlled_step, legs.legs[-1].end, ROUGH, schedule=legs)()
        controlled = _measured(legs, controlled_step, tol, adaptive.scale_of_momentum(problem, rough))
        reason = "given; steps chosen by its estimates of their errors" + _limit(controlled, tol)
        return _plan(problem, tol, method.name, reason, controlled.run, controlled.error)
    turned = max(1.0, float(np.linalg.norm(problem.omega)) * (legs.legs[-1].end - problem.t0))
    if 4 * turned > choice.MOST_STEPS:
        raise InputError(
            f"t_end = {end:g} is {turned:.2g} radians away, too far for {method.name} with at most "
            f"{choice.MOST_STEPS} steps; give dt, or remove the argument method"
        )
    found = choice.measured_steps(legs, method, tol, max(4, math.ceil(4 * turned)))
    if found is None:
        raise InputError(
            f"{method.name} does not reach {tol:g} at t = {end:g} with a reasonable number of steps; give a larger "
            "tol, or remove the argument method"
        )
    reason = f"given; {found.run.count} steps give the accuracy asked for"
    return _plan(problem, tol, method.name, reason, found.run, found.error, found.run.dt)


def _with_best_method(problem: Problem, legs: Schedule, tol: float, t_end: float) -> Plan:
    """The run that needs least work; `t_end` is the end as the user gave it."""
    end = legs.legs[-1].end
    if problem.field is None:
        turned = float(np.linalg.norm(problem.omega)) * (end - problem.t0)
        error = 10 * adaptive.EPS * (1 + turned)
        if error > 1:
            raise InputError(
                f"t_end = {t_end:g} is {turned:.2g} radians away: one rounding error in the data rotates the body "
                f"by about {error:.2g}; choose an earlier t_end"
            )
        reason = "free body: the exact solution, by elliptic functions"
        found = Measured(ExactRun(problem, end), error, error <= tol)
        return _plan(problem, tol, jacobi.name, reason + _limit(found, tol), found.run, error)
    held = legs.problem
    controlled_step = stage_of(held)
    scale = adaptive.scale_of_momentum(problem, adaptive.Run(held, controlled_step, end, ROUGH, schedule=legs)())
    if not is_smooth(held.field):
        found = _measured(legs, controlled_step, tol, scale)
        reason = "the field has branches: an embedded pair of Munthe-Kaas methods, steps chosen by their difference"
        return _plan(problem, tol, found.run.controlled_step.name, reason + _limit(found, tol), found.run, found.error)
    taylor = _measured(legs, controlled_step, tol, scale)
    found, work = _lighter(taylor, _measured(legs, _pair_within(held, taylor), tol, scale))
    splittings = _splittings(problem, legs, found)
    return _splitting(problem, legs, tol, splittings or [], work) or _plan(
        problem, tol, found.run.controlled_step.label(found.run.order),
        _why(problem, taylor, found, splittings is not None) + _limit(found, tol), found.run, found.error,
    )  # fmt: skip


def _measured(legs: Schedule, controlled_step: adaptive.AdaptiveStep, tol: float, scale: float) -> Measured:
    problem, end = legs.problem, legs.legs[-1].end

    def make(local: float, stretch: float = 1.0) -> adaptive.Run:
        return adaptive.Run(problem, controlled_step, end, local, scale, legs, stretch)

    return adaptive.measured(make, tol)


def _pair_within(problem: Problem, taylor: Measured) -> adaptive.AdaptiveStep:
    """The Runge-Kutta pair, given up where it needs far more work than the Taylor steps do."""
    pair = adaptive.runge_kutta(problem)
    if not taylor.reached:
        return pair
    most = WORTH * choice.run_ns(taylor.run, taylor.run()) / pair.ns(pair.order_for(taylor.run.tolerance))
    return dataclasses.replace(pair, most=min(pair.most, max(FEW_STEPS, most)))


def _lighter(taylor: Measured, pair: Measured) -> tuple[Measured, float]:
    """That of two runs which needs less work, among those that reach the accuracy, and its work."""
    if not pair.reached:
        return taylor, choice.run_ns(taylor.run, taylor.run())
    works = [choice.run_ns(found.run, found.run()) for found in (taylor, pair)]
    return (pair, works[1]) if works[1] < works[0] or not taylor.reached else (taylor, works[0])


def stage_of(problem: Problem) -> adaptive.AdaptiveStep:
    """Taylor steps where there is a Taylor series, else those of an embedded pair."""
    return adaptive.taylor(problem) if is_smooth(problem.field) else adaptive.pair(problem)


def _why(problem: Problem, taylor: Measured, found: Measured, with_splittings: bool) -> str:
    field = "potential" if problem.needs == "potential" else "torque"
    smooth = f"smooth {field}" if is_smooth(problem.field) else f"{field} smooth between the times at which it switches"
    splittings = " and splittings" if with_splittings else ""
    if math.isinf(taylor.error):
        return f"{field} without a Taylor series somewhere on the way: a Runge-Kutta pair 8(7)"
    if found is taylor:
        return f"{smooth}: Taylor steps need less work than a Runge-Kutta pair 8(7){splittings}"
    return f"{smooth}: a Runge-Kutta pair 8(7) needs less work than Taylor steps{splittings}"


def _limit(found: Measured, tol: float) -> str:
    if found.reached:
        return ""
    if math.isinf(found.error):
        return "; its error is not known, as runs with other tolerances fail"
    return f"; round-off and the spread of the motion do not allow {tol:g}, the error is about {found.error:.1g}"


def _splittings(problem: Problem, legs: Schedule, found: Measured) -> list[choice.Candidate] | None:
    """The splittings to compare with the run found; None where there is nothing to compare."""
    if problem.needs != "potential" or not found.reached:
        return None
    path = found.run()
    some = path.rows[:: max(1, len(path.rows) // 8)]
    if not choice.is_fast(problem, some):
        return None
    key = ("splittings", *_content(problem), legs.legs[-1].end)
    measured: list[choice.Candidate] = PLANS(key, lambda: choice.candidates(problem, path))
    return measured


def _splitting(
    problem: Problem, legs: Schedule, tol: float, splittings: Sequence[choice.Candidate], work: float
) -> Plan | None:
    """A splitting that needs clearly less work than the run found, if there is one."""
    span = legs.legs[-1].end - problem.t0
    for candidate in sorted(splittings, key=lambda c: c.steps(span, tol) * c.ns)[:2]:
        if candidate.steps(span, tol) * candidate.ns > choice.GAIN * work:
            break
        steps = max(4, math.ceil(candidate.steps(span, tol)))
        made = choice.measured_steps(legs, candidate.method, tol, steps)
        if made is not None and made.run.count * candidate.ns <= choice.GAIN * work:
            share = made.run.count * candidate.ns / work
            reason = f"fast spin in a potential: this splitting needs {share:.2f} of the work of other methods"
            return _plan(problem, tol, candidate.method.name, reason, made.run, made.error, made.run.dt)
    return None


def _plan(problem: Problem, tol: float, method: str, reason: str, run: Any, error: float, dt: float = 0.0) -> Plan:
    info = info_of(problem, method=method, dt=dt, tol=tol, reason=reason, error_estimate=error)
    return Plan(run, error, info)


# --- running ----------------------------------------------------------------------------------------


def solve_to(
    problem: Problem,
    tol: Any,
    end: float,
    method: Method | None = None,
    events: Sequence[Event] = (),
    progress: bool | Callable[[float], Any] | None = None,
    bounds: Bounds = NO_BOUNDS,
) -> Trajectory:
    """The solution of a problem to a tolerance, by the method that needs least work or by the one given."""
    tol = finite_number("tol", tol)
    if not SMALLEST <= tol <= LARGEST:
        raise InputError(f"tol must lie between {SMALLEST:g} and {LARGEST:g}; got {tol:g}")
    if (end - problem.t0) / FEWEST_TIMES < math.ulp(max(abs(problem.t0), abs(end))):
        raise InputError(
            f"there are fewer than {FEWEST_TIMES} doubles between t0 = {problem.t0:g} and t_end = {end:g}, too few "
            "for the times of the steps; choose a t0 closer to 0"
        )
    bar, chosen, happened = _Bar(Progress(progress, f"to {tol:g}", 1000)), None, list[np.ndarray]()
    try:
        with adaptive.watched(bar.tell):
            stop = end
            if any(event.terminal for event in events) and problem.field is not None and method is None:
                stop = _end_of_run(problem, end, bounds, events, tol)
            while True:
                chosen = plan(problem, stop, tol, method, bounds)
                began = time.perf_counter()
                path = chosen()
                if not events:
                    break
                path, happened = found_on(path, chosen.run, problem, events)
                if stop >= end or path.times[-1] < stop:
                    break
                stop = min(end, stop + (stop - problem.t0) / 16)  # the event lies just behind: a little further
        bar.done()
    except BaseException as stopped:
        if chosen is not None and hasattr(stopped, "path"):
            stopped.partial = Trajectory(Lazy(problem, stopped.path), chosen.info)  # type: ignore[attr-defined]
        raise
    finally:
        bar.progress.close()
    steps = len(path.times) - 1
    info = dataclasses.replace(
        chosen.info, seconds=time.perf_counter() - began, steps=steps, accepted=steps, rejected=path.rejected,
        status="finished" if path.finished else "failed",
    )  # fmt: skip
    sol = Trajectory(Lazy(problem, path), info, dense=Dense(problem, chosen.run, path))
    sol.events = [sol.at(times) for times in happened]
    if not path.finished:
        raise StepError(_explained(path, chosen), sol, f"the {len(path.times)} states before it are in .partial")
    return sol


def _end_of_run(problem: Problem, end: float, bounds: Bounds, events: Sequence[Event], tol: float) -> float:
    """The end of the first step in which an event ends the run: nothing is computed beyond it."""
    units = units_of(problem, end - problem.t0)
    legs = scheduled(rescaled(problem, units), float(units.times(end)), tol, bounds.scaled(-units.time))
    inner = adaptive.Run(legs.problem, stage_of(legs.problem), legs.legs[-1].end, tol / 8, schedule=legs)
    run: Any = inner if units == NO_UNITS else ScaledRun(inner, units)
    last_time, last_row = np.array([problem.t0]), units.rows(inner.first, back=True)
    for times, rows, _, _ in run.pieces():
        if not len(times):
            break
        piece = Path(np.append(last_time, times), np.concatenate([last_row, rows]), 0, True)
        ends = found_on(piece, run, problem, [event for event in events if event.terminal])[0].times[-1]
        if ends < piece.times[-1]:
            after = int(np.searchsorted(piece.times, ends, side="right"))
            return float(piece.times[min(after + 1, len(piece.times) - 1)])
        last_time, last_row = piece.times[-1:], piece.rows[-1:]
    return end


class _Bar:
    """Progress of several runs of unknown number: it never goes back, and is full at the end only."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.runs, self.last = progress, 0, 0.0

    def tell(self, part: float) -> None:
        """A run has done this part of its time."""
        self.runs += part < self.last
        self.last = part
        self.progress.update(round(1000 * (1 - 1 / (1 + (self.runs + part) / 8))))

    def done(self) -> None:
        """All is done."""
        self.progress.update(1000)


def _explained(path: Path, chosen: Plan) -> str:
    if path.crawling:
        return (
            f"{chosen.info.method} gave up at t = {path.times[-1]:g} after {len(path.times) + path.rejected} tried "
            f"steps: the field jumps there and holds the motion at the jump, so that steps become ever shorter; make "
            f"the jump a steep slope (tanh), or use a fixed dt"
        )
    return f"{chosen.info.method} failed at t = {path.times[-1]:g}: no step, however short, gives a finite state"
