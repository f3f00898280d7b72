"""Convert the rows of a loop to the arrays of a result, in the user's axes."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS
from ..kernels.so3 import conj, dot, mul, rotate, times
from ..physics.fields.varying_inertia import VaryingField
from ..physics.problem import Problem
from . import observables
from .trajectory import INERTIA, PRIMARY, STATES, Rounded


def attitudes_and_momenta(problem: Problem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attitudes and momenta in the user's axes, from rows of doubles in principal axes."""
    if not problem.axes_quaternion:
        return rows[:, :4].copy(), rows[:, 4:COLUMNS].copy()
    with np.errstate(over="ignore", invalid="ignore"):  # the run itself reports that it blew up
        q, m = problem.user_axes(tuple(rows[:, i] for i in range(4)), tuple(rows[:, i] for i in range(4, COLUMNS)))
    return np.stack(q, 1), np.stack(m, 1)


def primary(problem: Problem, t: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Times, attitudes, momenta and energies in the user's axes, from rows of doubles in principal axes."""
    quaternion, momentum = attitudes_and_momenta(problem, rows)
    m = tuple(rows[:, i] for i in range(4, COLUMNS))
    with np.errstate(over="ignore", invalid="ignore"):
        kinetic = sum(i * x * x for i, x in zip(problem.body.inverse_moments, m, strict=True)) / 2
        energy = kinetic + problem.potential(tuple(quaternion.T))
    arrays = {"t": t, "quaternion": quaternion, "momentum": momentum, "energy": energy}
    if isinstance(problem.field, VaryingField):
        arrays |= _with_inertia(problem.field.inertia_at(t), problem.body.inertia, arrays, energy - kinetic)
    return arrays | {STATES: _states(problem, rows)}


def _with_inertia(
    inertia: np.ndarray, constant: np.ndarray, arrays: dict[str, np.ndarray], potential: np.ndarray
) -> dict[str, np.ndarray]:
    """Momentum and energy with the inertia of every moment; those of the run belong to a constant inertia."""
    omega = observables.angular_velocity(arrays["momentum"], constant)
    momentum = observables.product(inertia, omega)
    energy = observables.kinetic_energy(omega, momentum) + potential
    return {"momentum": momentum, "energy": energy, INERTIA: inertia}


def _states(problem: Problem, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The states of the field, or of the method, by name, from the columns after attitude and momentum."""
    found, first = {}, COLUMNS
    of_field = problem.field.states.items() if problem.field is not None else ()
    for name, shape in (*((name, np.shape(value)) for name, value in of_field), *problem.kept):
        last = first + math.prod(shape)
        found[name], first = rows[:, first:last].reshape(len(rows), *shape), last
    return found


def full_precision(problem: Problem, t: np.ndarray, rows: np.ndarray, digits: int) -> types.SimpleNamespace:
    """Times, quaternion, momenta, velocity and energy as mpmath numbers, in the user's axes."""
    from ..numbers.multiprecision import number, public
    from ..numbers.precision import guarded

    names = ("quaternion", "momentum", "omega", "spatial_momentum", "energy")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    with guarded(digits):
        _, (_, inverse, _) = problem.kernel_data(number)
        principal_to_body: Any = problem.principal(number)[1]
        times_of_rows = np.array([number(x) for x in t.tolist()], dtype=object)
        for row in rows:
            q, m = tuple(row[:4]), tuple(row[4:COLUMNS])
            omega = times(inverse, m)
            if principal_to_body:
                q, m, omega = (
                    mul(q, conj(principal_to_body)),
                    rotate(principal_to_body, m),
                    rotate(principal_to_body, omega),
                )
            energy = dot(m, omega) / 2 + problem.potential(q, number)
            for name, value in zip(names, (q, m, omega, rotate(q, m), energy), strict=True):
                kept[name].append(value)
    widths = {"quaternion": (4,), "energy": ()}
    return types.SimpleNamespace(
        t=public(times_of_rows),
        **{
            name: public(np.array(values, dtype=object)).reshape(len(rows), *widths.get(name, (3,)))
            for name, values in kept.items()
        },
    )


def states(problem: Problem, t: np.ndarray, rows: np.ndarray, digits: int | None) -> dict[str, np.ndarray]:
    """The data of a trajectory, from times and rows in principal axes: doubles, or numbers with `digits`."""
    if digits is None:
        return primary(problem, t, rows)
    rounded = rows[:, COLUMNS:].astype(float) if problem.kept else rows[:, COLUMNS:]
    kept = _states(problem, np.hstack([np.empty((len(rows), COLUMNS)), rounded]))
    return Rounded(full_precision(problem, t, rows, digits), kept)


class Lazy(Mapping[str, np.ndarray]):
    """Times, attitudes, momenta and energies, computed from the rows of a path on first access."""

    def __init__(self, problem: Problem, path: Any) -> None:
        self._problem, self.path = problem, path
        self.made: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        """Return one array. Energies take ten times as long as attitudes and momenta, which come without them."""
        if name not in self.made:
            if name == "t":
                self.made[name] = self.path.times
            elif name in ("quaternion", "momentum") and not isinstance(self._problem.field, VaryingField):
                found = attitudes_and_momenta(self._problem, self.path.rows)
                self.made["quaternion"], self.made["momentum"] = found
            else:
                self.made = primary(self._problem, self.path.times, self.path.rows) | self.made
        return self.made[name]

    def last(self) -> Lazy:
        """Return the same of the last state only."""
        return Lazy(self._problem, self.path.last())

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        varying = isinstance(self._problem.field, VaryingField)
        return iter((*PRIMARY, STATES, *([INERTIA] if varying else [])))

    def __len__(self) -> int:
        return len(list(iter(self)))
