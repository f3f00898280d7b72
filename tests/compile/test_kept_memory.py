"""Memory of the host that is kept: whose it is, how much there is, and results that nobody overwrites."""

import numpy as np
import pytest

import polhode as ph
from polhode.compile import kept_memory
from polhode.compile.kept_memory import HOST, Pool, block_of
from polhode.compile.stack import CACHE_LINE

NUMBER = 4096
MOMENTA = np.random.default_rng(5).normal(size=(NUMBER, 3))
TOP = ph.problems.heavy_top().field


@pytest.fixture
def pool():
    return Pool(800, 8000, CACHE_LINE)


def test_arrays_begin_with_a_cache_line_and_hold_what_is_written(pool):
    array = pool.empty((3, 50), np.int64)
    assert array.ctypes.data % CACHE_LINE == 0
    assert (array.shape, array.dtype) == ((3, 50), np.int64)
    array[:] = 7
    assert (array == 7).all()


def test_memory_serves_again_when_the_last_view_is_gone(pool):
    array = pool.empty((100,))
    place, part = array.ctypes.data, array[3:5]
    del array
    other = pool.empty((100,))
    assert other.ctypes.data != place
    del part
    assert pool.empty((100,)).ctypes.data == place


def test_there_is_a_limit(pool):
    """Beyond it arrays are ordinary ones; what is kept for others makes room."""
    held = pool.empty((900,))
    assert block_of(pool.empty((99,))) is None
    assert block_of(pool.empty((200,))) is None
    del held
    assert block_of(pool.empty((400,))) is None or pool.total <= pool.most
    kept = [pool.empty((400,)), pool.empty((400,))]
    assert all(block_of(array) is not None for array in kept)
    assert pool.total <= pool.most


def run(sign):
    return ph.ensemble([1.0, 2.0, 2.5], None, sign * MOMENTA, field=TOP, step_tol=1e-3, t_end=0.1)


def test_a_result_that_somebody_holds_is_not_overwritten():
    """Neither by later runs nor through a view of one of its arrays."""
    many = run(1)
    expected, view = many.quaternion.copy(), many.quaternion[-1]
    assert block_of(view) is not None
    del many
    for _ in range(3):
        run(-1)
    assert (view == expected[-1]).all()


def test_results_in_used_memory_have_the_same_bits(monkeypatch):
    first = run(1).momentum.tobytes()
    for block in HOST.free:
        block.memory[:] = 255
    assert run(1).momentum.tobytes() == first
    monkeypatch.setattr(kept_memory, "HOST", Pool(HOST.least, 0, CACHE_LINE))
    assert run(1).momentum.tobytes() == first
