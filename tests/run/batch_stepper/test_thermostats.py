"""Thermostats of the stepper of many bodies: conserved energies, continued runs, temperatures, and what is refused."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import polhode as ph

RNG = np.random.default_rng(29)
NUMBER, METHOD, KT = 6, "strang(rot123)", 1.3
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
MASSES = RNG.uniform(1.0, 2.0, NUMBER)
Q = RNG.normal(size=(NUMBER, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]
X, P, PI, FORCE, TORQUE = RNG.normal(size=(5, NUMBER, 3))
E3 = np.array([0.0, 0.0, 1.0])

CHAINS = ph.thermostats.nose_hoover(kT=KT, tau=0.5)
RESCALING = ph.thermostats.bussi(kT=KT, tau=0.5, seed=4)
BOTH = pytest.mark.parametrize("thermostat", [CHAINS, RESCALING], ids=["chains", "rescaling"])


def up(q: np.ndarray) -> np.ndarray:
    """The vertical in the body frame, R^T e3."""
    w, x, y, z = q.T
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)


def forces(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the potential x^2/2 + (1 + x_3) R33 of every body."""
    height = x[:, 2:]
    return -x - up(q)[:, 2:] * E3, -(1 + height) * np.cross(E3, up(q))


def energy(x: np.ndarray, p: np.ndarray, q: np.ndarray, pi: np.ndarray) -> float:
    kinetic = (p**2).sum(axis=1) / MASSES / 2 + (pi**2 / MOMENTS).sum(axis=1) / 2
    return float((kinetic + (x**2).sum(axis=1) / 2 + (1 + x[:, 2]) * up(q)[:, 2]).sum())


def stepper(thermostat: Any, dt: float = 0.05, **more: Any) -> Any:
    return ph.batch_stepper(MOMENTS, METHOD, dt, **({"masses": MASSES, "thermostat": thermostat} | more))


def start() -> tuple[np.ndarray, ...]:
    return X.copy(), P.copy(), Q.copy(), PI.copy()


def deviation(thermostat: Any, dt: float, time: float = 4.0) -> float:
    """Largest change of the energy of bodies and thermostat."""
    made, state = stepper(thermostat, dt), start()
    before, found = energy(*state), 0.0
    for _ in range(round(time / (4 * dt))):
        made.step(*state, forces, n=4)
        found = max(found, abs(energy(*state) + made.thermostat.energy - before))
    return found


def test_the_energy_with_that_of_the_chains_is_conserved_to_second_order() -> None:
    errors = [deviation(CHAINS, dt) for dt in (0.02, 0.01)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)
    assert errors[1] < 0.002 * abs(energy(*start()))


def test_the_energy_with_that_of_the_rescaling_changes_by_the_errors_of_the_steps_only() -> None:
    assert deviation(RESCALING, 0.01) < 0.01
    made, state = stepper(RESCALING, 0.01), start()
    made.step(*state, forces, n=400)
    assert abs(made.thermostat.energy) > 1


def test_chains_run_backwards() -> None:
    made, state = stepper(CHAINS), start()
    made.step(*state, forces, n=20)
    assert np.abs(made.thermostat.state).max() > 0.1
    made.step(*state, forces, n=20, dt=-0.05)
    for found, given in zip(state, start(), strict=True):
        np.testing.assert_allclose(found, given, atol=1e-11)
    np.testing.assert_allclose(made.thermostat.state, 0, atol=1e-11)


@BOTH
def test_however_it_is_cut_or_continued_it_is_the_same_run(thermostat: Any) -> None:
    whole, one = start(), stepper(thermostat)
    one.step(*whole, FORCE, TORQUE, n=6)
    parts, two = start(), stepper(thermostat)
    two.step(*parts, FORCE, TORQUE, n=3)
    kept = pickle.loads(pickle.dumps(two))
    fresh = stepper(thermostat)
    fresh.thermostat.state = two.thermostat.state
    for later in (two, kept, fresh):
        state = tuple(a.copy() for a in parts)
        later.step(*state, FORCE, TORQUE, n=3)
        for a, b in zip(state, whole, strict=True):
            np.testing.assert_array_equal(a, b)
        assert later.thermostat.energy == one.thermostat.energy


@BOTH
def test_rotation_alone_with_arrays_functions_and_angular_velocities(thermostat: Any) -> None:
    found = []
    for torque in (TORQUE, np.stack([TORQUE] * 3), lambda t, q: TORQUE):
        made, q, pi = stepper(thermostat, masses=None), Q.copy(), PI.copy()
        made.step(q, pi, torque, n=3)
        found.append((q, pi))
    made, q, omega = stepper(thermostat, masses=None, vector="omega"), Q.copy(), PI / MOMENTS
    made.step(q, omega, TORQUE, n=3)
    found.append((q, omega * MOMENTS))
    for q, pi in found[1:]:
        np.testing.assert_allclose(q, found[0][0], atol=1e-13)
        np.testing.assert_allclose(pi, found[0][1], atol=1e-13)


def test_an_explicit_method_takes_functions_too() -> None:
    found = []
    for torque in (TORQUE, lambda t, q: TORQUE):
        made, q, pi = ph.batch_stepper(MOMENTS, "fem", 0.05, thermostat=CHAINS), Q.copy(), PI.copy()
        made.step(q, pi, torque, n=3)
        found.append(pi)
    np.testing.assert_allclose(*found, atol=1e-13)


def test_neighbouring_steps_share_one_answer() -> None:
    calls: list[Any] = []

    def counted(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
        calls.append(t)
        return forces(t, x, q)

    stepper(CHAINS).step(*start(), counted, n=5)
    assert len(calls) == 6


def test_an_error_or_a_failure_spoils_nothing() -> None:
    made, state = stepper(CHAINS), start()

    def fails(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
        if t > 0.07:
            raise RuntimeError("no contact")
        return forces(t, x, q)

    with pytest.raises(RuntimeError, match="no contact"):
        made.step(*state, fails, n=3)
    assert (made.thermostat.state == 0).all()
    broken = FORCE.copy()
    broken[2] = np.nan
    with pytest.warns(ph.ResultWarning, match="1 of 6 bodies failed: 2"):
        made.step(*state, broken, n=2)
    for a, b in zip(state, start(), strict=True):
        np.testing.assert_array_equal(a[2], b[2])
        assert np.isfinite(a).all()


def test_a_cold_bath_without_noise_cools_exponentially() -> None:
    made, q, pi = stepper(ph.thermostats.bussi(kT=0.0, tau=0.5), masses=None), Q.copy(), PI.copy()
    made.step(q, pi, n=10)
    before, after = ((momenta**2 / MOMENTS).sum() for momenta in (PI, pi))
    assert after / before == pytest.approx(math.exp(-10 * 0.05 / 0.5), rel=1e-3)


def test_linear_bodies_have_two_degrees_of_rotation() -> None:
    made = ph.batch_stepper([1.0, 1.0, 0.0], "fem", 0.1, masses=1.0, thermostat=RESCALING)
    made.step(*(a.copy() for a in (X, P, Q, PI * [1.0, 1.0, 0.0])))
    assert made.thermostat.degrees == (3 * NUMBER, 2 * NUMBER)


def at_rest() -> Any:
    return stepper(CHAINS, masses=None).step(Q.copy(), 0 * PI)


REFUSED = {
    "temperature": (lambda: ph.thermostats.bussi(kT=-1.0, tau=1.0), "kT, .*, must be 0 or more; got -1.0"),
    "zero": (lambda: ph.thermostats.nose_hoover(kT=0.0, tau=1.0), "kT must be positive; got 0.0"),
    "tau": (lambda: ph.thermostats.nose_hoover(kT=1.0, tau=-1.0), "tau must be positive; got -1.0"),
    "seed": (lambda: ph.thermostats.bussi(kT=1.0, tau=1.0, seed=0.5), "seed must be a whole number"),
    "chain": (lambda: ph.thermostats.nose_hoover(kT=1.0, tau=1.0, chain=0), "chain must be a whole number"),
    "degrees": (lambda: ph.thermostats.bussi(kT=1.0, tau=1.0, degrees=(1, 2, 3)), "degrees must be a whole number"),
    "pair": (
        lambda: stepper(ph.thermostats.nose_hoover(kT=1.0, tau=1.0, degrees=9)), "must be a pair, of translation"
    ),
    "too many": (
        lambda: stepper(ph.thermostats.bussi(kT=1.0, tau=1.0, degrees=(9, 9)), masses=None), "one number for bodies"
    ),
    "kind": (lambda: stepper(300.0), "thermostat must be ph.thermostats.bussi"),
    "noise": (
        lambda: ph.batch_stepper(
            MOMENTS, "baoab(rot123)", 0.1, field=ph.fields.heat_bath(kT=1.0, friction=1.0), thermostat=CHAINS
        ),
        "has a heat bath; give a method without noise",
    ),
    "own steps": (lambda: stepper(CHAINS).step(*start(), dt=np.full(NUMBER, 0.1)), "dt must be one number for all"),
    "backwards": (lambda: stepper(RESCALING).step(*start(), dt=-0.1), "forwards in time only; got dt = -0.1"),
    "diverging": (lambda: stepper(CHAINS).step(*start(), dt=1e3, n=9), "chains diverge in steps of dt = 1000 with tau"),
    "diverging backwards": (lambda: stepper(CHAINS).step(*start(), dt=-1e3, n=9), "diverge in steps of dt = -1000"),
    "at rest": (at_rest, "all bodies are at rest"),
    "state": (lambda: setattr(stepper(CHAINS).thermostat, "state", [1.0]), r"finite numbers of shape \(2, 2, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ph.InputError, match=message):
        call()
