"""Derivatives of an observable at the end of a run, by differentiating the kernels of the run."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..kernels.loops import COLUMNS
from ..kernels.so3 import matrix, mul
from ..methods import Method, methods
from ..numbers import floats
from ..numbers.dual import Dual, plain
from ..physics.fields.states import without_states
from ..physics.observers.observable import Observable
from ..physics.problem import Problem
from ..physics.validate import positive
from .cut_steps import can_cut, cut_at_edges
from .directions import Direction, by_name, directions_of, seeds, table, to_tensor, varied_parameters
from .integrator import beginning, check_fit, check_formula
from .located_steps import can_locate
from .moving_edges import moving_edges
from .noise import without_noise
from .solve import solve
from .step_count import number_of_steps
from .system import System
from .tangent import Tangent

WRT = ("inertia", "momentum", "attitude", "params")
"""Quantities with respect to which derivatives can be taken."""

WIDTHS = (4, 8, 16)
"""Numbers of directions processed together: whole vector registers."""


@dataclasses.dataclass(frozen=True)
class Gradient:
    """The value of an observable at the end of a run, and its derivatives; None for those not requested.

    The derivatives have the shape of the value, followed by those below.

    Attributes
    ----------
    inertia : (3,), with respect to the principal moments at fixed initial body momentum; for a body given by a tensor
        that is not diagonal (3, 3), a symmetric G with d value = sum G_ij dI_ij for every symmetric dI
    momentum : (3,), with respect to the initial body momentum at fixed attitude
    attitude : (3,), with respect to d in R exp(hat d), a small initial rotation in body axes, at fixed body momentum
    params : for every parameter of the field, by name, an array of its shape

    Examples
    --------
    >>> body = ph.problems.free_body()
    >>> found = ph.gradient(lambda momentum: momentum[2], body, "imidm", dt=0.1, steps=10, wrt=["inertia"])
    >>> found.inertia.shape
    (3,)
    """

    value: Any
    inertia: np.ndarray | None = None
    momentum: np.ndarray | None = None
    attitude: np.ndarray | None = None
    params: dict[str, np.ndarray] | None = None


def gradient(
    fn: Callable[..., Any],
    problem: Problem,
    method: str | Method,
    *,
    dt: float,
    steps: int | None = None,
    t_end: float | None = None,
    wrt: Iterable[str] = WRT,
) -> Gradient:
    """Return the derivatives of an observable of the final state, exact for the discrete steps.

    Parameters
    ----------
    fn : a function of any of t, R, omega, momentum (in the user's axes, `omega` and `momentum` in the body frame) and
        of parameters with defaults; it returns a number or (nested) tuples of numbers
    problem : Problem
    method : a name, an alias, an expression, or a Method
    dt : step size, positive; the first one if steps vary
    steps, t_end : number of steps or end time, one of them (by default the problem's end time)
    wrt : any of "inertia", "momentum", "attitude", "params"; by default all that apply to the problem

    Returns
    -------
    Gradient

    Raises
    ------
    InputError : an argument is invalid
    StepError : a step failed, or the method's formulas have no derivative for this motion

    Examples
    --------
    >>> body = ph.problems.free_body()
    >>> found = ph.gradient(lambda momentum: momentum[0] ** 2, body, "imidm", dt=0.1, steps=10, wrt=["momentum"])
    >>> found.momentum.shape
    (3,)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the second argument must be a ph.Problem; got {type(problem).__name__}")
    chosen, dt = methods[method], positive("dt", dt)
    names = _names(wrt, problem)
    check_formula(problem, "ph.gradient")
    check_fit(chosen, problem)
    without_noise(chosen, "ph.gradient")
    if problem.field is not None and problem.field.states:
        raise without_states(problem.field)
    if chosen.has_own_time and steps is None:
        raise InputError(f"the steps of {chosen.name} vary with the motion, so their number is not known; give steps")
    count = number_of_steps(problem, dt, t_end, steps)
    observable = Observable(fn)
    R = tuple(tuple(float(x) for x in row) for row in matrix(problem.quaternion))
    omega = tuple(problem.omega.tolist())
    observable.check(problem.t0, R, omega, problem.momentum, f"at the start (t = {problem.t0:g})")
    wanted = {name: directions_of(name, problem) for name in names}
    directions = [direction for some in wanted.values() for direction in some]
    end = problem.t0 + count * dt
    if can_locate(problem, chosen) or (
        can_cut(problem, chosen) and moving_edges(problem, directions, problem.t0, end) is not None
    ):
        run: Run = LocatedRun(problem, chosen, dt, count)
    else:
        run = Run(cut_at_edges(problem, chosen, end), chosen, dt, count)
    value, tangents = run.differentiated(observable, directions)
    return _sorted_out(value, tangents, wanted, observable.shape, problem)


def _names(wrt: Any, problem: Problem) -> list[str]:
    """Return the checked names of `wrt`."""
    parameters = varied_parameters(problem)
    if wrt is WRT:
        has = {"params": bool(parameters), "inertia": problem.body.linear_axis is None}
        return [name for name in WRT if has.get(name, True)]
    several = isinstance(wrt, Iterable) and not isinstance(wrt, str | np.ndarray)
    names = list(wrt) if several else [wrt]
    wrong = [name for name in names if not isinstance(name, str) or name not in WRT]
    if wrong or not names:
        got = repr(wrong[0]) if wrong else "none"
        raise InputError(f"wrt must be some of {', '.join(WRT)}; got {got}")
    if "params" in names and not parameters:
        what = "has no field" if problem.field is None else f"has a field without parameters, {problem.field!r}"
        raise InputError(f"wrt contains 'params', but the problem {what}; remove 'params'")
    if "inertia" in names and problem.body.linear_axis is not None:
        raise InputError(
            "wrt contains 'inertia', but the moments (0, I, I) of a linear body cannot vary independently; "
            "remove 'inertia'"
        )
    return names


# --- the run ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run:
    """Steps of a method on a problem, with tangents."""

    problem: Problem
    method: Method
    dt: float
    count: int

    def differentiated(self, observable: Observable, directions: Sequence[Direction]) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the observable at the end, and their tangents in every direction (last axis)."""
        tangents = np.empty((math.prod(observable.shape), len(directions)))
        value = tangents[:, 0]
        for other in dict.fromkeys(d.other for d in reversed(directions)):
            here = [i for i, d in enumerate(directions) if d.other == other]
            width = next((w for w in WIDTHS if w >= len(here)), WIDTHS[-1])
            for part in (here[i : i + width] for i in range(0, len(here), width)):
                value, tangents[:, part] = self._observed(observable, [directions[i] for i in part], other, width)
        return value, tangents

    def _observed(self, observable: Observable, directions: Sequence[Direction], other: Any, width: int) -> Any:
        y, system, principal_to_body = seeds(self.problem, directions, other)
        t, q, m = self.end(y, system, directions, other, width)
        try:
            found = observable(t, q, m, system[1], principal_to_body)
        except (ArithmeticError, ValueError) as problem:
            place = f"at the end (t = {plain(t):g})"
            raise InputError(
                f"the observable {observable.name} has no value or no derivative {place}: {problem}"
            ) from problem
        value = np.array([plain(x) for x in found], dtype=float)
        tangents = np.array([x.tangent if isinstance(x, Dual) else np.zeros(len(directions)) for x in found])
        if not (np.isfinite(value).all() and np.isfinite(tangents).all()):
            raise InputError(
                f"the observable {observable.name} has no finite derivative at the end (t = {plain(t):g}); write it "
                "without this singularity, or choose another end"
            )
        return value, tangents

    def end(self, y: Any, system: Any, directions: Sequence[Direction], other: Any, width: int) -> tuple[Any, Any, Any]:
        """Return time, attitude and momentum at the end, as numbers with tangents in some directions."""
        return self.ended(y, system, len(directions), width)

    def ended(self, y: Any, system: Any, directions: int, width: int) -> tuple[Any, Any, Any]:
        """Return the same for a number of directions, which are those of the tangents of y and system."""
        from ..compile.threads import elsewhere

        columns = {} if self.problem.field is None else self.problem.field.columns
        rows = np.empty((1, COLUMNS + self.method.has_own_time, 1 + width))
        last = (self.count, math.inf) if self.method.has_own_time else self.count
        h, t0 = self.dt, self.problem.t0
        run = self._loop(len(system[2]), tuple(columns), width)
        given = h, t0, self.count, last, table(y, system, width), tuple(columns.values()), rows
        ((reached, fine),) = elsewhere(lambda begin, end, stop: run(*given, stop), self.count)
        if not fine:
            raise StepError(
                f"{self.method.name} failed in step {reached + 1} (from t = {t0 + reached * h:g} with dt = {h:g}); "
                f"ph.solve reports the reason"
            )
        if not np.isfinite(rows[..., : 1 + directions]).all():
            raise StepError(
                f"the formulas of {self.method.name} have no finite derivative at this motion (equal moments, a spin "
                f"about a principal axis, or a body at rest); use another method"
            )
        end = [Dual(1, float(row[0]), row[1 : 1 + directions].copy()) for row in rows[0]]
        return end[COLUMNS] if self.method.has_own_time else t0 + self.count * h, tuple(end[:4]), tuple(end[4:7])

    def _loop(self, parameters: int, columns: tuple[int, ...], width: int) -> Any:
        """Return the compiled loop."""
        from ..compile.batch import tangents

        system = System(self.problem, self.method)

        def build_loop() -> Any:
            before, after = self.method.processors(floats.number)
            return tangents.loop(
                system.step(), system.torque(), system.space, beginning(self.method), parameters, columns, width,
                before=before, after=after,
            )  # fmt: skip

        return system.built(build_loop, "slopes", width)[0]


@dataclasses.dataclass(frozen=True)
class LocatedRun(Run):
    """The same where the field jumps: tangents pass through the jumps (`run/saltation.py`, `run/moving_edges.py`)."""

    @functools.cached_property
    def tangent(self) -> Tangent:
        """The tangent of the run."""
        found = solve(self.problem, self.method, dt=self.dt, steps=self.count, tangent=True, progress=False).tangent
        assert found is not None
        return found

    def end(self, y: Any, system: Any, directions: Sequence[Direction], other: Any, width: int) -> tuple[Any, Any, Any]:
        """Return time, attitude and momentum at the end, as numbers with tangents in some directions."""
        row, slopes = self.tangent.at_end(list(directions), other)
        q: Any = tuple(row[:4].tolist())
        turns = np.stack([mul(q, (0.0, *(d / 2).tolist())) for d in slopes[:3].T], 1)
        end = [Dual(1, float(x), slope) for x, slope in zip(row, np.concatenate([turns, slopes[3:]]), strict=True)]
        return self.problem.t0 + self.count * self.dt, tuple(end[:4]), tuple(end[4:])


# --- the result -------------------------------------------------------------------------------------


def _sorted_out(
    value: np.ndarray,
    tangents: np.ndarray,
    wanted: dict[str, list[Direction]],
    shape: tuple[int, ...],
    problem: Problem,
) -> Gradient:
    """Return the tangents by name, in the shape of the value."""
    found: dict[str, Any] = {}
    first = 0
    for name, directions in wanted.items():
        part = tangents[:, first : first + len(directions)].reshape(*shape, len(directions))
        first += len(directions)
        found[name] = part
        if name == "inertia" and problem.body.has_principal_rotation:
            found[name] = to_tensor(part, problem.body.axes)
        if name == "params":
            found[name] = by_name(part, problem)
    return Gradient(value.reshape(shape) if shape else float(value[0]), **found)
