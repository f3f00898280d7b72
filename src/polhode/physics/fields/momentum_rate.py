"""Torques given as the rate of the spatial momentum, L'(t), with or without its derivatives."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...symbolic.expression import lift, source
from ...symbolic.user_function import plain_function
from ..torque_rates import Motion
from .by_hand import CHECK_DIGITS, difference
from .decorators import template_of
from .field import Field
from .kernels import formula_kernel
from .template import FieldTemplate

CHECK_TIMES = (0, 1, -2, 5)
"""Times since the start, in units of 1/3, at which the user's derivatives are compared with the exact ones."""


@dataclasses.dataclass(frozen=True)
class RateTemplate(FieldTemplate):
    """A torque in space that depends on time alone, with the user's functions for its derivatives."""

    given: tuple[FieldTemplate | None, ...] = ()

    def with_formulas(self, field: Field) -> FieldTemplate:
        """The template with formulas in the place of all functions."""
        given = tuple(None if one is None else self.formulas_of(one, field) for one in self.given)
        made = super().with_formulas(field)
        assert isinstance(made, RateTemplate)
        return dataclasses.replace(made, given=given)


class RateField(Field):
    """L'(t) with its parameters bound; the user's derivatives are checked, not used."""

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check the function and the user's derivatives."""
        super().check(t, R, omega, context)
        assert isinstance(self.template, RateTemplate)
        for n, template in enumerate(self.template.given, start=1):
            if template is not None:
                hand = Field(template, {name: self.values[name] for name in template.parameters})
                hand.check(t, R, omega, context)
                self._compare(n, hand, t)

    def _compare(self, n: int, hand: Field, t: float) -> None:
        from ...numbers.multiprecision import number, working

        exact = [math.factorial(n) * x for x in Motion(self, False).vector(self.written, n)]
        ours, theirs = (_of_time(formulas, f) for formulas, f in ((exact, self), (hand.written, hand)))
        with working(CHECK_DIGITS):
            seen = []
            for s in CHECK_TIMES:
                at = number(t) + number(s) / 3
                values = [
                    formula_kernel(text, number)(at, tuple(number(x) for x in f.parameters))
                    for text, f in ((ours, self), (theirs, hand))
                ]
                seen.append((f"at t = {float(at):g}", values[0], values[1]))
            gap = difference(seen)
        if gap:
            raise InputError(
                f"{hand.name} is not the derivative of order {n} of {self.name}: {gap}; correct it, or remove it: the "
                f"derivative is then computed"
            )


def _of_time(formulas: Any, field: Field) -> tuple[str, dict[str, Any]]:
    unpack = {"t": "t"} | {f"p{i}": f"p[{i}]" for i in range(len(field.parameters))}
    return source("rate_value", "t, p", unpack, [lift(x) for x in formulas])


def _template(function: Any, name: str, parameters: list[str] | None = None) -> FieldTemplate:
    """The template of a function of t and parameters."""
    plain_function(function, f"{name} must be a plain Python function of t and parameters")
    rule = f"{name} is the rate of the momentum as a function of t alone"
    remedy = ', so make it a @ph.torque(frame="space")'
    template = template_of(function, "torque", "space", ("R", "omega"), rule, remedy)
    extra = [p for p in template.parameters if parameters is not None and p not in parameters]
    if extra:
        raise InputError(f"{name} may take t and the parameters of L1; {function.__name__} takes {', '.join(extra)}")
    return template


def momentum_rate(
    L1: Callable[..., Any], L2: Callable[..., Any] | None = None, L3: Callable[..., Any] | None = None
) -> Any:
    """A torque given as the rate L'(t) of the spatial momentum, in the space frame (Buss 2011).

    Parameters
    ----------
    L1 : L'(t), a function of t and parameters that returns three numbers
    L2, L3 : its first and second derivative, optional. Derivatives are computed exactly from L1; L2 and L3 are only
        compared with them when a problem is made, and a difference beyond round-off is an error.

    Returns the field if L1 has no parameters, else a template to be called with them: ``ph.momentum_rate(push)(0.3)``.

    Examples
    --------
    >>> from polhode.math import cos
    >>> kick = ph.momentum_rate(lambda t: (cos(t), 0.0, 0.0))
    >>> sol = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), kick, omega=[0, 0, 1.0]), "rk4_quat", dt=0.01, steps=100)
    >>> (sol.spatial_momentum[-1] - sol.spatial_momentum[0]).round(6) + 0.0
    array([0.841471, 0.      , 0.      ])
    """
    first = _template(L1, "L1")
    given = tuple(None if f is None else _template(f, name, first.parameters) for name, f in (("L2", L2), ("L3", L3)))
    template = RateTemplate(first.function, "torque", "space", makes=RateField, given=given)
    return template if template.parameters else template()
