"""The motion of a body whose inertia tensor I(t) changes, as a torque on a body of constant inertia I0.

Parts that move within the body, and matter that leaves it, change the momentum Pi = I(t) omega by

    Pi' = Pi x omega + T - J,

T the torque and J the momentum that leaves with the matter, per unit of time (W. T. Thomson, Introduction to space
dynamics, 1961, chapter 7). So the angular acceleration is

    omega' = I^-1 (I omega x omega + T - J - I' omega).

A body of constant inertia I0 has the same omega(t), hence the same attitude, under the torque I0 omega' - I0 omega x
omega. Every part of a run therefore sees a body with a torque; only the momentum and the energy of a result are
computed with I(t). The state `work` is the energy that the change of inertia adds to the rotation,

    work' = -omega.I' omega/2 - omega.J,        (omega.I omega/2)' = omega.T + work'.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...kernels.so3 import apply, cross, dot, solve3, sub
from ...numbers import arrays, floats  # noqa: F401 - arrays: tensors are evaluated at many times at once
from ...symbolic.expression import Expr, gradient, lift, source, symbol, symbols
from .field import Field
from .kernels import formula_kernel
from .parameters import leaves_of
from .states import states, without_states
from .sums import SumField, SumTemplate
from .trace import Trace, of_formula

CARRIED = "carried"
"""The value of `leaving` for matter that leaves with the velocity of its place in the body: J = -I' omega."""

OMEGA = symbols("w", 3)


@states(work=0.0)
def _changing(omega: Any, work: Any) -> Any:
    """Stands for the state `work`; its rate is in `VaryingField.coupled`."""
    return (0.0, 0.0, 0.0), {"work": 0.0 * omega[0]}


class InertiaField(Field):
    """A tensor I(t); it is no torque, but a part of the formula of one."""

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The nine numbers of I(t) and of I'(t)."""
        numbers = self.traced(lambda value: tuple(map(lift, leaves_of(tensor_of(value)))))
        return numbers, tuple(gradient(x, [symbol("t")])[0] for x in numbers)

    @property
    def energy(self) -> None:
        """None: it is no potential."""
        return None

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Evaluate the function once in plain Python; raise a clear error if it fails."""
        self.tensor(t, context)

    def tensor(self, t: float, context: str) -> np.ndarray:
        """I(t) for one time."""
        value = self.value(t, None, None, context)
        try:
            found = np.array(tensor_of(value), dtype=float)
        except (TypeError, ValueError, IndexError):
            found = np.empty(0)
        if found.shape != (3, 3) or not np.isfinite(found).all():
            expected = "a tensor, 3x3 finite numbers, or the three moments in principal axes"
            raise self.template.user.refused(expected, repr(value), context)
        return found


def tensor_of(value: Any) -> tuple[tuple[Any, Any, Any], ...]:
    """A tensor given as three rows, or as three moments."""
    a, b, c = value
    if hasattr(a, "__len__"):
        (p, q, r), (s, t, u), (v, w, x) = a, b, c
        return (p, q, r), (s, t, u), (v, w, x)
    return (a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c)


@dataclasses.dataclass(frozen=True)
class VaryingTemplate(SumTemplate):
    """The state `work`, a tensor I(t), and if there are any, the momentum that leaves and the field on the body."""

    reference: tuple[tuple[float, ...], ...] = ()
    """I0."""
    leaving: str | None = None
    """How momentum leaves: `CARRIED`, "function" (the third part), or None."""

    def trace_of(self, field: Field, first: int) -> Trace:
        """That of the same parts."""
        made: Trace = super().trace_of(field, first)(("varying", self.reference, self.leaving), Trace)
        return made

    def __reduce__(self) -> Any:
        """The template of its parts."""
        return _template, (self.parts, self.reference, self.leaving)


class VaryingField(SumField):
    """The torque on a body of constant inertia that moves like one of inertia I(t)."""

    template: VaryingTemplate
    stands_alone = (
        "the field of a body with varying inertia is not added to others; add the fields first, and give the sum to "
        "ph.Problem with the ph.VaryingBody"
    )

    def __reduce__(self) -> Any:
        """It is sent as its parts."""
        return _rebuilt, (self.template, dict(self.values))

    def __repr__(self) -> str:
        _, *parts = self.template.parts
        return f"varying inertia({', '.join(map(repr, parts))})"

    @property
    def graph(self) -> Any:
        """Not there, as for all fields with states."""
        raise without_states(self)

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The torque on the body of constant inertia, and the rates of `work` and of the states of the field."""
        parts = [part.numbered(first) for part, first in self.template.numbered_parts(self.first)]
        tensor, rate = (_rows(numbers) for numbers in parts[1].coupled)
        change = apply(rate, OMEGA)
        left = self._leaving(parts, change)
        force, rates = parts[-1].coupled if len(parts) > self._own else ((lift(0),) * 3, ())
        spin = sub(sub(_sum(cross(apply(tensor, OMEGA), OMEGA), force), left), change)
        a, b, c = zip(*tensor, strict=True)
        faster = solve3(a, b, c, spin)
        I0: Any = self.template.reference
        work = lift(-0.5) * dot(OMEGA, change) - dot(OMEGA, left)
        return sub(apply(I0, faster), cross(apply(I0, OMEGA), OMEGA)), (work, *rates)

    @property
    def inertia(self) -> InertiaField:
        """I(t)."""
        found = self.template.parts[1]
        assert isinstance(found, InertiaField)
        return found

    @property
    def leaving(self) -> Field | str | None:
        """J: a function, `CARRIED`, or None."""
        return self.template.parts[2] if self.template.leaving == "function" else self.template.leaving

    @property
    def base(self) -> Field | None:
        """The field on the body."""
        return self.template.parts[-1] if len(self.template.parts) > self._own else None

    @property
    def _own(self) -> int:
        """Number of parts that are not the field on the body."""
        return 3 if self.template.leaving == "function" else 2

    def _leaving(self, parts: list[Field], change: Any) -> Any:
        """J as a formula."""
        if self.template.leaving == CARRIED:
            return tuple(-x for x in change)
        return parts[2].coupled[0] if self.template.leaving else (lift(0),) * 3

    @of_formula
    def tensor(self) -> tuple[Expr, ...]:
        """The nine numbers of I(t), by rows."""
        part, first = list(self.template.numbered_parts(self.first))[1]
        numbers: tuple[Expr, ...] = part.numbered(first).coupled[0]
        return numbers

    @of_formula
    def _tensor_formula(self) -> Any:
        """I(t) as a function of times and parameters."""
        text = source("inertia_value", "t, p", self.unpack, self.tensor)
        return formula_kernel(text, floats.number)

    def inertia_at(self, t: np.ndarray, parameters: Any = None) -> np.ndarray:
        """I at times (...), as (..., 3, 3); `parameters` are arrays if they differ between bodies."""
        numbers = self._tensor_formula(t, self.parameters if parameters is None else parameters)
        shape = np.broadcast_shapes(np.shape(t), *map(np.shape, numbers))
        return np.stack([np.broadcast_to(x, shape) for x in numbers], -1).reshape(*shape, 3, 3)


def _rows(numbers: Any) -> Any:
    return tuple(tuple(numbers[i : i + 3]) for i in (0, 3, 6))


def _sum(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def varying_field(
    inertia: Field, leaving: Field | str | None, base: Field | None, reference: tuple[tuple[float, ...], ...]
) -> Field:
    """The field on a body of inertia `reference` that moves it as `base` moves one of inertia I(t)."""
    how = leaving if leaving is None or isinstance(leaving, str) else "function"
    parts = [_changing(), inertia, *([leaving] if isinstance(leaving, Field) else []), *([base] if base else [])]
    made = _template(tuple(part.numbered(0) for part in parts), reference, how)
    return made.bound({full: parts[i].values[name] for i, name, full in made.names})


def _template(
    parts: tuple[Field, ...], reference: tuple[tuple[float, ...], ...], leaving: str | None
) -> VaryingTemplate:
    def value(t: Any, R: Any, omega: Any, **values: Any) -> Any:
        """Not called: the formula is made of those of the parts."""
        raise NotImplementedError

    value.__name__ = parts[1].name
    return VaryingTemplate(
        value, "torque", "body", makes=VaryingField, parts=parts, reference=reference, leaving=leaving
    )


def _rebuilt(template: VaryingTemplate, values: dict[str, Any]) -> Field:
    return template.bound(values)
