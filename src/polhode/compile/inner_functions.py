"""Kernels that only compiled code calls: numba links them into programs and makes no machine code for them alone.

numba generates machine code for each function that it compiles. A program is linked from the LLVM code of about a
hundred kernels, which are inlined, so the machine code of a kernel by itself is never executed. To generate it took a
third of the compile time. The LLVM code of a program, and with it each bit of a result, remains the same.
"""

from __future__ import annotations

import types
from typing import Any

from numba import _dynfunc
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack

made = 0
"""Number of such kernels compiled so far in this process."""


def install() -> None:
    """Change how numba's CPU target completes a function; other targets are not affected."""
    context = cpu_target.target_context
    if not hasattr(context, "_completes_programs"):
        context._completes_programs = context.get_executable
        context.get_executable = types.MethodType(_executable, context)


def _executable(context: Any, library: Any, descriptor: Any, environment: Any) -> Any:
    """Complete a function: generate machine code, unless only compiled code can call it."""
    flags = ConfigStack.top_or_none()  # none: the function comes from the disk cache
    if flags is not None and flags.no_cpython_wrapper and flags.no_cfunc_wrapper:
        return _linkable(library, descriptor, environment)
    function = context._completes_programs(library, descriptor, environment)
    _set_environments(library)
    return function


def _linkable(library: Any, descriptor: Any, environment: Any) -> Any:
    """Complete a function for linking; what is returned has no address, as no wrapper for Python exists."""
    global made
    made += 1
    library._finalize_final_module = types.MethodType(_finished, library)
    library._ensure_finalized()
    name = descriptor.qualname.split(".")[-1]
    return _dynfunc.make_function(descriptor.lookup_module(), name, "", 0, environment, (library,))


def _finished(library: Any) -> None:
    """Finish a library that is linked and optimised, without giving it to LLVM's engine."""
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True


def _set_environments(library: Any) -> None:
    """Tell a program where the environments of its kernels are (objects that numba needs to raise exceptions)."""
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        if environment is not None:
            library.codegen.set_env(variable.name, environment)
