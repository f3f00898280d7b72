"""Fields that bring states of their own: wheels, slosh masses, an orbit, a temperature.

With z the states, the motion of the body and the states are one system,

    q' = q (0, omega)/2,    Pi' = Pi x omega + T(t, R, omega, z),    z' = g(t, R, omega, z).

The states are parameters of the field by name: their values are those at the start.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import InputError
from ...methods.adaptive.verner87 import verner87
from ...numbers.nested import nested
from ...symbolic.expression import Expr, lift, source
from ...symbolic.user_function import in_order
from .decorators import check_frame, template_of
from .field import Field
from .parameters import checked_value, leaves_of
from .template import STATE_ARGUMENTS, FieldTemplate
from .torque_formulas import in_body_frame
from .trace import of_formula
from .untraced import shape_of

Numbers = Any
"""A number, or nested tuples of numbers."""


@dataclasses.dataclass(frozen=True)
class StatesTemplate(FieldTemplate):
    """A decorated function of a torque and the rates of states; call it to bind parameters and initial states."""

    initial: tuple[tuple[str, Any], ...] = ()
    """Names of the states, with their initial values if none are given."""

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return tuple(name for name, _ in self.initial)

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of the parameters, then of the states."""
        own = [name for name in self.arguments if name not in (*STATE_ARGUMENTS, *self.states)]
        return [*own, *self.states]

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, in order; initial states are given by name."""
        whole, by_name = inspect.signature(self.function).parameters, inspect.Parameter.KEYWORD_ONLY
        own = [whole[name] for name in self.parameters if name not in self.states]
        states = [inspect.Parameter(name, by_name, default=value) for name, value in self.initial]
        return inspect.Signature(sorted([*own, *states], key=lambda p: p.kind))


class StatesField(Field):
    """A torque, and the rates of states, with parameters and initial states bound."""

    template: StatesTemplate

    def __init__(self, template: StatesTemplate, values: Mapping[str, Any]) -> None:
        for name, value in template.initial:
            if shape_of(values[name]) != shape_of(value):
                owner = template.function.__name__
                raise InputError(
                    f"the state {name} of {owner} must be numbers in the shape of {value!r}; got {values[name]!r}", name
                )
        super().__init__(template, values)

    @property
    def states(self) -> dict[str, Numbers]:
        """Initial values of the states."""
        return {name: self.values[name] for name in self.template.states}

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Body torque and rates of all numbers of the states, as formulas; a state has the symbols of its parameter."""
        torque, rates = self.traced(self.returned)
        force = in_body_frame(tuple(map(lift, torque)), self.template.frame)
        return force, tuple(lift(x) for rate in rates for x in leaves_of(rate))

    def returned(self, value: Any) -> Any:
        """Torque and rates, in order."""
        return self._split(value, "in its formula")

    @property
    def energy(self) -> None:
        """None: it has no potential."""
        return None

    @property
    def graph(self) -> Any:
        """Not there: the torque is not a function of attitude and velocity."""
        raise without_states(self)

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Evaluate the function once in plain Python; raise a clear error if it fails."""
        torque, rates = self._split(self.value(t, R, omega, context), context)
        numbers = [x for part in (torque, *rates) for x in leaves_of(part)]
        if not all(isinstance(x, int | float | np.number) and math.isfinite(x) for x in numbers):
            raise self.template.user.refused("finite numbers", repr((torque, rates)), context)

    def _split(self, value: Any, place: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Torque and rates of the states, in order, of a value returned by the function."""
        names = self.template.states
        expected = f"a torque (three numbers) and the rates {{{', '.join(f'{name!r}: ...' for name in names)}}}"
        refused = self.template.user.refused
        if not (isinstance(value, tuple | list) and len(value) == 2):
            raise refused(expected, type(value).__name__, place)
        torque, rates = value
        try:
            torque = in_order(torque)
        except TypeError:
            raise refused(expected, repr(torque), place) from None
        if isinstance(rates, Mapping):
            if set(rates) != set(names):
                raise refused(expected, f"rates of {', '.join(map(str, rates)) or 'nothing'}", place)
            rates = tuple(rates[name] for name in names)
        if len(torque) != 3 or len(rates) != len(names):
            raise refused(expected, f"{len(torque)} and {len(rates)} of them", place)
        rates = tuple(_tuples(rate) for rate in rates)
        for name, rate in zip(names, rates, strict=True):
            if shape_of(rate) != shape_of(self.values[name]):
                raise refused(f"a rate of {name} in the shape of {self.values[name]!r}", f"{rate!r}", place)
        return torque, rates


def _tuples(value: Any) -> Any:
    value = nested(value)
    return tuple(map(_tuples, value)) if isinstance(value, tuple) else value


def without_states(field: Field) -> InputError:
    """Error for a use of a field with states that knows only attitude and momentum."""
    names = ", ".join(field.states)
    return InputError(
        f"{field.name} has states of its own ({names}), which only ph.solve and ph.ensemble integrate, with tol or "
        f"step_tol, or with {verner87.name} and dt"
    )


def coupled_text(field: Field) -> tuple[str, dict[str, Any]]:
    """Source and constants of torque and rates of the states, as a function of t, R, w, p and the states z."""
    torque, rates = field.coupled
    unpack = field.unpack | {f"p{place}": f"z[{i}]" for i, place in enumerate(places(field))}
    return source("coupled_value", "t, R, w, p, z", unpack, [*torque, *rates])


def places(field: Field) -> list[int]:
    """Places of the numbers of the states among the parameters of a field."""
    found, first, own = list[int](), 0, field.states
    for name, value in field.values.items():
        count = len(leaves_of(value))
        if name in own:
            found += range(first, first + count)
        first += count
    return found


def states(*, frame: str = "body", **initial: Any) -> Callable[[Callable[..., Any]], StatesTemplate]:
    """Make a field with states of its own, given by name with their initial values: numbers or arrays.

    The function takes t, R, omega (any of them), every state by its name, and parameters. It returns the torque, three
    numbers in the given frame, and a dictionary with the rate of every state. It must be a formula.

    >>> @ph.states(wheel=0.0)  # the momentum of a wheel about the third axis
    ... def driven(omega, wheel, motor):
    ...     h = (0.0, 0.0, wheel)
    ...     return ph.math.cross(h, omega) - (0.0, 0.0, motor), {"wheel": motor}

    Call the result to bind the parameters; initial states are given by name: ``driven(0.1, wheel=2.0)``.
    """
    check_frame(frame)
    if not initial:
        raise InputError("@ph.states needs the states with their initial values, such as @ph.states(wheel=0.0)")
    taken = [name for name in initial if name in STATE_ARGUMENTS]
    if taken:
        raise InputError(f"a state must not be named {taken[0]}, which is part of the motion of the body")

    def decorated(function: Callable[..., Any]) -> StatesTemplate:
        plain = template_of(function, "torque", frame)
        missing = [name for name in initial if name not in plain.arguments]
        if missing:
            raise InputError(f"{function.__name__} must take the state {missing[0]} as an argument")
        values = tuple((name, checked_value(plain, name, value)) for name, value in initial.items())
        return StatesTemplate(function, plain.kind, frame, makes=StatesField, initial=values)

    return decorated
