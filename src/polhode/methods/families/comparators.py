"""The second-order methods with which Krysl compares: Simo-Wong, Austin-Krishnaprasad-Wang, Bottasso-Borri.

Equations as in section 4 of Krysl (2006), with his conventions. The unknown of each solve is the mean
momentum x = (Pi_0 + Pi_1)/2, except in `bbtrapwd`, where it is the rotation vector.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import add, along, cay, cross, dexp, dexpinv, exp, mul, negative, scale, sub, unrotate
from ...kernels.solvers import newton, radian
from ...numbers.dispatch import kernel
from ..mechanics import basis, gyration, half_step_columns, rolling_columns, rotation_increment, velocity
from ..record import ENDS
from ..registry import method
from .krysl2005 import gyration_root


@kernel
def _reflected(x: Any, m: Any) -> Any:
    """Pi_1 = 2 x - Pi_0."""
    return (2 * x[0] - m[0], 2 * x[1] - m[1], 2 * x[2] - m[2])


@kernel
def _mean_guess(h: Any, m: Any, force: Any, system: Any) -> Any:
    """Momentum at half the step, from the initial angular velocity and torque."""
    return along(m, h / 2, add(gyration(m, system), force))


@kernel
def _turned_columns(x: Any, data: Any, system: Any) -> Any:
    """Jacobian of x - exp(-h I^-1 x) Pi_0/2."""
    h = data[0]
    return rolling_columns(h / 2, x, rotation_increment(h, x, system), system)


# --- Simo and Wong ----------------------------------------------------------------------------------


@kernel
def _swc1_push(x: Any, data: Any, system: Any, torque: Any) -> Any:
    """End momentum exp(-Psi) Pi_0 + h exp(-Psi/2) T_half for Psi = h I^-1 x."""
    h, t, q, m = data
    half = exp(rotation_increment(h / 2, x, system))
    force = torque(t + h / 2, mul(q, half), x, system)
    return unrotate(half, along(unrotate(half, m), h, force))


@kernel
def _swc1_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    return scale(0.5, sub(_reflected(x, data[3]), _swc1_push(x, data, system, torque)))


_swc1_root = newton(_swc1_residual, _turned_columns)


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=1,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="velocity",
    cite="simo1991", where="ALGO_C1; Krysl (2006), algorithm SWC1", aliases=("SWC1", "SW"),
)  # fmt: skip
@kernel
def swc1(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Simo and Wong's energy- and momentum-conserving algorithm.

    $$\begin{aligned}
    \psi &= \tfrac{h}{2}\,(\omega_0 + \omega_1), & R_1 &= R_0 \exp(\psi), \\
    \bar T &= T\bigl(t + \tfrac{h}{2},\, R_0 \exp(\tfrac{1}{2}\psi),\, \tfrac{1}{2}(\omega_0 + \omega_1)\bigr), &
    \Pi_1 &= \exp(-\psi)\,\Pi_0 + h \exp(-\tfrac{1}{2}\psi)\,\bar T
    \end{aligned}$$

    All equations are solved together for $\tfrac{1}{2}(\Pi_0 + \Pi_1)$.
    """
    q, m = y
    data = (h, t, q, m)
    guess = _mean_guess(h, m, torque(t, q, m, system), system)
    x, residual = _swc1_root(guess, data, system, torque)
    return (mul(q, exp(rotation_increment(h, x, system))), _swc1_push(x, data, system, torque)), residual


# --- Austin, Krishnaprasad and Wang -----------------------------------------------------------------


@kernel
def _akw_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, q, m, force = data
    end = mul(q, cay(rotation_increment(h, x, system)))
    pair = add(force, torque(t + h, end, _reflected(x, m), system))
    return sub(along(along(x, -h / 2, gyration(x, system)), -h / 4, pair), m)


_akw_root = newton(_akw_residual, half_step_columns)


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=2,
    torque_at=ENDS,
    conserves=("energy", "spatial_momentum", "momentum_norm", "energy_linear_potential"), needs="velocity",
    cite="austin1993", where="Krysl (2006), algorithm AKW", aliases=("AKW",),
)  # fmt: skip
@kernel
def akw(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Implicit midpoint rule of Austin, Krishnaprasad and Wang, with the Cayley map.

    $$\begin{aligned}
    \bar\Pi &= \tfrac{1}{2}(\Pi_0 + \Pi_1), \qquad \bar\omega = I^{-1} \bar\Pi, \qquad
    R_1 = R_0 \operatorname{cay}(h\,\bar\omega), \\
    \Pi_1 &= \Pi_0 + h\,\bar\Pi \times \bar\omega + \tfrac{h}{2}\,(T_0 + T_1)
    \end{aligned}$$

    All equations are solved together for $\bar\Pi$.
    """
    q, m = y
    force = torque(t, q, m, system)
    x, residual = _akw_root(_mean_guess(h, m, force, system), (h, t, q, m, force), system, torque)
    return (mul(q, cay(rotation_increment(h, x, system))), _reflected(x, m)), residual


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=0,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="free",
    cite="vilmart2013", where="Remark 4", aliases=("IMR",),
)  # fmt: skip
@kernel
def imr(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Implicit midpoint rule of the free body: `akw` without torque, as a flow for splittings.

    $$\bar\Pi = \tfrac{1}{2}(\Pi_0 + \Pi_1), \qquad \Pi_1 = \Pi_0 + h\,\bar\Pi \times I^{-1} \bar\Pi, \qquad
    R_1 = R_0 \operatorname{cay}(h\,I^{-1} \bar\Pi)$$

    The first two equations are solved for $\bar\Pi$.
    """
    q, m = y
    guess = along(m, h / 2, gyration(m, system))
    x, residual = gyration_root(guess, (h / 2, m), system, torque)
    return (mul(q, cay(rotation_increment(h, x, system))), _reflected(x, m)), residual


# --- Bottasso and Borri -----------------------------------------------------------------------------


@kernel
def _bbtrap_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, q, m, kicked = data
    turn = exp(rotation_increment(h, x, system))
    end = _reflected(x, m)
    force = torque(t + h, mul(q, turn), end, system)
    return scale(0.5, sub(along(end, -h / 2, force), unrotate(turn, kicked)))


_bbtrap_root = newton(_bbtrap_residual, _turned_columns)


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=2,
    torque_at=ENDS,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="velocity",
    cite="bottasso1998", where="Krysl (2006), algorithm BBTRAP", aliases=("BBTRAP",),
)  # fmt: skip
@kernel
def bbtrap(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Bottasso and Borri's trapezoidal rule with the inverse differential left out.

    $$\psi = \tfrac{h}{2}\,(\omega_0 + \omega_1), \qquad R_1 = R_0 \exp(\psi), \qquad
    \Pi_1 = \exp(-\psi)\,(\Pi_0 + \tfrac{h}{2}\,T_0) + \tfrac{h}{2}\,T_1$$

    All equations are solved together for $\tfrac{1}{2}(\Pi_0 + \Pi_1)$.
    """
    q, m = y
    force = torque(t, q, m, system)
    data = (h, t, q, m, along(m, h / 2, force))
    x, residual = _bbtrap_root(_mean_guess(h, m, force, system), data, system, torque)
    return (mul(q, exp(rotation_increment(h, x, system))), _reflected(x, m)), residual


@kernel
def _bbtrapwd_end(psi: Any, data: Any, system: Any, torque: Any) -> Any:
    """End momentum for a rotation vector; the end velocity is dexp_{-psi}(2 psi/h - omega_0)."""
    h, t, q, m, kicked = data
    turn = exp(psi)
    w = dexp(negative(psi), sub(scale(2 / h, psi), velocity(m, system)))
    inertia = system[0]
    end = (inertia[0] * w[0], inertia[1] * w[1], inertia[2] * w[2])
    return along(unrotate(turn, kicked), h / 2, torque(t + h, mul(q, turn), end, system))


@kernel
def _bbtrapwd_residual(psi: Any, data: Any, system: Any, torque: Any) -> Any:
    h, _, _, m, _ = data
    w = velocity(_bbtrapwd_end(psi, data, system, torque), system)
    return along(psi, -h / 2, add(dexpinv(negative(psi), w), velocity(m, system)))


@kernel
def _bbtrapwd_columns(psi: Any, data: Any, system: Any) -> Any:
    """Columns of 1 - (h/2)(I^-1 hat(Pi_1)(1 - hat(psi)/2) - hat(omega_1)/2), the Jacobian up to O(psi^2)."""
    c = data[0] / 2
    m = unrotate(exp(psi), data[4])
    w = velocity(m, system)
    e1, e2, e3 = basis(c)
    return (
        along(along(e1, -c, velocity(cross(m, along(e1, -0.5, cross(psi, e1))), system)), c / 2, cross(w, e1)),
        along(along(e2, -c, velocity(cross(m, along(e2, -0.5, cross(psi, e2))), system)), c / 2, cross(w, e2)),
        along(along(e3, -c, velocity(cross(m, along(e3, -0.5, cross(psi, e3))), system)), c / 2, cross(w, e3)),
    )


_bbtrapwd_root = newton(_bbtrapwd_residual, _bbtrapwd_columns, radian)


@method(
    order=2, order_free=2, symmetric=False, symplectic=False, poisson=False, solves=1, torque_evals=2,
    torque_at=ENDS,
    conserves=("spatial_momentum", "momentum_norm"), needs="velocity",
    cite="bottasso1998", where="Krysl (2006), algorithm BBTRAPWD", aliases=("BBTRAPWD",),
)  # fmt: skip
@kernel
def bbtrapwd(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Bottasso and Borri's trapezoidal rule with the inverse differential of the exponential.

    $$\psi = \tfrac{h}{2}\,\bigl(\omega_0 + \operatorname{dexp}_{-\psi}^{-1} \omega_1\bigr), \qquad
    R_1 = R_0 \exp(\psi), \qquad \Pi_1 = \exp(-\psi)\,(\Pi_0 + \tfrac{h}{2}\,T_0) + \tfrac{h}{2}\,T_1$$

    All equations are solved together for the rotation vector $\psi$.
    """
    q, m = y
    force = torque(t, q, m, system)
    data = (h, t, q, m, along(m, h / 2, force))
    guess = rotation_increment(h, _mean_guess(h, m, force, system), system)
    psi, residual = _bbtrapwd_root(guess, data, system, torque)
    return (mul(q, exp(psi)), _bbtrapwd_end(psi, data, system, torque)), residual
