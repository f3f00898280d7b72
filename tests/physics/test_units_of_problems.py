"""The unit of time and that of mass make no difference: powers of two are exact, however large or small."""

import math

import numpy as np
import pytest

import polhode as ph
from polhode.kernels.loops import stepping
from polhode.numbers import floats
from polhode.physics.units import NO_UNITS, Units, rescaled, units_of, units_of_steps
from polhode.physics.validate import check_times
from polhode.run.integrator import start as engine_start
from polhode.run.integrator import state_space, torque_kernel

MOMENTS, OMEGA = np.array([5.0, 4.0, 1.0]), np.array([0.3, 0.2, 5.0])
ATTITUDE = [math.cos(0.15), math.sin(0.15), 0.0, 0.0]
EXPONENTS = [(300, 0), (-300, 0), (0, 300), (0, -300), (300, -300), (-300, 300), (-300, -300), (70, -5), (-70, 20)]


@ph.torque
def driven(t, R, omega, push, rate, drag):
    return push * math.sin(rate * t) - drag * omega[0], -drag * omega[1], push * R[0][1]


def fields(k, j):
    """With the unit of time 2^-k and that of mass 2^-j."""
    burn = ph.fields.thruster([0.0, 0.0, math.ldexp(3.0, 2 * k + j)], on=[math.ldexp(1.25, -k), math.ldexp(1.5, -k)])
    return {
        "free": None,
        "top": ph.fields.gravity(math.ldexp(20.0, 2 * k + j)),
        "driven": driven(math.ldexp(0.5, 2 * k + j), math.ldexp(3.0, k), math.ldexp(0.05, k + j)),
        "burn": burn,
    }


def problem(name, k, j, omega=OMEGA):
    body = ph.Body(np.ldexp(MOMENTS, j))
    return ph.Problem(body, fields(k, j)[name], attitude=ATTITUDE, omega=np.ldexp(omega, k), t0=math.ldexp(-0.5, -k))


def in_unit_one(sol, k, j):
    return np.ldexp(sol.t, k), sol.quaternion, np.ldexp(sol.momentum, -k - j)


@pytest.mark.parametrize("name", ["free", "top", "driven", "burn"])
@pytest.mark.usefixtures("plain_first")
def test_to_a_tolerance(name):
    tol, ends = 1e-9, []
    for k, j in [(0, 0), *EXPONENTS]:
        start = problem(name, k, j)
        sol = ph.solve(start, tol=tol, t_end=math.ldexp(2.5, -k))
        assert sol.error_estimate <= tol
        t, q, m = in_unit_one(sol, k, j)
        dense = sol.at(math.ldexp(1.4, -k)).quaternion[0]
        ends.append((t[0], t[-1], *q[-1], *m[-1] / 20, *dense))
    assert np.abs(np.array(ends) - ends[0]).max() < 3 * tol
    scaled = np.array(ends)[1:]
    assert (scaled == scaled[0]).all()  # all of them are solved in the same units, so to the same bits


@pytest.mark.usefixtures("plain_first")
def test_a_very_slow_body_to_a_tolerance():
    """Its Taylor coefficients are zero in doubles from some order on."""
    for k in (-55, -60, -75, -90, -120):
        for tol in (1e-6, 1e-12):
            slow, usual = (ph.solve(problem("top", x, 0), tol=tol, t_end=math.ldexp(2.5, -x)) for x in (k, 0))
            assert np.abs(slow.quaternion[-1] - usual.quaternion[-1]).max() < 3 * tol, (k, tol)


def test_units_are_chosen_for_extreme_numbers_only():
    assert units_of(problem("top", 0, 0), 3.0) is NO_UNITS
    assert units_of(problem("top", -12, 50), 3.0 * 2**12) is NO_UNITS
    assert units_of(problem("free", -300, 0), math.ldexp(3.0, 300)) == Units(297, 0)
    assert units_of(problem("free", 0, 300), 3.0).inertia == 303
    assert units_of(problem("free", 0, 0, omega=np.zeros(3)), 2.0**-40) == Units(-41, 0)
    far = units_of(problem("free", -600, 0), math.ldexp(3.0, 600))
    assert abs(far.torque) <= 1000


def test_a_problem_in_other_units_is_the_same_one():
    """The torque in the new units is 2^(2 a - b) times that in the old ones, at the time and velocity of then."""
    start, units = problem("driven", -300, 30), Units(299, 31)
    made = rescaled(start, units)
    R = ((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    inner = made.field.torque_value(0.75, R, (0.5, 1.0, 2.0))
    outer = start.field.torque_value(math.ldexp(0.75, 299), R, tuple(math.ldexp(x, -299) for x in (0.5, 1.0, 2.0)))
    assert inner == tuple(math.ldexp(x, units.torque) for x in outer)
    assert np.ldexp(made.omega, -299) == pytest.approx(start.omega, rel=1e-15)


@pytest.mark.parametrize("strength", [20.0, -20.0, 0.0])
def test_a_body_at_rest_in_balance(strength):
    """Upright, hanging, and where nothing acts on it: it stays, and the error is that of rounding."""
    start = ph.Problem(ph.Body([5.0, 5.0, 1.0]), ph.fields.gravity(strength), omega=[0.0, 0.0, 0.0])
    sol = ph.solve(start, tol=1e-9, t_end=3.0)
    assert (sol.quaternion[-1] == [1, 0, 0, 0]).all()
    assert (sol.momentum == 0).all()
    assert 0 < sol.error_estimate < 1e-15


@pytest.mark.parametrize("how", [{"dt": 0.1, "steps": 5}, {"dt": 0.1, "t_end": 1e16 + 100}, {"dt": 1.0, "steps": 9}])
def test_steps_below_the_spacing_of_doubles(how):
    """All states of such a run would have the same time."""
    start = ph.Problem(ph.Body(MOMENTS), omega=OMEGA, t0=1e16)
    with pytest.raises(ph.InputError, match=r"dt = .* is below 2, the spacing of doubles between t0 = 1e\+16"):
        ph.solve(start, "imidm", **how)
    if "steps" in how:
        with pytest.raises(ph.InputError, match="the spacing of doubles"):
            ph.ensemble(ph.Body(MOMENTS), None, np.ones((2, 3)), "imidm", t0=1e16, **how)


def test_runs_to_a_tolerance_need_times_for_their_steps():
    start = ph.Problem(ph.Body(MOMENTS), ph.fields.gravity(1.0), omega=OMEGA, t0=1e16)
    with pytest.raises(ph.InputError, match="fewer than 64 doubles between"):
        ph.solve(start, tol=1e-6, t_end=1e16 + 8)


def test_the_last_step_may_reach_a_power_of_two():
    """Up to 2^53 steps of 1 have times of their own."""
    check_times(0.0, 1.0, 2**53)
    with pytest.raises(ph.InputError, match="spacing"):
        check_times(0.0, 1.0, 2**53 + 2)
    with pytest.raises(ph.InputError, match="exceed the largest double"):
        check_times(0.0, 1e300, 10**9)


# --- equal steps ------------------------------------------------------------------------------------


def stepped(method, k, j, steps=3):
    """Rows of a few steps in plain Python, in the units that `ph.solve` would choose, seen in unit one."""
    body, omega = ph.Body(np.ldexp([1.4, 1.0, 0.7], j)), np.ldexp([0.6, 0.2, 0.5], k)
    field = None if method.needs == "free" else ph.fields.gravity(math.ldexp(0.3, 2 * k + j))
    outer = ph.Problem(body, field, attitude=ATTITUDE, omega=omega)
    dt = math.ldexp(0.03125, -k)
    units = units_of_steps(outer, dt, steps)
    inner, number = rescaled(outer, units), floats.number
    before, after = method.processors(number)
    torque = torque_kernel(inner, number, method)
    advance = stepping(method.build(number), torque, state_space(method), before, after)
    y, system = engine_start(inner, method, number)
    rows = np.empty((steps, 7))
    *_, fine = advance(float(units.times(dt)), 0.0, 0, steps, 1, steps, y, system, rows)
    assert fine
    rows = units.rows(rows, back=True)
    rows[:, 4:] = np.ldexp(rows[:, 4:], -k - j)
    return rows


@pytest.mark.parametrize("name", [m.name for m in ph.methods.taking("free") if not m.has_own_time])
def test_equal_steps_of_every_method(name):
    """Bit for bit, wherever the numbers are doubles at all."""
    method = ph.methods[name]
    usual = stepped(method, 0, 0)
    for k, j in [(300, 0), (-330, 0), (-300, -300), (300, -300), (-25, 0)]:
        assert (stepped(method, k, j) == usual).all(), (k, j)


def test_equal_steps_compiled():
    """As they are kept in the user's units."""

    def run(k, j, **how):
        return ph.solve(problem("top", k, j), "taylor(4)", dt=math.ldexp(2.0**-7, -k), steps=20, **how)

    usual = run(0, 0)
    for k, j in [(-330, 0), (300, 300)]:
        sol = run(k, j)
        t, q, m = in_unit_one(sol, k, j)
        assert (t == usual.t).all()
        assert (q == usual.quaternion).all()
        assert (m == usual.momentum).all()
        assert sol.dt == math.ldexp(2.0**-7, -k)


def test_a_failed_step_is_told_in_the_users_units():
    """And what its torque did wrong as well."""

    @ph.torque
    def fragile(t, end, size):
        return size * math.sqrt(end - t), 0.0, 0.0

    late = math.ldexp(1.0, 100)
    start = ph.Problem(ph.Body(MOMENTS), fragile(late, 2.0**-260), omega=np.ldexp(OMEGA, -100))
    with pytest.raises(ph.StepError, match=rf"with dt = {late / 8:.6g}\)".replace("+", r"\+")) as caught:
        ph.solve(start, "fe", dt=late / 8, steps=20)
    assert caught.value.partial.t[-1] == pytest.approx(late, rel=0.2)


def test_a_resumed_run_in_other_units(tmp_path):
    """The state in a file stays in the units of the run; a later end does not change them."""
    start, dt = problem("top", -200, 0), math.ldexp(0.01, 200)
    for steps in (40, 80):
        parts = ph.solve(start, "imidm", dt=dt, steps=steps, out=tmp_path / "a.zarr", resume=True)
    whole = ph.solve(start, "imidm", dt=dt, steps=80)
    assert (parts.quaternion == whole.quaternion).all()
    assert (parts.momentum == whole.momentum).all()


@pytest.mark.parametrize("exponent", [-80, 80])
def test_units_in_which_products_are_no_doubles_are_refused(exponent):
    """Where units are not changed for the user: squares of squares of angular velocities would be lost."""
    dt, momenta = 10.0**exponent, np.full((2, 3), 0.1 / 10.0**exponent)
    calls = (
        lambda: ph.ensemble([1.0, 2.0, 2.5], None, momenta, "taylor(6)", dt=dt, steps=2),
        lambda: ph.ensemble([1.0, 2.0, 2.5], None, momenta, tol=1e-6, t_end=dt),
        lambda: ph.stepper(ph.Body([1.0, 2.0, 2.5]), "taylor(6)", dt),
    )
    for call in calls:
        with pytest.raises(ph.InputError, match="choose a unit of time in which"):
            call()


FAR = [-190, -150, 150, 190]


@pytest.mark.parametrize("name", ["top", "driven"])
def test_ensembles_to_a_tolerance(name):
    """Series in lanes have a unit of time of their own, within single precision or beyond."""
    tol, ends = 1e-9, []
    for k in (0, *FAR):
        many = ph.ensemble(problem(name, k, 0), tol=tol, t_end=math.ldexp(2.5, -k))
        assert many.failed[0] < 0
        ends.append((*many.quaternion[-1, 0], *np.ldexp(many.momentum[-1, 0], -k) / 20))
    assert np.abs(np.array(ends) - ends[0]).max() < 3 * tol


def test_chaos_indicators():
    found = [ph.chaos(problem("top", k, 0), t_end=math.ldexp(2.5, -k)) for k in (0, *FAR)]
    for one in found[1:]:
        np.testing.assert_allclose(
            [one.growth[-1], one.megno[-1]], [found[0].growth[-1], found[0].megno[-1]], rtol=1e-5
        )


@pytest.mark.parametrize("k", FAR)
def test_tangents_far_from_unit_time_are_refused(k):
    """Powers of angular velocities in the derivatives of a step would overflow, or underflow to another result."""
    for how in (
        {"tol": 1e-11, "t_end": math.ldexp(2.5, -k)},
        {"method": "taylor(12)", "dt": math.ldexp(0.1, -k), "steps": 9},
    ):
        with pytest.raises(ph.InputError, match="choose a unit of time in which they are of moderate size"):
            ph.solve(problem("top", k, 0), **how, tangent=True)


@pytest.mark.parametrize("k", FAR)
def test_tangents_of_runge_kutta_steps(k):
    one, other = (
        ph.solve(problem("top", e, 0), "mkrk(rk4)", dt=math.ldexp(0.05, -e), steps=20, tangent=True) for e in (0, k)
    )
    np.testing.assert_allclose(other.tangent.matrix[:, :3, :3], one.tangent.matrix[:, :3, :3], atol=1e-12)


@pytest.mark.parametrize("way", ["ensemble", "stepper", "batch stepper"])
def test_long_unscaled_steps_of_series_are_refused(way):
    """In a single step, and in lanes, high powers of small angular velocities would be missing."""
    start, dt = problem("free", -100, 0), math.ldexp(0.1, 100)
    calls = {
        "ensemble": lambda: ph.ensemble(start, "taylor(12)", dt=dt, steps=20),
        "stepper": lambda: ph.stepper(start.body, "taylor(12)", dt),
        "batch stepper": lambda: ph.batch_stepper(start.body, "taylor(12)", dt=dt),
    }
    with pytest.raises(ph.InputError, match=r"must be at most 1e.20, or high powers of angular velocities underflow"):
        calls[way]()
