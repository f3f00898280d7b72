"""Time of every method to a final attitude error of 1e-6, on a free body and on a heavy top, on one core.

    python benchmarks/time_to_error.py [--out benchmarks/time_to_error.json]

The steps of a method become shorter until its error (spectral norm of R - R_ref against the 34-digit reference) is
below the target, and the step with which the error is the target is interpolated. The time is the number of these
steps times that of one, the shortest of many runs of 500 steps. docs/guide.py sorts by it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.analysis import bench
from polhode.analysis.convergence import Row, conserved_directions, is_cold, measured, reference_solution, warm_up
from polhode.run.system import engine

PROBLEMS = ("free_body", "heavy_top")
TARGET = 1e-6
FACTOR = 1.6
MOST_STEPS = 3_000_000
STEPS, RUNS = 500, 400


def suitable(problem: ph.Problem) -> list[ph.Method]:
    """The methods of order 2 and more for the problem's field; for the free body, those that conserve the energy."""
    free = problem.field is None
    return [
        m
        for m in ph.methods.taking("free" if free else "velocity")
        if m.has_step and not m.has_own_time and m.noise is None and 2 <= (m.order_free if free else m.order) < math.inf
        and (not free or "energy" in m.conserves)
    ]  # fmt: skip


def to_target(problem: ph.Problem, method: ph.Method) -> dict[str, Any] | None:
    """Step and microseconds with which the error is the target; None if no step reaches it."""
    reference, directions = reference_solution(problem), conserved_directions(problem)
    span = reference.t - problem.t0
    steps = max(1, math.ceil(span * float(np.linalg.norm(problem.omega)) / 2))
    warm_up(problem, method)
    before: Row | None = None
    while steps <= MOST_STEPS:
        row = measured(problem, method, span / steps, reference, directions)
        if row.attitude_error <= TARGET:
            dt = _between(before, row)
            return {"dt": dt, "microseconds": 1e6 * span / dt * step_seconds(problem, method, dt)}
        before = None if row.failure else row
        steps = math.ceil(steps * FACTOR)
    return None


def _between(before: Row | None, after: Row) -> float:
    """The step with which the error is the target, interpolated between two runs in logarithms."""
    if before is None:
        return after.dt
    errors, steps = ([math.log(getattr(r, name)) for r in (after, before)] for name in ("attitude_error", "dt"))
    return math.exp(float(np.interp(math.log(TARGET), errors, steps)))


def step_seconds(problem: ph.Problem, method: ph.Method, dt: float) -> float:
    """Seconds of a step, from the shortest of many runs: on a busy machine some of them are undisturbed."""
    run, best = engine(problem, method), math.inf
    last, buffer = run.last(STEPS), run.buffer(2)
    for _ in range(RUNS):
        began = time.perf_counter()
        run.advance(dt, float(problem.t0), 0, STEPS, STEPS, last, run.y, run.system, buffer)
        best = min(best, time.perf_counter() - began)
    return best / STEPS


def main() -> None:
    """Measure, print and write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    out = arguments.parse_args().out
    rows = []
    for name in PROBLEMS:
        problem = ph.problems.get(name)
        for method in suitable(problem):
            compiling = " (compiling)" if is_cold(problem, method) else ""
            found = to_target(problem, method)
            rows.append({"problem": name, "method": method.name, **(found or {"dt": None, "microseconds": None})})
            print(name, method.name, found, compiling, flush=True)
            out.write_text(json.dumps({"machine": bench.machine(), "target": TARGET, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
