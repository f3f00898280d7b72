"""Event search: locate sign changes along a run to round-off, by bisection on the dense output."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..numbers import arrays, floats  # noqa: F401 - makes arrays a number type
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..results.trajectory import Trajectory
from .adaptive import Path
from .dense import Lazy, dense_between, path_of

GLANCES = 8
"""Evaluations of an event function in each step: two zeros closer than the spacing are missed."""

HALVINGS = 1100
"""Bisections from any interval to two neighbouring doubles; about 55 suffice unless the zero is at t = 0."""

Look = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """The times at which one event occurs."""

    event: Event
    times: np.ndarray


def occurrences(events: Sequence[Event], problem: Problem, look: Look, times: np.ndarray) -> list[Occurrences]:
    """Return all times at which the events occur in a run whose steps end at `times`; `look` gives rows at any time."""
    if not events:
        return []
    fractions = np.arange(GLANCES) / GLANCES
    dense = np.append((times[:-1, None] + np.diff(times)[:, None] * fractions).ravel(), times[-1])
    rows = look(dense)
    return [Occurrences(event, _zeros(event, problem, look, dense, rows)) for event in events]


def _values(event: Event, problem: Problem) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the event function, vectorised over times and rows."""
    g = event.kernel(floats.number, problem)
    _, system = problem.kernel_data(floats.number)

    def values(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        q, m = tuple(rows[:, i] for i in range(4)), tuple(rows[:, i] for i in range(4, 7))
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(g(times, q, m, system), dtype=float), times.shape)

    return values


def _zeros(event: Event, problem: Problem, look: Look, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    values = _values(event, problem)
    g = values(times, rows)
    if not np.isfinite(g).all():
        bad = times[~np.isfinite(g)][0]
        raise InputError(f"the event {event.name} must be finite during the whole run; it is not at t = {bad:g}")
    here = event.happened(g[:-1], g[1:])
    low, high, sign = times[:-1][here], times[1:][here], np.sign(g[:-1][here])
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        if low.size == 0 or ((middle == low) | (middle == high)).all():
            break
        before = np.sign(values(middle, look(middle))) == sign
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return np.asarray(high)


def first_end(found: Sequence[Occurrences], start: float) -> float | None:
    """Return the time of the first terminal event after `start`, or backwards in time before it."""
    ends = [float(one.times[0]) for one in found if one.event.terminal and one.times.size]
    return min(ends, default=None, key=lambda t: abs(t - start))


def cut(path: Path, look: Look, end: float) -> Path:
    """Truncate the path at a time, which becomes its last."""
    kept = abs(path.times - path.times[0]) < abs(end - path.times[0])
    last = look(np.array([end]))
    return dataclasses.replace(
        path, times=np.append(path.times[kept], end), rows=np.concatenate([path.rows[kept], last]), finished=True
    )


def until(found: Sequence[Occurrences], start: float, end: float | None) -> list[Any]:
    """Return the times of every event up to the end of the run."""
    return [one.times if end is None else one.times[abs(one.times - start) <= abs(end - start)] for one in found]


def found_on(path: Path, run: Any, problem: Problem, events: Sequence[Event]) -> tuple[Path, list[np.ndarray]]:
    """Return the path, truncated at the first terminal event, and the times of all events on it."""

    def look(times: np.ndarray) -> np.ndarray:
        rows = run.state_at(times, path.times, path.rows)
        if rows is None:
            raise StepError(
                "the dense output between two steps, needed for the event search, could not be computed", None
            )
        return np.asarray(rows)

    found = occurrences(events, problem, look, path.times)
    start = float(path.times[0])
    end = first_end(found, start)
    return (path if end is None else cut(path, look, end)), until(found, start, end)


def with_events(problem: Problem, steps: Any, sol: Trajectory, events: Sequence[Event]) -> Trajectory:
    """Add events to a run with equal steps, all of them kept; truncate it at the first terminal event.

    `steps` gives the states between them, as `dense.Steps`.
    """
    whole = path_of(problem, sol)
    path, happened = found_on(whole, steps, problem, events)
    if path is not whole:
        sol = Trajectory(Lazy(problem, path), dataclasses.replace(sol.info, steps=len(path.times) - 1))
        sol.dense = dense_between(problem, steps, sol)
    sol.events = [sol.at(times) for times in happened]
    return sol
