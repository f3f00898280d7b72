"""One call for a new initial state: `ph.propagator` and `ph.solve` against heyoka, CyRK and numbalsoda.

    pip install "polhode[bench]"
    python benchmarks/tolerance_race.py [--out benchmarks/tolerance_race.json] [--page docs/tolerance_race.md] [--quick]

For each case, contender and error (Frobenius norm of R - R_ref at the end: 1e-3, 1e-6, 1e-9, 1e-12) the loosest
tolerance is taken with which the median error over some initial states is below it. Then 64 other initial states,
which nothing has seen before, are integrated, one call each, all code compiled: the median and the largest time count.
The states come in rounds. In a round each contender calls in a loop, as a user would, one contender after the other in
random order, so that a busy machine slows all of them. `--rounds 64` makes rounds of a single state: every call then
finds the caches as other tools left them. `ph.solve` is timed as a whole, from a `ph.Problem` to a `Trajectory` with
all steps; `ph.propagator` and the others are prepared calls that return the end. The first call ever, in a process of
its own with empty caches, is a column of its own. A tool that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from race import cases, report
from race.cases import TARGETS, Case
from race.contenders import ENSEMBLE, OURS, RIVALS, Contender

import polhode as ph
from polhode.analysis import bench

RUNGS = 3
"""Tolerances in a decade."""

TIGHTEST = 15

ROUNDS = 4
"""Rounds into which the new states are divided."""

FIRST_CALL = """
import json, sys, time
sys.path[:0] = json.loads(sys.argv[1])
from race import cases, contenders
case = next(case for case in cases.cases() if case.name == "heavy_top")
entrants = *contenders.OURS, contenders.ENSEMBLE, *contenders.RIVALS
contender = next(c for c in entrants if c.name == sys.argv[2])
start = case.starts(1, 9)[0]
start = contender.start(case, start)
began = time.process_time()
list(contender.prepared(case).values())[-1](1e-9)(start)
print(time.process_time() - began)
"""


class Prepared:
    """A contender on a case: calls by label and tolerance, made once."""

    def __init__(self, contender: Contender, case: Case) -> None:
        self.contender, self.case, self.kinds = contender, case, contender.prepared(case)
        self.made: dict[tuple[str, float], Callable[[Any], Any]] = {}

    def call(self, label: str, tol: float) -> Callable[[Any], Any]:
        """The prepared call."""
        if (label, tol) not in self.made:
            self.made[label, tol] = self.kinds[label](tol)
        return self.made[label, tol]

    def starts(self, states: np.ndarray) -> list[Any]:
        """Initial states in the form that the contender takes."""
        return [self.contender.start(self.case, x) for x in states]


def tolerances(prepared: Prepared, states: np.ndarray, ends: list[np.ndarray]) -> dict[float, list[tuple[str, float]]]:
    """For each error the loosest tolerance of each method with which its median error is below it."""
    starts, found = prepared.starts(states), {target: list[tuple[str, float]]() for target in TARGETS}
    for label in prepared.kinds:
        left = list(TARGETS)
        for rung in range(RUNGS, RUNGS * TIGHTEST + 1):
            tol = 10.0 ** (-rung / RUNGS)
            try:
                errors = [cases.error(prepared.call(label, tol)(x), end) for x, end in zip(starts, ends, strict=True)]
            except (ph.InputError, ph.StepError, ValueError):
                continue
            while left and np.median(errors) <= left[0]:
                found[left.pop(0)].append((label, tol))
            if not left:
                break
    return found


def raced(case: Case, contenders: tuple[Contender, ...], quick: bool, rounds: int) -> list[dict[str, Any]]:
    """Rows of the table of a case: median and largest microseconds of each contender at each error."""
    known, new = case.starts(4 if quick else 8, 1), case.starts(8 if quick else 64, 2)
    ends = [case.reference(x) for x in known]
    entrants = [Prepared(contender, case) for contender in contenders]
    chosen = [tolerances(entrant, known, ends) for entrant in entrants]
    rows = []
    for target in TARGETS:
        times: dict[tuple[int, str, float], list[float]] = {
            (i, *kind): [] for i, found in enumerate(chosen) for kind in found[target]
        }
        given = [entrant.starts(new) for entrant in entrants]
        turns, order = np.random.default_rng(3), list(times)
        for part in np.array_split(np.arange(len(new)), rounds):
            for i, label, tol in [order[n] for n in turns.permutation(len(order))]:
                call, starts = entrants[i].call(label, tol), [given[i][k] for k in part]
                times[i, label, tol] += timed(call, starts)
        row: dict[str, Any] = {"case": case.name, "error": target}
        for i, contender in enumerate(contenders):
            able = [(float(np.median(x)), max(x), label, tol) for (j, label, tol), x in times.items() if j == i]
            if able:
                row[contender.name] = dict(zip(("median", "worst", "method", "tolerance"), min(able), strict=True))
        rows.append(row)
        print(" ".join(str(x) for x in _cells(row, contenders)), flush=True)
    return rows


def timed(call: Callable[[Any], Any], starts: list[Any]) -> list[float]:
    """Microseconds of one call for each start, one after the other."""
    times = []
    for start in starts:
        began = time.perf_counter()
        call(start)
        times.append(1e6 * (time.perf_counter() - began))
    return times


def _cells(row: dict[str, Any], contenders: tuple[Contender, ...]) -> list[str]:
    best = min((row[c.name]["median"] for c in contenders if c in RIVALS and c.name in row), default=None)
    cells = [row["case"], f"{row['error']:.0e}"]
    for contender in contenders:
        found = row.get(contender.name)
        cells.append(f"{report.number(found['median'])} ({report.number(found['worst'])})" if found else report.NEVER)
    for ours in OURS:
        found = row.get(ours.name)
        cells.append(report.ratio(best / found["median"]) if found and best else report.NEVER)
    return cells


def first_call(contender: Contender) -> float:
    """Seconds of processor time of the first call ever for a heavy top, in a process with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"POLHODE_CACHE": cache, "XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": cache}
        command = [
            sys.executable,
            "-c",
            FIRST_CALL,
            json.dumps([str(Path(x).resolve()) for x in sys.path]),
            contender.name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced by those measured")
    parser.add_argument("--quick", action="store_true", help="few states, to try it")
    parser.add_argument("--cases", nargs="*", help="cases to run (all), by the names in the table")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of the new states; 64: one state each")
    options = parser.parse_args()
    absent = {c.name: why for c in RIVALS if (why := c.missing())}
    for name, why in absent.items():
        print(f"{name} does not take part: {why}", flush=True)
    contenders = (*OURS, *(c for c in RIVALS if c.name not in absent))
    chosen = [case for case in cases.cases() if options.cases is None or case.name in options.cases]
    rows = [row for case in chosen for row in raced(case, contenders, options.quick, options.rounds)]
    first = {c.name: first_call(c) for c in (*OURS, ENSEMBLE, *contenders[len(OURS) :])}
    head = ["case", "error", *(c.name for c in contenders), *(f"best other / {c.name}" for c in OURS)]
    parts = {
        "race": report.markdown(head, [_cells(row, contenders) for row in rows]),
        "first": report.markdown(list(first), [[f"{x:.1f}" for x in first.values()]]),
    }
    print("\n\n".join(parts.values()))
    if options.out:
        tools = {c.name: c.version for c in contenders}
        report.write(
            {"machine": bench.machine(), "tools": tools, "absent": absent, "table": rows, "first": first}, options.out
        )
    if options.page:
        report.into_page(options.page, parts)


if __name__ == "__main__":
    main()
