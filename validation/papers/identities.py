"""Tests whether two methods are equal, adjoint or conjugate, by one step on a generic problem in 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath

from polhode.analysis.checks import DIGITS, LARGE_STEP, Setting, distance, number
from polhode.methods import methods


def _settings(kind: str, *names: str) -> list[Setting]:
    return [Setting(methods[name], kind) for name in names]


def apart(one: str, other: str, kind: str = "free", halves: bool = False) -> Any:
    """Distance between the steps of two methods; with `halves` the other makes two steps of half the size."""
    with mpmath.workdps(DIGITS + 5):
        first, second = _settings(kind, one, other)
        h = number(LARGE_STEP)
        if halves:
            return distance(first.step(h), second.step(h / 2, second.t + h / 2, second.step(h / 2)))
        return distance(first.step(h), second.step(h))


def undone(one: str, other: str, kind: str = "free") -> Any:
    """Distance from the start after a step with one method and a step back with the other: zero for adjoints."""
    with mpmath.workdps(DIGITS + 5):
        first, second = _settings(kind, one, other)
        h = number(LARGE_STEP)
        return distance(second.step(-h, second.t + h, first.step(h)), first.y)


def unconjugated(one: str, other: str, half: str, kind: str = "free") -> Any:
    """Distance between (half a step of `half`, then `one`) and (`other`, then half a step of `half`)."""
    with mpmath.workdps(DIGITS + 5):
        first, second, between = _settings(kind, one, other, half)
        h, t = number(LARGE_STEP), first.t
        ahead = first.step(h, t + h / 2, between.step(h / 2, t))
        return distance(ahead, between.step(h / 2, t + h, second.step(h, t)))
