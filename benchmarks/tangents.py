"""State-transition matrices: time at equal accuracy, against heyoka's variational equations and against plain runs.

    python benchmarks/tangents.py [--out benchmarks/results/tangents.json]

Every call has a new initial state and returns the state and its derivatives at the end. `heyoka` integrates the seven
equations with their 49 variational equations (needs the package heyoka). The error is that of the matrix
d(q, omega)/d(q, omega), relative to its largest entry, from a run with the smallest tolerance of heyoka, median over
the states. Contenders take turns in random order, each with several states in a row, as in a user's loop; times are
processor times, median. The last table compares many bodies in lanes, to a
step tolerance and with equal steps: the plain run, with one variation beside each body (`ph.chaos`, or as a word of
`statistics`), and the state-transition matrices (`tangent=True`). `--lanes` measures that table only.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from race.cases import Case, cases, equations

import polhode as ph
from polhode.analysis.bench import machine

STATES, TURNS = 48, 4
CASES = ("slow_top", "fast_top", "heavy_top")
OURS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13)
THEIRS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
TARGETS = (1e-6, 1e-9, 1e-11)
BODIES = 20_000
METHOD = "strang(dmv6)"


def ours(case: Case, step_tol: float) -> Callable[[np.ndarray], np.ndarray]:
    """The matrix of (d, Pi) at the end."""

    def call(start: np.ndarray) -> np.ndarray:
        sol = ph.solve(case.started(start), step_tol=step_tol, t_end=case.end, tangent=True)
        assert sol.tangent is not None
        return np.asarray(sol.tangent.matrix[-1])

    return call


def of_variables(case: Case, start: np.ndarray, end: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The matrix of (d, Pi) from the derivatives of (q, omega): d = 2 Im(q* dq), dq = q (0, d)/2."""
    inertia = np.diag(case.moments)

    def quaternion_rates(q: np.ndarray) -> np.ndarray:
        w, x, y, z = q
        return np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) / 2

    into, out_of = np.zeros((7, 6)), np.zeros((6, 7))
    into[:4, :3], into[4:, 3:] = quaternion_rates(start[:4]), np.linalg.inv(inertia)
    out_of[:3, :4], out_of[3:, 4:] = 4 * quaternion_rates(end[:4]).T, inertia
    return out_of @ slopes @ into


def heyoka_contender(case: Case, tol: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the call of heyoka with its variational equations."""
    import heyoka as hy

    names = hy.make_vars("a", "b", "c", "d", "u", "v", "w")
    rates = equations(case.moments, case.slope)(*names)
    system = hy.var_ode_sys(list(zip(names, rates, strict=True)), hy.var_args.vars, order=1)
    integrator = hy.taylor_adaptive(system, [1.0, 0, 0, 0, 0, 0, 0], tol=tol, compact_mode=False)
    first = integrator.get_vslice(order=1)
    eye = np.eye(7).ravel()

    def call(start: np.ndarray) -> np.ndarray:
        integrator.time = 0.0
        integrator.state[:7] = start
        integrator.state[first] = eye
        integrator.propagate_until(case.end)
        return of_variables(case, start, integrator.state[:7], integrator.state[first].reshape(7, 7))

    return call


def measured(calls: dict[tuple[str, float], Any], starts: np.ndarray, references: list[np.ndarray]) -> list[Any]:
    """Name, tolerance, median error and median time in microseconds of every contender."""
    times: dict[Any, list[float]] = {key: [] for key in calls}
    errors: dict[Any, list[float]] = {key: [] for key in calls}
    for call in calls.values():
        call(starts[0])
    order, turns = list(calls), np.array_split(np.arange(len(starts)), TURNS)
    shuffled = np.random.default_rng(0)
    for turn in turns:
        for place in shuffled.permutation(len(order)):
            key = order[place]
            for i in turn:
                began = time.process_time()
                found = calls[key](starts[i])
                times[key].append(1e6 * (time.process_time() - began))
                errors[key].append(abs(found - references[i]).max() / abs(references[i]).max())
    return [(*key, float(np.median(errors[key])), float(np.median(times[key]))) for key in calls]


def at_error(rows: list[Any], name: str, target: float) -> float:
    """Time at an error, interpolated in the logarithms; NaN beyond the measured ones."""
    points = sorted((error, took) for who, _, error, took in rows if who == name)
    errors, took = np.log([p[0] for p in points]), np.log([p[1] for p in points])
    return float(np.exp(np.interp(np.log(target), errors, took, left=np.nan, right=np.nan)))


def raced(case: Case) -> dict[str, Any]:
    """Race one case and print it."""
    starts = case.starts(STATES, 7)
    calls: dict[tuple[str, float], Any] = {("polhode", tol): ours(case, tol) for tol in OURS}
    if importlib.util.find_spec("heyoka"):
        calls |= {("heyoka", tol): heyoka_contender(case, tol) for tol in THEIRS}
        exact = heyoka_contender(case, 1e-18)
    else:
        exact = ours(case, 1e-15)
    rows = measured(calls, starts, [exact(start) for start in starts])
    found: dict[str, Any] = {"case": case.name, "rows": rows, "at": {}}
    for target in TARGETS:
        mine, theirs = (at_error(rows, name, target) if any(r[0] == name for r in rows) else np.nan
                        for name in ("polhode", "heyoka"))  # fmt: skip
        found["at"][f"{target:g}"] = mine, theirs
        print(
            f"{case.name:10} error {target:g}: {mine:8.0f} us, heyoka {theirs:8.0f}, ratio {theirs / mine:.2f}",
            flush=True,
        )
    return found


def lanes() -> dict[str, float]:
    """Processor time of many tops: plain, with a variation beside each, and with matrices."""
    top = ph.problems.heavy_top()
    omega = np.random.default_rng(0).normal(size=(BODIES, 3))
    runs: dict[str, dict[str, Callable[[], Any]]] = {}
    for tol in (1e-3, 1e-6, 1e-9, 1e-12):
        to_tol = functools.partial(ph.ensemble, top, omega=omega, step_tol=tol, t_end=20.0)
        runs[f"{tol:g}"] = {
            "plain": to_tol,
            "variation": functools.partial(ph.chaos, top, omega=omega, step_tol=tol, t_end=20.0),
            "matrices": lambda run=to_tol: run(tangent=True).tangent.matrix,
        }
    fixed = functools.partial(ph.ensemble, top, METHOD, omega=omega, dt=0.05, t_end=20.0)
    runs[METHOD] = {
        "plain": fixed,
        "variation": functools.partial(fixed, statistics="megno", every=400),
        "matrices": lambda: fixed(tangent=True).tangent.matrix,
    }
    found = {}
    for how, kinds in runs.items():
        took: dict[str, list[float]] = {name: [] for name in kinds}
        for run in kinds.values():
            run()
        for name in 3 * list(kinds):
            began = time.process_time()
            kinds[name]()
            took[name].append(1e6 * (time.process_time() - began) / BODIES)
        for name, times in took.items():
            found[f"{name}, {how}"] = min(times)
            ratio = min(times) / min(took["plain"])
            print(f"{how:14} {name:10} {min(times):8.2f} us for each of {BODIES} tops, {ratio:5.2f} times", flush=True)
    return found


def main() -> None:
    """Race all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--lanes", action="store_true")
    given = parser.parse_args()
    out = given.out
    record = {
        "machine": machine(),
        "cases": [raced(case) for case in cases() if case.name in CASES and not given.lanes],
        "lanes": lanes(),
    }
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
