"""Kinds of adaptive steps, and the choice of the one that needs the least work for a formula and a tolerance.

Taylor steps exist for every smooth formula, Verner's Runge-Kutta pair 8(7) for every torque, and a Munthe-Kaas pair for
torques with branches. All that a run needs to know about a formula is computed once and cached (`formula`), so a new
state needs no planning.

The work depends on the formula, the tolerance and the state. For high accuracy the series at the start of a run show
how long the steps of both kinds will be: Taylor steps by their last terms, those of the pair by the terms of its order.
The series of a nearly uniform rotation converge fast, and Taylor steps are then long. The cost of a step follows from
its operations (`benchmarks/cost_model.py` measures the constants).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._memo import MADE
from ..compile.clock import counted
from ..errors import InputError
from ..kernels.loops import LATER
from ..methods import Method
from ..methods.adaptive.dormand_prince import dormand_prince
from ..methods.adaptive.enright_verner76 import enright_verner76
from ..methods.adaptive.verner87 import PAIR, verner87
from ..methods.families import taylor as lie_taylor
from ..numbers import floats
from ..numbers.precision import GUARD_DIGITS
from ..numbers.primitives import FUNCTIONS
from ..physics.fields import Field
from ..physics.fields.states import places
from ..physics.fields.trace import once_for_formula
from ..physics.mixed_precision import controlled_step_in_mixed_precision
from ..physics.problem import Problem
from ..physics.taylor_steps import MOST, Expanded, body, favouring_series, motion_series, packed_taylor_step
from ..symbolic.expression import COMPARISONS, Expr, ordered, symbol
from .moderate import Moderate
from .parts import Kernel, Make
from .schedule import Schedule
from .system import System, compiled

if TYPE_CHECKING:
    from .control_in_python import InPython

EPS = 2.0**-52
SMALLEST, LARGEST = 1e-15, 0.1
"""Smallest and largest tolerance allowed."""

NS_SUM = 1.4
"""Nanoseconds of a Taylor step for each sum of products in an order: vectors make the length of the sum irrelevant."""

NS_PAIR, NS_STAGE, NS_FLOP = 22.0, 9.0, 0.17
"""Nanoseconds for a step of the pair 8(7), for one of its stages, and for one operation of the torque."""

PAIR_REACH, MORE_DIGITS = 1.47, 26.0
"""The pair 8(7) makes steps PAIR_REACH 10^(digits/MORE_DIGITS) times as long as terms of order 8 reach.

That is, if it is to have the error of Taylor steps, at the end of runs of tops, near walls and in quadratic potentials,
with errors of 1e-4 to 1e-10; digits are -log10 of the tightest step tolerance. Nine of ten predictions are right within
a factor of 1.4.
"""

LOW_DIGITS = 3.7
"""Digits below which the pair 7(6) is used: near a wall and for a heavy top it takes 0.8 to 0.9 of the time of 8(7)."""

FEW_DIGITS = 7.5
"""Digits below which a pair is used: it needs less work for most motions, and predicting costs ten steps."""

PAIR_ORDER = int(verner87.order)

PAIR_FINEST = 2.4e-13
"""Tightest tolerance of a step of the pair 8(7): its weights of up to 120 amplify the round-off of each step.

By measurement on tops and near walls, errors at the end stop falling at tolerances between 5e-14 and 2e-13.
"""

PAIR_ROUNDINGS = 25.0
"""Error of the angle turned in a step of a pair of order 7 or 8, in rounding errors: that of its large weights.

It is the same in every step, so that two runs do not show it. By measurement on tops, near walls and in a libration it
is 5 to 50.
"""

MANY_SERIES = 100
"""Series from which on the pair 8(7) is used wherever it is accurate enough.

The cost of a Taylor step was measured with few series. Along an orbit (270 to 520 series) the pair takes 0.4 to 0.75 of
the time with the same step tolerance, from 1e-4 to 1e-12, and its first call less than a third.
"""

PAIR_STEPS, SERIES_STEPS = 5_000_000, 20_000_000
"""Attempted steps after which a run is abandoned: at a jump that traps the motion, steps become ever shorter."""


def entry_point(run: Any, *arguments: Any) -> Any:
    """Return the machine code of a compiled function for arguments like these, to be called without a look at them."""
    from ..compile.lazily import entry_point

    return entry_point(run, *arguments)


FEW_ROWS, ROWS = 256, 4096
"""States in the first and in the largest buffer of the compiled loop."""


@dataclasses.dataclass(frozen=True)
class AdaptiveStep:
    """A kind of adaptive step: its name, what is integrated, and its order for a tolerance."""

    name: str
    system: System
    order_for: Callable[[float], int]
    own: Make | None = None
    """Builds its kernel, if that does not follow from the error estimates of the method."""
    most: float = math.inf
    """Attempted steps after which a run is abandoned."""
    ns: Callable[[int], float] = lambda order: math.inf
    """Nanoseconds for one attempted step of an order, by the model of `benchmarks/cost_model.py`."""
    has_proposal: bool = True
    """Whether the first step needs a guess; Taylor steps take their length from the series."""
    few_rows: int = FEW_ROWS
    most_rows: int = ROWS
    """States in the first and in the largest buffer of the loop."""
    smooth: bool = False
    """Whether the field has no branches, so that errors fall with the order of the method in all steps alike."""
    roundings: float = 1.0
    """Error of the angle turned in a step, in rounding errors."""
    sample: InPython | None = None
    """The samples of a controller between the steps."""

    @property
    def digits(self) -> int | None:
        """Digits of the numbers; None for doubles."""
        return self.system.digits

    @property
    def structure(self) -> tuple[Hashable, ...]:
        """What the kernel is built from."""
        return self.system.key

    def make(self) -> Kernel:
        """Return the kernel."""
        return self.system.attempt(self.own)

    @property
    def eps(self) -> float:
        """The relative distance of two neighbouring numbers."""
        digits = self.system.digits
        return EPS if digits is None else working_eps(digits)

    def label(self, order: int) -> str:
        """Return the name of the method, with its order if that varies."""
        return self.name if self.order_for(0.1) == self.order_for(EPS) else f"{self.name}({order})"

    @functools.cached_property
    def adaptive_loop(self) -> Any:
        """The compiled loop over steps."""
        return self.system.adaptive_loop(self.name, self.make, self.sample)

    @functools.cached_property
    def interpolate(self) -> Any:
        """The compiled dense output."""
        return self.system.interpolate(self.name, self.make)

    @functools.cached_property
    def repeat(self) -> Any:
        """The compiled loop that repeats a run with shorter steps."""
        return self.system.repeat(self.name, self.make)


def working_eps(digits: int) -> float:
    """Return the relative distance of two neighbouring numbers of a run with `digits`."""
    return 10.0 ** -min(digits + GUARD_DIGITS, MOST_DIGITS)


MOST_DIGITS = 290
"""Digits whose relative distance, and a small part of it, is a double."""


TAYLOR = lie_taylor.taylor(6)
"""Stands for Taylor steps of all orders: the order is an argument of their kernel."""


# --- kinds of steps ---------------------------------------------------------------------------------


def taylor(problem: Problem) -> AdaptiveStep:
    """Return Taylor steps: the order follows from the tolerance, the length from the series."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation

    def ns(order: int) -> float:
        terms = motion_series(field, has_principal_rotation).terms
        return NS_SUM * terms * order

    name = lie_taylor.taylor.__name__
    make = functools.partial(packed_taylor_step, body(field, has_principal_rotation))
    system = System(problem, TAYLOR)
    return AdaptiveStep(name, system, packed_order, make, SERIES_STEPS, ns, has_proposal=False, smooth=True)


def packed_order(tolerance: float) -> int:
    """Return the order with the least work with vector instructions: that of `taylor_order`, plus 4 by measurement.

    Their cost grows more slowly with the order. Above order 21 the steps through an entire function, such as a fast
    rotation, are so long that its terms are larger than their sum by several digits.
    """
    return min(21, taylor_order(tolerance) + 4)


def taylor_order(tolerance: float, most: int = MOST) -> int:
    """Return the order with the least work: -ln(tolerance)/2 (Jorba and Zou 2005), plus 4 by measurement."""
    return min(most, max(4, math.ceil(-0.5 * math.log(tolerance)) + 4))


def mixed_taylor(problem: Problem) -> AdaptiveStep:
    """Return Taylor steps with high-order coefficients in single precision, for SIMD lanes."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation
    in_doubles = taylor(problem)
    return dataclasses.replace(
        in_doubles,
        name=f"{in_doubles.name}, mixed",
        own=lambda: controlled_step_in_mixed_precision(body(field, has_principal_rotation), floats.number),
    )


SINGLE_PRECISION_SHARE = 1e-5
"""Terms below tolerance/SINGLE_PRECISION_SHARE may be in single precision: it rounds to a hundredth of the tolerance.

This assumes a geometric decay of the terms. They decay later, but by measurement this value gives the fastest steps.
"""


def mixed_orders(tolerance: float, order: int) -> tuple[int, int, float]:
    """Return orders for `controlled_step_in_mixed_precision` if terms decay geometrically from 1 to the tolerance.

    They are the last order, the order above which coefficients may be in single precision, and the radius of
    convergence in steps.
    """
    first = min(order - 1, max(2, math.ceil(order * (1 - math.log(SINGLE_PRECISION_SHARE) / math.log(tolerance)))))
    return order, first, tolerance ** (-1 / order)


def pair(problem: Problem) -> AdaptiveStep:
    """Return steps of an embedded Munthe-Kaas pair, for fields with branches."""
    return estimated(problem, dormand_prince)


def estimated(problem: Problem, method: Method) -> AdaptiveStep:
    """Return steps of a method that estimates its errors."""
    order = int(method.order)
    roundings = PAIR_ROUNDINGS if order > 6 else 1.0
    return AdaptiveStep(
        method.name, System(problem, method), lambda tolerance: order, most=PAIR_STEPS, roundings=roundings
    )


def runge_kutta(problem: Problem) -> AdaptiveStep:
    """Return steps of Verner's pair 8(7) on plain numbers: cheap, for moderate accuracy."""

    def ns(order: int) -> float:
        return NS_PAIR + PAIR.stages * (NS_STAGE + NS_FLOP * torque_flops(problem.field))

    return dataclasses.replace(estimated(problem, verner87), ns=ns, smooth=True)


def low_pair(problem: Problem) -> AdaptiveStep:
    """Return steps of the pair 7(6) of Enright and Verner, for low accuracy."""
    return dataclasses.replace(estimated(problem, enright_verner76), smooth=True)


def torque_flops(field: Field | None) -> int:
    """Count the operations of the torque formula; a quotient counts as 8, an elementary function as 100."""
    if field is None:
        return 0
    weights = {"div": 8, "call": 100, "symbol": 0, "const": 0, "named": 0} | dict.fromkeys(FUNCTIONS, 100)
    return sum(weights.get(node.op, 1) for node in ordered(field.graph[0]))


@once_for_formula
def is_smooth(field: Field | None) -> bool:
    """Return whether the torque is a single formula without branches that depend on time or state."""
    if field is None:
        return True
    moving: set[Any] = {symbol(f"p{i}") for i in places(field)}
    for node in ordered(itertools.chain(*field.coupled)):
        if (node.op == "symbol" and node.args[0][0] in "tRwm") or any(a in moving for a in node.args):
            moving.add(node)
    return all(node.op not in ("abs", "call", *COMPARISONS) and _is_smooth_sum(node) for node in moving)


def _is_smooth_sum(node: Expr) -> bool:
    return node.op != "total" or node.args[0].args[0].is_smooth


@once_for_formula
def has_series(field: Field | None) -> bool:
    """Return whether the torque has a Taylor series: not with a sum over rows of data, or with states of its own."""
    return field is None or not (field.states or any(node.op == "total" for node in ordered(field.graph[0])))


# --- cached properties of a formula -----------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Formula:
    """Properties of a field's formula for runs to a tolerance, valid for all parameter values."""

    smooth: bool
    kinds: tuple[AdaptiveStep, ...]
    """Taylor steps, the pair 8(7) and the pair 7(6), or only the pair that the formula allows."""
    series: int = 0
    """Number of Taylor series that the motion needs; 0 if there are none."""
    expanded: tuple[Expanded, tuple[Hashable, ...]] | None = None
    """What Taylor steps integrate, and the key of their kernel."""
    choices: dict[tuple[float, float, int], Choice] = dataclasses.field(default_factory=dict)
    moderate: Moderate = dataclasses.field(default_factory=Moderate)
    quick: dict[tuple[float, bool], Any] = dataclasses.field(default_factory=dict)
    """What `quick_solve` prepared for runs to a tolerance, at the end or of each step."""

    @functools.cached_property
    def favours_series(self) -> Any:
        """The compiled function `taylor_steps.favouring_series` of the state at the start of a run."""
        assert self.expanded is not None
        expanded, structure = self.expanded
        return compiled(lambda: favouring_series(expanded, PAIR_ORDER), "favours series", *structure)

    @functools.cached_property
    def fixed(self) -> tuple[Choice, ...]:
        """The choices that do not depend on the state: each kind first, then another."""
        if len(self.kinds) == 1:
            return (Choice(self.kinds),)
        series, high, low = self.kinds
        return Choice((series, high)), Choice((high, series)), Choice((low, series))

    def choice(self, tol: float, angle: float, finer: float = 1.0) -> Choice:
        """Return how to choose the kind of step for a step tolerance `tol` and a rotation by `angle`.

        The run is repeated with the tolerance `finer` times `tol`; 1 means that it is not.
        """
        if not math.isfinite(angle):
            raise InputError("the end of the run is too far: the angle turned until then exceeds all doubles", "t_end")
        if len(self.kinds) == 1:
            return self.fixed[0]
        digits = round(-math.log10(tol / (1 + LATER * angle)), 1)
        order = self.kinds[0].order_for(tol)
        if (digits, finer, order) not in self.choices:
            self.choices[digits, finer, order] = self._choice(digits, finer, order)
        return self.choices[digits, finer, order]

    def _choice(self, digits: float, finer: float, order: int) -> Choice:
        series, pair, _ = self.kinds
        if finer * 10.0**-digits < PAIR_FINEST:
            return self.fixed[0]
        if digits - math.log10(finer) / 2 < LOW_DIGITS:
            return self.fixed[2]
        if self.series >= MANY_SERIES or digits < FEW_DIGITS:
            return self.fixed[1]
        lengths = PAIR_REACH * 10 ** (digits / MORE_DIGITS)
        return Choice((series, pair), (order, series.ns(order) / pair.ns(PAIR_ORDER), lengths))


class Choice(NamedTuple):
    """A choice between kinds of steps: fixed, or one that depends on the series at the start of a run."""

    kinds: tuple[AdaptiveStep, ...]
    """The kinds, least work first; Taylor steps first if the choice is not fixed."""
    measures: tuple[int, float, float] | None = None
    """What decides, or None if the choice is fixed.

    The order of the series, the cost of a Taylor step divided by that of a step of the pair, and the length of a step
    of the pair divided by the reach of terms of its order.
    """


def ranked(tol: float, finer: float, legs: Schedule) -> tuple[AdaptiveStep, ...]:
    """Return the kinds of steps for a step tolerance, least work first; for `finer` see `Formula.choice`."""
    problem = legs.problem
    turn = math.hypot(*problem.velocity) * (legs.legs[-1].end - problem.t0)
    return decided(formula(problem).choice(tol, turn, finer), tol, legs)


def decided(choice: Choice, tol: float, legs: Schedule) -> tuple[AdaptiveStep, ...]:
    """Return the kinds of a choice, least work first, for the state at the start of a run."""
    if choice.measures is None:
        return choice.kinds
    problem, first = legs.problem, legs.legs[0]
    y, system = problem.kernel_data(floats.number)
    longest = min(first.longest, first.end - problem.t0)
    favoured = formula(problem).favours_series(
        problem.t0, legs.legs[-1].end, longest, y, legs.system(system, first), tol, *choice.measures
    )
    return choice.kinds if favoured else choice.kinds[::-1]


def formula(problem: Problem) -> Formula:
    """Return the properties of the formula of a problem's field, computed once for all states and parameters."""
    body = problem.body.has_principal_rotation
    field: Any = problem.field
    key = ("formula", body, None if field is None else field.structure)
    found: Formula = MADE(key, lambda: counted(_formula)(problem))  # series are written here
    return found


def _formula(problem: Problem) -> Formula:
    if not is_smooth(problem.field):
        return Formula(False, (pair(problem),))
    if not has_series(problem.field):
        return Formula(True, (runge_kutta(problem),))
    has_principal_rotation = problem.body.has_principal_rotation
    series = motion_series(problem.field, has_principal_rotation).stride
    expanded = body(problem.field, has_principal_rotation), System(problem, TAYLOR).key
    return Formula(True, (taylor(problem), runge_kutta(problem), low_pair(problem)), series, expanded)
