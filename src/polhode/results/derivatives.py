"""Derivatives of states, and what follows from them: covariances, and how far they are from symplectic.

Arrays begin with the time, or with the time and the body; `...` below stands for these.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics.validate import by_name, real_array
from .covariance import Covariance, checked_covariance

STATE = 6
"""Numbers of a tangent: rotation and momentum."""


class Derivatives:
    """Derivatives of states (d, Pi) in body axes, d in R exp(hat d) a small rotation.

    Attributes
    ----------
    t : (n,) times
    matrix : (..., 6, 6) with respect to the initial state
    inertia : (..., 6, 3) with respect to the principal moments, or (..., 6, 3, 3) to the tensor
    params : with respect to the parameters of the field, by name, each (..., 6) and the shape of the parameter
    """

    t: np.ndarray
    matrix: Any
    inertia: Any
    params: Any

    def covariance(self, initial: Any, *, inertia: Any = None, params: Any = None) -> Covariance:
        """Propagate the covariance of the initial state (d, Pi), to first order: P(t) = A P A^T + S Q S^T.

        Parameters
        ----------
        initial : (6, 6), in rad^2 and momentum^2; or six standard deviations
        inertia : covariance (3, 3) of the principal moments, or their standard deviations; independent of the state
        params : standard deviations of parameters of the field by name, independent of everything else
        """
        first = self.matrix.shape[:-1]
        found = _carried(self.matrix, checked_covariance("initial", initial, STATE))
        if inertia is not None:
            if self.inertia.ndim > len(first) + 1:
                raise InputError(
                    "a covariance of the inertia needs a body given by its principal moments, ph.Body([I1, I2, I3]), "
                    "and "
                    "this one has a full tensor"
                )
            found = found + _carried(self.inertia, checked_covariance("inertia", inertia, 3))
        for name, sigma in by_name("params", params, "{'mgl': 0.1}").items():
            if name not in self.params:
                raise InputError(f"{name} is not a parameter of the field; its parameters are {', '.join(self.params)}")
            shape = self.params[name].shape[len(first) :]
            slope = self.params[name].reshape(*first, -1)
            given = real_array(sigma, f"{name} must be standard deviations", key=name)
            if given.shape not in ((), shape):
                raise InputError(f"{name} must be one standard deviation or {shape}; got shape {given.shape}", name)
            deviations = np.broadcast_to(given, shape).ravel()
            found = found + _carried(slope, checked_covariance(name, deviations, slope.shape[-1]))
        return Covariance(self.t, found)


class SomeDerivatives(Derivatives):
    """Derivatives at some of the times of others; they are computed when they are read."""

    def __init__(self, whole: Any, rows: np.ndarray, t: np.ndarray) -> None:
        self.t, self._whole, self._rows = t, whole, rows

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Derivatives with respect to the initial states."""
        return np.asarray(self._whole.matrix[self._rows])

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """Derivatives with respect to the inertia."""
        return np.asarray(self._whole.inertia[self._rows])

    @functools.cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Derivatives with respect to the parameters of the field, by name; empty if it has none."""
        return {name: values[self._rows] for name, values in self._whole.params.items()}

    @property
    def symplectic_defect(self) -> np.ndarray:
        """Largest entry of A^T W(Pi) A - W(Pi_0)."""
        return np.asarray(self._whole.symplectic_defect[self._rows])


def _carried(slope: np.ndarray, P: np.ndarray) -> np.ndarray:
    return np.asarray(slope @ P @ slope.swapaxes(-1, -2))


def symplectic_defect(A: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """Largest entry of A^T W(Pi) A - W(Pi_0) for matrices (n, ..., 6, 6) and momenta (n, ..., 3).

    W is the canonical form in body axes: W((d, p), (e, r)) = d.r - e.p + Pi.(d x e).
    """
    W = _canonical_form(momentum)
    return np.asarray(abs(A.swapaxes(-1, -2) @ W @ A - W[:1]).max((-2, -1)))


def _canonical_form(momentum: np.ndarray) -> np.ndarray:
    """Return the matrices (..., 6, 6) of the canonical form in body axes at some momenta."""
    W = np.zeros((*momentum.shape[:-1], STATE, STATE))
    W[..., :3, 3:], W[..., 3:, :3] = np.eye(3), -np.eye(3)
    x, y, z = np.moveaxis(momentum, -1, 0)
    W[..., 0, 1], W[..., 1, 2], W[..., 2, 0] = z, x, y
    W[..., 1, 0], W[..., 2, 1], W[..., 0, 2] = -z, -x, -y
    return W


def by_blocks(A: np.ndarray, tangents: np.ndarray) -> np.ndarray:
    """Return A applied to the rotation and to the momentum of tangents (..., 6, directions)."""
    return np.concatenate([A @ tangents[..., :3, :], A @ tangents[..., 3:, :]], -2)
