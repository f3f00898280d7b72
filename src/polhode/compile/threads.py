"""Distribution of the work of an ensemble over the cores."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

WORTHWHILE = 1e-4
"""Smallest part for a thread, in seconds of work; handing it over takes half of that."""

PARTS = 4
"""Parts per thread, so that no thread waits long for the last part."""

CALL = 5e-6
"""Overhead of a call in seconds."""

SLICE = 0.1
"""Target duration of a call of compiled code in seconds: Python handles Ctrl-C between two calls."""

FEW = 4096
"""Steps, perhaps with derivatives, that take less than `SLICE`."""

GROWTH = 8
"""Largest growth factor from one slice to the next: the timing of a short first slice is inaccurate."""

ROWS = 1 << 16
"""Fewest rows of an array for a thread in a pass of NumPy."""

SOUNDING = 64
"""Fraction 1/SOUNDING of the work is timed first, unless the work is known to be long."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sliced(call: Callable[[int], bool], first: int) -> Iterator[None]:
    """Repeat ``call(quota)`` until it returns True, with quotas of about `SLICE` seconds, starting with `first`."""
    quota = first
    while True:
        began = time.perf_counter()
        if call(quota):
            return
        took = time.perf_counter() - began
        quota = max(1, int(quota * min(GROWTH, SLICE / took) if took > 0 else quota * GROWTH))
        yield


Work = Callable[[int, int], Iterator[float | None] | None]
"""Makes a part of the work; a generator yields between slices which share of the part is done, or None."""

_watcher: contextvars.ContextVar[Callable[[float], Any] | None] = contextvars.ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(watcher: Callable[[float], Any]) -> Iterator[None]:
    """Tell a function, in this thread, which part of the work is done that is shared out in this context."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(part: float) -> None:
    """Tell the watcher of this context that a part of the work is done."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(part)


def share_out(
    work: Work,
    number: int,
    threads: int | None = None,
    long: bool = False,
) -> None:
    """Call ``work(begin, end)`` on parts of the range 0 to `number`, with as many threads as pay off.

    A first small piece is timed to decide how many threads pay off; work known to be long is distributed immediately.
    This thread takes parts too and does all of the work if there is little. Work that may take longer than `SLICE` is
    a generator: after an exception (such as Ctrl-C) no thread starts another slice, and all have stopped when the
    exception leaves this function.
    """
    threads = cores() if threads is None else threads
    done = 0 if long else min(number, 1 + number // SOUNDING)
    began = time.perf_counter()
    if done and threads > 1:
        for _ in work(0, done) or ():
            pass
    else:
        done = 0
    left = number - done
    expected = max(0.0, time.perf_counter() - began - CALL) * left / done if done else float("inf")
    parts = 1 if threads == 1 else max(1, int(min(left, PARTS * threads, expected / WORTHWHILE)))
    _in_parts(work, done, number, parts, threads)


def share_evenly(work: Callable[[int, int], None], number: int, least: int = ROWS) -> None:
    """Call ``work(begin, end)`` on equal parts of the range 0 to `number`, one for each core, of at least `least`.

    For passes over memory that take the same time for every item: nothing is timed first, and no part is cut smaller.
    """
    threads = cores()
    _in_parts(work, 0, number, max(1, min(threads, number // least)), threads)


def elsewhere(
    work: Callable[[int, int, np.ndarray], T], steps: int, number: int = 1, parts: int | None = None
) -> list[T]:
    """Call ``work(begin, end, stop)`` on parts of the range 0 to `number` in other threads, which this one waits for.

    For calls of compiled code that may take longer than `SLICE`; one of few `steps` is made in this thread. After an
    exception (such as Ctrl-C) the flag ``stop[0]`` tells them to return, and they have when the exception leaves this
    function.
    """
    if steps < FEW:
        return [work(0, number, np.zeros(1, dtype=bool))]
    work(0, 0, np.ones(1, dtype=bool))  # compiles it in this thread, which hears Ctrl-C
    stop, waiting = np.zeros(1, dtype=bool), list[concurrent.futures.Future[T]]()
    parts = max(1, min(number, PARTS * cores() if parts is None else parts))
    edges = [number * i // parts for i in range(parts + 1)]
    try:
        for begin, end in itertools.pairwise(edges):
            waiting.append(_threads(os.getpid(), cores()).submit(work, begin, end, stop))
        while concurrent.futures.wait(waiting, SLICE).not_done:  # in slices: some systems wake nobody for a signal
            pass
        return [one.result() for one in waiting]
    except BaseException:
        stop[0] = True
        concurrent.futures.wait(waiting)
        raise


def _in_parts(work: Work, first: int, number: int, parts: int, threads: int) -> None:
    """Call ``work(begin, end)`` on equal parts of the range `first` to `number`, with up to `threads` threads."""
    done, watched = dict[int, float](), _watcher.get() is not None

    def slices(begin: int, end: int, mine: bool) -> Iterator[None]:
        for part in work(begin, end) or ():
            done[begin] = (end - begin) * (part or 0.0)
            if mine and watched:
                tell(sum(done.values()) / number)
            yield
        done[begin] = end - begin

    if parts == 1:
        for _ in slices(first, number, True):
            pass
        return
    edges = [first + (number - first) * i // parts for i in range(parts + 1)]
    waiting, stopped = collections.deque(itertools.pairwise(edges)), threading.Event()

    def help_out(mine: bool = False) -> None:
        while waiting and not stopped.is_set():
            try:
                begin, end = waiting.popleft()
            except IndexError:  # another thread took the last part
                return
            for _ in slices(begin, end, mine):
                if stopped.is_set():
                    return

    helpers = list[concurrent.futures.Future[None]]()
    try:
        for _ in range(min(threads, parts) - 1):
            helpers.append(_threads(os.getpid(), threads - 1).submit(help_out))
        help_out(mine=True)
        for helper in helpers:
            if not helper.cancel():  # a thread that has not begun until now finds nothing to do
                helper.result()
    except BaseException:
        stopped.set()
        concurrent.futures.wait(helpers)  # they write to arrays that the caller is about to drop
        raise


@functools.cache
def _threads(process: int, number: int) -> concurrent.futures.ThreadPoolExecutor:
    """A pool of `number` threads, reused by later runs of the same process."""
    return concurrent.futures.ThreadPoolExecutor(number)
