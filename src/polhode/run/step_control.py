"""Kinds of adaptive steps, and which of them solves a formula to a tolerance with the least work.

Taylor steps exist for every smooth formula, Verner's Runge-Kutta pair 8(7) for every torque, and a Munthe-Kaas pair for
torques with branches. All that a run needs to know of a formula is made once and kept (`formula`), so that a new state
costs no planning.

Which kind needs less work follows from the formula, the tolerance and the angle to be turned. Both step lengths scale
with the radius of convergence of the motion, so that their ratio depends on the accuracy of a step only: `STEPS_RATIO`,
measured over random tops, driven and turning torques, states and end times; 80 % of the ratios lie within a factor of
1.5. The cost of a step follows from the operations in it (`benchmarks/cost_model.py` measures the constants).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .._memo import MADE
from ..kernels.loops import LATER, adaptive_stepping, interpolating
from ..methods import Method
from ..methods.adaptive.controller import controlled_step_from_estimate
from ..methods.adaptive.dormand_prince import dormand_prince
from ..methods.adaptive.verner87 import STAGES, verner87
from ..methods.families import taylor as lie_taylor
from ..numbers import floats
from ..numbers.primitives import FUNCTIONS
from ..physics.fields import Field
from ..physics.mixed_precision import controlled_steps_in_mixed_precision
from ..physics.problem import Problem
from ..physics.taylor_steps import MOST, controlled_taylor_step, motion_series
from ..symbolic.expression import COMPARISONS, ordered
from .integrator import structure, torque_kernel

EPS = 2.0**-52
SMALLEST, LARGEST = 1e-15, 0.1
"""The tolerances that can be asked for."""

NS_EXPANSION, NS_TERM = 110.0, 0.18
"""Nanoseconds of an expansion, and of one product in a sum."""

NS_PAIR, NS_STAGE, NS_FLOP = 10.0, 9.0, 0.19
"""Nanoseconds of a step of the pair 8(7), of one of its stages, of one operation of the torque."""

STEPS_RATIO = ((3.3, 0.7), (6.3, 0.95), (9.3, 1.5), (11.3, 2.1), (15.0, 4.0))
"""(-log10 of the tightest tolerance of a step, steps of the pair 8(7) for a Taylor step); the last is extrapolated."""

PAIR_FINEST = 1e-11
"""The pair 8(7) is not used for tighter tolerances: its weights of up to 120 make as much round-off in each step."""

PAIR_STEPS, SERIES_STEPS = 5_000_000, 20_000_000
"""Attempted steps after which a run is given up: at a jump that holds the motion, steps become ever shorter."""


def compiled(make: Callable[[], Any], *shortcut: Hashable) -> Any:
    """The compiled function that `make` builds."""
    from ..compile.program import program

    return program(make, *shortcut).run


@dataclasses.dataclass(frozen=True)
class AdaptiveStep:
    """A kind of adaptive step: its name, what its kernel is built from, and the kernel for doubles."""

    name: str
    structure: tuple[Hashable, ...]
    make: Callable[[], Any]
    order_for: Callable[[float], int]
    most: float = math.inf
    """Attempted steps after which a run is given up."""
    ns: Callable[[int], float] = lambda order: math.inf
    """Nanoseconds of one attempted step of some order, by the model of `benchmarks/cost_model.py`."""
    has_proposal: bool = True
    """Does the first step start from a guess; Taylor steps follow from their series."""

    def label(self, order: int) -> str:
        """Name of the method, with its order if that varies."""
        return self.name if self.order_for(0.1) == self.order_for(EPS) else f"{self.name}({order})"

    @functools.cached_property
    def adaptive_loop(self) -> Any:
        """The compiled loop over steps."""
        return compiled(lambda: adaptive_stepping(self.make()), "adaptive loop", self.name, *self.structure)

    @functools.cached_property
    def interpolate(self) -> Any:
        """The compiled evaluation between steps."""
        return compiled(lambda: interpolating(self.make()), "interpolate", self.name, *self.structure)


# --- kinds of steps ---------------------------------------------------------------------------------


def taylor(problem: Problem) -> AdaptiveStep:
    """Taylor steps: the order follows from the tolerance, the length from the series."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation

    def ns(order: int) -> float:
        terms = motion_series(field, has_principal_rotation).terms
        return NS_EXPANSION + NS_TERM * terms * order * (order - 1) / 2

    name = lie_taylor.taylor.__name__
    make = functools.partial(controlled_taylor_step, field, has_principal_rotation, floats.number)
    return AdaptiveStep(name, structure(problem), make, taylor_order, SERIES_STEPS, ns, has_proposal=False)


def taylor_order(tolerance: float) -> int:
    """The order with the least work: -ln(tolerance)/2 (Jorba and Zou 2005) plus 4, measured."""
    return min(MOST, max(4, math.ceil(-0.5 * math.log(tolerance)) + 4))


def mixed_taylor(problem: Problem) -> AdaptiveStep:
    """Taylor steps with single precision for coefficients of high order: for SIMD lanes, which have such numbers."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation
    in_doubles = taylor(problem)
    return dataclasses.replace(
        in_doubles,
        name=f"{in_doubles.name}, mixed",
        make=lambda: controlled_steps_in_mixed_precision(field, has_principal_rotation, floats.number),
    )


SINGLE_PRECISION_SHARE = 1e-5
"""Terms below tolerance/SINGLE_PRECISION_SHARE may be in single precision: it rounds to a hundredth of the tolerance.

This assumes that terms fall evenly; they fall later, and by measurement this is where steps are fastest.
"""


def mixed_orders(tolerance: float, order: int) -> tuple[int, int, float]:
    """What `controlled_steps_in_mixed_precision` takes, if terms fall evenly from 1 to the tolerance.

    The last order, the one above which coefficients may be in single precision, and the radius of convergence in steps.
    """
    first = min(order - 1, max(2, math.ceil(order * (1 - math.log(SINGLE_PRECISION_SHARE) / math.log(tolerance)))))
    return order, first, tolerance ** (-1 / order)


def pair(problem: Problem) -> AdaptiveStep:
    """Steps of an embedded Munthe-Kaas pair, for fields with branches."""
    return estimated(problem, dormand_prince)


def estimated(problem: Problem, method: Method) -> AdaptiveStep:
    """Steps of a method that estimates its errors."""

    def make() -> Any:
        return controlled_step_from_estimate(method, floats.number, torque_kernel(problem, floats.number, method))

    return AdaptiveStep(method.name, structure(problem, method), make, lambda tolerance: int(method.order), PAIR_STEPS)


def runge_kutta(problem: Problem) -> AdaptiveStep:
    """Steps of Verner's pair 8(7) on plain numbers: cheap steps, for moderate accuracy."""

    def ns(order: int) -> float:
        return NS_PAIR + STAGES * (NS_STAGE + NS_FLOP * torque_flops(problem.field))

    return dataclasses.replace(estimated(problem, verner87), ns=ns)


def torque_flops(field: Field | None) -> int:
    """Operations in the formula of the torque; a quotient counts as eight, an elementary function as a hundred."""
    if field is None:
        return 0
    weights = {"div": 8, "call": 100, "symbol": 0, "const": 0, "named": 0} | dict.fromkeys(FUNCTIONS, 100)
    return sum(weights.get(node.op, 1) for node in ordered(field.graph[0]))


def is_smooth(field: Field | None) -> bool:
    """Is the torque one formula, without branches that depend on the time or the state."""
    if field is None:
        return True
    moving: set[Any] = set()
    for node in ordered(field.graph[0]):
        if (node.op == "symbol" and node.args[0][0] in "tRwm") or any(a in moving for a in node.args):
            moving.add(node)
    return all(node.op not in ("abs", "call", *COMPARISONS) for node in moving)


# --- what is kept of a formula ----------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Formula:
    """What runs to a tolerance need to know of a field's formula, for all values of its parameters."""

    smooth: bool
    kinds: tuple[AdaptiveStep, ...]
    """Taylor steps and the pair 8(7), or the pair for branches alone."""
    chosen: dict[float, tuple[AdaptiveStep, ...]] = dataclasses.field(default_factory=dict)

    def ranked(self, tol: float, angle: float) -> tuple[AdaptiveStep, ...]:
        """The kinds of steps for an error `tol` after a motion through `angle`, the one with the least work first."""
        if len(self.kinds) == 1:
            return self.kinds
        tightest = tol / (1 + LATER * angle)
        digits = round(-math.log10(tightest), 1)
        if digits not in self.chosen:
            series, runge = self.kinds
            ratio = math.exp(float(np.interp(digits, *np.transpose([(d, math.log(r)) for d, r in STEPS_RATIO]))))
            order = series.order_for(10.0**-digits)
            lighter = tightest >= PAIR_FINEST and ratio * runge.ns(8) <= series.ns(order)
            self.chosen[digits] = (runge, series) if lighter else (series, runge)
        return self.chosen[digits]


def formula(problem: Problem) -> Formula:
    """What is known of the formula of a problem's field, made once for all of its states and parameters."""
    body = problem.body.has_principal_rotation
    field: Any = problem.field
    key = ("formula", body, None if field is None else field.structure)
    found: Formula = MADE(key, lambda: _formula(problem))
    return found


def _formula(problem: Problem) -> Formula:
    if not is_smooth(problem.field):
        return Formula(False, (pair(problem),))
    return Formula(True, (taylor(problem), runge_kutta(problem)))
