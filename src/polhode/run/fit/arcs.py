"""Residuals of all measurements, and their derivatives, along one motion or along arcs that are joined later.

With several arcs the states at their starts are free too (multiple shooting): the end of an arc and the start of the
next differ by a gap, which is a residual with a small standard deviation.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ...errors import StepError
from ...kernels.so3 import conj, mul
from ...physics.problem import Problem
from ...results.trajectory import Trajectory
from ..solve import solve
from .measurements import Measurement, inverse_right_jacobian, right_jacobian, rotation_vector
from .parameters import Free, quaternion_of

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Standard deviations of a gap between arcs, one search after the other: in rad, and relative to the momentum."""

LOST = 1e8
"""Residual where a motion cannot be computed: such a trial is rejected."""


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """Measurements of a motion with free numbers, in arcs that begin at `nodes` (the first at the start)."""

    free: Free
    data: list[Measurement]
    step_tol: float
    nodes: tuple[float, ...]
    guess: np.ndarray
    """(arcs - 1, 7) attitude and momentum at the later nodes, from which rotations are counted."""
    gap: float = GAPS[-1]
    """Standard deviation of a gap between arcs."""

    @property
    def size(self) -> int:
        """Number of free numbers, with those of the nodes."""
        return self.free.size + 6 * (len(self.nodes) - 1)

    @functools.cached_property
    def last(self) -> float:
        """Time of the last measurement."""
        return max(float(one.t[-1]) for one in self.data)

    @functools.cached_property
    def start(self) -> np.ndarray:
        """The first guess."""
        nodes = np.zeros((len(self.nodes) - 1, 6))
        nodes[:, 3:] = self.guess[:, 4:]
        return np.concatenate([self.free.start, nodes.ravel()])

    @functools.cached_property
    def momentum(self) -> float:
        """Scale of the momentum."""
        return float(np.linalg.norm(self.free.problem.momentum)) or 1.0

    def residuals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all residuals, and their derivatives by x."""
        problem = self.free.problem_at(x)
        values, slopes = [], []
        parts: list[list[Any]] = [[] for _ in self.data]
        for j, begin in enumerate(self.nodes):
            sol, by_state, by_omega, times = self._arc(x, problem, j)
            for i, one in enumerate(self.data):
                end = self.nodes[j + 1] if j + 1 < len(self.nodes) else np.inf
                here = (one.t >= begin) & (one.t < end)
                if here.any():
                    at = np.searchsorted(times, one.t[here])
                    parts[i].append(self._measured(i, here, problem, sol, at, by_state, by_omega, x))
            if j + 1 < len(self.nodes):
                value, slope = self._gap(x, j, sol, by_state[-1])
                values.append(value)
                slopes.append(slope)
        for part in parts:
            values += [value.ravel() for value, _ in part]
            slopes += [slope.reshape(-1, self.size) for _, slope in part]
        return np.concatenate(values), np.concatenate(slopes)

    def _arc(self, x: np.ndarray, problem: Problem, j: int) -> tuple[Trajectory, np.ndarray, np.ndarray, np.ndarray]:
        """Return the states of an arc at its measurements and at its end, with derivatives by all free numbers."""
        begin = self.nodes[j]
        end = self.nodes[j + 1] if j + 1 < len(self.nodes) else self.last
        wanted = [one.t[(one.t >= begin) & (one.t <= end)] for one in self.data]
        times = np.unique(np.concatenate([[begin, end], *wanted]))
        if j:
            q, m = self._node(x, j)
            problem = problem.starting(attitude=q, momentum=m, t0=begin)
        if len(times) == 1:  # nothing but the start
            sol = solve(problem, step_tol=self.step_tol, t_end=begin + 1.0, tangent=True).at(times)
        else:
            sol = solve(problem, step_tol=self.step_tol, times=times, tangent=True)
        own, by_omega = self.free.slopes(x, problem, sol, first=j == 0)
        by_state = np.zeros((len(times), 6, self.size))
        by_state[..., : self.free.size] = own
        if j:
            assert sol.tangent is not None
            place = self._place(j)
            J = right_jacobian(x[None, place : place + 3])[0]
            by_state[..., place : place + 3] = sol.tangent.matrix[..., :3] @ J
            by_state[..., place + 3 : place + 6] = sol.tangent.matrix[..., 3:]
        return sol, by_state, by_omega, times

    def _place(self, j: int) -> int:
        return self.free.size + 6 * (j - 1)

    def _node(self, x: np.ndarray, j: int) -> tuple[Any, np.ndarray]:
        place, guess = self._place(j), self.guess[j - 1]
        return mul(tuple(guess[:4]), quaternion_of(x[place : place + 3])), x[place + 3 : place + 6]

    def _gap(self, x: np.ndarray, j: int, sol: Trajectory, by_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals (6,) between the end of arc j and the next node, and their derivatives."""
        q, m = self._node(x, j + 1)
        turn = np.array([mul(conj(q), tuple(sol.quaternion[-1]))])
        r = rotation_vector(turn)
        J, place = inverse_right_jacobian(r)[0], self._place(j + 1)
        size = self.gap * np.array([1.0] * 3 + [self.momentum] * 3)
        value = np.concatenate([r[0], sol.momentum[-1] - m])
        slope = np.concatenate([J @ by_state[:3], by_state[3:]])
        # the node rotates by d' in its own axes: the residual changes by -J_left^-1 d' = -J^T d'
        slope[:3, place : place + 3] -= J.T @ right_jacobian(x[None, place : place + 3])[0]
        slope[3:, place + 3 : place + 6] -= np.eye(3)
        return value / size, slope / size[:, None]

    def _measured(
        self, i: int, here: np.ndarray, problem: Problem, sol: Trajectory, at: np.ndarray, by_state: np.ndarray,
        by_omega: np.ndarray, x: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return residuals (n, k) of one measurement at some of its times, and their derivatives (n, k, size)."""
        one = self.data[i]
        found = one.at(here).residuals(problem, sol_at(sol, at), self.free.bias(x, i))
        slope = np.einsum("nks,nsp->nkp", found.by_state, by_state[at])
        slope[..., : self.free.size] += np.einsum("nkw,nwp->nkp", found.by_omega, by_omega[at])
        if found.by_bias is not None:
            slope[..., self.free.places[f"bias {i}"]] += found.by_bias
        return found.value, slope

    def tried(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `residuals`, or large ones where the motion cannot be computed."""
        try:
            return self.residuals(x)
        except (StepError, ArithmeticError, ValueError, np.linalg.LinAlgError):
            rows = sum(one.sigma.size for one in self.data) + 6 * (len(self.nodes) - 1)
            return np.full(rows, LOST), np.zeros((rows, self.size))


def sol_at(sol: Trajectory, at: np.ndarray) -> Trajectory:
    """Return some states of a trajectory."""
    from ...results.trajectory import selected

    return Trajectory(selected(sol, at), sol.info)
