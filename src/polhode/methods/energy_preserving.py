"""Energy preservation on the polhode: after a step of any method the body is turned until its energy is right.

S. R. Buss, the talk of 2011, part III, in closed form instead of his hyperboloids (docs/buss.md). With a_i = 1/I_i the
squares of the momentum's components are moved to

    m_i'^2 = m_i^2 (1 + s k_i),     k_i = sum_j (a_i - a_j) m_j^2,     s = 2 (E* - E)/|Pi x omega|^2,

which keeps |Pi| since sum m_i^2 k_i = 0, gives the energy E* since sum a_i m_i^2 k_i = |Pi x omega|^2, and keeps signs.
Then the least turn from m' to m is given to the attitude, so that the momentum in space is not touched.

E* is the energy at the start of the step and the work done in it. Energies are counted from that of a spin about the
axis d of the largest component, 2 E - a_d |Pi|^2 = sum (a_i - a_d) m_i^2, small next to a principal axis and there
without cancellation; a torque T changes it at the rate 2 sum (a_i - a_d) m_i T_i. That is integrated over the step: for
methods of order 1 and 2 by the midpoint rule, of order 3 and 4 by Simpson's rule, with the state in the middle of the
step by Hermite interpolation between its ends; for higher orders by a Gauss rule, with the states at its nodes by
shorter steps of the method itself; and of Lie-Taylor as one more of its series.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..carry import grown, rounded
from ..compose import whole
from ..declare import Method, Step, declare, methods
from ..errors import InputError
from ..scalar import Number, Quat, Vec3, absent, epsilon, fork, kernel, sqrt, where
from ..so3 import add, along, conj, cross, dot, mul, rotate, scale, sub, times, unit, unrotate
from ..tableaus import gauss_rule
from ._mechanics import velocity
from .lie_taylor import turned
from .step_density import varied

# --- the projection ---------------------------------------------------------------------------------


@kernel
def leads(m: Vec3, system: Any) -> Vec3:
    """The a_i - a_d, with d the axis of the largest component."""
    x, y, z = m[0] * m[0], m[1] * m[1], m[2] * m[2]
    a = system[1]
    d = where((x >= y) & (x >= z), a[0], where(y >= z, a[1], a[2]))
    return (a[0] - d, a[1] - d, a[2] - d)


@kernel
def _sign(x: Number) -> Number:
    one = 0 * x + 1
    return where(x < 0, -one, one)


@kernel
def _inverse(x: Number) -> Number:
    """1/x, or zero of zero."""
    return where(x == 0, x, 1 / where(x == 0, 1 + x, x))


@kernel
def _with_zero(n: Vec3, u: Vec3) -> Vec3:
    """Squares n, one of them negative, moved along u until that one is zero."""
    v = (_inverse(u[0]), _inverse(u[1]), _inverse(u[2]))
    part = where(n[0] < 0, n[0] * v[0], where(n[1] < 0, n[1] * v[1], n[2] * v[2]))
    return along(n, -part, u)


@kernel
def to_polhode(m: Vec3, lacking: Number, system: Any) -> Vec3:
    """What to add to the momentum m so that twice its energy grows by `lacking` and its length stays.

    On a principal axis nothing. Where the direction of the move leaves the octant before it meets the polhode, the
    component that would change its sign becomes zero and the two integrals fix the others (u changes neither of them).
    Where there is no such polhode, because more work was done than the momentum allows, nothing.
    """
    a = system[1]
    x, y, z = m[0] * m[0], m[1] * m[1], m[2] * m[2]
    u = (a[1] - a[2], a[2] - a[0], a[0] - a[1])
    k = (y * u[2] - z * u[1], z * u[0] - x * u[2], x * u[1] - y * u[0])
    w = velocity(m, system)
    whirl = cross(m, w)
    bend, square = dot(whirl, whirl), x + y + z
    tiny = epsilon(bend)
    straight = bend <= tiny * tiny * (square * dot(w, w))
    s = where(straight, 0 * bend, lacking) / where(straight, 1 + bend, bend)
    r = (1 + s * k[0], 1 + s * k[1], 1 + s * k[2])
    inside = (r[0] >= 0) & (r[1] >= 0) & (r[2] >= 0)
    n = _with_zero((x * r[0], y * r[1], z * r[2]), u)
    out = -tiny * square
    found = (n[0] > out) & (n[1] > out) & (n[2] > out)
    return (
        _move(m[0], s * k[0], n[0], inside, found),
        _move(m[1], s * k[1], n[1], inside, found),
        _move(m[2], s * k[2], n[2], inside, found),
    )


@kernel
def _move(m: Number, part: Number, n: Number, inside: Any, found: Any) -> Number:
    """A component's change: m (sqrt(1 + part) - 1) inside the octant, else to the root of n, else none."""
    near = m * part / (1 + sqrt(where(inside, 1 + part, 1 + 0 * part)))
    root = _sign(m) * sqrt(where(found & (n > 0), n, 0 * n))
    return where(inside, near, where(found, root - m, 0 * m))


@kernel
def least_turn(change: Vec3, m: Vec3) -> Quat:
    """The quaternion of the least rotation from m + change to m, vectors of one length, less 1; of two zeros, 0."""
    c, square = cross(change, m), dot(m, m)
    w = where(square > 0, 2 * square + dot(change, m), 1 + square)
    size = sqrt(w * w + dot(c, c))
    x, y, z = c[0] / size, c[1] / size, c[2] / size
    return (-(x * x + y * y + z * z) / (1 + w / size), x, y, z)


@kernel
def _growth(new: Any, y: Any) -> Vec3:
    """How the body momentum changed from the state y to a new one."""
    return sub(new[1], y[1])


@kernel
def _growth_carrying(new: Any, y: Any) -> Vec3:
    return add(sub(new[1], y[1]), sub(new[3], y[3]))


@kernel
def _grown(y: Any, dq: Quat, dm: Vec3) -> Any:
    """The state grown by increments of attitude and momentum."""
    q = y[0]
    return (q[0] + dq[0], q[1] + dq[1], q[2] + dq[2], q[3] + dq[3]), add(y[1], dm)


@kernel
def _grown_remembering(y: Any, dq: Quat, dm: Vec3) -> Any:
    q, m = _grown(y, dq, dm)
    return q, m, y[2]


growth = fork(_growth, _growth_carrying, _growth)
increased = fork(_grown, grown, _grown_remembering)


@kernel
def corrected(new: Any, y: Any, done: Number, lead: Vec3, system: Any) -> Any:
    """The state after a step from y, turned onto the polhode that half of `done` leads to; momentum in space kept.

    What lacks is `done` less the change of sum lead_i m_i^2, a product of sum and difference: next to a principal axis
    and over a short step it is small, and this without cancellation.
    """
    m = new[1]
    lacking = done - dot(times(lead, growth(new, y)), add(m, y[1]))
    change = to_polhode(m, lacking, system)
    return increased(new, mul(new[0], least_turn(change, m)), change)


# --- the work ---------------------------------------------------------------------------------------


@kernel
def _plain(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    return torque(t, q, m, system)


@kernel
def _first_of(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    """The torque itself, where it comes with derivatives or with that of V."""
    return torque(t, q, m, system)[0]


@kernel
def _power(lead: Vec3, m: Vec3, force: Vec3) -> Number:
    """Half the rate of sum lead_i m_i^2."""
    return dot(times(lead, m), force)


@kernel
def _half(h: Number, p: Quat, w0: Vec3, w1: Vec3) -> Quat:
    """The turn since the start in the middle of a step, by Hermite's cubic in the quaternion.

    Of the whole turn p and the velocities at both ends: p' = p omega/2.
    """
    d, part = mul(p, (0 * h, w1[0], w1[1], w1[2])), h / 16
    return unit((
        (1 + p[0]) / 2 - part * d[0],
        p[1] / 2 + part * (w0[0] - d[1]),
        p[2] / 2 + part * (w0[1] - d[2]),
        p[3] / 2 + part * (w0[2] - d[3]),
    ))  # fmt: skip


@kernel
def _turns(h: Number, y: Any, new: Any, system: Any) -> tuple[Quat, Quat]:
    """The turn over the whole step from y and over its first half."""
    p = mul(conj(y[0]), new[0])
    return p, _half(h, p, velocity(y[1], system), velocity(new[1], system))


def _midpoint(force: Step) -> Step:
    """Kernel: the work by the midpoint rule, the momentum in space there as the mean of both ends."""

    @kernel
    def work(h: Any, t: Any, y: Any, new: Any, lead: Any, system: Any, torque: Any) -> Any:
        turn, half = _turns(h, y, new, system)
        m = unrotate(half, scale(0.5, add(y[1], rotate(turn, new[1]))))
        e = force(t + h / 2, mul(y[0], half), m, system, torque)
        return where(absent(e), 0 * h, 2 * h * _power(lead, m, e)), 0 * h

    return work


def _simpson(force: Step) -> Step:
    """Kernel: the work by Simpson's rule, the momentum in space in the middle by Hermite's cubic as well."""

    @kernel
    def work(h: Any, t: Any, y: Any, new: Any, lead: Any, system: Any, torque: Any) -> Any:
        turn, half = _turns(h, y, new, system)
        first = force(t, y[0], y[1], system, torque)
        last = force(t + h, new[0], new[1], system, torque)
        mean = scale(0.5, add(y[1], rotate(turn, new[1])))
        m = unrotate(half, along(mean, h / 8, sub(first, rotate(turn, last))))
        e = force(t + h / 2, mul(y[0], half), m, system, torque)
        total = _power(lead, y[1], first) + 4 * _power(lead, m, e) + _power(lead, new[1], last)
        return where(absent(e), 0 * h, h * total / 3), 0 * h

    return work


def _gauss(force: Step, step: Step, rule: Sequence[tuple[Any, Any]]) -> Step:
    """Kernel: the work by a Gauss rule, the states at its nodes by shorter steps from the start."""
    nodes, weights = tuple(c for c, _ in rule), tuple(b for _, b in rule)

    @kernel
    def work(h: Any, t: Any, y: Any, new: Any, lead: Any, system: Any, torque: Any) -> Any:
        total, miss = 0 * h, 0 * h
        if absent(force(t, y[0], y[1], system, torque)):
            return total, miss
        for i in range(len(nodes)):
            part = nodes[i] * h
            (q, m), more = step(part, t, rounded(y), system, torque)
            total = total + weights[i] * _power(lead, m, force(t + part, q, m, system, torque))
            miss = miss + more
        return 2 * h * total, miss

    return work


class Rule(NamedTuple):
    """How the work is integrated in steps of one method."""

    name: str
    build: Callable[[Any], Step]
    torque_evals: int
    solves: int
    torque_at: frozenset[str]


def _rule(base: Method) -> Rule:
    """The work to the order of the method: its state is needed at all points to an order less than that of its steps.

    Of a method of unproven order its number of torque points tells how high that can be.
    """
    force = _first_of if base.corrector or base.derivatives else _plain
    order = 2 * base.torque_evals if base.order is None else base.order
    evals, start = base.torque_evals, base.torque_at & {"start"}
    if order <= 2:
        return Rule("the midpoint rule", lambda number: _midpoint(force), evals + 1, base.solves, start)
    if order <= 4:
        new = 3 - len(base.torque_at)
        return Rule("Simpson's rule", lambda number: _simpson(force), evals + new, base.solves, frozenset({"start"}))
    n = math.ceil(order / 2)
    return Rule(
        f"a Gauss rule of {n} points", lambda number: _gauss(force, whole(base)(number), gauss_rule(n, number)),
        (n + 1) * evals + n * (1 - len(base.torque_at)), (n + 1) * base.solves, start,
    )  # fmt: skip


# --- the combinator ---------------------------------------------------------------------------------


def _energy_wanted(base: Method, rule: Rule | None) -> str:
    """Words and formula for the energy to which a step is brought."""
    if rule is None and not base.series:
        return KEPT
    return WORKED % (f"by {rule.name}" if rule else "as one more of the series of the step")


def _step(base: Method, rule: Rule | None, number: Any) -> Step:
    """The step kernel: the base, and the turn; without a rule no work is done."""
    step = base.build(number) if base.memory else whole(base)(number)

    @kernel
    def free(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, miss = step(h, t, y, system, torque)
        return corrected(new, y, 0 * h, leads(y[1], system), system), miss

    if rule is None:
        return free
    work = rule.build(number)

    @kernel
    def forced(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, miss = step(h, t, y, system, torque)
        lead = leads(y[1], system)
        done, more = work(h, t, y, new, lead, system, torque)
        return corrected(new, y, done, lead, system), miss + more

    return forced


@kernel
def _expanded(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """The step of a method made of series, which give the work too."""
    q, m = y
    lead = leads(m, system)
    turn, end, done = torque(t, q, m, system, h, lead)
    return corrected(turned(q, turn, end), y, done, lead, system), 0 * h


TURN = r"""
After a step of %s the momentum $\Pi$ and the attitude $R$ are corrected. With
$a_i = 1/I_i$, $E = \tfrac{1}{2}\,\Pi \cdot I^{-1} \Pi$ and $E_*$ the energy wanted,

$$\begin{aligned}
s &= \frac{2\,(E_* - E)}{|\Pi \times \omega|^2}, \qquad k_i = \sum_j (a_i - a_j)\,\Pi_j^2, \\
\Pi_i' &= \Pi_i \sqrt{1 + s\,k_i}, \qquad R' = R\,S
\end{aligned}$$

where $S$ is the least rotation that takes $\Pi'$ to $\Pi$, so that $R' \Pi' = R\,\Pi$. It keeps $|\Pi|$ since
$\sum \Pi_i^2 k_i = 0$. Where $1 + s\,k_i$ would be negative that component becomes zero, and the two integrals fix
the others; on a principal axis nothing is changed. %s

The step:

"""
KEPT = r"Without torque $E_*$ is the energy at the start of the step."
WORKED = r"""$E_*$ is the energy at the start of the step and the work done in it,

$$E_* = E_0 + \int_t^{t + h} \omega \cdot T\,ds$$

%s."""


def ep(part: str | Method) -> Method:
    """The same method, its energy kept: the body is turned back to its polhode after every step.

    For the free body the energy is exact. With a torque it advances by the work done, integrated to the order of the
    method. A free flow that keeps the energy itself is returned as it is.
    """
    named = methods[part]
    base = named.alone or named
    if "spatial_momentum" not in base.conserves:
        able = ", ".join(m.name for m in methods.values() if "spatial_momentum" in m.conserves)
        raise InputError(
            f"ep() turns the body about a momentum that the method keeps, and {base.name} does not conserve the "
            f"spatial momentum; take {able}"
        )
    kept = "energy" in base.conserves
    if kept and base.needs == "free":
        return named
    if base.clock and base.part:
        return dataclasses.replace(varied(ep(base.part)), name=f"ep({base.name})")
    rule = None if base.needs == "free" or base.series else _rule(base)
    cost = rule or base
    return declare(
        (lambda number: _expanded) if base.series else functools.partial(_step, base, rule), register=False,
        name=f"ep({base.name})", order=base.order, order_free=base.order_free, symmetric=False, symplectic=False,
        poisson=base.poisson if kept else False, implicit=base.implicit, solves=cost.solves,
        torque_evals=cost.torque_evals, torque_at=cost.torque_at, needs=base.needs,
        conserves=("energy", "spatial_momentum", "momentum_norm"), corrector=base.corrector,
        derivatives=base.derivatives, series=base.series, work=bool(base.series), linear_bodies=base.linear_bodies,
        flat_bodies=base.flat_bodies, identity=base.identity, increments=base.increments,
        compensated=base.compensated, memory=base.memory, before=base.before if base.memory else None,
        cite="buss2011", where=f"part III, energy preservation; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with energy preservation on the polhode.\n" + TURN % (base.name, _energy_wanted(base, rule))
        + base.formula,
    )  # fmt: skip


methods.add_combinator("ep", ep)
