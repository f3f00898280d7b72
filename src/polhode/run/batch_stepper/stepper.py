"""A stepper of many bodies, over the arrays of another program."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from typing import Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...kernels.loops import NO_STATE
from ...methods import Method
from ...physics.bodies import NO_VALUES, Bodies
from ...physics.fields.decorators import check_frame
from ...physics.fields.heat_bath import counter
from ...physics.validate import ROTATION_TOLERANCE, check_unit_of_time, finite_number, flag, real_array, whole_number
from ..noise import check_forward, multiplies
from . import arrays
from .counting import Count
from .followed import not_followed
from .held import Kind, chain_of, compiled, memories
from .inertia import columns, replaced
from .kinetic import Kinetic
from .respa import Respa, check_slow
from .thermostats import Acting

MANY = 2048
"""Groups of bodies, times steps, from which on explicit steps are offered to several cores: those of ten thousand
bodies take 120 microseconds on one core, and 170 if they are offered to two."""

MANY_IMPLICIT = 256
"""The same for implicit steps, which take about ten times as long."""

LONG = 1 << 17
"""Groups of bodies, times steps, from which on other threads make them: milliseconds, or a second if implicit."""

NAMED = 5
"""Largest number of bodies named in a message."""

NOBODY = np.empty(0, dtype=np.int64)
NO_TORQUE = np.empty((1, 3))
NEVER = np.zeros(1, dtype=bool)
"""A flag that stops nothing."""

UNKNOWN: Any = object()
"""In place of the arrays of the last call, if it was not one that can be repeated."""


class BatchStepper:
    """Advances many bodies by steps of one method, in the user's arrays; created by `ph.batch_stepper`.

    Attributes
    ----------
    method, dt : the method, and the step that is used where a call gives none
    steps_made : with noise, the number of steps made so far
    chains : with Nosé-Hoover chains, positions and velocities of the links of every body, (N, 2, links)
    thermostat : the thermostat in its present state, or None
    respa : multiple time steps, or None
    parts : number of steps of the rotation in one step: those of multiple time steps
    """

    def __init__(
        self, bodies: Bodies, method: Method, dt: Any, form: Any, steps_made: int = 0,
        thermostat: Acting | None = None, respa: Respa | None = None,
    ) -> None:  # fmt: skip
        self.method, self.form, self.dt, self.thermostat, self.respa = method, form, dt, thermostat, respa
        self.count = None if method.noise is None else Count(method.memory, steps_made)
        self._failed: np.ndarray = NOBODY
        self.parts = 1 if respa is None else respa.n
        self._calls, self._next_look = 0, 1.0
        self._used: Any = None  # the steps of the last call
        self._programs: dict[Any, Any] = {}
        self._q = self._v = self._torque = self._frame = UNKNOWN
        self._run: Any = None
        self._force: np.ndarray = NO_TORQUE
        self._rest: list[Any] = []
        self._q_type, self._v_type, self._force_type, self._force_ndim = UNKNOWN, UNKNOWN, UNKNOWN, 2
        self.flags = np.empty(0, dtype=bool)
        self.groups = 0
        self.constants: tuple[Any, ...] = ()
        self.vector = "omega" if form.omega else "pi"
        self._take(bodies)
        self._h = None if dt is None else _checked_steps(dt, self.method)

    def _take(self, bodies: Bodies) -> None:
        """Bring the bodies into the form of the loop."""
        self.bodies = bodies
        own = np.empty((1, 0)) if bodies.own is None else bodies.own
        tables = () if bodies.field is None else tuple(column[None, :] for column in bodies.field.columns.values())
        inertia = np.concatenate([bodies.moments, bodies.inverse_moments], axis=1)
        self.constants = columns(inertia), columns(bodies.values), columns(own), tables
        self._write_out(len(self.flags))
        self._linear = bool((bodies.moments == 0).any())
        self._frame = UNKNOWN
        self._inner: dict[Method, BatchStepper] = {}
        self._gpu: Any = None
        self._kinetic = Kinetic(bodies, self.form)

    @property
    def failed(self) -> np.ndarray:
        """The bodies whose last step failed; on a GPU, this waits for it."""
        if self._gpu is not None:
            self._failed = np.union1d(self._failed, self._gpu.collected())
        return self._failed

    def __reduce__(self) -> Any:
        """Pickle the constructor arguments; compiled steps are looked up again when needed."""
        made = 0 if self.count is None else self.count.made
        bodies = self.bodies if self.method.thermostat is None else self._with_chains(self.chains)
        return BatchStepper, (bodies, self.method, self.dt, self.form, made, self.thermostat, self.respa)

    @property
    def chains(self) -> np.ndarray:
        """Positions and velocities of the links of every body, (N, 2, links); set them to continue a run."""
        place, links = self._place_of_chains()
        values = self.constants[1] if self._gpu is None else self._gpu.values.copy_to_host()
        number = len(self.flags) or self.bodies.number
        return np.array(values[place : place + 2 * links, :number].T.reshape(-1, 2, links))

    @chains.setter
    def chains(self, value: Any) -> None:
        _, links = self._place_of_chains()
        number = len(self.flags) or self.bodies.number
        expected = f"chains must be finite numbers of shape ({number}, 2, {links})"
        given = real_array(value, expected)
        if given.shape != (number, 2, links) or not np.isfinite(given).all():
            raise InputError(f"{expected}; got {value!r}", "chains")
        self._take(self._with_chains(given))

    def _with_chains(self, chains: np.ndarray) -> Bodies:
        """Return the bodies with these chains at the start."""
        place, links = self._place_of_chains()
        values = np.array(np.broadcast_to(self.bodies.values, (len(chains), self.bodies.values.shape[1])))
        values[:, place : place + 2 * links] = chains.reshape(len(chains), -1)
        return dataclasses.replace(self.bodies, values=values)

    def _place_of_chains(self) -> tuple[int, int]:
        """Return the place of the chains among the parameters, and the number of links."""
        if self.method.thermostat is None:
            raise InputError(f"{self.method.name} has no chains; nose_hoover(...) has", "chains")
        return chain_of(self.bodies, self.method).values, self.method.thermostat.links

    @property
    def steps_made(self) -> int:
        """Number of steps made so far, which numbers the random numbers; set it to continue a run with its noise."""
        return self._counted().made

    @steps_made.setter
    def steps_made(self, steps: int) -> None:
        self._counted().made = int(counter("steps_made", steps))

    def _counted(self) -> Count:
        if self.count is None:
            raise InputError(
                f"{self.method.name} has no noise, so its steps are not counted; leave out `steps_made`", "steps_made"
            )
        return self.count

    def replace(self, indices: Any, bodies: Any) -> None:
        """Replace some bodies by others.

        Parameters
        ----------
        indices : the numbers of the bodies, or a mask
        bodies : as for `ph.batch_stepper`, one for each index or one for all of them
        """
        if self.bodies.number > 1 and len(self.bodies.moments) == 1:
            self.bodies = self._written_out(self.bodies.number)
        if self.method.thermostat is not None:
            self.bodies = self._with_chains(self.chains)
        new, _ = replaced(self.bodies, indices, bodies)
        known = (self.bodies.own is None) == (new.own is None)
        self._take(new)
        if not known:
            self._programs = {}
        for kind in list(self._programs):
            self._programs[kind] = compiled(new, self.method, self.form, Kind(*kind))

    def _written_out(self, number: int) -> Bodies:
        one, own = self.bodies, self.bodies.own
        moments = np.repeat(one.moments, number, axis=0)
        return Bodies(
            moments=moments, own=None if own is None else np.repeat(own, number, axis=0), field=one.field,
            values=one.values, number=number,
        )  # fmt: skip

    # --- energies ----------------------------------------------------------------------------------

    def kinetic_energy(self, momentum: Any) -> Any:
        """Return the kinetic energy of each body, (N,), in the library, device and precision of the array.

        momentum : angular momenta in the body frame (or angular velocities), in the layout of this stepper
        """
        return self._kinetic.rotation(momentum)

    def temperature(self, momentum: Any, *, k: float = 1.0) -> Any:
        """Return the temperature 2 K/(f k) of the rotation of all bodies: f is 3 for each, or 2 for a linear body.

        momentum : as for `kinetic_energy`
        k : Boltzmann's constant in your units; with 1 the result is kT, an energy
        """
        return self._kinetic.temperature(momentum, k)

    # --- steps -------------------------------------------------------------------------------------

    def step(
        self, q: Any, pi: Any, torque: Any = None, *, slow: Any = None, frame: str = "body", dt: Any = None, n: int = 1,
        t: float = 0.0, in_place: bool = True,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Advance all bodies by one step, or by `n` steps.

        Parameters
        ----------
        q, pi : attitudes and momenta (or angular velocities), in the layout of this stepper; changed in place. JAX
            arrays cannot be changed: use the result
        torque : the torque of each body, held constant over the step in `frame`, in the layout of `pi`; or, with a
            further first dimension of length `n`, over each of the sub-steps. Or a function that returns such an array,
            ``torque(t, q)`` or, for methods that take torques which depend on omega, ``torque(t, q, pi)``. It is
            asked at the times and states where the method needs it, so the order of the method is kept
        slow : with `ph.respa`, the slow torques: a function or an array, like `torque`, which is then the fast ones
        frame : "body" or "space", the frame of the torque
        dt : step, one for all bodies or one for each; by default that of the stepper
        n : number of steps
        t : time at the start, for fields and functions that depend on it
        in_place : False leaves the arrays as they are and returns new ones

        Returns
        -------
        q, pi : the arrays with the new states

        Warns
        -----
        ResultWarning : some bodies failed, for example by a torque that is not finite. `failed` names them. Their
            states are as before the call; the others are not affected
        """
        last = self._force
        if (
            q is self._q and pi is self._v and frame is self._frame and dt is None and n == 1 and in_place is True
            and type(t) is float and slow is None and q.flags.writeable and pi.flags.writeable
            and q.dtype is self._q_type and pi.dtype is self._v_type and last.dtype is self._force_type
            and q.ndim == 2 == pi.ndim and last.ndim == self._force_ndim
        ):  # fmt: skip
            # the arrays of the last call, or another array of torques like the last one
            if torque is self._torque:
                self.settle(self._run(q, pi, last, *self._rest, t), torque, q, pi)
                return q, pi
            if (
                type(torque) is np.ndarray and torque.shape == last.shape and torque.dtype is last.dtype
                and torque.flags.c_contiguous and self._torque is not None
            ):  # fmt: skip
                self.settle(self._run(q, pi, torque, *self._rest, t), torque, q, pi)
                return q, pi
        return self._step_anew(q, pi, torque, slow, frame, dt, n, t, in_place)

    def _step_anew(
        self, given_q: Any, given_v: Any, torque: Any, slow: Any, frame: Any, dt: Any, n: Any, t: Any, in_place: Any
    ) -> tuple[Any, Any]:
        """Check all arguments and make the steps."""
        check_slow(self.respa, torque, slow)
        if arrays.is_on_gpu(given_q):
            if self.method.thermostat is not None and self._q is not UNKNOWN:
                raise InputError("the chains of this stepper are in CPU memory; use another stepper for a GPU")
            return self._step_on_gpu(given_q, given_v, torque, slow, frame, dt, n, t, in_place)
        if self.method.thermostat is not None and self._gpu is not None:
            raise InputError("the chains of this stepper are on a GPU; use another stepper for arrays elsewhere")
        q, v = self._states(given_q, given_v, flag("in_place", in_place))
        h = self.steps(dt)
        n, t = whole_number("n", n), finite_number("t", t)
        if self.respa is not None:
            torque, slow = self._function("torque", torque), self._function("slow", slow)
        if self.thermostat is not None:
            from .rescaled import rescaled_steps

            self.settle(rescaled_steps(self, q, v, torque, check_frame(frame), h, n, t, slow), torque, q, v)
        elif torque is not None and arrays.is_function(torque):
            from .asked import asked_steps

            lost = asked_steps(self, q, v, torque, check_frame(frame), h, n, t, slow=slow)
            self.settle(self.counted(lost, n), torque, q, v)
        else:
            advance = self.bound(q, v, torque, frame, h=h, n=n)
            self._frame = UNKNOWN
            if q is given_q and dt is None and n == 1 and self._on_one_core(n) and not (self._linear or self.count):
                _, _, force, *rest = advance.args
                if torque is None or torque is force:  # not a copy, which would be old in the next call
                    self._run, self._rest, self._force = advance.func, rest, force
                    self._torque, self._frame = torque, frame
                    self._force_type, self._force_ndim = force.dtype, force.ndim
            self.settle(self.counted(advance(t), n), torque, q, v)
        return self._handed_back(q, v, given_q, given_v, in_place)

    def _function(self, name: str, torque: Any) -> Any:
        """Return torques as a function; an array is held over all steps in its frame."""
        if arrays.is_function(torque):
            return torque
        held = arrays.vectors(name, torque, self.form.layout, len(self.flags), None)
        return lambda t, q: held

    def _step_on_gpu(
        self, q: Any, v: Any, torque: Any, slow: Any, frame: Any, dt: Any, n: Any, t: Any, in_place: Any
    ) -> tuple[Any, Any]:
        """Make the steps in arrays on a GPU."""
        n, t, in_place = whole_number("n", n), finite_number("t", t), flag("in_place", in_place)
        found: tuple[Any, Any] = self.on_gpu().step(q, v, torque, slow, frame, lambda: self.steps(dt), n, t, in_place)
        return found

    def on_gpu(self) -> Any:
        """Return the steps of these bodies in arrays on a GPU."""
        if self._gpu is None:
            from .gpu import GpuSteps

            self._gpu = GpuSteps(self)
        return self._gpu

    def bound(
        self, q: Any, v: Any, torque: Any = None, frame: Any = "body", *, h: Any, n: int = 1
    ) -> functools.partial[int]:
        """Return the function that makes the steps from a time and returns the number of bodies that failed."""
        self.remember(h)
        number, force = len(self.flags), NO_TORQUE
        if torque is not None:
            force = arrays.vectors("torque", torque, self.form.layout, number, n)
            arrays.check_apart(q=q, **{self.vector: v}, torque=force)
        if self._linear:
            rows = v if self.form.layout == "rows" else v.T
            self.bodies.check_axial(self.vector, rows.astype(float))
        run = self._program(None if torque is None else check_frame(frame), force.ndim == 3, type(h) is not float)
        bound = functools.partial(run, q, v, force, *self.constants, h, n, self.flags, NEVER)
        if self._on_one_core(n):
            return functools.partial(bound, 0, self.groups)  # one partial, with all arguments
        return functools.partial(self._on_cores if self.groups * n < LONG else self._interruptibly, bound)

    def _on_one_core(self, n: int) -> bool:
        """Return whether the steps are too few to be shared out."""
        return self.groups * n < (MANY_IMPLICIT if self.method.implicit else MANY)

    def remember(self, h: Any) -> None:
        """With noise, fill the memories of the bodies for steps h, and number the first step."""
        if self.count is not None:
            inertia, _, *rest = self.constants
            self.count.fill(h, lambda: memories(self.bodies, self.method, type(h) is not float), inertia, *rest)
            self.count.begin(0)

    def _program(self, *kind: Any) -> Any:
        """Return the compiled step for a frame, torques for each sub-step, and steps for each body."""
        run = self._programs.get(kind)
        if run is None:
            run = self._programs[kind] = compiled(self.bodies, self.method, self.form, Kind(*kind))
        return run

    def _on_cores(self, bound: Any, t: float) -> int:
        """Make the steps with as many threads as pay off."""
        from ...compile.threads import share_out

        found: list[int] = []
        share_out(lambda begin, end: found.append(bound(begin, end, t)), self.groups)
        return min(found) if min(found) < 0 else sum(found)

    def _interruptibly(self, bound: Any, t: float) -> int:
        """Make the steps in other threads; after Ctrl-C all bodies are as before."""
        from ...compile.threads import elsewhere

        *given, _ = bound.args
        states = given[0], given[1], self.constants[1]
        before = [x.copy() for x in states]
        try:
            found = elsewhere(lambda begin, end, stop: bound.func(*given, stop, begin, end, t), LONG, self.groups)
        except BaseException:
            for array, old in zip(states, before, strict=True):
                array[...] = old
            self.flags[:] = False
            raise
        return min(found) if min(found) < 0 else sum(found)

    # --- arguments ---------------------------------------------------------------------------------

    def _states(self, given_q: Any, given_v: Any, in_place: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the arrays to change: the given ones, or copies; arrays new to this stepper are checked."""
        q, v = given_q, given_v
        same = q is self._q and v is self._v and q.dtype is self._q_type and v.dtype is self._v_type
        if not (same and q.ndim == v.ndim == 2 and q.flags.writeable and v.flags.writeable):
            q, v = self.admitted(q, v, in_place)
        if not in_place:
            q, v = q.copy(), v.copy()
        if q is not self._q or v is not self._v:
            self._frame = UNKNOWN
        self._q_type, self._v_type = q.dtype, v.dtype
        self._q, self._v = (q, v) if type(given_q) is type(given_v) is np.ndarray else (UNKNOWN, UNKNOWN)
        return q, v

    def admitted(self, given_q: Any, given_v: Any, in_place: bool) -> tuple[np.ndarray, np.ndarray]:
        """Check state arrays and return them as NumPy arrays that can be written."""
        q, v = arrays.viewed("q", given_q), arrays.viewed(self.vector, given_v)
        functional = arrays.is_functional(given_q) or arrays.is_functional(given_v)
        written = in_place and not functional
        each = len(self.bodies.moments) > 1 or self.bodies.number > 1
        number = arrays.check_state(
            "q", q, 4, self.form.layout, self.bodies.number if each else None, written
        )  # fmt: skip
        arrays.check_state(self.vector, v, 3, self.form.layout, number, written)
        if q.dtype != v.dtype:
            raise InputError(
                f"q and {self.vector} must have the same dtype; got {q.dtype} and {v.dtype}, so convert one"
            )
        arrays.check_apart(q=q, **{self.vector: v})
        bad = _unit_check(self.form.layout)(q)
        if bad >= 0:
            one = (q[bad] if self.form.layout == "rows" else q[:, bad]).tolist()
            raise InputError(
                f"q must hold unit quaternions; that of body {bad} is {one}, of length {np.linalg.norm(one):.8g}, so "
                "divide by it", "q",
            )  # fmt: skip
        self.resize(number)
        return (q.copy(), v.copy()) if functional and in_place else (q, v)

    def resize(self, number: int) -> None:
        """Prepare for this number of bodies."""
        if number != len(self.flags):
            from ...compile.batch.layout import LANES, padded

            self.flags, self.groups = np.zeros(number, dtype=bool), padded(number) // LANES
            self._write_out(number)

    def _write_out(self, number: int) -> None:
        """Write out the parameters of this number of bodies, if each has its own random numbers or its own chain."""
        if self.method.thermostat is not None and number:
            inertia, _, *rest = self.constants
            values = np.broadcast_to(self.bodies.values, (number, self.bodies.values.shape[1]))
            self.constants = inertia, columns(values), *rest
        if self.count is not None and number:
            self.count.prepare(self.bodies, number)
            inertia, _, *rest = self.constants
            self.constants = inertia, self.count.values, *rest

    def counted(self, lost: int, n: int) -> int:
        """Count n steps; return the number of bodies that failed."""
        if self.count is not None and lost >= 0:
            self.count.made += n
        return lost

    def inner(self, method: Method) -> BatchStepper:
        """Return the stepper of the same bodies with another method, for the parts of a step between kicks."""
        found = self._inner.get(method)
        if found is None:
            bodies = self.bodies
            if method.noise is None:
                bodies = dataclasses.replace(bodies, field=None, values=NO_VALUES)
            found = self._inner[method] = BatchStepper(bodies, method, None, self.form)
        found.resize(len(self.flags))
        if found.count is not None:
            found.count.made = self.steps_made
        return found

    def steps(self, dt: Any) -> Any:
        """Return the step: a float, or one for each body, padded to whole groups."""
        h = self._used = self._h if dt is None else _checked_steps(dt, self.method)
        if h is None:
            raise InputError("give dt, here or to ph.batch_stepper", "dt")
        check_forward(self.method, float(np.min(h)))
        if type(h) is float:
            return h
        number = len(self.flags)
        if len(h) != number:
            raise InputError(f"dt must be one number, or one for each of the {number} bodies; got {len(h)}", "dt")
        return columns(h[:, None])[0]

    def _handed_back(self, q: Any, v: Any, given_q: Any, given_v: Any, in_place: Any) -> tuple[Any, Any]:
        if in_place is True and not arrays.is_functional(given_q):
            return given_q, given_v
        return arrays.returned(q, given_q), arrays.returned(v, given_v)

    # --- faults ------------------------------------------------------------------------------------

    def settle(self, lost: int, torque: Any, q: np.ndarray, v: np.ndarray) -> None:
        """Note which bodies failed in the last step; in calls 1, 2, 4, 8, ... look whether steps follow the bodies."""
        self._calls += 1
        if lost == 0:
            self._failed = NOBODY
            if self._calls >= self._next_look:
                self._look(q, v)
        elif lost < 0:
            q, v, self._q, self._v = self._q, self._v, UNKNOWN, UNKNOWN
            arrays.check_apart(q=q, **{self.vector: v}, torque=torque)
            raise InputError("the shape of an array was changed between two calls; pass arrays of the same bodies")
        else:
            self._report(lost, torque)

    def _look(self, q: np.ndarray, v: np.ndarray) -> None:
        """Warn, once, if steps do not follow the bodies."""
        self._next_look = 2 * self._calls
        if why := not_followed(self, q, v, self._used / self.parts):
            warnings.warn(why, ResultWarning, stacklevel=5)
            self._next_look = math.inf

    def _report(self, lost: int, torque: Any) -> None:
        """Keep the numbers of the bodies that failed, and warn."""
        self._failed = np.flatnonzero(self.flags)
        self.flags[:] = False
        first = int(self._failed[0])
        warnings.warn(
            f"{self._tally()}; body {first}: {self._reason(first, torque)}. Their states are as before the call, and "
            "`failed` has their numbers",
            ResultWarning,
            stacklevel=5,
        )

    def _tally(self) -> str:
        lost, number = len(self._failed), len(self.flags)
        some = ", ".join(map(str, self._failed[:NAMED].tolist())) + (", ..." if lost > NAMED else "")
        return f"{lost} of {number} bodies failed: {some}" if number > 1 else "the body failed"

    def note(self, failed: np.ndarray) -> None:
        """Warn of bodies that failed in an earlier call on a GPU."""
        self._failed = failed
        if len(failed):
            warnings.warn(
                f"{self._tally()}, in an earlier call: a torque or state is not finite, or the equations of the step "
                "were not solved. Their states are as before that call",
                ResultWarning,
                stacklevel=5,
            )

    def _reason(self, i: int, torque: Any) -> str:
        """Explain why body i failed."""
        by_rows = self.form.layout == "rows"
        if torque is not None and not arrays.is_function(torque):
            own = np.asarray(torque)[..., i, :] if by_rows else np.asarray(torque)[..., i]
            if not np.isfinite(own).all():
                return f"its torque is {own.tolist()}"
        if self._q is not UNKNOWN:
            q, v = (a[i] if by_rows else a[:, i] for a in (self._q, self._v))
            length = float(np.linalg.norm(q))
            if not abs(length - 1) <= ROTATION_TOLERANCE:
                return f"its quaternion is {q.tolist()}, of length {length:.8g}"
            if not np.isfinite(v).all():
                return f"its {self.vector} is {v.tolist()}"
            if multiplies(self.method) and not v.any():
                return f"its {self.vector} is zero, and no factor moves it"
        return f"the equations of the step were not solved, or {NO_STATE}; try a smaller dt"


def _checked_steps(dt: Any, method: Method) -> Any:
    """Return the step as a float, or the steps of the bodies as an array."""
    given = real_array(dt, "dt must be a number, or one for each body")
    if given.ndim > 1 or not given.size or not (np.isfinite(given) & (given != 0)).all():
        raise InputError(f"dt must be a number other than zero, or one for each body; got {dt!r}", "dt")
    check_unit_of_time("|dt|", float(np.abs(given).min()), float(np.abs(given).max()), method.asks.powers)
    return given if given.ndim else float(given)


def _unit_check(layout: str) -> Any:
    """Return the compiled check of quaternions."""
    from ...compile.batch import in_place
    from ...compile.lazily import program

    return program(lambda: in_place.checking(layout), "unit quaternions", layout).run
