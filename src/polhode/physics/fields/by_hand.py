"""Comparison of a torque that a user gives beside a potential with the exact torque of that potential."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...kernels.so3 import matrix, unit
from .kernels import formula_kernel

if TYPE_CHECKING:
    from .field import Field

CHECK_DIGITS = 50
CHECK_ATTITUDES = ((5, 1, -2, 3), (2, 4, 1, -1), (-1, 2, 5, 2), (1, -3, 2, 6), (3, 3, -1, 4), (4, -1, -5, 1))
"""Quaternions, not normalised, at which the user's torque is compared with the exact one."""


def difference(seen: Sequence[tuple[str, Any, Any]]) -> str:
    """Description of the first difference between the user's and the exact vector; `seen` are (place, exact, given)."""
    scale = max(abs(x) for _, exact, given in seen for x in (*exact, *given))
    for place, exact, given in seen:
        gap, i = max((abs(a - b), i) for i, (a, b) in enumerate(zip(exact, given, strict=True)))
        if not gap <= 64 * 2.0**-52 * scale:  # a few literals of 16 digits on both sides
            values = f"{float(given[i]):.10g} instead of {float(exact[i]):.10g}"
            return f"component {i + 1} is {values} (difference {float(gap):.3g}) {place}"
    return ""


def compared(field: Field, hand: Field, R: Any, context: str) -> list[tuple[str, Any, Any]]:
    """(place, exact torque, user's torque) in 50 digits; attitudes at which one is singular are skipped."""
    from ...numbers.multiprecision import number, working

    compared = []
    with working(CHECK_DIGITS):
        zero = number(0)
        points = [(context, tuple(tuple(number(x) for x in row) for row in R))]
        for q in CHECK_ATTITUDES:
            a, b, c, d = (number(x) for x in q)
            points.append((f"at the attitude {q} (a quaternion, not normalised)", matrix(unit((a, b, c, d)))))
        for point, A in points:
            with contextlib.suppress(ArithmeticError, ValueError, TypeError):  # TypeError: complex values
                values = [
                    formula_kernel(f.text[0], number)(
                        zero, A, (zero, zero, zero), tuple(number(x) for x in f.parameters)
                    )
                    for f in (field, hand)
                ]
                if all(math.isfinite(float(x)) for value in values for x in value):
                    compared.append((point, values[0], values[1]))
    return compared
