"""Runs of a body together with the states of its field, as one system (q, Pi, z).

The step is that of Verner's pair 8(7) on all numbers (`methods/adaptive/components`), fixed or to a tolerance.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ResultWarning
from ..methods import methods
from ..methods.adaptive.verner87 import verner87
from ..physics.fields.sides import has_jumps
from ..physics.fields.switches import between, edges
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..physics.units import rescaled, units_of
from ..results import recorder
from ..results.progress import Progress
from ..results.trajectory import Trajectory, info_of
from ..symbolic.expression import symbols_in
from .cut_steps import cut_at_edges
from .dense import Steps, dense_of
from .event_search import with_events
from .failures import explain_in, warn_of_lost_motion
from .fixed_step import RunState, solved
from .integrator import check_fit
from .located_steps import conditions_crossed
from .schedule import Bounds, Schedule, legs_of_states
from .step_count import number_of_steps
from .system import System


def check_arguments(problem: Problem, method: Any, **others: Any) -> None:
    """Refuse methods and arguments of `solve` that do not support fields with states."""
    check_fit(verner87 if method is None else methods[method], problem)
    refuse(**others)


def refuse(**given: Any) -> None:
    """Refuse arguments that know only attitude and momentum."""
    for name, value in given.items():
        if value is not None and value is not False and not (isinstance(value, tuple | list) and not value):
            raise InputError(f"{name} is not available for a field with states of its own; leave out `{name}`")


def schedule(problem: Problem, end: float, bounds: Bounds, tol: float) -> Schedule:
    """Return the schedule of a run: steps end at the user's stops and where conditions on time alone change.

    Between two of these times the conditions are those of the time in the middle, so that a step that ends or begins
    at a jump sees one side of it only. Short pulses in time are sampled.
    """
    stops = [x for x in bounds.stops if x < end]
    borders = np.unique(np.concatenate([[problem.t0, end], stops, edges(problem.field, problem.t0, end)]))
    (legs, hidden), held = legs_of_states(problem, borders, tol, bounds.max_step), between(problem.field)
    if held is not problem.field:
        problem = copy.copy(problem)
        problem.field = held
    return Schedule(problem, legs, hidden=hidden)


def reason(problem: Problem) -> str:
    """Return the reason for the choice of method."""
    assert problem.field is not None
    torque, rates = problem.field.coupled
    timed = "; name features in time shorter than a step in stops or max_step" * ("t" in symbols_in([*torque, *rates]))
    return f"a field with states of its own: a Runge-Kutta pair 8(7) on all of them{timed}"


# --- fixed steps ------------------------------------------------------------------------------------


def solve_fixed(
    problem: Problem, dt: float, t_end: Any, steps: Any, every: int, progress: Any, events: Sequence[Event]
) -> Trajectory:  # fmt: skip
    """Integrate a problem with equal steps, negative ones backwards in time."""
    count = number_of_steps(problem, dt, t_end, steps)
    info = info_of(problem, method=verner87.name, dt=dt, every=every)
    units = units_of(problem, dt)
    inner = rescaled(problem, units)
    inner = cut_at_edges(inner, verner87, inner.t0 + count * abs(dt))
    state = RunState(System(inner, verner87).engine, inner, abs(dt), count, every, method=verner87, units=units)
    kept = recorder.recorder(problem, info, None, False)
    bar = Progress(progress, verner87.name, count)
    whole = solved(state, kept, bar, lambda run: explain_in(run, lambda t: None))
    warn_of_lost_motion(state)
    if every == 1:
        whole.dense = dense_of(problem, verner87, whole)
    _warn_of_jumps(problem)
    return with_events(problem, Steps(problem, verner87, dt), whole, events) if events else whole


def _warn_of_jumps(problem: Problem) -> None:
    """Say that equal steps cross jumps of a field in the state, if it may have some."""
    assert problem.field is not None
    if has_jumps(problem.field):
        told = conditions_crossed(problem.field, verner87.name, "give tol or step_tol instead of dt")
        warnings.warn(told, ResultWarning, stacklevel=4)
