"""The inertia of many bodies: checked, and diagonalised all at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...kernels.so3 import Vec3
from ...numbers.arrays import components
from ...numbers.dispatch import kernel
from ...numbers.primitives import where
from ...physics.body import TOLERANCE, Body, real_array
from ...physics.problem import quaternion_of
from ...physics.validate import quaternions_of
from .memory import HOST, Memory


class Inertia(NamedTuple):
    """Inertia of many bodies, or of one for all.

    Attributes
    ----------
    moments : (N, 3) principal moments
    own : (N, 4) quaternions from principal to user axes; None if all axes are the same
    plain : whether it is known that no body is linear, flat, or has rotated principal axes
    listed : the bodies as objects, if they were given as these
    tensors : the tensors, if they were given as these
    """

    moments: np.ndarray
    own: np.ndarray | None = None
    plain: bool = False
    listed: tuple[Body, ...] = ()
    tensors: np.ndarray | None = None


def inertia_of(bodies: Any, memory: Memory = HOST) -> Inertia:
    """Return the inertia of `ph.Body` objects, of principal moments (N, 3) or of tensors (N, 3, 3); or of one body.

    A copy of given moments is in memory of a kind.
    """
    if isinstance(bodies, Body):
        bodies = [bodies]
    if isinstance(bodies, list | tuple) and bodies and all(isinstance(b, Body) for b in bodies):
        return _of_objects(tuple(bodies))
    from ...compile.batch import layout

    expected = "bodies must be ph.Body objects, principal moments (N, 3) or tensors (N, 3, 3)"
    given = real_array(bodies, expected, fresh=False)
    if given.shape == (3,) or (given.shape == (3, 3) and _is_tensor(given)):
        return _of_objects((Body(given),))
    if given.ndim not in (2, 3) or given.shape[1:] not in ((3,), (3, 3)) or not len(given):
        raise InputError(f"{expected}; got shape {given.shape}")
    if given.ndim == 3:
        return _of_tensors(given.copy())
    moments = memory.known("moments", given)
    if moments is None:
        moments = layout.changed(plain, same, given, memory.empty)
    if moments is not None:
        return Inertia(moments, plain=True)
    return Inertia(_checked(given.copy(), given))


def _is_tensor(given: np.ndarray) -> bool:
    """Return whether nine numbers are one inertia tensor, not the principal moments of three bodies.

    They are never both: where the triangle inequality holds in all rows, the trace is at most twice the sum of the
    entries above the diagonal. In a tensor tr(S) 1 - S of second moments S it is at least four times that sum.
    """
    tensor, moments = _fault(given), next(filter(None, map(_fault, given)), "")
    if tensor and moments:
        raise InputError(
            "bodies of shape (3, 3) must be one inertia tensor for all or the principal moments of three bodies; as a "
            f"tensor: {tensor}; as moments: {moments}"
        )
    return not tensor


def _fault(inertia: np.ndarray) -> str:
    """Return why this is no inertia of a body; empty if it is."""
    try:
        Body(inertia)
    except InputError as fault:
        return str(fault)
    return ""


def _of_objects(bodies: tuple[Body, ...]) -> Inertia:
    moments = np.array([b.moments for b in bodies])
    if not any(b.has_principal_rotation for b in bodies):
        return Inertia(moments, listed=bodies)
    return Inertia(moments, np.array([quaternion_of(b.axes.tolist()) for b in bodies]), listed=bodies)


def _of_tensors(given: np.ndarray) -> Inertia:
    """Diagonalise all tensors in one pass; those that are not plain are checked one by one, as `Body` does."""
    gaps = np.abs(given / 2 - np.swapaxes(given, 1, 2) / 2).max(axis=(1, 2)) * 2
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(gaps <= TOLERANCE * np.abs(given).max(axis=(1, 2))))
    if wrong.size:
        _body(int(wrong[0]), given[wrong[0]])  # raises the error
    tensors = given / 2 + np.swapaxes(given, 1, 2) / 2
    moments, axes = np.linalg.eigh(tensors)
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]
    straight = ~tensors[:, ~np.eye(3, dtype=bool)].any(axis=1)
    moments[straight], axes[straight] = np.diagonal(tensors[straight], axis1=1, axis2=2), np.eye(3)
    moments = _checked(moments, given)
    if straight.all():
        return Inertia(moments, tensors=given)
    return Inertia(moments, quaternions_of(axes), tensors=given)


def _body(i: int, inertia: np.ndarray) -> Body:
    try:
        return Body(inertia)
    except InputError as fault:
        raise InputError(f"body {i}: {fault}") from None


@kernel
def plain(moments: Vec3) -> Any:
    """Return whether the moments are of moderate size, and not (even nearly) those of a linear or flat body."""
    x, y, z = moments
    low, high = where(x < y, x, y), where(x > y, x, y)
    low, high = where(low < z, low, z), where(high > z, high, z)
    return (low > 1e-9 * high) & (x + y + z - 2 * high > 1e-9 * high) & (high < 1e90) & (low > 1e-90)


@kernel
def same(moments: Vec3) -> Vec3:
    """Return the moments: a copy of all, in one pass with their check."""
    return moments


PLAIN = plain, 3, same
"""The condition, the width and the kernel of a pass over moments."""


def _checked(moments: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return rows of moments; those that fail the quick test `plain` are checked one by one, as they were given."""
    with np.errstate(invalid="ignore", over="ignore"):
        right = plain(components(moments))
    for i in np.flatnonzero(~right):
        moments[i] = _body(int(i), given[i]).moments
    return moments
