"""The built-in fields and sums of fields: each against its physics, then all of them in every number type.

The physics is tested on motions by scipy, which know nothing of the methods here.
"""

import json
import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import polhode as ph
from examples import KEYWORDS, SUMS, TILTED
from polhode.kernels.so3 import matrix, mul, rotate
from polhode.numbers.multiprecision import number
from polhode.physics.fields.formulas import MOST_ECCENTRIC, eccentric_anomaly

fields = ph.fields
BODY = ph.Body([2.0, 3.0, 4.0])
OMEGA = (0.3, 0.5, -0.2)
TARGET = Rotation.from_rotvec([0.1, 0.7, -0.3])
RNG = np.random.default_rng(3)


def attitudes(count):
    """Scattered attitudes as nested tuples."""
    return [tuple(map(tuple, R)) for R in Rotation.random(count, rng=np.random.default_rng(5)).as_matrix().tolist()]


def near(a, b, tolerance=1e-13):
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    return np.abs(a - b).max() <= tolerance * np.abs(b).max()


def flight(problem, times):
    """Quaternions, body momenta and energies at times, by scipy on the torque in plain Python."""

    def speed(t, y):
        q, m = tuple(y[:4] / np.linalg.norm(y[:4])), y[4:]
        w = problem._velocity(tuple(m.tolist()))
        torque = problem.field.torque_value(t, matrix(q), w)
        return [*(x / 2 for x in mul(q, (0.0, *w))), *(np.cross(m, w) + torque)]

    start = [*problem.quaternion, *problem.momentum]
    found = solve_ivp(speed, (times[0], times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-12).y.T
    q, m = found[:, :4] / np.linalg.norm(found[:, :4], axis=1)[:, None], found[:, 4:]
    w = np.array([problem._velocity(x) for x in m])
    energy = np.array([float(problem.potential(tuple(x))) for x in q]) + (w * m).sum(axis=1) / 2
    return q, m, energy


def spatial(q, m):
    return np.array([rotate(tuple(a), tuple(b)) for a, b in zip(q, m, strict=True)])


# --- gravity ----------------------------------------------------------------------------------------


def test_uniform_gravity_pulls_at_the_centre_of_mass():
    g = np.array([0.3, -0.2, -9.0])
    field = fields.uniform_gravity(TILTED, g)
    for R in attitudes(3):
        arm = TILTED.centre - TILTED.pivot
        assert near(field.torque_value(0.0, R, OMEGA), np.cross(arm, 6 * np.array(R).T @ g))
    top = ph.Body.cone(1, 2, mass=3).about([0, 0, -1.5])
    for R in attitudes(3):
        down = fields.uniform_gravity(top).torque_value(0.0, R, OMEGA)
        assert near(down, fields.gravity(3 * 9.80665 * 1.5).torque_value(0.0, R, OMEGA))
    with pytest.raises(ph.InputError, match="needs a body with a mass"):
        fields.uniform_gravity(BODY)


def test_the_gravity_gradient_is_that_of_masses():
    """Newton's attraction on every point of a body far away, whose torque differs by the ratio size/distance."""
    points, masses = RNG.normal(size=(7, 3)), RNG.uniform(1, 2, size=7)
    body = ph.Body.from_points(points, masses)
    far, mu, t = 1e5, 4e5, 20.0
    field = fields.gravity_gradient(body, mu=mu, radius=far, phase=0.4)
    angle = math.sqrt(mu / far**3) * t + 0.4
    place = far * np.array([math.cos(angle), math.sin(angle), 0])
    for R in attitudes(3):
        arms = (points - body.centre) @ np.array(R).T
        at = place + arms
        force = -mu * masses[:, None] * at / np.linalg.norm(at, axis=1)[:, None] ** 3
        torque = np.array(R).T @ np.cross(arms, force).sum(axis=0)
        assert near(field.torque_value(t, R, OMEGA), torque, 1e-3)
    assert fields.gravity_gradient(body, mu, far).needs == "attitude"


def test_libration_on_the_circular_orbit():
    """A body whose longest axis points to the centre swings in the plane with n sqrt(3 (I2 - I1)/I3)."""
    n = 1.3
    field = fields.gravity_gradient(BODY, mu=n * n * 8, radius=2.0)
    small = 1e-4
    start = ph.Problem(BODY, field, attitude=Rotation.from_rotvec([0, 0, small]), omega=[0, 0, n])
    swing = n * math.sqrt(3 * (3 - 2) / 4)
    times = np.linspace(0, 2 * math.pi / swing, 9)
    q, _, _ = flight(start, times)
    angle = 2 * np.unwrap(np.arctan2(q[:, 3], q[:, 0])) - n * times
    assert np.abs(angle - small * np.cos(swing * times)).max() < 1e-3 * small


def test_the_eccentric_orbit_is_keplers():
    mu, a, e = 2.0, 1.5, 0.6
    n = math.sqrt(mu / a**3)
    field = fields.eccentric_gravity_gradient(TILTED, mu=mu, semi_major_axis=a, eccentricity=e)
    speed = math.sqrt(mu / a * (1 + e) / (1 - e))
    times = [0.0, 1.0, math.pi / n, 7.3]

    def newton(t, y):
        return [*y[2:], *(-mu * y[:2] / np.linalg.norm(y[:2]) ** 3)]

    orbit = solve_ivp(newton, (0, 8), [a * (1 - e), 0, 0, speed], "DOP853", times, rtol=1e-12, atol=1e-13).y.T
    for t, place, R in zip(times, orbit, attitudes(4), strict=True):
        r = np.linalg.norm(place[:2])
        u = np.array(R).T @ [*place[:2] / r, 0]
        assert near(field.torque_value(t, R, OMEGA), 3 * mu / r**3 * np.cross(u, TILTED.tensor @ u), 1e-9)
    round_one = fields.eccentric_gravity_gradient(BODY, mu, a, 0.0, 0.3)
    for R in attitudes(2):
        circle = fields.gravity_gradient(BODY, mu, a, 0.3).torque_value(5.0, R, OMEGA)
        assert near(round_one.torque_value(5.0, R, OMEGA), circle, 1e-13)


def test_keplers_equation_is_solved_to_all_digits():
    with mpmath.workdps(60):
        e = number(MOST_ECCENTRIC)
        worst = 0
        for k in range(-60, 61):
            M = mpmath.mpf(k) ** 3 / 216000 * mpmath.pi + (2 * mpmath.pi if k % 2 else 0)
            E = eccentric_anomaly(e, M)
            worst = max(worst, abs(E - e * mpmath.sin(E) - M) / (1 - e * mpmath.cos(E)))
        assert worst < 1e-54
        assert abs(eccentric_anomaly(e, mpmath.mpf(0))) == 0


def test_the_distant_centre_is_the_orbit_stopped():
    for R in attitudes(3):
        u = np.array(R)[2]
        field = fields.distant_centre(TILTED, 0.7)
        assert near(field.torque_value(0.0, R, OMEGA), 3 * 0.7 * np.cross(u, TILTED.tensor @ u))
        assert float(field.potential_kernel(float)(R, field.parameters)) == pytest.approx(1.05 * u @ TILTED.tensor @ u)


# --- magnets, walls, springs ------------------------------------------------------------------------


def test_dipoles():
    m, B = np.array([0.3, -0.2, 0.5]), np.array([0.4, 0.1, 0.9])
    for R in attitudes(3):
        assert near(fields.dipole(m, B).torque_value(0.0, R, OMEGA), np.cross(m, np.array(R).T @ B))
        turned = Rotation.from_rotvec([0, 0, 0.7 * 2.5]).apply(B)
        there = fields.rotating_dipole(m, B, rate=0.7).torque_value(2.5, R, OMEGA)
        assert near(there, np.cross(m, np.array(R).T @ turned))
    times = np.linspace(0, 10, 20)
    _, _, energy = flight(ph.Problem(BODY, fields.dipole(m, B), omega=OMEGA), times)
    assert np.ptp(energy) < 1e-9
    _, _, driven = flight(ph.Problem(BODY, fields.rotating_dipole(m, B, 0.7), omega=OMEGA), times)
    assert np.ptp(driven) > 1e-2


def test_the_soft_wall():
    R = attitudes(1)[0]
    field = fields.soft_wall(2.0, 0.003, gap=1.4)
    d = 1.4 + R[2][2]
    assert float(field.potential_kernel(float)(R, field.parameters)) == pytest.approx(-2 / d + 0.003 / d**10)


def test_pd_control_comes_to_rest_at_its_target():
    control = fields.pd_control(TARGET, stiffness=2.0, damping=1.5)
    problem = ph.Problem(BODY, control, omega=[1.0, -2.0, 1.5])
    q, m, lyapunov = flight(problem, np.linspace(0, 80, 161))
    assert (np.diff(lyapunov)[:40] < 0).all()
    assert (lyapunov >= 0).all()
    last = Rotation.from_quat(q[-1], scalar_first=True)
    assert (last * TARGET.inv()).magnitude() < 1e-4
    assert np.abs(m[-1]).max() < 1e-4
    theta = 0.8
    spring = fields.attitude_spring([1, 0, 0, 0], 3.0)
    R = Rotation.from_rotvec([0, theta, 0]).as_matrix().tolist()
    assert near(spring.torque_value(0.0, R, OMEGA), [0, -3 * math.sin(theta), 0])


# --- drag and damping -------------------------------------------------------------------------------


def test_drag_slows_a_ball_as_it_should():
    ball, w = ph.Body([2.0, 2.0, 2.0]), np.array([0.6, 0.0, 0.8]) * 3
    times = np.linspace(0, 5, 6)
    _, m, _ = flight(ph.Problem(ball, fields.linear_drag(0.4), omega=w), times)
    assert near(m, 2 * w * np.exp(-0.4 / 2 * times)[:, None], 1e-9)
    _, m, _ = flight(ph.Problem(ball, fields.quadratic_drag(0.4), omega=w), times)
    assert near(m, 2 * w / (1 + 0.4 * 3 / 2 * times)[:, None], 1e-9)
    each = fields.linear_drag([0.1, 0.2, 0.3]).torque_value(0.0, attitudes(1)[0], OMEGA)
    assert near(each, [-0.03, -0.1, 0.06])


@pytest.mark.parametrize("body", [BODY, TILTED], ids=["principal", "tilted"])
def test_internal_damping_ends_about_the_major_axis(body):
    """Explorer 1: spun about its axis of least moment, it ends about that of the largest; |Pi| stays."""
    least, most = body.axes[:, body.moments.argmin()], body.axes[:, body.moments.argmax()]
    rate = 3 / body.moments.max()
    problem = ph.Problem(body, fields.internal_damping(body, rate), omega=least + 0.05 * most)
    times = np.linspace(0, 100, 201)
    _, m, energy = flight(problem, times)
    length = np.linalg.norm(m, axis=1)
    assert np.ptp(length) < 1e-8 * length[0]
    assert (np.diff(energy)[:60] < 0).all()
    assert energy[-1] == pytest.approx(length[0] ** 2 / 2 / body.moments.max(), rel=1e-6)
    assert abs(m[-1] @ most) == pytest.approx(length[0], rel=1e-6)
    w, Pi = problem.omega, np.array(problem.momentum)
    push = problem.field.torque_value(0.0, matrix(problem.quaternion), tuple(w))
    assert w @ push == pytest.approx(-rate * np.cross(Pi, w) @ np.cross(Pi, w), rel=1e-12)


def test_slow_damping_moves_the_spatial_momentum_little():
    shift = []
    for rate in (0.02, 0.01):
        problem = ph.Problem(BODY, fields.internal_damping(BODY, rate), omega=[1.0, 0.1, 0.5])
        q, m, _ = flight(problem, np.linspace(0, 40, 400))
        L = spatial(q, m)
        shift.append(np.linalg.norm(L - L[0], axis=1).max() / np.linalg.norm(L[0]))
    assert shift[0] < 0.05
    assert 1.6 < shift[0] / shift[1] < 2.4


def test_long_tables_run_everywhere():
    """Compiled, in lanes, in digits and with slopes a table of 1000 rows is the same field; for GPUs see test_cuda."""
    table = 0.3 * np.sin(np.outer(LONG, [1, 2, 3]))
    field = fields.tabulated(LONG, table, between="cubic", frame="space")
    problem = ph.Problem(BODY, field, omega=OMEGA)
    run = {"dt": 0.1, "steps": 8}
    sol = ph.solve(problem, "fem", **run)
    spline = CubicSpline(LONG, table)

    def rates(t, y):
        R, m = y[:9].reshape(3, 3), y[9:]
        return [*np.cross(R, m / BODY.moments).ravel(), *(np.cross(m, m / BODY.moments) + R.T @ spline(t))]

    truth = solve_ivp(rates, (0, 0.8), [*np.eye(3).ravel(), *problem.momentum], method="DOP853", rtol=1e-11, atol=1e-12)
    fine = ph.solve(problem, t_end=0.8, tol=1e-9)
    assert near(fine.matrix[-1].ravel(), truth.y[:9, -1], 1e-8)
    precise = ph.solve(problem, "fem", digits=30, **run)
    assert near(precise.momentum[-1], sol.momentum[-1], 1e-14)
    crowd = ([BODY] * 3, np.tile([1.0, 0, 0, 0], (3, 1)), np.tile(problem.momentum, (3, 1)), "fem")
    assert near(ph.ensemble(*crowd, field=field, **run).momentum[-1], np.tile(sol.momentum[-1], (3, 1)), 1e-15)
    slopes = ph.gradient(lambda omega: omega[0], problem, "fem", wrt=("momentum",), **run).momentum
    moved = [
        ph.solve(ph.Problem(BODY, field, momentum=problem.momentum + e), "fem", **run).omega[-1][0]
        for e in np.vstack([1e-6 * np.eye(3), -1e-6 * np.eye(3)])
    ]
    assert near(slopes, (np.array(moved[:3]) - moved[3:]) / 2e-6, 1e-8)


@pytest.mark.parametrize("body", [BODY, TILTED], ids=["principal", "tilted"])
def test_a_viscous_core_keeps_the_momentum_of_both_and_takes_energy(body):
    """R (Pi + h) is constant, and the energy with omega . h falls."""
    strength, times = 0.04 * body.moments.min(), np.linspace(0, 30, 301)
    problem = ph.Problem(body, fields.viscous_core(body, strength), omega=OMEGA)
    q, m, energy = flight(problem, times)
    w = np.linalg.solve(body.tensor, m.T).T
    h = -strength * np.linalg.solve(body.tensor, np.cross(m, w).T).T
    both = spatial(q, m + h)
    assert near(both, np.broadcast_to(both[0], both.shape), 1e-8)
    assert (np.diff(energy + (w * h).sum(axis=1)) < 0).all()
    assert np.ptp(spatial(q, m), axis=0).max() > 1e-3  # that of the body alone is not


def test_a_viscous_core_is_a_ball_in_a_viscous_fluid():
    """Against the body with a ball inside (moment J, friction c): equal to first order in strength = J^2/c."""
    inertia, J, off = np.diag([1.0, 1.6, 2.1]), 0.05, []
    body, w0 = ph.Body([1.0, 1.6, 2.1]), np.array([1.2, 0.3, 0.2])
    coupled = np.block([[inertia, J * np.eye(3)], [J * np.eye(3), J * np.eye(3)]])
    for strength in (0.01, 0.005):

        def rates(t, y, friction=J * J / strength):
            R, w, nu = y[:9].reshape(3, 3), y[9:12], y[12:]
            right = [*np.cross(inertia @ w + J * nu, w), *(-friction * nu - J * np.cross(w, nu))]
            return [*np.cross(R, w).ravel(), *np.linalg.solve(coupled, right)]

        lag = -strength / J * np.linalg.solve(inertia, np.cross(inertia @ w0, w0))
        full = solve_ivp(rates, (0, 10), [*np.eye(3).ravel(), *w0, *lag], method="Radau", rtol=1e-9, atol=1e-11)
        sol = ph.solve(ph.Problem(body, fields.viscous_core(body, strength), omega=w0), t_end=10.0, tol=1e-9)
        off.append(np.abs(sol.matrix[-1] - full.y[:9, -1].reshape(3, 3)).max())
    assert off[0] < 2e-3
    assert off[0] / off[1] > 3.5


# --- functions of time ------------------------------------------------------------------------------


def test_a_constant_torque_in_space_adds_to_the_momentum():
    problem = ph.Problem(BODY, fields.constant_torque([0.1, -0.2, 0.3], frame="space"), omega=OMEGA)
    q, m, _ = flight(problem, [0.0, 4.0])
    L = spatial(q, m)
    assert near(L[1] - L[0], [0.4, -0.8, 1.2], 1e-9)


def test_thrusters_fire_in_their_windows():
    field = fields.thruster([1.0, 2.0, 3.0], on=[[3.0, 4.0], [0.5, 1.0]])
    R = attitudes(1)[0]
    for t, on in ((0.4, 0), (0.5, 1), (0.99, 1), (1.0, 0), (2.0, 0), (3.5, 1), (4.0, 0)):
        assert near(field.torque_value(t, R, OMEGA), [on, 2 * on, 3 * on])
    there = fields.thruster([1.0, 2.0, 3.0], on=[0, 1], frame="space").torque_value(0.5, R, OMEGA)
    assert near(there, np.array(R).T @ [1, 2, 3])


SHORT, LONG = np.array([-1.0, 0.3, 1.0, 2.5, 4.0]), np.sort([-1.0, 0.3, 4.0, *RNG.uniform(-1, 4, 997)])


@pytest.mark.parametrize("times", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("outside", ["zero", "hold"])
def test_tables_are_interpolated(outside, times):
    table = np.sin(np.outer(times, [1, 2, 3])) + RNG.normal(size=3)
    R = attitudes(1)[0]
    linear = fields.tabulated(times, table, outside=outside)
    cubic = fields.tabulated(times, table, between="cubic", outside=outside)
    spline = CubicSpline(times, table)
    for t in (-1.0, -0.2, 0.3, 0.9, 1.7, 2.5, 3.999, 4.0):
        expected = [np.interp(t, times, table[:, i]) for i in range(3)]
        assert near(linear.torque_value(t, R, OMEGA), expected, 1e-12)
        assert near(cubic.torque_value(t, R, OMEGA), spline(t), 1e-12)
    for t, end in ((-1.1, 0), (4.1, -1)):
        for field in (linear, cubic):
            expected = table[end] if outside == "hold" else np.zeros(3)
            assert near(field.torque_value(t, R, OMEGA), expected, 1e-12)


# --- rotors -----------------------------------------------------------------------------------------


def test_a_gyrostat_keeps_its_momentum_and_energy():
    h = np.array([0.5, -0.3, 1.0])
    problem = ph.Problem(TILTED, fields.gyrostat(h), omega=OMEGA)
    q, m, energy = flight(problem, np.linspace(0, 20, 30))
    assert np.ptp(energy) < 1e-9
    assert np.ptp(np.linalg.norm(m + h, axis=1)) < 1e-9
    L = spatial(q, m + h)
    assert np.abs(L - L[0]).max() < 1e-9
    assert np.ptp(np.linalg.norm(m, axis=1)) > 1e-2


@fields.rotor
def swinging(t, size):
    return (size * math.sin(t), 0.2 * t * t, size / (1 + t))


DRIVEN = [
    (fields.gyrostat([0.5, -0.3, 1.0], motor=[0.1, 0.05, -0.2]),
     lambda t: np.array([0.5, -0.3, 1.0]) + np.array([0.1, 0.05, -0.2]) * t),
    (swinging(0.4), lambda t: np.array([0.4 * math.sin(t), 0.2 * t * t, 0.4 / (1 + t)])),
    (fields.tabulated_gyrostat([0, 1, 2.5, 4], [[0, 0, 0], [1, 0, 0.5], [0, 1, 1], [2, 0, -1]]),
     CubicSpline([0, 1, 2.5, 4], [[0, 0, 0], [1, 0, 0.5], [0, 1, 1], [2, 0, -1]])),
]  # fmt: skip


@pytest.mark.parametrize(("field", "h"), DRIVEN, ids=[field.name for field, _ in DRIVEN])
def test_driven_rotors_keep_the_momentum_of_all(field, h):
    times = np.linspace(0, 4, 9)
    q, m, _ = flight(ph.Problem(BODY, field, omega=OMEGA), times)
    L = spatial(q, m + np.array([h(t) for t in times]))
    assert np.abs(L - L[0]).max() < 1e-8
    assert np.abs(spatial(q, m) - L[0]).max() > 0.1


def test_rotors_are_functions_of_time():
    with pytest.raises(ph.InputError, match="the momentum of rotors is a function of t"):
        fields.rotor(lambda t, omega: omega)


# --- sums -------------------------------------------------------------------------------------------


def test_a_sum_of_potentials_is_a_potential():
    both = fields.gravity(2.0) + fields.dipole([0.1, 0.2, 0.3], [1, 0, 1])
    assert (both.kind, both.needs) == ("potential", "potential")
    assert repr(both) == "gravity(mgl=2.0) + dipole(moment=(0.1, 0.2, 0.3), field=(1.0, 0.0, 1.0))"
    assert both.template.parameters == ["mgl", "moment", "field"]
    for R in attitudes(2):
        parts = [part.torque_value(0.0, R, OMEGA) for part in both.template.parts]
        assert near(both.torque_value(0.0, R, OMEGA), np.sum(parts, axis=0))
        values = both.value(0.0, R, OMEGA, "here")
        assert values == pytest.approx(sum(p.potential_kernel(float)(R, p.parameters) for p in both.template.parts))


def test_a_sum_with_a_torque_counts_the_potentials_in_its_energy():
    both = fields.linear_drag(0.1) + fields.gravity(2.0)
    assert (both.kind, both.needs) == ("torque", "velocity")
    problem = ph.Problem(BODY, both, omega=OMEGA)
    assert problem.energy() == ph.Problem(BODY, fields.gravity(2.0), omega=OMEGA).energy()
    assert ph.Problem(BODY, fields.linear_drag(0.1), omega=OMEGA).potential(problem.quaternion) == 0
    _, _, energy = flight(problem, np.linspace(0, 10, 21))
    assert (np.diff(energy) < 0).all()


def test_names_that_collide_get_that_of_their_field():
    push = fields.constant_torque([1, 0, 0], frame="space")
    three = fields.linear_drag(0.1) + fields.quadratic_drag(0.2) + push + push + fields.gravity(1.0)
    assert three.template.parameters == [
        "linear_drag_coefficients", "quadratic_drag_coefficients", "constant_torque1_torque", "constant_torque2_torque",
        "mgl",
    ]  # fmt: skip
    R = attitudes(1)[0]
    changed = three.template(constant_torque2_torque=[0, 0, 5.0], mgl=0.0, linear_drag_coefficients=0)
    expected = np.array(R).T @ [1, 0, 5] - 0.2 * np.linalg.norm(OMEGA) * np.array(OMEGA)
    assert near(changed.torque_value(0.0, R, OMEGA), expected)
    assert near(three.template().torque_value(0.0, R, OMEGA), three.torque_value(0.0, R, OMEGA))
    with pytest.raises(ph.InputError, match="takes the parameters"):
        three.template(k=1)


def test_what_can_be_added():
    rate = ph.momentum_rate(lambda t: (t, 0.0, 0.0), lambda t: (1.0, 0.0, 0.0))
    whole = sum([rate, fields.gravity(1.0), swinging(0.3)])
    assert len(whole.template.parts) == 3
    ph.Problem(BODY, whole, omega=OMEGA)
    wrong = ph.momentum_rate(lambda t: (t, 0.0, 0.0), lambda t: (2.0, 0.0, 0.0))
    with pytest.raises(ph.InputError, match="is not the derivative"):
        ph.Problem(BODY, fields.gravity(1.0) + wrong, omega=OMEGA)
    with pytest.raises(ph.InputError, match="a field can be added to a field with its parameters bound"):
        fields.gravity(1.0) + fields.gravity
    with pytest.raises(TypeError):
        3 + fields.gravity(1.0)


def test_a_parameter_of_each_body_has_the_shape_of_one():
    with pytest.raises(
        ph.InputError, match=r"coefficients must be one value .*, \(3,\), or one for each, \(N, 3\); got shape \(4,\)"
    ):
        ph.ensemble(
            [BODY] * 4, None, [[1, 2, 3]] * 4, "fem", field=fields.linear_drag(0.1), dt=0.1, steps=1,
            params={"coefficients": [0.1, 0.2, 0.3, 0.4]},
        )  # fmt: skip


# --- by name ----------------------------------------------------------------------------------------


def by_name(name, body=TILTED):
    return fields.make(name, body, **json.loads(json.dumps(KEYWORDS[name])))


def test_every_ready_field_has_an_example_and_a_formula():
    assert list(KEYWORDS) == fields.names()
    for name in fields.names():
        assert "=" in fields.describe(name), name
        assert by_name(name).name in (name, "attitude_spring + linear_drag")
        assert getattr(fields, name) is fields.get(name)


def test_the_page_lists_every_field_with_its_keywords():
    page = (Path(__file__).parents[2] / "docs" / "fields.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    assert {name: re.findall(r"`(\w+)`", words) for name, words in rows} == {
        name: list(fields.keywords(name)) for name in fields.names()
    }


MISTAKES = [
    (lambda: fields.make("gravety", mgl=1), "unknown field 'gravety'; nearest: gravity"),
    (lambda: fields.make("gravity"), "the field gravity takes mgl; 'mgl' is missing"),
    (lambda: fields.make("dipole", moment=[1, 2, 3], B=1), "it has no keyword 'B'"),
    (lambda: fields.make("gravity_gradient", mu=1, radius=1), "needs a body; give it as body=..."),
    (lambda: fields.internal_damping([1, 2, 3], 0.1), "this field needs the inertia of a ph.Body; got list"),
    (lambda: fields.dipole([1, 2], [1, 2, 3]), "moment must be three numbers"),
    (lambda: fields.linear_drag(-1), "coefficients must not be negative"),
    (lambda: fields.internal_damping(BODY, -1), "rate must not be negative"),
    (lambda: fields.viscous_core(BODY, -1), "strength must not be negative"),
    (lambda: fields.gravity_gradient(BODY, mu=1, radius=0), "radius must be positive; got 0"),
    (lambda: fields.eccentric_gravity_gradient(BODY, 1, 1, 0.95), "eccentricity must lie between 0 and 0.9"),
    (lambda: fields.thruster([1, 2, 3], [[0, 2], [1, 3]]), "must start before they stop and not overlap"),
    (lambda: fields.thruster([1, 2, 3], [1, 2, 3]), "on must be [start, stop] or a list of such windows"),
    (lambda: fields.thruster([1, 2, 3], [1, 2], frame="moon"), "frame must be 'body' or 'space'; got 'moon'"),
    (lambda: fields.tabulated([0, 1], [[1, 2, 3]]), "torques must be three numbers for each of the times"),
    (lambda: fields.tabulated([1, 0], [[1, 2, 3]] * 2), "times must increase"),
    (lambda: fields.tabulated([0], [[1, 2, 3]]), "a table must have at least 2 times; got 1"),
    (lambda: sum([fields.tabulated(range(64), [[1, 2, 3]] * 64)] * 3), "at most 900 numbers; tabulated + tabulated"),
    (lambda: fields.tabulated([0, 1], [[1, 2, 3]] * 2, between="magic"), "between must be 'linear' or 'cubic'"),
    (lambda: fields.tabulated([0, 1], [[1, 2, 3]] * 2, outside="magic"), "outside must be 'zero' or 'hold'"),
    (lambda: fields.attitude_spring([1, 0, 0], 1), "target: attitude must be a scipy Rotation"),
    (lambda: fields.pd_control([1, 0, 0, 0], -1, 1), "stiffness must be positive"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)


# --- in every number type ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KEYWORDS if name not in SUMS])
def test_digits_and_taylor_coefficients(name):
    """One step of h in 50 digits by the Taylor coefficients of the field differs from Runge-Kutta by O(h^5)."""
    problem = ph.Problem(TILTED, by_name(name), omega=OMEGA, t0=1.0)
    gaps = []
    for h in (0.02, 0.01):
        taylor, rk4 = (
            ph.solve(problem, method, dt=h, t_end=1.0 + h, digits=50).mp.momentum[-1]
            for method in ("lietaylor(4)", "mkrk(rk4)")
        )
        gaps.append(max(abs(a - b) for a, b in zip(taylor, rk4, strict=True)))
    assert 0 < gaps[1] < 1e-6
    assert 24 < gaps[0] / gaps[1] < 40


FEW = ("gravity", "linear_drag", "quadratic_drag", "internal_damping", "thruster", "gyrostat")
ALL = [name for name in KEYWORDS if name != "pd_control"]  # whose parts are among them


@pytest.mark.parametrize("chosen", [FEW, pytest.param(ALL, marks=pytest.mark.slow)], ids=["few", "all"])
def test_many_at_once_compiled_and_in_lanes_with_own_parameters(chosen):
    """Compiled, plain and in lanes agree; a body with other parameters moves as if it were alone."""
    whole = sum(by_name(name) for name in chosen)
    problem = ph.Problem(TILTED, whole, omega=OMEGA)
    alone = ph.solve(problem, "fem", dt=0.02, steps=20)
    precise = ph.solve(problem, "fem", dt=0.02, steps=20, digits=30)
    assert near(alone.momentum, precise.momentum, 1e-12)
    drags = np.array([[0.2, 0.2, 0.2], [0.5, 0.1, 0.0], [0.2, 0.2, 0.3]])
    many = ph.ensemble(
        [TILTED] * 3, None, [problem.momentum] * 3, "fem", field=whole, dt=0.02, steps=20,
        params={"linear_drag_coefficients": drags, "mgl": [2.0, 2.5, 3.0]},
    )  # fmt: skip
    assert near(many.momentum[-1][0], alone.momentum[-1], 1e-13)
    other = whole.template(linear_drag_coefficients=drags[2], mgl=3.0)
    lone = ph.solve(ph.Problem(TILTED, other, omega=OMEGA), "fem", dt=0.02, steps=20)
    assert near(many.momentum[-1][2], lone.momentum[-1], 1e-13)
    assert not near(many.momentum[-1][2], alone.momentum[-1], 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KEYWORDS if name not in SUMS])
def test_each_in_every_way(name):
    """Plain, compiled, in lanes with the parameters of each body, by Taylor steps, and to a tolerance."""
    field = by_name(name)
    problem = ph.Problem(TILTED, field, omega=OMEGA, t0=0.5)
    end = {"t_end": 1.5}
    goal = ph.solve(problem, tol=1e-11, **end).momentum[-1]
    for method in ("mkrk(rk4)", "lietaylor(4)"):
        assert near(ph.solve(problem, method, dt=0.01, **end).momentum[-1], goal, 1e-7)
    params = {word: np.array([value] * 3) for word, value in field.values.items()}
    many = ph.ensemble(
        [TILTED] * 3, None, [problem.momentum] * 3, "mkrk(rk4)", field=field, params=params, dt=0.01, steps=100, t0=0.5
    )
    assert near(many.momentum[-1], [goal] * 3, 1e-7)
