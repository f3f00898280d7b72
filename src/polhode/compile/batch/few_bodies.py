"""The conversions of `layout` by NumPy, for a few bodies and first calls: the same bits, without compilation.

A first call would otherwise compile three programs that depend on the layout alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels.loops import COLUMNS
from ...kernels.so3 import conj, mul, rotate, unrotate
from ...numbers.arrays import components
from .places import ATTITUDE, AXES, DT, INERTIA, INVERSE, MOMENTS, MOMENTUM, PARAMETERS, STATE, STEPS, VALUES


def _rows(array: np.ndarray, bodies: np.ndarray) -> np.ndarray:
    """Return the rows of some bodies, or the one row for all of them."""
    return array[bodies] if len(array) > 1 else np.broadcast_to(array, (len(bodies), array.shape[1]))


def _bodies(order: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the bodies at some positions."""
    return order[positions] if len(order) else positions


def lay_out(given: tuple[np.ndarray, ...], order: np.ndarray, number: int, data: np.ndarray, first: int) -> None:
    """Fill `data` with the bodies from position `first`; beyond the end the last one is repeated."""
    bodies = _bodies(order, np.minimum(first + np.arange(data.shape[1]), number - 1))
    wanted = (ATTITUDE, MOMENTUM, MOMENTS, VALUES, AXES, DT, STEPS)
    attitude, momentum, moments, values, axes, dt, steps = (_rows(given[k], bodies).T for k in wanted)
    q, m, a = tuple(attitude), tuple(momentum), tuple(axes)
    if a:
        q, m = mul(q, a), unrotate(a, m)
    there = moments > 0  # a linear body has no momentum along its axis, and its zero moment is never a divisor
    data[STATE : STATE + 4] = q
    data[STATE + 4 : INERTIA] = np.where(there, m, 0.0)
    data[INERTIA:INVERSE] = moments
    data[INVERSE:PARAMETERS] = np.divide(1.0, moments, out=np.zeros(moments.shape), where=there)
    rest = np.concatenate([values, axes, dt, steps])
    data[PARAMETERS : PARAMETERS + len(rest)] = rest  # rows of the loop itself may follow


def hand_all_over(
    given: tuple[np.ndarray, ...], order: np.ndarray, rows: np.ndarray, first: int, last: int, found: Any
) -> None:
    """Copy the initial states and the output states of the bodies at positions `first` to `last` to the results."""
    bodies, (q, m, extra_columns) = _bodies(order, np.arange(first, last)), found
    q[0, bodies], m[0, bodies] = _rows(given[ATTITUDE], bodies), _rows(given[MOMENTUM], bodies)
    axes = components(_rows(given[AXES], bodies)) if given[AXES].shape[1] else ()
    for n, row in enumerate(rows[:, :, : last - first]):
        attitude, momentum = tuple(row[:4]), tuple(row[4:7])
        if axes:
            attitude, momentum = mul(attitude, conj(axes)), rotate(axes, momentum)
        q[n + 1, bodies], m[n + 1, bodies] = np.stack(attitude, -1), np.stack(momentum, -1)
        extra_columns[n, bodies] = row[COLUMNS : COLUMNS + extra_columns.shape[2]].T


def changed(holds: Callable[..., Any], change: Callable[..., Any], array: np.ndarray) -> np.ndarray | None:
    """Apply a kernel to every row if a condition holds for all rows; else return None."""
    v = components(array)
    with np.errstate(all="ignore"):
        return np.stack(change(v), -1) if np.all(holds(v)) else None
