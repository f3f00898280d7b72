"""Motions in other spaces, by drivers of their own: vector spaces, matrix Lie groups, bodies in N dimensions."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from . import faults
from .check import ALARM, Cell, Skip, within
from .runs import ROUND_OFF
from .studies import _rate

STEP, STEPS = 0.0625, 16
"""A step whose multiples are exact, so that times of a run in two parts are those of one."""


@dataclasses.dataclass(frozen=True)
class Space:
    """A motion in another space.

    Attributes
    ----------
    run : solves from a state (or from its start, for None), with further arguments
    names : of the arrays of the state
    step : the name of the argument for the step
    failing : the same with a function that has no value from t = 0.6 on, or past a place; None without one
    """

    run: Callable[..., Any]
    names: tuple[str, ...]
    step: str = "dt"
    failing: Callable[..., Any] | None = None

    def solve(self, state: Any = None, **more: Any) -> Any:
        """Run so many steps."""
        given = {self.step: STEP} | ({} if "t_end" in more else {"steps": STEPS}) | {"progress": False} | more
        return self.run(state, **given)

    def state(self, sol: Any, row: int = -1) -> tuple[np.ndarray, ...]:
        """A state of the path."""
        return tuple(getattr(sol, name)[row] for name in self.names)

    @functools.cached_property
    def base(self) -> Any:
        """The plain run."""
        return self.solve()

    def same(self, cell: Cell, what: str, sol: Any, rows: Any = slice(None)) -> None:
        """Claim that a run has the bits of the plain one."""
        for name in ("t", *self.names):
            cell.same(f"{what}: {name}", getattr(sol, name), getattr(self.base, name)[rows])


def force(u: Any, t: Any) -> Any:
    """A force of time and place."""
    return -u[0] + 0.3 * u[1] + ph.math.sin(t), -2 * u[1] * u[1] * u[1] + 0.3 * u[0]


def wall(u: Any, t: Any) -> Any:
    """A force that ceases to be a number."""
    return ph.math.sqrt(0.6 - t), -u[1]


def well(u: Any) -> Any:
    """A potential."""
    return 0.5 * u[0] ** 2 + 0.25 * u[1] ** 4 - 0.3 * u[0] * u[1]


def chain(u: Any) -> Any:
    """A potential in ten dimensions, beyond what is compiled."""
    return sum(0.5 * (u[i + 1] - u[i]) ** 2 + 0.1 * u[i] ** 4 for i in range(9))


MASS = [[2.0, 0.3], [0.3, 1.0]]
FIRST = (0.5, -0.3), (0.2, 0.4)


def _vector(method: str, given: Any, mass: Any = MASS, start: Any = FIRST, **more: Any) -> Callable[..., Any]:
    def run(state: Any = None, **named: Any) -> Any:
        return ph.vector.solve(given, mass, *(start if state is None else state), method, **more | named)

    return run


def _place(y: Any) -> Any:
    return y[0][1]


def turning(t: Any, y: Any) -> Any:
    """A velocity of time and element."""
    return ph.math.sin(2 * t) + 0.2 * _place(y), 0.3, ph.math.cos(t) - 0.1 * y[2][0]


def ending(t: Any) -> Any:
    """A velocity that ceases to be a number."""
    return ph.math.sqrt(0.6 - t), 0.3, 0.1


def screwing(t: Any) -> Any:
    """A velocity of a moving frame."""
    return ph.math.sin(2 * t), 0.3, ph.math.cos(t), 0.5, -0.2 * t, 0.7


def spinning(t: Any) -> Any:
    """A velocity on SU(2)."""
    return ph.math.sin(2 * t), 0.3, ph.math.cos(t)


def _group(group: str, method: str, velocity: Any, **more: Any) -> Callable[..., Any]:
    def run(state: Any = None, **named: Any) -> Any:
        start = None if state is None else state[0]
        return ph.lie.solve(group, velocity, start, method, **more | named)

    return run


def uneven(X: Any) -> Any:
    """A potential of the attitude."""
    return 0.7 * X[2][2] * X[0][1] - 0.4 * X[1][0] ** 2 + ph.math.exp(X[2][1] / 2)


def edge(X: Any) -> Any:
    """A potential that ends at a wall."""
    return 30 * X[0][0] + 1e-3 * ph.math.sqrt(X[0][0] - 0.98)


J = [1.0, 0.7, 1.7, 0.6]
M0 = np.zeros((4, 4))
M0[np.triu_indices(4, 1)] = [0.5, -0.8, 0.3, 0.9, 0.2, -0.4]
M0 -= M0.T


def _body(method: str, start: Any = None, **more: Any) -> Callable[..., Any]:
    def run(state: Any = None, **named: Any) -> Any:
        return ph.ndim.solve(J, *((M0, None) if state is None else state), method, **more | named)

    return run


SPACES = {
    "vector, verlet": Space(
        _vector("verlet", None, potential=well), ("u", "p"), failing=_vector("verlet", wall)
    ),
    "vector, midpoint": Space(
        _vector("midpoint", force), ("u", "p"), failing=_vector("midpoint", wall)
    ),
    "vector, ten dimensions": Space(
        _vector("verlet", None, 1.0, (np.linspace(-1, 1, 10), np.zeros(10)), potential=chain), ("u", "p"),
    ),
    "SO(3)": Space(_group("SO(3)", "taylor(6)", turning), ("y",), failing=_group("SO(3)", "taylor(6)", ending)),
    "SU(2)": Space(
        _group("SU(2)", "munthe_kaas(gauss2)", spinning), ("y",),
        failing=_group("SU(2)", "munthe_kaas(gauss2)", ending),
    ),
    "SE(3)": Space(_group("SE(3)", "crouch_grossman(rk4)", screwing, trivialised="left"), ("y",)),
    "four dimensions": Space(_body("moser_veselov"), ("M", "X"), "h"),
    "four dimensions, midpoint": Space(_body("isospectral_midpoint"), ("M", "X"), "h"),
    "four dimensions, potential": Space(
        _body("strang(moser_veselov)", potential=uneven), ("M", "X"), "h",
        failing=_body("strang(moser_veselov)", potential=edge),
    ),
}  # fmt: skip
"""One for each kind of motion and of step."""


def again(space: Space, cell: Cell) -> None:
    """A second run has the bits of the first; so has one to the end time."""
    space.same(cell, "second call", space.solve())
    space.same(cell, "to the end time", space.solve(t_end=STEP * STEPS))
    space.same(cell, "pickled", pickle.loads(pickle.dumps(space.base)))


def every(space: Space, cell: Cell) -> None:
    """Every third state, and the last, are states of the whole run."""
    space.same(cell, "every third", space.solve(every=3), [*range(0, STEPS, 3), STEPS])
    space.same(cell, "every fifth", space.solve(every=5), [0, 5, 10, 15, STEPS])


def in_parts(space: Space, cell: Cell) -> None:
    """A run from the state in the middle ends where the whole run does."""
    half = space.solve(steps=STEPS // 2)
    rest = space.solve(space.state(half), steps=STEPS // 2, t0=STEP * (STEPS // 2))
    for name, now, before in zip(space.names, space.state(rest), space.state(space.base), strict=True):
        cell.close(name, _real(now), _real(before), ROUND_OFF)
    cell.same("times", rest.t, space.base.t[STEPS // 2 :])


def _real(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag])


def digits(space: Space, cell: Cell) -> None:
    """In 25 digits the path differs by round-off."""
    sol = space.solve(digits=25)
    cell.same("times", sol.t, space.base.t)
    for name in space.names:
        cell.close(name, _real(getattr(sol, name)), _real(getattr(space.base, name)), ROUND_OFF)


def progress(space: Space, cell: Cell) -> None:
    """A function is told the progress up to 1, and changes no bit."""
    space.same(cell, "path", faults._progress(cell, space.solve))
    cell.refuses("progress", lambda: space.solve(progress="yes"))


def backwards(space: Space, cell: Cell) -> None:
    """Negative steps are refused."""
    cell.refuses("must be positive", lambda: space.solve(**{space.step: -STEP}))


def fails(space: Space, cell: Cell) -> None:
    """A function that ceases to be a number ends the run there, and leaves the states before."""
    for more in ({}, {"digits": 20}):
        try:
            sol = space.failing(**{space.step: STEP}, steps=4 * STEPS, progress=False, **more)
        except ph.StepError as failure:
            partial: Any = failure.partial
            cell.claim(partial is not None and partial.status == "failed", f"no states are left, {more}")
            cell.keep(f"states, {more}", partial.t)
            cell.claim(all(np.isfinite(getattr(partial, name)).all() for name in space.names), "a state is not finite")
        else:
            cell.found.append(f"no StepError; the run ends at {sol.t[-1]}, {more}")


def memory(space: Space, cell: Cell) -> None:
    """More states than fit in memory are refused before the run."""
    with within(2.0):
        cell.refuses(" GB", lambda: space.solve(steps=10**13))


def interrupted(space: Space, cell: Cell) -> None:
    """Ctrl-C ends a run within a second, and leaves the states so far."""
    if not ALARM:
        raise Skip
    stop, waited = faults._stopped(lambda: space.solve(steps=10**11, every=10**7), 0.3)
    cell.claim(stop is not None, "the run came to an end that it cannot reach")
    cell.claim(waited < 1.0, f"Ctrl-C took {waited:.1f} s")
    cell.claim(getattr(stop, "partial", None) is not None, "Ctrl-C leaves no .partial")


CHECKS: dict[str, Callable[[Space, Cell], None]] = {
    "again": again, "every": every, "in parts": in_parts, "digits": digits, "progress": progress,
    "backwards": backwards, "fails": fails, "memory": memory, "interrupted": interrupted,
}  # fmt: skip


# --- one space against another ----------------------------------------------------------------------


def groups_and_kinematics(cell: Cell) -> None:
    """On SO(3), every kind of step tends to the attitude of `ph.kinematics`."""
    base = ph.kinematics(_rate, 1.0, tol=1e-13).matrix[-1]
    for method in ("taylor(12)", "munthe_kaas(gauss3)", "crouch_grossman(cg4)"):
        sol = ph.lie.solve("SO(3)", _rate, None, method, dt=0.01, steps=100, trivialised="left")
        cell.close(method, sol.y[-1], base, 1e-9)
    su2 = ph.lie.solve("SU(2)", _rate, None, "taylor(12)", dt=0.05, steps=20, trivialised="left").y[-1]
    q = ph.kinematics(_rate, 1.0, tol=1e-13).quaternion[-1]
    cell.close("SU(2)", abs(su2[0, 0].real), abs(q[0]), 1e-9)


def bodies_in_three_dimensions(cell: Cell) -> None:
    """In three dimensions the body is the one of quaternions."""
    moments, momentum = np.array([0.75, 0.875, 1.0]), np.array([1.75, 0.5, -0.875])
    problem = ph.Problem(ph.Body(moments), momentum=momentum)
    x, y, z = momentum
    start = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    one = ph.solve(problem, "dmv2", dt=0.125, steps=8)
    other = ph.ndim.solve(moments.sum() / 2 - moments, start, None, "moser_veselov", h=0.125, steps=8)
    found = np.stack([other.M[:, 2, 1], other.M[:, 0, 2], other.M[:, 1, 0]], axis=1)
    cell.close("momentum", found, one.momentum, ROUND_OFF)
    cell.close("matrix", other.X, one.matrix, ROUND_OFF)
    late = ph.ndim.reference(moments.sum() / 2 - moments, start, [0.0, 1.0])
    cell.close("reference", late.X[-1], ph.exact(problem, [0.0, 1.0]).matrix[-1], 1e-11)


def potentials_and_forces(cell: Cell) -> None:
    """A potential is the force that it has, in every method."""

    def pull(u: Any) -> Any:
        return -u[0] + 0.3 * u[1], -u[1] * u[1] * u[1] + 0.3 * u[0]

    for method in ph.vector.methods:
        one = ph.vector.solve(None, MASS, *FIRST, method, dt=STEP, steps=STEPS, potential=well)
        other = ph.vector.solve(pull, MASS, *FIRST, method, dt=STEP, steps=STEPS)
        cell.close(f"u, {method}", one.u, other.u, ROUND_OFF)
        cell.close(f"p, {method}", one.p, other.p, ROUND_OFF)
        velocity = np.linalg.solve(MASS, one.p.T).T
        cell.close(f"velocity, {method}", one.velocity, velocity, ROUND_OFF)
        cell.close(f"energy, {method}", one.energy, (one.p * velocity).sum(1) / 2 + well(one.u.T), ROUND_OFF)


CELLS: dict[str, Callable[[Cell], None]] = {
    **{
        f"{name}, {what}": functools.partial(check, space)
        for name, space in SPACES.items() for what, check in CHECKS.items()
        if what != "fails" or space.failing
    },
    "groups and kinematics": groups_and_kinematics,
    "bodies in three dimensions": bodies_in_three_dimensions,
    "potentials and forces": potentials_and_forces,
}  # fmt: skip
"""By name."""
