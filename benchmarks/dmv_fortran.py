"""Nanoseconds per step of dmv2 ... dmv10 against Hairer and Vilmart's Fortran, in one run.

    python benchmarks/dmv_fortran.py [--out benchmarks/results/dmv_fortran.json]

Their program took FORTRAN ns per step on another machine (AMD Zen 4, gfortran -O3 -march=native), where a sine and a
cosine of libm took 9.6 ns; its figures are scaled by the time of that pair here. The time of a sine depends on its
argument, which the other measurement does not state: both a full turn and small angles are timed, and both
ratios printed. All timings are the best of many short ones, because machines are shared.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import functools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from polhode import problems
from polhode.analysis.bench import machine
from polhode.kernels.loops import COLUMNS
from polhode.methods import methods
from polhode.run.system import engine

ORDERS = (2, 4, 6, 8, 10)
FORTRAN = {
    ("book", 0.01): (54, 67, 68, 71, 75),
    ("book", 0.1): (80, 93, 95, 97, 102),
    ("heavy_top", 0.01): (69, 89, 90, 93, 94),
}
"""Problem and step size, then ns per step of orders 2 to 10; `book` is the free body of Vilmart's Figure 1."""
PAIR = 9.6
"""Nanoseconds of a sine and a cosine on the machine of those figures."""
REACH = {"turn": 2 * math.pi, "small": 0.3}
STEPS, ROUNDS = 5000, 600


libm_sincos = ctypes.CDLL(ctypes.util.find_library("m")).sincos
libm_sincos.argtypes, libm_sincos.restype = (ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p), None


@numba.njit(error_model="numpy")
def sines(n: int, reach: float) -> float:
    """The sum of n sines and cosines of angles up to `reach`, by libm's sincos."""
    total, step = 0.0, reach / n
    s, c = np.empty(1), np.empty(1)
    for i in range(n):
        libm_sincos(step * i, s.ctypes, c.ctypes)
        total += s[0] + c[0]
    return total


def stepping(name: str, problem_name: str, dt: float) -> Callable[[], Any]:
    """A call that makes STEPS compiled steps from the initial state of a problem, without output."""
    problem = problems.get(problem_name)
    method = methods[name if problem.field is None else f"strang({name})"]
    run, rows = engine(problem, method), np.empty((2, COLUMNS))
    return lambda: run.advance(dt, 0.0, 0, STEPS, STEPS, STEPS, run.y, run.system, rows)


def best(calls: dict[Any, Callable[[], Any]]) -> dict[Any, float]:
    """Nanoseconds per step (or sine) of every call: the best of ROUNDS, alternating."""
    found = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for key, call in calls.items():
            began = time.perf_counter()
            call()
            found[key] = min(found[key], time.perf_counter() - began)
    return {key: 1e9 * seconds / STEPS for key, seconds in found.items()}


def measure() -> dict[str, Any]:
    """All figures of the benchmark."""
    pair = {kind: best({kind: functools.partial(sines, STEPS, reach)})[kind] for kind, reach in REACH.items()}
    calls: dict[Any, Callable[[], Any]] = {}
    for problem, dt in FORTRAN:
        for order in ORDERS:
            calls[problem, dt, order] = stepping(f"dmv{order}", problem, dt)
    ns = best(calls)
    rows = []
    for (problem, dt), theirs in FORTRAN.items():
        for order, fortran in zip(ORDERS, theirs, strict=True):
            ours = ns[problem, dt, order]
            scaled = {kind: fortran * pair[kind] / PAIR for kind in pair}
            rows.append({
                "method": f"dmv{order}", "problem": problem, "dt": dt, "ns_per_step": ours, "fortran_ns": fortran,
                "fortran_scaled": scaled, "ratio": {kind: ours / scaled[kind] for kind in scaled},
            })  # fmt: skip
    return {"machine": machine(), "sincos_ns": pair, "rows": rows}


def main() -> None:
    """Measure, print, and write with --out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    out = parser.parse_args().out
    result = measure()
    pair = result["sincos_ns"]
    print(f"sine and cosine: {pair['turn']:.2f} ns over a turn, {pair['small']:.2f} ns below 0.3 (theirs: {PAIR})")
    print("problem      dt    method  ns/step  Fortran  ours/scaled Fortran (turn, small)")
    for row in result["rows"]:
        ratio = row["ratio"]
        print(
            f"{row['problem']:10s} {row['dt']:5g}  {row['method']:6s} {row['ns_per_step']:8.1f} {row['fortran_ns']:8d}"
            f"    {ratio['turn']:.2f}  {ratio['small']:.2f}"
        )
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
