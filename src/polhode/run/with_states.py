"""Runs of a body together with the states of its field, as one system (q, Pi, z).

The step is that of Verner's pair 8(7) on all numbers (`methods/adaptive/components`), fixed or to a tolerance.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ResultWarning
from ..kernels.loops import COLUMNS, StateSpace, interpolating, one_step, stepping, with_states
from ..methods import methods
from ..methods.adaptive import components
from ..methods.adaptive.controller import chosen, controlled
from ..methods.adaptive.verner87 import PAIR, SAFETY, verner87
from ..numbers import floats
from ..physics.fields import Field
from ..physics.fields.kernels import coupled_kernel, formula_kernel
from ..physics.fields.parameters import leaves_of
from ..physics.fields.sides import has_jumps
from ..physics.fields.states import coupled_text
from ..physics.fields.switches import between, edges
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, ScaledRun, rescaled, units_of
from ..results import recorder
from ..results.progress import Progress
from ..results.trajectory import Trajectory, info_of
from ..symbolic.expression import symbols_in
from .adaptive import interpolated
from .cut_steps import cut_at_edges
from .dense import dense_between
from .event_search import with_events
from .failures import explain_in, warn_of_lost_motion
from .fixed_step import RunState, solved
from .integrator import Engine, check_fit, step_kernel
from .located_steps import conditions_crossed
from .schedule import Bounds, Schedule, legs_of_states
from .step_control import PAIR_ROUNDINGS, PAIR_STEPS, AdaptiveStep
from .step_count import number_of_steps
from .system import compiled


def has_states(problem: Problem) -> bool:
    """Return whether the field of a problem brings states of its own."""
    return problem.field is not None and bool(problem.field.states)


def check_arguments(problem: Problem, method: Any, **others: Any) -> None:
    """Refuse methods and arguments of `solve` that do not support fields with states."""
    check_fit(verner87 if method is None else methods[method], problem)
    refuse(**others)


def refuse(**given: Any) -> None:
    """Refuse arguments that know only attitude and momentum."""
    for name, value in given.items():
        if value is not None and value is not False and not (isinstance(value, tuple | list) and not value):
            raise InputError(f"{name} is not available for a field with states of its own; leave out `{name}`")


# --- parts of a run ---------------------------------------------------------------------------------


def groups(field: Field | None) -> tuple[int, ...]:
    """Return the number of numbers of every state."""
    return () if field is None else tuple(len(leaves_of(value)) for value in field.states.values())


def space(problem: Problem) -> StateSpace:
    """Return the state space of a problem."""
    assert problem.field is not None
    return with_states(sum(groups(problem.field)))


def structure(problem: Problem) -> tuple[Hashable, ...]:
    """Return what the kernels are built from."""
    field = problem.field
    assert field is not None
    kind = type(field).__name__
    return kind, problem.body.has_principal_rotation, groups(field), len(field.parameters), repr(coupled_text(field))


def torque(problem: Problem) -> Callable[..., Any]:
    """Return the kernel of torque and rates of the states."""
    field = problem.field
    assert field is not None
    value = formula_kernel(coupled_text(field), floats.number)
    return coupled_kernel(value, sum(groups(field)), len(field.parameters), problem.body.has_principal_rotation)


def fixed_step(problem: Problem) -> Callable[..., Any]:
    """Return the kernel of a step."""
    assert problem.field is not None
    return step_kernel(problem, PAIR.step(floats.number, components.with_states(groups(problem.field))))


def attempt(problem: Problem) -> Callable[..., Any]:
    """Return the kernel of a step with estimates of its errors."""
    assert problem.field is not None
    return PAIR.estimated_step(floats.number, components.with_states(groups(problem.field)))


def adaptive_step(problem: Problem) -> AdaptiveStep:
    """Return steps of the pair, with errors estimated for attitude, momentum and states."""

    def make() -> Any:
        judged = controlled(floats.number, int(verner87.order), SAFETY)
        return chosen(attempt(problem), judged, torque(problem))

    order = int(verner87.order)
    return AdaptiveStep(
        verner87.name, ("with states", *structure(problem)), make, lambda tolerance: order, PAIR_STEPS,
        space=space(problem), roundings=PAIR_ROUNDINGS,
    )  # fmt: skip


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
    state = RunState(_engine(inner), inner, abs(dt), count, every, method=verner87, units=units)
    kept = recorder.recorder(problem, info, None, False)
    bar = Progress(progress, verner87.name, count)
    whole = solved(state, kept, bar, lambda run: explain_in(run, lambda t: None))
    warn_of_lost_motion(state)
    if every == 1:
        whole.dense = dense_of(problem, whole)
    _warn_of_jumps(problem)
    return with_events(problem, Steps(problem), whole, events) if events else whole


def _warn_of_jumps(problem: Problem) -> None:
    """Say that equal steps cross jumps of a field in the state, if it may have some."""
    assert problem.field is not None
    if has_jumps(problem.field):
        told = conditions_crossed(problem.field, verner87.name, "give tol or step_tol instead of dt")
        warnings.warn(told, ResultWarning, stacklevel=4)


def _engine(problem: Problem) -> Engine:
    from ..compile.lazily import program

    def build_loop() -> Any:
        return stepping(fixed_step(problem), torque(problem), space(problem))

    loop = program(build_loop, "loop with states", *structure(problem))
    y, system = problem.kernel_data(floats.number)
    columns = COLUMNS + len(y[2])
    return Engine(loop.run, y, system, float, lambda n: np.empty((n, columns)), loop.is_warm, None)


@dataclasses.dataclass
class Steps:
    """Dense output between equal steps."""

    problem: Problem

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        units = units_of(self.problem, path_times[-1] - path_times[0])
        if units is not NO_UNITS:
            inner = Steps(rescaled(self.problem, units))
            return ScaledRun(inner, units).state_at(times, path_times, rows)

        problem = cut_at_edges(self.problem, verner87, float(path_times[-1]))

        def make() -> Any:
            return interpolating(one_step(fixed_step(problem), torque(problem)), space(problem))

        evaluate = compiled(make, "interpolate with states", *structure(problem))
        return interpolated(evaluate, times, path_times, rows, problem.kernel_data(floats.number)[1], 0)


def dense_of(problem: Problem, sol: Trajectory) -> Callable[[Any], Any]:
    """Return the dense output of a run with equal steps, all of them kept."""
    return dense_between(problem, Steps(problem), sol)
