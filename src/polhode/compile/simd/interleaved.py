"""Vectors of bodies read from and written to a user's arrays, with one row or one column for each body.

A row holds three or four numbers of one body, so the numbers of `LANES` bodies are interleaved. They are read with wide
loads and sorted by shuffles of two registers; the order of the numbers is the only thing that changes. Numbers of
single precision become doubles when they are read, and are rounded when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from .vector_types import LANES, lanes

HALF = LANES // 2
"""Numbers in one register of a vector; shuffles of two registers are single instructions."""

ROWS, COLUMNS = "rows", "columns"
"""Orders of the numbers of many bodies: (N, 4) and (N, 3), or (4, N) and (3, N)."""


def reading(width: int, layout: str) -> Any:
    """Intrinsic (array, k, at) -> the numbers of the bodies at, at + 1, ... in lanes, as a tuple of `width` vectors.

    An array with three dimensions has several parts, of which part k is read.
    """

    @intrinsic
    def read(typingctx: Any, array: Any, k: Any, at: Any) -> Any:
        _check(array)

        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            first = _addresses(context, builder, sig.args[0], args, width, layout)
            halves = [[_load(builder, address(k), sig.args[0]) for k in range(width)] for address in first]
            if layout == ROWS:
                halves = [SORTED[width](builder, parts) for parts in halves]
            vectors = [_shuffled(builder, low, high, range(LANES)) for low, high in zip(*halves, strict=True)]
            return context.make_tuple(builder, sig.return_type, vectors)

        return UniTuple(lanes, width)(array, types.intp, types.intp), make

    return read


def writing(width: int, layout: str) -> Any:
    """Intrinsic (array, k, at, vectors) that writes the numbers of the bodies at, at + 1, ..., in part k."""

    @intrinsic
    def write(typingctx: Any, array: Any, k: Any, at: Any, vectors: Any) -> Any:
        _check(array)
        if not array.mutable:
            raise TypingError("a read-only array cannot be written")

        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            whole = [builder.extract_value(args[3], j) for j in range(width)]
            first = _addresses(context, builder, sig.args[0], args, width, layout)
            for half, address in enumerate(first):
                places = range(HALF * half, HALF * (half + 1))
                parts = [_shuffled(builder, vector, vector, places) for vector in whole]
                if layout == ROWS:
                    parts = INTERLEAVED[width](builder, parts)
                for k, part in enumerate(parts):
                    _store(builder, address(k), part, sig.args[0])
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp, UniTuple(lanes, width)), make

    return write


def _check(array: Any) -> None:
    if array.layout != "C" or array.ndim not in (2, 3) or array.dtype not in (types.float64, types.float32):
        raise TypingError(f"bodies are read from contiguous arrays of real numbers, not {array}")


def _addresses(
    context: Any, builder: Any, kind: Any, args: Any, width: int, layout: str
) -> list[Callable[[int], Any]]:  # fmt: skip
    """For each half of the lanes, the function from j to the address of its j-th register in an array."""
    array = context.make_array(kind)(context, builder, args[0])
    part, at, word = args[1], args[2], args[1].type
    several = kind.ndim - 2
    count = builder.extract_value(array.shape, several + (1 if layout != ROWS else 0))
    begin = ir.Constant(word, 0)
    if several:
        begin = builder.mul(builder.mul(part, count), ir.Constant(word, width))

    def place(half: int) -> Callable[[int], Any]:
        body = builder.add(at, ir.Constant(word, HALF * half))

        def address(j: int) -> Any:
            if layout == ROWS:
                index = builder.add(builder.mul(body, ir.Constant(word, width)), ir.Constant(word, HALF * j))
            else:
                index = builder.add(builder.mul(count, ir.Constant(word, j)), body)
            return builder.gep(array.data, [builder.add(begin, index)])

        return address

    return [place(0), place(1)]


def _load(builder: Any, address: Any, array: Any) -> Any:
    """One register of doubles from an address."""
    if array.dtype == types.float64:
        return builder.load(builder.bitcast(address, _half().as_pointer()), align=8)
    single = builder.load(builder.bitcast(address, _half(ir.FloatType()).as_pointer()), align=4)
    return builder.fpext(single, _half())


def _store(builder: Any, address: Any, value: Any, array: Any) -> None:
    """Write one register of doubles to an address."""
    if array.dtype == types.float64:
        builder.store(value, builder.bitcast(address, _half().as_pointer()), align=8)
        return
    single = builder.fptrunc(value, _half(ir.FloatType()))
    builder.store(single, builder.bitcast(address, _half(ir.FloatType()).as_pointer()), align=4)


def _half(number: Any = None) -> Any:
    return ir.VectorType(ir.DoubleType() if number is None else number, HALF)


def _shuffled(builder: Any, a: Any, b: Any, places: Sequence[int]) -> Any:
    """The numbers of a and b, counted through both, at the given places."""
    word = ir.IntType(32)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(word, len(places)), list(places)))


# --- registers of rows, sorted by component, and back -------------------------------------------------


def _sorted_by_three(builder: Any, v: list[Any]) -> list[Any]:
    """Three registers that hold HALF rows of three numbers -> the three components."""
    found = []
    for j in range(3):
        # number 3 i + j of all belongs to body i: first what lies in two registers, then the rest from the third
        two = [min(3 * i + j, 2 * HALF - 1) for i in range(HALF)]
        both = _shuffled(builder, v[0], v[1], two)
        rest = [i if 3 * i + j < 2 * HALF else 3 * i + j - HALF for i in range(HALF)]
        found.append(_shuffled(builder, both, v[2], rest))
    return found


def _interleaved_by_three(builder: Any, c: list[Any]) -> list[Any]:
    """Three components of HALF bodies -> three registers that hold their rows."""
    found = []
    for k in range(3):
        numbers = [divmod(HALF * k + e, 3) for e in range(HALF)]  # body and component
        both = _shuffled(builder, c[0], c[1], [i + HALF * (j == 1) for i, j in numbers])
        found.append(_shuffled(builder, both, c[2], [HALF + i if j == 2 else e for e, (i, j) in enumerate(numbers)]))
    return found


def _sorted_by_four(builder: Any, v: list[Any]) -> list[Any]:
    """Four registers that hold HALF rows of four numbers -> the four components, by two stages of shuffles."""
    quarter = HALF // 4
    pairs = []
    for j in (0, 2):  # components j and j + 1 of the bodies of two registers
        places = [4 * i + j + c for c in (0, 1) for i in range(2 * quarter)]
        pairs.append([_shuffled(builder, v[k], v[k + 1], places) for k in (0, 2)])
    low = [*range(HALF // 2), *range(HALF, HALF + HALF // 2)]
    high = [place + HALF // 2 for place in low]
    return [_shuffled(builder, a, b, places) for a, b in pairs for places in (low, high)]


def _interleaved_by_four(builder: Any, c: list[Any]) -> list[Any]:
    """Four components of HALF bodies -> four registers that hold their rows, by two stages of shuffles."""
    found = []
    for first in (0, HALF // 2):
        pairs = [place for i in range(first, first + HALF // 2) for place in (i, HALF + i)]
        left, right = (_shuffled(builder, c[j], c[j + 1], pairs) for j in (0, 2))
        for begin in (0, HALF // 2):
            twos = range(begin, begin + HALF // 2, 2)
            found.append(_shuffled(builder, left, right, [p for i in twos for p in (i, i + 1, HALF + i, HALF + i + 1)]))
    return found


SORTED = {3: _sorted_by_three, 4: _sorted_by_four}
INTERLEAVED = {3: _interleaved_by_three, 4: _interleaved_by_four}
