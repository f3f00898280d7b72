"""The kernels of a stepper of many bodies for arrays in the memory of an NVIDIA GPU: one thread per body.

They read a user's arrays and write the new states back into them. Steps and changes of axes are those of the processor
(`batch/in_place`), so results agree to round-off: only the placement of fused multiply-adds may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.loops import ROTATION, stepping
from ..kernels.so3 import times, unrotate
from ..numbers.primitives import finite
from ..physics.validate import ROTATION_TOLERANCE
from . import cuda as card
from . import numba_target
from .batch.in_place import Call, Form, principal, system_maker
from .batch.layout import Sizes, inner, vector_in, vector_out
from .clock import counted
from .simd.interleaved import ROWS

cuda: Any = None
"""numba.cuda; a module global, because numba's simulator replaces it by name."""


def _import() -> None:
    global cuda
    cuda = card.card()


def _function(arguments: str, body: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np}
    exec(f"def made({arguments}):\n    {body}\n", space)  # the text contains no user input
    return inner(space["made"])


def _place(layout: str, part: str, j: int) -> str:
    return f"a[{part}k, {j}]" if layout == ROWS else f"a[{part}{j}, k]"


def _reading(width: int, layout: str, parts: bool = False) -> Callable[..., Any]:
    """Compiled function (a, s, k) -> `width` doubles of body k, with `parts` of sub-step s."""
    items = "".join(f"np.float64({_place(layout, 's, ' * parts, j)}), " for j in range(width))
    return _function("a, s, k", f"return ({items})")


def _writing(width: int, layout: str) -> Callable[..., Any]:
    """Compiled function (a, k, x) that writes `width` numbers of body k."""
    return _function("a, k, x", "; ".join(f"{_place(layout, '', j)} = x[{j}]" for j in range(width)))


def _of_body(width: int) -> Callable[..., Any]:
    """Compiled function (a, k) -> `width` numbers of body k, or of the one for all."""
    items = "".join(f"a[{j}, c], " for j in range(width))
    return _function("a, k", f"c = min(k, a.shape[1] - 1); return ({items})")


def _own(h: Any, k: int) -> Any:
    return h[k]


def _shared(h: Any, k: int) -> Any:
    return h


def _kernel(function: Callable[..., Any]) -> Any:
    """The function as a kernel of numba-cuda."""
    numba_target.teach()  # kernels that were made for it
    made: Any = cuda.jit(function)
    if hasattr(made, "compile"):  # numba's simulator has nothing to compile
        made.compile = counted(made.compile)
    return made


def loop(
    step: Callable[..., Any], torque: Callable[..., Any], size: Sizes, form: Form, call: Call,
    before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """The steps of many bodies, a kernel.

    ``run(q, v, force, moments, values, axes, h, n, flags, fault, number, t)``, with the arguments of `in_place.loop`.
    If a step fails, the state of the body is unchanged, its flag is set, and ``fault[0]``, too.
    """
    _import()
    held, each = call.held, call.each
    advance = inner(stepping(step, torque, ROTATION, before, after))
    read4, read3, write4, write3 = (make(w, form.layout) for make in (_reading, _writing) for w in (4, 3))
    read_force = _reading(3, form.layout, each)
    (enter, leave), system_of = principal(form, size.axes > 0), system_maker(size, held)
    inertia_of, values_of, axes_of = _of_body(6), _of_body(size.values - 3 * held), _of_body(size.axes)
    dt_of = inner(_own if call.own_dt else _shared)

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
        q: Any, v: Any, force: Any, moments: Any, values: Any, axes: Any, h: Any, n: int, flags: Any, fault: Any,
        number: int, t: Any,
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            i, own, a, dt = inertia_of(moments, k), values_of(values, k), axes_of(axes, k), dt_of(h, k)
            inertia, inverse = (i[0], i[1], i[2]), (i[3], i[4], i[5])
            rows = cuda.local.array((1, 7), np.float64)
            state, excess = enter(read4(q, 0, k), read3(v, 0, k), inertia, a)
            fine, s, some = excess <= 2 * ROTATION_TOLERANCE, 0, 1 if each else n
            while fine and s < count_parts(force):
                system = system_of(inertia, inverse, own, (), force_now(force, s, k), a)
                _, _, _, _, fine = advance(dt, time_of(t, dt, s), 0, some, some, some, state, system, rows)
                state = (rows[0, 0], rows[0, 1], rows[0, 2], rows[0, 3]), (rows[0, 4], rows[0, 5], rows[0, 6])
                s += 1
            if fine:
                attitude, vector = leave(state[0], state[1], inverse, a)
                write4(q, k, attitude)
                write3(v, k, vector)
            else:
                flags[k] = True
                fault[0] = 1

    return _kernel(run)


def kicking(form: Form, turned: bool, space_frame: bool, own_dt: bool) -> Any:
    """A kick of many bodies, a kernel: Pi += h T, or omega += h I^-1 T, with T in the body or the space frame.

    ``run(q, v, force, moments, axes, h, fraction, number)``
    """
    _import()
    read4, read3, write3 = _reading(4, form.layout), _reading(3, form.layout), _writing(3, form.layout)
    inertia_of, axes_of, dt_of = _of_body(6), _of_body(4 * turned), inner(_own if own_dt else _shared)
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

    return _kernel(run)


def committing(form: Form) -> Any:
    """A kernel that copies the states of all bodies that are finite and did not fail, and flags the others.

    ``run(q, v, to_q, to_v, flags, fault, number)``
    """
    _import()
    read4, read3, write4, write3 = (make(w, form.layout) for make in (_reading, _writing) for w in (4, 3))

    def run(q: Any, v: Any, to_q: Any, to_v: Any, flags: Any, fault: Any, number: int) -> None:
        k = cuda.grid(1)
        if k < number:
            a, b = read4(q, 0, k), read3(v, 0, k)
            if finite(a[0] + a[1] + a[2] + a[3] + b[0] + b[1] + b[2]) and not flags[k]:
                write4(to_q, k, a)
                write3(to_v, k, b)
            else:
                flags[k] = True
                fault[0] = 1

    return _kernel(run)


def checking(layout: str) -> Any:
    """A kernel that flags bodies without a unit quaternion: ``run(q, flags, fault, number)``."""
    _import()
    read4 = _reading(4, layout)

    def run(q: Any, flags: Any, fault: Any, number: int) -> None:
        k = cuda.grid(1)
        if k < number:
            a, b, c, d = read4(q, 0, k)
            if not abs(a * a + b * b + c * c + d * d - 1) <= 2 * ROTATION_TOLERANCE:
                flags[k] = True
                fault[0] = 1

    return _kernel(run)
