"""Munthe-Kaas Runge-Kutta methods on SO(3), for any Butcher tableau.

Algorithm MKRK of Krysl (2006), section 3.7, after H. Munthe-Kaas, BIT 38 (1998) 92-111. With mu the
momentum in the frame of the start of the step, stage k is

    Psi_k = h sum_j a_kj K_j        K_j = dexp_{-Psi_j}^-1 I^-1 Pi_j      Pi_j = exp(-Psi_j) mu_j
    mu_k  = Pi_0 + h sum_j a_kj G_j G_j = exp(Psi_j) T_j                  T_j  = T(t + c_j h, R_0 exp(Psi_j))

and the step ends with the weights b in place of a_k.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..declare import Method, Step, declare, methods
from ..errors import InputError
from ..exact_numbers import converted
from ..iterate import accelerated
from ..scalar import kernel
from ..so3 import add, along, cross, dexpinv, exp, mul, negative, rotate, scale, sub, unrotate
from ..tableaus import Tableau, aliases, tableaus
from ..unroll import combination, gathered
from ._mechanics import gyration, velocity


@kernel
def _slopes(s: Any, psi: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """K and G of a stage at time s, given its rotation vector and momentum."""
    turn = exp(psi)
    m = unrotate(turn, mu)
    force = torque(s, mul(y[0], turn), m, system)
    return dexpinv(negative(psi), velocity(m, system)), rotate(turn, force)


@kernel
def _empty(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    return (), (), 0


def _start_stage(earlier: Step) -> Step:
    """A stage at the start of the step: K = omega_0, G = T_0."""

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, miss = earlier(h, t, y, system, torque)
        q, m = y
        return (*k, velocity(m, system)), (*g, torque(t, q, m, system)), miss

    return stages


def _explicit_stage(earlier: Step, weights: Sequence[Any], node: Any) -> Step:
    """A stage that uses the earlier ones only."""
    total = combination(weights)

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, miss = earlier(h, t, y, system, torque)
        k1, g1 = _slopes(t + node * h, scale(h, total(k)), along(y[1], h, total(g)), y, system, torque)
        return (*k, k1), (*g, g1), miss

    return stages


def _implicit_block(earlier: Step, rows: Sequence[Sequence[Any]], nodes: Sequence[Any], first: int) -> Step:
    """Stages that need each other: the unknowns are all Psi_k, then all mu_k in units of rotation."""
    n = len(nodes)
    slopes = _block_slopes(nodes, n)
    totals = [combination(row) for row in rows]
    gaps = gathered("x, k, g, data, system", [_gap(totals[i % n], i, i < n) for i in range(2 * n)])
    guess = gathered("h, m, force, system", [_guess(nodes[i % n], i < n) for i in range(2 * n)])
    newton = _linear_solve([row[first : first + n] for row in rows])

    @kernel
    def correction(x: Any, data: Any, system: Any, torque: Any) -> Any:
        k, g = slopes(x, data, system, torque)
        return newton(gaps(x, k, g, data, system), data, system)

    root = accelerated(correction, 2 * n)
    ended = _single_slopes(rows[0], first) if n == 1 else slopes

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, miss = earlier(h, t, y, system, torque)
        q, m = y
        force = torque(t, q, m, system)
        mean = along(m, h / 2, add(gyration(m, system), force))
        data = (h, t, y, k, g, mean)
        x, more = root(guess(h, m, force, system), data, system, torque)
        k, g = ended(x, data, system, torque)
        return k, g, miss + more

    return stages


def _single_slopes(row: Sequence[Any], first: int) -> Step:
    """Kernel: K and G of a block of one stage, read off its solved equations instead of evaluated again."""
    diagonal = row[first]
    known = combination(row[:first])

    @kernel
    def alone(x: Any, data: Any, system: Any, torque: Any) -> Any:
        h = data[0]
        per = 1 / (h * diagonal)
        mu = scale(1 / _unit_of_momentum(h, system), x[1])
        return (scale(per, x[0]),), (scale(per, sub(mu, data[2][1])),)

    @kernel
    def after_others(x: Any, data: Any, system: Any, torque: Any) -> Any:
        h, k, g = data[0], data[3], data[4]
        per = 1 / (h * diagonal)
        mu = scale(1 / _unit_of_momentum(h, system), x[1])
        k1 = scale(per, along(x[0], -h, known(k)))
        g1 = scale(per, along(sub(mu, data[2][1]), -h, known(g)))
        return (*k, k1), (*g, g1)

    return after_others if first else alone


@kernel
def _unit_of_momentum(h: Any, system: Any) -> Any:
    """H times the trace of I^-1: turns a momentum into a rotation of the right size."""
    inverse = system[1]
    return h * (inverse[0] + inverse[1] + inverse[2])


def _block_slopes(nodes: Sequence[Any], count: int) -> Step:
    """Kernel: K and G of the earlier stages and of the first `count` stages of the block."""
    if count == 0:

        @kernel
        def known(x: Any, data: Any, system: Any, torque: Any) -> Any:
            return data[3], data[4]

        return known
    before, node, n, i = _block_slopes(nodes, count - 1), nodes[count - 1], len(nodes), count - 1

    @kernel
    def more(x: Any, data: Any, system: Any, torque: Any) -> Any:
        k, g = before(x, data, system, torque)
        h, t, y = data[0], data[1], data[2]
        mu = scale(1 / _unit_of_momentum(h, system), x[n + i])
        k1, g1 = _slopes(t + node * h, x[i], mu, y, system, torque)
        return (*k, k1), (*g, g1)

    return more


def _gap(total: Step, i: int, is_rotation: bool) -> Step:
    """Kernel: what the equation of unknown i gives, minus what it is."""

    @kernel
    def rotation(x: Any, k: Any, g: Any, data: Any, system: Any) -> Any:
        return sub(scale(data[0], total(k)), x[i])

    @kernel
    def momentum(x: Any, k: Any, g: Any, data: Any, system: Any) -> Any:
        mu = along(data[2][1], data[0], total(g))
        return sub(scale(_unit_of_momentum(data[0], system), mu), x[i])

    return rotation if is_rotation else momentum


def _guess(node: Any, is_rotation: bool) -> Step:
    """Kernel: Psi = c h (omega + c h omega'/2) or mu = Pi_0 + c h T_0, from the start of the step."""

    @kernel
    def rotation(h: Any, m: Any, force: Any, system: Any) -> Any:
        s = node * h
        return scale(s, velocity(along(m, s / 2, add(gyration(m, system), force)), system))

    @kernel
    def momentum(h: Any, m: Any, force: Any, system: Any) -> Any:
        return scale(_unit_of_momentum(h, system), along(m, node * h, force))

    return rotation if is_rotation else momentum


def _linear_solve(rows: Sequence[Sequence[Any]]) -> Step:
    """Kernel: Newton's correction for the residuals r of a block, the torque's derivative left out.

    With M v = I^-1 (Pi x v) - omega x v/2, the derivative of K at the mean momentum, it solves
    d_k - h sum_j a_kj M d_j = r_k + h sum_j a_kj I^-1 (mu residual)_j by two terms of Neumann's series
    (more cost more than they save: the sweeps go on to contract what is left).
    """
    n = len(rows)
    totals = [combination(row) for row in rows]

    def pushed(i: int) -> Step:
        @kernel
        def push(d: Any, data: Any, system: Any) -> Any:
            return velocity(scale(1 / _unit_of_momentum(data[0], system), d[n + i]), system)

        return push

    def turned(i: int) -> Step:
        @kernel
        def turn(d: Any, data: Any, system: Any) -> Any:
            m = data[5]
            return along(velocity(cross(m, d[i]), system), -0.5, cross(velocity(m, system), d[i]))

        return turn

    def one(i: int) -> Step:
        total = totals[i]

        @kernel
        def entry(r: Any, h: Any, v: Any) -> Any:
            return along(r[i], h, total(v))

        return entry

    pushes = gathered("d, data, system", [pushed(i) for i in range(n)])
    turns = gathered("d, data, system", [turned(i) for i in range(n)])
    entries = gathered("r, h, v", [one(i) for i in range(n)])

    @kernel
    def solve(r: Any, data: Any, system: Any) -> Any:
        h = data[0]
        base = entries(r, h, pushes(r, data, system))
        return (*entries(base, h, turns(base, data, system)), *r[n:])

    return solve


def _step(tableau: Tableau, number: Callable[[Any], Any]) -> Step:
    """The step kernel of a tableau in one number type."""
    a = [[converted(x, number) for x in row] for row in tableau.a]
    c = [converted(x, number) for x in tableau.c]
    stages: Step = _empty
    for block in tableau.blocks():
        first = block[0]
        if not tableau.is_explicit(block):
            stages = _implicit_block(stages, [a[k] for k in block], [c[k] for k in block], first)
        elif any(x != 0 for x in tableau.a[first]):
            stages = _explicit_stage(stages, a[first], c[first])
        else:
            stages = _start_stage(stages)
    total = combination([converted(x, number) for x in tableau.b])

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, miss = stages(h, t, y, system, torque)
        turn = exp(scale(h, total(k)))
        return (mul(y[0], turn), unrotate(turn, along(y[1], h, total(g)))), miss

    return step


def mkrk(tableau: str | Tableau, *, register: bool = False) -> Method:
    """The Munthe-Kaas method of a named tableau or of a `Tableau` of your own.

    ``ph.mkrk("rk4")`` and ``ph.methods["mkrk(rk4)"]`` are the same method.
    """
    if not isinstance(tableau, Tableau):
        tableau = aliases.get(tableau, tableau)
        if tableau not in tableaus:
            raise InputError(f"unknown tableau {tableau!r}; the named ones are {', '.join(tableaus)}")
        if not register and f"mkrk({tableau})" in methods:
            return methods[f"mkrk({tableau})"]
        tableau = tableaus[tableau]
    implicit = [block for block in tableau.blocks() if not tableau.is_explicit(block)]
    return declare(
        functools.partial(_step, tableau),
        register=register,
        name=f"mkrk({tableau.name})",
        identity=f"{tableau.a} {tableau.b} {tableau.c}",
        order=tableau.order,
        order_free=tableau.order,
        symmetric=tableau.symmetric,
        symplectic=False,
        poisson=False,
        implicit=bool(implicit),
        solves=sum(len(block) for block in implicit),
        torque_evals=len(tableau.b),
        conserves=("spatial_momentum", "momentum_norm"),
        needs="velocity",
        cite="munthekaas1998",
        where="Krysl (2006), algorithm MKRK",
        doc=f"Munthe-Kaas Runge-Kutta method on SO(3) with the tableau {tableau.name!r}.",
    )


methods.add_combinator("mkrk", mkrk)
for _name in tableaus:
    mkrk(_name, register=True)
