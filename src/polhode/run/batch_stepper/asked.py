"""Steps whose torques come from a user function, called at the stages of the method.

A kick-drift scheme is written out: the drifts are compiled steps of its free flow, the kicks are made here. So the
function is asked once for each kick, at the exact times of the scheme, and its order is kept. The step of any other
explicit method runs on arrays with one number for each body.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...kernels.loops import is_valid, renormalise
from ...kernels.so3 import conj, mul, unit, unrotate
from ...methods import Method
from ...methods.combinators.compose import whole
from ...methods.combinators.langevin import without_kicks
from ...methods.queries import HeatBath, Torque
from ...methods.ranking import fitting, listed
from ...methods.tables.compositions import Part
from ...numbers import floats
from ...numbers.arrays import components
from ...numbers.exact import converted
from ...physics.bodies import rows
from ...physics.fields.heat_bath import BathField
from ..noise import NOISY
from . import arrays
from .gpu_arrays import duplicate

if TYPE_CHECKING:
    from .stepper import BatchStepper

KICK, NOISE = "U", "O"
"""The flow of a potential, and friction and noise, in the sequence of a kick-drift scheme."""

SLOW = "slow"
"""The name of the slow force in the legs of a scheme with multiple time steps; that of the other one is `KICK`."""


Couple = Callable[..., None]
"""A function (h, v) or (h, v, p) that a thermostat calls to rescale momenta over the time h."""


def uncoupled(h: Any, *momenta: np.ndarray) -> None:
    """Rescale nothing."""


class Asked:
    """Torques from a function of the user's arrays, in the body frame of the user's axes, one row for each body."""

    def __init__(self, stepper: BatchStepper, function: Callable[..., Any], frame: str) -> None:
        self.stepper, self.function, self.frame = stepper, function, frame
        self.velocity = takes_vectors(function)
        if self.velocity and not stepper.method.takes("velocity"):
            able = listed(fitting("velocity", lambda m: m.asks == Torque() and not m.implicit))
            raise InputError(
                f"{stepper.method.name} takes torques torque(t, q), and the function has three arguments; methods that "
                f"take torque(t, q, {stepper.vector}): {able}"
            )
        self.number = len(stepper.flags)

    def __call__(self, t: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the torques at a time and at states in the layout of the stepper."""
        form = self.stepper.form
        value = self.function(t, q, v) if self.velocity else self.function(t, q)
        if value is None:
            raise InputError("the torque function must return an array of torques; it returned None")
        found = arrays.vectors("the result of the torque function", value, form.layout, self.number, None)
        torque = by_rows(found, form.layout).astype(float)
        if self.frame == "body":
            return torque
        return rows(unrotate(scalar_first(by_rows(q, form.layout), form.scalar_last), components(torque)))


def parted(value: Any) -> tuple[Any, Any, Any]:
    """Return the forces, torques and energy (None if there is none) that a force function returned."""
    expected = "the force function must return (force, torque) or (force, torque, energy)"
    if not isinstance(value, tuple):
        raise InputError(f"{expected}; it returned {type(value).__name__}")
    if len(value) not in (2, 3):
        raise InputError(f"{expected}; it returned {len(value)} values")
    return value[0], value[1], _one_number(value[2]) if len(value) == 3 else None


def _one_number(energy: Any) -> Any:
    """Check an energy; an array is copied, on its device, because the function may fill it again."""
    expected, shape = "the energy of the force function must be one number, the sum over all bodies", np.shape(energy)
    if shape:
        raise InputError(f"{expected}; it has the shape {tuple(shape)}", "energy")
    if isinstance(energy, numbers.Real) or arrays.is_functional(energy):
        return energy
    if not hasattr(energy, "dtype"):
        raise InputError(f"{expected}; it is of the type {type(energy).__name__}", "energy")
    return duplicate(energy)


def takes_vectors(function: Callable[..., Any]) -> bool:
    """Return whether a torque function has a third argument that must be given: the momenta or angular velocities."""
    try:
        inspect.signature(function).bind(0.0, 0.0)
    except TypeError:
        return True
    except ValueError:  # a function written in C
        return False
    return False


def by_rows(array: np.ndarray, layout: str) -> np.ndarray:
    """An array with one row for each body."""
    return array if layout == "rows" else array.T


def scalar_first(q: np.ndarray, scalar_last: bool) -> Any:
    """Components of quaternions (N, 4), scalar first."""
    parts = components(q.astype(float))
    return (parts[3], *parts[:3]) if scalar_last else parts


def asked_steps(
    stepper: BatchStepper, q: np.ndarray, v: np.ndarray, function: Callable[..., Any], frame: str, h: Any, n: int,
    t: float, couple: Couple = uncoupled, slow: Callable[..., Any] | None = None,
) -> int:  # fmt: skip
    """Make steps with torques from a function; return the number of bodies that failed, whose states are kept.

    ``couple(h/2, v)`` is called before and after every step of a kick-drift scheme. With multiple time steps, `slow` is
    the function of the slow torques.
    """
    check_alone(stepper)
    check_askable(stepper.method)
    method, torque = stepper.method.unprocessed or stepper.method, Asked(stepper, function, frame)
    asked = {KICK: torque} | ({} if slow is None else {SLOW: Asked(stepper, slow, frame)})
    new = q.astype(float), v.astype(float)  # doubles inside, and nothing is written if the function raises an error
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if is_written_out(method):
            _kicks_and_drifts(stepper, method, *new, asked, h, n, t, couple)
        else:
            stepper.remember(h)
            _stages(stepper, method, *new, torque, own_steps(h, len(stepper.flags)), n, t)
    return write_good(stepper, (q, v), new)


def write_good(stepper: BatchStepper, given: tuple[np.ndarray, ...], new: tuple[np.ndarray, ...]) -> int:
    """Write the new states of all bodies that did not fail; return the number of those that did."""
    layout = stepper.form.layout
    for array in new:
        stepper.flags |= ~np.isfinite(by_rows(array, layout)).all(axis=1)
    good = ~stepper.flags
    for array, values in zip(given, new, strict=True):
        by_rows(array, layout)[good] = by_rows(values, layout)[good]
    return len(good) - int(good.sum())


class Leg(NamedTuple):
    """A part of a scheme: one kick, or neighbouring drifts and steps of friction and noise.

    Attributes
    ----------
    parts : as in `Method.sequence`
    is_kick : whether it is a kick
    fraction : fraction of the step that the kick takes, or by which time advances
    drawn : number of steps of friction and noise before it
    force : name of the force whose kick it is
    """

    parts: tuple[Part, ...]
    is_kick: bool
    fraction: float
    drawn: int
    force: str = KICK


def legs(method: Method, apart: bool = False) -> list[Leg]:
    """The kicks of a scheme and what is between them, in the order in which they act.

    With `apart`, drifts and steps of friction and noise are legs of their own: attitudes are known between them.
    """
    found, drawn = [], 0
    for key, group in itertools.groupby(method.sequence, lambda part: part.flow if apart else part.flow == KICK):
        parts, is_kick = tuple(group), key in (KICK, True)
        fraction = sum(float(converted(part.time, floats.number)) for part in parts if part.flow != NOISE)
        found.append(Leg(parts, is_kick, fraction, drawn))
        drawn += sum(part.flow == NOISE for part in parts)
    return found


def part_between_kicks(flow: Method, leg: Leg, h: Any) -> tuple[Method, Any]:
    """Return the method that makes a part of a step h between two kicks, and its step."""
    if any(part.flow == NOISE for part in leg.parts):
        return without_kicks(flow, leg.parts, leg.drawn), h
    return flow, leg.fraction * h


class Drifts:
    """The parts of a scheme between its kicks: compiled steps of its free flow, and of friction and noise."""

    def __init__(
        self, stepper: BatchStepper, flow: Method | None, scheme: list[Leg], q: np.ndarray, v: np.ndarray, h: Any
    ) -> None:
        assert flow is not None
        self.made: dict[Leg, tuple[BatchStepper, functools.partial[int]]] = {}
        for leg in scheme:
            if leg.is_kick or leg in self.made:
                continue
            method, step = part_between_kicks(flow, leg, h)
            inner = stepper.inner(method)
            self.made[leg] = inner, inner.bound(q, v, h=step)

    def advance(self, leg: Leg, k: int) -> None:
        """Make a part of step k of a call."""
        inner, advance = self.made[leg]
        if inner.count is not None:
            inner.count.begin(k)
        advance(0.0)

    def failed(self) -> Any:
        """Return which bodies failed so far."""
        found: Any = False
        for inner, _ in self.made.values():
            found = found | inner.flags
            inner.flags[:] = False
        return found


def is_written_out(method: Method) -> bool:
    """Return whether a method is a kick-drift scheme whose kicks need the torque alone."""
    return bool(method.sequence) and method.asks.find(Torque) is not None


def check_alone(stepper: BatchStepper) -> None:
    """Refuse a field besides torques from a function, unless it is a heat bath."""
    field = stepper.bodies.field
    if stepper.method.thermostat is not None:
        raise InputError(
            f"{stepper.method.name} takes torques as arrays; for torques from a function use "
            "ph.thermostats.nose_hoover, one chain for all bodies"
        )
    if field is not None and not isinstance(field, BathField):
        raise InputError("a stepper with a field takes torques as arrays; add the field's torque to your function's")


def check_askable(method: Method) -> None:
    """Refuse a method that cannot take torques from a function."""
    alone = method.unprocessed or method
    single = all(isinstance(query, Torque | HeatBath) for query in alone.asks.parts)
    if method.takes("attitude") and (is_written_out(alone) or (single and not alone.implicit)):
        return
    if method.noise is not None:
        raise InputError(
            f"{method.name} cannot ask a function for torques; methods with noise that can: Langevin dynamics, such as "
            f"{NOISY}, and bussi() over explicit schemes"
        )
    able = fitting("attitude", lambda m: m.asks == Torque() and not m.memory and (is_written_out(m) or not m.implicit))
    raise InputError(
        f"{method.name} cannot ask a function for torques; methods that can: {listed(able)}; and every other "
        "kick-drift scheme over a free flow"
    )


def own_steps(h: Any, number: int) -> Any:
    """The step, or those of the bodies without their padding."""
    return h if type(h) is float else h[:number]


def _kicks_and_drifts(
    stepper: BatchStepper, method: Method, q: np.ndarray, v: np.ndarray, asked: dict[str, Asked], h: Any, n: int,
    t: float, couple: Couple,
) -> None:  # fmt: skip
    """Make the kicks and drifts of a scheme; neighbouring kicks share one torque of a function."""
    steps = own_steps(h, len(stepper.flags))
    scheme = legs(method) if stepper.respa is None else stepper.respa.legs
    drifts = Drifts(stepper, method.drift, scheme, q, v, h)

    def ask(force: str, k: int, clock: float, first: bool) -> np.ndarray:
        return asked[force](t + k * steps + clock * steps, q, v)

    def kicked(fraction: float, torque: np.ndarray) -> None:
        kick(stepper, v, fraction * steps, torque)

    in_turn(scheme, n, lambda: couple(h / 2, v), ask, kicked, drifts.advance)
    stepper.flags |= drifts.failed()


def in_turn(
    scheme: Sequence[Leg], n: int, couple: Callable[[], None], ask: Callable[[str, int, float, bool], Any],
    kicked: Callable[[float, Any], None], drifted: Callable[[Leg, int], None],
) -> None:  # fmt: skip
    """Make n steps of a scheme; neighbouring kicks by the same force share one answer.

    couple : called before and after every step
    ask : (force, k, clock, first) -> the answer at the time k + clock in steps; `first` if no other answer is in use
    kicked : (fraction, answer) -> None, a kick over this fraction of the step
    drifted : (leg, k) -> None, what is between two kicks of step k
    """
    found: dict[str, Any] = {}
    for k in range(n):
        clock = 0.0
        couple()
        for leg in scheme:
            if leg.is_kick:
                if leg.force not in found:
                    found[leg.force] = ask(leg.force, k, clock, not found)
                kicked(leg.fraction, found[leg.force])
            else:
                drifted(leg, k)
                found, clock = {} if leg.fraction else found, clock + leg.fraction
        couple()


def kick(stepper: BatchStepper, v: np.ndarray, h: Any, torque: np.ndarray) -> None:
    """Apply a kick: Pi += h T, or omega += h I^-1 T."""
    change = stepper.bodies.omega_of(torque) if stepper.form.omega else torque
    target = by_rows(v, stepper.form.layout)
    target += (change * (h if type(h) is float else h[:, None])).astype(v.dtype)


def _stages(
    stepper: BatchStepper, method: Method, q: np.ndarray, v: np.ndarray, torque: Asked, h: Any, n: int, t: float
) -> None:
    """Make steps of an explicit method on arrays of components, in principal axes; with noise, from its memories."""
    bodies, form = stepper.bodies, stepper.form
    own = None if bodies.own is None else components(bodies.own)
    attitude = unit(scalar_first(by_rows(q, form.layout), form.scalar_last))
    vector = by_rows(v, form.layout).astype(float)
    m = bodies.to_principal(components(bodies.momentum_of(vector) if form.omega else vector))
    y: Any = (attitude if own is None else mul(attitude, own)), m
    system = components(bodies.moments), components(bodies.inverse_moments), ()
    step = whole(method)(floats.number)
    if stepper.count is not None:
        y, step = (*y, stepper.count.memory(len(stepper.flags))), method.build(floats.number)
    seen_q, seen_v = np.empty_like(q, dtype=float), np.empty_like(v, dtype=float)

    def show(q: Any, m: Any, to_q: np.ndarray, to_v: np.ndarray) -> None:
        """Write a state into arrays in the user's form."""
        a = q if own is None else mul(q, conj(own))
        by_rows(to_q, form.layout)[:] = rows((*a[1:], a[0]) if form.scalar_last else a)
        momentum = rows(bodies.from_principal(m))
        by_rows(to_v, form.layout)[:] = bodies.omega_of(momentum) if form.omega else momentum

    def asked(t: Any, q: Any, m: Any, system: Any) -> Any:
        show(q, m, seen_q, seen_v)
        return bodies.to_principal(components(torque(t, seen_q, seen_v)))

    for k in range(n):
        new, residual = step(h, t + k * h, y, system, asked)
        stepper.flags |= ~is_valid(new, residual)
        y = renormalise(new)
    show(y[0], y[1], q, v)
