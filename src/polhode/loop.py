"""The only loop over steps, in plain Python; backends compile it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .carry import rounded, tidied
from .declare import Step
from .scalar import finite, kernel, settled

COLUMNS = 7
"""A record is the quaternion (4) and the momentum (3), in principal axes."""


@kernel
def good(y: Any, miss: Any) -> Any:
    """Was the step solved, and is its state finite."""
    q, m = y[0], y[1]
    return (miss <= 0) & finite(q[0] + q[1] + q[2] + q[3] + m[0] + m[1] + m[2])


@kernel
def record(rows: Any, i: int, y: Any) -> None:
    """Write one state into a row, without its low parts."""
    q, m = rounded(y)
    rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = q[0], q[1], q[2], q[3]
    rows[i, 4], rows[i, 5], rows[i, 6] = m[0], m[1], m[2]


@kernel
def counted(n: int, last: int, y: Any) -> bool:
    """Is step n the last one."""
    return n == last


@kernel
def timed_record(rows: Any, i: int, y: Any) -> None:
    """Write one state and its time."""
    record(rows, i, y)
    rows[i, COLUMNS] = y[2][0]


@kernel
def timed(n: int, last: Any, y: Any) -> bool:
    """Is this the last step: by its number, or the first one at or past the end; last = (number, end)."""
    return (n == last[0]) | (y[2][0] >= last[1])


class Kind(NamedTuple):
    """How the loop handles the states of one space: good(y, miss), tidied(y), record(rows, i, y), ended(n, last, y)."""

    good: Callable[..., Any]
    tidied: Callable[..., Any]
    record: Callable[..., None]
    ended: Callable[..., bool] = counted


ROTATION = Kind(good, tidied, record)
"""Attitude and body momentum of a rigid body."""

CLOCKED = Kind(good, tidied, timed_record, timed)
"""The same with a memory that begins with the time, which is written behind the state."""


@kernel
def unchanged(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """The state itself, without a miss."""
    return y, 0 * h, True


def changing(change: Step | None, kind: Kind = ROTATION) -> Step:
    """Kernel (h, t, y, system, torque) -> (y changed, miss, whether that went well); without a change, y itself."""
    good, tidied = kind.good, kind.tidied
    if change is None:
        return unchanged

    @kernel
    def changed(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, miss = change(h, t, y, system, torque)
        return tidied(new), miss, good(new, miss)

    return changed


def stepping(
    step: Step, torque: Callable[..., Any], kind: Kind = ROTATION, before: Step | None = None, after: Step | None = None
) -> Callable[..., Any]:
    """The loop for one step kernel and one torque.

    ``advance(h, t0, first, count, every, last, y, system, rows)`` makes `count` steps from step number
    `first`, writes every `every`-th state and the last one (of step `last`) to `rows`, and returns the state,
    the number of the step reached, the rows filled, and the miss (zero if all went well; the state is
    then that of the last good step). Time is t0 + n h, never summed; only where the steps vary it is of the state.

    A processed method changes variables with `before` ahead of step 0, and back with `after` for the rows alone:
    the state that is returned, and taken up again, is the one between.
    """
    good, tidied, record, ended = kind
    enter, look = changing(before, kind), changing(after, kind)

    def advance(h: Any, t0: Any, first: int, count: int, every: int, last: int, y: Any, system: Any, rows: Any) -> Any:
        filled = 0
        if first == 0:
            entered, miss, fine = enter(h, t0, y, system, torque)
            if not settled(fine):
                return y, first, filled, miss, False
            y = entered
        for n in range(first, first + count):
            new, miss = step(h, t0 + n * h, y, system, torque)
            if not settled(good(new, miss)):
                return y, n, filled, miss, False
            new = tidied(new)
            end = ended(n + 1, last, new)
            if (n + 1) % every == 0 or end:
                seen, miss, fine = look(h, t0 + (n + 1) * h, new, system, torque)
                if not settled(fine):
                    return y, n, filled, miss, False
                record(rows, filled, seen)
                filled += 1
            y = new
            if end:
                return y, n + 1, filled, 0 * h, True
        return y, first + count, filled, 0 * h, True

    return advance
