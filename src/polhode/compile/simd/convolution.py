"""Sums of products of Taylor coefficients in compiled code: the primitives `store` and `convolved` for doubles.

Sums are in vectors of eight, the last ones in a vector of the next power of two, in which zeros fill the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic, overload

from ...numbers import primitives

_INDEX, _WORD = ir.IntType(32), ir.IntType(64)
_FUSED = ("contract",)
_WIDTH, ALIGNMENT = 8, 64
"""Doubles in the largest vector; its bytes, to which workspaces are aligned, so that no vector spans cache lines."""
_VECTOR = ir.VectorType(ir.DoubleType(), _WIDTH)


def _vectors(count: int) -> Iterator[tuple[int, int]]:
    """The first number and the width of each vector that holds a part of `count` numbers."""
    for first in range(0, count, _WIDTH):
        yield first, min(_WIDTH, 1 << (count - first - 1).bit_length())


def _pointer(builder: Any, work: Any, at: Any, first: int, width: int) -> Any:
    place = builder.gep(work, [builder.add(at, ir.Constant(_WORD, first))])
    return builder.bitcast(place, ir.VectorType(ir.DoubleType(), width).as_pointer())


def _bases(builder: Any, numbers: Any, count: int) -> list[Any]:
    """Numbers of a tuple in vectors of eight."""
    made = []
    for first in range(0, count, _WIDTH):
        vector: Any = ir.Constant(_VECTOR, [0.0] * _WIDTH)
        for i in range(first, min(first + _WIDTH, count)):
            vector = builder.insert_element(vector, builder.extract_value(numbers, i), ir.Constant(_INDEX, i - first))
        made.append(vector)
    return made


def _placed(builder: Any, bases: list[Any], places: list[int | None]) -> Any:
    """A vector of numbers from other vectors, with zeros in unused places: one permutation for each of them."""
    vector: Any = ir.Constant(_VECTOR, [0.0] * _WIDTH)
    given = {i: place for i, place in enumerate(places) if place is not None}
    for base in sorted({place // _WIDTH for place in given.values()}):
        own = {i: place % _WIDTH for i, place in given.items() if place // _WIDTH == base}
        index = [_WIDTH + own[i] if i in own else i for i in range(_WIDTH)]
        vector = builder.shuffle_vector(vector, bases[base], ir.Constant(ir.VectorType(_INDEX, _WIDTH), index))
    return vector


def _storing(places: str) -> Any:
    @intrinsic
    def store(typingctx: Any, work: Any, at: Any, numbers: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            bases = _bases(builder, args[2], numbers.count)
            chosen = [None if place == "-" else int(place) for place in places.split()]
            for first in range(0, len(chosen), _WIDTH):
                vector = _placed(builder, bases, chosen[first : first + _WIDTH])
                builder.store(vector, _pointer(builder, args[0], args[1], first, _WIDTH), align=ALIGNMENT)
            return context.get_dummy_value()

        return types.none(work, types.intp, numbers), make

    return store


class _Sums:
    """Code of the sums for one order: their vectors are variables on the stack, which become registers."""

    def __init__(self, builder: Any, arguments: Any, count: int) -> None:
        self.builder, self.count, self.parts = builder, count, list(_vectors(count))
        self.work, self.left, self.right, self.stride, self.k, self.spare = arguments

    def variables(self) -> list[Any]:
        """Vectors of zeros."""
        made = []
        for _, width in self.parts:
            zero = ir.Constant(ir.VectorType(ir.DoubleType(), width), [0.0] * width)
            made.append(cgutils.alloca_once(self.builder, zero.type))
            self.builder.store(zero, made[-1])
        return made

    def read(self, at: Any, j: Any) -> list[Any]:
        """The vectors of order j at one of the places `left` and `right`."""
        return self.read_from(self.builder.add(at, self.builder.mul(self.stride, j)))

    def read_from(self, at: Any) -> list[Any]:
        """The vectors from a place on."""
        return [
            self.builder.load(_pointer(self.builder, self.work, at, first, width), align=8 * width)
            for first, width in self.parts
        ]

    def write(self, totals: list[Any], at: Any) -> None:
        """Copy variables to a place."""
        for total, (first, width) in zip(totals, self.parts, strict=True):
            place = _pointer(self.builder, self.work, at, first, width)
            self.builder.store(self.builder.load(total), place, align=8 * width)

    def set(self, variables: list[Any], values: list[Any]) -> None:
        """Give variables new values."""
        for variable, value in zip(variables, values, strict=True):
            self.builder.store(value, variable)

    def add(self, totals: list[Any], a: list[Any], b: list[Any]) -> None:
        """Add products to variables."""
        for total, x, y in zip(totals, a, b, strict=True):
            product = self.builder.fmul(x, y, flags=_FUSED)
            self.builder.store(self.builder.fadd(self.builder.load(total), product, flags=_FUSED), total)


def _convolution(count: int) -> Any:
    @intrinsic
    def convolved(typingctx: Any, work: Any, left: Any, right: Any, stride: Any, k: Any, spare: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            numbers = _sums_of_order(builder, _Sums(builder, args, count))
            return context.make_tuple(builder, sig.return_type, numbers)

        return UniTuple(types.float64, count)(work, *[types.intp] * 5), make

    return convolved


def _sums_of_order(builder: Any, sums: _Sums) -> list[Any]:
    """Code of the sums of order k; odd orders also make those of the next one as far as they can, with the same reads.

    The terms that wait for coefficients of order k - 1, which have just been computed, come last.
    """
    k, left, right = sums.k, sums.left, sums.right
    one, two = (ir.Constant(_WORD, i) for i in (1, 2))
    before = builder.sub(k, one)
    totals = sums.variables()
    with builder.if_else(builder.trunc(k, ir.IntType(1))) as (odd, even):
        with odd:
            following, known = sums.variables(), sums.variables()
            sums.set(known, sums.read(left, two))
            with cgutils.for_range_slice(builder, two, before, one) as (j, _):
                other, later = sums.read(right, builder.sub(k, j)), sums.read(left, builder.add(j, one))
                sums.add(totals, [builder.load(x) for x in known], other)
                sums.add(following, later, other)
                sums.set(known, later)
            with builder.if_then(builder.icmp_signed(">", k, one)):
                newest = sums.read(right, before)
                sums.add(following, sums.read(left, two), newest)
                sums.add(totals, sums.read(left, one), newest)
                sums.add(totals, sums.read(left, before), sums.read(right, one))
            sums.write(following, sums.spare)
        with even:
            sums.set(totals, sums.read_from(sums.spare))
            sums.add(totals, sums.read(left, one), sums.read(right, before))
            with builder.if_then(builder.icmp_signed(">", k, two)):
                sums.add(totals, sums.read(left, before), sums.read(right, one))
    vectors = [builder.load(total) for total in totals]
    return [builder.extract_element(vectors[i // _WIDTH], ir.Constant(_INDEX, i % _WIDTH)) for i in range(sums.count)]


def teach(options: dict[str, Any]) -> None:
    """Register the primitives with numba; the number of sums must be known when a kernel is compiled."""

    def store(work: Any, at: Any, numbers: Any, places: Any) -> Any:
        made = _storing(places.literal_value)
        return lambda work, at, numbers, places: made(work, at, numbers)

    def convolved(work: Any, left: Any, right: Any, stride: Any, k: Any, count: Any, spare: Any) -> Any:
        made = _convolution(count.literal_value)
        return lambda work, left, right, stride, k, count, spare: made(work, left, right, stride, k, spare)

    overload(primitives.store, strict=False, prefer_literal=True, jit_options=options)(store)
    overload(primitives.convolved, strict=False, prefer_literal=True, jit_options=options)(convolved)
