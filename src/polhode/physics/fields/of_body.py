"""Parameters of built-in fields that are the inertia of the body on which they act."""

from __future__ import annotations

from typing import Any

import numpy as np

from .field import Field
from .registry import keywords, names
from .sums import SumField

PARAMETER = "inertia"
"""Name of this parameter in every built-in field that has one."""

SAME = 1e-9
"""Difference of two tensors, relative to their size, that is round-off."""


def inertia_parameters(field: Field | None) -> list[str]:
    """Names of the parameters of a field that are the inertia of its body."""
    if field is None:
        return []
    if isinstance(field, SumField):
        parts = field.template.parts
        return [full for i, name, full in field.template.names if name in inertia_parameters(parts[i])]
    made_for_a_body = field.name in names() and "body" in keywords(field.name)
    return [PARAMETER] if made_for_a_body and PARAMETER in field.values else []


def are_inertia(value: Any, tensors: np.ndarray) -> np.ndarray:
    """Whether a parameter, three moments, a tensor or one for each, is the inertia of these tensors (..., 3, 3)."""
    given = np.asarray(value, float)
    tensor = np.diag(given) if given.ndim == 1 else given
    return np.asarray(np.abs(tensors - tensor).max(axis=(-2, -1)) <= SAME * np.abs(tensor).max(axis=(-2, -1)))
