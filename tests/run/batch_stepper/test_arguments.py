"""Bad arguments of the stepper of many bodies: one sentence each, and nothing is written."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import polhode as ph

NUMBER = 20
RNG = np.random.default_rng(3)
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
Q = RNG.normal(size=(NUMBER, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]
PI, TORQUE = RNG.normal(size=(2, NUMBER, 3))


def stepper(**form: Any) -> Any:
    return ph.batch_stepper(MOMENTS, "fem", 0.1, **form)


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def far(body: int) -> np.ndarray:
    q = Q.copy()
    q[body] *= 1.01
    return q


STATE = np.zeros((NUMBER, 7))
STATE[:, :4], STATE[:, 4:] = Q, PI
FLAT = np.concatenate([Q.ravel(), PI.ravel()])

BAD: dict[str, tuple[Any, Any, Any, str]] = {
    "shape": (Q[:, :3].copy(), PI, TORQUE, r"q must have the shape \(N, 4\); got \(20, 3\)"),
    "columns": (
        np.ascontiguousarray(Q.T), PI, TORQUE, r"q must have the shape .*; got \(4, 20\); for \(4, N\) give layout='col"
    ),
    "number": (Q[:5].copy(), PI, TORQUE, r"q must have the shape \(N, 4\) with N = 20 bodies; got \(5, 4\)"),
    "pi": (Q, PI[:5].copy(), TORQUE, r"pi must have the shape \(N, 3\) with N = 20 bodies; got \(5, 3\)"),
    "torque": (Q, PI, TORQUE[:5], r"torque must have the shape \(N, 3\) with N = 20 bodies.*; got \(5, 3\)"),
    "dtype": (Q.astype(int), PI, TORQUE, "q must hold float64 or float32 numbers; got int64"),
    "dtypes": (Q.astype(np.float32), PI, TORQUE, "q and pi must have the same dtype; got float32 and float64"),
    "text": (Q, PI, "north", "torque must have the shape"),
    "complex": (Q, PI, TORQUE * 1j, "torque must have the shape"),
    "list": (Q.tolist(), PI, TORQUE, "q must be an array of NumPy, PyTorch or JAX .*; got list"),
    "strided": (STATE[:, :4], STATE[:, 4:], TORQUE, "q must be contiguous; its strides are"),
    "aliased": (FLAT[: 4 * NUMBER].reshape(-1, 4), FLAT[NUMBER : 4 * NUMBER].reshape(-1, 3), TORQUE, "share memory"),
    "torque aliased": (Q, PI, PI, "pi and torque share memory, so one would overwrite the other"),
    "read-only": (frozen(Q.copy()), PI, TORQUE, "q is read-only, and the step is made in place; pass in_place=False"),
    "length": (far(13), PI, TORQUE, "q must hold unit quaternions; that of body 13 is .* of length 1.01"),
    "nan": (np.full_like(Q, np.nan), PI, TORQUE, "q must hold unit quaternions; that of body 0 is"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays(name: str) -> None:
    q, pi, torque, message = BAD[name]
    before = [np.array(a, copy=True) for a in (q, pi)]
    with pytest.raises(ph.InputError, match=message):
        stepper().step(q, pi, torque)
    for array, old in zip((q, pi), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"dt": 0.0}, "dt must be a number other than zero"),
        ({"dt": np.ones(3)}, "dt must be one number, or one for each of the 20 bodies; got 3"),
        ({"dt": "soon"}, "dt must be a number"),
        ({"n": 0}, "n must be a whole number"),
        ({"n": 1.5}, "n must be a whole number"),
        ({"t": float("nan")}, "t must be finite"),
        ({"frame": "world"}, "frame must be 'body' or 'space'"),
        ({"frame": ["body"]}, "frame must be 'body' or 'space'"),
        ({"in_place": 1}, "in_place must be True or False"),
    ],
)
def test_bad_calls(call: dict[str, Any], message: str) -> None:
    q, pi = Q.copy(), PI.copy()
    with pytest.raises(ph.InputError, match=message):
        stepper().step(q, pi, TORQUE, **call)
    np.testing.assert_array_equal(q, Q)


def test_bad_constructions() -> None:
    for form, message in (
        ({"layout": "diagonal"}, "layout must be 'rows' or 'columns'"),
        ({"scalar": 0}, "scalar must be 'first' or 'last'"),
        ({"vector": "spin"}, "vector must be 'momentum' or 'omega'"),
        ({"masses": -1.0}, "masses must be positive"),
        ({"masses": [1.0, 2.0]}, "masses must be one for each of the 20 bodies; got 2"),
    ):
        with pytest.raises(ph.InputError, match=message):
            stepper(**form)
    with pytest.raises(ph.InputError, match="low parts of the state"):
        ph.batch_stepper(MOMENTS, "compensated(dmv10)", 0.1)
    with pytest.raises(ph.InputError, match=r"give dt, here or to ph\.batch_stepper"):
        ph.batch_stepper(MOMENTS, "fem").step(Q.copy(), PI.copy())
    tensors = np.array([np.diag(m) for m in MOMENTS])
    tensors[3, 0, 1] = 0.5
    with pytest.raises(ph.InputError, match="body 3: the inertia tensor must be symmetric"):
        ph.batch_stepper(tensors, "fem", 0.1)
    with pytest.raises(ph.InputError, match="does not take a torque that is constant over a step"):
        ph.batch_stepper(MOMENTS, "dmv6", 0.1).step(Q.copy(), PI.copy(), TORQUE)


def test_bad_replacements() -> None:
    for indices, bodies, message in (
        ([20], MOMENTS[:1], "indices must be whole numbers from 0 to 19"),
        ([1, 1], MOMENTS[:2], "indices must be different"),
        ([1, 2, 3], MOMENTS[:2], "replace needs one body for each of the 3 indices; got 2"),
    ):
        with pytest.raises(ph.InputError, match=message):
            stepper().replace(indices, bodies)


def test_torques_that_are_not_finite_are_reported() -> None:
    torque, q, pi = TORQUE.copy(), Q.copy(), PI.copy()
    torque[[4, 19], 1] = np.nan
    many = stepper()
    with pytest.warns(ph.ResultWarning, match=r"2 of 20 bodies failed: 4, 19; body 4: its torque is \[.*nan.*\]"):
        many.step(q, pi, torque)
    assert many.failed.tolist() == [4, 19]
    np.testing.assert_array_equal(q[[4, 19]], Q[[4, 19]])
    whole = Q.copy(), PI.copy()
    many.step(*whole, TORQUE)
    assert many.failed.size == 0
    others = np.setdiff1d(np.arange(NUMBER), [4, 19])
    np.testing.assert_array_equal(q[others], whole[0][others])
    np.testing.assert_array_equal(pi[others], whole[1][others])


def test_a_quaternion_that_was_spoiled_between_calls_is_reported() -> None:
    q, pi, many = Q.copy(), PI.copy(), stepper()
    many.step(q, pi, TORQUE)
    q[7] *= 2
    spoiled = q[7].copy()
    with pytest.warns(ph.ResultWarning, match="body 7: its quaternion is .*, of length 2"):
        many.step(q, pi, TORQUE)
    np.testing.assert_array_equal(q[7], spoiled)


def test_an_array_that_became_read_only_between_calls_is_refused() -> None:
    q, pi, many = Q.copy(), PI.copy(), stepper()
    many.step(q, pi, TORQUE)
    q.flags.writeable = False
    before = q.copy()
    with pytest.raises(ph.InputError, match="q is read-only"):
        many.step(q, pi, TORQUE)
    np.testing.assert_array_equal(q, before)


def test_arrays_that_differ_from_those_of_the_last_call() -> None:
    """The short way of repeated calls checks what the long way checks."""
    q, pi, many = Q.copy(), PI.copy(), stepper()
    many.step(q, pi, TORQUE)
    for torque, message in (
        (pi, "pi and torque share memory"),
        (TORQUE[:5], r"torque must have the shape \(N, 3\) with N = 20 bodies"),
        (np.full((NUMBER, 3), "x"), "torque must have the shape"),
    ):
        many.step(q, pi, TORQUE)
        before = q.copy()
        with pytest.raises(ph.InputError, match=message):
            many.step(q, pi, torque)
        np.testing.assert_array_equal(q, before)
    expected = Q.copy(), PI.copy()
    for torque in (TORQUE, TORQUE.copy(), np.asfortranarray(TORQUE), TORQUE.astype(np.float32), None, TORQUE):
        stepper().step(*expected, torque)
    q, pi = Q.copy(), PI.copy()
    for torque in (TORQUE, TORQUE.copy(), np.asfortranarray(TORQUE), TORQUE.astype(np.float32), None, TORQUE):
        many.step(q, pi, torque)
    np.testing.assert_array_equal(q, expected[0])
    np.testing.assert_array_equal(pi, expected[1])


@pytest.mark.parametrize("kind", [np.asfortranarray, np.float32, np.array])
def test_torques_changed_between_calls_count(kind: Any) -> None:
    one, two, torque = (Q.copy(), PI.copy()), (Q.copy(), PI.copy()), kind(TORQUE)
    many = stepper()
    for _ in range(3):
        torque *= 2
        many.step(*one, torque)
        stepper().step(*two, torque.astype(float))
    np.testing.assert_allclose(one[1], two[1], rtol=1e-15)


def test_linear_bodies_have_no_momentum_along_their_axis() -> None:
    rods = ph.batch_stepper([0.0, 1.0, 1.0], "strang(dmv6)", 0.1)
    with pytest.raises(ph.InputError, match="body 0 is linear and must have no pi along its axis"):
        rods.step(Q.copy(), PI.copy())


def test_pickled() -> None:
    one, two = (Q.copy(), PI.copy()), (Q.copy(), PI.copy())
    many = stepper(scalar="last")
    many.step(*one, TORQUE)
    pickle.loads(pickle.dumps(many)).step(*two, TORQUE)
    np.testing.assert_array_equal(one[0], two[0])


def test_jax_arrays_are_functional() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        q, pi, torque = (jax.numpy.asarray(a) for a in (Q, PI, TORQUE))
        new_q, new_pi = stepper().step(q, pi, torque)
        assert isinstance(new_q, jax.Array)
        assert new_q.dtype == np.float64
        expected = Q.copy(), PI.copy()
        stepper().step(*expected, TORQUE)
        np.testing.assert_array_equal(new_q, expected[0])
        np.testing.assert_array_equal(new_pi, expected[1])
        np.testing.assert_array_equal(q, Q)


def test_torch_tensors_are_changed_in_place() -> None:
    torch = pytest.importorskip("torch")
    q, pi, torque = (torch.from_numpy(a.copy()) for a in (Q, PI, TORQUE))
    found = stepper().step(q, pi, torque)
    assert found[0] is q
    expected = Q.copy(), PI.copy()
    stepper().step(*expected, TORQUE)
    np.testing.assert_array_equal(q.numpy(), expected[0])
    np.testing.assert_array_equal(pi.numpy(), expected[1])


@ph.torque
def relay(omega):
    return [-0.1 * ph.where(w > 0, 1.0, -1.0) for w in omega]


@pytest.mark.parametrize("field", [ph.fields.thruster([0.0, 0.0, 1.0], [1.0, 2.0]), relay()], ids=["time", "state"])
def test_steps_that_cross_jumps_are_told(field):
    with pytest.warns(ph.ResultWarning, match="has jumps or kinks .* do not end there"):
        ph.batch_stepper([1.0, 1.5, 2.0], "fem", 0.01, field=field)
