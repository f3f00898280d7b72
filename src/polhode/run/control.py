"""Runs under sampled-data control: steps end at the samples, at which a controller changes what is held in between.

The commands and the memory of a controller are numbers z after attitude and momentum in a state (`kernels/sampled`).
A controller that is a formula is compiled with the steps; any other one is called between compiled spans of steps.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import StateSpace, stepping, with_states
from ..kernels.sampled import broken_step, held_step, placing
from ..kernels.so3 import matrix, times
from ..kernels.unroll import unrolled_kernel
from ..methods import Method, methods
from ..methods.combinators.compose import whole
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..physics.axes import axes
from ..physics.control.controller import (
    CLOCK,
    PERIOD,
    ControlField,
    Controller,
    bound_controller,
    control_in,
)
from ..physics.fields import Field
from ..physics.fields.kernels import formula_kernel
from ..physics.fields.parameters import leaves_of
from ..physics.fields.states import places
from ..physics.fields.sums import SumField, SumTemplate, total
from ..physics.problem import Problem
from ..physics.validate import MOST_STEPS, apart, positive
from ..results.samples import Sampling
from ..results.store import checkpoint
from ..symbolic.tracing import UntraceableError
from .integrator import step_kernel, structure, torque_kernel
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


def is_formula(control: ControlField) -> bool:
    """Return whether a controller is a formula."""
    try:
        control.sampled_text  # noqa: B018 - traced here
    except UntraceableError:
        return False
    return True


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


def place_of(control: ControlField, name: str) -> int:
    """Return the place of a number of a controller among the parameters of the field that contains it."""
    before = list(control.values)[: list(control.values).index(name)]
    return control.first + sum(len(leaves_of(control.values[other])) for other in before)


@dataclasses.dataclass(frozen=True)
class Loop:
    """The parts of the loop of a problem whose field contains a controller, for one method."""

    problem: Problem
    method: Method

    @property
    def control(self) -> ControlField:
        """The controller, with its parameters numbered as in the field."""
        found = control_in(self.problem.field)
        assert found is not None
        return found

    @property
    def space(self) -> StateSpace:
        """The state space (q, m, z)."""
        return with_states(len(places(self.field)))

    @property
    def field(self) -> Field:
        """The field, with the torques of the controller."""
        assert self.problem.field is not None
        return self.problem.field

    @property
    def structure(self) -> tuple[Hashable, ...]:
        """What the kernels between samples are built from."""
        texts = repr(
            (self.control.later_text, self.control.breaks_text, places(self.field), place_of(self.control, CLOCK))
        )
        return ("held", texts, *structure(self.problem, self.method))

    @property
    def sampled_structure(self) -> tuple[Hashable, ...]:
        """What the kernels with samples are built from, for a controller that is a formula."""
        return repr(self.control.sampled_text), self.period_place, *self.structure

    @property
    def period_place(self) -> int:
        """Place of the period among the parameters of the field."""
        return place_of(self.control, PERIOD)

    def placing(self) -> Callable[..., Any]:
        """Return the kernel that puts z and the time among the parameters."""
        count = len(self.field.parameters) + len(self.problem.axes_quaternion)
        return placing(count, places(self.field), place_of(self.control, CLOCK))

    def step(self) -> Callable[..., Any]:
        """Return the kernel of a step on (q, m, z), in parts that end at the edges of the field, if these are known."""
        return step_kernel(self.problem, self._step())

    def _step(self) -> Callable[..., Any]:
        """Return the kernel of a step, or of a part of one, in which the field has no edges."""
        control, place = self.control, self.placing()
        plain = whole(self.method)(floats.number)
        later = None if control.later_text is None else formula_kernel(control.later_text, floats.number)
        if control.breaks_text is None:
            return held_step(plain, place, later)
        text, count = control.breaks_text
        assert later is not None
        return broken_step(plain, place, later, formula_kernel(text, floats.number), count)

    def torque(self) -> Callable[..., Any]:
        """Return the kernel of the torque."""
        return torque_kernel(self.problem, floats.number, self.method)

    def sample(self) -> Callable[..., Any]:
        """Return the kernel of a sample of a controller that is a formula: (t, y, system) -> y."""
        value, place = formula_kernel(self.control.sampled_text, floats.number), self.placing()
        attitude, vector, _, _ = axes(self.problem.body.has_principal_rotation, len(self.field.parameters))
        # constants of the formula become numbers of the type of the state
        numbers = "".join(f"z[{i}] + zero, " for i in range(len(places(self.field))))
        alike = unrolled_kernel("z, zero", f"({numbers})")

        @kernel
        def sample(t: Any, y: Any, system: Any) -> Any:
            here = place(system, y[2], t)
            z = value(t, attitude(y[0], here), vector(times(here[1], y[1]), here), here[2])
            return y[0], y[1], alike(z, 0 * y[0][0])

        return sample

    def steps_per_sample(self) -> Callable[..., Any]:
        """Return the kernel (h, system) -> the number of steps in a period."""
        place = self.period_place

        @kernel
        def steps_per_sample(h: Any, system: Any) -> Any:
            return int(system[2][place] / h + 0.5)

        return steps_per_sample

    def between_samples(self) -> Callable[..., Any]:
        """Return the loop between two samples."""
        return kernel(stepping(self.step(), self.torque(), self.space))

    def check_formula(self, what: str) -> None:
        """Refuse a controller that is not a formula where it must be compiled."""
        try:
            self.control.sampled_text  # noqa: B018 - traced here
        except UntraceableError as fault:
            raise InputError(f"{what} needs a controller that is a formula: {fault}") from None

    def first_samples(self, t0: float, q: np.ndarray, omega: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return what the controller decides at the start for many bodies, in the user's axes: (N, numbers)."""
        from ..numbers import arrays  # noqa: F401 - makes arrays a number type

        value = formula_kernel(self.control.sampled_text, floats.number)
        found = value(t0, matrix(tuple(q.T)), tuple(omega.T), tuple(values.T))
        return np.stack([np.broadcast_to(x, len(q)) for x in found], axis=1)

    @property
    def is_formula(self) -> bool:
        """Whether the controller is a formula."""
        return is_formula(self.control)
