"""Kinetic energies and temperatures of many bodies, in the arrays of the caller and on their device.

Only the inertia is copied to the device, once for each kind of array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...kernels.so3 import dot, times, unrotate
from ...physics.bodies import Bodies
from ...physics.validate import positive
from . import arrays
from .gpu_arrays import matching


class KineticEnergy(NamedTuple):
    """Kinetic energies, one number for each body."""

    translation: Any
    rotation: Any

    @property
    def total(self) -> Any:
        """Their sum."""
        return self.translation + self.rotation


class Temperature(NamedTuple):
    """Kinetic temperatures 2 K/(f k): of the translation, of the rotation, and of all degrees of freedom together."""

    translation: Any
    rotation: Any
    total: Any


class Kinetic:
    """Kinetic energies and temperatures of the bodies of a stepper."""

    def __init__(self, bodies: Bodies, form: Any, masses: Any = None) -> None:
        self.bodies, self.layout, self.vector = bodies, form.layout, "omega" if form.omega else "momentum"
        weights = bodies.moments if form.omega else bodies.inverse_moments
        constants = {"weights": weights, "own": bodies.own}
        if masses is not None:
            heavy = np.atleast_1d(np.asarray(masses, dtype=float))
            constants["masses"] = heavy if form.omega else 1 / heavy
        self._constants = {name: value for name, value in constants.items() if value is not None}
        self._sent: dict[Any, dict[str, Any]] = {}

    def rotation(self, vectors: Any, number: int | None = None) -> Any:
        """Kinetic energies of the rotation from momenta or angular velocities."""
        parts, known = self._parts(self.vector, vectors, number or self._number), self._like(vectors)
        if "own" in known:
            parts = unrotate(_components(known["own"]), parts)
        return dot(times(_components(known["weights"]), parts), parts) / 2

    def both(self, p: Any, vectors: Any) -> KineticEnergy:
        """Kinetic energies of the translation, from momenta or velocities, and of the rotation."""
        parts = self._parts("p", p, self._number)
        turning = self.rotation(vectors, len(parts[0]))
        return KineticEnergy(self._like(p)["masses"] * dot(parts, parts) / 2, turning)

    def temperature(self, vectors: Any, k: Any) -> Any:
        """Temperature of the rotation."""
        energy = self.rotation(vectors)
        return 2 * energy.sum() / (degrees(self.bodies, len(energy)) * positive("k", k))

    def temperatures(self, p: Any, vectors: Any, k: Any, fixed: Any) -> Temperature:
        """Temperatures of translation and rotation."""
        moving, turning = (energy.sum() for energy in self.both(p, vectors))
        number = p.shape[0 if self.layout == "rows" else 1]
        a, b, half = 3 * number - _fixed(fixed, 3 * number), degrees(self.bodies, number), positive("k", k) / 2
        return Temperature(moving / (a * half), turning / (b * half), (moving + turning) / ((a + b) * half))

    @property
    def _number(self) -> int | None:
        """Number of bodies, if the stepper knows it."""
        return self.bodies.number if len(self.bodies.moments) > 1 or self.bodies.number > 1 else None

    def _parts(self, name: str, vectors: Any, number: int | None) -> Any:
        """Components of vectors in the layout of the stepper."""
        if not hasattr(vectors, "shape") or not hasattr(vectors, "dtype"):
            raise InputError(
                f"{name} must be an array of NumPy, CuPy, PyTorch or JAX; got {type(vectors).__name__}", name
            )
        if str(vectors.dtype).rpartition(".")[2] not in ("float64", "float32"):  # PyTorch: torch.float64
            raise InputError(f"{name} must hold float64 or float32 numbers; got {vectors.dtype}", name)
        arrays.check_shape(name, tuple(vectors.shape), 3, self.layout, number)
        return _components(vectors) if self.layout == "rows" else tuple(vectors)

    def _like(self, array: Any) -> dict[str, Any]:
        """Inertia and masses as arrays of the library, device and numbers of an array."""
        if arrays.is_functional(array):  # in a function that JAX traces they belong to the trace
            return {name: matching(value, array) for name, value in self._constants.items()}
        key = type(array), str(array.dtype), str(getattr(array, "device", ""))
        if key not in self._sent:
            self._sent[key] = {name: matching(value, array) for name, value in self._constants.items()}
        return self._sent[key]


def degrees(bodies: Bodies, number: int) -> int:
    """Degrees of freedom of the rotation of this number of bodies: three, or two of a linear one."""
    return int((bodies.moments > 0).sum()) * (number if len(bodies.moments) == 1 else 1)


def _fixed(fixed: Any, most: int) -> int:
    """Check a number of degrees of freedom that the translation does not have."""
    if isinstance(fixed, bool) or not isinstance(fixed, int | np.integer) or not 0 <= fixed < most:
        raise InputError(
            f"fixed must be a whole number below {most}, the degrees of freedom of the translation; got {fixed!r}",
            "fixed",
        )
    return int(fixed)


def _components(array: Any) -> Any:
    """Columns of an array."""
    return tuple(array[:, i] for i in range(array.shape[1]))
