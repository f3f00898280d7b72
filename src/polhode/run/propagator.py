"""A prepared run to a tolerance: all that a new initial state does not change is done once.

A call does what `ph.solve` does, with the same compiled loop, and so gives the same bits. What `ph.solve` looks up or
decides for every problem is decided here for all states at once, wherever the decision is the same for all of them:

* the units are those of the user, if the rate of the motion is moderate for every state (`_is_moderate`);
* a field that does not depend on time needs no schedule.

Everything else (a torque that depends on time, very fast or slow motion, odd input, a run that fails) goes the way of
`ph.solve`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..kernels.loops import COLUMNS
from ..methods.adaptive.controller import first_angle, first_step
from ..methods.families.jacobi import jacobi
from ..numbers import floats
from ..physics.problem import Problem
from ..physics.units import BACKWARD, NEAR, NO_UNITS, WIDE, Units, rescaled
from ..physics.validate import plain_floats, unit_quaternion
from ..symbolic import bounds
from .adaptive import FEW_ROWS, Path, Run, larger
from .error_estimate import estimated
from .exact import free_visit
from .integrator import check_compiled
from .schedule import Leg, Schedule
from .solve import read_wish, solve
from .step_control import AdaptiveStep, formula
from .step_count import end_time
from .tolerance import Wish, check_tolerance, exact_error

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

FASTEST, SLOWEST = 2.0**10, 2.0 ** (1 - NEAR)
"""Largest component of the angular velocity, and its smallest value, for which a run surely needs no other units."""

LONGEST, SHORTEST = 2.0**200, 2.0**-200
"""Time spans that surely need no check of their length."""

SPARSE = 2.0**-40
"""Time span, relative to the end time, above which there surely are enough doubles for the times of steps."""


@dataclasses.dataclass(slots=True)
class FinalState:
    """The state at the end of a run, and what the run says about itself."""

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


class _Loop(NamedTuple):
    """A kind of step, ready to run."""

    advance: Any
    order: int
    angle: float | None
    """First angle of a pair; None if steps need no proposal."""
    most: float
    label: str


class _ShortRun(Run):
    """A run that expects to need few steps; in the rows of its path the start is missing."""

    def __call__(self) -> Path:
        """Return the path; if it is longer than expected, run once more, as any other run."""
        t0, end, times, rows = self.problem.t0, self.end, np.empty(FEW_ROWS), np.empty((FEW_ROWS, COLUMNS))
        times[0] = t0
        y, t, _, largest, turned, count, lost, fine = self.controlled_step.adaptive_loop(
            t0, end, end, self.longest[0], self.first_step(), self.y, self.system, self.tolerance, 0.0, self.order,
            times[1:], rows[1:],
        )  # fmt: skip
        if t < end or not fine:
            return super().__call__()
        filled = count + 1
        return Path(times[:filled], rows[:filled], lost, largest=max(largest, math.hypot(*y[1])), turned=turned)


class _Direction:
    """What the runs in one direction of time have in common. Units are the user's, up to the sign of time."""

    def __init__(self, problem: Problem, units: Units, wish: Wish) -> None:
        self.units, self.sign, self.wish = units, units.sign, wish
        self.problem = problem if units is NO_UNITS else rescaled(problem, units)
        self.system = self.problem.kernel_data(floats.number)[1]
        self.turned = self.problem.body.principal.to_body
        self.velocity = problem._velocity
        self.kinds = None if problem.field is None else formula(self.problem)
        self.loops: dict[str, _Loop] = {}
        self.buffers: dict[int, list[Any]] = {}
        self.is_long = False

    def loop(self, kind: AdaptiveStep) -> _Loop:
        """Return a kind of step, prepared for the tolerance."""
        found = self.loops.get(kind.name)
        if found is None:
            order = kind.order_for(self.wish.tol)
            angle = first_angle(order, self.wish.tol) if kind.has_proposal else None
            found = self.loops[kind.name] = _Loop(kind.adaptive_loop, order, angle, kind.most, kind.label(order))
        return found

    def inside(self, q: Any, m: Any) -> Any:
        """Return a state in principal axes."""
        if self.sign < 0:
            m = _opposite(m)
        return self.problem._in_principal_axes((q, m), self.system[0], self.turned) if self.turned else (q, m)

    def outside(self, q: Any, m: Any) -> Any:
        """Return a state in the user's axes."""
        if self.sign < 0:
            m = _opposite(m)
        return self.problem.user_axes(q, m) if self.turned else (q, m)

    def stepped(self, y: Any, t: float, end: float, turn: float) -> tuple[Any, int, str] | None:
        """Run with an error of each step: the state at the end, the steps and the method; None if the run fails."""
        assert self.kinds is not None
        loop = self.loop(self.kinds.ranked(self.wish.tol, turn)[0])
        system, tol, largest, steps, tried, fine = self.system, self.wish.tol, 0.0, 0, 0, True
        proposal = end - t if loop.angle is None else first_step(loop.angle, end - t, y[1], system)
        size = FEW_ROWS  # sizes are those of `Run.pieces`: where the loop is entered again, bits may change
        while True:
            buffer = self.buffer(size)
            y, t, proposal, largest, _, count, lost, fine = loop.advance(
                t, end, end, math.inf, proposal, y, system, tol, largest, loop.order, *buffer
            )
            self.buffers[size].append(buffer)
            steps, tried = steps + count, tried + count + lost
            if t >= end or not fine or tried > loop.most:
                break
            size, largest = larger(size), max(largest, math.hypot(*y[1]))
        return (y, steps, loop.label) if fine and tried <= loop.most else None

    def buffer(self, size: int) -> Any:
        """Return a buffer for times and rows that no other thread uses; in the first one the start has a row, too."""
        try:
            return self.buffers[size].pop()
        except (KeyError, IndexError):
            self.buffers.setdefault(size, [])
            count = size - (size == FEW_ROWS)
            return np.empty(count), np.empty((count, COLUMNS))

    def compared(self, q: Any, m: Any, y: Any, t: float, end: float, turn: float) -> tuple[Any, int, str, float] | None:
        """Run with an error at the end: the state, the steps, the method and the error; None if it is not reached."""
        assert self.kinds is not None
        kind, tol = self.kinds.ranked(self.wish.tol, turn)[0], self.wish.tol
        made: Run = object.__new__(Run if self.is_long else _ShortRun)
        made.problem = _replaced(self.problem, quaternion=q, momentum=m if self.sign > 0 else _opposite(m), t0=t)
        made.controlled_step, made.end, made.tolerance, made.longest = kind, end, tol, [math.inf]
        made.schedule, made.y, made.system = Schedule(made.problem, (Leg(end, math.inf, end),)), y, self.system
        found = estimated(made, tol)
        if not found.reached:
            return None
        path = found.path
        self.is_long = len(path.times) > FEW_ROWS // 2  # the finer run has up to 1.5 times as many steps
        a, b, c, d, *m = path.rows[-1].tolist()
        return ((a, b, c, d), tuple(m)), len(path.times) - 1, kind.label(found.run.order), found.error

    def exact(self, y: Any, t: float, end: float) -> Any:
        """Return the state of a free body."""
        rows = np.empty((1, COLUMNS))
        free_visit()(np.array((end - t,)), y, self.system[0], rows)
        a, b, c, d, x, y, z = rows[0].tolist()
        return (a, b, c, d), (x, y, z)


class Propagator:
    """Moves states of one problem through time to a tolerance; created by `ph.propagator`."""

    def __init__(self, problem: Problem, wish: Wish) -> None:
        self.problem, self.wish = problem, wish
        self._t0, self._velocity = problem.t0, problem._velocity
        self._is_free = problem.field is None
        self._directions: dict[bool, _Direction] = {}
        self._bound: tuple[Mapping[str, Any], Propagator] | None = None

    def __reduce__(self) -> Any:
        """Pickle the arguments; compiled code is looked up again."""
        return functools.partial(propagator, **{self.wish.name: self.wish.tol}), (self.problem,)

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
        error: float | None = None
        if self._is_free:
            error = exact_error(turn)
            if error > 1:
                return self._solved(q, m, t0, end)
            state, steps, label = way.exact(inside, t, last), 0, jacobi.name
        elif self.wish.of_steps:
            stepped = way.stepped(inside, t, last, turn)
            if stepped is None:
                return self._solved(q, m, t0, end)
            state, steps, label = stepped
        else:
            compared = way.compared(q, m, inside, t, last, turn)
            if compared is None:
                return self._solved(q, m, t0, end)
            state, steps, label, error = compared
        q, m = way.outside(*state)
        return FinalState(q, m, end, steps, label, error, self._velocity)

    def _solved(self, q: Quaternion, m: Vector, t0: float, end: float) -> FinalState:
        """Return the state at the end in the way of `ph.solve`, which also explains failures."""
        problem = _replaced(self.problem, quaternion=q, momentum=m, t0=t0)
        problem._check_at_start()
        sol = solve(problem, **{self.wish.name: self.wish.tol}, t_end=end, progress=False)  # type: ignore[arg-type]
        q, m = tuple(sol.quaternion[-1].tolist()), tuple(sol.momentum[-1].tolist())  # type: ignore[assignment]
        steps = 0 if self._is_free else len(sol.t) - 1
        return FinalState(q, m, end, steps, sol.method, sol.error_estimate, self._velocity)

    def _prepared(self, forward: bool) -> _Direction:
        """Return what runs in one direction of time share, made on its first use."""
        made = _Direction(self.problem, NO_UNITS if forward else BACKWARD, self.wish)
        return self._directions.setdefault(forward, made)

    @functools.cached_property
    def _is_moderate(self) -> bool:
        """Whether runs at moderate angular velocities never need other units or a schedule (`units.units_of`).

        The torque is bounded over all attitudes and all those angular velocities.
        """
        body, field = self.problem.body, self.problem.field
        inertia = max(body.principal.moments)
        if body.linear_axis is not None or abs(math.frexp(inertia)[1]) > WIDE:
            return False
        if field is None:
            return True
        if "t" in field.reads:
            return False
        ranges = {"R": (-1.0, 1.0), "w": (-FASTEST, FASTEST)}

        def interval(name: str) -> bounds.Interval:
            if name[0] == "p":
                value = field.parameters[int(name[1:])]
                return value, value
            return ranges.get(name[0], bounds.EVERYTHING)

        return bounds.is_below(inertia * 4.0 ** (NEAR - 1), field.graph[0], interval)

    def _with(self, params: Mapping[str, Any]) -> Propagator:
        """Return the propagator with new values of parameters; the last one is kept."""
        if self._bound is not None and self._bound[0] == params:
            return self._bound[1]
        field = self.problem.field
        if not isinstance(params, Mapping) or (field is None and params):
            raise InputError(
                f"params must be new values of parameters of the field, by name, such as {{'mgl': 2.0}}; got {params!r}"
                + ("" if field else ", and this problem has no field")
            )
        made = _replaced(self.problem, field=None if field is None else field.bind(**params))
        self._bound = dict(params), Propagator(made, self.wish)
        return self._bound[1]


def _opposite(m: Vector) -> Vector:
    return -m[0], -m[1], -m[2]


def _replaced(problem: Problem, **parts: Any) -> Problem:
    """Return a problem with other parts, which are not checked."""
    made = Problem.__new__(Problem)
    vars(made).update(vars(problem), name="", reference=None, **parts)
    return made


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
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if tol is None and step_tol is None:
        raise InputError("give tol (the error at the end) or step_tol (the error of each step)")
    if problem.field is not None and problem.field.opaque:
        check_compiled(problem, "tol", "use ph.stepper, or ph.solve with a method and dt")
    wish = read_wish(None, tol, step_tol)
    check_tolerance(wish)
    return Propagator(problem, wish)
