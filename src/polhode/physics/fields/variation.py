"""The variation of a motion in one direction, as states of a field; chaos indicators follow from it.

With a rotation d in R exp(hat d) and a change of omega by nu e, in the user's body axes,

    d' = d x omega + nu e,      I e' = (I e) x omega + (I omega) x e + dT/nu,

dT the change of the torque, and nu a frequency that makes both dimensionless. The direction v = (d, e)/|(d, e)| and the
logarithm of the length stay of moderate size: with v' = A v the linear equation,

    g = v.A v,    v' = A v - g v,    growth' = g,    weighted' = g s,    mean' = 2 weighted/(s T),    s' = 1/T,

s the time since the start in units of the whole run T (|v| stays 1: it is attracted while the length grows). Then
growth = log |(d, e)| is the fast Lyapunov indicator (Froeschle, Lega and Gonczi, Celest. Mech. Dyn. Astr. 67 (1997)
41-62), and growth/(s T) tends to the largest Lyapunov exponent. Y = 2 weighted/s is the MEGNO and mean/s its mean
(Cincotta and Simo, Astron. Astrophys. Suppl. 147 (2000) 205-228).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...kernels.so3 import cross, dot, times
from ...symbolic.expression import Expr, gradient, lift, symbol, symbols
from .field import Field
from .parameters import changed
from .states import StatesField, StatesTemplate
from .template import STATE_ARGUMENTS
from .trace import Trace, of_formula

OWN = ("inertia", "inverse", "frequency", "period", "per_span")
"""Parameters: I and I^-1 (three numbers if they are diagonal), nu, 1/nu, 1/T."""

SOON = 1e-13
"""Share of the run below which weighted/s is taken as zero."""

STATE = "state"
"""The state: d, e, growth, weighted, mean and s. Its error is measured as a whole, relative to its length, at least 1.

The time is part of it: formulas of t itself are sampled for hidden features (`run/schedule`), which limits the steps.
"""

GROWTH, WEIGHTED, MEAN, TIME = 6, 7, 8, 9
"""Places in the state."""

SIZE = 10

PERIOD, PER_SPAN = 10, 11
"""Places of 1/nu and 1/T, which follow the state where a variation is observed."""

WITH_CONSTANTS = 12

PREFIX = "variation_"
"""Distinguishes the names from those of the field."""

NAMES = tuple(PREFIX + name for name in (*OWN, STATE))

DIRECTION = (0.47, -0.31, 0.29), (0.36, 0.53, -0.44)
"""A direction at the start that is not special for any axis."""


@dataclasses.dataclass(frozen=True)
class VariationTemplate(StatesTemplate):
    """A field and the variation of its motion."""

    base: Field | None = None

    @functools.cached_property
    def arguments(self) -> list[str]:
        """Names of the state and of all parameters."""
        return [*STATE_ARGUMENTS, *self.parameters]

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of the parameters of the field, then of the variation."""
        return [*(self.base.values if self.base is not None else ()), *NAMES]

    @property
    def signature(self) -> inspect.Signature:
        """All parameters, by name."""
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in self.parameters])

    def __call__(self, *args: Any, **named: Any) -> Field:
        """Bind all parameters, by name."""
        return self.bound(changed(self, self._by_name(args, named), named))

    def bound(self, values: Mapping[str, Any]) -> Field:
        """The field with these values of all parameters."""
        assert self.base is not None
        base = self.base.template.bound({name: values[name] for name in self.base.values})
        return VariationField(dataclasses.replace(self, base=base), values)

    def trace_of(self, field: Field, first: int) -> Trace:
        """That of the variation of the same formula."""
        assert self.base is not None
        of_base = self.base.template.trace_of(self.base, first)
        made: Trace = of_base(("variation", np.shape(field.values[PREFIX + "inertia"])), Trace)
        return made

    def __reduce__(self) -> Any:
        """The template of a variation."""
        return variation_template, (self.base,)


class VariationField(StatesField):
    """A field whose states are a variation of the motion."""

    template: VariationTemplate

    def __reduce__(self) -> Any:
        """It is sent as its field and its values."""
        return _rebuilt, (self.template.base, dict(self.values))

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check the field."""
        assert self.template.base is not None
        self.template.base.check(t, R, omega, context)

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The torque of the field, and the rates of the variation."""
        base = self.template.base
        assert base is not None
        torque = base.numbered(self.first).graph[0]
        number = self.first + len(base.parameters)
        entries = int(np.size(self.values[PREFIX + "inertia"]))
        counts = {"inertia": entries, "inverse": entries, STATE: SIZE}
        found: dict[str, list[Expr]] = {}
        for name in (*OWN, STATE):
            size = counts.get(name, 1)
            found[name] = [symbol(f"p{number + i}") for i in range(size)]
            number += size
        return torque, tuple(_rates(torque, found))


def _rates(torque: Sequence[Expr], found: dict[str, list[Expr]]) -> list[Expr]:
    """Rates of the states, in their order."""
    w = symbols("w", 3)
    inertia, inverse = found["inertia"], found["inverse"]
    d: Any = tuple(found[STATE][:3])
    e: Any = tuple(found[STATE][3:6])
    (nu,), (period,) = found["frequency"], found["period"]
    (per_span,), weighted, s = found["per_span"], found[STATE][WEIGHTED], found[STATE][TIME]
    spin = tuple(nu * x for x in e)
    turning: Any = tuple(x + y for x, y in zip(cross(d, w), spin, strict=True))
    change = changes_of_torque(torque, d, spin)
    b, c = cross(_times(inertia, e), w), cross(_times(inertia, w), e)
    spinning = _times(inverse, tuple(x + y + period * z for x, y, z in zip(b, c, change, strict=True)))
    g = dot(d, turning) + dot(e, spinning)
    rates = [x - g * y for x, y in zip((*turning, *spinning), (*d, *e), strict=True)]
    return [*rates, g, g * s, 2 * per_span * weighted * s / (s * s + SOON**2), per_span]


def _times(entries: Sequence[Any], v: Any) -> Any:
    """A matrix, given by its diagonal or by rows, times a vector."""
    if len(entries) == 3:
        return times((entries[0], entries[1], entries[2]), v)
    return tuple(dot((entries[3 * i], entries[3 * i + 1], entries[3 * i + 2]), v) for i in range(3))


def changes_of_torque(torque: Sequence[Expr], turn: Sequence[Any], spin: Sequence[Any]) -> list[Expr]:
    """The derivative of a torque if the body is rotated by `turn` in body axes and omega changes by `spin`."""
    R = [[symbol(f"R{i}{j}") for j in range(3)] for i in range(3)]
    symbols = [*(x for row in R for x in row), *(symbol(f"w{i}") for i in range(3))]
    speeds = [
        *(row[(j + 1) % 3] * turn[(j + 2) % 3] - row[(j + 2) % 3] * turn[(j + 1) % 3] for row in R for j in range(3)),
        *spin,
    ]
    found = []
    for part in torque:
        rate = lift(0)
        for slope, speed in zip(gradient(part, symbols), speeds, strict=True):
            rate = rate + slope * speed
        found.append(rate)
    return found


def variation(base: Field, values: Mapping[str, Any]) -> Field:
    """A field with the variation of its motion; `values` are those of `OWN` and the state at the start."""
    given = dict(base.values) | {PREFIX + name: value for name, value in values.items()}
    template = variation_template(base)
    return template.bound({name: given[name] for name in template.parameters})


def state_at_start() -> tuple[float, ...]:
    """The state at the start: a direction of length 1."""
    length = float(np.linalg.norm(DIRECTION))
    return (*(x / length for part in DIRECTION for x in part), 0.0, 0.0, 0.0, 0.0)


def variation_template(base: Field) -> VariationTemplate:
    """The template of the variation of a field."""

    def value(t: Any, R: Any, omega: Any, **values: Any) -> Any:
        """Not called: the formula is made of that of the field."""
        raise NotImplementedError

    value.__name__ = base.name
    initial = ((PREFIX + STATE, (0.0,) * SIZE),)
    return VariationTemplate(value, "torque", "body", makes=VariationField, initial=initial, base=base)


def _rebuilt(base: Field, values: dict[str, Any]) -> Field:
    return variation_template(base).bound(values)
