"""The kernels of a stepper of many bodies for arrays in the memory of an NVIDIA GPU: one thread per body.

They read a user's arrays and write the new states back into them. Steps and changes of axes are those of the processor
(`batch/in_place`), so results agree to round-off: only the placement of fused multiply-adds may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.loops import ROTATION, stepping, with_states
from ..kernels.so3 import times, unrotate
from ..physics.validate import ROTATION_TOLERANCE
from . import cuda as card
from .batch.in_place import Call, Chain, Form, between_parts, principal, system_maker
from .batch.layout import Sizes, inner, vector_in, vector_out
from .cuda import from_text
from .cuda_bodies import kernel, of_body, reading, step_of, writing

cuda: Any = None
"""numba.cuda; a module global, because numba's simulator replaces it by name."""


def _import() -> None:
    global cuda
    cuda = card.card()


def _counted(width: int, count: int | None) -> Callable[..., Any]:
    """Compiled function (a, k, made) -> as `of_body`, with `made` added to the number at the place `count`."""
    items = "".join(f"a[{j}, c]{' + made' if j == count else ''}, " for j in range(width))
    return from_text("a, k, made", f"c = min(k, a.shape[1] - 1); return ({items})")


def _keeping(chain: Chain | None) -> Callable[..., Any]:
    """Compiled function (values, k, y) that writes the chain of body k for the next call; without one, nothing."""
    places = range(0 if chain is None else chain.numbers)
    text = "; ".join(f"values[{chain.values + j}, k] = y[2][{chain.memory + j}]" for j in places if chain is not None)
    return from_text("values, k, y", text or "pass")


def loop(
    step: Callable[..., Any], torque: Callable[..., Any], size: Sizes, form: Form, call: Call,
    start: Callable[..., Any], memory: bool,
    before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None, count: int | None = None,
    chain: Chain | None = None,
) -> Any:  # fmt: skip
    """The steps of many bodies, a kernel.

    ``run(q, v, force, moments, values, axes, tables, made, h, n, flags, fault, number, t)``, with the arguments of
    `in_place.loop`; `start` makes a state from (q, m), with a `memory` or without. With noise, the number of the first
    step is at the place `count` among the values, and `made` is added to it. A `chain` among the values is changed. If
    a step fails, the state of the body is unchanged, its flag is set, and ``fault[0]``, too.
    """
    _import()
    held, each = call.held, call.each
    is_valid = ROTATION.is_valid if chain is None else with_states(chain.memory + chain.numbers).is_valid
    advance = inner(stepping(step, torque, ROTATION._replace(is_valid=is_valid), before, after))
    keep = _keeping(chain)
    read4, read3, write4, write3 = (make(w, form.layout) for make in (reading, writing) for w in (4, 3))
    read_force = reading(3, form.layout, each)
    (enter, leave), system_of = principal(form, size.axes > 0), system_maker(size, held)
    inertia_of, axes_of, values_of = of_body(6), of_body(size.axes), _counted(size.values - 3 * held, count)
    (following, number_of), dt_of = between_parts(start, memory), step_of(call.own_dt)

    def no_force(force: Any, s: int, k: int) -> Any:
        return ()

    def parts_of(force: Any) -> int:
        return len(force)

    def one_part(force: Any) -> int:
        return 1

    def later(t: Any, h: Any, s: int) -> Any:
        return t + s * h

    def same(t: Any, h: Any, s: int) -> Any:
        return t

    force_now = read_force if held else inner(no_force)
    count_parts, time_of = inner(parts_of if each else one_part), inner(later if each else same)

    def run(
        q: Any, v: Any, force: Any, moments: Any, values: Any, axes: Any, tables: Any, made: float, h: Any, n: int,
        flags: Any, fault: Any, number: int, t: Any,
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            i, own, a, dt = inertia_of(moments, k), values_of(values, k, made), axes_of(axes, k), dt_of(h, k)
            inertia, inverse = (i[0], i[1], i[2]), (i[3], i[4], i[5])
            rows = cuda.local.array((1, 7), np.float64)
            state, excess = enter(read4(q, 0, k), read3(v, 0, k), inertia, a)
            fine, s, some, y = excess <= 2 * ROTATION_TOLERANCE, 0, 1 if each else n, start(state)
            while fine and s < count_parts(force):
                system, first = system_of(inertia, inverse, own, tables, force_now(force, s, k), a), number_of(s)
                begin = time_of(t, dt, s - first)
                y, _, _, _, fine = advance(dt, begin, first, some, some, first + some, y, system, rows)
                state = (rows[0, 0], rows[0, 1], rows[0, 2], rows[0, 3]), (rows[0, 4], rows[0, 5], rows[0, 6])
                y = following(y, state)
                s += 1
            if fine:
                attitude, vector = leave(state[0], state[1], inverse, a)
                write4(q, k, attitude)
                write3(v, k, vector)
                keep(values, k, y)
            else:
                flags[k] = True
                fault[0] = 1

    return kernel(run)


def kicking(form: Form, turned: bool, space_frame: bool, own_dt: bool) -> Any:
    """A kick of many bodies, a kernel: Pi += h T, or omega += h I^-1 T, with T in the body or the space frame.

    ``run(q, v, force, moments, axes, h, fraction, number)``
    """
    _import()
    read4, read3, write3 = reading(4, form.layout), reading(3, form.layout), writing(3, form.layout)
    inertia_of, axes_of, dt_of = of_body(6), of_body(4 * turned), step_of(own_dt)
    last, omega = form.scalar_last, form.omega

    def run(
        q: Any, v: Any, force: Any, moments: Any, axes: Any, h: Any, fraction: float, number: int
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            torque, dt = read3(force, 0, k), fraction * dt_of(h, k)
            if space_frame:
                attitude = read4(q, 0, k)
                if last:
                    attitude = (attitude[3], attitude[0], attitude[1], attitude[2])
                torque = unrotate(attitude, torque)
            if omega:
                i = inertia_of(moments, k)
                if turned:
                    a = axes_of(axes, k)
                    torque = vector_out(a, times((i[3], i[4], i[5]), vector_in(a, torque)))
                else:
                    torque = times((i[3], i[4], i[5]), torque)
            x, y, z = read3(v, 0, k)
            write3(v, k, (x + dt * torque[0], y + dt * torque[1], z + dt * torque[2]))

    return kernel(run)


def checking(layout: str) -> Any:
    """A kernel that flags bodies without a unit quaternion: ``run(q, flags, fault, number)``."""
    _import()
    read4 = reading(4, layout)

    def run(q: Any, flags: Any, fault: Any, number: int) -> None:
        k = cuda.grid(1)
        if k < number:
            a, b, c, d = read4(q, 0, k)
            if not abs(a * a + b * b + c * c + d * d - 1) <= 2 * ROTATION_TOLERANCE:
                flags[k] = True
                fault[0] = 1

    return kernel(run)
