"""Runs of an ensemble with adaptive steps: every lane has its own time and its own steps.

A lane whose body is finished takes the next body, so no lane waits. Lanes do not affect each other, so the results of
a body are the same to the bit whichever bodies share its vector. Steps end at each of the times whose states are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ...kernels.loops import COLUMNS, STALLED, attempting_steps, first_step, weights_of_errors
from ...numbers.primitives import where
from .. import numba_target
from ..simd.vector_types import LANES, bits_of, load, store
from ..threads import share_out, sliced
from . import layout
from .fixed_step import lane_space, reader
from .layout import Sizes
from .places import COLUMNS_OF_DATA, PARAMETERS

MOST = 1e6
"""Attempted steps after which a body fails."""

EXTRA = 6
"""Extra numbers of a lane, after those of its body: time, proposed step, largest |m|^2 so far, steps, consecutive
rejections, and the next time whose state is kept."""

BEHIND = 2
"""Numbers after a state in the result: the number of steps, and the largest momentum on the way. The states of the
field follow. In a lane they are in the places of their initial values."""

ALL = (1 << LANES) - 1
"""All lanes, as bits."""

QUOTA = 2000
"""Attempted steps of a vector of bodies in the first slice: a few milliseconds."""

CHUNK, FEWEST, ROOM = 4096, 16 * LANES, 1 << 22
"""Bodies that a thread takes at a time: their numbers fit its cache, and their memory is used again. If many states are
kept, they are fewer, with at most `ROOM` numbers; a lane has to run some of them, or it waits for others at the end."""


def loop(controlled_step: Callable[..., Any], sizes: Sizes) -> Callable[..., Any]:
    """The run with a controlled step, to be compiled.

    ``run(t0, ends, longest, tolerance, angle, orders, columns, data, begin, stop, quota, block, body, leg, place, rows,
    failed)`` integrates the bodies from `begin` (a multiple of LANES) to `stop`, columns of `data`, to the last of the
    times `ends`, and returns True when all are finished. `angle` is that of the first step, a guess. `columns` are
    those of the field's data.
    After `quota` attempted steps it returns False; called again with the same arrays it continues (`block`: the lanes,
    `body`: the body in each lane, `leg`: the index of its next time in `ends`, `place`: next body, bodies left, whether
    first steps are guessed; zeros at the start). ``place[3]`` gets the number of attempts. The columns of ``rows[i]``
    get the state at ``ends[i]``, the number of steps and the largest momentum until then. If no further step succeeds,
    ``failed[body]`` gets the number of that step, counting from 1, the column of the last row the last good state, and
    the rows between are NaN. The tolerance is for the attitude; `loops.weights_of_errors` derives that of the momentum.
    `data` is overwritten.
    """
    size, count = sizes.dt, len(sizes.states)
    states = np.array([PARAMETERS + i for i in sizes.states], dtype=np.int64)
    TIME, _, LARGEST, STEPS, STALLS, NEXT = range(size, size + EXTRA)
    go_on = layout.borrowing(_stepper(controlled_step, sizes))
    guess = layout.borrowing(_guessing(sizes))

    def written(block: Any, lane: int, row: Any, b: int) -> None:
        """Write the state of a lane to the column of its body."""
        for j in range(COLUMNS):  # a slice would take ten times as long to compile
            row[j, b] = block[j, lane]
        row[COLUMNS, b] = block[STEPS, lane]
        row[COLUMNS + 1, b] = math.sqrt(block[LARGEST, lane])
        for k in range(count):
            row[COLUMNS + BEHIND + k, b] = block[states[k], lane]

    write = layout.borrowing(written)

    def passed(block: Any, lane: int, b: int, leg: Any, ends: Any, rows: Any) -> None:
        """Keep the state of a lane that has reached a time before the last."""
        if leg[lane] < len(ends) - 1 and block[TIME, lane] >= ends[leg[lane]]:
            if b >= 0:
                write(block, lane, rows[leg[lane]], b)
            leg[lane] += 1
            block[NEXT, lane] = ends[leg[lane]]

    keep = layout.borrowing(passed)

    def finished(block: Any, lane: int, b: int, leg: Any, ends: Any, rows: Any, failed: Any) -> None:
        """Hand over the last state of a body; a body that failed has no states from then on."""
        last = len(ends) - 1
        for i in range(leg[lane], last):
            for j in range(COLUMNS + BEHIND + count):
                rows[i, j, b] = np.nan
        write(block, lane, rows[last], b)
        failed[b] = -1 if block[TIME, lane] >= ends[last] else block[STEPS, lane] + 1

    finish = layout.borrowing(finished)

    def seated(block: Any, lane: int, data: Any, b: int, leg: Any) -> None:
        """Put a body into a lane."""
        for j in range(size + EXTRA):
            block[j, lane] = data[j, b]
        leg[lane] = 0

    seat = layout.borrowing(seated)

    def begun(t0: Any, ends: Any, longest: Any, angle: Any, columns: Any, data: Any, begin: int, stop: int) -> None:
        """Set the extra numbers of all bodies, and guess their first steps."""
        span = min(ends[0] - t0, longest)
        for first in range(begin, stop, LANES):
            for i in range(first, first + LANES):
                for j in range(size, size + EXTRA):
                    data[j, i] = 0.0
                data[TIME, i], data[NEXT, i] = t0, ends[0]
            guess(data, first, angle, span, columns)

    start = layout.borrowing(begun)

    def run(
        t0: Any, ends: Any, longest: Any, tolerance: Any, angle: Any, orders: Any, columns: Any, data: Any, begin: int,
        stop: int, quota: int, block: Any, body: Any, leg: Any, place: Any, rows: Any, failed: Any,
    ) -> bool:  # fmt: skip
        end, tries = ends[-1], 0
        if place[2] == 0:
            start(t0, ends, longest, angle, columns, data, begin, stop)
            for i in range(LANES):
                block[TIME, i] = end  # no body has a lane yet
                body[i], leg[i] = -1, len(ends) - 1
            place[0], place[1], place[2] = begin, stop - begin, 1
        coming, left, stopped = place[0], place[1], ALL
        while left > 0 and tries < quota:
            for i in range(LANES):
                if not stopped >> i & 1:
                    continue
                keep(block, i, body[i], leg, ends, rows)
                if block[TIME, i] < end and block[STALLS, i] < STALLED and block[STEPS, i] < MOST:
                    continue
                b = body[i]
                if b >= 0:
                    finish(block, i, b, leg, ends, rows, failed)
                    left -= 1
                seat(block, i, data, min(coming, stop - 1), leg)
                body[i] = coming if coming < stop else -1  # a lane without a body repeats the last one
                coming += 1
            stopped = 0 if left > 0 else ALL
            while stopped == 0 and tries < quota:
                stopped = go_on(block, 0, end, longest, tolerance, orders, columns)
                tries += 1
        place[0], place[1], place[3] = coming, left, tries
        return left == 0

    return run


def _guessing(sizes: Sizes) -> Callable[..., Any]:
    """Kernel that proposes the first step in every lane, columns of `data` from `at` on."""
    read, PROPOSAL = reader(sizes), sizes.dt + 1

    def guessed(data: Any, at: int, angle: Any, span: Any, columns: Any) -> None:
        y, system = read(data, at, columns)
        store(data[PROPOSAL], at, first_step(angle, span, y[1], system))

    return guessed


def _stepper(controlled_step: Callable[..., Any], sizes: Sizes) -> Callable[..., Any]:
    """Kernel that attempts a step in every lane, columns of `block` from `at` on.

    It returns the lanes (`bits_of`) that do not continue: they have failed or reached their next time. The run ends at
    `end`.
    """
    attempt_step = register_jitable(**numba_target.INNER)(attempting_steps(controlled_step, lane_space(sizes, False)))
    read, size, keep = reader(sizes), sizes.dt, _keeping_states(sizes)
    TIME, PROPOSAL, LARGEST, STEPS, STALLS, NEXT = range(size, size + EXTRA)

    def stepped(block: Any, at: int, end: Any, longest: Any, tolerance: Any, orders: Any, columns: Any) -> Any:
        y, system = read(block, at, columns)
        q, m = y[0], y[1]
        t, proposal, square = load(block[TIME], at), load(block[PROPOSAL], at), load(block[LARGEST], at)
        weights, square = weights_of_errors(tolerance, end - t, m, square, system)
        until = load(block[NEXT], at)
        new, now, proposal, counts = attempt_step(t, until, longest, proposal, y, system, weights, orders)
        for j in range(4):
            store(block[j], at, where(counts, new[0][j], q[j]))
        for j in range(3):
            store(block[4 + j], at, where(counts, new[1][j], m[j]))
        keep(block, at, counts, y, new)
        now, stalls = where(counts, now, t), where(counts, 0.0, load(block[STALLS], at) + 1)
        steps = load(block[STEPS], at) + where(counts, 1.0, 0.0)
        store(block[TIME], at, now)
        store(block[PROPOSAL], at, proposal)
        store(block[LARGEST], at, square)
        store(block[STEPS], at, steps)
        store(block[STALLS], at, stalls)
        return ALL ^ bits_of((now < until) & (stalls < STALLED) & (steps < MOST))

    return stepped


def _keeping_states(sizes: Sizes) -> Callable[..., Any]:
    """Compiled function (block, at, counts, y, new) that stores the states of the field after a step that counts."""
    lines = [
        f"    store(block[{PARAMETERS + place}], at, where(counts, new[2][{k}], y[2][{k}]))\n"
        for k, place in enumerate(sizes.states)
    ]
    space: dict[str, Any] = {"store": store, "where": where}
    exec(f"def keep(block, at, counts, y, new):\n{''.join(lines) or '    pass'}\n", space)  # it contains no user input
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["keep"])
    return made


def run_on_cores(
    run: Any, times: tuple[float, Any, float], tolerance: float, setting: tuple[float, Any],
    given: tuple[np.ndarray, ...], found: Any, threads: int | None = None,
) -> None:  # fmt: skip
    """Run all bodies on all cores; `times` are the start, the kept times, and the longest step.

    `setting` are the angle of the first step and the orders of the steps, `found` the result arrays.
    """
    ends = np.atleast_1d(times[1]).astype(float)
    asked = times[0], ends, times[2], tolerance, *setting, given[COLUMNS_OF_DATA:]
    _Part(run, asked, given, found, 0, 0).compile()  # once, before the threads start

    def work(begin: int, end: int) -> Iterator[None]:
        return sliced(_Part(run, asked, given, found, LANES * begin, min(LANES * end, len(found[-1]))), QUOTA)

    share_out(work, -(-len(found[-1]) // LANES), threads, long=True)


class _Part:
    """The bodies from `begin` to `end`, run by one thread in chunks.

    ``part(quota)`` makes about `quota` attempts to step, and returns True if all bodies are finished; False means that
    the attempts were made, so that the time of a call tells how long one takes.
    """

    def __init__(self, run: Any, asked: Any, given: tuple[np.ndarray, ...], found: Any, begin: int, end: int) -> None:
        self.run, self.asked, self.given, self.found = run, asked, given, found
        self.first, self.end, self.fresh = begin, end, True
        size, kept = layout.sizes(given).dt + EXTRA, len(asked[1])
        columns = COLUMNS + max(BEHIND, found[-2].shape[2])
        self.chunk = min(CHUNK, max(FEWEST, ROOM // (size + kept * columns)), end - begin)
        # an odd number of vectors: with a power of two the numbers of a body would share one set of the cache
        width = LANES * (-(-self.chunk // LANES) | 1)
        self.data, self.block = layout.aligned((size, width)), layout.aligned((size, LANES))
        self.rows = layout.aligned((kept, columns, width))
        self.body, self.leg, self.place = (np.zeros(n, np.int64) for n in (LANES, LANES, 4))

    def compile(self) -> None:
        """Compile the run."""
        self._run(0, 1)

    def __call__(self, quota: int) -> bool:
        total = len(self.found[-1])
        while quota > 0:
            last = min(self.first + self.chunk, self.end)
            if self.fresh:
                layout.lay_out(self.given, layout.EVERYBODY, last, self.data, self.first, total)
                self.place[:] = 0
            self.fresh = self._run(last, quota)
            quota -= self.place[3]
            if self.fresh:
                layout.hand_all_over(self.given, layout.EVERYBODY, self.rows, self.first, last, self.found[:-1], total)
                self.first = last
                if last == self.end:
                    return True
        return False

    def _run(self, last: int, quota: int) -> bool:
        failed = self.found[-1][self.first : last]
        lanes = self.block, self.body, self.leg, self.place
        done: bool = self.run(*self.asked, self.data, 0, last - self.first, quota, *lanes, self.rows, failed)
        return done
