"""Poincaré sections: the states at which a motion crosses a surface, without the states between.

The surface is an event (`observers/event.py`). A run is processed piece by piece and each piece is discarded, so memory
is needed only for the crossings, however long the run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..methods import Method, methods
from ..numbers.arrays import components
from ..physics.observers.event import Event, checked, event
from ..physics.problem import Problem, finite_number
from ..physics.validate import MOST_STEPS, positive
from ..results import convert
from ..results.observables import angular_velocity
from ..results.progress import Progress
from ..results.trajectory import Trajectory, info_of
from ..run.adaptive import Path, Run
from ..run.dense import Steps
from ..run.event_search import found_on
from ..run.failures import explain
from ..run.fixed_step import RunState, solved
from ..run.schedule import scheduled
from ..run.step_control import EPS, LARGEST, SMALLEST, ranked
from ..run.step_count import end_time, length
from ..run.system import engine

TOLERANCE = 1e-12
"""Default error of a single step: after thousands of crossings the energy error is about 1e-9."""

PARTS = 1000
"""Parts of a run reported to the progress bar."""


def surface(section: Any) -> Event:
    """A section as an event; a plain function is crossed when it rises through zero."""
    if not isinstance(section, Event):
        if not callable(section):
            raise InputError(f"a section must be a function of t, R, omega or a ph.event; got {type(section).__name__}")
        section = event(section, direction=1)
    if section.terminal:
        raise InputError(
            f"a section is crossed many times; {section.name} must not be a terminal event: leave out `terminal`"
        )
    return section


def section(
    problem: Problem,
    where: Any,
    *,
    t_end: float | None = None,
    step_tol: float = TOLERANCE,
    method: str | Method | None = None,
    dt: float | None = None,
    progress: Any = None,
    tol: None = None,
) -> Trajectory:
    """The states at which a motion crosses a surface, up to t_end, as a Trajectory.

    Parameters
    ----------
    problem : Problem
    where : a ``ph.event``, or a function of t, R, omega, crossed when it rises through zero
    t_end : end of the run (default: the problem's own)
    step_tol : error allowed in a single step, of the attitude as an angle and of the momentum relative to its start
    method, dt : instead of step_tol, a method and its step
    tol : rejected: it would bound the error at the end, which is impossible in chaotic motion
    progress : as in ``ph.solve``

    Raises
    ------
    StepError : a step failed; ``.partial`` holds the crossings before
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a ph.Problem; got {type(problem).__name__}")
    if tol is not None:
        raise InputError(
            f"tol would bound the error at the end, which is impossible in chaotic motion; give "
            f"step_tol={tol!r}, the error of one step"
        )
    if (method is None) != (dt is None):
        raise InputError("give both method and dt, or neither (then step_tol controls the steps)")
    (cut,) = checked([surface(where)], problem)
    if method is None or dt is None:
        return _to_tolerance(problem, cut, end_time(problem, t_end), finite_number("step_tol", step_tol), progress)
    return _with_steps(problem, cut, methods[method], positive("dt", dt), t_end, progress)


class Crossings:
    """A recorder of the states at which an event happens; `run` provides the states between steps.

    `details` are attributes of the run for the result.
    """

    def __init__(self, problem: Problem, cut: Event, run: Any, **details: Any) -> None:
        self.problem, self.cut, self.run, self.said = problem, cut, run, details
        self.last: Path | None = None
        self.times, self.rows = [np.empty(0)], [np.empty((0, 7))]

    def add(self, times: np.ndarray, rows: np.ndarray) -> None:
        """Find the crossings in the next states of the run."""
        before = self.last
        if before is not None:
            times, rows = np.append(before.times, times), np.concatenate([before.rows, rows])
            piece = Path(times, rows, 0, True)
            found = found_on(piece, self.run, self.problem, [self.cut])[1][0]
            self.times.append(found)
            self.rows.append(self.run.state_at(found, times, rows))
        self.last = Path(times[-1:].copy(), rows[-1:].copy(), 0, True)

    def reached(self, step: int, y: Any) -> None:
        """Do nothing: the run itself is not recorded."""

    def release(self) -> None:
        """Do nothing: no resources are held."""

    @property
    def time(self) -> float:
        """The time up to which crossings are known."""
        return self.problem.t0 if self.last is None else float(self.last.times[0])

    def finish(self, **details: Any) -> Trajectory:
        """All crossings so far."""
        data = convert.primary(self.problem, np.concatenate(self.times), np.concatenate(self.rows))
        return Trajectory(data, info_of(self.problem, **self.said | details))


def _to_tolerance(problem: Problem, cut: Event, end: float, tol: float, progress: Any) -> Trajectory:
    """Adaptive steps with a tolerance for single steps: chaotic motion allows none for the end of the run."""
    if not EPS <= tol <= LARGEST:
        raise InputError(f"step_tol must lie between {EPS:.2g} and {LARGEST:g}; got {tol:g}")
    legs = scheduled(problem, end, tol)
    legs.warn_of_hidden_pulses(tol)
    run = Run(legs.problem, ranked(max(tol, SMALLEST), 1.0, legs)[0], end, tol, legs)
    name = run.controlled_step.label(run.order)
    kept, bar = Crossings(problem, cut, run, method=name, dt=0.0, step_tol=tol), Progress(progress, name, PARTS)
    made = run.start()
    kept.add(made.times, made.rows)
    try:
        for made in run.pieces():
            if len(made.times):
                kept.add(made.times, made.rows)
                bar.update(round(PARTS * (made.times[-1] - problem.t0) / (end - problem.t0)))
    finally:
        bar.close()
    if not made.finished:
        partial = kept.finish(status="failed")
        raise StepError(
            f"{name} failed at t = {kept.time:g}: no step succeeds, or far too many would be needed",
            partial,
            f"the {len(partial)} crossings before are in .partial",
        )
    return kept.finish()


def _with_steps(problem: Problem, cut: Event, method: Method, dt: float, t_end: Any, progress: Any) -> Trajectory:
    """Fixed steps of a given method."""
    count, end = length(problem, method, dt, t_end, None)
    run = engine(problem, method, None)
    state = RunState(run, problem, dt, count if end == math.inf else MOST_STEPS, 1, method=method, end=end)
    kept = Crossings(problem, cut, Steps(problem, method.base or method, None), method=method.name, dt=dt)
    return solved(state, kept, Progress(progress, method.name, count), explain, "crossing")


def coordinate(of: Any, problem: Problem, crossings: Trajectory) -> np.ndarray:
    """Values (n,) of a function of t, R, omega at the states of a trajectory."""
    (read,) = checked([of if isinstance(of, Event) else event(of)], problem)
    R = [[crossings.matrix[:, i, j] for j in range(3)] for i in range(3)]
    values = read.formula(crossings.t, R, components(crossings.omega))
    return np.broadcast_to(np.asarray(values, dtype=float), crossings.t.shape)


def on_energy_level(problem: Problem, energy: float, along: Any) -> Problem:
    """The same start with its momentum changed along a body vector to reach the given energy.

    Pi + s d has the energy E if (d . I^-1 d) s^2 + 2 (omega . d) s + Pi . omega = 2 (E - U). The larger root is
    used, at which the energy grows with s, that is omega . d >= 0. With d perpendicular to the vertical in the body
    frame, R^T e_z, a top keeps its vertical momentum.
    """
    energy = finite_number("energy", energy)
    d = np.array([finite_number("along", x) for x in along])
    if d.shape != (3,) or not d.any():
        raise InputError(f"along must be a nonzero vector of three numbers; got {along!r}")
    spin = angular_velocity(d, problem.body.inertia)
    a, b = float(spin @ d), float(spin @ problem.momentum)
    room = b * b - 2 * a * (problem.energy() - energy)
    if room < 0:
        least = problem.energy() - b * b / (2 * a)
        raise InputError(
            f"no momentum along this vector has the energy {energy:g}; the least is {least:g}, so give a larger one"
        )
    s = (math.sqrt(room) - b) / a
    momentum = np.array(problem.momentum) + s * d
    return Problem(
        problem.body, problem.field, attitude=problem.quaternion, momentum=momentum, t0=problem.t0, name=problem.name,
        t_end=problem.t_end, dt=problem.dt,
    )  # fmt: skip
