"""Derives the coefficients of the preprocessed discrete Moser-Veselov method, in exact rational numbers.

Hairer and Vilmart (2006) make the method of order 2 exact to order 2p by modified moments of inertia,

    1/I~_j = (1/I_j)(1 + h^2 s_3 + ... + h^(2p-2) s_(2p-1)) + h^2 t_3 + ... + h^(2p-2) t_(2p-1),

s and t polynomials in the energy H, the Casimir C = |y|^2/2 and, as found here, in the elementary
symmetric functions e1, e2, e3 of the 1/I_j. The moments that make the step exact are
1/I~_j = 4 v_j q0/(h (y_j(0) + y_j(h))), (q0, v) the exact relative quaternion; their series in h at
random rational points give linear equations for the rational coefficients of every monomial
e1^i e2^j e3^k H^l C^(m-l) that has the right degree. Run ``python -m polhode.analysis.derive_dmv``
to write methods/dmv_series.py anew.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

LAST = 6
"""Terms derived: h^2 ... h^12, for orders up to 14."""

Series = list[Fraction]
Monomial = tuple[int, int, int, int]


def product(a: Series, b: Series, n: int) -> Fraction:
    """Coefficient n of a product of two power series."""
    return sum((a[k] * b[n - k] for k in range(n + 1)), Fraction(0))


def motion(rates: list[Fraction], y0: list[Fraction], terms: int) -> tuple[list[Series], list[Series]]:
    """Taylor coefficients in time of the momentum and of the relative quaternion of the free body."""
    y: list[Series] = [[c] for c in y0]
    q: list[Series] = [[Fraction(1)], [Fraction(0)], [Fraction(0)], [Fraction(0)]]
    for n in range(terms):
        w = [[a * c for c in component] for a, component in zip(rates, y, strict=True)]
        dy = [product(y[(i + 1) % 3], w[(i + 2) % 3], n) - product(y[(i + 2) % 3], w[(i + 1) % 3], n) for i in range(3)]
        dq = [-sum((product(q[1 + i], w[i], n) for i in range(3)), Fraction(0))]
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            dq.append(product(q[0], w[i], n) + product(q[1 + j], w[k], n) - product(q[1 + k], w[j], n))
        for component, rate in zip(y, dy, strict=True):
            component.append(rate / (n + 1))
        for component, rate in zip(q, dq, strict=True):
            component.append(rate / (2 * (n + 1)))
    return y, q


def modified_inverse(rates: list[Fraction], y0: list[Fraction], last: int) -> list[Series]:
    """Series in h of the 1/I~_j that make one step exact: entry m of component j multiplies h^(2m)."""
    terms = 2 * last + 2
    y, q = motion(rates, y0, terms)
    found = []
    for j in range(3):
        top = [4 * product(q[1 + j], q[0], n + 1) for n in range(terms)]
        bottom = [y[j][n] + (y0[j] if n == 0 else 0) for n in range(terms)]
        quotient: Series = []
        for n in range(terms):
            rest = sum((quotient[k] * bottom[n - k] for k in range(n)), Fraction(0))
            quotient.append((top[n] - rest) / bottom[0])
        assert not any(quotient[1::2]), "odd powers must vanish"
        found.append(quotient[0::2])
    return found


def monomials(m: int, degree: int) -> list[Monomial]:
    """Exponents (i, j, k, l) of e1^i e2^j e3^k H^l C^(m-l) of a given degree in the 1/I_j."""
    found = []
    for k in range(degree // 3 + 1):
        for j in range((degree - 3 * k) // 2 + 1):
            for rest in range(degree - 3 * k - 2 * j + 1):
                if rest <= m:
                    found.append((degree - 3 * k - 2 * j - rest, j, k, rest))
    return sorted(found, key=lambda x: (-x[3], x))


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solution of an overdetermined consistent system, last column the right side; refuses any other."""
    n = len(rows[0]) - 1
    rows = [row[:] for row in rows]
    for column in range(n):
        pivot = next(r for r in range(column, len(rows)) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [x / scale for x in rows[column]]
        for r in range(len(rows)):
            factor = rows[r][column]
            if r != column and factor:
                rows[r] = [x - factor * p for x, p in zip(rows[r], rows[column], strict=True)]
    assert not any(any(row) for row in rows[n:]), "the ansatz does not hold"
    return [row[n] for row in rows[:n]]


def sample(rng: random.Random, last: int) -> tuple[dict[str, Fraction], list[tuple[Fraction, Fraction]]]:
    """Invariants at a random rational point, and s, t there for every power of h."""
    rates = [Fraction(rng.randint(1, 12)) for _ in range(3)]
    while len(set(rates)) < 3:
        rates = [Fraction(rng.randint(1, 12)) for _ in range(3)]
    y0 = [Fraction(rng.choice([-1, 1]) * rng.randint(1, 9)) for _ in range(3)]
    a, b, c = rates
    values = {
        "e1": a + b + c,
        "e2": a * b + b * c + c * a,
        "e3": a * b * c,
        "H": sum((r * x * x for r, x in zip(rates, y0, strict=True)), Fraction(0)) / 2,
        "C": sum((x * x for x in y0), Fraction(0)) / 2,
    }
    series = modified_inverse(rates, y0, last)
    pairs = []
    for m in range(1, last + 1):
        s = (series[0][m] - series[1][m]) / (a - b)
        t = series[0][m] - a * s
        assert series[2][m] == c * s + t, "three moments, two functions"
        pairs.append((s, t))
    return values, pairs


def term(monomial: Monomial, m: int, values: dict[str, Fraction]) -> Fraction:
    """Value of a monomial."""
    i, j, k, rest = monomial
    e = values["e1"] ** i * values["e2"] ** j * values["e3"] ** k
    return e * values["H"] ** rest * values["C"] ** (m - rest)


def derive(last: int = LAST) -> list[tuple[dict[Monomial, Fraction], dict[Monomial, Fraction]]]:
    """Coefficients of s_(2m+1) and t_(2m+1), m = 1 ... last."""
    rng = random.Random(2006)
    largest = max(len(monomials(last, 2 * last)), len(monomials(last, 2 * last + 1)))
    samples = [sample(rng, last) for _ in range(largest + 6)]
    found = []
    for m in range(1, last + 1):
        pair = []
        for which, degree in ((0, 2 * m), (1, 2 * m + 1)):
            basis = monomials(m, degree)
            rows = [
                [*(term(x, m, values) for x in basis), pairs[m - 1][which]]
                for values, pairs in samples[: len(basis) + 6]
            ]
            pair.append({x: c for x, c in zip(basis, solved(rows), strict=True) if c})
        found.append((pair[0], pair[1]))
    return found


def text(series: Any) -> str:
    """The module that holds the coefficients."""
    lines = [
        '"""Coefficients of the preprocessed discrete Moser-Veselov method; made by analysis/derive_dmv.py.',
        "",
        "SERIES[m - 1] = (s, t) for the power h^(2m); each maps the exponents (i, j, k, l) of",
        "e1^i e2^j e3^k H^l C^(m-l) to an exact (numerator, denominator).",
        '"""',
        "",
        "Table = dict[tuple[int, int, int, int], tuple[int, int]]",
        "",
        "SERIES: tuple[tuple[Table, Table], ...] = (",
    ]
    for s, t in series:
        lines.append("    (")
        for table in (s, t):
            entries = ", ".join(f"{x}: ({c.numerator}, {c.denominator})" for x, c in table.items())
            lines.append(f"        {{{entries}}},")
        lines.append("    ),")
    return "\n".join([*lines, ")", ""])


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "methods" / "dmv_series.py"
    target.write_text(text(derive()))
    print(f"wrote {target.name}")
