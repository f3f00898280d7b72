"""Work on many bodies, shared out among the cores."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import os
import time
from collections.abc import Callable

WORTHWHILE = 1e-4
"""Seconds of work that make a part for a thread; handing it over takes half of that."""

PARTS = 4
"""Parts for every thread, so that none waits long for the last one."""

CALL = 5e-6
"""Seconds of a call with hardly any work."""

SOUNDING = 64
"""The first of so many parts is timed, where it is not plain that there is work for all."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(work: Callable[[int, int], None], number: int, threads: int | None = None, long: bool = False) -> None:
    """Call ``work(begin, end)`` until all from 0 to `number` is done, by as many threads as it is worth.

    What it is worth shows the time of a first small part; where the work is known to be long, all is shared out at
    once. This thread takes its part, and no other one is needed where there is little to do.
    """
    threads = cores() if threads is None else threads
    done = 0 if long else min(number, 1 + number // SOUNDING)
    began = time.perf_counter()
    if done and threads > 1:
        work(0, done)
    else:
        done = 0
    left = number - done
    expected = max(0.0, time.perf_counter() - began - CALL) * left / done if done else float("inf")
    parts = 1 if threads == 1 else max(1, int(min(left, PARTS * threads, expected / WORTHWHILE)))
    edges = [done + left * i // parts for i in range(parts + 1)]
    waiting = collections.deque(itertools.pairwise(edges))

    def help_out() -> None:
        while waiting:
            try:
                begin, end = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            work(begin, end)

    helpers = [_threads(os.getpid(), threads - 1).submit(help_out) for _ in range(min(threads, parts) - 1)]
    try:
        help_out()
        for helper in helpers:
            helper.result()
    finally:  # where something went wrong, or Ctrl-C was pressed, nobody goes on
        waiting.clear()


@functools.cache
def _threads(process: int, number: int) -> concurrent.futures.ThreadPoolExecutor:
    """So many threads, kept by each process for its later runs."""
    return concurrent.futures.ThreadPoolExecutor(number)
