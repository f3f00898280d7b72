"""Overdamped Brownian rotation: declarations confirmed, false ones caught; Favro's formulas; what is refused."""

import dataclasses
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import polhode as ph
from proofs.brownian import (
    check_overdamped_measure,
    check_overdamped_order,
    check_overdamped_weak_order,
    cold_slope,
    weak_slope,
)
from proofs.checks import WITHOUT_INERTIA, check

_path = Path(__file__).parents[2] / "validation" / "thermostats.py"
_spec = importlib.util.spec_from_file_location("thermostats", _path)
statistics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(statistics)

BATH = ph.fields.heat_bath(kT=1.5, friction=[[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 0.5]], seed=3)
MOMENTS = (0.2, 1.0, 1.1)
NUMBER = 20


@pytest.mark.parametrize("order", [1, 2])
def test_declarations_are_confirmed(order):
    method = ph.methods[f"brownian({order})"]
    quick = [one for one in WITHOUT_INERTIA if order == 1 or one is not check_overdamped_measure]
    assert [fault for one in quick for fault in one(method)] == []
    assert method.noise.weak_order == method.order == order


@pytest.mark.slow
def test_the_measure_of_weak_order_two_is_confirmed():
    assert check_overdamped_measure(ph.methods["brownian(2)"]) == []


def declared(name="brownian(1)", **changes):
    method = ph.methods[name]
    return dataclasses.replace(method, noise=method.noise._replace(**changes))


LIES = [
    (check_overdamped_weak_order, {"weak_order": 2}),
    (check_overdamped_weak_order, {"weak_order": 0}),
    (check_overdamped_measure, {"invariant_measure": 2}),
    (check_overdamped_measure, {"invariant_measure": None}),
    (check_overdamped_measure, {"invariant_measure": math.inf}),
    (check_overdamped_measure, {"invariant_measure_free": 1}),
]


@pytest.mark.parametrize(("verify", "lie"), LIES, ids=[str(lie) for _, lie in LIES])
def test_false_declarations_are_caught(verify, lie):
    (fault,) = verify(declared(**lie), (0,))
    assert f"declared {next(iter(lie.values()))}, measured " in fault


@pytest.mark.parametrize("lie", [
    {"order": 2}, {"order": 0}, {"order_free": 1}, {"symmetric": True}, {"symplectic": None, "poisson": True},
    {"conserves": frozenset({"energy"})},
], ids=str)  # fmt: skip
def test_false_orders_are_caught(lie):
    assert check_overdamped_order(dataclasses.replace(ph.methods["brownian(1)"], **lie), (0,))


def test_the_two_equations_are_told_apart():
    assert check(declared(equation="langevin"))
    assert check_overdamped_order(declared("baoab(rot123)", equation="overdamped"), (0,))


def with_draws(change):
    """brownian(2) with normal numbers that are changed before use."""
    plain = ph.methods["brownian(2)"].noise.driven
    return declared("brownian(2)", driven=lambda number, draw: plain(number, lambda *place: change(draw(*place))))


@pytest.mark.parametrize("change", [
    lambda xi: tuple(x * 9 / 10 for x in xi), lambda xi: (xi[0], xi[0], xi[2]), lambda xi: tuple(0 * x for x in xi),
])  # fmt: skip
def test_wrong_noise_is_caught(change):
    assert abs(weak_slope(with_draws(change))) < 0.1


def test_both_orders_without_noise():
    assert [round(cold_slope(ph.methods[f"brownian({k})"]), 1) for k in (1, 2)] == [1, 2]


@pytest.mark.parametrize("method", ["brownian(1)", "brownian(2)"])
def test_the_diffusion_is_that_of_favro(method):
    """brownian(1) has an error of order 1, so short steps; 4000 bodies, nine means within three sigma."""
    short = {"dt": 0.005, "steps": 100} if method == "brownian(1)" else {"dt": 0.1, "steps": 5}
    scores = statistics.diffusion(4000, method, **short)
    assert np.abs(scores).max() < statistics.LIMIT, scores


def test_dipoles_have_the_distribution_of_gibbs():
    (score,) = statistics.dipole(4000)
    assert abs(score) < statistics.LIMIT


def test_the_momentum_is_left_as_it_is_and_runs_can_be_cut():
    q, pi = np.tile([1.0, 0.0, 0.0, 0.0], (NUMBER, 1)), np.ones((NUMBER, 3))
    many = ph.ensemble([MOMENTS] * NUMBER, q, pi, "brownian(2)", field=BATH, dt=0.1, steps=5)
    stepper = ph.batch_stepper([MOMENTS] * NUMBER, "brownian(2)", 0.1, field=BATH)
    stepper.step(q, pi, n=2)
    stepper.step(q, pi, n=3)
    np.testing.assert_array_equal(q, many.quaternion[-1])
    assert (pi == 1.0).all()
    assert (many.momentum == 1.0).all()


def test_friction_tensors_are_in_the_axes_of_the_body():
    """At the temperature zero the top falls along the torque, Gamma^-1 T, whatever the axes of its inertia."""
    cold = ph.fields.gravity(mgl=1.0) + BATH.bind(kT=0.0)
    tensor = [[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]]
    start = {"attitude": [0.8, 0.4, 0.2, -0.4], "momentum": [0.0, 0.0, 0.0]}
    runs = [ph.solve(ph.Problem(ph.Body(b), cold, **start), "brownian(2)", dt=0.1, steps=5) for b in (MOMENTS, tensor)]
    assert runs[0].quaternion == pytest.approx(runs[1].quaternion, abs=1e-13)
    assert runs[0].matrix[-1][2, 2] < runs[0].matrix[0][2, 2]


REFUSED = [
    (lambda: ph.methods["brownian(3)"], "weak orders 1 and 2"),
    (lambda: ph.solve(ph.Problem(ph.Body(MOMENTS), momentum=[1, 0, 0]), "brownian(2)", dt=0.1, steps=1), "heat bath"),
    (
        lambda: ph.solve(
            ph.Problem(ph.Body(MOMENTS), BATH.bind(friction=np.diag([1.0, 1.0, 0.0])), momentum=[1, 0, 0]),
            "brownian(2)", dt=0.1, steps=1,
        ),
        "divides by the friction, which must be positive about all axes",
    ),
    (lambda: ph.methods["baoab(brownian(2))"], "has noise"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ph.InputError, match=message):
        call()
