"""Statistics of an ensemble at given times, from the states kept there.

They are evaluated at times that the user chooses and not at the adaptive steps: these are short where the motion is
fast, so that a mean over them would count fast phases more often.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...kernels.loops import COLUMNS, ROTATION
from ...kernels.so3 import mul
from ...kernels.state import summed
from ...numbers import floats
from ...numbers.arrays import components
from ...numbers.dispatch import kernel
from ...physics.fields.states import places
from ...physics.observers.statistics import Statistic, Watch, same_system
from ...physics.problem import Problem
from ...results.ensemble import Ensemble
from ..adaptive import Path

if TYPE_CHECKING:
    from .batch import BodyBatch
    from .task import Task


BLOCK = 4096
"""States of one body at which observables are evaluated together."""


def check_times(name: str, times: Any) -> None:
    """Refuse statistics of a run to a tolerance without times; `name` is that of the tolerance."""
    if times is None:
        raise InputError(
            f"with {name} give times=[...], at which statistics are evaluated: adaptive steps are shorter where the "
            "motion is fast, so that a mean over steps would count fast phases more often"
        )


def added(task: Task, many: Ensemble, variation: np.ndarray | None = None) -> Ensemble:
    """Return the result with statistics over its states; without times only the first and the last are kept."""
    assert task.wanted is not None
    found = statistics(task.wanted, task.batch, many, variation)
    many = dataclasses.replace(many, statistics=found, dense=None)
    if task.asked is not None:
        return many
    ends: dict[str, Any] = {name: getattr(many, name)[[0, -1]] for name in ("t", "quaternion", "momentum")}
    return dataclasses.replace(many, **ends, states={name: values[[0, -1]] for name, values in many.states.items()})


def statistics(
    wanted: Watch, batch: BodyBatch, many: Ensemble, variation: np.ndarray | None = None
) -> dict[str, Statistic]:
    """Return the statistics over the states of all bodies; those of a body that failed end before its failure.

    The kernels are those of the running statistics, applied to arrays with a number for each body. `variation` has
    the numbers of a variation beside each body, (n, N, k).
    """
    number, columns = len(many), Accumulators(wanted.columns, len(many))
    plain, system_of = ROTATION._replace(write=_no_state), same_system if variation is None else _with_variation
    space, opened = wanted.state_space(plain, False, 0, columns.read, columns.write, 0, system_of)
    samples, momentum = np.zeros(number, dtype=np.int64), many.momentum
    if many.inertia is not None:  # formulas read the states of the run, those of a constant inertia
        momentum = np.stack([batch.momentum_of(omega) for omega in many.omega])
    with np.errstate(all="ignore"):  # `failed` reports a body that blows up
        for k, t in enumerate(many.t.tolist()):
            y = _state(batch, many.quaternion[k], momentum[k])
            system = _system(batch, {name: values[k] for name, values in many.states.items()})
            if variation is not None:
                y = (*y, components(variation[k]))
            fine = np.isfinite(many.quaternion[k]).all(-1) & np.isfinite(many.momentum[k]).all(-1)
            columns.counted = fine & ((many.failed < 0) | (k < len(many.t) - 1))
            samples += columns.counted
            if k == 0:
                opened(columns, t, y, system)
            else:
                space.write(columns, 0, space.observe(t, y, system))
    return wanted.results(columns.numbers.T, samples)


def along(
    wanted: Watch, problem: Problem, path: Path, variation: np.ndarray | None = None
) -> dict[str, Statistic]:  # fmt: skip
    """Return the statistics over the states of one body, (n,) times and rows in principal axes, by the same formulas.

    Rows have the states of the field, and `variation` the numbers of a variation, (n, k).
    """
    from ...compile.lazily import program

    with np.errstate(all="ignore"):
        parts = [
            _values(wanted, problem, path.times[some], path.rows[some], None if variation is None else variation[some])
            for some in (slice(first, first + BLOCK) for first in range(0, len(path.times), BLOCK))
        ]
    values = np.concatenate(parts, axis=1)
    sums = np.zeros((len(values), 2))
    program(lambda: _add_up, "compensated sums").run(values, sums)
    return wanted.over(values, sums)


def _values(wanted: Watch, problem: Problem, t: np.ndarray, rows: np.ndarray, variation: Any) -> np.ndarray:
    """Return the values (components, n) of all observables at some states."""
    q, m, numbers = components(rows[:, :4]), components(rows[:, 4:COLUMNS]), components(rows[:, COLUMNS:])
    _, (inertia, inverse, parameters) = problem.kernel_data(floats.number)
    known: list[Any] = list(parameters)
    for place, number in zip(() if problem.field is None else places(problem.field), numbers, strict=False):
        known[place] = number  # a state of the field is a parameter by its name; those of a method follow
    system: tuple[Any, ...] = (inertia, inverse, tuple(known))
    if variation is not None:
        system = (*system, components(variation))
    return np.stack([np.broadcast_to(x, t.shape) for x in wanted.observed(t, q, m, system)])


def _add_up(values: Any, sums: Any) -> None:
    """Add up rows of numbers, to be compiled: sums and their low parts, as the loops accumulate them."""
    for j in range(len(values)):
        total, low = values[j, 0], 0.0 * values[j, 0]
        for k in range(1, values.shape[1]):
            total, low = summed(total, low, values[j, k])
        sums[j, 0], sums[j, 1] = total, low


class Accumulators:
    """The numbers that statistics accumulate, (columns, bodies); only those of the counted bodies change."""

    def __init__(self, columns: int, number: int) -> None:
        self.numbers, self.counted = np.full((columns, number), np.nan), np.ones(number, dtype=bool)

    @staticmethod
    @kernel
    def read(rows: Any, j: int) -> Any:
        """Return a column; columns are counted after those of the state."""
        return rows.numbers[j - COLUMNS].copy()

    @staticmethod
    @kernel
    def write(rows: Any, j: int, value: Any) -> None:
        """Replace a column where a body is counted."""
        rows.numbers[j - COLUMNS] = np.where(rows.counted, value, rows.numbers[j - COLUMNS])


@kernel
def _with_variation(y: Any, system: Any) -> Any:
    """The system that observables read, with the variation as its last part."""
    return (*system, y[2])


@kernel
def _no_state(rows: Any, i: int, y: Any) -> None:
    """Write no state: it is kept already."""


def _state(batch: BodyBatch, quaternion: np.ndarray, momentum: np.ndarray) -> Any:
    """Return states in principal axes, as tuples of components."""
    q, m = components(quaternion), batch.to_principal(components(momentum))
    return (q if batch.own is None else mul(q, components(batch.own))), m


def _system(batch: BodyBatch, states: Mapping[str, np.ndarray]) -> Any:
    """Return the moments, their inverses and the parameters of all bodies; the rotation of the axes follows.

    A state of the field is a parameter by its name, with its value at the moment.
    """
    parameters = list(components(batch.values))
    if batch.field is not None and batch.field.states and states:
        now = np.concatenate([states[name].reshape(batch.number, -1) for name in batch.field.states], axis=1)
        for place, numbers in zip(places(batch.field), components(now), strict=True):
            parameters[place] = numbers
    parameters += () if batch.own is None else components(batch.own)
    return components(batch.moments), components(batch.inverse_moments), tuple(parameters)
