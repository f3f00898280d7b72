"""Kahan's method for Euler's equations: the discrete Euler top of Hirota and Kimura, with the attitude.

R. Hirota and K. Kimura, J. Phys. Soc. Japan 69 (2000) 627-630; M. Petrera and Y. B. Suris, Math. Nachr. 283 (2010).
Kahan's rule replaces a quadratic term x y by (x_0 y_1 + x_1 y_0)/2. For Euler's equations the result is a linear
equation for the new momentum, and a map that conserves neither |Pi| nor the energy, but integrals of its own:

    F_i = (1 - c a_k a_i Pi_j^2)/(1 - c a_i a_j Pi_k^2),   c = h^2/4,   Pi_i' = a_i Pi_j Pi_k,   (ijk) cyclic.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import add, exp, mul, solve3
from ...numbers.dispatch import kernel
from ..mechanics import gyration_columns, rotation_increment
from ..registry import method


@method(
    order=2, order_free=2, symmetric=True, symplectic=False, poisson=False, solves=0, torque_evals=0, needs="free",
    cite="hirota2000", where="the discrete equations of motion; the attitude by the mean of both angular velocities",
    aliases=("Hirota-Kimura", "hirota_kimura"),
)  # fmt: skip
@kernel
def kahan(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Hirota and Kimura's discrete Euler top (Kahan's method), and the attitude.

    $$\begin{aligned}
    \Pi_1 &= \Pi_0 + \tfrac{h}{2}\,(\Pi_0 \times \omega_1 + \Pi_1 \times \omega_0), \\
    R_1 &= R_0 \exp\bigl(\tfrac{h}{2}\,(\omega_0 + \omega_1)\bigr)
    \end{aligned}$$

    The first equation is linear in $\Pi_1$. It conserves neither the energy nor $|\Pi|$ but, with
    $a_1 = 1/I_3 - 1/I_2$ and so on and $(i j k)$ cyclic,

    $$F_i = \frac{1 - \tfrac{1}{4} h^2 a_k\,a_i\,\Pi_j^2}{1 - \tfrac{1}{4} h^2 a_i\,a_j\,\Pi_k^2}$$
    """
    q, m = y
    a, b, c = gyration_columns(h / 2, m, system)
    end = solve3(a, b, c, m)
    return (mul(q, exp(rotation_increment(h / 2, add(m, end), system))), end), 0
