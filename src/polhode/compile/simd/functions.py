"""Elementary functions of vectors of doubles, to about one unit in the last place.

Range reduction and a Taylor polynomial with exact coefficients; rare arguments (an angle of a million turns, an
infinity, a denormal) are passed to the C library, lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.polynomial import Chebyshev, Polynomial

from .vector_types import LANES, everywhere, exponent, extract, insert, power_of_two, select

OPTIONS = {
    "error_model": "numpy", "nogil": True, "forceinline": True, "no_cfunc_wrapper": True, "fastmath": {"contract"},
}  # fmt: skip
"""Fused multiply-adds are allowed: the products in range reduction are exact, so fusing makes no difference there."""

Function = Callable[..., Any]


def _jit(function: Function) -> Function:
    made: Function = register_jitable(**OPTIONS)(function)
    return made


def _lane_by_lane(function: Function) -> Function:
    """Apply a function of the C library to each lane in turn."""

    def each(x: Any) -> Any:
        for i in range(LANES):
            x = insert(x, i, function(extract(x, i)))
        return x

    made: Function = register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)(each)
    return made


def _polynomial(coefficients: list[float]) -> Function:
    """Horner's rule for sum_k coefficients[k] x^k."""
    text = repr(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f"{c!r} + x * ({text})"
    space: dict[str, Any] = {}
    exec(f"def horner(x):\n    return {text}\n", space)  # the text contains no user input
    return _jit(space["horner"])


def _interpolated(function: Function, low: float, high: float) -> list[float]:
    """Coefficients of a cubic interpolant of a function."""
    found: list[float] = Chebyshev.interpolate(function, 3, domain=[low, high]).convert(kind=Polynomial).coef.tolist()
    return found


_libm = {name: _lane_by_lane(getattr(math, name)) for name in
         ("sin", "cos", "tan", "asin", "sinh", "cosh", "tanh", "exp", "log")}  # fmt: skip

_libm_sin, _libm_cos = _libm["sin"], _libm["cos"]


def _guarded(function: Function, usual: Function, library: Function) -> Function:
    """The fast function for usual arguments; other lanes use the library function."""

    @register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
    def rare(x: Any) -> Any:
        fine = usual(x)
        return select(fine, function(select(fine, x, 1.0)), library(x))

    @_jit
    def guarded(x: Any) -> Any:
        if everywhere(usual(x)):
            return function(x)
        return rare(x)

    made: Function = guarded
    return made


ROUND = 3 * 2.0**51
"""Adding and subtracting it rounds a number below 2^51 to an integer."""


# --- sine and cosine --------------------------------------------------------------------------------

_SINE = _polynomial([(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9)])
_COSINE = _polynomial([(-1) ** k / math.factorial(2 * k) for k in range(2, 9)])

PI_HALVES = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""pi/2 as three parts of 33 bits, whose products with 20-bit numbers are exact, and the remainder."""


@_jit
def _difference(a: Any, b: Any) -> Any:
    """The rounded a - b and its error (Knuth)."""
    s = a - b
    z = s - a
    return s, (a - (s - z)) - (b + z)


@_jit
def _quadrant(x: Any) -> Any:
    """The n, r and tail with x = n pi/2 + r + tail, |r| <= pi/4 (Cody and Waite; |n| < 2^20)."""
    n = (x * 0.6366197723675814 + ROUND) - ROUND
    a = x - n * PI_HALVES[0]
    b, lost = _difference(a, n * PI_HALVES[1])
    c, more = _difference(b, n * PI_HALVES[2])
    low = (lost + more) - n * PI_HALVES[3]
    r = c + low
    return n, r, (c - r) + low


@register_jitable(**OPTIONS | {"fastmath": False})
def _sum(a: Any, b: Any) -> Any:
    """The sum a + b, never fused with a product, so that both code paths of the sine give the same bits."""
    return a + b


@_jit
def _usual_angle(x: Any) -> Any:
    return abs(x) < 1e6


@_jit
def _sincos(x: Any) -> Any:
    n, r, tail = _quadrant(x)
    z = r * r
    s = _sum(r, r * (z * _SINE(z)) + tail * (1 - 0.5 * z))
    half = 0.5 * z
    one = 1 - half
    c = _sum(one, _sum((1 - one) - half, z * (z * _COSINE(z)) - r * tail))
    odd = n != 2 * ((0.5 * n + ROUND) - ROUND)
    a, b = select(odd, c, s), select(odd, s, c)
    turned = n - 4 * ((0.25 * n + ROUND) - ROUND)
    return select((turned == 2) | (turned == -2) | (turned == -1), -a, a), select(
        (turned == 2) | (turned == -2) | (turned == 1), -b, b
    )


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def _rare_sincos(x: Any) -> Any:
    """As `_sincos`, with library lanes; not inlined into every kernel that rotates."""
    fine = _usual_angle(x)
    s, c = _sincos(select(fine, x, 1.0))
    return select(fine, s, _libm_sin(x)), select(fine, c, _libm_cos(x))


@_jit
def sincos(x: Any) -> Any:
    """Sine and cosine of one angle."""
    if everywhere(abs(x) < 0.75):  # n = 0, and tail = 0
        r = x + 0.0  # no negative zero, as below
        z = r * r
        half = 0.5 * z
        one = 1 - half
        return _sum(r, r * (z * _SINE(z))), _sum(one, _sum((1 - one) - half, z * (z * _COSINE(z))))
    if everywhere(_usual_angle(x)):
        return _sincos(x)
    return _rare_sincos(x)


@_jit
def sin(x: Any) -> Any:
    """Sine."""
    return sincos(x)[0]


@_jit
def cos(x: Any) -> Any:
    """Cosine."""
    return sincos(x)[1]


# --- exponential and logarithm ----------------------------------------------------------------------

_EXPONENTIAL = _polynomial([1 / math.factorial(k) for k in range(2, 15)])
LOG2 = (0.6931471803691238, 1.9082149292705877e-10)
"""log 2 as a part of 33 bits and the remainder."""


@_jit
def _exp(x: Any) -> Any:
    """Exponential: x = n log 2 + r."""
    n = (x * 1.4426950408889634 + ROUND) - ROUND
    high, low = x - n * LOG2[0], n * LOG2[1]
    r = high - low
    return power_of_two(n) * (1 + (r + ((high - r) - low + r * r * _EXPONENTIAL(r))))


_ATANH = _polynomial([2 / (2 * k + 1) for k in range(1, 12)])


@_jit
def _log(x: Any) -> Any:
    """Natural logarithm: x = 2^n m with m near 1, and log m = 2 artanh((m - 1)/(m + 1))."""
    n = exponent(x)
    m = x * power_of_two(-n)
    high = m > 1.4142135623730951
    m, n = select(high, 0.5 * m, m), select(high, n + 1, n)
    f = m - 1
    s = f / (2 + f)
    z = s * s
    square = 0.5 * f * f
    return n * LOG2[0] + (f - (square - (s * (square + z * _ATANH(z)) + n * LOG2[1])))


EXP2_NEAR_ZERO = _polynomial(_interpolated(np.exp2, -0.5, 0.5))
"""2^x for |x| <= 1/2, to one part in a thousand."""


@_jit
def rough_exp2(x: Any) -> Any:
    """2^x to one part in a thousand."""
    near = (x + ROUND) - ROUND
    return power_of_two(near) * EXP2_NEAR_ZERO(x - near)


# --- inverse tangent --------------------------------------------------------------------------------

_ARCTAN = _polynomial([(-1) ** k / (2 * k + 1) for k in range(1, 13)])
"""Terms for |x| <= tan(pi/16): the next term is 4e-20 of the first."""

_NEAR = (0.41421356237309503, 1.0)
"""Reference points of the reduction: tan(pi/8), rounded, and 1."""

_ANGLES = (
    (0.39269908169872414, 3.060132146563891e-18),
    (0.7853981633974483, 3.061616997868383e-17),
    (1.5707963267948966, 6.123233995736766e-17),
)
"""Inverse tangents of the two reference points, and pi/2, as sums of two doubles."""


@_jit
def atan(x: Any) -> Any:
    """Inverse tangent: |x| > 1 by its reciprocal, then relative to the nearest of the angles 0, pi/8 and pi/4."""
    a = abs(x)
    far = a > 1
    over, a = select(far, a, 1.0), select(far, 1.0, a)  # the tangent is a/over
    low, high = a < 0.198912367379658 * over, a > 0.6681786379192989 * over
    c = select(high, _NEAR[1], _NEAR[0])
    base = select(low, 0.0, select(high, _ANGLES[1][0], _ANGLES[0][0]))
    rest = select(low, 0.0, select(high, _ANGLES[1][1], _ANGLES[0][1]))
    y = select(low, a, a - c * over) / select(low, over, over + a * c)
    z = y * y
    small = y + (y * (z * _ARCTAN(z)) + rest)
    angle = select(far, (_ANGLES[2][0] - base) - (small - _ANGLES[2][1]), base + small)
    return select(x < 0, -angle, angle)


@_jit
def acos(x: Any) -> Any:
    """Inverse cosine, by the tangent of half the angle."""
    return 2 * atan(math.sqrt((1 - x) / (1 + x)))


# --- the others -------------------------------------------------------------------------------------

_SINH = _polynomial([1 / math.factorial(2 * k + 1) for k in range(1, 10)])


@_jit
def _sinh(x: Any) -> Any:
    """Hyperbolic sine: Taylor's series below 1."""
    z = x * x
    return x + x * (z * _SINH(z))


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y)."""
    for i in range(LANES):
        y = insert(y, i, math.atan2(extract(y, i), extract(x, i)))
    return y


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def power(x: Any, y: Any) -> Any:
    """The real power x**y."""
    for i in range(LANES):
        x = insert(x, i, math.pow(extract(x, i), extract(y, i)))
    return x


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def searched(x: float, knots: Any) -> int:
    """The k with knots[k] <= x < knots[k + 1], by bisection; outside the table the first or the last interval."""
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def bracket(x: Any, knots: Any) -> Any:
    """Index of the table interval of each lane, as a floating-point number."""
    for i in range(LANES):
        x = insert(x, i, float(searched(extract(x, i), knots)))
    return x


@register_jitable(error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def take(index: Any, column: Any) -> Any:
    """An entry of a table in each lane."""
    for i in range(LANES):
        index = insert(index, i, column[int(extract(index, i))])
    return index


FUNCTIONS: dict[str, Function] = {
    **_libm, "sin": sin, "cos": cos, "atan": atan, "acos": acos, "atan2": atan2, "power": power,
    "exp": _guarded(_exp, _jit(lambda x: abs(x) < 700), _libm["exp"]),
    "log": _guarded(_log, _jit(lambda x: (x > 1e-300) & (x < 1e300)), _libm["log"]),
    "sinh": _guarded(_sinh, _jit(lambda x: abs(x) <= 1), _libm["sinh"]),
}  # fmt: skip
"""Vector versions of the functions of `polhode.numbers.primitives`; the square root is an instruction."""
