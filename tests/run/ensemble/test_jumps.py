"""Equal steps of many bodies in fields with jumps: every body has the bits of `ph.solve`."""

import warnings

import numpy as np
import pytest
from tests.run.test_saltation import TENSOR, relayed

import polhode as ph
from polhode.errors import SpeedWarning, ToleranceWarning
from polhode.run.ensemble import one_by_one

BODY = ph.Body([1.0, 1.4, 1.9])
ON = [[0.33, 0.9], [1.2, 1.25]]
BURN = ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=ON)
OMEGA = np.random.default_rng(1).normal(size=(5, 3))


def alone(i, method="mkrk(rk4)", field=BURN, body=BODY, **run):
    return ph.solve(ph.Problem(body, field, omega=OMEGA[i]), method, **run)


def assert_equal(many, i, sol):
    assert (many.quaternion[:, i] == sol.quaternion).all()
    assert (many.momentum[:, i] == sol.momentum).all()


@pytest.mark.parametrize("dt", [0.11, -0.11])
@pytest.mark.parametrize("body", [BODY, TENSOR], ids=["moments", "tensor"])
def test_jumps_in_time_in_lanes(dt, body):
    """Lanes turn tensors to principal axes with other round-off."""
    field = BURN if dt > 0 else ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[-1.25, -1.2], [-0.9, -0.33]])
    many = ph.ensemble(ph.Problem(body, field, omega=[0, 0, 1]), "mkrk(rk4)", omega=OMEGA, dt=dt, steps=15, every=4)
    for i in range(len(OMEGA)):
        sol = alone(i, field=field, body=body, dt=dt, steps=15, every=4)
        if body is BODY:
            assert_equal(many, i, sol)
        assert many.momentum[:, i] == pytest.approx(sol.momentum, abs=1e-14)


def test_states_between_steps_events_and_tangents():
    crossing, run = ph.event(lambda omega: omega[2] - 0.2), {"dt": 0.11, "steps": 15}
    given = ph.Problem(BODY, BURN, omega=[0, 0, 1])
    many = ph.ensemble(given, "mkrk(rk4)", omega=OMEGA, every=1, events=[crossing], tangent=True, **run)
    with pytest.warns(ph.ResultWarning, match="these times are held fixed"):
        by_parameters = many.tangent.params
    for i in range(len(OMEGA)):
        sol = alone(i, events=[crossing], tangent=True, **run)
        assert many[i].at(0.4321).momentum == pytest.approx(sol.at(0.4321).momentum, abs=1e-15)
        assert many.events[0][i].t == pytest.approx(sol.events[0].t, abs=1e-14)
        assert many.tangent.matrix[:, i] == pytest.approx(sol.tangent.matrix, abs=1e-13)
        assert by_parameters["torque"][:, i] == pytest.approx(sol.tangent.params["torque"], abs=1e-13)


def test_stores_and_statistics(tmp_path):
    given, run = ph.Problem(BODY, BURN, omega=[0, 0, 1]), {"omega": OMEGA, "dt": 0.11, "steps": 15}
    many = ph.ensemble(given, "mkrk(rk4)", **run)
    stored = ph.ensemble(given, "mkrk(rk4)", out=tmp_path / "many.zarr", **run)
    assert (np.array(stored.momentum) == many.momentum).all()
    assert (ph.ensemble(given, "mkrk(rk4)", statistics="energy", **run).momentum == many.momentum).all()


def test_burns_at_other_times_for_each_body():
    """Then each body is run by itself."""
    on = np.array(ON) + 0.01 * np.arange(5)[:, None, None]
    given = ph.Problem(BODY, BURN, omega=[0, 0, 1])
    many = ph.ensemble(given, "mkrk(rk4)", omega=OMEGA, params={"on": on}, dt=0.11, steps=15, every=4)
    for i in range(5):
        assert_equal(many, i, alone(i, field=BURN.bind(on=on[i]), dt=0.11, steps=15, every=4))
    with pytest.warns(ph.ResultWarning, match="thruster has a jump or a kink in time at 4 times, the first t = 0.33"):
        ph.ensemble(given, "mkrk(rk4)", omega=OMEGA, params={"on": on}, dt=0.11, steps=15, statistics="energy")


def test_steps_of_other_lengths_for_each_body():
    dt = 0.1 + 0.01 * np.arange(5)
    many = ph.ensemble(ph.Problem(BODY, BURN, omega=[0, 0, 1]), "mkrk(rk4)", omega=OMEGA, dt=dt, steps=15)
    for i in range(5):
        assert_equal(many, i, alone(i, dt=float(dt[i]), steps=15, every=15))


def test_methods_that_cross_jumps_in_time_say_so():
    with pytest.warns(ph.ResultWarning, match="steps of abm4 do not end there"):
        ph.ensemble(ph.Problem(BODY, BURN, omega=[0, 0, 1]), "abm4", omega=OMEGA, dt=0.11, steps=15)


def test_jumps_in_the_state():
    """Bodies are run one by one; dense output, events, times and tangents are those of `ph.solve`."""
    given, crossing = relayed(TENSOR), ph.event(lambda R: R[0, 0] - 0.25)
    momentum = np.asarray(given.momentum) + 0.05 * OMEGA[:3]
    run = {"dt": 0.02, "steps": 120}
    many = ph.ensemble(given, "mkrk(rk4)", momentum=momentum, every=1, events=[crossing], tangent=True, **run)
    times = ph.ensemble(given, "mkrk(rk4)", momentum=momentum, times=[0.2, 1.4, 2.4], tangent=True, **run)
    for i in range(3):
        one = ph.Problem(TENSOR, given.field, momentum=momentum[i], attitude=given.quaternion)
        sol = ph.solve(one, "mkrk(rk4)", events=[crossing], tangent=True, **run)
        assert_equal(many, i, sol)
        assert many[i].at(0.4321).momentum == pytest.approx(sol.at(0.4321).momentum, abs=1e-14)
        assert many.events[0][i].t == pytest.approx(sol.events[0].t, abs=1e-14)
        assert (many.tangent.matrix[:, i] == sol.tangent.matrix).all()
        assert (times.momentum[:, i] == sol.momentum[[10, 70, 120]]).all()
        assert (times.tangent.matrix[:, i] == sol.tangent.matrix[[10, 70, 120]]).all()


def test_many_bodies_one_by_one_are_told(monkeypatch):
    @ph.torque(frame="body")
    def relay(omega, k):
        return ph.where(omega[0] > 0, -k, k), 0.0, 0.0

    given = ph.Problem(ph.Body([1.0, 1.0, 1.0]), relay(0.1), omega=[0, 0, 1])
    said = r"jumps at different steps for different bodies, so the {} bodies are .* slower .* steep slope \(tanh\)"
    with pytest.warns(SpeedWarning, match=said.format(101)):
        ph.ensemble(given, "mkrk(rk4)", omega=[[9, 0, 1]] * 101, dt=0.1, steps=1)
    with pytest.warns(SpeedWarning, match=said.format(101)):
        ph.ensemble(given, omega=[[9, 0, 1]] * 101, step_tol=1e-3, t_end=0.01)
    monkeypatch.setattr(one_by_one, "MANY_STEPS", 8)
    ph.ensemble(given, "mkrk(rk4)", omega=[[9, 0, 1]] * 2, dt=0.1, steps=4)
    with pytest.warns(SpeedWarning, match=said.format(2)):
        ph.ensemble(given, "mkrk(rk4)", omega=[[9, 0, 1]] * 2, dt=0.1, steps=5)


def test_warnings_of_single_runs_are_told_by_their_class():
    """Another message tells of a missed tolerance, whatever its words are."""

    @one_by_one.retold(3, but=ToleranceWarning)
    def run():
        warnings.warn("the error at the end is not known", ToleranceWarning, stacklevel=1)
        for _ in range(2):
            warnings.warn("lost", ph.ResultWarning, stacklevel=1)

    with pytest.warns(ph.ResultWarning, match="of 3 bodies, 2 have this: lost") as told:
        run()
    assert len(told) == 1
