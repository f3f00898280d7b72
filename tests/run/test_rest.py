"""Implicit methods where torques balance: the unknown vanishes, the terms of its equation do not."""

from __future__ import annotations

import numpy as np
import pytest

import polhode as ph
from plain import run
from polhode.methods import Method

BODY = [12.0, 10.0, 7.0]
TURNED = [0.8, 0.6, 0.0, 0.0]
DT, STEPS = 1.0, 240


def implicit(needs: str) -> list[str]:
    """Registered methods that solve equations and take such a field."""
    return [name for name in ph.methods if ph.methods[name].implicit and ph.methods[name].takes(needs)]


def controlled(unit: float = 1.0, push: float = 1e-6) -> ph.Problem:
    """A damped body that comes to rest where a spring balances a constant torque, in units of mass of any size."""
    control = ph.fields.pd_control(target=[1, 0, 0, 0], stiffness=0.5 * unit, damping=4.0 * unit)
    constant = ph.fields.constant_torque(torque=[push * unit, 2 * push * unit, -push * unit])
    body = ph.Body([unit * x for x in BODY])
    return ph.Problem(body, control + constant, attitude=TURNED, omega=[1e-2, 2e-2, 1e-3])


def rests(found: np.ndarray) -> bool:
    """Are momenta below what turns the body by the round-off of its attitude in a step."""
    return bool(np.abs(found).max() < 1e-14 * max(BODY) / DT)


@pytest.mark.parametrize("name", [*implicit("velocity"), "yoshida4(imidm)", "suzuki4(trapm)"])
def test_every_method_comes_to_rest(name: str) -> None:
    """The stiffness times the angle is the constant torque, and both are far larger than what is left of them."""
    done = run(controlled(), name, DT, STEPS)
    assert done.fine
    assert rests(done.momentum[-10:])


@pytest.mark.parametrize("push", [1e-12, 1e-3, 0.1])
@pytest.mark.parametrize("name", ["be", "swc1", "mkrk(midpoint)"])
def test_under_torques_of_any_size(name: str, push: float) -> None:
    done = run(controlled(push=push), name, DT, STEPS + 200)
    assert done.fine
    assert rests(done.momentum[-10:])


@pytest.mark.parametrize("power", [-300, -40, 40, 300])
@pytest.mark.parametrize("name", ["imidm", "bbtrapwd", "mkrk(gauss2)"])
def test_in_any_unit_of_mass_the_attitude_is_the_same(name: str, power: int) -> None:
    ours, plain = run(controlled(2.0**power), name, DT, STEPS), run(controlled(), name, DT, STEPS)
    np.testing.assert_array_equal(ours.quaternion, plain.quaternion)
    np.testing.assert_array_equal(ours.momentum, plain.momentum * 2.0**power)


@ph.torque
def spring(t, R, k, push):
    """Restoring torque k sin(angle) about the third axis, less a constant one."""
    return (k * (R[2][1] - R[1][2]), k * (R[0][2] - R[2][0]), k * (R[1][0] - R[0][1]) + push)


@pytest.mark.parametrize("name", implicit("attitude"))
def test_a_body_in_balance_stays_there(name: str) -> None:
    """Without damping, from the attitude where the torques cancel to round-off."""
    angle = np.arcsin(0.1)
    attitude = [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]
    problem = ph.Problem(ph.Body(BODY), spring(-0.05, 0.01), attitude=attitude, omega=[0.0, 0.0, 0.0])
    done = run(problem, name, DT, 100)
    assert done.fine
    assert np.abs(done.momentum).max() < 1e-15


def test_variable_steps_come_to_rest() -> None:
    assert run(controlled(), "reversible(imidm)", DT, STEPS).fine


def test_more_digits_come_to_rest() -> None:
    """Round-off is that of the number type: the momentum goes on shrinking."""
    sol = ph.solve(controlled(), "trapm", dt=2 * DT, steps=2 * STEPS, every=2 * STEPS, digits=25, progress=False)
    assert abs(sol.momentum[-1]).max() < 1e-28


@pytest.mark.parametrize("name", ["mkrk(midpoint)", pytest.param("trapm", marks=pytest.mark.slow)])
def test_compiled(name: str) -> None:
    """One body, and many bodies in lanes; in plain Python every method is run above."""
    problem = controlled()
    sol = ph.solve(problem, name, dt=DT, steps=STEPS, every=STEPS, progress=False)
    assert rests(sol.momentum[-1])
    assert problem.field is not None
    starts = problem.momentum + np.linspace(0, 0.01, 24)[:, None]
    many = ph.ensemble(BODY, None, starts, name, field=problem.field, dt=DT, steps=STEPS, every=STEPS, progress=False)
    assert (many.failed < 0).all()
    assert rests(many.momentum[-1])


@pytest.mark.slow
def test_derivatives_at_rest() -> None:
    """The attitude at the end depends on the torques alone: the angle is push/stiffness."""
    found = ph.gradient(
        lambda R: R[2][1], controlled(), "mkrk(midpoint)", dt=DT, steps=STEPS, wrt=("params", "momentum")
    )
    np.testing.assert_allclose(found.params["torque"], [2.0, 0.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(found.momentum, 0, atol=1e-10)


def test_a_step_that_is_not_solved_still_says_so() -> None:
    """Far beyond the resolution of the spring corrections do not shrink, and they are not small."""
    done = run(controlled(), "mkrk(midpoint)", 40.0, 5)
    assert not done.fine
    assert not done.residual <= 0


def test_methods_are_found() -> None:
    """The lists above are not empty by a change of words."""
    assert len(implicit("velocity")) > 15
    assert all(isinstance(ph.methods[name], Method) for name in implicit("attitude"))
