"""Weighted sums of rows of numbers in compiled code: the primitive `combined` for rows of doubles.

A row is put into one vector, so that one instruction multiplies all its numbers by a weight and adds them. If rows are
combined repeatedly, the compiler keeps them in vector registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.target_extension import current_target
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic, overload

from ...numbers import primitives
from .vector_types import Lanes, lanes

_INDEX = ir.IntType(32)
_FUSED = ("contract",)


def _vector(builder: Any, row: Any, count: int) -> Any:
    """The numbers of a row in a vector, padded to the next power of two."""
    vector: Any = ir.Constant(ir.VectorType(ir.DoubleType(), 1 << (count - 1).bit_length()), ir.Undefined)
    for i in range(count):
        vector = builder.insert_element(vector, builder.extract_value(row, i), ir.Constant(_INDEX, i))
    return vector


def _spread(builder: Any, weight: Any, like: Any) -> Any:
    """A vector of equal numbers."""
    vector: Any = ir.Constant(like.type, ir.Undefined)
    one = builder.insert_element(vector, weight, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(one, vector, ir.Constant(ir.VectorType(_INDEX, like.type.count), None))


def _sum(builder: Any, weights: Any, terms: list[Any]) -> Any:
    total = None
    for j, term in enumerate(terms):
        weight = _spread(builder, builder.extract_value(weights, j), term)
        product = builder.fmul(weight, term, flags=_FUSED)
        total = product if total is None else builder.fadd(total, product, flags=_FUSED)
    return total


@intrinsic
def _combined(typingctx: Any, weights: Any, rows: Any) -> Any:
    """Rows of doubles as vectors; numbers that are vectors themselves are combined one by one."""
    row = rows.dtype
    count, single = row.count, not isinstance(row.dtype, Lanes)

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = [builder.extract_value(args[1], j) for j in range(rows.count)]
        if single:
            total = _sum(builder, args[0], [_vector(builder, x, count) for x in given])
            numbers = [builder.extract_element(total, ir.Constant(_INDEX, i)) for i in range(count)]
        else:
            numbers = [_sum(builder, args[0], [builder.extract_value(x, i) for x in given]) for i in range(count)]
        return context.make_tuple(builder, sig.return_type, numbers)

    return UniTuple(types.float64 if single else lanes, count)(weights, rows), make


def _one_by_one(terms: int, count: int) -> Any:
    """The sums written out: for dual numbers, whose products and sums differ, and for GPUs, which have no vectors."""
    sums = (" + ".join(f"weights[{j}] * rows[{j}][{i}]" for j in range(terms)) for i in range(count))
    return eval(f"lambda weights, rows: ({', '.join(sums)},)")


def teach(options: dict[str, Any]) -> None:
    """Register the primitive `combined` with numba."""

    def combined(weights: Any, rows: Any) -> Any:
        if isinstance(rows.dtype.dtype, types.Float | Lanes) and current_target() != "cuda":
            return lambda weights, rows: _combined(weights, rows)
        return _one_by_one(rows.count, rows.dtype.count)

    overload(primitives.combined, strict=False, jit_options=options)(combined)
