"""Sampled-data control: against SciPy with the same held torque, what is held, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import polhode as ph

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
START = {"euler": ("XYZ", [0.5, 1.0, -0.7]), "omega": [0.1, -0.2, 0.3]}
FREE = ph.Problem(BODY, **START)
DRAG = ph.Problem(BODY, ph.fields.linear_drag(0.1), **START)
PERIOD = 0.2


def error(R):
    """The vector of the attitude error R - R^T, which is sin(angle) times the axis."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller(integral=[0.0, 0.0, 0.0])
def pid(t, R, omega, integral, period, stiffness=1.0, damping=2.0, push=0.1):
    """PID control of the attitude, with a push that depends on time."""
    e = error(R)
    new = [integral[i] + period * e[i] for i in range(3)]
    torque = [-stiffness * e[i] - damping * omega[i] - 0.1 * new[i] for i in range(3)]
    return (torque[0], torque[1], torque[2] + push * ph.math.sin(t)), {"integral": new}


@ph.controller
def pd(R, omega, stiffness=1.0, damping=2.0):
    """PD control of the attitude."""
    e = error(R)
    return [-stiffness * e[i] - damping * omega[i] for i in range(3)]


def numpy_pd(R, omega):
    """The same with NumPy, which is no formula."""
    return -1.0 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2 - 2.0 * omega


def by_scipy(problem, law, period, count, drag=0.0):
    """The rotation matrix and the momentum at the samples, by SciPy."""
    inertia, inverse = np.array(BODY.inertia), np.linalg.inv(BODY.inertia)

    def rate(t, y, torque):
        R, m = y[:9].reshape(3, 3), y[9:]
        w = inverse @ m
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(R @ hat).ravel(), np.cross(m, w) - drag * w + torque])

    R = Rotation.from_quat(problem.quaternion, scalar_first=True).as_matrix()
    y, found, memory = np.concatenate([R.ravel(), inertia @ problem.omega]), [], None
    for k in range(count + 1):
        torque, memory = law(k * period, y[:9].reshape(3, 3), inverse @ y[9:], memory)
        found.append((y, torque))
        span = k * period, (k + 1) * period
        y = solve_ivp(rate, span, y, "DOP853", args=(np.array(torque),), rtol=1e-13, atol=1e-14).y[:, -1]
    return np.array([y for y, _ in found]), np.array([torque for _, torque in found])


def pid_by_hand(t, R, omega, memory):
    """The controller `pid` in plain Python."""
    return pid.template.function(t, R, omega, memory["integral"] if memory else (0.0, 0.0, 0.0), PERIOD)


@pytest.mark.parametrize("problem", [FREE, DRAG], ids=["free", "drag"])
@pytest.mark.parametrize("plain", [False, True])
def test_against_scipy_with_the_same_held_torque(problem, plain):
    law = ph.controller(pid.template.function, plain=plain, integral=[0.0, 0.0, 0.0])
    sol = ph.solve(problem, "verner87", dt=PERIOD / 4, t_end=6.0, control=law, period=PERIOD)
    states, torques = by_scipy(problem, pid_by_hand, PERIOD, 30, drag=0.1 * (problem is DRAG))
    assert sol.control.compiled is not plain
    assert np.abs(sol.matrix[::4].reshape(-1, 9) - states[:, :9]).max() < 1e-9
    assert np.abs(sol.momentum[::4] - states[:, 9:]).max() < 1e-9
    assert np.abs(sol.control.torque - torques).max() < 1e-9
    np.testing.assert_allclose(sol.control.t, np.arange(31) * PERIOD, rtol=1e-15)
    assert sol.control.memory["integral"].shape == (31, 3)


@pytest.mark.parametrize("method", ["fem", "imidm", "strang(dmv6)", "mkrk(rk4)"])
def test_every_one_step_method(method):
    """Without control in between the steps see a constant torque: the samples agree with the fine solution."""
    fine = ph.solve(FREE, "verner87", dt=0.05, t_end=2.0, control=pd, period=PERIOD)
    gaps = []
    for dt in (PERIOD / 8, PERIOD / 16):
        sol = ph.solve(FREE, method, dt=dt, t_end=2.0, control=pd, period=PERIOD)
        gaps.append(np.abs(sol.momentum[-1] - fine.momentum[-1]).max())
    order = np.log2(gaps[0] / gaps[1])
    assert order > 0.9 * min(4, ph.methods[method].order)


def test_a_slew_ends_at_rest():
    sol = ph.solve(FREE, "fem", dt=0.05, t_end=60.0, control=pd, period=0.1)
    assert np.abs(sol.omega[-1]).max() < 1e-8
    assert np.abs(sol.matrix[-1] - np.eye(3)).max() < 1e-6


def test_python_and_compiled_agree():
    one, two = (ph.solve(FREE, "verner87", dt=0.05, t_end=6.0, control=law, period=PERIOD) for law in (pd, numpy_pd))
    assert (one.control.compiled, two.control.compiled) == (True, False)
    assert np.abs(one.momentum - two.momentum).max() < 1e-14


def test_the_torque_is_held_between_samples():
    """The rate of the momentum jumps at the samples only; dense output follows the torque that acts."""
    sol = ph.solve(FREE, "verner87", dt=0.05, t_end=6.0, control=pd, period=PERIOD)
    fine = ph.solve(FREE, "verner87", dt=0.0125, t_end=6.0, control=pd, period=PERIOD)
    np.testing.assert_array_equal(sol.states["torque"], np.repeat(sol.control.torque, 4, axis=0)[: len(sol)])
    between = sol.at(fine.t)
    assert np.abs(between.momentum - fine.momentum).max() < 1e-12
    at_samples = sol.at(sol.control.t)
    np.testing.assert_array_equal(at_samples.states["torque"], sol.control.torque)


def test_kept_states_and_events():
    whole = ph.solve(FREE, "verner87", dt=0.05, t_end=6.0, control=pd, period=PERIOD)
    thin = ph.solve(FREE, "verner87", dt=0.05, t_end=6.0, control=pd, period=PERIOD, every=3)
    np.testing.assert_array_equal(thin.momentum, whole.momentum[::3])
    np.testing.assert_array_equal(thin.states["torque"], whole.states["torque"][::3])
    assert set(thin.control.t) <= set(whole.control.t)
    times = [0.33, 1.7, 6.0]
    kept = ph.solve(FREE, "verner87", dt=0.05, times=times, control=pd, period=PERIOD)
    np.testing.assert_allclose(kept.momentum, whole.at(times).momentum, atol=1e-15)
    slow = ph.event(lambda omega: omega[0] - 0.05)
    sol = ph.solve(FREE, "verner87", dt=0.05, t_end=6.0, control=pd, period=PERIOD, events=[slow])
    assert abs(sol.events[0].omega[0, 0] - 0.05) < 1e-12
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.control.torque, whole.control.torque)


def test_to_a_tolerance():
    """Adaptive steps end at the samples, and follow the fixed steps."""
    fine = ph.solve(DRAG, "verner87", dt=0.05, t_end=6.0, control=pid, period=PERIOD)
    for given in (
        {"tol": 1e-11},
        {"step_tol": 1e-12},
        {"tol": 1e-11, "times": fine.t},
        {"tol": 1e-11, "max_turn": 0.01},
    ):
        sol = ph.solve(DRAG, t_end=6.0, control=pid, period=PERIOD, **given)
        assert np.abs(sol.momentum[-1] - fine.momentum[-1]).max() < 1e-11
        assert np.abs(sol.at(fine.t).momentum - fine.momentum).max() < 1e-11
        np.testing.assert_allclose(sol.control.t, fine.control.t, atol=1e-14)
        np.testing.assert_allclose(sol.control.torque, fine.control.torque, atol=1e-11)
    plain = ph.controller(pid.template.function, plain=True, integral=[0.0, 0.0, 0.0])
    sol = ph.solve(DRAG, t_end=6.0, control=plain, period=PERIOD, step_tol=1e-12)
    assert np.abs(sol.momentum[-1] - fine.momentum[-1]).max() < 1e-11
    with pytest.raises(ph.InputError, match="tol repeats a run"):
        ph.solve(DRAG, t_end=6.0, control=plain, period=PERIOD, tol=1e-10)
    seen = ph.solve(DRAG, t_end=6.0, control=pid, period=PERIOD, tol=1e-11, events=[ph.event(lambda omega: omega[0])])
    assert np.abs(seen.events[0].omega[:, 0]).max() < 1e-12


def test_a_long_period_is_covered_by_several_steps():
    fast = FREE.starting(omega=[1.0, -2.0, 3.0])
    fine = ph.solve(fast, "verner87", dt=0.01, t_end=8.0, control=pd(0.02, 0.05), period=4.0)
    sol = ph.solve(fast, t_end=8.0, control=pd(0.02, 0.05), period=4.0, tol=1e-9)
    assert len(sol) > 10
    assert len(sol.control) == 3
    assert np.abs(sol.momentum[-1] - fine.momentum[-1]).max() < 1e-8
    part = ph.solve(fast, t_end=7.0, control=pd(0.02, 0.05), period=4.0, tol=1e-9)
    assert np.abs(part.momentum[-1] - sol.at(7.0).momentum[0]).max() < 1e-8
    assert part.control.t.tolist() == [0.0, 4.0]


def test_new_parameters_and_periods_compile_nothing():
    ph.solve(FREE, "verner87", dt=0.05, t_end=1.0, control=pd, period=PERIOD)
    sol = ph.solve(FREE, "verner87", dt=0.05, t_end=1.0, control=pd(0.3, damping=1.0), period=0.1)
    assert sol.info.compile_seconds == 0
    assert len(sol.control) == 11


def nan_later(t, omega):
    """A torque that is undefined from t = 1 on."""
    return 0.0, 0.0, ph.math.sqrt(1.0 - t)


def numpy_nan_later(t, omega):
    """The same, not a formula."""
    return np.array([0.0, 0.0, np.nan if t > 1.0 else 0.0])


@pytest.mark.parametrize("law", [nan_later, numpy_nan_later])
def test_a_controller_that_fails_later(law):
    with pytest.raises(
        ph.StepError, match=r"the controller \w*nan_later (must return finite|raised).* at t = 1.2"
    ) as stop:
        ph.solve(FREE, "fem", dt=0.1, t_end=3.0, control=law, period=PERIOD)
    assert stop.value.partial.t[-1] == pytest.approx(1.2)


def raises(t):
    """Not a formula, and without an answer at late times."""
    return np.array([[0.0, 0.0, 0.0]])[int(t // 1.0)]


def test_a_controller_that_raises():
    with pytest.raises(ph.StepError, match="the controller raises raised IndexError at t = 1"):
        ph.solve(FREE, "fem", dt=0.1, t_end=3.0, control=raises, period=PERIOD)


class Counting:
    """A controller with a state of its own."""

    def __init__(self):
        self.times = []

    def __call__(self, t, omega):
        self.times.append(t)
        return -omega

    def step(self, t, omega):
        return self(t, omega)


def test_objects_are_called_once_at_each_sample():
    for name in ("step", "__call__"):
        counting = Counting()
        ph.solve(FREE, "fem", dt=0.1, t_end=1.0, control=getattr(counting, name), period=PERIOD)
        np.testing.assert_allclose(counting.times, np.arange(6) * PERIOD, atol=1e-15)
    counting = Counting()
    sol = ph.solve(FREE, t_end=1.0, control=counting, period=PERIOD, step_tol=1e-9)
    assert len(counting.times) == 6
    assert not sol.control.compiled


def test_results_do_not_hold_the_controller_in_their_problem():
    event = ph.event(lambda omega: omega[0] - 0.05, terminal=True)
    for how in ({"method": "verner87", "dt": 0.05}, {"tol": 1e-9}):
        for events in ([], [event]):
            sol = ph.solve(FREE, **how, t_end=6.0, control=pd, period=PERIOD, events=events)
            assert sol.problem is None
            assert bool(sol.t[-1] < 6.0) is bool(events)
            assert sol.control.t[-1] <= sol.t[-1]


REFUSED = {
    "period must be positive": {"period": 0.0},
    "give period": {"period": None},
    "not a whole number of steps": {"dt": 0.15},
    "nearest t_end are .* and .*; dt must divide the period$": {"t_end": 1.2345},
    "control must be a function": {"control": 3.0},
    "also give control": {"control": None},
    "must return three numbers; it returned": {"control": lambda omega: (1.0, 2.0)},
    "must return finite numbers": {"control": lambda omega: (1.0, 2.0, float("nan"))},
    "three numbers; it returned 3.0": {"control": lambda omega: 3.0},
    "three numbers; it returned None": {"control": lambda omega: None},
    "must name its arguments": {"control": lambda *state: state},
    "must be a function of t, R, omega that returns a torque; got": {"control": max},
    "raised KeyError": {"control": lambda omega: {}["a"]},
    "acts forward in time": {"t_end": -1.0},
    "with control use a one-step method": {"method": "compensated(strang(dmv6))"},
    "digits is not available with control": {"digits": 30},
    "leave out `method`": {"tol": 1e-9, "dt": None},
    "forward in time": {"tol": 1e-9, "dt": None, "method": None, "t_end": -1.0},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    given = {"method": "fem", "dt": 0.1, "t_end": 1.0, "control": pd, "period": PERIOD} | REFUSED[message]
    with pytest.raises(ph.InputError, match=message):
        ph.solve(FREE, **given)


def test_mistakes_in_the_declaration():
    with pytest.raises(ph.InputError, match="must take its memory sum as an argument"):
        ph.controller(lambda omega: omega, sum=0.0)
    with pytest.raises(ph.InputError, match="must not be named torque"):
        ph.controller(lambda omega: omega, torque=0.0)
    with pytest.raises(ph.InputError, match="has the parameters gain"):
        ph.controller(lambda omega, gain: omega)()
    with pytest.raises(ph.InputError, match=r"the controller has the period 0\.1"):
        ph.solve(FREE, "fem", dt=0.1, t_end=1.0, control=ph.controller(pd.template.function, period=0.1), period=0.2)
    with pytest.raises(ph.InputError, match="in the shape of"):
        pid(integral=1.0)
    with pytest.raises(ph.InputError, match="got Controller"):
        ph.Problem(BODY, pd(), omega=[1, 2, 3])
