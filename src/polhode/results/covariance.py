"""Covariances of states along a run, and their ellipsoids."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics.validate import real_array


@dataclasses.dataclass(frozen=True)
class Covariance:
    """Covariances of (d, Pi) in body axes over time: d in rad is a small rotation R exp(hat d), Pi the body momentum.

    Of an ensemble, the body follows the time in all shapes: (n, N, 6, 6) and so on.

    Attributes
    ----------
    t : (n,) times
    matrix : (n, 6, 6) covariances

    Examples
    --------
    >>> import numpy as np
    >>> sol = ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=10, tangent=True)
    >>> sol.tangent.covariance(np.diag([1e-4] * 6)).matrix.shape
    (11, 6, 6)
    """

    t: np.ndarray
    matrix: np.ndarray

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (n, 6)."""
        return np.sqrt(np.maximum(0.0, np.diagonal(self.matrix, axis1=-2, axis2=-1)))

    @functools.cached_property
    def attitude(self) -> tuple[np.ndarray, np.ndarray]:
        """Ellipsoids of one sigma of the attitude: half axes (n, 3) in rad, longest first, and directions (n, 3, 3)."""
        return _ellipsoids(self.matrix[..., :3, :3])

    @functools.cached_property
    def momentum(self) -> tuple[np.ndarray, np.ndarray]:
        """The same for the body momentum."""
        return _ellipsoids(self.matrix[..., 3:, 3:])


def _ellipsoids(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(P)
    return np.sqrt(np.maximum(0.0, values[..., ::-1])), vectors[..., ::-1]


def checked_covariance(name: str, given: Any, size: int) -> np.ndarray:
    """Return a covariance matrix from a matrix or from standard deviations, with a clear error if it is none."""
    expected = f"{name} must be a covariance ({size}, {size}), or {size} standard deviations"
    P = real_array(given, expected, key=name)
    if P.shape not in ((size,), (size, size)) or not np.isfinite(P).all():
        raise InputError(f"{expected}, finite; got shape {P.shape}", name)
    if P.ndim == 1:
        if (P < 0).any():
            raise InputError(f"{expected}, not negative; got {P.tolist()}", name)
        return np.diag(P**2)
    scale = abs(P).max()
    if abs(P - P.T).max() > 1e-12 * scale:
        raise InputError(f"{expected}, symmetric; entries differ by {abs(P - P.T).max():g}", name)
    smallest = np.linalg.eigvalsh(P)[0]
    if smallest < -1e-12 * scale:
        raise InputError(f"{expected}, without negative eigenvalues; the smallest is {smallest:g}", name)
    return P
