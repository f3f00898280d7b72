"""Inertia tensors: reading and checking them, and their principal moments and axes."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, ResultWarning
from .validate import quaternion_of, real_array

TOLERANCE = 1e-12
"""Differences below this, relative to the largest moment, count as zero."""

SMALLEST, LARGEST = 1e-100, 1e100
"""Allowed range of the largest moment: squares and products of momenta then stay within the range of doubles."""


class Principal(NamedTuple):
    """Data of a body in its principal axes, as plain floats."""

    moments: tuple[float, float, float]
    inverse: tuple[float, float, float]
    """1/I_i; zero for the axis of a linear body, about which it does not rotate."""
    to_body: tuple[float, ...]
    """Quaternion from principal to user axes; empty if they are the same."""
    axes: Any
    """Rows of the matrix whose columns are the principal axes; None if they are the user's axes."""
    linear_axis: int | None
    tensor: tuple[tuple[float, ...], ...]
    """Rows of the inertia tensor, in the user's axes."""


def parallel(mass: float, arm: np.ndarray) -> np.ndarray:
    """Parallel axis theorem: the inertia added about a point d away from the centre of mass, m (d^2 1 - d d^T)."""
    return of_squares(mass * np.outer(arm, arm))


def of_squares(second: np.ndarray) -> np.ndarray:
    """The inertia tensor tr(S) 1 - S of the second moments S = integral of r r^T dm."""
    return np.asarray(np.trace(second) * np.eye(3) - second)


def tidied(tensor: np.ndarray) -> np.ndarray:
    """The tensor with products of inertia at round-off level set to zero."""
    small = TOLERANCE * np.abs(tensor).max()
    return np.where((np.abs(tensor) <= small) & ~np.eye(3, dtype=bool), 0.0, tensor)


def tensor_of(inertia: Any) -> np.ndarray:
    """The inertia tensor, exactly symmetric."""
    expected = "inertia must be three moments or a symmetric 3x3 tensor of numbers"
    array = real_array(inertia, expected, key="inertia")
    if array.shape not in ((3,), (3, 3)):
        raise InputError(f"{expected}; got {f'shape {array.shape}' if array.shape else repr(inertia)}", "inertia")
    if not np.isfinite(array).all():
        raise InputError(f"inertia must be finite; got {array.tolist()}", "inertia")
    tensor = np.diag(array) if array.shape == (3,) else array
    gaps = np.abs(tensor / 2 - tensor.T / 2) * 2
    if gaps.max() > TOLERANCE * np.abs(tensor).max():
        i, j = np.unravel_index(gaps.argmax(), (3, 3))
        raise InputError(
            f"the inertia tensor must be symmetric; entries [{i}, {j}] and [{j}, {i}] differ by {gaps.max():.3g}",
            "inertia",
        )
    return np.asarray(tensor / 2 + tensor.T / 2)


def principal_axes(tensor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments, and the rotation whose columns are the principal axes."""
    if not (tensor - np.diag(np.diag(tensor))).any():
        return np.diag(tensor).copy(), np.eye(3)
    moments, axes = np.linalg.eigh(tensor)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def in_principal_axes(tensor: np.ndarray, moments: np.ndarray, axes: np.ndarray) -> Principal:
    """Collect the data of a body in its principal axes, the columns of `axes`."""
    I1, I2, I3 = moments.tolist()
    J1, J2, J3 = (1 / x if x > 0 else 0.0 for x in (I1, I2, I3))
    turned = not np.array_equal(axes, np.eye(3))
    zero = np.flatnonzero(moments == 0)
    return Principal(
        (I1, I2, I3),
        (J1, J2, J3),
        quaternion_of(axes.tolist()) if turned else (),
        tuple(map(tuple, axes.tolist())) if turned else None,
        int(zero[0]) if zero.size else None,
        tuple(map(tuple, tensor.tolist())),
    )


def checked_moments(moments: np.ndarray, physical: bool | None) -> np.ndarray:
    """Check that the moments belong to a body (as far as `physical` asks); a linear body gets exactly (0, I, I)."""
    scale = float(np.abs(moments).max())
    if scale == 0:
        raise InputError("the moments of inertia are all zero; a body needs at least two positive moments", "inertia")
    if not SMALLEST <= scale <= LARGEST:
        raise InputError(
            f"the largest moment of inertia must lie between {SMALLEST:g} and {LARGEST:g}; got {scale:g}, "
            f"so choose another unit",
            "inertia",
        )
    moments = np.where(np.abs(moments) <= TOLERANCE * scale, 0.0, moments)
    if (moments < 0).any():
        raise InputError(f"principal moments of inertia must not be negative; got {moments.tolist()}", "inertia")
    largest = int(moments.argmax())
    excess = 2 * moments[largest] - moments.sum()
    if excess > TOLERANCE * scale:
        others = " and ".join(f"{m:g}" for i, m in enumerate(moments) if i != largest)
        fault = (
            f"{moments[largest]:g} exceeds the sum of {others} by {excess:.3g} ({100 * excess / scale:.3g} %), which "
            f"no mass distribution allows"
        )
        if physical or (moments == 0).any():
            remedy = "" if (moments == 0).any() else "ph.Body(..., physical=False) accepts them for Euler's equations"
            raise InputError(f"moments of inertia must satisfy the triangle inequality: {fault}", "inertia", remedy)
        if physical is False:
            warnings.warn(f"unphysical moments of inertia: {fault}", ResultWarning, stacklevel=3)
    return np.where(moments > 0, moments.sum() / 2, 0.0) if (moments == 0).any() else moments
