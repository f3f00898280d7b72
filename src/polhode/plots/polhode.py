"""The polhode: the path of the angular velocity in the body, on the energy ellipsoid omega . I omega = 2 T."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..analysis.invariants import polhodes
from ..results.trajectory import Trajectory
from .sphere import BODY_VIEW, ends_of, frame_of, look_at, path_on, surface, towards

STEADY = 0.01
"""Largest relative change of the kinetic energy with which one ellipsoid holds the path, to the width of its line."""

SLENDER = 20.0
"""An ellipsoid that is longer than this many times the angular velocity would make its path a dot."""

OMEGA = r"$\omega(t)$"
NAMES = (r"$\omega_1$", r"$\omega_2$", r"$\omega_3$")


class Ellipsoid:
    """The ellipsoid omega . I omega = `twice` of angular velocities."""

    def __init__(self, inertia: np.ndarray, twice: float) -> None:
        self.inertia, self.twice = inertia, twice
        moments, axes = np.linalg.eigh(inertia)
        self.shape = np.sqrt(twice) * (axes / np.sqrt(moments)) @ axes.T
        self.reaches = np.sqrt(twice / np.diag(inertia)).tolist()
        across = np.eye(3) - np.outer(towards(BODY_VIEW), towards(BODY_VIEW))
        self.size = float(np.linalg.norm(across @ self.shape, 2))  # as it is seen

    def draw(self, ax: Any, grey: bool = True) -> None:
        """The surface, and the polhodes of other momenta on it."""
        surface(ax, self.shape)
        look_at(ax, self.size, BODY_VIEW, self.reaches[2])
        for curve in self.polhodes() if grey else []:
            self.path(ax, curve, "0.55", "", 0.6)

    def polhodes(self) -> list[np.ndarray]:
        """Polhodes on it: those of the directions of momenta."""
        return [self.above(momenta) for momenta in polhodes(self.inertia)]

    def above(self, momenta: np.ndarray) -> np.ndarray:
        """The angular velocities (n, 3) on it whose momenta have given directions."""
        omega = np.linalg.solve(self.inertia, momenta.T).T
        return np.asarray(omega * np.sqrt(self.twice / (omega * momenta).sum(axis=1, keepdims=True)))

    def path(self, ax: Any, omega: np.ndarray, colour: str, label: str, width: float = 1.1) -> None:
        """A path on it; the momentum is normal to the surface."""
        path_on(ax, omega, colour, label, width, omega @ self.inertia)

    def frame(self, ax: Any, what: str) -> None:
        """The axes of the body, from the surface outwards."""
        frame_of(ax, NAMES, what, self.reaches, self.size)


def ellipsoid_of(sol: Trajectory) -> Ellipsoid | None:
    """The ellipsoid of a trajectory; None if its kinetic energy or its inertia changes, or if it would be a needle."""
    if sol.has_varying_inertia:
        return None
    inertia = np.array(sol.info.inertia)
    twice, fastest = (sol.omega * sol.momentum).sum(axis=1), float(np.linalg.norm(sol.omega, axis=1).max())
    mean, least = float(twice.mean()), float(np.linalg.eigvalsh(inertia)[0])
    steady = 0 < mean < np.inf and np.abs(twice - mean).max() <= STEADY * mean
    if not steady or least * (SLENDER * fastest) ** 2 < mean:
        return None
    return Ellipsoid(inertia, mean)


def draw(ax: Any, sol: Trajectory, curve: Trajectory, colour: str) -> None:
    """The polhode on its ellipsoid if it lies on one, else the path of the angular velocity alone."""
    on = ellipsoid_of(sol)
    if on is None:
        size = _alone(ax, [(curve.omega, colour, OMEGA)])
    else:
        on.draw(ax)
        on.path(ax, curve.omega, colour, OMEGA)
    ends_of(ax, sol.omega, True)
    if on is None:
        frame_of(ax, NAMES, "body frame; path of the angular velocity", [size] * 3, size)
    else:
        on.frame(ax, r"body frame; on the energy ellipsoid $\omega\cdot I\omega = 2T$")


def draw_several(ax: Any, paths: Sequence[tuple[Trajectory, str, str]]) -> None:
    """Polhodes of bodies, with a colour and a label each, on one ellipsoid if they have the same inertia.

    Bodies of different energies share it when the angular velocities are divided by the square root of 2 T.
    """
    ellipsoids = [ellipsoid_of(sol) for sol, _, _ in paths]
    first = ellipsoids[0]
    if first is None or any(one is None or not np.allclose(one.inertia, first.inertia) for one in ellipsoids):
        size = _alone(ax, [(sol.omega, colour, label) for sol, colour, label in paths])
        frame_of(ax, NAMES, "body frame; paths of the angular velocities", [size] * 3, size)
        return
    on = Ellipsoid(first.inertia, 1.0)
    on.draw(ax, grey=False)
    for (sol, colour, label), own in zip(paths, ellipsoids, strict=True):
        assert own is not None
        on.path(ax, sol.omega / np.sqrt(own.twice), colour, label)
    on.frame(ax, r"body frame; $\omega/\sqrt{2T}$ on the energy ellipsoid")


def _alone(ax: Any, paths: Sequence[tuple[np.ndarray, str, str]]) -> float:
    """Paths of angular velocities without a surface, and the axes of the body from the origin; returns their length."""
    finite = [omega[np.isfinite(omega).all(axis=1)] for omega, _, _ in paths]
    size = max(float(np.abs(omega).max(initial=0.0)) for omega in finite) or 1.0
    look_at(ax, size, BODY_VIEW, size)
    for omega, (_, colour, label) in zip(finite, paths, strict=True):
        ax.plot(*omega.T, color=colour, linewidth=1.1, label=label, zorder=5)
    for axis in size * np.eye(3):
        ax.plot(*np.stack([0 * axis, axis]).T, color="0.3", linewidth=0.8)
    return size
