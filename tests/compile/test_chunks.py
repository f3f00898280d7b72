"""Bodies that a thread runs in chunks: the same bits, and calls that last as long as they were told to."""

import numpy as np
import pytest

import polhode as ph
from polhode.compile.batch import adaptive_step
from polhode.compile.simd.vector_types import LANES

NUMBER = 800 * LANES + 5
RNG = np.random.default_rng(4)
MOMENTA = RNG.normal(size=(NUMBER, 3))
TOP = ph.problems.heavy_top().field


def ends(number=NUMBER, **options):
    many = ph.ensemble([1.0, 2.0, 2.5], None, MOMENTA[:number], field=TOP, step_tol=1e-3, **options)
    return many.quaternion.tobytes() + many.momentum.tobytes() + many.steps.tobytes()


@pytest.mark.parametrize("chunk", [LANES, 3 * LANES])
def test_chunks_do_not_change_a_bit(chunk, monkeypatch):
    """A hundred chunks for each part: the attempts that a call is allowed do not grow with each of them."""
    expected = ends(t_end=0.1)
    monkeypatch.setattr(adaptive_step, "CHUNK", chunk)
    assert ends(t_end=0.1) == expected


def test_many_kept_states_make_smaller_chunks(monkeypatch):
    expected = ends(50 * LANES, times=np.linspace(0.01, 0.3, 30))
    monkeypatch.setattr(adaptive_step, "ROOM", 1)
    monkeypatch.setattr(adaptive_step, "FEWEST", LANES)
    assert ends(50 * LANES, times=np.linspace(0.01, 0.3, 30)) == expected


def test_a_call_ends_when_its_attempts_are_made():
    """False means that they were made, or the time of a call would not tell how long one attempt takes."""
    made = []

    def run(*arguments):
        *_, quota, _, _, _, place, _, failed = arguments
        done = min(quota, 10 - place[0])  # every chunk takes ten attempts
        place[0], place[3] = place[0] + done, done
        made.append(done)
        failed[:] = -1
        return place[0] == 10

    number = 5 * adaptive_step.CHUNK
    given = [np.zeros((1, n)) for n in (4, 3, 3, 0, 0, 1, 1)]
    given[0][0, 0], given[2][:] = 1.0, 1.0
    found = [np.zeros((2, number, n)) for n in (4, 3)] + [np.zeros((1, number, 2)), np.zeros(number, np.int64)]
    part = adaptive_step._Part(run, (0.0, np.array([1.0])), tuple(given), found, 0, number)
    assert [part(23), part(23), part(23)] == [False, False, True]
    assert sum(made) == 50
    assert made[:3] == [10, 10, 3]
