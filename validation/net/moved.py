"""Derivatives where a field jumps, in time or with the state: against differences, and against one another."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from .cases import ATTITUDE, ONE, TENSOR, gravity
from .check import Cell

END, STEP = 2.5, 0.07
OMEGA = np.array([0.9, 0.4, -0.3])
PATHS: dict[str, dict[str, Any]] = {
    "dt": {"method": "mkrk(gauss3)", "dt": STEP, "steps": 35},
    "tol": {"tol": 1e-12, "t_end": END},
    "step_tol": {"step_tol": 1e-12, "t_end": END},
}


@ph.torque
def burn(t: Any, omega: Any, push: Any, start: Any, stop: Any) -> Any:
    """A burn whose beginning and end are parameters."""
    on = ph.where((t > start) & (t < stop), 1.0, 0.0)
    return on * push, on * push * omega[2], -0.1 * omega[2]


@ph.torque
def brakes(t: Any, R: Any, omega: Any, level: Any, push: Any) -> Any:
    """A brake that changes with the spin, so that jumps are of the state."""
    return ph.where(omega[0] > level, -0.5, -0.1), push * R[2][1], -0.2 * R[2][0]


@dataclasses.dataclass(frozen=True)
class Jump:
    """A field that jumps, and the parameters that move the jump."""

    field: Any
    moving: tuple[str, ...]

    def problem(self, **values: float) -> ph.Problem:
        """The problem, with other values of parameters."""
        return ph.Problem(ph.Body(TENSOR), self.field.bind(**values), euler=ATTITUDE, omega=OMEGA)


JUMPS = {
    "burn": Jump(burn(push=0.7, start=0.81, stop=1.93), ("start", "stop")),
    "relay": Jump(brakes(level=0.6, push=0.3), ("level",)),
}


def _slope(end: Callable[[float], np.ndarray], h: float = 1e-4) -> np.ndarray:
    """The derivative at zero, by differences of fourth order."""
    a, b, c, d = (end(k * h) for k in (-2, -1, 1, 2))
    slope: np.ndarray = (8 * (c - b) - (d - a)) / (12 * h)
    return slope


def _differences(jump: Jump, how: str, cell: Cell) -> None:
    run = PATHS[how]
    sol = ph.solve(jump.problem(), **run, tangent=True)
    cell.same_path("path with derivatives", sol, ph.solve(jump.problem(), **run))
    for name, value in jump.field.values.items():

        def end(change: float, name: str = name, value: float = value) -> np.ndarray:
            last: np.ndarray = ph.solve(jump.problem(**{name: value + change}), **run).momentum[-1]
            return last

        cell.close(f"derivative by {name}", sol.tangent.params[name][-1, 3:], _slope(end), 1e-6)
    for name in jump.moving:
        cell.claim(np.abs(sol.tangent.params[name][-1]).max() > 0.01, f"{name} moves nothing")
    for axis in range(3):

        def start(change: float, axis: int = axis) -> np.ndarray:
            problem = jump.problem()
            momentum = np.array(problem.momentum) + change * np.eye(3)[axis]
            other = problem.starting(attitude=problem.quaternion, momentum=momentum)
            last: np.ndarray = ph.solve(other, **run).momentum[-1]
            return last

        cell.close(f"derivative by momentum {axis}", sol.tangent.matrix[-1, 3:, 3 + axis], _slope(start), 1e-6)


def _cell(name: str, how: str) -> Callable[[Cell], None]:
    return lambda cell: _differences(JUMPS[name], how, cell)


def _steps_against_tolerance(name: str) -> Callable[[Cell], None]:
    """Derivatives of equal steps tend to those of a run to a tolerance."""

    def compared(cell: Cell) -> None:
        jump, end = JUMPS[name], STEP * 35
        one = ph.solve(jump.problem(), **PATHS["dt"], tangent=True).tangent
        other = ph.solve(jump.problem(), tol=1e-11, t_end=end, tangent=True).tangent
        cell.close("matrix", one.matrix[-1], other.matrix[-1], 1e-6)
        for parameter in jump.field.values:
            cell.close(parameter, one.params[parameter][-1], other.params[parameter][-1], 1e-6)

    return compared


def _gradient(name: str) -> Callable[[Cell], None]:
    """The gradient of a function of the end is that of the derivatives of the states."""

    def compared(cell: Cell) -> None:
        jump, run = JUMPS[name], dict(PATHS["dt"])
        tangent = ph.solve(jump.problem(), **run, tangent=True).tangent
        found = ph.gradient(_second, jump.problem(), run.pop("method"), **run)
        cell.close("by momentum", found.momentum, tangent.matrix[-1, 4, 3:], 1e-10)
        for parameter in jump.field.values:
            cell.close(parameter, found.params[parameter], tangent.params[parameter][-1, 4], 1e-10)

    return compared


def _second(momentum: Any) -> Any:
    return momentum[1]


def _ensemble(name: str) -> Callable[[Cell], None]:
    """An ensemble to a tolerance has the derivatives of its runs."""

    def compared(cell: Cell) -> None:
        jump, how = JUMPS[name], {"step_tol": 1e-8, "t_end": END, "tangent": True}
        problem = jump.problem()
        many = ph.ensemble(problem, momentum=np.stack([problem.momentum, 1.1 * np.array(problem.momentum)]), **how)
        one = ph.solve(problem, **how).tangent
        cell.close("matrix", many.tangent.matrix[-1, 0], one.matrix[-1], 1e-6)
        for parameter in jump.field.values:
            cell.close(parameter, many.tangent.params[parameter][-1, 0], one.params[parameter][-1], 1e-6)

    return compared


def ensemble_says_edges_are_held(cell: Cell) -> None:
    """An ensemble with equal steps holds the times of jumps fixed, and says so."""
    problem = JUMPS["burn"].problem()
    many = ph.ensemble(problem, "imidm", omega=[OMEGA, 1.1 * OMEGA], dt=0.1, steps=20, tangent=True)
    cell.keep("by stop", many.tangent.params["stop"])
    cell.says("held fixed")


def grazing_is_said(cell: Cell) -> None:
    """Two conditions that change together have no derivatives by their times, and that is said."""

    @ph.torque
    def both(t: Any, push: Any, first: Any, second: Any) -> Any:
        return ph.where((t > first) & (t > second), push, 0.0), 0.0, 0.0

    problem = ph.Problem(ph.Body(TENSOR), both(push=0.5, first=1.0, second=1.0), omega=OMEGA)
    found = ph.solve(problem, tol=1e-9, t_end=2.0, tangent=True).tangent.params
    cell.claim(np.isnan(found["first"][-1]).any(), "a derivative that does not exist is a number")
    cell.keep("by push", found["push"][-1])
    cell.says("depend on each other")


def _top() -> ph.Problem:
    return ph.Problem(ph.Body(TENSOR), gravity(ONE), euler=ATTITUDE, omega=OMEGA)


def flow_of_jax(cell: Cell) -> None:
    """The flow for JAX has the states of a run, and every third of them."""
    import jax

    run: dict[str, Any] = {"dt": 0.05, "steps": 7}
    with jax.enable_x64(True), jax.disable_jit():
        for every in (None, 3):
            q, m = ph.jax.flow(_top(), "strang(symrot123)", **run, every=every)()
            sol = ph.solve(_top(), "strang(symrot123)", **run, every=every or 1)
            kept = -1 if every is None else slice(None)
            cell.close_states(
                f"every={every}", (np.asarray(q), np.asarray(m)), (sol.quaternion[kept], sol.momentum[kept]), 1e-14
            )


def derivatives_of_jax(cell: Cell) -> None:
    """Derivatives by JAX are the tangents of the run, and its gradient."""
    import jax

    run: dict[str, Any] = {"dt": 0.05, "steps": 4}
    tangent = ph.solve(_top(), "strang(symrot123)", **run, tangent=True).tangent
    momentum = np.array(_top().momentum)
    with jax.enable_x64(True), jax.disable_jit():
        f = ph.jax.flow(_top(), "strang(symrot123)", **run)
        matrix = jax.jacfwd(lambda m: f(momentum=m)[1])(momentum)
        backward = jax.grad(lambda m: f(momentum=m)[1][1])(momentum)
    cell.close("by momentum, forward", np.asarray(matrix), tangent.matrix[-1, 3:, 3:], 1e-13)
    cell.close("by momentum, reverse", np.asarray(backward), tangent.matrix[-1, 4, 3:], 1e-13)
    found = ph.gradient(_second, _top(), "strang(symrot123)", **run)
    cell.close("gradient", found.momentum, np.asarray(backward), 1e-13)


CELLS: dict[str, Callable[[Cell], None]] = {
    **{f"{name}, {how}, against differences": _cell(name, how) for name in JUMPS for how in PATHS},
    **{f"{name}, equal steps against tol": _steps_against_tolerance(name) for name in JUMPS},
    **{f"{name}, gradient": _gradient(name) for name in JUMPS},
    **{f"{name}, ensemble": _ensemble(name) for name in JUMPS},
    "edges held fixed": ensemble_says_edges_are_held,
    "edges that change together": grazing_is_said,
    "flow of JAX": flow_of_jax,
    "derivatives of JAX": derivatives_of_jax,
}  # fmt: skip
"""Of derivatives across jumps and by other functions, by name."""
