"""States of an ensemble at given times: the result has those, and no others.

Adaptive steps end at each of them. Equal steps must pass there: the states of all of them are among those of every g-th
step, where g is the greatest common divisor of their step numbers. The exact motion of free bodies is evaluated.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...results.derivatives import SomeDerivatives
from ...results.ensemble import Ensemble
from ..kept import Kept
from ..step_count import Interval, end_time, step_numbers
from . import sampled_statistics

if TYPE_CHECKING:
    from .inputs import Inputs
    from .task import Task


def ending(inputs: Inputs, times: Any, t_end: Any) -> Inputs:
    """Return the inputs, whose end is by default the last of the given times."""
    return inputs if times is None else dataclasses.replace(inputs, t_end=Kept.of(1, times, None).end(t_end))


def checked(times: Any, t0: float, end: float) -> np.ndarray | None:
    """Return the times after the start whose states are kept, the end among them; None if none are given."""
    if times is None:
        return None
    kept = Kept.of(1, times, None)
    end = end_time(Interval(t0), end, backward=True)
    kept.check(t0, end)
    whole = kept.with_ends(t0, end)
    assert whole is not None
    return whole[1:]


def asked(times: Any) -> np.ndarray | None:
    """Return the times that a user asks for; None if none are given."""
    return None if times is None else Kept.of(1, times, None).times


def selected(task: Task, many: Ensemble) -> Ensemble:
    """Return the result with the states that were asked for, of those that the run kept: from its start to its end.

    The last state of a body that failed before is its last good one.
    """
    if task.asked is None:
        return many
    whole = np.append(task.t0, task.times()[-1] if task.stops is None else task.stops)
    sign = 1.0 if whole[-1] >= task.t0 else -1.0  # an end is reached up to round-off
    rows = np.minimum(np.searchsorted(sign * whole, sign * task.asked), len(whole) - 1)
    lost = (many.failed >= 0) & ~np.isfinite(many.quaternion[rows[-1]]).all(-1)

    def some(values: np.ndarray) -> np.ndarray:
        found = values[rows]
        found[-1, lost] = values[-1, lost]
        return found

    return dataclasses.replace(
        many, t=task.asked, quaternion=some(many.quaternion), momentum=some(many.momentum), t0=task.t0, dense=None,
        states={name: some(values) for name, values in many.states.items()},
        tangent=None if many.tangent is None else SomeDerivatives(many.tangent, rows, task.asked),
    )  # fmt: skip


def among_steps(task: Task, times: Any) -> Task:
    """Return a task with equal steps that keeps the states at given times; refuse times between steps."""
    if task.per_body_times:
        raise InputError(
            "times need steps of one length, and every body has its own; give one dt, or tol instead of a method and "
            "dt: adaptive steps end at all times"
        )
    dt, last = float(task.batch.dt[0]), Kept.of(1, times, None).end(None)
    there = round((last - task.t0) / dt) == task.count  # up to round-off
    stops = checked(times, task.t0, last if there else task.t0 + task.count * dt)
    assert stops is not None
    numbers = step_numbers(task.t0, dt, stops)
    task = dataclasses.replace(task, asked=asked(times))
    if len(stops) == 1:
        return dataclasses.replace(task, every=task.count)
    return dataclasses.replace(task, stops=stops, every=int(np.gcd.reduce(numbers)))


def at_steps(task: Task) -> Task:
    """Return a task with equal steps whose statistics are taken from states that are kept: every `every`-th."""
    numbers = np.append(np.arange(task.every, task.count, task.every), task.count)
    stops = task.t0 + numbers * float(task.batch.dt[0])
    return dataclasses.replace(task, stops=stops, every=int(np.gcd.reduce(numbers)))


def inner(task: Task) -> Task:
    """Return the task that the loops run: with states at more steps than asked for, and no statistics."""
    return dataclasses.replace(task, wanted=None, stops=task.stops if task.lands else None)


def rows_of(task: Task) -> np.ndarray:
    """Return the rows of the states of `inner` that are kept, if steps are equal."""
    assert task.stops is not None
    return np.append(0, step_numbers(task.t0, float(task.batch.dt[0]), task.stops)) // task.every


def applied(task: Task, many: Ensemble) -> Ensemble:
    """Return the result of a task from that of its `inner`."""
    if task.stops is None:
        return many
    if not task.lands:
        rows = rows_of(task)
        q, m = many.quaternion[rows], many.momentum[rows]
        states = {name: values[rows] for name, values in many.states.items()}
        t = np.append(task.t0, task.stops)
        many = dataclasses.replace(many, t=t, quaternion=q, momentum=m, states=states, dense=None)
    return many if task.wanted is None else sampled_statistics.added(task, many)


def exact(task: Task, found: tuple[np.ndarray, ...], integrate: Any) -> None:
    """Evaluate the exact motion of free bodies at every time, each in one step from the start."""
    assert task.stops is not None
    q, m, _, failed = found
    failed[:] = -1
    for k, stop in enumerate(task.stops, 1):
        batch = dataclasses.replace(task.batch, dt=np.array([stop - task.t0]))
        one = dataclasses.replace(task, batch=batch, stops=None)
        part = one.found()
        integrate(one, part)
        q[0], m[0], q[k], m[k] = part[0][0], part[1][0], part[0][1], part[1][1]
        failed[part[-1] >= 0] = 1
    lost = failed >= 0  # the last state is then the last good one, that of the start
    q[1:-1, lost], m[1:-1, lost], q[-1, lost], m[-1, lost] = np.nan, np.nan, q[0, lost], m[0, lost]
