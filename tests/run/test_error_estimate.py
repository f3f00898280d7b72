"""The error at the end of a run, from a second run with shorter steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polhode as ph
from polhode.run import adaptive, error_estimate, step_control


def test_a_repeated_run_keeps_the_distribution_of_the_steps():
    """The time after k of m steps is that of the given run after k n/m steps; errors fall with the order."""
    problem = ph.problems.heavy_top()
    run = adaptive.Run(problem, step_control.runge_kutta(problem), 20.0, 1e-6)
    path = run()
    fine = run.finer(path)
    repeated = fine()
    n, m = len(path.times) - 1, len(repeated.times) - 1
    assert m == math.ceil(n * error_estimate.REPEATED ** (1 / 8))
    assert np.allclose(repeated.times, np.interp(np.arange(m + 1) * n / m, np.arange(n + 1), path.times), rtol=1e-14)
    exact = ph.solve(problem, step_tol=1e-14, t_end=20.0)
    errors = [np.abs(found.rows[-1, :4] - exact.quaternion[-1]).max() for found in (path, repeated)]
    assert 3 < errors[0] / errors[1] < 20
    assert run.difference(path, repeated) == pytest.approx(adaptive.distance(path.rows[-1], repeated.rows[-1], 1), 0.5)


def test_long_runs_are_repeated_in_pieces(monkeypatch):
    problem = ph.problems.heavy_top()
    whole = ph.solve(problem, tol=1e-8, t_end=30.0)
    monkeypatch.setattr(adaptive, "REPEATED_STEPS", 7)
    parts = ph.solve(problem, tol=1e-8, t_end=30.0)
    assert whole.error_estimate == parts.error_estimate
    assert np.array_equal(whole.quaternion, parts.quaternion)


def test_a_result_may_be_a_repeated_run(monkeypatch):
    """If the first attempt misses the tolerance by little, the run it is compared with is the result."""
    monkeypatch.setattr(adaptive, "REPEATED_STEPS", 7)
    problem = ph.problems.slow_top()
    monkeypatch.setattr(error_estimate, "FIRST", 1.0)
    sol = ph.solve(problem, tol=1e-7)
    assert sol.rejected == 0  # a run with its own steps rejects some
    times = np.append((sol.t[1:] + sol.t[:-1]) / 2, sol.t[-1])
    exact = ph.solve(problem, step_tol=1e-14, times=times)
    errors = np.abs(sol.at(times).quaternion - exact.quaternion).max(axis=1)
    assert errors[-1] < 1e-7
    assert errors.max() < 1e-6


@pytest.mark.parametrize("bounds", [{"stops": [3.0]}, {"max_step": 0.5}], ids=str)
def test_steps_with_bounds_are_compared_by_a_smaller_tolerance(bounds, monkeypatch):
    monkeypatch.setattr(adaptive.Run, "_repeated", None)
    problem = ph.problems.heavy_top()
    sol = ph.solve(problem, tol=1e-8, t_end=10.0, **bounds)
    exact = ph.solve(problem, step_tol=1e-14, t_end=10.0)
    assert np.abs(sol.quaternion[-1] - exact.quaternion[-1]).max() < 5 * sol.error_estimate
