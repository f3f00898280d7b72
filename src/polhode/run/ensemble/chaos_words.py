"""Chaos indicators among the statistics of an ensemble: MEGNO, its mean, FLI and the largest Lyapunov exponent.

A variation of the motion is integrated beside each body. With equal steps it is the tangent of the steps
(`compile/batch/lane_tangents.growing_step`); with a tolerance it is a part of the system, as states of the field
(`physics/fields/variation`).
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import matrix, unrotate
from ...numbers.arrays import components
from ...physics.bodies import rows
from ...physics.fields import Field, registry
from ...physics.fields.variation import PREFIX, STATE, WITH_CONSTANTS, state_at_start, variation
from ...physics.problem import Problem
from ...results.ensemble import Ensemble
from ..parts import has_states
from ..tangent import check_smooth
from . import sampled_statistics

if TYPE_CHECKING:
    from .batch import BodyBatch
    from .task import Task


def check(problem: Problem, what: str, to_tolerance: bool = True) -> None:
    """Refuse a problem whose variation is not known; runs to a tolerance locate jumps in the state."""
    check_smooth(problem, what, to_tolerance, "give step_tol and times instead of a method and dt")
    if problem.body.linear_axis is not None:
        raise InputError(
            f"{what} is not available for a linear body, whose inertia tensor has no inverse; give it a small moment"
        )
    if has_states(problem):
        raise InputError(
            f"{what} is not available for a field with its own states; use ph.lyapunov of a field without them"
        )


def frequency(problem: Problem, end: float) -> float:
    """Return the angular velocity at the start, or one that the torque causes within a radian."""
    found = float(np.linalg.norm(problem.omega))
    if problem.field is not None:
        R = matrix(problem.quaternion)
        torque = problem.field.torque_value(problem.t0, R, tuple(problem.omega.tolist()))
        found = max(found, math.sqrt(math.hypot(*torque) / float(problem.body.moments.max())))
    return found or 1 / abs(end - problem.t0)


def varied_field(problem: Problem, nu: float, end: float) -> Field:
    """Return the field of a problem with a variation of the motion; `nu` is its frequency."""
    base = problem.field if problem.field is not None else registry.make("constant_torque", torque=(0.0, 0.0, 0.0))
    body = problem.body
    inertia, inverse = body.moments, 1 / body.moments
    if body.has_principal_rotation:
        inertia = np.asarray(body.inertia, float)
        inverse = np.linalg.inv(inertia)
    own = {
        "inertia": nested_floats(inertia), "inverse": nested_floats(inverse), "frequency": nu, "period": 1 / nu,
        "per_span": 1 / (end - problem.t0), STATE: state_at_start(),
    }  # fmt: skip
    return variation(base, own)


def nested_floats(values: np.ndarray) -> tuple[Any, ...]:
    """Return an array as nested tuples."""
    return tuple(nested_floats(x) if np.ndim(x) else float(x) for x in values)


# --- equal steps ------------------------------------------------------------------------------------


def with_variation(task: Task, like: Problem) -> Task:
    """Return a task with equal steps and a variation beside each body; `like` has its frequency."""
    check(task.model, "a chaos indicator", to_tolerance=False)
    given = {"times": task.stops, "numbers of steps for each body": task.counts, "steps for each body": None}
    if task.batch.per_body_dt:
        given["steps for each body"] = task.batch.dt
    wrong = [name for name, value in given.items() if value is not None]
    if wrong:
        raise InputError(f"chaos indicators need equal steps for all bodies; remove the {wrong[0]}")
    if task.method.memory or task.method.has_own_time or task.method.before is not None or task.method.noise:
        raise InputError(
            f"chaos indicators need a method whose state is attitude and momentum only; {task.method.name} carries "
            "more from step to step; use another method"
        )
    span = task.count * float(task.batch.dt[0])
    start = _start(task.batch, frequency(like, task.t0 + span), span)
    return dataclasses.replace(task, batch=dataclasses.replace(task.batch, tangents=start))


def _start(batch: BodyBatch, nu: float, span: float) -> np.ndarray:
    """Return the variation at the start, as tangents of attitude and momentum in principal axes."""
    first = state_at_start()
    d, e = (np.array([first[i : i + 3]]) for i in (0, 3))
    if batch.own is not None:
        d, e = (rows(unrotate(components(batch.own), components(x))) for x in (d, e))
    momentum = nu * batch.moments * e
    constants = np.array([[*first[6:], 1 / nu, 1 / abs(span)]])
    parts = (d, momentum, constants)
    number = max(map(len, parts))
    found = np.concatenate([np.broadcast_to(x, (number, x.shape[1])) for x in parts], axis=1)
    assert found.shape[1] == WITH_CONSTANTS
    return found


# --- to a tolerance ---------------------------------------------------------------------------------


def varied_problem(task: Task, like: Problem) -> Problem:
    """Return the problem with a variation that represents the bodies of a task, to be run to a tolerance."""
    batch, end = task.batch, float(task.times()[-1])
    check(task.model, "a chaos indicator")
    own = batch.own is not None and len(batch.own) > 1 and bool(np.ptp(batch.own, axis=0).any())
    if own or (len(batch.moments) > 1 and np.ptp(batch.moments, axis=0).any()):
        raise InputError(
            "chaos indicators to a tolerance need the same inertia for all bodies; run them separately, or give a "
            "method and dt"
        )
    if end <= task.t0:
        raise InputError("chaos indicators to a tolerance need t_end after t0; give a method and a negative dt")
    made = copy.copy(task.model)
    made.field = varied_field(task.model, frequency(like, end), end)
    return made


def observed(task: Task, varied: Ensemble) -> Ensemble:
    """Return the result of a task from a run with a variation that has kept the states at the times of the task."""
    assert task.wanted is not None
    field = varied.known_bodies.field
    assert field is not None
    constants = [field.values[PREFIX + name] for name in ("period", "per_span")]
    state = varied.states[PREFIX + STATE]
    z = np.concatenate([state, np.broadcast_to(constants, (*state.shape[:2], 2))], axis=2)
    many = dataclasses.replace(varied, bodies=task.batch.bodies, states={})
    return sampled_statistics.added(task, many, z)
