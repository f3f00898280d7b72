"""How exact numbers and named constants become machine numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .primitives import register_table

NAMED = {"pi": math.pi, "e": math.e}


def number(value: Any) -> float:
    """A double from an integer, a float, or the name of a constant."""
    return NAMED[value] if isinstance(value, str) else float(value)


register_table(number, lambda values: np.array(values, dtype=float))  # which compiled code holds as a constant
