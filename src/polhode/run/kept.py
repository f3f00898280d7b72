"""Which states of a finished run are kept: all steps, some of them, or states between them by dense output."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import NEAR
from ..numbers.precision import guarded, in_digits
from ..physics.validate import apart, positive, real_array, whole_number
from ..results.trajectory import Trajectory, selected

SHOWN = 0.25
"""Radians between the states in the file of a run to a tolerance: close enough to be drawn and animated."""

MOST = 1_000_000
"""Most states that `SHOWN` adds to a file; runs that turn further keep their steps."""

MOST_BETWEEN = 100_000_000
"""Most states that a largest turn may ask for: ten gigabytes."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """The states that the user asks for: every k-th step, given times, or a largest turn between two states."""

    every: int = 1
    times: np.ndarray | None = None
    max_turn: float = math.inf
    most: float = math.inf
    """Most states; a run that would have more keeps its steps."""

    @classmethod
    def of(cls, every: Any, times: Any, max_turn: Any) -> Kept:
        """Validate the arguments of the user."""
        every = 1 if type(every) is int and every == 1 else whole_number("every", every)
        if every == 1 and times is None and max_turn is None:
            return STEPS
        given = {"every": every != 1, "times": times is not None, "max_turn": max_turn is not None}
        named = [name for name in given if given[name]]
        if len(named) > 1:
            raise InputError(f"give one of {' and '.join(named)}: each of them chooses the states that are kept")
        turn = math.inf if max_turn is None else positive("max_turn", max_turn)
        return cls(every, None if times is None else _checked(times), turn)

    @property
    def attributes(self) -> dict[str, Any]:
        """The specified states, as attributes for the file of a run."""
        found: dict[str, Any] = {} if self.every == 1 else {"every": self.every}
        found |= {} if self.times is None else {"times": self.times.tolist()}
        return found | ({"max_turn": self.max_turn} if self.max_turn < math.inf else {})

    def end(self, t_end: Any) -> Any:
        """Return the end of the run: `t_end`, or by default the last of the given times."""
        return float(self.times[-1]) if t_end is None and self.times is not None else t_end

    def with_ends(self, t0: float, end: float) -> np.ndarray | None:
        """Return the given times, with the start and the end of the run before and after them; None if none are."""
        if self.times is None:
            return None
        inner = self.times[(self.times != t0) & (self.times != end)]
        return np.concatenate([[t0], inner, [end]])

    def check(self, t0: float, end: float) -> None:
        """Refuse times that are not on the way from t0 to the end."""
        if self.times is None:
            return
        away = (self.times - t0) * math.copysign(1.0, end - t0)
        if away[0] < 0 or away[-1] > abs(end - t0) + round_off(t0, end) or (np.diff(away) <= 0).any():
            start, stop, *_ = apart(t0, end, float(self.times[0]), float(self.times[-1]))
            raise InputError(
                f"times must lie between t0 = {start} and t_end = {stop}, each after the one before in the direction "
                f"of the run; got {_shortened(self.times)}", "times",
            )  # fmt: skip

    def applied(self, sol: Trajectory) -> Trajectory:
        """Return the trajectory with the states asked for; its dense output and its events are those of the run."""
        if self is STEPS:
            return sol
        if self.times is not None:
            return _at_times(sol, self.times)
        if self.every > 1:
            last = len(sol) - 1
            chosen = np.append(np.arange(0, last, self.every), last)
            return _with_data(sol, selected(sol, chosen))
        with guarded(sol.info.digits):
            times = _close_times(sol, self.max_turn)
        return sol if len(times) == len(sol) or len(times) > self.most else _at(sol, times)


STEPS = Kept()
"""The end of every step, and nothing else."""

FOR_FILE = Kept(max_turn=SHOWN, most=MOST)
"""States that are close enough to be drawn, unless there would be too many of them."""


def _close_times(sol: Trajectory, turn: float) -> np.ndarray:
    """Return times of the run, with those of its steps, between which the body turns by at most `turn`."""
    speed = np.linalg.norm(sol.omega, axis=1)
    with np.errstate(over="ignore"):
        wanted = np.ceil(abs(np.diff(sol.t)) * np.maximum(speed[1:], speed[:-1]) / turn)
    if wanted.sum() > MOST_BETWEEN:
        raise InputError(
            f"max_turn = {turn:g} asks for {wanted.sum():.3g} states, and at most {MOST_BETWEEN:g} can be kept; give a "
            "larger max_turn", "max_turn",
        )  # fmt: skip
    parts = np.maximum(1, wanted).astype(int)
    t = sol.t if sol.mp is None else in_digits(sol.mp.t)
    first = np.repeat(t[:-1], parts)
    within = (np.arange(len(first)) - np.repeat(np.cumsum(parts) - parts, parts)).astype(t.dtype)
    return np.append(first + within * np.repeat(np.diff(t) / parts.astype(t.dtype), parts), t[-1])


def round_off(t0: float, end: float) -> float:
    """Return the distance of two times of a run that counts as none: the last of equal steps ends at t0 + n dt."""
    return NEAR * math.ulp(max(abs(t0), abs(end)))


def _at(sol: Trajectory, times: np.ndarray) -> Trajectory:
    assert sol.dense is not None
    return _with_data(sol, sol.dense(times))


def _at_times(sol: Trajectory, asked: np.ndarray) -> Trajectory:
    """Return the states at the times that a run reaches; what is after its end by round-off is its last state."""
    assert sol.dense is not None
    t0, end = sol.span
    first, last = sorted(sol.span)
    asked = asked[abs(asked - t0) <= abs(end - t0) + round_off(t0, end)]
    data = sol.dense(np.clip(asked, first, last))
    made = _with_data(sol, data)
    made.span = sol.span
    if sol.mp is None:
        made.stored, made.t = dict(made.stored) | {"t": asked}, asked
    return made


def _with_data(sol: Trajectory, data: Any) -> Trajectory:
    made = Trajectory(data, sol.info, dense=sol.dense, problem=sol.problem)
    made.control = sol.control
    made.events = sol.events
    if sol.tangent is not None:
        made.tangent = sol.tangent.at(made.t)
    return made


def _checked(times: Any) -> np.ndarray:
    expected = "times must be the times of the states to keep, such as np.linspace(0, 10, 101)"
    found = np.atleast_1d(real_array(times, expected))
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise InputError(f"{expected}, in one dimension and finite; got {_shortened(found)}", "times")
    return found


def _shortened(values: np.ndarray) -> str:
    return np.array2string(values, threshold=6, edgeitems=3, floatmode="unique")
