"""Steps of rotation and translation together, by one scheme.

The translation x' = p/m, p' = F has the kicks and drifts of the rotation: with the same coefficients, and at the same
times. So forces and torques that depend on positions and attitudes are asked for once a kick, and the order of the
scheme holds for all of the motion.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import InputError
from ...methods import Method
from ...numbers import floats
from ...numbers.exact import converted
from ...physics.fields.decorators import check_frame
from ...physics.validate import finite_number, flag, real_array, whole_number
from . import arrays
from .asked import (
    KICK,
    NOISE,
    SLOW,
    Asked,
    Couple,
    Drifts,
    Leg,
    by_rows,
    check_alone,
    in_turn,
    is_written_out,
    kick,
    legs,
    own_steps,
    parted,
    scalar_first,
    uncoupled,
    write_good,
)
from .kinetic import Kinetic, KineticEnergy, Temperature
from .rescaled import Coupling, check_one_step, torques
from .respa import Respa, check_slow
from .stepper import BatchStepper
from .thermostats import Acting
from .translation_bath import TranslationBath


class RigidStepper:
    """Advances positions and attitudes of many bodies; created by `ph.batch_stepper` with `masses`.

    Attributes
    ----------
    rotation : the stepper of the rotation
    masses : one for each body, or one for all
    bath : the heat bath of the translation, or None
    thermostat : the thermostat of translation and rotation in its present state, or None
    respa : multiple time steps, or None
    energies : what the force functions returned last as their energies, by the names of the forces
    """

    def __init__(
        self, rotation: BatchStepper, masses: Any, bath: TranslationBath | None = None,
        thermostat: Acting | None = None, respa: Respa | None = None,
    ) -> None:  # fmt: skip
        self.rotation, self.respa = rotation, respa
        self.masses = _masses(masses, rotation.bodies.number)
        self.bath, self.thermostat = bath, thermostat
        rotation.parts = 1 if respa is None else respa.n
        self.energies: dict[str, Any] = {}
        self._forget()

    def _forget(self) -> None:
        """Drop what was made from inertia and masses."""
        self._gpu: Any = None
        self._kinetic = Kinetic(self.rotation.bodies, self.rotation.form, self.masses)

    def __reduce__(self) -> Any:
        """Pickle the constructor arguments."""
        return RigidStepper, (self.rotation, self.masses, self.bath, self.thermostat, self.respa)

    @property
    def steps_made(self) -> int:
        """Number of steps made so far, which numbers the random numbers; set it to continue a run with its noise."""
        return self.rotation.steps_made

    @steps_made.setter
    def steps_made(self, steps: int) -> None:
        self.rotation.steps_made = steps

    @property
    def failed(self) -> np.ndarray:
        """The bodies whose last step failed; their states are as before the call."""
        return self.rotation.failed

    @property
    def potential_energy(self) -> Any:
        """The energy that the force function returned last, with `ph.respa` the sum of both; None if one gave none.

        It is that of the positions after the step if the scheme ends with a kick, as strang(...) and baoab(...) do.
        """
        found = list(self.energies.values())
        return None if not found or any(energy is None for energy in found) else sum(found[1:], found[0])

    def replace(self, indices: Any, bodies: Any, masses: Any = None) -> None:
        """Replace some bodies by others; `masses` are theirs, if they differ from the old ones."""
        self.rotation.replace(indices, bodies)
        if masses is not None:
            new = np.array(np.broadcast_to(self.masses, (self.rotation.bodies.number,)))
            new[indices] = _masses(masses, new[indices].size)
            self.masses = new
        self._forget()

    def kinetic_energy(self, p: Any, momentum: Any) -> KineticEnergy:
        """Return the kinetic energies ``.translation`` and ``.rotation`` of each body, (N,), and their ``.total``.

        They are arrays of the library, device and precision of the given ones.

        Parameters
        ----------
        p : momenta of the centres of mass (with angular velocities, velocities)
        momentum : angular momenta in the body frame (or angular velocities)
        """
        return self._kinetic.both(p, momentum)

    def temperature(self, p: Any, momentum: Any, *, k: float = 1.0, fixed: int = 0) -> Temperature:
        """Return the temperatures 2 K/(f k) ``.translation``, ``.rotation`` and ``.total`` of all bodies together.

        The degrees of freedom f are 3 for the translation of each body and 3 for its rotation, or 2 of a linear body.

        Parameters
        ----------
        p, momentum : as for `kinetic_energy`
        k : Boltzmann's constant in your units, such as 0.00198720426 kcal/(mol K); with 1 the results are kT, energies
        fixed : degrees of freedom that the translation does not have: 3 if the total momentum is conserved and zero
        """
        return self._kinetic.temperatures(p, momentum, k, fixed)

    def step(
        self, x: Any, p: Any, q: Any, pi: Any, force: Any = None, torque: Any = None, *, slow: Any = None,
        frame: str = "body", dt: Any = None, n: int = 1, t: float = 0.0, in_place: bool = True,
    ) -> tuple[Any, Any, Any, Any]:  # fmt: skip
        """Advance all bodies by one step, or by `n` steps.

        Parameters
        ----------
        x, p : positions of the centres of mass and momenta (with angular velocities, velocities), in the space frame
        q, pi : attitudes and angular momenta, as for a stepper without masses
        force, torque : arrays, held constant over all steps; forces are in the space frame, torques in `frame`. Or
            `force` is a function ``force(t, x, q)`` that returns both arrays, ``(force, torque)``, or both and their
            energy, ``(force, torque, energy)``, a number; it is asked at every kick of the scheme
        slow : with `ph.respa`, the function of the slow forces, like `force`, which is then that of the fast ones
        frame, dt, n, t, in_place : as for a stepper without masses

        Returns
        -------
        x, p, q, pi : the arrays with the new states
        """
        rotation, given, self.energies = self.rotation, (x, p, q, pi), {}
        in_place, n, t = flag("in_place", in_place), whole_number("n", n), finite_number("t", t)
        check_frame(frame)
        check_slow(self.respa, force, slow, masses=True)
        if arrays.is_function(force) and torque is not None:
            raise InputError("a function gives forces and torques together; leave out `torque`")
        if any(map(arrays.is_on_gpu, given)):
            found: tuple[Any, Any, Any, Any] = self._on_gpu(given).step(
                given, force, torque, slow, frame, lambda: rotation.steps(dt), n, t, in_place
            )
            return found
        states = self._checked(given, in_place)
        h, new = rotation.steps(dt), tuple(array.astype(float) for array in states)
        with np.errstate(invalid="ignore", over="ignore"):
            if arrays.is_function(force):
                asked = {KICK: _Both(self, force, frame)}
                if slow is not None:
                    asked[SLOW] = _Both(self, slow, frame)
                with self._coupled(h) as couple:
                    self._asked(new, asked, h, n, t, couple)
            elif self.turns:
                self._asked(new, {KICK: _Both(self, self._constant(force, torque), frame)}, h, n, t, uncoupled)
            elif self.thermostat is None:
                self._held(new, force, torque, frame, h, n, t)
            else:
                with self._coupled(h) as couple:
                    for k, given_torque in enumerate(torques(rotation, torque, n)):
                        couple(h / 2, new[3], new[1])
                        self._held(new, force, given_torque, frame, h, 1, t + k * h)
                        couple(h / 2, new[3], new[1])
        target = states if in_place else tuple(array.copy() for array in states)
        rotation.settle(rotation.counted(write_good(rotation, target, new), n), torque, *target[2:])
        if in_place and not any(map(arrays.is_functional, given)):
            return given
        return tuple(arrays.returned(a, like) for a, like in zip(target, given, strict=True))

    def _on_gpu(self, given: tuple[Any, ...]) -> Any:
        """Return the steps in arrays on a GPU."""
        from .gpu_translation import Translation, check_one_device

        check_one_device(given)
        if self._gpu is None:
            self._gpu = Translation(self)
        return self._gpu

    @property
    def turns(self) -> bool:
        """Whether the friction of the translation turns with the bodies."""
        return self.bath is not None and not self.bath.is_isotropic

    def _constant(self, force: Any, torque: Any) -> Callable[..., Any]:
        """Forces and torques as a function that does not change; None is zero."""
        layout, number = self.rotation.form.layout, len(self.rotation.flags)
        none = np.zeros((number, 3) if layout == "rows" else (3, number))
        given = {"force": force, "torque": torque}
        found = [
            none if value is None else arrays.vectors(name, value, layout, number, None)
            for name, value in given.items()
        ]
        return lambda t, x, q: tuple(found)

    @contextlib.contextmanager
    def _coupled(self, h: Any) -> Iterator[Couple]:
        """The function that rescales momenta, if there is a thermostat; an error restores the state of the latter."""
        if self.thermostat is None:
            yield uncoupled
            return
        check_one_step(h)
        with self.thermostat.trial():
            yield Coupling(self.thermostat, self.rotation, self.masses)

    def _checked(self, given: tuple[Any, ...], in_place: bool) -> tuple[np.ndarray, ...]:
        """Check the arrays of a call and return them as NumPy arrays."""
        rotation = self.rotation
        q, v = rotation.admitted(given[2], given[3], in_place)
        number, written = len(rotation.flags), in_place and not any(map(arrays.is_functional, given))
        found = []
        for name, array in zip(("x", "p"), given[:2], strict=True):
            seen = arrays.viewed(name, array)
            arrays.check_state(name, seen, 3, rotation.form.layout, number, written)
            found.append(seen.copy() if in_place and not written else seen)
        arrays.check_apart(x=found[0], p=found[1], q=q, pi=v)
        return (*found, q, v)

    # --- parts of a step, on arrays of doubles -------------------------------------------------------

    def _held(
        self, state: tuple[Any, ...], force: Any, torque: Any, frame: str, h: Any, n: int, t: float
    ) -> None:  # fmt: skip
        """Make steps with constant forces; without noise n steps of any scheme of order 2 or more are exact."""
        rotation, (x, p, q, v) = self.rotation, state
        number, layout = len(rotation.flags), rotation.form.layout
        rotation.bound(q, v, torque, frame, h=h, n=n)(t)
        steps, F = own_steps(h, number), np.zeros((1, 3))
        if force is not None:
            F = by_rows(arrays.vectors("force", force, layout, number, None), layout).astype(float)
        if self.bath is None:
            self._kick(p, n * steps / 2, F)
            self._drift(x, p, n * steps)
            self._kick(p, n * steps / 2, F)
            return
        for k in range(n):
            for leg in legs(rotation.method):
                if leg.is_kick:
                    self._kick(p, leg.fraction * steps, F)
                else:
                    self._between_kicks(x, p, q, leg, steps, k)

    def _scheme(self) -> tuple[Method | None, list[Leg]]:
        """Return the free flow of the scheme, and its kicks and drifts."""
        rotation = self.rotation
        method = rotation.method.unprocessed or rotation.method
        check_alone(rotation)
        if not is_written_out(method):
            raise InputError(
                f"forces from a function need a kick-drift scheme over a free flow, such as strang(dmv10); got "
                f"{rotation.method.name}"
            )
        return method.drift, legs(method, self.turns) if self.respa is None else self.respa.legs

    def _asked(
        self, state: tuple[Any, ...], asked: dict[str, _Both], h: Any, n: int, t: float, couple: Couple
    ) -> None:  # fmt: skip
        """Make the kicks and drifts of a scheme; neighbouring kicks share one answer of a function."""
        rotation, (x, p, q, v) = self.rotation, state
        flow, scheme = self._scheme()
        drifts, steps = Drifts(rotation, flow, scheme, q, v, h), own_steps(h, len(rotation.flags))

        def ask(force: str, k: int, clock: float, first: bool) -> Any:
            *answer, self.energies[force] = asked[force](t + k * steps + clock * steps, x, q)
            return answer

        def kicked(fraction: float, answer: Any) -> None:
            self._kick(p, fraction * steps, answer[0])
            kick(rotation, v, fraction * steps, answer[1])

        def drifted(leg: Leg, k: int) -> None:
            self._between_kicks(x, p, q, leg, steps, k)
            drifts.advance(leg, k)

        in_turn(scheme, n, lambda: couple(h / 2, v, p), ask, kicked, drifted)
        rotation.flags |= drifts.failed()

    def _between_kicks(self, x: np.ndarray, p: np.ndarray, q: np.ndarray, leg: Leg, steps: Any, k: int) -> None:
        """Make the drifts and the steps of friction and noise of the translation between two kicks of step k."""
        drawn = leg.drawn
        for part in leg.parts:
            h = float(converted(part.time, floats.number)) * steps
            if part.flow != NOISE:
                self._drift(x, p, h)
                continue
            if self.bath is not None:
                form = self.rotation.form
                attitudes = scalar_first(by_rows(q, form.layout), form.scalar_last) if self.turns else None
                self.bath.relax(by_rows(p, form.layout), attitudes, h, self.masses, self.steps_made + k, drawn)
            drawn += 1

    def _kick(self, p: np.ndarray, h: Any, force: Any) -> None:
        """Apply a kick: p += h F, or v += h F/m."""
        rows = by_rows(p, self.rotation.form.layout)
        rows += force * _column(h / self.masses if self.rotation.form.omega else h)

    def _drift(self, x: np.ndarray, p: np.ndarray, h: Any) -> None:
        """Apply a drift: x += h p/m, or x += h v."""
        rows = by_rows(x, self.rotation.form.layout)
        rows += by_rows(p, self.rotation.form.layout) * _column(h if self.rotation.form.omega else h / self.masses)


class _Both:
    """Forces (space frame) and torques (body frame) from a function, one row for each body, and their energy."""

    def __init__(self, stepper: RigidStepper, function: Callable[..., Any], frame: str) -> None:
        self.stepper, self.function, self.frame = stepper, function, frame

    def __call__(self, t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return all three at a time and at positions and attitudes."""
        rotation = self.stepper.rotation
        force, torque, energy = parted(self.function(t, x, q))
        layout, number = rotation.form.layout, len(rotation.flags)
        force = arrays.vectors("the force of the function", force, layout, number, None)
        torque = arrays.vectors("the torque of the function", torque, layout, number, None)
        turning = Asked(rotation, lambda *state: torque, self.frame)
        return by_rows(force, layout).astype(float), turning(t, q, x), energy


def _column(h: Any) -> Any:
    """A number for each body as a column, or one for all."""
    return h[:, None] if np.ndim(h) else h


def _masses(masses: Any, number: int) -> Any:
    """Return positive masses, one for each body or one for all."""
    given = real_array(masses, "masses must be one number for each body, or one for all", key="masses")
    if given.ndim > 1 or not given.size or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(f"masses must be positive numbers, one for each body or one for all; got {masses!r}", "masses")
    if given.ndim and number > 1 and len(given) != number:
        raise InputError(f"masses must be one for each of the {number} bodies; got {len(given)}", "masses")
    return given if given.ndim else float(given)
