"""Event search: locate sign changes along a run to round-off, by bisection on the dense output."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..numbers import arrays  # noqa: F401 - makes arrays a number type
from ..numbers.precision import GUARD_DIGITS, guarded
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..results.trajectory import Trajectory
from .adaptive import Path
from .dense import dense_between, path_of, states_of
from .integrator import number_type

GLANCES = 8
"""Evaluations of an event function in each step: two zeros closer than the spacing are missed."""

HALVINGS = 1100
"""Bisections from any interval to two neighbouring doubles; about 55 suffice unless the zero is at t = 0."""

BITS_PER_DIGIT = math.log2(10)

Look = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """The times at which one event occurs."""

    event: Event
    times: np.ndarray


def occurrences(
    events: Sequence[Event], problem: Problem, look: Look, times: np.ndarray, digits: int | None = None
) -> list[Occurrences]:
    """Return all times at which the events occur in a run whose steps end at `times`; `look` gives rows at any time."""
    if not events:
        return []
    fractions = np.arange(GLANCES) / GLANCES
    dense = np.append((times[:-1, None] + np.diff(times)[:, None] * fractions).ravel(), times[-1])
    rows = look(dense)
    return [Occurrences(event, _zeros(event, problem, look, dense, rows, digits)) for event in events]


Values = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _values(event: Event, problem: Problem, digits: int | None) -> Values:
    """Return the event function, vectorised over times and rows."""
    number = number_type(digits)
    g = event.kernel(number, problem)
    _, system = problem.kernel_data(number)

    def one_by_one(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        states = zip(times, rows.tolist(), strict=True)
        return np.array([g(t, tuple(row[:4]), tuple(row[4:]), system) for t, row in states], dtype=object)

    def values(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        q, m = tuple(rows[:, i] for i in range(4)), tuple(rows[:, i] for i in range(4, 7))
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(g(times, q, m, system), dtype=float), times.shape)

    return values if digits is None else one_by_one


def _zeros(
    event: Event, problem: Problem, look: Look, times: np.ndarray, rows: np.ndarray, digits: int | None
) -> np.ndarray:
    values = _values(event, problem, digits)
    g = values(times, rows)
    with np.errstate(invalid="ignore"):
        finite = g - g == 0  # for numbers of any type
    if not finite.all():
        bad = times[~finite][0]
        raise InputError(f"the event {event.name} must be finite during the whole run; it is not at t = {float(bad):g}")
    here = event.happened(g[:-1], g[1:])
    if digits is not None:
        return _refined(lambda t: values(t, look(t))[0], times, g, np.flatnonzero(here), digits)
    low, high, sign = times[:-1][here], times[1:][here], np.sign(g[:-1][here])
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        if low.size == 0 or ((middle == low) | (middle == high)).all():
            break
        before = np.sign(values(middle, look(middle))) == sign
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return np.asarray(high)


def _refined(g: Callable[[np.ndarray], Any], times: np.ndarray, values: np.ndarray, at: Any, digits: int) -> np.ndarray:
    """Return the zeros of g in some intervals of `times`, in all digits."""
    found = np.empty(len(at), dtype=object)
    for k, i in enumerate(at):
        ends = (times[i], values[i]), (times[i + 1], values[i + 1])
        found[k] = illinois(lambda t: g(np.array([t], dtype=object)), *ends, digits)
    return found


def illinois(g: Callable[[Any], Any], a: Any, b: Any, digits: int) -> Any:
    """Return the zero of g between a and b, pairs (t, g(t)) of opposite signs, or b[0] if g is zero there.

    By the Illinois method (Dowell and Jarratt 1971): the secant through both ends; the value at an end that stays is
    halved. Ten evaluations give 40 digits, where bisection needs 130.
    """
    (t, f), (end, value) = a, b
    smallest = (abs(end) + abs(end - t)) / 10 ** (digits + GUARD_DIGITS - 1)
    for _ in range(math.ceil((digits + GUARD_DIGITS) * BITS_PER_DIGIT)):
        if value == 0:
            return end
        new = end - value * (end - t) / (value - f)
        found = g(new)
        t, f = (end, value) if (found < 0) != (value < 0) else (t, f / 2)
        done = abs(new - end) <= smallest
        end, value = new, found
        if done:
            break
    return end


def first_end(found: Sequence[Occurrences], start: Any) -> Any:
    """Return the time of the first terminal event after `start`, or backwards in time before it."""
    ends = [one.times[0] for one in found if one.event.terminal and one.times.size]
    return min(ends, default=None, key=lambda t: abs(t - start))


def cut(path: Path, look: Look, end: Any) -> Path:
    """Truncate the path at a time, which becomes its last."""
    kept = abs(path.times - path.times[0]) < abs(end - path.times[0])
    last = look(np.array([end], dtype=path.times.dtype))
    return dataclasses.replace(
        path, times=np.append(path.times[kept], end), rows=np.concatenate([path.rows[kept], last]), finished=True
    )


def until(found: Sequence[Occurrences], start: Any, end: Any) -> list[Any]:
    """Return the times of every event up to the end of the run."""
    return [one.times if end is None else one.times[abs(one.times - start) <= abs(end - start)] for one in found]


def found_on(
    path: Path, run: Any, problem: Problem, events: Sequence[Event], digits: int | None = None
) -> tuple[Path, list[np.ndarray]]:
    """Return the path, truncated at the first terminal event, and the times of all events on it."""

    def look(times: np.ndarray) -> np.ndarray:
        rows = run.state_at(times, path.times, path.rows)
        if rows is None:
            raise StepError(
                "the dense output between two steps, needed for the event search, could not be computed", None
            )
        return np.asarray(rows)

    with guarded(digits):
        found = occurrences(events, problem, look, path.times, digits)
        start = path.times[0]
        end = first_end(found, start)
        return (path if end is None else cut(path, look, end)), until(found, start, end)


def with_events(problem: Problem, steps: Any, sol: Trajectory, events: Sequence[Event]) -> Trajectory:
    """Add events to a run with equal steps, all of them kept; truncate it at the first terminal event.

    `steps` gives the states between them, as `dense.Steps`.
    """
    whole, digits = path_of(problem, sol), sol.info.digits
    path, happened = found_on(whole, steps, problem, events, digits)
    if path is not whole:
        info = dataclasses.replace(sol.info, steps=len(path.times) - 1)
        sol = Trajectory(states_of(problem, path, digits), info, problem=problem)
        sol.dense = dense_between(problem, steps, sol)
    sol.events = [sol.at(times) for times in happened]
    return sol
