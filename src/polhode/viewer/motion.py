"""The motion between the states of a trajectory, as the page shows it (`motion.js`)."""

from __future__ import annotations

import numpy as np

from ..kernels.so3 import conj, exp, mul, unit
from ..numbers.arrays import components
from ..results.trajectory import Trajectory


def attitudes_at(sol: Trajectory, kept: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Attitudes (n, 4) at given times: the cubic that matches attitudes and angular velocities of the states around.

    q exp(b1 w1) exp(b2 w2) exp(b3 w3) with the cumulative Bernstein polynomials b (Kim, Kim and Shin 1995). The angular
    velocities determine the number of revolutions between two states.
    """
    t, q, omega = sol.t[kept], sol.quaternion[kept], sol.omega[kept]
    if len(t) == 1:
        return np.broadcast_to(q, (len(times), 4)).copy()
    i = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    step = t[i + 1] - t[i]
    s = np.clip((times - t[i]) / np.where(step > 0, step, 1.0), 0.0, 1.0)[:, None]
    first, last = omega[i] * step[:, None] / 3, omega[i + 1] * step[:, None] / 3
    start = components(q[i])
    rest = mul(mul(conj(mul(start, exp(components(first)))), components(q[i + 1])), conj(exp(components(last))))
    middle = _rotation_vector(np.stack(rest, -1), (first + last) / 2)
    made = start
    for part, vector in ((1 - (1 - s) ** 3, first), (s * s * (3 - 2 * s), middle), (s**3, last)):
        made = mul(made, exp(components(part * vector)))
    return np.stack(unit(made), -1)


def _rotation_vector(q: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The rotation vectors of quaternions, with the numbers of whole turns that bring them nearest to a guess."""
    size = np.linalg.norm(q[:, 1:], axis=1, keepdims=True)
    length = np.linalg.norm(guess, axis=1, keepdims=True)
    other = guess / np.where(length > 0, length, 1.0)
    axis = np.where(size > 1e-12, q[:, 1:] / np.where(size > 1e-12, size, 1.0), other)
    angle = 2 * np.arctan2(size, q[:, :1])
    whole = 2 * np.pi
    return np.asarray(axis * (angle + whole * np.round(((guess * axis).sum(axis=1, keepdims=True) - angle) / whole)))
