"""Energy errors with reversible variable steps against fixed ones at equal cost: python benchmarks/reversible.py.

Writes results/reversible.json and reversible.png; options `--steps 20000 --out folder`. Takes a minute or two.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph
from polhode import plots
from polhode.analysis import bench
from polhode.analysis.convergence import warm_up

HERE = Path(__file__).parent
METHODS = ("trapm", "imidm", "strang(jacobi)", "strang(symrot_auto)")
REPEATS = 7
LADDERS = {"soft_wall": (0.5, 0.4, 0.25, 0.1, 0.05), "coulomb_wall": (0.05, 0.02, 0.01, 0.005)}


def errors(sol):
    """Largest and root mean square of the relative error of the energy."""
    change = np.abs(sol.energy / sol.energy[0] - 1)
    return float(change.max()), float(np.sqrt((change**2).mean()))


def step_times(problem, runs, steps):
    """Nanoseconds per step of several (method, dt), alternating, best of a few each: machines are shared."""
    best = [np.inf] * len(runs)
    for _ in range(REPEATS):
        for i, (method, dt) in enumerate(runs):
            began = time.perf_counter()
            ph.solve(problem, method, dt=dt, steps=steps, every=steps)
            best[i] = min(best[i], time.perf_counter() - began)
    return [1e9 * seconds / steps for seconds in best]


def fixed(problem, method, span, steps):
    """A run over the same time with `steps` fixed steps; infinite errors if it fails."""
    try:
        return errors(ph.solve(problem, method, dt=span / steps, steps=steps))
    except ph.StepError:
        return np.inf, np.inf


def row(name, method, dt, steps):
    """One method at one nominal step: variable steps, as many fixed steps, fixed steps in equal computing time."""
    problem = ph.problems.get(name)
    varied = ph.reversible(method)
    for each in (varied, ph.methods[method]):
        warm_up(problem, each)
    made = {"problem": name, "method": method, "dt": dt, "steps": steps}
    try:
        sol = ph.solve(problem, varied, dt=dt, steps=steps)
    except ph.StepError as stop:
        return made | {"failed": str(stop)}
    span = float(sol.t[-1] - sol.t[0])
    ns, plain_ns = step_times(problem, ((varied, dt), (method, span / steps)), steps)
    same_time = max(1, round(steps * ns / plain_ns))
    sizes = np.diff(sol.t)
    found = {"reversible": errors(sol), "equal_steps": fixed(problem, method, span, steps)}
    found["equal_time"] = fixed(problem, method, span, same_time)
    return made | {
        "span": span, "shortest": float(sizes.min()), "longest": float(sizes.max()), "ns_per_step": ns,
        "ns_per_fixed_step": plain_ns, "steps_in_equal_time": same_time,
        "max_energy_error": {key: value[0] for key, value in found.items()},
        "rms_energy_error": {key: value[1] for key, value in found.items()},
    }  # fmt: skip


def told(made):
    head = f"{made['problem']:13} {made['method']:20} dt {made['dt']:<6g}"
    if "failed" in made:
        return f"{head} {made['failed']}"
    worst = made["max_energy_error"]
    gains = ", ".join(f"{worst[key] / worst['reversible']:.2f} x at {key}" for key in ("equal_steps", "equal_time"))
    steps = f"steps {made['shortest']:.3g} to {made['longest']:.3g}"
    return f"{head} max error {worst['reversible']:.2e} (fixed: {gains}), {steps}, {made['ns_per_step']:.0f} ns"


def picture(rows, path):
    """Plot the largest energy error against computing time; fixed steps are dashed."""
    names = list(LADDERS)
    figure, axes = plt.subplots(1, len(names), figsize=(11, 4.5), constrained_layout=True)
    for axis, name in zip(axes, names, strict=True):
        for i, method in enumerate(METHODS):
            done = [r for r in rows if r["problem"] == name and r["method"] == method and "failed" not in r]
            if not done:
                continue
            cost = [1e-3 * r["ns_per_step"] * r["steps"] / r["span"] for r in done]
            for key, style, note in (("reversible", "o-", "reversible"), ("equal_time", "s--", "fixed")):
                worst = [r["max_energy_error"][key] for r in done]
                label = f"{note}({method})" if key == "reversible" else method
                axis.loglog(cost, worst, style, color=f"C{i}", label=label, markersize=4)
        axis.set(xlabel="computing time per unit of time, microseconds", title=name)
    axes[0].set_ylabel("largest relative energy error")
    axes[0].legend(fontsize=7)
    plots.save(figure, path)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--out", type=Path, help="folder of both files")
    arguments = parser.parse_args()
    rows = []
    for name, ladder in LADDERS.items():
        for method in METHODS:
            for dt in ladder:
                rows.append(row(name, method, dt, arguments.steps))
                print(told(rows[-1]), flush=True)
    bench.write({"machine": bench.machine(), "rows": rows}, (arguments.out or HERE / "results") / "reversible.json")
    picture(rows, (arguments.out or HERE) / "reversible.png")


if __name__ == "__main__":
    main()
