"""The result of a fit: values, covariance, what the data do not determine, residuals."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any

import numpy as np

from ...physics.problem import Problem
from ...results.trajectory import Trajectory
from .measurements import Measurement
from .starts import Starts


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """Estimated numbers, with their covariance.

    Attributes
    ----------
    problem : the problem with the estimated initial state, body and parameters
    values, sigma : estimates and standard deviations by name. "attitude" is a rotation vector from the first guess, in
        body axes and rad, "inertia" the principal moments, "axes" a rotation of the principal axes in the body in rad,
        "bias 0" the bias of measurement 0. A deviation is infinite if the data do not determine the number
    names : the name of each number
    covariance, correlation : (p, p) matrices in the order of `names`
    undetermined : sentences on what the data do not determine
    residuals : for each measurement, (n, k) model minus measurement over sigma
    chi2, dof : sum of the squares of all residuals, and the number of them minus that of the numbers determined
    success, message : whether the search ended, and how
    evaluations : motions computed
    solution : the motion at the times of the measurements
    starts : with several starting guesses, how they ended

    Examples
    --------
    >>> import numpy as np
    >>> truth = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[0.3, 1.0, 0.2])
    >>> times = np.linspace(0.0, 5.0, 41)
    >>> data = ph.measurements.rates(times, ph.solve(truth, tol=1e-11, times=times).omega, sigma=1e-4)
    >>> found = ph.fit(truth, data, ["omega"])
    >>> found.success, found.dof
    (True, 120)
    """

    problem: Problem
    values: dict[str, Any]
    sigma: dict[str, Any]
    names: list[str]
    covariance: np.ndarray
    undetermined: list[str]
    residuals: list[np.ndarray]
    chi2: float
    dof: int
    success: bool
    message: str
    evaluations: int
    data: list[Measurement] = dataclasses.field(repr=False)
    solution: Trajectory = dataclasses.field(repr=False)
    starts: Starts | None = dataclasses.field(default=None, repr=False)

    @functools.cached_property
    def correlation(self) -> np.ndarray:
        """Correlations (p, p); NaN for numbers that are not determined."""
        sigma = np.sqrt(np.diagonal(self.covariance))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.covariance / np.outer(sigma, sigma))

    def plot(self, ax: Any = None) -> Any:
        """Draw the residuals over time; returns (figure, axes)."""
        plots: Any = importlib.import_module("polhode.plots.residuals")  # on first use: matplotlib is slow to import
        return plots.residuals(self, ax)

    def __str__(self) -> str:
        lines = [f"chi2 = {self.chi2:.4g} for {self.dof} degrees of freedom; {self.message}"]
        numbers = zip(self.names, _flat(self.values), _flat(self.sigma), strict=True)
        lines += [f"{name:16} {value: .9g} +- {sigma:.2g}" for name, value, sigma in numbers]
        starts = [] if self.starts is None else [str(self.starts)]
        return "\n".join([*lines, *self.undetermined, *starts])


def _flat(values: dict[str, Any]) -> list[float]:
    return [float(x) for value in values.values() for x in np.ravel(value)]
