"""A Nosé-Hoover chain for one body: true declarations and false ones, runs, what is refused."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
import scipy.integrate

import polhode as ph
from polhode.analysis.checks import CHECKS, check, check_asks, check_order, check_symmetric
from polhode.analysis.extended import check_extended, measure_defect
from polhode.compile.simd.vector_types import LANES
from polhode.methods.combinators.compose import whole
from polhode.methods.combinators.nose_hoover import _step
from polhode.results.store import integrity
from polhode.run.jax_flow import _traceable

NAME = "nose_hoover(strang(rot123))"


@pytest.mark.parametrize("name", [NAME, "nose_hoover(dmv4,1)"])
def test_declarations_are_confirmed(name):
    assert [fault for one in CHECKS for fault in one(ph.methods[name], (0,))] == []


SLOW = ["nose_hoover(dg2)", "nose_hoover(imidm)", "nose_hoover(mkrk(kutta3),4)", "nose_hoover(jacobi,3,yoshida6,2)"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_all_declarations_are_confirmed_on_all_starts(name):
    assert check(ph.methods[name]) == []


def test_the_expression_names_what_is_not_usual():
    assert ph.methods["nose_hoover(rot123)"].name == NAME
    assert ph.methods["nose_hoover(rot123, 3, suzuki4, 1)"].name == NAME
    assert ph.methods["nose_hoover(rot123,4)"].name == "nose_hoover(strang(rot123),4)"
    assert ph.methods["nose_hoover(rot123,3,suzuki6,2)"].name == "nose_hoover(strang(rot123),3,suzuki6,2)"
    assert ph.methods["nose_hoover(dg2)"].thermostat == (3, 4, 4, False)  # the energy of the body is conserved exactly
    assert ph.methods["nose_hoover(jacobi,3,yoshida6)"].thermostat == (3, 2, 6, True)


def declared(**changes):
    method = ph.methods[NAME]
    return dataclasses.replace(method, thermostat=method.thermostat._replace(**changes))


LIES = [
    ({"extended_energy": 1}, "extended_energy declared 1, measured 2.0"),
    ({"extended_energy": 4}, "extended_energy declared 4, measured 2.0"),
    ({"extended_energy_free": 3}, "extended_energy_free declared 3, measured 2.0"),
    ({"extended_measure": False}, "declared not to keep the extended measure, but"),
    ({"extended_measure": None}, "declares nothing about the extended measure"),
    ({"links": 2}, "declares a chain of 2 links, but asks for thermostat with a chain of 3 links"),
]


@pytest.mark.parametrize(("lie", "fault"), LIES, ids=[str(lie) for lie, _ in LIES])
def test_false_declarations_are_caught(lie, fault):
    (found,) = check_extended(declared(**lie), (0,))
    assert found.startswith(fault)


def test_a_thermostat_without_a_declaration_is_caught():
    assert check_extended(dataclasses.replace(ph.methods[NAME], thermostat=None), (0,)) == [
        "asks for a thermostat, but declares none"
    ]


def stepping_with(weights):
    """The method with other steps of its chain."""
    base = ph.methods["strang(rot123)"]
    return dataclasses.replace(
        ph.methods[NAME], build=lambda number: _step(whole(base)(number), 3, tuple(number(w) for w in weights))
    )


def test_a_wrong_step_of_the_chain_is_caught():
    assert check_order(stepping_with([1]), (0,)) == []  # the splitting alone is of order two, and so is the whole
    longer = stepping_with([1.01])
    assert check_order(longer, (0,))  # a chain that is faster than the time, and as symmetric
    assert check_extended(longer, (0,)) == []
    lopsided = stepping_with([0.25, 0.75])
    assert check_symmetric(lopsided, (0,))


def test_a_scheme_that_does_not_keep_the_volume_is_seen():
    assert measure_defect(ph.methods[NAME], "potential") < 1e-25
    assert measure_defect(ph.methods["nose_hoover(imidm)"], "potential") > 1e-9


def test_every_number_of_the_start_matters():
    assert check_asks(ph.methods[NAME], (0,)) == []


# --- runs -------------------------------------------------------------------------------------------

MOMENTS = (0.2, 1.0, 1.1)
THERMOSTAT = ph.fields.nose_hoover(kT=1.5, tau=0.4)
START = [0.2, 2.0, 3.3]
STEPS = 40


@ph.potential
def slope(R, a):
    """A potential without symmetry."""
    return a * (R[2][0] + R[1][1] * R[0][2])


@ph.torque
def push(t, strength):
    """A pulse."""
    return [ph.where(t < 0.5, strength, 0.0), 0.0, 0.0]


def problem(field=THERMOSTAT, **start):
    return ph.Problem(ph.Body(start.pop("moments", MOMENTS)), field, **({"momentum": START} | start))


def chain_of(sol):
    """The chain at the end of a run, as the start of another."""
    return np.stack([sol.states["chain_position"][-1], sol.states["chain_velocity"][-1]])


def rates(t, y, moments, kT, tau, degrees):
    """The equations of momentum and chain of a free body, for chains of two links."""
    m, v = y[:3], y[5:]
    omega = np.divide(m, moments, out=np.zeros(3), where=np.array(moments) > 0)
    mass = kT * tau**2
    first = (m @ omega - degrees * kT) / (degrees * mass) - v[0] * v[1]
    return [*(np.cross(m, omega) - v[0] * m), *v, first, (degrees * mass * v[0] ** 2 - kT) / mass]


@pytest.mark.parametrize(("moments", "start", "degrees"), [(MOMENTS, START, 3), ((1.3, 1.3, 0.0), [0.9, -1.2, 0.0], 2)])
def test_momentum_and_chain_follow_the_equations(moments, start, degrees):
    sol = ph.solve(problem(moments=moments, momentum=start), "nose_hoover(jacobi,2)", dt=0.001, t_end=2.0)
    given = {"args": (moments, 1.5, 0.4, degrees), "rtol": 1e-11, "atol": 1e-11}
    exact = scipy.integrate.solve_ivp(rates, (0, 2), [*start, 0, 0, 0, 0], **given).y[:, -1]
    found = [*sol.momentum[-1], *sol.states["chain_position"][-1], *sol.states["chain_velocity"][-1]]
    assert found == pytest.approx(exact, abs=2e-4)


def test_the_extended_energy_is_conserved_and_reported():
    field = THERMOSTAT + slope(0.7)
    runs = [ph.solve(problem(field), NAME, dt=h, t_end=4.0) for h in (0.02, 0.01)]
    assert [run.changes()["energy"] > 0.5 for run in runs] == [True, True]
    drifts = [run.drift() for run in runs]
    assert [set(drift) for drift in drifts] == 2 * [{"extended_energy"}]
    assert drifts[0]["extended_energy"] / drifts[1]["extended_energy"] == pytest.approx(4, rel=0.1)
    assert drifts[1]["extended_energy"] < 1e-4


def test_the_extended_energy_is_no_error_where_a_torque_does_work():
    pushed = ph.Problem(ph.Body([1.0, 2.0, 3.0]), push(0.2) + THERMOSTAT, omega=[0.0, 0.0, 0.0])
    sol = ph.solve(pushed, "nose_hoover(mkrk(rk4))", dt=0.01, steps=100)
    assert sol.drift() == {}
    assert sol.changes()["extended_energy"] > 1e-3
    with pytest.raises(KeyError, match="extended_energy is not conserved in this motion"):
        _ = sol.drift()["extended_energy"]


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_files_hold_the_chain(tmp_path, suffix):
    given, file = {"dt": 0.05, "every": 3}, tmp_path / f"run{suffix}"
    whole = ph.solve(problem(), NAME, steps=STEPS, **given)
    ph.solve(problem(), NAME, steps=STEPS // 2, out=file, **given)
    ph.solve(problem(), NAME, steps=STEPS, out=file, resume=True, **given)
    ph.load(file).save(tmp_path / f"copy{suffix}")
    for again in (ph.load(file), ph.load(tmp_path / f"copy{suffix}")):
        assert list(again.states) == ["chain_energy", "chain_position", "chain_velocity"]
        for name, values in whole.states.items():
            np.testing.assert_array_equal(again.states[name], values)
        assert again.drift() == whole.drift()
        np.testing.assert_array_equal(again.last().states["chain_velocity"], whole.states["chain_velocity"][-1:])


def test_a_file_with_wrong_states_is_refused(tmp_path):
    ph.solve(problem(), NAME, dt=0.05, steps=3, out=tmp_path / "run.zarr")
    for wrong in ('[["../t", [3]]]', '[["chain_energy", [-1]]]', "7"):
        attrs = json.loads((tmp_path / "run.zarr" / "zarr.json").read_text())["attributes"]
        integrity.replace_attributes(tmp_path / "run.zarr", attrs | {"states": wrong})
        with pytest.raises(ph.InputError, match="damaged"):
            ph.load(tmp_path / "run.zarr")


def test_a_run_can_be_cut_and_resumed(tmp_path):
    given = {"dt": 0.05, "every": 3}
    whole = ph.solve(problem(), NAME, steps=STEPS, **given)
    half = ph.solve(problem(), NAME, dt=0.05, steps=STEPS // 2)
    ph.solve(problem(), NAME, steps=STEPS // 2, out=tmp_path / "run.zarr", **given)
    rest = problem(
        THERMOSTAT.bind(chain=chain_of(half)), momentum=half.momentum[-1], attitude=half.quaternion[-1], t0=1.0
    )
    for again in (
        ph.solve(rest, NAME, dt=0.05, steps=STEPS // 2),
        ph.solve(problem(), NAME, steps=STEPS, out=tmp_path / "run.zarr", resume=True, **given),
    ):
        np.testing.assert_array_equal(again.momentum[-1], whole.momentum[-1])


def test_more_digits_confirm_the_run():
    plain, precise = (ph.solve(problem(), NAME, dt=0.05, steps=10, **more) for more in ({}, {"digits": 30}))
    assert precise.momentum == pytest.approx(plain.momentum, abs=1e-13)
    for name, values in plain.states.items():
        assert precise.states[name] == pytest.approx(values, abs=1e-13)
    assert precise.drift()["extended_energy"] == pytest.approx(plain.drift()["extended_energy"], abs=1e-12)


def test_a_run_backwards_returns():
    there = ph.solve(problem(), NAME, dt=0.05, steps=STEPS)
    end = problem(
        THERMOSTAT.bind(chain=chain_of(there)), momentum=there.momentum[-1], attitude=there.quaternion[-1], t0=2.0
    )
    back = ph.solve(end, NAME, dt=-0.05, steps=STEPS)
    assert back.momentum[-1] == pytest.approx(START, abs=1e-11)
    assert chain_of(back) == pytest.approx(np.zeros((2, 3)), abs=1e-11)
    assert back.at(1.02).momentum[0] == pytest.approx(there.at(1.02).momentum[0], abs=1e-4)


def test_dense_output_and_events_take_the_chain_along():
    @ph.event
    def level(omega):
        return omega[0] - 0.5

    sol = ph.solve(problem(), NAME, dt=0.05, steps=STEPS, events=[level])
    between = sol.at([0.5, 0.52])
    assert between.states["chain_velocity"][0] == pytest.approx(sol.states["chain_velocity"][10], abs=1e-15)
    short = ph.solve(
        problem(
            THERMOSTAT.bind(chain=[sol.states["chain_position"][10], sol.states["chain_velocity"][10]]),
            momentum=sol.momentum[10], attitude=sol.quaternion[10], t0=0.5,
        ), NAME, dt=0.02, steps=1,
    )  # fmt: skip
    assert between.momentum[1] == pytest.approx(short.momentum[1], abs=1e-12)
    assert between.states["chain_energy"][1] == pytest.approx(short.states["chain_energy"][1], abs=1e-12)
    (found,) = sol.events
    assert len(found) > 0
    assert found.omega[:, 0] == pytest.approx(0.5, abs=1e-12)
    assert found.states["chain_velocity"].shape == (len(found), 3)


# --- many bodies ------------------------------------------------------------------------------------


def crowd(number, **changed):
    kT = np.linspace(0.5, 2.5, number)
    given = {"field": THERMOSTAT, "params": {"kT": kT}, "dt": 0.05, "steps": STEPS} | changed
    return ph.ensemble([ph.Body(MOMENTS)] * number, None, [START] * number, NAME, **given)


def test_a_body_moves_as_alone_whatever_its_neighbours():
    many = crowd(2 * LANES + 3, every=10)
    kT = np.linspace(0.5, 2.5, 2 * LANES + 3)
    few = crowd(2, params={"kT": kT[1:3]}, every=10)
    np.testing.assert_array_equal(many.momentum[:, 1:3], few.momentum)
    for name, values in few.states.items():
        np.testing.assert_array_equal(many.states[name][:, 1:3], values)
    alone = ph.solve(problem(THERMOSTAT.bind(kT=kT[2])), NAME, dt=0.05, steps=STEPS, every=10)
    assert few.momentum[:, 1] == pytest.approx(alone.momentum, abs=1e-11)
    assert few[1].states["chain_position"] == pytest.approx(alone.states["chain_position"], abs=1e-11)
    assert few.drift()["extended_energy"][1] == pytest.approx(alone.drift()["extended_energy"], abs=1e-10)


def test_ensembles_have_dense_output_statistics_and_chains_of_their_own():
    chain = np.arange(18.0).reshape(3, 2, 3) / 20
    moving = THERMOSTAT.bind(chain=np.zeros((2, 3)))
    many = crowd(3, field=moving, params={"chain": chain}, every=1)
    assert many.states["chain_velocity"][0].tolist() == chain[:, 1].tolist()
    one = ph.solve(problem(moving.bind(chain=chain[2])), NAME, dt=0.05, steps=STEPS)
    assert many.at(0.33).states["chain_energy"][0, 2] == pytest.approx(
        one.at(0.33).states["chain_energy"][0], abs=1e-11
    )
    seen = crowd(3, field=moving, params={"chain": chain}, statistics=["energy"])
    assert seen.statistics["energy"].mean == pytest.approx(many.energy.mean(axis=0), rel=1e-13)
    np.testing.assert_array_equal(seen.states["chain_energy"][-1], many.states["chain_energy"][-1])


def stepper_of(number, **given):
    return ph.batch_stepper([ph.Body(MOMENTS)] * number, NAME, 0.05, **({"field": THERMOSTAT} | given))


def at_start(number):
    return np.tile([1.0, 0.0, 0.0, 0.0], (number, 1)), np.array([START] * number)


@pytest.mark.parametrize("number", [2, LANES + 1])
def test_the_stepper_has_the_bits_of_an_ensemble_in_calls_of_any_length(number):
    many = crowd(number)
    params = {"kT": np.linspace(0.5, 2.5, number)}
    (q, pi), stepper = at_start(number), stepper_of(number, params=params)
    stepper.step(q, pi, n=STEPS // 4)
    stepper.step(q, pi)
    other = stepper_of(number, params=params)
    other.chains = stepper.chains
    pickle.loads(pickle.dumps(other)).step(q.copy(), pi.copy())
    other.step(q, pi, n=STEPS - STEPS // 4 - 1)
    np.testing.assert_array_equal(pi, many.momentum[-1])
    np.testing.assert_array_equal(other.chains[:, 0], many.states["chain_position"][-1])
    np.testing.assert_array_equal(other.chains[:, 1], many.states["chain_velocity"][-1])


def test_a_body_that_fails_keeps_its_chain_and_disturbs_no_other():
    number = LANES + 2
    (q, pi), (q1, pi1), torque = at_start(number), at_start(number), np.zeros((number, 3))
    good, bad = stepper_of(number), stepper_of(number)
    good.step(q, pi, torque)
    torque[[1, LANES]] = np.nan
    with pytest.warns(ph.ResultWarning, match="2 of"):
        bad.step(q1, pi1, torque)
    fine = np.delete(np.arange(number), [1, LANES])
    np.testing.assert_array_equal(pi1[fine], pi[fine])
    np.testing.assert_array_equal(bad.chains[fine], good.chains[fine])
    assert not bad.chains[[1, LANES]].any()


def test_translation_leaves_the_chains_of_the_rotation_alone():
    (q, pi), (q1, pi1), x, p = at_start(3), at_start(3), np.zeros((3, 3)), np.ones((3, 3))
    alone, moving = stepper_of(3), stepper_of(3, masses=2.0)
    alone.step(q, pi, n=4)
    moving.step(x, p, q1, pi1, np.ones((3, 3)), n=4)
    np.testing.assert_array_equal(pi1, pi)
    np.testing.assert_array_equal(moving.rotation.chains, alone.chains)
    assert x == pytest.approx(np.full((3, 3), 0.2 / 2 + 0.2**2 / 4))


def test_replaced_bodies_keep_their_chains():
    (q, pi), stepper = at_start(3), stepper_of(3)
    stepper.step(q, pi, n=3)
    before = stepper.chains
    stepper.replace([1], [ph.Body([1.0, 1.1, 1.2])])
    np.testing.assert_array_equal(stepper.chains, before)
    assert before.any()


def test_gradients_pass_through_the_chain():
    found = ph.gradient(lambda R, omega: omega[0], problem(), NAME, dt=0.05, steps=STEPS, wrt=["params"])
    for name, step in (("kT", 1e-5), ("tau", 1e-5)):
        ends = [
            ph.solve(problem(THERMOSTAT.bind(**{name: THERMOSTAT.values[name] + s * step})), NAME, dt=0.05, steps=STEPS)
            for s in (1, -1)
        ]
        difference = (ends[0].omega[-1, 0] - ends[1].omega[-1, 0]) / (2 * step)
        assert found.params[name] == pytest.approx(difference, rel=1e-5)


# --- what is refused --------------------------------------------------------------------------------

REFUSED = [
    (
        lambda: stepper_of(2).step(*at_start(2), lambda t, q: 0 * q[:, :3]),
        "takes torques as arrays; for torques from a function",
    ),
    (lambda: stepper_of(2, thermostat=ph.thermostats.bussi(kT=1, tau=1)), "has chains"),
    (lambda: setattr(stepper_of(2), "chains", np.zeros((3, 2, 3))), "of shape \\(2, 2, 3\\)"),
    (lambda: ph.batch_stepper([MOMENTS], "dmv4", 0.1).chains, "dmv4 has no chains"),
    (lambda: ph.fields.nose_hoover(kT=-1.0, tau=1.0), "kT must be positive; got -1"),
    (lambda: ph.fields.nose_hoover(kT=0.0, tau=1.0), "kT must be positive; got 0"),
    (lambda: ph.fields.nose_hoover(kT=1.0, tau=0.0), "tau must be positive; got 0"),
    (lambda: ph.fields.nose_hoover(kT=1.0, tau=1.0, chain=[1.0, 2.0]), "chain must be 0, at rest, or"),
    (lambda: ph.fields.nose_hoover(kT=1.0, tau=1.0, chain=1.0), "chain must be 0, at rest, or"),
    (lambda: crowd(2, params={"kT": [1.0, -1.0]}), "body 1: kT must be positive"),
    (lambda: crowd(2, out="crowd.zarr"), "ensemble stores do not hold the chains"),
    (lambda: ph.methods["nose_hoover(rot123,0)"], "number of links .* at least 1; got '0'"),
    (lambda: ph.methods["nose_hoover(rot123,two)"], "number of links .* at least 1; got 'two'"),
    (lambda: ph.methods["nose_hoover(rot123,3,suzuki4,0)"], "number of repeated steps .* at least 1; got '0'"),
    (lambda: ph.methods["nose_hoover(rot123,3,strang)"], "the composition of .* must be one of .*; got 'strang'"),
    (lambda: ph.methods["nose_hoover(abm4)"], "abm4 carries more from step to step"),
    (lambda: ph.methods["nose_hoover(bussi(jacobi))"], "has noise"),
    (lambda: ph.methods["nose_hoover(nose_hoover(jacobi))"], "has a chain"),
    (lambda: ph.methods["strang(nose_hoover(jacobi))"], "has a chain"),
    (lambda: ph.solve(problem(None), NAME, dt=0.1, steps=1), "needs a thermostat: add ph.fields.nose_hoover"),
    (lambda: ph.solve(problem(), "strang(rot123)", dt=0.1, steps=1), "needs a method with a chain .* has none"),
    (lambda: ph.solve(problem(), tol=1e-6, t_end=1.0), "needs a method with a chain"),
    (lambda: ph.solve(problem(), "bussi(rot123)", dt=0.1, steps=1), "needs a method with a chain"),
    (
        lambda: ph.solve(problem(ph.fields.heat_bath(kT=1.0, friction=1.0)), NAME, dt=0.1, steps=1),
        "needs a thermostat",
    ),
    (lambda: THERMOSTAT + ph.fields.heat_bath(kT=1.0, friction=1.0), "one heat bath or thermostat"),
    (
        lambda: ph.solve(problem(THERMOSTAT.bind(chain=np.zeros((2, 2)))), NAME, dt=0.1, steps=1),
        "a chain of 3 links, but the initial chain of the thermostat has 2",
    ),
    (lambda: ph.solve(problem(), NAME, dt=0.1, steps=1, tangent=True), "also depends on its chain"),
    (lambda: _traceable(ph.methods[NAME], problem()), "ph.jax takes .* also depends on its chain"),
    (lambda: ph.stepper(ph.Body(MOMENTS), NAME, 0.1), "has a chain, which a stepper of one body does not store"),
    (
        lambda: ph.solve(problem(), NAME, dt=0.1, steps=1, control=lambda t, R, omega: (0.0,) * 3, period=0.1),
        "carries more than attitude and momentum",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ph.InputError, match=message):
        call()
