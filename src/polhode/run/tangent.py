"""The tangent of a run: derivatives of its states by the initial state, the inertia and the parameters of the field.

With x = (d, Pi), where d in R exp(hat d) is a small rotation in body axes, the tangent of a step is

    dx_1 = A dx_0 + S da,        A = dx_1/dx_0,    S = dx_1/da,

a the moments and parameters. Both come from the kernels of the step on dual numbers, from each stored state to the
next, and products of them are the derivatives along the run. So they are exact for the discrete steps, whatever chose
the lengths of these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError, StepError
from ..kernels.loops import COLUMNS
from ..methods import Method
from ..methods.adaptive.verner87 import verner87
from ..methods.families.jacobi import jacobi
from ..physics.fields.sides import conditions_of, has_conditions
from ..physics.problem import Problem
from ..physics.units import ScaledRun, units_of
from ..physics.validate import check_between, real_array
from ..results.derivatives import STATE, Derivatives, by_blocks, symplectic_defect
from ..results.observables import matrices
from ..results.trajectory import Trajectory
from .adaptive import Path
from .dense import Dense, path_of
from .directions import Direction, by_name, directions_of, seeds, to_tensor, varied_parameters
from .integrator import check_formula
from .located import is_located
from .moving_edges import inside, jumps_of, moving_edges
from .noise import without_chain, without_noise
from .parts import has_states
from .saltation import Switching
from .tangent_steps import Pairs, Spans, rotation_and_momentum, turned, turned_back

ONE_BODY = "use ph.solve or ph.lyapunov with a one-step method or a tolerance"
"""What locates the jumps of a field in the state."""


def check_smooth(problem: Problem, what: str, located: bool = False, otherwise: str = ONE_BODY) -> None:
    """Refuse a torque whose derivatives are missing or jump with the state, unless its jumps are located.

    `otherwise` is what locates them.
    """
    check_formula(problem, what)
    field = problem.field
    if field is None or has_states(problem) or not has_conditions(field) or (located and conditions_of(field)):
        return
    which = "==, tables of the state" if located else "where, abs, comparisons of R or omega"
    instead = "" if located else f"{otherwise}, or "
    raise InputError(
        f"{what} needs a torque that is smooth in the state, and {field.name} has conditions on it ({which}), at which "
        f"derivatives jump; {instead}{'use ' if located else ''}a smooth formula"
    )


def check_tangent(problem: Problem, method: Method, located: bool = False) -> None:
    """Refuse what has no tangent from one stored state to the next; `located` says that no step crosses a jump."""
    what = "tangent=True"
    check_smooth(problem, what, located)
    if has_states(problem):
        raise InputError(f"{what} is not available for a field with states of its own; leave out `tangent`")
    without_noise(method, what)
    without_chain(method, what)
    if not method.has_step:
        raise InputError(f"{what} needs steps, and {method.name} has none; choose another method, or tol alone")
    if method.memory or method.has_own_time or method.before is not None:
        carried = "variables of its own between steps" if method.before is None else "a change of variables"
        raise InputError(
            f"{what} needs steps from state to state, and {method.name} has {carried}; use its base method"
        )


LARGEST_POWER = 960
"""Largest binary exponent of powers of the rate of a motion in the formulas of a step."""


def _check_units(problem: Problem, method: Method, path: Path) -> None:
    """Refuse derivatives of steps, which are taken in the user's units, where these are far from those of the motion.

    Powers of angular velocities that underflow would be missing.
    """
    exponent = abs(units_of(problem, float(path.times[-1] - path.times[0])).time)
    if exponent * method.asks.powers > LARGEST_POWER:
        raise InputError(
            f"tangent=True takes derivatives of the steps of {method.name} in the units of the problem, and powers of "
            "its angular velocities leave the range of doubles; choose a unit of time in which they are of moderate "
            "size"
        )


class Tangent(Derivatives):
    """Derivatives of the states of a run, in body axes: a rotation d in R exp(hat d), and the body momentum.

    Attributes
    ----------
    matrix : (n, 6, 6) derivatives by the initial state (d, Pi), the state-transition matrix
    inertia : (n, 6, 3) by the principal moments, at fixed initial state; for a body given by a tensor that is not
        diagonal (n, 6, 3, 3), symmetric G with dx = sum G_ij dI_ij for every symmetric dI
    params : by the parameters of the field, by name, each (n, 6) and the shape of the parameter

    Examples
    --------
    >>> sol = ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=10, tangent=True)
    >>> sol.tangent.matrix.shape
    (11, 6, 6)
    """

    def __init__(
        self, pairs: Pairs, path: Path, longest: float, every: int = 1, seen: np.ndarray | None = None,
        switching: Switching | None = None,
    ) -> None:  # fmt: skip
        self._pairs, self._path, self._longest, self._every = pairs, path, longest, every
        self._switching = switching
        self._path_t, self._rows = path.times, path.rows[:, :COLUMNS]
        self.t = path.times if seen is None else seen
        self._whole: dict[Any, np.ndarray] = {}

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Derivatives by the initial state (n, 6, 6)."""
        A, found = self._axes, self._seen(None)
        return found if A is None else by_blocks(A, by_blocks(A, found.swapaxes(1, 2)).swapaxes(1, 2))

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """Derivatives by the inertia (n, 6, 3), or (n, 6, 3, 3) for a tensor that is not diagonal."""
        problem = self._pairs.problem
        if problem.body.linear_axis is not None:
            raise InputError(
                "the moments (0, I, I) of a linear body cannot vary independently; use its other derivatives"
            )
        found = self._by_data("inertia")
        return to_tensor(found, problem.body.axes) if problem.body.has_principal_rotation else found

    @functools.cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Derivatives by the parameters of the field, by name; empty if it has none."""
        problem = self._pairs.problem
        return by_name(self._by_data("params"), problem) if varied_parameters(problem) else {}

    @functools.cached_property
    def error(self) -> float:
        """Estimated relative error of the matrix at the end due to the steps: what halving all steps changes."""
        halves, whole = self._with_halved_steps(), self._total(None)[-1]
        return float(abs(halves - whole).max() / abs(halves).max())

    @property
    def symplectic_defect(self) -> np.ndarray:
        """Largest entry of A^T W(Pi) A - W(Pi_0) at each time; round-off for symplectic methods in a potential.

        W is the canonical form in body axes: W((d, p), (e, r)) = d.r - e.p + Pi.(d x e).
        """
        start, *others = (rows[:, 4:7] for rows in (self._rows[:1], self._seen_rows()))
        A = np.concatenate([np.eye(STATE)[None], self._seen(None)])
        return symplectic_defect(A, np.concatenate([start, *others]))[1:]

    def growth_rates(self, block: int) -> np.ndarray:
        """Return (n, 6) the logarithms of the growth of six directions over time, NaN at the start.

        Tangents of at most `block` steps are in memory.
        """
        from ..compile.batch.tangents import orthonormal_chain
        from ..compile.lazily import program

        t, rows, size = self._path_t, self._rows, np.ones(STATE)
        size[3:] = float(np.linalg.norm(rows[:, 4:7], axis=1).max()) or 1.0
        run, basis = program(lambda: orthonormal_chain, "growth of tangents").run, _frame()
        spans, found = self._all(), np.zeros((len(t), STATE))
        for begin in range(0, len(t) - 1, block):
            some = slice(begin, min(begin + block, len(t) - 1))
            steps = self._by_state(spans.some(some), begin) * size / size[:, None]
            run(np.ascontiguousarray(steps), basis, found[some.start : some.stop + 1])
        with np.errstate(invalid="ignore"):
            return np.asarray(found / abs(t - t[0])[:, None])

    def within_steps(self, nodes: tuple[float, ...], block: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield blocks of steps: their ends, and their tangents (n, 6, 6) in principal axes, with jumps at the ends.

        The third are the tangents (n, nodes, 6, 6) up to parts of each step, without these jumps.
        """
        spans = self._all()
        for begin in range(0, len(spans.starts), block):
            some = spans.some(slice(begin, begin + block))
            length = some.ends - some.starts
            inner = [self._pairs.by_state(some._replace(ends=some.starts + c * length)) for c in nodes]
            yield some.ends, self._by_state(some, begin), np.stack(inner, 1)

    def at_end(self, directions: list[Direction], other: Any = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return the last state (7,), and its derivatives (6, directions), in principal axes or in `other` ones."""
        steps = np.concatenate([self._steps, self._by_data_over_steps(directions)], 2)
        slopes = self._chain(steps, self._initial(directions))[-1]
        if other:
            slopes = by_blocks(matrices(np.array([other]))[0].T, slopes)
        return turned(self._rows[-1:], other)[0], slopes

    def at(self, t: Any) -> Tangent:
        """Return the derivatives at other times of the run."""
        seen = np.atleast_1d(real_array(t, "t must be a time or an array of times", key="t"))
        return Tangent(self._pairs, self._path, self._longest, self._every, seen, self._switching)

    # --- along the run ----------------------------------------------------------------------------

    @property
    def _axes(self) -> np.ndarray | None:
        """The principal axes, columns; None if they are the user's."""
        body = self._pairs.problem.body
        return np.asarray(body.axes) if body.has_principal_rotation else None

    def _by_data(self, name: str) -> np.ndarray:
        """Return derivatives by inertia or parameters in the user's axes.

        If principal axes rotate by a, then d = A (d_p - a) and dPi = A (dPi_p + a x Pi_p).
        """
        tangents, rows = self._seen(name).copy(), self._seen_rows()
        axes = np.array([d.axes if not d.other else (0, 0, 0) for d in self._directions(name)], float)
        tangents[:, :3] -= axes.T
        tangents[:, 3:] += np.cross(axes[None], rows[:, None, 4:7]).swapaxes(1, 2)
        return tangents if self._axes is None else by_blocks(self._axes, tangents)

    def _directions(self, name: str) -> list[Direction]:
        return directions_of(name, self._pairs.problem)

    def _all(self, factor: int = 1) -> Spans:
        """Return the pairs of neighbouring states."""
        t = self._path_t
        return Spans(
            t[:-1], t[1:], factor * self._parts(t[1:] - t[:-1]), self._rows[:-1], self._sides(np.arange(len(t) - 1))
        )

    def _sides(self, which: np.ndarray) -> np.ndarray:
        """Return the sides after some stored states."""
        return np.empty((len(which), 0)) if self._switching is None else self._switching.sides[which]

    def _with_halved_steps(self) -> np.ndarray:
        """Return the matrix at the end of steps of half the length."""
        return self._chain(self._by_state(self._all(2)), np.eye(STATE))[-1]

    def _by_state(self, spans: Spans, first: int = 0) -> np.ndarray:
        """Return the derivatives over neighbouring states from `first` on, with the jumps at their ends."""
        steps = self._pairs.by_state(spans)
        if self._switching is not None:
            self._switching.crossings.pass_on(steps, first)
        return steps

    def _parts(self, spans: np.ndarray) -> np.ndarray:
        """Return the numbers of steps in spans of time."""
        return np.maximum(1, np.ceil(abs(spans) / self._longest - 1e-6)).astype(int)

    def _total(self, name: str | None) -> np.ndarray:
        """Return the derivatives at all states of the path: by the initial state, or by what has a name."""
        if name not in self._whole:
            steps, first = self._steps, np.eye(STATE)
            if name is not None:
                directions = self._directions(name)
                steps = np.concatenate([steps, self._by_data_over_steps(directions)], 2)
                first = self._initial(directions)
            self._whole[name] = self._chain(steps, first)
        return self._whole[name]

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        return self._by_state(self._all())

    def _by_data_over_steps(self, directions: list[Direction]) -> np.ndarray:
        """Return the derivatives by inertia or parameters over neighbouring states, with the jumps at their ends."""
        spans = self._all()
        steps = self._pairs.by_data(spans, directions)
        if self._switching is not None:
            self._switching.crossings.pass_on(steps, by_data=self._switching.by_data(directions))
        self._move_edges(steps, spans, directions)
        return steps

    def _move_edges(self, steps: np.ndarray, spans: Spans, directions: list[Direction]) -> None:
        """Add what parameters that move jumps in time do, to the derivatives (n, 6, directions) over spans."""
        problem, (t0, end) = self._pairs.problem, self._path_t[[0, -1]].tolist()
        moving = moving_edges(problem, directions, t0, end)
        if moving is None:
            return
        which, at, left = inside(moving, spans.starts, spans.ends)
        edges, here = moving.times[which], spans.some(at)
        rows = self._pairs.ends(here._replace(ends=edges, parts=self._parts(edges - here.starts)))
        jumps = jumps_of(problem, moving.some(which), rows, directions)
        ahead = here._replace(starts=edges, rows=rows, parts=self._parts(here.ends - edges)).some(left)
        jumps[left] = self._pairs.by_state(ahead) @ jumps[left]
        np.add.at(steps, at, jumps)

    def _initial(self, directions: list[Direction]) -> np.ndarray:
        """Return the tangents of the initial state in principal axes: these may rotate in the body."""
        found = np.empty((STATE, len(directions)))
        for i, direction in enumerate(directions):
            (q, m), _, _ = seeds(self._pairs.problem, [direction], direction.other)
            row = np.array([[x.value, x.tangent[0]] for x in (*q, *m)])
            found[:, i] = turned_back(rotation_and_momentum(row[None])[0], direction.other)[:, 0]
        return found

    def _chain(self, steps: np.ndarray, first: np.ndarray) -> np.ndarray:
        from ..compile.batch.tangents import chain
        from ..compile.lazily import program

        total, run = np.empty((len(steps) + 1, *first.shape)), program(lambda: chain, "chain of tangents").run
        for begin in range(0, max(1, len(steps)), CHAINED):
            some = np.ascontiguousarray(steps[begin : begin + CHAINED])
            run(some, first if begin == 0 else total[begin].copy(), total[begin : begin + 1 + len(some)])
        return total

    @functools.cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """The stored state before each time, and whether the time is between two states."""
        t, sign = self._path_t, np.sign(self._path_t[-1] - self._path_t[0]) or 1.0
        check_between(t[0], t[-1], self.t, self.t)
        first = np.clip(np.searchsorted(sign * t, sign * self.t, side="right") - 1, 0, len(t) - 1)
        between_two = t[first] != self.t
        if between_two.any() and self._every > 1:
            raise InputError("derivatives between the steps need every step; leave out `every`")
        return first, between_two

    def _within(self) -> Spans:
        """Return the pairs of a stored state and a time after it."""
        first, between_two = self._places
        at = first[between_two]
        starts, ends = self._path_t[at], self.t[between_two]
        return Spans(starts, ends, self._parts(ends - starts), self._rows[at], self._sides(at))

    def _seen(self, name: str | None) -> np.ndarray:
        """Return derivatives at the times, in principal axes."""
        total = self._total(name)
        if self.t is self._path_t:
            return total
        first, between_two = self._places
        found = total[first]
        if between_two.any():
            found[between_two] = self._after(found[between_two], name)
        return found

    def _after(self, tangents: np.ndarray, name: str | None) -> np.ndarray:
        """Return derivatives at the times between stored states, from those at the states before them."""
        spans = self._within()
        found = self._pairs.by_state(spans) @ tangents
        if name is None:
            return found
        directions = self._directions(name)
        by_data = self._pairs.by_data(spans, directions)
        self._move_edges(by_data, spans, directions)
        return found + by_data

    def _seen_rows(self) -> np.ndarray:
        """Return the states at the times, in principal axes."""
        if self.t is self._path_t:
            return self._rows
        first, between_two = self._places
        found = self._rows[first].copy()
        if between_two.any():
            found[between_two] = self._rows_after()
        return found

    def _rows_after(self) -> np.ndarray:
        """Return the states at the times between stored states."""
        return self._pairs.ends(self._within())


def _frame() -> np.ndarray:
    """Return an orthonormal frame (6, 6) whose directions are not special for any axis."""
    frame = np.fromfunction(lambda i, j: np.cos(1 + 2.7 * i + 1.3 * j + i * j), (STATE, STATE))
    return np.linalg.qr(frame)[0]


CHAINED = 1 << 16
"""Steps whose derivatives are multiplied between two looks for an interruption."""

SHORT = 0.1
"""Longest step in radians where steps follow from an exact solution, not from a tolerance."""


def with_tangent(problem: Problem, method: Method, sol: Trajectory, steps: Any = None) -> Trajectory:
    """Add the tangent to a run whose states, or each k-th of them, are in memory.

    An exact solution of a free body has no steps. Its formulas have no derivatives at equal moments or at rest, so
    short steps of a pair take their place. `steps` are those of a fixed-step run that locates jumps.
    """
    if steps is not None:
        return _with_located_tangent(problem, method, sol, steps)
    path = sol.dense.path if isinstance(sol.dense, Dense) else path_of(problem, sol)
    longest, held = abs(sol.dt) or math.inf, sol.dt == 0
    if method.name == jacobi.name and held:
        method = verner87
        speeds = np.linalg.norm(sol.omega, axis=1)
        longest = SHORT / speeds.max() if speeds.any() else math.inf
    located = isinstance(sol.dense, Dense) and is_located(sol.dense.run)
    if held and not located and problem.field is not None and conditions_of(problem.field):
        raise StepError(
            f"tangent=True needs steps that end on the jumps of {problem.field.name}, and no such steps reached the "
            "tolerance; give step_tol, or a larger tol"
        )
    check_tangent(problem, method, located)
    _check_units(problem, method, path)
    pairs = Pairs(problem, method, held, located, None if held else float(path.times[-1]))
    switching = _switching(pairs, path, path, sol.dense.run) if isinstance(sol.dense, Dense) and located else None
    sol.tangent = Tangent(pairs, path, longest, sol.info.every, switching=switching)
    return sol


def _with_located_tangent(problem: Problem, method: Method, sol: Trajectory, steps: ScaledRun) -> Trajectory:
    """Add the tangent to a run with equal steps, which are made in parts where a condition changes."""
    check_tangent(problem, method, located=True)
    inner = steps.run.path(float(steps.units.times(sol.dt)), sol.info.steps)
    parts = steps.run.in_parts(inner.times, inner.rows)
    if (parts.which < 0).any():
        raise StepError(
            f"tangent=True needs steps that end on the jumps of {problem.field}, and the motion slides along one; make "
            "the jump a steep slope (tanh)"
        )
    path, grid = steps.back(Path(parts.times, parts.rows)), steps.back(inner)
    _check_units(problem, method, path)
    pairs = Pairs(problem, method, True, True)
    sol.tangent = Tangent(pairs, path, math.inf, seen=sol.t, switching=_switching(pairs, path, grid, steps))
    return sol


def _switching(pairs: Pairs, path: Path, grid: Path, steps: Any) -> Switching:
    """Return the sides along a path; `steps` make the states between those of the grid."""
    middles = (path.times[:-1] + path.times[1:]) / 2
    return Switching(pairs.inner, path.times, path.rows, steps.state_at(middles, grid.times, grid.rows))
