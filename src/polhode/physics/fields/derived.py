"""Fields whose formula is derived from that of another field."""

from __future__ import annotations

from typing import Any

from .field import Field
from .trace import Trace


class DerivedField(Field):
    """A field made from another one, `whole`, and further data; a subclass derives the formula."""

    def __init__(self, field: Any, *data: Any) -> None:
        self.whole, self.data = field, data
        self.template, self.values, self.name, self.kind = field.template, field.values, field.name, field.kind

    def __reduce__(self) -> Any:
        """Sent as the field and the data."""
        return type(self), (self.whole, *self.data)

    def find_trace(self) -> Trace:
        """Trace of the derived formula, kept with that of the field."""
        made: Trace = self.whole.trace(type(self), Trace)
        return made

    @property
    def states(self) -> dict[str, Any]:
        """Those of the field."""
        found: dict[str, Any] = self.whole.states
        return found
