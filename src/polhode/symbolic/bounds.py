"""Bounds of formulas by interval arithmetic, with symbols that lie in given intervals.

R. E. Moore, Interval Analysis (1966). Ends are rounded to the nearest double, not outwards, so a bound is good to
round-off. Operations without a rule here have no bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from .expression import Expr, ordered, symbols_in

Interval = tuple[float, float]

EVERYTHING: Interval = (-math.inf, math.inf)

PARTS = 64
"""Parts of the range of a symbol, for sharper bounds."""


def largest(outputs: Sequence[Expr], interval: Callable[[str], Interval]) -> float:
    """Return a bound of the absolute values of formulas; infinite if there is none.

    `interval` returns the smallest and the largest value of a symbol.
    """
    found: dict[Expr, Interval] = {}
    for node in ordered(outputs):
        if node.op == "symbol":
            found[node] = interval(node.args[0])
        elif node.op == "const" and isinstance(node.args[0], int | float):
            found[node] = (float(node.args[0]), float(node.args[0]))
        else:
            found[node] = _bounded(node.op, [found[x] for x in node.args if isinstance(x, Expr)])
    return max(abs(end) for x in outputs for end in found[x])


def is_below(limit: float, outputs: Sequence[Expr], interval: Callable[[str], Interval]) -> bool:
    """Return whether the absolute values of formulas are certainly below a limit.

    Intervals of products of dependent factors are too wide. So if the whole ranges do not give the answer, the range
    of one symbol after the other is cut into `PARTS`.
    """
    if largest(outputs, interval) < limit:
        return True

    def within(name: str, part: Interval) -> Callable[[str], Interval]:
        return lambda other: part if other == name else interval(other)

    return any(
        all(largest(outputs, within(name, part)) < limit for part in _parts(interval(name)))
        for name in sorted(symbols_in(outputs))
        if interval(name)[0] < interval(name)[1]
    )


def _parts(whole: Interval) -> Iterator[Interval]:
    ends = [whole[0] + (whole[1] - whole[0]) * (i / PARTS) for i in range(PARTS + 1)]
    return itertools.pairwise(ends)


def _bounded(op: str, args: list[Interval]) -> Interval:
    """Return the interval of one operation."""
    try:
        ends = RULES[op](*args) if op in RULES else EVERYTHING
    except (ArithmeticError, ValueError):  # outside the domain of the function
        return EVERYTHING
    return (min(ends), max(ends)) if all(x - x == 0 for x in ends) else EVERYTHING


def _quotients(a: Interval, b: Interval) -> list[float]:
    return [x / y for x, y in itertools.product(a, b)] if b[0] * b[1] > 0 else list(EVERYTHING)


def _powers(a: Interval, b: Interval) -> list[float]:
    """Return x^y at the corners, which are extreme for positive x."""
    return [x**y for x, y in itertools.product(a, b)] if a[0] > 0 else list(EVERYTHING)


RULES: dict[str, Callable[..., Sequence[float]]] = {
    "add": lambda a, b: [a[0] + b[0], a[1] + b[1]],
    "sub": lambda a, b: [a[0] - b[1], a[1] - b[0]],
    "mul": lambda a, b: [x * y for x, y in itertools.product(a, b)],
    "div": _quotients,
    "power": _powers,
    "where": lambda condition, yes, no: [*yes, *no],
    "sqrt": lambda a: [math.sqrt(x) for x in a],
    "exp": lambda a: [math.exp(x) for x in a],
    "sin": lambda a: (-1.0, 1.0),
    "cos": lambda a: (-1.0, 1.0),
    "tanh": lambda a: (-1.0, 1.0),
}
"""Numbers between which the value of an operation lies, from the intervals of its arguments."""
