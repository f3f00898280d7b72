"""Energy preservation on the polhode: after a step of any method the body is turned until its energy is right.

S. R. Buss, the talk of 2011, part III, in closed form instead of his hyperboloids (docs/buss.md). With a_i = 1/I_i the
squares of the momentum's components are moved to

    m_i'^2 = m_i^2 (1 + s k_i),     k_i = sum_j (a_i - a_j) m_j^2,     s = 2 (E* - E)/|Pi x omega|^2,

which keeps |Pi| since sum m_i^2 k_i = 0, gives the energy E* since sum a_i m_i^2 k_i = |Pi x omega|^2, and keeps signs.
Then the least turn from m' to m is given to the attitude, so that the momentum in space is not touched.

E* is the energy at the start of the step and the work done in it. Energies are counted from that of a spin about the
axis d of the largest component, 2 E - a_d |Pi|^2 = sum (a_i - a_d) m_i^2, small next to a principal axis and there
without cancellation; a torque T changes it at the rate 2 sum (a_i - a_d) m_i T_i. That is integrated by a Gauss rule:
the attitude at its nodes by cubic interpolation between the ends of the step, the momentum by collocation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..compose import whole
from ..declare import NEEDS, Method, Step, declare, methods
from ..errors import InputError
from ..exact_numbers import converted
from ..scalar import Number, Quat, Vec3, absent, epsilon, kernel, sqrt, where
from ..so3 import add, along, conj, cross, dot, mul, rotate, scale, times, unit, unrotate
from ..tableaus import Tableau, tableaus
from ..unroll import combination, written
from ._mechanics import velocity

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
def on_polhode(m: Vec3, twice: Number, lead: Vec3, system: Any) -> Vec3:
    """The momentum m moved to the polhode on which sum lead_i m_i^2 is `twice`.

    On a principal axis it stays. Where the direction of the move leaves the octant before it meets the polhode, the
    component that would change its sign becomes zero and the two integrals fix the others (u changes neither of them).
    Where there is no such polhode, because more work was done than the momentum allows, it stays.
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
    lacking = twice - (lead[0] * x + lead[1] * y + lead[2] * z)
    s = where(straight, 0 * bend, lacking) / where(straight, 1 + bend, bend)
    r = (1 + s * k[0], 1 + s * k[1], 1 + s * k[2])
    inside = (r[0] >= 0) & (r[1] >= 0) & (r[2] >= 0)
    n = _with_zero((x * r[0], y * r[1], z * r[2]), u)
    out = -tiny * square
    found = (n[0] > out) & (n[1] > out) & (n[2] > out)
    return (
        _moved(m[0], x, r[0], n[0], inside, found),
        _moved(m[1], y, r[1], n[1], inside, found),
        _moved(m[2], z, r[2], n[2], inside, found),
    )


@kernel
def _moved(m: Number, square: Number, r: Number, n: Number, inside: Any, found: Any) -> Number:
    """A component: m sqrt(r) inside the octant, else the root of n, else m."""
    n = where(found, where(n > 0, n, 0 * n), square)
    return where(inside, m, _sign(m)) * sqrt(where(inside, r, n))


@kernel
def least_turn(a: Vec3, b: Vec3) -> Quat:
    """The quaternion of the least rotation from a to b, vectors of one length; of two zeros, no rotation."""
    c, square = cross(a, b), dot(b, b)
    return unit((where(square > 0, square + dot(a, b), 1 + square), c[0], c[1], c[2]))


@kernel
def _corrected(y: Any, twice: Number, lead: Vec3, system: Any) -> Any:
    """The state turned onto the polhode, its momentum in space kept."""
    q, m = y
    moved = on_polhode(m, twice, lead, system)
    return mul(q, least_turn(moved, m)), moved


@kernel
def _corrected_remembering(y: Any, twice: Number, lead: Vec3, system: Any) -> Any:
    q, m = _corrected((y[0], y[1]), twice, lead, system)
    return q, m, y[2]


# --- the work ---------------------------------------------------------------------------------------


def _between(c: Any) -> Callable[..., Any]:
    """Kernel: the turn since the start at the fraction c of a step, by Hermite's cubic in the quaternion.

    Of the whole turn p and the velocities at both ends: p' = p omega/2.
    """
    far, near = c * c * (3 - 2 * c), (1 + 2 * c) * (1 - c) * (1 - c)
    out, back = c * (1 - c) * (1 - c) / 2, c * c * (c - 1) / 2

    @kernel
    def between(h: Any, p: Any, w0: Any, w1: Any) -> Any:
        d = mul(p, (0 * h, w1[0], w1[1], w1[2]))
        a, b = out * h, back * h
        return unit((
            near + far * p[0] + b * d[0],
            far * p[1] + a * w0[0] + b * d[1],
            far * p[2] + a * w0[1] + b * d[2],
            far * p[3] + a * w0[2] + b * d[3],
        ))  # fmt: skip

    return between


@kernel
def _plain(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    return torque(t, q, m, system)


@kernel
def _first_of(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    """The torque itself, where it comes with derivatives or with that of V."""
    return torque(t, q, m, system)[0]


@kernel
def _seen(c: Number, p: Quat, m: Vec3, end: Vec3) -> Vec3:
    """The body momentum at a fraction of the step, that in space taken as linear."""
    return unrotate(p, add(scale(1 - c, m), scale(c, end)))


def _work(tableau: Tableau, number: Any, force: Step) -> Step:
    """Kernel: the integral of 2 sum lead_i m_i T_i over a step from y that ended in `new`."""
    stages = range(len(tableau.b))
    space: dict[str, Any] = {
        "mul": mul, "conj": conj, "rotate": rotate, "unrotate": unrotate, "along": along, "dot": dot, "times": times,
        "velocity": velocity, "force": force, "seen": _seen,
    }  # fmt: skip
    for i in stages:
        c = converted(tableau.c[i], number)
        space |= {f"c{i}": c, f"between{i}": _between(c), f"b{i}": converted(tableau.b[i], number)}
        space[f"total{i}"] = combination([converted(x, number) for x in tableau.a[i]])
    forces = "".join(f"f{i}, " for i in stages)
    lines = ["q, m = y[0], y[1]", "p = mul(conj(q), new[0])", "end = rotate(p, new[1])"]
    lines += ["w0, w1 = velocity(m, system), velocity(new[1], system)"]
    for i in stages:
        lines += [f"p{i} = between{i}(h, p, w0, w1)"]
        lines += [f"e{i} = force(t + c{i} * h, mul(q, p{i}), seen(c{i}, p{i}, m, end), system, torque)"]
        lines += [f"f{i} = rotate(p{i}, e{i})"]
    lines += [f"m{i} = unrotate(p{i}, along(m, h, total{i}(({forces}))))" for i in stages]
    power = " + ".join(f"b{i} * dot(times(lead, m{i}), e{i})" for i in stages)
    done = f"where(absent(e0), 0 * h, 2 * h * ({power}))"
    return written("h, t, y, new, lead, system, torque", done, *lines, where=where, absent=absent, **space)


# --- the combinator ---------------------------------------------------------------------------------


def _step(base: Method, rule: Tableau | None, number: Any) -> Step:
    """The step kernel: the base, and the turn; without a rule no work is done."""
    step = base.build(number) if base.memory else whole(base)(number)
    corrected = _corrected_remembering if base.memory else _corrected

    @kernel
    def free(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, miss = step(h, t, y, system, torque)
        lead = leads(y[1], system)
        return corrected(new, dot(times(lead, y[1]), y[1]), lead, system), miss

    if rule is None:
        return free
    work = _work(rule, number, _first_of if base.corrector or base.derivatives else _plain)

    @kernel
    def forced(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, miss = step(h, t, y, system, torque)
        lead = leads(y[1], system)
        twice = dot(times(lead, y[1]), y[1]) + work(h, t, y, new, lead, system, torque)
        return corrected(new, twice, lead, system), miss

    return forced


WORK_ORDER = 4
"""Order of the work by the rule with two nodes, for torques that do not depend on the velocity."""


def ep(part: str | Method) -> Method:
    """The same method, its energy kept: the body is turned back to its polhode after every step.

    For the free body the energy is exact. With a torque it advances by the work done, integrated to the order of the
    method but at most to order 4; of a method made of the series of the motion (Lie-Taylor) there is only the one for
    the free body. A free flow that keeps the energy itself is returned as it is.
    """
    base = methods[part]
    if "spatial_momentum" not in base.conserves or base.compensated:
        able = ", ".join(m.name for m in methods.values() if "spatial_momentum" in m.conserves)
        why = "carries low parts of the state" if base.compensated else "does not conserve the spatial momentum"
        raise InputError(
            f"ep() turns the body about a momentum that the method keeps, and {base.name} {why}; take {able}"
        )
    kept = "energy" in base.conserves
    if kept and base.needs == "free":
        return base
    rule, needs = None, "free" if base.series else base.needs
    if needs != "free":
        rule = tableaus["midpoint" if base.order <= 2 else "gauss2"]
        needs = base.needs if base.order <= 2 else min(base.needs, "attitude", key=NEEDS.index)
    return declare(
        functools.partial(_step, base, rule), register=False, name=f"ep({base.name})",
        order=base.order_free if rule is None else min(base.order, WORK_ORDER), order_free=base.order_free,
        symmetric=False, symplectic=False, poisson=base.poisson if kept else False, implicit=base.implicit,
        solves=base.solves, torque_evals=base.torque_evals + len(rule.b) if rule else 0, needs=needs,
        conserves=("energy", "spatial_momentum", "momentum_norm"), corrector=base.corrector,
        derivatives=base.derivatives, series=base.series, linear_bodies=base.linear_bodies,
        flat_bodies=base.flat_bodies, identity=base.identity, memory=base.memory,
        before=base.before if base.memory else None, cite="buss2011",
        where=f"part III, energy preservation; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with energy preservation on the polhode.",
    )  # fmt: skip


methods.add_combinator("ep", ep)
