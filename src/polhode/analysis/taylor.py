"""Reference solutions: the flow as a Taylor series, in any precision, without any step kernel.

The equations of motion are written as a graph of elementary operations, and the Taylor coefficients of
every node follow order by order. With c_k the k-th coefficient of a node in the time since the start,

    (a b)_k = sum_j a_j b_(k-j),        (a/b)_k = (a_k - sum_(j>=1) b_j (a/b)_(k-j)) / b_0,

and an elementary function with dy = sum s dx has k y_k = sum_j j x_j s_(k-j): its slopes s are nodes of the
same graph, needed only in lower orders. A branch (`where`, `abs`) is followed as chosen at the start of an
expansion, and the step is cut where the choice changes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import scalar
from ..backends import floats
from ..backends.multiprecision import Mp, mp, number
from ..expression import LOOK_UPS, Expr, lift, symbol
from ..plans import LOGIC, Plan, plan, substituted
from ..problem import Problem
from ..scalar import FUNCTIONS, Floats
from ..so3 import add, apply, cross, matrix, mul, unit

GUARD = 15
"""Digits carried beyond those asked for."""


class Arithmetic(NamedTuple):
    """What an expansion asks of a number type: conversion of constants, elementary functions, scalar product."""

    number: Callable[[Any], Any]
    functions: Any
    dot: Callable[[Any, Any], Any]


MULTIPRECISION = Arithmetic(number, Mp, lambda a, b: mp.fdot(a, b))
DOUBLES = Arithmetic(floats.number, scalar.Floats, lambda a, b: sum(map(operator.mul, a, b)))

Pair = tuple[tuple[Any, ...], tuple[Any, ...]]


# --- the equations of motion as a graph -------------------------------------------------------------


def equations(problem: Problem) -> list[Expr]:
    """The rates q' = q (0, omega)/2 and m' = m x omega + T.

    Formulas of the symbols q0..q3, m0..m2, t, Jij (inverse inertia) and p0, p1, ... (parameters).
    """
    q = tuple(symbol(f"q{i}") for i in range(4))
    m = tuple(symbol(f"m{i}") for i in range(3))
    known = _inverse_inertia(problem)
    inverse = tuple(tuple(symbol(f"J{i}{j}") if f"J{i}{j}" in known else lift(0) for j in range(3)) for i in range(3))
    omega = apply(inverse, m)  # type: ignore[arg-type]
    turning = tuple(x / 2 for x in mul(q, (0, *omega)))  # type: ignore[arg-type]
    change = cross(m, omega)  # type: ignore[arg-type]
    if problem.field is not None:
        R = matrix(q)  # type: ignore[arg-type]
        meaning = {"t": symbol("t")} | {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)}
        meaning |= {f"w{i}": omega[i] for i in range(3)}
        meaning |= {f"p{i}": symbol(f"p{i}") for i in range(len(problem.field.parameters))}
        force = substituted(problem.field.graph[0], meaning)
        change = add(change, (force[0], force[1], force[2]))
    return [*turning, *change]


def _inverse_inertia(problem: Problem) -> dict[str, Any]:
    """Entries of the inverse inertia tensor in the user's axes, those that are not zero.

    The tensor's floats are exact. A linear body turns only across its axis: there the sum of a a^T/I over
    the two other principal axes a is taken.
    """
    body = problem.body
    if not body.has_own_axes:
        return {f"J{i}{i}": 1 / number(x) for i, x in enumerate(body.moments.tolist()) if x > 0}
    if body.linear_axis is None:
        full = mp.matrix([[number(x) for x in row] for row in body.inertia.tolist()]) ** -1
    else:
        full = mp.zeros(3, 3)
        for moment, axis in zip(body.moments.tolist(), body.axes.T.tolist(), strict=True):
            if moment > 0:
                a = mp.matrix([number(x) for x in axis])
                full += a * a.T / number(moment)
    return {f"J{i}{j}": full[i, j] for i in range(3) for j in range(3)}


def constants_of(problem: Problem) -> dict[str, Any]:
    """Values of the symbols that do not change: inverse inertia and parameters."""
    parameters = problem.field.parameters if problem.field else ()
    return _inverse_inertia(problem) | {f"p{i}": number(x) for i, x in enumerate(parameters)}


# --- Taylor coefficients of a graph -----------------------------------------------------------------


def _value(node: Expr, values: list[Any], kind: Arithmetic) -> Any:
    """A node at the start of the expansion."""
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
    """The y with dy = sum s dx: k y_k = sum_j j x_j s_(k-j)."""
    weighted: list[list[Any]] = [[] for _ in terms]

    def rule(k: int) -> Any:
        total = kind.number(0)
        for (x, s), jx in zip(terms, weighted, strict=True):
            jx.append(k * x[k])
            total += kind.dot(jx, s[k - 1 :: -1])
        return total / k

    return rule


def _rule(node: Expr, series: dict[Expr, list[Any]], ready: Plan, kind: Arithmetic) -> Rule:
    """How a moving node's k-th coefficient follows from what is known before it."""
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
    """Taylor coefficients 0..order of every node (of a logical node its value at the start)."""
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
    """The part of h over which the last two terms of every group stay 10^-digits below its largest term."""
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
    """The series at h, by Horner's rule."""
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * h + c
    return total


def _before_switch(ready: Plan, series: dict[Expr, list[Any]], h: Any, digits: int) -> Any:
    """h, or the part of it that ends just behind the first change of a comparison."""
    for node in ready.nodes:
        if node.op not in ("lt", "le") or node not in ready.moving:
            continue
        gap = [a - b for a, b in zip(series[node.args[0]], series[node.args[1]], strict=True)]
        truth = bool(series[node][0])

        def same(x: Any, gap: list[Any] = gap, op: str = node.op, truth: bool = truth) -> bool:
            value = _sum(gap, x)
            return bool(value < 0 if op == "lt" else value <= 0) is truth

        if same(h):
            continue
        low, high = mp.mpf(0), mp.mpf(1)
        while high - low > mp.mpf(10) ** -(digits + GUARD // 2):
            middle = (low + high) / 2
            low, high = (middle, high) if same(h * middle) else (low, middle)
        h *= min(1, high + mp.mpf(10) ** -digits)
    return h


def _start(problem: Problem, t: Any, state: Pair | None) -> tuple[Any, Pair]:
    q, m = (problem.quaternion, problem.momentum) if state is None else state
    q = unit(tuple(mp.mpf(x) for x in q))
    return mp.mpf(problem.t0 if t is None else t), (q, tuple(mp.mpf(x) for x in m))


def _travel(problem: Problem, h: Any, digits: int, t: Any, state: Pair | None, fraction: int) -> Pair:
    """The flow in as many expansions as it takes, each used over 1/fraction of its reach."""
    work = digits + 4
    order = math.ceil(work * math.log(10) / 2) + 2
    with mp.workdps(digits + GUARD):
        now, (q, m) = _start(problem, t, state)
        left = mp.mpf(h)
        states = [*(symbol(f"q{i}") for i in range(4)), *(symbol(f"m{i}") for i in range(3))]
        ready, fixed = plan(states, equations(problem)), constants_of(problem)
        while left != 0:
            start = fixed | dict(zip([s.args[0] for s in states], (*q, *m), strict=True)) | {"t": now}
            series = expansion(ready, start, order)
            found = [series[s] for s in states]
            step = _reach((found[:4], found[4:]), left * fraction, work) / fraction
            step = _before_switch(ready, series, step, digits)
            q = unit(tuple(_sum(c, step) for c in found[:4]))
            m = tuple(_sum(c, step) for c in found[4:])
            now, left = now + step, left - step
        return q, m


def flow(problem: Problem, h: Any, digits: int = 50, t: Any = None, state: Pair | None = None) -> Pair:
    """The exact state (q, m), in the user's axes, a time h after the problem's start or a given one.

    Parameters
    ----------
    problem : its floats count as exact; the attitude is normalised in full precision
    h : time to go, of either sign
    digits : truncation stays 10^-digits below the state
    t, state : where to start instead: a time, and (quaternion, momentum) in the user's axes
    """
    return _travel(problem, h, digits, t, state, 1)


def solution(problem: Problem, t_end: Any, digits: int = 34) -> tuple[Any, Any, float]:
    """State (q, m) at a time, and how much a second run with halved steps differs (the larger of both)."""
    with mp.workdps(digits + GUARD):
        h = mp.mpf(t_end) - mp.mpf(problem.t0)
    (q, m), (q2, m2) = (_travel(problem, h, digits + 4 * (n - 1), None, None, n) for n in (1, 2))
    error = max(abs(a - b) for a, b in zip((*q, *m), (*q2, *m2), strict=True))
    return q2, m2, float(error)
