"""Runs in plain Python: the kernels and the loop of a compiled run, without compiling them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import polhode as ph
from polhode.kernels.loops import COLUMNS, stepping
from polhode.numbers import floats
from polhode.run.integrator import check_fit, start, state_space, torque_kernel


class Run(NamedTuple):
    """The states kept, the residual of the step that failed, and whether none did."""

    rows: np.ndarray
    residual: float
    fine: bool

    @property
    def quaternion(self) -> np.ndarray:
        return self.rows[:, :4]

    @property
    def momentum(self) -> np.ndarray:
        return self.rows[:, 4:7]


def run(problem: ph.Problem, name: str, dt: float, steps: int) -> Run:
    """So many steps of a method. Where compiled code gets NaN, plain Python raises; that is a failed step too."""
    method, number = ph.methods[name], floats.number
    check_fit(method, problem)
    before, after = method.processors(number)
    advance = stepping(method.build(number), torque_kernel(problem, number, method), state_space(method), before, after)
    y, system = start(problem, method, number)
    rows = np.empty((steps, COLUMNS + method.has_own_time))
    last: Any = (steps, math.inf) if method.has_own_time else steps
    filled, residual, fine = 0, math.nan, False
    try:
        # step by step, so that what an exception ends is kept
        for n in range(steps):
            y, _, more, residual, fine = advance(dt, problem.t0, n, 1, 1, last, y, system, rows[filled:])
            filled += more
            if not fine:
                break
    except (ArithmeticError, ValueError):
        fine = False
    return Run(rows[:filled], float(residual), bool(fine))
