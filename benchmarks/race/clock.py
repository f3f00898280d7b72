"""Timing of a sequence of tolerances, with the same rules for every contender."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from .cases import TARGETS, Case

ROUND = 2e-5
"""Shortest timed interval in seconds; shorter calls are repeated."""

RUNGS = 3
"""Tolerances per decade."""

LONG = 0.02
"""For calls longer than this (seconds), tolerances between decades are tried only if they decide about a target."""

PATIENCE = 1.0
"""Longest call in seconds after which tighter tolerances are tried."""

Result = Any


@dataclasses.dataclass
class Attempt:
    """One prepared, compiled call: integrate a case to its end with one tolerance and return only the final state."""

    call: Callable[[], Result]
    attitude: Callable[[Result], Any]
    """Quaternion of a result."""
    steps: Callable[[Result], int]
    method: str
    fine: Callable[[Result], bool] = lambda result: True


@dataclasses.dataclass
class Ladder:
    """A contender on one case: its label, and the call for a tolerance (None if it does not accept the tolerance)."""

    label: str
    attempt: Callable[[float], Attempt | None]
    loosest: int = 1
    tightest: int = 16
    """Exponents of the accepted tolerances: 10^-loosest ... 10^-tightest."""


SLOW = 0.1
"""Calls longer than this (seconds) are made only twice."""


def seconds(call: Callable[[], Any], budget: float, least: int = 3, most: int = 2000) -> float:
    """Seconds of the fastest of several calls, as many as the budget allows."""
    began = time.perf_counter()
    call()
    once = time.perf_counter() - began
    if once > SLOW:
        return once
    inner = max(1, math.ceil(ROUND / max(once, 1e-9)))
    best, spent, count = once, 0.0, 0
    while count < least or (spent < budget and count < most):
        began = time.perf_counter()
        for _ in range(inner):
            call()
        passed = time.perf_counter() - began
        best, spent, count = min(best, passed / inner), spent + passed, count + 1
    return best


def climb(case: Case, ladder: Ladder, budget: float, rungs: int = RUNGS) -> list[dict[str, Any]]:
    """Error, time, method and steps at every tolerance; first whole decades, then between them."""
    found: dict[int, dict[str, Any] | None] = {}

    def at(rung: int) -> None:
        found[rung] = measured(case, ladder, 10.0 ** (-rung / rungs), budget)

    for decade in range(ladder.loosest, ladder.tightest + 1):
        at(decade * rungs)
        if climbed([row for _, row in sorted(found.items()) if row is not None]):
            break
    for decade in range(ladder.loosest, max(found) // rungs):
        pair = [found[decade * rungs], found[(decade + 1) * rungs]]
        for between in range(decade * rungs + 1, (decade + 1) * rungs):
            if decides(pair):
                at(between)
    return [row for _, row in sorted(found.items()) if row is not None]


def climbed(rows: list[dict[str, Any]]) -> bool:
    """True if tighter tolerances are useless: the last two runs reach every target, or the last one was too long."""
    if not rows:
        return False
    done = len(rows) > 1 and max(row["error"] for row in rows[-2:]) < min(TARGETS)
    return done or rows[-1]["microseconds"] > 1e6 * PATIENCE


def decides(pair: list[dict[str, Any] | None]) -> bool:
    """True if a tolerance between these two may be the fastest for a target; always for short calls."""
    known = [row for row in pair if row is not None]
    if len(known) < 2 or min(row["microseconds"] for row in known) < 1e6 * LONG:
        return bool(known)
    low, high = sorted(row["error"] for row in known)
    return any(low <= target <= high for target in TARGETS)


def measured(case: Case, ladder: Ladder, tolerance: float, budget: float) -> dict[str, Any] | None:
    """One tolerance; None if the contender does not accept it, or its run fails."""
    attempt = ladder.attempt(tolerance)
    if attempt is None:
        return None
    began = time.perf_counter()
    result = attempt.call()
    first = time.perf_counter() - began
    if not attempt.fine(result):
        return None
    error = case.error(attempt.attitude(result))
    if not math.isfinite(error):
        return None
    return {
        "tolerance": tolerance,
        "error": error,
        "microseconds": 1e6 * min(first, seconds(attempt.call, budget)),
        "steps": int(attempt.steps(result)),
        "method": attempt.method,
    }


def refined(case: Case, ladders: list[Ladder], curves: dict[str, list[dict[str, Any]]], budget: float) -> Iterator[str]:
    """Time the three fastest runs of a contender for each target again, longer; yields the timed runs."""
    by_label = {ladder.label: ladder for ladder in ladders}
    again: dict[int, tuple[str, dict[str, Any]]] = {}
    for target in TARGETS:
        able = [
            (row["microseconds"], label, row) for label in by_label for row in curves[label] if row["error"] <= target
        ]
        able = [item for item in able if item[0] < 1e6 * SLOW]
        for _, label, row in sorted(able, key=lambda item: item[0])[:3]:
            again[id(row)] = (label, row)
    for label, row in again.values():
        attempt = by_label[label].attempt(row["tolerance"])
        assert attempt is not None
        row["microseconds"] = min(row["microseconds"], 1e6 * seconds(attempt.call, budget, least=5, most=20_000))
        yield f"{label} {row['tolerance']:.0e}"


def fastest(curves: list[list[dict[str, Any]]], target: float) -> dict[str, Any] | None:
    """The fastest run that reaches a target."""
    able = [row for curve in curves for row in curve if row["error"] <= target]
    return min(able, key=lambda row: row["microseconds"], default=None)
