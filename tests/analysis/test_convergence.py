"""Errors, orders and invariants as the comparison of methods reports them."""

import math

import numpy as np
import pytest

import polhode as ph
from polhode.analysis import comparison, invariants
from polhode.analysis.convergence import Row, by_method, convergence, measured, measured_order, reference_solution

SECOND = next(m for m in ph.methods.values() if m.order == 2 and m.symmetric and m.takes("velocity"))


def row(dt, error, method="a", order=2.0, failure=""):
    return Row(method, order, dt, 100, error, error, 0.0, 0.0, 1e-14, dt, 10.0, failure)


def test_second_order_on_the_free_body():
    problem = ph.problems.free_body()
    rows = convergence(problem, [SECOND], [0.5, 0.25, 0.125, 0.0625])
    assert [r.steps for r in rows] == [200, 400, 800, 1600]
    # the next term of an even error expansion changes the slope by about error/10 at the finest steps
    assert measured_order(rows) == pytest.approx(2, abs=0.02)
    assert all(r.ns_per_step > 0 and not r.failure for r in rows)
    if "spatial_momentum" in SECOND.conserves:
        assert max(r.momentum_drift for r in rows) < 1600 * np.finfo(float).eps


def test_backwards_in_time():
    """The end of a problem may lie before its start; steps are given by their lengths."""
    problem = ph.problems.heavy_top()
    problem.t_end = problem.t0 - 2.0
    sizes = comparison.default_steps(problem)
    assert all(dt > 0 for dt in sizes)
    rows = convergence(problem, [SECOND], sizes)
    assert [round(r.dt * r.steps, 9) for r in rows] == [2.0] * len(rows)
    assert measured_order(rows) == pytest.approx(2, abs=0.05)
    (shown,) = comparison.trajectories(problem, [SECOND], comparison.middle(sizes), None)
    assert shown.t[-1] == pytest.approx(problem.t_end)


def test_watch_is_told_all_the_work():
    heard = []
    problem = ph.problems.free_body()
    convergence(problem, [SECOND], [1.0, 0.5], watch=lambda what, done, total: heard.append((what, done, total)))
    assert heard[-1] == ("done", 3, 3)
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_measured_order_of_known_errors(order):
    rows = [row(2.0**-k, 0.01 * 2.0 ** (-k * order)) for k in range(5)]
    assert measured_order(rows) == pytest.approx(order, abs=1e-12)


def test_measured_order_leaves_out_noise_saturation_and_failures():
    rows = [row(0.4, 1.5), row(0.2, 0.04), row(0.1, 0.01), row(0.001, 1e-14), row(0.05, math.nan, failure="x")]
    assert measured_order(rows) == pytest.approx(2, abs=1e-12)
    assert math.isnan(measured_order(rows[:1]))


def test_measured_order_refuses_a_mixture():
    with pytest.raises(ph.InputError, match="one method"):
        measured_order([row(0.1, 0.1), row(0.1, 0.1, "b")])


def test_by_method_sorts_steps_downwards():
    found = by_method([row(0.1, 1.0), row(0.2, 1.0, "b"), row(0.4, 1.0)])
    assert [r.dt for r in found["a"]] == [0.4, 0.1]


def test_bad_steps_are_refused_before_anything_runs():
    problem = ph.problems.free_body()
    for dt, word in ((-1.0, "positive"), (math.nan, "finite"), (0.3, "whole number")):
        with pytest.raises(ph.InputError, match=word):
            convergence(problem, [SECOND], [dt])


def test_a_failed_run_is_a_row_that_says_why():
    @ph.torque
    def fading(t):
        return (0.0, 0.0, ph.math.sqrt(1 - t))

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), fading(), omega=[1.0, 0.5, 0.2])
    reference = ph.Reference(2.0, problem.quaternion, problem.momentum, 0.0, "none")
    found = measured(problem, SECOND, 0.1, reference, np.eye(3))
    assert "failed in step" in found.failure
    assert math.isnan(found.attitude_error)
    assert math.isnan(found.energy_drift), "not the drift of the steps before it, which may be none"
    assert len(comparison.trajectories(problem, [SECOND], 0.1, 2.0)[0]) < 20


def test_reference_is_the_problems_own_at_its_time():
    problem = ph.problems.fast_top()
    assert reference_solution(problem) is problem.reference
    with pytest.raises(ph.InputError, match="t_end"):
        reference_solution(ph.Problem(problem.body, omega=[1, 0, 0]))


def test_reference_at_another_time_agrees_with_a_fine_run():
    problem = ph.problems.free_body()
    other = reference_solution(problem, 1.0)
    rows = convergence(problem, [SECOND], [0.01, 0.005], t_end=1.0)
    assert other.t == 1.0
    assert measured_order(rows) == pytest.approx(2, abs=0.01)


# --- what is conserved ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ph.problems.names())
def test_conserved_part_of_the_momentum(name):
    problem = ph.problems.get(name)
    found = invariants.conserved_directions(problem)
    if problem.field is None:
        assert len(found) == 3
        assert invariants.momentum_label(found) == "spatial momentum"
    elif name == "dipole_in_field":
        np.testing.assert_allclose(found, [np.array([0.4, 0.1, 0.9]) / 0.98**0.5], atol=1e-12)  # along the field
    elif name == "quadratic_well":
        assert len(found) == 0
    else:
        np.testing.assert_allclose(found, [[0, 0, 1]], atol=1e-12)
        assert invariants.momentum_label(found) == "vertical momentum"


def test_conserved_direction_of_a_tilted_field_and_of_none():
    @ph.potential
    def tilted(R):
        return 0.6 * R[0][2] + 0.8 * R[1][2]

    @ph.torque
    def push(t):
        return (1.0, t, 0.5)

    body = ph.Body([1.0, 2.0, 2.5])
    found = invariants.conserved_directions(ph.Problem(body, tilted(), omega=[1, 0, 0]))
    np.testing.assert_allclose(found, [[0.6, 0.8, 0]], atol=1e-12)
    nothing = invariants.conserved_directions(ph.Problem(body, push(), omega=[1, 0, 0]))
    assert nothing.shape == (0, 3)
    assert invariants.momentum_label(nothing) == ""
    assert np.isnan(invariants.momentum_change(np.ones((4, 3)), nothing)).all()


@pytest.mark.parametrize("inertia", [[1.0, 2.0, 2.5], [1.0, 1.0, 1.5], [2.0, 2.0, 2.0]])
def test_polhodes_lie_on_the_sphere_at_one_energy_each(inertia):
    turn = np.linalg.qr(np.array([[1.0, 2, 3], [0, 1, 4], [5, 6, 0]]))[0]
    tensor = turn @ np.diag(inertia) @ turn.T
    curves = invariants.polhodes(tensor)
    families = len(set(inertia)) - 1
    assert len(curves) == 8 * families
    for curve in curves:
        np.testing.assert_allclose(np.linalg.norm(curve, axis=1), 1, atol=1e-12)
        energy = np.einsum("ni,ij,nj->n", curve, np.linalg.inv(tensor), curve)
        np.testing.assert_allclose(energy, energy[0], rtol=1e-12)


# --- what a comparison chooses ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ph.problems.names())
def test_default_methods_suit_and_are_many(name):
    problem = ph.problems.get(name)
    chosen = comparison.default_methods(problem)
    assert len(chosen) >= 8
    assert len({m.name for m in chosen}) == len(chosen)
    assert all(m.takes(problem.needs) for m in chosen)


@pytest.mark.parametrize("name", ph.problems.names())
def test_default_steps_divide_the_time_and_halve(name):
    problem = ph.problems.get(name)
    steps = comparison.default_steps(problem)
    counts = [problem.t_end / dt for dt in steps]
    np.testing.assert_allclose(counts, np.round(counts), rtol=1e-12)
    np.testing.assert_allclose(np.divide(steps[:-1], steps[1:]), 2)
    assert steps[0] == problem.dt


def test_table_puts_the_best_first_and_failures_last():
    rows = [row(0.1, 0.3, "a"), row(0.1, math.nan, "b", failure="x"), row(0.1, 0.1, "c")]
    assert [r.method for r, _ in comparison.table(rows, 0.1)] == ["c", "a", "b"]
