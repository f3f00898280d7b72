"""Numba as a compile target: registration of primitives, kernels and overloads, and compile options."""

from __future__ import annotations

import contextlib
import importlib
import math
import threading
import types
from collections.abc import Callable
from typing import Any

import numba
from numba.core.target_extension import current_target
from numba.extending import overload, register_jitable

from ..numbers import dispatch, double_double, primitives
from ..numbers.dispatch import KERNELS, NO_FMA, NOINLINE, OVERLOADS, USER_CODE
from ..numbers.primitives import FUNCTIONS
from . import front_end, inner_functions, release, stack
from .fingerprint import UnknownContent, fingerprint
from .simd import convolution, dual, functions, lanewise, rough, rows, vector_types, words, workspace  # noqa: F401 - lanewise: registered

OPTIONS = {"error_model": "numpy", "nogil": True, "fastmath": {"contract"}}
"""`contract` allows fused multiply-adds, except in the kernels of `NO_FMA`."""

INNER = {**OPTIONS, "forceinline": True, "no_cfunc_wrapper": True}
"""For kernels called only by compiled code, which need no wrapper for calls from C (`inner_functions`)."""

BORROWING = {**INNER, "_nrt": False}
"""For such kernels that read and write arrays of their caller, make none and return none: references are not counted.

numba counts them wherever a function takes an array, and does not always find out that it need not. A count is an
atomic operation. On an array that all threads share it takes as long as several steps of a body.
"""


# --- registration of primitives and kernels ---------------------------------------------------------


def _elementary(name: str) -> None:
    """Register an elementary function with numba: the math module's for doubles, the vector one for lanes."""
    number = getattr(math, "pow" if name == "power" else name)
    vector = functions.FUNCTIONS.get(name, number)
    two = name in ("atan2", "power")

    def one_argument(x: Any) -> Any:
        if dispatch.has_tangents(x):
            return dual.function(name, x)
        real = vector if isinstance(x, vector_types.Lanes) else number
        return lambda x: real(x)

    def two_arguments(x: Any, y: Any) -> Any:
        if dispatch.has_tangents((x, y)):
            return dual.function(name, x, y)
        real = vector if isinstance(x, vector_types.Lanes) or isinstance(y, vector_types.Lanes) else number
        return lambda x, y: real(x, y)

    overload(getattr(primitives, name), strict=False, jit_options=INNER)(two_arguments if two else one_argument)


def _sincos(x: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x: functions.sincos(x)
    if dispatch.has_tangents(x):
        return _sincos_of_dual
    if current_target() == "cuda":
        both = importlib.import_module("numba.cuda.libdevice").sincos  # one range reduction for both
        return lambda x: both(x)
    return lambda x: (math.sin(x), math.cos(x))


def _sincos_of_dual(x: Any) -> Any:
    s, c = primitives.sincos(dual.value_of(x))
    return dual.chained(s, c, x), dual.chained(c, -s, x)


def _where(condition: Any, yes: Any, no: Any) -> Any:
    if dispatch.has_tangents((yes, no)):
        return lambda condition, yes, no: dual.select(condition, yes, no)
    if isinstance(condition, vector_types.Mask):
        return lambda condition, yes, no: vector_types.select(condition, yes, no)
    return lambda condition, yes, no: yes if condition else no


def _bracket(x: Any, knots: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x, knots: functions.bracket(x, knots)
    if dispatch.has_tangents(x):
        return lambda x, knots: primitives.bracket(dual.value_of(x), knots)
    return lambda x, knots: functions.searched(x, knots)


def _take(index: Any, column: Any) -> Any:
    if isinstance(index, vector_types.Lanes):
        return lambda index, column: functions.take(index, column)
    return lambda index, column: column[index]


def _all_lanes(condition: Any) -> Any:
    if isinstance(condition, vector_types.Mask):
        return lambda condition: vector_types.everywhere(condition)
    return lambda condition: condition


def _product_error(a: Any, b: Any, p: Any) -> Any:
    if dispatch.has_tangents((a, b, p)) or current_target() == "cuda":
        return lambda a, b, p: double_double.dekker(a, b, p)
    return lambda a, b, p: vector_types.fused(a, b, -p)


def _to_float32(x: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x: vector_types.to_float32(x)
    return lambda x: x


def _to_float64(x: Any) -> Any:
    if isinstance(x, vector_types.Singles):
        return lambda x: vector_types.to_float64(x)
    return lambda x: x


def _rough_log2(x: Any) -> Any:
    if isinstance(x, vector_types.Singles):
        return lambda x: vector_types.rough_log2(x)
    if current_target() == "cuda":
        single = importlib.import_module("numba.cuda.libdevice").fast_log2f
        return lambda x: float(single(numba.float32(max(x, 1e-37))))
    return lambda x: rough.rough_log2(x)


def _rough_exp2(x: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x: functions.rough_exp2(x)
    if current_target() == "cuda":
        single = importlib.import_module("numba.cuda.libdevice").exp2f
        return lambda x: float(single(numba.float32(x)))
    return lambda x: rough.rough_exp2(x)


def _rough_power(x: Any, exponent: Any) -> Any:
    if current_target() == "cuda":
        single = importlib.import_module("numba.cuda.libdevice").fast_powf
        return lambda x, exponent: float(single(numba.float32(x), numba.float32(exponent)))
    return primitives.rough_power


def _has_fast_powers(x: Any) -> Any:
    if current_target() == "cuda":
        return lambda x: True
    return lambda x: False


def _absent(force: Any) -> Any:
    if isinstance(force[0], numba.types.Integer):
        return lambda force: True
    return lambda force: False


def _teach_primitives() -> None:
    dispatch.register_whole(numba.types.Integer)
    for name in FUNCTIONS:
        _elementary(name)
    for function, made in (
        (primitives.sincos, _sincos),
        (primitives.where, _where),
        (primitives.bracket, _bracket),
        (primitives.take, _take),
        (primitives.all_lanes, _all_lanes),
        (double_double.product_error, _product_error),
        (primitives.absent, _absent),
        (primitives.to_float32, _to_float32),
        (primitives.to_float64, _to_float64),
        (primitives.rough_log2, _rough_log2),
        (primitives.rough_exp2, _rough_exp2),
        (primitives.rough_power, _rough_power),
        (primitives.has_fast_powers, _has_fast_powers),
    ):
        overload(function, strict=False, jit_options=INNER)(made)
    workspace.teach(INNER)
    rows.teach(INNER)
    convolution.teach(INNER)
    words.teach(INNER)
    dual.teach(INNER)
    overload(primitives.epsilon, jit_options=INNER)(lambda x: lambda x: 2.220446049250313e-16)
    overload(primitives.pi_pair, jit_options=INNER)(lambda x: lambda x: (3.141592653589793, 1.2246467991473532e-16))
    overload(primitives.finite, jit_options=INNER)(lambda x: lambda x: x - x == 0)


release.repair_pass_managers()
inner_functions.install()
front_end.install()
stack.install()

_taught = 0
_overloads_taught = 0
_teaching = threading.Lock()


def _unlike(function: Callable[..., Any]) -> dict[str, Any]:
    """Options of a kernel that differ from those of others."""
    if function in NO_FMA:
        return {"fastmath": False}
    if function in USER_CODE:  # an index out of range is an error, as in Python, and it may make arrays
        return {"forceinline": False, "boundscheck": True, "_nrt": True}
    return {"forceinline": False} if function in NOINLINE else {}


def _register(function: Any) -> None:
    """Make a kernel callable from compiled code."""
    options = INNER | _unlike(function)
    if function in NOINLINE or function in USER_CODE:
        copy = named_by_content(function)
        overload(function, strict=False, jit_options=options)(lambda *args, **named: copy)
    else:
        register_jitable(**options)(function)


def named_by_content(function: Any) -> Any:
    """Return a copy of a kernel whose name contains its content.

    Code from the disk cache is linked by names, which numba makes different within a process only: two kernels that are
    called, not inlined, could have one name if two processes compiled them, and be taken for each other. Code with
    content that is not known is not kept on disk.
    """
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, function.__module__
    with contextlib.suppress(UnknownContent):
        copy.__qualname__ = f"{function.__qualname__}_{fingerprint(function)[:32]}"
    return copy


def teach() -> None:
    """Make every kernel and overload defined so far callable from compiled code."""
    global _taught, _overloads_taught
    with _teaching:
        if _taught == 0:
            _teach_primitives()
        for function in KERNELS[_taught:]:
            _register(function)
            _taught += 1
        for overloaded_function, choice in OVERLOADS[_overloads_taught:]:
            overload(overloaded_function, strict=False, jit_options=INNER)(choice)
            _overloads_taught += 1


# --- compiling --------------------------------------------------------------------------------------


def processor() -> str:
    """The processor that code is compiled for."""
    name: str = numba.config.CPU_NAME or importlib.import_module("llvmlite.binding").get_host_cpu_name()
    return name


def jitted(function: Callable[..., Any]) -> Any:
    """The dispatcher that compiles a function when it is called; see `program` for a cached one."""
    release.collect()
    teach()
    dispatcher = numba.njit(**OPTIONS)(function)
    release.follow(dispatcher)
    return dispatcher
