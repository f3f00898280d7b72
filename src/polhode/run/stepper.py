"""Single steps for use in another program's loop."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, ResultWarning, StepError
from ..kernels.loops import COLUMNS, NO_STATE, is_valid, renormalise
from ..kernels.so3 import conj, mul, norm2, rotate, unit, unrotate
from ..methods import Method, methods
from ..methods.combinators.compose import whole
from ..methods.queries import Torque
from ..methods.ranking import fitting, listed
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..numbers.primitives import finite
from ..physics.axes import axes
from ..physics.body import Body
from ..physics.fields import Field, FieldTemplate
from ..physics.fields import torque as field_torque
from ..physics.fields.decorators import check_frame
from ..physics.fields.of_body import inertia_parameters
from ..physics.fields.sides import has_jumps
from ..physics.fields.states import without_states
from ..physics.fields.switches import switches_of
from ..physics.fields.template import FRAMES, unbound
from ..physics.fields.varying_inertia import VaryingField
from ..physics.problem import ROTATION_TOLERANCE, Problem, _attitude, _vector, check_axial, finite_number
from ..physics.validate import check_unit_of_time
from .cut_steps import can_cut, cut_at_edges, warn_of_edges
from .failures import MOST_COMPARED, hardest_to_follow, lost_motion, without_derivatives
from .integrator import check_fit, torque_kernel
from .located_steps import LocatedSteps, can_locate, crossing
from .system import System

NORMALISE = 1e-12
"""Deviation of |q|^2 from 1 above which q is normalised: larger than the round-off of our own steps."""

FREE = "free"
"""Key of the step without torque; the other keys are the frames in which a torque can be held."""

FINE, UNFIT, FAILED = 0, 1, 2
"""Outcome of a step: success, not started because the input is not a valid state, or no solution."""


class State(NamedTuple):
    """Attitude (unit quaternion, scalar first, body to space), body momentum, time.

    Examples
    --------
    >>> ph.State((1.0, 0.0, 0.0, 0.0), (0.1, 0.2, 3.0)).t
    0.0
    """

    quaternion: tuple[float, float, float, float]
    momentum: tuple[float, float, float]
    t: float = 0.0


# --- kernels ----------------------------------------------------------------------------------------


def _held_body(has_principal_rotation: bool) -> Callable[..., Any]:
    """Kernel: a torque held constant in the body frame over the step."""
    back = axes(has_principal_rotation, 3).back

    @kernel
    def held(t: Any, q: Any, m: Any, system: Any) -> Any:
        p = system[2]
        return back((p[0], p[1], p[2]), system)

    return held


@kernel
def _held_space(t: Any, q: Any, m: Any, system: Any) -> Any:
    """Return a torque held constant in the space frame over the step."""
    p = system[2]
    return unrotate(q, (p[0], p[1], p[2]))


@kernel
def _fit(q: Any, m: Any, force: Any) -> Any:
    """Return whether these are a unit quaternion and finite vectors."""
    sound = finite(m[0] + m[1] + m[2] + force[0] + force[1] + force[2])
    return sound & (abs(norm2(q) - 1) <= 2 * ROTATION_TOLERANCE)


def _one_step(step: Callable[..., Any], torque: Callable[..., Any], has_principal_rotation: bool) -> Callable[..., Any]:
    """One step in the user's axes: ``one(h, t, q, m, force, parameters, inertia, inverse, principal_to_body)``."""

    def one(
        h: Any, t: Any, q: Any, m: Any, force: Any, parameters: Any, inertia: Any, inverse: Any, principal_to_body: Any
    ) -> Any:
        if not _fit(q, m, force):
            return q, m, h, UNFIT
        if abs(norm2(q) - 1) > NORMALISE:
            q = unit(q)
        if has_principal_rotation:
            q, m = mul(q, principal_to_body), unrotate(principal_to_body, m)
        new, residual = step(h, t, (q, m), (inertia, inverse, parameters), torque)
        if not is_valid(new, residual):
            return q, m, residual, FAILED
        q, m = renormalise(new)
        if has_principal_rotation:
            q, m = mul(q, conj(principal_to_body)), rotate(principal_to_body, m)
        return q, m, residual, FINE

    return one


def _three_numbers(x: Any, y: Any, z: Any) -> Any:
    return (x, y, z)


_HELD = {frame: field_torque(_three_numbers, frame=frame) for frame in FRAMES}
"""A held torque as a field, for methods that need more than its value."""


# --- the stepper ------------------------------------------------------------------------------------


def _compiled(method: Method, torque: Callable[..., Any], kind: str, has_principal_rotation: bool) -> Any:
    """Return the compiled step with a torque of some kind, shared by all bodies."""
    from ..compile.lazily import program

    def one() -> Callable[..., Any]:
        return _one_step(whole(method)(floats.number), torque, has_principal_rotation)

    return program(one, "step", method, kind, has_principal_rotation).run


def _in_field(problem: Problem, method: Method) -> Any:
    """Return the step in the field of a problem, compiled unless its torque is called as plain Python."""
    system, rotated = System(problem, method), problem.body.has_principal_rotation
    return system.built(lambda: _one_step(system.step_alone(), system.torque(), rotated), "step")[0]


WINDOW = 1024
"""Steps ahead for which the jumps of a field in time are found at once."""


@dataclasses.dataclass
class _Bound:
    """A field with its compiled step and parameters, for the times from `first` to `last`."""

    field: Field
    problem: Problem | None
    """None if the field was taken without checks, because another one with the same formula had passed them."""
    advance: Any
    parameters: tuple[Any, ...]
    first: float
    last: float
    checked: tuple[str, ...] | None = None
    """Parameters on which the checks depend; None if they depend on all of them."""

    def follows(self, field: Field) -> bool:
        """Return whether a field differs in parameters only on which neither the compiled step nor a check depends."""
        if self.checked is None or field.trace is not self.field.trace:
            return False
        return all(field.values[name] == self.field.values[name] for name in self.checked)


def _located_step(problem: Problem, method: Method, dt: float) -> Callable[..., Any]:
    """One step as `_one_step`, which ends at jumps of the field in the state, and in time from the start on."""
    steps = LocatedSteps.of_run(problem, method, dt, WINDOW)
    run, units, rotated = steps.run, steps.units, problem.body.has_principal_rotation

    def one(
        h: Any, t: Any, q: Any, m: Any, force: Any, parameters: Any, inertia: Any, inverse: Any, principal_to_body: Any
    ) -> Any:
        if not _fit(q, m, force):
            return q, m, h, UNFIT
        q = unit(q) if abs(norm2(q) - 1) > NORMALISE else q
        if rotated:
            q, m = mul(q, principal_to_body), unrotate(principal_to_body, m)
        start, rows, slid = units.rows(np.array([[*q, *m]]))[0].tolist(), np.empty((1, COLUMNS)), run.slid
        _, _, _, residual, fine = run.advance(
            float(units.times(h)), float(units.times(t)), 0, 1, 1, 1, (tuple(start[:4]), tuple(start[4:])),
            run.held.system, rows,
        )  # fmt: skip
        if not fine:
            return q, m, residual, FAILED
        if run.slid > slid == 0:
            run.warn_of_sliding(1)
        end = units.rows(rows, back=True)[0].tolist()
        q, m = tuple(end[:4]), tuple(end[4:])
        if rotated:
            q, m = mul(q, conj(principal_to_body)), rotate(principal_to_body, m)
        return q, m, residual, FINE

    return one


class Stepper:
    """Advances states of one body by one step of one method; created by `ph.stepper`."""

    def __init__(self, body: Body, method: Method, dt: float) -> None:
        self.body, self.method, self.dt = body, method, dt
        free = Problem(body, momentum=(0.0, 0.0, 0.0))
        check_fit(method, free)
        _, (self._inertia, self._inverse, self._own) = free.kernel_data(floats.number)
        self._linear = body.linear_axis is not None
        self._held: dict[str, Any] = {}
        self._last: _Bound | None = None
        self._made, self._next_look = 0, 1

    def __reduce__(self) -> Any:
        """Pickle the constructor arguments; compiled steps are looked up again when needed."""
        return Stepper, (self.body, self.method, self.dt)

    def step(self, state: State | tuple[Any, ...], torque: Any = None, frame: str = "body") -> State:
        """Return the state one step later.

        Parameters
        ----------
        state : (quaternion, momentum) or (quaternion, momentum, t), such as the result of the last call
        torque : three numbers, held constant over the step in `frame`, or a bound field; without a torque the body is
            free, and any method can be used
        frame : "body" or "space", the frame of the three numbers
        """
        q, m, t = _unpacked(state)
        if torque is None:
            force, advance, parameters = None, self._held.get(FREE) or self._free(), self._own
        elif isinstance(torque, Field):
            bound = self._bound(torque, q, m, t)
            force, advance, parameters = None, bound.advance, bound.parameters
        elif isinstance(torque, FieldTemplate):
            raise unbound(torque)
        else:
            force = _numbers("torque", torque, 3)
            advance = (isinstance(frame, str) and self._held.get(frame)) or self._hold(frame)
            parameters = (*force, *self._own)
        if self._linear:
            self._check_linear(q, m, force, frame)
        try:
            q1, m1, residual, how = advance(
                self.dt, t, q, m, force or m, parameters, self._inertia, self._inverse, self._own or q
            )  # fmt: skip
        except (ArithmeticError, InputError) as problem:  # raised by a field in plain Python
            raise StepError(f"{self._head(t)}: {problem}") from problem
        if how != FINE:
            raise self._error(q, m, t, torque, residual, how)
        self._made += 1
        if self._made == self._next_look:
            self._next_look *= 2
            self._look(q, m)
        return State(q1, m1, t + self.dt)

    def _look(self, q: Any, m: Any) -> None:
        """Warn, once, if steps do not follow the body; looked at in steps 1, 2, 4, 8, ..., which costs nothing."""
        if hardest_to_follow(np.array([math.hypot(*m)]), self.body.moments[None], self.dt) < 0:
            return
        state = Problem(self.body, attitude=unit(q), momentum=m)
        if why := lost_motion(state, self.method, self.dt, MOST_COMPARED, self.dt, instead=""):
            warnings.warn(why, ResultWarning, stacklevel=3)
            self._next_look = 0

    def _free(self) -> Any:
        """Return the compiled step without torque."""
        self._held[FREE] = _in_field(Problem(self.body, momentum=(0.0, 0.0, 0.0)), self.method)
        return self._held[FREE]

    def _hold(self, frame: str) -> Any:
        """Return the compiled step for a torque held constant in a frame."""
        check_frame(frame)
        if not self.method.takes("attitude"):
            able = listed(fitting("attitude"))
            raise InputError(
                f"{self.method.name} does not take a torque that is constant over a step; methods that do: {able}. "
                "Without a torque, write step(state)"
            )
        torque = _held_body(bool(self._own)) if frame == "body" else _held_space
        if self.method.asks != Torque():
            held = Problem(self.body, _HELD[frame](0, 0, 0), momentum=(0.0, 0.0, 0.0))
            torque = torque_kernel(held, floats.number, self.method)
        self._held[frame] = _compiled(self.method, torque, frame, bool(self._own))
        return self._held[frame]

    def _bound(self, field: Field, q: Any, m: Any, t: float) -> _Bound:
        """Return the step for a field; check the field if it is new."""
        last = self._last
        new, end = last is None or last.field is not field, t + self.dt
        if last is not None and new and last.follows(field):
            parameters = (*field.parameters, *self._own)
            self._last = last = _Bound(field, None, last.advance, parameters, last.first, last.last, last.checked)
        elif last is None or new or min(t, end) < last.first or max(t, end) > last.last:
            self._last = last = self._bind(field, q, m, t, new)
        return last

    def _bind(self, field: Field, q: Any, m: Any, t: float, new: bool) -> _Bound:
        """Return the step for a field, with its jumps in time from t on; warn if steps cross jumps of a new one."""
        if field.states:
            raise without_states(field)
        problem, end = Problem(self.body, field, attitude=q, momentum=m, t0=t), t + WINDOW * self.dt
        check_fit(self.method, problem)
        times = (min(t, end), max(t, end)) if switches_of(field) else (-math.inf, math.inf)
        if can_locate(problem, self.method):
            located = _located_step(problem, self.method, self.dt)
            return _Bound(field, problem, located, (*field.parameters, *self._own), *times)
        inner = cut_at_edges(problem, self.method, end)
        if new and has_jumps(field):
            warnings.warn(crossing(problem, self.method), ResultWarning, stacklevel=5)
        if new and not can_cut(problem, self.method):
            warn_of_edges(problem, self.method, end)
        assert inner.field is not None
        advance, parameters = _in_field(inner, self.method), (*inner.field.parameters, *self._own)
        has_more_checks = self._linear or field.opaque or has_jumps(field) or isinstance(field, VaryingField)
        checked = None if switches_of(field) or has_more_checks else tuple(inertia_parameters(field))
        return _Bound(field, problem, advance, parameters, *times, checked)

    def _check_linear(self, q: Any, m: Any, force: Any, frame: str) -> None:
        """Refuse momentum or torque along the axis of a linear body."""
        check_axial(self.body, "momentum", np.array(m))
        if force is not None:
            check_axial(self.body, "torque", np.array(force if frame == "body" else unrotate(q, force)))

    def _head(self, t: float) -> str:
        return f"{self.method.name} failed in one step from t = {t:g} with dt = {self.dt:g}"

    def _error(self, q: Any, m: Any, t: float, torque: Any, residual: float, how: int) -> Exception:
        """Return the error that explains why there is no next state."""
        if how == UNFIT:
            try:
                _attitude(q)
                _vector("momentum", m)
                _vector("torque", (0.0, 0.0, 0.0) if torque is None or isinstance(torque, Field) else torque)
            except InputError as problem:
                return problem
            return InputError(f"the numbers are too large for doubles: momentum {m}, torque {torque}")
        head = self._head(t)
        if isinstance(torque, Field):
            self._last = bound = self._bind(torque, q, m, t, False)  # with all checks
            assert bound.problem is not None
            for moment in (t, t + self.dt):
                try:
                    bound.problem.check_field(moment, q, m, f"at t = {moment:g}")
                except InputError as problem:
                    return StepError(f"{head}: {problem}")
        why = f"its equation was not solved (relative residual {residual:.1e})"
        if not residual > 0:
            why = NO_STATE
            if isinstance(torque, Field):
                here = Problem(self.body, torque, attitude=q, momentum=m, t0=t)
                why += without_derivatives(here, self.method)
        return StepError(f"{head}: {why}; try a smaller dt")


def _unpacked(state: Any) -> tuple[Any, Any, float]:
    """Return quaternion, momentum and time as plain floats."""
    try:
        q, m, t = (*state, 0.0) if len(state) == 2 else state
    except (TypeError, ValueError):
        raise InputError(f"state must be (quaternion, momentum) or (quaternion, momentum, t); got {state!r}") from None
    if type(t) is not float or not math.isfinite(t):
        t = finite_number("t", t)
    return _numbers("quaternion", q, 4), _numbers("momentum", m, 3), t


def _numbers(name: str, value: Any, count: int) -> Any:
    """Convert the value to a tuple of `count` floats."""
    try:
        numbers = tuple(map(float, value))
    except Exception:  # the value may be any object
        numbers = ()
    if len(numbers) != count:
        raise InputError(f"{name} must be {'three' if count == 3 else 'four'} numbers; got {value!r}")
    return numbers


def stepper(body: Body, method: str | Method, dt: float) -> Stepper:
    """Return a stepper for your own loop: ``state = ph.stepper(body, "imidm", dt).step(state, torque)``.

    Warns
    -----
    ResultWarning : its steps do not follow a slender body, as in `ph.solve`, once; looked at in steps 1, 2, 4, 8, ...

    Examples
    --------
    >>> step = ph.stepper(ph.Body([1.0, 2.0, 3.0]), "fem", dt=0.01).step
    >>> state = ph.State((1.0, 0.0, 0.0, 0.0), (0.1, 0.2, 3.0))
    >>> for _ in range(10):
    ...     state = step(state, torque=(0.0, 0.1, 0.0))
    ...
    >>> round(state.t, 6)
    0.1
    """
    if not isinstance(body, Body):
        raise InputError(f"body must be a ph.Body; got {type(body).__name__}. Write ph.Body([I1, I2, I3])")
    dt = finite_number("dt", dt)
    if dt == 0:
        raise InputError("dt must not be zero; give the step size", "dt")
    chosen = one_step(method)
    check_unit_of_time("|dt|", abs(dt), abs(dt), chosen.asks.powers)
    return Stepper(body, chosen, dt)


def one_step(method: str | Method, counted: bool = False) -> Method:
    """Return a method whose steps need nothing but the state (with `counted`, also a number of steps, or a chain)."""
    chosen = methods[method]
    if chosen.compensated:
        raise InputError(
            f"{chosen.name} carries low parts of the state from step to step, which a stepper does not store; use "
            "ph.solve, or the method without compensated()"
        )
    if chosen.noise is not None and not counted:
        raise InputError(
            f"{chosen.name} has noise, counted by body and step, which a stepper of one body does not; use "
            "ph.batch_stepper"
        )
    if chosen.thermostat is not None and not counted:
        raise InputError(f"{chosen.name} has a chain, which a stepper of one body does not store; use ph.batch_stepper")
    if chosen.memory and chosen.noise is None and chosen.thermostat is None:
        raise InputError(
            f"{chosen.name} has memory from step to step, which a stepper does not store; use ph.solve, or a "
            "one-step method"
        )
    return chosen
