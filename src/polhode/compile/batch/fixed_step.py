"""The loop over fixed steps for an ensemble: groups of bodies in SIMD lanes, groups distributed over the cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ...kernels.loops import COLUMNS, ROTATION, StateSpace, stepping, with_states
from ...kernels.sampled import sampling
from ...kernels.state import collapse
from ...physics.observers.statistics import Watch, nothing, same_system
from .. import numba_target
from ..simd.vector_types import LANES, extract, load, spread, store
from ..threads import share_out, sliced
from . import layout
from .layout import Sizes, four, three
from .places import COLUMNS_OF_DATA, INERTIA, INVERSE, PARAMETERS, STATE, STEPS


def _write_row(rows: Any, i: int, y: Any) -> None:
    """Write the states of a group of bodies: rows[i] has seven rows, one number per lane."""
    q, m = collapse(y)
    for j in range(4):
        store(rows[i, j], 0, q[j])
    for j in range(3):
        store(rows[i, 4 + j], 0, m[j])


_compiled_write_row = register_jitable(**numba_target.INNER)(_write_row)


def _write_timed_row(rows: Any, i: int, y: Any) -> None:
    """As `_write_row`, with the times of the bodies, first in the method's memory, in an eighth row."""
    _compiled_write_row(rows, i, y)
    store(rows[i, COLUMNS], 0, y[2][0])


LANE_SPACE = StateSpace(ROTATION.is_valid, ROTATION.renormalise, _compiled_write_row)
"""State space of a group of bodies."""

LANE_CLOCKED = StateSpace(
    ROTATION.is_valid, ROTATION.renormalise, register_jitable(**numba_target.INNER)(_write_timed_row)
)
"""The same with one time per body; runs end by the number of steps."""


def lane_space(size: Sizes, clock: bool, kept: int = 0) -> StateSpace:
    """State space of a group of bodies; what follows in a row is their times (with a clock), or further states.

    These are the states of the field, or the first `kept` numbers in the memory of the method.
    """
    count = len(size.states) or (0 if clock else kept)
    if not count:
        return LANE_CLOCKED if clock else LANE_SPACE
    plain = with_states(count)
    space: dict[str, Any] = {"write_row": _compiled_write_row, "store": store}
    lines = "".join(f"    store(rows[i, {COLUMNS + j}], 0, y[2][{j}])\n" for j in range(count))
    exec(f"def write(rows, i, y):\n    write_row(rows, i, y)\n{lines}", space)  # the text contains no user input
    return StateSpace(plain.is_valid, plain.renormalise, register_jitable(**numba_target.INNER)(space["write"]))


def _extra_column(rows: Any, j: int) -> Any:
    """Column j of a group of bodies in the single row."""
    return load(rows[0, j], 0)


def _write_extra_column(rows: Any, j: int, v: Any) -> None:
    store(rows[0, j], 0, v)


_read_extra, _write_extra = (register_jitable(**numba_target.INNER)(f) for f in (_extra_column, _write_extra_column))


def watched(
    space: StateSpace, watch: Watch | None, read: Any, write: Any, clock: bool, kept: int, *variation: Any
) -> tuple[StateSpace, Callable[..., Any]]:
    """Return the state space extended by the statistics, and the kernel that initialises them; unchanged without any.

    The statistics follow the state and the first `kept` numbers of the memory.
    """
    return watch.state_space(space, clock, kept, read, write, *variation) if watch is not None else (space, nothing)


def _tuple_function(
    parameters: str, item: str, count: int, others: tuple[int, ...] = (), other: str = ""
) -> Callable[..., Any]:
    """Compiled function that returns the tuple of `item` with # = 0, 1, ... count - 1.

    The items at the places `others` are `other`, with # the place and @ = 0, 1, ...
    """
    found = {place: other.replace("#", str(place)).replace("@", str(k)) for k, place in enumerate(others)}
    items = "".join(found.get(j, item.replace("#", str(j))) + ", " for j in range(count))
    space: dict[str, Any] = {"load": load, "spread": spread, "extract": extract}
    exec(f"def made({parameters}):\n    return ({items})\n", space)  # the text contains no user input
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["made"])
    return made


def reader(size: Sizes) -> Callable[..., Any]:
    """Compiled function (data, at, columns) -> state and system of a group of bodies, from column `at` of `data` on.

    `columns` are those of the field's data.
    """
    values = _tuple_function(
        "data, columns, first, at", "load(data[first + #], at)", size.parameters, size.data, "columns[@][0]"
    )
    state = states_of(size)

    def read(data: Any, at: int, columns: Any) -> Any:
        y = (four(data, STATE, at), three(data, STATE + 4, at))
        system = three(data, INERTIA, at), three(data, INVERSE, at), values(data, columns, PARAMETERS, at)
        return state(y, system), system

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(read)
    return made


def states_of(size: Sizes) -> Callable[..., Any]:
    """Compiled function (y, system) -> the state (q, m), or (q, m, z) with the initial states of the field."""
    numbers = "".join(f"system[2][{i}], " for i in size.states)
    space: dict[str, Any] = {}
    exec(f"def made(y, system):\n    return {f'(y[0], y[1], ({numbers}))' if numbers else 'y'}\n", space)
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["made"])  # the text contains no user input
    return made


def copier(size: Sizes) -> Callable[..., Any]:
    """Compiled function (y, system, i) -> the same with the body of lane i in all lanes."""
    three, four = (
        _tuple_function("v, i", "spread(extract(v[#], i))", 3),
        _tuple_function("v, i", "spread(extract(v[#], i))", 4),
    )
    values = _tuple_function("v, i", "spread(extract(v[#], i))", size.parameters, size.data, "v[#]")
    state = states_of(size)

    def copies(y: Any, system: Any, i: int) -> Any:
        same = three(system[0], i), three(system[1], i), values(system[2], i)
        return state((four(y[0], i), three(y[1], i)), same), same

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(copies)
    return made


def _steps_per_sample(period: int) -> Callable[..., Any]:
    """Compiled function (h, system) -> the number of steps h in the period, which is the same for all bodies."""

    def steps_per_sample(h: Any, system: Any) -> int:
        return int(extract(system[2][period], 0) / h + 0.5)

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(steps_per_sample)
    return made


def _next_count(steps: Any, i: int, done: int) -> int:
    """The next number of steps, after `done`, at which lane i (any lane for i < 0) ends."""
    if i >= 0:
        return int(steps[i])
    least = 0
    for lane in range(LANES):
        count = int(steps[lane])
        if count > done and (least == 0 or count < least):
            least = count
    return least


def _arrived(steps: Any, i: int, count: int) -> tuple[int, int]:
    """First and last + 1 of the lanes that end after `count` steps; bodies are sorted by their number of steps."""
    if i >= 0:
        return i, i + 1
    low, high = LANES, 0
    for lane in range(LANES):
        if steps[lane] == count:
            low, high = min(low, lane), lane + 1
    return low, high


def sizes_of_state(start: Callable[..., Any], states: int = 0) -> tuple[int, ...]:
    """Lengths of the parts of a method's state: attitude, momentum, and low parts, a memory or states of the field."""
    parts = tuple(len(part) for part in start(((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))))
    return (*parts, states) if states else parts


def _keeping(sizes: tuple[int, ...]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled functions (state, saved) that save a state of these sizes in rows of `saved`, and read it back."""
    places = [(i, j) for i, size in enumerate(sizes) for j in range(size)]
    lines = "".join(f"    store(saved[{k}], 0, state[{i}][{j}])\n" for k, (i, j) in enumerate(places))
    rows = iter(range(len(places)))
    parts = "".join("(" + "".join(f"load(saved[{next(rows)}], 0), " for _ in range(n)) + "), " for n in sizes)
    space: dict[str, Any] = {"load": load, "store": store}
    text = f"def save(state, saved):\n{lines}\ndef restore(saved):\n    return ({parts})\n"
    exec(text, space)  # the text contains no user input
    save, restore = (register_jitable(**numba_target.INNER)(space[name]) for name in ("save", "restore"))
    return save, restore


@dataclasses.dataclass
class Cursor:
    """Position of the loop over groups: with these arrays and the result arrays it can continue.

    Attributes
    ----------
    place : group, lane (-1: all together), and the completed steps of the group
    rows : the output states of that group
    saved : the current state of that group
    """

    place: np.ndarray
    rows: np.ndarray
    saved: np.ndarray

    @classmethod
    def at(cls, group: int, kept: int, columns: int, sizes: tuple[int, ...]) -> Cursor:
        """The cursor at the start of a group."""
        return cls(np.array([group, -1, 0]), np.empty((kept, columns, LANES)), np.empty((sum(sizes), LANES)))


def loop(
    step: Callable[..., Any],
    torque: Callable[..., Any],
    size: Sizes,
    per_body_dt: bool,
    start: Callable[..., Any],
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    clock: bool = False,
    watch: Watch | None = None,
    sample: Callable[..., Any] | None = None,
    period: int = 0,
    kept: int = 0,
    system_of: Callable[..., Any] = same_system,
) -> Callable[..., Any]:
    """The run of an ensemble, to be compiled; `start` makes a state from (q, m).

    The first `kept` numbers in the memory of the method are written after the state (with a `clock`, its time).
    `system_of` is the system that statistics read (`Watch.state_space`). With a controller, `sample` is the kernel of a
    sample, and `period` the place of the period among the parameters.

    ``run(h, t0, every, given, order, end, quota, place, rows, saved, q, m, extra_columns, failed)`` runs the groups of
    bodies, in the given order, from the position of a `Cursor` to `end`. It writes the initial and the output states to
    the result arrays and the numbers after a state (a time, statistics) to `extra_columns`, and returns True. After
    `quota` steps it returns False; called again it continues with the same bits. If a step fails, ``failed[body]`` gets
    its number, counting from 1, else -1; the states after it are NaN except the last, which is the last good one. With
    statistics there is one row: the last state and the accumulated numbers. Bodies of a group may have different
    numbers of steps; each is written when it ends.
    """
    plain = lane_space(size, clock, kept)
    space, opened = watched(plain, watch, _read_extra, _write_extra, clock, kept, len(size.states), system_of)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, space, before, after))
    if sample is not None:
        controlled = sampling(advance, sample, space, _steps_per_sample(period), at_start=True)
        advance = register_jitable(**numba_target.INNER)(controlled)
    start_state, write, folded = start, plain.write, watch is not None
    save, restore = _keeping(sizes_of_state(start, len(size.states)))
    read, copies, dt_row, numbers = reader(size), copier(size), size.dt, size.rows
    lay, turn_back, named, hand_over = layout.laying(size), layout.turning_back(size), layout.named, layout.hand_over
    next_count, arrived = layout.inner(_next_count), layout.inner(_arrived)

    def step_of(h: Any, data: Any) -> Any:
        return load(data[dt_row], 0)

    def shared(h: Any, data: Any) -> Any:
        return h

    def next_row(done: int, every: int) -> int:
        return 0 if folded else done // every

    def same(h: Any, i: int) -> Any:
        return h

    def own(h: Any, i: int) -> Any:
        return spread(extract(h, i))

    dt_of = register_jitable(**numba_target.INNER)(step_of if per_body_dt else shared)
    dt_at = register_jitable(**numba_target.INNER)(own if per_body_dt else same)
    row_after = register_jitable(**numba_target.INNER)(next_row)

    def run(
        h: Any, t0: Any, every: int, given: Any, order: Any, end: int, quota: int, place: Any, rows: Any, saved: Any,
        q: Any, m: Any, extra_columns: Any, failed: Any,
    ) -> bool:  # fmt: skip
        bodies, data = np.empty(LANES, np.int64), np.empty((numbers, LANES))
        steps, left = data[dt_row + 1], quota
        first, i, done = place[0], place[1], place[2]
        for g in range(first, end):
            named(g * LANES, order, len(failed), bodies)
            lay(given, bodies, data, 0)
            # all lanes together (i = -1); if a step fails, again lane by lane, so that no body affects another's result
            while i < LANES:
                y, system = read(data, 0, given[COLUMNS_OF_DATA:])
                dt = dt_of(h, data)
                if i >= 0:
                    y, system = copies(y, system, i)
                    dt = dt_at(dt, i)
                if done == 0:
                    if i >= 0:
                        rows[:] = np.nan
                    opened(rows, t0, y, system)
                    state = start_state(y)
                else:
                    state = restore(saved)
                fine, count = True, next_count(steps, i, done)
                while fine and count > done:
                    if left <= 0:
                        if done > 0:
                            save(state, saved)
                        place[0], place[1], place[2] = g, i, done
                        return False
                    some, there = min(count - done, left), rows[row_after(done, every) :]
                    state, reached, _, _, fine = advance(dt, t0, done, some, every, count, state, system, there)
                    left -= some
                    if fine and reached < count:
                        done = reached
                        continue
                    if not fine:
                        if i < 0:
                            break
                        write(rows, len(rows) - 1, state)
                    turn_back(rows, 0, data, 0)
                    low, high = arrived(steps, i, count)
                    hand_over(given, bodies, low, high, rows, 0, q, m, extra_columns)
                    for lane in range(low, high):
                        failed[bodies[lane]] = -1 if fine else reached + 1
                    done = count
                    count = next_count(steps, i, done)
                done = 0
                if i < 0 and fine:
                    break
                i += 1
            i = -1
        place[0], place[1], place[2] = end, -1, 0
        return True

    return run


PLENTY = 20_000
"""Steps of a group that are enough work for all cores with any method: a few milliseconds at least."""

QUOTA = 5_000
"""Steps of a group in the first slice: about a millisecond with explicit methods."""


def run_on_cores(
    run: Any, h: Any, t0: float, every: int, given: tuple[np.ndarray, ...], order: np.ndarray, found: Any,
    cursor_at: Callable[[int], Cursor], threads: int | None = None,
) -> None:  # fmt: skip
    """Run all groups on all cores; `found` are the result arrays."""
    groups = layout.padded(len(found[-1])) // LANES
    most = int(given[STEPS].max())
    long = groups * most > PLENTY

    def part(begin: int, end: int) -> Iterator[float]:
        place, *at = vars(cursor_at(begin)).values()
        for _ in sliced(lambda quota: run(h, t0, every, given, order, end, quota, place, *at, *found), QUOTA):
            yield float(place[0] - begin + place[2] / most) / (end - begin)

    if long:
        for _ in part(0, 0):  # compiled once, before the threads start
            pass
    share_out(part, groups, threads, long)


def run_on_one(
    run: Any, h: Any, t0: float, every: int, given: tuple[np.ndarray, ...], order: np.ndarray, found: Any,
    cursor: Cursor,
) -> Iterator[None]:  # fmt: skip
    """The same on this thread, from the position of a cursor; between slices the caller may save it, or stop."""
    groups, at = layout.padded(len(found[-1])) // LANES, vars(cursor).values()
    return sliced(lambda quota: run(h, t0, every, given, order, groups, quota, *at, *found), QUOTA)
