"""What the exact motion of a problem conserves: the energy, and the angular momentum along directions in space.

The power of the forces that have no potential is T.omega, and the rate of the spatial momentum is R T. Both are
evaluated at random states: what vanishes at all of them is conserved.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.so3 import matrix, unit
from ..numbers import floats
from ..symbolic.expression import source
from .fields import Field, formula_kernel
from .fields.field import attitude_symbols, potential_torque
from .fields.varying_inertia import VaryingField
from .problem import Problem

SAMPLES = 24
"""Random states at which the torque of a field is evaluated."""

NO_TORQUE = 1e-11
"""A torque component below this fraction of the torque is round-off (measured: below 1e-12)."""

NO_POWER = 1e-12
"""A power below this fraction of torque times angular velocity is round-off (measured: below 1e-15)."""

VERTICAL = (0.0, 0.0, 1.0)
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), VERTICAL)


@dataclasses.dataclass(frozen=True)
class Conserved:
    """What a motion conserves.

    energy : kinetic plus potential energy
    directions : orthonormal directions in space along which the angular momentum is conserved
    extended_energy : with a thermostat, the energy of body and chain: all other forces have a potential, or do no work
    """

    energy: bool
    directions: tuple[tuple[float, float, float], ...]
    extended_energy: bool = False

    @property
    def momentum(self) -> str:
        """Name of the conserved part of the momentum; empty if there is none."""
        if len(self.directions) == 3:
            return "spatial_momentum"
        if self.directions == (VERTICAL,):
            return "vertical_momentum"
        return "conserved_momentum" if self.directions else ""

    @property
    def is_exact(self) -> bool:
        """True if the directions have no round-off: they are axes."""
        return all(x in (0.0, 1.0, -1.0) for direction in self.directions for x in direction)


def conserved(problem: Problem) -> Conserved | None:
    """What the motion of a problem conserves; None if that cannot be seen from its formula.

    That is so for a field with states of its own, a torque that is not a formula, and a varying body.
    """
    field = problem.field
    if field is None:
        return Conserved(True, AXES)
    if field.bath is not None:
        return Conserved(False, (), conserves_energy(problem))
    if field.states or field.opaque or isinstance(field, VaryingField):
        return None
    return Conserved(conserves_energy(problem), _rows(conserved_directions(problem)))


def _rows(directions: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    """The directions; those that are axes to round-off are axes exactly."""
    axes = np.round(directions)
    snapped = np.where(np.abs(directions - axes).max(axis=-1, keepdims=True) <= NO_TORQUE, axes, directions)
    return tuple((x, y, z) for x, y, z in (snapped + 0.0).tolist())


def conserved_directions(problem: Problem) -> np.ndarray:
    """Space directions (k, 3), orthonormal, along which the angular momentum is conserved.

    All three for the free body, the vertical for a top, none in general: the directions along which the torque
    vanishes at many random states.
    """
    torques = _space_torques(problem)
    if not len(torques):
        return np.eye(3)
    _, sizes, directions = np.linalg.svd(torques)
    free = directions[np.count_nonzero(sizes > NO_TORQUE * math.sqrt(len(torques))) :]
    signs = [np.sign(d[np.abs(d).argmax()]) for d in free]
    return np.array([s * d for s, d in zip(signs, free, strict=True)]).reshape(-1, 3)


def _space_torques(problem: Problem) -> np.ndarray:
    """Directions (n, 3) of the torque in the space frame at random states; states without torque are skipped."""
    found = []
    for _, R, _, torque in _sampled(problem):
        size = np.linalg.norm(torque)
        if 0 < size < math.inf:
            found.append(np.array(R) @ torque / size)
    return np.array(found).reshape(-1, 3)


def conserves_energy(problem: Problem) -> bool:
    """True if the forces without a potential do no work: (T - T_U).omega = 0 with the torque T_U of the potential."""
    field = problem.field
    if field is None or field.kind == "potential":
        return True
    rest = _without_potential(field)
    for t, R, omega, torque in _sampled(problem):
        power = np.dot(rest(t, R, omega, field.parameters), omega)
        if not abs(power) <= NO_POWER * np.linalg.norm(torque) * np.linalg.norm(omega):
            return False
    return True


def _without_potential(field: Field) -> Any:
    """The torque less that of the potential, as a function of t, R, omega and the parameters."""
    torque, U = field.graph
    if U is not None:
        torque = tuple(a - b for a, b in zip(torque, potential_torque(U, attitude_symbols()), strict=True))
    return formula_kernel(source("rest_value", "t, R, w, p", field.unpack, torque), floats.number)


def _sampled(problem: Problem) -> Iterator[tuple[float, Any, tuple[float, ...], np.ndarray]]:
    """Random times, attitudes and angular velocities with their torques, where these have values."""
    if problem.field is None:
        return
    rng = np.random.default_rng(1)
    speed = float(np.linalg.norm(problem.omega)) or 1.0
    span = (problem.t_end or problem.t0 + 1.0) - problem.t0
    for _ in range(SAMPLES):
        R = matrix(unit(tuple(rng.normal(size=4).tolist())))
        t, omega = problem.t0 + span * float(rng.uniform()), tuple((speed * rng.normal(size=3)).tolist())
        try:
            torque = np.array(problem.field.torque_value(t, R, omega), dtype=float)
        except (ArithmeticError, ValueError):
            continue
        yield t, R, omega, torque
