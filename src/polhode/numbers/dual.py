"""Dual numbers a + b eps, eps^2 = 0, over any number type: exact derivatives of kernels along directions.

Their parts may themselves be dual numbers of a lower `level`: then eps_1, eps_2, ... are independent, and the
coefficient of their product is a mixed derivative. For a higher level, a number of a lower level is a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dispatch, primitives
from .derivatives import _derivative
from .dispatch import register, register_tangents
from .primitives import FUNCTIONS


class Dual:
    """The number value + tangent eps, with the eps of one level."""

    __slots__ = ("level", "tangent", "value")
    __array_ufunc__ = None  # NumPy arrays defer the operation to this class

    def __init__(self, level: int, value: Any, tangent: Any) -> None:
        self.level, self.value, self.tangent = level, value, tangent

    def __add__(self, other: Any) -> Dual:
        level, a, b, c, d = _parts(self, other)
        return Dual(level, a + c, _sum(b, d))

    def __sub__(self, other: Any) -> Dual:
        level, a, b, c, d = _parts(self, other)
        return Dual(level, a - c, b if d is None else -d if b is None else b - d)

    def __mul__(self, other: Any) -> Dual:
        level, a, b, c, d = _parts(self, other)
        return Dual(level, a * c, _sum(None if b is None else b * c, None if d is None else a * d))

    def __truediv__(self, other: Any) -> Dual:
        level, a, b, c, d = _parts(self, other)
        value = a / c
        return Dual(level, value, _sum(None if b is None else b / c, None if d is None else -(value * d / c)))

    def __radd__(self, other: Any) -> Dual:
        return self + other

    def __rmul__(self, other: Any) -> Dual:
        return self * other

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __rtruediv__(self, other: Any) -> Dual:
        value = other / self.value
        return Dual(self.level, value, -(value * self.tangent / self.value))

    def __neg__(self) -> Dual:
        return Dual(self.level, -self.value, -self.tangent)

    def __abs__(self) -> Dual:
        return Duals.where(self < 0, -self, self)

    def __eq__(self, other: Any) -> Any:
        return plain(self) == plain(other)

    def __ne__(self, other: Any) -> Any:
        return plain(self) != plain(other)

    __hash__ = None  # type: ignore[assignment]  # a number with tangents is no key

    def __lt__(self, other: Any) -> Any:
        return plain(self) < plain(other)

    def __le__(self, other: Any) -> Any:
        return plain(self) <= plain(other)

    def __gt__(self, other: Any) -> Any:
        return plain(self) > plain(other)

    def __ge__(self, other: Any) -> Any:
        return plain(self) >= plain(other)


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _parts(x: Dual, y: Any) -> tuple[int, Any, Any, Any, Any]:
    """Return the higher level, then value and tangent of both at this level; a zero tangent is None."""
    if not isinstance(y, Dual) or y.level < x.level:
        return x.level, x.value, x.tangent, y, None
    if y.level > x.level:
        return y.level, x, None, y.value, y.tangent
    return x.level, x.value, x.tangent, y.value, y.tangent


def plain(x: Any) -> Any:
    """Return the value without any tangent."""
    while isinstance(x, Dual):
        x = x.value
    return x


def tangent(x: Any, level: int) -> Any:
    """Return the coefficient of eps at `level`, the highest that can occur; zero if x does not depend on it."""
    return x.tangent if isinstance(x, Dual) and x.level == level else 0 * plain(x)


class Duals:
    """The functions of dual numbers, under the names of `dispatch.Floats`."""

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        """Choose by a condition, separately for value and tangent."""
        level = max(x.level if isinstance(x, Dual) else 0 for x in (yes, no))
        if not level:
            return primitives.where(condition, yes, no)
        parts = [
            (x.value, x.tangent) if isinstance(x, Dual) and x.level == level else (x, 0 * plain(x)) for x in (yes, no)
        ]
        return Dual(level, *(Duals.where(condition, a, b) for a, b in zip(*parts, strict=True)))

    @staticmethod
    def bracket(x: Any, knots: Any) -> Any:
        """Index of the table interval that contains x."""
        return primitives.bracket(plain(x), knots)

    @staticmethod
    def epsilon() -> float:
        """Distance from 1 to the next double."""
        return dispatch.Floats.epsilon()

    @staticmethod
    def stop_gradient(x: Dual) -> Any:
        """Return the value without any tangent."""
        return plain(x)

    @staticmethod
    def tangent(x: Dual, i: int) -> Any:
        """Entry i of a tangent that is an array."""
        return x.tangent[i]

    @staticmethod
    def tangents_squared(x: Dual) -> Dual:
        """Return a number with the value zero and the tangents squared."""
        return Dual(x.level, 0 * x.value, x.tangent * x.tangent)

    @staticmethod
    def max_tangent_ratio(a: Dual, b: Dual) -> Any:
        """Largest quotient of the tangents."""
        pairs = zip(np.atleast_1d(a.tangent).tolist(), np.atleast_1d(b.tangent).tolist(), strict=True)
        return max(x / y if y != 0 else x for x, y in pairs)

    @staticmethod
    def power(x: Any, y: Any) -> Any:
        """The real power x**y = exp(y log x); a constant y contributes no tangent."""
        if isinstance(y, Dual):
            return primitives.exp(y * primitives.log(x))
        return Dual(x.level, primitives.power(x.value, y), y * primitives.power(x.value, y - 1) * x.tangent)

    @staticmethod
    def atan2(y: Any, x: Any) -> Any:
        """Angle of the point (x, y)."""
        level, a, b, c, d = _parts(y, x) if isinstance(y, Dual) else _parts(0 * x + y, x)
        square = a * a + c * c
        turned = _sum(None if b is None else b * c, None if d is None else -(a * d))
        return Dual(level, primitives.atan2(a, c), turned / square)


def _function(name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        value = getattr(primitives, name)(x.value)
        try:
            return Dual(x.level, value, _derivative(name, x.value, value) * x.tangent)
        except ZeroDivisionError:  # an infinite derivative matters only if the tangent is not zero
            if np.any(x.tangent != 0):
                raise
            return Dual(x.level, value, 0 * x.tangent)

    return function


for _name in FUNCTIONS:
    if not hasattr(Duals, _name):
        setattr(Duals, _name, staticmethod(_function(_name)))
register(Dual, Duals, built_on_others=True)


def seed_tangents(v: Any) -> Any:
    """Make three numbers independent variables; their tangents are arrays."""
    x, y, z = np.eye(3, dtype=int)
    return Dual(1, v[0], x), Dual(1, v[1], y), Dual(1, v[2], z)


def with_tangents(x: Any, tangents: tuple[Any, ...]) -> Dual:
    """Give a plain number tangents, an array."""
    return Dual(1, x, np.array(tangents))


register_tangents(Dual, seeder=seed_tangents, joiner=with_tangents)
