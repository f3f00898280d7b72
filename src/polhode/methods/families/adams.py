"""The four-step Adams-Bashforth-Moulton predictor-corrector, on the quaternion or on the angular velocity.

Predict with (55, -59, 37, -9)/24 of the rates at t, t - h, t - 2h, t - 3h; correct with (9, 19, -5, 1)/24 of the rates
at t + h (as predicted), t, t - h, t - 2h. All rates are in the body frame at the start of the step: p is the rotation
since then, q = q_0 p. A run carries the rates of the last three steps; those before its start come from the Runge-Kutta
method, backwards in time. S. R. Buss's talk of 2011 does not say which variant was used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...kernels.loops import Step
from ...kernels.so3 import along, conj, exp, mul, restored, rotate, unrotate
from ...numbers.dispatch import kernel
from ...numbers.types import Number, Quat, Vec3
from ..mechanics import velocity
from ..registry import method
from .buss import TAYLOR, rk4_quat


@kernel
def _quaternion_rate(p: Quat, w: Vec3) -> Quat:
    """Rate p' = p omega/2."""
    return mul(p, (0 * w[0], w[0] / 2, w[1] / 2, w[2] / 2))


@kernel
def _quaternion_seen(p: Quat, r: Quat) -> Quat:
    """Rate of the quaternion in the frame after the rotation p."""
    return mul(conj(p), r)


@kernel
def _grown(h: Number, mean: Any) -> Quat:
    """Normalised quaternion 1 + h times a mean rate."""
    return restored((1 + h * mean[0], h * mean[1], h * mean[2], h * mean[3]))


@kernel
def _vector_rate(p: Quat, w: Vec3) -> Quat:
    """Angular velocity in the frame of the start (as a quaternion without scalar part)."""
    u = rotate(p, w)
    return (0 * u[0], u[0], u[1], u[2])


@kernel
def _vector_seen(p: Quat, r: Quat) -> Quat:
    u = unrotate(p, (r[1], r[2], r[3]))
    return (r[0], u[0], u[1], u[2])


@kernel
def _rotation_vector(h: Number, mean: Any) -> Quat:
    """Rotation by h times a mean angular velocity."""
    return exp((h * mean[1], h * mean[2], h * mean[3]))


@kernel
def _mean(a: Any, b: Any, c: Any, d: Any, w: Any) -> Any:
    """Weighted mean of the rates of attitude (4 numbers) and of momentum (3 numbers)."""
    return (
        (w[0] * a[0] + w[1] * b[0] + w[2] * c[0] + w[3] * d[0]) / 24,
        (w[0] * a[1] + w[1] * b[1] + w[2] * c[1] + w[3] * d[1]) / 24,
        (w[0] * a[2] + w[1] * b[2] + w[2] * c[2] + w[3] * d[2]) / 24,
        (w[0] * a[3] + w[1] * b[3] + w[2] * c[3] + w[3] * d[3]) / 24,
        (w[0] * a[4] + w[1] * b[4] + w[2] * c[4] + w[3] * d[4]) / 24,
        (w[0] * a[5] + w[1] * b[5] + w[2] * c[5] + w[3] * d[5]) / 24,
        (w[0] * a[6] + w[1] * b[6] + w[2] * c[6] + w[3] * d[6]) / 24,
    )


@kernel
def _remembered(old: Any, i: int) -> Any:
    """Return seven numbers of the memory from index i on."""
    return (old[i], old[i + 1], old[i + 2], old[i + 3], old[i + 4], old[i + 5], old[i + 6])


PREDICTOR, CORRECTOR = (55, -59, 37, -9), (9, 19, -5, 1)
_backwards = rk4_quat.build(int)  # without coefficients to convert


def _adams(rate: Step, seen: Step, moved: Step) -> tuple[Step, Step]:
    """Return the step kernel and the kernel that fills its memory, for one representation of the attitude."""

    @kernel
    def rates(t: Any, q: Any, p: Any, m: Any, system: Any, torque: Any) -> Any:
        r, f = rate(p, velocity(m, system)), rotate(p, torque(t, mul(q, p), m, system))
        return (r[0], r[1], r[2], r[3], f[0], f[1], f[2])

    @kernel
    def after(p: Any, x: Any) -> Any:
        r, f = seen(p, (x[0], x[1], x[2], x[3])), unrotate(p, (x[4], x[5], x[6]))
        return (r[0], r[1], r[2], r[3], f[0], f[1], f[2])

    @kernel
    def ended(h: Any, m: Any, mean: Any) -> Any:
        p = moved(h, mean)
        return p, unrotate(p, along(m, h, (mean[4], mean[5], mean[6])))

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, old = y
        b, c, d = _remembered(old, 0), _remembered(old, 7), _remembered(old, 14)
        a = rates(t, q, (0 * h + 1, 0 * h, 0 * h, 0 * h), m, system, torque)
        p, guess = ended(h, m, _mean(a, b, c, d, PREDICTOR))
        p, end = ended(h, m, _mean(rates(t + h, q, p, guess, system, torque), a, b, c, CORRECTOR))
        return (mul(q, p), end, (*after(p, a), *after(p, b), *after(p, c))), 0 * h

    @kernel
    def filled(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, back = y[0], y[1], conj(y[0])
        y1, _ = _backwards(-h, t, (q, m), system, torque)
        y2, _ = _backwards(-h, t - h, y1, system, torque)
        y3, _ = _backwards(-h, t - 2 * h, y2, system, torque)
        b = rates(t - h, q, mul(back, y1[0]), y1[1], system, torque)
        c = rates(t - 2 * h, q, mul(back, y2[0]), y2[1], system, torque)
        d = rates(t - 3 * h, q, mul(back, y3[0]), y3[1], system, torque)
        return (q, m, (*b, *c, *d)), 0 * h

    return step, filled


FORMULA = r"""
The quaternion $p$ is the rotation since the start of the step and $S(p)$ its matrix. A run carries the rates $r_{-1}$,
$r_{-2}$, $r_{-3}$ and $f_{-1}$, $f_{-2}$, $f_{-3}$ of the last three steps. The rates of a state are

$$r = %s, \qquad f = S(p)\,T$$

with $\omega$ and $T$ in the body frame of that state; $r_0$ and $f_0$ are those of the start, where $p = 1$.
The predictor is

$$\begin{aligned}
\bar r &= \tfrac{1}{24}\,(55\,r_0 - 59\,r_{-1} + 37\,r_{-2} - 9\,r_{-3}), & p &= %s, \\
\bar f &= \tfrac{1}{24}\,(55 f_0 - 59 f_{-1} + 37 f_{-2} - 9 f_{-3}), &
\Pi &= S(p)^{\mathsf T} (\Pi_0 + h\,\bar f)
\end{aligned}$$

at which the rates $r_1$ and $f_1$ are evaluated, at the time $t + h$; and the corrector is

$$\begin{aligned}
\bar r &= \tfrac{1}{24}\,(9\,r_1 + 19\,r_0 - 5\,r_{-1} + r_{-2}), & p &= %s, & q_1 &= q_0\,p, \\
\bar f &= \tfrac{1}{24}\,(9 f_1 + 19 f_0 - 5 f_{-1} + f_{-2}), & & &
\Pi_1 &= S(p)^{\mathsf T} (\Pi_0 + h\,\bar f)
\end{aligned}$$

After it the stored rates are rotated into the new frame: $r \leftarrow %s$, $f \leftarrow S(p)^{\mathsf T} f$. The
rates before the start of a run come from three steps of `rk4_quat` backwards in time."""


def _declared(name: str, order: int, parts: tuple[Step, Step], doc: str) -> Any:
    step, filled = parts
    before: Callable[[Any], Step] = lambda number: filled  # noqa: E731 - a builder without coefficients
    return method(
        name=name, order=order, order_free=order, memory=21, before=before, doc=doc, implicit=False,
        where="Adams-Bashforth-Moulton predictor-corrector", **(TAYLOR | {"torque_evals": 2}),
    )(step)  # fmt: skip


abm4 = _declared("abm4", 4, _adams(_quaternion_rate, _quaternion_seen, _grown),
    "Four-step Adams-Bashforth-Moulton method on the entries of the quaternion, which is then normalised.\n"
    + FORMULA % (r"\tfrac{1}{2}\,p\,(0, \omega)", *[r"\frac{1 + h\,\bar r}{|1 + h\,\bar r|}"] * 2, r"p^{-1} r"),
)  # fmt: skip
abm4_naive = _declared("abm4_naive", 2, _adams(_vector_rate, _vector_seen, _rotation_vector),
    "Adams-Bashforth-Moulton weights for the spatial angular velocity, and one rotation by the average.\n"
    + FORMULA % (r"S(p)\,\omega", *[r"\exp(h\,\bar r)"] * 2, r"S(p)^{\mathsf T} r"),
)  # fmt: skip
