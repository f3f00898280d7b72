"""mpmath numbers as a number type."""

from __future__ import annotations

from typing import Any

import mpmath

from ..scalar import Floats, register


class Mp:
    """mpmath's functions under the names kernels use."""

    sqrt, exp, log = mpmath.sqrt, mpmath.exp, mpmath.log
    sin, cos, tan = mpmath.sin, mpmath.cos, mpmath.tan
    asin, acos, atan, atan2 = mpmath.asin, mpmath.acos, mpmath.atan, mpmath.atan2
    sinh, cosh, tanh = mpmath.sinh, mpmath.cosh, mpmath.tanh
    power = mpmath.power

    @staticmethod
    def epsilon() -> Any:
        """Distance from 1 to the next number at the working precision."""
        return +mpmath.eps

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        """Choose by a condition."""
        return yes if condition else no

    piece = Floats.piece


register(mpmath.mpf, Mp)


def number(value: Any) -> Any:
    """A number of the working precision from an integer, a float (taken exactly), or a constant's name."""
    return +getattr(mpmath, value) if isinstance(value, str) else mpmath.mpf(value)
