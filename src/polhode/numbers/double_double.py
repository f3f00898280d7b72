"""Error-free sums and products, and arithmetic on pairs of numbers (double-double)."""

from __future__ import annotations

from .dispatch import no_fma
from .primitives import epsilon, sqrt, stop_gradient
from .types import Number

Pair = tuple[Number, Number]
"""An unevaluated sum of two numbers; the second is below the round-off of the first."""


@no_fma
def two_sum(a: Number, b: Number) -> Pair:
    """Return the rounded sum of two numbers and its exact error (Knuth)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


@no_fma
def two_product(a: Number, b: Number) -> Pair:
    """Return the rounded product of two doubles and its exact error; in multiprecision the error is rounded."""
    p = a * b
    return p, product_error(a, b, p)


@no_fma
def pair_sum(a: Pair, b: Pair) -> Pair:
    """Sum of two pairs, to twice the precision of the larger."""
    s, e = two_sum(a[0], b[0])
    return two_sum(s, e + (a[1] + b[1]))


@no_fma
def pair_product(a: Pair, b: Pair) -> Pair:
    """Product of two pairs, to twice the precision."""
    p, e = two_product(a[0], b[0])
    return two_sum(p, e + (a[0] * b[1] + a[1] * b[0]))


@no_fma
def pair_quotient(a: Pair, b: Pair) -> Pair:
    """Quotient of two pairs, by one correction of the rounded quotient."""
    q = a[0] / b[0]
    p, e = two_product(q, b[0])
    return two_sum(q, (((a[0] - p) - e) + (a[1] - q * b[1])) / b[0])


@no_fma
def pair_sqrt(a: Pair) -> Pair:
    """Square root of a positive pair, by one correction of the rounded root."""
    r = sqrt(a[0])
    p, e = two_product(r, r)
    return two_sum(r, (((a[0] - p) - e) + a[1]) / (2 * r))


@no_fma
def pair_means(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Arithmetic and geometric mean of two positive pairs, to twice the precision.

    The first parts do not wait for the second ones, which may exceed the round-off of the first by a few times.
    """
    s, e = two_sum(a[0], b[0])
    p, f = two_product(a[0], b[0])
    r = sqrt(p)
    square, g = two_product(r, r)
    rest = ((p - square) - g) + (f + (a[0] * b[1] + a[1] * b[0]))
    return (s / 2, (e + (a[1] + b[1])) / 2), (r, rest / (2 * r))


@no_fma
def nearest(x: Number) -> Number:
    """Return the integer nearest to x, for |x| < 1/(4 epsilon)."""
    big = 3 / (2 * epsilon(x))
    x = stop_gradient(x)  # an integer has derivative zero
    return (x + big) - big


@no_fma
def leading(x: Number) -> Number:
    """Return the largest power of two in x > 0 (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31 (2008) 189-224)."""
    q = stop_gradient(x) * (1 / epsilon(x) + 1)
    return abs(q - q * (1 - epsilon(x) / 2))


@no_fma
def _split(a: Number) -> tuple[Number, Number]:
    """Split a double into two halves of 26 bits each (Veltkamp)."""
    c = 134217729 * a
    high = c - (c - a)
    return high, a - high


@no_fma
def dekker(a: Number, b: Number, p: Number) -> Number:
    """Return the exact error a b - p of the rounded product p of two doubles, by sums and products alone (Dekker)."""
    ah, al = _split(a)
    bh, bl = _split(b)
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


def product_error(a: Number, b: Number, p: Number) -> Number:
    """Return the exact error a b - p of the rounded product p; one fused instruction in compiled code."""
    return dekker(a, b, p)
