"""The discrete Moser-Veselov method without iteration over vectors, and its preprocessed versions.

J. Moser and A. Veselov, Comm. Math. Phys. 139 (1991) 217; E. Hairer and G. Vilmart, J. Phys. A 39 (2006)
13225; G. Vilmart, Rigid body dynamics, Algorithms 3 and 4. With v = h y and e the Cayley vector of the
step, the equation of Moser and Veselov is 2 I e = v + v x e + kappa e with kappa = v.e: linear in e once
the number kappa is known, and kappa is the small root of a quartic whose coefficients depend on the
momentum through energy and Casimir only. The moments enter by g = 1/(2 I) in units of their sum, so that a
step divides once, by a sum of squares; flat and linear bodies need no special case.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.quartic import small_root
from ...kernels.so3 import along, cross, dot, mul, scale, times
from ...kernels.state import incremented_compensated, with_momentum_correction
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel, overloaded
from ...numbers.exact import converted
from ...numbers.primitives import epsilon, sqrt, where
from ...numbers.types import Number, Vec3
from ...symbolic import latex as typeset
from ..flows import MOSER_VESELOV
from ..record import Method
from ..registry import declare, methods
from ..tables.dmv_derivation import series as tables
from ..tables.dmv_series import SERIES, Table


@kernel
def pairs(g: Vec3) -> Vec3:
    """Products of two of three numbers, each at the index of the third."""
    return (g[1] * g[2], g[2] * g[0], g[0] * g[1])


@kernel
def symmetric_functions(g: Vec3, p: Vec3) -> Vec3:
    """Elementary symmetric functions e1, e2, e3 of three numbers with the products p of their pairs."""
    two = g[1] + g[2]
    return (g[0] + two, g[0] * two + p[0], g[0] * p[0])


@kernel
def scaled(h: Number, m: Vec3, system: Any) -> tuple[Number, Vec3, Vec3, Number, Number]:
    """In units of the trace of I: the factor of the momentum, g = 1/(2 I), v = h m, x = sum g_i v_i^2, c = |v|^2.

    The longest chain of operations of a step begins with x and c, so they are computed from the momentum itself.
    """
    inertia, inverse = system[0], system[1]
    trace = inertia[0] + inertia[1] + inertia[2]
    unit = h / trace
    g, squares, square = scale(trace / 2, inverse), times(m, m), unit * unit
    return unit, g, scale(unit, m), dot(scale(square, g), squares), square * (squares[0] + squares[1] + squares[2])


@kernel
def series(x: Number, c: Number, e: Vec3) -> tuple[Number, Number]:
    """First two terms of kappa as a series in x and c, and of the quartic's inverse slope, 1 + 2 e1 x - e2 c."""
    bc = e[1] * c
    rest = e[0] * x - bc
    return x * rest + ((e[2] * c) * c + x), 1 + (2 * e[0] * x - bc)


@kernel
def numerators(kappa: Number, r: Number, v: Vec3, g: Vec3, cubic: Vec3) -> Vec3:
    """Vector n of `_advanced_state`, given the numbers g2 g3 v_1 and so on.

    The terms with kappa and r, the end of the longest chain of operations of a step, come last.
    """
    linear = ((g[1] + g[2]) * v[0], (g[2] + g[0]) * v[1], (g[0] + g[1]) * v[2])
    return (
        cubic[0] * r + (((g[2] - g[1]) * v[1] * v[2] + v[0]) - linear[0] * kappa),
        cubic[1] * r + (((g[0] - g[2]) * v[2] * v[0] + v[1]) - linear[1] * kappa),
        cubic[2] * r + (((g[1] - g[0]) * v[0] * v[1] + v[2]) - linear[2] * kappa),
    )


@kernel
def _advanced_state(y: Any, unit: Number, g: Vec3, v: Vec3, c: Number, e: Vec3, kappa: Number, r: Number) -> Any:
    """Make the step for kappa and r = c + kappa^2.

    e = g n/D, where
    n_1 = (1 - (g2 + g3) kappa + g2 g3 r) v_1 + (g3 - g2) v_2 v_3 and so on, and
    D = 1 - e1 kappa + e2 kappa^2 - e3 kappa^3 + sum g_j g_k (1 - kappa g_i) v_i^2.
    The equation squared is alpha = 1 + |e|^2 = |n|^2/(D^2 r). The rotation is the normalised quaternion (D, g n), and
    the increment of the momentum is 4 (I e) x e/alpha, whose first component is 2 (g3 - g2) n_2 n_3/(D^2 alpha).
    """
    cubic = times(pairs(g), v)
    n = numerators(kappa, r, v, g, cubic)
    # avoids 0/0 at rest; it changes the quotient, which is 1 + O(c), by less than itself
    rest = epsilon(c) * epsilon(c)
    w = (r + rest) / ((n[0] * n[0] + n[1] * n[1]) + (n[2] * n[2] + rest))
    k = 2 / unit
    gain = (
        (k * (g[2] - g[1])) * (n[1] * n[2]),
        (k * (g[0] - g[2])) * (n[2] * n[0]),
        (k * (g[1] - g[0])) * (n[0] * n[1]),
    )
    d = (1 + dot(cubic, v)) - kappa * ((e[0] + e[2] * c) - kappa * (e[1] - e[2] * kappa))
    a, b, f, k = mul(y[0], (d, g[0] * n[0], g[1] * n[1], g[2] * n[2]))
    s = sqrt(w)
    return (s * a, s * b, s * f, s * k), along(y[1], w, gain)


@kernel
def _unbiased_cayley_vector(v: Vec3, low: Vec3) -> Vec3:
    """Solution e of l e = v + v x e: adj(l) v + v^2 v + (l v) x v, its length found from v.(l e) = v^2.

    The determinant of the equation, l1 l2 l3 + sum l_i v_i^2, is rounded the same way in each step, so that e would
    always be a little too long or too short and energy and momentum would drift; here every rounded number changes.
    """
    a, b, c = low
    v2, lv = dot(v, v), times(low, v)
    e = along(along((b * (c * v[0]), c * (a * v[1]), a * (b * v[2])), v2, v), 1, cross(lv, v))
    reach = dot(lv, e)
    moves = reach > 0  # the quotient tends to 1/det l at rest
    return scale(where(moves, v2, 1 + 0 * v2) / where(moves, reach, a * (b * c)), e)


@kernel
def _lowered(g: Number, kappa: Number) -> Number:
    """Number l = 2 I - kappa of an axis; an arbitrary number for an axis without rotation (g = 0)."""
    some = g > 0
    return where(some, 1 / where(some, g, 1 + g), 1 + g) - kappa


@kernel
def _advanced_state_compensated(
    y: Any, unit: Number, g: Vec3, v: Vec3, c: Number, e: Vec3, kappa: Number, r: Number
) -> Any:
    """Make the step by increments; the momentum grows by 2 (l e) x e/(unit alpha), where l = 2 I - kappa.

    It uses the same numbers l with which the Cayley vector was found: if they were rounded differently, in the same way
    in each step, energy and momentum would drift. For a symmetric body alpha is rounded the same way in each step; that
    is corrected.
    """
    low = (_lowered(g[0], kappa), _lowered(g[1], kappa), _lowered(g[2], kappa))
    e = _unbiased_cayley_vector(v, low)
    e2 = dot(e, e)
    part = 1 / (1 + e2)
    s = sqrt(part)
    dq = mul(y[0], (-e2 * part / (1 + s), s * e[0], s * e[1], s * e[2]))
    correction = (
        (low[1] - low[2]) * (e[1] * e[2]),
        (low[2] - low[0]) * (e[2] * e[0]),
        (low[0] - low[1]) * (e[0] * e[1]),
    )
    x = scale(2 * part, correction)
    dm = (x[0] / unit, x[1] / unit, x[2] / unit)
    return with_momentum_correction(incremented_compensated(y, dq, dm), (1 - part) - part * e2, dm)


advanced_state = overloaded(_advanced_state, _advanced_state_compensated)


@kernel
def moser_veselov(unit: Number, g: Vec3, v: Vec3, x: Number, c: Number, guess: Any, y: Any) -> Any:
    """Make one step with g = 1/(2 I), v = unit m, x = sum g_i v_i^2, c = |v|^2, and the guess of `series`."""
    e = symmetric_functions(g, pairs(g))
    kappa, r, residual = small_root(guess[0], guess[1], x, c, e)
    return advanced_state(y, unit, g, v, c, e, kappa, r), residual


Space = dict[str, Any]


def _polynomial(which: int, order: int, number: Callable[[Any], Any], space: Space) -> str:
    """Source of the sum of the series s (0) or t (1) to an order: Horner's rule in H, and in C in each coefficient."""
    degree = order // 2 - 1
    nested = "0"
    for power in range(degree, -1, -1):
        inner = "0"
        for rest in range(degree - power, -1, -1):
            if power + rest > 0:
                table = tables(degree)[power + rest - 1][which]
                inner = f"({_coefficient(table, power, rest, number, space)} + C * {inner})"
            else:
                inner = f"C * {inner}"
        nested = f"({inner} + H * {nested})"
    return nested.replace(" + C * 0", "").replace(" + H * 0", "")


def _coefficient(table: Table, power: int, rest: int, number: Callable[[Any], Any], space: Space) -> str:
    """Source of the polynomial in e1, e2, e3 that multiplies H^power C^rest.

    In the step's variables, g = 1/(2 I), H = sum g_i v_i^2 and C = |v|^2, the terms of degree m of s and of t, the
    correction of g, have 2^m times the coefficients of the series in 1/I, energy and Casimir.
    """
    terms = []
    for (i, j, k, p), (top, bottom) in table.items():
        if p == power:
            name = f"k{len(space)}"
            space[name] = converted(Fraction(top, bottom) * 2 ** (power + rest), number)
            terms.append(" * ".join([name, *["e1"] * i, *["e2"] * j, *["e3"] * k]))
    return f"({' + '.join(terms) or '0'})"


def preprocessed(order: int, number: Callable[[Any], Any]) -> Step:
    """Kernel (e1, e2, e3, H, C) -> (1 + s, t): the sums of h^2m s_{2m+1} and h^2m t_{2m+1}; H and C contain h^2."""
    space: dict[str, Any] = {}
    texts = [_polynomial(which, order, number, space) for which in (0, 1)]
    return unrolled_kernel("e1, e2, e3, H, C", f"(1 + {texts[0]}, {texts[1]})", **space)


@kernel
def _plain(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    unit, g, v, x, c = scaled(h, y[1], system)
    return moser_veselov(unit, g, v, x, c, series(x, c, symmetric_functions(g, pairs(g))), y)


def _build(order: int, number: Callable[[Any], Any]) -> Step:
    """Build the step with modified moments 1/I~_j = (1 + s)/I_j + t; in the guess of kappa only x is modified."""
    if order == 2:
        return _plain
    corrections = preprocessed(order, number)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        unit, g, v, x, c = scaled(h, y[1], system)
        e = symmetric_functions(g, pairs(g))
        s, shift = corrections(e[0], e[1], e[2], x, c)
        modified = (g[0] * s + shift, g[1] * s + shift, g[2] * s + shift)
        first = x * s + shift * c
        near, inverse = series(x, c, e)
        new, residual = moser_veselov(unit, modified, v, first, c, ((near - x) + first, inverse), y)
        # where the series do not converge, no body has the modified moments
        return new, where(abs(s - 1) < 1, residual, 1)

    return step


QUARTIC = r"""$$\kappa^4 - 2 E_1 \kappa^3 + (4 E_2 + 2 |v|^2)\,\kappa^2 - (8 E_3 + 2 E_1 |v|^2)\,\kappa
+ 4 E_3\, v \cdot I^{-1} v + |v|^4 = 0$$

with $E_1$, $E_2$, $E_3$ the elementary symmetric functions of the moments $I_1$, $I_2$, $I_3$."""

PLAIN_STEP = (
    r"""With $v = h\,\Pi_0$ the Cayley vector $e$ of the step solves $2 I e = v + v \times e + \kappa\,e$,
$\kappa = v \cdot e$, which is linear once $\kappa$ is known:

$$\begin{aligned}
e &= \frac{\operatorname{adj}(L)\,v + |v|^2\,v + (L v) \times v}{\det L + v \cdot L v}, \qquad L = 2 I - \kappa, \\
R_1 &= R_0 \operatorname{cay}(2 e), \qquad
\Pi_1 = \Pi_0 + \frac{4}{h\,(1 + |e|^2)}\,(I e) \times e
\end{aligned}$$

The quaternion of $\operatorname{cay}(2 e)$ is $(1, e)/\sqrt{1 + |e|^2}$. The number $\kappa$ is the small root of

"""
    + QUARTIC
)

MODIFIED = r"""It is the plain step with the modified moments ${\tilde I}_j$ in place of $I_j$,

$$\frac{1}{{\tilde I}_j} = \frac{1 + %s}{I_j} + %s$$

With $e_1$, $e_2$, $e_3$ the elementary symmetric functions of $1/I_1$, $1/I_2$, $1/I_3$, the energy
$H = \tfrac{1}{2}\,\Pi_0 \cdot I^{-1} \Pi_0$ and the Casimir function $C = \tfrac{1}{2} |\Pi_0|^2$,

%s

The plain step:

"""


def _term(powers: tuple[int, ...], value: Fraction) -> str:
    """Formula of a coefficient times powers of e1, e2, e3, H, C, with its sign."""
    factors = [f"{x}^{n}" if n > 1 else x for x, n in zip(("e_1", "e_2", "e_3", "H", "C"), powers, strict=True) if n]
    return "\\,".join([f"{'-' if value < 0 else '+'} {typeset.number(abs(value))}", *factors])


def _written_out(letter: str, m: int, table: dict[Any, tuple[int, int]]) -> list[str]:
    """Lines of the polynomial s or t, the coefficient of h^2m."""
    terms = [
        _term((i, j, k, p, m - p), Fraction(top, bottom))
        for (i, j, k, p), (top, bottom) in sorted(table.items(), reverse=True)
    ]
    rows = [" ".join(terms[i : i + TERMS_IN_A_LINE]) for i in range(0, len(terms), TERMS_IN_A_LINE)]
    rows[0] = rows[0].removeprefix("+ ")
    return [f"{letter}_{{{2 * m + 1}}} &= {rows[0]}", *(f"&\\quad {row}" for row in rows[1:])]


TERMS_IN_A_LINE = 5


def _formula(order: int) -> str:
    """Equations of one step."""
    if order == 2:
        return PLAIN_STEP
    sums = []
    for letter in "st":
        terms = [f"h^{{{2 * m}}} {letter}_{{{2 * m + 1}}}" for m in range(1, order // 2)]
        sums.append(" + ".join(terms if len(terms) < 4 else [*terms[:2], "\\ldots", terms[-1]]))
    lines = [
        line
        for m in range(1, order // 2)
        for letter, table in zip("st", tables(order // 2 - 1)[m - 1], strict=True)
        for line in _written_out(letter, m, table)
    ]
    return MODIFIED % (*sums, typeset.block(*lines)) + PLAIN_STEP


def _declared(order: int, register: bool = False) -> Method:
    return declare(
        functools.partial(_build, order), register=register,
        name=f"dmv{order}", order=order, order_free=order, symmetric=True, symplectic=order == 2, poisson=True,
        flows=MOSER_VESELOV if order == 2 else (),
        implicit=True, solves=1, torque_evals=0, conserves=("energy", "spatial_momentum", "momentum_norm"),
        needs="free", increments=True, cite="hairer2006preprocessed" if order > 2 else "moser1991",
        where="Vilmart (2013), Algorithm 4" if order > 2 else "Vilmart (2013), Algorithm 3",
        aliases=("DMV",) if order == 2 else (f"DMVP{order}",),
        doc=f"Discrete Moser-Veselov method{', preprocessed to order ' + str(order) if order > 2 else ''}.\n\n"
        + _formula(order),
    )  # fmt: skip


REGISTERED = {order: _declared(order, register=True) for order in range(2, 2 * len(SERIES) + 3, 2)}

HIGHEST = 40
"""Highest order for which coefficients are derived; the work grows as about its sixth power."""


@functools.cache
def _of_order(order: int) -> Method:
    return REGISTERED.get(order) or _declared(order)


def dmv(order: int | str) -> Method:
    """The discrete Moser-Veselov method of an even order; 2 is the plain one, the others are preprocessed.

    Beyond order 14 the coefficients are derived on first use, which takes seconds.
    """
    text = str(order).strip()
    if not text.isdecimal() or int(text) % 2 or not 2 <= int(text) <= HIGHEST:
        raise InputError(
            f"the discrete Moser-Veselov method has even orders from 2 to {HIGHEST}; got {order!r}. Write dmv10 or "
            f"dmv(10)"
        )
    return _of_order(int(text))


methods.add_combinator("dmv", dmv)
methods.add_family("dmv", dmv)
methods.add_family("dmvp", dmv)
