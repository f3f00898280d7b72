"""Verner's Runge-Kutta pair 8(7) on the components of attitude and momentum: for moderate and high accuracy."""

from __future__ import annotations

from fractions import Fraction

from ..tables.verner87 import EMBEDDED, VERNER
from .components import Pair, declare_pair

SAFETY = Fraction(3, 4)
"""Ratio of the next step to the step whose error would equal the tolerance.

Steps are so long that errors change much from one to the next. With 9/10 up to a quarter of them are rejected, and the
same accuracy takes 4 to 12 % more attempts than with 3/4, for tops, a wall and a libration.
"""

PAIR = Pair(VERNER, EMBEDDED)

verner87 = declare_pair(
    PAIR, SAFETY, "Verner's Runge-Kutta pair 8(7)",
    ", fractions of up to 83 digits, are in `methods/tables/verner87.py`", cite="verner2010",
    where="the most efficient pair of orders 8 and 7 with 13 stages", aliases=("Vern8",),
)  # fmt: skip
