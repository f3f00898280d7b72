"""The loop over steps on dual numbers: one trajectory, and its derivatives in several directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import register_jitable

from ...kernels.loops import COLUMNS, StateSpace, stepping
from ...kernels.state import collapse
from .. import numba_target
from ..simd.dual import access

STATE, INERTIA, INVERSE, PARAMETERS = 0, 7, 10, 13
"""First rows of the data of a run: quaternion and momentum, moments, their inverses, parameters."""


def _row_space(space: StateSpace, store: Callable[..., Any]) -> StateSpace:
    """The state space, recorded with tangents: ``rows[i, j]`` has the value and the tangents of number j."""

    def write_row(rows: Any, i: int, y: Any) -> None:
        q, m = collapse(y)
        for j in range(4):
            store(rows[i, j], q[j])
        for j in range(3):
            store(rows[i, 4 + j], m[j])

    recorded = register_jitable(**numba_target.INNER)(write_row)

    def timed_record(rows: Any, i: int, y: Any) -> None:
        recorded(rows, i, y)
        store(rows[i, COLUMNS], y[2][0])

    timed = register_jitable(**numba_target.INNER)(timed_record)
    return space._replace(write=recorded if space.is_last.__name__ == "is_last_by_count" else timed)


def _tuple_of(first: int, count: int, load: Callable[..., Any], columns: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Compiled function of numbers and columns of data that returns `count` numbers as a tuple, columns among them."""
    place = {j: f"columns[{k}], " for k, j in enumerate(columns)}
    items = "".join(place.get(j, f"load(data[{first + j}]), ") for j in range(count))
    space: dict[str, Any] = {"load": load}
    exec(f"def made(data, columns):\n    return ({items})\n", space)  # the text contains no user input
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["made"])
    return made


def loop(
    step: Callable[..., Any], torque: Callable[..., Any], space: StateSpace, start_state: Callable[..., Any],
    parameters: int, columns: tuple[int, ...], width: int, **processors: Any,
) -> Callable[..., Any]:  # fmt: skip
    """The run, to be compiled; `start_state` makes a state from (q, m), `columns` are the places of columns of data.

    ``run(h, t0, count, last, data, columns, rows)`` makes `count` steps; ``data[k]`` has the value and the tangents of
    number k, and ``rows[0]`` gets the last state in the same layout. It returns the number of steps made, and True on
    success.
    """
    load, store = access(width)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, _row_space(space, store), **processors))
    attitude, momentum = _tuple_of(STATE, 4, load), _tuple_of(STATE + 4, 3, load)
    inertia, inverse = _tuple_of(INERTIA, 3, load), _tuple_of(INVERSE, 3, load)
    values = _tuple_of(PARAMETERS, parameters, load, columns)

    def run(h: Any, t0: Any, count: int, last: Any, data: Any, columns: Any, rows: Any) -> Any:
        y = start_state((attitude(data, columns), momentum(data, columns)))
        system = (inertia(data, columns), inverse(data, columns), values(data, columns))
        _, reached, _, _, fine = advance(h, t0, 0, count, count, last, y, system, rows)
        return reached, fine

    return run
