"""Fields with states of their own (`ph.states`): conservation laws, known motions, and what is refused."""

import pickle
import sys

import numpy as np
import pytest

import polhode as ph
from simulated_card import computed

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])


@ph.states(wheel=0.5)
def driven(t, omega, wheel, motor, friction):
    """A wheel about the third axis, with the momentum `wheel` relative to the body."""
    torque = motor * ph.math.sin(t) - friction * wheel
    return ph.math.cross((0.0, 0.0, wheel), omega) - (0.0, 0.0, torque), {"wheel": torque}


@ph.states(place=[1.0, 0.0, 0.0], velocity=[0.0, 1.2, 0.0])
def orbit(R, place, velocity, mu, inertia):
    """The gravity gradient on a body in a Kepler orbit."""
    r = ph.math.norm(place)
    u = R.T @ place / r
    moment = ph.math.cross(u, ph.math.matvec(inertia, u))
    return 3 * mu / r**3 * moment, {"place": velocity, "velocity": -mu / r**3 * place}


WHEEL = ph.Problem(BODY, driven(0.3, 0.05), omega=[0.1, 0.2, 0.3])
ORBIT = ph.Problem(BODY, orbit(1.0, BODY.inertia), omega=[0.1, 0.2, 0.3])
WAYS = {"tol": {"tol": 1e-10}, "step_tol": {"step_tol": 1e-11}, "fixed": {"method": "verner87", "dt": 0.05}}


def total_momentum(sol):
    return np.einsum("nij,nj->ni", sol.matrix, sol.momentum + sol.states["wheel"][:, None] * [0.0, 0.0, 1.0])


@pytest.mark.parametrize("way", WAYS)
def test_body_and_wheel_conserve_their_momentum(way):
    sol = ph.solve(WHEEL, t_end=20.0, **WAYS[way])
    L = total_momentum(sol)
    assert np.abs(L - L[0]).max() < 1e-10
    # h' = motor sin t - friction h has this solution
    a, k, t = 0.3, 0.05, sol.t
    forced = a / (1 + k * k) * np.array([0.5 / a * (1 + k * k) + 1, k, -1])
    exact = forced @ [np.exp(-k * t), np.sin(t), np.cos(t)]
    assert np.abs(sol.states["wheel"] - exact).max() < 1e-9
    assert (sol.states["wheel"][0], sol.last().states["wheel"][0]) == (0.5, sol.states["wheel"][-1])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("plain_first")
def test_the_states_at_any_time(way):
    sol = ph.solve(WHEEL, t_end=20.0, **WAYS[way])
    between = sol.at(np.linspace(0.3, 19.7, 11))
    L = total_momentum(between)
    assert np.abs(L - total_momentum(sol)[0]).max() < 1e-9


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("plain_first")
def test_an_orbit_is_that_of_kepler(way):
    """After one period 2 pi a^(3/2) the point is where it was; the built-in field of the same orbit agrees."""
    a, e = 1 / (2 - 1.2**2), 1.2**2 - 1
    period = 2 * np.pi * a**1.5
    sol = ph.solve(ORBIT, t_end=period, **(WAYS[way] | ({"dt": period / 400} if way == "fixed" else {})))
    assert np.abs(sol.states["place"][-1] - [1, 0, 0]).max() < 1e-8
    assert np.abs(sol.states["velocity"][-1] - [0, 1.2, 0]).max() < 1e-8
    known = ph.fields.eccentric_gravity_gradient(BODY, mu=1.0, semi_major_axis=a, eccentricity=e)
    same = ph.solve(ph.Problem(BODY, known, omega=[0.1, 0.2, 0.3]), t_end=sol.t[-1], tol=1e-11)
    assert np.abs(sol.momentum[-1] - same.momentum[-1]).max() < 1e-9


@pytest.mark.usefixtures("plain_first")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("plain_first")
def test_back_to_the_start(way):
    end = ph.solve(WHEEL, t_end=5.0, **WAYS[way]).last()
    field = WHEEL.field.bind(wheel=float(end.states["wheel"][0]))
    turned = ph.Problem(BODY, field, attitude=end.quaternion[0], momentum=end.momentum[0], t0=5.0)
    back = ph.solve(turned, t_end=0.0, **WAYS[way])
    assert np.abs(back.momentum[-1] - WHEEL.momentum).max() < 1e-9
    assert abs(back.states["wheel"][-1] - 0.5) < 1e-9
    assert np.abs(total_momentum(back.at([4.3, 2.2, 0.1])) - total_momentum(back)[0]).max() < 1e-9


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("plain_first")
def test_what_is_kept_has_the_states(way):
    whole = ph.solve(WHEEL, t_end=5.0, **WAYS[way])
    times = np.linspace(0.1, 5.0, 7)
    kept = ph.solve(WHEEL, times=times, **WAYS[way])
    np.testing.assert_allclose(kept.states["wheel"], whole.at(times).states["wheel"], rtol=0, atol=1e-10)
    close = ph.solve(WHEEL, t_end=5.0, max_turn=0.005, **WAYS[way])
    assert len(close.states["wheel"]) == len(close.t) > len(whole)
    thin = ph.solve(WHEEL, t_end=5.0, every=3, **WAYS[way])
    np.testing.assert_array_equal(thin.states["wheel"][:2], whole.states["wheel"][[0, 3]])


@pytest.mark.parametrize("way", WAYS)
def test_compiled_ahead(way):
    given = dict(WAYS[way])
    ph.warm(WHEEL, given.pop("method", None), **given)
    assert ph.solve(WHEEL, t_end=1.0, **WAYS[way]).info.compile_seconds == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("plain_first")
def test_events_have_the_states(way):
    event = ph.event(lambda omega: omega[2] - 0.2, terminal=True)
    sol = ph.solve(WHEEL, t_end=20.0, events=[event], **WAYS[way])
    [found] = sol.events
    assert len(found) == 1
    assert abs(found.omega[0, 2] - 0.2) < 1e-12
    assert sol.t[-1] == found.t[0] < 20.0
    assert found.states["wheel"][0] == sol.states["wheel"][-1]
    assert np.abs(total_momentum(found) - total_momentum(sol)[0]).max() < 1e-9


def test_the_estimated_error_covers_the_states():
    coarse, fine = (ph.solve(ORBIT, t_end=15.0, tol=tol) for tol in (1e-5, 1e-11))
    gap = np.linalg.norm(coarse.states["place"][-1] - fine.states["place"][-1])
    assert 0.1 * gap < coarse.error_estimate <= 1e-5
    assert "Runge-Kutta pair 8(7) on all of them" in coarse.reason


@pytest.mark.usefixtures("plain_first")
def test_fixed_steps_are_of_order_eight():
    end = ph.solve(ORBIT, t_end=4.0, step_tol=1e-15).states["velocity"][-1]
    runs = [ph.solve(ORBIT, "verner87", dt=4 / n, steps=n) for n in (8, 16)]
    errors = [np.linalg.norm(sol.states["velocity"][-1] - end) for sol in runs]
    assert 6.5 < np.log2(errors[0] / errors[1]) < 10


@pytest.mark.usefixtures("plain_first")
def test_without_coupling_the_body_moves_as_with_the_torque_alone():
    @ph.states(lag=[1.0, 2.0])
    def damped(omega, lag, k):
        return -k * omega, {"lag": -k * lag}

    field = damped(0.1) + ph.fields.gravity(0.7)
    both = ph.solve(ph.Problem(BODY, field, omega=[0.1, 0.2, 0.3]), "verner87", dt=0.05, steps=100)
    plain = ph.fields.linear_drag(0.1) + ph.fields.gravity(0.7)
    alone = ph.solve(ph.Problem(BODY, plain, omega=[0.1, 0.2, 0.3]), "verner87", dt=0.05, steps=100)
    assert np.abs(both.momentum - alone.momentum).max() < 1e-14
    assert np.abs(both.energy - alone.energy).max() < 1e-14
    assert np.abs(both.states["lag"] - np.exp(-0.1 * both.t)[:, None] * [1.0, 2.0]).max() < 1e-14


@pytest.mark.usefixtures("plain_first")
def test_steps_end_where_conditions_on_time_change():
    @ph.states(charge=0.0)
    def burn(t, charge):
        rate = ph.where((t >= 1.0) & (t < 1.0 + 1e-4), 1e4, 0.0)
        return (0.0, 0.0, rate), {"charge": rate}

    sol = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), burn(), omega=[0.0, 0.0, 0.1]), t_end=5.0, tol=1e-8)
    assert sol.states["charge"][-1] == pytest.approx(1.0, abs=1e-7)
    assert sol.momentum[-1, 2] == pytest.approx(1.3, abs=1e-7)


def test_initial_states_by_name_pickles_and_new_values():
    field = driven(0.3, 0.05, wheel=2.0)
    assert field.states == {"wheel": 2.0}
    assert field.bind(wheel=1.0).states == {"wheel": 1.0}
    runs = [ph.solve(ph.Problem(BODY, f, omega=[0.1, 0.2, 0.3]), "verner87", dt=0.1, steps=20)
            for f in (field, pickle.loads(pickle.dumps(field)))]  # fmt: skip
    assert (runs[0].states["wheel"] == runs[1].states["wheel"]).all()
    assert runs[1].info.compile_seconds == 0
    again = pickle.loads(pickle.dumps(runs[0]))
    assert (again.states["wheel"] == runs[0].states["wheel"]).all()


def test_lanes_equal_single_runs(tmp_path):
    """With a start of the wheel for each body, or one for all."""
    rng = np.random.default_rng(0)
    omega, wheel = rng.normal(size=(11, 3)), rng.normal(size=11)
    many = ph.ensemble(WHEEL, "verner87", omega=omega, params={"wheel": wheel}, dt=0.05, steps=20, every=1)
    for i in (0, 10):
        start = ph.Problem(BODY, driven(0.3, 0.05, wheel=wheel[i]), omega=omega[i])
        one = ph.solve(start, "verner87", dt=0.05, steps=20)
        assert np.abs(one.momentum - many.momentum[:, i]).max() < 1e-14
        assert np.abs(one.states["wheel"] - many.states["wheel"][:, i]).max() < 1e-14
        assert (many[i].states["wheel"] == many.states["wheel"][:, i]).all()
        between = many[i].at([0.12, 0.57]).states["wheel"]
        assert np.abs(one.at([0.12, 0.57]).states["wheel"] - between).max() < 1e-14
    same = ph.ensemble(WHEEL, "verner87", omega=omega, dt=0.05, steps=20)
    assert (same.states["wheel"][0] == 0.5).all()
    assert same.states["wheel"].shape == (2, 11)
    assert (pickle.loads(pickle.dumps(same)).states["wheel"] == same.states["wheel"]).all()
    assert (same.to_xarray()["state_wheel"].values == same.states["wheel"]).all()
    for suffix in (".zarr", ".nc"):
        kept = ph.load(same.save(tmp_path / f"run{suffix}"))
        assert (kept.states["wheel"] == same.states["wheel"]).all()


@pytest.mark.parametrize("how", [{"tol": 1e-8}, {"step_tol": 1e-9}], ids=["tol", "step_tol"])
def test_lanes_to_a_tolerance(how):
    rng = np.random.default_rng(0)
    omega, wheel = rng.normal(size=(11, 3)), rng.normal(size=11)
    many = ph.ensemble(WHEEL, omega=omega, params={"wheel": wheel}, t_end=5.0, **how)
    assert many.failed.max() < 0
    assert (many.states["wheel"][0] == wheel).all()
    for i in (0, 10):
        start = ph.Problem(BODY, driven(0.3, 0.05, wheel=wheel[i]), omega=omega[i])
        one = ph.solve(start, tol=1e-11, t_end=5.0)
        assert np.abs(one.momentum[-1] - many.momentum[-1, i]).max() < 1e-7
        assert abs(one.states["wheel"][-1] - many.states["wheel"][-1, i]) < 1e-7


def state(value):
    @ph.states(z=1.0)
    def field(z):
        return value(z)

    return ph.Problem(BODY, field(), omega=[0.1, 0.2, 0.3])


@ph.states(z=1.0)
def twisting(z):
    return (0.0, 0.0, z), {"z": -z}


REFUSED = "driven has states of its own (wheel), which only ph.solve and ph.ensemble integrate"
MISTAKES = [
    (lambda: ph.solve(WHEEL, "imidm", dt=0.1, steps=2), REFUSED),
    (lambda: ph.solve(WHEEL, "imidm", tol=1e-6, t_end=1.0), REFUSED),
    (lambda: ph.solve(WHEEL, "verner87", dt=0.1, steps=2, digits=30), "digits is not available for a field"),
    (lambda: ph.solve(WHEEL, tol=1e-6, t_end=1.0, out="x.zarr"), "out is not available for a field with states"),
    (lambda: ph.ensemble(BODY, None, np.eye(3), "imidm", field=WHEEL.field, dt=0.1, steps=2), REFUSED),
    (lambda: ph.ensemble(BODY, None, np.eye(3), "verner87", field=WHEEL.field, dt=0.1, steps=2, statistics="energy"),
     "statistics is not available for a field with states"),
    (lambda: ph.ensemble(BODY, None, np.eye(3), "verner87", field=WHEEL.field, dt=0.1, steps=2, out="x.zarr"),
     "out is not available for a field with states"),
    (lambda: ph.gradient(lambda omega: omega[0], WHEEL, "verner87", dt=0.1, steps=2), REFUSED),
    (lambda: ph.stepper(BODY, "verner87", dt=0.1).step(ph.State((1.0, 0, 0, 0), (0, 0, 1.0)), WHEEL.field), REFUSED),
    (lambda: ph.solve(WHEEL, tol=1e-6, t_end=1.0).save("x.zarr"), "files do not hold the states of a field"),
    (lambda: driven(0.3, 0.05, wheel=[1.0, 2.0]), "the state wheel of driven must be numbers in the shape of 0.5"),
    (lambda: ph.Problem(ph.Body([1.0, 1.0, 0.0]), twisting(), omega=[0.1, 0.2, 0]), "along the axis of a linear body"),
    (lambda: ph.states(), "@ph.states needs the states with their initial values"),
    (lambda: ph.states(omega=1.0), "a state must not be named omega"),
    (lambda: ph.states(z=1.0)(lambda omega: omega), "must take the state z as an argument"),
    (lambda: state(lambda z: (0, 0, 0)), "must return a torque (three numbers) and the rates {'z': ...}"),
    (lambda: state(lambda z: ((0, 0, 0), {"y": z})), "it returned rates of y at the start"),
    (lambda: state(lambda z: ((0, 0, 0), {"z": (z, z)})), "must return a rate of z in the shape of 1.0"),
    (lambda: state(lambda z: ((0, 0, float("nan")), {"z": z})), "must return finite numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[f"{i} {words}" for i, (_, words) in enumerate(MISTAKES)])
def test_what_is_refused(use, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_many_at_given_times_and_backwards(way):
    omega = np.random.default_rng(2).normal(0.0, 0.3, (5, 3))
    times = np.array([1.0, 2.5, 5.0])
    many = ph.ensemble(WHEEL, omega=omega, times=times, **WAYS[way])
    for i in (0, 4):
        one = ph.solve(WHEEL.starting(omega=omega[i]), times=times, tol=1e-11)
        np.testing.assert_allclose(many.states["wheel"][:, i], one.states["wheel"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(many.momentum[:, i], one.momentum, rtol=0, atol=1e-9)
    end = {
        "attitude": many.quaternion[-1],
        "momentum": many.momentum[-1],
        "params": {"wheel": many.states["wheel"][-1]},
    }
    back = ph.ensemble(WHEEL, **end, t0=5.0, t_end=0.0, **WAYS[way])
    assert np.abs(back.omega[-1] - omega).max() < 1e-9
    assert np.abs(back.states["wheel"][-1] - 0.5).max() < 1e-9


@ph.states(charge=0.0)
def fired(t, charge):
    """A short burn, at full power from its first to its last moment."""
    power = ph.where(t > 1.0, ph.where(t < 1.001, 1000.0, 0.0), 0.0)
    return (0.0, 0.0, power), {"charge": power}


@pytest.mark.usefixtures("plain_first")
def test_a_step_at_a_jump_sees_one_side_of_it():
    """In both directions of time; a condition on the states is no jump in time."""
    sol = ph.solve(ph.Problem(BODY, fired(), omega=[0.0, 0.0, 0.0]), t_end=3.0, tol=1e-9)
    assert sol.momentum[-1, 2] == pytest.approx(1.0, abs=1e-11)
    assert sol.states["charge"][-1] == pytest.approx(1.0, abs=1e-11)
    assert len(sol) < 12
    start = ph.Problem(BODY, fired(charge=1.0), momentum=[0.0, 0.0, 1.0], t0=3.0)
    back = ph.solve(start, t_end=0.0, tol=1e-9)
    assert np.abs(back.momentum[-1]).max() < 1e-11
    assert abs(back.states["charge"][-1]) < 1e-11
    assert len(back) < 12
    assert sol.at([1.0005]).states["charge"][0] == pytest.approx(0.5, abs=1e-11)


# --- on a GPU -----------------------------------------------------------------------------------------

ON_CARD = {
    "fixed": {"method": "verner87", "dt": 0.1, "every": 2, "t_end": 1.0},
    "backwards": {"step_tol": 1e-9, "t_end": -1.0},
    "tol": {"tol": 1e-8, "t_end": 1.0, "times": [0.3, 1.0]},
}


def states_on(case, device):
    """Momenta and wheels of a case."""
    omega = np.random.default_rng(2).normal(0.0, 0.3, (3, 3))
    given = {"omega": omega, "params": {"wheel": [0.5, 0.7, -0.2]}, "device": device}
    many = ph.ensemble(WHEEL, **given, **ON_CARD[case])
    return np.concatenate([many.momentum, many.states["wheel"][..., None]], axis=2)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("cuda") / "states.npz")


@pytest.mark.parametrize("case", ON_CARD)
def test_the_card_has_the_states_of_the_processor(simulated, case):
    """With equal steps to round-off; with a tolerance the steps may differ by round-off, and by that in length."""
    near = 1e-14 if "dt" in ON_CARD[case] else 1e-9
    np.testing.assert_allclose(simulated[case], states_on(case, "cpu"), rtol=0, atol=near)


@ph.states(heat=0.0)
def heater(omega, heat):
    """A state that is switched by itself: its rate jumps, and so does the torque."""
    on = ph.where(heat < 0.5, 1.0, 0.0)
    return -0.1 * on * omega, {"heat": 2.0 * on - heat}


@ph.states(wheel=0.1)
def in_the_rate(omega, wheel, k):
    return (k * wheel, 0.0, 0.0), {"wheel": ph.where(omega[1] > 0.2, -k, k)}


@ph.states(wheel=0.1)
def by_the_state(omega, wheel, k):
    return (ph.where(wheel > 0.12, -k, k), 0.0, 0.0), {"wheel": k}


@pytest.mark.parametrize("field", [in_the_rate(k=0.3), by_the_state(k=0.3)], ids=["rate", "state"])
@pytest.mark.parametrize("how", [{"method": "verner87", "dt": 0.05}, {"step_tol": 1e-6}], ids=["dt", "step_tol"])
def test_steps_without_an_estimate_at_the_end_say_that_they_cross_jumps(how, field):
    """With `tol` the estimate counts what crossing them costs."""
    problem = ph.Problem(ph.Body([1.0, 1.4, 1.9]), field, omega=[0.3, 1.1, 0.7])
    instead = "give tol instead of step_tol" if "step_tol" in how else "give tol or step_tol instead of dt"
    with pytest.warns(ph.ResultWarning, match=f"has conditions on the state .* {instead}"):
        ph.solve(problem, t_end=2.0, **how)
    with pytest.warns(ph.ResultWarning, match="has conditions on the state"):
        ph.ensemble([problem] * 3, t_end=2.0, **how)
    sol, many = ph.solve(problem, tol=1e-7, t_end=2.0), ph.ensemble([problem] * 3, tol=1e-7, t_end=2.0)
    exact = ph.solve(problem, tol=1e-11, t_end=2.0).omega[-1]
    assert abs(sol.omega[-1] - exact).max() < 3e-7
    assert abs(many.momentum[-1] / [1.0, 1.4, 1.9] - exact).max() < 3e-7


def test_equal_steps_that_cross_jumps_are_told():
    problem, run = ph.Problem(BODY, heater(), omega=[0.1, 0.2, 0.3]), {"dt": 0.1, "steps": 3}
    with pytest.warns(ph.ResultWarning, match="conditions on the state .* give tol or step_tol"):
        ph.solve(problem, "verner87", **run)
    with pytest.warns(ph.ResultWarning, match="conditions on the state"):
        ph.ensemble(problem, "verner87", omega=np.eye(3), **run)
    ph.solve(problem, tol=1e-6, t_end=0.1)


if __name__ == "__main__":
    np.savez(sys.argv[1], **{case: states_on(case, "cuda") for case in ON_CARD})
