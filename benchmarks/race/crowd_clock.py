"""Settings of a tool tried on a small crowd; then, for every error asked for, the fastest of them on large ones."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .crowds import QUANTILE, TARGETS, Crowd

SMALL = 2048
"""Bodies with which settings are tried."""

PATIENCE = 8.0
"""Seconds of a call beyond which a larger crowd is not run."""

ROUNDS, SHORT = 5, 1.0
"""How often the best runs take turns at last, and seconds of a call beyond which one does not."""


@dataclasses.dataclass
class Run:
    """A prepared call that returns the quaternions at the end (N, 4), and the operations of one body, where known."""

    call: Callable[[], np.ndarray]
    flops: Callable[[], float] | None = None


@dataclasses.dataclass
class Runner:
    """A tool with one method: its settings from coarse to fine, and the run of a crowd with one of them."""

    label: str
    settings: tuple[float, ...]
    run: Callable[[Crowd, float], Run]


def timed(call: Callable[[], np.ndarray], most: int = 100, budget: float = 0.8) -> tuple[float, np.ndarray]:
    """Seconds of the fastest call, and its result; short calls are made often, as others use the machine too."""
    best, began, count = np.inf, time.perf_counter(), 0
    while count < 1 or (count < most and time.perf_counter() - began < budget):
        start = time.perf_counter()
        result = call()
        best, count = min(best, time.perf_counter() - start), count + 1
    return best, result


def tried(crowd: Crowd, runner: Runner, quantile: float = QUANTILE) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of the first call (compiling and all), and error and time of settings until every target is met.

    Of three neighbouring settings one is tried first; those between only where they decide about a target.
    """
    small, rows = crowd.first(SMALL), {}
    began = time.perf_counter()
    runner.run(small, runner.settings[0]).call()
    first = time.perf_counter() - began

    def at(k: int) -> float:
        seconds, q = timed(runner.run(small, runner.settings[k]).call, 2, 0.2)
        errors = crowd.errors(q)
        rows[k] = {
            "method": runner.label, "setting": runner.settings[k], "nanoseconds": 1e9 * seconds / len(small),
            "error": float(np.quantile(errors, quantile, method="higher")), "median": float(np.median(errors)),
            "largest": float(errors.max()),
        }  # fmt: skip
        return float(rows[k]["error"])

    last = np.inf
    for k in range(0, len(runner.settings), 3):
        error = at(k)
        for between in (k - 1, k - 2):
            if between > 0 and any(error <= target < last for target in TARGETS):
                at(between)
        last = error
        if error <= min(TARGETS) or rows[k]["nanoseconds"] * SMALL > 1e9 * PATIENCE:
            break
    return first, [rows[k] for k in sorted(rows)]


def raced(crowd: Crowd, numbers: tuple[int, ...], runners: list[Runner], quantile: float = QUANTILE) -> dict[str, Any]:
    """Compile times, what was tried, and for every target and crowd the fastest run that meets it (None: none does)."""
    found: dict[str, Any] = {"compile_seconds": {}, "tried": [], "best": []}
    by_label = {runner.label: runner for runner in runners}
    for runner in runners:
        found["compile_seconds"][runner.label], rows = tried(crowd, runner, quantile)
        found["tried"] += rows
    known: dict[Any, dict[str, Any]] = {}  # a run that is the fastest for several errors is timed once
    for target in TARGETS:
        able = sorted((r for r in found["tried"] if r["error"] <= target), key=lambda row: row["nanoseconds"])
        for number in numbers:
            best = None
            for row in able[:2]:
                if row["nanoseconds"] * number > 1e9 * PATIENCE:
                    continue
                key = (row["method"], row["setting"], number)
                if key not in known:
                    known[key] = measured(crowd.first(number), by_label[row["method"]], row)
                entry = known[key]
                best = entry if best is None or entry["nanoseconds"] < best["nanoseconds"] else best
            found["best"].append({"target": target, "bodies": number, "run": best, "tried": (able or [None])[0]})
    return found


def measured(crowd: Crowd, runner: Runner, row: dict[str, Any]) -> dict[str, Any]:
    """The whole call on a crowd: nanoseconds and, where counted, operations a body."""
    run = runner.run(crowd, row["setting"])
    seconds, q = timed(run.call)
    errors = crowd.errors(q)
    return row | {
        "nanoseconds": 1e9 * seconds / len(crowd), "median": float(np.median(errors)), "largest": float(errors.max()),
        "flops": run.flops() if run.flops else None,
    }  # fmt: skip


def take_turns(crowd: Crowd, runners: dict[str, list[Runner]], found: dict[str, Any]) -> None:
    """Time the best runs of all tools again, in turns and over again: others use the machine too, now more, now less.

    `found` has what `raced` found for every tool; a time in it becomes that of the best round, where that is shorter.
    """
    for entries in zip(*(found[name]["best"] for name in runners), strict=True):  # an error and a number of bodies
        timers = []
        for name, entry in zip(runners, entries, strict=True):
            row, number = entry["run"], entry["bodies"]
            if row is not None and row["nanoseconds"] * number < 1e9 * SHORT:
                runner = next(r for r in runners[name] if r.label == row["method"])
                timers.append((row, number, runner.run(crowd.first(number), row["setting"]).call))
        for _ in range(ROUNDS):
            for row, number, call in timers:
                seconds, _ = timed(call, budget=0.2)
                row["nanoseconds"] = min(row["nanoseconds"], 1e9 * seconds / number)
