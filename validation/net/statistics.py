"""Statistics of one body: those of the states that the same call returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .check import Cell
from .faults import check_failure
from .runs import (
    EVENT,
    ROUND_OFF,
    TIMES,
    Run,
    event_at,
)


def _tilt(R: Any, omega: Any) -> Any:
    return R[2][2] * omega[0]


OBSERVED: dict[str, Callable[[Any], np.ndarray]] = {
    "energy": lambda sol: sol.energy,
    "omega": lambda sol: sol.omega,
    "momentum_norm": lambda sol: np.linalg.norm(sol.momentum, axis=-1),
    "spatial_momentum": lambda sol: sol.spatial_momentum,
    "_tilt": lambda sol: sol.matrix[:, 2, 2] * sol.omega[:, 0],
}
"""What statistics observe, from a path."""

ASKED = [_tilt if name == "_tilt" else name for name in OBSERVED]


def _compare_statistics(cell: Cell, found: Any, path: Any) -> None:
    """Claim that statistics are those of the states of a path."""
    for name, observed in OBSERVED.items():
        one, values = found[name], observed(path)
        expected = {
            "first": values[0], "last": values[-1], "min": values.min(axis=0), "max": values.max(axis=0),
            "mean": values.mean(axis=0),
        }  # fmt: skip
        for part, value in expected.items():
            cell.close(f"{name}.{part}", getattr(one, part), value, ROUND_OFF)


def statistics(run: Run, cell: Cell) -> None:
    """Statistics are those of the path that the same call returns, which is the path without them."""
    if run.equal:
        sol = run.solve(statistics=ASKED)
        cell.same_path("path with statistics", sol, run.base)
        _compare_statistics(cell, sol.statistics, sol)
    else:
        asked = np.array([0.0, *TIMES])
        sol = run.solve(statistics=ASKED, times=asked)
        cell.same_path("path with statistics", sol, run.base.at(asked))
        _compare_statistics(cell, sol.statistics, sol)


def statistics_to_an_event(run: Run, cell: Cell) -> None:
    """Statistics end where the run ends."""
    event = event_at(run, terminal=True)
    if run.equal:
        sol = run.solve(statistics=ASKED, events=event)
        cell.claim(abs(sol.t[-1] - EVENT) < 1e-9, f"ends at {sol.t[-1]!r}, not at {EVENT}")
        _compare_statistics(cell, sol.statistics, sol)
    else:  # the end is not among the times asked for
        asked = np.array([0.0, *TIMES])
        sol = run.solve(statistics=ASKED, events=event, times=asked)
        cell.same("times up to the event", sol.t, asked[asked < EVENT])
        seen = run.solve(events=event).at([*sol.t, *sol.events[0].t])
        _compare_statistics(cell, sol.statistics, seen)


def statistics_of_a_failure(run: Run, cell: Cell) -> None:
    """A step that fails leaves the states before it."""
    asked = {} if run.equal else {"times": np.array([0.0, *TIMES])}
    check_failure(run, cell, statistics=["omega"], **asked)
