"""Conserved quantities of a problem, and the curves they define."""

from __future__ import annotations

import math

import numpy as np

from ..physics.conserved import NO_TORQUE, conserved_directions

SEPARATRIX = 1e-9
"""Relative distance from the energy of the separatrix that counts as being on it: round-off of a drawn curve."""


__all__ = [
    "conserved_directions",
    "energy_change",
    "momentum_change",
    "momentum_label",
    "polhode_sides",
    "polhodes",
]


def momentum_label(directions: np.ndarray) -> str:
    """Name of the conserved part of the momentum; empty if there is none."""
    if len(directions) == 3:
        return "spatial momentum"
    if len(directions) == 0:
        return ""
    if len(directions) == 1 and np.allclose(directions[0], (0, 0, 1), atol=NO_TORQUE):
        return "vertical momentum"
    return "momentum along " + ", ".join("(" + ", ".join(f"{x:.3g}" for x in d) + ")" for d in directions)


def momentum_change(
    spatial_momentum: np.ndarray, directions: np.ndarray, first: np.ndarray | None = None
) -> np.ndarray:
    """Change (n,) of the conserved part of the momentum, relative to the initial |momentum|; NaN if none is."""
    first = spatial_momentum[0] if first is None else first
    if len(directions) == 0:
        return np.full(len(spatial_momentum), math.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # a run that blew up
        change = np.linalg.norm((spatial_momentum - first) @ directions.T, axis=1)
    scale = float(np.linalg.norm(first))
    return np.asarray(change / scale if scale > 0 else change)


def energy_change(energy: np.ndarray) -> np.ndarray:
    """Change (n,) of the energy, relative to its initial size (absolute if that is zero)."""
    return np.asarray((energy - energy[0]) / (abs(energy[0]) or 1.0))


def polhodes(inertia: np.ndarray, count: int = 4, points: int = 181) -> list[np.ndarray]:
    """Paths (points, 3) of a free body's momentum on the unit sphere, in the axes of the inertia tensor.

    With a_i = 1/I_i and 2E = e, the sphere and the energy ellipsoid give
    m_1^2 (a_1 - a_3) + m_2^2 (a_2 - a_3) = e - a_3 around axis 3, and similarly around axis 1; the last pair
    of each family is the separatrix e = a_2. A symmetric body has one family of circles, a sphere none.
    """
    moments, axes = np.linalg.eigh(np.asarray(inertia, dtype=float))
    if moments[0] <= 0:
        return []
    a = 1 / moments
    phi = np.linspace(0, 2 * math.pi, points)
    curves = []
    for around, across in ((2, 0), (0, 2)):
        gap = a[1] - a[around]
        if abs(gap) <= 1e-9 * a[0]:
            continue
        for level in (np.arange(1, count + 1) / count) ** 2:
            m = np.zeros((points, 3))
            m[:, across] = math.sqrt(level * gap / (a[across] - a[around])) * np.cos(phi)
            m[:, 1] = math.sqrt(level) * np.sin(phi)
            m[:, around] = np.sqrt(np.maximum(0.0, 1 - m[:, across] ** 2 - m[:, 1] ** 2))
            for sign in (1, -1):
                mirrored = m.copy()
                mirrored[:, around] *= sign
                curves.append(mirrored @ axes.T)
    return curves


def polhode_sides(inertia: np.ndarray, count: int) -> tuple[list[np.ndarray], list[int]]:
    """The curves of `polhodes`, each with 1 (around the smallest moment), -1 (around the largest) or 0 (between).

    A symmetric body has none between: its equator counts as one of the circles.
    """
    curves = polhodes(inertia, count)
    if not curves:
        return [], []
    inverse = np.linalg.inv(np.asarray(inertia, dtype=float))
    low, middle, high = np.linalg.eigvalsh(inverse)
    between = 0 if min(high - middle, middle - low) > SEPARATRIX * middle else 1 if high - middle > middle - low else -1
    gaps = [float(curve[0] @ inverse @ curve[0]) / middle - 1 for curve in curves]
    return curves, [between if abs(gap) < SEPARATRIX else int(np.sign(gap)) for gap in gaps]
