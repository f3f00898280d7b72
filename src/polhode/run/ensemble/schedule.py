"""Longest steps of the bodies of an ensemble, so that no step jumps over a feature of the field in time."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from ...errors import ResultWarning
from ...physics.fields import Field
from ...symbolic.expression import symbols_in
from ..schedule import PARTS, Bounds, has_pulses, longest_step
from . import backwards
from .batch import BodyBatch

MOST_DIFFERENT = 32
"""Largest number of different parameter sets for which a time-dependent torque is sampled."""

MOST_SEARCHED = 256
"""Largest number of different parameter sets for which pulses in time are looked for."""


def longest_steps(batch: BodyBatch, t0: float, end: float, max_step: Any) -> np.ndarray:
    """Return the longest step, one for each body or one for all; it depends on the body's parameters only."""
    given = Bounds.of(t0, end, None, max_step).max_step
    first = batch.field_of(0)
    if first is not None and first.states:
        if "t" not in symbols_in(itertools.chain(*first.coupled)):
            return np.array([given])
        given = abs(end - t0) / PARTS if max_step is None else given
    if first is None or not (first.states or _longest_step(first, t0, end) < math.inf):  # of the formula, not the body
        return np.array([given])
    rows, body, which = np.unique(batch.values, axis=0, return_index=True, return_inverse=True)
    if len(rows) <= MOST_DIFFERENT:
        fields = [batch.field_of(int(i)) for i in body]
        found = np.minimum([_longest_step(field, t0, end) for field in fields if field], given)
        return found[:1] if first.states and (found == given).all() else found[which.ravel()]
    if len(rows) <= MOST_SEARCHED:
        for field in map(batch.field_of, body.tolist()):
            shortest = np.array([_longest_step(field, t0, end) if field and _has_pulses(field, t0, end) else math.inf])
            if is_pulsed(shortest, abs(end - t0)):  # each body then has steps of its own
                return shortest
    if max_step is None:
        warnings.warn(
            f"the torque depends on time, with different parameters for more than {MOST_DIFFERENT} bodies: features "
            f"shorter than 1/{PARTS} of the run may be missed; give max_step, the longest step allowed",
            ResultWarning,
            stacklevel=4,
        )
    return np.array([given if first.states else min(given, abs(end - t0) / PARTS)])


def _longest_step(field: Field, t0: float, end: float) -> float:
    """Return the longest step that misses no feature of the field, in either direction of time."""
    return longest_step(field, t0, end) if end > t0 else longest_step(backwards.field_of(field), -t0, -end)


def _has_pulses(field: Field, t0: float, end: float) -> bool:
    return has_pulses(field, t0, end) if end > t0 else has_pulses(backwards.field_of(field), -t0, -end)


def is_pulsed(longest: np.ndarray | None, span: float) -> bool:
    """Return whether steps so short are too many for lanes, so that each body has steps of its own."""
    from ...compile.batch.adaptive_step import MOST

    return longest is not None and span > MOST * float(longest.min())
