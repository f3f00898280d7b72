"""Exact motion of the free body and the Lagrange top at any times, at constant cost for each time."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compile.clock import Stopwatch
from ..errors import InputError
from ..kernels.loops import COLUMNS, renormalise, write_row
from ..kernels.so3 import conj, mul, rotate
from ..methods.exact.lagrange_top import circular, hyperbolic, lagrange
from ..methods.exact.lagrange_top import state_kernel as top_moved
from ..methods.families.jacobi import jacobi, motion, state_after
from ..numbers.dispatch import kernel, no_fma
from ..numbers.floats import number
from ..numbers.precision import GUARD_DIGITS
from ..numbers.primitives import sqrt
from ..physics.body import real_array
from ..physics.problem import Problem
from ..physics.validate import number_of_digits
from ..results.convert import full_precision, primary
from ..results.trajectory import Info, Rounded, Trajectory, info_of
from .noise import check_noise
from .step_control import EPS

if TYPE_CHECKING:
    from ..physics.lagrange_top import Top


BLOCK = 1 << 17
"""Largest number of states computed in one call of compiled code: 0.05 seconds."""


def _visit(elapsed: Any, y: Any, inertia: Any, rows: Any) -> None:
    """Write the states at elapsed times; quantities independent of time are computed once."""
    q, m = y
    about = motion(m, inertia)
    for k in range(len(elapsed)):
        turn, new = state_after(elapsed[k], about)
        write_row(rows, k, renormalise((mul(q, turn), new)))


@kernel
def _end(elapsed: Any, y: Any, inertia: Any) -> Any:
    """Return the state after some time."""
    q, m = y
    turn, new = state_after(elapsed, motion(m, inertia))
    return renormalise((mul(q, turn), new))


class Limits(NamedTuple):
    """What a start must fulfil to need no other check; all bounds are exclusive."""

    speed: tuple[float, float]
    """Angular velocity."""
    span: tuple[float, float]
    """Time to the end."""
    share: float
    """Time to the end, relative to the end time."""
    excess: float
    """Difference of the squared length of the quaternion from 1."""


@no_fma
def exact_error(turned: Any, eps: float = EPS) -> Any:
    """Return the error of an exact solution after a rotation by an angle: that of the data, and of ten roundings."""
    return 10 * eps * (1 + turned)


@no_fma
def _start(q: Any, m: Any, inverse: Any) -> Any:
    """Return the normalised quaternion, its squared length and the angular velocity, with the rounding of Python.

    The formulas of `unit` and `norm` are written out, because no operation of this function itself is fused.
    """
    square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    s, u, v, w = 1 / sqrt(square), inverse[0] * m[0], inverse[1] * m[1], inverse[2] * m[2]
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s), square, sqrt(u * u + v * v + w * w)


def _checked_end(limits: Limits) -> Callable[..., Any]:
    """Return the state after some time, and its error; infinite if the start is not within the limits.

    Python takes longer for these comparisons than the motion takes here.
    """
    (slow, fast), (short, long), share, excess = limits

    def end(q: Any, m: Any, t: Any, system: Any) -> Any:
        t0, i, j, k, u, v, w = system
        span, (q, square, speed) = t - t0, _start(q, m, (u, v, w))
        if not (
            slow < speed and speed < fast and short < span and span < long and span > share * abs(t)
            and -excess < square - 1 and square - 1 < excess
        ):  # fmt: skip
            return q, m, math.inf
        q, m = _end(span, (q, m), (i, j, k))
        return q, m, exact_error(speed * span)

    return end


@no_fma
def _kinetic(inverse: Any, m: Any) -> Any:
    """Return the kinetic energy, with the rounding of `results.convert.primary`."""
    return (inverse[0] * m[0] * m[0] + inverse[1] * m[1] * m[1] + inverse[2] * m[2] * m[2]) / 2


def _free_states(has_principal_rotation: bool) -> Callable[..., None]:
    """Write attitudes and momenta in the user's axes, and energies: all data of a trajectory in one call."""

    def visit(times: Any, t0: Any, y: Any, system: Any, own: Any, attitudes: Any, momenta: Any, energies: Any) -> None:
        q, m = y
        about = motion(m, system[0])
        for k in range(len(times)):
            turn, new = state_after(times[k] - t0, about)
            a, b = renormalise((mul(q, turn), new))
            energies[k] = _kinetic(system[1], b)
            if has_principal_rotation:
                a, b = mul(a, conj(own)), rotate(own, b)
            for i in range(4):
                attitudes[k, i] = a[i]
            for i in range(3):
                momenta[k, i] = b[i]

    return visit


def _interpolating_top(near: bool) -> Callable[..., None]:
    """Write the states of a top at given times, from the constants of its motion."""
    state = top_moved(hyperbolic if near else circular)

    def interpolate(times: Any, about: Any, rows: Any) -> None:
        for k in range(len(times)):
            write_row(rows, k, renormalise(state(times[k], about)))

    return interpolate


_VISITS: dict[str, Callable[..., Any]] = {
    "free": _visit,
    "free end": _end,
    "free states": _free_states(False),
    "free states, turned": _free_states(True),
    "top": _interpolating_top(False),
    "top near its separatrix": _interpolating_top(True),
}


@functools.cache  # few entries; the look-up would take a third of the time of one state
def _compiled(name: str) -> Callable[..., Any]:
    from ..compile.lazily import program

    interpolate: Callable[..., Any] = program(lambda: _VISITS[name], "exact", name).run
    return interpolate


def free_end() -> Callable[..., Any]:
    """Return the compiled function (elapsed time, y, moments) -> state of a free body."""
    return _compiled("free end")


def checked_free_end(limits: Limits) -> Callable[..., Any]:
    """Return the machine code (attitude, momentum, end, system) -> (quaternion, momentum, error) of a free body.

    `system` is (t0, moments, inverses) as one tuple. The start is normalised. The error is infinite if the start is not
    within the limits, or if attitude and momentum are no tuples of floats and the end is no float.
    """
    from ..compile.lazily import entry_point, program

    run = program(lambda: _checked_end(limits), "exact", "checked free end", limits).run
    return entry_point(run, (0.0,) * 4, (0.0,) * 3, 0.0, (0.0,) * 7)


def exact(problem: Problem, t: Any, *, digits: int | None = None) -> Trajectory:
    """Return the states of a free body or a Lagrange top at given times, from elliptic and theta functions.

    Parameters
    ----------
    problem : a body without a field, or a body symmetric about b in a field U = const + a . R b
    t : one time or an array of them, in any order, before or after `problem.t0`
    digits : compute with this many digits; `Trajectory.mp` then holds the full precision

    Examples
    --------
    >>> body = ph.problems.free_body()
    >>> ph.exact(body, [10.0, 1e6]).momentum.shape
    (2, 3)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    check_noise(None, problem)
    times = _times(t)
    digits = None if digits is None else number_of_digits(digits)
    watch = Stopwatch()
    top = None if problem.field is None else recognised(problem, digits)
    if problem.field is None and digits is None:
        data = _free(problem, times)
    else:
        data = (_doubles if digits is None else functools.partial(_precise, digits=digits))(problem, times, top)
    return Trajectory(data, _info(problem, times, digits, watch, top), problem=problem)


def _times(t: Any) -> np.ndarray:
    """Return the times as a checked array."""
    if type(t) is float and t - t == 0.0:  # one finite time
        return np.array((t,))
    times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
    if times.ndim != 1 or not np.isfinite(times).all():
        raise InputError(f"t must be finite times in one dimension; got {t!r}")
    return times


def _blocks(count: int) -> Iterator[slice]:
    """Yield parts of many times; Python handles Ctrl-C between two calls of compiled code."""
    return (slice(first, first + BLOCK) for first in range(0, count, BLOCK))


def _free(problem: Problem, times: np.ndarray) -> dict[str, np.ndarray]:
    """Return the stored arrays of a trajectory of a free body."""
    y, (inertia, inverse, own) = problem.kernel_data(number)
    count = len(times)
    q, m, energy = np.empty((count, 4)), np.empty((count, 3)), np.empty(count)
    visit = _compiled("free states, turned" if own else "free states")
    for some in _blocks(count):
        visit(times[some], problem.t0, y, (inertia, inverse), own, q[some], m[some], energy[some])
    return {"t": times, "quaternion": q, "momentum": m, "energy": energy}


def top_at_steps(problem: Problem, dt: float, count: int, every: int, digits: int | None) -> Trajectory:
    """Return the exact motion of a Lagrange top at step times: every `every`-th step and the last."""
    if problem.field is None:
        raise InputError(
            f"{lagrange.name} takes a symmetric top in a field, and this body is free; use {jacobi.name!r}"
        )
    steps = np.append(np.arange(0, count, every), count)
    sol = exact(problem, problem.t0 + steps * dt, digits=digits)
    if sol.method != lagrange.name:
        raise InputError(f"{problem.field!r} has no torque, so the body is free; use {jacobi.name!r}")
    sol.info = dataclasses.replace(sol.info, dt=dt, every=every, steps=count)
    sol.dense = lambda t: exact(problem, t, digits=digits).stored
    return sol


def recognised(problem: Problem, digits: int | None) -> Top | None:
    """Return the problem as a Lagrange top; None if its field has no torque."""
    from ..numbers.multiprecision import working
    from ..physics.lagrange_top import Top, working_digits

    field = problem.field
    if field is not None and field.opaque:
        raise InputError(
            f"exact states need a field U = const + a . R b, and {field.untraced[0].no_formula}; write it as a formula"
        )
    with working(working_digits(digits)):
        top = Top(problem, digits)
    return None if top.free else top


def _doubles(problem: Problem, times: np.ndarray, top: Top | None) -> Any:
    if top is None:
        return primary(problem, times, rows_at(problem, times))
    rows = np.empty((len(times), COLUMNS))
    visit, about = _compiled(_kind(top)), _constants(top, None)
    for some in _blocks(len(times)):
        visit(times[some], about, rows[some])
    return primary(problem, times, rows)


def rows_at(problem: Problem, times: np.ndarray) -> np.ndarray:
    """Return rows (principal axes) of a free body at given times."""
    return prepared(problem)(times)


def prepared(problem: Problem, digits: int | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """Prepare the exact solution of a free body: return a function from times to rows, with the setup done once."""
    if digits is not None:
        return functools.partial(_precise_rows, problem, digits=digits, top=None)
    (y, system), t0, interpolate = problem.kernel_data(number), problem.t0, _compiled("free")
    inertia = system[0]

    def rows_at(times: np.ndarray) -> np.ndarray:
        rows = np.empty((len(times), COLUMNS))
        for some in _blocks(len(times)):
            interpolate(times[some] - t0, y, inertia, rows[some])
        return rows

    return rows_at


def _kind(top: Top) -> str:
    return "top near its separatrix" if top.motion.near else "top"


def _constants(top: Top, digits: int | None) -> Any:
    """Return the constants of a top in doubles, or in the working precision of mpmath."""
    from ..numbers import floats, multiprecision
    from ..physics.lagrange_top import working_digits

    if digits is not None:
        return top.constants(multiprecision.number, top.problem.principal(multiprecision.number)[1])
    with multiprecision.working(working_digits(None)):
        return top.constants(float, top.problem.principal(floats.number)[1])


def _precise(problem: Problem, times: np.ndarray, top: Top | None, digits: int) -> Any:
    return Rounded(full_precision(problem, times, _precise_rows(problem, times, digits, top), digits))


def _precise_rows(problem: Problem, times: np.ndarray, digits: int, top: Top | None) -> np.ndarray:
    """Return rows (principal axes) at given times, as mpmath numbers."""
    from ..numbers.multiprecision import number, working

    rows = np.empty((len(times), COLUMNS), dtype=object)
    with working(digits + GUARD_DIGITS + (0 if top is None else top.digits_of_turns(times))):
        if top is None:
            y, system = problem.kernel_data(number)
            _visit([number(x) - number(problem.t0) for x in times.tolist()], y, system[0], rows)
        else:
            _VISITS[_kind(top)]([number(x) for x in times.tolist()], _constants(top, digits), rows)
    return rows


def _info(problem: Problem, times: np.ndarray, digits: int | None, watch: Stopwatch, top: Top | None) -> Info:
    return info_of(
        problem, method=jacobi.name if top is None else lagrange.name, dt=0.0, digits=digits,
        seconds=watch.seconds, compile_seconds=watch.compile_seconds, steps=len(times),
    )  # fmt: skip
