"""A prepared run to a tolerance: all that a new initial state does not change is done once.

A call does what `ph.solve` does, with the same compiled loop, and so gives the same bits. What `ph.solve` looks up or
decides for every problem is decided here for all states at once, wherever the decision is the same for all of them:

* the units are those of the user, if the rate of the motion is moderate for every state (`_is_moderate`);
* a field that does not depend on time needs no schedule (`prepared.Direction`).

Everything else (a torque that depends on time, very fast or slow motion, odd input, a run that fails) goes the way of
`ph.solve`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..methods.families.jacobi import jacobi
from ..physics.fields.states import without_states
from ..physics.problem import Problem
from ..physics.units import BACKWARD, NO_UNITS
from ..physics.validate import ROTATION_TOLERANCE, plain_floats, unit_quaternion
from .exact import Limits, checked_free_end
from .integrator import check_compiled
from .moderate import FASTEST, LONGEST, SHORTEST, SLOWEST, SPARSE, Moderate
from .noise import check_noise
from .prepared import Direction, replaced
from .solve import read_wish, solve
from .step_count import end_time
from .tolerance import Wish, check_tolerance

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@dataclasses.dataclass(slots=True)
class FinalState:
    """The state at the end of a run, and what the run says about itself.

    Examples
    --------
    >>> fly = ph.propagator(ph.problems.free_body(), tol=1e-9)
    >>> state = fly((1.0, 0.0, 0.0, 0.0), (1.0, 0.1, 0.0), 5.0)
    >>> state.method
    'jacobi'
    """

    quaternion: Quaternion
    """Attitude: unit quaternion, scalar first, body to space."""
    momentum: Vector
    """Momentum in the body frame."""
    t: float
    steps: int
    """Accepted steps; 0 for an exact solution."""
    method: str
    error_estimate: float | None
    """Estimated error; None with `step_tol`, except for an exact solution."""
    _velocity: Callable[[Vector], Vector] = dataclasses.field(repr=False, compare=False)

    @property
    def omega(self) -> Vector:
        """Angular velocity in the body frame."""
        return self._velocity(self.momentum)


Quick = Callable[[Any, Any, Any], FinalState | None]
"""A run of the usual case, (attitude, momentum, end); it returns None for everything else."""


def _never(attitude: Any, momentum: Any, end: Any) -> None:
    """Return None: nothing is prepared yet."""


def _free(way: Direction, t0: float) -> Quick:
    """Return the run of a free body: compiled code also compares and normalises the numbers.

    It is inlined by hand: each Python call costs about 0.5 microseconds with cold caches.
    """
    (inertia, inverse, *_), velocity, label = way.system, way.velocity, jacobi.name
    limits = Limits((2 * SLOWEST, FASTEST), (SHORTEST, LONGEST), SPARSE, ROTATION_TOLERANCE)
    after, system = checked_free_end(limits), (t0, *inertia, *inverse)

    def fly(attitude: Any, momentum: Any, end: Any) -> FinalState | None:
        if not (type(attitude) is tuple and type(momentum) is tuple and type(end) is float):
            attitude, momentum = plain_floats(attitude, 4), plain_floats(momentum, 3)
            if attitude is None or momentum is None or type(end) is not float:
                return None
        try:
            q, m, error = after(attitude, momentum, end, system)
        except (TypeError, ValueError):  # something else than four and three numbers
            return None
        return FinalState(q, m, end, 0, label, error, velocity) if error <= 1.0 else None

    return fly


def _forced(way: Direction, t0: float) -> Quick:
    """Return the run of a body in a field."""
    (i, j, k), velocity, flown, hypot, sqrt = way.system[1], way.velocity, way.end, math.hypot, math.sqrt

    def fly(attitude: Any, momentum: Any, end: Any) -> FinalState | None:
        try:
            a, b, c, d = attitude
            x, y, z = momentum
        except (TypeError, ValueError):
            return None
        if not (
            type(a) is float and type(b) is float and type(c) is float and type(d) is float
            and type(x) is float and type(y) is float and type(z) is float and type(end) is float
        ):  # fmt: skip
            return None
        span, rate, square = end - t0, hypot(i * x, j * y, k * z), a * a + b * b + c * c + d * d
        if not (
            2 * SLOWEST < rate < FASTEST and SHORTEST < span < LONGEST and span > SPARSE * abs(end)
            and -ROTATION_TOLERANCE < square - 1 < ROTATION_TOLERANCE
        ):  # fmt: skip
            return None
        s = 1 / sqrt(square)  # the bits of `unit_quaternion`
        start = x, y, z
        found = flown(((a * s, b * s, c * s, d * s), start), start, t0, end, rate * span)
        if found is None:
            return None
        (q, m), steps, label, error = found
        return FinalState(q, m, end, steps, label, error, velocity)

    return fly


@dataclasses.dataclass
class _Shared:
    """What propagators share whose problems differ in the parameters of the field only."""

    directions: dict[bool, Direction] = dataclasses.field(default_factory=dict)
    """One for each direction of time, forward (True) and backward; it has the parameters of the first of them."""
    moderate: Moderate = dataclasses.field(default_factory=Moderate)


class Propagator:
    """Moves states of one problem through time to a tolerance; created by `ph.propagator`.

    Examples
    --------
    >>> fly = ph.propagator(ph.problems.free_body(), tol=1e-9)
    >>> isinstance(fly, ph.Propagator)
    True
    """

    def __init__(self, problem: Problem, wish: Wish, shared: _Shared | None = None) -> None:
        self.problem, self.wish, self._shared = problem, wish, _Shared() if shared is None else shared
        self._t0, self._velocity = problem.t0, problem._velocity
        self._is_free = problem.field is None
        self._directions: dict[bool, Direction] = {}
        self._bound: tuple[Mapping[str, Any], Propagator] | None = None
        self._quick: Quick = _never

    def __reduce__(self) -> Any:
        """Pickle the arguments; compiled code is looked up again."""
        return _with_tolerance, (self.problem, self.wish.name, self.wish.tol)

    def __repr__(self) -> str:
        return f"<Propagator of {self.problem!r}, {self.wish.name}={self.wish.tol:g}>"

    def __call__(
        self,
        attitude: Any = None,
        momentum: Any = None,
        t_end: float | None = None,
        *,
        omega: Any = None,
        t0: float | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> FinalState:
        """Return the state at `t_end`.

        Parameters
        ----------
        attitude : a unit quaternion with the scalar first, a 3x3 matrix or a scipy Rotation
        momentum, omega : body-frame momentum, or instead of it the body-frame angular velocity
        t_end : end time, before or after t0
        t0 : time of the initial state
        params : new values of some parameters of the field, by name

        What is omitted is the problem's own.

        Raises
        ------
        InputError : an argument is invalid
        StepError : a step failed; ``.partial`` holds the states before it
        """
        if params is None and omega is None and t0 is None:
            found = self._quick(attitude, momentum, t_end)
            if found is not None:
                return found
        if params is not None:
            return self._with(params)(attitude, momentum, t_end, omega=omega, t0=t0)
        q, m = plain_floats(attitude, 4), plain_floats(momentum, 3)
        if q is None or m is None or omega is not None or t0 is not None or type(t_end) is not float:
            return self._flown(*self._read(attitude, momentum, t_end, omega, t0))
        return self._flown(unit_quaternion(q), m, self._t0, t_end)  # type: ignore[arg-type]

    def _read(
        self, attitude: Any, momentum: Any, t_end: Any, omega: Any, t0: Any
    ) -> tuple[Quaternion, Vector, float, float]:
        """Read a start in any accepted form, with the checks of a new problem."""
        made = self.problem.starting(attitude=attitude, momentum=momentum, omega=omega, t0=t0)
        return made.quaternion, made.momentum, made.t0, end_time(made, t_end, backward=True)

    def _flown(self, q: Quaternion, m: Vector, t0: float, end: float) -> FinalState:
        x, y, z = self._velocity(m)
        span, speed = abs(end - t0), max(abs(x), abs(y), abs(z))
        if not (
            self._is_moderate and SLOWEST < speed < FASTEST and SHORTEST < span < LONGEST and span > SPARSE * abs(end)
        ):
            return self._solved(q, m, t0, end)
        way = self._directions.get(end > t0) or self._prepared(end > t0)
        inside, turn, t, last = way.inside(q, m), math.hypot(x, y, z) * span, way.sign * t0, way.sign * end
        found = way.end(inside, m, t, last, turn)
        if found is None:
            return self._solved(q, m, t0, end)
        state, steps, label, error = found
        q, m = way.outside(*state)
        return FinalState(q, m, end, steps, label, error, self._velocity)

    def _solved(self, q: Quaternion, m: Vector, t0: float, end: float) -> FinalState:
        """Return the state at the end in the way of `ph.solve`, which also explains failures."""
        problem = replaced(self.problem, quaternion=q, momentum=m, t0=t0)
        problem._check_at_start()
        sol = solve(problem, **{self.wish.name: self.wish.tol}, t_end=end, progress=False)  # type: ignore[arg-type]
        q, m = tuple(sol.quaternion[-1].tolist()), tuple(sol.momentum[-1].tolist())
        steps = 0 if self._is_free else len(sol.t) - 1
        return FinalState(q, m, end, steps, sol.method, sol.error_estimate, self._velocity)

    def _prepared(self, forward: bool) -> Direction:
        """Return what runs in one direction of time share, made on its first use."""
        known = self._shared.directions.get(forward)
        if known is None:
            made = Direction(self.problem, NO_UNITS if forward else BACKWARD, self.wish)
            self._shared.directions[forward] = made
        else:
            made = known.in_problem(self.problem)
        if forward and not made.turned:
            self._quick = (_free if made.loops is None else _forced)(made, self._t0)
        return self._directions.setdefault(forward, made)

    @functools.cached_property
    def _is_moderate(self) -> bool:
        """Whether runs at moderate angular velocities never need other units or a schedule."""
        return self._shared.moderate.holds(self.problem)

    def _with(self, params: Mapping[str, Any]) -> Propagator:
        """Return the propagator with new values of parameters; the last one is kept."""
        field = self.problem.field
        if not isinstance(params, Mapping) or (field is None and params):
            raise InputError(
                f"params must be new values of parameters of the field, by name, such as {{'mgl': 2.0}}; got {params!r}"
                + ("" if field else ", and this problem has no field")
            )
        given = {name: _copied(value) for name, value in params.items()}
        if self._bound is not None and self._bound[0] == given:
            return self._bound[1]
        new = None if field is None else field.bind(**params)
        is_same = field is None or (new is not None and new.trace is field.trace)
        made = Propagator(replaced(self.problem, field=new), self.wish, self._shared if is_same else None)
        self._bound = given, made
        return made


def _copied(value: Any) -> Any:
    """Return the value of a parameter such that a later one can be compared with it, also if it changes in place."""
    return value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, list) else value


def _with_tolerance(problem: Problem, name: str, tol: float) -> Propagator:
    return propagator(problem, step_tol=tol) if name == "step_tol" else propagator(problem, tol=tol)


def propagator(problem: Problem, *, tol: float | None = None, step_tol: float | None = None) -> Propagator:
    """Prepare runs of a problem to a tolerance, for initial states that are given later.

    ``fly = ph.propagator(problem, step_tol=1e-9); end = fly(attitude, momentum, t_end)`` gives the state at the end
    of ``ph.solve(problem.starting(attitude=..., momentum=...), step_tol=1e-9, t_end=t_end)``, bit for bit, a few
    microseconds after the compiled run. Threads may share a propagator.

    Parameters
    ----------
    problem : body and field, and whatever a call omits
    tol : the error allowed at the end, as in `ph.solve`; the result has an estimate of it
    step_tol : instead of tol, the error allowed in each step

    Examples
    --------
    >>> fly = ph.propagator(ph.problems.fast_top(), step_tol=1e-9)
    >>> end = fly((1.0, 0.0, 0.0, 0.0), (0.1, 0.0, 50.0), 2.0)
    >>> end.t, len(end.quaternion)
    (2.0, 4)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if tol is None and step_tol is None:
        raise InputError("give tol (the error at the end) or step_tol (the error of each step)")
    wish = read_wish(None, tol, step_tol)
    if problem.field is not None and problem.field.opaque:
        check_compiled(problem, wish.name, "use ph.stepper, or ph.solve with a method and dt")
    if problem.field is not None and problem.field.states:
        raise without_states(problem.field)
    check_noise(None, problem)
    check_tolerance(wish)
    return Propagator(problem, wish)
