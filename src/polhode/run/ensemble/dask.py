"""Shards of an ensemble on a Dask cluster. The workers write to the store; only shard numbers are transmitted.

A worker runs one shard per thread, so it uses only the cores assigned to it. If a worker dies, only its running shards
are lost: Dask reassigns them, and shards that were written but not reported are recognised as done.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ..._extras import needed
from ...errors import InputError, StepError
from .shards import Done, Plan, run_shard

RETRIES = 2
"""Number of retries of a failed shard: file-system errors may be transient."""

IN_FLIGHT = 4096
"""Largest number of shards submitted to the scheduler at a time."""

ANSWER = 5.0
"""Seconds to wait for the scheduler's answer."""

PATIENCE = 60.0
"""Seconds to wait for a first worker."""


@contextlib.contextmanager
def connected(scheduler: Any) -> Iterator[Callable[[Plan, list[int]], Generator[Done, None, None]]]:
    """Yield a function that runs shards on a cluster, given as "tcp://host:port" or a `distributed.Client`."""
    distributed = needed("distributed")
    if not isinstance(scheduler, str | distributed.Client):
        raise InputError(
            f"scheduler must be an address like 'tcp://host:8786' or a distributed.Client; got a "
            f"{type(scheduler).__name__}"
        )
    with _client(distributed, scheduler) as client:
        yield lambda plan, todo: _collected(distributed, client, plan, todo)


@contextlib.contextmanager
def _client(distributed: Any, scheduler: Any) -> Iterator[Any]:
    """Yield a client; one that is opened here waits for a worker, and is closed."""
    if not isinstance(scheduler, str):
        yield scheduler
        return
    _check_answer(distributed, scheduler)
    try:
        client = distributed.Client(scheduler, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError):
        raise _no_answer(scheduler) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise StepError(
                f"the scheduler at {scheduler} has had no worker for {PATIENCE:.0f} seconds; start one with "
                f"`dask worker {scheduler}`"
            ) from None
        yield client


def _check_answer(distributed: Any, scheduler: str) -> None:
    """Refuse an address where no scheduler answers; a Client would retry for minutes and log its failures."""

    async def answer() -> None:
        comm = await distributed.comm.connect(scheduler, timeout=ANSWER)
        comm.abort()

    def asked() -> None:
        asyncio.run(asyncio.wait_for(answer(), ANSWER))

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as aside:  # this thread may already run an event loop
            aside.submit(asked).result()
    except Exception:  # the address, or the program at it, may be anything
        raise _no_answer(scheduler) from None


def _no_answer(scheduler: str) -> InputError:
    return InputError(
        f"no Dask scheduler answers at {scheduler!r} within {ANSWER:.0f} seconds; start one with `dask scheduler`, "
        "which prints its address, and workers with `dask worker ADDRESS`. A scheduler with TLS needs a "
        "distributed.Client(ADDRESS, security=...) as scheduler"
    )


def _collected(distributed: Any, client: Any, plan: Plan, todo: list[int]) -> Generator[Done, None, None]:
    """Yield shards as they finish; the number submitted at a time is bounded."""
    waiting = iter(todo)
    found = distributed.as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def submit(count: int) -> None:
        for number in _some(waiting, count):
            found.add(client.submit(run_shard, plan, number, pure=False, retries=RETRIES))

    submit(IN_FLIGHT)
    for future, result in found:
        if future.status != "finished":
            raise _failed(distributed, result)
        yield result
        submit(1)


def _some(numbers: Iterator[int], count: int) -> Iterator[int]:
    return (number for _, number in zip(range(count), numbers, strict=False))


def _failed(distributed: Any, result: Any) -> BaseException:
    """Convert the failure of a shard to an error of this package."""
    problem = result[1] if isinstance(result, tuple) else result
    if isinstance(problem, distributed.scheduler.KilledWorker):
        return StepError(
            "a shard was abandoned after the workers that ran it died one after another (too little memory?); "
            "finished shards are kept: continue with resume=True (--resume)"
        )
    if isinstance(problem, InputError | StepError | OSError):
        return problem
    return StepError(f"a worker failed: {type(problem).__name__} {' '.join(str(problem).split())}")
