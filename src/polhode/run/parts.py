"""Numbers that follow attitude and momentum in a state (q, m, z), and how a step changes because of them.

A `System` passes what it builds through its parts, each of which may wrap it or put something else in its place.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.sampled import broken_adaptively, broken_step, held_adaptively, held_step, placing
from ..kernels.so3 import matrix, times
from ..kernels.unroll import unrolled_kernel
from ..methods.adaptive import components
from ..methods.adaptive.controller import chosen, controlled, exact
from ..methods.adaptive.verner87 import PAIR, SAFETY, verner87
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..physics.axes import axes
from ..physics.control.controller import CLOCK, PERIOD, ControlField, control_in
from ..physics.fields import Field
from ..physics.fields.kernels import coupled_kernel, formula_kernel
from ..physics.fields.parameters import leaves_of
from ..physics.fields.states import coupled_text, places
from ..physics.problem import Problem
from ..symbolic.tracing import UntraceableError

Kernel = Callable[..., Any]
Make = Callable[..., Kernel]
"""A function that builds a kernel."""


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Numbers z of a problem; this one has none, and changes nothing."""

    problem: Problem

    @property
    def field(self) -> Field:
        """The field, which brings them."""
        assert self.problem.field is not None
        return self.problem.field

    @property
    def size(self) -> int:
        """Count of the numbers."""
        return 0

    def key(self, other: Callable[[], tuple[Hashable, ...]]) -> tuple[Hashable, ...]:
        """Return what the kernels are built from; `other` returns that of the parts within."""
        return other()

    def torque(self, make: Make) -> Kernel:
        """Return the kernel of the torque."""
        return make()

    def step(self, make: Make) -> Kernel:
        """Return the kernel of a step in a smooth field."""
        return make()

    def attempt(self, make: Make) -> Kernel:
        """Return the kernel of a controlled step; ``make(length=exact)`` is one of any length."""
        return make()


# --- states of a field ------------------------------------------------------------------------------


def has_states(problem: Problem) -> bool:
    """Return whether the field of a problem brings states of its own."""
    return problem.field is not None and bool(problem.field.states)


def groups(field: Field | None) -> tuple[int, ...]:
    """Return the number of numbers of every state."""
    return () if field is None else tuple(len(leaves_of(value)) for value in field.states.values())


class FieldStates(Part):
    """The states of a field: the pair 8(7) integrates all numbers as one system."""

    @property
    def size(self) -> int:
        """Count of the numbers."""
        return sum(groups(self.field))

    def key(self, other: Any = None) -> tuple[Hashable, ...]:
        """Return what the kernels are built from: such a field has no `structure`."""
        field, body = self.field, self.problem.body
        kind = type(field).__name__
        return kind, body.has_principal_rotation, groups(field), len(field.parameters), repr(coupled_text(field))

    def torque(self, make: Make) -> Kernel:
        """Return the kernel of torque and rates of the states."""
        field, value = self.field, formula_kernel(coupled_text(self.field), floats.number)
        return coupled_kernel(value, self.size, len(field.parameters), self.problem.body.has_principal_rotation)

    def step(self, make: Make) -> Kernel:
        """Return the kernel of a step of all numbers."""
        return PAIR.step(floats.number, components.with_states(groups(self.field)))

    def attempt(self, make: Make) -> Kernel:
        """Return the kernel of a controlled step, with errors estimated for all numbers."""
        judged = controlled(floats.number, int(verner87.order), SAFETY)
        estimated = PAIR.estimated_step(floats.number, components.with_states(groups(self.field)))
        return chosen(estimated, judged, self.torque(make))


# --- commands and memory of a controller --------------------------------------------------------------


def is_formula(control: ControlField) -> bool:
    """Return whether a controller is a formula."""
    try:
        control.sampled_text  # noqa: B018 - traced here
    except UntraceableError:
        return False
    return True


def place_of(control: ControlField, name: str) -> int:
    """Return the place of a number of a controller among the parameters of the field that contains it."""
    before = list(control.values)[: list(control.values).index(name)]
    return control.first + sum(len(leaves_of(control.values[other])) for other in before)


class Commands(Part):
    """Commands and memory of a controller: constant between its samples, or they change in a way known exactly."""

    @functools.cached_property
    def control(self) -> ControlField:
        """The controller, with its parameters numbered as in the field."""
        found = control_in(self.field)
        assert found is not None
        return found

    @functools.cached_property
    def places(self) -> list[int]:
        """Places of the numbers among the parameters of the field."""
        return places(self.field)

    @property
    def size(self) -> int:
        """Count of the numbers."""
        return len(self.places)

    @property
    def period_place(self) -> int:
        """Place of the period among the parameters of the field."""
        return place_of(self.control, PERIOD)

    @property
    def clock_place(self) -> int:
        """Place of the time of the first sample among them."""
        return place_of(self.control, CLOCK)

    @property
    def is_formula(self) -> bool:
        """Whether the controller is a formula."""
        return is_formula(self.control)

    def key(self, other: Callable[[], tuple[Hashable, ...]]) -> tuple[Hashable, ...]:
        """Return what the kernels between samples are built from."""
        control = self.control
        texts = repr((control.later_text, control.breaks_text, self.places, self.clock_place))
        return "held", texts, *other()

    @property
    def sampled_key(self) -> tuple[Hashable, ...]:
        """What a sample is built from, besides."""
        return repr(self.control.sampled_text), self.period_place

    def placing(self) -> Kernel:
        """Return the kernel that puts z and the time among the parameters."""
        count = len(self.field.parameters) + len(self.problem.axes_quaternion)
        return placing(count, self.places, self.clock_place)

    def step(self, make: Make) -> Kernel:
        """Return the kernel of a step on (q, m, z)."""
        later, breaks, count = self._between_samples()
        if breaks is None:
            return held_step(make(), self.placing(), later)
        return broken_step(make(), self.placing(), later, breaks, count)

    def attempt(self, make: Make) -> Kernel:
        """Return the kernel of a controlled step on (q, m, z)."""
        later, breaks, count = self._between_samples()
        if breaks is None:
            return held_adaptively(make(), self.placing(), later)
        return broken_adaptively(make(), make(length=exact), self.placing(), later, breaks, count)

    def _between_samples(self) -> tuple[Any, Any, int]:
        """Return the kernels of z after a time, and of the times of breaks; None if there are none."""
        text, count = self.control.breaks_text or (None, 0)
        texts = self.control.later_text, text
        later, breaks = (None if x is None else formula_kernel(x, floats.number) for x in texts)
        return later, breaks, count

    def sample(self) -> Callable[..., Any]:
        """Return the kernel of a sample of a controller that is a formula: (t, y, system) -> y."""
        value, place = formula_kernel(self.control.sampled_text, floats.number), self.placing()
        attitude, vector, _, _ = axes(self.problem.body.has_principal_rotation, len(self.field.parameters))
        # constants of the formula become numbers of the type of the state
        numbers = "".join(f"z[{i}] + zero, " for i in range(len(self.places)))
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


def parts_of(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, in the order in which they wrap a step."""
    if not has_states(problem):
        return ()
    return (FieldStates(problem) if control_in(problem.field) is None else Commands(problem),)
