"""How much faster than the scalar loop eight bodies in lanes are, on one core, for every registered method in one run.

    python benchmarks/lanes.py [--out benchmarks/lanes.json] [--statistics energy] [METHOD ...]

The same random bodies, each with its own inertia, attitude, momentum and (where the method takes a potential) weight,
make the same steps twice: one after the other in the compiled loop of `ph.solve`, and by `ph.ensemble` on one core.
Runs are short and the best of many counts, so that the busy moments of a shared machine do not; what a call costs
beside its steps is taken off.
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

TARGET = 5.0
"""Times the throughput of the scalar loop that is asked for with AVX-512 (3 with AVX2)."""


def vector_units() -> str:
    """The widest vector instructions of the processor that matter here."""
    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return "unknown"
    return next((word for word in ("avx512f", "avx2", "avx", "asimd") if word in flags), "unknown")


def measured(name: str, statistics: str | None) -> dict[str, Any]:
    row = lanes_over_scalar(ph.methods[name], statistics)
    mark = "" if row["ratio"] >= TARGET else "  below"
    more = f"   with {statistics} {row[f'lanes_ns_with_{statistics}']:9.1f}" if statistics else ""
    print(f"{name:26} {row['scalar_ns']:9.1f} {row['lanes_ns']:9.1f} {row['ratio']:7.2f}{mark}{more}", flush=True)
    return row


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("methods", nargs="*", metavar="METHOD")
    words.add_argument("--out", type=Path)
    words.add_argument("--statistics", metavar="OBSERVABLE")
    given = words.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # `ph.ensemble` uses the cores it may
    print(f"{'method':26} {'scalar':>9} {'lanes':>9}   ratio    (nanoseconds of a body and step, {vector_units()})")
    rows = [measured(name, given.statistics) for name in given.methods or list(ph.methods)]
    if given.out:
        found = {"machine": machine(), "vectors": vector_units(), "target": TARGET, "rows": rows}
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
