"""Adaptive steps of many bodies: the kernel of a kind of step for lanes and threads, and the choice among the kinds.

A step is proposed by the one before. The first one is a guess, the time to turn by an angle.

The work is the number of steps times the cost of one. Both are measured in lanes (`validation/lane_steps.py`): for
heavy tops, tops in a quadratic potential, a driven top, and a torque with functions and quotients.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..._memo import MADE
from ...methods import Method
from ...methods.adaptive.components import Pair
from ...methods.adaptive.controller import first_angle
from ...methods.adaptive.enright_verner76 import PAIR as LOW
from ...methods.adaptive.enright_verner76 import enright_verner76
from ...methods.adaptive.verner87 import PAIR as HIGH
from ...methods.adaptive.verner87 import verner87
from ...methods.families.taylor import taylor
from ...numbers import floats
from ...physics.fields import Field
from ...physics.fields.variation import VariationField
from ...physics.mixed_precision import controlled_step_in_mixed_precision
from ...physics.problem import Problem
from ...physics.taylor_steps import MOST, motion_series
from ...physics.varied_steps import COARSE, growing_variation
from ...physics.varied_steps import HIGH as HIGH_RULE
from ...physics.varied_steps import LOW as LOW_RULE
from ..step_control import MANY_SERIES, has_series, mixed_orders, mixed_taylor, taylor_order, torque_flops
from ..system import System

FIRST_RADIUS = 4.8
"""Guess of the radius of convergence of the series at the start of a run, as an angle.

Heavy tops have medians of 4.2 to 5.4 with errors of 1e-3 to 1e-12; 99.8 % of them have 0.5 to 1.6 times their median.
"""


@dataclasses.dataclass(frozen=True)
class LaneSteps:
    """A kind of adaptive step for many bodies."""

    key: tuple[Hashable, ...]
    """What the kernel is built from."""
    make: Callable[[], Callable[..., Any]]
    """Makes the kernel, a controlled step (`kernels.loops.attempting_steps`)."""
    angle: float
    """Angle through which a body turns in its first step, as a guess."""
    orders: Any
    """Last argument of the kernel: the orders of Taylor steps."""


def lane_steps(problem: Problem, method: Method, tolerance: float) -> LaneSteps:
    """Return the kernel of a method for a tolerance of one step."""
    if method.estimated is None and isinstance(problem.field, VariationField):
        return _varied_taylor(problem, problem.field, tolerance, int(method.order))

    if method.estimated is None:
        series = mixed_taylor(problem)
        return _in_mixed_precision((series.name, *series.structure), series.make, tolerance, int(method.order))

    system = System(problem, method)
    angle = first_angle(int(method.order), tolerance)
    return LaneSteps((method.name, *system.key), system.attempt, angle, 0)


def _varied_taylor(problem: Problem, field: VariationField, tolerance: float, order: int) -> LaneSteps:
    """Return Taylor steps of a body with a variation beside it."""
    nodes = LOW_RULE if tolerance >= COARSE else HIGH_RULE

    def make() -> Callable[..., Any]:
        kind = growing_variation(field, problem.body.has_principal_rotation, nodes)
        return controlled_step_in_mixed_precision(kind, floats.number)

    return _in_mixed_precision(("varied taylor", nodes, *System(problem, verner87).key), make, tolerance, order)


def _in_mixed_precision(
    key: tuple[Hashable, ...], make: Callable[[], Callable[..., Any]], tolerance: float, order: int
) -> LaneSteps:
    """Return Taylor steps of an order in mixed precision."""
    orders = mixed_orders(tolerance, order)
    return LaneSteps(key, make, FIRST_RADIUS / orders[2], orders)


# --- the choice -------------------------------------------------------------------------------------

NS_WEIGHT, NS_STAGE, NS_FLOP = 0.8, 2.5, 0.096
"""Nanoseconds of a core for a weight of a pair, for one of its stages, and for an operation of the torque in a stage:
steps of `verner87` take 92 ns for heavy tops, and 332 and 776 ns with 210 and 532 operations."""

NS_SERIES, NS_TERM = 0.6, 0.0135
"""Nanoseconds for a Taylor step are (NS_SERIES + NS_TERM p (p - 1)/2) terms^1.5 with the order p: 72 to 170 ns for the
16 terms of heavy tops with the orders 8 to 18, 300 to 820 ns for 41 terms with the orders 6 to 18.

These times are those with AVX2. With AVX-512 all are about a fifth, for heavy tops 22 ns with `verner87` and 23 ns with
the order 12."""

HIGH_STEPS = ((2.7, 0.68), (3.6, 0.74), (4.4, 0.83), (6.0, 1.08), (8.0, 1.6), (9.0, 1.95), (10.0, 2.4), (12.0, 3.8))
"""(-log10 of the tolerance of a step, steps of `verner87` per Taylor step) for equal errors at the end."""

LOW_STEPS = ((2.7, 1.15), (3.7, 1.24), (6.0, 1.53), (12.0, 2.7))
"""The same with the steps of `enright_verner76` per step of `verner87`; the last is extrapolated."""

PAIRS_FINEST = 1e-11
"""Tightest tolerance of a step of a pair in lanes; a second run that estimates the error has a tighter one."""

ON_CARD = 3e-5
"""On a GPU the pair of lower order is used from this step tolerance on. Taylor steps are not: their coefficients do not
fit into registers."""


WITH_VARIATION = 1e-6
"""Pairs with larger tolerances are cheaper with a variation too, but let its length grow without bounds."""


def lane_order(tolerance: float) -> int:
    """Return the order of Taylor steps with the least work: one more than in doubles alone, by measurement.

    The last terms are computed in single precision, so that an order more costs less.
    """
    return min(MOST, taylor_order(tolerance) + 1)


def adaptive_method(
    field: Field, tolerance: float, device: str = "cpu", tangent: bool = False, estimated: bool = False
) -> Method:
    """Return the method with the least work on a device for a tolerance of one step.

    With a tangent it is a pair: the steps of the result and those on dual numbers are then the same. With a variation
    it is that of the field without it for at most `WITH_VARIATION`, or a pair if errors at the end are to be estimated:
    Taylor steps do not control the error of MEGNO.
    """
    if isinstance(field, VariationField):
        base = field.template.base
        assert base is not None
        alone = adaptive_method(base, min(tolerance, WITH_VARIATION), device, tangent=estimated)
        return verner87 if alone.estimated else taylor(lane_order(tolerance))
    if not has_series(field):
        return verner87
    if device == "cuda" or tangent:
        return enright_verner76 if tolerance >= ON_CARD else verner87
    digits = round(-math.log10(tolerance), 1)
    found: Method = MADE(("lane steps", field.structure, digits), lambda: _cheapest(field, digits))
    return found


def _cheapest(field: Field, digits: float) -> Method:
    order, flops = lane_order(10.0**-digits), torque_flops(field)
    series = (NS_SERIES + NS_TERM * order * (order - 1) / 2) * motion_series(field, False).terms ** 1.5
    steps = _interpolated(HIGH_STEPS, digits)
    high = steps * _pair_ns(HIGH, flops)
    low = steps * _interpolated(LOW_STEPS, digits) * _pair_ns(LOW, flops)
    pairs = [(high, verner87), (low, enright_verner76)] if 10.0**-digits >= PAIRS_FINEST else []
    many = pairs and motion_series(field, False).stride >= MANY_SERIES
    kinds = pairs if many else [(series, taylor(order)), *pairs]
    return min(kinds, key=lambda kind: kind[0])[1]


def _pair_ns(pair: Pair, flops: int) -> float:
    """Nanoseconds for a step of a pair."""
    weights = sum(x != 0 for row in (*pair.tableau.a, pair.tableau.b, pair.difference) for x in row)
    return NS_WEIGHT * weights + pair.stages * (NS_STAGE + NS_FLOP * flops)


def _interpolated(table: tuple[tuple[float, float], ...], digits: float) -> float:
    """Interpolate logarithms of ratios."""
    x, y = np.transpose(table)
    return float(np.exp(np.interp(digits, x, np.log(y))))
