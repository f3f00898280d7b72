"""The loop over steps for many bodies: a vector of them at a time in lanes, such groups on all cores."""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..carry import rounded
from ..loop import COLUMNS, ROTATION, Kind, stepping
from ..statistics import Watch, nothing
from . import cpu
from .lanes import LANES, extract, load, spread, store

STATE, INERTIA, INVERSE, PARAMETERS = 0, 7, 10, 13
"""First rows of the numbers of a body: quaternion and momentum, moments, their inverses, parameters; then the step."""


def _record(rows: Any, i: int, y: Any) -> None:
    """Write the states of a group of bodies: rows[i] has seven rows of as many numbers."""
    q, m = rounded(y)
    for j in range(4):
        store(rows[i, j], 0, q[j])
    for j in range(3):
        store(rows[i, 4 + j], 0, m[j])


_recorded = register_jitable(**cpu.INNER)(_record)


def _timed_record(rows: Any, i: int, y: Any) -> None:
    """The same with their times, which stand first in the memory, in an eighth row."""
    _recorded(rows, i, y)
    store(rows[i, COLUMNS], 0, y[2][0])


LANE_KIND = Kind(ROTATION.good, ROTATION.tidied, _recorded)
"""How the loop handles the states of a group at once."""

LANE_CLOCKED = Kind(ROTATION.good, ROTATION.tidied, register_jitable(**cpu.INNER)(_timed_record))
"""The same where every body has its own time; runs end by the number of steps."""


def _behind(rows: Any, j: int) -> Any:
    """The j-th numbers of a group of bodies in the only row."""
    return load(rows[0, j], 0)


def _put_behind(rows: Any, j: int, v: Any) -> None:
    store(rows[0, j], 0, v)


_read_behind, _write_behind = (register_jitable(**cpu.INNER)(f) for f in (_behind, _put_behind))


def watched(kind: Kind, watch: Watch | None, read: Any, write: Any, clock: bool) -> tuple[Kind, Callable[..., Any]]:
    """The kind of a run with statistics, and the kernel that opens it; without any, the kind itself."""
    return watch.kind(kind, clock, read, write) if watch is not None else (kind, nothing)


def _written(parameters: str, item: str, count: int) -> Callable[..., Any]:
    """Compiled function that returns the tuple of `item` with # = 0, 1, ... count - 1."""
    items = "".join(item.replace("#", str(j)) + ", " for j in range(count))
    space: dict[str, Any] = {"load": load, "spread": spread, "extract": extract}
    exec(f"def made({parameters}):\n    return ({items})\n", space)  # made of our own words only
    made: Callable[..., Any] = register_jitable(**cpu.INNER)(space["made"])
    return made


def reader(parameters: int) -> Callable[..., Any]:
    """Compiled function (data, k) -> state and system of the bodies k, k + 1, ... of a group."""
    three, four = _written("data, first, k", "load(data[first + #], k)", 3), _written("data, k", "load(data[#], k)", 4)
    values = _written("data, first, k", "load(data[first + #], k)", parameters)

    def read(data: Any, k: int) -> Any:
        y = (four(data, k), three(data, STATE + 4, k))
        return y, (three(data, INERTIA, k), three(data, INVERSE, k), values(data, PARAMETERS, k))

    made: Callable[..., Any] = register_jitable(**cpu.INNER)(read)
    return made


def _copier(parameters: int) -> Callable[..., Any]:
    """Compiled function (y, system, i) -> the same with the body of lane i in all lanes."""
    three, four = _written("v, i", "spread(extract(v[#], i))", 3), _written("v, i", "spread(extract(v[#], i))", 4)
    values = _written("v, i", "spread(extract(v[#], i))", parameters)

    def copies(y: Any, system: Any, i: int) -> Any:
        return (four(y[0], i), three(y[1], i)), (three(system[0], i), three(system[1], i), values(system[2], i))

    made: Callable[..., Any] = register_jitable(**cpu.INNER)(copies)
    return made


def loop(
    step: Callable[..., Any],
    torque: Callable[..., Any],
    parameters: int,
    own_dt: bool,
    start: Callable[..., Any],
    identity: str,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    clock: bool = False,
    watch: Watch | None = None,
) -> tuple[Any, bool]:
    """The compiled run of many bodies, and whether it was compiled before; `start` makes a state of (q, m).

    ``run(h, t0, count, every, data, begin, end, rows, failed)`` runs the groups from `begin` to `end`;
    `data` has a row for every number of a body, a column for every body. ``rows[group, k]`` gets the k-th state kept.
    Where a step fails, ``failed[body]`` gets its number, and the last row of that body its last good state. With
    statistics there is one row, of the last state and the numbers folded so far.
    """
    plain = LANE_CLOCKED if clock else LANE_KIND
    kind, opened = watched(plain, watch, _read_behind, _write_behind, clock)
    advance = register_jitable(**cpu.INNER)(stepping(step, torque, kind, before, after))
    cpu.teach()
    begun, record = start, plain.record
    read, copies, size = reader(parameters), _copier(parameters), PARAMETERS + parameters

    def step_of(h: Any, data: Any, k: int) -> Any:
        return load(data[size], k)

    def shared(h: Any, data: Any, k: int) -> Any:
        return h

    def same(h: Any, i: int) -> Any:
        return h

    def own(h: Any, i: int) -> Any:
        return spread(extract(h, i))

    dt_of = register_jitable(**cpu.INNER)(step_of if own_dt else shared)
    dt_at = register_jitable(**cpu.INNER)(own if own_dt else same)

    def run(h: Any, t0: Any, count: int, every: int, data: Any, begin: int, end: int, rows: Any, failed: Any) -> None:
        scratch = rows[0]
        for g in range(begin, end):
            k = g * LANES
            i = -1  # all together; where a step fails, again one by one, so that a body is the same in any company
            while i < LANES:
                y, system = read(data, k)
                dt, target = dt_of(h, data, k), rows[g]
                if i >= 0:
                    y, system = copies(y, system, i)
                    scratch[:] = np.nan
                    dt, target = dt_at(dt, i), scratch
                opened(target, t0, y, system)
                last, reached, _, _, fine = advance(dt, t0, 0, count, every, count, begun(y), system, target)
                if i < 0:
                    if fine:
                        break
                    scratch = np.empty(rows.shape[1:])
                else:
                    if not fine:
                        record(scratch, len(scratch) - 1, last)
                        failed[k + i] = reached
                    rows[g][:, :, i] = scratch[:, :, 0]
                i += 1

    return cpu.compiled(run, f"lanes {cpu.library_hash(frozenset({__name__}))}|{identity}")


WORTHWHILE = 2000
"""Steps of a group that make a task for a thread: a few tenths of a millisecond, where handing it over takes 0.05."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_on_cores(
    run: Any, h: Any, t0: float, count: int, every: int, data: np.ndarray, columns: int, kept: int,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Run all groups, shared out among the cores; the rows kept (group, kept, number, lane), and the failed steps."""
    groups = data.shape[1] // LANES
    rows = np.empty((groups, kept, columns, LANES))
    failed = np.full(groups * LANES, -1, dtype=np.int64)
    shared_out(
        lambda begin, end: run(h, t0, count, every, data, begin, end, rows, failed), groups,
        groups * count // WORTHWHILE, threads,
    )  # fmt: skip
    return rows, failed


def shared_out(run: Callable[[int, int], None], number: int, worthwhile: int, threads: int | None = None) -> None:
    """Run (begin, end) over 0 ... number, in parts on all cores, so many at most as are worthwhile beyond one."""
    threads = cores() if threads is None else threads
    tasks = 1 if threads == 1 else min(number, 4 * threads, 1 + worthwhile)
    if tasks == 1:
        run(0, number)
        return
    share = np.linspace(0, number, tasks + 1).astype(int).tolist()
    run(0, 0)  # compiled once, before the threads start
    pool = _threads(os.getpid(), threads)
    parts = [pool.submit(run, begin, end) for begin, end in itertools.pairwise(share)]
    for part in parts:
        part.result()


@functools.cache
def _threads(process: int, number: int) -> concurrent.futures.ThreadPoolExecutor:
    """So many threads, kept by each process for its later runs."""
    return concurrent.futures.ThreadPoolExecutor(number)


def padded(number: int) -> int:
    """The next multiple of LANES."""
    return number + -number % LANES


def by_body(rows: np.ndarray) -> np.ndarray:
    """From (group, kept, number, lane) to (kept, body, number)."""
    groups, kept, numbers, width = rows.shape
    return np.ascontiguousarray(rows.transpose(1, 0, 3, 2)).reshape(kept, groups * width, numbers)
