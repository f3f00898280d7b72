"""An embedded Munthe-Kaas pair: Dormand and Prince 5(4) on attitude and momentum, with two error estimates.

J. R. Dormand and P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19-26, in the algorithm MKRK of `munthe_kaas.py`. Six
stages give Psi and mu of order 5, a seventh at the end of the step gives Psi^ and mu^ of order 4, with weights b^ in
place of b. The step goes on with order 5. With e = b^ - b, d = h sum e_j K_j and n = h sum e_j G_j the embedded
solution differs from it by the rotation delta = dexp_{-Psi} d, seen in the new body frame, and by the momentum
exp(-Psi) n + Pi x delta; both to first order in them, so that nothing cancels however small they are.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ...kernels.loops import Step
from ...kernels.so3 import add, along, cross, dexp, exp, mul, negative, norm, scale, unrotate
from ...kernels.unroll import combination
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ..families.munthe_kaas import all_stages, stage_slopes
from ..tables.butcher import DORMAND_PRINCE
from .controller import estimated_stage

PAIR = DORMAND_PRINCE
ORDER, ESTIMATE_ORDER = 5, 4
PAIR_NAME = "mkrk(dormand_prince)"

EMBEDDED = tuple(map(Fraction, ("5179/57600", "0", "7571/16695", "393/640", "-92097/339200", "187/2100", "1/40")))
"""The weights of order 4; the seventh belongs to the end of the step."""

DIFFERENCE = tuple(low - high for low, high in zip(EMBEDDED, (*PAIR.b, Fraction(0)), strict=True))


def embedded(number: Callable[[Any], Any]) -> Step:
    """Kernel (h, t, y, system, torque) -> (y_new, error_attitude, error_momentum) in one number type.

    The errors are those of order 4: an angle of rotation, and the length of a difference of body momenta. Nothing is
    solved, so nothing is missed; a controller looks at the errors (which are NaN where the step has no value).
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
        push = unrotate(turn, scale(h, rest((*g, g7))))
        return (mul(y[0], turn), m), norm(delta), norm(add(push, cross(m, delta)))

    return attempt


def pair_stage(number: Callable[[Any], Any], torque: Callable[..., Any]) -> Callable[..., Any]:
    """Steps of the pair for `loop.travelling`."""
    return estimated_stage(embedded(number), ORDER, number, torque)
