"""Arrays of many bodies, checked and copied in one pass: the same copies and refusals as one after the other."""

import numpy as np
import pytest

import polhode as ph
from polhode.compile.batch import intake, layout
from polhode.compile.simd.vector_types import LANES
from polhode.run.ensemble.inertia import PLAIN, inertia_of
from polhode.run.ensemble.inputs import Inputs
from polhode.run.ensemble.memory import HOST, CardMemory
from polhode.run.ensemble.start import UNIT, Start, quaternions

N = 3 * LANES + 5


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(layout, "FEW", LANES)
    monkeypatch.setattr(layout, "MANY", 0)


@ph.potential
def weight(R, *, mgl):
    return mgl * R[2][2]


def crowd():
    rng = np.random.default_rng(4)
    q = rng.normal(size=(N, 4))
    q *= (1 + 1e-9) / np.linalg.norm(q, axis=1)[:, None]
    return rng.uniform(1, 1.9, (N, 3)), q, rng.normal(size=(N, 3)), rng.uniform(1, 2, (N, 1))


def taken_in(arrays, empty=layout.aligned):
    return intake.copied((PLAIN, UNIT), arrays, [empty] * 4)


def misaligned(shape):
    """An array that begins in the middle of a cache line."""
    whole = layout.aligned((int(np.prod(shape)) + 1,))
    return whole[1:].reshape(shape)


@pytest.mark.parametrize("empty", [layout.aligned, misaligned])
def test_copies_are_those_of_single_passes(empty):
    given = crowd()
    moments, q, m, mgl = taken_in(given, empty)
    np.testing.assert_array_equal(moments, inertia_of(given[0]).moments)
    np.testing.assert_array_equal(q, quaternions(given[1]))
    np.testing.assert_array_equal(m, given[2])
    np.testing.assert_array_equal(mgl, given[3])
    assert not any(np.shares_memory(x, y) for x, y in zip(given, (moments, q, m, mgl), strict=True))


@pytest.mark.parametrize("i", [0, LANES, N - 1])
@pytest.mark.parametrize(("k", "wrong"), [(0, 0.0), (0, np.nan), (1, 3.0), (1, np.nan), (2, np.nan), (3, -np.inf)])
def test_a_wrong_number_is_seen(k, wrong, i):
    given = crowd()
    given[k][i, 0] = wrong
    assert [x is None for x in taken_in(given)] == [j == k for j in range(4)]


def test_only_rows_of_doubles_of_all_bodies_are_taken():
    moments, q, m, mgl = crowd()
    assert [x is None for x in taken_in((moments[:1], q, None, mgl.tolist()))] == [True, False, True, True]
    assert [x is None for x in taken_in((moments, q.astype(np.float32), m[:, ::-1], mgl))] == [False, True, True, False]
    mgl.flags.writeable = False
    assert [x is None for x in taken_in((moments, q[:, :3], m, mgl))] == [False, True, False, True]


def batch(arrays, device):
    moments, q, m, mgl = arrays
    return Inputs(moments, q, Start("momenta", m), weight, {"mgl": mgl.reshape(-1)}, 0.0, 1.0).batch(1.0, device)


def test_the_bodies_for_a_gpu_are_those_for_the_processor():
    given = crowd()
    here, there = (batch(given, device) for device in ("cpu", "cuda"))
    for name in ("moments", "quaternion", "momentum", "values"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    assert there.plain
    given[2][:] = 0
    assert here.momentum.any(), "a change of the user's array after the call changes nothing"
    assert there.momentum.any()


@pytest.mark.parametrize(
    ("k", "wrong"), [(0, -1.0), (0, np.nan), (1, 3.0), (1, np.nan), (2, np.nan), (2, np.inf), (3, np.nan)]
)
def test_what_is_wrong_is_said_in_the_same_words(k, wrong):
    given, said = crowd(), []
    given[k][N - 2, 0] = wrong
    for device in ("cpu", "cuda"):
        with pytest.raises(ph.InputError) as fault:
            batch(given, device)
        said.append(str(fault.value))
    assert said[0] == said[1]


def test_bodies_that_are_not_plain_are_checked_one_by_one():
    given = crowd()
    given[0][7] = [1.0, 1.0, 0.0]
    given[2][7] = [1.0, 0.0, 0.0]
    there = batch(given, "cuda")
    assert not there.plain
    np.testing.assert_array_equal(there.moments, given[0])


def test_one_array_for_two_purposes_is_checked_for_each():
    moments = crowd()[0]
    moments[3] = [1.0, 1.0, 9.0]
    memory = CardMemory()
    memory.copy_in_advance((PLAIN, UNIT), {"moments": moments, "attitudes": None, "momenta": moments, "params": None})
    assert memory.known("moments", moments) is None
    np.testing.assert_array_equal(memory.known("momenta", moments), moments)
    assert HOST.known("momenta", moments) is None
