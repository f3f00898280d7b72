"""Growth of round-off over up to 10^8 steps, with and without compensated(): python benchmarks/long_run.py.

Writes long_run.json and long_run.png beside itself. About half an hour on one core; `--most 1e6` takes seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt

import polhode as ph
from polhode import plots
from polhode.analysis import bench
from polhode.analysis.long_run import drifts, growth_exponent, root_mean_square, scattered_starts

HERE = Path(__file__).parent
STARTS = 4
ERRORS = ("energy", "spatial_momentum", "momentum_norm")

SYMMETRIC = ph.Problem(ph.Body([0.9, 0.9, 1.6]), momentum=[0.3, 0.7, 1.1])
CASES = (
    ("free_body", ph.problems.free_body(), "dmv10", 0.1, 1e8, ("energy", "spatial_momentum")),
    ("free_body", ph.problems.free_body(), "symrot_auto", 0.1, 1e8, ("momentum_norm", "spatial_momentum")),
    ("symmetric body", SYMMETRIC, "symrot_auto", 0.1, 1e8, ("energy", "spatial_momentum")),
    ("heavy_top", ph.problems.heavy_top(), "strang(symrot_auto)", 0.02, 1e8, ("spatial_momentum",)),
    ("heavy_top", ph.problems.heavy_top(), "sofroniou_spaletta10(dmv10)", 0.05, 1e7, ("energy", "spatial_momentum")),
)
"""Problem, method, step size, steps, and the errors that are round-off (the others are bounded by the step size)."""


def measured(label, problem, method, dt, counts):
    """One case, for all starts."""
    began = time.perf_counter()
    runs = [drifts(start, method, dt, counts) for start in scattered_starts(problem, STARTS)]
    ns = (time.perf_counter() - began) / STARTS / counts[-1] * 1e9
    rms = {what: root_mean_square(runs, what).tolist() for what in ERRORS}
    return {
        "problem": label, "method": method.name, "dt": dt, "starts": STARTS, "steps": counts, "rms": rms,
        "exponent": {what: growth_exponent(counts, errors) for what, errors in rms.items()},
        "runs": [{what: [getattr(drift, what) for drift in run] for what in ERRORS} for run in runs],
        "ns_per_step": ns,
    }  # fmt: skip


def measure(most):
    rows = []
    for label, problem, name, dt, steps, shown in CASES:
        top = min(most, steps)
        counts = [round(10 ** (k / 2)) for k in range(6, 100) if 10 ** (k / 2) <= 1.001 * top]
        for method in (ph.methods[name], ph.compensated(name)):
            row = measured(label, problem, method, dt, counts) | {"round_off": list(shown)}
            rows.append(row)
            told = ", ".join(f"{what} {row['rms'][what][-1]:.1e} ~ N^{row['exponent'][what]:.2f}" for what in shown)
            print(f"{label}, {method.name}, dt = {dt:g}, {counts[-1]:.0e} steps: {told}", flush=True)
    return {"machine": bench.machine(), "rows": rows}


def draw(result, path):
    rows = result["rows"]
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    fig, axes = plt.subplots(2, 3, figsize=(13.5, 7.6), layout="constrained")
    for ax, pair in zip(axes.flat, pairs, strict=False):
        curves = {
            f"{what.replace('_', ' ')}, {kind} ($N^{{{row['exponent'][what]:.2f}}}$)": (row["steps"], row["rms"][what])
            for row, kind in zip(pair, ("plain", "compensated"), strict=True)
            for what in row["round_off"]
        }
        plots.growth_plot(curves, ax, f"{pair[0]['problem']}, {pair[0]['method']}, dt = {pair[0]['dt']:g}")
    for ax in axes.flat[len(pairs) :]:
        ax.axis("off")
    plots.save(fig, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=1e8, help="steps at most")
    parser.add_argument("--out", type=Path, default=HERE / "long_run.json")
    given = parser.parse_args()
    result = measure(given.most)
    bench.write(result, given.out)
    draw(result, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
