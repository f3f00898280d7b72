"""Rigid bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError
from .inputs import real_array

TOLERANCE = 1e-12
"""Relative to the largest moment: what counts as symmetric, equal, zero."""

SMALLEST, LARGEST = 1e-100, 1e100
"""Range of the largest moment: squares and products of momenta then stay within doubles."""


class Body:
    """A rigid body, known by its inertia about the fixed point or the centre of mass.

    Parameters
    ----------
    inertia : three principal moments, or a symmetric 3x3 tensor. With a tensor everything in and out
        stays in the axes it is written in.
    """

    def __init__(self, inertia: Any) -> None:
        tensor = _tensor(inertia)
        moments, axes = _principal(tensor)
        moments = _checked_moments(moments)
        if (moments == 0).any():
            tensor = axes * moments @ axes.T
        self.inertia = tensor
        self.moments = moments
        self.axes = axes
        self.inertia.flags.writeable = self.moments.flags.writeable = self.axes.flags.writeable = False

    @property
    def has_own_axes(self) -> bool:
        """Do the principal axes differ from the axes the tensor is written in."""
        return not np.array_equal(self.axes, np.eye(3))

    @property
    def linear_axis(self) -> int | None:
        """Index of the principal axis with zero moment, if there is one."""
        zero = np.flatnonzero(self.moments == 0)
        return int(zero[0]) if zero.size else None

    @property
    def is_flat(self) -> bool:
        """Do all points lie in a plane: is one moment the sum of the others."""
        return bool(self.moments.sum() - 2 * self.moments.max() <= TOLERANCE * self.moments.max())

    @property
    def inverse_moments(self) -> np.ndarray:
        """1/I_i; zero for the axis of a linear body, about which nothing turns."""
        return np.divide(1.0, self.moments, out=np.zeros(3), where=self.moments > 0)

    def __repr__(self) -> str:
        if self.has_own_axes:
            return f"Body({self.inertia.tolist()})"
        return f"Body({self.moments.tolist()})"


def _tensor(inertia: Any) -> np.ndarray:
    """The inertia tensor, exactly symmetric."""
    expected = "inertia must be three moments or a symmetric 3x3 tensor of numbers"
    given = real_array(inertia, expected)
    if given.shape not in ((3,), (3, 3)):
        raise InputError(f"{expected}; got {f'shape {given.shape}' if given.shape else repr(inertia)}")
    if not np.isfinite(given).all():
        raise InputError(f"inertia must be finite; got {given.tolist()}")
    tensor = np.diag(given) if given.shape == (3,) else given
    gaps = np.abs(tensor / 2 - tensor.T / 2) * 2
    if gaps.max() > TOLERANCE * np.abs(tensor).max():
        i, j = np.unravel_index(gaps.argmax(), (3, 3))
        raise InputError(
            f"the inertia tensor must be symmetric; entries [{i}, {j}] and [{j}, {i}] differ by {gaps.max():.3g}"
        )
    return np.asarray(tensor / 2 + tensor.T / 2)


def _principal(tensor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments, and the rotation whose columns are the principal axes."""
    if not (tensor - np.diag(np.diag(tensor))).any():
        return np.diag(tensor).copy(), np.eye(3)
    moments, axes = np.linalg.eigh(tensor)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def _checked_moments(moments: np.ndarray) -> np.ndarray:
    """The moments of a body that can exist; those of a linear body as exactly (0, I, I)."""
    scale = float(np.abs(moments).max())
    if scale == 0:
        raise InputError("the moments of inertia are all zero; a body needs at least two positive moments")
    if not SMALLEST <= scale <= LARGEST:
        raise InputError(
            f"the largest moment of inertia must lie between {SMALLEST:g} and {LARGEST:g}; got {scale:g}, "
            f"so choose another unit"
        )
    moments = np.where(np.abs(moments) <= TOLERANCE * scale, 0.0, moments)
    if (moments < 0).any():
        raise InputError(f"principal moments of inertia must not be negative; got {moments.tolist()}")
    largest = int(moments.argmax())
    excess = 2 * moments[largest] - moments.sum()
    if excess > TOLERANCE * scale:
        others = " and ".join(f"{m:g}" for i, m in enumerate(moments) if i != largest)
        raise InputError(
            f"moments of inertia must satisfy the triangle inequality: {moments[largest]:g} exceeds the sum of "
            f"{others} by {excess:.3g} ({100 * excess / scale:.3g} %), and no mass distribution has that"
        )
    return np.where(moments > 0, moments.sum() / 2, 0.0) if (moments == 0).any() else moments
