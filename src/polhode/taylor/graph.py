"""Preparation of graphs for Taylor series: the nodes that move (vary in time), slopes of functions, powers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ..numbers import primitives
from ..numbers.derivatives import _derivative
from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import (
    COMPARISONS,
    LOOK_UPS,
    OPERATORS,
    Expr,
    check_has_series,
    is_number,
    lift,
    ordered,
    summation_of,
    symbol,
)

LOGIC = (*COMPARISONS, "and", "or")


def substituted(outputs: Sequence[Expr], meaning: dict[str, Expr]) -> list[Expr]:
    """Replace symbols in formulas, and write ``abs`` as a branch."""
    new: dict[Expr, Expr] = {}
    for node in ordered(outputs):
        args = [new[a] if isinstance(a, Expr) else a for a in node.args]
        if node.op == "symbol":
            new[node] = meaning.get(node.args[0], node)
        elif node.op == "abs":
            new[node] = primitives.where(args[0] < 0, -args[0], args[0])
        elif node.op in OPERATORS:  # after the replacement, products with 0 and 1 simplify
            x, y = args
            new[node] = {"add": x + y, "sub": x - y, "mul": x * y}[node.op] if node.op != "div" else x / y
        else:
            new[node] = Expr.make(node.op, *args)
    return [new[node] for node in outputs]


def slopes(node: Expr) -> list[tuple[Expr, Expr]]:
    """Return (argument, slope) pairs of an elementary function, with few new nodes in the slopes."""
    x = node.args[0]
    if node.op == "item":
        return summation_of(node).slopes(node)
    if node.op == "power":
        return [(x, node.args[1] * node / x), (node.args[1], node * primitives.log(x))]
    if node.op == "atan2":
        square = x * x + node.args[1] * node.args[1]
        return [(x, node.args[1] / square), (node.args[1], -(x / square))]
    return [(x, _derivative(node.op, x, node))]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A prepared graph: its nodes in order, those that move, and the slopes of its functions."""

    rates_of: dict[Expr, Expr]
    nodes: tuple[Expr, ...]
    moving: frozenset[Expr]
    slopes: dict[Expr, list[tuple[Expr, Expr]]]


def plan(states: Sequence[Expr], rates: Sequence[Expr], others: Sequence[Expr] = ()) -> Plan:
    """Close a graph under slopes; `states` move with `rates`, and ``t`` with rate 1; `others` are further outputs."""
    sources = {*states, symbol("t")}
    found: dict[Expr, list[tuple[Expr, Expr]]] = {}
    while True:
        wanted = [*states, *rates, *others, *(s for pairs in found.values() for _, s in pairs)]
        nodes = ordered(wanted)
        for node in nodes:
            check_has_series(node)
        moving = moving_of(nodes, sources)
        fresh = [node for node in nodes if node.op in FUNCTIONS and node in moving and node not in found]
        if not fresh:
            return Plan(dict(zip(states, rates, strict=True)), tuple(nodes), frozenset(moving), found)
        found |= {node: [(x, s) for x, s in slopes(node) if x in moving] for node in fresh}


def moving_of(nodes: Iterable[Expr], sources: set[Expr]) -> set[Expr]:
    """Return the nodes that depend on the sources; `nodes` lists arguments first."""
    moving: set[Expr] = set()
    for node in nodes:
        if node in sources or (node.op not in LOOK_UPS and any(a in moving for a in node.args if isinstance(a, Expr))):
            moving.add(node)
    return moving


# --- powers -----------------------------------------------------------------------------------------


Monomial = tuple[Expr, Expr | None, int]
"""c x^n: the constant coefficient, the base (None for n = 0), and n."""


def with_collected_factors(outputs: Sequence[Expr], sources: set[Expr]) -> list[Expr]:
    """Rewrite formulas with one constant factor in each product, and quotients c x^-n as ``whole_power``."""
    nodes = ordered(outputs)
    moving = moving_of(nodes, sources)
    of: dict[Expr, Monomial] = {}
    new: dict[Expr, Expr] = {}
    for node in nodes:
        of[node] = _monomial(node, moving, of, new)
        new[node] = _rewritten(node, of, new)
    return [new[node] for node in outputs]


def _monomial(node: Expr, moving: set[Expr], of: dict[Expr, Monomial], new: dict[Expr, Expr]) -> Monomial:
    if node not in moving:
        return node, None, 0
    if node.op in OPERATORS:
        (c, x, n), (d, y, m) = of[node.args[0]], of[node.args[1]]
        if node.op == "mul" and (x is y or x is None or y is None):
            return c * d, x if y is None else y, n + m
        if node.op == "div" and (x is y or x is None or y is None):
            base, power = (y, n - m) if x is None else (x, n - m)
            return (c / d, base, power) if power else (lift(1), node, 1)
        if node.op in ("add", "sub") and x is y and n == m:
            return (c + d if node.op == "add" else c - d), x, n
        if node.op == "sub" and is_number(node.args[0], 0):
            return -d, y, m
    return lift(1), node, 1


def _rewritten(node: Expr, of: dict[Expr, Monomial], new: dict[Expr, Expr]) -> Expr:
    c, x, n = of[node]
    if n < 0 and x is not None and not (n == -1 and node.op == "div"):
        return c * Expr.make("whole_power", new[x], n)
    if n == 1 and x is not None and x is not node and node.op in ("mul", "div"):
        return c * new[x]
    args = [new[a] if isinstance(a, Expr) else a for a in node.args]
    return Expr.make(node.op, *args)
