"""Jumps of a field in time under sampled-data control: steps end at them as they end at the samples."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import polhode as ph

TENSOR = np.array([[1.0, 0.1, 0.0], [0.1, 1.4, -0.1], [0.0, -0.1, 1.9]])
START = {"euler": ("XYZ", [0.5, 1.0, -0.7]), "omega": [0.3, 1.1, -0.7]}
END, PERIOD = 3.6, 0.4
PULSES = [[0.537, 1.213], [1.3, 1.4], [2.0, 2.917]]
PUSH = (0.3, -0.2, 0.25)
BURN = ph.fields.thruster(torque=list(PUSH), on=PULSES)
KNOTS = np.linspace(-0.1, 4.1, 15)
VALUES = np.stack([0.3 * np.sin(2 * KNOTS), 0.2 * np.cos(3 * KNOTS), 0.1 * KNOTS], 1)
TABLE = ph.fields.tabulated(KNOTS, VALUES)


@ph.torque
def comb(t, size, rate):
    """Pulses again and again: a condition of time whose edges have no formula."""
    return size * ph.where(math.sin(rate * t) > 0.3, 1.0, -0.5), 0.1 * size * t, 0.0


def problem(field=BURN, **more):
    return ph.Problem(ph.Body(TENSOR), field, **START, **more)


def error(R):
    """The axis of the attitude error, times the sine of its angle."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller(integral=[0.0, 0.0, 0.0])
def pid(R, omega, integral, period, stiffness=0.5, damping=0.7):
    """PID control of the attitude."""
    e = error(R)
    new = [integral[i] + period * e[i] for i in range(3)]
    return [-stiffness * e[i] - damping * omega[i] - 0.1 * new[i] for i in range(3)], {"integral": new}


@ph.controller(wheels=ph.actuators.wheels(momenta=[0.3, -0.2, 0.1], max_torque=0.4))
def turning(R, omega, wheels, stiffness=0.5, damping=0.7):
    """PD control by wheels."""
    e = error(R)
    return {"wheels": [stiffness * e[i] + damping * omega[i] for i in range(3)]}


@ph.controller(jets=ph.actuators.thrusters(2.0 * np.vstack([np.eye(3), -np.eye(3)])))
def pulsing(R, omega, period, stiffness=0.5, damping=0.7):
    """PD control by the lengths of pulses, which end within steps."""
    e = error(R)
    on = [-period * (stiffness * e[i] + damping * omega[i]) / 2.0 for i in range(3)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


LAWS = {"memory": pid, "wheels": turning, "thrusters": pulsing}
CONTROL = {"control": pid, "period": PERIOD}


def burning(t):
    return np.array(PUSH) * any(on <= t < off for on, off in PULSES)


def tabled(t):
    return np.array([np.interp(t, KNOTS, column) for column in VALUES.T])


def by_scipy(torque, edges):
    """Attitude and momentum at the end under `pid`, from one edge or sample to the next by SciPy."""
    inverse, start = np.linalg.inv(TENSOR), problem(None)
    matrix = Rotation.from_quat(start.quaternion, scalar_first=True).as_matrix()
    y, integral = np.concatenate([matrix.ravel(), TENSOR @ start.omega]), np.zeros(3)
    samples = PERIOD * np.arange(round(END / PERIOD))
    command = None

    def rate(t, y, middle):
        R, m = y[:9].reshape(3, 3), y[9:]
        w = inverse @ m
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        push = torque(middle) if torque is burning else torque(t)
        return np.concatenate([(R @ hat).ravel(), np.cross(m, w) + push + command])

    for a, b in itertools.pairwise(np.unique([*samples, *edges, END])):
        if a in samples:
            R, w = y[:9].reshape(3, 3), inverse @ y[9:]
            command, memory = pid.template.function(R, w, integral, PERIOD)
            command, integral = np.array(command), np.array(memory["integral"])
        y = solve_ivp(rate, (a, b), y, "DOP853", args=((a + b) / 2,), rtol=1e-13, atol=1e-14).y[:, -1]
    return y[:9].reshape(3, 3), y[9:]


FIELDS = {
    "thruster": (BURN, burning, np.ravel(PULSES)),
    "table": (TABLE, tabled, KNOTS[(KNOTS > 0) & (KNOTS < END)]),
}


def distance(sol, exact):
    return abs(sol.matrix[-1] - exact[0]).max() + abs(sol.momentum[-1] - exact[1]).max()


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("method", ["imidm", "mkrk(rk4)", "mkrk(gauss3)"])
def test_the_order_is_kept(method, name):
    """Orders 2, 4 and 6 in steps that meet the jumps between their ends."""
    field, torque, edges = FIELDS[name]
    exact = by_scipy(torque, edges)
    few, more = (distance(ph.solve(problem(field), method, dt=PERIOD / n, t_end=END, **CONTROL), exact) for n in (4, 8))
    assert math.log2(few / more) > ph.methods[method].order - 0.35
    fine = ph.solve(problem(field), "verner87", dt=PERIOD / 4, t_end=END, **CONTROL)
    assert distance(fine, exact) < 1e-12


@pytest.mark.parametrize("law", LAWS)
def test_every_kind_of_controller(law):
    """Few steps agree with many, at the samples and between steps; in plain Python, too."""
    given, control = problem(comb(0.3, 5.0)), {"control": LAWS[law], "period": PERIOD}
    few, many = (ph.solve(given, "verner87", dt=PERIOD / n, t_end=END, **control) for n in (2, 8))
    assert abs(few.momentum - many.momentum[::4]).max() < 1e-9
    times = np.linspace(0, END, 101)
    assert abs(few.at(times).momentum - many.at(times).momentum).max() < 1e-9
    for name in few.states:
        assert abs(few.states[name] - many.states[name][::4]).max() < 1e-9
    plain = in_python(LAWS[law])
    called = ph.solve(given, "verner87", dt=PERIOD / 2, t_end=END, control=plain, period=PERIOD)
    assert abs(called.momentum - few.momentum).max() < 1e-13


def in_python(law):
    """The same controller, called as plain Python."""
    memory = {name: list(x) for name, x in law.template.memory}
    return ph.controller(law.template.function, plain=True, **memory, **dict(law.template.actuators))


def test_events_and_kept_times():
    slow = ph.event(lambda omega: omega[1] - 0.4)
    few, many = (ph.solve(problem(), "verner87", dt=PERIOD / n, t_end=END, **CONTROL, events=[slow]) for n in (2, 16))
    assert len(few.events[0]) == len(many.events[0]) > 0
    assert abs(few.events[0].t - many.events[0].t).max() < 1e-10
    kept = ph.solve(problem(), "verner87", dt=PERIOD / 2, t_end=END, **CONTROL, times=[0.54, 1.35, 3.1])
    assert abs(kept.momentum - many.at([0.54, 1.35, 3.1]).momentum).max() < 1e-10


def test_bodies_of_an_ensemble():
    """In lanes, all bodies are stepped in the same parts, with the numbers of single runs."""
    given, how = problem(comb(0.3, 5.0)), {"method": "mkrk(rk4)", "dt": PERIOD / 2, "t_end": END, **CONTROL}
    omega = np.random.default_rng(1).normal(size=(3, 3))
    many = ph.ensemble(given, omega=omega, every=1, **how)
    for i, start in enumerate(omega):
        alone = ph.solve(given.starting(omega=start), **how)
        assert abs(many.momentum[:, i] - alone.momentum).max() < 1e-14
        assert abs(many.states["integral"][:, i] - alone.states["integral"]).max() < 1e-14
        assert abs(many[i].at(1.61).momentum - alone.at(1.61).momentum).max() < 1e-14


# --- adaptive steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_to_a_tolerance(name):
    field, torque, edges = FIELDS[name]
    exact = by_scipy(torque, edges)
    for tol in (1e-6, 1e-9, 1e-12):
        sol = ph.solve(problem(field), tol=tol, t_end=END, **CONTROL)
        assert distance(sol, exact) < 2 * tol
        assert set(edges) <= set(sol.t)
    fine = ph.solve(problem(field), "verner87", dt=PERIOD / 16, t_end=END, **CONTROL)
    assert abs(sol.at(fine.t).momentum - fine.momentum).max() < 1e-11
    np.testing.assert_allclose(sol.control.t, fine.control.t, rtol=1e-15)
    np.testing.assert_allclose(sol.control.torque, fine.control.torque, atol=1e-11)


@pytest.mark.parametrize("law", ["wheels", "thrusters"])
def test_actuators_to_a_tolerance(law):
    given, control = problem(comb(0.3, 5.0)), {"control": LAWS[law], "period": PERIOD}
    fine = ph.solve(given, "verner87", dt=PERIOD / 8, t_end=END, **control)
    sol = ph.solve(given, tol=1e-10, t_end=END, **control)
    assert abs(sol.momentum[-1] - fine.momentum[-1]).max() < 1e-10
    plain = ph.solve(given, step_tol=1e-12, t_end=END, control=in_python(LAWS[law]), period=PERIOD)
    assert abs(plain.momentum[-1] - fine.momentum[-1]).max() < 1e-10


def test_steps_end_at_stops():
    stops = [0.7, 1.1, 3.3]
    sol = ph.solve(problem(), step_tol=1e-9, t_end=END, stops=stops, **CONTROL)
    assert {*stops, *np.ravel(PULSES)} <= set(sol.t)
    short = ph.solve(problem(), step_tol=1e-6, t_end=END, max_step=0.05, **CONTROL)
    assert np.diff(short.t).max() < 0.05 + 1e-15


@pytest.mark.parametrize("ulps", [-1, 0, 1, 3])
def test_jumps_at_samples(ulps):
    """An edge that is a sample up to round-off gives no second sample, and none is missed."""
    edge = 0.3
    for _ in range(abs(ulps)):
        edge = math.nextafter(edge, math.copysign(9.0, ulps))
    given = problem(ph.fields.thruster(torque=list(PUSH), on=[[edge, 0.55]]))
    fine = ph.solve(given, "verner87", dt=0.05, t_end=0.7, control=pid, period=0.1)
    sol = ph.solve(given, tol=1e-11, t_end=0.7, control=pid, period=0.1, tangent=True)
    assert len(sol.control) == 8
    np.testing.assert_allclose(sol.control.memory["integral"], fine.control.memory["integral"], rtol=0, atol=1e-11)
    assert abs(sol.momentum[-1] - fine.momentum[-1]).max() < 1e-11
    exact = ph.solve(given, "verner87", dt=0.05, t_end=0.7, control=pid, period=0.1, tangent=True)
    assert abs(sol.tangent.matrix[-1] - exact.tangent.matrix[-1]).max() < 1e-9


def test_the_last_sample_is_at_the_end():
    """3 * 0.1 is a little more than 0.3."""
    fine = ph.solve(problem(), "verner87", dt=0.05, t_end=0.3, control=pid, period=0.1)
    sol = ph.solve(problem(), tol=1e-11, t_end=0.3, control=pid, period=0.1)
    np.testing.assert_allclose(sol.control.torque, fine.control.torque, rtol=0, atol=1e-11)


@ph.torque
def bump(t, size, center, width):
    """A smooth pulse."""
    return 0.0, 0.0, size * ph.math.exp(-(((t - center) / width) ** 2))


def test_short_smooth_pulses_are_not_missed():
    given = ph.Problem(ph.Body([2.0, 2.0, 2.0]), bump(10.0, 33.3, 0.02), omega=[0.0, 0.0, 0.1])
    sol = ph.solve(given, tol=1e-9, t_end=100.0, control=lambda omega: (0.0, 0.0, 0.0), period=50.0)
    assert sol.momentum[-1, 2] == pytest.approx(0.2 + 10.0 * 0.02 * math.sqrt(math.pi), rel=1e-8)
    assert "the torque was sampled" in sol.reason


# --- derivatives and files --------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["memory", pytest.param("wheels", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [{"method": "verner87", "dt": 0.2}, {"tol": 1e-12}], ids=["dt", "tol"])
def test_derivatives(law, how):
    given, run, small = problem(), {"control": LAWS[law], "period": PERIOD, "t_end": END, **how}, 1e-5
    sol, units = ph.solve(given, tangent=True, **run), np.eye(3)

    def by_differences(change):
        ends = [ph.solve(change(sign * small), **run).momentum[-1] for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * small)

    slope = by_differences(lambda x: given.starting(momentum=given.momentum + x * units[1]))
    assert abs(sol.tangent.matrix[-1, 3:, 4] - slope).max() < 1e-8
    slope = by_differences(lambda x: problem(ph.fields.thruster(torque=PUSH + x * units[2], on=PULSES)))
    with pytest.warns(ph.ResultWarning, match="these times are held fixed"):
        found = sol.tangent.params
    assert abs(found["thruster_torque"][-1, 3:, 2] - slope).max() < 1e-8
    kept = ph.solve(given, tangent=True, **run, times=[0.9, 2.5])
    assert abs(kept.tangent.matrix - sol.tangent.at([0.9, 2.5]).matrix).max() < 1e-12


def test_files_have_the_same_bits(tmp_path):
    given, out, how = problem(comb(0.3, 5.0)), tmp_path / "run.zarr", {"method": "mkrk(rk4)", "dt": 0.1, **CONTROL}
    whole = ph.solve(given, t_end=END, **how)
    ph.solve(given, t_end=5 * PERIOD, **how, out=out)
    resumed = ph.solve(given, t_end=END, **how, out=out, resume=True)
    for name in ("t", "quaternion", "momentum"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    np.testing.assert_array_equal(ph.load(out).control.torque, whole.control.torque)


# --- jumps in the state -----------------------------------------------------------------------------


@ph.torque
def relays(t, R, omega, k):
    """Torques that jump with attitude, time and angular velocity."""
    timed = ph.where(t < 1.234, 1.0, -1.0)
    return ph.where(R[0, 1] > 0.1, -k, k), 0.05 * k * timed, 0.3 * k * ph.where(omega[2] > -0.3, 1.0, -0.5)


SIDES = {"memory": 0.4, "wheels": 0.4, "thrusters": 0.3}


@functools.cache
def fine(law):
    return ph.solve(
        problem(relays(SIDES[law])), "verner87", dt=PERIOD / 32, t_end=END, control=LAWS[law], period=PERIOD
    )


@pytest.mark.parametrize("method", ["imidm", "mkrk(rk4)", "mkrk(gauss3)"])
def test_the_order_is_kept_at_jumps_in_the_state(method):
    few, more = (
        ph.solve(problem(relays(0.4)), method, dt=PERIOD / n, t_end=END, **CONTROL).momentum[-1] for n in (2, 4)
    )
    exact = fine("memory").momentum[-1]
    assert math.log2(abs(few - exact).max() / abs(more - exact).max()) > ph.methods[method].order - 0.35


@pytest.mark.parametrize("law", LAWS)
def test_states_between_steps_at_jumps_in_the_state(law):
    given, how = problem(relays(SIDES[law])), {"t_end": END, "control": LAWS[law], "period": PERIOD}
    slow = ph.event(lambda omega: omega[1] - 0.4)
    for steps in ({"method": "verner87", "dt": PERIOD / 4}, {"step_tol": 1e-12}, {"tol": 1e-10}):
        sol = ph.solve(given, **how, **steps, events=[slow])
        assert abs(sol.at(fine(law).t).momentum - fine(law).momentum).max() < 1e-10
        assert len(sol.control) == len(fine(law).control)
        assert abs(sol.control.torque - fine(law).control.torque).max() < 1e-10
        assert abs(sol.events[0].omega[:, 1] - 0.4).max() < 1e-12
    assert len(sol) < 80


def test_plain_controllers_are_called_once_at_each_sample():
    times = []

    def law(t, R, omega):
        times.append(t)
        return -0.7 * np.clip(omega, -9.0, 9.0)

    plain = {"control": ph.controller(law, plain=True), "period": PERIOD, "t_end": END}
    sol = ph.solve(problem(relays(0.4)), "mkrk(rk4)", dt=PERIOD / 2, **plain)
    np.testing.assert_allclose(times[-10:], sol.control.t, atol=1e-15)
    assert len(times) <= 11  # once more before the run
    with pytest.warns(ph.ResultWarning, match="the order is lost at a jump; write the controller as a formula"):
        ph.solve(problem(relays(0.4)), step_tol=1e-9, **plain)


@ph.torque
def dry(omega, k):
    return tuple(-k * ph.where(w > 0, 1.0, -1.0) for w in omega)


def test_sliding_is_told():
    given, how = problem(dry(0.5)), {"control": pid(stiffness=0.1), "period": PERIOD, "t_end": END}
    with pytest.warns(ph.ResultWarning, match="of 18 steps .* holds the motion on the surface of a jump"):
        ph.solve(given, "mkrk(rk4)", dt=PERIOD / 2, **how)


@pytest.mark.parametrize("how", [{"method": "mkrk(rk4)", "dt": 0.1}, {"step_tol": 1e-9}], ids=["dt", "step_tol"])
def test_files_of_runs_with_jumps_in_the_state(tmp_path, how):
    given = problem(relays(0.4))
    whole = ph.solve(given, t_end=END, **how, **CONTROL)
    if "dt" in how:
        ph.solve(given, t_end=5 * PERIOD, **how, **CONTROL, out=tmp_path / "run.zarr")
    kept = ph.solve(given, t_end=END, **how, **CONTROL, out=tmp_path / "run.zarr", resume=True)
    np.testing.assert_array_equal(kept.momentum[-1], whole.momentum[-1])
    np.testing.assert_array_equal(ph.load(tmp_path / "run.zarr").control.torque, whole.control.torque)
