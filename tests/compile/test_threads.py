"""Work that is shared out among threads."""

import concurrent.futures
import threading
import time

import pytest

from polhode.compile import threads


def test_an_exception_while_threads_start_stops_those_that_have_started(monkeypatch):
    """Ctrl-C may come at any moment, also between two of them."""
    slices, stopping = [], threading.Event()

    def work(begin, end):
        while not stopping.is_set():  # without an end
            slices.append(begin)
            time.sleep(0.001)
            yield

    submit = concurrent.futures.ThreadPoolExecutor.submit

    def interrupted(pool, *arguments):
        if slices:
            raise KeyboardInterrupt
        started = submit(pool, *arguments)
        while not slices:
            time.sleep(0.001)
        return started

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.share_out(work, 100, threads=3, long=True)
        count = len(slices)
        time.sleep(0.05)
        assert len(slices) == count
    finally:
        stopping.set()
