"""Runs under sampled-data control to a tolerance: adaptive steps of Verner's pair 8(7) that end at the samples."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..compile.clock import Stopwatch
from ..errors import InputError, StepError, ToleranceWarning
from ..kernels.loops import COLUMNS
from ..methods.adaptive.verner87 import verner87
from ..numbers import floats
from ..physics.control.controller import Controller
from ..physics.fields.switches import between, edges
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..physics.validate import MOST_STEPS
from ..results.trajectory import Trajectory, info_of
from . import located
from .adaptive import Path, Run
from .control import check_body, sampled, sampling_of, with_controller
from .control_in_python import InPython
from .dense import Dense, states_of
from .error_estimate import estimated
from .event_search import found_on
from .failures import gave_up
from .integrator import check_compiled, check_fit
from .located import LocatedRun
from .located_steps import warn_of_jumps
from .parts import Commands
from .schedule import Schedule, scheduled
from .step_control import PAIR_STEPS, AdaptiveStep
from .system import System
from .tolerance import Wish, check_tolerance, missed, running, sampled_every

REASON = "control: a Runge-Kutta pair 8(7), steps end at the samples"


GROWING = 5
"""Periods in a row, each with more steps than the one before, in which a closed loop is seen to diverge."""

SPENT, HOPELESS = 0.1, 100.0
"""Steps in those periods, and steps that the rest of the run needs at the present rate, relative to the most allowed.

A transient may need ever more steps for a while, but a run that recovers from one as long as that and still ends within
the limit would have to need less than a hundredth of these steps afterwards.
"""


class SampledRun(Run):
    """A run with samples that is abandoned as soon as its closed loop evidently diverges.

    If every period takes several times as many steps as the one before, the largest allowed number of steps is reached
    only after millions of states, all of which are held.
    """

    needed: float = 0.0
    """Steps that the rest of an abandoned run would have needed without further growth."""

    def pieces(self) -> Iterator[Path]:
        """Yield the path in pieces, as `Run.pieces`, up to the one in which the run is seen to diverge."""
        period = float(self.system[2][self.controlled_step.system.commands.period_place])
        self.needed, states, samples, current = 0.0, 0, np.empty(0, int), 0.0
        for piece in super().pieces():
            if piece.standing is None:  # the last one; it is empty if its first step failed
                yield piece
                continue
            passed = np.ceil((piece.times - self.problem.t0) / period - WITHIN)
            new = np.flatnonzero(np.diff(passed, prepend=current))
            samples, current = np.append(samples, states + new)[-GROWING - 1 :], passed[-1]
            states += len(piece.times)
            left = (self.end - float(piece.times[-1])) / period
            needed = hopeless_steps(np.diff(samples), left, self.controlled_step.most)
            if needed:
                self.needed = needed
                yield dataclasses.replace(piece, finished=False, crawling=True, standing=None)
                return
            yield piece


WITHIN = 1e-6
"""Share of a period by which a step may end after a sample and still count as before it."""


class LocatedSampledRun(SampledRun, LocatedRun):
    """The same with steps that end where conditions on the state change."""


def hopeless_steps(steps: np.ndarray, left: float, most: float) -> float:
    """Return the steps that a diverging run needs for its last `left` periods; 0 if it may end within the `most`.

    `steps` are those of the last periods. The result does not count further growth.
    """
    diverges = len(steps) == GROWING and (np.diff(steps) > 0).all() and steps.sum() > SPENT * most
    needed = left * float(steps[-1]) if diverges else 0.0
    return needed if needed > HOPELESS * most else 0.0


def solve_to(
    problem: Problem, control: Controller, period: float, wish: Wish, end: float, events: Sequence[Event] = (),
    progress: bool | Callable[[float], Any] | None = None,
) -> Trajectory:  # fmt: skip
    """Integrate a problem under control, with adaptive steps."""
    check_tolerance(wish)
    _check(problem, wish, end)
    if (end - problem.t0) / period > MOST_STEPS:
        raise InputError(
            f"period = {period:g} gives {(end - problem.t0) / period:.3g} samples until t_end = {end:g}, and at most "
            f"{MOST_STEPS:.3g} can be counted; give a longer period", "period",
        )  # fmt: skip
    watch, inner = Stopwatch(), with_controller(problem, control, period)
    check_fit(verner87, inner)
    schedule = _schedule(problem, inner, end, wish)
    law, sample = Commands(schedule.problem), InPython(inner)
    if not (law.is_formula or wish.of_steps):
        raise InputError(
            f"tol repeats a run with smaller steps, and {law.control.template.user.owner} is called as plain Python, "
            "which may remember what it was asked; give step_tol, or write it as a formula"
        )
    reason = REASON + f"; {sampled_every(schedule.spacing)}" * (schedule.spacing > 0)
    y, _ = schedule.problem.kernel_data(floats.number)
    first = sample.numbers(problem.t0, y, f"at the start (t = {problem.t0:g})")
    sided = located.held(schedule) if law.is_formula else None
    with sampled(inner, period), running(inner, wish, progress):
        run, path, error = _run(
            SampledRun if sided is None else LocatedSampledRun, problem, sided or schedule, sample, first, wish
        )
        if sided is not None and not (path.finished and (error or 0.0) <= wish.tol):  # it may slide along a jump
            run, path, error = _run(SampledRun, problem, schedule, sample, first, wish)
    if wish.of_steps and not isinstance(run, LocatedRun):
        remedy = "make the jump a steep slope (tanh)" if law.is_formula else "write the controller as a formula"
        warn_of_jumps(problem, verner87, None, len(path.times), lambda: path, remedy)
    happened: list[Any] = []
    if events:
        path, happened = found_on(path, run, inner, events)
    steps = len(path.times) - 1
    info = info_of(
        inner, method=verner87.name, dt=0.0, reason=reason, error_estimate=error, seconds=watch.seconds,
        compile_seconds=watch.compile_seconds, steps=steps, accepted=steps, rejected=path.rejected,
        status="finished" if path.finished else "failed", **{wish.name: wish.tol},
    )  # fmt: skip
    sol = Trajectory(states_of(inner, path, None), info, dense=Dense(inner, run, path))
    sol.control = lambda: sampling_of(inner, period).samples(sol.t, sol.states)
    sol.events = [sol.at(times) for times in happened]
    if not path.finished:
        t = float(path.times[-1])
        if not sample.fault:
            sample(t, tuple(map(tuple, _state(path.rows[-1].tolist()))), None)
        many = f"the {len(path.times)} states before it are in .partial"
        failed = f"{verner87.name} failed at t = {t:g}: {sample.fault}" if sample.fault else ""
        raise StepError(failed or _gave_up(run, problem, path) + _growth(inner, path), sol, many)
    if error is not None and error > wish.tol:
        warnings.warn(missed(error, wish, problem, run), ToleranceWarning, stacklevel=4)
    return sol


def _gave_up(run: SampledRun, problem: Problem, path: Path) -> str:
    """Explain why a run ended early."""
    if not run.needed:
        return gave_up(problem, path, verner87.name)
    return (
        f"{verner87.name} gave up at t = {path.times[-1]:g} after {len(path.times) + path.rejected} tried steps: each "
        f"of the last {GROWING} periods took more steps than the one before, and with as many as in the last one the "
        f"rest of the run takes {run.needed:.2g}, while at most {run.controlled_step.most:.2g} are made"
    )


def _growth(problem: Problem, path: Path) -> str:
    """Return what a run that was abandoned says of a closed loop that diverges."""
    first, last = np.linalg.norm(path.rows[[0, -1], 4:COLUMNS] * problem.body.inverse_moments, axis=1)
    if not (path.crawling and last > DIVERGED * first):
        return ""
    return (
        f"; |omega| was {first:.3g} at the start and is {last:.3g}: if the closed loop is unstable, sample it more "
        "often or with smaller gains"
    )


DIVERGED = 100.0
"""Growth of the angular velocity in a run whose steps became ever shorter that is named as their cause."""


def _run(
    make: type[SampledRun], problem: Problem, schedule: Schedule, sample: InPython, first: Any, wish: Wish
) -> tuple[SampledRun, Path, float | None]:
    """Return a run along a schedule, its path, and its error at the end if that is estimated.

    The error is that of attitude and momentum, the states of the problem without its controller.
    """
    system, order = System(schedule.problem, verner87), int(verner87.order)
    kind = AdaptiveStep(verner87.name, system, lambda tolerance: order, most=PAIR_STEPS, sample=sample)
    run = make(schedule.problem, kind, schedule.legs[-1].end, wish.tol, schedule)
    run.y, run.measured = (*run.y[:2], first), problem
    if wish.of_steps:
        schedule.warn_of_hidden_pulses(wish.tol)
        return run, run(), None
    found = estimated(run, wish.tol)
    return found.run, found.path, max(found.error, schedule.hidden)


def _schedule(problem: Problem, controlled: Problem, end: float, wish: Wish) -> Schedule:
    """Return the schedule of a run: that of the field without the controller, whose actuators may have edges, too."""
    stops = np.union1d(wish.bounds.stops, edges(controlled.field, problem.t0, end))
    bounds = dataclasses.replace(wish.bounds, stops=tuple(stops.tolist()))
    found, held = scheduled(problem, end, wish.tol, bounds), copy.copy(controlled)
    held.field = between(controlled.field)
    return dataclasses.replace(found, problem=held)


def _state(row: list[float]) -> tuple[list[float], list[float], list[float]]:
    return row[:4], row[4:7], row[7:]


def _check(problem: Problem, wish: Wish, end: float) -> None:
    """Refuse what does not go with a controller and adaptive steps."""
    if end < problem.t0:
        raise InputError("a controller acts forward in time; give t_end after t0", "t_end")
    if wish.method is not None and wish.method is not verner87:
        raise InputError(f"with control and a tolerance the method is {verner87.name}; leave out `method`")
    check_body(problem.body.linear_axis is not None)
    check_compiled(problem, "control", "write the torque as a formula")
