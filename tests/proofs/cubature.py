"""Cubature in independent normal numbers, in 50 digits: points and weights for expectations of polynomials.

All rules here are symmetric: with x they have -x, so that odd polynomials have the expectation zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import mpmath

from polhode.numbers.multiprecision import number

Rule = Iterator[tuple[tuple[Any, ...], Any]]
"""Points and weights."""


def degree_7(n: int) -> Rule:
    """Rule for polynomials of degree 7 in n <= 7 normal numbers.

    The points are 0, (+-a, 0, ...), (+-b, +-b, 0, ...) and (+-c, ..., +-c), in all orders. The moments of degree 2 to
    6 give 2 B + C = 1, (8 - n) A = 1 - (n - 2) B and a quadratic equation for B, with A = 1/a^2, B = 1/b^2, C = 1/c^2
    (A. H. Stroud, Approximate calculation of multiple integrals, 1971, formulas of degree 7 for E_n with weight
    exp(-r^2)).
    """
    rest, one = 8 - n, number(1)
    p, q, r = one * 2 * (n - 2) ** 2 / rest + 2 * (n - 1) + 4, one * 4 * (n - 2) / rest + 4, one * 2 / rest
    B = (q - mpmath.sqrt(q * q - 4 * p * r)) / (2 * p)
    A, C = (1 - (n - 2) * B) / rest, 1 - 2 * B
    a, b, c = (1 / mpmath.sqrt(x) for x in (A, B, C))
    wa, wb, wc = rest * A**3, B**3 / 2, C**3 / 2**n
    yield (0 * one,) * n, 1 - 2 * n * wa - 2 * n * (n - 1) * wb - 2**n * wc
    yield from _singles(n, a, wa)
    yield from _pairs(n, b, wb)
    for signs in itertools.product((1, -1), repeat=n):
        yield tuple(s * c for s in signs), wc


def degree_5(n: int) -> Rule:
    """Rule for degree 5 and any n; the points are 0, (+-a, 0, ...) and (+-a, +-a, 0, ...), a^2 = 3."""
    a, single, double = mpmath.sqrt(3), number(4 - n) / 18, number(1) / 36
    yield (0 * a,) * n, 1 - 2 * n * single - 2 * n * (n - 1) * double
    yield from _singles(n, a, single)
    yield from _pairs(n, a, double)


def degree_3(n: int) -> Rule:
    """Rule for degree 3; the points are (+-a, 0, ...), a^2 = n."""
    yield from _singles(n, mpmath.sqrt(n), number(1) / (2 * n))


def degree_1(n: int) -> Rule:
    """Rule for degree 1: the point 0."""
    yield (number(0),) * n, number(1)


def _singles(n: int, a: Any, weight: Any) -> Rule:
    for i, s in itertools.product(range(n), (a, -a)):
        yield tuple(s if j == i else 0 * a for j in range(n)), weight


def _pairs(n: int, a: Any, weight: Any) -> Rule:
    for (i, j), s, t in itertools.product(itertools.combinations(range(n), 2), (a, -a), (a, -a)):
        yield tuple(s if k == i else t if k == j else 0 * a for k in range(n)), weight
