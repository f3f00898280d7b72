"""The time of a sweep is put together of a part that is run and parts that are written."""

import numpy as np
import pytest

from polhode.run.ensemble import estimate, shards
from polhode.run.ensemble.api import prepared


@pytest.fixture
def known(monkeypatch):
    """A machine on which everything takes a known time: steps 1e-6 s, a store 0.5 s, and a byte 1e-8 s."""
    stored = []

    def seconds_to_store(task):
        stored.append(task)
        steps = task.batch.number * task.count
        return 0.5 + 1e-8 * estimate.bytes_of(task) + 1e-6 * steps

    def seconds_of_step(task, workers):
        return 1e-6 / workers

    monkeypatch.setattr(estimate, "_seconds_to_store", seconds_to_store)
    monkeypatch.setattr(estimate, "_seconds_of_step", seconds_of_step)
    monkeypatch.setattr(shards, "cores", lambda: 4)
    return stored


def task(number, steps, every=None):
    return prepared([1, 1.2, 1.5], None, np.ones((number, 3)), "dmv2", dt=0.1, steps=steps, every=every)


def test_one_shard_is_run_by_one_thread(known):
    run = task(1000, 1000)
    expected = 0.5 + 1.0 + 1e-8 * estimate.bytes_of(run)
    assert estimate.seconds_of(run) == pytest.approx(expected, rel=0.01)


def test_shards_are_shared_out(known):
    run = task(1000, 1000)
    writing = 1e-8 * estimate.bytes_of(run) / 4
    others = estimate.ANOTHER_SHARD * 0.5 * 9 / 4
    assert estimate.seconds_of(run, 100) == pytest.approx(0.5 + others + 0.25 + writing, rel=0.01)


def test_many_states(known):
    """What is written grows with the states, and the part that is written is small."""
    run = task(10_000, 100, every=1)
    assert estimate.bytes_of(run) > 5e7
    expected = 0.5 + 1.0 + 1e-8 * estimate.bytes_of(run)
    assert estimate.seconds_of(run, 10_000) == pytest.approx(expected, rel=0.05)
    assert all(estimate.bytes_of(part) <= estimate.SAMPLE_BYTES for part in known)


def test_parts_that_are_run():
    """A real sample: a positive time of a step, on one thread and on two."""
    run = task(100, 50)
    for workers in (1, 2):
        assert 1e-10 < estimate._seconds_of_step(run, workers) < 1e-3
    assert estimate.seconds_of(run) > 0
