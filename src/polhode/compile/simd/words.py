"""Vectors of 64-bit integers, for random numbers in lanes: sums, products, shifts and logic, modulo 2^64."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from ...numbers import primitives
from .vector_types import _VECTOR, _WORDS, Lanes, Vector, lanes


class Words(Vector):
    """The type of a vector of integers."""

    single = types.int64


words = Words()


@register_model(Words)
class _WordsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORDS)


OPERATORS = {
    operator.add: "add", operator.mul: "mul", operator.and_: "and_", operator.xor: "xor", operator.lshift: "shl",
    operator.rshift: "lshr",
}  # fmt: skip
"""Operators with their LLVM instructions. A shift to the right brings in zeros."""


def _operator(function: Any, instruction: str) -> None:
    """Register an operator on vectors of integers, or on one and an integer."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            fits = len(args) == 2 and all(isinstance(a, (Words, types.Integer)) for a in args)
            return signature(words, words, words) if fits and any(isinstance(a, Words) for a in args) else None

    infer_global(function)(Template)
    lower_builtin(function, Words, Words)(
        lambda context, builder, sig, args: getattr(builder, instruction)(args[0], args[1])
    )


for _function, _instruction in OPERATORS.items():
    _operator(_function, _instruction)


@intrinsic
def whole_lanes(typingctx: Any, x: Any) -> Any:
    """Doubles without their fractions, as integers."""
    return words(lanes), lambda context, builder, sig, args: builder.fptosi(args[0], _WORDS)


@intrinsic
def number_lanes(typingctx: Any, n: Any) -> Any:
    """Integers as doubles."""
    return lanes(words), lambda context, builder, sig, args: builder.sitofp(args[0], _VECTOR)


def _whole(x: Any) -> Any:
    return (lambda x: whole_lanes(x)) if isinstance(x, Lanes) else lambda x: int(x)


def _as_number(n: Any) -> Any:
    return (lambda n: number_lanes(n)) if isinstance(n, Words) else lambda n: float(n)


def teach(options: Any) -> None:
    """Register the conversions with numba."""
    overload(primitives.whole, strict=False, jit_options=options)(_whole)
    overload(primitives.as_number, strict=False, jit_options=options)(_as_number)
