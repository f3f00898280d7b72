"""Langevin dynamics in the stepper of many bodies: the noise of a body depends on seed, body and step only."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import polhode as ph
from polhode.compile.simd.vector_types import LANES
from polhode.kernels.so3 import matrix, unit
from polhode.numbers.arrays import components

RNG = np.random.default_rng(23)
NUMBER = 2 * LANES + 3
METHOD, DT = "baoab(rot123)", 0.0625
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
FRICTION = ((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5))
BATH = ph.fields.heat_bath(kT=1.5, friction=FRICTION, seed=3)
PI, TORQUE = RNG.normal(size=(2, NUMBER, 3))
Q = RNG.normal(size=(NUMBER, 4))
for _ in range(4):
    Q = np.stack(unit(components(Q)), axis=-1)


def stepper(method: str = METHOD, bodies: Any = MOMENTS, **more: Any) -> Any:
    return ph.batch_stepper(bodies, method, DT, **({"field": BATH} | more))


def moved(made: Any, *calls: dict[str, Any], number: int = NUMBER) -> tuple[np.ndarray, np.ndarray]:
    q, pi = Q[:number].copy(), PI[:number].copy()
    for call in calls:
        made.step(q, pi, **call)
    return q, pi


def assert_same(one: Any, two: Any) -> None:
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@ph.torque
def held(T):
    return T


@pytest.mark.parametrize("method", [METHOD, pytest.param("obabo(rot123)", marks=pytest.mark.slow)])
def test_however_it_is_cut_a_run_has_the_bits_of_an_ensemble(method: str) -> None:
    many = ph.ensemble(MOMENTS, Q, PI, method, field=BATH, dt=DT, steps=7)
    made = stepper(method)
    _, pi = moved(made, {"n": 4}, {}, {"n": 2})
    np.testing.assert_array_equal(pi, many.momentum[-1])
    assert made.steps_made == 7


@pytest.mark.parametrize("dts", [(DT, 2 * DT, DT), (DT, np.linspace(DT, 2 * DT, NUMBER), DT)], ids=["one", "each"])
def test_what_is_kept_between_calls_follows_the_step_and_the_bodies(dts: Any) -> None:
    """Against a new stepper for every call."""
    made, others = stepper(), 1.1 * MOMENTS
    q, pi = Q.copy(), PI.copy()
    for k, dt in enumerate(dts):
        found = made.step(q, pi, dt=dt, in_place=False)
        new = stepper()
        new.steps_made = k
        assert_same(found, new.step(q, pi, dt=dt, in_place=False))
        q, pi = found
    made.replace(np.arange(NUMBER), others)
    new = stepper(bodies=others)
    new.steps_made = len(dts)
    assert_same(made.step(q, pi, in_place=False), new.step(q, pi, in_place=False))


def test_held_torques_have_the_bits_of_an_ensemble() -> None:
    field = BATH + held((0.0, 0.0, 0.0))
    many = ph.ensemble(MOMENTS, Q, PI, METHOD, field=field, params={"T": TORQUE}, dt=DT, steps=3)
    _, pi = moved(stepper(), {"torque": TORQUE, "n": 2}, {"torque": TORQUE})
    np.testing.assert_array_equal(pi, many.momentum[-1])


def test_torques_for_each_sub_step() -> None:
    torques = RNG.normal(size=(3, NUMBER, 3))
    together = moved(stepper(), {"torque": torques, "n": 3})
    assert_same(together, moved(stepper(), *({"torque": torque} for torque in torques)))


def test_neighbours_do_not_matter() -> None:
    whole = moved(stepper(), {"n": 3})
    few = moved(stepper(bodies=MOMENTS[:5]), {"n": 3}, number=5)
    assert_same(few, [a[:5] for a in whole])


def test_one_body_for_all_still_has_noise_of_each() -> None:
    one, each = stepper(bodies=ph.Body(MOMENTS[0])), stepper(bodies=np.tile(MOMENTS[0], (NUMBER, 1)))
    assert_same(moved(one, {"n": 2}), moved(each, {"n": 2}))
    one.steps_made = 0
    fewer = moved(one, {"n": 2}, number=5)
    each.steps_made = 0
    assert_same(fewer, [a[:5] for a in moved(each, {"n": 2})])


def test_a_continued_run_is_the_same_run() -> None:
    whole = moved(stepper(), {"n": 5})
    first = stepper()
    q, pi = moved(first, {"n": 3})
    kept = pickle.loads(pickle.dumps(first))
    assert kept.steps_made == 3
    new = stepper()
    new.steps_made = 3
    for later in (kept, new):
        state = q.copy(), pi.copy()
        later.step(*state, n=2)
        assert_same(state, whole)


def twisted(t: Any, q: np.ndarray) -> np.ndarray:
    R: Any = matrix(components(q))
    return np.stack([R[2][1] + np.cos(t), -0.5 * R[0][2], 0.25 * R[1][0]], axis=-1)


@ph.torque
def twist(t, R):
    return (R[2][1] + math.cos(t), -0.5 * R[0][2], 0.25 * R[1][0])


@pytest.mark.parametrize(
    ("method", "calls"),
    [(METHOD, 4 + 2), pytest.param("obabo(rot123)", 4 + 2, marks=pytest.mark.slow), ("aboba(rot123)", 3 + 1)],
)
def test_functions_are_fields(method: str, calls: int) -> None:
    asked = []

    def counted(t: Any, q: np.ndarray) -> np.ndarray:
        asked.append(t)
        return twisted(t, q)

    many = ph.ensemble(MOMENTS, Q, PI, method, field=twist() + BATH, dt=DT, steps=4)
    q, pi = moved(stepper(method), {"torque": counted, "n": 3}, {"torque": counted, "t": 3 * DT})
    np.testing.assert_allclose(q, many.quaternion[-1], atol=1e-13)
    np.testing.assert_allclose(pi, many.momentum[-1], atol=1e-13)
    assert len(asked) == calls


# --- translation ------------------------------------------------------------------------------------

MASSES = RNG.uniform(1.0, 2.0, NUMBER)
X, P, FORCE = RNG.normal(size=(3, NUMBER, 3))
LINEAR = ph.fields.heat_bath(kT=0.7, friction=2.0, seed=3)


def rigid(**more: Any) -> Any:
    return stepper(**({"masses": MASSES, "translation_bath": LINEAR} | more))


def carried(made: Any, *calls: dict[str, Any]) -> tuple[np.ndarray, ...]:
    state = X.copy(), P.copy(), Q.copy(), PI.copy()
    for call in calls:
        made.step(*state, **call)
    return state


def test_held_forces_and_functions_agree_however_the_run_is_cut() -> None:
    given = {"force": FORCE, "torque": TORQUE}
    whole = carried(rigid(), given | {"n": 3})
    assert_same(whole, carried(rigid(), given, given | {"n": 2}))
    assert_same(whole[2:], moved(stepper(), {"torque": TORQUE, "n": 3}))
    asked = carried(
        rigid(), {"force": lambda t, x, q: (FORCE, TORQUE), "n": 2}, {"force": lambda t, x, q: (FORCE, TORQUE)}
    )
    for a, b in zip(whole, asked, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_velocities_in_columns_have_the_same_noise() -> None:
    form = {"vector": "omega", "layout": "columns"}
    state = [np.ascontiguousarray(a.T) for a in (X, P / MASSES[:, None], Q, PI / MOMENTS)]
    rigid(**form).step(*state, np.ascontiguousarray(FORCE.T), n=2)
    expected = carried(rigid(), {"force": FORCE, "n": 2})
    for a, b in zip(
        (state[0].T, state[1].T * MASSES[:, None], state[2].T, state[3].T * MOMENTS), expected, strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_without_its_bath_the_translation_has_no_noise() -> None:
    x, p, *_ = carried(rigid(translation_bath=None), {"force": FORCE, "n": 2})
    np.testing.assert_allclose(p, P + 2 * DT * FORCE, rtol=1e-13)
    np.testing.assert_allclose(x, X + (2 * DT * P + 2 * DT * DT * FORCE) / MASSES[:, None], rtol=1e-12)


def test_translation_and_rotation_reach_their_temperatures_independently() -> None:
    """Means over 6000 bodies, within three standard deviations; the same seed gives no correlation."""
    number, steps = 6000, 100
    state = np.zeros((number, 3)), np.zeros((number, 3)), np.tile(Q[0], (number, 1)), np.zeros((number, 3))
    made = ph.batch_stepper([MOMENTS[0]], METHOD, 0.1, field=BATH, masses=1.3, translation_bath=LINEAR)
    made.step(*state, n=steps)
    scaled = np.concatenate([state[1] / math.sqrt(0.7 * 1.3), state[3] / np.sqrt(1.5 * MOMENTS[0])], axis=1)
    assert np.abs((scaled**2).mean(0) - 1).max() < 3 * math.sqrt(2 / number)
    products = [(scaled[:, i] * scaled[:, j]).mean() for i in range(6) for j in range(i)]
    assert np.abs(products).max() < 3 / math.sqrt(number)
    diffusion = (state[0] ** 2).mean(0)
    damping, time = 2.0 / 1.3, 0.1 * steps
    decay = 1 - math.exp(-damping * time)
    exact = 2 * 0.7 / 2.0 * (time - 2 * decay / damping + (1 - math.exp(-2 * damping * time)) / (2 * damping))
    assert np.abs(diffusion / exact - 1).max() < 3 * math.sqrt(2 / number)


def test_every_body_may_have_its_own_translational_friction() -> None:
    own = {"translation_params": {"friction": np.where(np.arange(NUMBER) == 4, 50.0, 2.0)[:, None, None] * np.eye(3)}}
    changed, plain = carried(rigid(**own), {"n": 2}), carried(rigid(), {"n": 2})
    different = (changed[1] != plain[1]).any(axis=1)
    assert np.flatnonzero(different).tolist() == [4]


# --- friction of the translation that turns with the body -------------------------------------------

GAMMA = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.4], [0.0, -0.4, 4.0]])
TURNING = LINEAR.bind(friction=GAMMA)
COLD = {"field": BATH.bind(kT=0.0), "translation_bath": TURNING.bind(kT=0.0)}


def test_momenta_decay_by_the_friction_in_the_body() -> None:
    """Bodies that do not turn, at the temperature zero: p = R exp(-Gamma t/m) R^T p."""
    state = X.copy(), P.copy(), Q.copy(), np.zeros_like(PI)
    rigid(**COLD).step(*state, n=3)
    for i in (0, NUMBER - 1):
        R = np.array(matrix(tuple(Q[i])))
        exact = R @ scipy.linalg.expm(-3 * DT * GAMMA / MASSES[i]) @ R.T @ P[i]
        np.testing.assert_allclose(state[1][i], exact, rtol=1e-12)


@pytest.mark.parametrize("method", [METHOD, pytest.param("obabo(rot123)", marks=pytest.mark.slow)])
def test_bodies_that_turn_lose_their_momenta_to_second_order(method: str) -> None:
    def at(steps: int) -> np.ndarray:
        state = X.copy(), P.copy(), Q.copy(), PI.copy()
        rigid(method=method, **COLD).step(*state, FORCE, TORQUE, dt=1 / steps, n=steps)
        return np.concatenate(state[:2])

    errors = [np.abs(at(steps) - at(512)).max() for steps in (16, 32, 64)]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2, atol=0.25)


def test_anisotropic_friction_keeps_the_temperature_in_all_directions() -> None:
    """Means over 60000 bodies, within three standard deviations."""
    number = 60_000
    state = np.zeros((number, 3)), np.zeros((number, 3)), np.tile(Q[0], (number, 1)), np.zeros((number, 3))
    made = ph.batch_stepper([MOMENTS[0]], METHOD, 0.2, field=BATH, masses=1.3, translation_bath=TURNING)
    made.step(*state, n=50)
    scaled = state[1] / math.sqrt(0.7 * 1.3)
    assert np.abs((scaled**2).mean(0) - 1).max() < 3 * math.sqrt(2 / number)
    assert max(abs((scaled[:, i] * scaled[:, i - 1]).mean()) for i in range(3)) < 3 / math.sqrt(number)


def test_anisotropic_noise_is_the_same_however_the_run_is_cut() -> None:
    given = {"force": FORCE, "torque": TORQUE}
    whole = carried(rigid(translation_bath=TURNING), given | {"n": 3})
    assert_same(whole, carried(rigid(translation_bath=TURNING), given, given | {"n": 2}))
    asked = {"force": lambda t, x, q: (FORCE, TORQUE), "n": 3}
    assert_same(whole, carried(rigid(translation_bath=TURNING), asked))


REFUSED = {
    "no bath": (lambda: stepper(field=None), "needs a heat bath"),
    "no noise": (lambda: stepper("strang(rot123)"), "needs a method with noise"),
    "backwards": (lambda: moved(stepper(), {"dt": -0.1}), "forwards in time only"),
    "a field and a function": (
        lambda: moved(stepper(field=twist() + BATH), {"torque": twisted}), "takes torques as arrays",
    ),
    "count": (lambda: setattr(stepper(), "steps_made", -1), "steps_made must be a whole number from 0"),
    "no count": (lambda: stepper("fem", field=None).steps_made, "fem has no noise, so its steps are not counted"),
    "one body": (lambda: ph.stepper(ph.Body(MOMENTS[0]), METHOD, DT), "use ph.batch_stepper"),
    "temperature": (lambda: stepper(params={"kT": -np.ones(NUMBER)}), "kT, .*, must be 0 or more; got -1"),
    "negative friction": (lambda: rigid(translation_bath=LINEAR.bind(friction=-np.eye(3))), "positive semidefinite"),
    "no scheme": (
        lambda: rigid(method="bussi(rot123)"),
        "translation_bath needs Langevin dynamics, such as .*; got bussi",
    ),
    "a field and anisotropic friction": (
        lambda: carried(rigid(field=twist() + BATH, translation_bath=TURNING), {}), "takes torques as arrays",
    ),
    "no masses": (lambda: rigid(masses=None), "translation_bath acts on the centres of mass; also give masses"),
    "quiet": (lambda: rigid(method="fem", field=None), "translation_bath needs a method with noise"),
    "not a bath": (lambda: rigid(translation_bath=2.0), "translation_bath must be ph.fields.heat_bath"),
    "params alone": (
        lambda: rigid(translation_bath=None, translation_params={"kT": 1.0}), "go with translation_bath",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ph.InputError, match=message):
        call()
