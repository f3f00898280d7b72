"""The operations on numbers that kernels may use, for every number type.

Kernels are plain functions on tuples of numbers. They use ``+ - * /``, comparisons, ``&`` and ``|``
between comparisons, ``abs``, and the primitives of this file; so the same source runs on floats,
mpmath numbers, NumPy arrays and traced expressions, and can be compiled. Only this file and `dispatch`
know that number types exist: each type registers, with `register`, the namespace of its functions.
"""

import math
from collections.abc import Callable
from typing import Any

from .dispatch import _HAVE_TANGENTS, _JOINERS, _SEEDERS, _space
from .types import Number, Vec3

FUNCTIONS = (
    *("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "exp", "log", "power"),
)
"""Names of the elementary functions every number type provides."""


def sqrt(x: Number) -> Number:
    """Square root."""
    return _space(x).sqrt(x)


def sin(x: Number) -> Number:
    """Sine."""
    return _space(x).sin(x)


def cos(x: Number) -> Number:
    """Cosine."""
    return _space(x).cos(x)


def tan(x: Number) -> Number:
    """Tangent."""
    return _space(x).tan(x)


def asin(x: Number) -> Number:
    """Inverse sine."""
    return _space(x).asin(x)


def acos(x: Number) -> Number:
    """Inverse cosine."""
    return _space(x).acos(x)


def atan(x: Number) -> Number:
    """Inverse tangent."""
    return _space(x).atan(x)


def atan2(y: Number, x: Number) -> Number:
    """Angle of the point (x, y)."""
    return _space(y, x).atan2(y, x)


def sinh(x: Number) -> Number:
    """Hyperbolic sine."""
    return _space(x).sinh(x)


def cosh(x: Number) -> Number:
    """Hyperbolic cosine."""
    return _space(x).cosh(x)


def tanh(x: Number) -> Number:
    """Hyperbolic tangent."""
    return _space(x).tanh(x)


def exp(x: Number) -> Number:
    """Exponential of a number (the rotation through a vector is `so3.exp`)."""
    return _space(x).exp(x)


def log(x: Number) -> Number:
    """Natural logarithm."""
    return _space(x).log(x)


def power(x: Number, y: Number) -> Number:
    """The real power x**y, x > 0."""
    return _space(x, y).power(x, y)


def sincos(x: Number) -> tuple[Number, Number]:
    """Sine and cosine of one angle."""
    return sin(x), cos(x)


def where(condition: Any, yes: Number, no: Number) -> Number:
    """Choose by a condition. Both sides are computed, so both must be finite.

    Examples
    --------
    >>> @ph.torque
    ... def pulse(t, strength):
    ...     return [ph.where(t < 1.0, strength, 0.0), 0.0, 0.0]
    ...
    >>> sol = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), pulse(0.1), omega=[0, 0, 0]), tol=1e-9, t_end=3.0)
    >>> float(sol.omega[-1, 0].round(9))
    0.1
    """
    return _space(condition, yes, no).where(condition, yes, no)


def bracket(x: Number, knots: Any) -> Any:
    """Return k with knots[k] <= x < knots[k + 1], clamped to the table; without tangents, only for `take`."""
    return _space(x).bracket(x, knots)


def take(index: Any, column: Any) -> Number:
    """Return column[index], a constant; the index comes from `bracket`."""
    return _space(index).take(index, column)


_TABLES: dict[Callable[[Any], Any], Callable[[Any], Any]] = {}


def register_table(number: Callable[[Any], Any], make: Callable[[Any], Any]) -> None:
    """Register how constants become a table of the number type that `number` converts to; by default a tuple."""
    _TABLES[number] = make


def table(values: tuple[float, ...], number: Callable[[Any], Any]) -> Any:
    """Make a table of constants: the knots of `bracket` or a column of `take`."""
    return _TABLES[number](values) if number in _TABLES else tuple(number(x) for x in values)


def whole(x: Number) -> Any:
    """The whole number that x holds, as an integer; for random numbers, whose arithmetic is that of integers."""
    return _space(x).whole(x)


def as_number(n: Any) -> Number:
    """An integer below 2^53 as a number."""
    return n.astype(float) if hasattr(n, "astype") else float(n)


def epsilon(x: Number) -> Number:
    """Distance from 1 to the next number of x's type."""
    return _space(x).epsilon()


def to_float32(x: Number) -> Number:
    """Convert to single precision if the type has one (SIMD vectors); otherwise return x."""
    return x


def to_float64(x: Number) -> Number:
    """Convert a single-precision number back to the usual type."""
    return x


def rough_log2(x: Number) -> Number:
    """Base-2 logarithm of a single-precision number x >= 0, to within 0.1; for zero, some number below -100."""
    return math.log2(max(x, 1e-300))


def rough_exp2(x: Number) -> Number:
    """2^x, to one part in a thousand."""
    return 2.0**x


def rough_power(x: Number, exponent: Number) -> Number:
    """x^exponent for x > 0, to one part in a thousand; the exponent is negative."""
    return rough_exp2(exponent * to_float64(rough_log2(to_float32(x))))


def has_fast_powers(x: Number) -> bool:
    """Whether a rough power takes less time than a quotient, as on a GPU."""
    return False


def pi_pair(x: Number) -> tuple[Number, Number]:
    """Return pi in the type of x, and its rounding error: pi to twice the precision."""
    pi = 4 * atan(0 * x + 1)
    return pi, sin(pi)


def workspace(like: Number, count: int) -> Any:
    """Workspace for `count` numbers of one type; write before reading. It is released when the kernel returns."""
    return [like] * count


def combined(weights: Any, rows: Any) -> Any:
    """Sum of weights[j] rows[j], in order from the first to the last; the weights are scalars.

    In compiled code a row is added as one vector.
    """
    totals = []
    for i in range(len(rows[0])):
        total = weights[0] * rows[0][i]
        for weight, row in zip(weights[1:], rows[1:], strict=True):
            total = total + weight * row[i]
        totals.append(total)
    return tuple(totals)


def store(work: Any, at: int, numbers: Any, places: str) -> None:
    """Write numbers to consecutive places of a workspace: `places` lists their indices, with "-" for an unused place.

    In compiled code eight places are a vector, with zeros in unused places.
    """
    for i, place in enumerate(places.split()):
        if place != "-":
            work[at + i] = numbers[int(place)]


def convolved(work: Any, left: int, right: int, stride: int, k: int, count: int, spare: int) -> Any:
    """Return `count` sums over 0 < j < k: work[left + i + stride j] work[right + i + stride (k - j)].

    In compiled code, for doubles only, the products of one j are vectors. `left`, `right`, `stride` and `spare` are
    multiples of eight, the numbers are written by `store`, k is 1, 2, ... in turn, and from `spare` on there is room
    for the sums of the next order.
    """
    totals = [0] * count
    for j in range(1, k):
        a, b = left + stride * j, right + stride * (k - j)
        totals = [total + work[a + i] * work[b + i] for i, total in enumerate(totals)]
    return tuple(totals)


def all_lanes(condition: Any) -> bool:
    """Whether the condition holds: for SIMD lanes, in all of them."""
    return bool(condition)


def absent(force: Any) -> bool:
    """Whether this is the torque on a free body, the integers of `fields.no_torque`; known at compile time."""
    return isinstance(force[0], int)


def finite(x: Number) -> Any:
    """Whether x is neither infinite nor NaN."""
    return x - x == 0


# --- numbers that carry tangents ----------------------------------------------------------------------


def stop_gradient(x: Any) -> Any:
    """Make a number, or nested tuples of numbers, constant: without tangents, not differentiated by JAX."""
    if isinstance(x, tuple):
        return tuple(stop_gradient(part) for part in x)
    constant = getattr(_space(x), "stop_gradient", None)
    return constant(x) if constant else x


def seed_tangents(v: Vec3) -> Vec3:
    """Make three plain numbers independent variables, with the tangents (1, 0, 0), (0, 1, 0), (0, 0, 1)."""
    return _SEEDERS[0](v)


def with_tangents(x: Number, tangents: tuple[Number, ...]) -> Number:
    """Give a plain number a tangent in each of several directions."""
    return _JOINERS[0](x, tangents)


def tangent(x: Number, i: int) -> Number:
    """Tangent in direction i of a number computed from `seed_tangents` or `with_tangents`, as a plain number."""
    return _space(x).tangent(x, i)


def tangents_squared(x: Number) -> Number:
    """Return a number with the value zero and the squares of x's tangents."""
    return _space(x).tangents_squared(x)


def max_tangent_ratio(a: Number, b: Number) -> Number:
    """Largest quotient of the tangents of a and b over all directions; they are not negative, and 0/0 counts as 0."""
    return _space(a).max_tangent_ratio(a, b)


def relative_tangents(x: Any) -> Number:
    """Return a number with the value zero and the squared relative tangents of the numbers in nested tuples.

    They are the sum of |tangents|^2/|values|^2 over all innermost tuples; tuples of zeros are left out.
    """
    numbers = [part for part in x if type(part) in _HAVE_TANGENTS]
    total = sum((relative_tangents(part) for part in x if isinstance(part, tuple)), 0)
    size = sum(stop_gradient(part) * stop_gradient(part) for part in numbers)
    return sum((tangents_squared(part) for part in numbers), 0 * size) / size + total if size > 0 else total
