"""``polhode doctor``."""

from __future__ import annotations

import dataclasses
import os
from importlib import metadata
from typing import Any

import typer

from ..compile import notice
from ..compile.clock import Stopwatch
from ..errors import InputError
from .console import EXAMPLE, FAILED, AsJson, app, duration, examples, guarded, print_json, small

DOCTOR_HELP = examples("polhode doctor", "polhode doctor --json")

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "mpmath", "xarray", "zarr", "h5py", "matplotlib")
OPTIONAL = ("jax", "numba-cuda", "dask", "trimesh", "jplephem")

TESTS = {"free_body": 0.25, "fast_top": 0.005}
"""Problems of the self-test, which have exact solutions, each with its step size."""

SPAN = 2.0
RATIO = (3.9, 4.1)
"""Halving the step divides the error of a method of order 2 by 4."""


@dataclasses.dataclass(frozen=True)
class Check:
    """A comparison of a compiled run with the exact solution."""

    problem: str
    error: float
    ratio: float
    seconds: float

    @property
    def passed(self) -> bool:
        """True if the error shrinks with the order of the method."""
        return RATIO[0] < self.ratio < RATIO[1]


@app.command("doctor", epilog=DOCTOR_HELP)
@guarded
def doctor_command(as_json: AsJson = False) -> None:
    """Show versions, processor, GPU and cache, and compare two short runs with exact solutions."""
    facts = {**_software(), **_hardware(), **_cache()}
    watch = Stopwatch()
    with notice.shown(notice.has_reader()):  # the runs within are silent
        checks = [_check(name, dt) for name, dt in TESTS.items()]
    fine = all(check.passed for check in checks)
    if as_json:
        told = [dataclasses.asdict(check) | {"passed": check.passed} for check in checks]
        print_json(facts | {"self_test": told, "compile_seconds": watch.compile_seconds})
    else:
        for name, value in facts.items():
            text = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            typer.echo(f"{name:<14}{text}")
        for check in checks:
            typer.echo(f"{'self-test':<14}{_told(check)}")
        ready = duration(watch.compile_seconds)
        typer.echo(f"{'time':<14}{duration(watch.seconds)}, and {ready} for compiling or loading compiled code")
        typer.secho("all is well" if fine else "the self-test failed: please report it with the lines above", bold=True)
    if not fine:
        raise typer.Exit(FAILED)


def _told(check: Check) -> str:
    verdict = "passed" if check.passed else "FAILED"
    return (
        f"{verdict}: {check.problem} by {EXAMPLE}, error {small(check.error)} against the exact solution, "
        f"{check.ratio:.3f} times less with half the step (expected: 4); {duration(check.seconds)}"
    )


def _software() -> dict[str, Any]:
    from ..analysis.bench import machine

    found = machine()
    there = {}
    for name in (*PACKAGES, *OPTIONAL):
        try:
            there[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            there[name] = "missing" if name in PACKAGES else "not installed (optional)"
    return {
        "polhode": found["polhode"],
        "Python": found["python"],
        "system": found["system"],
        "packages": there,
        "processor": found["processor"],
    }


def _hardware() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "GPU": _gpu(),
    }


def _gpu() -> str:
    """The GPU that an ensemble with device="cuda" would use, or why there is none."""
    from ..compile import cuda

    try:
        found = cuda.card()
    except (InputError, ImportError) as fault:
        return f"none: {fault}"
    name = getattr(found.get_current_device(), "name", b"")
    return name.decode() if isinstance(name, bytes) else str(name)


def _cache() -> dict[str, Any]:
    from ..compile import disk_cache

    root = disk_cache.cache_folder()
    found = disk_cache.entries(root)
    size = disk_cache.shown(sum(entry.size for entry in found))
    parent = next(folder for folder in (root, *root.parents) if folder.exists())
    note = "" if os.access(parent, os.W_OK) else ": NOT WRITABLE, so every process compiles anew"
    return {"cache": f"{root}, {len(found)} compiled functions, {size}{note}"}


def _check(name: str, dt: float) -> Check:
    """Errors of the example method with a step and with half of it."""
    from ..physics import library
    from ..results.observables import attitude_error
    from ..run.exact import exact
    from ..run.solve import solve

    problem = library.get(name)
    truth = exact(problem, [problem.t0 + SPAN]).matrix[-1]
    errors, seconds = [], 0.0
    for step in (dt, dt / 2):
        sol = solve(problem, EXAMPLE, dt=step, t_end=problem.t0 + SPAN, every=10**9, progress=False)
        errors.append(attitude_error(sol.matrix[-1], truth))
        seconds += sol.seconds
    return Check(name, errors[1], errors[0] / errors[1], seconds)
