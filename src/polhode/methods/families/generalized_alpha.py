"""The generalised-alpha method of structural dynamics on SO(3), with its acceleration as a memory.

O. Bruels, A. Cardona and M. Arnold, Mech. Mach. Theory 48 (2012) 121-137, without constraints. Accelerations are stored
as rates of the body momentum: A = I a, the auxiliary one of the method, and D = Pi x omega + T, the true one. A belongs
to the time t + (alpha_m - alpha_f) h; its initial value is the rate at that time, after a step of Euler's method. With
the common choice A = D at the start, the first step would have a local error of h^2.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, NamedTuple

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import add, along, exp, mul, scale, sub
from ...kernels.solvers import newton
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ..mechanics import gyration, gyration_columns, rotation_increment
from ..record import Method
from ..registry import declare, methods

NAME = "galpha"
MEMORY = 6
"""Numbers a run carries: A, then D."""


class Parameters(NamedTuple):
    """Coefficients for a spectral radius at infinity."""

    alpha_m: Fraction
    alpha_f: Fraction
    gamma: Fraction
    beta: Fraction


def parameters(rho: Fraction) -> Parameters:
    """Return Chung and Hulbert's choice: order 2, and the smallest damping of low frequencies."""
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = Fraction(1, 2) + alpha_f - alpha_m
    return Parameters(alpha_m, alpha_f, gamma, (gamma + Fraction(1, 2)) ** 2 / 4)


@kernel
def _rate(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
    """Rate of the body momentum, D = Pi x omega + T."""
    return add(gyration(m, system), torque(t, q, m, system))


@kernel
def _attitude(x: Any, data: Any, system: Any) -> Any:
    """End attitude for an end momentum x: R_0 exp(h I^-1 (Pi_0 + (1/2 - beta) h A_0 + beta h A_1))."""
    h, _, q, start, over, _, _ = data
    return mul(q, exp(rotation_increment(h, along(start, over, x), system)))


@kernel
def _residual(x: Any, data: Any, system: Any, torque: Any) -> Any:
    h, t, _, _, _, weight, known = data
    return sub(along(x, -weight, _rate(t + h, _attitude(x, data, system), x, system, torque)), known)


@kernel
def _columns(x: Any, data: Any, system: Any) -> Any:
    return gyration_columns(data[5], x, system)


_root = newton(_residual, _columns)


def _steps(rho: Fraction, number: Callable[[Any], Any]) -> tuple[Step, Step]:
    """Return the step kernel, and the kernel that fills its memory."""
    alpha_m, alpha_f, gamma, beta = parameters(rho)
    early = converted(alpha_m - alpha_f, number)
    lead, old, now = (converted(c / (1 - alpha_m), number) for c in (1 - alpha_f, alpha_f, alpha_m))
    kept, new = converted(1 - gamma, number), converted(gamma, number)
    share = converted(beta / gamma, number)
    rest = converted(Fraction(1, 2) - beta - beta / gamma * (1 - gamma), number)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, memory = y
        a, d = (memory[0], memory[1], memory[2]), (memory[3], memory[4], memory[5])
        past = along(scale(old, d), -now, a)
        known = along(along(m, kept * h, a), new * h, past)
        start = along(scale(1 - share, m), rest * h, a)
        data = (h, t, q, start, share, new * lead * h, known)
        guess = along(m, h, d)
        x, residual = _root(guess, data, system, torque)
        q = _attitude(x, data, system)
        d = _rate(t + h, q, x, system, torque)
        a = along(past, lead, d)
        return (q, x, (a[0], a[1], a[2], d[0], d[1], d[2])), residual

    @kernel
    def begin(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m = y[0], y[1]
        d = _rate(t, q, m, system, torque)
        s = early * h
        a = _rate(t + s, mul(q, exp(rotation_increment(s, m, system))), along(m, s, d), system, torque)
        return (q, m, (a[0], a[1], a[2], d[0], d[1], d[2])), 0 * h

    return step, begin


DOC = r"""The generalised-alpha method on SO(3) with the spectral radius %s at infinity.

With $\rho$ that radius,

$$\begin{aligned}
\alpha_m &= \frac{2 \rho - 1}{\rho + 1}, & \alpha_f &= \frac{\rho}{\rho + 1}, &
\gamma &= \tfrac{1}{2} + \alpha_f - \alpha_m, & \beta &= \tfrac{1}{4} (\gamma + \tfrac{1}{2})^2
\end{aligned}$$

a run carries the rate $D = \Pi \times \omega + T$ of the momentum and an auxiliary rate $A$. A step is

$$\begin{aligned}
(1 - \alpha_m)\,A_1 + \alpha_m A_0 &= (1 - \alpha_f)\,D_1 + \alpha_f D_0, \\
\Pi_1 &= \Pi_0 + h\,(1 - \gamma)\,A_0 + h\,\gamma\,A_1, \\
R_1 &= R_0 \exp\bigl(h\,I^{-1} (\Pi_0 + (\tfrac{1}{2} - \beta)\,h\,A_0 + \beta\,h\,A_1)\bigr), \\
D_1 &= \Pi_1 \times \omega_1 + T(t + h,\, R_1,\, \omega_1)
\end{aligned}$$

All equations are solved together for $\Pi_1$. A run begins with $A$ as the rate at $t + (\alpha_m - \alpha_f)\,h$,
after a step of Euler's method to that time."""


def _radius(rho: Any) -> tuple[Fraction, str]:
    """Return the spectral radius, exactly as written, and its shortest text."""
    try:
        value = Decimal(str(rho).strip())
    except InvalidOperation:
        value = Decimal(-1)
    if not (value.is_finite() and 0 <= value <= 1):
        raise InputError(f"{NAME}() takes the spectral radius at infinity, from 0 to 1; got {rho!r}. Write {NAME}(0.8)")
    text = format(value.normalize(), "f")
    return Fraction(text), text


def galpha(rho: float | str, *, register: bool = False) -> Method:
    """The generalised-alpha method with a spectral radius at infinity: 1 is undamped, 0 damps high frequencies most."""
    radius, text = _radius(rho)
    name = f"{NAME}({text})"
    if name in methods:
        return methods[name]
    return declare(
        lambda number: _steps(radius, number)[0], before=lambda number: _steps(radius, number)[1], register=register,
        name=name, memory=MEMORY, order=2, order_free=2, symmetric=radius == 1, symplectic=False, poisson=False,
        implicit=True, solves=1, torque_evals=1, torque_at=("end",), needs="velocity", cite="bruels2012",
        where="the Lie group generalized-alpha method without constraints", doc=DOC % text,
    )  # fmt: skip


methods.add_combinator(NAME, galpha)
for _rho in ("0.8", "1"):
    galpha(_rho, register=True)
methods.add_label("generalized_alpha", f"{NAME}(0.8)")
