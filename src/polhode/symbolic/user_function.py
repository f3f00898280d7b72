"""A user function: called once with plain numbers, then traced into formulas.

The call comes first, so that mistakes are ordinary Python errors. Each message is one sentence that begins with the
role and name of the function: "the torque drag raised KeyError at the start (t = 0): 'z'".
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Mapping, Set
from typing import Any

from ..errors import InputError
from .expression import BranchError
from .formula import Formula
from .tracing import ALLOWED, UntraceableError, rebound

Arguments = tuple[Any, ...] | dict[str, Any]
"""Arguments of a call, by position or by name."""

TEXT = str | bytes | bytearray
"""What `float` or a loop would read as numbers, though none were meant."""


def plain_function(function: Any, expected: str) -> Any:
    """Return the function if it is a plain Python function; if not, `expected` begins the error message."""
    if not isinstance(function, types.FunctionType):
        raise InputError(f"{expected}; got {type(function).__name__}")
    return function


@dataclasses.dataclass(frozen=True)
class UserFunction:
    """A plain Python function and its name in messages ("the torque drag")."""

    function: Callable[..., Any]
    owner: str
    count: int | None = None
    """Length of the sequence it returns; None for a single number."""

    @property
    def expected(self) -> str:
        """The required return value, in words."""
        return {None: "one number", 3: "three numbers"}.get(self.count, f"{self.count} numbers")

    def positional(self, expected: str, most: int) -> int:
        """Return the number of required positional arguments; it must be at least 1 and at most `most`."""
        signature = inspect.signature(self.function)
        parameters = signature.parameters.values()
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = [p for p in plain if p.default is p.empty]
        if len(plain) != len(parameters) or not 1 <= len(needed) <= most:
            raise InputError(f"{self.owner} must be {expected}; it takes {signature}")
        return len(needed)

    def value(self, arguments: Arguments, place: str, hint: Callable[[Exception], str] = lambda problem: "") -> Any:
        """Call it with plain numbers; `place` and `hint` end the message if it raises an exception."""
        try:
            return _called(self.function, arguments)
        except InputError:
            raise
        except Exception as problem:
            raise self.raised(problem, place, hint(problem)) from problem

    def raised(self, problem: Exception, place: str, hint: str = "") -> InputError:
        """The error for an exception of the function."""
        return InputError(f"{self.owner} raised {type(problem).__name__} {place}: {_line(problem)}{hint}")

    def numbers(self, value: Any, place: str) -> tuple[float, ...]:
        """Convert its return value to floats; check that they are finite and as many as expected."""
        if type(value) is float and self.count is None and value - value == 0.0:  # the usual answer, without detours
            return (value,)
        try:
            parts = tuple(map(one_number, self.listed(value)))
        except (TypeError, ValueError, OverflowError):
            raise self.refused(self.expected, repr(value), place) from None
        if len(parts) != (self.count or 1):
            raise self.refused(self.expected, str(len(parts)), place)
        if not all(math.isfinite(x) for x in parts):
            raise self.refused("finite numbers", repr(value), place)
        return parts

    def listed(self, value: Any) -> tuple[Any, ...]:
        """Return what it returned as a tuple; TypeError for text, and for collections without an order."""
        return (value,) if self.count is None else in_order(value)

    def fits(self, value: Any) -> bool:
        """Return whether it returned numbers, as many as expected."""
        try:
            parts = self.listed(value)
            count = len(tuple(map(one_number, parts)))
        except (TypeError, ValueError, OverflowError):
            return False
        return count == (self.count or 1) and not any(getattr(x, "ndim", 0) for x in parts)

    def refused(self, expected: str, returned: str, place: str) -> InputError:
        """Build the error for a wrong return value."""
        return InputError(f"{self.owner} must return {expected}; it returned {returned} {place}")

    def traced(self, arguments: Arguments, read: Callable[[Any], Any]) -> Any:
        """Call it with symbols and return `read` of its value."""
        try:
            generic = self.function if isinstance(self.function, Formula) else rebound(self.function, self.owner)
            return read(_called(generic, arguments))
        except InputError:
            raise
        except BranchError as problem:
            why = "it branches on a number"
            raise UntraceableError(f"{self.owner} cannot be compiled: {problem}", why) from problem
        except Exception as problem:
            why = _line(problem)
            raise UntraceableError(
                f"{self.owner} cannot be compiled: {why}; {ALLOWED}", f"it stops: {why}"
            ) from problem


def in_order(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple; TypeError for text, and for collections without an order."""
    if isinstance(value, TEXT | Set | Mapping):
        raise TypeError(f"a {type(value).__name__} is no sequence of numbers")
    return tuple(value)


def one_number(x: Any) -> float:
    """Return a number as a float; TypeError for text, which `float` would read."""
    if isinstance(x, TEXT):
        raise TypeError
    return float(x)


def _called(function: Callable[..., Any], arguments: Arguments) -> Any:
    return function(**arguments) if isinstance(arguments, dict) else function(*arguments)


def _line(problem: Exception) -> str:
    """Message of an exception, on one line."""
    return " ".join(str(problem).split()) or "no message"
