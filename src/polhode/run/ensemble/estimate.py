"""How long an ensemble that is written to a store will take, and how large it will be: from small parts of it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np

from ...physics.observers.statistics import PARTS
from . import shards
from .api import Task

SAMPLE_BODIES, SAMPLE_STEPS = 64, 2000
"""Bodies and steps of the part that is run."""

SAMPLE_SECONDS = 0.3
"""The part is run again and again for so long: a shorter time does not show that other programs use the cores too."""

SAMPLE_BYTES = 4e6
"""Size of the part that is written, at most."""

ANOTHER_SHARD = 0.2
"""Time to write another shard with few bodies over that to make a store with one (measured: 0.20, and 0.23 by wall)."""


def bytes_of(task: Task) -> int:
    """Bytes of the states and statistics that a run writes."""
    return task.batch.number * _bytes_of_body(task)


def _bytes_of_body(task: Task) -> int:
    numbers = 7 + (1 if task.per_body_times else 0)
    parts = [] if task.wanted is None else [(len(PARTS) - 1) * size + 1 for size in task.wanted.sizes.values()]
    return 8 * (len(task.kept) * numbers + 5 + sum(parts))


def seconds_of(task: Task, shard_size: int | None = None) -> float:
    """Seconds a run will take on the cores of this machine, or on its card, written to a store, once compiled.

    A part of the bodies is run on as many threads as the run will use, and a part of the output is written.
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
    """The first bodies of a task, with fewer steps."""
    number, count = min(task.batch.number, bodies), min(task.count, steps)
    batch = task.batch.some(np.arange(number)) if number < task.batch.number else task.batch
    return dataclasses.replace(task, batch=batch, count=count, every=min(every, count))


def _written_part(task: Task) -> Task:
    """Some bodies with as many states as are kept of each, after single steps."""
    rows = len(task.kept) - 1
    return _part(task, max(1, int(SAMPLE_BYTES / _bytes_of_body(task))), rows, 1)


def _seconds_of_step(task: Task, workers: int) -> float:
    """Seconds of one step of one body, where so many threads work at once."""
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
    """Seconds to run a task and to write it to a new store."""
    with tempfile.TemporaryDirectory(prefix="polhode") as folder:
        began = time.perf_counter()
        shards.run(task, Path(folder) / "part.zarr", shard_size=task.batch.number, progress=False)
        return time.perf_counter() - began
