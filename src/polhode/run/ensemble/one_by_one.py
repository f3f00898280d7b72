"""Bodies with equal steps whose jumps differ from body to body: each is run by itself, as by `ph.solve`.

Lanes of a vector take the same steps, and a jump divides the step of one body only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...compile import threads
from ...compile.clock import Stopwatch
from ...errors import ResultWarning, SpeedWarning, StepError
from ...results.derivatives import Derivatives
from ...results.ensemble import Ensemble
from ...results.trajectory import Trajectory
from .. import control
from ..cut_steps import can_cut, crossed_edges
from ..located_steps import can_locate
from . import kept_times
from .edges import same_edges

if TYPE_CHECKING:
    from .task import Task

Body = TypeVar("Body")

MANY = 100
"""Bodies from which on a message says that they are run one by one."""

MANY_STEPS = 50_000
"""Steps of all bodies together from which on it says so too: they take about a second."""

JUMPS = (
    "{field} jumps at different steps for different bodies, so the {number} bodies are integrated one at a time, up to "
    "a thousand times slower than together; make the jump a steep slope (tanh)"
)
"""What it costs that steps end at jumps, and what to do."""


def needed(task: Task) -> bool:
    """Return whether equal steps of the bodies of a task end at jumps that differ from body to body.

    Statistics, stores and GPUs know lanes only, and derivatives of closed loops single bodies only.
    """
    controlled = control.is_controlled(task.model)
    watched = task.wanted is not None and not (controlled and task.stops is not None)
    if task.in_lanes or task.tolerance is not None or watched or task.device != "cpu" or task.lands:
        return False
    if controlled and task.tangent:
        return True
    if task.states and not controlled:
        return False
    cut = controlled or can_cut(task.model, task.method)
    return can_locate(task.model, task.method) or (cut and has_own_edges(task))


def has_own_edges(task: Task) -> bool:
    """Return whether bodies meet jumps of the field in time, each in other steps."""
    if same_edges(task):
        return False
    batch = task.batch
    counts = np.full(batch.number, task.count) if task.counts is None else task.counts
    return any(
        len(crossed_edges(batch.field_of(i), task.t0, task.t0 + int(counts[i]) * float(batch.of(batch.dt, i))))
        for i in range(batch.number)
    )


def run(task: Task) -> Ensemble:
    """Run the bodies of a task one after the other, and keep the states that it asks for."""
    many = kept_times.applied(task, _run(kept_times.inner(task) if task.stops is not None else task))
    if many.tangent is None or task.stops is None:
        return many
    return dataclasses.replace(many, tangent=many.tangent.some(kept_times.rows_of(task)))


def _run(task: Task) -> Ensemble:
    watch, number = Stopwatch(), task.batch.number
    if number > MANY or number * task.count > MANY_STEPS:
        warnings.warn(_why(task), SpeedWarning, stacklevel=6)
    found, runs = task.found(), list[Trajectory]()
    with retold(number):
        for i in told(range(number), number):
            sol, found[-1][i] = _motion(task, i)
            _write(sol, [array[:, i] for array in found[:3]], int(found[-1][i]), task.every)
            runs.append(sol)
    many = task.result(found, watch)
    return (
        dataclasses.replace(many, tangent=TangentsOfRuns(many.t, [sol.tangent for sol in runs]))
        if task.tangent
        else many
    )


def _why(task: Task) -> str:
    if task.tangent and control.is_controlled(task.model):
        return (
            f"derivatives under control are those of single runs, so that {task.batch.number} bodies are run one by one"
        )
    return JUMPS.format(field=task.model.field, number=task.batch.number)


def _motion(task: Task, i: int) -> tuple[Trajectory, int]:
    """Return the run of body i, and the number of the step that failed, or -1."""
    from ..solve import solve

    batch = task.batch
    count = task.count if task.counts is None else int(task.counts[i])
    how: dict[str, Any] = {"dt": float(batch.of(batch.dt, i)), "steps": count, "every": min(task.every, count)}
    problem, law = control.separated(task.problem(i))
    try:
        return solve(problem, task.method, **how, **law, progress=False, tangent=task.tangent), -1
    except StepError as failed:
        if failed.partial is None or task.tangent:
            raise
        return failed.partial, failed.partial.info.steps + 1


def _write(sol: Trajectory, arrays: list[np.ndarray], failed: int, every: int) -> None:
    """Write the states of a run; after a failed step they are NaN, except the last, which is the last good one."""
    good = len(sol) if failed < 0 else 1 + (failed - 1) // every
    for array, states in zip(arrays[:2], (sol.quaternion, sol.momentum), strict=True):
        array[:] = np.nan
        array[:good], array[-1] = states[:good], states[-1]
    numbers = [values.reshape(len(values), -1) for values in sol.states.values()]
    if numbers:  # without those at the start
        held = np.hstack(numbers)
        arrays[2][:] = np.nan
        arrays[2][: good - 1], arrays[2][-1] = held[1:good], held[-1]


def told(bodies: Iterable[Body], number: int) -> Iterator[Body]:
    """Yield bodies, and tell whoever watches which part of them is done."""
    for i, one in enumerate(bodies):
        threads.tell(i / number)
        yield one


@contextlib.contextmanager
def retold(number: int, but: type[Warning] | tuple[()] = ()) -> Iterator[None]:
    """Pass on the warnings of runs of bodies: each kind once, results with the number of bodies.

    Another message tells of those of the class `but`.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    told = [one for one in told if not issubclass(one.category, but)]
    results = [str(one.message) for one in told if issubclass(one.category, ResultWarning)]
    if results:
        warnings.warn(f"of {number} bodies, {len(results)} have this: {results[0]}", ResultWarning, stacklevel=8)
    for one in told:
        if not issubclass(one.category, ResultWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


class TangentsOfRuns(Derivatives):
    """Derivatives of the states of bodies that were run one by one; see `EnsembleTangent` for the attributes."""

    def __init__(self, t: np.ndarray, tangents: list[Any], rows: Any = slice(None)) -> None:
        self.t, self._tangents, self._rows = t[rows], tangents, rows

    def some(self, rows: np.ndarray) -> TangentsOfRuns:
        """Return those at some of the times."""
        return TangentsOfRuns(self.t, self._tangents, rows)

    def _stacked(self, read: Callable[[Any], np.ndarray]) -> np.ndarray:
        return np.stack([read(one)[self._rows] for one in self._tangents], 1)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Derivatives with respect to the initial states (n, N, 6, 6)."""
        return self._stacked(lambda one: one.matrix)

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """Derivatives with respect to the inertia (n, N, 6, 3); (n, N, 6, 3, 3) for tensors that are not diagonal."""
        return self._stacked(lambda one: one.inertia)

    @functools.cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Derivatives with respect to the parameters of the field, by name; empty if it has none."""
        names = self._tangents[0].params
        return {name: self._stacked(lambda one, name=name: one.params[name]) for name in names}  # type: ignore[misc]

    @property
    def symplectic_defect(self) -> np.ndarray:
        """Largest entry (n, N) of A^T W(Pi) A - W(Pi_0)."""
        return self._stacked(lambda one: one.symplectic_defect)
