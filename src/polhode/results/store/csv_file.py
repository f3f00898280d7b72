"""Trajectories as tables: one line of a CSV file for each state."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from . import atomic

if TYPE_CHECKING:
    from ..trajectory import Trajectory

COLUMNS = {
    "t": ("t",),
    "quaternion": ("qw", "qx", "qy", "qz"),
    "omega": ("omega_x", "omega_y", "omega_z"),
    "momentum": ("momentum_x", "momentum_y", "momentum_z"),
    "spatial_momentum": ("spatial_momentum_x", "spatial_momentum_y", "spatial_momentum_z"),
    "energy": ("energy",),
}
"""The columns, by attributes of `Trajectory`."""


def new_path(path: str | Path, overwrite: bool) -> Path:
    """Return the path of a CSV file, if it may be written."""
    path = Path(path)
    if path.suffix != ".csv":
        raise InputError(f"a table must be a file that ends in .csv; got {path.name!r}")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another name or use --overwrite")
    return atomic.place_for(path)


def write(sol: Trajectory, path: str | Path, overwrite: bool = False) -> Path:
    """Write the states, every number with the digits that determine it, and replace the file at the end."""
    path = new_path(path, overwrite)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow([name for names in COLUMNS.values() for name in names])
            for part in sol.parts():
                table.writerows(_rows(part).tolist())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _rows(part: Any) -> np.ndarray:
    return np.column_stack([getattr(part, name) for name in COLUMNS])
