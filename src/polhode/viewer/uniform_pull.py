"""Bodies on which a uniform field pulls: heavy tops and pendulums, and dipoles in a uniform magnetic field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from ..physics.body import Body
from ..physics.fields.sums import SumField
from ..physics.problem import Problem
from ..physics.shapes import Shape
from ..results.observables import matrices, to_space
from ..results.trajectory import Trajectory
from .motion import attitudes_at
from .solids import meshes

TRIALS = 40
"""Attitudes at which a potential is evaluated; a function linear in R has ten coefficients."""

LINEAR = 1e-9
"""Largest misfit of a potential that counts as linear in R, relative to its size."""

FINE, MOST_BETWEEN = 0.1, 100
"""Largest rotation between two times of the chart, in radians, and most times between two states."""

MAGNETIC = "dipole"
"""Name of the field in `ph.fields` whose pull is not weight."""


@dataclasses.dataclass(frozen=True)
class UniformPull:
    """U = -w . R c + constant: a force along `down` in space on a point along `arm` in the body."""

    down: np.ndarray
    arm: np.ndarray
    is_weight: bool

    @property
    def name(self) -> str:
        """The letter beside its arrow."""
        return "g" if self.is_weight else "B"


def uniform_pull(problem: Problem | None, shapes: Sequence[Shape] = ()) -> UniformPull | None:
    """The uniform pull on the body of a problem; None if its potential is another one, or not known.

    U determines w and c up to a common sign; the centre of mass, or the shapes around it, determine the sign.
    """
    if problem is None or problem.field is None or problem.field.energy is None:
        return None
    attitudes = np.random.default_rng(7).standard_normal((TRIALS, 4))
    attitudes /= np.linalg.norm(attitudes, axis=1, keepdims=True)
    energies = np.array([float(problem.potential(tuple(q))) for q in attitudes.tolist()])
    columns = np.column_stack([matrices(attitudes).reshape(TRIALS, 9), np.ones(TRIALS)])
    found = np.linalg.lstsq(columns, energies, rcond=None)[0]
    size = float(np.abs(energies - energies.mean()).max())
    if not (np.isfinite(energies).all() and np.abs(columns @ found - energies).max() <= LINEAR * size):
        return None
    left, sizes, right = np.linalg.svd(-found[:9].reshape(3, 3))
    if not sizes[0] > 0 or sizes[1] > LINEAR * sizes[0]:
        return None
    down, arm = left[:, 0], right[0]
    magnetic = [part for part in _potentials(problem.field) if part.name == MAGNETIC]
    known = np.array(magnetic[0].parameters[:3]) if magnetic else _centre(problem.body, shapes)
    side = float(known @ arm) or -float(down[2]) or 1.0  # without a centre of mass: down is towards -z
    return UniformPull(math.copysign(1.0, side) * down, math.copysign(1.0, side) * arm, not magnetic)


def _centre(body: Body, shapes: Sequence[Shape]) -> np.ndarray:
    """The centre of mass from the pivot, or the middle of the shapes; zero if neither is known."""
    arm = body.centre - body.pivot
    if arm.any() or not shapes:
        return np.asarray(arm)
    return np.mean([part.vertices.mean(axis=0) for part in meshes(shapes)], axis=0).round(12)


def _potentials(field: Any) -> list[Any]:
    """The parts of a field that are potentials."""
    parts = field.template.parts if isinstance(field, SumField) else (field,)
    return [part for part in parts if part.energy is not None]


def angles(sol: Trajectory, pull: UniformPull, kept: np.ndarray) -> dict[str, np.ndarray]:
    """Tilt of the arm from the vertical, its precession about it since the start, and the spin omega . c about it.

    Goldstein, Poole and Safko 2002, section 5.7: theta, phi and omega_3 of the symmetric top. They are taken at the
    states and between them, `FINE` apart, so that the precession is continuous.
    """
    times = _fine_times(sol, kept)
    q = attitudes_at(sol, kept, times)
    axis = to_space(q, np.broadcast_to(pull.arm, (len(times), 3)))
    up = -pull.down
    east = np.cross(up, np.eye(3)[np.abs(up).argmin()])
    east /= np.linalg.norm(east)
    north = np.cross(up, east)
    azimuth = np.unwrap(np.arctan2(axis @ north, axis @ east))
    spin = sol.omega[kept] @ pull.arm
    rising = np.concatenate([[True], np.diff(sol.t[kept]) > 0])
    smooth = CubicSpline(sol.t[kept][rising], spin[rising]) if rising.sum() > 1 else lambda t: np.full(len(t), spin[0])
    return {
        "times": times,
        "tilt": np.degrees(np.arctan2(np.linalg.norm(np.cross(axis, up), axis=1), axis @ up)),
        "precession": (azimuth - azimuth[0]) / (2 * np.pi),
        "spin": smooth(times),
    }


def _fine_times(sol: Trajectory, kept: np.ndarray) -> np.ndarray:
    """The times of the states, with as many between them as keep the rotation below `FINE`."""
    t, spin = sol.t[kept], np.linalg.norm(sol.omega[kept], axis=1)
    pieces = np.clip(np.ceil(np.maximum(spin[1:], spin[:-1]) * np.diff(t) / FINE), 1, MOST_BETWEEN).astype(int)
    parts = [start + (end - start) * np.arange(n) / n for start, end, n in zip(t[:-1], t[1:], pieces, strict=True)]
    return np.concatenate([*parts, t[-1:]])
