"""Conversion of centres and attitudes to and from SciPy poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .array_arguments import finite_rows
from .validate import ROTATION_TOLERANCE, real_array

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform


def to_rigid_transform(x: Any, q: Any) -> RigidTransform:
    """Return SciPy poses, body to space, from centres (N, 3) and attitudes (N, 4) with the SCALAR FIRST.

    ``pose.apply(a)`` is the position x + R(q) a of a point of the body. For one body, x is (3,) and q is (4,). With
    None for x the bodies rotate about the origin, as those of a trajectory do:
    ``to_rigid_transform(None, sol.quaternion)``.
    """
    try:
        from scipy.spatial.transform import RigidTransform, Rotation
    except ImportError:
        raise InputError("RigidTransform needs SciPy 1.16 or newer: pip install 'scipy>=1.16'") from None
    attitudes = real_array(q, "q must be quaternions (N, 4), or one (4,), with the scalar first", key="q")
    rows = finite_rows("q", np.atleast_2d(attitudes), (None, 4))
    lengths = np.linalg.norm(rows, axis=1)
    if not (np.abs(lengths - 1) <= ROTATION_TOLERANCE).all():
        bad = int(np.abs(lengths - 1).argmax())
        raise InputError(f"q must hold unit quaternions; that of body {bad} has the length {lengths[bad]:.8g}", "q")
    shape = (*attitudes.shape[:-1], 3)
    centres = np.zeros(shape) if x is None else real_array(x, "x must be centres (N, 3), or one (3,)", key="x")
    if centres.shape != shape:
        raise InputError(f"x must have the shape {shape}, as many centres as attitudes; got {centres.shape}", "x")
    return RigidTransform.from_components(centres, Rotation.from_quat(attitudes, scalar_first=True))


def from_rigid_transform(pose: RigidTransform) -> tuple[np.ndarray, np.ndarray]:
    """Return centres (N, 3) and attitudes (N, 4), SCALAR FIRST, from SciPy poses; (3,) and (4,) for one pose."""
    if not hasattr(pose, "as_components"):
        raise InputError(f"pose must be a scipy RigidTransform; got {type(pose).__name__}", "pose")
    x, rotation = pose.as_components()
    return np.array(x), np.array(rotation.as_quat(scalar_first=True))
