"""Verification of the declared properties of a method in 50 digits, in both directions.

A declared property must hold to round-off or at the measured order; a property that is not declared must visibly
fail. "Exact" and "not exact" lie thirty decades apart, so no threshold here needs tuning. Every check measures on
all starts of `generic_problems.py`, unless fewer are passed.

A method with a chain is measured with a thermostat; its orders refer to the motion of body and chain (`extended`). A
method with noise is measured in a heat bath, with its random numbers; its orders without friction and noise. What it
declares about the noise is measured by `tests/proofs/checks.py`, in the source tree.
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import mpmath

from ..errors import InputError
from ..methods import NEEDS, Method, methods
from ..methods.queries import DiscreteGradient, FieldQuery, Torque, TorqueAndCorrector
from ..methods.record import CONSERVABLE, ENDS, TOP
from ..numbers.multiprecision import number
from ..run.integrator import torque_kernel
from . import extended
from .backward_error import Mechanics, corrections
from .construction import (
    alone_error,
    difference_use,
    estimates,
    field_use,
    halves_error,
    memory_length,
    part_error,
    sequence_error,
    true_errors,
)
from .defect_formula import defect_formula_error, defect_parts
from .exact_top import check_exact_top
from .generic_problems import ALL_STARTS, FIELDS, FLAT, LINEAR, STARTS, Which, generic, hills, stir
from .measurements import (
    asymmetry,
    axial_momentum,
    changes,
    frame_dependence,
    implicit_stages,
    increment_error,
    invariants,
    measurable,
    measured_order,
    node_changes,
    poisson_defect,
    symplectic_defect,
    torque_points,
)
from .setting import (
    DIGITS,
    EXACT,
    FINE_STEPS,
    LARGE_STEP,
    LARGER_STEP,
    LOCAL_STEPS,
    SLOPE_TOLERANCE,
    VISIBLE,
    Setting,
    agrees,
    distance,
    fifty,
    largest,
)

__all__ = [
    "ALL_STARTS", "CHECKS", "DIGITS", "EXACT", "FIELDS", "LARGE_STEP", "STARTS", "VISIBLE", "Setting", "asymmetry",
    "changes", "check", "distance", "generic", "hills", "measured_order", "number", "poisson_defect", "stir",
    "symplectic_defect", "torque_kernel",
]  # fmt: skip

Starts = Sequence[int]


def _exactness(what: str, declared: bool | None, defect: Any) -> list[str]:
    """Compare a declared yes or no with a measured defect. NaN agrees with neither; None must not be measurable."""
    size = mpmath.nstr(defect, 3)
    if declared is None:
        return [f"declares nothing about being {what}, and the defect can be measured: {size}"]
    if declared and not defect <= EXACT:
        return [f"declared {what}, but the defect is {size}"]
    if not declared and not defect >= VISIBLE:
        return [f"declared not {what}, but the defect is only {size}"]
    return []


def _property(what: str, declared: bool | None, defects: Iterable[Any]) -> list[str]:
    """The same over several starts: a property must hold on all of them; one counterexample shows its absence."""
    found = []
    for defect in defects:
        found.append(defect)
        if declared is False and defect >= VISIBLE:
            break
    return _exactness(what, declared, largest(found))


def reported(check: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Report an exception in a check as a fault: a false declaration may pass a step arguments it cannot use."""

    @functools.wraps(check)
    def run(method: Method, *starts: Starts) -> list[str]:
        try:
            return check(method, *starts)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return [f"{check.__name__} cannot be done: {type(error).__name__}: {error}"]

    return run


def _order_on(method: Method, kind: str, which: Which, declared: float) -> float:
    """The measured order; if it is not the declared one, the order of finer steps."""
    measured = measured_order(method, kind, which)
    return measured if agrees(measured, declared) else measured_order(method, kind, which, FINE_STEPS)


@reported
def check_complete(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The declaration is complete, with values of the right types; an incomplete one cannot be verified."""
    faults = []
    for name, expected in typing.get_type_hints(Method).items():
        value = getattr(method, name)
        allowed = (int, float) if expected is float else (expected,)
        if expected in (bool, int, float, str) and type(value) not in allowed:
            faults.append(f"declares {name}={value!r}, expected is a value of type {expected.__name__}")
    for name, words, said in (
        ("conserves", CONSERVABLE, method.conserves),
        ("torque_at", ENDS, method.torque_at),
        ("needs", (*NEEDS, TOP), {method.needs}),
    ):
        if not isinstance(said, Set) or not said <= set(words):
            faults.append(f"declares {name}={getattr(method, name)!r}; the words are {words}")
    if not isinstance(method.asks, FieldQuery):
        faults.append(f"declares asks={method.asks!r}, expected is a query of methods/queries.py")
    return faults


@reported
def check_order(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """Order with and without torque, from both sides."""
    faults = []
    if method.needs == "free" and method.order != method.order_free:
        faults.append(
            f"declared order {method.order}, but {method.order_free} for the free body, which is all it takes"
        )
    kinds = {"free": method.order_free} | ({method.needs: method.order} if method.needs != "free" else {})
    for kind, declared in kinds.items():
        if declared is None:
            faults.append(f"declares no order ({kind})")
            continue
        for which in starts:
            measured = _order_on(method, kind, which, declared)
            if not agrees(measured, declared):
                faults.append(f"declared order {declared} ({kind}), measured {measured:.2f} on start {which}")
    return faults


@reported
def check_symmetric(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """Symmetry with the most general field the method takes."""
    return _property("symmetric", method.symmetric, (asymmetry(method, method.needs, i) for i in starts))


def _differentiated(defect: Callable[[float], Any], declared: bool | None) -> Any:
    """A defect by central differences, whose own error is NUDGE^2 = 1e-28: nothing below 1e-25 counts.

    A method of high order that does not declare the property may need a larger step to show the defect.
    """
    found = defect(LARGE_STEP)
    if declared is False and found < VISIBLE:
        found = defect(LARGER_STEP)
    return 0 * found if found <= mpmath.mpf(10) ** -25 else found


@reported
def check_symplectic(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The two-form of T*SO(3), free and with a potential."""
    declared, kinds = method.symplectic, ["free", *(["potential"] if method.takes("potential") else [])]
    defects = (
        _differentiated(functools.partial(symplectic_defect, method, kind, which), declared)
        for kind in kinds
        for which in starts
    )
    return _property("symplectic", declared, defects)


@reported
def check_poisson(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The bracket of so(3)* for the free body."""
    declared = method.poisson
    defects = (_differentiated(functools.partial(poisson_defect, method, which), declared) for which in starts)
    return _property("poisson", declared, defects)


@reported
def check_conserves(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """Every declared quantity is conserved; every other one visibly changes."""
    parts = measurable(method)
    possible = {name for part in parts for name in part.names}
    faults = [f"{name} cannot be conserved by this kind of method" for name in method.conserves - possible]
    for part in parts:
        found: list[dict[str, Any]] = []
        for which in starts:
            found.append(node_changes(method, which, part))
            if not any(name in method.conserves or all(f[name] < VISIBLE for f in found) for name in part.names):
                break  # none of them is declared, and each was measured to change
        for name in part.names:
            faults += _property(f"to conserve {name}", name in method.conserves, (f[name] for f in found))
    return faults


@reported
def check_cost(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """Implicit or not, number of solves, number of torque points."""
    faults = []
    for which in starts:
        stages = implicit_stages(method, which)
        if method.implicit is not (stages > 0) or method.solves != stages:
            faults.append(
                f"declared implicit={method.implicit}, solves={method.solves}; measured {stages} on start {which}"
            )
        if method.needs == "free":
            continue
        points, ends = torque_points(method, method.needs, which)
        if points != method.torque_evals:
            faults.append(f"declared {method.torque_evals} torque evaluations, measured {points} on start {which}")
        if ends != method.torque_at:
            faults.append(f"declared to take the torque at {set(method.torque_at)} of the step, measured {ends}")
    return faults


class _Asked(Exception):
    """A torque was evaluated."""


def _refusing(*given: Any) -> Any:
    raise _Asked


@reported
def check_needs(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The most general field: a free flow evaluates no torque, and no method also works with the next kind of field.

    A method works with a more general field if the order (and the symmetry) hold with it too.
    """
    if method.needs == "free":
        return _asks_for_no_torque(method, starts)
    if method.needs == NEEDS[-1] or method.order is None:
        return []
    if method.asks.find(TorqueAndCorrector):  # a corrector exists only for a potential
        return []
    above = NEEDS[NEEDS.index(method.needs) + 1]
    kept = all(agrees(_order_on(method, above, i, method.order), method.order) for i in starts)
    kept = kept and not (method.symmetric and any(not asymmetry(method, above, i) <= EXACT for i in starts))
    return [f"declared needs={method.needs!r}, but it takes fields of kind {above!r} as well"] if kept else []


@fifty
def _asks_for_no_torque(method: Method, starts: Starts) -> list[str]:
    faults = []
    if method.torque_evals or method.torque_at:
        faults.append(f"declared free, but with {method.torque_evals} torque evaluations at {set(method.torque_at)}")
    try:
        for which in starts:
            Setting(method, "free", which).step(LARGE_STEP, torque=_refusing)
    except _Asked:
        faults.append("declared free, but it asks for a torque, which would act twice in a splitting")
    return faults


@reported
def check_in_splitting(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """A free flow works in compositions: its Strang splitting has the derived order and symmetry."""
    if method.needs != "free" or method.has_own_time:
        return []
    made = methods.combinators["strang"](method)
    return [f"in {made.name}: {fault}" for one in (check_order, check_symmetric) for fault in one(made, starts)]


@reported
def check_bodies(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """Linear and flat bodies: the order holds about every axis, or visibly fails about one.

    A linear body must keep zero momentum along its axis.
    """
    faults = []
    for word, declared, bodies in (
        ("linear", method.linear_bodies, LINEAR),
        ("flat", method.flat_bodies, FLAT),
    ):
        failed = [name for name in bodies if not _takes_body(method, name)]
        if declared and failed:
            faults.append(f"declared to take {word} bodies, but it fails on: {'; '.join(failed)}")
        if not declared and not failed:
            faults.append(f"declared not to take {word} bodies, but it is right on them")
    return faults


def _takes_body(method: Method, body: str) -> bool:
    """True if a free step on a degenerate body succeeds with at least the declared order."""
    try:
        if body in LINEAR and not axial_momentum(method, body) <= EXACT:
            return False
        return any(
            measured_order(method, "free", body, steps) >= (method.order_free or 1) - SLOPE_TOLERANCE
            for steps in (LOCAL_STEPS, FINE_STEPS)
        )
    except (ArithmeticError, ValueError):
        return False


@reported
def check_frame(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The method does not depend on the choice of the space frame."""
    return _property("independent of the space frame", True, (frame_dependence(method, i) for i in starts))


@reported
def check_increments(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """A method written by increments has only the round-off of its increments; others take no low parts."""
    return _property("written by increments", method.increments, (increment_error(method, i) for i in starts))


@fifty
def modified_slope(method: Method, kind: str, which: int = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order in h of the change of the modified energy over one step; infinite if it does not change.

    It includes the first correction, or the first two (powers p, p + 1 of h) of a method that is not symmetric.
    """
    problem = generic(kind, which)
    more = corrections(method, problem, 1 if method.symmetric else 2)
    mechanics = Mechanics(problem, method, number)
    changed = []
    for h in map(number, steps):
        setting = Setting(method, kind, which)
        first, last = (
            invariants(problem, y, setting.system)[0] + more(mechanics, y, h) for y in (setting.y, setting.step(h))
        )
        changed.append(abs(last - first))
    return math.inf if changed[0] < EXACT else float(mpmath.log(changed[0] / changed[1], 2))


@reported
def check_flows(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The declared flows of a step: their modified energy is conserved to two orders more than the energy."""
    if not method.flows or method.order is None or method.order_free is None:
        return []
    faults = []
    for kind in ("free", *(["potential"] if method.takes("potential") else [])):
        order = method.order_free if kind == "free" else method.order
        for which in starts:
            measured = modified_slope(method, kind, which)
            if measured < order + 3 - SLOPE_TOLERANCE:
                measured = modified_slope(method, kind, which, FINE_STEPS)
            if not measured >= order + 3 - SLOPE_TOLERANCE and order < math.inf:
                faults.append(f"flows declared, but their modified energy changes as h^{measured:.2f} ({kind}) a step")
    return faults


@reported
def check_symplectic_defect(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The formula for the growth of the two-form, if declared; central differences have an error of NUDGE^2 = 1e-28."""
    if not defect_parts(method):
        return []
    faults = []
    for which in starts:
        error, size = defect_formula_error(method, which)
        if not error <= 1e-25:
            faults.append(f"the formula for the symplectic defect is off by {mpmath.nstr(error, 3)} on start {which}")
        if not size >= VISIBLE:
            faults.append(f"a formula for the symplectic defect, but the defect is only {mpmath.nstr(size, 3)}")
    return faults


@reported
def check_asks(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The step makes the declared queries to the field and uses all parts of the answers."""
    asks = method.asks
    if method.needs == "free":
        return [] if asks == Torque() else [f"declared free, but to ask of a field: {asks}"]
    uses = [field_use(method, method.needs, which) for which in starts]
    called = {part.query for use in uses for part in use}
    faults = [f"declared to ask for the {query}, and the step does not" for query in asks.parts if query not in called]
    for part in uses[0]:
        if part.place and not isinstance(part.query, DiscreteGradient) and not any(use[part] for use in uses):
            faults.append(f"the field gives part {part.place} of the {part.query}, and the step does not use it")
    between = asks.find(DiscreteGradient)
    potential = uses if method.needs == "potential" else [field_use(method, "potential", which) for which in starts]
    found = {difference_use(use) for use in potential}
    if between and found != {between.use}:
        faults.append(f"declared to use the {between}, measured {found}")
    return faults


@reported
def check_parts(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The declared parts and the memory of a step reproduce the step."""
    faults = []
    if bool(method.after) != bool(method.unprocessed):
        faults.append("a processed method declares `after` and `alone` together, or neither of them")
    if bool(method.sequence) != bool(method.drift):
        faults.append("a kick-drift scheme declares `sequence` and `drift` together, or neither of them")
    if method.compensated and not method.increments:
        faults.append("declared compensated, but not to be written by increments")
    for word, declared, error in (
        ("halves", method.halves, halves_error),
        ("alone", method.unprocessed, alone_error),
        ("part", method.base, part_error),
        ("sequence", method.sequence and method.drift, sequence_error),
    ):
        if declared:
            faults += _property(f"the steps of its `{word}`", True, (error(method, which) for which in starts))
    kept = {memory_length(method, which) for which in starts}
    if kept != {method.memory}:
        faults.append(f"declared to keep {method.memory} numbers from step to step, measured {kept}")
    return faults


@reported
def check_estimated(method: Method, starts: Starts = ALL_STARTS) -> list[str]:
    """The step with error estimates equals the step, and the estimates scale as an embedded method of that order."""
    if method.estimated is None or method.order is None:
        return []
    faults, expected = [], method.estimate_order + 1
    for which in starts:
        (difference, *long), (_, *short) = (estimates(method, h, which) for h in LOCAL_STEPS)
        faults += _exactness("with estimates to make the same step", True, difference)
        errors = true_errors(method, LOCAL_STEPS[1], which)
        for word, before, now, error in zip(("attitude", "momentum"), long, short, errors, strict=True):
            measured = float(mpmath.log(before / now, 2))
            if not agrees(measured, expected):
                faults.append(f"the estimate of the {word} goes as h^{measured:.2f}, not as h^{expected}")
            if not now >= error:
                faults.append(f"the estimate of the {word}, {mpmath.nstr(now, 3)}, is below {mpmath.nstr(error, 3)}")
    return faults


check_extended = reported(extended.check_extended)

CHECKS: tuple[Callable[..., list[str]], ...] = (
    check_complete, check_order, check_symmetric, check_symplectic, check_poisson, check_conserves, check_cost,
    check_needs, check_in_splitting, check_bodies, check_frame, check_increments, check_flows,
    check_symplectic_defect, check_asks, check_parts, check_estimated, check_extended,
)  # fmt: skip
"""Checks of a method without noise."""


def check(method: Method) -> list[str]:
    """List all false declarations of a method without noise; empty if all are correct."""
    if method.noise is not None:
        raise InputError(
            f"check takes methods without noise; {method.name} has noise, which `proofs.checks.check` measures: it is "
            "with the tests, in the source tree of polhode"
        )
    if not method.has_step:
        return check_complete(method) + check_exact_top(method)
    return [fault for one in CHECKS for fault in one(method)]
