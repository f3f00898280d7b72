"""The tables of Buss's talk, recomputed: steps to a given accuracy on the prism, and the relative cost of a step.

``python benchmarks/buss_table.py --out benchmarks/results/buss_table.json``; without --out the tables are only printed.
"""

import argparse
import json
import sys
from pathlib import Path

import polhode as ph
from polhode.analysis import bench

sys.path.insert(0, str(Path(__file__).parents[1]))
from validation.papers import buss_table

UNIT = "ep(buss3)"
"""The row whose cost is 1.00 in the talk."""


def costs():
    """Time of a step on the prism without and with EP, relative to the unit row, beside the printed figures."""
    problem = ph.problems.prism()
    unit = bench.compiled_ns(ph.methods[UNIT], problem, problem.dt)
    found = []
    for row in buss_table.ROWS:
        if row.cost is not None:
            pair = [
                bench.compiled_ns(ph.methods[name], problem, problem.dt) for name in (row.method, f"ep({row.method})")
            ]
            ratios = [round(ns / unit, 2) for ns in pair]
            found.append({"row": row.label, "ns": [round(ns, 1) for ns in pair], "cost": ratios, "printed": row.cost})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    made = {"machine": bench.machine(), "steps": buss_table.table(), "cost": costs()}
    for line in made["steps"]:
        print(f"{line['row']:22s} {line['steps'][0]!s:>7s} / {line['steps'][1]!s:<7s} printed {line['printed']}")
    for line in made["cost"]:
        print(f"{line['row']:22s} {line['cost'][0]:5.2f} / {line['cost'][1]:<5.2f} printed {line['printed']}")
    if out:
        out.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
