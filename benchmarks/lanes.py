"""How much faster than the scalar loop bodies in lanes are, on one core, for every registered method in one run.

    python benchmarks/lanes.py [--out benchmarks/lanes.json] [--statistics energy] [METHOD ...]
    NUMBA_CPU_NAME=znver3 NUMBA_CPU_FEATURES=+avx2,+fma python benchmarks/lanes.py --out benchmarks/lanes_avx2.json
    python benchmarks/lanes.py --table benchmarks/lanes.json benchmarks/lanes_avx2.json

The second line measures code for AVX2 on a machine that has more; the third writes the table of docs/ensembles.md.

The same random bodies, each with its own inertia, attitude, momentum and (where the method takes a potential) weight,
make the same steps twice: one after the other in the compiled loop of `ph.solve`, and by `ph.ensemble` on one core.
Runs are short, the two kinds take turns, and the best of many counts, so that the busy moments of a shared machine do
not; what a call costs beside its steps is taken off.
With `--statistics` the lanes are also timed with that observable looked at at every step.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import polhode as ph
from polhode.analysis.bench import lanes_over_scalar, machine
from polhode.backends.lanes import FEATURES

TARGETS = {"avx512f": 5.0, "avx2": 3.0}
"""Times the throughput of the scalar loop that are asked for; other vectors have no target."""


def vector_units() -> str:
    """The widest vector instructions that code is compiled for here."""
    return next((name for name in ("avx512f", "avx2", "avx", "neon") if f"+{name}" in FEATURES), "unknown")


def measured(name: str, statistics: str | None) -> dict[str, Any]:
    row = lanes_over_scalar(ph.methods[name], statistics)
    mark = "" if row["ratio"] >= TARGETS.get(vector_units(), 0.0) else "  below"
    more = f"   with {statistics} {row[f'lanes_ns_with_{statistics}']:9.1f}" if statistics else ""
    print(f"{name:26} {row['scalar_ns']:9.1f} {row['lanes_ns']:9.1f} {row['ratio']:7.2f}{mark}{more}", flush=True)
    return row


def table(paths: list[Path]) -> str:
    """The figures of some files side by side."""
    found = [json.loads(path.read_text()) for path in paths]
    rows = [{row["method"]: row for row in part["rows"]} for part in found]
    heads = ["method", *(f"{part['vectors']}: scalar, lanes, ratio" for part in found)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in rows[0]:
        cells = (part.get(name) for part in rows)
        words = (f"{c['scalar_ns']:.0f}, {c['lanes_ns']:.1f}, **{c['ratio']:.1f}**" if c else "" for c in cells)
        lines.append(f"| `{name}` | {' | '.join(words)} |")
    return "\n".join(lines)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("methods", nargs="*", metavar="METHOD")
    words.add_argument("--out", type=Path)
    words.add_argument("--statistics", metavar="OBSERVABLE")
    words.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    given = words.parse_args()
    if given.table:
        print(table(given.table))
        return
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # `ph.ensemble` uses the cores it may
    print(f"{'method':26} {'scalar':>9} {'lanes':>9}   ratio    (nanoseconds of a body and step, {vector_units()})")
    rows = [measured(name, given.statistics) for name in given.methods or list(ph.methods)]
    if given.out:
        found = {"machine": machine(), "vectors": vector_units(), "target": TARGETS.get(vector_units()), "rows": rows}
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
