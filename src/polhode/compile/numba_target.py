"""How numba compiles kernels: what it is taught about primitives, kernels and forks."""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable
from typing import Any

import numba
from numba.core.target_extension import current_target
from numba.extending import overload, register_jitable

from ..numbers import dispatch, double_double, primitives
from ..numbers.dispatch import APART, FORKS, KERNELS, UNFUSED
from ..numbers.primitives import FUNCTIONS
from . import release
from .simd import dual, functions, rows, vector_types, workspace

OPTIONS = {"error_model": "numpy", "nogil": True, "fastmath": {"contract"}}
"""`contract` lets a product and a sum be rounded once (a fused multiply-add), except in the kernels of `UNFUSED`."""

INNER = {**OPTIONS, "forceinline": True, "no_cfunc_wrapper": True}
"""For kernels called by compiled code only: a wrapper for calls from C would take a quarter of the compile time."""


# --- primitives and kernels become known to numba ---------------------------------------------------


def _elementary(name: str) -> None:
    """Teach numba one function of `scalar`: the same name in the math module, or that for lanes."""
    number = getattr(math, "pow" if name == "power" else name)
    vector = functions.FUNCTIONS.get(name, number)
    two = name in ("atan2", "power")

    def one_argument(x: Any) -> Any:
        if dispatch.sloped(x):
            return dual.function(name, x)
        real = vector if isinstance(x, vector_types.Lanes) else number
        return lambda x: real(x)

    def two_arguments(x: Any, y: Any) -> Any:
        if dispatch.sloped((x, y)):
            return dual.function(name, x, y)
        real = vector if isinstance(x, vector_types.Lanes) or isinstance(y, vector_types.Lanes) else number
        return lambda x, y: real(x, y)

    overload(getattr(primitives, name), strict=False, jit_options=INNER)(two_arguments if two else one_argument)


def _sincos(x: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x: functions.sincos(x)
    if dispatch.sloped(x):
        return lambda x: (primitives.sin(x), primitives.cos(x))
    if current_target() == "cuda":
        both = importlib.import_module("numba.cuda.libdevice").sincos  # one reduction of the angle for the two
        return lambda x: both(x)
    return lambda x: (math.sin(x), math.cos(x))


def _where(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, vector_types.Mask):
        return lambda condition, yes, no: vector_types.select(condition, yes, no)
    if dispatch.sloped((yes, no)):
        return lambda condition, yes, no: dual.select(condition, yes, no)
    return lambda condition, yes, no: yes if condition else no


def _piece(x: Any, knots: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x, knots: functions.piece(x, knots)
    if dispatch.sloped(x):
        return lambda x, knots: functions.searched(dual.value_of(x), knots)
    return lambda x, knots: functions.searched(x, knots)


def _entry(index: Any, column: Any) -> Any:
    if isinstance(index, vector_types.Lanes):
        return lambda index, column: functions.entry(index, column)
    return lambda index, column: column[index]


def _settled(condition: Any) -> Any:
    if isinstance(condition, vector_types.Mask):
        return lambda condition: vector_types.everywhere(condition)
    return lambda condition: condition


def _lost(a: Any, b: Any, p: Any) -> Any:
    if dispatch.sloped((a, b, p)) or current_target() == "cuda":
        return lambda a, b, p: double_double.dekker(a, b, p)
    return lambda a, b, p: vector_types.fused(a, b, -p)


def _narrow(x: Any) -> Any:
    if isinstance(x, vector_types.Lanes):
        return lambda x: vector_types.narrow(x)
    return lambda x: x


def _widen(x: Any) -> Any:
    if isinstance(x, vector_types.Singles):
        return lambda x: vector_types.widen(x)
    return lambda x: x


def _rough_log2(x: Any) -> Any:
    return (lambda x: vector_types.rough_log2(x)) if isinstance(x, vector_types.Singles) else None


def _rough_exp2(x: Any) -> Any:
    return (lambda x: functions.rough_exp2(x)) if isinstance(x, vector_types.Lanes) else None


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
        (primitives.piece, _piece),
        (primitives.entry, _entry),
        (primitives.settled, _settled),
        (double_double.lost, _lost),
        (primitives.absent, _absent),
        (primitives.narrow, _narrow),
        (primitives.widen, _widen),
        (primitives.rough_log2, _rough_log2),
        (primitives.rough_exp2, _rough_exp2),
    ):
        overload(function, strict=False, jit_options=INNER)(made)
    workspace.teach(INNER)
    rows.teach(INNER)
    dual.teach(INNER)
    overload(primitives.epsilon, jit_options=INNER)(lambda x: lambda x: 2.220446049250313e-16)
    overload(primitives.circle, jit_options=INNER)(lambda x: lambda x: (3.141592653589793, 1.2246467991473532e-16))
    overload(primitives.finite, jit_options=INNER)(lambda x: lambda x: x - x == 0)


release.repair_pass_managers()

_taught = 0
_forks_taught = 0
_teaching = threading.Lock()


def teach() -> None:
    """Make every kernel and fork defined so far callable from compiled code."""
    global _taught, _forks_taught
    with _teaching:
        if _taught == 0:
            _teach_primitives()
        for function in KERNELS[_taught:]:
            unlike = {"fastmath": False} if function in UNFUSED else {"forceinline": False} if function in APART else {}
            register_jitable(**INNER | unlike)(function)
            _taught += 1
        for forked, choice in FORKS[_forks_taught:]:
            overload(forked, strict=False, jit_options=INNER)(choice)
            _forks_taught += 1


# --- compiling --------------------------------------------------------------------------------------


def processor() -> str:
    """What compiled code is made for."""
    name: str = numba.config.CPU_NAME or importlib.import_module("llvmlite.binding").get_host_cpu_name()
    return name


def jitted(function: Callable[..., Any]) -> Any:
    """The dispatcher that compiles a function when it is called; see `program` for one that is kept."""
    release.collect()
    teach()
    dispatcher = numba.njit(**OPTIONS)(function)
    release.follow(dispatcher)
    return dispatcher
