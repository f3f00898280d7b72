"""Estimate the initial state, the inertia and parameters of a motion from measurements."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...kernels.so3 import conj, mul
from ...physics.problem import Problem
from ...physics.validate import apart, by_name, positive, several, whole_number
from ..solve import solve
from ..tangent import check_smooth
from .arcs import GAPS, Model
from .measurements import Measurement, rotation_vector
from .parameters import BODY, Free, free_numbers
from .result import Fit
from .starts import IMPROVED, REFINED, SHORT, Starts, guesses, ranked, same_minimum

LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
STEP_TOL = 1e-11
"""Error allowed in each step of a motion."""

DETERMINED = 1e-7
"""Smallest singular value of the derivatives, with columns of length 1, of a direction that the data determine."""

MOST_ARCS = 1000
"""Largest number of arcs: the search solves dense equations of six numbers for each."""

HOLD = 1e-7
"""Weight that holds numbers at the first guess, relative to that of all measurements, so that those stay there that the
data do not determine."""

ENDS = {
    0: "stopped after the most motions allowed",
    1: "the sum of squares has no slope",
    2: "the sum of squares no longer changes",
    3: "the numbers no longer change",
    4: "neither the sum of squares nor the numbers change",
}
"""How a search ended, by SciPy's number."""

WRONG = 10.0
"""Root mean square of the residuals, in standard deviations, above which a result is doubted."""

NOTABLE = 0.1
"""Smallest share of a number in an undetermined direction that is named."""


def fit(
    problem: Problem,
    data: Measurement | Sequence[Measurement],
    free: Any,
    *,
    priors: Mapping[str, Any] | None = None,
    loss: str = "linear",
    loss_scale: float = 1.0,
    arcs: int = 1,
    starts: int | Sequence[Problem] = 1,
    spread: Mapping[str, Any] | None = None,
    seed: int = 0,
    step_tol: float = STEP_TOL,
    most: int = 200,
) -> Fit:
    """Estimate free numbers of a problem from measurements, by least squares with exact derivatives.

    Parameters
    ----------
    problem : Problem, the first guess; its t0 is the time of the initial state
    data : measurements made by ``ph.measurements.attitudes``, ``.rates``, ``.directions`` or ``.values``, or a list
    free : what is estimated: any of "attitude" and "omega" (the initial state), "inertia" (the principal moments;
        positive, and none exceeds the sum of the two others), "axes" (directions of the principal axes), and names of
        parameters of the field
    priors : what is known before, by name: (value, sigma), of "omega", "inertia" or parameters; shapes as in `values`
    loss : "linear" for least squares; "huber", "soft_l1", "cauchy" or "arctan" if some measurements are wrong
    loss_scale : residual, in standard deviations, above which such a loss gives less weight
    arcs : number of arcs with free initial states (multiple shooting), for long motions or a poor first guess; a final
        search follows one motion
    starts : number of initial guesses, including the first, or a list of problems as further guesses. All of them are
        ranked by their residuals in an ensemble, and the best are refined; ``.starts`` has them
    spread : standard deviations of random guesses, by name; for "inertia", those of the logarithms that are free. By
        default 0.3 of the guess (0.3 rad for "axes"); attitudes are drawn uniformly from all rotations
    seed : seed of the random guesses
    step_tol : error allowed in each step of a motion
    most : largest number of motions in a search

    Returns
    -------
    Fit

    Warns
    -----
    ResultWarning : the residuals are so large that the search has probably ended in a wrong minimum

    Raises
    ------
    InputError : an argument is invalid, or there are fewer measurements than free numbers

    Examples
    --------
    >>> import numpy as np
    >>> truth = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[0.3, 1.0, 0.2])
    >>> times = np.linspace(0.0, 5.0, 41)
    >>> seen = ph.solve(truth, tol=1e-11, times=times).omega
    >>> guess = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[0.25, 1.1, 0.25])
    >>> found = ph.fit(guess, ph.measurements.rates(times, seen, sigma=1e-4), ["omega"])
    >>> np.asarray(found.values["omega"]).round(6)
    array([0.3, 1. , 0.2])
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    check_smooth(problem, "ph.fit", located=True)
    if problem.body.linear_axis is not None:
        raise InputError("ph.fit is not available for a linear body, whose inertia tensor has no inverse")
    expected = "data must be measurements, such as ph.measurements.rates(t, omega, sigma=1e-3)"
    measured = [data] if isinstance(data, Measurement) else several(data, expected, "data")
    if not measured or not all(isinstance(one, Measurement) for one in measured):
        raise InputError(f"{expected}; got {data!r}", "data")
    early = min(float(one.t[0]) for one in measured)
    if early < problem.t0:
        start, first = apart(problem.t0, early)
        raise InputError(f"measurements must not be before the initial state at t0 = {start}; got t = {first}")
    numbers = free_numbers(problem, free, measured)
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}; got {loss!r}", "loss")
    known = Priors(numbers, by_name("priors", priors, "{'omega': ([0.0, 0.0, 1.0], 0.1)}"))
    count = sum(_count(one) for one in measured) + known.count
    if count < numbers.size:
        raise InputError(f"{numbers.size} free numbers need at least as many measurements; there are {count}", "data")
    arcs, most = whole_number("arcs", arcs), whole_number("most", most)
    if arcs > MOST_ARCS:
        raise InputError(f"arcs must be at most {MOST_ARCS}, each with a state of its own to find; got {arcs}", "arcs")
    search = Search(numbers, measured, known, loss, positive("loss_scale", loss_scale), step_tol, most)
    return search.from_guesses(guesses(numbers, starts, spread, seed), arcs)


def _count(one: Measurement) -> int:
    return one.sigma.size


class Priors:
    """What is known before: residuals of the numbers as reported."""

    def __init__(self, free: Free, given: Mapping[str, Any]) -> None:
        self.free, self.places, value, sigma = free, list[int](), list[float](), list[float]()
        for name, pair in given.items():
            if name not in free.places or name in ("attitude", "axes"):
                able = [x for x in free.places if x not in ("attitude", "axes")]
                raise InputError(f"priors must be of some of {', '.join(able)}, which are free; got {name!r}", "priors")
            place = free.places[name]
            size = place.stop - place.start
            try:
                v, s = (np.broadcast_to(np.asarray(x, float), size) for x in pair)
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"the prior of {name} must be (value, sigma), {size} numbers each; got {pair!r}"
                ) from None
            if not (np.isfinite(v).all() and np.isfinite(s).all() and (s > 0).all()):
                raise InputError(f"the prior of {name} must be finite with positive sigma; got {pair!r}", "priors")
            if name == "inertia" and (v.sum() - 2 * v <= 0).any():
                raise InputError(
                    f"the prior of inertia must be moments of a body, none more than the two others; got {v.tolist()}"
                )
            self.places += range(place.start, place.stop)
            value += v.tolist()
            sigma += s.tolist()
        self.value, self.sigma = np.array(value), np.array(sigma)

    @property
    def count(self) -> int:
        """Number of residuals."""
        return len(self.places)

    def residuals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals and derivatives."""
        value = (self.free.reported(x)[self.places] - self.value) / self.sigma
        return value, self.free.reported_slope(x)[self.places] / self.sigma[:, None]


class Search:
    """The least-squares problem of a fit."""

    def __init__(
        self, free: Free, data: list[Measurement], priors: Priors, loss: str, scale: float, step_tol: float, most: int
    ) -> None:  # fmt: skip
        self.free, self.data, self.priors, self.step_tol, self.most = free, data, priors, step_tol, most
        self.how: dict[str, Any] = {"loss": loss, "f_scale": scale}
        self.evaluations = 0

    def checked(self, found: Fit) -> Fit:
        """Warn of residuals that no noise explains; with a robust loss some measurements may be far off."""
        size = float(np.sqrt(found.chi2 / max(found.dof, 1)))
        if self.how["loss"] == "linear" and size > WRONG:
            warnings.warn(
                f"the residuals are {size:.3g} standard deviations on average: the search ended "
                f"in a wrong minimum, or the model or a sigma is wrong. Try starts=100, arcs=8 or another first guess",
                ResultWarning,
                stacklevel=4,
            )
        return found

    def model(self, x: np.ndarray, arcs: int) -> Model:
        """Return the model with some arcs; their starts are taken from a motion and from the measurements."""
        first, last = self.free.problem.t0, max(float(one.t[-1]) for one in self.data)
        nodes = tuple((first + (last - first) * np.arange(arcs) / arcs).tolist())
        guess = np.zeros((arcs - 1, 7))
        if arcs > 1:
            problem = self.free.problem_at(x)
            sol = solve(problem, step_tol=self.step_tol, times=[first, *nodes[1:]])
            guess[:, :4], guess[:, 4:] = sol.quaternion[1:], sol.momentum[1:]
            for j, t in enumerate(nodes[1:]):
                self._nearby(t, problem, guess[j])
        return Model(self.free, self.data, self.step_tol, nodes, guess)

    def _nearby(self, t: float, problem: Problem, row: np.ndarray) -> None:
        """Replace a guess of a state by what was measured at the nearest time."""
        for one in self.data:
            i = int(abs(one.t - t).argmin())
            if one.kind == "attitudes":
                row[:4] = one.value[i]
                if len(one.t) > 1:
                    k = min(i, len(one.t) - 2)
                    turn = np.array([mul(conj(tuple(one.value[k])), tuple(one.value[k + 1]))])
                    omega = rotation_vector(turn)[0] / (one.t[k + 1] - one.t[k])
                    row[4:] = np.asarray(problem.body.inertia) @ omega
        for one in self.data:
            if one.kind == "rates":
                row[4:] = np.asarray(problem.body.inertia) @ one.value[int(abs(one.t - t).argmin())]

    def from_guesses(self, x: np.ndarray, arcs: int) -> Fit:
        """Search from the best of some guesses, rows of x, and return the best result."""
        if len(x) == 1:
            return self.checked(self.result(self.started(x[0], arcs)))
        x, chi2 = ranked(self.free, self.data, x, None if self.how["loss"] == "linear" else self.how["f_scale"])
        found = sorted((self.started(one, arcs) for one in self.improved(x, arcs)), key=lambda one: float(one.cost))
        for one in found:
            one.x = self.free.with_short_rotations(one.x)
        ends = [self.free.problem_at(one.x) for one in found]
        costs = np.array([2 * one.cost for one in found])
        starts = Starts([self.free.problem_at(one) for one in x], chi2, ends, costs, same_minimum(costs))
        return self.checked(dataclasses.replace(self.result(found[0]), starts=starts))

    def improved(self, x: np.ndarray, arcs: int) -> list[np.ndarray]:
        """Return the guesses to refine: the first rows of x, or with one arc the best ends of short searches."""
        if arcs > 1:
            return list(x[:REFINED])
        model = self.model(x[0], 1)
        short = [self.searched(model, one, min(SHORT, self.most)) for one in x[:IMPROVED]]
        return [one.x for one in sorted(short, key=lambda one: float(one.cost))[:REFINED]]

    def started(self, x: np.ndarray, arcs: int) -> Any:
        """Search along arcs first, if there are several, and then along one motion."""
        if arcs > 1:
            model = self.model(x, arcs)
            whole = np.concatenate([x, model.start[self.free.size :]])
            for gap in GAPS:
                whole = self.searched(dataclasses.replace(model, gap=gap), whole).x
            x = whole[: self.free.size]
        return self.searched(self.model(x, 1), x)

    def searched(self, model: Model, begin: np.ndarray, most: int | None = None) -> Any:
        """Minimise the residuals of a model, with at most `most` motions."""
        from scipy.optimize import least_squares

        hold = HOLD * float(np.sqrt(sum((1 / one.sigma**2).sum() for one in self.data)))
        last: list[Any] = [None, None, None]

        def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if last[0] is None or not np.array_equal(last[0], x):
                self.evaluations += 1
                value, slope = model.tried(x)
                more, more_slope = self.priors.residuals(x[: self.free.size])
                padded = np.zeros((len(more), model.size))
                padded[:, : self.free.size] = more_slope
                last[:] = (
                    x.copy(), np.concatenate([value, more, hold * (x - begin)]),
                    np.concatenate([slope, padded, hold * np.eye(model.size)]),
                )  # fmt: skip
            return last[1], last[2]

        if not (np.isfinite(both(begin)[0]).all() and np.isfinite(both(begin)[1]).all()):
            raise InputError(
                "the residuals of the first guess exceed all doubles; check the size of the measurements, and give a "
                "larger sigma", "data",
            )  # fmt: skip
        return least_squares(
            lambda x: both(x)[0], begin, lambda x: both(x)[1], x_scale="jac", max_nfev=most or self.most, xtol=1e-12,
            ftol=1e-12, gtol=1e-12, **self.how,
        )  # fmt: skip

    def result(self, found: Any) -> Fit:
        """Return the estimates with their covariance."""
        x, free, model = found.x, self.free, self.model(found.x, 1)
        value, slope = model.residuals(x)
        more, more_slope = self.priors.residuals(x)
        J = np.concatenate([slope, more_slope])
        covariance, undetermined, rank = _covariance(J, free, x)
        problem = free.problem_at(x)
        times = np.unique(np.concatenate([[problem.t0], *(one.t for one in self.data)]))
        sigma = np.sqrt(np.diagonal(covariance))
        reported = free.reported(x)
        own = np.split(value, np.cumsum([_count(one) for one in self.data])[:-1])
        return Fit(
            problem, _by_group(free, reported), _by_group(free, sigma), free.labels(), covariance, undetermined,
            [part.reshape(one.sigma.shape) for part, one in zip(own, self.data, strict=True)],
            float(value @ value + more @ more), len(J) - rank, bool(found.success), ENDS[int(found.status)],
            self.evaluations, self.data, _motion(problem, times, self.step_tol),
        )  # fmt: skip


def _motion(problem: Problem, times: np.ndarray, step_tol: float) -> Any:
    if len(times) == 1:
        return solve(problem, step_tol=step_tol, t_end=float(times[0]) + 1.0).at(times)
    return solve(problem, step_tol=step_tol, times=times)


def _by_group(free: Free, numbers: np.ndarray) -> dict[str, Any]:
    return {
        name: float(numbers[place][0]) if place.stop - place.start == 1 else numbers[place].copy()
        for name, place in free.places.items()
    }


def _covariance(J: np.ndarray, free: Free, x: np.ndarray) -> tuple[np.ndarray, list[str], int]:
    """Return the covariance of the reported numbers, what is not determined, and the number of determined directions.

    Numbers with a share in a direction that is not determined have infinite variances.
    """
    length = np.linalg.norm(J, axis=0)
    scale = np.where(length > 0, length, 1.0)
    _, s, V = np.linalg.svd(J / scale, full_matrices=False)
    fine = s > DETERMINED * max(s[0], 1e-300)
    W = V[fine] / s[fine, None]
    inner = (W.T @ W) / np.outer(scale, scale)
    slope = free.reported_slope(x)
    covariance = slope @ inner @ slope.T
    null = V[~fine]
    if not len(null):
        return covariance, [], int(fine.sum())
    lost = (null**2).sum(0) > 1e-6
    for place in _groups_of_inertia(free):
        lost[place] = lost[place].any()
    covariance[lost] = covariance[:, lost] = np.nan
    covariance[lost, lost] = np.inf
    return covariance, _undetermined(null, scale, free), int(fine.sum())


def _undetermined(null: np.ndarray, scale: np.ndarray, free: Free) -> list[str]:
    """Sentences on directions that the data do not determine: numbers by themselves, then combinations."""
    alone = (null**2).sum(0) > 1 - 1e-6
    said = []
    if alone.any():
        names = [name for name, lost in zip(free.labels(), alone, strict=True) if lost]
        said.append(f"the data do not determine {', '.join(names)}")
    _, s, rest = np.linalg.svd(np.where(alone, 0.0, null), full_matrices=False)
    return said + [_sentence(row, row / scale, free) for row in rest[s > 0.5]]


def _groups_of_inertia(free: Free) -> list[slice]:
    return [free.places[name] for name in BODY if name == "inertia" and name in free.places]


def _sentence(effect: np.ndarray, direction: np.ndarray, free: Free) -> str:
    """Describe a direction that the data do not determine, by the numbers and by their effects on the residuals."""
    parts = direction / abs(direction).max()
    shares = np.maximum(abs(parts), abs(effect) / abs(effect).max())  # a number may be small in its unit
    if "inertia" in free.places:
        own = parts[free.places["inertia"]]
        others = np.delete(shares, np.r_[free.places["inertia"]])
        if np.ptp(own) < 1e-3 * abs(own).max() and (others < 1e-3).all():
            return "the data determine the ratios of the moments only, not their size: no torque acts"
    named = [name for name, share in zip(free.labels(), shares, strict=True) if share > NOTABLE]
    return f"the data do not determine {', '.join(named)} separately"
