"""States, statistics and events of many bodies at given times, in memory and in files, in both directions of time."""

from __future__ import annotations

import numpy as np
import pytest

import polhode as ph
from polhode.physics.observers import statistics
from polhode.run.ensemble import sampled_statistics
from polhode.run.ensemble.api import prepared

NUMBER, TIMES = 21, np.array([0.3, 0.31, 1.0, 2.5])
TOP = ph.problems.heavy_top()
OMEGA = np.random.default_rng(3).normal([0, 0, 2], size=(NUMBER, 3))
ADAPTIVE = {"tol": {"tol": 1e-7}, "step_tol": {"step_tol": 1e-9}}


@ph.torque(frame="body")
def growing(omega, *, k):
    """A torque with which the speed about the first axis becomes infinite: w' = k w^2 for a unit moment."""
    return k * omega[0] ** 2, 0.0 * omega[1], 0.0 * omega[2]


@ph.torque
def driven(t, R, omega, *, size):
    """A torque that depends on the time, the attitude and the velocity."""
    return size * ph.math.sin(2 * t) * R[2][0], size * R[2][1] - 0.1 * omega[1], size * ph.math.cos(t)


@ph.event
def level(R):
    return R[2][0] - 0.1


def single(i: int, **given):
    return ph.solve(ph.Problem(TOP.body, TOP.field, attitude=TOP.quaternion, omega=OMEGA[i]), tol=1e-12, **given)


def assert_near(many, i, sol, near):
    np.testing.assert_allclose(many.quaternion[:, i], sol.quaternion, rtol=0, atol=near)
    np.testing.assert_allclose(many.momentum[:, i], sol.momentum, rtol=0, atol=near)


@pytest.mark.parametrize("way", [1, -1], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", ADAPTIVE)
def test_every_body_has_its_states_at_the_times(kind, way) -> None:
    many = ph.ensemble(TOP, omega=OMEGA, times=way * TIMES, **ADAPTIVE[kind])
    np.testing.assert_array_equal(many.t, way * TIMES)
    assert many.quaternion.shape == (4, NUMBER, 4)
    for i in (0, 8, 20):
        assert_near(many, i, single(i, times=way * TIMES), 1e-7)


def test_a_time_dependent_torque_backwards_returns_to_the_start() -> None:
    given = {"field": driven, "params": {"size": np.linspace(0.1, 2, NUMBER)}, "tol": 1e-9}
    there = ph.ensemble([1, 1.5, 2], None, OMEGA, t0=-1.0, t_end=2.0, **given)
    back = ph.ensemble([1, 1.5, 2], there.quaternion[-1], there.momentum[-1], t0=2.0, times=[1.0, 0.0, -1.0], **given)
    assert back.t.tolist() == [1.0, 0.0, -1.0]
    np.testing.assert_allclose(back.momentum[-1], OMEGA, rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.abs(back.quaternion[-1, :, 0]), 1, rtol=0, atol=1e-8)


@ph.torque
def relay(R, omega, height):
    return ph.where(omega[0] > 0.1, -0.4, -0.1), height * R[2][1], -0.2 * R[2][0]


@ph.controller(total=0.0)
def brake(omega, total, period, gain=0.4):
    return [-gain * w for w in omega], {"total": total + omega[0]}


RELAY = ph.Problem(TOP.body, relay(height=0.3), omega=[0.5, 0.4, 2.0])
WAYS = {
    "dt": (TOP, {"method": "imidm", "dt": 0.1}),
    "dt, jumps": (RELAY, {"method": "imidm", "dt": 0.1}),
    "dt, control": (TOP, {"method": "imidm", "dt": 0.1, "control": brake, "period": 0.2}),
    "tol": (TOP, {"tol": 1e-7}),
    "tol, free": (ph.Problem(TOP.body, omega=[0.5, 0.4, 2.0]), {"tol": 1e-7}),
    "step_tol, jumps": (RELAY, {"step_tol": 1e-7}),
    "tol, control": (TOP, {"tol": 1e-7, "control": brake, "period": 0.2}),
}
CHOICES = {
    "times": {"times": [0.4, 1.0]},
    "the start too": {"times": [0.0, 0.4, 1.0]},
    "the end alone": {"times": [1.0]},
    "before the end": {"times": [0.4, 0.6], "t_end": 1.0},
    "statistics": {"times": [0.4, 0.6], "t_end": 1.0, "statistics": "omega"},
    "tangent": {"times": [0.4, 1.0], "tangent": True},
    "backwards": {"times": [-0.4, -1.0]},
}


EVERYWHERE = ("before the end", "statistics")
CASES = [
    *((way, choice) for way in ("dt", "tol") for choice in CHOICES if choice not in EVERYWHERE),
    *((way, choice) for way in WAYS for choice in EVERYWHERE if (way, choice) != ("dt, jumps", "statistics")),
    ("dt, jumps", "tangent"),
]
"""Without statistics of equal steps in a field that jumps, which lanes cross (with a `ResultWarning`)."""


@pytest.mark.parametrize(("way", "choice"), CASES)
def test_the_states_are_those_at_the_times_that_were_asked_for(way, choice) -> None:
    """In ensembles as in single runs, in the order of the run: neither the start nor the end is added."""
    problem, how = WAYS[way]
    given = how | CHOICES[choice]
    many, sol = ph.ensemble(problem, **given), ph.solve(problem, given.pop("method", None), **given)
    assert many.t.tolist() == sol.t.tolist() == given["times"]
    np.testing.assert_allclose(many.momentum[:, 0], sol.momentum, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(many[0].momentum, many.momentum[:, 0])
    assert {name: len(x) for name, x in many.states.items()} == {name: len(x) for name, x in sol.states.items()}
    for name, one in many.statistics.items():
        for part, values in vars(one).items():
            np.testing.assert_allclose(values[0], getattr(sol.statistics[name], part), rtol=0, atol=1e-6)
    if "tangent" in given:
        for tangent in (many.tangent, sol.tangent):
            assert tangent.t.tolist() == given["times"]
        np.testing.assert_allclose(many.tangent.matrix[:, 0], sol.tangent.matrix, rtol=0, atol=1e-5)


@pytest.mark.parametrize("how", [{"method": "imidm", "dt": 0.1}, {"tol": 1e-7}], ids=["dt", "tol"])
@pytest.mark.parametrize(
    "times", [[1.0, 0.4], [0.4, 0.4, 1.0], [-0.4, 1.0], []], ids=["other order", "twice", "both sides", "none"]
)
def test_other_orders_of_times_are_refused_in_one_sentence(how, times) -> None:
    said = []
    for run in (ph.ensemble, ph.solve):
        with pytest.raises(ph.InputError, match="times must") as stop:
            run(TOP, **how, times=times)
        said.append(str(stop.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("how", [{"method": "imidm", "dt": 0.1}, {"tol": 1e-7}], ids=["dt", "tol"])
@pytest.mark.parametrize("watched", [{}, {"statistics": "omega"}], ids=["states", "statistics"])
def test_stores_have_the_times_that_were_asked_for(tmp_path, how, watched) -> None:
    given = {"omega": OMEGA, "times": [0.4, 0.6], "t_end": 1.0, **how, **watched}
    many, stored = ph.ensemble(TOP, **given), ph.ensemble(TOP, **given, out=tmp_path / "a.zarr", unit=16)
    for found in (stored, ph.load(tmp_path / "a.zarr"), ph.load(many.save(tmp_path / "b.nc"))):
        assert found.t.tolist() == [0.4, 0.6]
        np.testing.assert_array_equal(found.momentum, many.momentum)
        assert list(found.statistics) == list(many.statistics)
    with pytest.raises(ph.InputError, match="times of the states"):
        ph.ensemble(TOP, **given | {"times": [0.6]}, out=tmp_path / "a.zarr", unit=16, resume=True)


def test_a_body_that_fails_between_the_times_has_those_before() -> None:
    """With equal steps its last good state stands in the last row; one that fails after the last time has them all."""
    given = {"field": growing, "params": {"k": [0.01, 0.4, 0.6]}, "method": "mkrk(rk4)", "dt": 0.05}
    with pytest.warns(ph.ResultWarning, match="2 of 3 bodies failed"):
        many = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], **given, times=[1.0, 1.5, 2.0], t_end=5.0)
    with pytest.warns(ph.ResultWarning, match="2 of 3 bodies failed"):
        path = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], **given, every=1, t_end=5.0)
    assert many[0].t.tolist() == many[1].t.tolist() == [1.0, 1.5, 2.0]
    assert many.failed.tolist() == path.failed.tolist()
    assert many[2].t[:2].tolist() == [1.0, 1.5]
    last = path[2].t <= 2.0
    np.testing.assert_array_equal(many[2].momentum[-1], path[2].momentum[last][-1])
    np.testing.assert_allclose(many[2].t[-1], path[2].t[last][-1], rtol=1e-14)


def test_bits_do_not_depend_on_the_company() -> None:
    many = ph.ensemble(TOP, omega=OMEGA, times=TIMES, tol=1e-7)
    few = ph.ensemble(TOP, omega=OMEGA[5:8], times=TIMES, tol=1e-7)
    np.testing.assert_array_equal(few.quaternion, many.quaternion[:, 5:8])
    np.testing.assert_array_equal(few.error_estimate, many.error_estimate[5:8])


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_free_bodies_are_exact_at_all_times(kind) -> None:
    free = ph.Problem(ph.Body([1, 1.5, 2]), momentum=[0, 0, 1])
    many = ph.ensemble(free, momentum=OMEGA, times=-TIMES, **ADAPTIVE[kind])
    for i in (0, 20):
        sol = ph.solve(ph.Problem(free.body, momentum=OMEGA[i]), tol=1e-12, times=-TIMES)
        assert_near(many, i, sol, 1e-13)
    assert (many.error_estimate is None) == (kind == "step_tol")


def test_a_body_that_fails_has_no_states_from_then_on() -> None:
    given = {"field": growing, "params": {"k": [0.01, 0.5, 0.1]}, "step_tol": 1e-8, "times": [1.0, 1.5, 2.5, 4.0]}
    with pytest.warns(ph.ResultWarning, match=r"1 of 3 bodies failed"):
        many = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], **given, statistics="momentum_norm")
    with pytest.warns(ph.ResultWarning, match=r"1 of 3 bodies failed"):
        path = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], **given)
    assert np.isnan(path.momentum[:, 1, 0]).tolist() == [False, False, True, False]
    assert len(path[1].t) == 2
    np.testing.assert_allclose(path.momentum[:2, 1, 0], [2, 4], rtol=1e-6)
    found = many.statistics["momentum_norm"]
    np.testing.assert_allclose(found.mean[1], 7 / 3, rtol=1e-6)
    np.testing.assert_allclose(found.mean[0], np.mean([1.0, *path.momentum[:, 0, 0]]), rtol=1e-14)
    assert (found.last[1], found.max[1]) == (path.momentum[1, 1, 0],) * 2


# --- equal steps ------------------------------------------------------------------------------------


def test_equal_steps_keep_the_times_that_they_pass() -> None:
    path = ph.ensemble(TOP, "imidm", omega=OMEGA, dt=0.1, t_end=-2.4, every=1)
    many = ph.ensemble(TOP, "imidm", omega=OMEGA, dt=0.1, times=[-0.4, -1.0, -2.4])
    np.testing.assert_array_equal(many.quaternion, path.quaternion[[4, 10, 24]])
    np.testing.assert_array_equal(many.momentum, path.momentum[[4, 10, 24]])
    assert many.t.tolist() == [-0.4, -1.0, -2.4]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"times": [0.25, 1.0]}, "0.25 lies between 0.2 and 0.3"),
        ({"times": [0.2], "every": 2}, "give every or times, not both"),
        ({"times": [0.2], "dt": [0.1] * NUMBER, "steps": 4}, "every body has its own"),
        ({"times": [0.2], "steps": [4] * NUMBER}, "times needs the same number of steps"),
        ({"t_end": 1.0, "dt": -0.1}, "goes backwards in time"),
    ],
)
def test_times_that_steps_do_not_pass_are_refused(given, said) -> None:
    with pytest.raises(ph.InputError, match=said):
        ph.ensemble(TOP, "imidm", omega=OMEGA, **({"dt": 0.1} | given))


def test_backwards_steps_are_those_of_one_body() -> None:
    for method, steps in (("imidm", {"t_end": -2.0}), ("dmv4", {"steps": 20}), ("mkrk(rk4)", {"t_end": -2.0})):
        field = None if method == "dmv4" else TOP.field
        dt = 0.1 if "t_end" in steps else -0.1
        many = ph.ensemble(TOP.body, TOP.quaternion, None, method, omega=OMEGA, field=field, dt=dt, every=1, **steps)
        for i in (0, 20):
            problem = ph.Problem(TOP.body, field, attitude=TOP.quaternion, omega=OMEGA[i])
            assert_near(many, i, ph.solve(problem, method, dt=dt, **steps), 1e-13)
    near = many.at([-0.25, -1.0])
    assert_near(near, 20, ph.solve(problem, method, dt=0.1, times=[-0.25, -1.0]), 1e-12)


# --- statistics -------------------------------------------------------------------------------------


def test_statistics_at_times_are_those_of_the_loops() -> None:
    """The states of a run, folded by the same kernels, give the same bits as the accumulation in the loop."""
    given = {"dt": 0.1, "steps": 24, "statistics": ["energy", "omega", "spatial_momentum", level]}
    running = ph.ensemble(TOP, "imidm", omega=OMEGA, every=4, **given)
    chosen = ph.ensemble(TOP, "imidm", omega=OMEGA, times=0.4 * np.arange(1, 7), **given)
    for name, one in running.statistics.items():
        for part, values in vars(one).items():
            np.testing.assert_array_equal(getattr(chosen.statistics[name], part), values, err_msg=f"{name} {part}")
    assert len(chosen.t) == 6


def test_statistics_of_bodies_with_turned_axes() -> None:
    turned = ph.Body([[1.0, 0.2, 0.1], [0.2, 1.5, 0.0], [0.1, 0.0, 2.0]])
    task = prepared([turned], None, OMEGA, "imidm", dt=0.1, steps=9, statistics=["omega", "momentum"])
    path = prepared([turned], None, OMEGA, "imidm", dt=0.1, steps=9, every=1).run()
    found = sampled_statistics.statistics(task.wanted, task.batch, path)
    for name, one in task.run().statistics.items():
        np.testing.assert_allclose(found[name].mean, one.mean, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found[name].max, getattr(path, name).max(axis=0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_statistics_of_adaptive_runs(kind) -> None:
    given = {"omega": OMEGA, "times": np.linspace(0, 2, 11), **ADAPTIVE[kind]}
    path, many = ph.ensemble(TOP, **given), ph.ensemble(TOP, statistics=["energy", "omega"], **given)
    np.testing.assert_allclose(many.statistics["energy"].mean, path.energy.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(many.statistics["omega"].max, path.omega.max(axis=0), rtol=1e-14)
    np.testing.assert_array_equal(many.quaternion, path.quaternion)
    assert isinstance(many.statistics["energy"], statistics.Statistic)


# --- events -----------------------------------------------------------------------------------------


def assert_same_events(found, wanted, near=0.0):
    assert [[len(one) for one in of_event] for of_event in found] == [[len(one) for one in e] for e in wanted]
    assert sum(len(one) for one in found[0]) > NUMBER // 2
    for one, other in zip(found[0], wanted[0], strict=True):
        np.testing.assert_allclose(one.t, other.t, rtol=0, atol=near)
        np.testing.assert_allclose(one.quaternion, other.quaternion, rtol=0, atol=near)
        np.testing.assert_allclose(one.energy, other.energy, rtol=0, atol=near)


@pytest.mark.parametrize("way", [1, -1], ids=["forwards", "backwards"])
def test_events_of_adaptive_runs_are_those_of_single_runs(way) -> None:
    many = ph.ensemble(TOP, omega=OMEGA, times=[way * 1.0, way * 3.0], tol=1e-8, events=[level])
    assert_same_events(
        many.events, [[single(i, t_end=way * 3.0, events=[level]).events[0] for i in range(NUMBER)]], 1e-6
    )
    assert len(many.t) == 2
    assert many[3].events[0].t.tolist() == many.events[0][3].t.tolist()


def test_events_do_not_depend_on_what_is_kept(tmp_path) -> None:
    given = {"omega": OMEGA, "dt": 0.05, "t_end": 3.0, "events": [level]}
    wanted = ph.ensemble(TOP, "imidm", **given).events
    for kept in (
        {"every": 7},
        {"times": [1.0, 3.0]},
        {"statistics": "energy"},
        {"out": tmp_path / "a.zarr", "unit": 8},
    ):
        assert_same_events(ph.ensemble(TOP, "imidm", **given, **kept, progress=False).events, wanted)
    assert_same_events(ph.load(tmp_path / "a.zarr").events, wanted)
    own = ph.ensemble(TOP, "imidm", omega=OMEGA, dt=0.05, steps=[60] * NUMBER, events=[level])
    assert_same_events(own.events, wanted)


def test_events_before_a_failure() -> None:
    fast = ph.event(lambda omega: omega[0] - 1.5)
    with pytest.warns(ph.ResultWarning, match=r"1 of 2 bodies failed"):
        many = ph.ensemble(
            [1, 1, 1], None, [1.0, 0, 0], field=growing, params={"k": [0.5, 0.1]}, tol=1e-6, t_end=4.0, events=[fast]
        )
    np.testing.assert_allclose(many.events[0][0].t, [2 / 3], rtol=1e-5)
    np.testing.assert_allclose(many.events[0][1].t, [10 / 3], rtol=1e-5)


# --- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_a_store_has_the_same_bits(kind, tmp_path) -> None:
    given = {"omega": OMEGA, "times": -TIMES, "events": [level], **ADAPTIVE[kind]}
    memory = ph.ensemble(TOP, **given)
    ph.ensemble(TOP, **given, out=tmp_path / "many.zarr", unit=8, progress=False)
    stored = ph.load(tmp_path / "many.zarr")
    for name in ("t", "quaternion", "momentum", "failed", "steps"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(memory, name), err_msg=name)
    assert stored.tol == memory.tol
    if kind == "tol":
        np.testing.assert_array_equal(stored.error_estimate, memory.error_estimate)
        assert stored.to_xarray()["error_estimate"].shape == (NUMBER,)
    else:
        assert stored.error_estimate is None
    assert_same_events(stored.events, memory.events)
    memory.save(tmp_path / "saved.nc")
    np.testing.assert_array_equal(ph.load(tmp_path / "saved.nc").steps, memory.steps)
    stored.save(tmp_path / "again.nc")
    np.testing.assert_array_equal(ph.load(tmp_path / "again.nc").steps, memory.steps)


def test_statistics_in_a_store(tmp_path) -> None:
    given = {"omega": OMEGA, "times": TIMES, "statistics": "energy", "tol": 1e-7}
    memory = ph.ensemble(TOP, **given).statistics["energy"]
    ph.ensemble(TOP, **given, out=tmp_path / "many.zarr", unit=8, progress=False)
    stored = ph.load(tmp_path / "many.zarr").statistics["energy"]
    for part, values in vars(memory).items():
        np.testing.assert_array_equal(getattr(stored, part), values, err_msg=part)


def test_a_damaged_unit_is_run_again(tmp_path) -> None:
    path = tmp_path / "many.zarr"
    given = {"omega": OMEGA, "times": TIMES, "tol": 1e-7, "events": [level], "out": path, "unit": 8, "progress": False}
    ph.ensemble(TOP, **given)
    first = ph.load(path)
    wanted, states = first.events, first.quaternion
    (path / "failed" / "c" / "1").unlink()  # as if killed before the unit was done
    (path / "events" / "2.npz").write_bytes(b"not events")
    with pytest.raises(ph.InputError, match="damaged"):
        ph.load(path).events  # noqa: B018
    with pytest.warns(ph.ResultWarning, match="do not match their checksums"):
        ph.ensemble(TOP, **given, resume=True)
    assert_same_events(ph.load(path).events, wanted)
    np.testing.assert_array_equal(ph.load(path).quaternion, states)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"tol": 1e-6}, "tol"),
        ({"times": TIMES[1:]}, "times"),
        ({"max_step": 0.1}, "longest step"),
        ({"events": None}, "events"),
    ],
)
def test_another_run_is_not_resumed(other, said, tmp_path) -> None:
    given = {"omega": OMEGA, "times": TIMES, "tol": 1e-5, "events": [level], "out": tmp_path / "many.zarr"}
    ph.ensemble(TOP, **given, progress=False)
    with pytest.raises(ph.InputError, match=said):
        ph.ensemble(TOP, **(given | other), resume=True, progress=False)
