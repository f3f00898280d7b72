"""Body-steps per second of ensembles written to a store: one thread, all cores, a Dask cluster of two workers; memory.

    python benchmarks/sweep.py [--out benchmarks/results/sweep.json] [--scale 1.0]

Every case is a separate process, timed after a first run that compiles and imports. A figure is for a whole
run, from the call to the last write to disk. Memory is the largest resident set of a process (of a worker, for
Dask), minus its value before the run. Processor time is the sum over all threads, or all workers; on a shared machine
it is more informative than wall time. Ratios are to one thread, in the same run of this script.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

CASES = ("memory", "one thread", "all cores", "dask, 2 workers")
RUNS = {
    "ends only": {"bodies": 400_000, "steps": 1000, "every": None},
    "every tenth state": {"bodies": 40_000, "steps": 1000, "every": 10},
}
METHOD = "dmv10"


def crowd(number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.uniform(1, 1.9, (number, 3)), rng.normal(size=(number, 3))


def run(bodies: int, steps: int, every: int | None, **where: Any) -> float:
    moments, momenta = crowd(bodies)
    began = time.perf_counter()
    ph.ensemble(moments, None, momenta, METHOD, dt=0.01, steps=steps, every=every, **where)
    return time.perf_counter() - began


def peak() -> float:
    """Largest resident set of this process so far, in bytes."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(folder: Path, asked: dict[str, Any], where: dict[str, Any], ask: Any) -> dict[str, float]:
    """A small run, which compiles, then a large one; `ask` calls a function in all working processes."""
    stored = bool(where) or asked["stored"]
    size = {name: asked[name] for name in ("bodies", "steps", "every")}
    run(**(size | {"bodies": 64}), **(where | ({"out": folder / "first.zarr", "unit": 8} if stored else {})))
    before, used = max(ask(peak)), sum(ask(time.process_time))
    seconds = run(**size, **(where | ({"out": folder / "crowd.zarr"} if stored else {})))
    return {
        "seconds": seconds,
        "body_steps_per_second": asked["bodies"] * asked["steps"] / seconds,
        "memory_before": before,
        "memory_added": max(ask(peak)) - before,
        "processor_ns_per_body_step": (sum(ask(time.process_time)) - used) / (asked["bodies"] * asked["steps"]) * 1e9,
    }


def case(name: str, asked: dict[str, Any]) -> dict[str, float]:
    """One case, in this process."""
    asked["stored"] = name != "memory"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if name == "one thread":
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        if not name.startswith("dask"):
            return measured(folder, asked, {}, lambda f: [f()])
        from distributed import LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as two:
            client = two.get_client()
            return measured(folder, asked, {"scheduler": client}, lambda f: client.run(f).values())


def apart(name: str, asked: dict[str, Any]) -> dict[str, float]:
    """One case, in a separate process."""
    command = [sys.executable, __file__, "--case", name, "--asked", json.dumps(asked)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(found.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer bodies")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--asked", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(case(arguments.case, json.loads(arguments.asked))))
        return
    runs = []
    for label, asked in RUNS.items():
        asked = asked | {"bodies": int(arguments.scale * asked["bodies"])}
        found = {name: apart(name, asked) for name in CASES}
        one = found["one thread"]["seconds"]
        for name, figures in found.items():
            figures["times_one_thread"] = one / figures["seconds"]
            print(
                f"{label:18} {name:16} {figures['body_steps_per_second']:9.3g} body-steps/s "
                f"{figures['times_one_thread']:5.2f} x one thread, {figures['memory_added'] / 1e6:6.0f} MB added to "
                f"{figures['memory_before'] / 1e6:.0f} MB, {figures['processor_ns_per_body_step']:.1f} ns of processor",
                flush=True,
            )
        runs.append({"run": label, "method": METHOD, **asked, "cases": found})
    if arguments.out:
        machine = {
            "cores": len(os.sched_getaffinity(0)),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        versions = {name: version(name) for name in ("numba", "numpy", "zarr", "distributed")}
        arguments.out.write_text(json.dumps({"machine": machine, "versions": versions, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
