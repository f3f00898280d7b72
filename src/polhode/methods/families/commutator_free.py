"""Commutator-free Lie group method of order 4, with an error estimate for step control.

E. Celledoni, A. Marthinsen and B. Owren, Future Gener. Comput. Syst. 19 (2003) 341-352. The paper writes y' = A(y) y,
so that exponentials act from the left; here R' = R hat(omega), and they are multiplied from left to right. The
momentum in the frame of the start of the step is a vector, for which exponentials are sums.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import along, exp, mul, norm, rotate, scale, sub, unrotate
from ...numbers.dispatch import kernel
from ...numbers.types import Quat, Vec3
from ..adaptive.controller import squares
from ..mechanics import velocity
from ..record import Estimate
from ..registry import method

PART = 10
"""The embedded method moves the weight 1/PART from the fourth stage to the end of the step."""


@kernel
def _rates(s: Any, turn: Quat, mu: Vec3, y: Any, system: Any, torque: Any) -> Any:
    """Angular velocity (body frame of the stage) and torque (frame of the start) of a stage at time s."""
    m = unrotate(turn, mu)
    return velocity(m, system), rotate(turn, torque(s, mul(y[0], turn), m, system))


@kernel
def _sum(a: Any, k: Vec3, b: Any, l: Vec3, c: Any, m: Vec3, d: Any, n: Vec3) -> Vec3:  # noqa: E741
    return along(along(along(scale(a, k), b, l), c, m), d, n)


@kernel
def _stages(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Return the end of the step, and the rates of the fourth stage."""
    q, m = y
    half = h / 2
    k1, g1 = velocity(m, system), torque(t, q, m, system)
    turn2 = exp(scale(half, k1))
    k2, g2 = _rates(t + half, turn2, along(m, half, g1), y, system, torque)
    k3, g3 = _rates(t + half, exp(scale(half, k2)), along(m, half, g2), y, system, torque)
    turn4 = mul(turn2, exp(along(scale(h, k3), -half, k1)))
    k4, g4 = _rates(t + h, turn4, along(m, h, g3), y, system, torque)
    s = h / 12
    turn = mul(exp(_sum(3 * s, k1, 2 * s, k2, 2 * s, k3, -s, k4)), exp(_sum(-s, k1, 2 * s, k2, 2 * s, k3, 3 * s, k4)))
    mu = along(_sum(2 * s, g1, 4 * s, g2, 4 * s, g3, 2 * s, g4), 1, m)
    return turn, mu, k4, g4


@kernel
def cf4_attempt(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Make a step of `cf4` with two error estimates: (y_new, error_attitude, error_momentum), for step control.

    Moving a part x of the last weight of Kutta's tableau from its fourth stage to the end of the step leaves a method
    of order 3, for any x: both stages have c = 1 and sum_j a_ij c_j = 1/2. So x h |k_end - k_4| is the error of an
    embedded method of order 3, an angle; the momentum error follows likewise from the torques. x = 1/10; the torque at
    the end is that at the start of the next step.
    """
    turn, mu, k4, g4 = _stages(h, t, y, system, torque)
    k, g = _rates(t + h, turn, mu, y, system, torque)
    part = h / PART
    delta, momentum_error = scale(part, sub(k, k4)), scale(part, sub(g, g4))
    m = unrotate(turn, mu)
    error = norm(momentum_error) + norm(m) * norm(delta)  # the momentum in the body frame rotates with the attitude
    return (mul(y[0], turn), m), norm(delta), error


@method(
    order=4, order_free=4, symmetric=False, symplectic=False, poisson=False, solves=0, torque_evals=4,
    torque_at=("start",), conserves=("spatial_momentum", "momentum_norm"), needs="velocity",
    cite="celledoni2003", where="the method of order 4 with two exponentials in its last stage",
    aliases=("CF4", "Celledoni-Marthinsen-Owren"), estimated=Estimate(lambda number: squares(cf4_attempt), 3),
)  # fmt: skip
@kernel
def cf4(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Commutator-free Lie group method of order 4.

    With $\mu$ the momentum in the frame of the start of the step, $Q$ the rotation since then, and for a stage $i$

    $$\omega_i = I^{-1} Q_i^{\mathsf T} \mu_i, \qquad G_i = Q_i\,T(t + c_i h,\, R_0 Q_i,\, \omega_i)$$

    the stages are

    $$\begin{aligned}
    Q_1 &= 1, & \mu_1 &= \Pi_0, & c_1 &= 0, \\
    Q_2 &= \exp(\tfrac{h}{2}\,\omega_1), & \mu_2 &= \Pi_0 + \tfrac{h}{2}\,G_1, & c_2 &= \tfrac{1}{2}, \\
    Q_3 &= \exp(\tfrac{h}{2}\,\omega_2), & \mu_3 &= \Pi_0 + \tfrac{h}{2}\,G_2, & c_3 &= \tfrac{1}{2}, \\
    Q_4 &= Q_2 \exp(h\,\omega_3 - \tfrac{h}{2}\,\omega_1), & \mu_4 &= \Pi_0 + h\,G_3, & c_4 &= 1
    \end{aligned}$$

    and the step ends with

    $$\begin{aligned}
    Q &= \exp\bigl(\tfrac{h}{12}(3\,\omega_1 + 2\,\omega_2 + 2\,\omega_3 - \omega_4)\bigr)
    \exp\bigl(\tfrac{h}{12}(-\omega_1 + 2\,\omega_2 + 2\,\omega_3 + 3\,\omega_4)\bigr), \\
    R_1 &= R_0 Q, \qquad \Pi_1 = Q^{\mathsf T} \bigl(\Pi_0 + \tfrac{h}{6}(G_1 + 2\,G_2 + 2\,G_3 + G_4)\bigr)
    \end{aligned}$$
    """
    turn, mu, _, _ = _stages(h, t, y, system, torque)
    return (mul(y[0], turn), unrotate(turn, mu)), 0
