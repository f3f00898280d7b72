"""States: (q, m); (q, m, memory) with data that a method carries; or compensated, (q, m, q_low, m_low).

The value of a compensated state is the sum of its high and low parts.

An increment of size h added to (q, m) leaves an error of epsilon; added to the compensated state (a compensated sum,
after Kahan) it leaves epsilon times h. The parts of a step handle both kinds of state through `overloaded`.
G. Vilmart, J. Comput. Phys. 227 (2008) 7083-7088.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..numbers.dispatch import kernel, overloaded
from ..numbers.double_double import Pair, two_product, two_sum
from ..numbers.types import Number, Quat, Vec3
from .so3 import add, along, nearly_unit, restored
from .unroll import unrolled_kernel


@kernel
def summed(a: Number, low: Number, step: Number) -> Pair:
    """Return the sum (a + low) + step as a rounded number and its rounding error.

    The rounding error of the first sum is added to the low part first. If the low part were added to the step
    directly, both being multiples of nearly the same power of two, it would be rounded with a bias.
    """
    total, lost = two_sum(a, step)
    low = low + lost
    high = total + low
    return high, low - (high - total)


@kernel
def _summed3(a: Vec3, low: Vec3, step: Vec3) -> tuple[Vec3, Vec3]:
    x, y, z = summed(a[0], low[0], step[0]), summed(a[1], low[1], step[1]), summed(a[2], low[2], step[2])
    return (x[0], y[0], z[0]), (x[1], y[1], z[1])


@kernel
def _summed4(a: Quat, low: Quat, step: Quat) -> tuple[Quat, Quat]:
    w, x = summed(a[0], low[0], step[0]), summed(a[1], low[1], step[1])
    y, z = summed(a[2], low[2], step[2]), summed(a[3], low[3], step[3])
    return (w[0], x[0], y[0], z[0]), (w[1], x[1], y[1], z[1])


# --- increments -------------------------------------------------------------------------------------


@kernel
def incremented_compensated(y: Any, dq: Quat, dm: Vec3) -> Any:
    """Add increments of attitude and momentum to the compensated state."""
    q, low = _summed4(y[0], y[2], dq)
    m, m_low = _summed3(y[1], y[3], dm)
    return q, m, low, m_low


@kernel
def incremented(y: Any, dm: Vec3, vector: Vec3, scalar: Vec3) -> Any:
    """Add increments of the momentum and of the vector and scalar part of q to (q, m), and normalise q.

    Only the first entry of `scalar` counts, because increments come as vectors of three numbers.
    """
    q, m = y
    s = scalar[0]
    return restored((q[0] + s, q[1] + vector[0], q[2] + vector[1], q[3] + vector[2])), add(m, dm)


@kernel
def with_momentum_correction(y: Any, factor: Number, dm: Vec3) -> Any:
    """Add a momentum correction, factor dm, below the round-off of dm, to the compensated state."""
    return y[0], y[1], y[2], along(y[3], factor, dm)


@kernel
def _kick(y: Any, dm: Vec3) -> Any:
    """Apply a kick: add dm to the momentum."""
    return y[0], add(y[1], dm)


@kernel
def _kick_compensated(y: Any, dm: Vec3) -> Any:
    m, low = _summed3(y[1], y[3], dm)
    return y[0], m, y[2], low


kick = overloaded(_kick, _kick_compensated)


# --- between steps ----------------------------------------------------------------------------------


@kernel
def _renormalise(y: Any) -> Any:
    """Remove the round-off of one step from the quaternion's length."""
    return nearly_unit(y[0]), y[1]


@kernel
def _lengthening(q: Quat, low: Quat) -> Number:
    """Excess over 1 of the length of the quaternion q + low, to twice the precision."""
    w, x, y, z = two_product(q[0], q[0]), two_product(q[1], q[1]), two_product(q[2], q[2]), two_product(q[3], q[3])
    a, b = two_sum(w[0], x[0]), two_sum(y[0], z[0])
    s, rest = two_sum(a[0], b[0])
    rest = rest + (a[1] + b[1]) + ((w[1] + x[1]) + (y[1] + z[1]))
    return ((s - 1) + rest) / 2 + (q[0] * low[0] + q[1] * low[1] + q[2] * low[2] + q[3] * low[3])


@kernel
def _renormalise_compensated(y: Any) -> Any:
    """Remove it with the low part alone: the correction is parallel to q, so the attitude does not change.

    A length accurate to round-off only is not enough: its error depends on q and enters the next increments of q, in
    the same direction each time q returns.
    """
    q, m, low, m_low = y
    c = -_lengthening(q, low)
    return q, m, (low[0] + c * q[0], low[1] + c * q[1], low[2] + c * q[2], low[3] + c * q[3]), m_low


@kernel
def _collapse(y: Any) -> Any:
    """Return the state as (q, m)."""
    return y


@kernel
def _collapse_compensated(y: Any) -> Any:
    q, m, low, m_low = y
    return (q[0] + low[0], q[1] + low[1], q[2] + low[2], q[3] + low[3]), add(m, m_low)


@kernel
def _renormalise_with_memory(y: Any) -> Any:
    return nearly_unit(y[0]), y[1], y[2]


@kernel
def _without_memory(y: Any) -> Any:
    return y[0], y[1]


renormalise = overloaded(_renormalise, _renormalise_compensated, _renormalise_with_memory)
collapse = overloaded(_collapse, _collapse_compensated, _without_memory)


@kernel
def compensate(y: Any) -> Any:
    """Append zero low parts to the state (q, m)."""
    q, m = y
    return q, m, (0 * q[0], 0 * q[1], 0 * q[2], 0 * q[3]), (0 * m[0], 0 * m[1], 0 * m[2])


@kernel
def counted(memory: Any) -> Any:
    """The memory of the next step of a method with noise, whose first number is that of the step."""
    return (memory[0] + 1, *memory[1:])


@functools.cache
def with_memory(numbers: int) -> Callable[[Any], Any]:
    """Kernel: append a memory of `numbers` zeros to the state (q, m)."""
    return unrolled_kernel("y", f"(y[0], y[1], ({'0 * y[0][0], ' * numbers}))")
