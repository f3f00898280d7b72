"""Workspace on the stack of compiled code: the primitive `workspace` of kernels.

It is a bare pointer, so access costs only the memory operation. It holds vectors or scalars, and must not leave the
kernel that allocated it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

from ...numbers import dispatch, primitives
from .convolution import ALIGNMENT
from .dual import DualType
from .vector_types import Lanes, Vector, half, joined


class Workspace(types.Type):
    """The type of a workspace for numbers of one type."""

    def __init__(self, number: Any) -> None:
        self.number = number
        super().__init__(name=f"room for {number}")


@register_model(Workspace)
class _WorkspaceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.number).get_value_type().as_pointer())


@infer_global(operator.getitem)
class _Get(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Workspace) and isinstance(args[1], types.Integer):
            return signature(args[0].number, args[0], types.intp)
        return None


@infer_global(operator.setitem)
class _Set(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Workspace) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.intp, args[0].number)
        return None


@lower_builtin(operator.getitem, Workspace, types.intp)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(builder.gep(args[0], [args[1]]))


@lower_builtin(operator.setitem, Workspace, types.intp, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], builder.gep(args[0], [args[1]]))
    return context.get_dummy_value()


class Halves(types.Type):
    """The type of one half of a workspace of lanes: every second half-vector."""

    number = half

    def __init__(self) -> None:
        super().__init__(name=f"every second {half} of room")


@register_model(Halves)
class _HalvesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(half).get_value_type().as_pointer())


@intrinsic
def _halves(typingctx: Any, workspace: Any, which: Any) -> Any:
    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.bitcast(args[0], context.get_value_type(sig.return_type))
        return builder.gep(pointer, [args[1]])

    return Halves()(workspace, types.intp), make


@infer_global(operator.getitem)
class _GetHalf(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Halves) and isinstance(args[1], types.Integer):
            return signature(half, args[0], types.intp)
        return None


@infer_global(operator.setitem)
class _SetHalf(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Halves) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.intp, half)
        return None


def _place(builder: Any, workspace: Any, i: Any) -> Any:
    return builder.gep(workspace, [builder.mul(i, ir.Constant(ir.IntType(64), 2))])


@lower_builtin(operator.getitem, Halves, types.intp)
def _get_half(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_place(builder, args[0], args[1]))


@lower_builtin(operator.setitem, Halves, types.intp, types.Any)
def _set_half(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _place(builder, args[0], args[1]))
    return context.get_dummy_value()


def _halver(plain: Callable[..., Any], workspace: Any) -> Callable[..., Any]:
    """Implementation of the primitive `by_halves`."""
    if not (isinstance(workspace, Workspace) and isinstance(workspace.number, Lanes)):
        return plain
    return lambda workspace, k: joined(plain(_halves(workspace, 0), k), plain(_halves(workspace, 1), k))


dispatch.register_halves(_halver)


def _allocator(number: Any, count: int) -> Callable[..., Any]:
    @intrinsic
    def allocate(typingctx: Any) -> Any:
        def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            size = ir.Constant(ir.IntType(64), count)
            made = cgutils.alloca_once(builder, context.get_value_type(number), size=size)
            made.align = ALIGNMENT
            return made

        return Workspace(number)(), make

    made: Callable[..., Any] = allocate
    return made


def teach(options: dict[str, Any]) -> None:
    """Register the primitive `workspace` with numba; its size must be known when a kernel is compiled."""

    def workspace(like: Any, count: Any) -> Any:
        allocate = _allocator(like if isinstance(like, (Vector, DualType)) else types.float64, count.literal_value)
        return lambda like, count: allocate()

    overload(primitives.workspace, strict=False, prefer_literal=True, jit_options=options)(workspace)
