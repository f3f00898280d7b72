"""polhode: the run planned by `ph.solve(problem, tol=...)`, called directly; and the overhead of `ph.solve`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph
from polhode.kernels.loops import COLUMNS
from polhode.run import adaptive, candidates, tolerance
from polhode.run.exact import prepared

from .cases import Case
from .clock import Attempt, Ladder

LEAST = 30
"""Smallest number of timed calls of `ph.solve`."""


def ladders(case: Case) -> list[Ladder]:
    """The plan for every tolerance; the exact solution needs only one."""
    if case.problem.field is None:
        return [Ladder("polhode", lambda tol: _attempt(case, tol) if tol == 1e-12 else None, 12, 13)]
    return [Ladder("polhode", lambda tol: _attempt(case, tol), 1, 15)]


def _attempt(case: Case, tol: float) -> Attempt | None:
    if not tolerance.SMALLEST <= tol <= tolerance.LARGEST:
        return None
    plan = tolerance.plan(case.problem, case.end, tol)
    run = plan.run
    made = _travelling(run) if isinstance(run, adaptive.Run) else None
    made = made or (_stepping(run) if isinstance(run, candidates.FixedRun) else _exactly(case))
    made.method = plan.info.method
    return made


def _travelling(run: adaptive.Run) -> Attempt:
    """Adaptive steps as in `adaptive.Run.pieces`, without copies of the rows."""
    times, rows = np.empty(adaptive.ROWS), np.empty((adaptive.ROWS, COLUMNS))
    t0, end, start, system, limits, order, travel = (
        run.problem.t0, run.end, run.y, run.system, run.limits, run.order, run.adaptive_loop,
    )  # fmt: skip
    first, longest = run.proposal, run.plan.legs[0].longest

    def call() -> Any:
        t, y, proposal, steps, fine = t0, start, first, 0, True
        while t < end and fine:
            y, t, proposal, filled, _, fine = travel(
                t, end, longest, proposal, y, system, limits, order, times, rows
            )  # fmt: skip
            steps += filled
        return y, steps, fine

    return Attempt(call, lambda r: r[0][0], lambda r: r[1], "", lambda r: r[2])


def _stepping(run: candidates.FixedRun) -> Attempt:
    """Fixed steps, recording only the last state."""
    rows = np.empty((1, COLUMNS))
    made, n = run.engine, run.count
    arguments = (run.dt, run.problem.t0, 0, n, n, n, made.y, made.system, rows)
    advance = made.advance

    def call() -> Any:
        return advance(*arguments)

    return Attempt(call, lambda r: rows[0, :4], lambda r: n, "", lambda r: r[4])


def _exactly(case: Case) -> Attempt:
    """The exact solution at one time."""
    when, rows_at = np.array([case.end]), prepared(case.problem)
    return Attempt(lambda: rows_at(when), lambda rows: rows[0, :4], lambda rows: 0, "")


# --- overhead of ph.solve ---------------------------------------------------------------------------


def overhead(case: Case, tol: float, budget: float) -> dict[str, float]:
    """Microseconds of a warm `ph.solve`, of its prepared run alone, and of the overhead of the call."""
    run: Callable[[], Any] = tolerance.plan(case.problem, case.end, tol).run
    wholes, alone, added, began = [], [], [], time.perf_counter()
    while len(wholes) < LEAST or time.perf_counter() - began < budget:
        sol = None  # free the last result before the clock starts
        first = time.perf_counter()
        sol = ph.solve(case.problem, tol=tol, t_end=case.end)
        second = time.perf_counter()
        run()
        third = time.perf_counter()
        wholes.append(second - first)
        alone.append(third - second)
        added.append(second - first - sol.info.seconds)
    return {
        "tolerance": tol,
        "solve_microseconds": 1e6 * min(wholes),
        "run_microseconds": 1e6 * min(alone),
        "overhead_microseconds": 1e6 * min(added),
        "median_overhead_microseconds": 1e6 * float(np.median(added)),
    }
