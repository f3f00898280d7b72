"""How long the steps of many bodies may be, so that nothing a field does in time is stepped over."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...errors import ResultWarning
from ..schedule import PARTS, Bounds, longest_step
from .batch import BodyBatch

MOST_DIFFERENT = 32
"""Torques of time with different parameters that are sampled, each at many times."""


def longest_steps(batch: BodyBatch, t0: float, end: float, max_step: Any) -> np.ndarray:
    """The longest step of every body, or of all: a number that depends on the parameters of that body alone."""
    given = Bounds.of(t0, end, None, max_step).max_step
    first = batch.field_of(0)
    if first is None or longest_step(first, t0, end) == math.inf:  # whether it is depends on the formula
        return np.array([given])
    rows, body, which = np.unique(batch.values, axis=0, return_index=True, return_inverse=True)
    if len(rows) <= MOST_DIFFERENT:
        fields = [batch.field_of(int(i)) for i in body]
        return np.minimum([longest_step(field, t0, end) for field in fields if field], given)[which.ravel()]
    if given == math.inf:
        warnings.warn(
            f"the torque depends on time, with different parameters for more than {MOST_DIFFERENT} bodies: features "
            f"shorter than 1/{PARTS} of the run may be missed; give max_step, the longest step allowed",
            ResultWarning,
            stacklevel=4,
        )
    return np.array([min(given, (end - t0) / PARTS)])
