"""Reference solutions by Taylor series in any number of digits, independent of the methods."""

from __future__ import annotations

import math
from typing import Any

from ..kernels.so3 import add, apply, cross, matrix, mul, unit
from ..numbers.multiprecision import mp, number
from ..physics.problem import Problem
from ..symbolic.expression import Expr, lift, symbol, symbols
from ..taylor.graph import Plan, plan, substituted
from ..taylor.interpreter import GUARD, _reach, _sum, expansion

Pair = tuple[tuple[Any, ...], tuple[Any, ...]]


def equations(problem: Problem) -> list[Expr]:
    """The rates q' = q (0, omega)/2 and m' = m x omega + T.

    Formulas of the symbols q0..q3, m0..m2, t, Jij (inverse inertia) and p0, p1, ... (parameters).
    """
    q, m = symbols("q", 4), symbols("m", 3)
    known = _inverse_inertia(problem)
    names = [[f"J{i}{j}" for j in range(3)] for i in range(3)]
    inverse: Any = [[symbol(name) if name in known else lift(0) for name in row] for row in names]
    omega = apply(inverse, m)
    turning = tuple(x / 2 for x in mul(q, (0, *omega)))
    change = cross(m, omega)
    if problem.field is not None:
        R = matrix(q)
        meaning = {"t": symbol("t")} | {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)}
        meaning |= {f"w{i}": omega[i] for i in range(3)}
        meaning |= {f"p{i}": symbol(f"p{i}") for i in range(len(problem.field.parameters))}
        force = substituted(problem.field.graph[0], meaning)
        change = add(change, (force[0], force[1], force[2]))
    return [*turning, *change]


def _inverse_inertia(problem: Problem) -> dict[str, Any]:
    """Nonzero entries of the inverse inertia tensor in the user's axes.

    The tensor's floats count as exact. A linear body rotates only perpendicular to its axis: its inverse is the sum of
    a a^T/I over the two other principal axes a.
    """
    body = problem.body
    if not body.has_principal_rotation:
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
    """Values of the constant symbols: inverse inertia and parameters."""
    parameters = problem.field.parameters if problem.field else ()
    return _inverse_inertia(problem) | {f"p{i}": number(x) for i, x in enumerate(parameters)}


def _before_switch(ready: Plan, series: dict[Expr, list[Any]], h: Any, digits: int) -> Any:
    """The step h, shortened to end just after the first change of a comparison."""
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
    """The flow by successive expansions, each used over 1/fraction of its reach."""
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
    h : time span, of either sign
    digits : the truncation error is 10^-digits relative to the state
    t, state : another start: a time, and (quaternion, momentum) in the user's axes
    """
    return _travel(problem, h, digits, t, state, 1)


def solution(problem: Problem, t_end: Any, digits: int = 34) -> tuple[Any, Any, float]:
    """State (q, m) at a time, and its difference from a second run with halved steps (the larger of both)."""
    with mp.workdps(digits + GUARD):
        h = mp.mpf(t_end) - mp.mpf(problem.t0)
    (q, m), (q2, m2) = (_travel(problem, h, digits + 4 * (n - 1), None, None, n) for n in (1, 2))
    error = max(abs(a - b) for a, b in zip((*q, *m), (*q2, *m2), strict=True))
    return q2, m2, float(error)
