"""Derivatives by parameters that move jumps of a field in time."""

import numpy as np
import pytest

import polhode as ph

BODY = ph.Body([1.0, 2.0, 2.5])


@ph.torque
def burn(t, omega, push, start, stop):
    on = ph.where((t > start) & (t < stop), 1.0, 0.0)
    return on * push, on * push * omega[2], -0.1 * omega[2]


@ph.torque
def swinging(t, R, push, rate):
    return ph.where(ph.math.sin(rate * t) > 0.3, push, -push * R[0][1]), 0.0, push


@ph.torque
def both(t, push, first, second):
    """Two conditions that depend on each other."""
    return ph.where((t > first) & (t > second), push, 0.0), 0.0, 0.0


def problem(field, t0=0.0):
    """A tumbling body."""
    return ph.Problem(BODY, field, omega=[0.3, 0.8, -0.4], t0=t0)


def numerical(field, name, run, h=1e-5, place=()):
    """Central differences of the end state (d, Pi) by a parameter."""

    def end(change):
        value = np.array(field.values[name], float)
        value[place] += change
        return ph.solve(problem(field.bind(**{name: value.tolist()})), **run)

    high, low, middle = end(h), end(-h), end(0.0)
    turn = (middle.rotation[-1].inv() * high.rotation[-1]).as_rotvec()
    turn -= (middle.rotation[-1].inv() * low.rotation[-1]).as_rotvec()
    return np.concatenate([turn, high.momentum[-1] - low.momentum[-1]]) / (2 * h)


RUNS = {
    "tolerance": {"tol": 1e-12, "t_end": 3.0},
    "steps": {"method": "mkrk(gauss3)", "dt": 0.07, "steps": 43},
    "every": {"method": "mkrk(gauss3)", "dt": 0.05, "steps": 60, "every": 4},
    "backwards": {"method": "mkrk(gauss3)", "dt": -0.05, "steps": 60},
}


@pytest.mark.parametrize("name", RUNS)
def test_times_of_a_burn(name):
    run, sign = RUNS[name], -1 if name == "backwards" else 1
    field = burn(push=0.7, start=min(sign * 0.81, sign * 1.93), stop=max(sign * 0.81, sign * 1.93))
    found = ph.solve(problem(field), **run, tangent=True).tangent.params
    for name in field.values:
        np.testing.assert_allclose(found[name][-1], numerical(field, name, run), rtol=0, atol=2e-7)
    assert abs(found["start"][-1]).max() > 0.1


def test_the_jump_itself():
    """One axis: the momentum grows by push (t - start), the angle by push (t - start)^2/(2 I)."""

    @ph.torque
    def begins(t, push, start):
        return ph.where(t > start, push, 0.0), 0.0, 0.0

    still = ph.Problem(ph.Body([2.0, 2.0, 2.0]), begins(0.6, 1.0), omega=[0.0, 0.0, 0.0])
    sol = ph.solve(still, tol=1e-10, t_end=2.0, tangent=True)
    by_time = sol.at([0.5, 1.5, 2.0]).tangent.params["start"]
    np.testing.assert_allclose(by_time[:, 3], [0.0, -0.6, -0.6], atol=1e-12)
    np.testing.assert_allclose(by_time[:, 0], [0.0, -0.15, -0.3], atol=1e-12)
    stepped = ph.solve(still, "mkrk(rk4)", dt=0.4, t_end=2.0, tangent=True)
    np.testing.assert_allclose(stepped.tangent.params["start"][:, 0], [0, 0, 0, -0.06, -0.18, -0.3], atol=1e-12)
    np.testing.assert_allclose(stepped.at([1.1]).tangent.params["start"][0, 0], -0.03, atol=1e-12)


def test_a_condition_that_is_not_linear_in_time():
    field = swinging(push=0.5, rate=2.1)
    found = ph.solve(problem(field), tol=1e-12, t_end=4.0, tangent=True).tangent.params["rate"][-1]
    np.testing.assert_allclose(found, numerical(field, "rate", {"tol": 1e-12, "t_end": 4.0}), rtol=0, atol=2e-7)


def test_thrusters_that_begin_together():
    field = ph.fields.thruster([0.3, 0.0, 0.1], on=[[0.5, 1.1], [1.6, 2.0]]) + burn(push=0.4, start=0.5, stop=2.0)
    run = {"tol": 1e-12, "t_end": 2.5}
    found = ph.solve(problem(field), **run, tangent=True).tangent.params
    names = list(field.values)
    on, start = (next(name for name in names if name.endswith(end)) for end in ("on", "start"))
    np.testing.assert_allclose(found[start][-1], numerical(field, start, run), rtol=0, atol=2e-7)
    for place in ((0, 0), (1, 1)):
        expected = numerical(field, on, run, place=place)
        np.testing.assert_allclose(found[on][-1][:, place[0], place[1]], expected, rtol=0, atol=2e-7)


def test_conditions_that_change_together_and_depend_on_each_other():
    sol = ph.solve(problem(both(push=0.5, first=1.0, second=1.0)), tol=1e-9, t_end=2.0, tangent=True)
    with pytest.warns(ph.ResultWarning, match="depend on each other"):
        found = sol.tangent.params
    assert np.isnan(found["first"][-1]).any()
    assert np.isfinite(found["push"]).all()


def test_a_jump_at_the_start_is_held_fixed_and_said_so():
    sol = ph.solve(problem(burn(push=0.7, start=0.0, stop=1.0)), tol=1e-9, t_end=2.0, tangent=True)
    with pytest.warns(ph.ResultWarning, match="lies on the start or the end"):
        found = sol.tangent.params
    assert (found["start"] == 0).all()
    assert abs(found["stop"][-1]).max() > 0.1


def test_gradients_and_fits_know_the_times():
    field = burn(push=0.7, start=0.81, stop=1.93)
    found = ph.gradient(lambda momentum: momentum[0], problem(field), "mkrk(gauss3)", dt=0.07, steps=43, wrt=["params"])
    expected = numerical(field, "stop", RUNS["steps"])[3]
    assert found.params["stop"] == pytest.approx(expected, abs=2e-7)
    times = np.linspace(0.1, 3.0, 30)
    sol = ph.solve(problem(field), tol=1e-12, t_end=3.0, times=times)
    data = ph.measurements.rates(times, sol.omega, sigma=1e-4)
    guess = problem(field.bind(start=0.9, stop=1.8))
    fitted = ph.fit(guess, data, free=["start", "stop"])
    assert fitted.values["start"] == pytest.approx(0.81, abs=1e-6)
    assert fitted.values["stop"] == pytest.approx(1.93, abs=1e-6)


def test_an_ensemble_to_a_tolerance_has_the_derivatives_of_its_runs():
    omega = np.random.default_rng(0).normal(size=(2, 3))
    field = burn(push=0.7, start=0.81, stop=1.3)
    many = ph.ensemble(problem(field), omega=omega, step_tol=1e-8, t_end=2.0, times=[1.0, 2.0], tangent=True)
    for i in range(2):
        one = ph.solve(problem(field).starting(omega=omega[i]), step_tol=1e-8, t_end=2.0, tangent=True)
        expected = one.at([1.0, 2.0]).tangent
        assert (many.tangent.params["stop"][:, i] == expected.params["stop"]).all()
        assert (many.tangent.matrix[:, i] == expected.matrix).all()


def test_an_ensemble_with_equal_steps_holds_them_fixed_and_says_so():
    omega = np.random.default_rng(0).normal(size=(3, 3))
    many = ph.ensemble(
        problem(burn(push=0.7, start=0.81, stop=1.3)), "imidm", omega=omega, dt=0.1, steps=20, tangent=True
    )
    with pytest.warns(ph.ResultWarning, match="held fixed"):
        assert many.tangent.params["stop"].shape == (2, 3, 6)


@pytest.mark.parametrize("method", ["imidm", "mkrk(gauss3)"])
def test_implicit_steps_count_their_references_to_the_edges(method):
    """The edges are an array in the system. A solver passes it on without tangents: its memory was freed too early."""
    for _ in range(20):
        sol = ph.solve(problem(burn(push=0.7, start=0.81, stop=1.3)), method, dt=0.07, steps=30, tangent=True)
        assert np.isfinite(sol.tangent.matrix).all()
