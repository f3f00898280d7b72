"""The start and the energy of a body in its principal axes, in mpmath numbers."""

from __future__ import annotations

from typing import Any

from mpmath import mpf

import polhode as ph
from polhode.kernels.so3 import matrix, unit


def start(problem: ph.Problem) -> Any:
    return unit(tuple(mpf(x) for x in problem.quaternion)), tuple(mpf(x) for x in problem.momentum)


def energy(problem: ph.Problem, state: Any) -> Any:
    """Kinetic plus potential energy of a body in its principal axes."""
    q, m = state
    kinetic = sum(x * x / (2 * mpf(i)) for x, i in zip(m, problem.body.moments.tolist(), strict=True))
    if problem.field is None:
        return kinetic
    parameters = tuple(mpf(x) for x in problem.field.parameters)
    return kinetic + problem.field.potential_kernel(mpf)(matrix(q), parameters)
