"""Adaptive runs of an ensemble backwards in time: runs with the negative unit of time, as for one body.

With t' = -t, omega' = -omega and Pi' = -Pi the motion runs forwards, in the torque T'(t', R, omega') = T(t, R, omega)
(`physics/units.py`). No number is rounded. Runs with equal steps need none of this: their steps are negative.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...physics.fields import Field
from ...physics.units import BACKWARD, ScaledField, rescaled

if TYPE_CHECKING:
    from .task import Task


def run(task: Task, found: tuple[np.ndarray, ...], forwards: Callable[[Task, Any], None]) -> None:
    """Run a task backwards into the arrays `found`; ``forwards(task, found)`` runs one forwards."""
    forwards(_reversed(task), found)
    _, momentum, extra_columns, _ = found
    np.negative(momentum, out=momentum)
    if task.batch.tangents is not None:
        extra_columns[..., -3:] *= -1  # a tangent ends with that of the momentum


def field_of(field: Field) -> ScaledField:
    """Return the field in a run backwards; its last parameters are those of the change of units."""
    return ScaledField(field, BACKWARD)


def _reversed(task: Task) -> Task:
    """Return the same motion with the negative unit of time."""
    batch = task.batch
    assert batch.field is not None
    field = field_of(batch.field)
    units = field.parameters[batch.values.shape[1] :]
    values = np.concatenate([batch.values, np.tile(units, (len(batch.values), 1))], axis=1)
    tangents = None if batch.tangents is None else batch.tangents.copy()
    if tangents is not None:
        tangents[:, 3:6] *= -1
    changed = dataclasses.replace(
        batch, field=field, values=values, momentum=-batch.momentum, dt=-batch.dt, tangents=tangents
    )
    stops = None if task.stops is None else -task.stops
    model = rescaled(task.model, BACKWARD)
    return dataclasses.replace(task, batch=changed, model=model, t0=0.0 - task.t0, stops=stops)
