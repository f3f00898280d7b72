"""Arrays on a GPU, by numba's simulator of one: the same kernels, not compiled, against the processor."""

import re
import sys
import warnings

import numpy as np
import pytest

import polhode as ph
from simulated_card import computed, on_card, share_memory

N = 5
EPS = np.finfo(float).eps


@ph.potential
def height(R, *, mgl):
    return mgl * R[2][2]


@ph.torque
def pressure(R, sun, normals, areas):
    s = R.T @ sun

    def facet(normal, area):
        return ph.math.cross(normal, -area * max(ph.math.dot(normal, s), 0.0) * s)

    return ph.total(facet, normals, areas)


TIMES = np.linspace(0.0, 1.0, 80)
TABLE = ph.fields.tabulated(times=TIMES, torques=np.stack([np.sin(k * TIMES) for k in (1, 2, 3)], axis=1))
NORMALS = np.random.default_rng(8).normal(size=(70, 3))
FACETS = pressure(sun=[0.6, 0.0, 0.8], normals=NORMALS, areas=np.linspace(0.01, 0.02, 70))


def weight(t, q):
    """A torque that depends on time and attitude."""
    return np.stack([q[:, 1] * q[:, 0], t - q[:, 2] * q[:, 3], 0 * t + q[:, 3]], axis=1).view(type(q))


@ph.torque
def not_a_formula(R, k):
    return np.array([k, 0.0, 0.0]) if R[0, 0] > 0 else np.array([0.0, k, 0.0])


def states(form, dtype=float):
    rng = np.random.default_rng(3)
    q, v, torque = rng.normal(size=(N, 4)), rng.normal(size=(N, 3)), rng.normal(size=(2, N, 3))
    q /= np.linalg.norm(q, axis=1)[:, None]
    if form.get("layout") == "columns":
        q, v, torque = q.T, v.T, torque.transpose(0, 2, 1)
    return [np.ascontiguousarray(x, dtype=dtype) for x in (q, v, torque)]


def tensors():
    rng = np.random.default_rng(4)
    axes = np.linalg.qr(rng.normal(size=(N, 3, 3)))[0]
    return np.einsum("nij,nj,nkj->nik", axes, rng.uniform(1, 1.9, (N, 3)), axes)


BATH = ph.fields.heat_bath(kT=1.5, friction=((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5)), seed=3)
THERMOSTAT = ph.fields.nose_hoover(kT=1.5, tau=0.1, chain=np.linspace(-1, 1, 6).reshape(2, 3))
COLUMNS = {"layout": "columns", "scalar": "last", "vector": "omega"}
OWN_STEPS = np.linspace(0.01, 0.03, N)
CASES = {
    "held": ("fem", [1.0, 1.5, 2.0], {}, {"torque": 0, "frame": "space"}),
    "sub-steps": ("fem", tensors(), COLUMNS, {"torque": ..., "n": 2}),
    "own steps": ("strang(dmv4)", tensors(), {}, {"torque": 1, "dt": OWN_STEPS, "n": 3}),
    "singles": ("fem", [1.0, 1.5, 2.0], {"dtype": np.float32}, {"torque": 0}),
    "free": ("dmv4", tensors(), COLUMNS, {"n": 2}),
    "field": ("strang(dmv4)", [1.0, 1.5, 2.0], {"field": height, "params": {"mgl": np.linspace(1, 2, N)}}, {"n": 2}),
    "table": ("strang(dmv4)", [1.0, 1.5, 2.0], {"field": TABLE}, {"n": 2, "t": 0.4}),
    "function": ("yoshida4(dmv4)", tensors(), {}, {"torque": weight, "n": 2, "t": 0.3, "frame": "space"}),
    "function of rates": ("strang(dmv4)", tensors(), {"vector": "omega"}, {"torque": weight}),
    "noise": ("baoab(rot123)", [1.0, 1.5, 2.0], {"field": BATH}, {"torque": 0, "n": 3}),
    "noise and a function": ("baoab(rot123)", [1.0, 1.5, 2.0], {"field": BATH}, {"torque": weight, "n": 2, "t": 0.3}),
    "chain": ("nose_hoover(rot123)", [1.0, 1.5, 2.0], {"field": THERMOSTAT}, {"torque": 0, "n": 2}),
    "not in place": ("fem", [1.0, 1.5, 2.0], {}, {"torque": 0, "in_place": False}),
}
SLOW = {
    "noise of sub-steps": ("obabo(dmv4)", tensors(), COLUMNS | {"field": BATH}, {"torque": ..., "n": 2}),
    "sum over rows": ("strang(dmv4)", tensors(), COLUMNS | {"field": FACETS}, {"n": 2}),
    "velocity rescaling": ("bussi(rot123)", [1.0, 1.5, 2.0], {"field": BATH}, {"torque": 0, "n": 2}),
    "brownian": ("brownian(2)", [1.0, 1.5, 2.0], {"field": BATH + height(mgl=1.5)}, {"n": 2}),
}
"""The processor's code for the first ones other tests need, too."""

EVERY_CASE = CASES | SLOW


def run(case, on=lambda x: x):
    method, bodies, made, given = EVERY_CASE[case]
    form = {k: x for k, x in made.items() if k != "dtype"}
    q, v, torque = states(form, made.get("dtype", float))
    given = dict(given)
    if "torque" in given and not callable(given["torque"]):
        given["torque"] = on(torque if given["torque"] is ... else np.ascontiguousarray(torque[given["torque"]]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ph.ResultWarning)
        stepper = ph.batch_stepper(bodies, method, 0.02, **form)
    assert any("jumps or kinks" in str(x.message) for x in told) == (case == "table")
    q, v = on(q), on(v)
    if stepper.method.noise is not None or stepper.method.thermostat is not None:
        stepper.step(q, v, n=2)  # later steps have other random numbers, and chains that moved
    new = stepper.step(q, v, **given)
    assert (new[0] is q) == given.get("in_place", True)
    return [np.array(x) for x in (*new, *([stepper.chains] if stepper.method.thermostat is not None else []))]


# --- in the simulator ---------------------------------------------------------------------------------


def simulate(path):
    share_memory()
    found = {f"{case} {i}": x for case in EVERY_CASE for i, x in enumerate(run(case, on_card))}
    found |= spoiled()
    refused()
    np.savez(path, **found)


def spoiled():
    """One body has a torque that is not finite."""
    q, v, torque = map(on_card, states({}))
    torque, before = on_card(np.array(torque[0])), np.array(q)
    torque[3, 1] = np.nan
    stepper = ph.batch_stepper([1.0, 1.5, 2.0], "fem", 0.02)
    stepper.step(q, v, torque)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stepper.step(q, v, torque)
    assert [x.category for x in told] == [ph.ResultWarning]
    assert "1 of 5 bodies failed: 3, in an earlier call" in str(told[0].message)
    return {"failed": stepper.failed, "kept": q[3] == before[3], "moved": q[:3] != before[:3]}


def refused():
    """One sentence for each wrong argument, and nothing is written."""
    q, v, torque = states({})
    a, b, T = on_card(q.copy()), on_card(v.copy()), on_card(torque[0].copy())
    stepper = ph.batch_stepper([1.0, 1.5, 2.0], "fem", 0.02)
    strided = on_card(np.zeros((N, 8)))[:, :4]
    for message, given in {
        "pi must be on the GPU, as q is": (a, v),
        "torque must be on the GPU, as q is": (a, b, torque[0]),
        "q must have the shape (N, 4)": (b, a),
        "q must hold unit quaternions; that of body 0": (on_card(2 * q), b),
        "q must be contiguous": (strided, b),
        "q must hold float64 or float32 numbers; got int64": (on_card(np.ones((N, 4), dtype=np.int64)), b),
        "q and pi must have the same dtype": (a, on_card(v.astype(np.float32))),
        "q and pi share memory": (a, a.reshape(-1)[: 3 * N].reshape(N, 3)),
        "torque must have the shape (5, 3)": (a, b, on_card(np.ones((2, 3)))),
        "torque must be a contiguous array": (a, b, on_card(np.ones((N, 3), dtype=np.int64))),
        "pi and torque share memory": (a, b, b),
        "on a GPU a torque function has two arguments": (a, b, lambda t, q, v: T),
    }.items():
        method = "strang(dmv4)" if callable(given[-1]) else None
        one = ph.batch_stepper([1.0, 1.5, 2.0], method, 0.02) if method else stepper
        with pytest.raises(ph.InputError, match=re.escape(message)):
            one.step(*given)
    with pytest.raises(ph.InputError, match="only formulas run on a GPU"):
        ph.batch_stepper([1.0, 1.5, 2.0], "fem", 0.02, field=not_a_formula(k=1.0)).step(a, b)
    assert np.array_equal(a, q)
    assert np.array_equal(b, v)


# --- tests --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpu") / "simulated.npz"
    return computed(__file__, path)


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)])
def test_the_card_computes_what_the_processor_does(simulated, case):
    for i, expected in enumerate(run(case)):
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(simulated[f"{case} {i}"], expected, rtol=0, atol=64 * eps)


def test_a_body_that_fails_keeps_its_state(simulated):
    assert simulated["failed"].tolist() == [3]
    assert simulated["kept"].all()
    assert simulated["moved"].any(axis=1).all()


def test_arrays_on_two_devices_are_refused():
    q, v, _ = states({})
    with pytest.raises(ph.InputError, match="pi is in the memory of a GPU, and the states are not"):
        ph.batch_stepper([1.0, 1.5, 2.0], "fem", 0.02).step(q, on_card(v))


if __name__ == "__main__":
    simulate(sys.argv[1])
