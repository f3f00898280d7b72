"""A user's function of one state that can be evaluated in any number type; `ph.gradient` differentiates it."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.so3 import conj, matrix, mul, rotate, times
from ...numbers import floats
from ...symbolic.expression import Expr, compiled, lift, source
from ..fields import Field
from ..fields.decorators import template_of
from ..fields.parameters import leaves_of
from ..validate import is_finite_real


class Observable:
    """A function of t, R, omega, momentum (any of them), and parameters with defaults, traced into a formula.

    Attributes
    ----------
    shape : shape of its value: () for one number, (n,) for n numbers, and so on
    """

    def __init__(self, function: Any) -> None:
        template = template_of(function, "observable")
        self.name = template.function.__name__
        if not template.complete:
            raise InputError(
                f"the observable {self.name} takes {', '.join(template.parameters)}, which have no values: its "
                "arguments are t, R, omega, momentum, and parameters with defaults"
            )
        self.field: Field = template()
        self._traced = self.field.traced(_nested)
        self.shape = self._shape(self._traced)

    @functools.cached_property
    def _value(self) -> Callable[..., Any]:
        """The function of t, R, w, m, p, in floats."""
        text = source("observable_value", "t, R, w, m, p", self.field.unpack, leaves_of(self._traced))
        return compiled(*text, floats.number)

    def _shape(self, value: Any) -> tuple[int, ...]:
        if not isinstance(value, tuple):
            return ()
        shapes = {self._shape(part) for part in value}
        if len(shapes) != 1:
            raise InputError(f"the observable {self.name} must return a number, or rows of equal length")
        return (len(value), *shapes.pop())

    def check(self, t: float, R: Any, omega: Any, momentum: Any, context: str) -> None:
        """Evaluate the function once in plain Python; raise a clear error if it fails."""
        value = self.field.value(t, R, omega, context, momentum)
        parts = leaves_of(_nested(value))
        if not all(is_finite_real(x.args[0]) for x in parts):
            raise self.field.template.user.refused("finite numbers", repr(value), context)

    def __call__(self, t: Any, q: Any, m: Any, inverse: Any, principal_to_body: Any) -> tuple[Any, ...]:
        """All its values, flattened, at a state in principal axes.

        `principal_to_body` is the quaternion from principal to user axes, or empty.
        """
        w = times(inverse, m)
        if principal_to_body:
            q, w, m = mul(q, conj(principal_to_body)), rotate(principal_to_body, w), rotate(principal_to_body, m)
        return self.at(t, matrix(q), w, m)

    def at(self, t: Any, R: Any, omega: Any, momentum: Any) -> tuple[Any, ...]:
        """All its values, flattened, in the user's axes."""
        values: tuple[Any, ...] = self._value(t, R, omega, momentum, self.field.parameters)
        return values


def _nested(value: Any) -> Any:
    """Convert a function's value to a formula or nested tuples of formulas; reject other types."""
    if isinstance(value, tuple | list):
        if not value:
            raise TypeError("it must return a number, or a tuple of numbers; it returned none")
        return tuple(_nested(part) for part in value)
    comparison = isinstance(value, Expr) and value.op in ("lt", "le", "eq", "ne", "and", "or")
    if comparison or isinstance(value, bool) or not isinstance(value, Expr | numbers.Real):
        raise TypeError(
            f"it must return a number, or a tuple of numbers; it returned "
            f"{'a truth value' if comparison or isinstance(value, bool) else type(value).__name__}"
        )
    return lift(value)
