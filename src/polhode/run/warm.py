"""Compile ahead: what a later call needs is compiled now, or loaded from the cache on disk."""

from __future__ import annotations

import math

from ..compile import notice
from ..compile.clock import Stopwatch
from ..errors import InputError
from ..methods import Method
from ..physics.problem import Problem
from ..physics.validate import flag, word
from .adaptive import Run
from .ensemble.api import ensemble
from .schedule import scheduled
from .solve import read_wish, solve
from .step_control import decided, formula
from .tolerance import Wish

TURN = 0.01
"""Radians that the body turns in the short runs that make numba compile."""


def warm(
    problem: Problem,
    method: str | Method | None = None,
    *,
    dt: float | None = None,
    tol: float | None = None,
    step_tol: float | None = None,
    many: bool = False,
    device: str = "cpu",
) -> float:
    """Compile what `ph.solve` (or with ``many=True``, `ph.ensemble`) needs for the field and the kind of body.

    Give the same method, dt, tol or step_tol as in the later calls. Initial states and parameters do not matter.

    Parameters
    ----------
    problem : a Problem with the field and the kind of body (principal axes, or a full tensor)
    method, dt, tol, step_tol : as in `ph.solve`
    many : compile for SIMD lanes, or for a GPU with ``device="cuda"``

    Returns
    -------
    Seconds spent compiling or loading; about zero if everything was loaded already.

    Examples
    --------
    >>> seconds = ph.warm(ph.problems.fast_top(), "imidm", dt=0.01)
    >>> seconds >= 0
    True
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    watch, end = Stopwatch(), _short_end(problem)
    given = {"dt": dt, "steps": 1} if dt is not None else {"tol": tol, "step_tol": step_tol, "t_end": end}
    with notice.shown(notice.has_reader()):  # the runs within are silent
        if flag("many", many):
            ensemble(problem, method=method, momentum=[problem.momentum], device=device, progress=False, **given)
            return watch.compile_seconds
        if word("device", device, "cpu", "cuda") != "cpu":
            raise InputError("a GPU runs many bodies; also give many=True, or leave out `device`")
        sol = solve(problem, method, progress=False, **given)
        if sol.dense is not None:
            sol.at(sol.t[-1:] / 2 + sol.t[:1] / 2)
        if method is None and problem.field is not None and not problem.field.states:
            _warm_kinds(problem, end, read_wish(None, tol, step_tol))
    return watch.compile_seconds


def _short_end(problem: Problem) -> float:
    span = TURN / (math.hypot(*problem.velocity) or 1.0)
    return problem.t0 + max(span, 1e6 * math.ulp(problem.t0))


def _warm_kinds(problem: Problem, end: float, wish: Wish) -> None:
    """Compile all kinds of steps between which a tolerance and an angle decide."""
    tolerance, legs = wish.step, scheduled(problem, end, wish.tol)
    kept = formula(legs.problem)
    choices = [kept.choice(tolerance, 10.0**turns, wish.finer) for turns in range(7)]
    for kind in dict.fromkeys(kind for choice in choices for kind in decided(choice, tolerance, legs)):
        run = Run(legs.problem, kind, end, tolerance, legs)
        path = run()
        run.state_at(path.times[-1:], path.times, path.rows)
        if not wish.of_steps:
            run.finer(path)()
