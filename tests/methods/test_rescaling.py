"""Stochastic velocity rescaling of one body: true declarations and false ones, runs, what is refused."""

import dataclasses
import math

import numpy as np
import pytest

import polhode as ph
from polhode.analysis.setting import fifty
from polhode.compile.simd.vector_types import LANES
from proofs.checks import CHECKS, check
from proofs.gibbs import bath_defect, check_measure, sums_of_three_squares
from proofs.noise import check_drawn, check_weak_order, weak_slope

NAME = "bussi(strang(rot123))"


def test_declarations_are_confirmed():
    assert [fault for one in CHECKS for fault in one(ph.methods[NAME], (0,))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAME, "bussi(dmv4)", "bussi(imidm)", "bussi(mkrk(kutta3))"])
def test_declarations_are_confirmed_on_all_starts(name):
    assert check(ph.methods[name]) == []


def test_a_free_flow_stands_for_its_strang_splitting():
    assert ph.methods["bussi(rot123)"].name == NAME
    assert ph.methods["bussi(jacobi)"].noise.invariant_measure_free == math.inf
    assert ph.methods["bussi(mkrk(rk4))"].noise[:3] == (2, 4, 4)


def declared(**changes):
    method = ph.methods[NAME]
    return dataclasses.replace(method, noise=method.noise._replace(**changes))


LIES = [
    (check_weak_order, {"weak_order": 1}),
    (check_weak_order, {"weak_order": 3}),
    (check_measure, {"invariant_measure": 1}),
    (check_measure, {"invariant_measure": None}),
    (check_measure, {"invariant_measure": math.inf}),
    (check_measure, {"invariant_measure_free": 4}),
    (check_measure, {"invariant_measure_free": math.inf}),
]


@pytest.mark.parametrize(("verify", "lie"), LIES, ids=[str(lie) for _, lie in LIES])
def test_false_declarations_are_caught(verify, lie):
    (fault,) = verify(declared(**lie), (0,))
    assert f"declared {next(iter(lie.values()))}, measured " in fault
    assert float(fault.split("measured ")[1].split()[0]) == pytest.approx(2, abs=0.1)


def test_the_equation_of_another_thermostat_is_caught():
    assert abs(weak_slope(declared(equation="langevin"))) < 0.1
    langevin = ph.methods["obabo(rot123)"]
    false = dataclasses.replace(langevin, noise=langevin.noise._replace(equation="rescaling"))
    assert abs(weak_slope(false)) < 0.1
    assert len(check_measure(false, (0,))) == 2


def with_draws(change):
    """The method with normal numbers that are changed before use."""
    plain = ph.methods[NAME].noise.driven
    return declared(driven=lambda number, draw: plain(number, lambda *place: change(draw(*place))))


WRONG = {
    "too little noise": lambda xi: tuple(x * 9 / 10 for x in xi),
    "one number for two axes": lambda xi: (xi[0], xi[1], xi[1]),
    "four degrees of freedom": lambda xi: (xi[0], xi[1], xi[2] * 3 / 2),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_noise_is_caught(change):
    wrong = with_draws(change)
    assert bath_defect(wrong) > 1e-5
    assert len(check_measure(wrong, (0,))) == 2
    assert check_drawn(wrong, (0,))


@fifty
def test_the_rule_for_sums_of_squares_is_exact_to_degree_3():
    found = [sum(w * t**k for t, w in sums_of_three_squares()) for k in range(4)]
    assert [abs(x - y) < 1e-50 for x, y in zip(found, (1, 3, 15, 105), strict=True)] == [True] * 4


# --- runs -------------------------------------------------------------------------------------------

MOMENTS = (0.2, 1.0, 1.1)
BATH = ph.fields.heat_bath(kT=1.5, friction=[1.0, 2.0, 0.5], seed=3)
START = [0.2, 2.0, 3.3]
STEPS = 40


def problem(field=BATH, **start):
    return ph.Problem(ph.Body(MOMENTS), field, **({"momentum": START} | start))


def crowd(number, **changed):
    given = {"field": BATH, "dt": 0.05, "steps": STEPS} | changed
    return ph.ensemble([ph.Body(MOMENTS)] * number, None, [START] * number, NAME, **given)


def test_a_run_can_be_cut_and_resumed(tmp_path):
    whole = ph.solve(problem(), NAME, dt=0.05, steps=STEPS)
    half = ph.solve(problem(), NAME, dt=0.05, steps=STEPS // 2, out=tmp_path / "run.zarr")
    rest = problem(BATH.bind(first_step=STEPS // 2), momentum=half.momentum[-1], attitude=half.quaternion[-1], t0=1.0)
    for again in (
        ph.solve(rest, NAME, dt=0.05, steps=STEPS // 2),
        ph.solve(problem(), NAME, dt=0.05, steps=STEPS, out=tmp_path / "run.zarr", resume=True),
    ):
        np.testing.assert_array_equal(again.momentum[-1], whole.momentum[-1])
    precise = ph.solve(problem(), NAME, dt=0.05, steps=10, digits=30)
    assert precise.momentum == pytest.approx(whole.momentum[:11], abs=1e-13)


def test_a_body_moves_as_alone_whatever_its_neighbours():
    many, few = crowd(2 * LANES + 3), crowd(3)
    np.testing.assert_array_equal(many.momentum[:, :3], few.momentum)
    assert len(np.unique(many.momentum[-1, :, 0])) == 2 * LANES + 3
    alone = ph.solve(problem(BATH.bind(stream=2)), NAME, dt=0.05, steps=STEPS)
    assert few.momentum[-1, 2] == pytest.approx(alone.momentum[-1], abs=1e-12)


def test_the_stepper_has_the_bits_of_an_ensemble_in_calls_of_any_length():
    q, pi = np.tile([1.0, 0.0, 0.0, 0.0], (LANES + 1, 1)), np.array([START] * (LANES + 1))
    stepper = ph.batch_stepper([MOMENTS] * (LANES + 1), NAME, 0.05, field=BATH)
    stepper.step(q, pi, n=STEPS // 4)
    stepper.step(q, pi, n=STEPS - STEPS // 4)
    np.testing.assert_array_equal(pi, crowd(LANES + 1).momentum[-1])
    for torque in (None, lambda t, q: 0 * pi):
        with pytest.warns(ph.ResultWarning, match="its pi is zero, and no factor moves it"):
            stepper.step(q, np.zeros_like(pi), torque)


@pytest.mark.parametrize("method", [NAME, pytest.param("brownian(2)", marks=pytest.mark.slow)])
def test_functions_are_held_torques_that_do_not_change(method):
    """The step on arrays against the compiled one: the same random numbers."""
    torque = np.random.default_rng(4).normal(size=(LANES + 1, 3))
    runs = []
    for calls in ([(torque, 3)], [(lambda t, q: torque, 1), (lambda t, q: torque, 2)]):
        q, pi = np.tile([1.0, 0.0, 0.0, 0.0], (LANES + 1, 1)), np.array([START] * (LANES + 1))
        stepper = ph.batch_stepper([MOMENTS] * (LANES + 1), method, 0.05, field=BATH)
        for given, n in calls:
            stepper.step(q, pi, given, n=n)
        runs.append(np.concatenate([q, pi], axis=1))
        assert stepper.steps_made == 3
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-13)


def test_the_thermostat_keeps_the_direction_of_the_momentum_in_space():
    """Without a torque; so it is not ergodic there."""
    sol = ph.solve(problem(), NAME, dt=0.05, steps=STEPS)
    direction = sol.spatial_momentum / np.linalg.norm(sol.spatial_momentum, axis=1)[:, None]
    assert np.abs(np.abs(direction @ direction[0]) - 1).max() < 1e-13
    assert np.ptp(sol.energy) > 1


REFUSED = [
    (lambda: ph.solve(problem(momentum=[0, 0, 0]), NAME, dt=0.1, steps=1), "that of body 0 is zero"),
    (lambda: ph.ensemble([MOMENTS] * 2, None, [START, [0] * 3], NAME, field=BATH, dt=0.1, steps=1), "that of body 1"),
    (lambda: ph.solve(problem(None), NAME, dt=0.1, steps=1), "needs a heat bath"),
    (lambda: crowd(2, dt=-0.1), "forwards in time only"),
    (lambda: ph.methods["bussi(abm4)"], "abm4 carries more from step to step"),
    (lambda: ph.methods["bussi(compensated(strang(rot123)))"], "carries more from step to step"),
    (lambda: ph.methods["bussi(baoab(jacobi))"], "has noise"),
    (lambda: ph.methods["strang(bussi(jacobi))"], "has noise"),
    (lambda: ph.methods["bussi(taylor(6))"], "heat bath"),
    (
        lambda: ph.batch_stepper([MOMENTS], "bussi(imidm)", 0.1, field=BATH).step(
            np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([START]), lambda t, q: 0 * q[:, :3]
        ),
        "methods with noise that can: Langevin dynamics, such as baoab",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ph.InputError, match=message):
        call()


@ph.torque
def wind(t, R, omega, a):
    """A torque that depends on the angular velocity."""
    return (a * omega[0], a * omega[1], a * omega[2])


@pytest.mark.parametrize(("method", "given", "named"), [
    ("baoab(rot123)", ph.Problem(ph.Body([1.0, 1.0, 0.0]), BATH, momentum=[1, 0, 0]), "do not: baoab\\(jacobi\\), "),
    ("bussi(rot123)", ph.Problem(ph.Body([1.0, 1.0, 0.0]), BATH, momentum=[1, 0, 0]), "do not: bussi\\("),
    (
        dataclasses.replace(ph.methods["baoab(rot123)"], name="mine"),
        ph.Problem(ph.Body([1.0, 1.0, 0.0]), BATH, momentum=[1, 0, 0]),
        "mine divides .* do not: bussi\\(",
    ),
    ("obabo(mv_explicit)", ph.Problem(ph.Body([1.0, 1.0, 2.0]), BATH, momentum=[1, 0, 0]), "do not: obabo\\(jacobi\\)"),
    ("baoab(jacobi)", problem(BATH + wind(0.1)), "take it: bussi\\("),
])  # fmt: skip
def test_methods_with_noise_are_named_instead_of_one_that_does_not_fit(method, given, named):
    with pytest.raises(ph.InputError, match=named):
        ph.solve(given, method, dt=0.1, steps=1)
