"""Numbers that follow attitude and momentum in a state (q, m, z), and how a step changes because of them.

A `System` passes what it builds through its parts, each of which may wrap it or put something else in its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

from ..methods.adaptive import components
from ..methods.adaptive.controller import chosen, controlled
from ..methods.adaptive.verner87 import PAIR, SAFETY, verner87
from ..numbers import floats
from ..physics.fields import Field
from ..physics.fields.kernels import coupled_kernel, formula_kernel
from ..physics.fields.parameters import leaves_of
from ..physics.fields.states import coupled_text
from ..physics.problem import Problem

Kernel = Callable[..., Any]
Make = Callable[..., Kernel]
"""A function that builds a kernel."""


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Numbers z of a problem; this one has none, and changes nothing."""

    problem: Problem

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
    def field(self) -> Field:
        """The field."""
        assert self.problem.field is not None
        return self.problem.field

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


def parts_of(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of a problem, in the order in which they wrap a step."""
    return (FieldStates(problem),) if has_states(problem) else ()
