"""Vector types of eight or sixteen numbers for numba: a kernel called with them becomes SIMD code, source unchanged.

`LANES` numbers are held in two vector registers (or one, or four, depending on the machine). Arithmetic and
comparisons act lane by lane and round like single doubles. The compiler may fuse a product with a sum, in lanes as in
scalars, but reorders nothing, so a lane's bits do not depend on the others. Comparisons give a `Mask`; a branch
must hold in all lanes (`all_lanes`) or be a `where`.

`Lanes` are doubles. `Singles` are float32 and take half the time; only `to_float32` and `to_float64` convert between
the two. `Half` is one half of the lanes, for sums that need all registers; `joined` combines two of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.types.containers import UniTuple
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

FEATURES = frozenset((get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES).split(","))
"""CPU features that numba compiles for, as +name and -name: this processor's, unless $NUMBA_CPU_FEATURES is set."""

LANES = 16 if "+avx512f" in FEATURES else 8
"""Numbers in a vector: two registers of AVX-512 or AVX2, so that independent instructions overlap."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_NARROW = ir.VectorType(ir.FloatType(), LANES)
_HALF = ir.VectorType(ir.DoubleType(), LANES // 2)
_WORDS, _SHORT_WORDS = ir.VectorType(_I64, LANES), ir.VectorType(_I32, LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)


class Vector(types.Type):
    """The type of a vector of numbers."""

    single: types.Type
    """The type of one element."""
    count = LANES

    def __init__(self) -> None:
        super().__init__(name=f"{self.single}x{self.count}")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """A single number becomes a vector of equal numbers."""
        return Conversion.safe if isinstance(other, (types.Float, types.Integer)) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """A variable that is a number in one branch and a vector in another is a vector."""
        return self if isinstance(other, (types.Float, types.Integer)) else None


class Lanes(Vector):
    """The type of a vector of doubles."""

    single = types.float64


class Singles(Vector):
    """The type of a vector of single-precision numbers."""

    single = types.float32


class Half(Vector):
    """The type of one half of a vector of doubles."""

    single, count = types.float64, LANES // 2


class Mask(types.Type):
    """The type of a vector of truth values."""

    def __init__(self) -> None:
        super().__init__(name=f"b1x{LANES}")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """A single truth value holds in all lanes."""
        return Conversion.safe if isinstance(other, types.Boolean) else None

    def unify(self, typingctx: Any, other: Any) -> Any:
        """A variable that is a truth value in one branch and a mask in another is a mask."""
        return self if isinstance(other, types.Boolean) else None


lanes, singles, half, mask = Lanes(), Singles(), Half(), Mask()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@register_model(Singles)
class _SinglesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _NARROW)


@register_model(Half)
class _HalfModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _HALF)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BITS)


# --- from single values to vectors ------------------------------------------------------------------


def _spread(builder: Any, value: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@lower_cast(types.Integer, Vector)
@lower_cast(types.Float, Vector)
def _number_to_vector(context: Any, builder: Any, source: Any, wanted: Any, value: Any) -> Any:
    return _spread(builder, context.cast(builder, value, source, wanted.single), context.get_value_type(wanted))


@lower_cast(types.Boolean, Mask)
def _truth_to_mask(context: Any, builder: Any, source: Any, wanted: Any, value: Any) -> Any:
    return _spread(builder, value, _BITS)


# --- operators --------------------------------------------------------------------------------------


def _common(args: tuple[Any, ...]) -> Any:
    """The common type of vectors of one type and single numbers; None if there is none."""
    kinds = {a for a in args if isinstance(a, Vector)}
    numbers = all(isinstance(a, (Vector, types.Float, types.Integer)) for a in args)
    return kinds.pop() if len(kinds) == 1 and numbers else None


def _binary(function: Any, result: Any, make: Callable[[Any, Any, Any], Any]) -> None:
    """Register an operator on vectors, or on a vector and a number; the default result type is that of the vectors."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            kind = _common(args) if len(args) == 2 else None
            return kind and signature(result or kind, kind, kind)

    infer_global(function)(Template)
    for kind in (Lanes, Singles, Half):
        lower_builtin(function, kind, kind)(lambda context, builder, sig, args: make(builder, *args))


def _unary(function: Any, make: Callable[[Any, Any], Any]) -> None:
    """Register a function of one vector with numba."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0], args[0]) if len(args) == 1 and isinstance(args[0], Vector) else None

    infer_global(function)(Template)
    for kind in (Lanes, Singles, Half):
        lower_builtin(function, kind)(lambda context, builder, sig, args: make(builder, args[0]))


def _on_masks(function: Any, make: Callable[[Any, Any, Any], Any]) -> None:
    """Register an operator on masks, or on a mask and a truth value, with numba."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if any(isinstance(a, Mask) for a in args) and all(isinstance(a, (Mask, types.Boolean)) for a in args):
                return signature(mask, mask, mask)
            return None

    infer_global(function)(Template)
    lower_builtin(function, Mask, Mask)(lambda context, builder, sig, args: make(builder, *args))


def _vector_call(name: str) -> Callable[..., Any]:
    """Make a call of an LLVM function on vectors; all arguments and the result have the same type."""

    def make(builder: Any, *args: Any) -> Any:
        vector = args[0].type
        kind = ir.FunctionType(vector, [vector] * len(args))
        full = f"llvm.{name}.v{vector.count}f{32 if vector == _NARROW else 64}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, full), args)

    return make


def _compare(symbol: str) -> Callable[[Any, Any, Any], Any]:
    ordered = symbol != "!="  # x != x must hold for NaN

    def make(builder: Any, a: Any, b: Any) -> Any:
        return builder.fcmp_ordered(symbol, a, b) if ordered else builder.fcmp_unordered(symbol, a, b)

    return make


def _instruction(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: getattr(builder, name)(a, b)


def _teach() -> None:
    for name, instruction in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
        _binary(getattr(operator, name), None, _instruction(instruction))
    for name, symbol in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
        _binary(getattr(operator, name), mask, _compare(symbol))
    _on_masks(operator.and_, _instruction("and_"))
    _on_masks(operator.or_, _instruction("or_"))
    _on_masks(operator.eq, lambda builder, a, b: builder.not_(builder.xor(a, b)))
    _unary(operator.neg, lambda builder, a: builder.fneg(a))
    _unary(operator.pos, lambda builder, a: a)
    _unary(abs, _vector_call("fabs"))
    _unary(math.sqrt, _vector_call("sqrt"))


_teach()


@intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Fused multiply-add a b + c, rounded once, of three doubles or three vectors."""
    kind = lanes if any(isinstance(x, Lanes) for x in (a, b, c)) else types.float64

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _vector_call("fma")(builder, *args) if kind is lanes else builder.fma(*args)

    return kind(kind, kind, kind), make


# --- operations on vectors only ---------------------------------------------------------------------


@intrinsic
def select(typingctx: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Select in each lane."""
    kind = _common((yes, no)) or lanes
    return kind(mask, kind, kind), lambda context, builder, sig, args: builder.select(*args)


@intrinsic
def to_float32(typingctx: Any, v: Any) -> Any:
    """Doubles rounded to single precision."""
    return singles(lanes), lambda context, builder, sig, args: builder.fptrunc(args[0], _NARROW)


@intrinsic
def to_float64(typingctx: Any, v: Any) -> Any:
    """Single-precision numbers as doubles."""
    return lanes(singles), lambda context, builder, sig, args: builder.fpext(args[0], _VECTOR)


@intrinsic
def joined(typingctx: Any, a: Any, b: Any) -> Any:
    """Join two tuples of halves into one tuple of vectors."""
    count = len(a)

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        order = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))
        pairs = [[builder.extract_value(v, i) for v in args] for i in range(count)]
        whole = [builder.shuffle_vector(*pair, order) for pair in pairs]
        return context.make_tuple(builder, sig.return_type, whole)

    return UniTuple(lanes, count)(a, b), make


@intrinsic
def everywhere(typingctx: Any, condition: Any) -> Any:
    """True if the condition holds in all lanes."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("==", builder.bitcast(args[0], bits), ir.Constant(bits, 2**LANES - 1))

    return types.boolean(mask), make


@intrinsic
def bits_of(typingctx: Any, condition: Any) -> Any:
    """An integer whose bit i tells whether the condition holds in lane i."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), ir.IntType(64))

    return types.int64(mask), make


@intrinsic
def lowest(typingctx: Any, bits: Any) -> Any:
    """The number of the lowest bit that is set; there must be one."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), make


@intrinsic
def spread(typingctx: Any, x: Any) -> Any:
    """A vector of equal numbers."""
    return lanes(types.float64), lambda context, builder, sig, args: _spread(builder, args[0], _VECTOR)


@intrinsic
def extract(typingctx: Any, v: Any, i: Any) -> Any:
    """The number in lane i."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], _I32))

    return types.float64(lanes, types.int64), make


@intrinsic
def insert(typingctx: Any, v: Any, i: Any, x: Any) -> Any:
    """The vector with another number in lane i."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], builder.trunc(args[1], _I32))

    return lanes(lanes, types.int64, types.float64), make


@intrinsic
def load(typingctx: Any, array: Any, start: Any) -> Any:
    """The numbers array[start], array[start + 1], ... of a contiguous array of doubles."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig, args), align=8)

    return lanes(_contiguous(array), types.intp), make


@intrinsic
def store(typingctx: Any, array: Any, start: Any, v: Any) -> Any:
    """Write the lanes to array[start], array[start + 1], ..."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, sig, args), align=8)
        return context.get_dummy_value()

    return types.void(_contiguous(array), types.intp, lanes), make


@intrinsic
def stream(typingctx: Any, array: Any, start: Any, v: Any) -> Any:
    """Write the lanes to array[start], ..., an address divisible by 64, past the caches: nobody reads them soon."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        store = builder.store(args[2], _address(context, builder, sig, args), align=64)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_I32, 1)]))
        return context.get_dummy_value()

    return types.void(_contiguous(array), types.intp, lanes), make


def _contiguous(array: Any) -> Any:
    if array.layout != "C" or array.dtype != types.float64 or array.ndim != 1:
        raise TypingError(f"vectors are read and written in contiguous rows of doubles, not in {array}")
    return array


def _address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())


@intrinsic
def power_of_two(typingctx: Any, n: Any) -> Any:
    """2^n for integers n from -1022 to 1023, by writing the exponent bits."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = builder.fptosi(args[0], _WORDS)
        biased = builder.add(whole, ir.Constant(_WORDS, [1023] * LANES))
        return builder.bitcast(builder.shl(biased, ir.Constant(_WORDS, [52] * LANES)), _VECTOR)

    return lanes(lanes), make


@intrinsic
def exponent(typingctx: Any, x: Any) -> Any:
    """The n with 2^n <= |x| < 2^(n+1), for normal numbers."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = builder.lshr(builder.bitcast(args[0], _WORDS), ir.Constant(_WORDS, [52] * LANES))
        biased = builder.and_(words, ir.Constant(_WORDS, [2047] * LANES))
        return builder.sitofp(builder.sub(biased, ir.Constant(_WORDS, [1023] * LANES)), _VECTOR)

    return lanes(lanes), make


@intrinsic
def rough_log2(typingctx: Any, x: Any) -> Any:
    """log2 of a positive float32 from its bits: exponent plus fraction; error at most 0.04."""

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.sitofp(builder.bitcast(args[0], _SHORT_WORDS), _NARROW)
        scaled = builder.fmul(bits, ir.Constant(_NARROW, [2.0**-23] * LANES))
        return builder.fsub(scaled, ir.Constant(_NARROW, [127 - 0.0430357] * LANES))

    return singles(singles), make
