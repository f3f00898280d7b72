"""Conversion between principal and user axes, for kernels built from formulas in the user's axes.

If the user's axes are not principal, the quaternion a from principal to user axes follows the `count` parameters of
the field in system[2]. `physics/equations.in_principal_axes` does the same on the graph, for Taylor series. On the
graph, the compiler fuses these products with others, and results differ in their last bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..kernels.so3 import conj, dot, matrix, mul, rotate, times, unrotate
from ..kernels.unroll import unrolled_kernel
from ..numbers.dispatch import kernel


class Axes(NamedTuple):
    """Kernels between principal and user axes."""

    attitude: Callable[..., Any]
    """(q, system) -> the rotation matrix of the user's axes."""
    vector: Callable[..., Any]
    """(v, system) -> a vector in the user's axes."""
    inverse: Callable[..., Any]
    """(system) -> I^-1 in the user's axes: three numbers, or six (by rows) if these are not the principal ones."""
    back: Callable[..., Any]
    """(v, system) -> a vector from the user's axes to principal axes."""


@functools.cache
def axes(has_principal_rotation: bool, count: int) -> Axes:
    """The kernels for a body with or without a principal rotation, in a field with `count` parameters."""
    return _turned(count) if has_principal_rotation else PRINCIPAL


@kernel
def _matrix(q: Any, system: Any) -> Any:
    return matrix(q)


@kernel
def _same(v: Any, system: Any) -> Any:
    return v


@kernel
def _inverse(system: Any) -> Any:
    return system[1]


PRINCIPAL = Axes(_matrix, _same, _inverse, _same)


@kernel
def inverse_tensor(a: Any, inverse: Any) -> Any:
    """I^-1 in the user's axes as six numbers, by rows, from principal to user axes by the quaternion a."""
    x, y, z = matrix(a)
    return (
        dot(x, times(inverse, x)), dot(x, times(inverse, y)), dot(x, times(inverse, z)),
        dot(y, times(inverse, y)), dot(y, times(inverse, z)), dot(z, times(inverse, z)),
    )  # fmt: skip


def _turned(count: int) -> Axes:
    # written out: parameters may be numbers and arrays, and then compiled code needs literal indices
    principal_to_body = unrolled_kernel("system", f"({''.join(f'system[2][{count + i}], ' for i in range(4))})")

    @kernel
    def attitude(q: Any, system: Any) -> Any:
        return matrix(mul(q, conj(principal_to_body(system))))

    @kernel
    def vector(v: Any, system: Any) -> Any:
        return rotate(principal_to_body(system), v)

    @kernel
    def inverse(system: Any) -> Any:
        return inverse_tensor(principal_to_body(system), system[1])

    @kernel
    def back(v: Any, system: Any) -> Any:
        return unrotate(principal_to_body(system), v)

    return Axes(attitude, vector, inverse, back)
