"""Multiple time steps: slow forces around several inner steps with fast ones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import polhode as ph

RNG = np.random.default_rng(8)
NUMBER = 4
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
Q = RNG.normal(size=(NUMBER, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]
START = RNG.normal(size=(NUMBER, 3)), RNG.normal(size=(NUMBER, 3)), Q, RNG.normal(size=(NUMBER, 3))
STATES = ("x", "p", "q", "pi")
SITES = ph.sites([1.0, 2.0, 1.5, 0.5], RNG.normal(size=(4, 3)))
SLOW, FAST = "strang(dmv6)", "strang(dmv6)"


def springs(stiffness: float) -> Any:
    """Every site is tied to the origin by a spring of its own strength; forces couple positions and attitudes."""
    strength = stiffness * np.array([1.0, 0.5, 2.0, 1.5])[:, None]

    def force(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return SITES.gather(-strength * SITES.positions(x, q), q)

    force.energy = lambda x, q: float((strength * SITES.positions(x, q) ** 2).sum() / 2)  # type: ignore[attr-defined]
    return force


fast, slow = springs(3.0), springs(0.2)


def both(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (a, b), (c, d) = fast(t, x, q), slow(t, x, q)
    return a + c, b + d


def ran(scheme: Any, dt: float, n: int, state: Any = START, **forces: Any) -> tuple[np.ndarray, ...]:
    stepper = ph.batch_stepper(MOMENTS, scheme, dt, masses=SITES.mass)
    return stepper.step(*(array.copy() for array in state), n=n, **forces)


def distance(a: Any, b: Any) -> float:
    return max(float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True))


EXACT: list[Any] = []


def exact() -> Any:
    """The motion to t = 0.8, by a method of order 6 without multiple time steps."""
    if not EXACT:
        EXACT.append(ran("blanes_moan6(dmv6)", 0.8 / 64, 64, force=both))
    return EXACT[0]


@pytest.mark.parametrize(
    ("outer", "inner", "n", "order"),
    [
        ("strang(dmv6)", "strang(dmv6)", 3, 2),
        ("strang(dmv6)", "blanes_moan4(dmv6)", 2, 2),
        ("blanes_moan4(dmv6)", "strang(dmv6)", 2, 2),
        ("blanes_moan4(dmv6)", "yoshida4(dmv6)", 2, 4),
    ],
)
def test_the_order_is_the_smaller_one(outer: str, inner: str, n: int, order: int) -> None:
    scheme = ph.respa(outer, inner, n)
    assert scheme.order == order
    errors = [distance(ran(scheme, 0.8 / m, m, force=fast, slow=slow), exact()) for m in (8, 16, 32)]
    measured = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(measured, order, atol=0.35)


def test_a_symmetric_scheme_goes_back() -> None:
    scheme = ph.respa(SLOW, FAST, 4)
    assert scheme.symmetric
    assert not scheme.symplectic
    assert ph.respa("strang(jacobi)", "strang(jacobi)", 4).symplectic
    there = ran(scheme, 0.1, 7, force=fast, slow=slow)
    back = ran(scheme, -0.1, 7, there, force=fast, slow=slow)
    assert distance(there, START) > 0.1
    assert distance(back, START) < 1e-12


def test_the_energy_does_not_drift() -> None:
    """The mean error of the second half of a long run is that of the first.

    The motion is chaotic, so the largest errors depend on the last bits of the processor; their ratio is 0.8 to 1.3 for
    neighbouring motions, that of the means 0.93 to 1.05, and 3 for a drift in proportion to time.
    """
    stepper = ph.batch_stepper(MOMENTS, ph.respa(SLOW, FAST, 4), 0.1, masses=SITES.mass)
    x, p, q, pi = (array.copy() for array in START)

    def energy() -> float:
        kinetic = (p**2).sum() / (2 * SITES.mass) + (pi**2 / MOMENTS).sum() / 2
        return float(kinetic + fast.energy(x, q) + slow.energy(x, q))

    found = [energy()]
    for _ in range(400):
        stepper.step(x, p, q, pi, fast, slow=slow, n=5)
        found.append(energy())
    errors = np.abs(np.array(found) - found[0])
    assert errors.max() < 0.02 * found[0]
    assert errors[200:].mean() < 1.15 * errors[:200].mean()


def test_energies_of_fast_and_slow_forces_add_up() -> None:
    def with_energy(function: Any) -> Any:
        return lambda t, x, q: (*function(t, x, q), function.energy(x, q))

    stepper = ph.batch_stepper(MOMENTS, ph.respa(SLOW, FAST, 4), 0.1, masses=SITES.mass)
    x, p, q, pi = (array.copy() for array in START)
    stepper.step(x, p, q, pi, with_energy(fast), slow=with_energy(slow), n=2)
    assert stepper.potential_energy == pytest.approx(fast.energy(x, q) + slow.energy(x, q), rel=1e-13)
    stepper.step(x, p, q, pi, with_energy(fast), slow=slow)
    assert stepper.potential_energy is None


def test_it_is_the_sequence_of_the_paper() -> None:
    """K_slow(h/2) [K_fast(h/2n) D(h/n) K_fast(h/2n)]^n K_slow(h/2), written with the free flow."""
    h, n = 0.2, 3
    x, p, q, pi = (array.copy() for array in START)
    free = ph.batch_stepper(MOMENTS, "dmv6", h / n, masses=SITES.mass)

    def kick(function: Any, s: float) -> None:
        force, torque = function(0.0, x, q)
        p[:], pi[:] = p + s * force, pi + s * torque

    kick(slow, h / 2)
    for _ in range(n):
        kick(fast, h / (2 * n))
        free.step(x, p, q, pi)
        kick(fast, h / (2 * n))
    kick(slow, h / 2)
    assert distance(ran(ph.respa(SLOW, FAST, n), h, 1, force=fast, slow=slow), (x, p, q, pi)) < 1e-14


def test_slow_forces_are_asked_once_a_step() -> None:
    calls = {"fast": 0, "slow": 0}

    def counting(name: str, function: Any) -> Any:
        def counted(t: Any, x: Any, q: Any) -> Any:
            calls[name] += 1
            return function(t, x, q)

        return counted

    ran(ph.respa(SLOW, FAST, 5), 0.1, 10, force=counting("fast", fast), slow=counting("slow", slow))
    assert calls == {"fast": 51, "slow": 11}


def test_times_are_those_of_the_parts() -> None:
    seen: list[float] = []

    def timed(t: Any, x: Any, q: Any) -> Any:
        seen.append(float(t))
        return slow(t, x, q)

    stepper = ph.batch_stepper(MOMENTS, ph.respa(SLOW, FAST, 2), 0.25, masses=1.0)
    stepper.step(*(array.copy() for array in START), fast, slow=timed, n=2, t=3.0)
    np.testing.assert_allclose(seen, [3.0, 3.25, 3.5])


def test_steppers_with_multiple_steps_are_pickled() -> None:
    stepper = ph.batch_stepper(MOMENTS, ph.respa(SLOW, FAST, 2), 0.1, masses=SITES.mass)
    again = pickle.loads(pickle.dumps(stepper))
    results = [s.step(*(array.copy() for array in START), fast, slow=slow) for s in (stepper, again)]
    assert distance(*results) == 0


# --- rotation alone ---------------------------------------------------------------------------------


def pulling(strength: float) -> Any:
    """Torques, in the body frame, of forces along a fixed direction on a point of every body."""

    def torque(t: float, q: np.ndarray) -> np.ndarray:
        w, x, y, z = q.T
        down = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)
        return strength * (1 + t / 2) * np.cross([0.3, 0.5, 1.0], down)

    return torque


turning, drifting = pulling(6.0), pulling(-0.8)


def turned(scheme: Any, dt: float, n: int, torque: Any, state: Any = START[2:], **more: Any) -> Any:
    stepper = ph.batch_stepper(MOMENTS, scheme, dt, thermostat=more.pop("thermostat", None))
    return stepper.step(*(array.copy() for array in state), torque, n=n, **more)


def together(t: Any, q: np.ndarray) -> np.ndarray:
    return turning(t, q) + drifting(t, q)


@pytest.mark.parametrize(("outer", "inner", "order"), [
    ("strang(dmv6)", "strang(dmv6)", 2), ("blanes_moan4(dmv6)", "yoshida4(dmv6)", 4),
])  # fmt: skip
def test_rotation_alone_has_the_order_of_the_scheme(outer: str, inner: str, order: int) -> None:
    scheme, fine = ph.respa(outer, inner, 3), turned("blanes_moan6(dmv6)", 0.8 / 64, 64, together)
    errors = [distance(turned(scheme, 0.8 / m, m, turning, slow=drifting), fine) for m in (8, 16, 32)]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), order, atol=0.35)
    assert scheme.order == order


def test_rotation_alone_goes_back() -> None:
    scheme = ph.respa(SLOW, FAST, 3)
    there = turned(scheme, 0.1, 7, turning, slow=drifting)
    back = turned(scheme, -0.1, 7, turning, there, slow=drifting, t=0.7)
    assert distance(there, START[2:]) > 0.1
    assert distance(back, START[2:]) < 1e-12


@pytest.mark.parametrize("frame", ["body", "space"])
def test_arrays_are_functions_that_do_not_change(frame: str) -> None:
    scheme, held = ph.respa(SLOW, FAST, 2), START[0]
    fast = {"body": turning, "space": lambda t, q: START[1]}[frame]
    one = turned(scheme, 0.1, 3, fast, slow=held, frame=frame)
    assert distance(one, turned(scheme, 0.1, 3, fast, slow=lambda t, q: held, frame=frame)) == 0
    other = turned(scheme, 0.1, 3, held, slow=turning)
    assert distance(other, turned(scheme, 0.1, 3, lambda t, q: held, slow=turning)) == 0


def test_with_a_thermostat_both_torques_act() -> None:
    """One inner step, and the same thermostat as the scheme without multiple time steps."""
    bussi = ph.thermostats.bussi(kT=1.0, tau=0.5, seed=2)
    one = turned(ph.respa(SLOW, FAST, 1), 0.1, 4, turning, slow=drifting, thermostat=bussi)
    assert distance(one, turned(SLOW, 0.1, 4, together, thermostat=bussi)) < 1e-13


def test_a_stepper_of_rotation_with_multiple_steps_is_pickled() -> None:
    stepper = ph.batch_stepper(MOMENTS, ph.respa(SLOW, FAST, 2), 0.1)
    both_ways = [
        s.step(*(array.copy() for array in START[2:]), turning, slow=drifting)
        for s in (stepper, pickle.loads(pickle.dumps(stepper)))
    ]
    assert distance(*both_ways) == 0


BAD = [
    (lambda: ph.respa("fem", FAST, 2), "outer must be a kick-drift scheme over a free flow, such as .* got fem"),
    (lambda: ph.respa(SLOW, "dmv6", 2), "inner must be a kick-drift scheme over a free flow, such as .* got dmv6"),
    (
        lambda: ph.respa(SLOW, "strang(rot123)", 2),
        "outer and inner must have the same free flow; got dmv6 and rot123",
    ),
    (lambda: ph.respa(SLOW, FAST, 0), "n must be a whole number of at least 1; got 0"),
    (lambda: ph.respa(SLOW, FAST, 2**40), "n must be at most 1000000; got 1099511627776"),
    (lambda: turned(ph.respa(SLOW, FAST, 2), 0.1, 1, turning), r"fast and slow torques: step\(q, pi, fast, slow=slow"),
    (lambda: turned(SLOW, 0.1, 1, turning, slow=drifting), "slow forces need multiple time steps"),
    (
        lambda: turned(ph.respa(SLOW, FAST, 2), 0.1, 2, turning, slow=np.zeros((2, NUMBER, 3))),
        "slow must have the shape",
    ),
    (
        lambda: ran(ph.respa(SLOW, FAST, 2), 0.1, 1, force=fast),
        r"needs two functions: step\(x, p, q, pi, fast, slow=slow",
    ),
    (lambda: ran(SLOW, 0.1, 1, force=fast, slow=slow), "slow forces need multiple time steps"),
    (lambda: ran(ph.respa(SLOW, FAST, 2), 0.1, 1, force=fast, slow=START[0]), "needs two functions"),
]


@pytest.mark.parametrize(("call", "sentence"), BAD)
def test_bad_input_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ph.InputError, match=sentence):
        call()
