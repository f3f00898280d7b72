"""Cost of an adaptive step from its operations: the constants of `polhode.run.step_control`.

    python benchmarks/cost_model.py

Taylor runs of several orders and runs of the pair 8(7) are timed in one run. Least squares of the relative errors give
nanoseconds per sum of products in an order, and per step of the pair and operation of the torque.
"""

from __future__ import annotations

import math
import time

import numpy as np

import polhode as ph
from polhode.methods.adaptive import verner87
from polhode.physics.taylor_steps import motion_series
from polhode.run import step_control
from polhode.run.adaptive import Path, Run

PROBLEMS = ("fast_top", "heavy_top", "soft_wall", "libration")


def fitted(rows: list[list[float]], times: list[float], words: list[str]) -> None:
    """Print the constants and the error of the model."""
    table, ns = np.array(rows), np.array(times)
    found = np.linalg.lstsq(table / ns[:, None], np.ones(len(ns)), rcond=None)[0]
    off = table @ found / ns
    constants = ", ".join(f"{x:.3g} ns {word}" for x, word in zip(found, words, strict=True))
    print(f"{constants}; model over measurement {off.min():.2f} to {off.max():.2f}")


def expansions() -> None:
    """Adaptive steps of series."""
    rows, times = [], []
    for name in PROBLEMS:
        problem = ph.problems.get(name)
        for tol in (1e-4, 1e-7, 1e-10, 1e-13, 1e-16):
            run = Run(problem, step_control.taylor(problem), problem.t_end, tol)
            best, steps = math.inf, 0
            for _ in range(20):
                seconds, path = _timed(run)
                best, steps = min(best, seconds), len(path.times) - 1
            terms = motion_series(problem.field, False).terms
            rows.append([float(terms * run.order)])
            times.append(1e9 * best / steps)
    fitted(rows, times, ["a sum of an order"])


def pairs() -> None:
    """Steps of the Runge-Kutta pair 8(7)."""
    rows, times = [], []
    for name in PROBLEMS:
        problem = ph.problems.get(name)
        run = Run(problem, step_control.runge_kutta(problem), problem.t_end, 1e-13)
        best, tried = math.inf, 0
        for _ in range(20):
            seconds, path = _timed(run)
            best, tried = min(best, seconds), len(path.times) - 1 + path.rejected
        rows.append([1.0, verner87.PAIR.stages * step_control.torque_flops(problem.field)])
        times.append(1e9 * best / tried)
    fitted(rows, times, ["a step of the pair with its stages", "an operation of the torque"])


def _timed(run: Run) -> tuple[float, Path]:
    began = time.perf_counter()
    path = run()
    return time.perf_counter() - began, path


if __name__ == "__main__":
    expansions()
    pairs()
