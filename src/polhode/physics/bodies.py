"""Many bodies and their field as arrays: inertia, angular velocities and energies of all bodies at once."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Self

import numpy as np

from ..errors import InputError
from ..kernels.so3 import matrix, rotate, unrotate
from ..numbers import floats
from ..numbers.arrays import components
from .body import Body
from .fields import Field
from .fields.parameters import like
from .fields.varying_inertia import VaryingField
from .inertia_tensor import TOLERANCE

NO_VALUES = np.empty((1, 0))
"""Parameter array for bodies without a field."""


def rows(columns: Any) -> np.ndarray:
    """Stack columns as one array; a column may hold one value per body or one for all."""
    return np.stack(np.broadcast_arrays(*columns), -1)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Bodies:
    """Bodies with one field: arrays whose first dimension is the body, or 1 for all bodies.

    Attributes
    ----------
    moments : (N, 3) or (1, 3) principal moments
    own : (N, 4) or (1, 4) quaternions from principal to user axes; None if the axes are the same
    field : the field with the parameters of the first body
    values : (N, k) or (1, k) flattened parameters
    number : N
    listed : the bodies as objects, one for each or one for all, if they were given as objects
    tensors : (N, 3, 3) inertia tensors, if the bodies were given as these
    name : name of the problem
    """

    moments: np.ndarray
    own: np.ndarray | None = None
    field: Field | None = None
    values: np.ndarray = dataclasses.field(default_factory=NO_VALUES.copy)
    number: int
    listed: tuple[Body, ...] = ()
    tensors: np.ndarray | None = None
    name: str = ""

    def of(self, array: Any, i: int) -> Any:
        """Entry of body i."""
        return array[i if len(array) > 1 else 0]

    def body(self, i: int) -> Body:
        """Body i as a `Body`, in the user's axes."""
        if self.listed:
            found: Body = self.of(self.listed, i)
            return found
        if self.tensors is not None:
            return Body(self.of(self.tensors, i))
        moments = self.of(self.moments, i)
        if self.own is None:
            return Body(moments, physical=None)
        axes: np.ndarray = np.array(matrix(tuple(self.of(self.own, i).tolist())))
        return Body(axes * moments @ axes.T, physical=None)

    def inertia_tensors(self) -> np.ndarray:
        """Tensors (N, 3, 3) or (1, 3, 3), in user axes."""
        if self.own is None:
            return np.asarray(self.moments[:, :, None] * np.eye(3))
        axes: np.ndarray = np.moveaxis(np.array(matrix(components(self.own))), -1, 0)
        return np.asarray(axes * self.moments[:, None, :] @ np.swapaxes(axes, 1, 2))

    def field_of(self, i: int) -> Field | None:
        """The field with the parameters of body i."""
        if self.field is None:
            return None
        known = self.field.values
        values: tuple[Any, ...] = like(tuple(known.values()), self._with_data(self.of(self.values, i).tolist()))[0]
        return self.field.template.bound(dict(zip(known, values, strict=True)))

    def _with_data(self, parameters: Any) -> tuple[Any, ...]:
        """Parameters with the columns of data of the field, which are the same for all bodies."""
        columns = {} if self.field is None else self.field.columns
        return tuple(columns.get(i, x) for i, x in enumerate(parameters))

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters of the field, each an array (N,) or (1,), or a column of data."""
        return self._with_data(components(self.values))

    def some(self, chosen: np.ndarray) -> Self:
        """Some of the bodies."""
        arrays = {f.name: x for f in dataclasses.fields(self) if isinstance(x := getattr(self, f.name), np.ndarray)}
        parts: dict[str, Any] = {name: array[chosen] if len(array) > 1 else array for name, array in arrays.items()}
        if len(self.listed) > 1:
            parts["listed"] = tuple(self.listed[i] for i in chosen)
        return dataclasses.replace(self, **parts, number=len(chosen))

    # --- vectors of all bodies, as tuples of components --------------------------------------------

    @functools.cached_property
    def inverse_moments(self) -> np.ndarray:
        """1/I, and 0 for the axis of a linear body."""
        return np.divide(1.0, self.moments, out=np.zeros_like(self.moments, dtype=float), where=self.moments > 0)

    def to_principal(self, vector: Any) -> Any:
        """Rotate vectors from user to principal axes."""
        return vector if self.own is None else unrotate(components(self.own), vector)

    def from_principal(self, vector: Any) -> Any:
        """Rotate vectors from principal to user axes."""
        return vector if self.own is None else rotate(components(self.own), vector)

    def momentum_of(self, omega: np.ndarray) -> np.ndarray:
        """Momenta Pi = I omega, both in user axes."""
        parts = zip(components(self.moments), self.to_principal(components(omega)), strict=True)
        return rows(self.from_principal(tuple(i * x for i, x in parts)))

    def inertia_at(self, t: np.ndarray) -> np.ndarray | None:
        """Tensors (n, N, 3, 3) at times (n,) or (n, N) if the inertia varies (`ph.VaryingBody`), else None."""
        if not isinstance(self.field, VaryingField):
            return None
        times = t[:, None] if t.ndim == 1 else t
        found = self.field.inertia_at(times, self.parameters)
        return np.broadcast_to(found, (len(t), self.number, 3, 3))

    def omega_of(self, momentum: np.ndarray) -> np.ndarray:
        """Angular velocities omega = I^-1 Pi, both in user axes."""
        parts = zip(components(self.inverse_moments), self.to_principal(components(momentum)), strict=True)
        return rows(self.from_principal(tuple(i * x for i, x in parts)))

    def energies(self, quaternion: np.ndarray, momentum: np.ndarray) -> np.ndarray:
        """Kinetic plus potential energy (kinetic alone if there is no potential) of states of all bodies."""
        m = self.to_principal(components(momentum))
        kinetic = sum(i * x * x for i, x in zip(components(self.inverse_moments), m, strict=True)) / 2
        if self.field is None:
            return np.asarray(kinetic)
        potential = self.field.potential_kernel(floats.number)
        return np.asarray(kinetic + potential(matrix(components(quaternion)), self.parameters))

    def check_axial(self, name: str, vector: np.ndarray) -> None:
        """Refuse momenta or angular velocities along the axis of a linear body."""
        zero = self.moments == 0
        if not zero.any():
            return
        m = rows(self.to_principal(components(vector)))
        bad = np.flatnonzero(np.abs(np.where(zero, m, 0)).max(axis=1) > TOLERANCE * np.linalg.norm(m, axis=1))
        if bad.size:
            raise InputError(f"body {bad[0]} is linear and must have no {name} along its axis; set this component to 0")
