"""Bodies on which a uniform field pulls: heavy tops and pendulums, and dipoles in a uniform magnetic field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..physics.body import Body
from ..physics.fields.sums import SumField
from ..physics.problem import Problem
from ..physics.shapes import Shape
from ..physics.triangles import meshes
from ..results.observables import matrices

TRIALS = 40
"""Attitudes at which a potential is evaluated; a function linear in R has ten coefficients."""

LINEAR = 1e-9
"""Largest misfit of a potential that counts as linear in R, relative to its size."""

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
    try:
        energies = np.array([float(problem.potential(tuple(q))) for q in attitudes.tolist()])
    except (ArithmeticError, ValueError):  # not defined everywhere, so not linear
        return None
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
