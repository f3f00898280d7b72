"""What a jump of the field in the state does to tangents: the saltation matrix.

At the surface g(x, t, a) = 0 of a condition the rate of the state jumps from f- to f+. A neighbouring motion meets the
surface a little earlier or later, so its distance dx changes there, by

    dx+ = dx- + (f+ - f-) (grad g . dx- + dg/da da)/g',        g' = grad g . f- + dg/dt,

a the moments and parameters. I + (f+ - f-) grad g^T/g' is the saltation matrix (Aizerman and Gantmakher, Q. J. Mech.
Appl. Math. 11 (1958) 225-241; Leine and Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems, 2004,
chapter 7). Only the torque jumps, so f+ - f- has no rotation.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ..errors import StepError
from ..kernels.loops import COLUMNS
from ..kernels.so3 import add, cross, mul, times, unrotate
from ..numbers import floats
from ..numbers.arrays import components
from ..numbers.dual import Dual, plain, tangent
from ..physics.axes import axes
from ..physics.fields.sides import SidedField
from ..physics.problem import Problem
from ..results.derivatives import STATE
from .directions import Direction, seeds
from .integrator import torque_kernel
from .located import SHORT, placed, settled, truths
from .step_control import EPS

GRAZING = 1e-6
"""Rate at which a surface is approached, relative to the rates of the motion, below which a motion grazes it."""

ROUND_OFF = 64 * EPS
"""Jump of a torque, relative to the torque, that is only round-off: the surface is that of a kink."""

SAME = 1e-6
"""Difference of the slopes of two conditions, relative, below which they have the same surface."""


@dataclasses.dataclass(frozen=True)
class Crossings:
    """Where a run crosses surfaces of conditions at which the torque jumps.

    Attributes
    ----------
    spans : (n,) the pairs of states, in the order of the run, at whose ends it does
    jump : (n, 6) (f+ - f-)/g'
    slope : (n, 6) grad g
    leading : (n,) the condition that changes
    """

    spans: np.ndarray
    jump: np.ndarray
    slope: np.ndarray
    leading: np.ndarray

    def pass_on(self, steps: np.ndarray, first: int = 0, by_data: np.ndarray | None = None) -> None:
        """Add the jumps to the derivatives (n, 6, ...) over the pairs from `first` on, in place.

        `by_data` (n, directions) are the derivatives dg/da, where `steps` are derivatives by inertia and parameters.
        """
        here = (self.spans >= first) & (self.spans < first + len(steps))
        at = self.spans[here] - first
        change = np.einsum("ni,nij->nj", self.slope[here], steps[at])
        if by_data is not None:
            change += by_data[here]
        steps[at] += self.jump[here][:, :, None] * change[:, None, :]


class Switching:
    """The sides of the conditions between the states of a run, and its crossings.

    Parameters
    ----------
    problem : the problem with a `SidedField`
    times, rows : the states of the run; those on the surfaces are among them
    between : rows at the middle of each pair of neighbouring states
    """

    def __init__(self, problem: Problem, times: np.ndarray, rows: np.ndarray, between: np.ndarray) -> None:
        self.problem, self.times, self.rows = problem, times, rows[:, :COLUMNS]
        self.system = problem.kernel_data(floats.number)[1]
        self.middles = (times[:-1] + times[1:]) / 2
        sides = settled(problem, self.middles, between, self.middles, self.system)
        if sides is None:
            raise StepError("conditions of the field contradict each other on the way, so that it has no derivatives")
        self.sides = sides
        self.span = float(abs(times[-1] - times[0]))

    @property
    def field(self) -> SidedField:
        """The field, held on one side."""
        assert isinstance(self.problem.field, SidedField)
        return self.problem.field

    def systems(self, spans: Any) -> Any:
        """Return the kernel data of some pairs of states: arrays where they differ."""
        return placed(self.field, self.system, self.middles[spans], components(self.sides[spans]))

    @functools.cached_property
    def crossings(self) -> Crossings:
        """The crossings of surfaces at which the torque jumps."""
        self._check_start()
        spans = np.flatnonzero((self.sides[1:] != self.sides[:-1]).any(1))
        t, rows, before = self.times[spans + 1], self.rows[spans + 1], self.systems(spans)
        torque, jump = self._jump(t, rows, before, self.systems(spans + 1))
        gaps, slopes, rates = self._surfaces(t, rows, before, torque)
        speed = _speed(slopes, rows, before, torque)
        near = (self.sides[spans] != self.sides[spans + 1]) & (abs(gaps) <= SHORT * self.span * speed)
        self._check_seen(near, spans, before)
        leading = near.argmax(1)
        real = near.any(1) & _is_jump(jump, torque)
        which = np.flatnonzero(real)
        at = (which, leading[which])
        grazing = abs(rates[at]) <= GRAZING * speed[at]
        if grazing.any():
            raise StepError(
                f"the motion grazes the surface of a jump of {self.field.name} at t = {t[which[grazing][0]]:g}: a "
                "neighbouring motion may miss it, so that there are no derivatives from there on; end the run before"
            )
        self._check_one_surface(near[which], slopes[which], rates[which], t[which])
        scaled = np.zeros((len(which), STATE))
        scaled[:, 3:] = jump[which] / rates[at][:, None]
        return Crossings(spans[which], scaled, slopes[at][:, :STATE], leading[which])

    def by_data(self, directions: list[Direction]) -> np.ndarray:
        """Return dg/da (crossings, directions) at fixed states."""
        made = self.crossings
        t, rows = self.times[made.spans + 1], self.rows[made.spans + 1]
        found = np.zeros((len(made.spans), len(directions)))
        for other in dict.fromkeys(d.other for d in directions):
            here = [i for i, d in enumerate(directions) if d.other == other]
            _, system, _ = seeds(self.problem, [directions[i] for i in here], other)
            varied = tuple(tuple(_column(x) for x in part) for part in system)
            moments, sides = self.middles[made.spans], components(self.sides[made.spans])
            q, m = components(rows[:, :4]), components(rows[:, 4:7])
            q, m = (mul(q, other), unrotate(other, m)) if other else (q, m)
            values = self._gaps(t, q, m, placed(self.field, varied, moments, sides))
            slopes = np.stack([_slope(x, len(here), len(t)) for x in values], 1)
            found[:, here] = slopes[np.arange(len(t)), made.leading]
        return found

    def _gaps(self, t: Any, q: Any, m: Any, system: Any) -> Any:
        """Return g of every condition, from a state in principal axes."""
        attitude, vector, _, _ = axes(self.problem.body.has_principal_rotation, len(self.field.parameters))
        with np.errstate(all="ignore"):
            return self.field.gaps(t, attitude(q, system), vector(times(system[1], m), system), system[2])

    def _surfaces(self, t: np.ndarray, rows: np.ndarray, system: Any, torque: Any) -> tuple[Any, Any, Any]:
        """Return g, its derivatives by (d, Pi, t), and g' at some states: (states, conditions, ...)."""
        seeded = np.zeros((COLUMNS + 1, STATE + 1, len(t)))
        q, m = components(rows[:, :4]), components(rows[:, 4:7])
        for i in range(3):
            turn: Any = (0.0, *(np.eye(3)[i] / 2).tolist())
            seeded[:4, i] = mul(q, turn)
            seeded[4 + i, 3 + i] = 1.0
        seeded[COLUMNS, STATE] = 1.0
        *y, time = (Dual(1, x, seeds) for x, seeds in zip((*q, *m, t), seeded, strict=True))
        values = self._gaps(time, tuple(y[:4]), tuple(y[4:]), system)
        gaps = np.stack([np.broadcast_to(plain(x), t.shape) for x in values], 1).astype(float)
        slopes = np.stack([_slope(x, STATE + 1, len(t)) for x in values], 1)
        rate = np.stack([*_rate(rows, system, torque), np.ones(len(t))], 1)
        return gaps, slopes, np.einsum("nci,ni->nc", slopes, rate)

    def _jump(self, t: np.ndarray, rows: np.ndarray, before: Any, after: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the torque before, and what the torque after it adds, in principal axes (n, 3)."""
        kernel = torque_kernel(self.problem, floats.number)
        q, m = components(rows[:, :4]), components(rows[:, 4:7])
        with np.errstate(all="ignore"):
            made = [kernel(t, q, m, system) for system in (before, after)]
        old, new = (np.stack([np.broadcast_to(x, t.shape) for x in one], 1).astype(float) for one in made)
        return old, new - old

    def _check_start(self) -> None:
        """Refuse a start on the surface of a jump, where derivatives to both sides differ."""
        t, row, system = self.times[:1], self.rows[:1], self.systems(np.array([0]))
        for k in range(self.field.count):
            other = self.sides[:1].copy()
            other[:, k] = 1 - other[:, k]
            torque, jump = self._jump(
                t, row, system, placed(self.field, self.system, self.middles[:1], components(other))
            )
            gaps, slopes, _ = self._surfaces(t, row, system, torque)
            on_surface = abs(gaps[0, k]) <= ROUND_OFF * self.span * _speed(slopes, row, system, torque)[0, k]
            if on_surface and _is_jump(jump, torque)[0]:
                raise StepError(
                    f"the start lies on the surface of a jump of {self.field.name}, where the derivatives to its two "
                    "sides differ; start beside it"
                )

    def _check_seen(self, near: np.ndarray, spans: np.ndarray, before: Any) -> None:
        """Refuse a change of sides whose surface was not found; at an edge in time sides may change without one."""
        seen = truths(self.problem, self.times[spans + 1], self.rows[spans + 1], before)
        unseen = ~near.any(1) & (seen != self.sides[spans]).any(1)
        if unseen.any():
            raise StepError(
                f"a step near t = {self.times[spans[unseen][0]]:g} crossed a jump of {self.field.name} that was not "
                "located, so that there are no derivatives; give max_step"
            )

    def _check_one_surface(self, near: np.ndarray, slopes: np.ndarray, rates: np.ndarray, t: np.ndarray) -> None:
        """Refuse a motion through the intersection of two surfaces."""
        with np.errstate(all="ignore"):
            normal = slopes / rates[:, :, None]
        for k in np.flatnonzero(near.sum(1) > 1):
            first, *others = normal[k][near[k]]
            if any((abs(other - first) > SAME * abs(first).max()).any() for other in others):
                raise StepError(
                    f"the motion crosses two jumps of {self.field.name} at once at t = {t[k]:g}, where derivatives "
                    "depend on the direction; vary the start a little"
                )


def _column(x: Any) -> Any:
    """Return a number with tangents, for many states."""
    return Dual(1, x.value, x.tangent[:, None]) if isinstance(x, Dual) else x


def _slope(x: Any, directions: int, number: int) -> np.ndarray:
    """Return the tangents (states, directions)."""
    return np.broadcast_to(tangent(x, 1), (directions, number)).T.astype(float)


def _rate(rows: np.ndarray, system: Any, torque: np.ndarray) -> Any:
    """Return the rate of the state: omega, and Pi x omega + T."""
    m = components(rows[:, 4:7])
    omega = times(system[1], m)
    return *omega, *add(cross(m, omega), components(torque))


def _speed(slopes: np.ndarray, rows: np.ndarray, system: Any, torque: np.ndarray) -> np.ndarray:
    """Return how fast g may change at most with rates of these sizes, in any direction (states, conditions)."""
    m = rows[:, 4:7]
    omega = np.linalg.norm(m * np.array(system[1]), axis=1)
    pull = omega * np.linalg.norm(m, axis=1) + np.linalg.norm(torque, axis=1)
    turn, push = np.linalg.norm(slopes[..., :3], axis=2), np.linalg.norm(slopes[..., 3:6], axis=2)
    return np.asarray(turn * omega[:, None] + push * pull[:, None] + abs(slopes[..., 6]))


def _is_jump(jump: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return at which states a torque jumps, by more than its round-off."""
    sizes = np.linalg.norm(torque, axis=1) + np.linalg.norm(torque + jump, axis=1)
    return np.asarray(np.linalg.norm(jump, axis=1) > ROUND_OFF * sizes)
