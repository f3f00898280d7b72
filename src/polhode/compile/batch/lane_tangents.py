"""Steps of many bodies with a tangent each: kernels of a step on duals, of lanes or, on a GPU, of doubles.

A state is (q, Pi, z): z is the tangent, a rotation d in R exp(hat d) and a change of the momentum, in principal axes. A
step makes duals of them, dq = q (0, d)/2, runs the kernel of the method, and reads the tangent again, d = 2 Im(q* dq).
One direction in each lane is as fast as several, and its code is short: a matrix takes a lane for each of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from numba.extending import register_jitable

from ...kernels.so3 import conj, dot, mul, times
from ...kernels.state import collapse
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel, noinline
from ...numbers.primitives import log, sqrt, stop_gradient, tangent, where, with_tangents
from ...physics.fields.variation import GROWTH, MEAN, PER_SPAN, PERIOD, TIME, WEIGHTED
from .. import numba_target

SIZE = 6
"""Numbers of a tangent."""


class Places(NamedTuple):
    """Where the numbers of a tangent stand among the numbers of a body that a torque can read.

    The parameters of the field come first, `parameters` of them; then the initial tangent. If the data vary (`data`),
    the tangents of the three moments, of the axes and of the first `varied` parameters follow; then the axes.
    """

    parameters: int
    axes: int
    columns: tuple[int, ...] = ()
    """Places of columns of data among the parameters; these do not vary."""
    data: bool = False
    varied: int = 0
    size: int = SIZE
    """Numbers of the tangent; more if a variation and its growth are integrated (`growing_step`)."""

    @property
    def states(self) -> tuple[int, ...]:
        """Places of the initial tangent."""
        return tuple(range(self.parameters, self.parameters + self.size))

    @property
    def numbers(self) -> list[int]:
        """Places of what a torque reads: the parameters, and the axes."""
        first = self.parameters + self.size + (3 + self.axes + self.varied if self.data else 0)
        return [*range(self.parameters), *range(first, first + self.axes)]


def _made(parameters: str, result: str, *lines: str, **space: Any) -> Callable[..., Any]:
    """Compiled function of a text, which depends on sizes alone."""
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result}"))
    exec(f"def made({parameters}):\n{body}", space)  # the text contains no user input
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["made"])
    return made


def _tuple(items: Iterable[str]) -> str:
    return "(" + "".join(f"{item}, " for item in items) + ")"


_joined = _made(
    "q, m, z",
    f"({_tuple(f'dual(q[{i}], (dq[{i}],))' for i in range(4))}, "
    f"{_tuple(f'dual(m[{i}], (z[{3 + i}],))' for i in range(3))})",
    "dq = mul(q, (0 * z[0], z[0] / 2, z[1] / 2, z[2] / 2))", mul=mul, dual=with_tangents,
)  # fmt: skip
"""Compiled function (q, m, z) -> the state as duals."""

_split = _made(
    "a, b",
    f"(q, m, (2 * d[1], 2 * d[2], 2 * d[3], {', '.join(f'tangent(b[{i}], 0)' for i in range(3))}))",
    f"q, m = {_tuple(f'value(a[{i}])' for i in range(4))}, {_tuple(f'value(b[{i}])' for i in range(3))}",
    f"d = mul(conj(q), {_tuple(f'tangent(a[{i}], 0)' for i in range(4))})",
    mul=mul, conj=conj, value=stop_gradient, tangent=tangent,
)  # fmt: skip
"""Compiled function (q, m) of duals -> (q, m, z)."""


def _plain_system(places: Places) -> Callable[..., Any]:
    """Compiled function (system) -> the same without the numbers of the tangent."""
    return _made("system", f"(system[0], system[1], {_tuple(f'system[2][{j}]' for j in places.numbers)})")


def _varied_system(places: Places) -> Callable[..., Any]:
    """Compiled function (system) -> the system with its tangents; that of 1/I is -dI/I^2."""
    first = places.states[-1] + 1
    axes, parameters = first + 3, first + 3 + places.axes

    def number(j: int) -> str:
        if j in places.columns or places.varied <= j < places.parameters:
            return f"system[2][{j}]"
        place = parameters + j if j < places.parameters else axes + places.numbers.index(j) - places.parameters
        return f"dual(system[2][{j}], (system[2][{place}],))"

    inertia = _tuple(f"dual(system[0][{i}], (system[2][{first + i}],))" for i in range(3))
    inverse = _tuple(
        f"dual(system[1][{i}], (-system[2][{first + i}] * system[1][{i}] * system[1][{i}],))" for i in range(3)
    )
    return _made("system", f"({inertia}, {inverse}, {_tuple(map(number, places.numbers))})", dual=with_tangents)


def fixed_step(step: Callable[..., Any], start: Callable[..., Any], places: Places) -> Callable[..., Any]:
    """Kernel of a step of (q, m, z) from the kernel of a method; `start` makes its state from (q, m)."""
    system_of = (_varied_system if places.data else _plain_system)(places)

    @kernel
    def step_with_tangent(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = step(h, t, start(_joined(y[0], y[1], y[2])), system_of(system), torque)
        q, m = collapse(new)
        return _split(q, m), stop_gradient(residual)

    return step_with_tangent


def growing_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """Kernel of a step of (q, m, z) with a variation of length 1 and its growth (`physics/fields/variation`).

    The length is that of (d, I^-1 dPi/nu). Integrals over a step are those of the trapezoidal rule.
    """

    @kernel
    def grow(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = step(h, t, y, system, torque)
        v, old = new[2], y[2]
        e = times(system[1], (v[3], v[4], v[5]))
        length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + old[PERIOD] * old[PERIOD] * dot(e, e))
        g, share, over = log(length), abs(h) * old[PER_SPAN], 1 / length
        s = old[TIME] + share
        weighted = old[WEIGHTED] + g * (s - share / 2)
        before = where(old[TIME] > 0, 2 * old[WEIGHTED] / where(old[TIME] > 0, old[TIME], 1.0), 0.0)
        mean = old[MEAN] + share * (before + 2 * weighted / s) / 2
        z = (
            over * v[0], over * v[1], over * v[2], over * v[3], over * v[4], over * v[5],
            old[GROWTH] + g, weighted, mean, s, old[PERIOD], old[PER_SPAN],
        )  # fmt: skip
        return (new[0], new[1], z), residual

    return grow


def observed_system(places: Places) -> Callable[..., Any]:
    """Kernel (y, system) -> the system that statistics read, with the variation as its last part."""
    numbers = _tuple(f"system[2][{j}]" for j in places.numbers)
    return unrolled_kernel("y, system", f"(system[0], system[1], {numbers}, y[2])")


def estimated_step(attempt: Callable[..., Any], places: Places) -> Callable[..., Any]:
    """Kernel of a step of (q, m, z) from that of a pair, with the errors of the state: the tangent is not judged.

    Compiled code calls it, because an adaptive run contains it twice.
    """
    system_of = (_varied_system if places.data else _plain_system)(places)

    @noinline
    @kernel
    def attempt_with_tangent(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, attitude, momentum = attempt(h, t, _joined(y[0], y[1], y[2]), system_of(system), torque)
        return _split(new[0], new[1]), stop_gradient(attitude), stop_gradient(momentum)

    return attempt_with_tangent
