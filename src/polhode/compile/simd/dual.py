"""Dual numbers for numba: one double and its tangents in several directions, in one vector.

A kernel called with dual numbers computes its value and the derivatives in all directions; its source is unchanged.
Values are computed as for plain doubles; comparisons, and so all branches, use values only. The rules for the
elementary functions are those of `expression.partials`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.types.containers import BaseTuple, Tuple, UniTuple
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from ...numbers import dispatch, primitives
from ...numbers.dispatch import register_tangents
from ...numbers.primitives import FUNCTIONS
from ...symbolic.expression import Expr, compiled, partials, source, symbol

_I32, _DOUBLE = ir.IntType(32), ir.DoubleType()

PAIRS = ("atan2", "power")
"""The elementary functions of two arguments."""


class DualType(types.Type):
    """The type of a double with tangents in `width` directions."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"dual{width}")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """A single number is a constant: its tangents are zero."""
        return Conversion.safe if isinstance(other, (types.Float, types.Integer)) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """A variable that is a number in one branch and a dual in another is a dual."""
        return self if isinstance(other, (types.Float, types.Integer)) else None


register_tangents(DualType, groups=(BaseTuple,))


def _vector(width: int) -> Any:
    return ir.VectorType(_DOUBLE, width)


@register_model(DualType)
class _DualModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.LiteralStructType([_DOUBLE, _vector(kind.width)]))


# --- parts ------------------------------------------------------------------------------------------


def _parts(builder: Any, x: Any) -> tuple[Any, Any]:
    return builder.extract_value(x, 0), builder.extract_value(x, 1)


def _dual(builder: Any, value: Any, tangents: Any) -> Any:
    whole: Any = ir.Constant(ir.LiteralStructType([_DOUBLE, tangents.type]), ir.Undefined)
    return builder.insert_value(builder.insert_value(whole, value, 0), tangents, 1)


def _spread(builder: Any, value: Any, width: int) -> Any:
    empty: Any = ir.Constant(_vector(width), ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_I32, width), [0] * width))


def _zeros(width: int) -> Any:
    return ir.Constant(_vector(width), [0.0] * width)


@lower_cast(types.Integer, DualType)
@lower_cast(types.Float, DualType)
def _number_to_dual(context: Any, builder: Any, source: Any, wanted: Any, value: Any) -> Any:
    return _dual(builder, context.cast(builder, value, source, types.float64), _zeros(wanted.width))


# --- operators --------------------------------------------------------------------------------------


def _scaled(builder: Any, tangents: Any, factor: Any) -> Any:
    return builder.fmul(tangents, _spread(builder, factor, tangents.type.count))


def _add(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return builder.fadd(a, c), d if b is None else b if d is None else builder.fadd(b, d)


def _sub(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return builder.fsub(a, c), builder.fneg(d) if b is None else b if d is None else builder.fsub(b, d)


def _mul(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    left = None if b is None else _scaled(builder, b, c)
    right = None if d is None else _scaled(builder, d, a)
    return builder.fmul(a, c), right if left is None else left if right is None else builder.fadd(left, right)


def _div(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """(a/c)' = (b - (a/c) d)/c, with one reciprocal for all directions."""
    value, over = builder.fdiv(a, c), builder.fdiv(ir.Constant(_DOUBLE, 1.0), c)
    if d is None:
        return value, _scaled(builder, b, over)
    part = _scaled(builder, d, value)
    return value, _scaled(builder, builder.fneg(part) if b is None else builder.fsub(b, part), over)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, (types.Float, types.Integer))


def _signature(args: Any, result: Any = None) -> Any:
    """Signature for two duals of equal width, or a dual and a number."""
    duals = [a for a in args if isinstance(a, DualType)]
    if len(args) != 2 or not duals or not all(isinstance(a, DualType) or _is_number(a) for a in args):
        return None
    return signature(result or duals[0], *(a if isinstance(a, DualType) else types.float64 for a in args))


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
    lower_builtin(function, DualType, types.Float)(first)
    lower_builtin(function, types.Float, DualType)(second)


def _comparison(function: Any, sign: str) -> None:
    """Register a comparison of values with numba; x != x holds for NaN."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return _signature(args, types.boolean)

    infer_global(function)(Template)

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (
            builder.extract_value(x, 0) if isinstance(kind, DualType) else x
            for x, kind in zip(args, sig.args, strict=True)
        )
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b)

    for kinds in ((DualType, DualType), (DualType, types.Float), (types.Float, DualType)):
        lower_builtin(function, *kinds)(make)


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


def _absolute(builder: Any, value: Any, tangents: Any) -> tuple[Any, Any]:
    negative = builder.fcmp_ordered("<", value, ir.Constant(_DOUBLE, 0.0))
    call = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_DOUBLE, [_DOUBLE]), "llvm.fabs.f64")
    return builder.call(call, [value]), builder.select(negative, builder.fneg(tangents), tangents)


def _teach_operators() -> None:
    for name, make in {"add": _add, "sub": _sub, "mul": _mul, "truediv": _div}.items():
        _binary(getattr(operator, name), make)
    for name, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
        _comparison(getattr(operator, name), sign)
    _unary(operator.neg, lambda builder, value, tangents: (builder.fneg(value), builder.fneg(tangents)))
    _unary(operator.pos, lambda builder, value, tangents: (value, tangents))
    _unary(abs, _absolute)


_teach_operators()


# --- operations on duals only -----------------------------------------------------------------------


@intrinsic
def value_of(typingctx: Any, x: Any) -> Any:
    """The number without its tangents."""
    if not isinstance(x, DualType):
        return types.float64(types.float64), lambda context, builder, sig, args: args[0]
    return types.float64(x), lambda context, builder, sig, args: builder.extract_value(args[0], 0)


@intrinsic
def select(typingctx: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Select one of two duals by a condition."""
    kind = yes if isinstance(yes, DualType) else no
    return kind(types.boolean, kind, kind), lambda context, builder, sig, args: _selected(builder, *args)


def _selected(builder: Any, condition: Any, yes: Any, no: Any) -> Any:
    (a, b), (c, d) = _parts(builder, yes), _parts(builder, no)
    return _dual(builder, builder.select(condition, a, c), builder.select(condition, b, d))


@intrinsic
def chained(typingctx: Any, value: Any, factor: Any, x: Any) -> Any:
    """The dual of a function's value and its derivative at x.

    A zero tangent stays zero even if the derivative is infinite.
    """

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tangents, zeros = builder.extract_value(args[2], 1), _zeros(x.width)
        level = builder.fcmp_ordered("==", tangents, zeros)
        return _dual(builder, args[0], builder.select(level, zeros, _scaled(builder, tangents, args[1])))

    return x(types.float64, types.float64, x), make


@intrinsic
def _squared(typingctx: Any, x: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tangents = builder.extract_value(args[0], 1)
        return _dual(builder, ir.Constant(_DOUBLE, 0.0), builder.fmul(tangents, tangents))

    return x(x), make


@intrinsic
def _max_tangent_ratio(typingctx: Any, a: Any, b: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        over, under = (builder.extract_value(x, 1) for x in args)
        none = builder.fcmp_ordered("==", under, _zeros(a.width))
        ratios = builder.fdiv(over, builder.select(none, ir.Constant(_vector(a.width), [1.0] * a.width), under))
        best: Any = ir.Constant(_DOUBLE, 0.0)
        for i in range(a.width):
            ratio = builder.extract_element(ratios, ir.Constant(_I32, i))
            best = builder.select(builder.fcmp_ordered("<=", ratio, best), best, ratio)  # propagates NaN
        return best

    return types.float64(a, b), make


def _width(kind: Any) -> int:
    """Width of the duals in nested tuples; zero if there are none."""
    if isinstance(kind, BaseTuple):
        return max((_width(part) for part in kind), default=0)
    return kind.width if isinstance(kind, DualType) else 0


def _relative(builder: Any, kind: Any, x: Any, width: int) -> Any:
    """The sum of |tangents|^2/|values|^2 over the innermost tuples, as a vector."""
    total, over, size = _zeros(width), _zeros(width), ir.Constant(_DOUBLE, 0.0)
    for i, part in enumerate(kind):
        item = builder.extract_value(x, i)
        if isinstance(part, BaseTuple):
            total = builder.fadd(total, _relative(builder, part, item, width))
        elif isinstance(part, DualType):
            value, tangents = _parts(builder, item)
            over, size = (
                builder.fadd(over, builder.fmul(tangents, tangents)),
                builder.fadd(size, builder.fmul(value, value)),
            )
    some = builder.fcmp_ordered(">", size, ir.Constant(_DOUBLE, 0.0))
    one, none = ir.Constant(_DOUBLE, 1.0), ir.Constant(_DOUBLE, 0.0)
    share = builder.select(some, builder.fdiv(one, builder.select(some, size, one)), none)
    return builder.fadd(total, _scaled(builder, over, share))


@intrinsic
def _relative_tangents(typingctx: Any, x: Any) -> Any:
    kind = DualType(_width(x))

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _dual(builder, ir.Constant(_DOUBLE, 0.0), _relative(builder, x, args[0], kind.width))

    return kind(x), make


SEEDS = 4
"""Width of the duals that `seed_tangents` makes from three numbers."""


@intrinsic
def _seed_tangents(typingctx: Any, v: Any) -> Any:
    kind = DualType(SEEDS)
    result = UniTuple(kind, 3)

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        units = [ir.Constant(_vector(SEEDS), [float(i == j) for j in range(SEEDS)]) for i in range(3)]
        made = [_dual(builder, builder.extract_value(args[0], i), units[i]) for i in range(3)]
        return context.make_tuple(builder, result, made)

    return result(UniTuple(types.float64, 3)), make


@intrinsic
def _tangent(typingctx: Any, x: Any, i: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(builder.extract_value(args[0], 1), builder.trunc(args[1], _I32))

    return types.float64(x, types.int64), make


def _type_without_tangents(kind: Any) -> Any:
    if isinstance(kind, BaseTuple):
        return Tuple([_type_without_tangents(part) for part in kind])
    return types.float64 if isinstance(kind, DualType) else kind


def _without_tangents(context: Any, builder: Any, kind: Any, x: Any) -> Any:
    if isinstance(kind, BaseTuple):
        parts = [_without_tangents(context, builder, part, builder.extract_value(x, i)) for i, part in enumerate(kind)]
        return context.make_tuple(builder, _type_without_tangents(kind), parts)
    return builder.extract_value(x, 0) if isinstance(kind, DualType) else x


@intrinsic
def _stop_gradient(typingctx: Any, x: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _without_tangents(context, builder, x, args[0])

    return _type_without_tangents(x)(x), make


def access(width: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled load(row) and store(row, x) of a dual: the value, then the tangents, in a contiguous row."""
    kind = DualType(width)

    def places(context: Any, builder: Any, row: Any, array: Any) -> tuple[Any, Any]:
        data = context.make_array(row)(context, builder, array).data
        behind = builder.gep(data, [ir.Constant(ir.IntType(64), 1)])
        return data, builder.bitcast(behind, _vector(width).as_pointer())

    @intrinsic
    def load(typingctx: Any, row: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, tangents = places(context, builder, row, args[0])
            return _dual(builder, builder.load(value), builder.load(tangents, align=8))

        return kind(row), make

    @intrinsic
    def store(typingctx: Any, row: Any, x: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value, tangents = places(context, builder, row, args[0])
            parts = _parts(builder, args[1])
            builder.store(parts[0], value)
            builder.store(parts[1], tangents, align=8)
            return context.get_dummy_value()

        return types.void(row, kind), make

    return load, store


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
        return lambda x: _relative_tangents(x)

    def seed_tangents(v: Any) -> Any:
        return lambda v: _seed_tangents(v)

    def tangent(x: Any, i: Any) -> Any:
        return lambda x, i: _tangent(x, i)

    for made in (stop_gradient, tangents_squared, max_tangent_ratio, relative_tangents, seed_tangents, tangent):
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
