"""Energy conserved exactly in every potential: a discrete gradient on the rotation group.

O. Gonzalez, J. Nonlinear Sci. 6 (1996) 449-467; R. I. McLachlan, G. R. W. Quispel, N. Robidoux, Phil. Trans. R. Soc. A
357 (1999) 1021-1045; E. Celledoni, B. Owren, Discrete Contin. Dyn. Syst. 34 (2014) 977-990 (on Lie groups). Over a
step R1 = R0 cay(v) the rotation matrix changes by R1 - R0 = (R0 + R1)/2 hat(v), so a discrete gradient G of U(R) gives
U1 - U0 = -T.v with the torque T = -rot((R0 + R1)^T G/2). In the midpoint rule, v = h I^-1 (Pi_0 + Pi_1)/2,
the work of this torque is exactly the loss of potential energy.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import along, cay, mul, sub
from ...kernels.solvers import newton
from ...numbers.dispatch import kernel
from ..mechanics import gyration, half_step_columns, rotation_increment
from ..queries import DiscreteGradient, Torque
from ..record import ENDS
from ..registry import method, methods
from .comparators import _mean_guess, _reflected


@kernel
def _residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, q, m = data
    end = mul(q, cay(rotation_increment(h, x, system)))
    force, _ = torque(t, q, m, system, t + h, end, _reflected(x, m))
    return sub(along(along(x, -h / 2, gyration(x, system)), -h / 2, force), m)


_root = newton(_residual, half_step_columns)


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=1, torque_evals=2, torque_at=ENDS,
    conserves=("energy", "spatial_momentum", "momentum_norm", "energy_linear_potential", "energy_potential"),
    needs="potential", asks=Torque() & DiscreteGradient("torque"), cite="gonzalez1996",
    where="discrete gradient; with the Cayley map of akw",
)  # fmt: skip
@kernel
def dg2(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Discrete gradient method: conserves kinetic plus potential energy exactly in every potential.

    $$\begin{aligned}
    \bar\Pi &= \tfrac{1}{2}(\Pi_0 + \Pi_1), \qquad \bar\omega = I^{-1} \bar\Pi, \qquad
    R_1 = R_0 \operatorname{cay}(h\,\bar\omega), \\
    \bar T &= -\operatorname{rot}\bigl(\tfrac{1}{2}(R_0 + R_1)^{\mathsf T}\,\bar\nabla U(R_0, R_1)\bigr), \qquad
    \Pi_1 = \Pi_0 + h\,\bar\Pi \times \bar\omega + h\,\bar T
    \end{aligned}$$

    with a symmetric discrete gradient of the potential,
    $\langle \bar\nabla U(R_0, R_1),\, R_1 - R_0 \rangle = U(R_1) - U(R_0)$. All equations are solved together for
    $\bar\Pi$. For a potential linear in $R$ this is `akw`.
    """
    q, m = y
    data = (h, t, q, m)
    x, residual = _root(_mean_guess(h, m, torque(t, q, m, system), system), data, system, torque)
    return (mul(q, cay(rotation_increment(h, x, system))), _reflected(x, m)), residual


methods.add_label("dg4", "suzuki4(dg2)")
