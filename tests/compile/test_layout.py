"""The numbers of many bodies in lanes and back, checked on the way; work shared out among threads."""

import threading

import numpy as np
import pytest

from polhode.compile import threads
from polhode.compile.batch import layout
from polhode.compile.simd.vector_types import LANES
from polhode.kernels.so3 import conj, mul, rotate, unit, unrotate
from polhode.run.ensemble import inertia
from polhode.run.ensemble.start import is_unit

RNG = np.random.default_rng(2)
N = 2 * LANES + 3


def quaternions(n=N):
    q = RNG.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def columns(array):
    return tuple(array.T)


@pytest.mark.parametrize("n", [1, LANES, N])
@pytest.mark.parametrize("order", [lambda a: a, np.asfortranarray, lambda a: a[::-1]])
def test_unit_quaternions_have_the_bits_numpy_gives(n, order):
    q = order(quaternions(n) * RNG.uniform(1 - 1e-8, 1 + 1e-8, (n, 1)))
    found = layout.changed(is_unit, unit, q)
    assert np.array_equal(found, np.stack(unit(columns(q)), -1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3.0])
@pytest.mark.parametrize("i", [0, N - 1])
def test_one_that_is_not_is_seen(bad, i):
    q = quaternions()
    q[i, 2] = bad
    assert layout.changed(is_unit, unit, q) is None


MOMENTS = {
    "flat": ([1.0, 2.0, 3.0], False),
    "linear": ([0.0, 1.0, 1.0], False),
    "no body": ([1.0, 1.0, 3.0], False),
    "negative": ([-1.0, 2.0, 2.0], False),
    "nan": ([np.nan, 1.0, 1.0], False),
    "last nan": ([1.0, 1.0, np.nan], False),
    "infinite": ([np.inf, np.inf, np.inf], False),
    "huge": ([1e95, 1e95, 1e95], False),
    "plain": ([1.0, 1.5, 2.0], True),
    "sphere": ([2.0, 2.0, 2.0], True),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_plain_moments(case):
    """The same answer of the compiled pass for all, and of arrays for each."""
    moments, fine = MOMENTS[case]
    rows = np.tile([1.0, 1.2, 1.3], (N, 1))
    rows[N - 2] = moments
    copied = layout.changed(inertia.plain, inertia.same, rows)
    assert (copied is not None) is fine
    assert copied is None or (copied is not rows and (copied == rows).all())
    with np.errstate(invalid="ignore", over="ignore"):
        assert np.flatnonzero(~inertia.plain(columns(rows))).tolist() == ([] if fine else [N - 2])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_there_and_back(turned, ordered):
    q, m, moments, values = quaternions(), RNG.normal(size=(N, 3)), RNG.uniform(1, 2, (N, 3)), RNG.normal(size=(N, 2))
    moments[4] = [1, 1, 0]
    axes = quaternions() if turned else np.empty((1, 0))
    given = (q, m, moments, values, axes, np.full((1, 1), 0.1), np.arange(1.0, N + 1)[:, None])
    order = RNG.permutation(N) if ordered else layout.EVERYBODY
    size = layout.sizes(given)
    data = np.empty((size.rows, layout.padded(N)))
    layout.lay_out(given, order, N, data)
    places = order if ordered else np.arange(N)
    there, a = data[:, :N], columns(axes) if turned else None
    Q, M = (mul(columns(q), a), np.array(unrotate(a, columns(m)))) if turned else (columns(q), m.T.copy())
    M[2, 4] = 0
    assert np.array_equal(there[:4], np.array(Q)[:, places])
    assert np.array_equal(there[4:7], M[:, places])
    with np.errstate(divide="ignore"):
        inverse = np.where(moments > 0, 1 / moments, 0)
    assert np.array_equal(there[7:13], np.hstack([moments, inverse]).T[:, places])
    assert np.array_equal(there[size.dt - size.axes - 2 : size.dt - size.axes], values.T[:, places])
    assert np.array_equal(there[size.dt :], [np.full(N, 0.1), places + 1.0])
    rows = RNG.normal(size=(2, 8, layout.padded(N)))
    kept, back = rows.copy(), np.argsort(places)
    found = np.empty((3, N, 4)), np.empty((3, N, 3)), np.empty((2, N, 1))
    layout.hand_all_over(given, order, rows, 0, N, found)
    assert np.array_equal(found[0][0], q)
    assert np.array_equal(found[1][0], m)
    for i in range(2):
        x, y = tuple(kept[i, :4, :N][:, back]), tuple(kept[i, 4:7, :N][:, back])
        if turned:
            x, y = mul(x, conj(a)), rotate(a, y)
        assert np.array_equal(found[0][i + 1], np.stack(x, -1))
        assert np.array_equal(found[1][i + 1], np.stack(y, -1))
        assert np.array_equal(found[2][i, :, 0], kept[i, 7, :N][back])


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("number", [1, 7, 1000])
@pytest.mark.parametrize("several", [1, 2, 5])
def test_everything_is_done_once(number, several, long):
    seen = np.zeros(number, dtype=int)

    def work(begin, end):
        seen[begin:end] += 1
        threading.Event().wait(2e-4)

    threads.share_out(work, number, several, long)
    assert (seen == 1).all()


@pytest.mark.parametrize("least", [1, 10, 5000])
@pytest.mark.parametrize("number", [0, 1, 7, 1000])
def test_equal_parts(number, least, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 3)
    seen, sizes = np.zeros(number, dtype=int), []

    def work(begin, end):
        seen[begin:end] += 1
        sizes.append(end - begin)

    threads.share_evenly(work, number, least)
    assert (seen == 1).all()
    assert len(sizes) == max(1, min(3, number // least))
    assert max(sizes) - min(sizes) <= 1


def test_a_fault_stops_all():
    asked = []

    def work(begin, end):
        asked.append(begin)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        threads.share_out(work, 1000, 2, long=True)
    assert len(asked) <= 2
