"""Time to a given final attitude error, against heyoka and scipy, in one run on one machine.

    pip install "polhode[bench]"
    python benchmarks/work_precision.py [--out benchmarks/work_precision.json] [--quick]

For every problem and contender a sequence of steps or tolerances gives errors (spectral norm of R - R_ref against the
34-digit reference) and seconds (best of several, compiled, without output). The table lists the shortest time to an
error of at most 1e-6, 1e-9 and 1e-12; the plot shows all runs.
"""

from __future__ import annotations

import argparse
import math
import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.analysis import bench
from polhode.analysis.convergence import convergence
from polhode.numbers import dispatch

PROBLEMS = ("heavy_top", "slow_top", "fast_top", "soft_wall")
TARGETS = (1e-6, 1e-9, 1e-12)
SCHEMES = (
    "blanes_moan6({})", "blanes_moan6a({})", "mclachlan8({})", "kahan_li8({})", "sofroniou_spaletta10({})",
    "processed6({})",
)  # fmt: skip
"""Schemes over a free flow: over a cheap exact one if the body has one, else over dmv10."""

Curve = list[dict[str, float]]


def drifts(problem: Any) -> tuple[str, ...]:
    """The free flows to try: a symmetric body has a cheap exact one."""
    moments = sorted(problem.body.moments)
    symmetric = moments[0] == moments[1] or moments[1] == moments[2]
    return ("symrot_auto",) if symmetric else ("dmv8", "dmv10")


def ours(problem: Any, name: str, quick: bool) -> Curve:
    """Error and seconds for a sequence of step sizes; a scheme's step is proportional to its number of drifts."""
    stages = max(1, ph.methods[name].torque_evals - 1)
    span, rate = problem.t_end - problem.t0, float(np.linalg.norm(problem.omega))
    fewest = max(1, math.ceil(0.4 * rate * span / stages))
    factor, count = (2.5, 6) if quick else (1.25, 26)
    numbers = sorted({math.ceil(fewest * factor**k) for k in range(count)})
    rows = convergence(problem, [name], [span / n for n in numbers])
    return [{"steps": r.steps, "attitude_error": r.attitude_error, "seconds": r.seconds} for r in rows]


def heyoka_curve(problem: Any, tolerances: list[float]) -> Curve:
    """The Taylor integrator of heyoka on the same equations, traced through our kernels into its expressions."""
    import heyoka

    class Functions(dispatch.Floats):
        sqrt, exp, log = heyoka.sqrt, heyoka.exp, heyoka.log
        sin, cos, tan, atan2 = heyoka.sin, heyoka.cos, heyoka.tan, heyoka.atan2
        power = staticmethod(operator.pow)

    dispatch.register(heyoka.expression, Functions)
    names = ("q0", "q1", "q2", "q3", "m1", "m2", "m3")
    x = heyoka.make_vars(*names)
    rates, system = bench.equations(problem, float)
    turning, turned = rates(heyoka.time, tuple(x[:4]), tuple(x[4:]), system)
    motion = list(zip(x, (*turning, *turned), strict=True))
    start = [*problem.quaternion, *problem.momentum]
    curve = []
    for tol in tolerances:
        integrator = heyoka.taylor_adaptive(motion, start, time=problem.t0, tol=tol)

        def work(n: int, run: Any = integrator) -> None:
            for _ in range(n):
                run.time, run.state[:] = problem.t0, start
                run.propagate_until(problem.t_end)

        seconds = best_of(work)
        q = integrator.state[:4] / np.linalg.norm(integrator.state[:4])
        error = bench.reference_error(problem, q)
        curve.append({"tolerance": tol, "attitude_error": error, "seconds": seconds})
    return curve


def best_of(work: Callable[[int], Any]) -> float:
    """Seconds of the fastest of several runs."""
    work(1)
    best = math.inf
    for _ in range(15):
        began = time.perf_counter()
        work(1)
        best = min(best, time.perf_counter() - began)
    return best


def contenders(problem: Any, quick: bool) -> dict[str, Curve]:
    """All runs of one problem."""
    tolerances = [10.0**-k for k in range(3, 17, 3 if quick else 1)]
    found: dict[str, Curve] = {}
    for scheme in SCHEMES:
        for flow in drifts(problem):
            name = scheme.format(flow)
            print(f"  {name}", flush=True)
            found[name] = ours(problem, name, quick)
    print("  heyoka, scipy DOP853", flush=True)
    found["heyoka"] = heyoka_curve(problem, tolerances)
    found["scipy DOP853"] = [dict(row) for row in bench.dop853_curve(problem, [t for t in tolerances if t > 3e-14])]
    return found


def shortest(curve: Curve, target: float) -> float:
    """Seconds of the fastest run with at most this error; infinite if there is none."""
    return min((row["seconds"] for row in curve if row["attitude_error"] <= target), default=math.inf)


RIVALS = ("heyoka", "scipy DOP853")


def table(results: dict[str, dict[str, Curve]]) -> list[dict[str, Any]]:
    """For every problem and error: our best method and time, and the time ratios of the others."""
    rows = []
    for problem, curves in results.items():
        for target in TARGETS:
            mine = {name: shortest(c, target) for name, c in curves.items() if name not in RIVALS}
            best = min(mine, key=lambda name: mine[name])
            row: dict[str, Any] = {
                "problem": problem,
                "error": target,
                "method": best,
                "microseconds": 1e6 * mine[best],
            }
            for rival in RIVALS:
                ratio = shortest(curves[rival], target) / mine[best]
                row[f"{rival} over ours"] = ratio if math.isfinite(ratio) else None
            rows.append(row)
    return rows


def plot(results: dict[str, dict[str, Curve]], path: Path) -> None:
    """Plot error against computing time, one panel per problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 2, figsize=(14, 8), layout="constrained")
    for ax, (problem, curves) in zip(axes.flat, results.items(), strict=True):
        for i, (name, curve) in enumerate(curves.items()):
            usable = [row for row in curve if row["attitude_error"] < 0.1]
            look = (
                {"color": "black", "linestyle": "--" if name == "heyoka" else ":"}
                if name in RIVALS
                else {"color": f"C{i}"}
            )
            ax.loglog(
                [1e6 * r["seconds"] for r in usable],
                [r["attitude_error"] for r in usable],
                ".-" if i < len(curves) - 2 else ".",
                label=name,
                **look,
            )
        ax.set(title=problem, xlabel="computing time (microseconds)", ylabel="final attitude error, |R - R_ref|")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    fig.savefig(path, dpi=130)
    plt.close(fig)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file; the plot gets the same name with .png")
    parser.add_argument("--quick", action="store_true", help="few steps and tolerances, as a trial")
    arguments = parser.parse_args()
    results = {}
    for name in PROBLEMS:
        print(name, flush=True)
        results[name] = contenders(ph.problems.get(name), arguments.quick)
    rows = table(results)
    for row in rows:
        if "method" not in row:
            print(f"{row['problem']:10s} {row['error']:.0e} not reached with these step sizes")
            continue
        rivals = ", ".join(f"{k} {v:.1f}" if v else f"{k}: never" for k, v in row.items() if k.endswith("ours"))
        print(f"{row['problem']:10s} {row['error']:.0e} {row['microseconds']:9.1f} us  {row['method']:36s} {rivals}")
    if arguments.out:
        bench.write({"machine": bench.machine(), "table": rows, "curves": results}, arguments.out)
        plot(results, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
