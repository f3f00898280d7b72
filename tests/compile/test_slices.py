"""Bodies that a thread runs in slices: the same bits, and calls that last as long as they were told to."""

import numpy as np
import pytest

import polhode as ph
from polhode.compile import threads
from polhode.compile.batch import adaptive_step
from polhode.compile.simd.vector_types import LANES

NUMBER = 40 * LANES + 5
RNG = np.random.default_rng(4)
MOMENTA = RNG.normal(size=(NUMBER, 3))
TOP = ph.problems.heavy_top().field


def ends(body=(1.0, 2.0, 2.5), **options):
    many = ph.ensemble(body, None, MOMENTA, field=TOP, **options)
    return many.quaternion.tobytes() + many.momentum.tobytes() + many.steps.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"step_tol": 1e-3, "t_end": 0.1},
        {"step_tol": 1e-3, "times": np.linspace(0.01, 0.3, 30)},
        {"step_tol": 1e-3, "t_end": 0.1, "body": [[2.0, 0.3, 0.0], [0.3, 1.5, 0.1], [0.0, 0.1, 2.2]]},
    ],
    ids=["end", "times", "axes"],
)
def test_slices_do_not_change_a_bit(options, monkeypatch):
    """Seven attempts at a time, of vectors that are shared out in another way."""
    expected = ends(**options)
    monkeypatch.setattr(adaptive_step, "QUOTA", 7)
    monkeypatch.setattr(threads, "SLICE", 0.0)
    monkeypatch.setattr(threads, "PARTS", 3)
    assert ends(**options) == expected


def test_a_call_ends_when_its_attempts_are_made(monkeypatch):
    """False means that they were made, or the time of a call would not tell how long one attempt takes."""
    quotas, results = [], []

    def recorded(work, number, *rest, **options):
        for _ in work(0, number):
            pass

    def sliced(call, first):
        for quota in (first, 5, 5):
            quotas.append(quota)
            results.append(call(quota))
            yield
        while not call(1000):
            yield

    monkeypatch.setattr(adaptive_step, "share_out", recorded)
    monkeypatch.setattr(adaptive_step, "sliced", sliced)
    monkeypatch.setattr(adaptive_step, "QUOTA", 5)
    ends(step_tol=1e-3, t_end=0.1)
    assert quotas == [5, 5, 5]
    assert results == [False, False, False]
