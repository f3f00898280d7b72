"""Derivatives of the states of a run under sampled-data control: of the closed loop, with its controller.

A sample z = f(t, R, omega, z) is a function of the state before it, like a step. Both are evaluated on dual numbers,
from each stored state to the next, so the derivatives are exact for the discrete steps and samples. Comparisons use
values: where a limit acts, the derivative is that of the side taken. A pulse of a thruster ends at a time that depends
on the state, and steps end there, with lengths that are dual numbers.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..kernels.loops import COLUMNS
from ..kernels.unroll import unrolled_kernel
from ..methods import Method
from ..numbers import floats
from ..physics.control.controller import CLOCK, PERIOD, TORQUE, Controller
from ..physics.fields.kernels import formula_kernel
from ..physics.fields.parameters import leaves_of
from ..physics.fields.sides import has_conditions
from ..physics.fields.states import places
from ..physics.problem import Problem
from ..results.derivatives import STATE
from ..results.trajectory import Trajectory
from .adaptive import Path
from .control import full_names, sampling_of, with_controller
from .cut_steps import with_edges
from .dense import Dense, path_of
from .directions import Direction, by_name, directions_of, seeds, table, varied_parameters
from .moving_edges import warn_of_fixed_edges
from .parts import Commands
from .system import System
from .tangent import Tangent, check_tangent
from .tangent_steps import Pairs, in_batches, rotation_and_momentum, turned, turned_back

FIXED = (PERIOD, CLOCK, TORQUE)
"""Parameters of a controller without a derivative: the times of its samples, and what the first one replaces."""

AT_BREAK = 1e-11
"""Distance in periods between the end of a step and of a pulse that is round-off: see `sampled.WHOLE`."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Directions whose tangents are computed together: the data of the run, and rows in the same principal axes."""

    data: np.ndarray
    rows: np.ndarray
    other: Any
    places: list[int]
    """Where they stand among all directions."""


@dataclasses.dataclass(frozen=True, eq=False)
class ClosedLoop:
    """Derivatives along the path of a run: every step, and what its controller held from then on."""

    problem: Problem
    """The problem with its controller."""
    system: System
    """The system of the run, whose steps end at the edges of the field."""
    path: Path
    sampled: np.ndarray
    """Which of the states are those of samples."""

    def groups(self, directions: list[Direction]) -> list[Group]:
        """Return the directions in groups of a width that is compiled."""
        return [
            Group(table(*seeds(self.system.problem, [directions[i] for i in some], other)[:2], width),
                  np.hstack([turned(self.path.rows[:, :COLUMNS], other), self.path.rows[:, COLUMNS:]]), other, some)
            for other, some, width in in_batches(directions)
        ]  # fmt: skip

    def along(self, group: Group, parts: np.ndarray) -> np.ndarray:
        """Return values and tangents of all states: (n, 7 + states, 1 + width)."""
        from ..compile.threads import elsewhere

        output = np.empty((*group.rows.shape, group.data.shape[1]))
        run = self._program(group, "along")
        given = self.path.times, parts, self.sampled, group.rows, group.data, self._columns, output
        (reached,) = elsewhere(lambda begin, end, stop: run(*given, stop), int(parts.sum()))
        self._check(self.path.times[reached], reached == len(output) - 1, output)
        return output

    def between(self, group: Group, tangents: np.ndarray, first: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return values and tangents at times after the states `first`."""
        from ..compile.threads import elsewhere

        output, ones = np.empty((len(ends), *tangents.shape[1:])), np.ones(len(ends), int)
        starts, run = self.path.times[first], self._program(group, "between")
        given = first, starts, ends, ones, group.rows, tangents, group.data, self._columns, output
        (reached,) = elsewhere(lambda begin, end, stop: run(*given, stop), len(ends))
        self._check(starts[min(reached, len(starts) - 1)], reached == len(ends), output)
        return output

    @property
    def _columns(self) -> tuple[Any, ...]:
        return tuple(self.system.commands.field.columns.values())

    def _check(self, t: float, fine: bool, output: np.ndarray) -> None:
        name = self.system.method.name
        if not fine:
            raise StepError(f"the step of {name} from t = {t:g} failed with tangents")
        if not np.isfinite(output).all():
            raise StepError(
                f"the formulas of {name} or of the controller have no finite derivative at this motion (equal moments, "
                "a body at rest, a square root of zero); use another method or another formula"
            )

    def _program(self, group: Group, which: str) -> Any:
        from ..compile.batch import tangents

        system, commands, width = self.system, self.system.commands, group.data.shape[1] - 1
        there, parameters, columns = (
            places(commands.field),
            len(group.data) - COLUMNS - 6,
            tuple(commands.field.columns),
        )
        first = unrolled_kernel("system", f"({''.join(f'system[2][{i}], ' for i in there)})")

        def build() -> Any:
            made = tangents.closed_loop(
                system.step(), system.torque(), commands.sample(), first, system.space, len(there), parameters,
                columns, width,
            )  # fmt: skip
            return getattr(made, which)

        return system.built(build, "tangents under control", which, width, columns, *commands.sampled_key)[0]


class ControlledTangent(Tangent):
    """Derivatives of the states of a run under control, as `Tangent`: of the closed loop.

    `params` has the parameters of the field, of the controller and its actuators, and initial values of its memory;
    not the period, which would move the samples.
    """

    def __init__(self, closed: ClosedLoop, seen: np.ndarray | None = None, known: Any = None) -> None:
        super().__init__(Pairs(closed.problem, closed.system.method, False), closed.path, np.inf, seen=seen)
        self._closed = closed
        self._known: dict[Any, list[tuple[Group, np.ndarray]]] = {} if known is None else known

    @functools.cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Derivatives by the parameters of field and controller, by name."""
        problem, varied = self._pairs.problem, varied_parameters(self._pairs.problem)
        warn_of_fixed_edges(problem, "those of a closed loop are computed along its steps")
        given = self._by_data("params")
        found = np.zeros((*given.shape[:-1], len(varied)))
        found[..., [varied.index(d.parameter) for d in self._directions("params")]] = given
        assert problem.field is not None
        fixed = full_names(problem.field, FIXED)
        return {name: x for name, x in by_name(found, problem).items() if name not in fixed}

    def at(self, t: Any) -> ControlledTangent:
        """Return the derivatives at other times of the run."""
        return ControlledTangent(self._closed, np.atleast_1d(np.asarray(t, float)), self._known)

    def _directions(self, name: str | None) -> list[Direction]:
        problem = self._pairs.problem
        if name is None:
            return _of_state(problem)
        found, field = directions_of(name, problem), problem.field
        if name != "params":
            return found
        assert field is not None
        fixed, owners = full_names(field, FIXED), [n for n, x in field.values.items() for _ in leaves_of(x)]
        return [d for d in found if owners[d.parameter] not in fixed]

    def _runs(self, name: str | None, factor: int = 1) -> list[tuple[Group, np.ndarray]]:
        """Return the groups of directions with the tangents of all states."""
        closed = self._closed
        parts = np.full(len(closed.path.times) - 1, factor)
        return [(group, closed.along(group, parts)) for group in closed.groups(self._directions(name))]

    def _total(self, name: str | None) -> np.ndarray:
        if name not in self._known:
            self._known[name] = self._runs(name)
        return self._all_states(self._known[name])

    def _all_states(self, runs: list[tuple[Group, np.ndarray]]) -> np.ndarray:
        """Return rotations and momenta (n, 6, directions) of the tangents of all directions, in principal axes."""
        found = np.empty((len(runs[0][1]), STATE, sum(len(group.places) for group, _ in runs)))
        for group, output in runs:
            tangents = rotation_and_momentum(output[:, :COLUMNS])[..., : len(group.places)]
            found[:, :, group.places] = turned_back(tangents, group.other)
        return found

    def _with_halved_steps(self) -> np.ndarray:
        return self._all_states(self._runs(None, 2))[-1]

    def _after(self, tangents: np.ndarray, name: str | None) -> np.ndarray:
        return self._all_states(self._within_steps(name))

    def _within_steps(self, name: str | None) -> list[tuple[Group, np.ndarray]]:
        first, between_two = self._places
        at, ends = first[between_two], self.t[between_two]
        return [(group, self._closed.between(group, output, at, ends)) for group, output in self._known[name]]

    def _rows_after(self) -> np.ndarray:
        self._total(None)
        return self._within_steps(None)[0][1][:, :COLUMNS, 0]


def _of_state(problem: Problem) -> list[Direction]:
    """Return the six directions of the initial state: rotations about the principal axes, and momenta along them."""
    axes = np.asarray(problem.body.axes).T if problem.body.has_principal_rotation else np.eye(3)
    units = [tuple(map(float, axis)) for axis in axes]
    return [Direction(attitude=x) for x in units] + [Direction(momentum=x) for x in units]


def check(problem: Problem, control: Controller, period: float, method: Method) -> None:
    """Refuse a controller that is no formula, a field with jumps in the state, and what has no tangent anyway."""
    field = problem.field
    if field is not None and not field.opaque and not field.states and has_conditions(field):
        raise InputError(
            f"tangent=True with control needs a field that is smooth in the state, and {field.name} has conditions on "
            "it (where, abs, comparisons of R or omega), where the derivatives would jump; use a smooth formula"
        )
    check_tangent(problem, method)
    Commands(with_controller(problem, control, period)).check_formula("tangent=True")


def _at_breaks(law: Commands, path: Path) -> np.ndarray:
    """Return which states, but the last, are where a thruster is switched off: adaptive steps end there.

    This time depends on the state before, so it must be met within a step.
    """
    found = np.zeros(len(path.times), dtype=bool)
    if law.control.breaks_text is None:
        return found
    text, _ = law.control.breaks_text
    numbers = dict(zip(places(law.field), path.rows[:-1, COLUMNS:].T, strict=True))
    left = formula_kernel(text, floats.number)(tuple(numbers.get(i, x) for i, x in enumerate(law.field.parameters)))
    for time in left:
        off = np.abs(path.times[:-1] + time - path.times[1:])
        found[1:] |= (time > 0) & (off <= AT_BREAK * law.control.values[PERIOD])
    found[-1] = False
    return found


def with_tangent(problem: Problem, control: Controller, period: float, method: Method, sol: Trajectory) -> Trajectory:
    """Add the tangent to a run under control, all of whose steps are in memory."""
    inner = with_controller(problem, control, period)
    path = sol.dense.path if isinstance(sol.dense, Dense) else path_of(inner, sol)
    system = System(with_edges(inner, float(path.times[-1])), method)
    sampled = sampling_of(inner, period).are_samples(path.times)
    chosen = ~_at_breaks(system.commands, path) | sampled
    some = dataclasses.replace(path, times=path.times[chosen], rows=path.rows[chosen])
    seen = None if chosen.all() else path.times
    sol.tangent = ControlledTangent(ClosedLoop(inner, system, some, sampled[chosen]), seen)
    for event in sol.events:
        event.tangent = sol.tangent.at(event.t)
    return sol
