"""Vectors as functions of time through a table: polynomials between the times, and the formulas that evaluate them.

The formulas are traced: plain Python on tuples of numbers of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..numbers.primitives import bracket, take
from ..numbers.user_math import where
from ..symbolic.rows import Rows
from .validate import real_array

FEW_ROWS = 64
"""Most rows of a table whose numbers are parameters, each of which may vary within an ensemble; the formula evaluates a
selection for every row. A longer table is an array, searched by bisection."""

BETWEEN = ("linear", "cubic")


def interpolated(
    times: Any, values: Any, name: str, between: str = "cubic", slopes: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Knots, and the coefficients of the polynomials between them: (piece, power, axis).

    "cubic" is the spline with continuous second derivatives (not-a-knot at the ends). With derivatives at the knots
    (`slopes`, a name and an array) it is the cubic Hermite polynomial of values and derivatives.
    """
    knots = real_array(times, "times must be numbers", key="times")
    table = _rows_of_three(name, values, knots)
    if len(knots) < 2:
        raise InputError(f"a table must have at least 2 times; got {len(knots)}", "times")
    if not (np.isfinite(knots).all() and np.isfinite(table).all() and (np.diff(knots) > 0).all()):
        steps = np.diff(knots) > 0
        fault = "some are not finite" if steps.all() else f"time {int(steps.argmin()) + 1} is not after the one before"
        raise InputError(f"times must increase, and all numbers of a table must be finite; {fault}", "times")
    if not isinstance(between, str) or between not in BETWEEN:
        raise InputError(f"between must be 'linear' or 'cubic'; got {between!r}", "between")
    if between == "linear":
        return knots, np.stack([table[:-1], np.diff(table, axis=0) / np.diff(knots)[:, None]], axis=1)
    from scipy.interpolate import CubicHermiteSpline, CubicSpline

    if slopes is None:
        return knots, np.swapaxes(CubicSpline(knots, table).c[::-1], 0, 1)
    given = _rows_of_three(slopes[0], slopes[1], knots)
    if not np.isfinite(given).all():
        raise InputError(f"all numbers of a table must be finite; {slopes[0]} has NaN or infinity", slopes[0])
    return knots, np.swapaxes(CubicHermiteSpline(knots, table, given).c[::-1], 0, 1)


def _rows_of_three(name: str, values: Any, knots: np.ndarray) -> np.ndarray:
    table = real_array(values, f"{name} must be rows of three numbers", key=name)
    if knots.ndim != 1 or table.shape != (len(knots), 3):
        raise InputError(
            f"{name} must be three numbers for each of the times; got shapes {table.shape}, {knots.shape}", name
        )
    return table


def rows_of(knots: np.ndarray, pieces: np.ndarray) -> Rows:
    """A row for each knot: its time, and the coefficients of the piece that follows (zeros for the last)."""
    coefficients = np.zeros((len(knots), pieces[0].size))
    coefficients[:-1] = pieces.reshape(len(pieces), -1)
    return Rows.of(np.column_stack([knots, coefficients]), "table")


def clamped(t: Any, start: Any, end: Any) -> Any:
    """Clamp t to a range."""
    return min(max(t, start), end)


def looked_up(t: Any, table: Any) -> tuple[Any, Any, Any]:
    """The time t, clamped to a table of any length (`rows_of`), the time since its knot, and the polynomial there."""
    return found_in(t, table[0][0], table[-1][0], table.columns)


def found_in(t: Any, start: Any, end: Any, columns: Any) -> tuple[Any, Any, Any]:
    """As `looked_up`, from the first and the last time of a table and its columns: knots, then coefficients."""
    at = clamped(t, start, end)
    knots, *powers = columns
    index = bracket(at, knots)
    coefficients = [[take(index, column) for column in powers[i : i + 3]] for i in range(0, len(powers), 3)]
    return at, at - take(index, knots), coefficients


def piecewise(t: Any, knots: Sequence[Any], pieces: Sequence[Any]) -> tuple[Any, Any, Any]:
    """As `looked_up`, for a table of few rows: pieces[k][d] are the coefficients of (t - knots[k])^d."""
    at = clamped(t, knots[0], knots[-1])
    start, chosen = knots[0], pieces[0]
    for knot, here in zip(knots[1:-1], pieces[1:], strict=True):
        later = knot <= at
        start = where(later, knot, start)
        chosen = [
            [where(later, new, old) for new, old in zip(a, b, strict=True)] for a, b in zip(here, chosen, strict=True)
        ]
    return at, at - start, chosen


def horner(x: Any, coefficients: Sequence[Any]) -> Any:
    """A polynomial with vectors as coefficients."""
    value = coefficients[-1]
    for vector in reversed(coefficients[:-1]):
        value = [a + x * b for a, b in zip(vector, value, strict=True)]
    return value


def derivative(coefficients: Sequence[Any]) -> Any:
    """The coefficients of the derivative of a polynomial with vectors as coefficients."""
    return [[power * x for x in vector] for power, vector in list(enumerate(coefficients))[1:]]
