"""The loop of a stepper of many bodies: steps from a user's arrays back into them, without arrays in between.

A group of `LANES` bodies is read into vectors, makes its steps in registers, and is written back. The steps are those
of `kernels/loops.stepping`, as in the loop over ensembles (`fixed_step`), so the results are the same to the last bit.
An incomplete last group passes through small buffers in which its last body is repeated. If a step fails in a group,
each of its bodies makes the steps again, alone in all lanes of the buffers, so that no body affects another's result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from ...kernels.loops import StateSpace, stepping, with_states
from ...kernels.so3 import norm2, times, unit
from ...kernels.state import collapse
from ...kernels.unroll import unrolled_kernel
from ...numbers.primitives import all_lanes, where
from ...physics.validate import ROTATION_TOLERANCE
from .. import numba_target
from ..simd.interleaved import COLUMNS, ROWS, reading, writing
from ..simd.vector_types import LANES, load, store
from .fixed_step import LANE_SPACE
from .layout import Sizes, attitude_in, attitude_out, inner, vector_in, vector_out
from .stopping import STEPS, is_set

NORMALISE = 1e-12
"""Deviation of |q|^2 from 1 above which q is normalised: larger than the round-off of our own steps."""

WRONG_SHAPE, OVERLAPPING, STOPPED = -1, -2, -3
"""Results of a run that did not start, with arrays of different sizes or that share memory, or that was stopped."""


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

    ``fill(array, body, stride, last, buffer)`` copies `body`, `body` + `stride`, ..., and repeats the body `last`;
    ``put(buffer, count, array, at)`` copies the first `count` bodies back.
    """

    def fill_rows(array: Any, body: int, stride: int, last: int, buffer: Any) -> None:
        for lane in range(LANES):
            for j in range(array.shape[1]):
                buffer[lane, j] = array[min(body + lane * stride, last), j]

    def fill_columns(array: Any, body: int, stride: int, last: int, buffer: Any) -> None:
        for lane in range(LANES):
            for j in range(array.shape[0]):
                buffer[j, lane] = array[j, min(body + lane * stride, last)]

    def put_rows(buffer: Any, count: int, array: Any, at: int) -> None:
        for lane in range(count):
            for j in range(array.shape[1]):
                array[at + lane, j] = buffer[lane, j]

    def put_columns(buffer: Any, count: int, array: Any, at: int) -> None:
        for lane in range(count):
            for j in range(array.shape[0]):
                array[j, at + lane] = buffer[j, lane]

    return (outer(fill_rows), outer(put_rows)) if layout == ROWS else (outer(fill_columns), outer(put_columns))


def outer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function callable from compiled code, without inlining: rare work stays out of the loop over groups."""
    register = register_jitable(**numba_target.INNER | {"forceinline": False})
    made: Callable[..., Any] = register(numba_target.named_by_content(function))
    return made


def system_maker(size: Sizes, held: bool) -> Callable[..., Any]:
    """Compiled function (moments, inverse, values, tables, force, axes) -> the system of a group of bodies.

    Its parameters are those of the field, then the three numbers of a held torque, then the axes.
    """
    tables = {place: f"tables[{k}][0]" for k, place in enumerate(size.data)}
    items = [tables.get(j, f"values[{j}]") for j in range(size.values - 3 * held)]
    items += [f"force[{j}]" for j in range(3 * held)] + [f"axes[{j}]" for j in range(size.axes)]
    listed = "".join(f"{item}, " for item in items)
    space: dict[str, Any] = {}
    text = f"def made(moments, inverse, values, tables, force, axes):\n    return moments, inverse, ({listed})\n"
    exec(text, space)  # the text contains no user input
    return inner(space["made"])


def _of_bodies(width: int) -> Callable[..., Any]:
    """Compiled function (array, at) -> `width` numbers of a group of bodies from columns, or from the one for all.

    No part of the array is an array here: compiled code would count the references to it, with atomic instructions.
    """
    read = reading(width, COLUMNS)

    def columns_of(array: Any, at: int) -> Any:
        return read(array, 0, min(at, array.shape[1] - LANES))

    def nothing(array: Any, at: int) -> Any:
        return ()

    return inner(columns_of if width else nothing)


_write_state, _read_state = writing(7, COLUMNS), reading(7, COLUMNS)


def _write_lanes(rows: Any, i: int, y: Any) -> None:
    """Write the states of a group of bodies: part i of `rows` has seven rows, one number per lane."""
    q, m = collapse(y)
    _write_state(rows, i, 0, (q[0], q[1], q[2], q[3], m[0], m[1], m[2]))


GROUP = StateSpace(LANE_SPACE.is_valid, LANE_SPACE.renormalise, inner(_write_lanes))
"""State space of a group of bodies, without views of arrays."""


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


def principal(form: Form, turned: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
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


def _timing(call: Call) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled functions (h, at) and (t, h, k): the step of a group, and the time of sub-step k."""

    def own(h: Any, at: int) -> Any:
        return load(h, at)

    def shared(h: Any, at: int) -> Any:
        return h

    def later(t: Any, h: Any, k: int) -> Any:
        return t + k * h

    def same(t: Any, h: Any, k: int) -> Any:
        return t

    return inner(own if call.own_dt else shared), inner(later if call.each else same)


def _spanning(
    step: Callable[..., Any], torque: Callable[..., Any], size: Sizes, form: Form, call: Call, carrying: Carrying,
    before: Callable[..., Any] | None, after: Callable[..., Any] | None,
) -> Callable[..., Any]:  # fmt: skip
    """Compiled loop over whole groups; it returns the first group in which a step failed, or `end`.

    ``span(q, v, force, moments, values, axes, tables, h, n, begin, end, t, stop)``; the group that failed is unchanged.
    It returns STOPPED soon after the flag ``stop[0]`` has been set.
    """
    held, each, turned = call.held, call.each, size.axes > 0
    advance = inner(stepping(step, torque, GROUP._replace(is_valid=carrying.is_valid), before, after))
    read4, read3, write4, write3 = (make(w, form.layout) for make in (reading, writing) for w in (4, 3))
    (enter, leave), (dt_of, time_of) = principal(form, turned), _timing(call)
    system_of, inertia_of, axes_of = system_maker(size, held), _of_bodies(6), _of_bodies(size.axes)
    values_of, start = _of_bodies(size.values - 3 * held + carrying.width), carrying.start

    def force_of(force: Any, k: int, at: int) -> Any:
        return read3(force, k, at)

    def no_force(force: Any, k: int, at: int) -> Any:
        return ()

    def one_part(force: Any) -> int:
        return 1

    following, number_of, keep = carrying.following, carrying.number_of, carrying.keep
    force_now, count_parts = inner(force_of if held else no_force), len if each else inner(one_part)

    def span(
        q: Any, v: Any, force: Any, moments: Any, values: Any, axes: Any, tables: Any, h: Any, n: int, begin: int,
        end: int, t: Any, stop: Any,
    ) -> int:  # fmt: skip
        rows, parts, some = np.empty((7, LANES)), count_parts(force), 1 if each else n
        for g in range(begin, end):
            at = g * LANES
            i, own, a, dt = inertia_of(moments, at), values_of(values, at), axes_of(axes, at), dt_of(h, at)
            inertia, inverse = (i[0], i[1], i[2]), (i[3], i[4], i[5])
            state, excess = enter(read4(q, 0, at), read3(v, 0, at), inertia, a)
            fine, k, y = all_lanes(excess <= 2 * ROTATION_TOLERANCE), 0, start(state, own)
            while fine and k < parts:
                system, first = system_of(inertia, inverse, own, tables, force_now(force, k, at), a), number_of(k)
                begin_time, done = time_of(t, dt, k - first), 0
                while fine and done < some:
                    if is_set(stop):
                        return STOPPED
                    part = min(STEPS, some - done)
                    y, _, _, _, fine = advance(dt, begin_time, first + done, part, some, first + some, y, system, rows)
                    done += part
                r = _read_state(rows, 0, 0)
                state = (r[0], r[1], r[2], r[3]), (r[4], r[5], r[6])
                y = following(y, state)
                k += 1
            if not fine:
                return g
            attitude, vector = leave(state[0], state[1], inverse, a)
            write4(q, 0, at, attitude)
            write3(v, 0, at, vector)
            keep(values, at, y)
        return end

    return outer(span)


class Carrying(NamedTuple):
    """What passes from sub-step to sub-step, as compiled functions; made by `carrying`, `remembering` and `continuing`.

    Attributes
    ----------
    start : ((q, m), values of the bodies) -> the first state
    following : (state, (q, m)) -> the state from which the next sub-step starts
    number_of : k -> the number of the step with which sub-step k starts
    width : count of the numbers of a memory among the values of the bodies, after the parameters
    keep : (values, at, state) -> None, writes what the bodies from column `at` on keep for the next call
    put_back : (buffer, count, values, at) -> None, copies it from a buffer of `count` bodies
    is_valid : as of a `StateSpace`
    """

    start: Callable[..., Any]
    following: Callable[..., Any]
    number_of: Callable[..., Any]
    width: int
    keep: Callable[..., Any]
    put_back: Callable[..., Any]
    is_valid: Callable[..., Any] = LANE_SPACE.is_valid


@inner
def _nothing_kept(values: Any, at: int, y: Any) -> None:
    """Keep nothing."""


@inner
def _nothing_put(buffer: Any, count: int, values: Any, at: int) -> None:
    """Copy nothing."""


class Chain(NamedTuple):
    """Where a chain stands: first number in the memory, first among the values, and the count of its numbers."""

    memory: int
    values: int
    numbers: int


def between_parts(begin: Callable[..., Any], memory: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compiled functions `following` and `number_of` of a `Carrying`.

    Without a memory, every sub-step with a torque of its own is the first step of a run, from the last output (q, m).
    With a memory it is step k of one run, and continues from the state y.
    """

    def from_output(y: Any, output: Any) -> Any:
        return begin(output)

    def from_state(y: Any, output: Any) -> Any:
        return y

    def zero(k: int) -> int:
        return 0

    def same(k: int) -> int:
        return k

    return inner(from_state if memory else from_output), inner(same if memory else zero)


def _beginning(begin: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled function ((q, m), values) -> the first state, which does not depend on the values."""

    def start(state: Any, own: Any) -> Any:
        return begin(state)

    return inner(start)


def carrying(begin: Callable[..., Any]) -> Carrying:
    """Without a memory."""
    return Carrying(_beginning(begin), *between_parts(begin, False), 0, _nothing_kept, _nothing_put)


def remembering(begin: Callable[..., Any], width: int, parameters: int) -> Carrying:
    """With a memory, which `filling` wrote after the parameters."""
    items = "".join(f"own[{parameters + j}], " for j in range(width))
    start = unrolled_kernel("state, own", f"(state[0], state[1], ({items}))")
    return Carrying(start, *between_parts(begin, True), width, _nothing_kept, _nothing_put)


def continuing(begin: Callable[..., Any], chain: Chain) -> Carrying:
    """With a chain among the parameters: that of the start of a call is replaced by that of its end."""
    lines = "".join(
        f"    store(values[{chain.values + j}], at, y[2][{chain.memory + j}])\n" for j in range(chain.numbers)
    )
    space: dict[str, Any] = {"store": store}
    exec(f"def keep(values, at, y):\n{lines}", space)  # the text contains no user input
    _, put_back = _copying(COLUMNS)
    return Carrying(
        _beginning(begin), *between_parts(begin, True), 0, inner(space["keep"]), put_back,
        with_states(chain.memory + chain.numbers).is_valid,
    )  # fmt: skip


def filling(
    begin: Callable[..., Any], before: Callable[..., Any], torque: Callable[..., Any], size: Sizes, width: int,
    own_dt: bool,
) -> Callable[..., Any]:  # fmt: skip
    """The memory of all bodies at the start of a run, to be compiled; for memories that do not depend on the state.

    ``fill(moments, values, axes, tables, h)`` writes it into the last `width` rows of `values`.
    """
    system_of, inertia_of, axes_of = system_maker(size, False), _of_bodies(6), _of_bodies(size.axes)
    values_of, write = _of_bodies(size.values), writing(width, COLUMNS)
    dt_of, _ = _timing(Call(False, False, own_dt))

    def fill(moments: Any, values: Any, axes: Any, tables: Any, h: Any) -> None:
        for g in range(values.shape[1] // LANES):
            at = g * LANES
            i, own, a = inertia_of(moments, at), values_of(values, at), axes_of(axes, at)
            inertia, inverse = (i[0], i[1], i[2]), (i[3], i[4], i[5])
            zero = 0 * i[0]
            y = begin(((zero + 1, zero, zero, zero), (zero, zero, zero)))
            system = system_of(inertia, inverse, own, tables, (), a)
            filled, _ = before(dt_of(h, at) + zero, zero, y, system, torque)
            write(values[size.values :], 0, at, filled[2])

    return fill


def _gathering(form: Form, call: Call) -> tuple[Callable[..., Any], ...]:
    """Compiled functions for buffers of a group: of torques, of constants and of steps.

    Each is (array, body, stride, last) -> the buffer, filled as by `_copying`.
    """
    fill, _ = _copying(form.layout)
    fill_columns, _ = _copying(COLUMNS)
    by_rows = form.layout == ROWS

    def buffer_of(array: Any, body: int, stride: int, last: int) -> Any:
        width = array.shape[1] if by_rows else array.shape[0]
        buffer = np.empty((LANES, width) if by_rows else (width, LANES), array.dtype)
        fill(array, body, stride, last, buffer)
        return buffer

    def torques_of(force: Any, body: int, stride: int, last: int) -> Any:
        shape = (len(force), LANES, 3) if by_rows else (len(force), 3, LANES)
        buffer = np.empty(shape, force.dtype)
        for k in range(len(force)):
            fill(force[k], body, stride, last, buffer[k])
        return buffer

    def constants_of(array: Any, body: int, stride: int, last: int) -> Any:
        if stride == 1 and array.shape[1] == LANES:  # it holds the last group already, or one body for all
            return array
        buffer = np.empty((array.shape[0], LANES))
        fill_columns(array, min(body, array.shape[1] - 1), stride, min(last, array.shape[1] - 1), buffer)
        return buffer

    def steps_of(h: Any, body: int, stride: int, last: int) -> Any:
        buffer = np.empty(LANES)
        for lane in range(LANES):
            buffer[lane] = h[min(body + lane * stride, last)]
        return buffer

    def same(array: Any, body: int, stride: int, last: int) -> Any:
        return array

    forces = torques_of if call.each else buffer_of if call.held else same
    found = buffer_of, forces, constants_of, steps_of if call.own_dt else same
    return tuple(outer(function) for function in found)


def loop(
    step: Callable[..., Any], torque: Callable[..., Any], size: Sizes, form: Form, call: Call, carried: Carrying,
    before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The steps of many bodies, to be compiled.

    ``run(q, v, force, moments, values, axes, tables, h, n, failed, stop, begin, end, t)`` advances the bodies of the
    groups from `begin` to `end` by `n` steps and returns how many failed: ``failed[body]`` is then True and its state
    is unchanged. A negative result means that nothing was done, or that another thread set the flag ``stop[0]``: each
    body has made all steps or none then. `moments` (and their inverses, zero for the axis of a linear body), `values`
    and `axes` have one row for each number and one column for each body (padded to whole groups), or `LANES` equal
    columns. After the parameters, `values` has the memory of a method with noise; a chain among the parameters is
    changed. `h` is the step, or the steps of the bodies (padded). With torques for each sub-step, there are as many of
    them as steps.
    """
    held, agree = call.held, _shapes(form, call)
    span = _spanning(step, torque, size, form, call, carried, before, after)
    (_, put), (states_of, forces_of, constants_of, steps_of) = _copying(form.layout), _gathering(form, call)
    put_back = carried.put_back

    def run(
        q: Any, v: Any, force: Any, moments: Any, values: Any, axes: Any, tables: Any, h: Any, n: int, failed: Any,
        stop: Any, begin: int, end: int, t: Any,
    ) -> int:  # fmt: skip
        number, lost = len(failed), 0
        if not agree(q, v, force, number):
            return WRONG_SHAPE
        if not (_apart(q, v) and (not held or (_apart(q, force) and _apart(v, force)))):
            return OVERLAPPING
        whole, last = min(end, number // LANES), number - 1
        g, lane = begin, -1  # lane: the body that is alone in the buffers, or -1
        while g < end:
            # a single call of `span`, because numba compiles it once for each
            in_place = lane < 0 and g < whole
            at, stride = g * LANES + max(lane, 0), 1 if lane < 0 else 0
            count = min(LANES, number - at) if lane < 0 else 1
            if in_place:
                y, w, f, inertia, own, a, dt, first, past = q, v, force, moments, values, axes, h, g, whole
            else:
                y, w = states_of(q, at, stride, last), states_of(v, at, stride, last)
                f, dt = forces_of(force, at, stride, last), steps_of(h, at, stride, last)
                inertia, own = constants_of(moments, at, stride, last), constants_of(values, at, stride, last)
                a, first, past = constants_of(axes, at, stride, last), 0, 1
            reached = span(y, w, f, inertia, own, a, tables, dt, n, first, past, t, stop)
            if reached < 0:
                return reached
            fine = reached == past
            if in_place:
                g, lane = reached, -1 if fine else 0
                continue
            if fine:
                put(y, count, q, at)
                put(w, count, v, at)
                put_back(own, count, values, at)
            elif lane >= 0:
                failed[at] = True
                lost += 1
            if lane < 0 and not fine:
                lane = 0
            elif lane < 0 or g * LANES + lane + 1 == min(number, (g + 1) * LANES):
                g, lane = g + 1, -1
            else:
                lane += 1
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
