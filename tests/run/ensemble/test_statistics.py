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


# --- of a run of ph.solve ---------------------------------------------------------------------------


@ph.torque
def relay(R, omega, level=0.2):
    return ph.where(omega[0] > level, -0.4, -0.1), 0.3 * R[2][1], -0.2 * R[2][0]


@ph.states(wheel=0.5)
def spinning_wheel(omega, wheel, k=0.3):
    return (-k * wheel, 0.1 * omega[0], 0.0 * wheel), {"wheel": omega[0] - wheel}


@ph.controller(total=0.0)
def brake(omega, total, period, gain=0.4):
    return [-gain * w for w in omega], {"total": total + omega[0]}


@ph.event(terminal=True)
def turned(omega):
    return omega[1] - 0.55


def wheel_now(R, wheel):
    return wheel + 1e-30 * R[0][0]


def total_now(R, total):
    return total + 1e-30 * R[0][0]


def one(field=None, body=None):
    return ph.Problem(body or ph.Body([1.0, 1.4, 1.9]), field, omega=[0.9, 0.4, 0.3])


VARYING = ph.VaryingBody(lambda t: (1.0 + 0.2 * t, 1.5, 2.0))
WORDS = ["energy", "omega", "momentum"]
FIXED = {"method": "mkrk(rk4)", "dt": 0.05, "t_end": 1.5}
RUNS = {
    "smooth": (one(GRAVITY), FIXED),
    "relay": (one(relay()), FIXED),
    "relay, every": (one(relay()), FIXED | {"every": 4}),
    "relay, terminal event": (one(relay()), FIXED | {"events": [turned]}),
    "relay, times": (one(relay()), FIXED | {"times": [0.0, 0.33, 1.5]}),
    "smooth, tol": (one(GRAVITY), {"tol": 1e-7, "times": [0.0, 0.4, 1.0]}),
    "free, tol": (one(), {"tol": 1e-7, "times": [0.0, 0.4, 1.0]}),
    "given method, tol": (one(GRAVITY), {"method": "trapm", "tol": 1e-4, "times": [0.0, 0.4, 1.0]}),
    "relay, step_tol": (one(relay()), {"step_tol": 1e-7, "times": [0.0, 0.4, 1.0]}),
    "states": (one(spinning_wheel()), {"method": "verner87", "dt": 0.1, "t_end": 1.0, "observable": wheel_now}),
    "states, tol": (one(spinning_wheel()), {"tol": 1e-7, "times": [0.0, 0.4, 1.0], "observable": wheel_now}),
    "control": (one(GRAVITY), FIXED | {"control": brake, "period": 0.1, "observable": total_now}),
    "control, tol": (
        one(GRAVITY), {"tol": 1e-7, "times": [0.0, 1.0], "control": brake, "period": 0.1, "observable": total_now},
    ),
    "varying body": (one(body=VARYING), {"method": "verner87", "dt": 0.1, "t_end": 1.0}),
    "varying body, tol": (one(body=VARYING), {"tol": 1e-7, "times": [0.0, 0.4, 1.0]}),
}  # fmt: skip


@pytest.mark.parametrize("case", RUNS)
def test_statistics_of_a_run_are_those_of_its_states(case):
    """Of the path that the same call returns, until the event with which it ends."""
    problem, given = RUNS[case]
    given = dict(given)
    observable = given.pop("observable", None)
    method = given.pop("method", None)
    sol = ph.solve(problem, method, **given, statistics=WORDS + [observable] * (observable is not None))
    values = {"energy": sol.energy, "omega": sol.omega, "momentum": sol.momentum}
    if observable is not None:
        values[observable.__name__] = sol.states[observable.__name__.removesuffix("_now")]
    for name, found in sol.statistics.items():
        near = {"rtol": 0, "atol": 4 * EPS * np.abs(values[name]).max()}
        np.testing.assert_allclose(found.first, values[name][0], **near)
        np.testing.assert_allclose(found.last, values[name][-1], **near)
        np.testing.assert_allclose(found.min, values[name].min(axis=0), **near)
        np.testing.assert_allclose(found.max, values[name].max(axis=0), **near)
        np.testing.assert_allclose(found.mean, values[name].mean(axis=0), **near)
    plain = ph.solve(problem, method, **given)
    assert np.array_equal(sol.momentum, plain.momentum)
    assert not ("event" in case and sol.t[-1] == 1.5)


@pytest.mark.parametrize("how", [{"method": "mkrk(rk4)", "dt": 0.05}, {"tol": 1e-8}], ids=["dt", "tol"])
@pytest.mark.parametrize("backwards", [False, True])
def test_statistics_at_times_end_where_the_run_does(how, backwards):
    """At the start, at the times before the terminal event, and there; without an event at the end of the run."""
    times, sign = np.array([0.1, 0.2, 1.4]), -1 if backwards else 1
    event = ph.event(terminal=True)(lambda omega: omega[1] - (0.25 if backwards else 0.55))
    given = dict(how) | {"times": sign * times, "t_end": sign * 1.5, "statistics": WORDS}
    method = given.pop("method", None)
    stopped, whole = (ph.solve(one(relay()), method, **given, events=x) for x in ([event], []))
    assert len(stopped.t) == 2
    assert len(whole.t) == 3
    ends = ((stopped, stopped.events[0]), (whole, whole.at(sign * 1.5)))
    for sol, end in ends:
        omega = np.concatenate([sol.at(0.0).omega, sol.omega, end.omega])
        found = sol.statistics["omega"]
        np.testing.assert_allclose(found.last, omega[-1], rtol=0, atol=4 * EPS)
        np.testing.assert_allclose(found.mean, omega.mean(axis=0), rtol=0, atol=4 * EPS)


@pytest.mark.parametrize(
    "how",
    [{"method": "mkrk(rk4)", "dt": 0.01, "every": 7}, {"step_tol": 1e-8, "times": [0.1, 0.2, 0.9]}],
    ids=["every", "times"],
)
def test_a_run_that_fails_has_statistics_until_then(how):
    """As a body of an ensemble: up to the last state at which they are evaluated before the failure."""
    problem = ph.Problem(ph.Body([1, 1, 1]), growing(k=20.0), omega=[1.0, 0.1, 0.0])
    given = dict(how) | {"t_end": 1.0, "statistics": "omega"}
    method = given.pop("method", None)
    with pytest.raises(ph.StepError) as stop:
        ph.solve(problem, method, **given)
    with pytest.warns(ph.ResultWarning, match="failed"):
        many = ph.ensemble(problem, method=method, **given)
    found, expected = stop.value.partial.statistics["omega"], many.statistics["omega"]
    for part in ("first", "last", "max", "mean"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part)[0], rtol=1e-6)


def test_chaos_indicators_of_a_run_end_where_it_ends():
    """Along the returned path, across its jumps, until the terminal event: those of `ph.chaos` until that time."""
    given = {"step_tol": 1e-10, "statistics": ["megno", "lyapunov", "omega"]}
    sol = ph.solve(one(relay()), times=[0.2, 0.5, 4.0], events=[turned], **given)
    end = float(sol.events[0].t[0])
    expected = ph.chaos(one(relay()), t_end=end, step_tol=1e-10)
    np.testing.assert_allclose(sol.statistics["megno"].last, expected.megno[-1, 0], rtol=1e-6)
    np.testing.assert_allclose(sol.statistics["lyapunov"].last, expected.exponent[-1, 0], rtol=1e-6)
    np.testing.assert_allclose(sol.statistics["omega"].last, sol.events[0].omega[0], rtol=4 * EPS)


REFUSED = {
    "no times": ({"tol": 1e-6, "t_end": 1.0}, "with tol give times=.*at which statistics are evaluated"),
    "file": (FIXED | {"out": "run.zarr"}, "without out; leave out `out`"),
    "resume": (FIXED | {"resume": True}, "name the file with out"),
    "jumps": (FIXED | {"statistics": "megno", "field": relay()}, "give step_tol and times instead of a method and dt"),
    "event": (FIXED | {"statistics": "megno", "events": [turned]}, "give step_tol and times instead .*, or t_end"),
    "times": (FIXED | {"statistics": "megno", "times": [0.5]}, "remove the times"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_run_has_no_statistics_of_is_refused(case):
    given, said = REFUSED[case]
    given = {"statistics": "energy"} | given
    field = given.pop("field", GRAVITY)
    with pytest.raises(ph.InputError, match=said):
        ph.solve(one(field), given.pop("method", None), **given)
