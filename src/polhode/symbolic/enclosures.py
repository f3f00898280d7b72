"""Enclosures of formulas by interval arithmetic over many intervals at once: arrays of lower and of upper ends.

As in `bounds`, ends are rounded to the nearest double. Operations without a rule may have any value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .expression import Expr, ordered

Enclosure = tuple[Any, Any]

EVERYTHING: Enclosure = (-math.inf, math.inf)


def enclosures(nodes: Sequence[Expr], given: Mapping[Expr, Any]) -> dict[Expr, Any]:
    """Return enclosures of nodes, arguments before users, from those of the other nodes from which they are made.

    A column of data is given as its numbers.
    """
    found = dict(given)
    with np.errstate(all="ignore"):
        for node in nodes:
            if node not in found:
                found[node] = _enclosed(node, [_argument(x, found) for x in node.args if isinstance(x, Expr)])
    return found


def _argument(node: Expr, found: dict[Expr, Any]) -> Any:
    if node in found or node.op not in ("const", "named"):
        return found[node]
    value = node.args[0]
    return (float(value), float(value)) if isinstance(value, int | float) else value


def _enclosed(node: Expr, args: list[Any]) -> Any:
    op = node.op
    if op in ("const", "named"):
        return _argument(node, {})
    if op == "total":
        return _sum(args[0], args[1:])
    if op == "item":
        return args[0][node.args[1]]
    if op == "mul" and (node.args[0] is node.args[1] or node.args[0] is -node.args[1]):  # -x*x is read as (-x) x
        low, high = _even(args[1])
        return (low * low, high * high) if node.args[0] is node.args[1] else (-high * high, -low * low)
    if op not in RULES:
        return EVERYTHING
    low, high = RULES[op](*args)
    valid = (low == low) & (high == high)
    return np.where(valid, low, -math.inf), np.where(valid, high, math.inf)


def _sum(term: Any, args: Sequence[Any]) -> list[Enclosure]:
    """Return the enclosures of the components of a sum over rows (`total`): the rows are a further axis."""
    inner = {symbol: (np.asarray(a[0])[..., None], np.asarray(a[1])[..., None])
             for symbol, a in zip(term.arguments, args, strict=False)}  # fmt: skip
    for symbol, column in zip(term.row, args[term.inputs :], strict=True):
        values = np.asarray(column, dtype=float)
        inner[symbol] = values, values
    found, rows = enclosures(ordered(term.terms), inner), len(np.asarray(args[-1]))
    return [tuple(_summed(end, rows) for end in found[x]) for x in term.terms]


def _summed(x: Any, rows: int) -> Any:
    x = np.asarray(x, dtype=float)
    return x.sum(-1) if x.ndim and x.shape[-1] == rows else x * rows


def _hull(*ends: Any) -> Enclosure:
    low = high = ends[0]
    for x in ends[1:]:
        low, high = np.minimum(low, x), np.maximum(high, x)
    return low, high


def _even(a: Enclosure) -> Enclosure:
    """Return the enclosure of |x|."""
    low, high = _hull(abs(a[0]), abs(a[1]))
    return np.where((a[0] < 0) & (a[1] > 0), 0.0, low), high


def _product(a: Enclosure, b: Enclosure) -> Enclosure:
    if a[0] is a[1] and b[0] is b[1]:
        return a[0] * b[0], a[0] * b[0]
    return _hull(*(x * y for x, y in itertools.product(a, b)))


def _quotient(a: Enclosure, b: Enclosure) -> Enclosure:
    low, high = _hull(*(x / y for x, y in itertools.product(a, b)))
    apart = (b[0] > 0) | (b[1] < 0)
    return np.where(apart, low, -math.inf), np.where(apart, high, math.inf)


def _power(a: Enclosure, b: Enclosure) -> Enclosure:
    """Return the hull of x^y at the corners, which are extreme for positive x; elsewhere NaN."""
    low, high = _hull(*(np.power(np.float64(x), y) for x, y in itertools.product(a, b)))
    return np.where(a[0] > 0, low, math.nan), high


def _rising(function: Callable[[Any], Any]) -> Callable[..., Enclosure]:
    return lambda a: (function(a[0]), function(a[1]))


def _wave(a: Enclosure, top: float) -> Enclosure:
    """Return the enclosure of the cosine of x - top."""
    low, high = (np.cos(np.subtract(x, top)) for x in a)

    def contains(x: float) -> Any:
        return np.ceil(np.subtract(a[0], x) / (2 * math.pi)) * (2 * math.pi) + x <= a[1]

    low, high = _hull(low, high)
    return np.where(contains(top + math.pi), -1.0, low), np.where(contains(top), 1.0, high)


def _less(a: Enclosure, b: Enclosure) -> Enclosure:
    return np.less(a[1], b[0]) * 1.0, np.less(a[0], b[1]) * 1.0


def _less_or_equal(a: Enclosure, b: Enclosure) -> Enclosure:
    return np.less_equal(a[1], b[0]) * 1.0, np.less_equal(a[0], b[1]) * 1.0


def _equal(a: Enclosure, b: Enclosure) -> Enclosure:
    apart, points = np.less(a[1], b[0]) | np.less(b[1], a[0]), np.equal(a[0], b[1]) & np.equal(a[1], b[0])
    return points * 1.0, 1.0 - apart


def _tangent(a: Enclosure) -> Enclosure:
    """Return NaN if a pole may be inside."""
    low, high = np.tan(a[0]), np.tan(a[1])
    return np.where(
        np.floor(np.divide(a[0], math.pi) + 0.5) == np.floor(np.divide(a[1], math.pi) + 0.5), low, math.nan
    ), high


def _angle(a: Enclosure, b: Enclosure) -> Enclosure:
    """Return the hull of atan2 at the corners, which are extreme apart from zero and the jump; there NaN."""
    low, high = _hull(*(np.arctan2(x, y) for x, y in itertools.product(a, b)))
    return np.where(np.greater(b[0], 0) | np.greater(a[0], 0) | np.less(a[1], 0), low, math.nan), high


def _chosen(condition: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
    low, high = _hull(*yes, *no)
    sure, never = np.asarray(condition[0]) > 0, np.asarray(condition[1]) <= 0
    return (np.where(sure, yes[0], np.where(never, no[0], low)), np.where(sure, yes[1], np.where(never, no[1], high)))


RULES: dict[str, Callable[..., Enclosure]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "div": _quotient,
    "power": _power,
    "where": _chosen,
    "abs": _even,
    "lt": _less,
    "le": _less_or_equal,
    "and": lambda a, b: (a[0] * b[0], a[1] * b[1]),
    "or": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "eq": _equal,
    "ne": lambda a, b: (1.0 - _equal(a, b)[1], 1.0 - _equal(a, b)[0]),
    "sin": lambda a: _wave(a, math.pi / 2),
    "cos": lambda a: _wave(a, 0.0),
    "cosh": lambda a: _rising(np.cosh)(_even(a)),
    "tan": _tangent,
    "acos": lambda a: (np.arccos(a[1]), np.arccos(a[0])),
    "atan2": _angle,
}
"""Enclosure of the value of an operation, from those of its arguments; NaN outside the domain of a function."""

for _name, _function in (
    ("sqrt", np.sqrt), ("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("sinh", np.sinh),
    ("atan", np.arctan), ("asin", np.arcsin),
):  # fmt: skip
    RULES[_name] = _rising(_function)
