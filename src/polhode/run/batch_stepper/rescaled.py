"""Steps of many bodies whose momenta a thermostat rescales, over half a step before and after every step."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from . import arrays
from .asked import asked_steps, by_rows, is_written_out, write_good
from .kinetic import degrees

if TYPE_CHECKING:
    from .stepper import BatchStepper


class Coupled:
    """A thermostat and the bodies whose momenta it rescales; with masses, also those of the translation."""

    def __init__(self, thermostat: Any, rotation: BatchStepper, masses: Any = None) -> None:
        self.thermostat, self.rotation, self.masses = thermostat, rotation, masses
        thermostat.take(self._degrees())

    def factors(self, h: float, kinetic: list[float]) -> list[float]:
        """Return the factor of the momenta of each group over the time h, from twice its kinetic energy."""
        if sum(kinetic) == 0:
            raise InputError("all bodies are at rest, and no factor of their momenta moves them; give them momenta")
        found: list[float] = self.thermostat.factors(h, kinetic)
        return found

    def _degrees(self) -> tuple[int, ...]:
        """Degrees of freedom of translation (with masses) and of rotation."""
        number = len(self.rotation.flags)
        rotation = degrees(self.rotation.bodies, number)
        return (rotation,) if self.masses is None else (3 * number, rotation)


class Coupling(Coupled):
    """A thermostat of bodies in arrays of the processor."""

    def __call__(self, h: float, v: np.ndarray, p: np.ndarray | None = None) -> None:
        """Rescale the vectors of the rotation, and the momenta or velocities of the translation, over the time h."""
        kinetic = (
            [self._twice_rotational(v)] if p is None else [self._twice_translational(p), self._twice_rotational(v)]
        )
        factors = self.factors(h, kinetic)
        v *= factors[-1]
        if p is not None:
            p *= factors[0]

    def _twice_rotational(self, v: np.ndarray) -> float:
        """Twice the kinetic energy of the rotation, Pi . omega; a body that failed has none."""
        bodies, form = self.rotation.bodies, self.rotation.form
        rows = by_rows(v, form.layout)
        return _total(rows * (bodies.momentum_of(rows) if form.omega else bodies.omega_of(rows)))

    def _twice_translational(self, p: np.ndarray) -> float:
        """Twice the kinetic energy of the translation, p^2/m or m v^2."""
        form, masses = self.rotation.form, np.reshape(self.masses, (-1, 1))
        rows = by_rows(p, form.layout)
        return _total(rows * rows * (masses if form.omega else 1 / masses))


def _total(products: np.ndarray) -> float:
    return float(products[np.isfinite(products).all(axis=1)].sum())


def check_one_step(h: Any) -> float:
    """Refuse steps of each body: a thermostat acts on all of them at once."""
    if type(h) is not float:
        raise InputError("a thermostat acts on all bodies together, so dt must be one number for all", "dt")
    return h


def torques(rotation: BatchStepper, torque: Any, n: int) -> Iterable[Any]:
    """The torque of each of n steps."""
    if torque is None:
        return itertools.repeat(None, n)
    found = arrays.vectors("torque", torque, rotation.form.layout, len(rotation.flags), n)
    return found if found.ndim == 3 else itertools.repeat(found, n)


def rescaled_steps(
    stepper: BatchStepper, q: np.ndarray, v: np.ndarray, torque: Any, frame: Any, h: Any, n: int, t: float,
    slow: Any = None,
) -> int:  # fmt: skip
    """Make steps with a thermostat; return the number of bodies that failed, whose states are kept."""
    assert stepper.thermostat is not None
    h, couple = check_one_step(h), Coupling(stepper.thermostat, stepper)
    asked = torque is not None and arrays.is_function(torque)
    with stepper.thermostat.trial():
        if asked and is_written_out(stepper.method.unprocessed or stepper.method):
            return asked_steps(stepper, q, v, torque, frame, h, n, t, couple, slow)
        new = q.astype(float), v.astype(float)  # nothing is written if an error is raised
        for k, given in enumerate(itertools.repeat(torque, n) if asked else torques(stepper, torque, n)):
            couple(h / 2, new[1])
            if asked:
                asked_steps(stepper, *new, torque, frame, h, 1, t + k * h)
            else:
                stepper.bound(*new, given, frame, h=h)(t + k * h)
            couple(h / 2, new[1])
        return write_good(stepper, (q, v), new)
