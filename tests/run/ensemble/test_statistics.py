"""Running statistics of an ensemble: what a path that was kept would give, without keeping it."""

import math

import numpy as np
import pytest

import polhode as ph
from examples import growing
from polhode.physics.observers import statistics

RNG = np.random.default_rng(3)
N, STEPS = 11, 25
MOMENTS = RNG.uniform(1, 1.9, (N, 3))
ATTITUDES = RNG.normal(size=(N, 4))
ATTITUDES /= np.linalg.norm(ATTITUDES, axis=1)[:, None]
MOMENTA = RNG.normal(size=(N, 3))
WEIGHTS = RNG.uniform(0.5, 2, N)
DT = RNG.uniform(0.02, 0.06, N)
EPS = np.finfo(float).eps


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


def pull(t, R, omega, mgl, share=(0.5, 0.25)):
    """The field's own parameter, one of its own, the time and both parts of the state."""
    return share[0] * mgl * R[2][0] + share[1] * t * omega[1]


WATCHED = ["energy", pull, "spatial_momentum", "omega", "momentum", "momentum_norm"]
FIELD = {"field": gravity, "params": {"mgl": WEIGHTS}}


def run(method="fe", bodies=MOMENTS, **given):
    return ph.ensemble(bodies, ATTITUDES, MOMENTA, method, **({"dt": DT, "steps": STEPS} | given))


def path_values(many):
    """The observables on a path that was kept, by the formula of the running ones; (n, N, components) by name."""
    wanted = statistics.watch(WATCHED, ph.Problem(ph.Body(MOMENTS[0]), gravity(1.0), momentum=MOMENTA[0]))
    q, m = (tuple(np.moveaxis(x, -1, 0)) for x in (many.quaternion, many.momentum))
    system = (tuple(many.moments.T), tuple(1.0 / many.moments.T), (WEIGHTS,))
    values = np.stack(np.broadcast_arrays(*wanted.observed(many.t, q, m, system)), -1)
    parts = np.split(values, np.cumsum(list(wanted.sizes.values()))[:-1], axis=-1)
    return {n: v if v.shape[-1] > 1 else v[..., 0] for n, v in zip(wanted.sizes, parts, strict=True)}


def assert_same(found, values):
    """Bit for bit, except the mean, which is a sum of so many rounded numbers."""
    for got, wanted in (
        (found.first, values[0]),
        (found.last, values[-1]),
        (found.min, values.min(axis=0)),
        (found.max, values.max(axis=0)),
    ):
        assert np.array_equal(got, wanted)
    near = len(values) * EPS * np.abs(values).max()
    np.testing.assert_allclose(found.mean, values.mean(axis=0), rtol=0, atol=near)
    first, change = values[0], values - values[0]
    if values.ndim == 3:
        first, change = np.linalg.norm(first, axis=-1), np.linalg.norm(change, axis=-1)
    np.testing.assert_allclose(found.drift, np.abs(change).max(axis=0) / np.abs(first), rtol=4 * EPS)


@pytest.fixture(scope="module")
def path():
    return run(every=1, **FIELD)


@pytest.mark.parametrize("every", [1, 4, 1000])
def test_as_from_a_path_that_was_kept(path, every):
    many = run(every=every, statistics=WATCHED, **FIELD)
    assert many.quaternion.shape == (2, N, 4)
    assert np.array_equal(many.quaternion[-1], path.quaternion[-1])
    assert np.array_equal(many.t, path.t[[0, -1]])
    kept = np.append(np.arange(0, STEPS, every), STEPS)
    values = path_values(path)
    assert list(many.statistics) == list(values)
    for name, found in many.statistics.items():
        assert_same(found, values[name][kept])


def test_drifts_are_those_of_a_trajectory(path):
    many = run(statistics=WATCHED, **FIELD).statistics
    i = 4
    problem = ph.Problem(ph.Body(MOMENTS[i]), gravity(WEIGHTS[i]), attitude=ATTITUDES[i], momentum=MOMENTA[i])
    drift = ph.solve(problem, "fe", dt=DT[i], steps=STEPS).changes()
    for name, value in drift.items():  # the two runs differ by some roundings a step
        assert abs(many[name].drift[i] - value) < 64 * STEPS * EPS


def test_the_users_axes():
    turn = np.linalg.qr(RNG.normal(size=(N, 3, 3)))[0]
    bodies = turn * MOMENTS[:, None, :] @ turn.transpose(0, 2, 1)

    def height(R):
        return R[2][0]

    many = run(bodies=bodies, statistics=["momentum", "omega", height])
    path = run(bodies=bodies, every=1)
    omega = np.linalg.solve(bodies, path.momentum[..., None])[..., 0]
    for name, values in (("momentum", path.momentum), ("height", path.matrix[..., 2, 0]), ("omega", omega)):
        found = many.statistics[name]
        near = {"rtol": 0, "atol": 100 * EPS * np.abs(values).max()}  # axes to and fro, the tensor's equations
        np.testing.assert_allclose(found.first, values[0], **near)
        np.testing.assert_allclose(found.min, values.min(axis=0), **near)
        np.testing.assert_allclose(found.max, values.max(axis=0), **near)


@ph.potential
def spring(R, stiffness=0.3):
    return stiffness * R[0][1] ** 2


@ph.torque
def friction(omega, c=0.1):
    return [-c * w for w in omega]


@ph.torque
def switched(t, omega):
    return ph.where(t > 0.33, 0.2, -0.1), 0.1 * omega[0], 0.0 * omega[1]


def tilt(R, omega):
    return R[2][0] + omega[1]


GRAVITY = gravity(0.8)
TENSOR = [[2, 0.1, 0.2], [0.1, 2.5, 0.3], [0.2, 0.3, 1.7]]
FIELDS = {
    "two potentials": (GRAVITY + spring(), "mkrk(rk4)", [1.0, 1.4, 1.9]),
    "potential and torque": (GRAVITY + friction(), "mkrk(rk4)", [1.0, 1.4, 1.9]),
    "potential and jumps in time": (GRAVITY + switched(), "mkrk(rk4)", TENSOR),
    "potential and heat bath": (GRAVITY + ph.fields.heat_bath(friction=0.1, kT=0.2), "baoab(rot123)", TENSOR),
    "potential and thermostat": (
        GRAVITY + ph.fields.nose_hoover(kT=0.2, tau=0.3), "nose_hoover(strang(rot123))", [1.0, 1.4, 1.9],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FIELDS)
def test_energy_is_that_of_the_states_in_every_field(case):
    """Kinetic energy and the potentials of all parts, whatever else acts; the kinetic energy has a name of its own."""
    field, method, inertia = FIELDS[case]
    problem, words = ph.Problem(ph.Body(inertia), field, omega=[0.4, 0.5, 0.3]), ["energy", "kinetic_energy", tilt]
    many = ph.ensemble(problem, method=method, dt=0.1, steps=7, statistics=words)
    path = many[0]
    values = {
        "energy": path.energy,
        "kinetic_energy": (path.omega * path.momentum).sum(1) / 2,
        "tilt": path.matrix[:, 2, 0] + path.omega[:, 1],
    }
    for name, expected in values.items():
        found = many.statistics[name]
        np.testing.assert_allclose([found.first[0], found.last[0]], expected[[0, -1]], rtol=0, atol=8 * EPS)


def test_a_failed_body_keeps_its_statistics_so_far():
    """One that fails at once has those of the start, the others are as they were."""
    fast = MOMENTA * np.where(np.arange(N) == 3, 100, 1)[:, None]
    given = {"dt": 0.1, "steps": 20, "statistics": ["energy", "spatial_momentum"]}
    with pytest.warns(ph.ResultWarning, match="bodies failed .* body 3 in step 1"):
        many = ph.ensemble(MOMENTS, ATTITUDES, fast, "dmv2", **given)
    calm = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv2", **given)
    assert np.flatnonzero(many.failed >= 0).tolist() == [3]
    for name, found in many.statistics.items():
        for part in ("first", "last", "min", "max", "mean", "drift"):
            got, wanted = getattr(found, part), getattr(calm.statistics[name], part)
            assert np.array_equal(np.delete(got, 3, axis=0), np.delete(wanted, 3, axis=0))
        for part in ("last", "min", "max", "mean"):
            assert np.array_equal(getattr(found, part)[3], found.first[3])
        assert found.drift[3] == 0


def test_a_body_that_fails_later_keeps_what_was_before():
    """Explicit steps of a torque that grows with omega."""

    k = np.where(np.arange(N) == 5, 1e3, 0.0)
    given = {"field": growing, "params": {"k": k}, "dt": 0.1}
    with pytest.warns(ph.ResultWarning, match="body 5 in step"):
        path = run("mkrk(euler)", every=1, **given)
    with pytest.warns(ph.ResultWarning, match="body 5 in step"):
        many = run("mkrk(euler)", statistics="momentum_norm", **given)
    reached = many.failed[5] - 1
    assert 2 < reached < STEPS
    assert np.array_equal(many.failed, path.failed)
    length = np.linalg.norm(path.momentum[: reached + 1, 5], axis=-1)
    length[-1] = np.linalg.norm(path.momentum[-1, 5])  # the last good state stands in the last row
    found = many.statistics["momentum_norm"]
    assert found.max[5] == found.last[5] == length.max()
    np.testing.assert_allclose(found.mean[5], length.mean(), rtol=STEPS * EPS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["strang(dmv4)", "compensated(strang(dmv4))", "reversible(strang(dmv4))", "processed4(dmv10)", "imidm"]
)
def test_every_kind_of_state(name):
    """With low parts, with a clock of its own, with a change of variables: the states that are recorded."""
    many = run(name, statistics=WATCHED, **FIELD)
    path = run(name, every=1, **FIELD)
    assert np.array_equal(many.t, path.t[[0, -1]])
    assert np.array_equal(many.quaternion[-1], path.quaternion[-1])
    values = path_values(path)
    for word, found in many.statistics.items():
        assert_same(found, values[word])


def test_what_is_no_number_stays():
    for fold in (statistics.lower, statistics.higher):
        assert math.isnan(fold(fold(1.0, math.nan), 2.0))
    assert (statistics.lower(1.0, 2.0), statistics.higher(1.0, 2.0)) == (1.0, 2.0)


def branch(R):
    return 1.0 if R[2][2] > 0 else 0.0


def needy(R, mass):
    return mass * R[2][2]


BAD = {
    "word": ("enrgy", "statistics must be some of the names 'energy', .*; got 'enrgy'"),
    "kind": (3, "statistics must be .*; got 3"),
    "one of": (["energy", 3], "statistics must be .*; got 3"),
    "none": ([], "got none"),
    "twice": (["energy", "energy"], "two observables named 'energy'"),
    "branch": (branch, "the observable branch cannot be compiled"),
    "vector": (lambda R: R[0], "must return one number"),
    "parameter": (
        needy,
        "no value for mass: give it a default, or rename it to a parameter of the field, but there is no field",
    ),
    "constant": (lambda t: 2 * t, "depends neither on R nor on omega"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    given, said = BAD[case]
    with pytest.raises(ph.InputError, match=said):
        run(statistics=given)
