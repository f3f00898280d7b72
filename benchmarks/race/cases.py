"""What is raced: problems with an end time and a reference attitude, and their equations as one writes them by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

import polhode as ph
from polhode.analysis import bench
from polhode.analysis.reference import flow
from polhode.results.observables import matrices

TARGETS = (1e-3, 1e-6, 1e-9, 1e-12)
DIGITS = 18


@dataclasses.dataclass
class Case:
    """A body and a field, an end time, and how far new initial states lie from the named one."""

    name: str
    problem: Any
    end: float
    slope: Callable[[Any], Any] | None
    spread: float = 0.1

    @property
    def moments(self) -> tuple[float, ...]:
        """Principal moments; the bodies of the race are given in principal axes."""
        return tuple(float(x) for x in self.problem.body.moments)

    def starts(self, count: int, seed: int) -> np.ndarray:
        """Initial states that nobody has seen: quaternion and angular velocity, (count, 7)."""
        rng, start = np.random.default_rng(seed), self.problem
        q = np.array(start.quaternion) + self.spread * rng.normal(size=(count, 4))
        w = start.omega + self.spread * np.linalg.norm(start.omega) * rng.normal(size=(count, 3))
        return np.concatenate([q / np.linalg.norm(q, axis=1, keepdims=True), w], 1)

    def started(self, start: np.ndarray) -> Any:
        """The problem with another initial state."""
        return ph.Problem(self.problem.body, self.problem.field, attitude=start[:4], omega=start[4:])

    def quaternion_and_momentum(self, start: np.ndarray) -> Any:
        """The initial state as two tuples."""
        return tuple(start[:4].tolist()), tuple((start[4:] * self.moments).tolist())

    def reference(self, start: np.ndarray) -> np.ndarray:
        """The attitude at the end, by Taylor series in many digits."""
        q, _ = flow(self.started(start), self.end, digits=DIGITS)
        return np.array([float(x) for x in q])


def error(quaternion: Any, reference: np.ndarray) -> float:
    """Frobenius norm of R - R_ref."""
    q = np.asarray(quaternion, dtype=float)
    return float(np.linalg.norm(matrices(q / np.linalg.norm(q)) - matrices(reference)))


# --- the equations ----------------------------------------------------------------------------------


def equations(moments: tuple[float, ...], slope: Callable[[Any], Any] | None) -> Callable[..., Any]:
    """The rates of (q, omega) for U(R33) with the slope dU/dR33, by hand: q' = q (0, omega)/2 and Euler's equations."""
    i1, i2, i3 = moments
    return rates_of(((i2 - i3) / i1, (i3 - i1) / i2, (i1 - i2) / i3), slope and (2 / i1, -2 / i2), slope)


@register_jitable(error_model="numpy", fastmath={"contract"})
def free_rates(a: Any, b: Any, c: Any, d: Any, u: Any, v: Any, w: Any, k1: Any, k2: Any, k3: Any) -> Any:
    """The rates of a free body.

    Few operations, each factor named once: rivals get a right-hand side as good as one would write for them. It is a
    function of numbers of any type: floats, numba's, jax's, heyoka's expressions.
    """
    return (
        -0.5 * (b * u + c * v + d * w),
        0.5 * (a * u + c * w - d * v),
        0.5 * (a * v + d * u - b * w),
        0.5 * (a * w + b * v - c * u),
        k1 * (v * w),
        k2 * (w * u),
        k3 * (u * v),
    )


@register_jitable(error_model="numpy", fastmath={"contract"})
def forced_rates(
    a: Any, b: Any, c: Any, d: Any, u: Any, v: Any, w: Any, k1: Any, k2: Any, k3: Any, push1: Any, push2: Any
) -> Any:
    """The same with a torque."""
    da, db, dc, dd, du, dv, dw = free_rates(a, b, c, d, u, v, w, k1, k2, k3)
    return da, db, dc, dd, du + push1 * (c * d + a * b), dv + push2 * (b * d - a * c), dw


def rates_of(shape: Any, push: Any, slope: Callable[[Any], Any] | None) -> Callable[..., Any]:
    """The same from the numbers the equations need, as a function of the state alone."""
    k1, k2, k3 = shape

    def free(a: Any, b: Any, c: Any, d: Any, u: Any, v: Any, w: Any) -> Any:
        return free_rates(a, b, c, d, u, v, w, k1, k2, k3)

    if slope is None:
        return free
    push1, push2 = push

    def forced(a: Any, b: Any, c: Any, d: Any, u: Any, v: Any, w: Any) -> Any:
        g = slope(1.0 - 2.0 * (b * b + c * c))
        return forced_rates(a, b, c, d, u, v, w, k1, k2, k3, push1 * g, push2 * g)

    return forced


def _top(z: Any) -> Any:
    """U = 20 R33."""
    return 20.0


def _heavy(z: Any) -> Any:
    """U = R33."""
    return 1.0


def _wall(z: Any) -> Any:
    """U = 1/d - 0.001/d^10 with d = 1.1 + R33."""
    i = 1.0 / (1.1 + z)
    i2 = i * i
    i4 = i2 * i2
    return i2 * (0.01 * (i4 * i4 * i) - 1.0)


def wall_of_powers(z: Any) -> Any:
    """The same, as suits a Taylor integrator: heyoka has a recurrence for powers."""
    d = 1.1 + z
    return 0.01 * d**-11.0 - d**-2.0


SLOPES: dict[str, Callable[[Any], Any] | None] = {
    "free_body": None, "slow_top": _top, "fast_top": _top, "soft_wall": _wall, "heavy_top": _heavy,
}  # fmt: skip


def check_equations(case: Case) -> None:
    """The rates by hand must be those of the library, at a state without symmetry."""
    rates, system = bench.equations(case.problem, float)
    q = (0.5, 0.1, -0.7, 0.5)
    m = (0.3, -0.8, 0.6)
    turning, turned = rates(0.0, q, m, system)
    expected = np.array([*turning, *(x / i for x, i in zip(turned, case.moments, strict=True))])
    got = np.array(equations(case.moments, case.slope)(*q, *(x / i for x, i in zip(m, case.moments, strict=True))))
    if np.abs(got - expected).max() > 1e-14 * np.abs(expected).max() * 10:
        raise AssertionError(f"the equations of {case.name} differ from the library's by {got - expected}")


# --- the cases --------------------------------------------------------------------------------------


def cases() -> list[Case]:
    """All of them, in the order of the table."""
    found = [
        Case(name, (problem := ph.problems.get(name)), problem.t_end, SLOPES[name], SPREAD.get(name, 0.1))
        for name in ("free_body", "slow_top", "fast_top", "soft_wall", "heavy_top")
    ]
    for case in found:
        check_equations(case)
    return found


SPREAD = {"soft_wall": 0.01}
"""Starts that lie further away run into the wall, where all steps become short."""
