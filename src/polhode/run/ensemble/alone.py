"""Bodies to a tolerance that are run one by one, as by `ph.solve`: with branches, under control, without a formula.

Lanes of a vector take their steps together, and a jump or a pulse ends the step of one body only.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compile.clock import Stopwatch
from ...errors import ResultWarning, SpeedWarning, StepError, ToleranceWarning
from ...kernels.loops import COLUMNS
from ...physics.control.controller import control_in
from ...physics.fields import Field
from ...physics.fields.variation import PREFIX, SIZE, STATE, VariationField
from ...physics.problem import Problem
from ...results import convert
from ...results.ensemble import Ensemble
from ...results.trajectory import Trajectory
from .. import control
from ..schedule import Bounds
from ..step_control import has_series, is_smooth
from . import one_by_one
from .memory import check_memory

if TYPE_CHECKING:
    from .task import Task


def needed(field: Field | None) -> bool:
    """Return whether bodies in a field are run by themselves.

    It has branches, and a Taylor series on each of them; it contains a controller; or it is no formula.
    """
    if isinstance(field, VariationField):
        field = field.template.base
    if field is None:
        return False
    return field.opaque or control_in(field) is not None or (not is_smooth(field) and has_series(field))


@dataclasses.dataclass
class _Motion:
    """One body at the kept times: attitudes, momenta, steps, failed step or -1, estimated error, method, and so on."""

    quaternion: np.ndarray
    momentum: np.ndarray
    steps: int
    failed: int
    error: float
    method: str
    states: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    tangent: Any = None


def run(task: Task) -> Ensemble:
    """Run the bodies of a task one after the other."""
    watch, batch = Stopwatch(), task.batch
    if batch.number > one_by_one.MANY:
        warnings.warn(_reason(task), SpeedWarning, stacklevel=5)
    check_memory(len(task.kept) * batch.number, COLUMNS + task.states)
    with one_by_one.retold(batch.number, but=ToleranceWarning):
        problems = (_without_variation(task.problem(i)) for i in range(batch.number))
        motions = [_motion(task, *control.separated(problem)) for problem in one_by_one.told(problems, batch.number)]
    assert task.stops is not None
    times, first = np.append(task.t0, task.stops), motions[0]
    states = {name: np.stack([x.states[name] for x in motions], 1) for name in first.states}
    if isinstance(batch.field, VariationField):
        states[PREFIX + STATE] = _variations(task, times)
    return Ensemble(
        times, np.stack([x.quaternion for x in motions], 1),
        np.stack([x.momentum for x in motions], 1), np.broadcast_to(batch.moments, (batch.number, 3)),
        np.array([x.failed for x in motions]), first.method, watch.seconds,
        steps=np.array([x.steps for x in motions]), bodies=batch.bodies, tol=task.tol,
        error_estimate=None if task.tol is None else np.array([x.error for x in motions]),
        compile_seconds=watch.compile_seconds, states=states,
        tangent=one_by_one.TangentsOfRuns(times, [x.tangent for x in motions]) if task.tangent else None,
    )  # fmt: skip


def _reason(task: Task) -> str:
    """Return why bodies are run one by one."""
    field, singly = task.batch.field, f"so that the {task.batch.number} bodies are run one by one"
    if control.is_controlled(task.model):
        return f"adaptive steps end at the samples and pulses of each body, {singly}"
    if task.pulsed:
        return f"the torque has pulses that are too short for the steps of SIMD lanes, {singly}"
    if field is not None and field.opaque:
        return f"lanes take adaptive steps in torques that are formulas, {singly}"
    return one_by_one.JUMPS.format(field=task.model.field, number=task.batch.number)


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


def _how(task: Task) -> dict[str, Any]:
    """Return the arguments of `solve` for the bodies of a task."""
    tolerance: dict[str, Any] = {"step_tol": task.step_tol} if task.tol is None else {"tol": task.tol}
    return tolerance | {"max_step": None if task.longest is None else float(task.longest[0])}


def _motion(task: Task, problem: Problem, law: dict[str, Any]) -> _Motion:
    """Return the motion of a body; `law` has the arguments of its controller."""
    from ..tolerance import Wish, run_to

    if law or task.tangent:
        return _with_controller_or_tangent(task, problem, law)
    assert task.stops is not None
    end, times = float(task.stops[-1]), np.append(task.t0, task.stops)
    longest = math.inf if task.longest is None else float(task.longest[0])
    bounds = Bounds.of(task.t0, end, None, longest) if longest < math.inf else Bounds()
    found = run_to(problem, end, Wish(*_tolerance(task), bounds=bounds))
    path, steps = found.path, len(found.path.times) - 1
    reached = _reached(times, path.times[-1])
    rows = np.full((len(times), path.rows.shape[1]), np.nan)
    rows[0], rows[-1] = path.rows[0], path.rows[-1]
    between = found.run.state_at(times[:reached], path.times, path.rows)
    if between is not None:
        rows[:reached] = between
    fine = path.finished and between is not None
    data = convert.states(problem, times, rows, None)
    error = found.error if fine and found.error is not None else math.nan
    return _Motion(data["quaternion"], data["momentum"], steps, -1 if fine else steps + 1, error, found.method)


def why_failed(task: Task, i: int) -> str:
    """Return the sentence of `ph.solve` on the run of a body that failed."""
    from ..solve import solve

    assert task.stops is not None
    problem, law = control.separated(_without_variation(task.problem(i)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solve(problem, **_how(task), **law, t_end=float(task.stops[-1]), progress=False)
    except StepError as failed:
        return failed.reason
    return "it failed with other steps only"


def _reached(times: np.ndarray, last: float) -> int:
    """Return the number of times that a run has passed whose last state is at a time."""
    return int(np.count_nonzero((times - last) * np.sign(times[-1] - times[0]) <= 0))


def _with_controller_or_tangent(task: Task, problem: Problem, law: dict[str, Any]) -> _Motion:
    from ..solve import solve

    assert task.stops is not None
    times = np.append(task.t0, task.stops)
    try:
        sol = solve(problem, **_how(task), **law, times=times, progress=False, tangent=task.tangent)
    except StepError as stop:
        if stop.partial is None or stop.partial.dense is None or task.tangent:  # no failed step
            raise
        return _failed(stop.partial, times)
    error = math.nan if sol.error_estimate is None else sol.error_estimate
    return _Motion(sol.quaternion, sol.momentum, sol.info.steps, -1, error, sol.method, sol.states, sol.tangent)


def _failed(sol: Trajectory, times: np.ndarray) -> _Motion:
    """Return the motion of a body of which a step failed: its states until then, NaN, and the last good state."""
    reached = min(_reached(times, sol.t[-1]), len(times) - 1)  # the last state stands in the last row
    before, last = sol.at(times[:reached]), sol.last()

    def padded(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        lost = np.full((len(times) - len(start) - 1, *end.shape[1:]), np.nan)
        return np.concatenate([start, lost, end])

    return _Motion(
        padded(before.quaternion, last.quaternion), padded(before.momentum, last.momentum), sol.info.steps,
        sol.info.steps + 1, math.nan, sol.method,
        {name: padded(before.states[name], values) for name, values in last.states.items()},
    )  # fmt: skip


def _tolerance(task: Task) -> tuple[Any, bool]:
    return (task.step_tol, True) if task.tol is None else (task.tol, False)
