"""Steps on a GPU that are made of parts: torques from functions, thermostats, and translation.

They are made on copies of the states, in doubles, and written back at the end. So nothing is written if a function
raises an error, and a body that fails in one part keeps its whole state.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...methods import Method
from . import arrays
from .asked import (
    KICK,
    SLOW,
    Leg,
    check_alone,
    check_askable,
    in_turn,
    is_written_out,
    legs,
    part_between_kicks,
    parted,
    takes_vectors,
)
from .gpu_arrays import duplicate
from .gpu_thermostat import CardCoupling
from .rescaled import check_one_step
from .respa import Respa

if TYPE_CHECKING:
    from .gpu import GpuSteps
    from .gpu_translation import Translation

Answer = tuple[Any, Any]
"""Forces (None without translation) and torques of all bodies, as arrays of numba."""


class Trial:
    """Copies of the states of a call, and the parts of its steps.

    Attributes
    ----------
    copies, seen : the copies as arrays of the user's library, and as arrays of numba; the last two are attitudes and
        momenta, before them are those of the translation
    dtype : the numbers of the given states
    h, stream, frame : step, stream, and frame of the torques
    """

    def __init__(
        self, gpu: GpuSteps, given: tuple[Any, ...], h: Any, stream: int, frame: str,
        translation: Translation | None = None,
    ) -> None:  # fmt: skip
        self.gpu, self.h, self.stream, self.frame, self.translation = gpu, h, stream, frame, translation
        self.copies, self.dtype = tuple(duplicate(array, arrays.DOUBLE) for array in given), given[-1].dtype
        self.seen = tuple(gpu.view("a state", array)[0] for array in self.copies)
        self.q, self.v = self.seen[-2:]
        self.kept: list[Any] = []

    def launch(self, make: Callable[..., Any], form: tuple[Any, ...], *arguments: Any) -> None:
        """Start the kernel ``make(*form)`` with one thread for each body."""
        self.gpu.launch(self.gpu.kernel(make, *form), self.stream, *arguments, self.gpu.number)

    # --- parts of a step ---------------------------------------------------------------------------

    def kick(self, fraction: float, answer: Answer) -> None:
        """Apply the kicks of translation and rotation over a fraction of the step."""
        from ...compile.cuda_in_place import kicking

        gpu, (force, torque) = self.gpu, answer
        if self.translation is not None:
            self.translation.kick(self, fraction, force)
        form = gpu.stepper.form, gpu.turned, self.frame == "space", type(self.h) is not float
        inertia, axes = gpu.constants
        self.launch(kicking, form, self.q, self.v, torque, inertia, axes, self.h, fraction)

    def between_kicks(self, flow: Method, leg: Leg, k: int) -> None:
        """Make the drifts, and the steps of friction and noise, between two kicks of step k of the call."""
        if self.translation is not None:
            self.translation.between_kicks(self, leg, k)
        method, h = part_between_kicks(flow, leg, self.h)
        gpu = self.gpu
        gpu.advance(
            method, self.q, self.v, gpu.nothing, None, h, 1, 0.0, self.stream, further=k, flags=gpu.lost
        )  # fmt: skip

    def held(self, torque: Any, n: int, t: float, k: int = 0) -> None:
        """Make n steps of the rotation with a torque that is held, from step k of the call on."""
        gpu = self.gpu
        force, frame = (gpu.nothing, None) if torque is None else (torque, self.frame)
        gpu.advance(
            gpu.stepper.method, self.q, self.v, force, frame, self.h, n, t, self.stream, further=k, flags=gpu.lost
        )  # fmt: skip

    # --- functions ---------------------------------------------------------------------------------

    def answer(self, name: str, function: Callable[..., Any], t: float, copied: bool) -> Answer:
        """Ask a function for the torques, with translation for forces and torques, at the present states.

        name : whose energy it is, if the function returns one
        copied : copy the answer, which the memory of another function's answer may share
        """
        value = function(t, *self.shown())
        if self.translation is None:
            return None, self._answered("the result of the torque function", value, copied)
        force, torque, self.translation.stepper.energies[name] = parted(value)
        return (
            self._answered("the force of the function", force, copied),
            self._answered("the torque of the function", torque, copied),
        )

    def shown(self) -> tuple[Any, ...]:
        """Return positions (with translation) and attitudes for a function of the user's library."""
        shown = self.copies[:-1] if self.translation is None else (self.copies[0], self.copies[2])
        if not any(map(arrays.is_functional, shown)):
            return shown
        self.gpu.cuda.synchronize()  # JAX does not know of this stream, and that its array changes
        return tuple(duplicate(array, self.dtype) for array in shown)

    def _answered(self, name: str, value: Any, copied: bool) -> Any:
        """Return vectors that a function returned as an array of numba, and keep their memory."""
        if arrays.is_functional(value):
            value.block_until_ready()
        if copied:
            value = duplicate(value, arrays.DOUBLE)
        self.kept.append(value)
        return self.gpu.vectors(name, value)

    def asked(
        self, flow: Method, scheme: list[Leg], functions: dict[str, Callable[..., Any]], n: int, t: float,
        couple: Callable[[], None],
    ) -> None:  # fmt: skip
        """Make the kicks and drifts of a scheme; neighbouring kicks share one answer of a function."""

        def ask(force: str, k: int, clock: float, first: bool) -> Answer:
            if first:
                self.kept.clear()
            return self.answer(force, functions[force], t + k * self.h + clock * self.h, len(functions) > 1)

        in_turn(scheme, n, couple, ask, self.kick, lambda leg, k: self.between_kicks(flow, leg, k))

    # --- the end -----------------------------------------------------------------------------------

    def commit(self, *given: Any) -> None:
        """Write the states of all bodies that did not fail into these arrays of numba."""
        from ...compile.cuda_motion import committing

        gpu, moves = self.gpu, self.translation is not None
        unused = () if moves else (gpu.nothing, gpu.nothing)
        form = gpu.stepper.form, moves
        self.launch(committing, form, *unused, *self.seen, *unused, *given, gpu.lost, gpu.flags, gpu.fault)

    @contextlib.contextmanager
    def coupled(self) -> Iterator[Callable[[], None]]:
        """The function that rescales momenta over half a step; an error restores the states before the call."""
        stepper = self.gpu.stepper if self.translation is None else self.translation.stepper
        try:
            if stepper.thermostat is None:
                yield lambda: None
            else:
                check_one_step(self.h)
                with stepper.thermostat.trial():
                    yield CardCoupling(stepper.thermostat, self)
        except BaseException:
            self.gpu.clear(self.gpu.lost)
            raise


def check_function(gpu: GpuSteps, h: Any) -> Method:
    """Return the scheme that asks functions on a GPU; refuse other methods."""
    stepper = gpu.stepper
    method = stepper.method.unprocessed or stepper.method
    check_alone(stepper)
    check_askable(stepper.method)
    if not is_written_out(method) or type(h) is not float:
        raise InputError(
            "on a GPU functions give torques to kick-drift schemes over a free flow, such as strang(dmv10), with one "
            f"dt for all bodies; got {stepper.method.name}{'' if type(h) is float else ' with a dt for each body'}"
        )
    return method


def rotational_steps(
    gpu: GpuSteps, given: tuple[Any, Any], states: tuple[Any, Any], torque: Any, slow: Any, frame: str, h: Any, n: int,
    t: float, stream: int,
) -> None:  # fmt: skip
    """Make steps of the rotation with torques from functions, with multiple time steps, or with a thermostat."""
    functions = _functions(gpu, torque, slow)
    method = check_function(gpu, h) if functions else None
    trial = Trial(gpu, given, h, stream, frame)
    with trial.coupled() as couple:
        if method is not None:
            trial.asked(*scheme_of(method, gpu.stepper.respa), functions, n, t, couple)
        else:
            for k, one in enumerate(torques(gpu, torque, n)):
                couple()
                trial.held(one, 1, t + k * h, k)
                couple()
    trial.commit(*states)


def scheme_of(method: Method, respa: Respa | None, apart: bool = False) -> tuple[Method, list[Leg]]:
    """Return the free flow of a scheme, and its kicks and drifts (with `apart`, as for `legs`)."""
    assert method.drift is not None
    return method.drift, legs(method, apart) if respa is None else respa.legs


def _functions(gpu: GpuSteps, torque: Any, slow: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions to ask for torques; with multiple time steps, an array is held over all steps."""
    if slow is None and not arrays.is_function(torque):
        return {}
    found = {}
    for name, value in {KICK: torque, SLOW: slow}.items():
        if arrays.is_function(value) and takes_vectors(value):
            raise InputError("on a GPU a torque function has two arguments, torque(t, q); got one with three")
        if value is not None:
            found[name] = value if arrays.is_function(value) else _held(value)
    return found


def _held(torque: Any) -> Callable[..., Any]:
    """Return torques that do not change as a function."""
    return lambda t, q: torque


def torques(gpu: GpuSteps, torque: Any, n: int) -> Iterable[Any]:
    """The torque of each of n steps, as arrays of numba."""
    if torque is None:
        return itertools.repeat(None, n)
    found = gpu.vectors("torque", torque, n)
    return [found[k] for k in range(n)] if found.ndim == 3 else itertools.repeat(found, n)
