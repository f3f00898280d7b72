"""Memory of the host that is kept: whose it is, how much there is, and results that nobody overwrites."""

import gc
import os
import time
import warnings

import numpy as np
import pytest

import polhode as ph
from polhode.compile import kept_memory
from polhode.compile.kept_memory import HOST, Pool, block_of, whole_of
from polhode.compile.stack import CACHE_LINE

NUMBER = 4096
MOMENTA = np.random.default_rng(5).normal(size=(NUMBER, 3))
TOP = ph.problems.heavy_top().field
MGL = np.linspace(0.5, 2, NUMBER)


@ph.potential
def weight(R, *, mgl):
    return mgl * R[2][2]


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not copy processes")
def test_a_copy_of_the_process_waits_for_no_thread_of_the_other(pool):
    with pool._taking, warnings.catch_warnings(action="ignore"):  # this process has threads, perhaps those of JAX
        child = os.fork()
        if not child:
            os._exit(0 if block_of(pool.empty((100,))) is not None else 1)
        assert os.waitpid(child, 0)[1] == 0


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


def test_memory_is_free_as_soon_as_a_result_is_dropped(monkeypatch):
    """No cycle of references holds results or checked input until the next garbage collection.

    A call that compiles may leave one: exceptions within the compiler keep their tracebacks, and so our frames.
    """
    attitudes = np.tile([1.0, 0, 0, 0], (NUMBER, 1))
    given = {"field": weight, "params": {"mgl": MGL}, "step_tol": 1e-3, "t_end": 0.1}
    ph.ensemble([1.0, 2.0, 2.5], attitudes, MOMENTA, **given)
    own = Pool(HOST.least, HOST.most, CACHE_LINE)
    monkeypatch.setattr(kept_memory, "HOST", own)
    gc.disable()
    try:
        many = ph.ensemble([1.0, 2.0, 2.5], attitudes, MOMENTA, **given)
        assert block_of(many.quaternion) in own.blocks
        assert len(own.free) < len(own.blocks)
        del many
        for _ in range(200):  # a thread that ran bodies may be about to drop what it was given
            if len(own.free) < len(own.blocks):
                time.sleep(0.01)
        assert len(own.free) == len(own.blocks)
    finally:
        gc.enable()


def test_results_in_used_memory_have_the_same_bits(monkeypatch):
    first = run(1).momentum.tobytes()
    for block in HOST.free.copy():  # a collection of garbage may give blocks back meanwhile
        block.memory[:] = 255
    assert run(1).momentum.tobytes() == first
    monkeypatch.setattr(kept_memory, "HOST", Pool(HOST.least, 0, CACHE_LINE))
    assert run(1).momentum.tobytes() == first


def test_results_begin_with_the_states_at_the_start_once(pool):
    """Room after an array serves one result; another one, or one of another shape, gets memory of its own."""
    start = pool.empty((2, 50, 3))[0]
    assert whole_of(start, (3, 50, 3)) is None
    whole = whole_of(pool.empty((2, 50, 3))[0], (2, 50, 3))
    assert whole.shape == (2, 50, 3)
    assert whole_of(whole[0], (2, 50, 3)) is None
    assert whole_of(pool.empty((2, 50, 3))[1], (2, 50, 3)) is None
    assert whole_of(np.zeros((2, 50, 3))[0], (2, 50, 3)) is None
