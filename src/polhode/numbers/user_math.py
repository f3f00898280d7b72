"""Elementary functions and vector products for torques and potentials, for every number type (``ph.math``).

In a function passed to `ph.torque` or `ph.potential`, Python's own ``math`` is replaced by these functions.
"""

import math as _float_math
from collections.abc import Iterable as _Iterable
from functools import reduce as _reduce
from typing import Any as _Any

from .nested import cross as _cross
from .nested import inner as _inner
from .nested import matmul as _matmul
from .primitives import acos, asin, atan, atan2, cos, cosh, exp, power, sin, sinh, sqrt, tan, tanh, where
from .primitives import log as _log
from .types import Number

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos", "cosh", "cross", "degrees", "dist",
    "dot", "e", "exp", "exp2", "fabs", "fsum", "hypot", "log", "log2", "log10", "matvec", "norm", "pi", "pow", "power",
    "prod", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "tau", "where",
]  # fmt: skip

pi = _float_math.pi
e = _float_math.e
tau = _float_math.tau


def log(x: Number, base: _Any = None) -> Number:
    """Natural logarithm, or the logarithm to another base."""
    return _log(x) if base is None else _log(x) / _log(base)


def log2(x: Number) -> Number:
    """Logarithm to base 2."""
    return log(x, 2)


def log10(x: Number) -> Number:
    """Logarithm to base 10."""
    return log(x, 10)


def exp2(x: Number) -> Number:
    """2**x."""
    return power(2, x)


def asinh(x: Number) -> Number:
    """Inverse hyperbolic sine."""
    return copysign(1, x) * _log(abs(x) + sqrt(x * x + 1))


def acosh(x: Number) -> Number:
    """Inverse hyperbolic cosine."""
    return _log(x + sqrt(x * x - 1))


def atanh(x: Number) -> Number:
    """Inverse hyperbolic tangent."""
    return _log((1 + x) / (1 - x)) / 2


def pow(x: Number, y: Number) -> Number:
    """x**y."""
    return x**y


def fabs(x: Number) -> Number:
    """Absolute value."""
    return abs(x)


def hypot(*coordinates: Number) -> Number:
    """Euclidean length of a vector, given its components."""
    return sqrt(fsum(x * x for x in coordinates))


def dist(a: _Iterable[Number], b: _Iterable[Number]) -> Number:
    """Distance between two points."""
    return hypot(*(x - y for x, y in zip(a, b, strict=True)))


def fsum(values: _Iterable[Number]) -> Number:
    """Sum."""
    return sum(values)


def prod(values: _Iterable[Number]) -> Number:
    """Product."""
    return _reduce(lambda x, y: x * y, values, 1)


def radians(x: Number) -> Number:
    """Degrees to radians."""
    return x * pi / 180


def degrees(x: Number) -> Number:
    """Radians to degrees."""
    return x * 180 / pi


def copysign(x: Number, y: Number) -> Number:
    """|x| with the sign of y (+ for zero)."""
    return where(y < 0, -abs(x), abs(x))


def cross(a: _Any, b: _Any) -> _Any:
    """Vector product a x b, as a vector with the arithmetic of arrays."""
    return _cross(a, b)


def dot(a: _Any, b: _Any) -> Number:
    """Scalar product a . b."""
    return _inner(a, b)


def matvec(A: _Any, v: _Any) -> _Any:
    """Matrix, given by its rows, times vector, as a vector with the arithmetic of arrays."""
    return _matmul(A, v)


def norm(a: _Any) -> Number:
    """Length of a vector: the root of a . a."""
    return sqrt(_inner(a, a))
