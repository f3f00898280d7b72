"""One body of an ensemble as a trajectory, and the states of all bodies at any times."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..physics.problem import Problem
from ..physics.validate import check_between, real_array, several
from .trajectory import INERTIA, STATES, Info, Trajectory

if TYPE_CHECKING:
    from .ensemble import Ensemble

NOT_YET = -2
"""Value of `failed` for a body that has not been run yet, in the file of a stopped run."""


def trajectory(many: Ensemble, i: Any) -> Trajectory:
    """Motion of body i; negative numbers count from the end."""
    try:
        wanted = operator.index(i)
    except TypeError:
        raise InputError(f"the number of a body must be whole, such as many[0]; got {i!r}") from None
    number = wanted + len(many) if wanted < 0 else wanted
    if not 0 <= number < len(many):
        raise IndexError(f"there are {len(many)} bodies, numbered from 0; got {wanted}")
    t, chosen = states_of(many, number)
    data = {
        "t": t, "quaternion": many.quaternion[chosen, number], "momentum": many.momentum[chosen, number],
        "energy": many.energy_of(number, chosen), STATES: {name: x[chosen, number] for name, x in many.states.items()},
    }  # fmt: skip
    if many.inertia is not None:
        data[INERTIA] = many.inertia[chosen, number]
    sol = Trajectory(data, info(many, number, t), problem=functools.partial(problem_of, many, number))
    if many.dense is not None:
        sol.dense = many.dense(number, sol)
    if many.events:
        sol.events = [of_event[number] for of_event in many.events]
    return sol


def problem_of(many: Ensemble, i: int) -> Problem | None:
    """The problem of body i from its first state to its last; None if it is not known."""
    t, chosen = states_of(many, i)
    if many.bodies is None or not many.knows_field or many.inertia is not None or not len(t):
        return None
    start = {"attitude": many.quaternion[chosen[0], i], "momentum": many.momentum[chosen[0], i], "t0": float(t[0])}
    name, body, field = many.bodies.name, many.bodies.body(i), many.bodies.field_of(i)
    return Problem(body, field, name=name, t_end=float(t[-1]) if t[-1] != t[0] else None, **start)


def some(many: Ensemble, bodies: Iterable[int] | None, first: int) -> list[tuple[int, Trajectory]]:
    """Numbers and motions of some bodies, by default of the first ones."""
    return [(i, trajectory(many, i)) for i in numbers(many, bodies, first)]


def numbers(many: Ensemble, bodies: Any, first: int) -> list[int]:
    """Return the numbers of some bodies, by default of the first ones; negative ones count from the end."""
    if bodies is None:
        return list(range(min(first, len(many))))
    expected = "bodies must be a list of numbers of bodies, such as [0, 1, 2]"
    chosen = several(bodies, expected, "bodies")
    for i in chosen:
        if not isinstance(i, int | np.integer) or not -len(many) <= i < len(many):
            raise InputError(f"{expected}, below {len(many)}, their number; got {i!r}", "bodies")
    return chosen


def states_of(many: Ensemble, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of body i and the indices of its states, without those after a failure.

    After a failure, the last entry is the last good state. It belongs to the time before the failed step, and is left
    out if that time is unknown.
    """
    t, failed = many.t if many.t.ndim == 1 else many.t[:, i], int(many.failed[i])
    if failed == NOT_YET:
        raise InputError(f"body {i} has not been run yet; the same call with resume=True (--resume) runs it")
    if failed < 0:
        return t, np.arange(len(t))
    fine = np.isfinite(many.quaternion[:, i]).all(axis=1) & np.isfinite(many.momentum[:, i]).all(axis=1)
    chosen, t0 = np.flatnonzero(fine[:-1]), _start(many, t)
    if many.dt is not None and fine[-1] and (chosen.size or many.t0 is not None):
        last = t0 + (failed - 1) * _dt(many, i)
        last = min(last, t[-1], key=lambda x: abs(x - t0))  # it may fail after the last of the times
        if not chosen.size or abs(last - t0) > abs(t[chosen[-1]] - t0):
            return np.append(t[chosen], last), np.append(chosen, len(t) - 1)
    return t[chosen], chosen


def _start(many: Ensemble, t: np.ndarray) -> float:
    """Start of the run of a body whose states are kept at times t."""
    return float(t[0] if many.t0 is None else many.t0)


def _dt(many: Ensemble, i: int) -> float:
    """Step size of body i; 0 if it varies."""
    return 0.0 if many.dt is None else float(many.dt[i if len(many.dt) > 1 else 0])


def info(many: Ensemble, i: int, t: np.ndarray) -> Info:
    """Metadata of the trajectory of body i."""
    dt = _dt(many, i)
    bodies, failed = many.known_bodies, int(many.failed[i])
    body, field = bodies.body(i), bodies.field_of(i)
    own = None if many.steps is None else int(many.steps[i])
    return Info(
        method=many.method, dt=dt, inertia=tuple(map(tuple, body.inertia.tolist())), problem=bodies.name,
        field=repr(field) if field else "", status="finished" if failed < 0 else "failed", every=many.every,
        steps=own or (round((t[-1] - _start(many, t)) / dt) if dt and len(t) else 0), tol=many.tol, accepted=own,
        shapes=body.looks,
        error_estimate=None if many.error_estimate is None else float(many.error_estimate[i]),
        states=tuple((name, many.states[name].shape[2:]) for name in many.kept if name in many.states),
    )  # fmt: skip


def _common_times(t: np.ndarray) -> tuple[float, float]:
    """Return the earliest and the latest time that all bodies have, in either direction of time."""
    first, last = np.minimum(t[0], t[-1]), np.maximum(t[0], t[-1])
    return float(np.max(first)), float(np.min(last))


def at(many: Ensemble, t: Any) -> Ensemble:
    """States of all bodies at any times, each from the dense output of its body."""
    times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
    check_between(*_common_times(many.t), times, t)
    q = np.full((len(times), len(many), 4), np.nan)
    m = np.full((len(times), len(many), 3), np.nan)
    states = {name: np.full((len(times), *x.shape[1:]), np.nan) for name, x in many.states.items()}
    for i in range(len(many)):
        one = trajectory(many, i)
        here = abs(times - one.t[0]) <= abs(one.t[-1] - one.t[0])
        if here.any():
            found = one.at(times[here])
            q[here, i], m[here, i] = found.quaternion, found.momentum
            for name, values in states.items():
                values[here, i] = found.states[name]
    return dataclasses.replace(
        many, t=times, quaternion=q, momentum=m, statistics={}, events=[], dense=None, dt=None, states=states,
        tangent=None,  # those of the run belong to its own times
    )  # fmt: skip
