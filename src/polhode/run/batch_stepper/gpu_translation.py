"""Steps of rotation and translation together, in arrays on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...numbers import floats
from ...numbers.exact import converted
from ...physics.fields.heat_bath import FIRST, FRICTION, KT, SEED, STREAM
from . import arrays
from .asked import KICK, NOISE, SLOW, Leg, legs
from .gpu_arrays import check, check_apart, zeros
from .gpu_trial import Trial, check_function, scheme_of, torques
from .translation_bath import VECTORS

if TYPE_CHECKING:
    from .gpu import GpuSteps
    from .translation import RigidStepper


class Translation:
    """The translation of the bodies of a `RigidStepper` on a GPU.

    Attributes
    ----------
    masses : in the memory of the GPU, one for each body or one for all
    bath : the parameters of the heat bath of the translation, of all bodies
    """

    def __init__(self, stepper: RigidStepper) -> None:
        self.stepper = stepper
        self.masses = stepper.rotation.on_gpu().sent(np.atleast_1d(np.asarray(stepper.masses, dtype=float)))
        self.bath: Any = None

    # --- parts of a step ---------------------------------------------------------------------------

    def kick(self, trial: Trial, fraction: float, force: Any) -> None:
        """Apply a kick: p += h F, or v += h F/m."""
        self._move(trial, trial.seen[1], force, fraction, self.stepper.rotation.form.omega)

    def drift(self, trial: Trial, fraction: float) -> None:
        """Apply a drift: x += h p/m, or x += h v."""
        self._move(trial, trial.seen[0], trial.seen[1], fraction, not self.stepper.rotation.form.omega)

    def _move(self, trial: Trial, a: Any, b: Any, fraction: float, over_mass: bool) -> None:
        from ...compile.cuda_motion import moving

        form = self.stepper.rotation.form.layout, over_mass, type(trial.h) is not float
        trial.launch(moving, form, a, b, self.masses, trial.h, fraction)

    def between_kicks(self, trial: Trial, leg: Leg, k: int) -> None:
        """Make the drifts and the steps of friction and noise between two kicks of step k of a call."""
        drawn = leg.drawn
        for part in leg.parts:
            fraction = float(converted(part.time, floats.number))
            if part.flow != NOISE:
                self.drift(trial, fraction)
                continue
            if self.stepper.bath is not None:
                self._relax(trial, fraction, k, drawn)
            drawn += 1

    def _relax(self, trial: Trial, fraction: float, k: int, drawn: int) -> None:
        """Make the exact step of friction and noise."""
        from ...compile.cuda_motion import relaxing, relaxing_in_body

        stepper, form, own_dt = self.stepper, self.stepper.rotation.form, type(trial.h) is not float
        counters = float(stepper.steps_made + k), VECTORS + drawn
        rest = self.masses, self._of_bodies(trial.gpu), *counters, trial.h, fraction
        if stepper.turns:
            trial.launch(relaxing_in_body, (form, own_dt), trial.seen[1], trial.q, *rest)
        else:
            trial.launch(relaxing, (form.layout, form.omega, own_dt), trial.seen[1], *rest)

    def _of_bodies(self, gpu: GpuSteps) -> Any:
        """Return the parameters of the heat bath: the rows kT, friction (one or nine), seed, stream and first step."""
        assert self.stepper.bath is not None
        if self.bath is None or self.bath.shape[1] != gpu.number:
            columns = self.stepper.bath.of_bodies(gpu.number)
            wanted = [KT, *(range(FRICTION, SEED) if self.stepper.turns else (FRICTION,)), SEED, STREAM, FIRST]
            self.bath = gpu.sent(np.ascontiguousarray(columns[wanted]))
        return self.bath

    # --- calls -------------------------------------------------------------------------------------

    def step(
        self, given: tuple[Any, ...], force: Any, torque: Any, slow: Any, frame: str, h: Any, n: int, t: float,
        in_place: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Make the steps; `h` returns the step, or one for each body."""
        gpu: GpuSteps = self.stepper.rotation.on_gpu()
        given, stream = gpu.opened(given, in_place)
        states = self._states(gpu, given, stream)
        steps = gpu.steps(h(), stream)
        if self.stepper.turns and not arrays.is_function(force):
            force, torque = self._constant(gpu, given[-1], force, torque), None
        method = check_function(gpu, steps) if arrays.is_function(force) else None
        trial = Trial(gpu, given, steps, stream, frame, self)
        with trial.coupled() as couple:
            if method is not None:
                functions = {KICK: force} | ({} if slow is None else {SLOW: slow})
                scheme = scheme_of(method, self.stepper.respa, self.stepper.turns)
                trial.asked(*scheme, functions, n, t, couple)
            elif self.stepper.thermostat is None:
                self._held(trial, force, None if torque is None else gpu.vectors("torque", torque, n), n, t)
            else:
                for k, one in enumerate(torques(gpu, torque, n)):
                    couple()
                    self._held(trial, force, one, 1, t + k * steps)
                    couple()
        trial.commit(*states)
        self.stepper.rotation.counted(0, n)
        gpu.close(*given)
        return given

    def _states(self, gpu: GpuSteps, given: tuple[Any, ...], stream: int) -> tuple[Any, ...]:
        """Check the arrays of a call and return them as arrays of numba."""
        x, p, q, v = given
        q, v = gpu.states(q, v, stream)
        found = []
        for name, array in (("x", x), ("p", p)):
            seen = gpu.view(name, array)[0]
            check(name, seen, 3, self.stepper.rotation.form.layout, gpu.number)
            found.append(seen)
        check_apart(x=found[0], p=found[1], q=q, pi=v)
        return (*found, q, v)

    def _held(self, trial: Trial, force: Any, torque: Any, n: int, t: float) -> None:
        """Make steps with constant forces; without noise n steps of any scheme of order 2 or more are exact."""
        trial.held(torque, n, t)
        F = None if force is None else trial.gpu.vectors("force", force)
        if self.stepper.bath is None:
            self._pushed(trial, n / 2, F)
            self.drift(trial, float(n))
            self._pushed(trial, n / 2, F)
            return
        for k in range(n):
            for leg in legs(self.stepper.rotation.method):
                if leg.is_kick:
                    self._pushed(trial, leg.fraction, F)
                else:
                    self.between_kicks(trial, leg, k)

    def _constant(self, gpu: GpuSteps, like: Any, force: Any, torque: Any) -> Callable[..., Any]:
        """Return forces and torques as a function that does not change; None is zero."""
        given = {"force": force, "torque": torque}
        for name in (name for name, value in given.items() if value is not None):
            gpu.vectors(name, given[name])
        found = tuple(zeros(like) if value is None else value for value in given.values())
        return lambda t, x, q: found

    def _pushed(self, trial: Trial, fraction: float, force: Any) -> None:
        """Apply a kick, if there is a force."""
        if force is not None:
            self.kick(trial, fraction, force)


def check_one_device(given: tuple[Any, ...]) -> None:
    """Refuse states of which some are on a GPU."""
    for name, array in zip(("x", "p", "q", "pi"), given, strict=True):
        if not arrays.is_on_gpu(array):
            raise InputError(f"{name} must be on the GPU, as other states are; got {type(array).__name__}", name)
