"""Conversion of exact numbers and named constants to doubles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .primitives import register_table

NAMED = {"pi": math.pi, "e": math.e, "nan": math.nan}


def number(value: Any) -> Any:
    """Return the double of an integer, a float, or the name of a constant; a column of data as it is."""
    if isinstance(value, np.ndarray):
        return value
    return NAMED[value] if isinstance(value, str) else float(value)


register_table(number, lambda values: np.array(values, dtype=float))  # a constant in compiled code
