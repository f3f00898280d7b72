"""Torques and forces from functions: they are asked where the method needs them, so its order is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.kernels.so3 import matrix
from polhode.numbers.arrays import components

RNG = np.random.default_rng(5)
NUMBER = 5
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
Q = RNG.normal(size=(NUMBER, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]
PI = RNG.normal(size=(NUMBER, 3))


@ph.torque
def twist(t, R):
    return (R[2][1] + math.cos(t), -0.5 * R[0][2], 0.25 * R[1][0])


@ph.torque
def damped(t, R, omega):
    return (R[2][1] - omega[0] / 4, -omega[1] / 8, math.sin(t) - omega[2] / 8)


def twisted(t: Any, q: np.ndarray) -> np.ndarray:
    R: Any = matrix(components(q))
    return np.stack([R[2][1] + np.cos(t), -0.5 * R[0][2], 0.25 * R[1][0]], axis=-1)


def damping(t: Any, q: np.ndarray, pi: np.ndarray) -> np.ndarray:
    R: Any = matrix(components(q))
    x, y, z = components(pi / MOMENTS)
    return np.stack([R[2][1] - x / 4, -y / 8, np.sin(t) - z / 8], axis=-1)


def reference(method: str, field: Any, **run: Any) -> tuple[np.ndarray, np.ndarray]:
    many = ph.ensemble(MOMENTS, Q, PI, method, field=field(), t0=0.5, **run)
    return many.quaternion[-1], many.momentum[-1]


def asked(method: str, function: Any, *, bodies: Any = MOMENTS, **call: Any) -> tuple[np.ndarray, np.ndarray]:
    q, pi = Q.copy(), PI.copy()
    ph.batch_stepper(bodies, method).step(q, pi, function, t=0.5, **call)
    return q, pi


@pytest.mark.parametrize("method", ["strang(dmv6)", "yoshida4(dmv6)", "fem", "mkrk(rk4)"])
def test_functions_are_fields(method: str) -> None:
    for got, expected in zip(
        asked(method, twisted, dt=0.1, n=3), reference(method, twist, dt=0.1, steps=3), strict=True
    ):
        np.testing.assert_allclose(got, expected, atol=1e-13)


def test_functions_of_the_velocity() -> None:
    for got, expected in zip(
        asked("mkrk(rk4)", damping, dt=0.1, n=3), reference("mkrk(rk4)", damped, dt=0.1, steps=3), strict=True
    ):
        np.testing.assert_allclose(got, expected, atol=1e-13)


def test_tensors_and_the_space_frame() -> None:
    turns = np.linalg.qr(RNG.normal(size=(NUMBER, 3, 3)))[0]
    tensors = turns * MOMENTS[:, None, :] @ turns.swapaxes(1, 2)
    many = ph.ensemble(tensors, Q, PI, "strang(dmv6)", field=twist(), t0=0.5, dt=0.1, steps=2)

    def in_space(t: Any, q: np.ndarray) -> np.ndarray:
        return np.einsum("ijn,nj->ni", np.array(matrix(components(q))), twisted(t, q))

    for method in ("strang(dmv6)", "fem"):
        if method == "fem":
            many = ph.ensemble(tensors, Q, PI, "fem", field=twist(), t0=0.5, dt=0.1, steps=2)
        q, pi = asked(method, in_space, bodies=tensors, dt=0.1, n=2, frame="space")
        np.testing.assert_allclose(q, many.quaternion[-1], atol=1e-13)
        np.testing.assert_allclose(pi, many.momentum[-1], atol=1e-13)


def test_neighbouring_kicks_share_one_answer() -> None:
    calls: list[Any] = []

    def counted(t: Any, q: np.ndarray) -> np.ndarray:
        calls.append(t)
        return twisted(t, q)

    asked("strang(dmv6)", counted, dt=0.1, n=5)
    assert calls == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_steps_of_their_own() -> None:
    dt = RNG.uniform(0.05, 0.1, NUMBER)
    for method in ("strang(dmv6)", "fem"):
        expected = reference(method, twist, dt=dt, steps=2)
        for got, right in zip(asked(method, twisted, dt=dt, n=2), expected, strict=True):
            np.testing.assert_allclose(got, right, atol=1e-13)


def test_a_torque_that_is_not_finite_stops_its_body_alone() -> None:
    def broken(t: Any, q: np.ndarray) -> np.ndarray:
        torque = twisted(t, q)
        torque[2] = np.nan
        return torque

    for method in ("strang(dmv6)", "fem"):
        stepper = ph.batch_stepper(MOMENTS, method, 0.1)
        q, pi = Q.copy(), PI.copy()
        with pytest.warns(ph.ResultWarning, match="1 of 5 bodies failed: 2"):
            stepper.step(q, pi, broken, t=0.5)
        assert stepper.failed.tolist() == [2]
        np.testing.assert_array_equal(q[2], Q[2])
        np.testing.assert_array_equal(pi[2], PI[2])
        whole = asked(method, twisted, dt=0.1)
        others = [0, 1, 3, 4]
        np.testing.assert_array_equal(q[others], whole[0][others])


def test_an_error_of_the_function_changes_nothing() -> None:
    def fails(t: Any, q: np.ndarray) -> np.ndarray:
        if t > 0.55:
            raise RuntimeError("no contact")
        return twisted(t, q)

    q, pi = Q.copy(), PI.copy()
    with pytest.raises(RuntimeError, match="no contact"):
        ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1).step(q, pi, fails, t=0.5)
    np.testing.assert_array_equal(q, Q)
    np.testing.assert_array_equal(pi, PI)


@pytest.mark.parametrize("method", ["imidm", "dmv6"])
def test_methods_that_cannot_ask(method: str) -> None:
    with pytest.raises(ph.InputError, match=r"cannot ask a function for torques; methods that can: strang\(jacobi\)"):
        ph.batch_stepper(MOMENTS, method, 0.1).step(Q.copy(), PI.copy(), twisted)


def test_a_function_of_the_momentum_needs_a_method_that_takes_it() -> None:
    with pytest.raises(ph.InputError, match=r"takes torques torque\(t, q\), and the function has three arguments"):
        ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1).step(Q.copy(), PI.copy(), damping)


# --- translation --------------------------------------------------------------------------------------

MASSES = RNG.uniform(1.0, 2.0, NUMBER)
X, P = RNG.normal(size=(NUMBER, 3)), RNG.normal(size=(NUMBER, 3))


def coupled(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Force and torque of a potential x.R e/2 + x^2/2 with a unit vector e of the body."""
    R: Any = np.moveaxis(np.array(matrix(components(q))), -1, 0)
    e = np.array([0.6, 0.0, 0.8])
    arm = np.einsum("nij,nj->ni", R.swapaxes(1, 2), x)
    return -x - 0.5 * R @ e, -0.5 * np.cross(e, arm)


def energy(x: np.ndarray, p: np.ndarray, q: np.ndarray, pi: np.ndarray) -> np.ndarray:
    R: Any = np.moveaxis(np.array(matrix(components(q))), -1, 0)
    kinetic = (p**2).sum(axis=1) / MASSES / 2 + (pi**2 / MOMENTS).sum(axis=1) / 2
    return kinetic + (x**2).sum(axis=1) / 2 + 0.5 * (x * (R @ np.array([0.6, 0.0, 0.8]))).sum(axis=1)


def moved(method: str, dt: float, n: int) -> tuple[np.ndarray, ...]:
    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    ph.batch_stepper(MOMENTS, method, dt, masses=MASSES).step(*state, coupled, n=n)
    return state


@pytest.mark.parametrize(("method", "order"), [("strang(dmv10)", 2), ("yoshida4(dmv10)", 4)])
def test_the_order_of_the_scheme_holds_for_the_coupled_motion(method: str, order: int) -> None:
    exact = np.concatenate(moved("yoshida4(dmv10)", 1 / 512, 512), axis=1)
    errors = [np.abs(np.concatenate(moved(method, 1 / n, n), axis=1) - exact).max() for n in (16, 32)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_the_energy_of_the_coupled_motion_does_not_drift() -> None:
    before = energy(X, P, Q, PI)
    first, last = (energy(*moved("strang(dmv10)", 0.05, n)) - before for n in (1000, 2000))
    assert np.abs(first).max() < 0.01
    assert np.abs(last).max() < 0.01


def test_held_forces_are_a_parabola() -> None:
    x, p, q, pi = X.copy(), P.copy(), Q.copy(), PI.copy()
    force, torque = RNG.normal(size=(2, NUMBER, 3))
    ph.batch_stepper(MOMENTS, "fem", 0.1, masses=MASSES).step(x, p, q, pi, force, torque, n=2)
    np.testing.assert_allclose(p, P + 0.2 * force, rtol=1e-14)
    np.testing.assert_allclose(x, X + 0.2 * P / MASSES[:, None] + 0.02 * force / MASSES[:, None], rtol=1e-13)
    alone = Q.copy(), PI.copy()
    ph.batch_stepper(MOMENTS, "fem", 0.1).step(*alone, torque, n=2)
    np.testing.assert_array_equal(q, alone[0])
    np.testing.assert_array_equal(pi, alone[1])


def test_velocities_in_columns() -> None:
    x, v, q, omega = (np.ascontiguousarray(a.T) for a in (X, P / MASSES[:, None], Q, PI / MOMENTS))

    def columns(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        force, torque = coupled(t, x.T, q.T)
        return force.T, torque.T

    stepper = ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1, masses=MASSES, vector="omega", layout="columns")
    stepper.step(x, v, q, omega, columns, n=3)
    expected = moved("strang(dmv6)", 0.1, 3)
    for got, right in zip((x.T, v.T * MASSES[:, None], q.T, omega.T * MOMENTS), expected, strict=True):
        np.testing.assert_allclose(got, right, atol=1e-13)


def test_a_force_that_is_not_finite_stops_its_body_alone() -> None:
    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    force = np.ones((NUMBER, 3))
    force[3, 1] = math.inf
    stepper = ph.batch_stepper(MOMENTS, "fem", 0.1, masses=MASSES)
    with pytest.warns(ph.ResultWarning, match="bodies failed: 3"):
        stepper.step(*state, force)
    assert stepper.failed.tolist() == [3]
    for got, start in zip(state, (X, P, Q, PI), strict=True):
        np.testing.assert_array_equal(got[3], start[3])
        assert (got[[0, 1, 2, 4]] != start[[0, 1, 2, 4]]).any()


def potential(x: np.ndarray, q: np.ndarray) -> float:
    return float(energy(x, 0 * P, q, 0 * PI).sum())


@pytest.mark.parametrize("kind", [float, np.float64, np.array], ids=["float", "scalar", "array"])
def test_the_energy_of_the_forces_is_that_of_the_end_of_the_step(kind: Any) -> None:
    def with_energy(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
        return *coupled(t, x, q), kind(potential(x, q))

    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv10)", 0.05, masses=MASSES)
    assert stepper.potential_energy is None
    stepper.step(*state, with_energy, n=3)
    assert stepper.potential_energy == potential(state[0], state[2])
    for got, right in zip(state, moved("strang(dmv10)", 0.05, 3), strict=True):
        np.testing.assert_array_equal(got, right)
    total = stepper.potential_energy + stepper.kinetic_energy(state[1], state[3]).total.sum()
    assert total == pytest.approx(energy(*state).sum(), rel=1e-14)
    stepper.step(*state, coupled)
    assert stepper.potential_energy is None
    stepper.step(*state, with_energy)
    stepper.step(*state)
    assert stepper.potential_energy is None


def test_an_energy_in_memory_that_the_function_fills_again_is_kept() -> None:
    memory = np.zeros(())

    def filling(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
        memory[...] = potential(x, q)
        return *coupled(t, x, q), memory

    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv10)", 0.05, masses=MASSES)
    stepper.step(*state, filling)
    memory[...] = np.nan
    assert stepper.potential_energy == potential(state[0], state[2])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: x, r"must return \(force, torque\) or \(force, torque, energy\); it returned ndarray"),
        (lambda x: (x,), r"must return \(force, torque\) or \(force, torque, energy\); it returned 1 values"),
        (lambda x: (x, x, 1.0, x), r"or \(force, torque, energy\); it returned 4 values"),
        (lambda x: (x, x, x[:, 0]), r"must be one number, the sum over all bodies; it has the shape \(5,\)"),
        (lambda x: (x, x, "low"), r"must be one number, the sum over all bodies; it is of the type str"),
        (
            lambda x: (x[:2], x),
            r"the force of the function must have the shape \(N, 3\) with N = 5 bodies; got \(2, 3\)",
        ),
        (
            lambda x: (x, x[:2], 1.0),
            r"the torque of the function must have the shape \(N, 3\) with N = 5 bodies; got \(2, 3\)",
        ),
    ],
)
def test_answers_of_a_force_function_that_are_refused(answer: Any, message: str) -> None:
    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv10)", 0.05, masses=MASSES)
    with pytest.raises(ph.InputError, match=message):
        stepper.step(*state, lambda t, x, q: answer(x))
    for got, start in zip(state, (X, P, Q, PI), strict=True):
        np.testing.assert_array_equal(got, start)
