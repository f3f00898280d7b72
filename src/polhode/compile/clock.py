"""Run times without compilation: the time a thread spends compiling or loading compiled code is counted separately.

numba compiles a function when it is first called with given argument types, so during a run. Each thread counts its
own seconds, including those in which it waits for another thread that compiles the same function.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from .notice import FORGOTTEN, announced

_OF_THREAD = threading.local()


def compile_seconds() -> float:
    """Seconds that this thread has spent compiling and loading so far."""
    return float(getattr(_OF_THREAD, "seconds", 0.0))


def counted(compiling: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its time counts as compilation."""

    @functools.wraps(compiling)
    def count(*args: Any, **named: Any) -> Any:
        began, before = time.perf_counter(), compile_seconds()
        try:
            return compiling(*args, **named)
        finally:
            _OF_THREAD.seconds = before + time.perf_counter() - began  # nested compilations are counted once

    return count


class Stopwatch:
    """Time since its creation, on the creating thread: `seconds` of work, and `compile_seconds` of compilation."""

    def __init__(self) -> None:
        self._began, self._before = time.perf_counter(), compile_seconds()

    @property
    def compile_seconds(self) -> float:
        """Seconds spent compiling and loading."""
        return compile_seconds() - self._before

    @property
    def seconds(self) -> float:
        """Seconds spent on everything else."""
        return time.perf_counter() - self._began - self.compile_seconds


def jitted(cuda: Any, function: Callable[..., Any]) -> Any:
    """Return a function as a kernel of numba-cuda, whose compilation is counted."""
    made = cuda.jit(function)
    if hasattr(made, "compile"):  # numba's simulator has nothing to compile
        made.compile = counted(announced(made.compile, FORGOTTEN))
    return made
