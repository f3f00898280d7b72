"""Estimate the run time and size of an ensemble that is written to a store, from small samples of it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np

from ...physics.observers.statistics import PARTS
from . import shards
from .task import Task

SAMPLE_BODIES, SAMPLE_STEPS = 64, 2000
"""Bodies and steps of the sample run."""

SAMPLE_SECONDS = 0.3
"""Time for which the sample is repeated: a shorter time does not show the load by other programs."""

SAMPLE_BYTES = 4e6
"""Largest size of the sample that is written."""

ANOTHER_SHARD = 0.2
"""Time to write another small shard relative to creating a store with one (measured: 0.20; wall time 0.23)."""


def bytes_of(task: Task) -> int:
    """Return the bytes of the states and statistics that a run writes."""
    return task.batch.number * _bytes_of_body(task)


def _bytes_of_body(task: Task) -> int:
    numbers = 7 + (1 if task.per_body_times else 0)
    parts = [] if task.wanted is None else [(len(PARTS) - 1) * size + 1 for size in task.wanted.sizes.values()]
    return 8 * (len(task.kept) * numbers + 5 + sum(parts))


def seconds_of(task: Task, shard_size: int | None = None) -> float:
    """Estimate the seconds of a run into a store on the cores or the GPU of this machine, without compilation.

    A sample of the bodies is run on as many threads as the run will use, and a sample of the output is written.
    """
    number = -(-task.batch.number // (shard_size or shards.default_shard_size(task)))
    workers = min(shards.cores(), number) if task.device == "cpu" else 1
    body_step = _seconds_of_step(task, workers)
    small, large = _part(task, 1, 1, 1), _written_part(task)
    _seconds_to_store(small)  # imports what it needs
    store = _seconds_to_store(small)
    steps = large.batch.number * large.count
    writing = max(0.0, _seconds_to_store(large) - store - workers * body_step * steps) / bytes_of(large)
    others = ANOTHER_SHARD * store * (number - 1) / workers
    return store + others + writing * bytes_of(task) / workers + body_step * task.batch.number * task.count


def _part(task: Task, bodies: int, steps: int, every: int) -> Task:
    """Return the first bodies of a task, with fewer steps."""
    number, count = min(task.batch.number, bodies), min(task.count, steps)
    batch = task.batch.some(np.arange(number)) if number < task.batch.number else task.batch
    return dataclasses.replace(task, batch=batch, count=count, every=min(every, count))


def _written_part(task: Task) -> Task:
    """Return some bodies with the full number of stored states, one step apart."""
    rows = len(task.kept) - 1
    return _part(task, max(1, int(SAMPLE_BYTES / _bytes_of_body(task))), rows, 1)


def _seconds_of_step(task: Task, workers: int) -> float:
    """Measure the seconds for one step of one body while `workers` threads run at once."""
    sample = _part(task, SAMPLE_BODIES, SAMPLE_STEPS, task.every)
    sample.run(threads=1)  # compiles
    ends = time.perf_counter() + SAMPLE_SECONDS

    def run() -> int:
        done = 0
        while not done or time.perf_counter() < ends:
            sample.run(threads=1)
            done += 1
        return done

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        runs = sum(future.result() for future in [pool.submit(run) for _ in range(workers)])
    return (time.perf_counter() - began) / (runs * sample.batch.number * sample.count)


def _seconds_to_store(task: Task) -> float:
    """Measure the seconds to run a task and to write it to a new store."""
    with tempfile.TemporaryDirectory(prefix="polhode") as folder:
        began = time.perf_counter()
        shards.run(task, Path(folder) / "part.zarr", shard_size=task.batch.number, progress=False)
        return time.perf_counter() - began
