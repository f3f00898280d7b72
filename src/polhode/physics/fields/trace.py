"""What follows from the formula of a field alone: derived once, and shared by all fields with that formula."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._memo import MADE, Memo

if TYPE_CHECKING:
    from .field import Field


class Trace(Memo):
    """Data derived from the formula of a field, independent of the values of its parameters.

    Fields with the same template and values of the same shape share one, so the function is traced once.
    """


class of_formula:
    """A property of fields that follows from their formula: computed once for all fields that share a `Trace`."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, field: Any, owner: type | None = None) -> Any:
        """Return the value for a field."""
        if field is None:
            return self
        kept = vars(field.trace)
        if self.name not in kept:
            kept[self.name] = self.make(field)
        return kept[self.name]


def once_for_formula(make: Callable[..., Any]) -> Callable[..., Any]:
    """Cache a function (field or None, ...) of the formula of a field, for all fields that share the formula."""

    @functools.wraps(make)
    def made(field: Field | None, *rest: Any, **named: Any) -> Any:
        kept = MADE if field is None else field.trace
        return kept((make, rest, *named.items()), lambda: make(field, *rest, **named))

    return made
