"""Energy preservation on the polhode: after a step of any method the body is rotated until its energy is right.

S. R. Buss, the talk of 2011, part III, in closed form instead of his hyperboloids (docs/buss.md). With a_i = 1/I_i the
squares of the momentum's components become

    m_i'^2 = m_i^2 (1 + s k_i),     k_i = sum_j (a_i - a_j) m_j^2,     s = 2 (E* - E)/|Pi x omega|^2,

which keeps |Pi| since sum m_i^2 k_i = 0, gives the energy E* since sum a_i m_i^2 k_i = |Pi x omega|^2, and keeps signs.
Then the smallest rotation from m' to m is applied to the attitude, so that the spatial momentum does not change.

In a potential U(R) the total energy is kept: E* = E_0 + U(R_0) - U(R_1), with R_1 the attitude after the rotation, so
the size of the rotation is the root of one equation. If no small rotation reaches that energy (a spherical body, spin
about a principal axis, a rotation that changes both energies alike) the momentum is scaled instead. The change of the
potential is that of its discrete gradient (`discrete_gradient.py`), without cancellation.

For any other torque E* is the energy at the start of the step plus the work done in it. Energies are measured from that
of a spin about the axis d of the largest component, 2 E - a_d |Pi|^2 = sum (a_i - a_d) m_i^2, which is small near a
principal axis and has no cancellation there; a torque T changes it at the rate 2 sum (a_i - a_d) m_i T_i. This rate is
integrated over the step: for methods of order 1 and 2 by the midpoint rule, of order 3 and 4 by Simpson's rule, with
the state in the middle of the step by Hermite interpolation between its ends; for higher orders by a Gauss rule, with
the states at its nodes by shorter steps of the method itself; and for Lie-Taylor as one more of its series.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import add, along, conj, dot, mul, rotate, scale, sub, times, unit, unrotate
from ...kernels.state import collapse
from ...numbers.dispatch import by_absence, kernel
from ...numbers.primitives import absent, where
from ...numbers.types import Number, Quat, Vec3
from ..families.taylor import rotated_state
from ..mechanics import velocity
from ..queries import ROTATION_AND_WORK, DiscreteGradient, MotionSeries
from ..ranking import fitting, listed
from ..record import Method
from ..registry import declare, methods
from ..tables.butcher import gauss_rule
from .compose import whole
from .polhode_projection import conserving, corrected, leads
from .reversible import varied

# --- the work ---------------------------------------------------------------------------------------


@kernel
def _plain(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    return torque(t, q, m, system)


@kernel
def _first_of(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    """Return the torque alone, if it comes with derivatives or with the torque of V."""
    return torque(t, q, m, system)[0]


@kernel
def _power(lead: Vec3, m: Vec3, force: Vec3) -> Number:
    """Half the rate of sum lead_i m_i^2."""
    return dot(times(lead, m), force)


@kernel
def _half(h: Number, p: Quat, w0: Vec3, w1: Vec3) -> Quat:
    """Rotation from the start to the middle of a step, by a Hermite cubic in the quaternion.

    The cubic follows from the whole rotation p and the velocities at both ends: p' = p omega/2.
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
    """Return the rotations over the whole step from y and over its first half."""
    p = mul(conj(y[0]), new[0])
    return p, _half(h, p, velocity(y[1], system), velocity(new[1], system))


def _midpoint(force: Step) -> Step:
    """Kernel: the work by the midpoint rule, with the mean of the spatial momenta at both ends."""

    @kernel
    def work(h: Any, t: Any, y: Any, new: Any, lead: Any, system: Any, torque: Any) -> Any:
        turn, half = _turns(h, y, new, system)
        m = unrotate(half, scale(0.5, add(y[1], rotate(turn, new[1]))))
        e = force(t + h / 2, mul(y[0], half), m, system, torque)
        return where(absent(e), 0 * h, 2 * h * _power(lead, m, e)), 0 * h

    return work


def _simpson(force: Step) -> Step:
    """Kernel: the work by Simpson's rule, with the spatial momentum in the middle also by a Hermite cubic."""

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
    """Kernel: the work by a Gauss rule, with the states at its nodes by shorter steps from the start."""
    nodes, weights = tuple(c for c, _ in rule), tuple(b for _, b in rule)

    @kernel
    def work(h: Any, t: Any, y: Any, new: Any, lead: Any, system: Any, torque: Any) -> Any:
        total, residual = 0 * h, 0 * h
        if absent(force(t, y[0], y[1], system, torque)):
            return total, residual
        for i in range(len(nodes)):
            part = nodes[i] * h
            (q, m), more = step(part, t, collapse(y), system, torque)
            total = total + weights[i] * _power(lead, m, force(t + part, q, m, system, torque))
            residual = residual + more
        return 2 * h * total, residual

    return work


class Rule(NamedTuple):
    """Quadrature of the work in steps of one method."""

    name: str
    build: Callable[[Any], Step]
    torque_evals: int
    solves: int
    torque_at: frozenset[str]


def _rule(base: Method) -> Rule:
    """Choose the quadrature to the order of the method; the states at its points need one order less than the steps.

    If the order of the method is unproven, its number of torque evaluations bounds it.
    """
    force = _first_of if len(base.asks.asked(0).shape) > 1 else _plain
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
    """Description and formula of the target energy of a step."""
    if base.needs == "free":
        return KEPT
    if rule is None and not base.asks.find(MotionSeries):
        return TOTAL
    return f"{TOTAL} {WORKED}" % (f"by {rule.name}" if rule else "as one more of the series of the step")


def _step(base: Method, rule: Rule | None, number: Any) -> Step:
    """Step kernel: the base step, then the rotation; without a rule no work is done."""
    step = base.build(number) if base.memory else whole(base)(number)

    @kernel
    def free(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = step(h, t, y, system, torque)
        new, _ = _projected_end((0, 0, 0), 0, 0 * h, h, t, y, new, system, torque)
        return new, residual

    if rule is None and not base.takes("potential"):
        return free
    finish = by_absence(conserving, _working(rule.build(number)) if rule else _projected_end)

    @kernel
    def forced(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = step(h, t, y, system, torque)
        force, change = torque(t, y[0], y[1], system, t + h, new[0], new[1])
        new, more = finish(force, change, 0 * h, h, t, y, new, system, torque)
        return new, residual + more

    return forced


@kernel
def _projected_end(
    force: Any, change: Any, done: Any, h: Any, t: Any, y: Any, new: Any, system: Any, torque: Any
) -> Any:
    """Finish a step; `done` is twice the work done in it, as energy measured from the axis."""
    return corrected(new, y, done, leads(y[1], system), system), 0 * h


def _working(work: Step) -> Step:
    """Kernel: finish a step with a torque that has no potential."""

    @kernel
    def worked(force: Any, change: Any, done: Any, h: Any, t: Any, y: Any, new: Any, system: Any, torque: Any) -> Any:
        lead = leads(y[1], system)
        done, residual = work(h, t, y, new, lead, system, torque)
        return corrected(new, y, done, lead, system), residual

    return worked


_series_finish = by_absence(conserving, _projected_end)


@kernel
def _expanded(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Step of a method of series, which also give the work."""
    q, m = y
    turn, end, done = torque(t, q, m, system, h, leads(m, system))
    new = rotated_state(q, turn, end)
    force, change = torque(t, q, m, system, t + h, new[0], new[1])
    return _series_finish(force, change, done, h, t, y, new, system, torque)


TURN = r"""
After a step of %s the momentum $\Pi$ and the attitude $R$ are corrected. With
$a_i = 1/I_i$, $E = \tfrac{1}{2}\,\Pi \cdot I^{-1} \Pi$ and $E_*$ the target energy,

$$\begin{aligned}
s &= \frac{2\,(E_* - E)}{|\Pi \times \omega|^2}, \qquad k_i = \sum_j (a_i - a_j)\,\Pi_j^2, \\
\Pi_i' &= \Pi_i \sqrt{1 + s\,k_i}, \qquad R' = R\,S
\end{aligned}$$

where $S$ is the smallest rotation that takes $\Pi'$ to $\Pi$, so that $R' \Pi' = R\,\Pi$. It keeps $|\Pi|$ since
$\sum \Pi_i^2 k_i = 0$. If $1 + s\,k_i$ is negative, that component becomes zero, and the two integrals determine
the others; on a principal axis nothing is changed. %s

The step:

"""
KEPT = r"Without torque $E_*$ is the energy at the start of the step."
TOTAL = r"""In a potential the total energy is kept,

$$E_* = E_0 + U(R_0) - U(R'),$$

which is solved for $E_*$; if no small rotation reaches it, $\Pi$ is scaled until
$\tfrac{1}{2}\,\Pi' \cdot I^{-1} \Pi' = E_0 + U(R_0) - U(R)$."""
WORKED = r"""For any other torque $E_*$ is the energy at the start of the step plus the work done in it,

$$E_* = E_0 + \int_t^{t + h} \omega \cdot T\,ds$$

%s."""


def ep(part: str | Method) -> Method:
    """The same method with energy conservation: after every step the body is rotated back to its polhode.

    For the free body the energy is exact, and so is the total energy in a potential. With any other torque the energy
    changes by the work done, integrated to the order of the method. A method that already conserves these energies is
    returned unchanged.
    """
    named = methods[part]
    base = named.unprocessed or named
    if "spatial_momentum" not in base.conserves:
        able = listed(fitting(base.needs, lambda m: "spatial_momentum" in m.conserves))
        raise InputError(
            f"ep() needs a method that conserves the spatial momentum, and {base.name} does not; use {able}"
        )
    kept = "energy" in base.conserves
    if kept and (base.needs == "free" or (base.needs == "potential" and "energy_potential" in base.conserves)):
        return named
    if base.has_own_time and base.base:
        return dataclasses.replace(varied(ep(base.base)), name=f"ep({base.name})")
    series = base.asks.find(MotionSeries)
    rule = None if series or not base.takes("attitude") else _rule(base)
    total = ("energy_linear_potential", "energy_potential") if base.takes("potential") else ()
    asks = MotionSeries(series.order, ROTATION_AND_WORK) if series else base.asks
    cost, turn = rule or base, int(base.needs == "potential")  # the size of the rotation is one more unknown
    return declare(
        (lambda number: _expanded) if series else functools.partial(_step, base, rule), register=False,
        name=f"ep({base.name})", order=base.order, order_free=base.order_free, symmetric=False, symplectic=False,
        poisson=base.poisson if kept else False, implicit=base.implicit or bool(turn), solves=cost.solves + turn,
        torque_evals=cost.torque_evals, torque_at=cost.torque_at & {"start"}, needs=base.needs,
        conserves=("energy", "spatial_momentum", "momentum_norm", *total),
        asks=asks & DiscreteGradient("potential") if total else asks, linear_bodies=base.linear_bodies,
        flat_bodies=base.flat_bodies, increments=base.increments,
        compensated=base.compensated, memory=base.memory, before=base.before if base.memory else None,
        cite="buss2011", where=f"part III, energy preservation; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with energy preservation on the polhode.\n" + TURN % (base.name, _energy_wanted(base, rule))
        + base.formula,
    )  # fmt: skip


methods.add_combinator("ep", ep)
