"""Page-locked memory: who has it, how much there is, and what happens without it."""

import os
import warnings

import numpy as np
import pytest

from polhode.compile import page_locked
from polhode.compile.kept_memory import Pool
from polhode.compile.page_locked import LOCKED, PAGE, empty, is_locked

FEW, MANY = (LOCKED.least // 8 - 1,), (LOCKED.least // 8,)


class Lock:
    """Locked pages."""

    def __init__(self, memory):
        self.memory = memory


class Card:
    @staticmethod
    def current_context():
        return Card

    @staticmethod
    def mempin(memory, address, size):
        assert address % PAGE == 0 == size % PAGE
        assert memory.nbytes == size
        return Lock(memory)


@pytest.fixture(autouse=True)
def nothing_locked(monkeypatch):
    monkeypatch.setattr(page_locked, "LOCKED", Pool(LOCKED.least, LOCKED.most, PAGE))


def made(shape=MANY, dtype=float):
    return empty(lambda: Card, shape, dtype)


def test_only_large_arrays_are_locked():
    assert not is_locked(made(FEW))
    array = made((3, *MANY), np.int64)
    assert is_locked(array)
    assert is_locked(array[1:].reshape(-1)[5:])
    assert not is_locked(array.copy())
    assert array.shape == (3, *MANY)
    assert array.dtype == np.int64
    assert array.flags.c_contiguous
    array[:] = 7
    assert (array == 7).all()


def test_memory_serves_again_when_the_last_view_is_gone():
    array = made()
    place, part = array.ctypes.data, array[3:5]
    part[:] = 1.5
    del array
    other = made()
    assert other.ctypes.data != place
    del part
    again = made()
    assert again.ctypes.data == place
    assert not np.shares_memory(again, other)
    del again
    smaller = made((MANY[0] + 1,))  # the same number of pages
    assert smaller.ctypes.data == place


def test_there_is_a_limit(monkeypatch):
    """Beyond it arrays are ordinary ones; what is kept for others makes room."""
    page_locked.LOCKED.most = 4 * PAGE
    one, two = made(), made()
    assert is_locked(one)
    assert is_locked(two)
    large = (3 * PAGE // 8,)
    assert not is_locked(made(large))
    del one
    third = made(large)
    assert is_locked(third)
    assert page_locked.LOCKED.total == 4 * PAGE
    assert not is_locked(made())
    assert not is_locked(made((5 * PAGE // 8,)))


def test_a_block_that_is_much_too_large_stays_for_others():
    del_later = made((5 * PAGE // 8,))
    place = del_later.ctypes.data
    del del_later
    assert made().ctypes.data != place
    assert made((3 * PAGE // 8,)).ctypes.data == place


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not copy processes")
def test_memory_from_before_a_fork_is_not_used_again():
    """The child shares its pages, and the next write may move the parent to others."""
    array, dropped = made(), made()
    places = {array.ctypes.data, dropped.ctypes.data}
    del dropped
    array[:] = 2.5
    with warnings.catch_warnings(action="ignore"):  # this process has threads, perhaps those of JAX
        child = os.fork()
    if not child:
        os._exit(0 if (array == 2.5).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not is_locked(array)
    assert (array == 2.5).all()
    del array
    later = [made() for _ in range(2)]
    assert all(map(is_locked, later))
    assert places.isdisjoint(block.memory.ctypes.data for block in page_locked.LOCKED.free)
    assert page_locked.LOCKED.total == 2 * PAGE


def missing():
    raise RuntimeError("no card")


@pytest.mark.parametrize("card", [missing, lambda: type("Simulated", (), {"current_context": lambda: object()})])
def test_without_a_card_that_locks_memory_arrays_are_ordinary(card):
    array = empty(card, MANY)
    assert not is_locked(array)
    assert array.shape == MANY
