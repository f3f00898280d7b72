"""The averaged velocity Z of y' = W y, y(h) = exp(h Z) y(0), to any order, by a recursion with Bernoulli numbers.

W. Magnus, Comm. Pure Appl. Math. 7 (1954) 649-673; S. R. Buss, Accurate and efficient simulation of rigid-body
rotations, J. Comput. Phys. 164 (2000) 377-406. With y = exp(Y) y(0) the right-trivialised velocity is
y' y^-1 = dexp_Y Y', so Y' = dexp_Y^-1 W = sum_k B_k/k! ad_Y^k W (B_1 = -1/2), and the Taylor coefficients follow from

    (n+1) Y_(n+1) = sum_k B_k/k! c^k_n        c^0 = W        c^k_n = sum_(j>=1) [Y_j, c^(k-1)_(n-j)]        Z = Y/h.

The left-trivialised equation y' = y W has the same recursion with the opposite bracket [b, a].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..kernels.so3 import along, cross, scale
from ..numbers.exact import converted


class Algebra(NamedTuple):
    """Operations of the recursion on elements of a Lie algebra, in any representation."""

    bracket: Callable[[Any, Any], Any]
    along: Callable[[Any, Any, Any], Any]
    """along(a, s, b) = a + s b"""
    scale: Callable[[Any, Any], Any]
    """scale(s, a) = s a"""

    @property
    def opposite(self) -> Algebra:
        """The algebra with [b, a] for [a, b]."""
        return self._replace(bracket=lambda a, b: self.bracket(b, a))


def _shifted(a: Any, s: Any, b: Any) -> Any:
    return a + s * b


def _scaled(s: Any, a: Any) -> Any:
    return s * a


def with_bracket(bracket: Callable[[Any, Any], Any]) -> Algebra:
    """Return the algebra with this bracket, of objects that can be added and multiplied by numbers."""
    return Algebra(bracket, _shifted, _scaled)


VECTORS = Algebra(cross, along, scale)
"""so(3) as triples with the vector product."""


@functools.cache
def bernoulli(k: int) -> Fraction:
    """The k-th Bernoulli number, B_1 = -1/2."""
    if k == 0:
        return Fraction(1)
    return -sum((math.comb(k + 1, j) * bernoulli(j) for j in range(k)), Fraction(0)) / (k + 1)


@functools.cache
def dexpinv_weight(k: int) -> Fraction:
    """B_k/k!."""
    return bernoulli(k) / math.factorial(k)


def exponent(w: Sequence[Any], algebra: Algebra, number: Callable[[Any], Any] = float) -> list[Any]:
    """Taylor coefficients Y_1 ... Y_p of the exponent, from the coefficients w_0 ... w_(p-1) of W.

    [Y, W] begins with h^2 because Y_1 = w_0, so c^k begins with h^(k+1).
    """
    order = len(w)
    y: list[Any] = []
    c: list[list[Any]] = [list(w)]
    for n in range(order):
        for k in range(1, n):
            terms = [algebra.bracket(y[j - 1], c[k - 1][n - j]) for j in range(1, n - k + 1 + (k == 1))]
            if len(c) == k:
                c.append([None] * (k + 1))
            c[k].append(functools.reduce(lambda a, b: algebra.along(a, 1, b), terms))
        total = w[n]
        for k in range(1, n):
            if dexpinv_weight(k):
                total = algebra.along(total, converted(dexpinv_weight(k), number), c[k][n])
        y.append(algebra.scale(number(1) / (n + 1), total))
    return y


def dexpinv(u: Any, a: Any, terms: int, algebra: Algebra, number: Callable[[Any], Any] = float) -> Any:
    """dexp_u^-1 a = sum_k B_k/k! ad_u^k a, up to k = terms."""
    total = nested = a
    for k in range(1, terms + 1):
        nested = algebra.bracket(u, nested)
        if dexpinv_weight(k):
            total = algebra.along(total, converted(dexpinv_weight(k), number), nested)
    return total


def summed(coefficients: Sequence[Any], h: Any, algebra: Algebra) -> Any:
    """c_0 + c_1 h + c_2 h^2 + ..., by Horner's rule."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = algebra.along(c, h, total)
    return total
