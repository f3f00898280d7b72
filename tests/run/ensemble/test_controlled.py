"""Ensembles under sampled-data control: each body as if alone, with parameters of its own."""

import sys
import warnings

import numpy as np
import pytest

import polhode as ph
from simulated_card import computed

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
PROBLEM = ph.Problem(BODY, ph.fields.linear_drag(0.1), euler=("XYZ", [0.5, 1.0, -0.7]), omega=[0.1, -0.2, 0.3])
RUN = {"method": "fem", "dt": 0.05, "steps": 40, "period": 0.2}
N = 21


@ph.controller(integral=[0.0, 0.0, 0.0])
def pid(t, R, omega, integral, period, stiffness=1.0, damping=2.0):
    """PID control of the attitude."""
    e = (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2
    new = [integral[i] + period * e[i] for i in range(3)]
    return [-stiffness * e[i] - damping * omega[i] - 0.1 * new[i] for i in range(3)], {"integral": new}


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(1)
    return {
        "omega": rng.normal(size=(N, 3)),
        "params": {"stiffness": rng.uniform(0.5, 1.5, N), "integral": rng.normal(size=(N, 3))},
    }


def test_each_body_as_if_alone(inputs):
    many = ph.ensemble(PROBLEM, control=pid, every=1, **RUN, **inputs)
    assert many.states["torque"].shape == (41, N, 3)
    for i in (0, 7, N - 1):
        values = {name: x[i] for name, x in inputs["params"].items()}
        alone = ph.solve(PROBLEM.starting(omega=inputs["omega"][i]), control=pid(**values), **RUN)
        assert np.abs(many.momentum[:, i] - alone.momentum).max() < 1e-14
        for name, found in alone.states.items():
            assert np.abs(many.states[name][:, i] - found).max() < 1e-13
        assert np.abs(many[i].at([0.33, 1.61]).momentum - alone.at([0.33, 1.61]).momentum).max() < 1e-14


def test_the_end_does_not_depend_on_what_is_kept(inputs):
    whole = ph.ensemble(PROBLEM, control=pid, every=1, **RUN, **inputs)
    end = ph.ensemble(PROBLEM, control=pid, **RUN, **inputs)
    third = ph.ensemble(PROBLEM, control=pid, every=3, **RUN, **inputs)
    np.testing.assert_array_equal(end.momentum[-1], whole.momentum[-1])
    np.testing.assert_array_equal(third.states["integral"][:-1], whole.states["integral"][::3][:14])
    np.testing.assert_array_equal(third.states["integral"][-1], whole.states["integral"][-1])


def test_a_controller_that_fails_stops_its_body_only():
    @ph.controller
    def fails(t, omega, limit):
        return 0.0, 0.0, ph.math.sqrt(limit - t)

    limits = np.full(N, 10.0)
    limits[4] = 1.1
    with pytest.warns(ph.ResultWarning, match="1 of 21 bodies"):
        many = ph.ensemble(PROBLEM, control=fails(10.0), params={"limit": limits}, every=1, **RUN)
    assert np.flatnonzero(many.failed >= 0).tolist() == [4]
    assert many.failed[4] == 25  # the sample after step 24
    alone = ph.solve(PROBLEM, control=fails(10.0), **RUN)
    assert np.abs(many.momentum[-1, 3] - alone.momentum[-1]).max() < 1e-14


REFUSED = {
    "an ensemble needs a controller that is a formula": {"control": ph.controller(lambda omega: np.clip(omega, -1, 1))},
    "period is the same for all bodies": {"params": {"period": np.linspace(0.1, 0.2, 5)}},
    "give one dt for all": {"dt": [0.05, 0.1]},
    "not a whole number of steps": {"dt": 0.03},
    "chaos indicators cannot be combined with control": {"statistics": "megno"},
    "computed body by body on the processor, without statistics": {"statistics": "energy", "tangent": True},
    "computed body by body on the processor, without device": {"device": "cuda", "tangent": True},
    "with a controller, a torque that is no formula, or a field with branches": {
        "method": None,
        "dt": None,
        "steps": None,
        "t_end": 1.0,
        "tol": 1e-9,
        "device": "cuda",
    },
    "with control use a one-step method": {"method": "compensated(strang(dmv6))"},
    "acts forward in time": {"dt": -0.05},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(ph.InputError, match=message):
        ph.ensemble(PROBLEM, **({"control": pid} | RUN | REFUSED[message]))


# --- one by one ---------------------------------------------------------------------------------------


@ph.torque
def relays(R, omega, k):
    """Torques that jump with attitude and angular velocity."""
    return ph.where(R[0, 1] > 0.1, -k, k), 0.0, 0.3 * k * ph.where(omega[2] > 0.1, 1.0, -0.5)


BURN = {"torque": [0.1, 0.0, -0.2], "on": [[0.13, 0.41]]}
CASES = {
    "events": {"events": [ph.event(lambda omega: omega[1])]},
    "derivatives": {"tangent": True},
    "statistics": {"statistics": ["energy", "omega"], "every": 3},
    "tol": {"tol": 1e-9},
    "tol with derivatives": {"tol": 1e-9, "tangent": True},
    "step_tol with statistics": {"step_tol": 1e-10, "times": [0.3, 0.77, 1.2], "statistics": "energy"},
    "step_tol with events": {"step_tol": 1e-10, "events": [ph.event(lambda omega: omega[1])], "max_step": 0.1},
    "jumps in the state": {"field": relays(0.2), "every": 1},
    "jumps in time of its own": {
        "field": ph.fields.thruster(**BURN), "every": 1, "params": {"on": [[[0.13, 0.41]], [[0.33, 0.5]], [[0.0, 1.0]]]}
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_single_runs_have(case):
    """Everything is that of single runs, with the parameters of each body; wheels have limits of their own."""
    given = dict(CASES[case])
    steps = {} if {"tol", "step_tol"} & set(given) else {"method": "fem", "dt": 0.05}
    field, params = given.pop("field", PROBLEM.field), given.pop("params", {})
    problem, omega = ph.Problem(BODY, field, euler=("XYZ", [0.5, 1.0, -0.7]), omega=[0.1, -0.2, 0.3]), np.eye(3)
    own = {"gain": np.array([1.9, 0.9, 1.1]), "wheels_max_torque": 0.1 * np.arange(1.0, 10.0).reshape(3, 3)}
    run = {**steps, "t_end": 1.2, "period": 0.2, **given}
    many = ph.ensemble(problem, control=turning, omega=omega, params=own | params, **run)
    for i in range(3):
        wheels = ph.actuators.wheels(max_torque=own["wheels_max_torque"][i], **WHEELS)
        law = ph.controller(turning.template.function, wheels=wheels)
        bound = field.bind(**{name: x[i] for name, x in params.items()})
        alone = ph.solve(
            ph.Problem(BODY, bound, euler=("XYZ", [0.5, 1.0, -0.7]), omega=omega[i]), control=law(own["gain"][i]), **run
        )
        if "every" in run and "statistics" not in run:
            assert np.abs(many.momentum[:, i] - alone.momentum).max() < 1e-14
            assert np.abs(many[i].at(0.37).momentum - alone.at(0.37).momentum).max() < 1e-14
        assert np.abs(many.momentum[-1, i] - alone.momentum[-1]).max() < 1e-12
        for name, found in alone.states.items():
            assert np.abs(many.states[name][-1, i] - found[-1]).max() < 1e-11
        for events, found in zip(many.events, alone.events, strict=True):
            np.testing.assert_allclose(events[i].t, found.t, atol=1e-12)
        if "tangent" in run:
            assert np.abs(many.tangent.matrix[-1, i] - alone.tangent.matrix[-1]).max() < 1e-10
            assert np.abs(many.tangent.params["gain"][-1, i] - alone.tangent.params["gain"][-1]).max() < 1e-10
        for name, statistic in alone.statistics.items():
            np.testing.assert_allclose(many.statistics[name].mean[i], statistic.mean, atol=1e-12)


def test_a_body_that_fails_to_a_tolerance():
    @ph.controller
    def fails(t, omega, limit):
        return 0.0, 0.0, ph.math.sqrt(limit - t)

    limits = {"limit": [10.0, 1.1, 9.0]}
    with pytest.warns(ph.ResultWarning, match="1 of 3 bodies"):
        many = ph.ensemble(PROBLEM, control=fails(10.0), params=limits, period=0.2, tol=1e-8, times=[1.0, 1.5, 2.0])
    assert (many.failed >= 0).tolist() == [False, True, False]
    assert np.isnan(many.momentum[:, 1]).any(1).tolist() == [False, True, False]
    assert np.isfinite(many.momentum[:, [0, 2]]).all()


def test_derivatives_to_a_tolerance_where_the_field_jumps_in_time():
    """Without a controller, too, such bodies are run one by one."""
    given = ph.Problem(BODY, ph.fields.thruster(**BURN), omega=[0.1, -0.2, 0.3])
    many = ph.ensemble(given, omega=np.eye(3), tol=1e-10, t_end=1.0, tangent=True)
    alone = ph.solve(given.starting(omega=np.eye(3)[1]), tol=1e-10, t_end=1.0, tangent=True)
    assert np.abs(many.tangent.matrix[-1, 1] - alone.tangent.matrix[-1]).max() < 1e-9


# --- in files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [{}, {"statistics": "energy"}], ids=["states", "statistics"])
def test_stores_hold_what_the_controller_decided(tmp_path, inputs, watched):
    run, out = {"control": pid, "every": 5, **RUN, **inputs, **watched}, tmp_path / "many.zarr"
    whole, stored = ph.ensemble(PROBLEM, **run), ph.ensemble(PROBLEM, **run, out=out, unit=16)
    (out / "failed" / "c" / "1").unlink()  # as if the run had been killed before its second unit was done
    ph.ensemble(PROBLEM, **run, out=out, unit=16, resume=True)
    copied = ph.load(ph.load(out).save(tmp_path / "copy.nc"))
    for found in (stored, ph.load(out), copied, ph.load(whole.save(tmp_path / "memory.zarr"))):
        np.testing.assert_array_equal(found.momentum, whole.momentum)
        assert list(found.states) == list(whole.states)
        for name, values in whole.states.items():
            np.testing.assert_array_equal(found.states[name], values)
        for name, one in whole.statistics.items():
            np.testing.assert_array_equal(found.statistics[name].mean, one.mean)

    @ph.controller(integral=[0.0, 0.0, 0.0])
    def other(R, omega, integral, period, stiffness=1.0, damping=2.0):
        return [-stiffness * w for w in omega], {"integral": integral}

    other.template.function.__name__ = "pid"
    with pytest.raises(ph.InputError, match="formula of the controller"):
        ph.ensemble(PROBLEM, **run | {"control": other}, out=out, unit=16, resume=True)


def test_names_of_statistics_are_no_states(tmp_path):
    @ph.controller(error_mean=0.0)
    def law(omega, error_mean):
        return [-w for w in omega], {"error_mean": error_mean}

    many = ph.ensemble(PROBLEM, control=law, omega=np.eye(3), **RUN)
    with pytest.raises(ph.InputError, match="names that end with _mean are those of statistics; rename"):
        many.save(tmp_path / "run.nc")


# --- on a GPU -----------------------------------------------------------------------------------------


def commands(R, omega, period, gain=1.0):
    """Torques against attitude error and angular velocity."""
    e = (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2
    return [gain * (e[i] + 2.0 * omega[i]) for i in range(3)]


WHEELS = {"max_momentum": 0.4, "inertia": 0.01, "viscous": 1e-3, "coulomb": 2e-3}


@ph.controller(wheels=ph.actuators.wheels(max_torque=0.15, **WHEELS))
def turning(R, omega, wheels, period, gain=1.0):
    """PD control by three wheels with limits and friction."""
    return {"wheels": commands(R, omega, period, gain)}


@ph.controller(jets=ph.actuators.thrusters(0.5 * np.vstack([np.eye(3), -np.eye(3)]), min_pulse=0.01))
def pulsing(R, omega, period, gain=1.0):
    """PD control by six thrusters."""
    on = [-period * x for x in commands(R, omega, period, gain)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


@ph.controller
def failing(t, omega, gain=1.0):
    """A controller whose torque is infinite from the time `gain` on."""
    return 0.0, 0.0, 10.0 * ph.where(t < gain, 0.01, 1e308)


GAINS = np.array([1.9, 0.9, 1.1])
ON_CARD = {
    "memory": {"control": pid, "every": 3, "params": {"stiffness": GAINS, "integral": 0.1 * np.eye(3)}},
    "wheels": {"control": turning, "params": {"gain": GAINS}},
    "thrusters": {"control": pulsing, "times": [0.25, 0.6, 1.0], "params": {"gain": GAINS}},
    "jumps in time": {
        "control": pulsing,
        "field": ph.fields.thruster(torque=[0.1, 0.0, -0.2], on=[[0.13, 0.41], [0.6, 0.87]]),
        "every": 2,
    },
    "principal axes": {"control": pid, "body": ph.Body([1.0, 2.0, 2.5])},
    "failing": {"control": failing, "params": {"gain": 2.0 * GAINS - 1.2}, "every": 1},
}


def closed_loops(case, device):
    """Momenta, states and failed steps of a case, by name."""
    omega = 0.3 * np.random.default_rng(1).normal(size=(3, 3))
    run = {"method": "fem", "dt": 0.05, "t_end": 1.0, "period": 0.2, "omega": omega, "device": device}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ph.ResultWarning)
        many = ph.ensemble(PROBLEM, **run | ON_CARD[case])
    return {"momentum": many.momentum, "failed": many.failed, **many.states}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("cuda") / "closed_loops.npz")


@pytest.mark.parametrize("case", ON_CARD)
def test_the_card_has_the_closed_loops_of_the_processor(simulated, case):
    found = closed_loops(case, "cpu")
    assert (found["failed"] >= 0).tolist() == [False, case == "failing", False]
    for name, values in found.items():
        np.testing.assert_allclose(simulated[f"{case}: {name}"], values, rtol=0, atol=1e-14)


def write_all(path):
    """What the card (its simulator) computes."""
    found = {f"{case}: {name}": x for case in ON_CARD for name, x in closed_loops(case, "cuda").items()}
    np.savez(path, **found)


if __name__ == "__main__":
    write_all(sys.argv[1])
