"""Taylor series of the flow for reference solutions, in any precision, without any step kernel.

The equations of motion are a graph of elementary operations, and the Taylor coefficients of
every node follow order by order. With c_k the k-th coefficient of a node in the time since the start,

    (a b)_k = sum_j a_j b_(k-j),        (a/b)_k = (a_k - sum_(j>=1) b_j (a/b)_(k-j)) / b_0,

and an elementary function with dy = sum s dx has k y_k = sum_j j x_j s_(k-j): its slopes s are nodes of the
same graph, needed only at lower orders. A branch (`where`, `abs`) is chosen at the start of an expansion, and
the step ends where the choice changes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..numbers import dispatch, floats
from ..numbers.dispatch import Floats
from ..numbers.multiprecision import Mp, mp, number
from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import LOOK_UPS, Expr
from .graph import LOGIC, Plan

GUARD = 15
"""Digits carried beyond the requested ones."""


class Arithmetic(NamedTuple):
    """Operations of a number type that an expansion needs: conversion of constants, functions, scalar product."""

    number: Callable[[Any], Any]
    functions: Any
    dot: Callable[[Any, Any], Any]


MULTIPRECISION = Arithmetic(number, Mp, lambda a, b: mp.fdot(a, b))
DOUBLES = Arithmetic(floats.number, dispatch.Floats, lambda a, b: sum(map(operator.mul, a, b)))


# --- Taylor coefficients of a graph -----------------------------------------------------------------


def _value(node: Expr, values: list[Any], kind: Arithmetic) -> Any:
    """Value of a node at the start of the expansion."""
    op, x = node.op, values
    if op in ("const", "named"):
        value = node.args[0]
        return tuple(map(kind.number, value)) if isinstance(value, tuple) else kind.number(value)
    if op in LOOK_UPS:
        return getattr(Floats, op)(*values)
    if op == "where":
        return x[1] if x[0] else x[2]
    table: dict[str, Callable[[], Any]] = {
        "add": lambda: x[0] + x[1], "sub": lambda: x[0] - x[1], "mul": lambda: x[0] * x[1], "div": lambda: x[0] / x[1],
        "lt": lambda: x[0] < x[1], "le": lambda: x[0] <= x[1], "eq": lambda: x[0] == x[1],
        "ne": lambda: x[0] != x[1], "and": lambda: x[0] and x[1], "or": lambda: x[0] or x[1],
    }  # fmt: skip
    return table[op]() if op in table else getattr(kind.functions, op)(*values)


Rule = Callable[[int], Any]


def _primitive(terms: list[tuple[list[Any], list[Any]]], kind: Arithmetic) -> Rule:
    """Rule for y with dy = sum s dx: k y_k = sum_j j x_j s_(k-j)."""
    weighted: list[list[Any]] = [[] for _ in terms]

    def rule(k: int) -> Any:
        total = kind.number(0)
        for (x, s), jx in zip(terms, weighted, strict=True):
            jx.append(k * x[k])
            total += kind.dot(jx, s[k - 1 :: -1])
        return total / k

    return rule


def _rule(node: Expr, series: dict[Expr, list[Any]], ready: Plan, kind: Arithmetic) -> Rule:
    """Rule for the k-th coefficient of a time-dependent node from the coefficients known before it."""
    if node in ready.rates_of:
        rate = series[ready.rates_of[node]]
        return lambda k: rate[k - 1] / k
    if node.op == "symbol":
        return lambda k: kind.number(int(k == 1))
    if node.op in FUNCTIONS:
        return _primitive([(series[x], series[s]) for x, s in ready.slopes[node]], kind)
    if node.op == "where":
        chosen = series[node.args[1] if series[node.args[0]][0] else node.args[2]]
        return lambda k: chosen[k]
    a, b = (series[x] for x in node.args)
    if node.op == "add":
        return lambda k: a[k] + b[k]
    if node.op == "sub":
        return lambda k: a[k] - b[k]
    if node.op == "mul":
        if node.args[0] not in ready.moving:
            return lambda k: a[0] * b[k]
        if node.args[1] not in ready.moving:
            return lambda k: a[k] * b[0]
        return lambda k: kind.dot(a[: k + 1], b[k::-1])
    if node.args[1] not in ready.moving:
        return lambda k: a[k] / b[0]
    c = series[node]
    return lambda k: (a[k] - kind.dot(b[1 : k + 1], c[k - 1 :: -1])) / b[0]


def expansion(
    ready: Plan, start: dict[str, Any], order: int, kind: Arithmetic = MULTIPRECISION
) -> dict[Expr, list[Any]]:
    """Taylor coefficients 0..order of every node; for a logical node, its value at the start."""
    series: dict[Expr, list[Any]] = {}
    for node in ready.nodes:
        args = [series[a][0] for a in node.args if isinstance(a, Expr)]
        first = start[node.args[0]] if node.op == "symbol" else _value(node, args, kind)
        still = node not in ready.moving
        series[node] = [first, *[kind.number(0)] * order] if still else [first]
    rules = [(series[n], _rule(n, series, ready, kind)) for n in ready.nodes if n in ready.moving and n.op not in LOGIC]
    for k in range(1, order + 1):
        for coefficients, rule in rules:
            coefficients.append(rule(k))
    return series


# --- the flow ---------------------------------------------------------------------------------------


def _reach(groups: Sequence[Sequence[list[Any]]], h: Any, digits: float) -> Any:
    """Shorten h until the last two terms of every group are a factor 10^digits below its largest term."""
    order = len(groups[0][0]) - 1
    sizes = [[max(float(mp.mag(c[k])) for c in group) for k in range(order + 1)] for group in groups]
    whole = reach = float(mp.log(abs(h), 2))
    for _ in range(1000):
        terms = [[size + k * reach for k, size in enumerate(group)] for group in sizes]
        excess = max(max(t[-2:]) - max(t) + digits * math.log2(10) for t in terms if max(t) > -math.inf)
        if excess <= 0:
            break
        reach -= (excess + 1) / order
    else:
        raise ArithmeticError("the Taylor series of the motion does not converge here")
    return h if reach == whole else h * mp.mpf(2) ** (reach - whole)


def _sum(coefficients: list[Any], h: Any) -> Any:
    """Sum of the series at h, by Horner's rule."""
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * h + c
    return total
