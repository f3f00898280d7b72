"""The loop of a stepper of many bodies: steps from a user's arrays back into them, without arrays in between.

A group of `LANES` bodies is read into vectors, makes its steps in registers, and is written back. The steps are those
of `kernels/loops.stepping`, as in the loop over ensembles (`fixed_step`), so the results are the same to the last bit.
The last group may be incomplete; it passes through small buffers in which its last body is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...kernels.loops import stepping
from ...kernels.so3 import norm2, times, unit
from ...numbers.primitives import all_lanes, where
from ...physics.validate import ROTATION_TOLERANCE
from ..simd.interleaved import ROWS, reading, writing
from ..simd.vector_types import LANES, extract, load, spread
from .fixed_step import LANE_SPACE, copier
from .layout import Sizes, attitude_in, attitude_out, four, inner, three, vector_in, vector_out

NORMALISE = 1e-12
"""Deviation of |q|^2 from 1 above which q is normalised: larger than the round-off of our own steps."""

WRONG_SHAPE, OVERLAPPING = -1, -2
"""Results of a run that did not start: arrays of different sizes, or arrays that share memory."""


class Form(NamedTuple):
    """How a user's arrays hold the states.

    Attributes
    ----------
    layout : "rows" or "columns" of bodies
    scalar_last : whether the scalar of a quaternion is its last number
    omega : whether the vectors are angular velocities instead of momenta
    """

    layout: str
    scalar_last: bool
    omega: bool


class Call(NamedTuple):
    """What differs between calls of one stepper, as far as code is compiled for it.

    Attributes
    ----------
    held : whether an array of torques is given
    each : whether it has torques for each sub-step
    own_dt : whether every body has its own step
    """

    held: bool
    each: bool
    own_dt: bool


def _copying(layout: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled functions that copy bodies between an array and a buffer with `LANES` bodies.

    ``fill(array, at, last, buffer)`` copies the bodies at, at + 1, ... and repeats the body `last`;
    ``put(buffer, low, high, array, at)`` copies those in the lanes from `low` to `high` back.
    """

    def fill_rows(array: Any, at: int, last: int, buffer: Any) -> None:
        for lane in range(LANES):
            body = min(at + lane, last)
            for j in range(array.shape[1]):
                buffer[lane, j] = array[body, j]

    def fill_columns(array: Any, at: int, last: int, buffer: Any) -> None:
        for lane in range(LANES):
            body = min(at + lane, last)
            for j in range(array.shape[0]):
                buffer[j, lane] = array[j, body]

    def put_rows(buffer: Any, low: int, high: int, array: Any, at: int) -> None:
        for lane in range(low, high):
            for j in range(array.shape[1]):
                array[at + lane, j] = buffer[lane, j]

    def put_columns(buffer: Any, low: int, high: int, array: Any, at: int) -> None:
        for lane in range(low, high):
            for j in range(array.shape[0]):
                array[j, at + lane] = buffer[j, lane]

    return (inner(fill_rows), inner(put_rows)) if layout == ROWS else (inner(fill_columns), inner(put_columns))


def _system(size: Sizes, held: bool) -> Callable[..., Any]:
    """Compiled function (moments, inverse, values, at, tables, force, axes) -> the system of a group of bodies.

    Its parameters are those of the field, then the three numbers of a held torque, then the axes.
    """
    own = size.values - 3 * held
    tables = {place: f"tables[{k}][0]" for k, place in enumerate(size.data)}
    items = [tables.get(j, f"load(values[{j}], at)") for j in range(own)]
    items += [f"force[{j}]" for j in range(3 * held)] + [f"axes[{j}]" for j in range(size.axes)]
    listed = "".join(f"{item}, " for item in items)
    space: dict[str, Any] = {"load": load}
    text = f"def made(moments, inverse, values, at, tables, force, axes):\n    return moments, inverse, ({listed})\n"
    exec(text, space)  # the text contains no user input
    return inner(space["made"])


@inner
def _apart(a: Any, b: Any) -> bool:
    """Whether two contiguous arrays share no memory."""
    first, second = a.ctypes.data, b.ctypes.data
    return first + a.nbytes <= second or second + b.nbytes <= first


def _shapes(form: Form, call: Call) -> Callable[..., Any]:
    """Compiled function (q, m, force, number) -> whether the arrays hold this number of bodies."""
    by_rows, held, each = form.layout == ROWS, call.held, call.each

    def holds(array: Any, width: int, number: int) -> bool:
        if by_rows:
            return array.shape[0] == number and array.shape[1] == width
        return array.shape[0] == width and array.shape[1] == number

    fits = inner(holds)

    def one_torque(force: Any, number: int) -> bool:
        return fits(force, 3, number)

    def torques(force: Any, number: int) -> bool:
        return len(force) > 0 and fits(force[0], 3, number)

    def no_torque(force: Any, number: int) -> bool:
        return True

    torque_fits = inner(torques if each else one_torque if held else no_torque)

    def agree(q: Any, m: Any, force: Any, number: int) -> bool:
        return fits(q, 4, number) and fits(m, 3, number) and torque_fits(force, number)

    return inner(agree)


def _principal(form: Form, turned: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled functions between a user's numbers and a state in principal axes.

    ``enter(q, v, moments, axes) -> (q, m), ||q|^2 - 1|`` and ``leave(q, m, inverse, axes) -> (q, v)``.
    """
    last, omega = form.scalar_last, form.omega

    def turn(q: Any, v: Any, axes: Any) -> Any:
        return attitude_in(q, axes), vector_in(axes, v)

    def turn_back(q: Any, v: Any, axes: Any) -> Any:
        return attitude_out(q, axes), vector_out(axes, v)

    def same(q: Any, v: Any, axes: Any) -> Any:
        return q, v

    into, out_of = inner(turn if turned else same), inner(turn_back if turned else same)

    def enter(q: Any, v: Any, moments: Any, axes: Any) -> Any:
        if last:
            q = (q[3], q[0], q[1], q[2])
        excess = abs(norm2(q) - 1)
        if not all_lanes(excess <= NORMALISE):
            u, off = unit(q), excess > NORMALISE
            q = (where(off, u[0], q[0]), where(off, u[1], q[1]), where(off, u[2], q[2]), where(off, u[3], q[3]))
        q, v = into(q, v, axes)
        if omega:
            v = times(moments, v)
        x, y, z = moments
        # a linear body has no momentum along its axis
        m = (where(x > 0, v[0], 0.0), where(y > 0, v[1], 0.0), where(z > 0, v[2], 0.0))
        return (q, m), excess

    def leave(q: Any, m: Any, inverse: Any, axes: Any) -> Any:
        v = m
        if omega:
            v = times(inverse, m)
        q, v = out_of(q, v, axes)
        if last:
            q = (q[1], q[2], q[3], q[0])
        return q, v

    return inner(enter), inner(leave)


def _timing(call: Call) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Compiled functions (h, at), (h, lane) and (t, h, k): the step of a group, of one lane, and the time of part k."""

    def own(h: Any, at: int) -> Any:
        return load(h, at)

    def of_lane(h: Any, lane: int) -> Any:
        return spread(extract(h, lane))

    def shared(h: Any, at: int) -> Any:
        return h

    def later(t: Any, h: Any, k: int) -> Any:
        return t + k * h

    def same(t: Any, h: Any, k: int) -> Any:
        return t

    dt_of, dt_at = (own, of_lane) if call.own_dt else (shared, shared)
    return inner(dt_of), inner(dt_at), inner(later if call.each else same)


def loop(
    step: Callable[..., Any], torque: Callable[..., Any], size: Sizes, form: Form, call: Call,
    before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The steps of many bodies, to be compiled.

    ``run(q, v, force, moments, values, axes, tables, h, n, failed, begin, end, t)`` advances the bodies of the groups
    from `begin` to `end` by `n` steps and returns how many failed: ``failed[body]`` is then True and its state is
    unchanged. A negative result means that nothing was done. `moments`, `values` and `axes` have one row for each
    number and one column for each body (padded to whole groups), or `LANES` equal columns. `h` is the step, or the
    steps of the bodies (padded). With torques for each sub-step, there are as many of them as steps.
    """
    held, each, turned = call.held, call.each, size.axes > 0
    advance, agree = inner(stepping(step, torque, LANE_SPACE, before, after)), _shapes(form, call)
    read4, read3, write4, write3 = (make(w, form.layout) for make in (reading, writing) for w in (4, 3))
    (fill, put), (enter, leave), (dt_of, dt_at, time_of) = (
        _copying(form.layout),
        _principal(form, turned),
        _timing(call),
    )
    system_of, copies, by_rows = _system(size, held), copier(size), form.layout == ROWS

    def axes_of(axes: Any, at: int) -> Any:
        return four(axes, 0, min(at, axes.shape[1] - LANES))

    def no_axes(axes: Any, at: int) -> Any:
        return ()

    def part_of(force: Any, k: int) -> Any:
        return force[k]

    def all_of(force: Any, k: int) -> Any:
        return force

    def one_part(force: Any) -> int:
        return 1

    def force_of(force: Any, k: int, at: int, last: int, full: bool, buffer: Any) -> Any:
        part = part_now(force, k)
        if full:
            return read3(part, at)
        fill(part, at, last, buffer)
        return read3(buffer, 0)

    def no_force(force: Any, k: int, at: int, last: int, full: bool, buffer: Any) -> Any:
        return ()

    def buffer_for(array: Any, width: int) -> Any:
        return np.empty((LANES, width) if by_rows else (width, LANES), array.dtype)

    part_now, axes_now = inner(part_of if each else all_of), inner(axes_of if turned else no_axes)
    force_now, new_buffer, count_parts = (
        inner(force_of if held else no_force),
        inner(buffer_for),
        len if each else inner(one_part),
    )

    def run(
        q: Any, v: Any, force: Any, moments: Any, values: Any, axes: Any, tables: Any, h: Any, n: int, failed: Any,
        begin: int, end: int, t: Any,
    ) -> int:  # fmt: skip
        number = len(failed)
        if not agree(q, v, force, number):
            return WRONG_SHAPE
        if not (_apart(q, v) and (not held or (_apart(q, force) and _apart(v, force)))):
            return OVERLAPPING
        rows, lost = np.empty((1, 7, LANES)), 0
        q_part, v_part, force_part = new_buffer(q, 4), new_buffer(v, 3), new_buffer(force, 3)
        parts, some = count_parts(force), 1 if each else n
        for g in range(begin, end):
            at = g * LANES
            full, count = at + LANES <= number, min(LANES, number - at)
            if not full:
                fill(q, at, number - 1, q_part)
                fill(v, at, number - 1, v_part)
            i = -1
            # all lanes together (i = -1); if a step fails, again lane by lane, so that no body affects another's result
            while i < count:
                inertia, a = three(moments, 0, min(at, moments.shape[1] - LANES)), axes_now(axes, at)
                x, y, z = inertia
                inverse = (where(x > 0, 1 / x, 0.0), where(y > 0, 1 / y, 0.0), where(z > 0, 1 / z, 0.0))
                if full:
                    state, excess = enter(read4(q, at), read3(v, at), inertia, a)
                else:
                    state, excess = enter(read4(q_part, 0), read3(v_part, 0), inertia, a)
                dt, fine = dt_of(h, at), all_lanes(excess <= 2 * ROTATION_TOLERANCE)
                if i >= 0:
                    dt, fine = dt_at(dt, i), extract(excess, i) <= 2 * ROTATION_TOLERANCE
                k = 0
                while fine and k < parts:
                    f = force_now(force, k, at, number - 1, full, force_part)
                    system = system_of(inertia, inverse, values, min(at, values.shape[1] - LANES), tables, f, a)
                    if i >= 0:
                        state, system = copies(state, system, i)
                    _, _, _, _, fine = advance(dt, time_of(t, dt, k), 0, some, some, some, state, system, rows)
                    state = four(rows[0], 0, 0), three(rows[0], 4, 0)
                    k += 1
                if fine:
                    attitude, vector = leave(state[0], state[1], inverse, a)
                    if full and i < 0:
                        write4(q, at, attitude)
                        write3(v, at, vector)
                    else:
                        write4(q_part, 0, attitude)
                        write3(v_part, 0, vector)
                        low, high = (0, count) if i < 0 else (i, i + 1)
                        put(q_part, low, high, q, at)
                        put(v_part, low, high, v, at)
                        # the buffers must hold the initial states for the lanes that follow
                        if i >= 0:
                            fill(q, at, number - 1, q_part)
                            fill(v, at, number - 1, v_part)
                    if i < 0:
                        break
                elif i >= 0:
                    failed[at + i] = True
                    lost += 1
                i += 1
        return lost

    return run


def checking(layout: str) -> Callable[..., Any]:
    """The check of quaternions, to be compiled: ``check(q)`` is the first body without a unit quaternion, or -1."""
    by_rows = layout == ROWS

    def check(q: Any) -> int:
        for i in range(q.shape[0] if by_rows else q.shape[1]):
            square = 0.0
            for j in range(4):
                x = float(q[i, j] if by_rows else q[j, i])
                square += x * x
            if not abs(square - 1) <= 2 * ROTATION_TOLERANCE:
                return i
        return -1

    return check
