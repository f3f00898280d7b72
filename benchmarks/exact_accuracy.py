"""Accuracy and speed of `ph.exact` (--out benchmarks/results/exact_accuracy.json writes the figures).

Random and degenerate motions (`validation.exact_accuracy`), in doubles against the same kernels in many digits,
and on a sample those digits against Taylor series, which are independent of them. Errors are in units of
EPS (1 + |omega| t); above 100 units also as a multiple of the effect of one ulp in one datum.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from validation.exact_accuracy import (
    ALLOWED,
    EPS,
    TOPS,
    Case,
    effect_of_one_ulp,
    error,
    free_case,
    gap,
    precise,
    top_case,
)

import polhode as ph
from polhode.analysis.bench import machine, write
from polhode.analysis.reference import flow

TIMES = 10**6
TAYLOR_RADIANS = 8.0


def described(case: Case) -> dict[str, Any]:
    """The data of a case needed to run it again."""
    problem = case.problem
    return {
        "problem": repr(problem),
        "moments": problem.body.moments.tolist(),
        "quaternion": list(problem.quaternion),
        "momentum": list(problem.momentum),
        "t": case.t,
    }


def summary(kind: str, found: list[tuple[Case, float]]) -> dict[str, Any]:
    """Statistics of a list of errors."""
    units = [miss / case.unit for case, miss in found]
    worst, at = max(zip(units, found, strict=True), key=lambda pair: pair[0])
    return {
        "kind": kind,
        "cases": len(found),
        "worst_units": worst,
        "worst_units_at": described(at[0]),
        "median_units": statistics.median(units),
        "worst_eps": max(miss for _, miss in found) / EPS,
        "beyond_allowed": sum(u > ALLOWED for u in units),
    }


def free_error(case: Case) -> tuple[float, float | None]:
    """The error of a free body's state, and if it is large the effect of one ulp in its data."""
    moments, momentum = case.problem.body.moments.tolist(), case.problem.momentum
    sol, true = ph.exact(case.problem, case.t), precise(moments, momentum, case.t)
    miss = gap((sol.quaternion[0], sol.momentum[0]), true, case.size)
    if miss <= ALLOWED * case.unit:
        return miss, None
    return miss, effect_of_one_ulp(moments, momentum, case.t, true, case.size)


def free_bodies(count: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Errors of free bodies."""
    scatter, found, against = random.Random(1), [], []
    for n in range(count):
        case = free_case(scatter)
        miss, effect = free_error(case)
        found.append((case, miss))
        if effect is not None:
            against.append(miss / effect)
        if n % 500 == 499:
            tell(f"free bodies: {n + 1} of {count}")
    return summary("free", found) | {"worst_over_effect_of_one_ulp": max(against, default=None)}


def tops(count: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Errors of tops, by kind."""
    rows = []
    for kind in TOPS:
        scatter = random.Random(kind)
        cases = [top_case(scatter, kind) for _ in range(math.ceil(count / len(TOPS)))]
        rows.append(summary(kind, [(case, error(case)) for case in cases]))
        tell(f"tops, {kind}: worst {rows[-1]['worst_units']:.3g} units")
    return rows


def against_taylor(case: Case) -> float:
    """The error of the 40-digit result after a rotation by a few radians."""
    h = math.copysign(TAYLOR_RADIANS / case.pace, case.t)
    sol = ph.exact(case.problem, h, digits=40)
    assert sol.mp is not None
    with mpmath.workdps(50):
        return gap((sol.mp.quaternion[0], sol.mp.momentum[0]), flow(case.problem, h, digits=46), case.size)


def taylor(count: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Errors of the many-digit results on a sample of each kind."""
    rows = []
    for kind in ("free", *TOPS):
        scatter = random.Random(f"Taylor {kind}")
        cases = [free_case(scatter) if kind == "free" else top_case(scatter, kind) for _ in range(count)]
        rows.append({"kind": kind, "cases": count, "worst_error": max(map(against_taylor, cases))})
        tell(f"Taylor series, {kind}: {rows[-1]['worst_error']:.2g}")
    return rows


def speed(name: str) -> dict[str, Any]:
    """Nanoseconds per value of a named problem at many times, for the whole call; best of five."""
    problem, times = ph.problems.get(name), np.linspace(-1000.0, 1000.0, TIMES)
    ph.exact(problem, times[:10])
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        ph.exact(problem, times)
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    ph.exact(problem, 1.0)
    once = time.perf_counter() - began
    return {"problem": name, "times": TIMES, "ns_per_value": 1e9 * min(seconds) / TIMES, "ms_for_one_time": 1e3 * once}


def speed_of_many(count: int = 200_000) -> dict[str, Any]:
    """Nanoseconds per value for different bodies, each at one time: the loop in lanes, and the whole call."""
    scatter = np.random.default_rng(1)
    parts = scatter.uniform(0.2, 1, (count, 3))
    given = parts + np.roll(parts, 1, axis=1), None, scatter.normal(size=(count, 3)), "jacobi"
    times, seconds = scatter.uniform(1, 50, count), []
    for _ in range(8):
        began = time.perf_counter()
        many = ph.ensemble(*given, dt=times, steps=1)
        seconds.append((time.perf_counter() - began, many.seconds))
    whole, loop = (min(column) for column in zip(*seconds, strict=True))
    return {"bodies": count, "ns_per_value": 1e9 * loop / count, "ns_per_value_whole_call": 1e9 * whole / count}


def main() -> None:
    """Run it and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--free", type=int, default=10_000, help="free bodies")
    parser.add_argument("--tops", type=int, default=2600, help="tops, in equal parts of each kind")
    parser.add_argument("--taylor", type=int, default=10, help="cases of each kind against Taylor series")
    parser.add_argument("--speed", action="store_true", help="only repeat the timings of an existing file")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "machine": machine(),
        "speed_of_many": speed_of_many(),
        "speed": [speed(name) for name in ("free_body", "slow_top", "fast_top")],
    }
    if arguments.speed:
        result = json.loads(arguments.out.read_text()) | result
    else:
        result["tops"] = tops(arguments.tops, print)
        result["free"] = free_bodies(arguments.free, print)
        result["taylor"] = taylor(arguments.taylor, print)
    print(f"wrote {write(result, arguments.out)}")


if __name__ == "__main__":
    main()
