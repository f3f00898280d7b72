"""Bodies to a tolerance in fields with branches: each is run by itself, as by `ph.solve`, which locates jumps.

Lanes of a vector take their steps together, and a jump ends the step of one body only.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compile.clock import Stopwatch
from ...errors import ResultWarning, StepError
from ...physics.fields import Field
from ...physics.fields.variation import PREFIX, SIZE, STATE, VariationField
from ...physics.problem import Problem
from ...results import convert
from ...results.ensemble import Ensemble
from ..schedule import Bounds
from ..step_control import has_series, is_smooth
from .one_by_one import TangentsOfRuns

if TYPE_CHECKING:
    from .task import Task


def needed(field: Field | None) -> bool:
    """Return whether bodies in a field are run by themselves: it has branches, and a Taylor series on each of them."""
    if isinstance(field, VariationField):
        field = field.template.base
    return field is not None and not is_smooth(field) and has_series(field) and not field.opaque


@dataclasses.dataclass
class _Motion:
    """One body at the kept times: attitudes, momenta, steps, failed step or -1, estimated error, and method."""

    quaternion: np.ndarray
    momentum: np.ndarray
    steps: int
    failed: int
    error: float
    method: str


def run(task: Task) -> Ensemble:
    """Run the bodies of a task one after the other."""
    watch, batch = Stopwatch(), task.batch
    assert task.stops is not None
    times = np.append(task.t0, task.stops)
    motions = [_motion(task, _without_variation(task.problem(i))) for i in range(batch.number)]
    states = {PREFIX + STATE: _variations(task, times)} if isinstance(batch.field, VariationField) else {}
    return Ensemble(
        times, np.stack([x.quaternion for x in motions], 1),
        np.stack([x.momentum for x in motions], 1), np.broadcast_to(batch.moments, (batch.number, 3)),
        np.array([x.failed for x in motions]), motions[0].method, watch.seconds,
        steps=np.array([x.steps for x in motions]), bodies=batch.bodies, tol=task.tol,
        error_estimate=None if task.tol is None else np.array([x.error for x in motions]),
        compile_seconds=watch.compile_seconds, states=states,
        tangent=_tangents(task, times) if task.tangent else None,
    )  # fmt: skip


def _without_variation(problem: Problem) -> Problem:
    """Return a problem without the variation of its motion, if it has one."""
    field = problem.field
    if not isinstance(field, VariationField):
        return problem
    made = copy.copy(problem)
    made.field = field.template.base
    return made


def _variations(task: Task, times: np.ndarray) -> np.ndarray:
    """Return the states (n, N, 10) of the variations of all bodies; NaN where the tangents of a run do not exist."""
    from ..variation_along import variation_along

    found, lost = np.full((len(times), task.batch.number, SIZE), np.nan), list[str]()
    for i in range(task.batch.number):
        problem = task.problem(i)
        assert isinstance(problem.field, VariationField)
        try:
            found[:, i] = variation_along(_without_variation(problem), problem.field, times, _how(task))
        except StepError as failed:
            lost.append(str(failed))
    if lost:
        warnings.warn(
            f"{len(lost)} of {task.batch.number} bodies have no chaos indicators (NaN): {lost[0]}",
            ResultWarning, stacklevel=4,
        )  # fmt: skip
    return found


def _tangents(task: Task, times: np.ndarray) -> TangentsOfRuns:
    """Return the derivatives along the runs of all bodies."""
    from ..solve import solve

    found = []
    for i in range(task.batch.number):
        sol = solve(task.problem(i), **_how(task), t_end=float(times[-1]), tangent=True)
        assert sol.tangent is not None
        found.append(sol.tangent.at(times))
    return TangentsOfRuns(times, found)


def _how(task: Task) -> dict[str, Any]:
    """Return the arguments of `solve` for the bodies of a task."""
    tolerance = {"step_tol": task.step_tol} if task.tol is None else {"tol": task.tol}
    return tolerance | {"max_step": None if task.longest is None else float(task.longest[0])}


def _motion(task: Task, problem: Problem) -> _Motion:
    from ..tolerance import Wish, run_to

    assert task.stops is not None
    end, times = float(task.stops[-1]), np.append(task.t0, task.stops)
    longest = math.inf if task.longest is None else float(task.longest[0])
    bounds = Bounds.of(task.t0, end, None, longest) if longest < math.inf else Bounds()
    found = run_to(problem, end, Wish(*_tolerance(task), bounds=bounds))
    path, steps = found.path, len(found.path.times) - 1
    rows = found.run.state_at(times, path.times, path.rows) if path.finished else None
    if rows is None:  # the last state is then the last good one
        rows = np.full((len(times), path.rows.shape[1]), np.nan)
        rows[0], rows[-1] = path.rows[0], path.rows[-1]
    data = convert.states(problem, times, rows, None)
    failed = -1 if path.finished else steps + 1
    return _Motion(data["quaternion"], data["momentum"], steps, failed, found.error or 0.0, found.method)


def _tolerance(task: Task) -> tuple[Any, bool]:
    return (task.step_tol, True) if task.tol is None else (task.tol, False)
