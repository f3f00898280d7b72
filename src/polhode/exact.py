"""The motion of the free body at any times, in constant time for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .body import real_array
from .engine import GUARD_DIGITS
from .errors import InputError
from .loop import COLUMNS, record, tidied
from .methods.jacobi import motion, moved
from .problem import Problem
from .record import full_precision, primary, rounded
from .so3 import mul
from .trajectory import Info, Trajectory


def _visit(elapsed: Any, y: Any, inertia: Any, rows: Any) -> None:
    """Write the states at times since the start; what does not depend on time is computed once."""
    q, m = y
    about = motion(m, inertia)
    for k in range(len(elapsed)):
        turn, new = moved(elapsed[k], about)
        record(rows, k, tidied((mul(q, turn), new)))


_COMPILED: list[Callable[..., None]] = []


def _compiled() -> Callable[..., None]:
    if not _COMPILED:
        from .backends import cpu

        _COMPILED.append(cpu.compiled(_visit, "exact|free")[0])
    return _COMPILED[0]


def exact(problem: Problem, t: Any, *, digits: int | None = None) -> Trajectory:
    """The states of a free body at given times, from elliptic functions.

    Parameters
    ----------
    problem : a body without a field
    t : one time or an array of them, in any order, before or after `problem.t0`
    digits : compute with this many digits; `Trajectory.mp` then holds them all
    """
    if problem.field is not None:
        raise InputError(
            f"only the free body has an exact solution here, and {problem.field!r} acts on this one; "
            f"use ph.solve, or a Problem without a field"
        )
    times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
    if times.ndim != 1 or not np.isfinite(times).all():
        raise InputError(f"t must be finite times in one dimension; got {t!r}")
    began = time.perf_counter()
    if digits is not None:
        return _precise(problem, times, digits, began)
    from .backends.floats import number

    y, system = problem.kernel_data(number)
    rows = np.empty((len(times), COLUMNS))
    _compiled()(times - problem.t0, y, system[0], rows)
    return Trajectory(primary(problem, times, rows), _info(problem, times, None, began))


def _precise(problem: Problem, times: np.ndarray, digits: int, began: float) -> Trajectory:
    if not isinstance(digits, int) or not 1 <= digits <= 10_000:
        raise InputError(f"digits must be a whole number from 1 to 10000; got {digits!r}")
    import mpmath

    from .backends.multiprecision import number

    rows = np.empty((len(times), COLUMNS), dtype=object)
    with mpmath.workdps(digits + GUARD_DIGITS):
        y, system = problem.kernel_data(number)
        _visit([number(x) - number(problem.t0) for x in times.tolist()], y, system[0], rows)
    mp = full_precision(problem, rows, digits)
    return Trajectory(rounded(times, mp), _info(problem, times, digits, began), mp)


def _info(problem: Problem, times: np.ndarray, digits: int | None, began: float) -> Info:
    inertia = tuple(tuple(float(x) for x in row) for row in problem.body.inertia)
    return Info(
        method="jacobi", dt=0.0, inertia=inertia, problem=problem.name, digits=digits,
        seconds=time.perf_counter() - began, steps=len(times),
    )  # fmt: skip
