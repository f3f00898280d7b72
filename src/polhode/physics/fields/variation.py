"""The variation of a motion in one direction, as states beside the body; chaos indicators follow from it.

With a rotation d in R exp(hat d) and a change of omega by nu e, in the user's body axes,

    d' = d x omega + nu e,      I e' = (I e) x omega + (I omega) x e + dT/nu,

dT the change of the torque, and nu a frequency that makes both dimensionless. The direction v = (d, e)/|(d, e)| and the
logarithm of the length stay of moderate size: with v' = A v the linear equation,

    g = v.A v,    v' = A v - g v,    growth' = g,    weighted' = g s,    mean' = 2 weighted/s,

s the time since the start. Then growth = log |(d, e)|, the fast Lyapunov indicator (Froeschle, Lega and Gonczi, Celest.
Mech. Dyn. Astr. 67 (1997) 41-62), and growth/s tends to the largest Lyapunov exponent. Y = 2 weighted/s is the MEGNO
and mean/s its mean (Cincotta and Simo, Astron. Astrophys. Suppl. 147 (2000) 205-228).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...kernels.so3 import cross, dot
from ...symbolic.expression import Expr, gradient, lift, symbol
from .field import STATE_ARGUMENTS, Field, Trace, changed, of_formula
from .states import StatesField, StatesTemplate

OWN = ("inertia", "inverse", "frequency", "begin", "soon")
"""Parameters: I and I^-1, nu, the time of the start, and a short time below which weighted/s is taken as zero."""

STATES = ("turn", "spin", "growth", "weighted", "mean")
"""The states: d, e, log |(d, e)|, and the integrals of the MEGNO."""

PREFIX = "variation_"
"""Distinguishes the names from those of the field."""

NAMES = tuple(PREFIX + name for name in (*OWN, *STATES))

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
        made: Trace = of_base("variation", Trace)
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
        counts = {"inertia": 9, "inverse": 9, "turn": 3, "spin": 3}
        found: dict[str, list[Expr]] = {}
        for name in (*OWN, *STATES):
            size = counts.get(name, 1)
            found[name] = [symbol(f"p{number + i}") for i in range(size)]
            number += size
        return torque, tuple(_rates(torque, found))


def _rates(torque: Sequence[Expr], found: dict[str, list[Expr]]) -> list[Expr]:
    """Rates of the states, in their order."""
    w: Any = tuple(symbol(f"w{i}") for i in range(3))
    inertia, inverse = (
        [tuple(found[name][3 * i : 3 * i + 3]) for i in range(3)] for name in ("inertia", "inverse")
    )  # fmt: skip
    d: Any = tuple(found["turn"])
    e: Any = tuple(found["spin"])
    (nu,) = found["frequency"]
    (begin,), (soon,), (weighted,) = found["begin"], found["soon"], found["weighted"]
    spin = tuple(nu * x for x in e)
    turning: Any = tuple(x + y for x, y in zip(cross(d, w), spin, strict=True))
    change = changes_of_torque(torque, d, spin)
    b, c = cross(_times(inertia, e), w), cross(_times(inertia, w), e)
    spinning = _times(inverse, tuple(x + y + z / nu for x, y, z in zip(b, c, change, strict=True)))
    g = (dot(d, turning) + dot(e, spinning)) / (dot(d, d) + dot(e, e))
    s = symbol("t") - begin
    rates = [x - g * y for x, y in zip((*turning, *spinning), (*d, *e), strict=True)]
    return [*rates, g, g * s, 2 * weighted * s / (s * s + soon * soon)]


def _times(matrix: Sequence[Any], v: Any) -> Any:
    return tuple(dot(row, v) for row in matrix)


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
    """A field with the variation of its motion; `values` are those of `OWN`, and the direction at the start."""
    own = {PREFIX + name: value for name, value in values.items()}
    zeros = {PREFIX + name: 0.0 for name in ("growth", "weighted", "mean")}
    given = dict(base.values) | own | zeros
    template = variation_template(base)
    return template.bound({name: given[name] for name in template.parameters})


def direction_at_start() -> dict[str, tuple[float, ...]]:
    """The direction of the variation at the start, of length 1."""
    length = float(np.linalg.norm(DIRECTION))
    turn, spin = (tuple(x / length for x in part) for part in DIRECTION)
    return {"turn": turn, "spin": spin}


def variation_template(base: Field) -> VariationTemplate:
    """The template of the variation of a field."""

    def value(t: Any, R: Any, omega: Any, **values: Any) -> Any:
        """Not called: the formula is made of that of the field."""
        raise NotImplementedError

    value.__name__ = base.name
    zeros: dict[str, Any] = {"turn": (0.0,) * 3, "spin": (0.0,) * 3}
    initial = tuple((PREFIX + name, zeros.get(name, 0.0)) for name in STATES)
    return VariationTemplate(value, "torque", "body", makes=VariationField, initial=initial, base=base)


def _rebuilt(base: Field, values: dict[str, Any]) -> Field:
    return variation_template(base).bound(values)
