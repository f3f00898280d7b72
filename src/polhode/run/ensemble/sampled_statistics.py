"""Statistics of an ensemble at given times, from the states kept there.

They are evaluated at times that the user chooses and not at the adaptive steps: these are short where the motion is
fast, so that a mean over them would count fast phases more often.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.loops import COLUMNS, ROTATION
from ...kernels.so3 import mul
from ...numbers.arrays import components
from ...numbers.dispatch import kernel
from ...physics.observers.statistics import Statistic, Watch, same_system
from ...results.ensemble import Ensemble

if TYPE_CHECKING:
    from .batch import BodyBatch
    from .task import Task


def added(task: Task, many: Ensemble, variation: np.ndarray | None = None) -> Ensemble:
    """Return the result with statistics over its states, of which only the first and the last are kept."""
    assert task.wanted is not None
    ends: dict[str, Any] = {name: getattr(many, name)[[0, -1]] for name in ("t", "quaternion", "momentum")}
    ends["states"] = {name: values[[0, -1]] for name, values in many.states.items()}
    found = statistics(task.wanted, task.batch, many, variation)
    return dataclasses.replace(many, **ends, statistics=found, dense=None)


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
    system, samples = _system(batch), np.zeros(number, dtype=np.int64)
    with np.errstate(all="ignore"):  # `failed` reports a body that blows up
        for k, t in enumerate(many.t.tolist()):
            y = _state(batch, many.quaternion[k], many.momentum[k])
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


def _system(batch: BodyBatch) -> Any:
    """Return the moments, their inverses and the parameters of all bodies; the rotation of the axes follows."""
    parameters = (*components(batch.values), *(() if batch.own is None else components(batch.own)))
    return components(batch.moments), components(batch.inverse_moments), parameters
