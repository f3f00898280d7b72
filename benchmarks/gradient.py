"""What a gradient costs, in units of the plain run that it differentiates.

    python benchmarks/gradient.py

Both loops are compiled and called with a prepared state; of several runs of each, taken in turn, the one with the least
processor time counts (one thread works, and others may share its core). One-sided differences in n
directions take n + 1 plain runs and have half the digits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import polhode as ph
from polhode.run.gradient import UNITS, WIDTHS, Direction, Run, seeds
from polhode.run.integrator import engine

METHODS = (
    "fem",
    "imidm",
    "akw",
    "mkrk(rk4)",
    "mkrk(gauss2)",
    "strang(dmv6)",
    "rattle",
    "lietaylor(8)",
    "strang(jacobi)",
)
DT, REPEATS = 0.001, 7


def plain_run(problem: ph.Problem, method: ph.Method, steps: int) -> Callable[[], object]:
    """The compiled loop, nothing recorded but the end."""
    run = engine(problem, method)
    rows, last = run.buffer(1), run.last(steps)
    return lambda: run.advance(DT, problem.t0, 0, steps, steps, last, run.y, run.system, rows)


def sloped_run(problem: ph.Problem, method: ph.Method, steps: int, directions: int) -> Callable[[], object]:
    """The same on numbers with slopes in so many directions."""
    y, system, _ = seeds(problem, [Direction(momentum=UNITS[i % 3]) for i in range(directions)], ())
    run = Run(problem, method, DT, steps)
    return lambda: run.ended(y, system, directions, directions)


def best_times(calls: list[Callable[[], object]]) -> list[float]:
    """The least processor time of each call; the first round compiles."""
    best = [float("inf")] * len(calls)
    for round_ in range(1 + REPEATS):
        for i, call in enumerate(calls):
            began = time.process_time()
            call()
            if round_:
                best[i] = min(best[i], time.process_time() - began)
    return best


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--steps", type=int, default=20_000)
    reader.add_argument("--problem", default="fast_top")
    asked = reader.parse_args()
    problem = ph.problems.get(asked.problem)
    print(f"{asked.problem}, {asked.steps} steps: times the plain run, by directions")
    print(f"{'method':<16}{'plain ns/step':>14}" + "".join(f"{n:>8}" for n in WIDTHS) + f"{'differences, 8':>16}")
    for name in METHODS:
        method = ph.methods[name]
        calls = [plain_run(problem, method, asked.steps)]
        calls += [sloped_run(problem, method, asked.steps, n) for n in WIDTHS]
        plain, *others = best_times(calls)
        ratios = "".join(f"{x / plain:>8.2f}" for x in others)
        print(f"{name:<16}{plain / asked.steps * 1e9:>14.0f}{ratios}{9:>16}", flush=True)


if __name__ == "__main__":
    main()
