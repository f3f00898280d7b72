"""Elementary functions for torques and potentials, on every number type (``ph.math``).

In a function given to `ph.torque` or `ph.potential`, Python's own ``math`` means these too.
"""

import math as _float_math

from .scalar import (  # noqa: F401 - this file is the list of what users may call
    acos,
    asin,
    atan,
    atan2,
    cos,
    cosh,
    exp,
    log,
    power,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)
from .scalar import Number

pi = _float_math.pi
e = _float_math.e
tau = _float_math.tau


def pow(x: Number, y: Number) -> Number:
    """x**y."""
    return x**y


def fabs(x: Number) -> Number:
    """Absolute value."""
    return abs(x)


def hypot(x: Number, y: Number) -> Number:
    """Length of (x, y)."""
    return sqrt(x * x + y * y)


def radians(x: Number) -> Number:
    """Degrees to radians."""
    return x * pi / 180


def degrees(x: Number) -> Number:
    """Radians to degrees."""
    return x * 180 / pi


def copysign(x: Number, y: Number) -> Number:
    """|x| with the sign of y (+ for zero)."""
    return where(y < 0, -abs(x), abs(x))
