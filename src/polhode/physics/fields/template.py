"""Decorated torques and potentials, whose parameters are not bound yet."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..._memo import MADE
from ...errors import InputError
from ...numbers.nested import nested
from ...symbolic.expression import symbol, symbols
from ...symbolic.formula import Formula
from ...symbolic.rows import Rows, Trial
from ...symbolic.surroundings import Surroundings
from ...symbolic.tracing import sums_over_rows
from ...symbolic.user_function import UserFunction
from .field import Field
from .parameters import checked_value
from .torque_formulas import attitude_symbols
from .trace import Trace

FRAMES = ("body", "space")
STATE_ARGUMENTS = ("t", "R", "omega")
OBSERVABLE_ARGUMENTS = (*STATE_ARGUMENTS, "momentum")


@dataclasses.dataclass(frozen=True)
class FieldTemplate:
    """A decorated torque or potential; call it to bind its parameters and get a `Field`."""

    function: Callable[..., Any]
    kind: str
    frame: str
    by_hand: FieldTemplate | None = None
    """The user's torque for a potential; it is checked, not used."""
    checks: tuple[tuple[str, Callable[[str, Any], Any]], ...] = ()
    """Parameters, each with the function (name, value) -> value that validates it."""
    makes: type[Field] | None = None
    """Class of the field that a call returns (default `Field`)."""
    plain: bool = False
    """True if the user wants the function to be called as plain Python at every evaluation."""

    @functools.cached_property
    def arguments(self) -> list[str]:
        """Names of the function's arguments."""
        return list(inspect.signature(self.function).parameters)

    @functools.cached_property
    def user(self) -> UserFunction:
        """The function with its name in messages."""
        count = 3 if self.kind == "torque" else None
        return UserFunction(self.function, f"the {self.kind} {self.function.__name__}", count)

    @property
    def state(self) -> tuple[str, ...]:
        """Arguments that hold the state: t, R, omega; for an observable also momentum."""
        return OBSERVABLE_ARGUMENTS if self.kind == "observable" else STATE_ARGUMENTS

    @functools.cached_property
    def state_used(self) -> list[str]:
        """State arguments that the function takes."""
        return [name for name in self.arguments if name in self.state]

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of its parameters: the arguments that are not part of the state."""
        return [name for name in self.arguments if name not in self.state]

    @property
    def complete(self) -> bool:
        """True if every parameter has a default."""
        return all(p.default is not inspect.Parameter.empty for p in self.signature.parameters.values())

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, in order, with their defaults."""
        whole = inspect.signature(self.function)
        return whole.replace(parameters=[p for p in whole.parameters.values() if p.name in self.parameters])

    def __call__(self, *args: Any, **named: Any) -> Field:
        """Bind the parameters, by position or by name."""
        values = self._by_name(args, named)
        for name, check in self.checks:
            values[name] = check(name, values[name])
        values |= {name: Rows.of(values[name], name) for name in self.rows(values)}
        return self.bound({name: checked_value(self, name, value) for name, value in values.items()})

    def _by_name(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The arguments and defaults by name, in the order of the parameters."""
        names = self.parameters
        if len(args) + len(named) == len(names) and not args:  # the usual calls, without the cost of a signature
            with contextlib.suppress(KeyError):
                return {name: named[name] for name in names}
        if len(args) == len(names) and not named and not self._has_keyword_only:
            return dict(zip(names, args, strict=True))
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as problem:
            takes = f"the parameters ({', '.join(names)})" if names else "no parameters"
            raise InputError(f"{self.user.owner} takes {takes}: {problem}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def rows(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Names of the parameters that the function sums over with `ph.total`, for values of these shapes.

        They are found by a trial call. If none is found, every number is a parameter.
        """
        if isinstance(self.function, Formula):
            return frozenset(self.function.rows)
        if not self._sums_over_rows:
            return frozenset()
        shapes = {name: np.shape(value) for name, value in values.items()}
        key = tuple((name, shape[1:] if len(shape) else None) for name, shape in shapes.items())
        if key not in self._rows:
            self._rows[key] = self._summed(shapes)
        return self._rows[key]

    def _summed(self, shapes: Mapping[str, tuple[int, ...]]) -> frozenset[str]:
        one = symbol("p0")
        trial = {name: Trial.of(one, shape) if shape else one for name, shape in shapes.items()}
        state: dict[str, Any] = {"t": symbol("t"), "R": attitude_symbols()}
        state |= {"omega": symbols("w", 3), "momentum": symbols("m", 3)}
        with contextlib.suppress(InputError):
            self.user.traced({name: nested(state[name]) for name in self.state_used} | trial, lambda value: value)
        return frozenset(name for name, part in trial.items() if isinstance(part, Trial) and part.is_summed)

    @functools.cached_property
    def _rows(self) -> dict[Any, frozenset[str]]:
        return {}

    @functools.cached_property
    def _sums_over_rows(self) -> bool:
        return sums_over_rows(self.function)

    @functools.cached_property
    def _has_keyword_only(self) -> bool:
        return any(p.kind is p.KEYWORD_ONLY for p in self.signature.parameters.values())

    def bound(self, values: Mapping[str, Any]) -> Field:
        """The field with these values of all parameters."""
        return (self.makes or Field)(self, values)

    def trace_of(self, field: Field, first: int) -> Trace:
        """Trace of a field of this template with its parameters numbered from `first` on.

        It is made, with its graph, only if there is no valid one.
        """
        key = (type(field), first, field.shape)
        known = self._traces.get(key)
        if known is None or not known[1].unchanged():
            made = field.numbered(first).traced_anew()
            known = self._traces[key] = (made, Surroundings(self.function))
        return known[0]

    @functools.cached_property
    def _traces(self) -> dict[Any, tuple[Trace, Surroundings]]:
        return {}

    def with_formulas(self, field: Field) -> FieldTemplate:
        """The template with the formula of a field instead of its function."""
        by_hand = None if self.by_hand is None else self.formulas_of(self.by_hand, field)
        return dataclasses.replace(self, function=field.as_formula(), by_hand=by_hand)

    @staticmethod
    def formulas_of(other: FieldTemplate, field: Field) -> FieldTemplate:
        """Another template with parameters of the same field, as a formula."""
        return other.with_formulas(Field(other, {name: field.values[name] for name in other.parameters}))

    def __reduce__(self) -> Any:
        """Pickle a formula as data, and a function by its module and name if that name refers to this template."""
        if isinstance(self.function, Formula):
            return same_template, (type(self), *(getattr(self, part.name) for part in dataclasses.fields(self)))
        where = (self.function.__module__, self.function.__qualname__)
        with contextlib.suppress(AttributeError, KeyError):
            if named_template(*where) is self:
                return named_template, where
        name = self.function.__name__
        raise InputError(
            f"{self.user.owner} cannot be pickled before its parameters are bound, unless it is at the top level of a "
            f"module: pickle {name}({', '.join(self.parameters)}), whose formula is known"
        )

    def __copy__(self) -> FieldTemplate:
        """Itself: templates do not change."""
        return self

    def __deepcopy__(self, memo: Any) -> FieldTemplate:
        """Itself."""
        return self

    def __add__(self, other: Any) -> Any:
        raise unbound(self)

    __radd__ = __add__


def named_template(module: str, name: str) -> Any:
    """Object with a (dotted) name in a module, which is imported if needed."""
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def same_template(kind: type[FieldTemplate], *parts: Any) -> FieldTemplate:
    """Template of a formula; an equal existing one is reused, so that they share derived data."""
    made = kind(*parts)
    found: FieldTemplate = MADE(("template", repr(made)), lambda: made)  # repr tells 1 from 1.0, which are equal
    return found


def unbound(template: FieldTemplate) -> InputError:
    """Error for a field template used without a call."""
    name = template.function.__name__
    return InputError(f"the field {name} has no parameters bound; call it: {name}({', '.join(template.parameters)})")
