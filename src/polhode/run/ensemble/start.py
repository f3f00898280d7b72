"""Initial states of an ensemble: convert the user's attitudes and vectors to quaternions and momenta."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...compile.threads import share_evenly
from ...errors import InputError
from ...kernels.so3 import Quat, norm2, unit, unrotate
from ...numbers.arrays import components
from ...numbers.dispatch import kernel
from ...numbers.primitives import sqrt
from ...physics.bodies import Bodies, rows
from ...physics.validate import ROTATION_TOLERANCE, TINY, check_momenta, euler_sequence, real_array
from .memory import HOST, Memory

VECTORS = ("momentum", "omega", "spatial_momentum", "spatial_omega")
"""Arguments for the initial rotation, of which exactly one is given."""


class Start(NamedTuple):
    """The vectors of the initial rotation and their name: one of `VECTORS`, or momenta."""

    name: str
    value: Any

    def rows(self, memory: Memory = HOST) -> np.ndarray:
        """Return a copy of the vectors: one for each body or one for all."""
        return finite_copy(self.name, [_rows(self.name, self.value, 3)], memory)

    def momenta(self, vectors: np.ndarray, quaternion: np.ndarray, bodies: Bodies) -> np.ndarray:
        """Return the momenta in the body frame: Pi = I omega, after R^T for vectors in the space frame."""
        if self.name.startswith("spatial"):
            vectors = rows(unrotate(components(quaternion), components(vectors)))
        if not self.name.endswith("omega"):
            return vectors
        bodies.check_axial(self.name, vectors)
        with np.errstate(over="ignore"):
            momenta = bodies.momentum_of(vectors)
        if not TINY <= np.abs(momenta).min() <= np.abs(momenta).max() < math.inf:
            check_momenta(self.name, bodies.moments, rows(bodies.to_principal(components(vectors))))
        return momenta


def euler_rotation(name: str, value: Any, degrees: bool) -> Any:
    """Return the rotations for Euler angles ("ZXZ", angles), with three angles for all bodies or for each."""
    from scipy.spatial.transform import Rotation

    expected = f"{name} must be a sequence and angles, such as ('ZXZ', [[0.1, 0.3, 0.0], ...])"
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise InputError(f"{expected}; got {value!r}", name)
    angles = _rows(f"the angles of {name}", value[1], 3)
    check_finite(f"the angles of {name}", angles)
    return Rotation.from_euler(euler_sequence(f"the sequence of {name}", value[0], name), angles, degrees=degrees)


def quaternions(attitudes: Any, memory: Memory = HOST) -> np.ndarray:
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

    units = memory.known("attitudes", given)
    if units is None:
        units = layout.changed(is_unit, unit, given, memory.empty)
    if units is not None:
        return units
    check_finite("attitudes", given)
    length = np.sqrt(norm2(components(given)))
    bad = np.flatnonzero(~is_unit(components(given)))
    raise InputError(
        f"attitudes must be unit quaternions (scalar first); the quaternion of body {bad[0]} has length "
        f"{length[bad[0]]:.8g}, so divide by it"
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


UNIT = is_unit, 4, unit
"""The condition, the width and the kernel of a pass over quaternions."""


def _rows(name: str, value: Any, width: int) -> np.ndarray:
    """Return numbers in rows of a given width; an array is not copied."""
    expected = f"{name} must be numbers of shape (N, {width}) or ({width},)"
    given = np.atleast_2d(real_array(value, expected, fresh=False))
    if given.ndim != 2 or given.shape[1] != width or not len(given):
        raise InputError(f"{name} must have the shape (N, {width}) or ({width},); got {np.shape(value)}")
    return given


def check_finite(name: str, given: np.ndarray) -> None:
    """Refuse numbers that are not finite, and name the body."""
    if not np.isfinite(given).all():
        i = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise InputError(f"{name} must be finite; those of body {i} are {given[i].tolist()}")


def finite_copy(name: str, columns: list[np.ndarray], memory: Memory = HOST) -> np.ndarray:
    """Return columns of bodies side by side, copied by all cores, or refuse numbers that are not finite."""
    if len(columns) == 1 and (known := memory.known(name, columns[0])) is not None:
        return known
    found, sums = memory.empty((len(columns[0]), sum(x.shape[1] for x in columns))), list[float]()

    def work(begin: int, end: int) -> None:
        np.concatenate([x[begin:end] for x in columns], axis=1, out=found[begin:end])
        with np.errstate(over="ignore", invalid="ignore"):
            sums.append(float(found[begin:end].sum()))

    share_evenly(work, len(found))
    if not math.isfinite(sum(sums)):  # one fast pass; the elements are checked only if it fails
        check_finite(name, found)
    return found
