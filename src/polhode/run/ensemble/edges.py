"""Jumps of a field in time among the equal steps of an ensemble: all bodies are stepped in the same parts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ...physics.fields.edged import EXTRA
from ...physics.fields.switches import switch_parameters
from .. import control
from ..cut_steps import cut_at_edges, with_edges

if TYPE_CHECKING:
    from .task import Task


def cut(task: Task) -> Task:
    """Return the task that the loops run, with the edges of its field as data; the task itself if there are none."""
    if task.tolerance is not None or not same_edges(task):
        return task
    end = task.t0 + task.count * float(task.batch.dt[0])
    held = control.is_controlled(task.model)  # such steps are complete in themselves, for every method
    model = with_edges(task.model, end) if held else cut_at_edges(task.model, task.method, end)
    if model is task.model:
        return task
    values = task.batch.values
    values = np.concatenate([values, np.zeros((len(values), EXTRA))], axis=1)
    return dataclasses.replace(
        task, model=model, batch=dataclasses.replace(task.batch, field=model.field, values=values)
    )


def same_edges(task: Task) -> bool:
    """Return whether all bodies meet the jumps of the field in time in the same steps."""
    batch = task.batch
    if batch.field is None:
        return True
    deciding = batch.values[:, sorted(switch_parameters(batch.field))]
    return not batch.per_body_dt and bool((deciding == deciding[:1]).all())
