"""Kernels of a field in principal axes, made of formulas in the user's axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._memo import MADE
from ...kernels.so3 import conj, dot, matrix, mul, rotate, times, unrotate
from ...kernels.unroll import written
from ...methods.queries import VECTOR, FieldQuery, Torque
from ...numbers import floats
from ...numbers.dispatch import kernel
from ...symbolic.expression import compiled


def formula_kernel(text: tuple[str, dict[str, Any]], number: Callable[[Any], Any]) -> Callable[..., Any]:
    """The kernel of a formula; the one for doubles is made once (others depend on the working precision)."""
    if number is not floats.number:
        return compiled(*text, number)
    made: Callable[..., Any] = MADE(("formula", repr(text)), lambda: compiled(*text, number))
    return made


def torque_kernel(value: Callable[..., Any], count: int, own_axes: bool) -> Callable[..., Any]:
    """Wrap a formula of (t, R, omega) in the user's axes into a torque in principal axes.

    With axes of their own, the quaternion a that turns principal into user axes follows the parameters.
    """
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any) -> Any:
            return value(t, matrix(q), times(system[1], m), system[2])

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any) -> Any:
        p = system[2]
        a = (p[count], p[count + 1], p[count + 2], p[count + 3])
        force = value(t, matrix(mul(q, conj(a))), rotate(a, times(system[1], m)), p)
        return unrotate(a, force)

    return turned


@kernel
def inverse_tensor(axes: Any, inverse: Any) -> Any:
    """I^-1 in the user's axes as six numbers, by rows, from the principal ones and the quaternion that turns them."""
    x, y, z = matrix(axes)
    return (
        dot(x, times(inverse, x)), dot(x, times(inverse, y)), dot(x, times(inverse, z)),
        dot(y, times(inverse, y)), dot(y, times(inverse, z)), dot(z, times(inverse, z)),
    )  # fmt: skip


def pair_kernel(value: Callable[..., Any], count: int, own_axes: bool) -> Callable[..., Any]:
    """As `torque_kernel`, for a formula that gives the torque and the torque of V."""
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any) -> Any:
            a, b, c, d, e, f = value(matrix(q), system[2], system[1])
            return (a, b, c), (d, e, f)

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any) -> Any:
        p = system[2]
        axes = (p[count], p[count + 1], p[count + 2], p[count + 3])
        a, b, c, d, e, f = value(matrix(mul(q, conj(axes))), p, inverse_tensor(axes, system[1]))
        return unrotate(axes, (a, b, c)), unrotate(axes, (d, e, f))

    return turned


def difference_kernel(value: Callable[..., Any], count: int, own_axes: bool) -> Callable[..., Any]:
    """As `torque_kernel`, for a formula of two attitudes that gives the mean torque and the change of the potential."""
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any, t1: Any, q1: Any, m1: Any) -> Any:
            a, b, c, change = value(matrix(q), matrix(q1), system[2])
            return (a, b, c), change

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any, t1: Any, q1: Any, m1: Any) -> Any:
        p = system[2]
        axes = (p[count], p[count + 1], p[count + 2], p[count + 3])
        own = conj(axes)
        a, b, c, change = value(matrix(mul(q, own)), matrix(mul(q1, own)), p)
        return unrotate(axes, (a, b, c)), change

    return turned


@functools.cache
def no_answer(query: FieldQuery) -> Callable[..., Any]:
    """The kernel that answers a query without a field: integer zeros, of which `absent` is true."""
    zeros = tuple((0, 0, 0) if part == VECTOR else 0 for part in query.shape)
    return written(", ".join(("t", "q", "m", "system", *query.arguments)), repr(query.joined(zeros)))


no_torque = no_answer(Torque())
