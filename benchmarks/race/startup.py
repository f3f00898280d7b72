"""Start-up of a contender in a fresh process: seconds to import it, and from there to its first result.

python -m race.startup NAME      (in the folder benchmarks; prints the two as JSON)
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE, TOLERANCE = "heavy_top", 1e-9

PACKAGES = {
    "polhode": ("polhode",), "heyoka": ("heyoka",), "CyRK": ("numba", "CyRK"), "numbalsoda": ("numba", "numbalsoda"),
    "diffrax": ("jax", "diffrax"), "scipy": ("numba", "scipy.integrate"),
}  # fmt: skip
"""Packages of each tool, imported first, so that none is already imported for another tool."""


def alone(name: str) -> dict[str, float]:
    """Measure in this process."""
    began = time.perf_counter()
    for package in PACKAGES[name]:
        importlib.import_module(package)
    imported = time.perf_counter() - began
    from . import cases, contenders

    case = next(case for case in cases.cases() if case.name == CASE)
    contender = next(c for c in (contenders.OURS, *contenders.RIVALS) if c.name == name)
    began = time.perf_counter()
    attempt = contender.ladders(case)[contender.usual].attempt(TOLERANCE)
    assert attempt is not None
    attempt.call()
    return {"import_seconds": imported, "first_result_seconds": time.perf_counter() - began}


KEEPING = ("polhode", "heyoka")
"""Tools that cache compiled code on disk."""


def measured(name: str, cache: str) -> dict[str, float]:
    """Measure in a separate process, with a folder for compiled code."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)}
    environment |= {"POLHODE_CACHE": cache, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-m", "race.startup", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def all_of(names: list[str]) -> dict[str, dict[str, float]]:
    """Every contender with an empty cache; those that cache compiled code once more, with a warm cache."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            found[name] = measured(name, cache)
            if name in KEEPING:
                found[f"{name}, compiled before"] = measured(name, cache)
    return found


if __name__ == "__main__":
    print(json.dumps(alone(sys.argv[1])))
