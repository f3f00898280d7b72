"""Derivation of the coefficients of the preprocessed discrete Moser-Veselov method, of any order, as exact fractions.

Hairer and Vilmart (2006) make the method of order 2 exact to order 2p by modified moments of inertia,

    1/I~_j = (1/I_j)(1 + h^2 s_3 + ... + h^(2p-2) s_(2p-1)) + h^2 t_3 + ... + h^(2p-2) t_(2p-1),

where s_(2m+1) and t_(2m+1) are polynomials of degree m in the energy H and the Casimir C = |y|^2/2, whose coefficients
are polynomials in the elementary symmetric functions e1, e2, e3 of the 1/I_j. The moments that make the step exact are
1/I~_j = 4 v_j q0/(h (y_j(0) + y_j(h))), with (q0, v) the exact relative quaternion. Their series in h are computed for
many momenta and moments; interpolation in H/C gives the coefficients for each set of moments, and a linear system in
the monomials of the right degree gives the coefficients of e1^i e2^j e3^k.

All computations are modulo a large prime, so that numbers do not grow, and the rational numbers are reconstructed at
the end (P. S. Wang 1981). Random points that were not used for the solution must agree, so a wrong ansatz or a prime
that is too small is detected.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from operator import mul

from .dmv_series import SERIES, Table

PRIME = 2**521 - 1
"""Fractions with numerators and denominators up to 78 digits are distinguished; those of order 20 have 15."""

SPARE = 3
"""Number of points beyond the unknowns, which the solution must also fit."""

Series = list[int]


def _product(a: Series, b: Series, n: int) -> int:
    """Coefficient n of a product of two power series, not reduced."""
    return sum(map(mul, a[: n + 1], b[n::-1]))


def motion(rates: Sequence[int], y0: Sequence[int], terms: int) -> tuple[list[Series], list[Series]]:
    """Taylor coefficients in time of the momentum and of the relative quaternion of the free body; rates = 1/I_j."""
    y: list[Series] = [[c] for c in y0]
    q: list[Series] = [[1], [0], [0], [0]]
    w: list[Series] = [[], [], []]
    for n in range(terms):
        for a, component, velocity in zip(rates, y, w, strict=True):
            velocity.append(a * component[n])
        dy = [_product(y[i - 2], w[i - 1], n) - _product(y[i - 1], w[i - 2], n) for i in range(3)]
        dq = [-sum(_product(q[1 + i], w[i], n) for i in range(3))]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            dq.append(_product(q[0], w[i], n) + _product(q[1 + j], w[k], n) - _product(q[1 + k], w[j], n))
        over = pow(n + 1, -1, PRIME)
        half = over * pow(2, -1, PRIME)
        for component, rate in zip(y, dy, strict=True):
            component.append(rate * over % PRIME)
        for component, rate in zip(q, dq, strict=True):
            component.append(rate * half % PRIME)
    return y, q


def modified_inverse(rates: Sequence[int], y0: Sequence[int], last: int) -> list[Series]:
    """Series in h of the 1/I~_j that make one step exact: entry m of component j multiplies h^(2m)."""
    terms = 2 * last + 2
    y, q = motion(rates, y0, terms)
    found = []
    for j in range(3):
        over = pow(2 * y0[j], -1, PRIME)
        quotient: Series = []
        for n in range(terms):
            rest = sum(quotient[k] * y[j][n - k] for k in range(n))
            quotient.append((4 * _product(q[1 + j], q[0], n + 1) - rest) * over % PRIME)
        if any(quotient[1::2]):
            raise ArithmeticError("odd powers of h must vanish")
        found.append(quotient[0::2])
    return found


def _solved(rows: list[list[int]]) -> list[int]:
    """Solve an overdetermined consistent system modulo the prime; the last column is the right-hand side."""
    n = len(rows[0]) - 1
    rows = [row[:] for row in rows]
    for column in range(n):
        pivot = next(r for r in range(column, len(rows)) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        over = pow(rows[column][column], -1, PRIME)
        first = rows[column] = [x * over % PRIME for x in rows[column]]
        for r in range(len(rows)):
            factor = rows[r][column]
            if r != column and factor:
                rows[r] = [(x - factor * p) % PRIME for x, p in zip(rows[r], first, strict=True)]
    if any(any(row) for row in rows[n:]):
        raise ArithmeticError("the ansatz does not hold")
    return [row[n] for row in rows[:n]]


def _monomials(degree: int) -> list[tuple[int, int, int]]:
    """Exponents (i, j, k) with i + 2 j + 3 k = degree."""
    return [
        (degree - 2 * j - 3 * k, j, k) for k in range(degree // 3 + 1) for j in range((degree - 3 * k) // 2 + 1)
    ]  # fmt: skip


Point = tuple[tuple[int, int, int], list[list[list[int]]]]
"""e1, e2, e3 of one set of moments, and for each m the coefficients of H^l C^(m-l) in s and in t."""


def _point(rng: random.Random, powers: Sequence[int]) -> Point:
    """Compute the polynomials in H and C for random moments."""
    rates = rng.sample(range(1, 40), 3)
    a, b, c = rates
    last = powers[-1]
    rows: list[list[tuple[int, int, int]]] = [[] for _ in powers]
    over = pow(a - b, -1, PRIME)
    for _ in range(last + 1 + SPARE):
        y0 = [rng.choice([-1, 1]) * rng.randint(1, 60) for _ in range(3)]
        series = modified_inverse(rates, y0, last)
        casimir = sum(x * x for x in y0) * pow(2, -1, PRIME) % PRIME
        energy = sum(r * x * x for r, x in zip(rates, y0, strict=True)) * pow(2, -1, PRIME) % PRIME
        ratio, down = energy * pow(casimir, -1, PRIME) % PRIME, pow(casimir, -1, PRIME)
        for n, m in enumerate(powers):
            s = (series[0][m] - series[1][m]) * over % PRIME
            t = (series[0][m] - a * s) % PRIME
            if (series[2][m] - c * s - t) % PRIME:
                raise ArithmeticError("three moments must follow from two functions")
            unit = pow(down, m, PRIME)
            rows[n].append((ratio, s * unit % PRIME, t * unit % PRIME))
    found = []
    for n, m in enumerate(powers):
        used = rows[n][: m + 1 + SPARE]
        found.append([_solved([[*(pow(r[0], k, PRIME) for k in range(m + 1)), r[w]] for r in used]) for w in (1, 2)])
    return (a + b + c, a * b + b * c + c * a, a * b * c), found


def _rational(x: int) -> Fraction:
    """The fraction n/d = x modulo the prime with |n|, d below the root of half the prime (Wang)."""
    bound = isqrt(PRIME // 2)
    a, b, u, v = PRIME, x, 0, 1
    while b > bound:
        k = a // b
        a, b, u, v = b, a - k * b, v, u - k * v
    if abs(v) > bound:
        raise ArithmeticError("no small fraction; the prime is too small")
    return Fraction(b, v)


@functools.cache
def series(last: int) -> tuple[tuple[Table, Table], ...]:
    """Return the pairs (s, t) for h^2 ... h^(2 last): stored in `dmv_series`, or derived if of higher order."""
    stored = SERIES[:last]
    return stored if last <= len(SERIES) else (*stored, *derive(len(SERIES) + 1, last))


def derive(first: int, last: int) -> list[tuple[Table, Table]]:
    """Derive the coefficients of s_(2m+1) and t_(2m+1), m = first ... last."""
    rng, powers = random.Random(2006), range(first, last + 1)
    needed = len(_monomials(2 * last + 1)) + SPARE
    points: dict[tuple[int, int, int], list[list[list[int]]]] = {}
    while len(points) < needed:
        points.update([_point(rng, powers)])
    return [(_table(points, n, 0, m, 2 * m), _table(points, n, 1, m, 2 * m + 1)) for n, m in enumerate(powers)]


def _table(points: dict[tuple[int, int, int], list[list[list[int]]]], n: int, which: int, m: int, degree: int) -> Table:
    """Coefficients of s (0) or t (1) at h^2m, of this degree in the 1/I_j; H itself has degree 1."""
    table: Table = {}
    for power in range(m, -1, -1):
        basis = _monomials(degree - power)
        rows = [
            [*(_value(x, e) for x in basis), found[n][which][power]]
            for e, found in list(points.items())[: len(basis) + SPARE]
        ]
        for (i, j, k), x in zip(basis, _solved(rows), strict=True):
            if x:
                value = _rational(x)
                table[i, j, k, power] = (value.numerator, value.denominator)
    return {x: table[x] for x in sorted(table, key=lambda x: (-x[3], x))}


def _value(exponents: tuple[int, int, int], e: tuple[int, int, int]) -> int:
    return e[0] ** exponents[0] * e[1] ** exponents[1] * e[2] ** exponents[2] % PRIME
