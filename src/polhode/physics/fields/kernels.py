"""Kernels of a field in principal axes, built from formulas in the user's axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._memo import MADE
from ...kernels.so3 import times
from ...kernels.unroll import unrolled_kernel
from ...methods.queries import VECTOR, FieldQuery, Torque
from ...numbers import floats
from ...numbers.dispatch import kernel
from ...symbolic.expression import compiled
from ..axes import axes


def formula_kernel(text: tuple[str, dict[str, Any]], number: Callable[[Any], Any]) -> Callable[..., Any]:
    """The kernel of a formula; memoised for doubles only (others depend on the working precision)."""
    if number is not floats.number:
        return compiled(*text, number)
    value: Callable[..., Any] = MADE(("formula", repr(text)), lambda: compiled(*text, number))
    return value


def torque_kernel(value: Callable[..., Any], count: int, has_principal_rotation: bool) -> Callable[..., Any]:
    """Wrap a formula of (t, R, omega, parameters) in the user's axes into a torque in principal axes."""
    attitude, vector, _, back = axes(has_principal_rotation, count)

    @kernel
    def torque(t: Any, q: Any, m: Any, system: Any) -> Any:
        return back(value(t, attitude(q, system), vector(times(system[1], m), system), system[2]), system)

    return torque


def coupled_kernel(
    value: Callable[..., Any], rates: int, count: int, has_principal_rotation: bool
) -> Callable[..., Any]:
    """As `torque_kernel`, for a formula of the torque and the rates of states z: (t, q, m, z, system) -> (T, z')."""
    attitude, vector, _, back = axes(has_principal_rotation, count)
    numbers = "".join(f"v[{3 + i}], " for i in range(rates))
    split = unrolled_kernel("v, system", f"(back((v[0], v[1], v[2]), system), ({numbers}))", back=back)

    @kernel
    def coupled(t: Any, q: Any, m: Any, z: Any, system: Any) -> Any:
        omega = vector(times(system[1], m), system)
        return split(value(t, attitude(q, system), omega, system[2], z), system)

    return coupled


def pair_kernel(value: Callable[..., Any], count: int, has_principal_rotation: bool) -> Callable[..., Any]:
    """As `torque_kernel`, for a formula of the torque and the torque of V."""
    attitude, _, inverse, back = axes(has_principal_rotation, count)

    @kernel
    def pair(t: Any, q: Any, m: Any, system: Any) -> Any:
        a, b, c, d, e, f = value(attitude(q, system), system[2], inverse(system))
        return back((a, b, c), system), back((d, e, f), system)

    return pair


def difference_kernel(value: Callable[..., Any], count: int, has_principal_rotation: bool) -> Callable[..., Any]:
    """As `torque_kernel`, for a formula of two attitudes: the mean torque and the change of the potential."""
    attitude, _, _, back = axes(has_principal_rotation, count)

    @kernel
    def difference(t: Any, q: Any, m: Any, system: Any, t1: Any, q1: Any, m1: Any) -> Any:
        a, b, c, change = value(attitude(q, system), attitude(q1, system), system[2])
        return back((a, b, c), system), change

    return difference


@functools.cache
def no_answer(query: FieldQuery) -> Callable[..., Any]:
    """The kernel that answers a query without a field: integer zeros, for which `absent` is true."""
    zeros = tuple((0, 0, 0) if part == VECTOR else 0 for part in query.shape)
    return unrolled_kernel(", ".join(("t", "q", "m", "system", *query.arguments)), repr(query.joined(zeros)))


no_torque = no_answer(Torque())
