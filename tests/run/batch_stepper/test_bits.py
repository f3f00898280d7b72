"""The states of the stepper of many bodies are those of `ph.ensemble`, whatever else is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.kernels.so3 import unit
from polhode.numbers.arrays import components
from representatives import slow_unless

RNG = np.random.default_rng(17)
NUMBER = 45
"""Two or five groups of lanes and an incomplete one."""


def units(number: int) -> np.ndarray:
    """Quaternions that an ensemble leaves as they are when it normalises them."""
    q = RNG.normal(size=(4 * number, 4))
    for _ in range(4):
        q = np.stack(unit(components(q)), axis=-1)
    same = (np.stack(unit(components(q)), axis=-1) == q).all(axis=1)
    return q[same][:number].copy()


MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
Q, PI, TORQUE = units(NUMBER), RNG.normal(size=(NUMBER, 3)), RNG.normal(scale=0.3, size=(NUMBER, 3))
DT = 0.0625


@ph.torque
def in_body(T):
    return T


@ph.torque(frame="space")
def in_space(T):
    return T


FIELDS = {"body": in_body((0.0, 0.0, 0.0)), "space": in_space((0.0, 0.0, 0.0))}


def ensemble(method: Any, steps: int = 1, frame: str | None = None, torque: Any = TORQUE, **more: Any) -> Any:
    held = {} if frame is None else {"field": FIELDS[frame], "params": {"T": torque}}
    bodies, dt = more.pop("bodies", MOMENTS), more.pop("dt", DT)
    many = ph.ensemble(bodies, Q, PI, method, dt=dt, steps=steps, **(held | more))
    assert (many.failed < 0).all()
    return many.quaternion[-1], many.momentum[-1]


def stepped(method: Any, *torque: Any, bodies: Any = MOMENTS, **call: Any) -> tuple[np.ndarray, np.ndarray]:
    q, pi = Q.copy(), PI.copy()
    stepper = ph.batch_stepper(bodies, method, DT, **call.pop("form", {}))
    found = stepper.step(q, pi, *torque, **call)
    assert found[0] is q
    assert found[1] is pi
    return found


def assert_same(one: Any, two: Any) -> None:
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


ABLE = [m for m in ph.methods.values() if m.has_step and not (m.memory or m.compensated)]
TAKING = [m for m in ABLE if m.takes("attitude")]


@pytest.mark.parametrize("name", slow_unless({"fem", "imidm", "buss2"}, [m.name for m in TAKING]))
def test_held_torques_give_the_bits_of_an_ensemble(name: str) -> None:
    assert_same(stepped(name, TORQUE, n=3), ensemble(name, 3, "body"))


@pytest.mark.parametrize("name", slow_unless({"fem"}, [m.name for m in TAKING]))
def test_torques_held_in_space_give_the_bits_of_an_ensemble(name: str) -> None:
    assert_same(stepped(name, TORQUE, frame="space"), ensemble(name, 1, "space"))


@pytest.mark.parametrize("name", slow_unless({"dmv6"}, [m.name for m in ABLE]))
def test_free_bodies_give_the_bits_of_an_ensemble(name: str) -> None:
    assert_same(stepped(name, n=2), ensemble(name, 2))


@pytest.mark.parametrize("method", ["strang(dmv6)", "yoshida4(dmv6)"])
def test_schemes_give_the_bits_of_an_ensemble(method: str) -> None:
    assert_same(stepped(method, TORQUE), ensemble(method, 1, "body"))


def test_many_calls_are_many_steps() -> None:
    q, pi = Q.copy(), PI.copy()
    stepper = ph.batch_stepper(MOMENTS, "fem", DT)
    for _ in range(5):
        stepper.step(q, pi, TORQUE)
    assert_same((q, pi), ensemble("fem", 5, "body"))


def test_torques_for_each_sub_step() -> None:
    torques = RNG.normal(scale=0.3, size=(3, NUMBER, 3))
    q, pi = Q.copy(), PI.copy()
    stepper = ph.batch_stepper(MOMENTS, "fem", DT)
    for torque in torques:
        stepper.step(q, pi, torque)
    assert_same(stepped("fem", torques, n=3), (q, pi))


def test_tensors_keep_the_users_axes() -> None:
    turns = np.linalg.qr(RNG.normal(size=(NUMBER, 3, 3)))[0]
    tensors = turns * MOMENTS[:, None, :] @ turns.swapaxes(1, 2)
    for frame in ("body", "space"):
        assert_same(stepped("fem", TORQUE, bodies=tensors, frame=frame), ensemble("fem", 1, frame, bodies=tensors))
    listed = [ph.Body(tensor) for tensor in tensors]
    assert_same(stepped("fem", TORQUE, bodies=listed), stepped("fem", TORQUE, bodies=tensors))


def test_steps_of_their_own() -> None:
    dt = RNG.uniform(0.01, 0.1, NUMBER)
    assert_same(stepped("fem", TORQUE, dt=dt), ensemble("fem", 1, "body", dt=dt))


def test_fields_with_parameters_of_each_body() -> None:
    @ph.potential
    def weight(R, mgl):
        return mgl * R[2][2]

    mgl = RNG.uniform(0.5, 2, NUMBER)
    form = {"field": weight, "params": {"mgl": mgl}}
    assert_same(stepped("fem", form=form, n=2), ensemble("fem", 2, **form))
    with_torque = stepped("fem", TORQUE, form=form, n=2)
    both = ph.ensemble(
        MOMENTS, Q, PI, "fem", dt=DT, steps=2, field=weight(1.0) + FIELDS["body"], params={"mgl": mgl, "T": TORQUE}
    )
    assert_same(with_torque, (both.quaternion[-1], both.momentum[-1]))


@pytest.mark.parametrize("method", ["fem", "imidm"])
def test_neighbours_order_and_number_of_bodies_do_not_matter(method: str) -> None:
    expected = stepped(method, TORQUE)
    for chosen in (RNG.permutation(NUMBER), np.array([7]), np.arange(17), np.full(40, 3)):
        q, pi = Q[chosen], PI[chosen]
        ph.batch_stepper(MOMENTS[chosen], method, DT).step(q, pi, TORQUE[chosen])
        assert_same((q, pi), (expected[0][chosen], expected[1][chosen]))


def test_threads_do_not_matter() -> None:
    times = 100
    q, pi, torque = (np.tile(a, (times, 1)) for a in (Q, PI, TORQUE))
    ph.batch_stepper(np.tile(MOMENTS, (times, 1)), "fem", DT).step(q, pi, torque, n=3)
    expected = stepped("fem", TORQUE, n=3)
    assert_same((q, pi), [np.tile(a, (times, 1)) for a in expected])


def test_one_body_for_all() -> None:
    body = ph.Body([1.0, 1.2, 1.5])
    assert_same(stepped("fem", TORQUE, bodies=body), ensemble("fem", 1, "body", bodies=body))


# --- forms of the arrays ------------------------------------------------------------------------------


def test_columns() -> None:
    q, pi = np.ascontiguousarray(Q.T), np.ascontiguousarray(PI.T)
    ph.batch_stepper(MOMENTS, "fem", DT, layout="columns").step(q, pi, np.ascontiguousarray(TORQUE.T))
    assert_same((q.T, pi.T), stepped("fem", TORQUE))


def test_scalar_last() -> None:
    q, pi = np.ascontiguousarray(Q[:, [1, 2, 3, 0]]), PI.copy()
    ph.batch_stepper(MOMENTS, "fem", DT, scalar="last").step(q, pi, TORQUE)
    assert_same((q[:, [3, 0, 1, 2]], pi), stepped("fem", TORQUE))


def test_angular_velocities() -> None:
    turns = np.linalg.qr(RNG.normal(size=(NUMBER, 3, 3)))[0]
    tensors = turns * MOMENTS[:, None, :] @ turns.swapaxes(1, 2)
    q, omega = Q.copy(), np.linalg.solve(tensors, PI[..., None])[..., 0]
    ph.batch_stepper(tensors, "fem", DT, vector="omega").step(q, omega, TORQUE)
    expected = stepped("fem", TORQUE, bodies=tensors)
    np.testing.assert_allclose(q, expected[0], atol=1e-14)
    np.testing.assert_allclose((tensors @ omega[..., None])[..., 0], expected[1], atol=1e-14)


def test_single_precision_arrays_have_doubles_inside() -> None:
    q, pi, torque = Q.astype(np.float32), PI.astype(np.float32), TORQUE.astype(np.float32)
    start = q.astype(float) / np.linalg.norm(q.astype(float), axis=1)[:, None]
    many = ph.ensemble(
        MOMENTS,
        start,
        pi.astype(float),
        "fem",
        field=FIELDS["body"],
        params={"T": torque.astype(float)},
        dt=DT,
        steps=9,
    )
    ph.batch_stepper(MOMENTS, "fem", DT).step(q, pi, torque, n=9)
    assert q.dtype == pi.dtype == np.float32
    np.testing.assert_allclose(q, many.quaternion[-1], atol=6.1e-8, rtol=6.1e-8)  # one rounding to single precision
    np.testing.assert_allclose(pi, many.momentum[-1], atol=6.1e-8, rtol=6.1e-8)


def test_out_of_place() -> None:
    q, pi = Q.copy(), PI.copy()
    new = ph.batch_stepper(MOMENTS, "fem", DT).step(q, pi, TORQUE, in_place=False)
    assert_same((q, pi), (Q, PI))
    assert_same(new, stepped("fem", TORQUE))


def test_replaced_bodies() -> None:
    stepper = ph.batch_stepper(MOMENTS, "fem", DT)
    stepper.step(Q.copy(), PI.copy(), TORQUE)
    other = MOMENTS.copy()
    other[[3, 40]] = [[1.0, 1.1, 1.3], [1.4, 1.5, 1.6]]
    stepper.replace([3, 40], other[[3, 40]])
    q, pi = Q.copy(), PI.copy()
    stepper.step(q, pi, TORQUE)
    assert_same((q, pi), stepped("fem", TORQUE, bodies=other))
    turn = ph.Body([[2.0, 0.3, 0.0], [0.3, 2.5, 0.1], [0.0, 0.1, 3.0]])
    stepper.replace(5, turn)
    q, pi = Q.copy(), PI.copy()
    stepper.step(q, pi, TORQUE)
    bodies = [turn if i == 5 else ph.Body(m) for i, m in enumerate(other)]
    assert_same((q, pi), stepped("fem", TORQUE, bodies=bodies))
