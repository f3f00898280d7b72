"""The loop over steps on dual numbers: one trajectory, and its derivatives in several directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from ...kernels.loops import COLUMNS, StateSpace, stepping
from ...kernels.state import collapse
from .. import numba_target
from ..simd.dual import access
from .stopping import STEPS, is_set

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

    ``run(h, t0, count, last, data, columns, rows, stop)`` makes `count` steps; ``data[k]`` has the value and the
    tangents of number k, and ``rows[0]`` gets the last state in the same layout. It returns the number of steps made,
    and True on success. With the flag ``stop[0]`` set it returns soon.
    """
    load, store = access(width)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, _row_space(space, store), **processors))
    attitude, momentum = _tuple_of(STATE, 4, load), _tuple_of(STATE + 4, 3, load)
    inertia, inverse = _tuple_of(INERTIA, 3, load), _tuple_of(INVERSE, 3, load)
    values = _tuple_of(PARAMETERS, parameters, load, columns)

    def run(h: Any, t0: Any, count: int, last: Any, data: Any, columns: Any, rows: Any, stop: Any) -> Any:
        y = start_state((attitude(data, columns), momentum(data, columns)))
        system = (inertia(data, columns), inverse(data, columns), values(data, columns))
        done, filled, fine = 0, 0, True
        while fine and done < count and filled == 0 and not is_set(stop):
            y, done, filled, _, fine = advance(h, t0, done, min(STEPS, count - done), count, last, y, system, rows)
        return done, fine

    return run


def _seeding(seeded: bool) -> Callable[..., Any]:
    """Compiled function (row, numbers): write a state and its tangents in the six directions of the state, or none.

    The directions are a rotation by d in body axes, dq = q (0, d)/2, and a change of the momentum.
    """

    def seed(row: Any, numbers: Any) -> None:
        for j in range(COLUMNS):
            numbers[j, 0] = row[j]
            if seeded:
                numbers[j, 1:7] = 0.0
        if seeded:
            w, x, y, z = row[0] / 2, row[1] / 2, row[2] / 2, row[3] / 2
            numbers[0, 1], numbers[1, 1], numbers[2, 1], numbers[3, 1] = -x, w, z, -y
            numbers[0, 2], numbers[1, 2], numbers[2, 2], numbers[3, 2] = -y, -z, w, x
            numbers[0, 3], numbers[1, 3], numbers[2, 3], numbers[3, 3] = -z, y, -x, w
            for j in range(3):
                numbers[4 + j, 4 + j] = 1.0

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(seed)
    return made


def between_states(
    step: Callable[..., Any], torque: Callable[..., Any], space: StateSpace, start_state: Callable[..., Any],
    parameters: int, columns: tuple[int, ...], width: int, seeded: bool, moment: int = -1,
) -> Callable[..., Any]:  # fmt: skip
    """The derivatives of one state by another, for many pairs of states, to be compiled.

    ``run(starts, ends, parts, rows, data, columns, output, stop, begin, end)`` makes ``parts[k]`` equal steps from
    ``rows[k]``, the state at ``starts[k]``, to ``ends[k]``, for k from `begin` to `end`; the first column of
    ``output[k]`` gets the seven numbers of the state, and its last six rows their tangents: those of a rotation d in R
    exp(hat d), and of the momentum. Each pair begins with the tangents of the state itself if `seeded`, else with none;
    `data` has those of moments and parameters as in `loop`. `moment` is the place of a parameter that is set to the
    time in the middle of a pair, or -1. It returns the pair that failed, or `end`; the pair that it has reached when
    the flag ``stop[0]`` is set.
    """
    load, store = access(width)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, _row_space(space, store)))
    attitude, momentum = _tuple_of(STATE, 4, load), _tuple_of(STATE + 4, 3, load)
    inertia, inverse = _tuple_of(INERTIA, 3, load), _tuple_of(INVERSE, 3, load)
    values, seed = _tuple_of(PARAMETERS, parameters, load, columns), _seeding(seeded)

    def run(
        starts: Any, ends: Any, parts: Any, rows: Any, data: Any, columns: Any, output: Any, stop: Any, begin: int,
        end: int,
    ) -> int:  # fmt: skip
        numbers = data.copy()
        for k in range(begin, end):
            if moment >= 0:
                numbers[PARAMETERS + moment, 0] = (starts[k] + ends[k]) / 2
            seed(rows[k], numbers)
            y = start_state((attitude(numbers, columns), momentum(numbers, columns)))
            system = (inertia(numbers, columns), inverse(numbers, columns), values(numbers, columns))
            count = parts[k]
            h, done, fine = (ends[k] - starts[k]) / count, 0, True
            while fine and done < count and not is_set(stop):
                part = min(STEPS, count - done)
                y, done, _, _, fine = advance(h, starts[k], done, part, count, count, y, system, output[k : k + 1])
            if done < count:
                return k
            turn(output[k])
        return end

    return run


@register_jitable(**numba_target.INNER)
def turn(numbers: Any) -> None:
    """Write tangents of a rotation over those of the quaternion, from the second row on: d = 2 Im(q* dq)."""
    w, x, y, z = 2 * numbers[0, 0], 2 * numbers[1, 0], 2 * numbers[2, 0], 2 * numbers[3, 0]
    for i in range(1, numbers.shape[1]):
        a, b, c, d = numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i]
        numbers[1, i] = w * b - x * a - y * d + z * c
        numbers[2, i] = w * c - y * a - z * b + x * d
        numbers[3, i] = w * d - z * a - x * c + y * b


def _state_writer(states: int, store: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled function (rows, i, y): write values and tangents of (q, m, z), z of `states` numbers."""
    numbers = [(part, j) for part, size in enumerate((4, 3, states)) for j in range(size)]
    lines = "".join(f"    store(rows[i, {k}], y[{part}][{j}])\n" for k, (part, j) in enumerate(numbers))
    space: dict[str, Any] = {"store": store}
    exec(f"def write(rows, i, y):\n{lines}", space)  # the text contains no user input
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["write"])
    return made


def _copier(states: int) -> Callable[..., Any]:
    """Compiled function (row, tangents, numbers): the state in a row, with the tangents of another one."""
    count = COLUMNS + states

    def join(row: Any, tangents: Any, numbers: Any) -> None:
        for j in range(count):
            numbers[j] = tangents[j]
            numbers[j, 0] = row[j]

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(join)
    return made


class ClosedLoop(NamedTuple):
    """The runs of `closed_loop`."""

    along: Callable[..., Any]
    between: Callable[..., Any]


def closed_loop(
    step: Callable[..., Any], torque: Callable[..., Any], sample: Callable[..., Any], first: Callable[..., Any],
    space: StateSpace, states: int, parameters: int, columns: tuple[int, ...], width: int,
) -> ClosedLoop:  # fmt: skip
    """Derivatives along a run under sampled-data control, to be compiled; the state is (q, m, z), z `states` numbers.

    ``along(t, parts, sampled, rows, data, columns, output, stop)`` follows the rows of a run at the times `t`: from row
    k ``parts[k]`` equal steps to the next one, then a sample if ``sampled[k + 1]``. ``output[k]`` gets the values and
    the tangents of row k. `data` has the initial state, moments and parameters with their tangents as in `loop`, and
    ``first(system)`` are the z before the sample at the start. It returns the row whose step failed, or the last one.

    ``between(found, starts, ends, parts, rows, tangents, data, columns, output, stop)`` makes ``parts[i]`` equal steps
    from row ``found[i]``, with its `tangents`, at ``starts[i]`` to ``ends[i]``; ``output[i]`` gets the state there. It
    returns the number of the pair that failed, or that of all. Both return where they are when ``stop[0]`` is set.
    """
    load, store = access(width)
    write, join = _state_writer(states, store), _copier(states)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, space._replace(write=write)))
    attitude, momentum, held = (_tuple_of(at, n, load) for at, n in ((0, 4), (4, 3), (COLUMNS, states)))
    inertia, inverse = _tuple_of(INERTIA, 3, load), _tuple_of(INVERSE, 3, load)
    values = _tuple_of(PARAMETERS, parameters, load, columns)

    def along(t: Any, parts: Any, sampled: Any, rows: Any, data: Any, columns: Any, output: Any, stop: Any) -> int:
        system = (inertia(data, columns), inverse(data, columns), values(data, columns))
        write(output, 0, sample(t[0], (attitude(data, columns), momentum(data, columns), first(system)), system))
        numbers = np.empty((COLUMNS + states, 1 + width))
        for k in range(len(t) - 1):
            join(rows[k], output[k], numbers)
            y = attitude(numbers, columns), momentum(numbers, columns), held(numbers, columns)
            count = parts[k]
            h = (t[k + 1] - t[k]) / count
            y, _, _, _, fine = advance(h, t[k], 0, count, count, count, y, system, output[k + 1 : k + 2])
            if not fine or is_set(stop):
                return k
            if sampled[k + 1]:
                write(output, k + 1, sample(t[k + 1], y, system))
        return len(t) - 1

    def between(
        found: Any, starts: Any, ends: Any, parts: Any, rows: Any, tangents: Any, data: Any, columns: Any, output: Any,
        stop: Any,
    ) -> int:  # fmt: skip
        system = (inertia(data, columns), inverse(data, columns), values(data, columns))
        numbers = np.empty((COLUMNS + states, 1 + width))
        for i in range(len(found)):
            join(rows[found[i]], tangents[found[i]], numbers)
            y = attitude(numbers, columns), momentum(numbers, columns), held(numbers, columns)
            count = parts[i]
            h = (ends[i] - starts[i]) / count
            _, _, _, _, fine = advance(h, starts[i], 0, count, count, count, y, system, output[i : i + 1])
            if not fine or is_set(stop):
                return i
        return len(found)

    return ClosedLoop(along, between)


def chain(steps: Any, first: Any, total: Any) -> None:
    """Products of derivatives, to be compiled: total[0] = first, total[k + 1] = A_k total[k] + S_k.

    ``steps[k]`` has six rows: A_k in the first six columns, then S_k, as many columns as `first` (or none).
    """
    extra = steps.shape[2] > 6
    total[0] = first
    for k in range(len(steps)):
        for i in range(6):
            for j in range(total.shape[2]):
                found = steps[k, i, 6 + j] if extra else 0.0
                for n in range(6):
                    found += steps[k, i, n] * total[k, n, j]
                total[k + 1, i, j] = found


def orthonormal_chain(steps: Any, basis: Any, growth: Any) -> None:
    """Logarithms of the growth of six volumes, to be compiled: growth[k + 1] - growth[k] = log diag(R), A_k Q = Q' R.

    ``basis`` holds Q in its columns before and after; modified Gram-Schmidt (Benettin et al., Meccanica 15 (1980)
    9-20).
    """
    new = np.empty((6, 6))
    for k in range(len(steps)):
        for i in range(6):
            for j in range(6):
                found = 0.0
                for n in range(6):
                    found += steps[k, i, n] * basis[n, j]
                new[i, j] = found
        for j in range(6):
            for other in range(j):
                along = 0.0
                for i in range(6):
                    along += new[i, other] * new[i, j]
                for i in range(6):
                    new[i, j] -= along * new[i, other]
            square = 0.0
            for i in range(6):
                square += new[i, j] * new[i, j]
            length = math.sqrt(square)
            for i in range(6):
                new[i, j] /= length
            growth[k + 1, j] = growth[k, j] + math.log(length)
        basis[:] = new
