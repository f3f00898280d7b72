"""Orbits, ephemerides and the gravity gradient along them: against Newton's equations and sums over point masses."""

import math
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import polhode as ph
from examples import TILTED
from polhode.physics.fields.switches import switches_of
from polhode.run.step_control import is_smooth

fields = ph.fields
BODY = ph.Body([2.0, 3.0, 4.0])
OMEGA = (0.3, 0.5, -0.2)
ROTATIONS = [tuple(map(tuple, R)) for R in Rotation.random(4, rng=np.random.default_rng(5)).as_matrix().tolist()]
ELEMENTS = {"periapsis_time": 0.4, "inclination": 0.7, "node": 2.1, "argument": -1.2}
CONICS = [0.0, 0.6, 0.97, 1.0, 1.05, 2.5]
RNG = np.random.default_rng(8)
POINTS, MASSES = RNG.normal(size=(7, 3)), RNG.uniform(0.5, 2.0, size=7)
POINTS -= MASSES @ POINTS / MASSES.sum()
CLOUD = ph.Body.from_points(POINTS, MASSES)
THIRD = np.einsum("n,ni,nj,nk->ijk", MASSES, POINTS, POINTS, POINTS)


def newton(mu, start, times):
    """Two-body motion by scipy: positions at increasing times, the first of which is the start."""

    def rates(t, y):
        return [*y[3:], *(-mu * y[:3] / np.linalg.norm(y[:3]) ** 3)]

    return solve_ivp(rates, (times[0], times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-13).y.T


def near(a, b, tolerance):
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    return np.abs(a - b).max() <= tolerance * np.abs(b).max()


@pytest.mark.parametrize("e", CONICS)
def test_an_orbit_is_newtons_in_any_plane(e):
    mu, q = 2.0, 1.5
    orbit = ph.Orbit(mu, q, e, **ELEMENTS)
    turn = Rotation.from_euler("ZXZ", [ELEMENTS["node"], ELEMENTS["inclination"], ELEMENTS["argument"]])
    start = [*turn.apply([q, 0, 0]), *turn.apply([0, math.sqrt(mu * (1 + e) / q), 0])]
    times = ELEMENTS["periapsis_time"] + np.linspace(0, 20, 11)
    goal = newton(mu, start, times)
    assert near(orbit.position(times), goal[:, :3], 1e-9)
    assert near(orbit.velocity(times), goal[:, 3:], 1e-9)
    mirrored = 2 * ELEMENTS["periapsis_time"] - times  # before the periapsis
    assert near(turn.inv().apply(orbit.position(mirrored)), turn.inv().apply(goal[:, :3]) * [1, -1, 1], 1e-9)
    assert orbit.position(0.3).shape == (3,)


def test_period_and_semi_major_axis():
    orbit = ph.Orbit(2.0, semi_major_axis=3.0, eccentricity=0.5)
    assert orbit.values["periapsis"] == 1.5
    assert orbit.period == pytest.approx(2 * math.pi * math.sqrt(27 / 2), rel=1e-15)
    assert near(orbit.position(orbit.period * 3 + 0.7), orbit.position(0.7), 1e-13)
    assert ph.Orbit(2.0, semi_major_axis=-3.0, eccentricity=1.5).values["periapsis"] == 1.5
    assert ph.Orbit(2.0, 1.0, 1.0).period == math.inf
    assert orbit == ph.Orbit(2.0, 1.5, 0.5)
    assert hash(orbit) == hash(ph.Orbit(2.0, 1.5, 0.5))


@pytest.mark.parametrize("e", CONICS)
def test_the_gravity_gradient_is_the_sum_over_point_masses(e):
    """With mu/q^3 = 1, the error of the second order falls as 1/r, that of the third as 1/r^2."""
    gaps = []
    for size in (400.0, 800.0):
        mu = size**3
        orbit = ph.Orbit(mu, size, e, **ELEMENTS)
        second, third = (fields.orbit_gravity_gradient(CLOUD, orbit, S) for S in (None, THIRD))
        for R, t in zip(ROTATIONS, (0.0, 0.5, -0.7, 1.0), strict=True):
            here = np.array(R).T @ orbit.position(t)
            arms = POINTS + here
            forces = -mu * MASSES[:, None] * arms / np.linalg.norm(arms, axis=1)[:, None] ** 3
            goal = np.cross(POINTS, forces).sum(axis=0)
            found = [np.array(f.torque_value(t, R, OMEGA)) for f in (second, third)]
            gaps.append([np.linalg.norm(x - goal) for x in found])
    low, high = np.array(gaps).reshape(2, 4, 2)
    assert low[:, 0] / high[:, 0] == pytest.approx(2.0, rel=0.02)
    assert low[:, 1] / high[:, 1] == pytest.approx(4.0, rel=0.02)
    assert (high[:, 1] < 0.02 * high[:, 0]).all()


def test_it_extends_the_fields_for_circles_and_ellipses():
    """Zero third moments give the second order; circles and ellipses in the x-y plane the fields made for them."""
    mu, a, e = 2.0, 1.5, 0.6
    circle = fields.orbit_gravity_gradient(TILTED, ph.Orbit(mu, a, argument=0.3))
    ellipse = fields.orbit_gravity_gradient(TILTED, {"mu": mu, "semi_major_axis": a, "eccentricity": e})
    without = fields.orbit_gravity_gradient(TILTED, ph.Orbit(mu, a * (1 - e), e), np.zeros((3, 3, 3)))
    for R, t in zip(ROTATIONS, (0.0, 1.0, -2.0, 30.0), strict=True):
        goal = fields.gravity_gradient(TILTED, mu, a, 0.3).torque_value(t, R, OMEGA)
        assert near(circle.torque_value(t, R, OMEGA), goal, 1e-13)
        goal = fields.eccentric_gravity_gradient(TILTED, mu, a, e).torque_value(t, R, OMEGA)
        assert near(ellipse.torque_value(t, R, OMEGA), goal, 1e-12)
        assert near(without.torque_value(t, R, OMEGA), ellipse.torque_value(t, R, OMEGA), 1e-15)


def test_several_attracting_bodies():
    """Earth and Moon: the gradient of the Moon is that of the difference of two paths."""
    body_path, moon = ph.Orbit(1.0, 1.0, 0.3, node=1.0), ph.Orbit(1.0, 3.0, 0.1, inclination=0.2)
    seen = body_path.seen_from(moon, mu=0.5)
    both = fields.orbit_gravity_gradient(TILTED, body_path) + fields.orbit_gravity_gradient(TILTED, seen)
    for R, t in zip(ROTATIONS, (0.0, 1.0, -2.0, 30.0), strict=True):
        goal = np.zeros(3)
        for mu, r in ((1.0, body_path.position(t)), (0.5, body_path.position(t) - moon.position(t))):
            u = np.array(R).T @ r / np.linalg.norm(r)
            goal += 3 * mu / np.linalg.norm(r) ** 3 * np.cross(u, TILTED.tensor @ u)
        assert near(both.torque_value(t, R, OMEGA), goal, 1e-13)
    assert near(seen.position(2.0), body_path.position(2.0) - moon.position(2.0), 1e-15)
    assert "source_eccentricity" in seen.values


@pytest.mark.parametrize("count", [40, 400])
@pytest.mark.parametrize("with_velocities", [False, True])
def test_an_ephemeris_follows_its_table(count, with_velocities):
    """A cubic through positions (and velocities) errs as the fourth power of the spacing."""
    orbit = ph.Orbit(2.0, 0.9, 1.3, **ELEMENTS)
    times = np.linspace(-3, 4, count)
    table = ph.Ephemeris(2.0, times, orbit.position(times), orbit.velocity(times) if with_velocities else None)
    between = np.linspace(-3, 4, 977)
    assert near(table.position(between), orbit.position(between), 50 * (7 / count) ** 4)
    assert near(table.velocity(between), orbit.velocity(between), 100 * (7 / count) ** 3)
    assert np.isnan(table.position([-3.01, 4.01])).all()
    field = fields.orbit_gravity_gradient(TILTED, table)
    goal = fields.orbit_gravity_gradient(TILTED, ph.Orbit(2.0, 0.9, 1.3, **ELEMENTS))
    assert near(field.torque_value(0.1, ROTATIONS[0], OMEGA), goal.torque_value(0.1, ROTATIONS[0], OMEGA),
                1e3 * (7 / count) ** 4)  # fmt: skip


def test_a_run_that_leaves_the_table_stops(interpreted):
    orbit = ph.Orbit(2.0, 0.9, 1.3)
    times = np.linspace(0, 1, 5)
    field = fields.orbit_gravity_gradient(TILTED, ph.Ephemeris(2.0, times, orbit.position(times)))
    problem = ph.Problem(TILTED, field, omega=OMEGA)
    assert ph.solve(problem, "fem", dt=0.25, t_end=1.0).t[-1] == 1.0
    with pytest.raises(ph.StepError, match="must return finite numbers"):
        ph.solve(problem, "trapm", dt=0.25, t_end=2.0)


def test_the_field_is_one_smooth_formula_for_all_conics():
    made = [fields.orbit_gravity_gradient(TILTED, ph.Orbit(2.0, 1.0, e)) for e in CONICS]
    assert len({field.structure for field in made}) == 1
    assert all(is_smooth(field) and not switches_of(field) for field in made)


@pytest.mark.parametrize("e", [0.25, 0.999, 1.0, 1.001, 2.0])
def test_derivatives_by_the_elements(e, interpreted):
    """Dual numbers against central differences in 50 digits, also next to and at e = 1."""
    field = fields.orbit_gravity_gradient(BODY, ph.Orbit(2.0, 0.9, e, **ELEMENTS))
    run = {"method": "mkrk(rk4)", "dt": 0.5, "steps": 2}
    found = ph.gradient(lambda momentum: momentum[0], ph.Problem(BODY, field, omega=OMEGA), wrt=("params",), **run)
    step = 2.0**-30
    for name in ("mu", "periapsis", "eccentricity", "periapsis_time", "inclination", "node", "argument"):
        ends = [
            ph.solve(ph.Problem(BODY, field.bind(**{name: field.values[name] + h}), omega=OMEGA), digits=40, **run)
            for h in (step, -step)
        ]
        slope = (ends[0].mp.momentum[-1][0] - ends[1].mp.momentum[-1][0]) / (2 * step)
        assert abs(float(slope) - found.params[name]) < 1e-12, name


def test_elements_vary_within_an_ensemble():
    """Ellipse, parabola and hyperbola in one batch of lanes, each as if alone."""
    several = [0.2, 1.0, 1.8]
    field = fields.orbit_gravity_gradient(TILTED, ph.Orbit(2.0, 0.9, 0.5, **ELEMENTS))
    start = ph.Problem(TILTED, field, omega=OMEGA)
    many = ph.ensemble([TILTED] * 3, None, [start.momentum] * 3, "fem", field=field, dt=0.02, steps=50,
                       params={"eccentricity": several})  # fmt: skip
    for e, found in zip(several, many.momentum[-1], strict=True):
        alone = ph.solve(ph.Problem(TILTED, field.bind(eccentricity=e), omega=OMEGA), "fem", dt=0.02, steps=50)
        assert near(found, alone.momentum[-1], 1e-13)


def test_a_path_in_a_torque_of_ones_own():
    """`function` is traced with its elements as constants."""
    orbit = ph.Orbit(2.0, 0.9, 1.3, **ELEMENTS)
    times = np.linspace(-2, 2, 200)
    few, many = (ph.Ephemeris(2.0, times[::k], orbit.position(times[::k])) for k in (10, 1))
    for path in (orbit, orbit.seen_from(ph.Orbit(1.0, 5.0), 1.0), few, many):
        bound = ph.torque(frame="space")(drag_along(path.function))(k=2.0)
        assert near(bound.torque_value(0.3, np.eye(3).tolist(), OMEGA), -2 * path.velocity(0.3), 1e-14)


def test_paths_are_pickled():
    orbit = ph.Orbit(2.0, 0.9, 1.3, **ELEMENTS)
    times = np.linspace(-2, 2, 200)
    few, many = (ph.Ephemeris(2.0, times[::k], orbit.position(times[::k])) for k in (10, 1))
    for path in (orbit, orbit.seen_from(few, 1.0), few, many):
        again = pickle.loads(pickle.dumps(path))
        assert again == path
        assert (again.position(0.3) == path.position(0.3)).all()


def drag_along(here):
    def drag(t, k):
        return [-k * v for v in here(t)[1]]

    return drag


MISTAKES = [
    (lambda: ph.Orbit(0.0, 1.0), "mu must be positive; got 0"),
    (lambda: ph.Orbit(1.0, -1.0), "periapsis must be positive; got -1"),
    (lambda: ph.Orbit(1.0, 1.0, -0.1), "eccentricity must not be negative; got -0.1"),
    (lambda: ph.Orbit(1.0, 1.0, math.nan), "eccentricity must be finite; got nan"),
    (lambda: ph.Orbit(1.0), "give periapsis or semi_major_axis; got neither"),
    (lambda: ph.Orbit(1.0, 1.0, semi_major_axis=1.0), "give periapsis or semi_major_axis; got both"),
    (lambda: ph.Orbit(1.0, semi_major_axis=1.0, eccentricity=1.0), "a parabola has none"),
    (lambda: ph.Orbit(1.0, semi_major_axis=1.0, eccentricity=2.0), "negative if e > 1"),
    (lambda: ph.Orbit(1.0, 1.0, node="x"), "node must be a number; got 'x'"),
    (lambda: ph.Ephemeris(1.0, [0, 2, 1], np.ones((3, 3))), "times must increase"),
    (lambda: ph.Ephemeris(1.0, [0, 1], [[1, 0, 0], [math.nan, 0, 0]]), "all numbers of a table must be finite"),
    (lambda: ph.Ephemeris(1.0, [0, 1], np.ones((2, 2))), "positions must be three numbers for each of the times"),
    (lambda: ph.Ephemeris(1.0, [0, 1], np.ones((2, 3)), np.ones(3)), "velocities must be three numbers for each"),
    (lambda: ph.Ephemeris(-1.0, [0, 1], np.ones((2, 3))), "mu must be positive; got -1"),
    (lambda: ph.Ephemeris(1.0, [0, 1], [[1, 0, 0], [0, 0, 0]]), "position 1 is at the attracting centre"),
    (lambda: ph.Orbit(1.0, 1.0).seen_from("moon", 1.0), "source must be a ph.Orbit or a ph.Ephemeris; got str"),
    (lambda: fields.orbit_gravity_gradient(TILTED, 7), "orbit must be a ph.Orbit, a ph.Ephemeris, or the keywords"),
    (lambda: fields.orbit_gravity_gradient(TILTED, {"mu": 1.0, "radius": 1.0}), "it has no keyword 'radius'"),
    (lambda: fields.orbit_gravity_gradient(TILTED, {"periapsis": 1.0}), "orbit takes mu, periapsis, eccentricity"),
    (lambda: fields.orbit_gravity_gradient(TILTED, {"oem": "x.oem"}), "orbit takes oem, mu, epoch, segment; 'mu' is"),
    (lambda: fields.orbit_gravity_gradient([1, 2, 3], ph.Orbit(1.0, 1.0)), "needs the inertia of a ph.Body"),
    (lambda: fields.orbit_gravity_gradient(TILTED, ph.Orbit(1.0, 1.0), np.ones((3, 3))), "shape (3, 3, 3)"),
    (lambda: fields.orbit_gravity_gradient(TILTED, ph.Orbit(1.0, 1.0), np.arange(27.0).reshape(3, 3, 3)),
     "changes when its indices are exchanged"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)
