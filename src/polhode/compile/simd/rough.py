"""Rough logarithms and powers of a double from its bits, for step lengths: the library's functions take far longer."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, register_jitable

from .functions import EXP2_NEAR_ZERO, OPTIONS, ROUND

_WORD, _NUMBER = ir.IntType(64), ir.DoubleType()
_FRACTION, _BIAS = 52, 1023
"""Bits of the fraction of a double, and what is added to its exponent."""


@intrinsic
def rough_log2(typingctx: Any, x: Any) -> Any:
    """log2 of a positive double from its bits: exponent plus fraction; error at most 0.04."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.sitofp(builder.bitcast(args[0], _WORD), _NUMBER)
        scaled = builder.fmul(bits, ir.Constant(_NUMBER, 2.0**-_FRACTION))
        return builder.fsub(scaled, ir.Constant(_NUMBER, _BIAS - 0.0430357))

    return types.float64(types.float64), make


@intrinsic
def _power_of_two(typingctx: Any, n: Any) -> Any:
    """2^n for whole numbers of moderate size."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        biased = builder.add(builder.fptosi(args[0], _WORD), ir.Constant(_WORD, _BIAS))
        return builder.bitcast(builder.shl(biased, ir.Constant(_WORD, _FRACTION)), _NUMBER)

    return types.float64(types.float64), make


@register_jitable(**OPTIONS)
def rough_exp2(x: Any) -> Any:
    """2^x to one part in a thousand, |x| < 1000."""
    near = (x + ROUND) - ROUND
    return _power_of_two(near) * EXP2_NEAR_ZERO(x - near)
