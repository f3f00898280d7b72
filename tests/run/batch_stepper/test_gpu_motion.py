"""Translation, noise and thermostats in arrays on a GPU, by numba's simulator of one, against the processor."""

import re
import sys

import numpy as np
import pytest

import polhode as ph
from simulated_card import computed, on_card, share_memory

N, DT, KT = 5, 0.02, 1.3
EPS = np.finfo(float).eps
MASSES = np.linspace(1.0, 2.0, N)
BATH = ph.fields.heat_bath(kT=KT, friction=((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5)), seed=3)
MOMENTS = (1.0, 1.5, 2.0)


def tensors():
    rng = np.random.default_rng(4)
    axes = np.linalg.qr(rng.normal(size=(N, 3, 3)))[0]
    return np.einsum("nij,nj,nkj->nik", axes, rng.uniform(1, 1.9, (N, 3)), axes)


def start(form, dtype=float):
    """Positions, momenta, attitudes, angular momenta, forces and torques."""
    rng = np.random.default_rng(3)
    x, p, v, force = rng.normal(size=(4, N, 3))
    q, torque = rng.normal(size=(N, 4)), rng.normal(size=(2, N, 3))
    q /= np.linalg.norm(q, axis=1)[:, None]
    found = x, p, q, v, force, torque
    if form.get("layout") == "columns":
        found = tuple(array.swapaxes(-1, -2) for array in found)
    return [np.ascontiguousarray(array, dtype=dtype) for array in found]


def springs(t, x, q):
    """A force and a torque that depend on time, position and attitude."""
    torque = np.stack([q[:, 1] * x[:, 0], t - q[:, 2] * q[:, 3], 0 * t + q[:, 3]], axis=1)
    return (-x * (1 + q[:, :1])).view(type(x)), torque.view(type(q))


def springs_in_columns(t, x, q):
    force, torque = springs(t, x.T, q.T)
    return np.ascontiguousarray(force.T).view(type(x)), np.ascontiguousarray(torque.T).view(type(q))


BUFFER = {}


def shared_memory(function):
    """A function that writes its answers into the memory of those of another."""

    def answer(t, x, q):
        memory = BUFFER.setdefault(type(x), tuple(np.empty_like(x) for _ in range(2)))
        for array, value in zip(memory, function(t, x, q), strict=True):
            array[:] = value
        return memory

    return answer


def slow(t, x, q):
    return (np.cos(t) - 0.1 * x).view(type(x)), (0.2 * q[:, 1:]).copy().view(type(q))


def turning(t, q):
    return springs(t, q[:, 1:], q)[1]


COLUMNS = {"layout": "columns", "scalar": "last", "vector": "omega"}
BATHS = {"field": BATH, "translation_bath": ph.fields.heat_bath(kT=KT, friction=0.7, seed=5)}
TURNING = {"field": BATH, "translation_bath": ph.fields.heat_bath(kT=KT, friction=[0.5, 1.0, 2.0], seed=5)}
MOVING = {"masses": MASSES}
CHAINS = {"thermostat": ph.thermostats.nose_hoover(kT=KT, tau=0.5)}
RESCALING = {"thermostat": ph.thermostats.bussi(kT=KT, tau=0.5, seed=4)}
FUNCTION = {"force": springs, "n": 2, "t": 0.3}
HELD = {"force": ..., "torque": 0}
RESPA = ph.respa("strang(dmv4)", "strang(dmv4)", 2)
CASES = {
    "held": ("strang(dmv4)", tensors(), MOVING, HELD | {"n": 3}),
    "torque alone": ("strang(dmv4)", tensors(), {"masses": 2.0}, {"torque": 0}),
    "own steps": ("strang(dmv4)", tensors(), MOVING, HELD | {"n": 3, "dt": np.linspace(0.01, 0.03, N)}),
    "function": ("yoshida4(dmv4)", tensors(), MOVING, FUNCTION | {"frame": "space"}),
    "velocities": ("strang(dmv4)", tensors(), MOVING | COLUMNS, FUNCTION | {"force": springs_in_columns}),
    "singles": ("strang(dmv4)", tensors(), MOVING | {"dtype": np.float32}, FUNCTION),
    "not in place": ("strang(dmv4)", tensors(), MOVING, FUNCTION | {"in_place": False}),
    "baths": ("baoab(rot123)", MOMENTS, MOVING | BATHS, HELD | {"n": 3}),
    "baths and a function": ("baoab(rot123)", MOMENTS, MOVING | BATHS, FUNCTION),
    "noise of the rotation": ("baoab(rot123)", MOMENTS, MOVING | {"field": BATH}, FUNCTION),
    "fast and slow": (RESPA, tensors(), MOVING, {"force": shared_memory(springs), "slow": shared_memory(slow), "n": 2}),
    "fast and slow torques": (RESPA, tensors(), {}, {"torque": turning, "slow": 1, "n": 2}),
    "turning friction": ("baoab(rot123)", MOMENTS, MOVING | TURNING, HELD | {"n": 3}),
    "turning friction, function": ("baoab(rot123)", MOMENTS, MOVING | TURNING, FUNCTION),
    "friction alone": ("baoab(rot123)", MOMENTS, {"masses": 2.0} | TURNING, {"n": 2}),
    "chains": ("strang(dmv4)", tensors(), MOVING | CHAINS, FUNCTION),
    "chains of velocities": ("strang(dmv4)", tensors(), MOVING | CHAINS | {"vector": "omega"}, FUNCTION),
    "rescaling": ("strang(dmv4)", tensors(), MOVING | RESCALING, HELD | {"n": 2}),
    "rescaled rotation": ("strang(dmv4)", tensors(), RESCALING, {"torque": turning, "n": 2}),
    "chain of the rotation": ("strang(dmv4)", tensors(), CHAINS, {"torque": ..., "n": 2}),
}


def stepper_of(case):
    method, bodies, made, _ = CASES[case]
    return ph.batch_stepper(bodies, method, DT, **{k: x for k, x in made.items() if k != "dtype"})


def run(case, on=lambda x: x):
    """The states after three calls, and the numbers of the thermostat."""
    _, _, made, given = CASES[case]
    *states, force, torque = (on(array) for array in start(made, made.get("dtype", float)))
    states = states if "masses" in made else states[2:]
    given = dict(given)
    if given.get("force") is ...:
        given["force"] = force
    if "torque" in given and not callable(given["torque"]):
        given["torque"] = torque if given["torque"] is ... else torque[given["torque"]]
    if "slow" in given and not callable(given["slow"]):
        given["slow"] = torque[given["slow"]]
    stepper = stepper_of(case)
    for _ in range(3):
        new = stepper.step(*states, **given)
        assert (new[0] is states[0]) == given.get("in_place", True)
        states = new
    counts = [] if stepper.thermostat is None else [stepper.thermostat.state.ravel(), [stepper.thermostat.energy]]
    return [np.array(x) for x in (*states, *counts)]


# --- in the simulator ---------------------------------------------------------------------------------


def simulate(path):
    from polhode.run.batch_stepper import gpu_thermostat

    share_memory()
    gpu_thermostat.PARTS, gpu_thermostat.LAST = 3, 2  # several bodies in a sum, and several sums in one
    found = {f"{case} {i}": x for case in CASES for i, x in enumerate(run(case, on_card))}
    for case in ("rescaling", "baths"):
        for i, again in enumerate(run(case, on_card)):
            assert np.array_equal(found[f"{case} {i}"], again)
    found |= spoiled() | energies(on_card)
    refused()
    np.savez(path, **found)


def energies(on=lambda x: x):
    """The energies of two forces after a step, and kinetic energies and temperatures."""

    def with_energy(function):
        return lambda t, x, q: (*function(t, x, q), (x * x).sum() / 2 + q[0, 1])

    states, stepper = [on(array) for array in start({})[:4]], stepper_of("fast and slow")
    stepper.step(*states, with_energy(springs), slow=with_energy(slow))
    found = stepper.kinetic_energy(states[1], states[3]), stepper.temperature(states[1], states[3], fixed=3)
    assert all(type(energy) is type(states[1]) for energy in found[0])
    return {"energies": np.array([stepper.potential_energy, *found[0].total, *found[1]])}


def spoiled():
    """One body has a position that is not finite; a function then raises an error."""
    x, p, q, v, *_ = map(on_card, start({}))
    x[3, 1] = np.nan
    before, stepper = [np.array(a) for a in (x, p, q, v)], stepper_of("chains")
    stepper.step(x, p, q, v, springs)
    assert stepper.failed.tolist() == [3]
    kept = [np.array_equal(a[3], b[3], equal_nan=True) for a, b in zip((x, p, q, v), before, strict=True)]
    moved = [(np.delete(a, 3, 0) != np.delete(b, 3, 0)).any(axis=1) for a, b in zip((x, p, q, v), before, strict=True)]
    before, state = [np.array(a) for a in (x, p, q, v)], stepper.thermostat.state
    asked = []

    def once(t, x, q):
        asked.append(t)
        return springs(t, x, q) if len(asked) < 2 else 1 / 0

    with pytest.raises(ZeroDivisionError):
        stepper.step(x, p, q, v, once)
    assert np.array_equal(stepper.thermostat.state, state)
    assert not stepper.rotation.on_gpu().lost.copy_to_host().any()
    for a, b in zip((x, p, q, v), before, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    return {"kept": np.array(kept), "moved": np.array(moved)}


def refused():
    """One sentence for each wrong argument, and nothing is written."""
    given = start({})
    x, p, q, v, force, torque = (on_card(array.copy()) for array in given)
    states = x, p, q, v
    plain, own, noisy = stepper_of("held"), {"dt": np.full(N, 0.01)}, stepper_of("baths")
    for message, stepper, arguments, more in (
        ("p must be on the GPU", plain, (x, given[1], q, v), {}),
        ("x must have the shape (N, 3)", plain, (q, p, q, v), {}),
        ("x and p share memory", plain, (x, x, q, v), {}),
        ("p and q share memory", plain, (x, q.reshape(-1)[: 3 * N].reshape(N, 3), q, v), {}),
        ("force must be on the GPU", plain, (*states, given[4]), {}),
        ("force must have the shape (5, 3)", plain, (*states, torque), {}),
        ("(force, torque) or (force, torque, energy); it returned OnCard", plain, (*states, lambda t, x, q: x), {}),
        ("it has the shape (5, 3)", plain, (*states, lambda t, x, q: (*springs(t, x, q), x)), {}),
        ("the force of the function must be on the GPU", plain, (*states, lambda t, x, q: (given[0], x)), {}),
        ("with one dt for all bodies", plain, (*states, springs), own),
        ("so dt must be one number for all", stepper_of("chains"), (*states, force), own),
        ("runs forwards in time only", noisy, states, {"dt": -0.1}),
        ("all bodies are at rest", stepper_of("chains"), (x, *(on_card(np.zeros((N, 3))),), q, v * 0), {}),
    ):
        with pytest.raises(ph.InputError, match=re.escape(message)):
            stepper.step(*arguments, **more)
    assert noisy.steps_made == 0
    for a, b in zip(states, given, strict=False):
        assert np.array_equal(a, b)


# --- tests --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("gpu") / "simulated.npz")


@pytest.mark.parametrize("case", CASES)
def test_the_card_computes_what_the_processor_does(simulated, case):
    for i, expected in enumerate(run(case)):
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(simulated[f"{case} {i}"], expected, rtol=0, atol=64 * eps)


def test_energies_on_the_card_are_those_on_the_processor(simulated):
    np.testing.assert_allclose(simulated["energies"], energies()["energies"], rtol=1e-13)


def test_a_body_that_fails_keeps_its_whole_state(simulated):
    assert simulated["kept"].all()
    assert simulated["moved"].all()


def test_states_on_two_devices_are_refused():
    x, p, q, v, *_ = start({})
    with pytest.raises(ph.InputError, match="p must be on the GPU, as other states are"):
        stepper_of("held").step(on_card(x), p, q, v)


if __name__ == "__main__":
    simulate(sys.argv[1])
