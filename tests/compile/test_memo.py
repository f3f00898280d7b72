"""What a process keeps of the work it has done is bounded."""

import gc
import sys
import threading
import weakref

import pytest

import polhode as ph
from polhode._memo import KEPT, MADE, Memo
from polhode.physics import taylor_steps


def test_the_least_recently_used_entry_makes_room():
    memo, made = Memo(3), []

    def value(key):
        return memo(key, lambda: made.append(key) or key.upper())

    for key in "abcadb":  # d replaces b, then b replaces c
        assert value(key) == key.upper()
    assert made == ["a", "b", "c", "d", "b"]
    assert list(memo.entries) == ["a", "d", "b"]
    assert len(memo) == 3


def test_threads_that_need_the_same_make_it_once():
    memo, made, gate = Memo(), [], threading.Barrier(8)

    def work():
        gate.wait()
        memo("key", lambda: made.append(1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_what_fails_to_be_made_is_not_kept():
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo("key", lambda: 1 / 0)
    assert memo("key", lambda: 2) == 2


def test_one_thing_is_made_while_another_is():
    memo, inside, outside = Memo(), threading.Event(), threading.Event()

    def slow():
        inside.set()
        assert outside.wait(30)

    thread = threading.Thread(target=memo, args=("slow", slow))
    thread.start()
    assert inside.wait(30)
    assert memo("quick", lambda: 1) == 1
    outside.set()
    thread.join()
    assert len(memo) == 2


def test_one_memo_holds_all_compiled_code_and_is_bounded():
    """There is no other store of things compiled, in any module."""
    assert MADE.size <= 4 * KEPT
    stores = {
        f"{name}.{variable}"
        for name, module in list(sys.modules.items()) if name.split(".")[0] == "polhode"
        for variable, value in vars(module).items() if isinstance(value, Memo) and value is not MADE
    }  # fmt: skip
    assert not stores


def test_formulas_of_fields_are_not_kept_for_ever():
    """Each new field had 16 kB of series that nothing ever freed."""
    first = ph.fields.gravity(1.0)
    taylor_steps.motion_series(first, False, 1)
    alive = weakref.ref(first)
    del first
    for i in range(KEPT):
        taylor_steps.motion_series(ph.fields.gravity(2.0 + i), False, 1)
    gc.collect()
    assert alive() is None
