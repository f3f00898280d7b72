"""What an ensemble says of its bodies is what their trajectories say."""

import matplotlib as mpl
import numpy as np
import pytest

import polhode as ph

mpl.use("Agg")

RNG = np.random.default_rng(8)
N, STEPS, DT = 5, 20, 0.02
EPS = np.finfo(float).eps
METHOD = "strang(dmv4)"
OMEGA = RNG.normal(size=(N, 3))
WEIGHTS = np.linspace(0.5, 2, N)
MIXED = np.array([[0, 0.03, 0.06], [0.03, 0, 0.03], [0.06, 0.03, 0]])
TENSORS = [np.diag([1.5, 2.0, 2.5]) + x * MIXED for x in range(N)]


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


TOP = ph.Problem(ph.Body([1.5, 2.0, 2.5]), gravity(mgl=1.0), attitude=[0, 0, 0.6, 0.8], omega=[0.1, 0.2, 3.0], t0=1.0)


def problem(i, body=TOP.body):
    return ph.Problem(body, gravity(mgl=WEIGHTS[i]), attitude=TOP.quaternion, omega=OMEGA[i], t0=1.0)


@pytest.fixture(scope="module")
def tops():
    return ph.ensemble(TOP, METHOD, dt=DT, steps=STEPS, every=1, omega=OMEGA, params={"mgl": WEIGHTS})


@pytest.fixture(scope="module")
def turned():
    """Bodies with axes of their own."""
    given = {"dt": DT, "steps": STEPS, "every": 1, "params": {"mgl": WEIGHTS}}
    return ph.ensemble(TOP, METHOD, body=[ph.Body(x) for x in TENSORS], omega=OMEGA, **given)


@pytest.mark.parametrize("which", ["tops", "turned"])
def test_a_body_is_its_trajectory(which, request):
    many = request.getfixturevalue(which)
    for i in (0, 3, -1):
        body = TOP.body if which == "tops" else ph.Body(TENSORS[i])
        alone, one = ph.solve(problem(i, body), METHOD, dt=DT, steps=STEPS), many[i]
        np.testing.assert_array_equal(one.t, alone.t)
        for name in ("quaternion", "momentum", "omega", "energy", "spatial_momentum", "matrix"):
            np.testing.assert_allclose(getattr(one, name), getattr(alone, name), atol=500 * EPS)
        said = ("method", "dt", "inertia", "field", "status", "every", "steps")
        assert [getattr(one.info, name) for name in said] == [getattr(alone.info, name) for name in said]
        between = 1.0 + DT * np.array([0.0, 0.3, 7.7, STEPS])
        np.testing.assert_allclose(one.at(between).quaternion, alone.at(between).quaternion, atol=500 * EPS)


@pytest.mark.parametrize("which", ["tops", "turned"])
def test_arrays_are_those_of_the_bodies(which, request):
    many = request.getfixturevalue(which)
    drift = many.drift()
    for i, one in enumerate(many):
        np.testing.assert_allclose(many.omega[:, i], one.omega, atol=20 * EPS)
        np.testing.assert_allclose(many.energy[:, i], one.energy, atol=20 * EPS)
        space = np.einsum("nij,nj->ni", one.matrix, one.omega)
        np.testing.assert_allclose(many.spatial_omega[:, i], space, atol=20 * EPS)
        for name, value in one.drift().items():
            assert abs(drift[name][i] - value) < 20 * EPS
    assert len(list(many)) == N
    assert many.worst_drift() == {name: values.max() for name, values in drift.items()}
    assert 1e-9 < many.worst_drift()["energy"] < 1e-2


@ph.potential
def dipole(R, x, z):
    """A dipole along the body axis 3 in a field (x, 0, z)."""
    return -(x * R[0][2] + z * R[2][2])


def test_the_drift_of_each_body_is_that_of_what_it_conserves():
    """Without a field everything, else the momentum along the field, which is vertical for the second body."""
    params = {"x": [0.0, 0.0, 3.0], "z": [0.0, 2.0, 4.0]}
    many = ph.ensemble(TOP.body, None, np.ones((3, 3)), METHOD, field=dipole, params=params, dt=0.1, steps=9, every=1)
    drift = many.drift()
    has = {name: np.isfinite(values).tolist() for name, values in drift.items()}
    assert has == {
        "energy": [True, True, True], "spatial_momentum": [True, False, False], "momentum_norm": [True, False, False],
        "vertical_momentum": [False, True, False], "conserved_momentum": [False, False, True],
    }  # fmt: skip
    for i, one in enumerate(many):
        assert one.drift() == pytest.approx({name: x[i] for name, x in drift.items() if has[name][i]}, abs=20 * EPS)
        assert one.changes() == pytest.approx({name: x[i] for name, x in many.changes().items()}, abs=20 * EPS)
    np.testing.assert_allclose(many.conserved[2].directions, [(0.6, 0.0, 0.8)], atol=1e-15)
    along = many.spatial_momentum[:, 2] @ (0.6, 0.0, 0.8)
    wanted = np.abs(along - along[0]).max() / np.linalg.norm(many.momentum[0, 2])
    assert drift["conserved_momentum"][2] == pytest.approx(wanted, abs=4 * EPS)
    assert many.changes()["momentum_norm"][2] > 0.1
    assert set(many.worst_drift()) == set(drift)


def test_nothing_is_conserved():
    given = {"dt": 0.1, "steps": 5, "every": 1}
    slowed = ph.ensemble(TOP.body, None, np.ones((2, 3)), "mkrk(rk4)", field=ph.fields.linear_drag(0.1), **given)
    assert slowed.drift() == slowed[0].drift() == {}
    assert (slowed.changes()["energy"] > 1e-3).all()
    with pytest.raises(KeyError, match=r"energy is not conserved in this motion \(conserved: nothing\)"):
        slowed.drift()["energy"]


def test_a_torque_that_begins_late_is_seen():
    """The times of the run count, not those near its start."""

    @ph.torque
    def late(t, omega):
        return tuple(-0.3 * ph.math.where(t > 4.0, 1.0, 0.0) * x for x in omega)

    problem = ph.Problem(TOP.body, late(), omega=[1.0, 2.0, 3.0])
    assert ph.solve(problem, "mkrk(rk4)", dt=0.1, t_end=8.0).drift() == {}
    many = ph.ensemble(problem, "mkrk(rk4)", dt=0.1, steps=80, omega=np.ones((2, 3)))
    assert many.drift() == many[0].drift() == {}


@ph.torque
def pulse(t, start):
    return (ph.where(t > start, ph.where(t < start + 0.01, 1.0, 0.0), 0.0), 0.0, 0.0)


def test_a_short_pulse_is_seen():
    """No random time of the run meets it; after the run, or before it, it does nothing."""
    starts = [4.0, 9.0, -1.0]
    for way in (1, -1):
        for start in starts:
            problem = ph.Problem(TOP.body, pulse(start=way * start), omega=[1.0, 2.0, 3.0])
            sol = ph.solve(problem, "mkrk(rk4)", dt=0.5 * way, steps=16)
            assert ("energy" in sol.drift()) is (start != 4.0), start
    many = ph.ensemble(
        TOP.body, None, np.ones((3, 3)), "mkrk(rk4)", field=pulse, params={"start": starts}, dt=0.5, steps=16
    )
    assert np.isfinite(many.drift()["energy"]).tolist() == [False, True, True]
    assert many[0].drift() == {}


def test_states_at_any_times(tops):
    times = [1.0, 1.0 + 3.5 * DT, float(tops.t[-1])]
    found = tops.at(times)
    assert found.quaternion.shape == (3, N, 4)
    np.testing.assert_array_equal(found.t, times)
    np.testing.assert_array_equal(found.momentum[1, 2], tops[2].at(times[1]).momentum[0])
    np.testing.assert_array_equal(found.energy[:, 1], found[1].energy)
    with pytest.raises(ph.InputError, match=r"times between 1 and 1\.4"):
        tops.at(2.0)
    ends = ph.ensemble(TOP, METHOD, dt=DT, steps=STEPS, omega=OMEGA)
    with pytest.raises(ph.InputError, match=r"kept every step \(every=1\)"):
        ends.at(1.1)


def test_numbers_of_bodies(tops):
    with pytest.raises(IndexError, match="there are 5 bodies, numbered from 0; got 5"):
        tops[5]
    with pytest.raises(ph.InputError, match="must be whole"):
        tops[0.5]


@ph.torque
def growing(omega, k):
    return (k * omega[0] * omega[0] * omega[0], 0.0, 0.0)


def test_a_body_that_failed():
    with pytest.warns(ph.ResultWarning, match="1 of 3 bodies failed"):
        many = ph.ensemble(
            [1, 2, 2.5], None, np.ones((3, 3)), "mkrk(rk4)", field=growing, params={"k": [0.0, 30.0, 0.0]}, dt=0.1,
            steps=10, every=3,
        )  # fmt: skip
    one, step = many[1], int(many.failed[1])
    assert one.status == "failed"
    assert one.info.steps == step - 1
    assert one.t[-1] == pytest.approx((step - 1) * 0.1)
    assert np.isfinite(one.quaternion).all()
    assert (np.diff(one.t) > 0).all()
    assert many[0].status == "finished"
    fine, changes = many.drift()["momentum_norm"], many.changes()["momentum_norm"]
    assert fine[0] == fine[2] < 1e-6
    assert np.isnan(fine[1]), "the torque of this body does work"
    assert changes[1] > 1


def test_to_a_tolerance():
    many = ph.ensemble(TOP.body, None, OMEGA, tol=1e-9, t_end=2.0)
    one = many[2]
    assert (one.info.tol, one.error_estimate) == (1e-9, many.error_estimate[2])
    exact = ph.exact(ph.Problem(TOP.body, momentum=OMEGA[2]), 2.0)
    np.testing.assert_allclose(one.quaternion[-1], exact.quaternion[0], atol=100 * EPS)


@ph.event
def level(R):
    return R[2][0]


def test_events():
    many = ph.ensemble(TOP, METHOD, dt=DT, steps=STEPS, omega=10 * OMEGA, params={"mgl": WEIGHTS}, events=[level])
    assert len(many.events) == 1
    happened = 0
    for i in range(N):
        alone = ph.Problem(TOP.body, gravity(mgl=WEIGHTS[i]), attitude=TOP.quaternion, omega=10 * OMEGA[i], t0=1.0)
        wanted = ph.solve(alone, METHOD, dt=DT, steps=STEPS, events=level).events[0]
        np.testing.assert_allclose(many.events[0][i].t, wanted.t, atol=1e-12)
        np.testing.assert_array_equal(many[i].events[0].t, many.events[0][i].t)
        happened += len(wanted)
    assert happened > 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"events": ph.event(level.template.function, terminal=True)}, "no event may be terminal"),
        ({"events": 3}, "events must be a sequence"),
        ({"method": "reversible(strang(dmv4))"}, "chooses its own"),
    ],
)
def test_events_that_cannot_be_found(given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.ensemble(TOP, **{"method": METHOD, "dt": DT, "steps": STEPS, "omega": OMEGA, "events": level} | given)


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("which", ["tops", "turned"])
def test_a_saved_ensemble_says_the_same(which, suffix, request, tmp_path):
    many = request.getfixturevalue(which)
    many.save(tmp_path / f"many{suffix}")
    loaded = ph.load(tmp_path / f"many{suffix}")
    for name in ("omega", "spatial_omega", "energy"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(many, name))
    np.testing.assert_array_equal(loaded[3].energy, many.energy[:, 3])
    np.testing.assert_allclose(loaded[3].omega, many[3].omega, atol=20 * EPS)
    with pytest.raises(ph.InputError, match="dense output needs"):
        loaded.at(1.1)


def test_a_store_of_a_run(tmp_path):
    path = tmp_path / "run.zarr"
    given = {"dt": DT, "steps": STEPS, "omega": OMEGA, "params": {"mgl": WEIGHTS}, "progress": False}
    many = ph.ensemble(TOP, METHOD, body=[ph.Body(x) for x in TENSORS], **given, out=path)
    loaded = ph.load(path)
    assert many.energy.shape == (2, N)
    np.testing.assert_array_equal(loaded.omega, many.omega)
    np.testing.assert_allclose(many.drift()["energy"], loaded.to_xarray()["energy_change"], atol=20 * EPS)
    with pytest.raises(ph.InputError, match="not the formula of its field"):
        _ = loaded.energy
    copy = ph.load(loaded.save(tmp_path / "copy.nc"))
    np.testing.assert_array_equal(copy.omega, many.omega)


def test_bodies_that_are_not_known():
    many = ph.Ensemble(
        np.zeros(1), np.ones((1, 2, 4)) / 2, np.ones((1, 2, 3)), np.ones((2, 3)), np.full(2, -1), "some", 0.5
    )
    assert many.conserved is None
    with pytest.raises(ph.InputError, match="not known beyond their principal moments"):
        _ = many.omega


def test_pictures(tops, turned, tmp_path):
    for many in (tops, turned):
        for draw in (many.plot.energy, many.plot.attitude, many.plot.polhode):
            fig, ax = draw(bodies=[0, 3])
            assert {"body 0", "body 3"} <= set(ax.get_legend_handles_labels()[1])
            mpl.pyplot.close(fig)
    fig, ax = tops.plot.drift()
    largest = ax.get_lines()[-1].get_ydata()
    assert largest[-1] == pytest.approx(tops.worst_drift()["energy"])
    mpl.pyplot.close(fig)
    with pytest.raises(ph.InputError, match="draw 1 to"):
        tops.plot.energy(bodies=[])
    with pytest.raises(ph.InputError, match="axis must be"):
        tops.plot.attitude(axis="w")
    page = tops.view(tmp_path / "tops.html", bodies=[1, 2])
    assert page.stat().st_size > 100_000
    with pytest.raises(ph.InputError, match="1 to 9 trajectories"):
        tops.view(tmp_path / "none.html", bodies=[])


def test_equal_steps_across_jumps_are_told():
    """Statistics are computed in lanes: the order is lost, and `ph.solve`, which locates jumps, gives other numbers."""

    @ph.torque(frame="body")
    def relay(omega, k):
        return ph.where(omega[0] > 0, -k, k), 0.0, 0.0

    given = {"omega": [[0.3, 0.2, 1.0]] * 2, "field": relay(0.5), "t_end": 0.2}
    with pytest.warns(ph.ResultWarning, match="relay has conditions .* give tol or step_tol instead of dt"):
        ph.ensemble(ph.Body([1.0, 1.3, 1.7]), method="mkrk(rk4)", dt=0.1, statistics="energy", **given)
