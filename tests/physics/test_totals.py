"""Sums over rows of data (`ph.total`): the same numbers as the sum written out, in every way to run a field."""

import pickle
import time

import numpy as np
import pytest

import polhode as ph

RNG = np.random.default_rng(1)
COUNT = 6
NORMALS, ARMS, AREAS = RNG.normal(size=(COUNT, 3)), RNG.normal(size=(COUNT, 3)), RNG.uniform(size=COUNT) / 100
BODY = ph.Body([[2.0, 0.1, 0.0], [0.1, 1.5, 0.2], [0.0, 0.2, 1.2]])
SUN = [0.6, 0.0, 0.8]


@ph.torque
def pressure(R, sun, normals, arms, areas):
    s = R.T @ sun

    def facet(normal, arm, area):
        return ph.math.cross(arm, -area * ph.math.exp(ph.math.dot(normal, s)) * s)

    return ph.total(facet, normals, arms, areas)


@ph.torque
def pressure_written_out(R, sun):
    s, total = R.T @ sun, 0
    for normal, arm, area in zip(NORMALS, ARMS, AREAS, strict=True):
        total = total + ph.math.cross(arm, -area * ph.math.exp(ph.math.dot(normal, s)) * s)
    return total


@ph.potential
def cloud(R, sun, normals, areas):
    return ph.total(lambda point, area: area * ph.math.sin(ph.math.dot(sun, R @ point)), normals, areas)


@ph.potential
def cloud_written_out(R, sun):
    return sum(area * ph.math.sin(ph.math.dot(sun, R @ point)) for point, area in zip(NORMALS, AREAS, strict=True))


TORQUES = pressure(SUN, NORMALS, ARMS, AREAS), pressure_written_out(SUN)
POTENTIALS = cloud(SUN, NORMALS, AREAS), cloud_written_out(SUN)


def problem(field):
    return ph.Problem(BODY, field, attitude=[0.5, 0.5, -0.5, 0.5], omega=[0.3, 0.2, 0.5])


@pytest.mark.parametrize(
    ("method", "both"), [("imidm", TORQUES), ("buss3", TORQUES), ("strang(dmv4)", POTENTIALS), ("dg2", POTENTIALS)]
)
@pytest.mark.usefixtures("plain_first")
def test_a_run_equals_that_of_the_sum_written_out(method, both):
    """Values, derivatives along the motion, the torque of a potential, and its discrete gradient."""
    loop, written = (ph.solve(problem(field), method, dt=0.05, steps=20) for field in both)
    assert np.abs(loop.momentum - written.momentum).max() < 1e-15
    assert np.abs(loop.energy - written.energy).max() < 1e-15


def test_digits():
    loop, written = (ph.solve(problem(field), "imidm", dt=0.05, steps=2, digits=40) for field in TORQUES)
    assert max(abs(a - b) for a, b in zip(loop.mp.momentum[-1], written.mp.momentum[-1], strict=True)) < 1e-38


def test_lanes_equal_single_runs():
    momenta = RNG.normal(size=(11, 3))
    for loop, written in (TORQUES, POTENTIALS):
        many, plain = (
            ph.ensemble(BODY, None, momenta, "fem", field=field, dt=0.05, steps=20) for field in (loop, written)
        )
        assert np.abs(many.momentum - plain.momentum).max() < 1e-14
        assert np.abs(many.energy - plain.energy).max() < 1e-14
        one = ph.solve(ph.Problem(BODY, loop, momentum=momenta[7]), "fem", dt=0.05, steps=20)
        assert np.abs(one.momentum[-1] - many.momentum[-1, 7]).max() < 1e-14


@pytest.mark.slow
def test_lanes_to_a_tolerance():
    """With branches of the state in the term, too."""

    @ph.torque
    def lit(R, sun, normals, arms, areas):
        s = R.T @ sun
        return ph.total(
            lambda n, arm, a: ph.math.cross(arm, -a * max(ph.math.dot(n, s), 0.0) * s), normals, arms, areas
        )

    field, momenta = lit(SUN, NORMALS, ARMS, AREAS), RNG.normal(size=(11, 3))
    many = ph.ensemble(BODY, None, momenta, field=field, tol=1e-8, t_end=3.0)
    for i in (0, 10):
        one = ph.solve(ph.Problem(BODY, field, momentum=momenta[i]), tol=1e-10, t_end=3.0)
        assert np.abs(one.momentum[-1] - many.momentum[-1, i]).max() < 1e-7
    assert many.error_estimate.max() <= 1e-8


def test_gradients():
    loop, written = (
        ph.gradient(lambda momentum: momentum[0], problem(field), "mkrk(rk4)", dt=0.05, steps=10) for field in TORQUES
    )
    assert np.allclose(loop.momentum, written.momentum, rtol=0, atol=1e-14)
    assert list(loop.params) == ["sun"]
    assert np.allclose(loop.params["sun"], written.params["sun"], rtol=0, atol=1e-14)


@pytest.mark.usefixtures("plain_first")
def test_to_a_tolerance():
    loop, written = (ph.solve(problem(field), tol=1e-9, t_end=3.0) for field in TORQUES)
    assert np.abs(loop.momentum[-1] - written.momentum[-1]).max() < 2e-9
    assert "no Taylor series: a Runge-Kutta pair 8(7)" in loop.reason


def test_new_data_of_any_length_compile_nothing():
    ph.solve(problem(TORQUES[0]), "imidm", dt=0.05, steps=2)
    twice = TORQUES[0].bind(normals=np.tile(NORMALS, (2, 1)), arms=np.tile(ARMS, (2, 1)), areas=np.tile(AREAS / 2, 2))
    sol = ph.solve(problem(twice), "imidm", dt=0.05, steps=20)
    assert sol.info.compile_seconds == 0
    same = ph.solve(problem(TORQUES[0]), "imidm", dt=0.05, steps=20)
    assert np.abs(sol.momentum - same.momentum).max() < 1e-14


def test_constants_outside_the_function_are_data_too():
    @ph.torque
    def fixed(R, sun):
        s = R.T @ sun

        def facet(normal, arm, area):
            return ph.math.cross(arm, -area * ph.math.exp(ph.math.dot(normal, s)) * s)

        return ph.total(facet, NORMALS, ARMS, AREAS)

    R, omega = np.eye(3).tolist(), (0.1, 0.2, 0.3)
    assert fixed(SUN).torque_value(0.0, R, omega) == pytest.approx(TORQUES[1].torque_value(0.0, R, omega), abs=1e-16)


def test_a_problem_with_many_rows_is_made_quickly():
    """The function is called with few rows when its mistakes are looked for."""

    @ph.torque
    def counted(omega, rows):
        return ph.total(lambda row: row * omega, rows)

    field = counted(np.ones(100_000) / 1e5)
    began = time.perf_counter()
    made = problem(field)
    assert time.perf_counter() - began < 0.5
    assert made.field.torque_value(0.0, np.eye(3).tolist(), (1.0, 2.0, 3.0)) == pytest.approx((1.0, 2.0, 3.0))


def test_a_sum_in_a_sum():
    @ph.torque
    def pairs(R, points):
        def one(p):
            return ph.total(lambda q: ph.math.cross(p, R @ q), points)

        return ph.total(one, points)

    R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expected = sum(np.cross(p, R @ q) for p in NORMALS for q in NORMALS)
    assert pairs(NORMALS).torque_value(0.0, R.tolist(), (0, 0, 0)) == pytest.approx(expected, abs=1e-13)


@pytest.mark.usefixtures("plain_first")
def test_sums_of_fields_pickles_and_tables():
    times = np.linspace(0, 4, 200)
    table = ph.fields.tabulated(times, np.stack([np.sin(times), 0 * times, np.cos(times)], 1))
    both = TORQUES[0] + table
    sent = pickle.loads(pickle.dumps(problem(both)))
    runs = [ph.solve(p, "imidm", dt=0.05, steps=20).momentum for p in (problem(both), sent)]
    assert (runs[0] == runs[1]).all()
    lone = pickle.loads(pickle.dumps(TORQUES[0])).bind(normals=NORMALS[:2], arms=ARMS[:2], areas=AREAS[:2])
    assert len(lone.values["areas"]) == 2


def test_a_million_rows_and_another_table_compile_nothing():
    def run(count):
        times = np.linspace(0, 4, count)
        field = ph.fields.tabulated(times, np.stack([np.sin(times), 0 * times, np.cos(times)], 1), between="linear")
        return ph.solve(problem(field), "imidm", dt=0.05, steps=20)

    first, long = run(20_000), run(1_000_000)
    assert long.info.compile_seconds == 0
    assert np.abs(first.momentum - long.momentum).max() < 1e-7


MISTAKES = [
    (lambda: problem(TORQUES[0].bind(areas=AREAS[:2])), "different numbers of rows: normals 6, arms 6, areas 2"),
    (lambda: TORQUES[0].bind(areas=[]), "areas must be rows of finite numbers"),
    (lambda: pressure(SUN, NORMALS, ARMS, [np.nan] * COUNT), "areas must be rows of finite numbers"),
    (lambda: ph.solve(problem(TORQUES[0]), "taylor(6)", dt=0.1, steps=1), "has values and derivatives, but no Taylor"),
    (lambda: ph.ensemble(BODY, None, np.eye(3), "imidm", field=TORQUES[0], params={"areas": np.ones((3, COUNT))},
                         dt=0.1, steps=1), "parameter areas is rows of data, the same for all bodies"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)
