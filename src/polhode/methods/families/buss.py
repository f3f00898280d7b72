"""Buss's Taylor methods: one rotation by an averaged angular velocity, with the momentum known.

S. R. Buss, J. Comput. Phys. 164 (2000) 377-406, and the slides of his talk of 2011, with their lost dots restored
(docs/buss.md). The talk works in the space frame, R' = hat(w) R, with a rotating inertia tensor. Here every vector of a
step is multiplied by R_0^T, R_0 the attitude at its start, which is constant: the equations keep their form, the tensor
at the start is diagonal, and R_1 = R_0 exp(h Z) with Z the average of the body's angular velocity. With L = Pi and L',
L'', ... the derivatives of the spatial momentum (`physics/torque_rates.py`), all in that frame, `RATES` gives the
derivatives of w = I^-1 L. The momentum advances by its Taylor series, of one order more than appears in Z.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ...kernels.so3 import add, along, cross, exp, mul, restored, rotate, scale, sub, unit, unrotate
from ...numbers.dispatch import kernel
from ...numbers.types import Number, Vec3
from ...symbolic import latex
from ..mechanics import velocity
from ..queries import TorqueRates
from ..registry import declare, method, methods
from ..tables.butcher import tableaus
from .munthe_kaas import stages_formula, tableau_step

PAPER = "buss2011"
TAYLOR: dict[str, Any] = {
    "symmetric": False, "symplectic": False, "poisson": False, "solves": 0, "torque_evals": 1, "torque_at": ("start",),
    "conserves": ("spatial_momentum", "momentum_norm"), "needs": "velocity", "cite": PAPER,
}  # fmt: skip


@kernel
def _rotated_state(q: Any, psi: Vec3, momentum: Vec3) -> Any:
    """Return the state after the rotation psi, given the momentum in the frame of the start."""
    turn = exp(psi)
    return (mul(q, turn), unrotate(turn, momentum)), 0


@kernel
def _advanced(h: Number, m: Vec3, f0: Vec3, f1: Vec3) -> Vec3:
    """L + h L' + h^2/2 L''."""
    return along(along(m, h, f0), h * h / 2, f1)


@kernel
def _first(m: Vec3, f0: Vec3, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The vectors w, g_1 and w'."""
    w = velocity(m, system)
    g1 = sub(f0, cross(w, m))
    return w, g1, velocity(g1, system)


@kernel
def _second(m: Vec3, f0: Vec3, f1: Vec3, first: Any, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The vectors g_2, w x w' and w''."""
    w, g1, a = first
    g2 = sub(sub(f1, cross(a, m)), cross(w, add(f0, g1)))
    wa = cross(w, a)
    return g2, wa, add(wa, velocity(g2, system))


@kernel
def _third(m: Vec3, f0: Vec3, f1: Vec3, f2: Vec3, first: Any, second: Any, system: Any) -> Vec3:
    """The vector w'''."""
    w, g1, a = first
    g2, wa, b = second
    pull = add(cross(b, m), cross(a, along(g1, 2, f0)))
    whirl = cross(w, add(along(f1, 2, g2), cross(w, g1)))
    return add(cross(w, sub(scale(2, b), wa)), velocity(sub(f2, add(pull, whirl)), system))


@kernel
def _mean(h: Number, w: Vec3, a: Vec3) -> Vec3:
    """The vector w + h/2 w'."""
    return along(w, h / 2, a)


RATES = (
    r"w' &= I^{-1} g_1, & g_1 &= L' - w \times L",
    r"w'' &= w \times w' + I^{-1} g_2, & g_2 &= L'' - w' \times L - w \times (L' + g_1)",
    r"w''' &= w \times (2 w'' - w \times w') + I^{-1} g_3, & g_3 &= L''' - w'' \times L - w' \times (2 L' + g_1)"
    r" - w \times (L'' + 2 g_2 + w \times g_1)",
)
MEAN2, SECOND = r"w + \tfrac{h}{2}\,w'", r" + \tfrac{1}{6} h^2 w''"
COMMUTATOR = r" + \tfrac{1}{12} h^2\,w' \times w"
SERIES = (r"L", r"h\,L'", r"\tfrac{1}{2} h^2 L''", r"\tfrac{1}{6} h^3 L'''", r"\tfrac{1}{24} h^4 L''''")


def _described(summary: str, mean: str, rates: int, terms: int) -> str:
    """Description of one of the methods: its mean angular velocity Z, and the terms of Z."""
    known = latex.block(*RATES[:rates]) if rates else ""
    return rf"""{summary}

$$Z = {mean}$$

$$R_1 = R_0 \exp(h Z), \qquad \Pi_1 = \exp(-h Z)\,\bigl({" + ".join(SERIES[: terms + 1])}\bigr)$$

All vectors are in the body frame at the start of the step, where the inertia tensor is $I$:
$L = \Pi_0$ and $L' = T_0${", $L''$, ..." if terms > 1 else ""} are the spatial momentum and its
derivatives along the motion, and $w = I^{{-1}} L$.

{known}"""


@method(
    order=1, order_free=1, where="first-order update", aliases=("1st order",), **TAYLOR,
    doc=_described("Buss, first order: one rotation by the angular velocity of the start.", "w", rates=0, terms=1),
)  # fmt: skip
@kernel
def buss1(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Z = w."""
    q, m = y
    return _rotated_state(q, scale(h, velocity(m, system)), along(m, h, torque(t, q, m, system)))


@method(
    order=2, order_free=2, asks=TorqueRates(1), where="second-order update", aliases=("2nd order",), **TAYLOR,
    doc=_described("Buss, second order: one rotation by an average.", MEAN2, rates=1, terms=2),
)  # fmt: skip
@kernel
def buss2(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Z = w + h/2 w'."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    w, _, a = _first(m, f0, system)
    return _rotated_state(q, scale(h, _mean(h, w, a)), _advanced(h, m, f0, f1))


@method(
    order=2, order_free=2, asks=TorqueRates(1), where="augmented second-order update", aliases=("2+",), **TAYLOR,
    doc=_described(
        "Buss, augmented second order: with the commutator of third order, without w''.", MEAN2 + COMMUTATOR,
        rates=1, terms=2,
    ),
)  # fmt: skip
@kernel
def buss2plus(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Z = w + h/2 w' + h^2/12 w' x w."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    w, _, a = _first(m, f0, system)
    return _rotated_state(q, scale(h, along(_mean(h, w, a), h * h / 12, cross(a, w))), _advanced(h, m, f0, f1))


@method(
    order=2, order_free=2, asks=TorqueRates(1), where="false third-order update", aliases=("false 3rd",), **TAYLOR,
    doc=_described("Buss, false third order: without the commutator.", MEAN2 + SECOND, rates=2, terms=2),
)  # fmt: skip
@kernel
def buss3_false(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Z = w + h/2 w' + h^2/6 w''."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    first = _first(m, f0, system)
    _, _, b = _second(m, f0, f1, first, system)
    z = along(_mean(h, first[0], first[2]), h * h / 6, b)
    return _rotated_state(q, scale(h, z), _advanced(h, m, f0, f1))


@kernel
def _mean3(h: Number, first: Any, second: Any) -> Vec3:
    """The vector w + h/2 w' + h^2/6 w'' + h^2/12 w' x w."""
    w, _, a = first
    _, wa, b = second
    return along(along(_mean(h, w, a), h * h / 6, b), -h * h / 12, wa)


@method(
    order=3, order_free=3, asks=TorqueRates(2), where="true third-order update", aliases=("3rd order",), **TAYLOR,
    doc=_described(
        "Buss, true third order: one rotation by an average.", MEAN2 + SECOND + COMMUTATOR, rates=2, terms=3
    ),
)  # fmt: skip
@kernel
def buss3(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Z = w + h/2 w' + h^2/6 w'' + h^2/12 w' x w."""
    q, m = y
    f0, f1, f2 = torque(t, q, m, system)
    first = _first(m, f0, system)
    second = _second(m, f0, f1, first, system)
    momentum = along(_advanced(h, m, f0, f1), h * h * h / 6, f2)
    return _rotated_state(q, scale(h, _mean3(h, first, second)), momentum)


@method(
    order=4, order_free=4, asks=TorqueRates(3), where="true fourth-order update", aliases=("4th order",), **TAYLOR,
    doc=_described(
        "Buss, true fourth order: one rotation by an average.",
        MEAN2 + SECOND + COMMUTATOR + r" + \tfrac{1}{24} h^3 (w''' + w'' \times w)", rates=3, terms=4,
    ),
)  # fmt: skip
@kernel
def buss4(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """The third-order Z + h^3/24 (w''' + w'' x w)."""
    q, m = y
    f0, f1, f2, f3 = torque(t, q, m, system)
    first = _first(m, f0, system)
    second = _second(m, f0, f1, first, system)
    third = _third(m, f0, f1, f2, first, second, system)
    h3 = h * h * h
    z = along(_mean3(h, first, second), h3 / 24, add(third, cross(second[2], first[0])))
    momentum = along(along(_advanced(h, m, f0, f1), h3 / 6, f2), h * h3 / 24, f3)
    return _rotated_state(q, scale(h, z), momentum)


# --- the methods with which the talk compares -------------------------------------------------------


@kernel
def _naive_slopes(s: Any, psi: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """Angular velocity and torque of a stage, only rotated into the frame of the start."""
    turn = exp(psi)
    m = unrotate(turn, mu)
    force = torque(s, mul(y[0], turn), m, system)
    return rotate(turn, velocity(m, system)), rotate(turn, force)


rk4_naive = declare(
    functools.partial(tableau_step, tableaus["rk4"], slopes=_naive_slopes), name="rk4_naive", order=2, order_free=2,
    implicit=False, **(TAYLOR | {"torque_evals": 4}), where="traditional 4th order Runge-Kutta",
    doc="Runge-Kutta weights for the spatial angular velocity, and one rotation by the average.\n\n"
    "Without the inverse differential of the exponential, which `rk4_mk` has, the commutator is missing.\n\n"
    + stages_formula(tableaus["rk4"], r"\exp(\psi_k)\,\omega_k"),
)  # fmt: skip


@kernel
def _entries(s: Any, p: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """Rates p' = p omega/2 and torque, for a quaternion p since the start that need not have unit length."""
    turn = unit(p)
    m = unrotate(turn, mu)
    w = velocity(m, system)
    force = torque(s, mul(y[0], turn), m, system)
    return mul(p, (0 * s, w[0] / 2, w[1] / 2, w[2] / 2)), rotate(turn, force)


@kernel
def _moved4(p: Any, s: Any, d: Any) -> Any:
    return (p[0] + s * d[0], p[1] + s * d[1], p[2] + s * d[2], p[3] + s * d[3])


@method(
    order=4, order_free=4, where="traditional 4th order Runge-Kutta, on the entries of the quaternion",
    **(TAYLOR | {"torque_evals": 4}),
)  # fmt: skip
@kernel
def rk4_quat(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Runge-Kutta method on the entries of the quaternion, normalised after the step, and on the spatial momentum.

    The quaternion $p$ is the rotation since the start, $S(p)$ the matrix of $p/|p|$, $\mu$ the momentum in the frame of
    the start, and $p\,(0, \omega)$ a product of quaternions. The rates are

    $$\begin{aligned}
    P(p, \mu) &= \tfrac{1}{2}\,p\,(0, \omega), \qquad \omega = I^{-1} S(p)^{\mathsf T} \mu, \\
    G(s, p, \mu) &= S(p)\,T(s,\, R_0 S(p),\, \omega)
    \end{aligned}$$

    and with $p_1 = 1$, $\mu_1 = \Pi_0$, $P_k = P(p_k, \mu_k)$, $G_k = G(t + c_k h, p_k, \mu_k)$, $c = (0, 1/2, 1/2, 1)$

    $$\begin{aligned}
    p_2 &= 1 + \tfrac{h}{2} P_1, & p_3 &= 1 + \tfrac{h}{2} P_2, & p_4 &= 1 + h P_3, \\
    \mu_2 &= \Pi_0 + \tfrac{h}{2} G_1, & \mu_3 &= \Pi_0 + \tfrac{h}{2} G_2, & \mu_4 &= \Pi_0 + h G_3
    \end{aligned}$$

    $$\begin{aligned}
    p &= 1 + \tfrac{h}{6}\,(P_1 + 2 P_2 + 2 P_3 + P_4), & q_1 &= q_0\,p/|p|, \\
    \mu &= \Pi_0 + \tfrac{h}{6}\,(G_1 + 2 G_2 + 2 G_3 + G_4), & \Pi_1 &= S(p)^{\mathsf T} \mu
    \end{aligned}$$
    """
    q, m = y
    half, zero = h / 2, 0 * h
    one = (zero + 1, zero, zero, zero)
    p1, f1 = _entries(t, one, m, y, system, torque)
    p2, f2 = _entries(t + half, _moved4(one, half, p1), along(m, half, f1), y, system, torque)
    p3, f3 = _entries(t + half, _moved4(one, half, p2), along(m, half, f2), y, system, torque)
    p4, f4 = _entries(t + h, _moved4(one, h, p3), along(m, h, f3), y, system, torque)
    p = _moved4(_moved4(_moved4(_moved4(one, h / 6, p1), h / 3, p2), h / 3, p3), h / 6, p4)
    turn = restored(p)
    momentum = along(along(along(along(m, h / 6, f1), h / 3, f2), h / 3, f3), h / 6, f4)
    return (mul(q, turn), unrotate(turn, momentum)), 0


for _axes in itertools.permutations("123"):
    methods.add_label(f"mry4_{''.join(_axes)}", f"yoshida4(rot{''.join(_axes)})")
