"""Number of steps of a run, from its step size and end time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..methods import Method
from ..physics.validate import MOST_STEPS, apart, check_times, finite_number, whole_number


class Timed(Protocol):
    """Anything with a start time and an optional end time: a `Problem` or an `Interval`."""

    @property
    def t0(self) -> float:
        """Start time."""

    @property
    def t_end(self) -> float | None:
        """End time."""


class Interval(NamedTuple):
    """Start and end time of a run without a `Problem`."""

    t0: float
    t_end: float | None = None


def number_of_steps(
    problem: Timed, dt: float, t_end: float | None, steps: int | None, step: str = "dt", sampled: bool = False
) -> int:
    """Return the number of steps dt to the end, which must be a whole number.

    `step` is the user's name for dt; `sampled` says that dt must also divide the period of a controller.
    """
    if steps is not None:
        if t_end is not None:
            raise InputError("give t_end or steps, not both")
        steps = whole_number("steps", steps)
        check_times(problem.t0, dt, steps, step)
        return steps
    end = end_time(problem, t_end, backward=dt < 0)
    exact = (end - problem.t0) / dt
    if exact > MOST_STEPS:
        raise InputError(
            f"t_end = {end:g} is {exact:.3g} steps of {step} = {dt:g} away, and at most {MOST_STEPS:.3g} can be "
            f"counted; choose a larger {step}"
        )
    if not is_whole(exact):
        low, span = max(1, math.floor(exact)), end - problem.t0
        count = max(1, math.ceil(exact))
        length, each, *_ = apart(span, dt, low * dt, (low + 1) * dt, span / count)
        raise InputError(
            f"t_end - t0 = {length} is not a whole number of steps {step} = {each} ({apart(exact, low, low + 1)[0]}); "
            f"the nearest t_end are {_end_time(problem.t0, dt, low)} and {_end_time(problem.t0, dt, low + 1)}; "
            + ("dt must divide the period" if sampled else f"to end at this t_end give {step} = {step_to(span, count)}")
        )
    check_times(problem.t0, dt, round(exact), step)
    return round(exact)


def length(problem: Timed, method: Method, dt: float, t_end: float | None, steps: int | None) -> tuple[int, float]:
    """Return the number of steps and the end time (infinite if steps are counted; else the number is an estimate)."""
    if not method.has_own_time or steps is not None:
        return number_of_steps(problem, dt, t_end, steps), math.inf
    end = end_time(problem, t_end, backward=dt < 0)
    check_times(problem.t0, dt, _about(end - problem.t0, dt))
    return _about(end - problem.t0, dt), end


def end_time(problem: Timed, t_end: float | None, backward: bool = False) -> float:
    """Return `t_end`, or by default the end time of the problem; it may lie before t0 only in a run `backward`."""
    end = problem.t_end if t_end is None else finite_number("t_end", t_end)
    if end is None:
        raise InputError("give t_end or steps: this problem has no end time")
    if end == problem.t0 or (end < problem.t0 and not backward):
        first, last = apart(problem.t0, end)
        raise InputError(f"t_end must {'differ from' if backward else 'lie after'} t0 = {first}; got {last}")
    return end


def signed_step(problem: Timed, dt: float, t_end: float | None, steps: int | None) -> float:
    """Return dt with the sign of the direction of a run: that of t_end, or with `steps` that of dt itself."""
    dt = finite_number("dt", dt)
    if dt == 0:
        raise InputError("dt must not be zero", "dt")
    if steps is not None:
        return dt
    end = end_time(problem, t_end, backward=True)
    if dt < 0 and end > problem.t0:
        first, last = apart(problem.t0, end)
        raise InputError(
            f"dt = {dt:g} goes backwards in time, and t_end = {last} lies after t0 = {first}; give dt > 0, or "
            "a t_end before t0", "dt",
        )  # fmt: skip
    return math.copysign(dt, end - problem.t0)


def step_numbers(t0: float, dt: float, times: np.ndarray) -> np.ndarray:
    """Return the numbers of the steps at whose ends these times lie; refuse a time between two steps."""
    exact = (times - t0) / dt
    between = [(t, n) for t, n in zip(times.tolist(), exact.tolist(), strict=True) if not is_whole(n)]
    if between:
        t, n = between[0]
        time, low, high, each = apart(t, t0 + math.floor(n) * dt, t0 + math.ceil(n) * dt, dt)
        raise InputError(
            f"each of times must be the end of a step, t0 + n dt, and {time} lies between {low} and {high} "
            f"(dt = {each}); give "
            "other times or another dt, or tol instead of a method and dt: adaptive steps end at all times", "times",
        )  # fmt: skip
    return np.round(exact).astype(np.int64)


def step_to(span: float, count: int) -> str:
    """Format the step of which `count` lead over a span with the fewest digits that still give `count` steps."""
    return _shortest(span / count, lambda dt: span / dt, count)


def _about(time: float, dt: float) -> int:
    """Estimate the number of steps if their length varies."""
    return max(1, min(MOST_STEPS, math.ceil(time / dt)))


def is_whole(steps: float) -> bool:
    """Return whether this is a whole number to 1e-9 (or to round-off, if it is very large)."""
    return 0.5 < steps < math.inf and abs(steps - round(steps)) <= max(1e-9, 4e-16 * steps)


def _end_time(t0: float, dt: float, count: int) -> str:
    """Format the end time of `count` steps with the fewest digits that still give `count` steps."""
    return _shortest(t0 + count * dt, lambda end: (end - t0) / dt, count)


def _shortest(value: float, steps_of: Callable[[float], float], count: int) -> str:
    """Format a number with the fewest digits, six or more, for which `steps_of` still gives `count` steps."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        steps = steps_of(float(text))
        if round(steps) == count and is_whole(steps):
            return text
    return repr(value)
