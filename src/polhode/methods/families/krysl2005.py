"""Krysl's explicit midpoint Lie algorithms, and the explicit Newmark method he compares them with.

P. Krysl, Explicit time integrators for nonlinear dynamics derived from the midpoint rule. The torque
acts as an impulse at the start or at the end of the step; the body rotates by the implicit midpoint Lie
rule. The end impulse is h T_1 in the END frame (the paper prints it rotated).
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import add, along, exp, mul, sub, unrotate
from ...kernels.solvers import newton
from ...numbers.dispatch import kernel
from ..combinators.compose import halves
from ..mechanics import gyration, midpoint_lie_defect, rolling_columns, rotation_increment, step_columns
from ..record import ENDS
from ..registry import method

PAPER = "krysl2005"


@kernel
def _lie_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, m = data
    return sub(x, unrotate(exp(rotation_increment(h / 2, x, system)), m))


@kernel
def _lie_columns(x: Any, data: Any, system: Any) -> Any:
    half = data[0] / 2
    return rolling_columns(half, x, rotation_increment(half, x, system), system)


_lie_root = newton(_lie_residual, _lie_columns)


@kernel
def _midpoint_turn(h: Any, m: Any, system: Any, torque: Any) -> Any:
    """Rotation of a free step of the midpoint Lie rule: exp(Psi), I Psi/h = exp(-Psi/2) Pi."""
    guess = along(m, h / 2, gyration(m, system))
    x, residual = _lie_root(guess, (h, m), system, torque)
    return exp(rotation_increment(h, x, system)), residual


@method(
    order=1, order_free=2, symmetric=False, symplectic=False, poisson=False, solves=1, torque_evals=1,
    torque_at=("start",),
    conserves=("spatial_momentum", "momentum_norm"), needs="velocity",
    symplectic_defect=midpoint_lie_defect, cite=PAPER, where="section 3, Phi", aliases=("LIEMID[E2]",),
)  # fmt: skip
@kernel
def liemid_e2(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Explicit midpoint Lie, variant 2: the impulse h T_0, then a free midpoint Lie step.

    $$\begin{aligned}
    \Pi_+ &= \Pi_0 + h\,T_0, & I \psi &= h \exp(-\tfrac{1}{2}\psi)\,\Pi_+, \\
    R_1 &= R_0 \exp(\psi), & \Pi_1 &= \exp(-\psi)\,\Pi_+
    \end{aligned}$$

    The second equation is solved for the rotation vector $\psi$.
    """
    q, m = y
    m = along(m, h, torque(t, q, m, system))
    turn, residual = _midpoint_turn(h, m, system, torque)
    return (mul(q, turn), unrotate(turn, m)), residual


@method(
    order=1, order_free=2, symmetric=False, symplectic=False, poisson=False, solves=1, torque_evals=1,
    torque_at=("end",),
    conserves=("spatial_momentum", "momentum_norm"), needs="velocity",
    symplectic_defect=midpoint_lie_defect, cite=PAPER, where="section 3, Phi*", aliases=("LIEMID[E1]",),
)  # fmt: skip
@kernel
def liemid_e1(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Explicit midpoint Lie, variant 1 (the adjoint of variant 2): a free midpoint Lie step, then h T_1.

    $$\begin{aligned}
    I \psi &= h \exp(-\tfrac{1}{2}\psi)\,\Pi_0, & R_1 &= R_0 \exp(\psi), \\
    \Pi_- &= \exp(-\psi)\,\Pi_0, & \Pi_1 &= \Pi_- + h\,T(t + h, R_1, I^{-1} \Pi_-)
    \end{aligned}$$

    The first equation is solved for the rotation vector $\psi$; the impulse is in the frame of the end, with the
    torque at the angular velocity before the impulse.
    """
    q, m = y
    turn, residual = _midpoint_turn(h, m, system, torque)
    q, m = mul(q, turn), unrotate(turn, m)
    return (q, along(m, h, torque(t + h, q, m, system))), residual


liemid_ea = halves(
    liemid_e2, liemid_e1, name="liemid_ea", order=2, order_free=2, symmetric=True, needs="attitude",
    where="section 3, Xi", aliases=("LIEMID[EA]",),
    doc=r"""Alternating explicit midpoint Lie: variant 2, then variant 1, each over half the step.

    $$\begin{aligned}
    \Pi_+ &= \Pi_0 + \tfrac{h}{2}\,T_0, & I \psi &= \tfrac{h}{2} \exp(-\tfrac{1}{2}\psi)\,\Pi_+, \\
    \Pi_{1/2} &= \exp(-\psi)\,\Pi_+, & I \chi &= \tfrac{h}{2} \exp(-\tfrac{1}{2}\chi)\,\Pi_{1/2}, \\
    R_1 &= R_0 \exp(\psi) \exp(\chi), & \Pi_1 &= \exp(-\chi)\,\Pi_{1/2} + \tfrac{h}{2}\,T_1
    \end{aligned}$$

    The equations on the right of the first two lines are solved for the rotation vectors $\psi$ and $\chi$.""",
)  # fmt: skip


@kernel
def _gyro_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    c, m = data
    return sub(along(x, -c, gyration(x, system)), m)


gyration_root = newton(_gyro_residual, step_columns)
"""Solver of x - c x cross I^-1 x = m for x, with data = (c, m); it does not call `torque`."""


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=2,
    needs="attitude", torque_at=ENDS, cite="krysl2005newmark",
    where="explicit Newmark, beta = 0, gamma = 1/2", aliases=("NMB",),
)  # fmt: skip
@kernel
def nmb(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Krysl and Endres' explicit Newmark method in the body frame (Lie-Newmark).

    $$\begin{aligned}
    A_0 &= I^{-1} (\Pi_0 \times \omega_0 + T_0), & R_1 &= R_0 \exp(h\,\omega_0 + \tfrac{1}{2} h^2 A_0), \\
    \Pi_1 &= \Pi_0 + \tfrac{h}{2}\,(\Pi_0 \times \omega_0 + T_0 + \Pi_1 \times \omega_1 + T_1) & &
    \end{aligned}$$

    The last equation, the trapezoidal rule with the known $T_1 = T(t + h, R_1)$, is solved for $\Pi_1$.
    """
    q, m = y
    rate = add(gyration(m, system), torque(t, q, m, system))
    q = mul(q, exp(rotation_increment(h, along(m, h / 2, rate), system)))
    kicked = along(along(m, h / 2, rate), h / 2, torque(t + h, q, m, system))
    x, residual = gyration_root(along(m, h, rate), (h / 2, kicked), system, torque)
    return (q, x), residual
