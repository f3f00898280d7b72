"""Munthe-Kaas Runge-Kutta methods on SO(3), for any Butcher tableau.

Algorithm MKRK of Krysl (2006), section 3.7, after H. Munthe-Kaas, BIT 38 (1998) 92-111. `stages_formula` has the
equations: a stage has a rotation vector Psi and a momentum mu in the frame of the start, and their slopes K and G.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import add, along, cross, dexpinv, exp, mul, negative, rotate, scale, sub, unrotate
from ...kernels.solvers import accelerated
from ...kernels.unroll import combination, unrolled_kernel, weighted
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...symbolic import latex as typeset
from ..mechanics import gyration, velocity
from ..record import Method
from ..registry import declare, methods
from ..tables.butcher import Tableau, aliases, tableaus


@kernel
def stage_slopes(s: Any, psi: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """Slopes K and G of a stage at time s, given its rotation vector and momentum."""
    turn = exp(psi)
    m = unrotate(turn, mu)
    force = torque(s, mul(y[0], turn), m, system)
    return dexpinv(negative(psi), velocity(m, system)), rotate(turn, force)


@kernel
def _empty(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    return (), (), 0


def _start_stage(earlier: Step) -> Step:
    """Add a stage at the start of the step: K = omega_0, G = T_0."""

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, residual = earlier(h, t, y, system, torque)
        q, m = y
        return (*k, velocity(m, system)), (*g, torque(t, q, m, system)), residual

    return stages


def _explicit_stage(earlier: Step, weights: Sequence[Any], node: Any, slopes: Step = stage_slopes) -> Step:
    """Add a stage that uses the earlier ones only."""
    total = combination(weights)

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, residual = earlier(h, t, y, system, torque)
        k1, g1 = slopes(t + node * h, scale(h, total(k)), along(y[1], h, total(g)), y, system, torque)
        return (*k, k1), (*g, g1), residual

    return stages


def _implicit_block(earlier: Step, rows: Sequence[Sequence[Any]], nodes: Sequence[Any], first: int) -> Step:
    """Add stages that depend on each other: the unknowns are all Psi_k, then all mu_k in units of rotation."""
    n = len(nodes)
    guess, slopes, correction = _written_block(rows, nodes, first)
    root = accelerated(correction, 2 * n, _start_attitude)
    ended = _single_slopes(rows[0], first) if n == 1 else slopes

    @kernel
    def stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, residual = earlier(h, t, y, system, torque)
        q, m = y
        force = torque(t, q, m, system)
        mean = along(m, h / 2, add(gyration(m, system), force))
        data = (h, t, y, k, g, mean)
        x, more = root(guess(h, m, force, system), data, system, torque)
        k, g = ended(x, data, system, torque)
        return k, g, residual + more

    return stages


def _written_block(rows: Sequence[Sequence[Any]], nodes: Sequence[Any], first: int) -> tuple[Step, Step, Step]:
    """Return the unrolled kernels of a block of stages: the initial guess, the slopes, and a correction of x.

    All stages share the kernels below and differ only in their coefficients, so that the compile time does not
    depend on the number of stages.
    """
    n = len(nodes)
    space: dict[str, Any] = {
        "stage": _stage, "psi_guess": _rotation_guess, "mu_guess": _momentum_guess,
        "mu_gap": _momentum_gap, "pushed": _pushed, "turned": _times_matrix, "along": along, "sub": sub, "scale": scale,
        "total": weighted(first + n), "own": weighted(n),
    }  # fmt: skip
    for i in range(n):
        space |= {f"c{i}": nodes[i], f"a{i}": tuple(rows[i][: first + n]), f"b{i}": tuple(rows[i][first : first + n])}

    def each(text: str) -> str:
        return ", ".join(text.replace("#", str(i)) for i in range(n))

    guess = unrolled_kernel(
        "h, m, force, system",
        f"({each('psi_guess(h, c#, m, force, system)')}, {each('mu_guess(h, c#, m, force, system)')})",
        **space,
    )
    slopes = unrolled_kernel(
        "x, data, system, torque",
        f"((*data[3], {each('s#[0]')}), (*data[4], {each('s#[1]')}))",
        *(f"s{i} = stage(c{i}, x[{i}], x[{n + i}], data, system, torque)" for i in range(n)),
        **space,
    )
    correction = unrolled_kernel(
        "x, data, system, torque",
        f"({each('along(d#, h, own(b#, v))')}, {each('e#')})",
        "h = data[0]",
        "k, g = slopes(x, data, system, torque)",
        *(f"e{i} = mu_gap(x[{n + i}], total(a{i}, g), data, system)" for i in range(n)),
        f"v = ({each('pushed(e#, data, system)')},)",
        *(f"d{i} = along(sub(scale(h, total(a{i}, k)), x[{i}]), h, own(b{i}, v))" for i in range(n)),
        f"v = ({each('turned(d#, data, system)')},)",
        slopes=slopes,
        **space,
    )
    return guess, slopes, correction


@kernel
def _start_attitude(data: Any) -> Any:
    """Quaternion at the start of the step."""
    return data[2][0]


@kernel
def _unit_of_momentum(h: Any, system: Any) -> Any:
    """H times the trace of I^-1: converts a momentum to a rotation of the right size."""
    inverse = system[1]
    return h * (inverse[0] + inverse[1] + inverse[2])


@kernel
def _rotation_guess(h: Any, node: Any, m: Any, force: Any, system: Any) -> Any:
    """Psi = c h (omega + c h omega'/2), from the start of the step."""
    s = node * h
    return scale(s, velocity(along(m, s / 2, add(gyration(m, system), force)), system))


@kernel
def _momentum_guess(h: Any, node: Any, m: Any, force: Any, system: Any) -> Any:
    """Mu = Pi_0 + c h T_0, from the start of the step."""
    return scale(_unit_of_momentum(h, system), along(m, node * h, force))


@kernel
def _stage(node: Any, psi: Any, mu: Any, data: Any, system: Any, torque: Any) -> Any:
    """Slopes K and G of one stage of a block, given its two unknowns."""
    h, t, y = data[0], data[1], data[2]
    return stage_slopes(t + node * h, psi, scale(1 / _unit_of_momentum(h, system), mu), y, system, torque)


@kernel
def _momentum_gap(mu: Any, total: Any, data: Any, system: Any) -> Any:
    """Right-hand side of the equation of mu, minus mu."""
    return sub(scale(_unit_of_momentum(data[0], system), along(data[2][1], data[0], total)), mu)


# Newton's correction for the residuals r of a block, without the derivative of the torque: with
# M v = I^-1 (Pi x v) - omega x v/2, the derivative of K at the mean momentum, it solves
# d_k - h sum_j a_kj M d_j = r_k + h sum_j a_kj I^-1 (mu residual)_j by two terms of the Neumann series
# (more terms cost more than they save: later sweeps reduce the rest).


@kernel
def _pushed(r: Any, data: Any, system: Any) -> Any:
    """I^-1 times the residual of a momentum."""
    return velocity(scale(1 / _unit_of_momentum(data[0], system), r), system)


@kernel
def _times_matrix(d: Any, data: Any, system: Any) -> Any:
    """M d."""
    m = data[5]
    return along(velocity(cross(m, d), system), -0.5, cross(velocity(m, system), d))


def _single_slopes(row: Sequence[Any], first: int) -> Step:
    """Kernel: K and G of a block of one stage, from its solved equations instead of another evaluation."""
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


def all_stages(tableau: Tableau, number: Callable[[Any], Any], slopes: Step = stage_slopes) -> Step:
    """Kernel (h, t, y, system, torque) -> (all K, all G, residual) of a tableau in one number type."""
    a = [[converted(x, number) for x in row] for row in tableau.a]
    c = [converted(x, number) for x in tableau.c]
    stages: Step = _empty
    for block in tableau.blocks():
        first = block[0]
        if not tableau.is_explicit(block):
            stages = _implicit_block(stages, [a[k] for k in block], [c[k] for k in block], first)
        elif any(x != 0 for x in tableau.a[first]):
            stages = _explicit_stage(stages, a[first], c[first], slopes)
        else:
            stages = _start_stage(stages)
    return stages


def tableau_step(tableau: Tableau, number: Callable[[Any], Any], slopes: Step = stage_slopes) -> Step:
    """Step kernel of a tableau in one number type; slopes other than the default only for explicit tableaus."""
    stages = all_stages(tableau, number, slopes)
    total = combination([converted(x, number) for x in tableau.b])

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, residual = stages(h, t, y, system, torque)
        turn = exp(scale(h, total(k)))
        return (mul(y[0], turn), unrotate(turn, along(y[1], h, total(g)))), residual

    return step


def stages_formula(tableau: Tableau, slope: str) -> str:
    """Equations of one step: the stages, with this expression for K_k, and the tableau."""
    implicit = any(not tableau.is_explicit(block) for block in tableau.blocks())
    solved = " The stages that depend on each other are solved together." if implicit else ""
    stages = "the stage $k = 1$ is" if len(tableau.b) == 1 else rf"the stages $k = 1, \ldots, {len(tableau.b)}$ are"
    return rf"""With $\mu$ the momentum in the frame of the start of the step, {stages}

$$\begin{{aligned}}
\psi_k &= h \sum_j a_{{kj}} K_j, & \mu_k &= \Pi_0 + h \sum_j a_{{kj}} G_j, \\
\omega_k &= I^{{-1}} \exp(-\psi_k)\,\mu_k, & T_k &= T(t + c_k h,\, R_0 \exp(\psi_k),\, \omega_k), \\
K_k &= {slope}, & G_k &= \exp(\psi_k)\,T_k
\end{{aligned}}$$

and the step ends with

$$\psi = h \sum_j b_j K_j, \qquad R_1 = R_0 \exp(\psi), \qquad
\Pi_1 = \exp(-\psi)\,\Bigl(\Pi_0 + h \sum_j b_j G_j\Bigr)$$

$$c = {typeset.matrix([tableau.c])}, \qquad a = {typeset.matrix(tableau.a)}, \qquad b = {typeset.matrix([tableau.b])}$$
{solved}"""


LABELS = {"rk4": ("rk4_mk",)}
"""Other names of the method of a tableau: Runge-Kutta with the corrections of Munthe-Kaas, in Buss (2011)."""


def mkrk(tableau: str | Tableau, *, register: bool = False) -> Method:
    """The Munthe-Kaas method of a named tableau or of your own `Tableau`.

    ``ph.mkrk("rk4")`` and ``ph.methods["mkrk(rk4)"]`` are the same method.

    Examples
    --------
    >>> ph.mkrk("rk4").order
    4
    """
    if not isinstance(register, bool):
        raise InputError(f"register must be True or False; got {register!r}", "register")
    if not isinstance(tableau, Tableau):
        tableau = aliases.get(tableau, tableau) if isinstance(tableau, str) else tableau
        if not register and f"mkrk({tableau})" in methods:
            return methods[f"mkrk({tableau})"]
        if not isinstance(tableau, str) or tableau not in tableaus:
            raise InputError(f"unknown tableau {tableau!r}; the named ones are {', '.join(tableaus)}")
        tableau = tableaus[tableau]
    implicit = [block for block in tableau.blocks() if not tableau.is_explicit(block)]
    return declare(
        functools.partial(tableau_step, tableau),
        register=register,
        name=f"mkrk({tableau.name})",
        aliases=LABELS.get(tableau.name, ()) if register else (),
        order=tableau.order,
        order_free=tableau.order,
        symmetric=tableau.symmetric,
        symplectic=False,
        poisson=False,
        implicit=bool(implicit),
        solves=sum(len(block) for block in implicit),
        torque_evals=len(tableau.b),
        torque_at=tableau.ends,
        conserves=("spatial_momentum", "momentum_norm"),
        needs="velocity",
        cite="munthekaas1998",
        where="Krysl (2006), algorithm MKRK",
        doc=f"Munthe-Kaas Runge-Kutta method on SO(3) with the tableau {tableau.name!r}.\n\n"
        + stages_formula(tableau, r"\operatorname{dexp}_{-\psi_k}^{-1} \omega_k"),
    )


methods.add_combinator("mkrk", mkrk)
for _name in tableaus:
    mkrk(_name, register=True)
