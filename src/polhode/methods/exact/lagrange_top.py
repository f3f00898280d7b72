"""The exact motion of the Lagrange top: its Cayley-Klein parameters as quotients of theta functions.

J. L. Lagrange, Mecanique analytique (1788); F. Klein and A. Sommerfeld, Ueber die Theorie des Kreisels (1897-1910),
who write each Cayley-Klein parameter as one quotient. Space and body are turned so that the potential is A g u with
g > 0, u = R33, and the body's third axis is the axis of symmetry; A and C are the moments perpendicular to it and
along it. Then

    R = R_A exp(t (1/C - 1/A) m_3 e_3),   R_A the motion of the body with three moments A.

For R_A, with omega = m/A, s = omega_3, p the vertical component of omega, x = 1 - u, y = 1 + u, and complex numbers
alpha = q0 + i q3, beta = q2 - i q1, w = omega_2 - i omega_1:

    |alpha|^2 = y/2,   |beta|^2 = x/2,   |w|^2 = 2 g (x - x_e),   x_e = x - |w|^2/(2g) a constant,
    arg alpha' = sigma/(2y),   arg beta' = delta/(2x),   arg w' = -s/2 - kappa/(2 (x - x_e)),
    sigma = p + s,   delta = p - s,   kappa = delta + s x_e,
    x'^2 = -delta^2 + 2b x + c x^2 - 2g x^3 = 2g (x_1 - x)(x - x_2)(x - x_3),   x_3 <= 0 <= x_2 <= x_1 <= 2.

So x = x_1 - (x_1 - x_2) sn^2 v, v' = lambda = sqrt(g (x_1 - x_3)/2), 1 - k^2 = (x_2 - x_3)/(x_1 - x_3), and with
z = pi v/(2K) each of the three is a constant times

    exp(i mu t) theta_4(z + iY)/theta_4(z)  (alpha),    exp(i mu t) theta_3(z + iY)/theta_4(z)  (beta, w).

A parameter that passes near or through zero needs no special case: no angle is ever computed. For k^2 >= 1/2 the
theta functions are those of the complementary nome, and k = 1 (the top that approaches the upright position for ever)
is not a special case.

This file holds the kernels. They take the rates as unevaluated sums of two numbers, so that their error does not grow
with time; `lagrange_constants` computes everything that does not depend on time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.so3 import mul, unrotate
from ...numbers.dispatch import kernel
from ...numbers.double_double import Pair, nearest, pair_product, pair_sum, two_sum
from ...numbers.primitives import exp, sincos, where
from ...numbers.types import Number, State
from ..record import TOP
from ..registry import declare

Complex = tuple[Number, Number]


@kernel
def _unwound(x: Pair) -> tuple[Number, Number]:
    """Split x into the nearest integer and the remainder; return the remainder and the integer."""
    n = nearest(x[0])
    return (x[0] - n) + x[1], n


@kernel
def _waves(terms: Any, c: Number, s: Number) -> Complex:
    """Sum of a_n cos nx + i b_n sin nx, from cos x and sin x."""
    re, im = terms[0][0], 0 * c
    a, b = c, s
    for n in range(1, len(terms)):
        re, im = re + terms[n][0] * a, im + terms[n][1] * b
        a, b = a * c - b * s, b * c + a * s
    return re, im


@kernel
def circular(v: Pair, terms: Any, full: Number, length: Number, bounded: Number) -> Any:
    """Return the number of whole periods, the numerators and the denominator for k^2 < 1/2; v is in periods."""
    r, n = _unwound(v)
    s, c = sincos(full * r)
    alpha, beta, w = _waves(terms[0], c, s), _waves(terms[1], c, s), _waves(terms[2], c, s)
    return n, alpha, beta, w, _waves(terms[3], c, s)[0]


@kernel
def _powers(terms: Any, up: Number, down: Number, first: Number, sign: Number) -> Complex:
    """Sum of (a_n + i sign b_n) up^n + first (c_n - i sign d_n) down^n."""
    re, im = 0 * up, 0 * up
    grow, fall = 1 + 0 * up, first
    for n in range(len(terms)):
        a, b, c, d = terms[n]
        re, im = re + (a * grow + c * fall), im + sign * (b * grow - d * fall)
        grow, fall = grow * up, fall * down
    return re, im


@kernel
def hyperbolic(v: Pair, terms: Any, full: Number, length: Number, bounded: Number) -> Any:
    """As `circular`, for k^2 >= 1/2, in the complementary nome q: theta functions of i z, z = length * v.

    All are multiplied by e = exp(-|z|); powers of q/e^2 = exp(2|z| - length) <= 1 replace the growing exponentials.
    Without a period (bounded = 0) there is no nome, and v is not reduced.
    """
    r, n = _unwound(v)
    finite = bounded > 0
    r, n = where(finite, r, v[0] + v[1]), where(finite, n, 0 * n)
    size, sign = abs(r), where(r < 0, -1 + 0 * r, 1 + 0 * r)
    e = exp(-length * size)
    up = where(finite, exp(-length * where(finite, 1 - 2 * size, 1 + size)), 0 * e)
    ee, one = e * e, 1 + 0 * e
    alpha = _powers(terms[0], up, ee, ee, sign)
    b, w = _powers(terms[1], up, ee, one, sign), _powers(terms[2], up, ee, one, sign)
    return n, alpha, (e * b[0], e * b[1]), (e * w[0], e * w[1]), _powers(terms[3], up, ee, ee, sign)[0]


@kernel
def _with_phase(turning: Any, elapsed: Pair, turns: Number, full: Number, z: Complex, over: Number) -> Complex:
    """z/over times the phase factor; the phase (start, rate, step per period) is in full turns."""
    start, rate, step = turning
    x = pair_sum(start, pair_sum(pair_product(rate, elapsed), pair_product(step, (turns, 0 * turns))))
    s, c = sincos(full * _unwound(x)[0])
    re, im = z[0] / over, z[1] / over
    return c * re - s * im, s * re + c * im


def state_kernel(shape: Callable[..., Any]) -> Callable[..., State]:
    """Kernel: attitude and body momentum at the time t, from `circular` or `hyperbolic` and the constants."""

    @kernel
    def state(t: Number, about: Any) -> State:
        t0, (start, rate), turnings, terms, (full, length, bounded, spin), (left, right) = about
        elapsed = two_sum(t, -t0)
        v = pair_sum(start, pair_product(rate, elapsed))
        turns, alpha, beta, w, over = shape(v, terms, full, length, bounded)
        a = _with_phase(turnings[0], elapsed, turns, full, alpha, over)
        b = _with_phase(turnings[1], elapsed, turns, full, beta, over)
        m = _with_phase(turnings[2], elapsed, turns, full, w, over)
        q = mul(mul(left, (a[0], -b[1], b[0], a[1])), right)
        return q, unrotate(right, (-m[1], m[0], spin))

    return state


def _no_step(number: Callable[[Any], Any]) -> Any:
    raise InputError(
        "lagrange is an exact motion without steps; use ph.solve(problem, 'lagrange', dt=..., steps=...) or "
        "ph.exact(problem, times)"
    )


lagrange = declare(
    _no_step, name="lagrange", order=math.inf, order_free=math.inf, symmetric=True, symplectic=True, poisson=None,
    implicit=False, solves=0, torque_evals=0, conserves=("energy_linear_potential",), needs=TOP,
    cite="klein1897", where="the Cayley-Klein parameters as quotients of theta functions",
    doc=r"""The exact motion of the Lagrange top, a symmetric body in a uniform field, by theta functions.

    Space and body are rotated so that the potential is $A\,g\,u$ with $g > 0$ and $u = R_{33}$, and the third axis of
    the body is the axis of symmetry; $A$ and $C$ are the moments perpendicular to it and along it. With $R_A$ the
    motion of the body with three moments $A$,

    $$R_1 = R_A(h) \exp\bigl(h\,(1/C - 1/A)\,\Pi_3\,\mathrm{e}_3\bigr)$$

    For $R_A$ let $x = 1 - u$ and $v = h\,\lambda + v_0$. The energy and the two conserved momenta give

    $$\dot x^2 = 2\,g\,(x_1 - x)\,(x - x_2)\,(x - x_3), \qquad x = x_1 - (x_1 - x_2)\,\mathrm{sn}^2 v$$

    $$\lambda = \sqrt{g\,(x_1 - x_3)/2}, \qquad 1 - k^2 = \frac{x_2 - x_3}{x_1 - x_3}$$

    and with $K$ the quarter period and $z = \pi v/(2 K)$ the Cayley-Klein parameters $q_0 + \mathrm{i}\,q_3$,
    $q_2 - \mathrm{i}\,q_1$ and $\omega_2 - \mathrm{i}\,\omega_1$ are constants times

    $$\mathrm{e}^{\mathrm{i} \mu_1 h}\,\frac{\theta_4(z + \mathrm{i} Y_1)}{\theta_4(z)}, \qquad
    \mathrm{e}^{\mathrm{i} \mu_2 h}\,\frac{\theta_3(z + \mathrm{i} Y_2)}{\theta_4(z)}, \qquad
    \mathrm{e}^{\mathrm{i} \mu_3 h}\,\frac{\theta_3(z + \mathrm{i} Y_3)}{\theta_4(z)}$$

    The constants follow from the initial state: there are no steps, and errors do not grow with their number.
    """,
)  # fmt: skip
