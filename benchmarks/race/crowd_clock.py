"""Try the settings of a tool on a small ensemble; then run the fastest for each target error on large ensembles."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .crowds import QUANTILE, TARGETS, Crowd

SMALL = 2048
"""Number of bodies for trying settings."""

PATIENCE = 8.0
"""Longest call in seconds for which a larger ensemble is run."""

ROUNDS, SHORT = 5, 1.0
"""Number of final alternating rounds of the best runs, and longest call in seconds that takes part."""


@dataclasses.dataclass
class Run:
    """A prepared call that returns the final quaternions (N, 4), and the operations per body, if known."""

    call: Callable[[], np.ndarray]
    flops: Callable[[], float] | None = None


@dataclasses.dataclass
class Runner:
    """A tool with one method: its settings from coarse to fine, and the run of an ensemble with one of them."""

    label: str
    settings: tuple[float, ...]
    run: Callable[[Crowd, float], Run]


def timed(call: Callable[[], np.ndarray], most: int = 100, budget: float = 0.8) -> tuple[float, np.ndarray]:
    """Seconds of the fastest call, and its result; short calls are repeated, because machines are shared."""
    best, began, count = np.inf, time.perf_counter(), 0
    while count < 1 or (count < most and time.perf_counter() - began < budget):
        start = time.perf_counter()
        result = call()
        best, count = min(best, time.perf_counter() - start), count + 1
    return best, result


def tried(crowd: Crowd, runner: Runner, quantile: float = QUANTILE) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of the first call (with compilation), and error and time of settings until every target is reached.

    Every third setting is tried first; those between only if they decide about a target.
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
    """Compile times, all trials, and for every target and ensemble the fastest run that reaches it (None: no run)."""
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
    """The whole call on an ensemble: nanoseconds and, if counted, operations per body."""
    run = runner.run(crowd, row["setting"])
    seconds, q = timed(run.call)
    errors = crowd.errors(q)
    return row | {
        "nanoseconds": 1e9 * seconds / len(crowd), "median": float(np.median(errors)), "largest": float(errors.max()),
        "flops": run.flops() if run.flops else None,
    }  # fmt: skip


def take_turns(crowd: Crowd, runners: dict[str, list[Runner]], found: dict[str, Any]) -> None:
    """Time the best runs of all tools again in alternating rounds, because the load of a shared machine varies.

    `found` holds the results of `raced` for every tool; a time is replaced by that of the best round if shorter.
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
