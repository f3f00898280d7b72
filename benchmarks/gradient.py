"""Cost of a gradient relative to the plain run that it differentiates.

    python benchmarks/gradient.py

Both loops are compiled and called with a prepared state. Several runs of each alternate, and the one with the least
processor time counts (the runs use one thread, whose core may be shared). One-sided differences in n
directions take n + 1 plain runs and have half the digits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import polhode as ph
from polhode.run.directions import UNITS, Direction, seeds
from polhode.run.gradient import WIDTHS, Run
from polhode.run.system import engine

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
    """The compiled loop, recording only the final state."""
    run = engine(problem, method)
    rows, last = run.buffer(1), run.last(steps)
    return lambda: run.advance(DT, problem.t0, 0, steps, steps, last, run.y, run.system, rows)


def sloped_run(problem: ph.Problem, method: ph.Method, steps: int, directions: int) -> Callable[[], object]:
    """The same on dual numbers with tangents in this many directions."""
    varied = [Direction(momentum=UNITS[i % 3]) for i in range(directions)]
    y, system, _ = seeds(problem, varied, ())
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--problem", default="fast_top")
    arguments = parser.parse_args()
    problem = ph.problems.get(arguments.problem)
    print(f"{arguments.problem}, {arguments.steps} steps: time relative to the plain run, by number of directions")
    print(f"{'method':<16}{'plain ns/step':>14}" + "".join(f"{n:>8}" for n in WIDTHS) + f"{'differences, 8':>16}")
    for name in METHODS:
        method = ph.methods[name]
        calls = [plain_run(problem, method, arguments.steps)]
        calls += [sloped_run(problem, method, arguments.steps, n) for n in WIDTHS]
        plain, *others = best_times(calls)
        ratios = "".join(f"{x / plain:>8.2f}" for x in others)
        print(f"{name:<16}{plain / arguments.steps * 1e9:>14.0f}{ratios}{9:>16}", flush=True)


if __name__ == "__main__":
    main()
