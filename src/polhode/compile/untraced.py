"""Torques that are not formulas: try to compile them unchanged, and check that the values agree."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numba

from ..errors import InputError, SpeedWarning
from ..physics.fields.untraced import COMPILED, Untraced
from .fingerprint import UnknownContent
from .program import compiled

SAME = 1e-9
"""Allowed relative difference between compiled and plain values, due to round-off."""

TIMED = 3
"""Number of calls that are timed."""

LONGEST = 160
"""Most characters of a compiler message that are shown."""

Point = tuple[float, ...]

_lock = threading.RLock()


def decide(function: Untraced, points: Sequence[Point]) -> None:
    """Decide, once, how a function is evaluated, from its values at some points, of which the first is the start.

    It is compiled unchanged if the compiler accepts it and its values agree with plain Python. Otherwise it is called
    as plain Python, with a warning.
    """
    with _lock:
        if function.mode:
            return
        function.run, fault = _tried(function, points)
        if function.run is not None:
            function.mode = COMPILED
            return
        function.call_as_python(fault)
        _warn(function, points[0])


def _tried(function: Untraced, points: Sequence[Point]) -> tuple[Callable[..., Any] | None, str]:
    """Return the compiled function if it compiles and its values are right, else None; with the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compiler warnings about speed
            run = compiled(function.scalar()).run
            values = [run(*point) for point in points]
    except UnknownContent:
        return None, "it uses objects that compiled code cannot hold"
    except numba.core.errors.NumbaError as problem:
        return None, f"numba cannot compile it: {_line(problem)}"
    except Exception as problem:  # a compiler may fail in any way
        return None, f"numba cannot compile it: {type(problem).__name__} {_line(problem)}"
    for point, value in zip(points, values, strict=True):
        if not _agrees(function, point, value):
            return None, "compiled, it has other values"
    return run, ""


def _agrees(function: Untraced, point: Point, value: Sequence[float]) -> bool:
    """True if the value agrees with plain Python; it must not be finite if plain Python raises an exception."""
    try:
        expected = function.plain(*point)
    except InputError:
        return not all(map(math.isfinite, value))
    size = max(map(abs, expected))
    return all(abs(a - b) <= SAME * size for a, b in zip(expected, value, strict=True))


def _line(problem: Exception) -> str:
    """Innermost cause in a compiler message, on one line."""
    lines = [line.strip() for line in str(problem).splitlines()]
    useful = [x for x in lines if x and not x.startswith(NOISE)]
    after = [i for i, x in enumerate(lines) if x.startswith(CAUSE)]
    inner = [x for x in lines[after[-1] + 1 :] if x and not x.startswith(NOISE)] if after else useful
    text = (inner or useful or [type(problem).__name__])[0]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


CAUSE = "Rejected as the implementation raised a specific error"
NOISE = ("TypingError: Failed", "LoweringError: Failed", "Failed in", "File", "During", "-", "^", ">>>", "<source")
"""Starts of lines in a compiler message: the line before the innermost cause, and lines that name no cause."""


def _warn(function: Untraced, point: Point) -> None:
    """Warn that a function is called as plain Python."""
    spent = []
    for _ in range(TIMED):
        began = time.perf_counter()
        function.plain(*point)
        spent.append(time.perf_counter() - began)
    warnings.warn(
        f"{function.user.owner} is called as plain Python, about {1e6 * min(spent):.2g} us a call, because "
        f"{function.reason} and {function.why_python}; a formula (ph.math, ph.where) or a function that numba compiles "
        f"is hundreds of times faster",
        SpeedWarning,
        stacklevel=2,
    )
