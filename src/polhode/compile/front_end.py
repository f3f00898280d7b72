"""Shortcuts in numba's front end: the same types and the same LLVM code in less time.

Most of the time of a first call is numba's own Python code, which types and lowers each kernel statement by statement.
Some of its answers are computed thousands of times although they cannot differ:

- the type of a sum, product or comparison of numbers, for which numba asks the rules of NumPy's functions as well;
- whether two sets of compile options are equal, which numba compares option by option even if they are one object;
- which variables a statement names, for which numba searches all attributes of the statement;
- whether a function that writes LLVM code takes a location, for which numba asks the module `inspect`;
- whether SciPy's BLAS exists, which numba finds out by importing `scipy.linalg` even if no function needs it.

Others serve nobody while a program of this library is compiled (`quickly`): the events around each pass and each call
of LLVM, which numba only adds up to times, and the variables that are alive at the start of each block, which only
generators and object mode need. Python's collector of cycles pauses meanwhile: nearly all objects of a compilation live
until its end, so each search among them is in vain. Afterwards they count as old, or the next search among new objects
would look at all of them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from llvmlite.binding import ffi
from numba.core import base, ir, transforms, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, pass_timings
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction

from .simd.vector_types import Mask, Vector

OPERATORS = frozenset(
    getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "neg", "pos", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_",
        "iadd", "isub", "imul", "itruediv", "iand", "ior",
    )
)  # fmt: skip
"""Operators whose type is remembered for numbers and vectors."""

NUMBERS = (types.Float, types.Integer, types.Boolean, Vector, Mask)


def install() -> None:
    """Install the shortcuts, once in a process."""
    if hasattr(BaseFunction, "_types_any_call"):
        return
    function: Any = BaseFunction
    function._types_any_call, function.get_call_type = function.get_call_type, _call_type
    options: Any = TargetConfig
    options.__eq__, options.__hash__ = _are_equal_options(options.__eq__), _hash_of_options
    passes: Any = PassManager
    passes._runs_any_pass, passes._runPass = passes._runPass, _run_pass
    lifetimes: Any = PostProcessor
    lifetimes._finds_all, lifetimes.run = lifetimes.run, _find_lifetimes
    statements: Any = ir.Inst
    statements._rec_list_vars = _variables
    lowering: Any = base
    lowering._has_loc = _takes_location
    _find_blas_later()


def _call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call; that of an operator on numbers is kept with the function's type.

    numba makes a new type for a function that gets a further overload, so what is kept never becomes wrong.
    """
    if kws or function.typing_key not in OPERATORS or not all(isinstance(x, NUMBERS) for x in args):
        return function._types_any_call(context, args, kws)
    kept = function.__dict__.setdefault("_types_of_numbers", {})
    key = context, args
    if key not in kept:
        kept[key] = function._types_any_call(context, args, kws)
    return kept[key]


def _are_equal_options(compared: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def are_equal(one: Any, other: Any) -> Any:
        if one is other or (type(one) is type(other) and one._values == other._values):
            return True
        return compared(one, other)

    return are_equal


def _hash_of_options(options: Any) -> int:
    """Return a hash; numba's is the hash of the names of all options, so it too depends on the class alone."""
    return hash(type(options))


def _variables(statement: Any, value: Any) -> list[Any]:
    """Return the variables in an attribute of a statement."""
    found: list[Any] = []
    _add_variables((value,), found)
    return found


def _add_variables(values: Iterable[Any], found: list[Any]) -> None:
    for value in values:
        of: Any = type(value)
        kind = _kind(of)
        if kind is ir.Var:
            found.append(value)
        elif kind is dict:
            _add_variables(value.values(), found)
        elif kind is list:
            _add_variables(value, found)
        elif kind is ir.Inst:
            found += value.list_vars()


@functools.cache
def _kind(of: Any) -> Any:
    """Return which kind of parts an object of a class has; None if it has no variables."""
    for kind, classes in ((ir.Var, ir.Var), (ir.Inst, ir.Inst), (list, (list, tuple)), (dict, dict)):
        if issubclass(of, classes):
            return kind
    return None


def _takes_location(function: Any) -> bool:
    """Return whether a function has a parameter `loc`."""
    if type(function) is not FunctionType or function.__dict__.keys() & {"__wrapped__", "__signature__"}:
        return "loc" in inspect.signature(function).parameters
    code = function.__code__
    star = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return "loc" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + star]


def _find_blas_later() -> None:
    """Import numba's functions of arrays without `scipy.linalg`: where one needs BLAS, numba looks for it again."""
    if importlib.util.find_spec("scipy") is None:
        return
    linalg: Any = importlib.import_module("numba.np.linalg")
    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        functions: Any = importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look
    functions.ensure_blas = look


# --- while a program is compiled --------------------------------------------------------------------


_quick = 0
"""Number of nested compilations of programs; changed only by the thread that holds numba's compiler lock."""

_NOT_TIMED = pass_timings(0.0, 0.0, 0.0)


def quickly(compiling: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that compiles."""

    @functools.wraps(compiling)
    def compile_quickly(*args: Any, **named: Any) -> Any:
        global _quick
        with global_compiler_lock, _paused_collector(), _silent_llvm():
            _quick += 1
            try:
                return compiling(*args, **named)
            finally:
                _quick -= 1

    return compile_quickly


@contextlib.contextmanager
def _paused_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Move all objects to the oldest generation, without a search among them, unless the user has frozen some."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


@contextlib.contextmanager
def _silent_llvm() -> Iterator[None]:
    """Send no events when LLVM's lock is taken and given back; numba only adds up their times."""
    lock = ffi.lib._lock
    told, lock._cblist = lock._cblist, []
    try:
        yield
    finally:
        lock._cblist = told


def _run_pass(manager: Any, index: int, step: Any, state: Any) -> None:
    """Run one pass, without events, timers and prints around it."""
    if not _quick:
        manager._runs_any_pass(index, step, state)
        return
    step.analysis = manager._analysis
    step.run_initialization(state)
    step.run_pass(state)
    step.run_finalizer(state)
    manager.exec_times[f"{index}_{step.name()}"] = _NOT_TIMED


def _find_lifetimes(found: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Find the lifetimes of variables, and mark their ends (`emit_dels`); lifetimes are computed when they are used."""
    code = found.func_ir
    if not _quick or code.is_generator:
        found._finds_all(emit_dels, extend_lifetimes)
        return
    code.blocks = transforms.canonicalize_cfg(code.blocks)
    code.variable_lifetime, code.generator_info = VariableLifetime(code.blocks), None
    if emit_dels:
        found._insert_var_dels(extend_lifetimes=extend_lifetimes)
