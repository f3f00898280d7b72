"""Growth of round-off over up to 10^8 steps, with and without compensated(): python benchmarks/long_run.py.

Writes long_run.json and long_run.png beside itself. Takes ten minutes on two free cores; one with `--most 1e6`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
from pathlib import Path

import matplotlib.pyplot as plt

import polhode as ph
from polhode import plots
from polhode.analysis import bench
from polhode.analysis.invariants import conserved_directions, momentum_label
from polhode.analysis.long_run import drifts, growth_exponent, root_mean_square, scattered_starts

HERE = Path(__file__).parent
STARTS = 4
ERRORS = ("energy", "spatial_momentum", "momentum_norm")

SYMMETRIC = ph.Problem(ph.Body([0.9, 0.9, 1.6]), momentum=[0.3, 0.7, 1.1])
CASES = (
    ("free_body", ph.problems.free_body(), "dmv10", 0.1, 1e8, ("energy", "spatial_momentum")),
    ("free_body", ph.problems.free_body(), "symrot_auto", 0.1, 1e8, ("momentum_norm", "spatial_momentum")),
    ("symmetric body", SYMMETRIC, "symrot_auto", 0.1, 1e8, ("energy", "spatial_momentum")),
    ("symmetric body", SYMMETRIC, "dmv10", 0.1, 1e8, ("energy", "spatial_momentum")),
    ("heavy_top", ph.problems.heavy_top(), "strang(symrot_auto)", 0.02, 1e8, ("spatial_momentum",)),
    ("heavy_top", ph.problems.heavy_top(), "sofroniou_spaletta10(dmv10)", 0.05, 1e6, ("energy", "spatial_momentum")),
)
"""Problem, method, step size, steps, and the errors that are round-off (the others are bounded by the step size)."""


def measured(label, problem, name, dt, counts, shown):
    """Measure one method on one problem, for all initial states."""
    runs = [drifts(start, ph.methods[name], dt, counts) for start in scattered_starts(problem, STARTS)]
    rms = {what: root_mean_square(runs, what).tolist() for what in ERRORS}
    return {
        "problem": label, "method": name, "dt": dt, "starts": STARTS, "steps": counts, "round_off": shown, "rms": rms,
        "exponent": {what: growth_exponent(counts, errors) for what, errors in rms.items()},
        "runs": [{what: [getattr(drift, what) for drift in run] for what in ERRORS} for run in runs],
    }  # fmt: skip


def task(index, compensated, most):
    """Run a case, plain or compensated; cases have numbers, because problems cannot be sent between processes."""
    label, problem, name, dt, steps, shown = CASES[index]
    counts = [round(10 ** (k / 2)) for k in range(6, 100) if 10 ** (k / 2) <= 1.001 * min(most, steps)]
    return measured(label, problem, f"compensated({name})" if compensated else name, dt, counts, shown)


def measure(most, workers):
    machine, rows = bench.machine(), []
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(task, i, kind, most) for i in range(len(CASES)) for kind in (False, True)]
        for row in (job.result() for job in jobs):
            rows.append(row)
            told = ", ".join(
                f"{what} {row['rms'][what][-1]:.1e} ~ N^{row['exponent'][what]:.2f}" for what in row["round_off"]
            )
            print(f"{row['problem']}, {row['method']}, {row['steps'][-1]:.0e} steps: {told}", flush=True)
    return {"machine": machine, "rows": rows}


def draw(result, path):
    rows = result["rows"]
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    fig, axes = plt.subplots(2, 3, figsize=(13.5, 7.6), layout="constrained")
    for ax, pair, case in zip(axes.flat, pairs, CASES, strict=False):
        names = {what: what.replace("_", " ") for what in ERRORS}
        names["spatial_momentum"] = momentum_label(conserved_directions(case[1]))
        curves = {
            f"{names[what]}, {kind} ($N^{{{row['exponent'][what]:.2f}}}$)": (row["steps"], row["rms"][what])
            for row, kind in zip(pair, ("plain", "compensated"), strict=True)
            for what in row["round_off"]
        }
        plots.growth_plot(curves, ax, f"{pair[0]['problem']}, {pair[0]['method']}, dt = {pair[0]['dt']:g}")
    plots.save(fig, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=1e8, help="steps at most")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=HERE / "long_run.json")
    arguments = parser.parse_args()
    result = measure(arguments.most, arguments.workers)
    bench.write(result, arguments.out)
    draw(result, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
