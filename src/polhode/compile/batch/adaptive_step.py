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
from ..simd.vector_types import LANES, bits_of, load, lowest, store
from ..threads import share_out, sliced
from . import layout
from .fixed_step import lane_space, reader
from .layout import Sizes
from .places import ATTITUDE, COLUMNS_OF_DATA, MOMENTUM, PARAMETERS, STATE

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


def loop(controlled_step: Callable[..., Any], sizes: Sizes) -> Callable[..., Any]:
    """The run with a controlled step, to be compiled.

    ``run(t0, ends, longest, tolerance, angle, orders, given, begin, stop, quota, block, waiting, shown, body, leg,
    place, q, m, extra_columns, failed)`` integrates the bodies from `begin` (a multiple of LANES) to `stop` to the last
    of the times `ends`, and returns True when all are finished. `angle` is that of the first step, a guess. After
    `quota` attempted steps it returns False; called again with the same arrays it continues (`block`: the lanes,
    `waiting`: the bodies that come next, `body`: the body in each lane, `leg`: the index of its next time in `ends`,
    `place`: the next body, and the bodies left, -1 at the start). ``q[1 + i]``, ``m[1 + i]`` and ``extra_columns[i]``
    get the states at ``ends[i]``, and the number of steps, the largest momentum until then (if there is room) and the
    states of the field. If no further step succeeds, ``failed[body]`` gets the number of that step, counting from 1,
    the last state is the last good one, and those between are NaN. The tolerance is for the attitude;
    `loops.weights_of_errors` derives that of the momentum.
    """
    size, count = sizes.dt, len(sizes.states)
    states = np.array([PARAMETERS + i for i in sizes.states], dtype=np.int64)
    TIME, _, LARGEST, STEPS, STALLS, NEXT = range(size, size + EXTRA)
    go_on = layout.borrowing(_stepper(controlled_step, sizes))
    lay, turn_back, guess = layout.laying(sizes), layout.turning_back(sizes), layout.borrowing(_guessing(sizes))
    hand_over = layout.from_lanes

    def awaited(
        given: Any, first: int, stop: int, t0: Any, ends: Any, longest: Any, angle: Any, bodies: Any, waiting: Any
    ) -> None:
        """Let the bodies from `first` on wait: their numbers, the extra ones, and a guess of their first steps."""
        for lane in range(LANES):
            bodies[lane] = min(first + lane, stop - 1)
        lay(given, bodies, waiting, 0)
        for j in range(size, size + EXTRA):
            for lane in range(LANES):
                waiting[j, lane] = 0.0
        for lane in range(LANES):
            waiting[TIME, lane], waiting[NEXT, lane] = t0, ends[0]
        guess(waiting, 0, angle, min(ends[0] - t0, longest), given[COLUMNS_OF_DATA:])

    wait = layout.borrowing(awaited)

    def showed(block: Any, shown: Any) -> None:
        """Copy the states in all lanes, and rotate them into the users' axes."""
        for j in range(COLUMNS):
            store(shown[0, j], 0, load(block[STATE + j], 0))
        turn_back(shown, 0, block, 0)

    show = layout.borrowing(showed)

    def written(block: Any, shown: Any, lane: int, body: Any, i: int, q: Any, m: Any, extra_columns: Any) -> None:
        """Write the state of a lane to the results of its body, number i after the start."""
        hand_over(shown[0], 0, 0, body, lane, lane + 1, q[1 + i], 4)
        hand_over(shown[0], 4, 0, body, lane, lane + 1, m[1 + i], 3)
        row = extra_columns[i, body[lane]]
        row[0] = block[STEPS, lane]
        if len(row) > 1:
            row[1] = math.sqrt(block[LARGEST, lane])
            for k in range(count):
                row[BEHIND + k] = block[states[k], lane]

    write = layout.borrowing(written)

    def passed(
        block: Any, shown: Any, lane: int, body: Any, leg: Any, ends: Any, q: Any, m: Any, extra_columns: Any
    ) -> None:
        """Keep the state of a lane that has reached a time before the last."""
        if leg[lane] < len(ends) - 1 and block[TIME, lane] >= ends[leg[lane]]:
            if body[lane] >= 0:
                write(block, shown, lane, body, leg[lane], q, m, extra_columns)
            leg[lane] += 1
            block[NEXT, lane] = ends[leg[lane]]

    keep = layout.borrowing(passed)

    def finished(
        block: Any, shown: Any, lane: int, body: Any, leg: Any, ends: Any, q: Any, m: Any, extra_columns: Any,
        failed: Any,
    ) -> None:  # fmt: skip
        """Write the last state of a body; a body that failed has no states from then on."""
        b, last = body[lane], len(ends) - 1
        for i in range(leg[lane], last):
            q[1 + i, b, :], m[1 + i, b, :], extra_columns[i, b, :] = np.nan, np.nan, np.nan
        write(block, shown, lane, body, last, q, m, extra_columns)
        failed[b] = -1 if block[TIME, lane] >= ends[last] else block[STEPS, lane] + 1

    finish = layout.borrowing(finished)

    def seated(block: Any, lane: int, waiting: Any, seat: int) -> None:
        """Put a waiting body into a lane."""
        for j in range(size + EXTRA):
            block[j, lane] = waiting[j, seat]

    take_seat = layout.borrowing(seated)

    def run(
        t0: Any, ends: Any, longest: Any, tolerance: Any, angle: Any, orders: Any, given: Any, begin: int, stop: int,
        quota: int, block: Any, waiting: Any, shown: Any, body: Any, leg: Any, place: Any, q: Any, m: Any,
        extra_columns: Any, failed: Any,
    ) -> bool:  # fmt: skip
        end, columns, bodies = ends[-1], given[COLUMNS_OF_DATA:], np.empty(LANES, np.int64)
        if place[1] < 0:
            for i in range(LANES):
                block[TIME, i] = end  # no body has a lane yet
                body[i], leg[i] = -1, len(ends) - 1
            place[0], place[1] = begin, stop - begin
        coming, left, stopped = place[0], place[1], ALL
        while left > 0 and quota > 0:
            show(block, shown)
            while stopped != 0:
                i = lowest(stopped)
                stopped &= stopped - 1
                keep(block, shown, i, body, leg, ends, q, m, extra_columns)
                if block[TIME, i] < end and block[STALLS, i] < STALLED and block[STEPS, i] < MOST:
                    continue
                if body[i] >= 0:
                    finish(block, shown, i, body, leg, ends, q, m, extra_columns, failed)
                    left -= 1
                if coming < stop and (coming - begin) % LANES == 0:
                    wait(given, coming, stop, t0, ends, longest, angle, bodies, waiting)
                take_seat(block, i, waiting, (min(coming, stop - 1) - begin) % LANES)
                body[i], leg[i] = coming if coming < stop else -1, 0  # a lane without a body repeats the last one
                coming += 1
            while stopped == 0 and left > 0 and quota > 0:
                stopped = go_on(block, 0, end, longest, tolerance, orders, columns)
                quota -= 1
        place[0], place[1] = coming, left
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
    given: tuple[np.ndarray, ...], found: tuple[np.ndarray, ...], threads: int | None = None,
) -> None:  # fmt: skip
    """Run all bodies on all cores; `times` are the start, the kept times, and the longest step.

    `setting` are the angle of the first step and the orders of the steps, `found` the result arrays.
    """
    ends = np.atleast_1d(times[1]).astype(float)
    asked = times[0], ends, times[2], tolerance, *setting, given
    q, m, extra_columns, failed = found
    numbers = extra_columns if extra_columns.dtype == float else extra_columns.view(float)

    def part(begin: int, end: int) -> Callable[[int], bool]:
        return _part(run, asked, begin, end, (q, m, numbers, failed))

    part(0, 0)(1)  # compiled once, before the threads start

    def work(first: int, last: int) -> Iterator[None]:
        begin, end = LANES * first, min(LANES * last, len(failed))
        for start, there in ((given[ATTITUDE], q[0]), (given[MOMENTUM], m[0])):
            there[begin:end] = start[begin:end] if len(start) > 1 else start
        yield from sliced(part(begin, end), QUOTA)
        if numbers is not extra_columns:
            extra_columns[:, begin:end] = numbers[:, begin:end]  # numbers of steps, as integers in the same memory

    share_out(work, -(-len(failed) // LANES), threads, long=True)


def _part(run: Any, asked: tuple[Any, ...], begin: int, end: int, found: tuple[np.ndarray, ...]) -> Any:
    """Return a function of the attempts it may make that runs the bodies from `begin` to `end`, in memory of its own.

    It returns True if all bodies are finished.
    """
    size = layout.sizes(asked[-1]).dt + EXTRA
    block, waiting = layout.aligned((size, LANES)), layout.aligned((size, LANES))
    shown, body, leg = layout.aligned((1, COLUMNS, LANES)), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    place = np.array([begin, -1])
    return lambda quota: run(*asked, begin, end, quota, block, waiting, shown, body, leg, place, *found)
