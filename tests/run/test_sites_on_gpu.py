"""Sites of molecules in arrays on a GPU, by numba's simulator of one, against the processor."""

import pickle
import re
import sys

import numpy as np
import pytest

import polhode as ph
from simulated_card import OnCard, computed, on_card, share_memory

N = 5
POINTS = np.array([[0.0, 0.0, 0.0], [0.8165, 0.5774, 0.0], [-0.8165, 0.5774, 0.0]])
WATER = ph.sites([15.9994, 1.008, 1.008], POINTS)
BOTH = ph.sites([[15.9994, 1.008, 1.008], [3.0, 2.0, 1.0]], [POINTS, 1.5 * POINTS], np.array([0, 1, 1, 0, 1]))


def states(dtype=float):
    rng = np.random.default_rng(4)
    x, q, f = rng.normal(size=(N, 3)), rng.normal(size=(N, 4)), rng.normal(size=(N, 3, 3))
    return [array.astype(dtype) for array in (x, q / np.linalg.norm(q, axis=1)[:, None], f)]


def run(on=lambda x: x):
    """Positions, forces, and torques in both frames."""
    found = {}
    for name, sites, dtype in (("one kind", WATER, float), ("kinds", BOTH, float), ("singles", WATER, np.float32)):
        x, q, f = map(on, states(dtype))
        found[f"{name}: positions"] = sites.positions(x, q)
        for frame in ("body", "space"):
            force, torque = sites.gather(f, q, frame=frame)
            found |= {f"{name}: force {frame}": force, f"{name}: torque {frame}": torque}
    r, force, torque = on(np.empty((N, 3, 3))), on(np.empty((N, 3))), on(np.empty((N, 3)))
    x, q, f = map(on, states())
    assert WATER.positions(x, q, out=r) is r
    assert WATER.gather(f, q, out=(force, torque))[1] is torque
    return found | {"filled positions": r, "filled force": force, "filled torque": torque}


# --- in the simulator ---------------------------------------------------------------------------------


def simulate(path):
    share_memory()
    found = run(on_card)
    assert all(type(array) is OnCard for array in found.values())
    refused()
    x, q, f = map(on_card, states())
    q[2] *= 1.01
    found["spoiled"] = np.isnan(np.concatenate([WATER.positions(x, q)[:, 0], *WATER.gather(f, q)], axis=1))
    assert np.array_equal(pickle.loads(pickle.dumps(WATER)).arms, WATER.arms)
    np.savez(path, **found)


def refused():
    """One sentence for each wrong argument."""
    x, _, f = states()
    a, b, c = map(on_card, states())
    for message, call in {
        "x must be on the GPU, as q is": lambda: WATER.positions(x, b),
        "forces must be on the GPU, as q is": lambda: WATER.gather(f, b),
        "q must have the shape (N, 4); got (5, 3)": lambda: WATER.positions(a, a),
        "q must have the shape (5, 4); got (3, 4)": lambda: BOTH.positions(a[:3], b[:3]),
        "x must have the shape (5, 3); got (5, 4)": lambda: WATER.positions(b, b),
        "forces must have the shape (5, 3, 3); got (5, 2, 3)": lambda: WATER.gather(c[:, :2], b),
        "out must have the shape (5, 3); got (5, 4)": lambda: WATER.gather(c, b, out=(a, b)),
        "x must be a contiguous array": lambda: WATER.positions(on_card(np.zeros((N, 6)))[:, :3], b),
        "x and out share memory": lambda: WATER.positions(c[:1].reshape(3, 3)[:1], b[:1], out=c[:1]),
        "force and torque share memory": lambda: WATER.gather(c, b, out=(a, a)),
    }.items():
        with pytest.raises(ph.InputError, match=re.escape(message)):
            call()


# --- tests --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("gpu") / "simulated.npz")


def test_the_card_computes_what_the_processor_does(simulated):
    for name, expected in run().items():
        np.testing.assert_allclose(simulated[name], expected, rtol=0, atol=1e-14, err_msg=name)


def test_a_molecule_without_unit_quaternion_gets_nan(simulated):
    spoiled = simulated["spoiled"]
    assert spoiled[2, :3].all()  # its position
    assert not spoiled[2, 3:6].any()  # the sum of forces needs no attitude
    assert spoiled[2, 6:].all()
    assert not np.delete(spoiled, 2, axis=0).any()


if __name__ == "__main__":
    simulate(sys.argv[1])
