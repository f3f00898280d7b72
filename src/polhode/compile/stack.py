"""The stack of programs begins with a cache line: vectors that do not fit into registers lie there.

The convention of x86 is a stack that begins with a multiple of 16 bytes. LLVM decides on the alignment of the stack
before it knows that vectors will be spilled. Each of them then lies in two cache lines, unless the caller's stack
happens to fit; steps of a Runge-Kutta pair in lanes took 20 % longer.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext

from .kept_memory import CACHE_LINE

IS_X86 = platform.machine() in ("x86_64", "AMD64")

_programs = 0
"""Number of nested compilations of programs; changed only by the thread that holds numba's compiler lock."""


def install() -> None:
    """Change how numba declares functions while a program is compiled, once in a process."""
    context: Any = CPUContext
    if not hasattr(context, "_declares_any_function"):
        context._declares_any_function, context.declare_function = context.declare_function, _declared


def aligned(compiling: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that compiles a program."""

    @functools.wraps(compiling)
    def compile_aligned(*args: Any, **named: Any) -> Any:
        global _programs
        with global_compiler_lock:
            _programs += 1
            try:
                return compiling(*args, **named)
            finally:
                _programs -= 1

    return compile_aligned


def _declared(context: Any, module: Any, descriptor: Any) -> Any:
    """Declare a function; the stack of an inlined one is that of its caller."""
    function = context._declares_any_function(module, descriptor)
    if _programs and IS_X86 and not descriptor.inline:
        function.attributes.alignstack = CACHE_LINE
        function.attributes.add("uwtable")  # without another attribute llvmlite does not write the alignment
    return function
