"""Runs in files: loaded, stopped, resumed, made longer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polhode as ph

from .cases import END
from .check import Cell
from .runs import (
    ROUND_OFF,
    TIMES,
    Run,
)


def _through(suffix: str, run: Run, cell: Cell) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run{suffix}"
        more: dict[str, Any] = {} if run.equal else {"max_turn": 0.25}
        sol = run.solve(out=path)
        whole = run.base if run.equal else run.solve(**more)
        cell.same_path("run in a file", sol, whole)
        back = ph.load(path)
        cell.same_path("loaded", back, whole)
        if back.dense is not None and whole.dense is not None:
            one, other = back.at(TIMES), whole.at(TIMES)
            cell.close_states(
                "loaded, between steps", (one.quaternion, one.momentum), (other.quaternion, other.momentum),
                ROUND_OFF if run.equal else run.error,
            )  # fmt: skip


def zarr(run: Run, cell: Cell) -> None:
    """A run in a Zarr store is the run in memory."""
    _through(".zarr", run, cell)


def netcdf(run: Run, cell: Cell) -> None:
    """A run in a NetCDF file is the run in memory."""
    _through(".nc", run, cell)


class _Stop(Exception):
    """Stops a run by its progress."""


def resumed(run: Run, cell: Cell) -> None:
    """A run that is stopped and resumed is the run that was not, and so is one that is made longer."""
    with tempfile.TemporaryDirectory() as folder:
        whole = run.solve(out=Path(folder) / "whole.zarr")
        path, short = Path(folder) / "stopped.zarr", Path(folder) / "short.zarr"

        def stop(done: float) -> None:
            raise _Stop

        try:
            run.solve(out=path, progress=stop)
            cell.found.append("progress is not called, so that the run cannot be stopped")
        except _Stop:
            cell.same_path("stopped, then resumed", run.solve(out=path, resume=True), whole)
        if run.equal:
            run.solve(out=short, t_end=END / 2)
            cell.same_path("made longer", run.solve(out=short, resume=True), whole)
