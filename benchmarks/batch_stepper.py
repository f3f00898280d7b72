"""The stepper of many bodies against a plain copy of its arrays, and against steps written in NumPy and torch.

    python benchmarks/batch_stepper.py [--cuda] [--out benchmarks/results/batch_stepper.json] [METHOD ...]

All bodies have their own attitude, momentum and torque, which is held in the space frame over the step. The rivals
alternate in one run, and the best of many counts, which removes the load of a shared machine. `core_ns` is processor
time for each body-step, of all threads; `per_second` are body-steps by the clock. `copy` reads the attitudes, momenta
and torques and writes the first two, in the same groups and with the same threads: what memory allows. With `--cuda`
all arrays are tensors of torch on a GPU, and `TB/s` is the traffic of the step, 136 bytes for each body.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.analysis.bench import machine
from polhode.compile.program import program
from polhode.compile.threads import share_out

MOMENTS = (1.0, 1.5, 2.0)
DT = 0.01
SIZES = ((1_000_000, 1), (100_000, 1), (10_000, 1), (10_000, 100))
"""Bodies, and sub-steps in a call."""

ON_CARD = ((10_000, 1), (1_000_000, 1), (4_000_000, 1), (16_000_000, 1))
TRAFFIC = 136
"""Bytes that the step of a body reads and writes: attitude, momentum and torque; attitude and momentum."""


def states(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    q = rng.normal(size=(number, 4))
    return q / np.linalg.norm(q, axis=1)[:, None], rng.normal(size=(number, 3)), rng.normal(size=(number, 3)) / 100


# --- rivals -------------------------------------------------------------------------------------------


def rates(xp: Any, q: Any, pi: Any, torque: Any, inertia: Any) -> tuple[Any, Any]:
    """Q' = q omega/2 and Pi' = Pi x omega + R^T T, written for arrays of NumPy or torch."""
    w, v = q[:, :1], q[:, 1:]
    omega = pi / inertia
    scalar = -(v * omega).sum(1)[:, None]
    dq = xp.concatenate([scalar, w * omega + xp.linalg.cross(v, omega)], 1) / 2
    inner = 2 * xp.linalg.cross(-v, torque)
    body_torque = torque + w * inner + xp.linalg.cross(-v, inner)
    return dq, xp.linalg.cross(pi, omega) + body_torque


def euler(xp: Any, q: Any, pi: Any, torque: Any, inertia: Any) -> tuple[Any, Any]:
    dq, dpi = rates(xp, q, pi, torque, inertia)
    q = q + DT * dq
    return q / xp.sqrt((q * q).sum(1))[:, None], pi + DT * dpi


def rk4(xp: Any, q: Any, pi: Any, torque: Any, inertia: Any) -> tuple[Any, Any]:
    slopes: list[tuple[Any, Any]] = []
    for part in (0.0, DT / 2, DT / 2, DT):
        a, b = slopes[-1] if slopes else (0.0, 0.0)
        slopes.append(rates(xp, q + part * a, pi + part * b, torque, inertia))
    q, pi = (
        y + DT / 6 * (slopes[0][i] + 2 * slopes[1][i] + 2 * slopes[2][i] + slopes[3][i]) for i, y in enumerate((q, pi))
    )
    return q / xp.sqrt((q * q).sum(1))[:, None], pi


def copying() -> Callable[..., None]:
    def copy(q: Any, pi: Any, torque: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            for j in range(4):
                q[i, j] = 1.0000001 * q[i, j]
            for j in range(3):
                pi[i, j] += torque[i, j]

    return copy


def copy_loop(q: np.ndarray, pi: np.ndarray, torque: np.ndarray) -> Callable[[], None]:
    run = program(copying, "copy loop of benchmarks/batch_stepper").run
    return lambda: share_out(lambda begin, end: run(q, pi, torque, begin, end), len(q))


def rivals_on_card(methods: list[str], number: int, n: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """The same with tensors on a GPU; a call ends when the GPU has done it."""
    torch: Any = importlib.import_module("torch")
    wait = torch.cuda.synchronize
    q, pi, torque = (torch.from_numpy(a).cuda() for a in states(number))
    inertia = torch.tensor(MOMENTS, dtype=torch.float64, device="cuda")
    found: dict[str, tuple[int, Callable[[], Any]]] = {}
    for name in methods:
        step = ph.batch_stepper(MOMENTS, name, DT).step
        own = q.clone(), pi.clone(), torque
        found[name] = number * n, lambda step=step, s=own: (step(*s, frame="space", n=n), wait())
    a, b = q.clone(), pi.clone()
    found["copy"] = number, lambda: (a.mul_(1.0), b.add_(torque), wait())
    for scheme in (euler, rk4):
        found[f"torch {scheme.__name__}"] = number, lambda f=scheme: (f(torch, q, pi, torque, inertia), wait())
    return found


def rivals(methods: list[str], number: int, n: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Name -> (body-steps in a call, call)."""
    found: dict[str, tuple[int, Callable[[], Any]]] = {}
    for name in methods:
        q, pi, torque = states(number)
        step = ph.batch_stepper(MOMENTS, name, DT).step
        found[name] = number * n, lambda step=step, s=(q, pi, torque): step(*s, frame="space", n=n)
    found["copy"] = number, copy_loop(*states(number))
    q, pi, torque = states(number)
    inertia = np.array(MOMENTS)
    for scheme in (euler, rk4):
        found[f"NumPy {scheme.__name__}"] = number, lambda f=scheme: f(np, q, pi, torque, inertia)
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        tensors = [torch.from_numpy(a) for a in (q, pi, torque, inertia)]
        for scheme in (euler, rk4):
            found[f"torch {scheme.__name__}"] = number, lambda f=scheme: f(torch, *tensors)
    return found


# --- measurements -------------------------------------------------------------------------------------


def timed(calls: dict[str, tuple[int, Callable[[], Any]]], seconds: float) -> dict[str, dict[str, float]]:
    """Best times of calls that alternate."""
    best = {name: [np.inf, np.inf] for name in calls}
    for _, call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, (_, call) in calls.items():
            began, work = time.perf_counter(), time.process_time()
            for _ in range(3):
                call()
            passed = (time.perf_counter() - began) / 3, (time.process_time() - work) / 3
            best[name] = [min(old, new) for old, new in zip(best[name], passed, strict=True)]
    return {
        name: {"per_second": count / best[name][0], "core_ns": 1e9 * best[name][1] / count}
        for name, (count, _) in calls.items()
    }


def overhead(method: str) -> dict[str, float]:
    """Microseconds of processor time of a call for one body, with the same torque array and with a new one."""
    q, pi, torque = states(1)
    step = ph.batch_stepper(MOMENTS, method, DT).step
    others = [torque.copy() for _ in range(64)]
    found = {}
    for name, given in (("same arrays", [torque] * 64), ("new torque array", others)):
        step(q, pi, torque)
        best = np.inf
        for _ in range(200):
            work = time.process_time()
            for one in given:
                step(q, pi, one)
            best = min(best, time.process_time() - work)
        found[name] = 1e6 * best / len(given)
    return found


def on_processor(methods: list[str], seconds: float) -> dict[str, Any]:
    """Print and return the figures of the processor."""
    record: dict[str, Any] = {"sizes": []}
    for number, n in SIZES:
        rows = timed(rivals(methods, number, n), seconds)
        print(f"\nN = {number}, n = {n}: body-steps/s, core-ns a body-step, share of the copy, times NumPy rk4")
        for name, row in rows.items():
            row["share_of_copy"] = row["per_second"] / rows["copy"]["per_second"]
            row["times_numpy_rk4"] = rows["NumPy rk4"]["core_ns"] / row["core_ns"]
            print(
                f"{name:16} {row['per_second']:9.2e} {row['core_ns']:9.2f} {row['share_of_copy']:7.2f} "
                f"{row['times_numpy_rk4']:8.1f}",
                flush=True,
            )
        record["sizes"].append({"bodies": number, "n": n, "rows": rows})
    record["call_us"] = overhead(methods[0])
    print(f"\na call for one body, {methods[0]}, microseconds:", record["call_us"])
    return record


def on_card(methods: list[str], seconds: float) -> dict[str, Any]:
    """Print and return the figures of a GPU."""
    record: dict[str, Any] = {"sizes": []}
    for number, n in ON_CARD:
        rows = timed(rivals_on_card(methods, number, n), seconds)
        print(f"\nN = {number} on a GPU: body-steps/s, microseconds a call, TB/s, times torch rk4")
        for name, row in rows.items():
            row["us"], row["TB/s"] = 1e6 * number * n / row["per_second"], TRAFFIC * row["per_second"] / n / 1e12
            row["times_torch_rk4"] = row["per_second"] / rows["torch rk4"]["per_second"]
            print(
                f"{name:16} {row['per_second']:9.2e} {row['us']:9.1f} {row['TB/s']:7.2f} {row['times_torch_rk4']:8.1f}",
                flush=True,
            )
        record["sizes"].append({"bodies": number, "n": n, "rows": rows})
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=["fem", "buss2", "strang(dmv10)"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cuda", action="store_true", help="tensors of torch on a GPU instead of NumPy arrays")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each size")
    given = parser.parse_args()
    found = (on_card if given.cuda else on_processor)(given.methods, given.seconds)
    if given.out:
        record = {"machine": machine(), "moments": MOMENTS, "dt": DT, **found}
        given.out.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
