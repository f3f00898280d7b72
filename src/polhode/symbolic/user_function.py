"""A function that a user wrote: called once with plain numbers, then traced into formulas.

The call comes first, so that mistakes are ordinary Python errors. Each is told in one sentence that begins with what
the function is: "the torque drag raised KeyError at the start (t = 0): 'z'".
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from .expression import BranchError
from .tracing import RUBBER, UntraceableError, rebound

Arguments = tuple[Any, ...] | dict[str, Any]
"""What a function is called with: by position, or by name."""


def plain_function(function: Any, expected: str) -> Any:
    """The function, if it is a plain Python function; `expected` is the beginning of the message if it is not."""
    if not isinstance(function, types.FunctionType):
        raise InputError(f"{expected}; got {type(function).__name__}")
    return function


@dataclasses.dataclass(frozen=True)
class UserFunction:
    """A plain Python function, and what messages call it ("the torque drag")."""

    function: Callable[..., Any]
    owner: str
    count: int | None = None
    """How many numbers it returns; None for a single one, which is not in a sequence."""

    @property
    def expected(self) -> str:
        """What it must return."""
        return {None: "one number", 3: "three numbers"}.get(self.count, f"{self.count} numbers")

    def positional(self, expected: str, most: int) -> int:
        """How many arguments it must be given by position: at least 1, and at most so many."""
        signature = inspect.signature(self.function)
        parameters = signature.parameters.values()
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = [p for p in plain if p.default is p.empty]
        if len(plain) != len(parameters) or not 1 <= len(needed) <= most:
            raise InputError(f"{self.owner} must be {expected}; it takes {signature}")
        return len(needed)

    def value(self, given: Arguments, place: str, hint: Callable[[Exception], str] = lambda problem: "") -> Any:
        """What it returns for plain numbers; `place` and `hint` end the message if it raises an exception."""
        try:
            return _called(self.function, given)
        except InputError:
            raise
        except Exception as problem:
            raise self.raised(problem, place, hint(problem)) from problem

    def raised(self, problem: Exception, place: str, hint: str = "") -> InputError:
        """The error for an exception of the function."""
        return InputError(f"{self.owner} raised {type(problem).__name__} {place}: {_line(problem)}{hint}")

    def numbers(self, value: Any, place: str) -> tuple[float, ...]:
        """What it returned, as floats, if these are as many as expected, and finite."""
        try:
            parts = tuple(float(x) for x in ((value,) if self.count is None else value))
        except (TypeError, ValueError, OverflowError):
            raise self.refused(self.expected, repr(value), place) from None
        if len(parts) != (self.count or 1):
            raise self.refused(self.expected, str(len(parts)), place)
        if not all(math.isfinite(x) for x in parts):
            raise self.refused("finite numbers", repr(value), place)
        return parts

    def refused(self, expected: str, returned: str, place: str) -> InputError:
        """The error for something else than what it must return."""
        return InputError(f"{self.owner} must return {expected}; it returned {returned} {place}")

    def traced(self, given: Arguments, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of its value on symbols."""
        try:
            return read(_called(rebound(self.function, self.owner), given))
        except InputError:
            raise
        except BranchError as problem:
            why = "it branches on a number"
            raise UntraceableError(f"{self.owner} cannot be compiled: {problem}", why) from problem
        except Exception as problem:
            why = _line(problem)
            raise UntraceableError(f"{self.owner} cannot be compiled: {why}; {RUBBER}", f"it stops: {why}") from problem


def _called(function: Callable[..., Any], given: Arguments) -> Any:
    return function(**given) if isinstance(given, dict) else function(*given)


def _line(problem: Exception) -> str:
    """What an exception says, on one line."""
    return " ".join(str(problem).split()) or "no message"
