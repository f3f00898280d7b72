"""Initial states of an ensemble: convert the user's attitudes and vectors to quaternions and momenta."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compile.threads import share_evenly
from ...errors import InputError
from ...kernels.so3 import Quat, norm2, unit, unrotate
from ...numbers.arrays import components
from ...numbers.dispatch import kernel
from ...numbers.primitives import sqrt
from ...physics.bodies import Bodies, rows
from ...physics.validate import ROTATION_TOLERANCE, real_array

VECTORS = ("momentum", "omega", "spatial_momentum", "spatial_omega")
"""Arguments for the initial rotation, of which exactly one is given."""


class Start(NamedTuple):
    """The vectors of the initial rotation and their name: one of `VECTORS`, or momenta."""

    name: str
    value: Any

    def rows(self) -> np.ndarray:
        """Return the vectors, one for each body or one for all."""
        found = _rows(self.name, self.value, 3)
        check_finite(self.name, found)
        return found

    def momenta(self, vectors: np.ndarray, quaternion: np.ndarray, bodies: Bodies) -> np.ndarray:
        """Return the momenta in the body frame: Pi = I omega, after R^T for vectors in the space frame."""
        if self.name.startswith("spatial"):
            vectors = rows(unrotate(components(quaternion), components(vectors)))
        if not self.name.endswith("omega"):
            return vectors
        bodies.check_axial(self.name, vectors)
        return bodies.momentum_of(vectors)


def euler_rotation(name: str, value: Any, degrees: bool) -> Any:
    """Return the rotations for Euler angles ("ZXZ", angles), with three angles for all bodies or for each."""
    from scipy.spatial.transform import Rotation

    expected = f"{name} must be a sequence and angles, such as ('ZXZ', [[0.1, 0.3, 0.0], ...])"
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise InputError(f"{expected}; got {value!r}", name)
    angles = _rows(f"the angles of {name}", value[1], 3)
    check_finite(f"the angles of {name}", angles)
    try:
        return Rotation.from_euler(value[0], angles, degrees=degrees)
    except (ValueError, TypeError) as fault:
        raise InputError(f"{expected}; got the sequence {value[0]!r}: {fault}", name) from None


def quaternions(attitudes: Any) -> np.ndarray:
    """Convert quaternions, rotation matrices or a scipy Rotation to unit quaternions, scalar first."""
    if attitudes is None:
        return np.array([[1.0, 0.0, 0.0, 0.0]])
    if hasattr(attitudes, "as_quat"):
        attitudes = attitudes.as_quat(scalar_first=True)
    expected = (
        "attitudes must be quaternions of shape (N, 4) or (4,), or rotation matrices of shape (N, 3, 3) or (3, 3)"
    )
    attitudes = real_array(attitudes, expected, fresh=False)
    if attitudes.shape[-2:] == (3, 3) and attitudes.ndim < 4:
        attitudes = _quaternions_of_matrices(attitudes.reshape(-1, 3, 3))
    given = _rows("attitudes", attitudes, 4)
    from ...compile.batch import layout

    if (units := layout.changed(is_unit, unit, given)) is not None:
        return units
    check_finite("attitudes", given)
    length = np.sqrt(norm2(components(given)))
    bad = np.flatnonzero(~is_unit(components(given)))
    raise InputError(
        f"attitudes must be unit quaternions (scalar first); the quaternion of body {bad[0]} has length "
        f"{length[bad[0]]:.8g}"
    )


def _quaternions_of_matrices(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    if not len(R):
        raise InputError("attitudes must be at least one rotation; got an array of shape (0, 3, 3)")
    with np.errstate(invalid="ignore", over="ignore"):
        defect = np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max(axis=(1, 2))
        bad = np.flatnonzero(~(defect <= ROTATION_TOLERANCE) | ~(np.linalg.det(R) > 0))
    if bad.size:
        raise InputError(
            f"attitudes must be rotations, with R^T R = 1 and determinant 1; that of body {bad[0]} is not one: "
            f"{R[bad[0]].tolist()}"
        )
    return np.asarray(Rotation.from_matrix(R).as_quat(scalar_first=True))


@kernel
def is_unit(q: Quat) -> Any:
    """Return whether the length of a quaternion is 1 within the tolerance."""
    return abs(sqrt(norm2(q)) - 1) <= ROTATION_TOLERANCE


def _rows(name: str, value: Any, width: int) -> np.ndarray:
    """Return numbers in rows of a given width; an array is not copied."""
    expected = f"{name} must be numbers of shape (N, {width}) or ({width},)"
    given = np.atleast_2d(real_array(value, expected, fresh=False))
    if given.ndim != 2 or given.shape[1] != width or not len(given):
        raise InputError(f"{name} must have the shape (N, {width}) or ({width},); got {np.shape(value)}")
    return given


def check_finite(name: str, given: np.ndarray) -> None:
    """Refuse numbers that are not finite, and name the body."""
    if np.isfinite(_total(given)):  # one fast pass; the elements are checked only if it fails
        return
    if not np.isfinite(given).all():
        i = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise InputError(f"{name} must be finite; those of body {i} are {given[i].tolist()}")


def _total(given: np.ndarray) -> float:
    """Return the sum of all numbers, by all cores."""
    sums = list[float]()

    def work(begin: int, end: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums.append(float(given[begin:end].sum()))

    share_evenly(work, len(given))
    return sum(sums)
