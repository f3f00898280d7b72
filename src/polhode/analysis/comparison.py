"""Comparison of many methods on one problem: choice of methods and steps, and output of the results."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _files, _version
from ..errors import StepError
from ..methods import Method
from ..methods import methods as registry
from ..physics.problem import Problem, Reference
from ..results.plain_data import plain
from ..results.trajectory import Trajectory
from ..run.solve import solve
from ..run.step_count import number_of_steps, signed_step
from .convergence import Row, by_method, measured_order, partial_of

LADDER = 7
"""Step sizes of a comparison, each half of the one before."""

COARSEST = 2.0
"""Largest rotation of the body in one step, in radians."""

KEPT_STATES = 1000
"""States recorded of each trajectory."""

TRAJECTORIES = "trajectories"
"""Folder of the trajectories, one file for each method."""


def default_methods(problem: Problem) -> list[Method]:
    """The methods compared by default.

    Among the methods that work with the problem's field: every implicit one of second order (the first of those with
    the same place in the literature), and among the explicit ones of second or higher order the first of each order
    in each source, one-step methods before multistep methods.
    """
    able = [m for m in registry.taking(problem.needs) if m.order == 2 or (m.order > 2 and not m.implicit)]
    able.sort(key=lambda m: m.memory > 0)
    places = {(m.cite, m.where if m.implicit else "", m.order): m for m in reversed(able)}
    return list(places.values())[::-1]


def default_steps(problem: Problem, t_end: float | None = None) -> list[float]:
    """A sequence of lengths of steps for a problem, each half of the one before.

    It starts with the problem's own largest step if that divides the time span; else with a round number of
    steps (1, 2, 5 times a power of ten).
    """
    end = problem.t_end if t_end is None else t_end
    span = abs((end if end is not None else problem.t0 + 1.0) - problem.t0)
    longest = None if problem.dt is None else abs(problem.dt)
    if longest is not None and abs(span / longest - round(span / longest)) < 1e-9:
        return [longest / 2**k for k in range(LADDER)]
    least = max(1.0, span * float(np.linalg.norm(problem.omega)) / COARSEST)
    power = 10.0 ** math.floor(math.log10(least))
    count = next(k * power for k in (1, 2, 5, 10) if k * power >= least * (1 - 1e-9))
    return [span / (count * 2**k) for k in range(LADDER)]


def middle(dts: Sequence[float]) -> float:
    """The step size shown in a table: the middle one."""
    return sorted(dts)[len(dts) // 2]


def trajectories(problem: Problem, methods: Iterable[Method], dt: float, t_end: float | None) -> list[Trajectory]:
    """One thinned trajectory of each method; for a failed run, the states before the failure."""
    every = max(1, number_of_steps(problem, signed_step(problem, dt, t_end, None), t_end, None) // KEPT_STATES)
    return [_drifts(problem, method, dt, t_end, every) for method in methods]


def _drifts(problem: Problem, method: Method, dt: float, t_end: float | None, every: int) -> Trajectory:
    try:
        return solve(problem, method, dt=dt, t_end=t_end, every=every, progress=False)
    except StepError as stop:
        return partial_of(stop)


def file_names(methods: Sequence[str]) -> dict[str, str]:
    """A file name for each method that needs no quotes in a shell: mkrk_rk4.nc for mkrk(rk4)."""
    stems = [re.sub(r"\W+", "_", method).strip("_") for method in methods]
    numbers = [stems[:i].count(stem) + 1 for i, stem in enumerate(stems)]
    names = [f"{stem}.nc" if n == 1 else f"{stem}-{n}.nc" for stem, n in zip(stems, numbers, strict=True)]
    return dict(zip(methods, names, strict=True))


def write_trajectories(folder: Path, paths: Sequence[Trajectory]) -> None:
    """Write one file for each method, which `ph.load`, `polhode view`, `polhode export` and xarray open."""
    folder.mkdir(exist_ok=True)
    names = file_names([path.method for path in paths])
    for path in paths:
        path.save(folder / names[path.method], overwrite=True)


def old_trajectories(folder: Path) -> list[Path]:
    """The files of trajectories that the comparison in a folder has written, by its results.json."""
    try:
        rows = json.loads(_files.text_of(folder / "results.json", "utf-8"))["rows"]
        names = file_names(list(dict.fromkeys(row["method"] for row in rows)))
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [folder / TRAJECTORIES / name for name in names.values()]


def table(rows: Iterable[Row], dt: float) -> list[tuple[Row, float]]:
    """One row per method at one step size, with its measured order, the smallest error first."""
    found = [(next(r for r in of if r.dt == dt), measured_order(of)) for of in by_method(rows).values()]
    return sorted(found, key=lambda pair: (math.isnan(pair[0].attitude_error), pair[0].attitude_error))


def facts(problem: Problem, reference: Reference, rows: Sequence[Row]) -> dict[str, Any]:
    """All results of a comparison."""
    return {
        "polhode_version": _version.__version__,
        "problem": problem.name,
        "reference": dataclasses.asdict(reference),
        "measured_order": {name: measured_order(of) for name, of in by_method(rows).items()},
        "rows": [dataclasses.asdict(row) for row in rows],
    }


def write_json(path: Path, problem: Problem, reference: Reference, rows: Sequence[Row]) -> None:
    """Write all results as JSON; NaN and infinities become null."""
    path.write_text(json.dumps(plain(facts(problem, reference, rows)), indent=1) + "\n", encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write all results as a table with one line per run."""
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Row)])
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in rows)
