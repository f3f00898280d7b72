"""Runs under sampled-data control: steps end at the samples, at which a controller changes what is held in between.

The commands and the memory of a controller are numbers z after attitude and momentum in a state (`kernels/sampled`).
A controller that is a formula is compiled with the steps; any other one is called between compiled spans of steps.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator
from typing import Any

from ..errors import InputError
from ..methods import Method, methods
from ..physics.control.controller import (
    CLOCK,
    PERIOD,
    ControlField,
    Controller,
    bound_controller,
    control_in,
)
from ..physics.fields import Field
from ..physics.fields.sums import SumField, SumTemplate, total
from ..physics.problem import Problem
from ..physics.validate import MOST_STEPS, apart, positive
from ..results.samples import Sampling
from ..results.store import checkpoint
from .parts import is_formula
from .step_count import is_whole, step_to

# --- what the user asks for -------------------------------------------------------------------------


def read(control: Any, period: Any) -> tuple[Controller, float]:
    """Return the checked controller and its period."""
    if control is None:
        raise InputError("period is the time between samples of a controller; also give control", "period")
    found = bound_controller(control)
    if period is None and found.period is None:
        raise InputError("give period, the time between two samples of the controller", "period")
    if period is not None and found.period is not None and period != found.period:
        raise InputError(
            f"the controller has the period {found.period!r}, and period = {period!r} is given too; give one", "period"
        )
    return found, positive(PERIOD, found.period if period is None else period)


def refuse(**given: Any) -> None:
    """Refuse arguments that are not available with a controller."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{name} is not available with control; leave out `{name}`", name)


def controlled(field: Field | None, control: Controller, period: float, t0: float) -> Field:
    """Return a field together with the torques of a controller that is first sampled at t0."""
    if field is not None and field.states:
        raise InputError(
            f"{field.name} has states of its own ({', '.join(field.states)}), which do not go with control; a "
            "controller may have a memory, and wheels as actuators"
        )
    made = control.field(period, t0)
    return made if field is None else field + made


def with_controller(problem: Problem, control: Controller, period: float) -> Problem:
    """Return a problem whose field has the torques of a controller."""
    made = copy.copy(problem)
    made.field = controlled(problem.field, control, period, problem.t0)
    return made


def separated(problem: Problem) -> tuple[Problem, dict[str, Any]]:
    """Return a problem without its controller, and this as arguments of `ph.solve`: none if there is no controller."""
    own = control_in(problem.field)
    if own is None:
        return problem, {}
    made, field = copy.copy(problem), problem.field
    others = field.template.parts[:-1] if isinstance(field, SumField) else ()
    made.field = total(others) if len(others) > 1 else others[0] if others else None
    return made, {"control": Controller(own.template, own.values), "period": own.values[PERIOD]}


def is_controlled(problem: Problem) -> bool:
    """Return whether the field of a problem contains a controller."""
    return control_in(problem.field) is not None


def check_body(has_axis: bool) -> None:
    """Refuse linear bodies."""
    if has_axis:
        raise InputError(
            "control is not available for linear bodies, on which no torque may act along the axis; give the body a "
            "small "
            "moment about it"
        )


def refuse_controlled(field: Any) -> None:
    """Refuse a field that contains a controller, where none is asked for."""
    if isinstance(field, Field) and control_in(field) is not None:
        raise InputError(
            f"the field {field!r} contains a controller; give the problem without it, and the argument control", "field"
        )


def check_method(method: str | Method) -> Method:
    """Return the method if its steps need nothing but attitude and momentum; else refuse it."""
    chosen = methods[method]
    if not chosen.has_step or chosen.has_own_time or chosen.compensated or chosen.memory or chosen.noise is not None:
        raise InputError(
            f"{chosen.name} carries more than attitude and momentum from step to step, or has no fixed steps; with "
            "control use a one-step method"
        )
    return chosen


def check_period(period: float, dt: float) -> int:
    """Return the number of steps in a period, which must be whole."""
    if dt < 0:
        raise InputError("a controller acts forward in time; give dt > 0, and t_end after t0", "dt")
    ratio = period / dt
    if ratio > MOST_STEPS:
        raise InputError(
            f"period = {period:g} is {ratio:.3g} steps of dt = {dt:g}, and at most {MOST_STEPS:.3g} can be counted; "
            "give a shorter period", "period",
        )  # fmt: skip
    if not is_whole(ratio):
        fewer = max(1, int(ratio))
        whole, *_ = apart(ratio, fewer, fewer + 1)
        longer, step, *_ = apart(period, dt, period / (fewer + 1), period / fewer)
        raise InputError(
            f"period = {longer} is not a whole number of steps dt = {step} ({whole}); the nearest dt are "
            f"{step_to(period, fewer + 1)} and {step_to(period, fewer)}", "dt",
        )  # fmt: skip
    return round(ratio)


def run_spec(problem: Problem, control: Controller, period: float, resumed: Any) -> dict[str, Any]:
    """Return what of a controller determines the bits of a run, for its file.

    The run in the file `resumed`, if there is one, must have a controller that is a formula.
    """
    field = control.field(period, problem.t0)
    formula = is_formula(field)
    checkpoint.check_same_control(formula, resumed)
    values = {f"control.{name}": _listed(value) for name, value in field.values.items() if name != CLOCK}
    return {
        "control": field.name,
        "control_formula": checkpoint.digest(repr(texts(field))) if formula else checkpoint.CODE_NOT_STORED,
        **values,
    }


def texts(field: ControlField) -> Any:
    """Return the formulas of a controller."""
    return field.sampled_text, field.text, field.later_text, field.breaks_text


def _listed(value: Any) -> Any:
    """Return nested tuples as lists, as they are read from a file."""
    return [_listed(x) for x in value] if isinstance(value, tuple) else value


# --- parts of a run ---------------------------------------------------------------------------------


def sampling_of(problem: Problem, period: float) -> Sampling:
    """Return how the controller in the field of a problem is sampled."""
    control = control_in(problem.field)
    assert control is not None
    return Sampling(problem.t0, period, is_formula(control), tuple(control.states))


@contextlib.contextmanager
def sampled(problem: Problem, period: float) -> Iterator[None]:
    """Give the states before an exception, its `partial`, the samples of the controller."""
    try:
        yield
    except BaseException as stop:
        before = getattr(stop, "partial", None)
        if before is not None:
            before.control = lambda: sampling_of(problem, period).samples(before.t, before.states)
            before._problem = None  # the problem without the controller is another one
        raise


def full_names(field: Field, names: Collection[str]) -> list[str]:
    """Return the names that parameters of a controller have in the field that contains it, as its last part."""
    own = control_in(field)
    assert own is not None
    parts = field.template
    listed = parts.names if isinstance(parts, SumTemplate) else [(0, name, name) for name in field.values]
    return [full for _, name, full in listed[-len(own.values) :] if name in names]
