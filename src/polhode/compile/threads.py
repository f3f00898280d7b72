"""Work on many bodies, shared out among the cores."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator

WORTHWHILE = 1e-4
"""Seconds of work that make a part for a thread; handing it over takes half of that."""

PARTS = 4
"""Parts for every thread, so that none waits long for the last one."""

CALL = 5e-6
"""Seconds of a call with hardly any work."""

SLICE = 0.1
"""Seconds a call of compiled code may take: Python sees Ctrl-C between two calls."""

GROWTH = 8
"""How much more work the next slice has at most: a first short one is timed badly."""

SOUNDING = 64
"""The first of so many parts is timed, where it is not plain that there is work for all."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sliced(call: Callable[[int], bool], first: int) -> Iterator[None]:
    """Repeat ``call(quota)`` until it returns True, with quotas that take about `SLICE` seconds; the first is given."""
    quota = first
    while True:
        began = time.perf_counter()
        if call(quota):
            return
        took = time.perf_counter() - began
        quota = max(1, int(quota * min(GROWTH, SLICE / took) if took > 0 else quota * GROWTH))
        yield


def share_out(
    work: Callable[[int, int], Iterator[None] | None], number: int, threads: int | None = None, long: bool = False
) -> None:
    """Call ``work(begin, end)`` until all from 0 to `number` is done, by as many threads as it is worth.

    A first small piece is timed to decide how many threads pay off; work known to be long is
    distributed immediately. This thread takes its part, and no other one is needed where there is little to do.
    Work that may take longer
    than `SLICE` is a generator that yields between slices: after an exception (Ctrl-C is one) no thread begins another
    slice, and all have stopped when the exception leaves this function.
    """
    threads = cores() if threads is None else threads
    stopped = threading.Event()

    def do(begin: int, end: int) -> None:
        for _ in work(begin, end) or ():
            if stopped.is_set():
                return

    done = 0 if long else min(number, 1 + number // SOUNDING)
    began = time.perf_counter()
    if done and threads > 1:
        do(0, done)
    else:
        done = 0
    left = number - done
    expected = max(0.0, time.perf_counter() - began - CALL) * left / done if done else float("inf")
    parts = 1 if threads == 1 else max(1, int(min(left, PARTS * threads, expected / WORTHWHILE)))
    edges = [done + left * i // parts for i in range(parts + 1)]
    waiting = collections.deque(itertools.pairwise(edges))

    def help_out() -> None:
        while waiting and not stopped.is_set():
            try:
                begin, end = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            do(begin, end)

    helpers = [_threads(os.getpid(), threads - 1).submit(help_out) for _ in range(min(threads, parts) - 1)]
    try:
        help_out()
        for helper in helpers:
            helper.result()
    except BaseException:
        stopped.set()
        concurrent.futures.wait(helpers)  # they write to arrays that the caller is about to drop
        raise


@functools.cache
def _threads(process: int, number: int) -> concurrent.futures.ThreadPoolExecutor:
    """So many threads, kept by each process for its later runs."""
    return concurrent.futures.ThreadPoolExecutor(number)
