"""S. R. Buss, Accurate simulation of rigid body rotation (talk, 2011), part II: the series Z(h) as printed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath

from polhode.analysis.checks import DIGITS
from polhode.kernels import so3
from polhode.lie.magnus import VECTORS, exponent
from polhode.numbers.multiprecision import number

from .results import OURS, Outcome, Verdict, Watch, misprint, not_zero, passed, result, zero

RATES = tuple(
    tuple(Fraction(n, 8) for n in row)
    for row in ((5, -3, 7), (-4, 6, 2), (3, 5, -6), (7, -2, 4), (-5, 3, 6), (2, 7, -3), (6, -5, 1), (-1, 4, 3))
)
"""W(0), W'(0), W''(0), ... of a polynomial W(t) in so(3)."""

TERMS = 40
"""Terms of the series that counts as exact: at h = 1/64 the remainder is below 1e-50."""

Word = tuple[Fraction, int, tuple[int, ...]]
"""Coefficient, power of h, and the derivatives in a bracket [W^(a), [W^(b), ...]]."""


def _words(*rows: tuple[int, int, int, tuple[int, ...]]) -> list[Word]:
    return [(Fraction(top, bottom), power, word) for top, bottom, power, word in rows]


FOURTH = _words(
    (1, 1, 0, (0,)), (1, 2, 1, (1,)), (1, 6, 2, (2,)), (1, 12, 2, (1, 0)), (1, 24, 3, (3,)), (1, 24, 3, (2, 0)),
    (1, 120, 4, (4,)), (1, 80, 4, (3, 0)), (1, 120, 4, (2, 1)), (1, 240, 4, (1, 1, 0)), (-1, 720, 4, (0, 2, 0)),
    (-1, 720, 4, (0, 0, 1, 0)),
)  # fmt: skip
"""Z(h) to h^4, as printed, with the dots that the scan lost."""

FIFTH = _words(
    (1, 720, 5, (5,)), (1, 288, 5, (3, 1)), (1, 360, 5, (4, 0)), (1, 360, 5, (2, 1, 0)), (1, 1440, 5, (1, 2, 0)),
    (-1, 1440, 5, (0, 3, 0)), (-1, 1440, 5, (0, 0, 2, 0)), (-1, 720, 5, (0, 1, 1, 0)),
)  # fmt: skip
"""The terms in h^5."""

STRAY = _words((-1, 1440, 5, (0, 0, 1, 0)))
"""Printed among the terms in h^5, but its weight (k + 1 for each W^(k)) is five, not six."""

HOW = (
    "The formula on so(3), W(t) a polynomial, in 50 digits; the exact exponent by 40 terms of Bernoulli's recursion. "
    "The order is the slope of the error of h Z(h) at h = 2^-6 and 2^-7, less one. A defect below 1e-22 counts as zero."
)


def _bracket(word: Sequence[int]) -> Any:
    """The nested bracket of the derivatives at zero."""
    first = tuple(number(x) for x in RATES[word[0]])
    return first if len(word) == 1 else so3.cross(first, _bracket(word[1:]))


def mean_velocity(words: Sequence[Word], h: Any) -> Any:
    """Z(h) with these terms."""
    total = (number(0), number(0), number(0))
    for coefficient, power, word in words:
        total = so3.along(total, number(coefficient) * h**power, _bracket(word))
    return total


@functools.cache
def _coefficients() -> list[Any]:
    """Taylor coefficients of the exact exponent."""
    taylor, scale = [], number(1)
    for k in range(TERMS):
        rate = RATES[k] if k < len(RATES) else (Fraction(0),) * 3
        taylor.append(tuple(number(x) / scale for x in rate))
        scale = scale * (k + 1)
    return exponent(taylor, VECTORS, number)


def exact_exponent(h: Any) -> Any:
    """Y(h) = h Z(h)."""
    total = (number(0), number(0), number(0))
    for k, term in enumerate(_coefficients(), 1):
        total = so3.along(total, h**k, term)
    return total


def order(words: Sequence[Word]) -> float:
    """Order of the update by exp(h Z(h))."""
    errors = []
    with mpmath.workdps(DIGITS):
        for h in (number(2) ** -6, number(2) ** -7):
            errors.append(so3.norm(so3.sub(so3.scale(h, mean_velocity(words, h)), exact_exponent(h))))
        return float(mpmath.log(errors[0] / errors[1], 2)) - 1


def estimate_errors(words: Sequence[Word]) -> dict[int, Any]:
    """Errors of Z(h) in the coefficients of h, h^2, ...: coefficients of the words minus the exact ones."""
    with mpmath.workdps(DIGITS):
        found = {}
        for power in range(1, 1 + max(p for _, p, _ in words)):
            mine = mean_velocity([word for word in words if word[1] == power], number(1))
            found[power] = so3.norm(so3.sub(mine, _coefficients()[power]))
        return found


FALSE_THIRD = [word for word in FOURTH if word[2] in ((0,), (1,), (2,))]
"""omega + h/2 omega' + h^2/6 omega''."""


# --- definitions of W, Y and y ----------------------------------------------------------------------


def _exponent_matrix(t: Any) -> Any:
    """A test curve Y(t) in so(3), as a matrix."""
    a = (t + t * t / 2, t / 3 - t * t, number(1) / 4 + t)
    return mpmath.matrix([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def velocities() -> dict[str, Any]:
    """For y = exp(Y(t)): y' - dexp_Y Y' as printed, and y' y^-1 - dexp_Y Y'; y' by central differences."""
    with mpmath.workdps(DIGITS):
        t, d = number(0.4), mpmath.mpf(10) ** -15
        ends = [mpmath.expm(_exponent_matrix(t + s * d), method="taylor") for s in (1, -1)]
        rate, y = (ends[0] - ends[1]) / (2 * d), mpmath.expm(_exponent_matrix(t), method="taylor")
        Y, term = _exponent_matrix(t), (_exponent_matrix(t + d) - _exponent_matrix(t - d)) / (2 * d)
        dexp = mpmath.zeros(3)
        for k in range(1, 60):  # sum of ad_Y^k Y'/(k + 1)!
            dexp, term = dexp + term, (Y * term - term * Y) / (k + 1)
        return {
            "printed": mpmath.norm(rate - dexp, mpmath.inf),
            "corrected": mpmath.norm(rate * y**-1 - dexp, mpmath.inf),
        }


def updates() -> dict[str, Any]:
    """The rotation over a step minus exp(Z) as printed, and minus exp(h Z); Z by 40 terms."""
    with mpmath.workdps(DIGITS):
        h = number(2) ** -6
        Y = exact_exponent(h)
        Z = so3.scale(1 / h, Y)
        whole = _product(h)
        return {
            "printed": so3.norm(so3.sub(so3.exp(Z)[1:], whole[1:])),
            "corrected": so3.norm(so3.sub(so3.exp(so3.scale(h, Z))[1:], whole[1:])),
        }


def _product(h: Any) -> Any:
    """The product of many short rotations that defines Z(h), extrapolated to infinitely many; the last is leftmost.

    Midpoint products have an error in even powers of 1/N, so Richardson extrapolation gains two orders per row.
    """
    table: list[Any] = []
    for row in range(12):
        n = 2 ** (row + 1) if row < 4 else 8 * (row - 1)
        q = (number(1), number(0), number(0), number(0))
        for i in range(n):
            q = so3.mul(so3.exp(so3.scale(h / n, _velocity((i + number(1) / 2) * h / n))), q)
        table.append((n, q))
    return _extrapolated(table)


def _velocity(t: Any) -> Any:
    total, scale = (number(0), number(0), number(0)), number(1)
    for k, rate in enumerate(RATES):
        total, scale = so3.along(total, scale, tuple(number(x) for x in rate)), scale * t / (k + 1)
    return total


def _extrapolated(table: Sequence[tuple[int, Any]]) -> Any:
    """The polynomial in 1/n^2 through the values, at zero (Neville)."""
    values = [list(q) for _, q in table]
    x = [1 / number(n) ** 2 for n, _ in table]
    for k in range(1, len(values)):
        for i in range(len(values) - k):
            values[i] = [
                (x[i] * b - x[i + k] * a) / (x[i] - x[i + k]) for a, b in zip(values[i], values[i + 1], strict=True)
            ]
    return tuple(values[0])


def brackets() -> dict[str, Any]:
    """Exact defects: of A B - B A being a rotation for rotations A, B; of the commutator being hat(u cross v)."""
    u, v = (Fraction(1, 3), Fraction(-2, 5), Fraction(3, 4)), (Fraction(2, 7), Fraction(1, 2), Fraction(-1, 3))
    A, B = _quarter(0), _quarter(2)
    group = _commutator(A, B)
    gram = [[sum(row[k] * group[k][j] for k in range(3)) for j in range(3)] for row in zip(*group, strict=True)]
    algebra = _commutator(_hat(u), _hat(v))
    due = _hat(so3.cross(u, v))
    return {
        "printed": max(abs(gram[i][j] - (i == j)) for i in range(3) for j in range(3)),
        "corrected": max(abs(algebra[i][j] - due[i][j]) for i in range(3) for j in range(3)),
    }


def _quarter(axis: int) -> list[list[int]]:
    """A quarter turn about an axis."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rows = [[int(a == b == axis) for b in range(3)] for a in range(3)]
    rows[i][j], rows[j][i] = -1, 1
    return rows


def _hat(a: Any) -> list[list[Any]]:
    return [[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]]


def _commutator(a: Any, b: Any) -> list[list[Any]]:
    product: Callable[[Any, Any, int, int], Any] = lambda x, y, i, j: sum(x[i][k] * y[k][j] for k in range(3))  # noqa: E731
    return [[product(a, b, i, j) - product(b, a, i, j) for j in range(3)] for i in range(3)]


@result("buss-series", cite="buss2011", where="part II", title="the series of the mean rotation as printed")
def series(watch: Watch) -> Outcome:
    """Orders of the printed formula, the false third order, and the definitions."""
    watch("the series in 50 digits")
    to_fourth, printed, without = order(FOURTH), order(FOURTH + FIFTH + STRAY), order(FOURTH + FIFTH)
    false, true = estimate_errors(FALSE_THIRD), estimate_errors(FOURTH)
    rates, turns, bracket = velocities(), updates(), brackets()
    verdicts = [
        Verdict(
            "part II", "the formula to h^5 is a fifth-order accurate one", f"an update by it is of order {printed:.2f}",
            passed(abs(printed - 5) < 0.1),
        ),
        Verdict(
            "part II", "its remainder is O(h^6)",
            f"as printed h Z(h) has an error O(h^{printed + 1:.2f}), so the remainder of Z(h) is O(h^{printed:.2f}); "
            f"without the stray term -h^5/1440 [W, W, W', W], whose weight does not fit, O(h^{without:.2f})",
            passed(printed > 5.9),
        ),
        Verdict(
            OURS, "without the stray term the terms to h^5 give order six; order five needs only those to h^4",
            f"orders {without:.2f} and {to_fourth:.2f}", passed(abs(without - 6) < 0.1 and abs(to_fourth - 5) < 0.1),
        ),
        not_zero(
            "part I", "the Taylor series estimate of the mean rotation (false third) is not second-order accurate",
            {"error of its coefficient of h^2": false[2]},
        ),
        zero(
            "part I", "with the term h^2/12 [W', W] the estimate is second-order accurate (and with all to h^4 fourth)",
            {f"coefficient of h^{power}": off for power, off in true.items()},
        ),
        misprint("part II", "y' = (d exp)_Y (Y')", {"defect": rates["printed"]}, "y' y^-1 = (d exp)_Y (Y')",
                 {"defect": rates["corrected"]}),
        misprint("part II", "exp(Z) is the rotation of a step", {"defect": turns["printed"]}, "exp(h Z)",
                 {"defect": turns["corrected"]}),
        misprint("part II", "the bracket is a product of group elements: A B - B A of two rotations is a rotation",
                 {"defect": bracket["printed"]}, "on the Lie algebra it is the vector product",
                 {"defect": bracket["corrected"]}),
    ]  # fmt: skip
    return Outcome(HOW, [], [], verdicts)
