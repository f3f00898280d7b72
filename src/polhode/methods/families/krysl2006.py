"""Krysl's two pairs of conjugate midpoint and trapezoidal rules, and the Euler steps that compose them.

P. Krysl, Dynamically equivalent implicit algorithms for the integration of rigid body rotations (2006).
Equation numbers are the paper's.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import add, along, exp, mul, sub, unrotate
from ...kernels.solvers import newton
from ...numbers.dispatch import kernel
from ..combinators.compose import halves
from ..mechanics import gyration, midpoint_lie_defect, rolling_columns, rotation_increment, step_columns
from ..registry import method

PAPER = "krysl2006"


@method(
    order=1, order_free=1, symmetric=False, symplectic=False, poisson=False, solves=0, torque_evals=1,
    torque_at=("start",),
    needs="velocity", cite=PAPER, where="(11)", aliases=("FE",),
)  # fmt: skip
@kernel
def fe(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Forward Euler on the rate form.

    $$\Pi_1 = \Pi_0 + h\,(\Pi_0 \times \omega_0 + T_0), \qquad R_1 = R_0 \exp(h\,\omega_0)$$
    """
    q, m = y
    rate = add(gyration(m, system), torque(t, q, m, system))
    return (mul(q, exp(rotation_increment(h, m, system))), along(m, h, rate)), 0


@kernel
def _be_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, q, m = data
    q = mul(q, exp(rotation_increment(h, x, system)))
    return sub(along(x, -h, add(gyration(x, system), torque(t + h, q, x, system))), m)


_be_root = newton(_be_residual, step_columns)


@method(
    order=1, order_free=1, symmetric=False, symplectic=False, poisson=False, solves=1, torque_evals=1,
    torque_at=("end",),
    needs="velocity", cite=PAPER, where="(12)", aliases=("BE",),
)  # fmt: skip
@kernel
def be(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Backward Euler on the rate form.

    $$\Pi_1 = \Pi_0 + h\,(\Pi_1 \times \omega_1 + T_1), \qquad R_1 = R_0 \exp(h\,\omega_1)$$

    Both equations are solved together for $\Pi_1$.
    """
    q, m = y
    guess = along(m, h, add(gyration(m, system), torque(t, q, m, system)))
    x, residual = _be_root(guess, (h, t, q, m), system, torque)
    return (mul(q, exp(rotation_increment(h, x, system))), x), residual


@method(
    order=1, order_free=1, symmetric=False, symplectic=False, poisson=False, solves=0, torque_evals=1,
    torque_at=("start",),
    conserves=("spatial_momentum", "momentum_norm"), needs="velocity", cite=PAPER, where="(18)", aliases=("FEM",),
)  # fmt: skip
@kernel
def fem(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Forward Euler on the momentum balance.

    $$\psi = h\,\omega_0, \qquad R_1 = R_0 \exp(\psi), \qquad \Pi_1 = \exp(-\psi)\,(\Pi_0 + h\,T_0)$$
    """
    q, m = y
    turn = exp(rotation_increment(h, m, system))
    return (mul(q, turn), unrotate(turn, along(m, h, torque(t, q, m, system)))), 0


@kernel
def _bem_residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, q, m = data
    turn = exp(rotation_increment(h, x, system))
    return sub(along(x, -h, torque(t + h, mul(q, turn), x, system)), unrotate(turn, m))


@kernel
def _bem_columns(x: Any, data: Any, system: Any) -> Any:
    h = data[0]
    return rolling_columns(h, x, rotation_increment(h, x, system), system)


_bem_root = newton(_bem_residual, _bem_columns)


@method(
    order=1, order_free=1, symmetric=False, symplectic=False, poisson=False, solves=1, torque_evals=1,
    torque_at=("end",),
    conserves=("spatial_momentum", "momentum_norm"), needs="velocity", cite=PAPER, where="(19)", aliases=("BEM",),
)  # fmt: skip
@kernel
def bem(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Backward Euler on the momentum balance.

    $$\psi = h\,\omega_1, \qquad R_1 = R_0 \exp(\psi), \qquad \Pi_1 = \exp(-\psi)\,\Pi_0 + h\,T_1$$

    All three equations are solved together for $\Pi_1$.
    """
    q, m = y
    guess = unrotate(exp(rotation_increment(h, m, system)), along(m, h, torque(t, q, m, system)))
    x, residual = _bem_root(guess, (h, t, q, m), system, torque)
    return (mul(q, exp(rotation_increment(h, x, system))), x), residual


trap = halves(
    fe, be, name="trap", order=2, order_free=2, symmetric=True, conserves=("energy_midpoint",),
    where="(14), algorithm TRAP", aliases=("TRAP",),
    doc=r"""Trapezoidal rule: half steps of forward, then backward Euler on the rate form.

    $$\begin{aligned}
    \Pi_{1/2} &= \Pi_0 + \tfrac{h}{2}\,(\Pi_0 \times \omega_0 + T_0), & R_{1/2} &= R_0 \exp(\tfrac{h}{2}\,\omega_0) \\
    \Pi_1 &= \Pi_{1/2} + \tfrac{h}{2}\,(\Pi_1 \times \omega_1 + T_1), & R_1 &= R_{1/2} \exp(\tfrac{h}{2}\,\omega_1)
    \end{aligned}$$

    The second line is solved for $\Pi_1$.""",
)  # fmt: skip

imid = halves(
    be, fe, name="imid", order=2, order_free=2, symmetric=True, torque_evals=1,
    conserves=("energy", "momentum_norm"), where="algorithm IMID", aliases=("IMID",),
    doc=r"""Midpoint rule: half steps of backward, then forward Euler on the rate form.

    $$\begin{aligned}
    \bar\Pi &= \Pi_0 + \tfrac{h}{2}\,(\bar\Pi \times \bar\omega + \bar T), & \bar\omega &= I^{-1} \bar\Pi, \\
    \bar T &= T(t + \tfrac{h}{2},\, R_0 \exp(\tfrac{h}{2}\,\bar\omega),\, \bar\omega), & & \\
    \Pi_1 &= \Pi_0 + h\,(\bar\Pi \times \bar\omega + \bar T), & R_1 &= R_0 \exp(h\,\bar\omega)
    \end{aligned}$$

    The first two lines are solved for $\bar\Pi$, which is $(\Pi_0 + \Pi_1)/2$.""",
)  # fmt: skip

trapm = halves(
    fem, bem, name="trapm", order=2, order_free=2, symmetric=True,
    where="(20), algorithm TRAPM", aliases=("TRAPM",),
    doc=r"""Momentum-conserving trapezoidal rule: half steps of forward, then backward Euler.

    $$\begin{aligned}
    \psi &= \tfrac{h}{2}\,\omega_0, & \chi &= \tfrac{h}{2}\,\omega_1, \\
    R_1 &= R_0 \exp(\psi) \exp(\chi), &
    \Pi_1 &= \exp(-\chi) \exp(-\psi)\,(\Pi_0 + \tfrac{h}{2}\,T_0) + \tfrac{h}{2}\,T_1
    \end{aligned}$$

    The last three equations are solved for $\Pi_1$.""",
)  # fmt: skip

imidm = halves(
    bem, fem, name="imidm", order=2, order_free=2, symmetric=True, torque_evals=1,
    symplectic_defect=midpoint_lie_defect, where="algorithm IMIDM", aliases=("IMIDM", "LIEMID[I]"),
    doc=r"""Momentum-conserving midpoint rule (implicit midpoint Lie): half steps of backward, then forward Euler.

    $$\begin{aligned}
    \bar\Pi &= \exp(-\tfrac{1}{2}\psi)\,\Pi_0 + \tfrac{h}{2}\,\bar T, & \psi &= h\,I^{-1} \bar\Pi, \\
    \bar T &= T(t + \tfrac{h}{2},\, R_0 \exp(\tfrac{1}{2}\psi),\, I^{-1} \bar\Pi), & & \\
    \Pi_1 &= \exp(-\psi)\,\Pi_0 + h \exp(-\tfrac{1}{2}\psi)\,\bar T, & R_1 &= R_0 \exp(\psi)
    \end{aligned}$$

    The first two lines are solved for $\bar\Pi$.""",
)  # fmt: skip
