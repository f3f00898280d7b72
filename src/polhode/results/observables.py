"""Quantities computed from recorded states, for whole trajectories at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import matrix, rotate
from ..numbers.arrays import components, relative
from ..numbers.precision import guarded, in_digits
from ..numbers.primitives import sqrt


def matrices(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3), body to space."""
    rows = matrix(components(quaternion))
    return np.stack([np.stack(row, -1) for row in rows], -2)


def to_space(quaternion: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Rotate body vectors into the space frame."""
    return np.stack(rotate(components(quaternion), components(vectors)), -1)


def angular_velocity(momentum: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Body angular velocity; the pseudo-inverse covers linear bodies. The inertia is one tensor, or one for each state.

    Columns are summed, because the bits of a matrix product may depend on how many rows are multiplied at once.
    """
    return product(np.linalg.pinv(inertia, hermitian=True), momentum)


def product(tensor: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """A tensor (3, 3), or one for each vector (..., 3, 3), times vectors (..., 3)."""
    rows, (x, y, z) = np.moveaxis(tensor, (-2, -1), (0, 1)), components(vectors)
    return np.stack([x * a + y * b + z * c for a, b, c in rows], -1)


def kinetic_energy(omega: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """Kinetic energy omega.Pi/2."""
    return np.asarray((omega * momentum).sum(axis=-1) / 2)


NO_STATES = "the drift cannot be computed: there are no states"

CHANGES = ("energy", "spatial_momentum", "momentum_norm")
"""Names of the quantities whose changes `largest_changes` computes."""


def largest_changes(
    parts: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], largest_of: Any = np.max, directions: Any = None
) -> dict[str, Any]:
    """Largest relative changes since the first state, from blocks of energies, spatial and body momenta.

    Time is the first dimension; a second one counts bodies. `largest_of` may skip missing states. With orthonormal
    `directions` (k, 3), or (N, k, 3) of each body, the change of the spatial momentum is that along these.
    """
    first, largest = None, np.zeros(())
    for energy, spatial_momentum, momentum in parts:
        size = length(momentum)
        if first is None:
            first = energy[0], spatial_momentum[0], size[0]
        turned = spatial_momentum - first[1]
        turned = turned if directions is None else (turned[..., None, :] * directions).sum(axis=-1)
        changes = energy - first[0], length(turned), size - first[2]
        largest = np.maximum(largest, [largest_of(np.abs(change), axis=0) for change in changes])
    if first is None:
        raise InputError(NO_STATES)
    scales = np.array([abs(first[0]), first[2], first[2]])
    return dict(zip(CHANGES, relative(largest, scales), strict=True))


def largest_precise_changes(states: Any, digits: int, directions: Any = None) -> dict[str, Any]:
    """The same from arrays `energy`, `spatial_momentum` and `momentum` of mpmath numbers, in their precision."""
    with guarded(digits):
        exact = None if directions is None else in_digits(directions)
        arrays = (in_digits(states.energy), in_digits(states.spatial_momentum), in_digits(states.momentum))
        return largest_changes([arrays], directions=exact)


def length(vectors: np.ndarray) -> np.ndarray:
    """Lengths of vectors (..., 3) of floats, or of mpmath numbers in the working precision."""
    if vectors.dtype != object:
        return np.asarray(np.linalg.norm(vectors, axis=-1))
    return np.vectorize(sqrt, otypes=[object])((vectors * vectors).sum(axis=-1))


def extended_drift(parts: Iterable[tuple[np.ndarray, np.ndarray]], largest_of: Any = np.max) -> Any:
    """Largest relative change of the energy of body and chain since the first state, from blocks of both energies."""
    first: Any = None
    largest = np.zeros(())
    for energy, chain in parts:
        first = energy[0] + chain[0] if first is None else first
        largest = np.maximum(largest, largest_of(np.abs(energy + chain - first), axis=0))
    if first is None:
        raise InputError(NO_STATES)
    return relative(largest, np.abs(first))


def thinned_indices(quaternion: np.ndarray, momentum: np.ndarray, most: int) -> np.ndarray:
    """Indices of the states to show: the finite ones, evenly thinned to at most `most`."""
    fine = np.flatnonzero(np.isfinite(quaternion).all(axis=1) & np.isfinite(momentum).all(axis=1))
    number = len(fine)
    return fine[np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(int))]


def attitude_error(matrix_a: np.ndarray, matrix_b: np.ndarray) -> float:
    """Spectral norm of the difference of two rotation matrices."""
    return float(np.linalg.norm(np.asarray(matrix_a) - np.asarray(matrix_b), 2))
