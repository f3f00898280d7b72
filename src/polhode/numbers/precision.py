"""Working precision of a run: the requested digits and guard digits."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

GUARD_DIGITS = 5
"""Digits carried beyond the requested ones."""


def guarded(digits: int | None) -> contextlib.AbstractContextManager[None]:
    """Set the working precision to `digits` + GUARD_DIGITS; None means doubles and changes nothing."""
    if digits is None:
        return contextlib.nullcontext()
    from .multiprecision import working  # mpmath takes long to import

    return working(digits + GUARD_DIGITS)


def in_digits(values: Any) -> np.ndarray:
    """Convert numbers to the working precision: doubles exactly, mpmath numbers with all their digits."""
    from .multiprecision import number

    given = np.atleast_1d(np.array(values, dtype=object))
    converted = np.empty(given.size, dtype=object)
    converted[:] = [number(x if hasattr(x, "_mpf_") else float(x)) for x in given.ravel()]
    return converted.reshape(given.shape)
