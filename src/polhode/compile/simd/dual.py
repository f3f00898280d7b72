"""Dual numbers for numba: a number and its tangents in several directions.

A kernel called with dual numbers computes its value and the derivatives in all directions; its source is unchanged.
Values are computed as for plain numbers; comparisons, and so all branches, use values only. The rules for the
elementary functions are those of `expression.partials`.

The tangents are vectors: of a double, one vector with an entry for each direction (`DualType`), or a double if there is
one direction; of the lanes of many bodies, one vector of lanes for each direction (`LaneDualType`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import impl_ret_borrowed, lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.types.containers import BaseTuple, Tuple, UniTuple
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from ...numbers import dispatch, primitives
from ...numbers.dispatch import register_tangents
from ...numbers.primitives import FUNCTIONS
from ...symbolic.expression import Expr, compiled, partials, source, symbol
from .vector_types import LANES, Lanes, lanes, mask

_I32, _DOUBLE = ir.IntType(32), ir.DoubleType()
_LANES = ir.VectorType(_DOUBLE, LANES)

PAIRS = ("atan2", "power")
"""The elementary functions of two arguments."""


class DualType(types.Type):
    """The type of a double with tangents in `width` directions."""

    plain: types.Type = types.float64
    """The type of the value."""
    truth: types.Type = types.boolean
    """The type of a comparison."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"dual{width} of {self.plain}")

    def is_constant(self, other: Any) -> bool:
        """Whether a type is that of numbers without tangents."""
        return isinstance(other, (types.Float, types.Integer))

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """A number without tangents is a constant: its tangents are zero."""
        return Conversion.safe if self.is_constant(other) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """A variable that is a number in one branch and a dual in another is a dual."""
        return self if self.is_constant(other) else None

    @property
    def parts(self) -> list[Any]:
        """The LLVM types of the value and of the vectors of tangents."""
        return [_DOUBLE, _DOUBLE if self.width == 1 else ir.VectorType(_DOUBLE, self.width)]


class LaneDualType(DualType):
    """The type of a vector of doubles, one for each body, with tangents in `width` directions."""

    plain, truth = lanes, mask

    def is_constant(self, other: Any) -> bool:
        """Whether a type is that of numbers without tangents."""
        return isinstance(other, Lanes) or super().is_constant(other)

    @property
    def parts(self) -> list[Any]:
        """The LLVM types of the value and of the vectors of tangents."""
        return [_LANES] * (1 + self.width)


register_tangents(DualType, groups=(BaseTuple,))
register_tangents(LaneDualType)


@register_model(DualType)
@register_model(LaneDualType)
class _DualModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.LiteralStructType(kind.parts))


# --- parts ------------------------------------------------------------------------------------------


def _parts(builder: Any, x: Any) -> tuple[Any, list[Any]]:
    """The value, and the vectors of tangents."""
    value, *tangents = (builder.extract_value(x, i) for i in range(len(x.type.elements)))
    return value, tangents


def _dual(builder: Any, value: Any, tangents: list[Any]) -> Any:
    whole: Any = ir.Constant(ir.LiteralStructType([value.type, *(x.type for x in tangents)]), ir.Undefined)
    for i, part in enumerate((value, *tangents)):
        whole = builder.insert_value(whole, part, i)
    return whole


def _like(builder: Any, number: Any, vector: Any) -> Any:
    """A number as a vector of tangents: the same for all directions."""
    if number.type == vector.type:
        return number
    empty: Any = ir.Constant(vector.type, ir.Undefined)
    one = builder.insert_element(empty, number, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_I32, vector.type.count), None))


def _constant(kind: Any, value: float) -> Any:
    """A constant of an LLVM type: a double, or a vector of equal ones."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _zeros(kind: DualType) -> list[Any]:
    return [_constant(part, 0.0) for part in kind.parts[1:]]


def _by_direction(builder: Any, kind: DualType, tangents: list[Any]) -> list[Any]:
    """The tangents, one for each direction, as plain numbers."""
    if isinstance(kind, LaneDualType) or kind.width == 1:
        return tangents
    return [builder.extract_element(tangents[0], ir.Constant(_I32, i)) for i in range(kind.width)]


def _from_directions(builder: Any, kind: DualType, tangents: list[Any]) -> list[Any]:
    """The inverse of `_by_direction`."""
    if isinstance(kind, LaneDualType) or kind.width == 1:
        return tangents
    vector: Any = ir.Constant(kind.parts[1], ir.Undefined)
    for i, one in enumerate(tangents):
        vector = builder.insert_element(vector, one, ir.Constant(_I32, i))
    return [vector]


@lower_cast(types.Integer, DualType)
@lower_cast(types.Float, DualType)
@lower_cast(Lanes, LaneDualType)
def _number_to_dual(context: Any, builder: Any, source: Any, wanted: Any, value: Any) -> Any:
    return _dual(builder, context.cast(builder, value, source, wanted.plain), _zeros(wanted))


# --- operators --------------------------------------------------------------------------------------


def _scaled(builder: Any, tangents: list[Any], factor: Any) -> list[Any]:
    return [builder.fmul(x, _like(builder, factor, x)) for x in tangents]


def _sum(builder: Any, a: list[Any], b: list[Any]) -> list[Any]:
    return [builder.fadd(x, y) for x, y in zip(a, b, strict=True)]


def _difference(builder: Any, a: list[Any], b: list[Any]) -> list[Any]:
    return [builder.fsub(x, y) for x, y in zip(a, b, strict=True)]


def _negated(builder: Any, x: Any) -> Any:
    """-x as -0 - x, because NVVM has no instruction of its own for it; LLVM makes them the same."""
    return builder.fsub(_constant(x.type, -0.0), x)


def _negative(builder: Any, tangents: list[Any]) -> list[Any]:
    return [_negated(builder, x) for x in tangents]


def _add(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return builder.fadd(a, c), d if b is None else b if d is None else _sum(builder, b, d)


def _sub(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return builder.fsub(a, c), _negative(builder, d) if b is None else b if d is None else _difference(builder, b, d)


def _mul(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    left = None if b is None else _scaled(builder, b, c)
    right = None if d is None else _scaled(builder, d, a)
    return builder.fmul(a, c), right if left is None else left if right is None else _sum(builder, left, right)


def _div(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a/c)' = (b - (a/c) d)/c, with one reciprocal for all directions."""
    value, over = builder.fdiv(a, c), builder.fdiv(_constant(c.type, 1.0), c)
    if d is None:
        return value, _scaled(builder, b, over)
    part = _scaled(builder, d, value)
    return value, _scaled(builder, _negative(builder, part) if b is None else _difference(builder, b, part), over)


def _signature(args: Any, truth: bool = False) -> Any:
    """Signature for two duals of one type, or a dual and a number."""
    duals = {a for a in args if isinstance(a, DualType)}
    if len(args) != 2 or len(duals) != 1:
        return None
    kind = duals.pop()
    if not all(a == kind or kind.is_constant(a) for a in args):
        return None
    return signature(kind.truth if truth else kind, *(a if a == kind else kind.plain for a in args))


PLAIN = ((types.Float, DualType), (Lanes, LaneDualType))
"""Types of numbers without tangents, with the duals that they go with."""


def _binary(function: Any, make: Callable[..., Any]) -> None:
    """Register an operator with numba; `make` gets (a, b, c, d) of a + b eps and c + d eps, None for no tangents."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return _signature(args)

    infer_global(function)(Template)

    def both(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _dual(builder, *make(builder, *_parts(builder, args[0]), *_parts(builder, args[1])))

    def first(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _dual(builder, *make(builder, *_parts(builder, args[0]), args[1], None))

    def second(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _dual(builder, *make(builder, args[0], None, *_parts(builder, args[1])))

    lower_builtin(function, DualType, DualType)(both)
    for number, dual in PLAIN:
        lower_builtin(function, dual, number)(first)
        lower_builtin(function, number, dual)(second)


def _comparison(function: Any, sign: str) -> None:
    """Register a comparison of values with numba; x != x holds for NaN."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return _signature(args, truth=True)

    infer_global(function)(Template)

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (
            builder.extract_value(x, 0) if isinstance(kind, DualType) else x
            for x, kind in zip(args, sig.args, strict=True)
        )
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b)

    lower_builtin(function, DualType, DualType)(make)
    for number, dual in PLAIN:
        lower_builtin(function, dual, number)(make)
        lower_builtin(function, number, dual)(make)


def _unary(function: Any, make: Callable[[Any, Any, Any], tuple[Any, Any]]) -> None:
    """Register a function of one dual with numba; `make` gets value and tangents."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0], args[0]) if len(args) == 1 and isinstance(args[0], DualType) else None

    infer_global(function)(Template)
    lower_builtin(function, DualType)(
        lambda context, builder, sig, args: _dual(builder, *make(builder, *_parts(builder, args[0])))
    )


def _selected(builder: Any, condition: Any, yes: list[Any], no: list[Any]) -> list[Any]:
    return [builder.select(condition, x, y) for x, y in zip(yes, no, strict=True)]


def _without_sign(builder: Any, value: Any) -> Any:
    """The absolute value, with the bit of the sign cleared: NVVM has no intrinsic for it."""
    whole = ir.IntType(64)
    bits: Any = ir.VectorType(whole, LANES) if value.type == _LANES else whole
    size = (1 << 63) - 1
    mask = ir.Constant(bits, [size] * LANES if value.type == _LANES else size)
    return builder.bitcast(builder.and_(builder.bitcast(value, bits), mask), value.type)


def _absolute(builder: Any, value: Any, tangents: list[Any]) -> tuple[Any, list[Any]]:
    negative = builder.fcmp_ordered("<", value, _constant(value.type, 0.0))
    size = _without_sign(builder, value)
    return size, _selected(builder, negative, _negative(builder, tangents), tangents)


def _teach_operators() -> None:
    for name, make in {"add": _add, "sub": _sub, "mul": _mul, "truediv": _div}.items():
        _binary(getattr(operator, name), make)
    for name, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
        _comparison(getattr(operator, name), sign)
    _unary(operator.neg, lambda builder, value, tangents: (_negated(builder, value), _negative(builder, tangents)))
    _unary(operator.pos, lambda builder, value, tangents: (value, tangents))
    _unary(abs, _absolute)


_teach_operators()


# --- operations on duals only -----------------------------------------------------------------------


@intrinsic
def value_of(typingctx: Any, x: Any) -> Any:
    """The number without its tangents."""
    if not isinstance(x, DualType):
        return x(x), lambda context, builder, sig, args: args[0]
    return x.plain(x), lambda context, builder, sig, args: builder.extract_value(args[0], 0)


@intrinsic
def select(typingctx: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Select one of two duals by a condition."""
    kind = yes if isinstance(yes, DualType) else no

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (a, b), (c, d) = _parts(builder, args[1]), _parts(builder, args[2])
        return _dual(builder, builder.select(args[0], a, c), _selected(builder, args[0], b, d))

    return kind(kind.truth, kind, kind), make


@intrinsic
def chained(typingctx: Any, value: Any, factor: Any, x: Any) -> Any:
    """The dual of a function's value and its derivative at x.

    A zero tangent stays zero even if the derivative is infinite.
    """

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, tangents = _parts(builder, args[2])
        made = []
        for old, new in zip(tangents, _scaled(builder, tangents, args[1]), strict=True):
            zero = _constant(old.type, 0.0)
            made.append(builder.select(builder.fcmp_ordered("==", old, zero), zero, new))
        return _dual(builder, args[0], made)

    return x(x.plain, x.plain, x), make


@intrinsic
def _squared(typingctx: Any, x: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, tangents = _parts(builder, args[0])
        return _dual(builder, _constant(value.type, 0.0), [builder.fmul(t, t) for t in tangents])

    return x(x), make


@intrinsic
def _max_tangent_ratio(typingctx: Any, a: Any, b: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ratios = []
        for over, under in zip(*(_parts(builder, x)[1] for x in args), strict=True):
            none = builder.fcmp_ordered("==", under, _constant(under.type, 0.0))
            ratios.append(builder.fdiv(over, builder.select(none, _constant(under.type, 1.0), under)))
        best = _constant(a.parts[0], 0.0)
        for ratio in _by_direction(builder, a, ratios):
            best = builder.select(builder.fcmp_ordered("<=", ratio, best), best, ratio)  # propagates NaN
        return best

    return a.plain(a, b), make


def _dual_in(kind: Any) -> Any:
    """The type of the duals in nested tuples; None if there are none."""
    if isinstance(kind, BaseTuple):
        return next((found for part in kind if (found := _dual_in(part)) is not None), None)
    return kind if isinstance(kind, DualType) else None


def _relative(builder: Any, kind: Any, x: Any, of: DualType) -> list[Any]:
    """The sum of |tangents|^2/|values|^2 over the innermost tuples, as vectors of tangents."""
    total, over, size = _zeros(of), _zeros(of), _constant(of.parts[0], 0.0)
    for i, part in enumerate(kind):
        item = builder.extract_value(x, i)
        if isinstance(part, BaseTuple):
            total = _sum(builder, total, _relative(builder, part, item, of))
        elif isinstance(part, DualType):
            value, tangents = _parts(builder, item)
            over = _sum(builder, over, [builder.fmul(t, t) for t in tangents])
            size = builder.fadd(size, builder.fmul(value, value))
    one, none = _constant(size.type, 1.0), _constant(size.type, 0.0)
    some = builder.fcmp_ordered(">", size, none)
    share = builder.select(some, builder.fdiv(one, builder.select(some, size, one)), none)
    return _sum(builder, total, _scaled(builder, over, share))


def _relative_tangents(kind: DualType) -> Any:
    """Intrinsic of the primitive `relative_tangents`, with a result of this type; zero for numbers without tangents."""

    @intrinsic
    def relative(typingctx: Any, x: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _dual(builder, _constant(kind.parts[0], 0.0), _relative(builder, x, args[0], kind))

        return kind(x), make

    return relative


SEEDS = 4
"""Width of the duals that `seed_tangents` makes from three doubles: a whole vector register."""


@intrinsic
def _seed_tangents(typingctx: Any, v: Any) -> Any:
    several = isinstance(v[0], Lanes)
    kind = LaneDualType(3) if several else DualType(SEEDS)
    result = UniTuple(kind, 3)

    def unit(i: int) -> list[Any]:
        if several:
            return [_constant(_LANES, float(i == j)) for j in range(3)]
        return [ir.Constant(kind.parts[1], [float(i == j) for j in range(SEEDS)])]

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        made = [_dual(builder, builder.extract_value(args[0], i), unit(i)) for i in range(3)]
        return context.make_tuple(builder, result, made)

    return result(UniTuple(kind.plain, 3)), make


@intrinsic
def _tangent(typingctx: Any, x: Any, i: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        directions = _by_direction(builder, x, _parts(builder, args[0])[1])
        found = directions[0]
        for k, one in enumerate(directions[1:], 1):  # the compiler knows the direction: one of them remains
            there = builder.icmp_signed("==", args[1], ir.Constant(ir.IntType(64), k))
            found = builder.select(there, one, found)
        return found

    return x.plain(x, types.int64), make


def _type_without_tangents(kind: Any) -> Any:
    if isinstance(kind, BaseTuple):
        return Tuple([_type_without_tangents(part) for part in kind])
    return kind.plain if isinstance(kind, DualType) else kind


def _without_tangents(context: Any, builder: Any, kind: Any, x: Any) -> Any:
    if isinstance(kind, BaseTuple):
        parts = [_without_tangents(context, builder, part, builder.extract_value(x, i)) for i, part in enumerate(kind)]
        return context.make_tuple(builder, _type_without_tangents(kind), parts)
    return builder.extract_value(x, 0) if isinstance(kind, DualType) else x


@intrinsic
def _stop_gradient(typingctx: Any, x: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        plain = _without_tangents(context, builder, x, args[0])
        return impl_ret_borrowed(context, builder, sig.return_type, plain)  # columns of data are counted references

    return _type_without_tangents(x)(x), make


def access(width: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled load(row) and store(row, x) of a dual: the value, then the tangents, in a contiguous row."""
    kind = DualType(width)

    def places(context: Any, builder: Any, row: Any, array: Any) -> tuple[Any, Any]:
        data = context.make_array(row)(context, builder, array).data
        behind = builder.gep(data, [ir.Constant(ir.IntType(64), 1)])
        return data, builder.bitcast(behind, kind.parts[1].as_pointer())

    @intrinsic
    def load(typingctx: Any, row: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, tangents = places(context, builder, row, args[0])
            return _dual(builder, builder.load(value), [builder.load(tangents, align=8)])

        return kind(row), make

    @intrinsic
    def store(typingctx: Any, row: Any, x: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, tangents = places(context, builder, row, args[0])
            number, (vector,) = _parts(builder, args[1])
            builder.store(number, value)
            builder.store(vector, tangents, align=8)
            return context.get_dummy_value()

        return types.void(row, kind), make

    return load, store


@intrinsic
def _with_tangents(typingctx: Any, value: Any, tangents: Any) -> Any:
    kind = (LaneDualType if isinstance(value, Lanes) else DualType)(len(tangents))

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = [builder.extract_value(args[1], i) for i in range(kind.width)]
        return _dual(builder, args[0], _from_directions(builder, kind, found))

    return kind(kind.plain, UniTuple(kind.plain, kind.width)), make


# --- the elementary functions -----------------------------------------------------------------------


def _rule(name: str) -> Callable[..., Any]:
    """Kernel of the value of an elementary function and its derivatives, from the common table of rules."""
    letters = ("x", "y") if name in PAIRS else ("x",)
    node = Expr.make(name, *map(symbol, letters))
    unpack = {letter: letter for letter in letters}
    tangents = [derivative for _, derivative in partials(node)]
    return compiled(*source(f"{name}_and_slopes", ", ".join(letters), unpack, [node, *tangents]), float)


RULES = {name: _rule(name) for name in FUNCTIONS}
"""The kernel of each elementary function."""


def teach(options: dict[str, Any]) -> None:
    """Register the tangent operations of kernels with numba; without tangents they do nothing."""

    def stop_gradient(x: Any) -> Any:
        return (lambda x: _stop_gradient(x)) if dispatch.has_tangents(x) else (lambda x: x)

    def tangents_squared(x: Any) -> Any:
        return lambda x: _squared(x)

    def max_tangent_ratio(a: Any, b: Any) -> Any:
        return lambda a, b: _max_tangent_ratio(a, b)

    def relative_tangents(x: Any) -> Any:
        kind = _dual_in(x)
        if kind is None:
            return lambda x: 0.0
        relative = _relative_tangents(kind)
        return lambda x: relative(x)

    def seed_tangents(v: Any) -> Any:
        return lambda v: _seed_tangents(v)

    def with_tangents(x: Any, tangents: Any) -> Any:
        return lambda x, tangents: _with_tangents(x, tangents)

    def tangent(x: Any, i: Any) -> Any:
        return lambda x, i: _tangent(x, i)

    for made in (
        *(stop_gradient, tangents_squared, max_tangent_ratio, relative_tangents),
        *(seed_tangents, with_tangents, tangent),
    ):
        overload(getattr(primitives, made.__name__), strict=False, jit_options=options)(made)


def function(name: str, *kinds: Any) -> Callable[..., Any]:
    """The elementary function of that name for arguments of these types, one of them a dual."""
    rule = RULES[name]

    def one(x: Any) -> Any:
        value, derivative = rule(value_of(x))
        return chained(value, derivative, x)

    def first(x: Any, y: Any) -> Any:
        value, derivative, _ = rule(value_of(x), y)
        return chained(value, derivative, x)

    def second(x: Any, y: Any) -> Any:
        value, _, derivative = rule(x, value_of(y))
        return chained(value, derivative, y)

    def both(x: Any, y: Any) -> Any:
        value, over_x, over_y = rule(value_of(x), value_of(y))
        return chained(value, over_x, x) + chained(0.0, over_y, y)

    if len(kinds) == 1:
        return one
    return (
        both
        if all(isinstance(kind, DualType) for kind in kinds)
        else first
        if dispatch.has_tangents(kinds[0])
        else second
    )
