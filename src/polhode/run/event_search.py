"""Event search: locate sign changes along a run to round-off, by bisection on the dense output.

A function that approaches zero and leaves again between two looks is looked at more closely (`grazes`, `dip`).
"""

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
from .dense import dense_between, path_of, states_of, why_no_states
from .integrator import number_type

GLANCES = 8
"""Evaluations of an event function in each step; two zeros closer than the spacing are found by `grazes`."""

EDGE = 2.0**-20
"""Distance of a further look from each end of a run, in parts of the spacing: it shows the slope there."""

MOST_LOOKS = 6
"""Most looks for the least value of a function that approaches zero and leaves again."""

RESOLVED = 2.0**-26
"""Distance from a least value, in parts of the spacing, at which a function differs from it by round-off."""

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


def with_edges(times: np.ndarray) -> np.ndarray:
    """Return times with a further one near each end, along the last axis."""
    first, second, before, last = times[..., :1], times[..., 1:2], times[..., -2:-1], times[..., -1:]
    near_both = first + (second - first) * EDGE, last - (last - before) * EDGE
    return np.concatenate([first, near_both[0], times[..., 1:-1], near_both[1], last], axis=-1)


def grazes(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return where functions (..., times, functions) that are not negative may be so for a moment, unseen.

    That is so in the middle of three times if the least value is there, and the parabola through the three comes close
    to zero. The times are those of `with_edges`: beside an end at which a function is zero, it may be negative.
    """
    a, b, c = times[..., :-2, None], times[..., 1:-1, None], times[..., 2:, None]
    ga, gb, gc = values[..., :-2, :], values[..., 1:-1, :], values[..., 2:, :]
    with np.errstate(all="ignore"):
        turn, bend = _parabola((a, ga), (b, gb), (c, gc))
        seen = (gb <= ga) & (gb <= gc) & (ga >= 0) & (gc >= 0) & _is_near(turn, bend, gb, c - a)
        seen[..., 1:-1, :] &= gb[..., 1:-1, :] >= 0
        return seen


def _parabola(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Return the slope of the parabola through three pairs (t, g) at the second one, and its square coefficient."""
    (ta, ga), (tb, gb), (tc, gc) = a, b, c
    left, right = (gb - ga) / (tb - ta), (gc - gb) / (tc - tb)
    return (left * (tc - tb) + right * (tb - ta)) / (tc - ta), (right - left) / (tc - ta)


def _is_near(turn: Any, bend: Any, value: Any, width: Any) -> Any:
    """Whether the least value of a parabola is small, relative to its rise in the interval."""
    return (bend > 0) & (4 * bend * value - turn * turn < (bend * width) ** 2 / 2)


def dip(value: Callable[[Any], Any], a: Any, b: Any, c: Any) -> tuple[Any, Any] | None:
    """Return a time at which a function is negative, and one before at which it is not; None if there seems to be none.

    By successive parabolic interpolation from three pairs (t, g), the least g in the middle (`grazes`).
    """
    width = c[0] - a[0]
    for _ in range(MOST_LOOKS):
        turn, bend = _parabola(a, b, c)
        if not _is_near(turn, bend, b[1], c[0] - a[0]) or abs(turn) <= 2 * bend * abs(width) * RESOLVED:
            return None
        t = b[0] - turn / (2 * bend)
        seen, is_before = (t, value(t)), turn > 0 if width > 0 else turn < 0
        if seen[1] < 0:
            return (a if is_before or b[1] < 0 else b)[0], t
        a, b, c = _closer(a, b, c, seen, is_before)
    return None


def _closer(a: Any, b: Any, c: Any, seen: Any, is_before: bool) -> tuple[Any, Any, Any]:
    """Return three of four pairs (t, g), the least g in the middle."""
    if seen[1] <= b[1]:
        return (a, seen, b) if is_before else (b, seen, c)
    return (seen, b, c) if is_before else (a, b, seen)


def _with_grazes(
    values: Callable[[np.ndarray], np.ndarray], times: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values of a function with those at which it has changed its sign only for a moment."""
    if len(times) < 2:
        return times, g
    edged, close = with_edges(times), g[[0, 0, *range(1, len(g) - 1), -1, -1]]
    close[[1, -2]] = values(edged[[1, -2]])
    found = []
    for sign in (1, -1):
        for i in np.flatnonzero(grazes(edged, sign * close[:, None])):
            three = ((edged[k], sign * close[k]) for k in (i, i + 1, i + 2))
            unseen = dip(lambda t, sign=sign: sign * values(np.array([t], dtype=times.dtype))[0], *three)  # type: ignore[misc]
            found += [] if unseen is None else [unseen[1]]
    if not found:
        return times, g
    moments = np.array(found, dtype=times.dtype)
    order = np.argsort(abs(np.append(times, moments) - times[0]), kind="stable")
    return np.append(times, moments)[order], np.append(g, values(moments))[order]


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
    times, g = _with_grazes(lambda t: values(t, look(t)), times, g)
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
            raise StepError(f"in the event search, {why_no_states(run, times, path, digits)}", None)
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
