"""An embedded Munthe-Kaas pair: Dormand and Prince 5(4) on attitude and momentum, with two error estimates.

J. R. Dormand and P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19-26, in the algorithm MKRK of `munthe_kaas.py`. Six
stages give Psi and mu of order 5, a seventh at the end of the step gives Psi^ and mu^ of order 4, with weights b^ in
place of b. The run continues with order 5. With e = b^ - b, d = h sum e_j K_j and n = h sum e_j G_j the embedded
solution differs from it by the rotation delta = dexp_{-Psi} d, in the new body frame, and by the momentum
exp(-Psi) n + Pi x delta; both to first order, so that there is no cancellation however small they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ...kernels.loops import Step
from ...kernels.so3 import add, along, cross, dexp, exp, mul, negative, norm, scale, unrotate
from ...kernels.unroll import combination
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...symbolic import latex as typeset
from ..families.munthe_kaas import all_stages, mkrk, stage_slopes
from ..record import Estimate, Method
from ..registry import methods
from ..tables.butcher import DORMAND_PRINCE
from .controller import squares

PAIR = DORMAND_PRINCE

EMBEDDED = tuple(map(Fraction, ("5179/57600", "0", "7571/16695", "393/640", "-92097/339200", "187/2100", "1/40")))
"""Weights of order 4; the seventh belongs to the end of the step."""

DIFFERENCE = tuple(low - high for low, high in zip(EMBEDDED, (*PAIR.b, Fraction(0)), strict=True))


def embedded(number: Callable[[Any], Any]) -> Step:
    """Kernel (h, t, y, system, torque) -> (y_new, error_attitude, error_momentum) in one number type.

    The errors are those of order 4: a rotation angle, and the length of a difference of body momenta. The step is
    explicit, so there is no residual; a controller uses the errors (NaN if the step has no value).
    """
    stages = all_stages(PAIR, number)
    total = combination([converted(x, number) for x in PAIR.b])
    rest = combination([converted(x, number) for x in DIFFERENCE])

    @kernel
    def attempt(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        k, g, _ = stages(h, t, y, system, torque)
        psi, mu = scale(h, total(k)), along(y[1], h, total(g))
        k7, g7 = stage_slopes(t + h, psi, mu, y, system, torque)
        turn = exp(psi)
        m = unrotate(turn, mu)
        delta = dexp(negative(psi), scale(h, rest((*k, k7))))
        momentum_error = unrotate(turn, scale(h, rest((*g, g7))))
        return (mul(y[0], turn), m), norm(delta), norm(add(momentum_error, cross(m, delta)))

    return attempt


def _declared() -> Method:
    """Declare the Munthe-Kaas method of the tableau with its error estimates."""
    base = mkrk(PAIR)
    estimates = (
        r"""

The weights $\hat b$ of an embedded method of order 4, with the seventh stage $\psi_7 = \psi$, $\mu_7 = \mu$
at the end of the step, give the error estimates: with $e = \hat b - b$ ($b_7 = 0$), $d = h \sum_j e_j K_j$ and
$n = h \sum_j e_j G_j$ they are the lengths of

$$\delta = \operatorname{dexp}_{-\psi} d, \qquad \exp(-\psi)\,n + \Pi_1 \times \delta, \qquad
\hat b = """
        + typeset.matrix([EMBEDDED])
        + "$$"
    )
    return dataclasses.replace(
        base,
        estimated=Estimate(lambda number: squares(embedded(number)), 4),
        where=f"{base.where}; tableau and embedded weights: dormand1980",
        aliases=("Dormand-Prince 5(4)",),
        doc=base.doc + estimates,
    )


dormand_prince = methods.add(_declared())
