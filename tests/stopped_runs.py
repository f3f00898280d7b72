"""Runs in files that are stopped and continued, for tests, and what their files hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import polhode as ph

TOP = ph.problems.fast_top()
KINDS = {
    "plain": "imidm", "memory": "abm4", "low parts": "compensated(strang(symrot))", "clock": "reversible(imidm)",
    "processed": "processed4(symrot)",
}  # fmt: skip
WALL_CLOCK = ("seconds", "digest")
"""The digest covers the seconds."""


class Stop(Exception):
    """A run that is stopped by its progress."""


def run(out: Path | str | None = None, **options: Any) -> ph.Trajectory:
    options = {"method": "imidm", "dt": 0.01, "steps": 100, "progress": False} | options
    return ph.solve(options.pop("problem", TOP), options.pop("method"), out=out, **options)


def stopped(path: Path | str, part: float = 0.4, **options: Any) -> ph.Trajectory:
    """Begin or continue a run, and stop it when this part of it is done."""

    def look(done: float) -> None:
        if done >= part:
            raise Stop

    with pytest.raises(Stop) as caught:
        run(path, **options, resume=True, progress=look)
    partial: ph.Trajectory = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    return partial


def contents(path: Path | str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every array of a file and every attribute that is not of the wall clock."""
    path = Path(path)
    with xarray.open_zarr(path) if path.suffix == ".zarr" else xarray.open_dataset(path) as data:
        arrays = {
            str(name): (a.dims, a.values.tobytes() if a.dtype.kind == "f" else a.values.tolist())
            for name, a in data.variables.items()
        }
        attributes = {k: v.tolist() if isinstance(v, np.ndarray | np.generic) else v for k, v in data.attrs.items()}
    return arrays, {k: v for k, v in attributes.items() if k not in WALL_CLOCK}


def assert_same(a: Path | str, b: Path | str) -> None:
    assert contents(a) == contents(b)


LISTENING = """if True:
    import signal
    from polhode.cli import main
    from polhode.results import recorder
    signal.signal(signal.SIGINT, signal.default_int_handler)
    recorder.FLUSH_SECONDS = 0.1  # rows are soon there
    main()
"""


def command(*args: str, **named: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", LISTENING, *args], text=True, **named)
