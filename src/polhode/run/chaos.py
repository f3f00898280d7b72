"""Chaos indicators for many starts at once: largest Lyapunov exponent, FLI and MEGNO."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics.fields.variation import GROWTH, MEAN, PREFIX, STATE, WEIGHTED
from ..physics.problem import Problem, finite_number
from ..physics.validate import check_call, positive, real_array
from ..results.ensemble import Ensemble
from .ensemble import chaos_words
from .ensemble.api import ensemble

STEP_TOL = 1e-9
"""Default error of a step."""

FIXED = ("body", "field", "out", "scheduler", "resume", "overwrite", "statistics", "events", "unit")
"""Arguments of `ensemble` that a variation does not take."""

POSITIONAL = frozenset(("problem", "starts", "bodies", "attitudes", "momenta"))
"""Parameters of `chaos` and `ensemble` that are no keywords of `chaos`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Chaos:
    """Chaos indicators of many motions, at the start and at the end, or at given times. Arrays are (n, N): time, body.

    Attributes
    ----------
    t : (n,) times
    growth : logarithm of the length of a small variation of the initial state, 0 at first: the fast Lyapunov indicator
    exponent : growth over time, which tends to the largest Lyapunov exponent
    megno : MEGNO: tends to 2 for regular motion, oscillating; to exponent times time for chaotic motion
    mean_megno : its mean over time: tends to 2 for regular, to half of exponent times time for chaotic motion
    motions : the motions themselves, with the states of the variation

    Examples
    --------
    >>> ph.chaos(ph.problems.heavy_top(), t_end=20.0, step_tol=1e-7).exponent.shape
    (2, 1)
    """

    t: np.ndarray
    growth: np.ndarray
    exponent: np.ndarray
    megno: np.ndarray
    mean_megno: np.ndarray
    motions: Ensemble = dataclasses.field(repr=False)

    @property
    def fli(self) -> np.ndarray:
        """Largest `growth` at the kept times, until each of them; give `times` that resolve its oscillations."""
        return np.asarray(np.fmax.accumulate(self.growth, axis=0))


@dataclasses.dataclass(frozen=True, eq=False)
class ChaosMap:
    """Chaos indicators over a plane of initial states, at the end of the motions: arrays (len(y), len(x)).

    Attributes
    ----------
    x, y : the coordinates of the initial states
    growth, exponent, megno, mean_megno, fli : as in `Chaos`; NaN where a motion failed

    Examples
    --------
    >>> start = lambda spin, mgl: {"params": {"mgl": mgl}, "omega": [[0.1, 0.0, x] for x in spin]}
    >>> plane = ph.chaos_map(ph.problems.heavy_top(), ("spin", [2.0, 9.0]), ("mgl", [1.0]), start, t_end=5.0)
    >>> plane.names, plane.fli.shape
    (('spin', 'mgl'), (1, 2))
    """

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, str]
    chaos: Chaos = dataclasses.field(repr=False)

    def _end(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values[-1].reshape(len(self.y), len(self.x)))

    @property
    def growth(self) -> np.ndarray:
        """Logarithm of the growth of a small variation."""
        return self._end(self.chaos.growth)

    @property
    def exponent(self) -> np.ndarray:
        """Growth over time."""
        return self._end(self.chaos.exponent)

    @property
    def megno(self) -> np.ndarray:
        """MEGNO."""
        return self._end(self.chaos.megno)

    @property
    def mean_megno(self) -> np.ndarray:
        """Mean of the MEGNO over time."""
        return self._end(self.chaos.mean_megno)

    @property
    def fli(self) -> np.ndarray:
        """Largest growth at the kept times; without `times`, the growth at the end, if it is positive."""
        return self._end(self.chaos.fli)

    def plot(self, indicator: str = "mean_megno", ax: Any = None) -> Any:
        """Draw an indicator over the plane of initial states; returns (figure, axes)."""
        plots: Any = importlib.import_module("polhode.plots.chaos")  # on first use: matplotlib is slow to import
        return plots.chaos_map(self, indicator, ax)


def chaos(
    problem: Problem,
    *,
    t_end: float | None = None,
    step_tol: float | None = None,
    tol: float | None = None,
    frequency: float | None = None,
    **starts: Any,
) -> Chaos:
    """Measure how fast neighbouring motions separate, for one initial state or many, in SIMD lanes or on a GPU.

    A variation of the motion is integrated with each body (`physics/fields/variation`): with `step_tol` by Taylor
    series if they are the faster method for the body alone, else by the Runge-Kutta pair 8(7). Where the torque jumps
    with the state or in time, bodies are run one by one, and the variation follows the tangents of their steps.

    Parameters
    ----------
    problem : Problem with the body and the field
    t_end : end time (by default the problem's)
    step_tol : error allowed in each step (default 1e-9)
    tol : instead of it, the error allowed at the end; a chaotic motion may not reach it
    frequency : angular velocity whose change counts as much as a rotation by one radian in the length of a variation;
        by default the initial angular velocity, or one that the initial torque causes within a radian if it is larger
    starts : as in `ph.ensemble`: omega, momentum, attitude, euler, params, times, device and so on; the arguments that
        describe an initial state have one value for each body or one for all

    Returns
    -------
    Chaos

    Examples
    --------
    >>> top = ph.problems.heavy_top()
    >>> found = ph.chaos(top, t_end=20.0, step_tol=1e-7)
    >>> found.megno.shape
    (2, 1)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    wrong = [name for name in FIXED if starts.get(name) is not None]
    if wrong:
        raise InputError(f"{wrong[0]} is not available here; leave out `{wrong[0]}`")
    chaos_words.check(problem, "ph.chaos")
    end = problem.t_end if t_end is None else finite_number("t_end", t_end)
    if end is None or end <= problem.t0:
        raise InputError(f"t_end must be a time after t0 = {problem.t0!r}; got {end!r}", "t_end")
    if step_tol is None and tol is None:
        step_tol = STEP_TOL
    nu = chaos_words.frequency(problem, end) if frequency is None else positive("frequency", frequency)
    varied = copy.copy(problem)
    varied.field = chaos_words.varied_field(problem, nu, end)
    many = ensemble(varied, t_end=end, step_tol=step_tol, tol=tol, **starts)
    return _indicators(many, problem.t0, end)


def _indicators(many: Ensemble, t0: float, end: float) -> Chaos:
    state = many.states[PREFIX + STATE]
    growth, weighted, mean = (state[..., place] for place in (GROWTH, WEIGHTED, MEAN))
    s = (many.t - t0).reshape(len(many.t), -1)
    passed = np.where(s > 0, s, 1.0)
    share = passed / (end - t0)
    return Chaos(many.t, growth, growth / passed, 2 * weighted / share, mean / share, many)


def chaos_map(problem: Problem, x: Any, y: Any, start: Any, **run: Any) -> ChaosMap:
    """Measure chaos over a plane of initial states.

    Parameters
    ----------
    problem : Problem
    x, y : (name, values) of the two coordinates, such as ("theta", np.linspace(0, np.pi, 200))
    start : function of arrays of x and of y, one number for each motion; it returns a dictionary with arguments of
        `ph.chaos` for all motions, such as ``lambda theta, rate: {"euler": ("ZXZ", ...), "omega": ...}``
    run : further arguments of `ph.chaos`: t_end, step_tol and so on

    Returns
    -------
    ChaosMap : ``.plot()`` draws it

    Examples
    --------
    >>> import numpy as np
    >>> def start(x, y):
    ...     return {"omega": np.stack([x, y, 0 * x + 2.0], axis=1)}
    ...
    >>> x, y = ("x", [0.5, 1.0]), ("y", [0.1, 0.2, 0.3])
    >>> found = ph.chaos_map(ph.problems.heavy_top(), x, y, start, t_end=20.0, step_tol=1e-7)
    >>> found.megno.shape
    (3, 2)
    """
    (first, a), (second, b) = (_coordinate(name, given) for name, given in (("x", x), ("y", y)))
    if not callable(start):
        raise InputError(f"start must be a function of arrays of x and y that returns a dictionary; got {start!r}")
    check_call("start", start, "x", "y")
    u, v = (grid.ravel() for grid in np.meshgrid(a, b))
    found = chaos(problem, **_started(start, u, v, run), **run)
    if found.growth.shape[-1] != len(u):
        raise InputError(
            f"start must return initial states for {len(u)} motions, one for each pair of x and y; it returned "
            f"{found.growth.shape[-1]}", "start",
        )  # fmt: skip
    return ChaosMap(a, b, (first, second), found)


def _started(start: Any, u: np.ndarray, v: np.ndarray, run: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `chaos` that a function returns for all motions of a map."""
    try:
        made = start(u, v)
    except Exception as fault:
        said = " ".join(str(fault).split())
        raise InputError(f"start raised {type(fault).__name__} for arrays of x and y: {said}", "start") from fault
    if not isinstance(made, dict):
        raise InputError(f"start must return a dictionary with arguments of ph.chaos; it returned {made!r}", "start")
    known = {*inspect.signature(chaos).parameters, *inspect.signature(ensemble).parameters} - POSITIONAL
    for name in made:
        if name not in known:
            raise InputError(f"start must return arguments of ph.chaos; {name!r} is not one of them", "start")
        if name in run:
            raise InputError(f"{name} is given and returned by start too; remove one of them", name)
    return made


def _coordinate(name: str, given: Any) -> tuple[str, np.ndarray]:
    expected = f"{name} must be a name and values, such as ('theta', np.linspace(0, 3, 100))"
    if not isinstance(given, tuple | list) or len(given) != 2 or not isinstance(given[0], str):
        raise InputError(f"{expected}; got {given!r}", name)
    values = real_array(given[1], expected, key=name)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"{expected}, in one dimension and finite; got shape {values.shape}", name)
    return given[0], values
