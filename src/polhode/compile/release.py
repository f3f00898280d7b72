"""Release of memory that compilation leaves behind.

For each program numba compiles every kernel in it and holds the LLVM module, the types and the numba IR of each for
the life of the process. Kernels made for one program, such as a user's torque, are never needed again once that
program is compiled. So from time to time `collect` empties numba's caches: a kernel that is needed again is compiled
again. Nothing is unregistered, and machine code is never freed (MCJIT cannot), so running code in any thread is not
affected.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from llvmlite.binding import ffi, newpassmanagers
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.types import Function
from numba.core.types.containers import BaseTuple
from numba.core.typing.templates import _OverloadFunctionTemplate, builtin_registry

from . import inner_functions

FUNCTIONS = 100
"""Memory is released when this many functions have been compiled since the last release."""

_programs: weakref.WeakSet[Any] = weakref.WeakSet()
_permanent = _held = 0


def repair_pass_managers() -> None:
    """Free LLVM pass managers together with their Python objects.

    In llvmlite 0.50 both classes inherit from `ObjectRef`, whose `_dispose` does nothing, before
    `NewPassManager`, whose `_dispose` frees: 15 to 60 kB leak for each optimised function and module.
    """
    for manager in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        if manager._dispose is ffi.ObjectRef._dispose:
            manager._dispose = newpassmanagers.NewPassManager._dispose


def follow(dispatcher: Any) -> None:
    """Register a program with `collect`; kernels registered with numba before the first one stay compiled."""
    global _permanent
    _permanent = _permanent or len(builtin_registry.globals)
    _programs.add(dispatcher)


def collect(least: int = FUNCTIONS) -> None:
    """Release memory if at least `least` functions have been compiled since the last release.

    Call it between compilations; it does nothing during a compilation in this or another thread.
    """
    lock = global_compiler_lock._lock
    if not lock.acquire(blocking=False):  # the caller may hold a lock that other threads need to run compiled code
        return
    try:
        if not len(cpu_target.typing_context.callstack):
            _collect(cpu_target.target_context.codegen()._engine._ee, least)
    finally:
        lock.release()


def _collect(engine: Any, least: int) -> None:
    global _held
    if _compiled(engine) - _held < least:
        return
    _strip_programs()
    _empty_caches()
    gc.collect()  # dispatchers are parts of cycles
    for module in [module for module in engine._modules if _is_unused(module)]:
        engine.remove_module(module)
        module.close()
    _held = _compiled(engine)


def _compiled(engine: Any) -> int:
    """Programs and other functions in LLVM's engine, and kernels compiled so far."""
    return len(engine._modules) + inner_functions.made


def _is_unused(module: Any) -> bool:
    """True if the library of an LLVM module is gone; only its machine code can still be in use."""
    library = getattr(module, "_CPUCodeLibrary__library", None)  # a weak proxy, set by numba
    try:
        return library is not None and not library.name
    except ReferenceError:
        return True


def _strip_programs() -> None:
    """Reduce all programs; in a function of its own, so that no variable holds a program when cycles are collected."""
    for program in list(_programs):
        _strip(program)


def _strip(program: Any) -> None:
    """Reduce a compiled program to the parts needed to run it and to show its code.

    It holds the libraries of its kernels but not their environments, to which its code points.
    """
    for signature, result in list(program.overloads.items()):
        library = result.library
        library._linking_libraries, library._shared_module = [], None
        if not result.referenced_envs:
            names = [variable.name for variable in library._final_module.global_variables]
            found = [environment for environment in map(lookup_environment, names) if environment is not None]
            result = result._replace(referenced_envs=found)
        program.overloads[signature] = result._replace(type_annotation="", metadata=None)


def _templates() -> Iterator[tuple[int, Any, Any, Any]]:
    """Registry index, function, type and template of everything registered with `overload`."""
    for place, (function, kind) in enumerate(builtin_registry.globals):
        if isinstance(kind, Function):
            for template in kind.templates:
                if _OverloadFunctionTemplate in template.__mro__:  # issubclass would bloat the caches of abc
                    yield place, function, kind, template


def _is_made(function: Any) -> bool:
    """True for a function made at run time: inside another function, or from source text."""
    return isinstance(function, FunctionType) and (
        "<locals>" in function.__qualname__ or "__name__" not in function.__globals__
    )


def _empty_caches() -> None:
    """Drop the compiled forms of kernels made for programs, and of kernels that take such a kernel as an argument."""
    made = {kind for place, function, kind, _ in _templates() if place >= _permanent and _is_made(function)}

    def concerned(found: Any) -> bool:
        return any(map(concerned, found)) if isinstance(found, (tuple, BaseTuple)) else found in made

    for _, _, kind, template in _templates():
        for key in [key for key in template._impl_cache if kind in made or concerned(key[1])]:
            dispatcher, _ = template._impl_cache[key]
            if dispatcher is None or dispatcher.targetctx is cpu_target.target_context:
                del template._impl_cache[key]
        for store in (template._compiled_overloads, kind._impl_keys):
            for key in [key for key in store if kind in made or concerned(key)]:
                del store[key]
