"""What the exact motion of a problem conserves: the energy, and the angular momentum along directions in space.

The power of the forces that have no potential is T.omega, and the rate of the spatial momentum is R T. Both are
evaluated at random states: what vanishes at all of them is conserved.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.so3 import matrix, unit
from ..numbers import floats
from ..symbolic.expression import source
from .bodies import Bodies, rows
from .fields import Field
from .fields.kernels import formula_kernel
from .fields.switches import edges, switches_of
from .fields.torque_formulas import attitude_symbols, potential_torque
from .fields.varying_inertia import VaryingField
from .problem import Problem

SAMPLES = 24
"""Random states at which the torque of a field is evaluated."""

INTERVALS, STATES = 256, 4
"""Most intervals between jumps in time in which the torque is evaluated, and the states at which it is in each.

Fewer than three states would have a direction along which the torque vanishes.
"""

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
    def quantities(self) -> dict[str, str]:
        """Names of what is conserved; for each, the name of the change that measures it (`observables.CHANGES`)."""
        found = {name: name for name in ("energy", "extended_energy") if getattr(self, name)}
        if self.momentum:
            found[self.momentum] = "spatial_momentum"
        if len(self.directions) == 3:
            found["momentum_norm"] = "momentum_norm"
        return found

    @property
    def is_exact(self) -> bool:
        """True if the directions have no round-off: they are axes."""
        return all(x in (0.0, 1.0, -1.0) for direction in self.directions for x in direction)


FREE = Conserved(True, AXES)
"""What the motion of a free body conserves."""

THERMOSTATTED = Conserved(False, (), True)
"""What a free body with a Nosé-Hoover chain conserves."""


@dataclasses.dataclass(frozen=True)
class Motions:
    """A field that acts on one motion or on many: numbers, or arrays with an entry for each motion.

    field : the field, its parameters apart
    parameters : flattened parameters, columns of data among them
    times : at which the torque is evaluated
    speed : a typical angular velocity
    """

    field: Field
    parameters: tuple[Any, ...]
    times: Sequence[Any]
    speed: Any

    def sampled(self) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """Times, random attitudes and angular velocities with their torques (..., 3), where these have values."""
        rng = np.random.default_rng(1)
        for t in self.times:
            R = matrix(unit(tuple(rng.normal(size=4).tolist())))
            omega = tuple(self.speed * x for x in rng.normal(size=3).tolist())
            try:
                with np.errstate(all="ignore"):
                    torque = rows(self.field.torque_formula(t, R, omega, self.parameters))
            except (ArithmeticError, ValueError):
                continue
            yield t, R, omega, torque


def _motion(problem: Problem, t_end: float | None = None) -> Motions:
    field = problem.field
    assert field is not None
    end = next(t for t in (t_end, problem.t_end, problem.t0 + 1.0) if t is not None)
    speed = float(np.linalg.norm(problem.omega)) or 1.0
    return Motions(field, field.parameters, _times(field, problem.t0, end).tolist(), speed)


def _times(field: Field, start: float, end: float) -> np.ndarray:
    """Random times of a run, and the middle of each interval between two times at which the formula changes.

    A thruster may act for so short that no random time meets it. Tables have many intervals: some of them are taken.
    """
    chosen = start + (end - start) * np.random.default_rng(2).uniform(size=SAMPLES)
    ends = np.concatenate([[start, end], edges(field, min(start, end), max(start, end))])
    middles = (np.sort(ends)[1:] + np.sort(ends)[:-1]) / 2
    some = np.unique(np.linspace(0, len(middles) - 1, min(len(middles), INTERVALS)).astype(int))
    return np.concatenate([chosen, np.repeat(middles[some], STATES)])


def _times_of_each(bodies: Bodies, t0: np.ndarray, t_end: np.ndarray) -> np.ndarray:
    """The same for each body, (n, N); bodies with fewer times repeat the last."""
    found = [
        _times(field, start, end)
        for i, (start, end) in enumerate(zip(t0.tolist(), t_end.tolist(), strict=True))
        if (field := bodies.field_of(i)) is not None
    ]
    most = max(map(len, found))
    return np.stack([np.pad(times, (0, most - len(times)), mode="edge") for times in found], axis=-1)


def conserved(problem: Problem, t_end: float | None = None) -> Conserved | None:
    """What the motion of a problem conserves until t_end; None if that cannot be seen from its formula.

    That is so for a field with states of its own, a torque that is not a formula, and a varying body.
    """
    if problem.field is None:
        return FREE
    return _of_motions(_motion(problem, t_end))[0] if _is_formula(problem.field) else None


def conserved_by_each(bodies: Bodies, t0: Any, t_end: Any, omega: np.ndarray) -> list[Conserved] | None:
    """What the motion of each body conserves, as in `conserved`, from t0 to t_end with the initial omega (N, 3)."""
    if bodies.field is None:
        return [FREE] * bodies.number
    if not _is_formula(bodies.field):
        return None
    speed = np.linalg.norm(omega, axis=-1)
    speed = np.where(np.isfinite(speed) & (speed > 0), speed, 1.0)
    one_field = len(bodies.values) == 1 or not switches_of(bodies.field)
    if one_field and np.ndim(t0) == 0:
        times = _times(bodies.field, float(t0), float(t_end))
    else:
        times = _times_of_each(bodies, *(np.broadcast_to(t, bodies.number) for t in (t0, t_end)))
    return _of_motions(Motions(bodies.field, bodies.parameters, list(times), speed))


def directions_of_each(kept: Sequence[Conserved]) -> np.ndarray:
    """The conserved directions (N, 3, 3) of each motion, with zeros in place of those that are missing."""
    found = np.zeros((len(kept), 3, 3))
    for i, one in enumerate(kept):
        found[i, : len(one.directions)] = np.reshape(one.directions, (-1, 3))
    return found


def _is_formula(field: Field) -> bool:
    """True if the motion is seen from the formula of the field: a bath is, its own torque being apart."""
    return field.bath is not None or not (field.states or field.opaque or isinstance(field, VaryingField))


def _of_motions(motions: Motions) -> list[Conserved]:
    """What each of the motions conserves."""
    energy = np.atleast_1d(_keep_energy(motions))
    if motions.field.bath is not None:
        return [Conserved(False, (), kept) for kept in energy.tolist()]
    directions = [_rows(found) for found in _directions(motions)]
    return [Conserved(kept, found) for kept, found in zip(energy.tolist(), directions, strict=True)]


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
    return np.eye(3) if problem.field is None else _directions(_motion(problem))[0]


def _directions(motions: Motions) -> Sequence[np.ndarray]:
    """The conserved directions (k, 3) of each motion, from the singular values of its torques."""
    torques = _space_torques(motions)
    _, sizes, directions = np.linalg.svd(torques, full_matrices=False)
    limits = NO_TORQUE * np.sqrt(np.count_nonzero(torques.any(axis=-1), axis=-1))
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=-1, keepdims=True), axis=-1)
    numbers = np.count_nonzero(sizes > limits[:, None], axis=-1)
    signed = np.where(numbers[:, None, None] > 0, np.sign(largest) * directions, np.eye(3))
    return [found[number:] for found, number in zip(signed, numbers.tolist(), strict=True)]


def _space_torques(motions: Motions) -> np.ndarray:
    """Directions (N, n, 3) of the torques in the space frame at random states; zero where there is no torque."""
    found = [np.zeros(3)] * 3  # at least three rows, for three singular values
    for _, R, _, torque in motions.sampled():
        size = np.linalg.norm(torque, axis=-1, keepdims=True)
        has_value = (size > 0) & (size < math.inf)
        found.append(np.where(has_value, torque @ np.transpose(R) / np.where(has_value, size, 1.0), 0.0))
    return np.stack(np.broadcast_arrays(*map(np.atleast_2d, found)), axis=1)


def _keep_energy(motions: Motions) -> np.ndarray:
    """The same for each motion, as an array (...)."""
    kept = np.ones(np.shape(motions.speed), dtype=bool)
    if motions.field.kind == "potential":
        return kept
    rest = _without_potential(motions.field)
    for t, R, omega, torque in motions.sampled():
        with np.errstate(all="ignore"):
            power = sum(x * y for x, y in zip(rest(t, R, omega, motions.parameters), omega, strict=True))
            size = np.linalg.norm(torque, axis=-1)
            kept &= ~np.isfinite(size) | (np.abs(power) <= NO_POWER * size * np.linalg.norm(rows(omega), axis=-1))
    return kept


def _without_potential(field: Field) -> Any:
    """The torque less that of the potential, as a function of t, R, omega and the parameters."""
    torque, U = field.graph
    if U is not None:
        torque = tuple(a - b for a, b in zip(torque, potential_torque(U, attitude_symbols()), strict=True))
    return formula_kernel(source("rest_value", "t, R, w, p", field.unpack, torque), floats.number)
