"""The discrete Moser-Veselov method without iteration over vectors, and its preprocessed versions.

J. Moser and A. Veselov, Comm. Math. Phys. 139 (1991) 217; E. Hairer and G. Vilmart, J. Phys. A 39 (2006)
13225; G. Vilmart, Rigid body dynamics, Algorithms 3 and 4. With v = h y and e the Cayley vector of the
step, the equation of Moser and Veselov is 2 I e = v + v x e + kappa e with kappa = v.e: linear in e once
the number kappa is known, and kappa is the small root of a quartic whose coefficients depend on the
momentum through energy and Casimir only. Nothing divides by a moment of inertia, so flat bodies work.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..carry import corrected, grown
from ..declare import Method, Step, declare, methods
from ..exact_numbers import converted
from ..iterate import small_root
from ..scalar import Number, Vec3, fork, kernel, sqrt, where
from ..so3 import along, cross, dot, mul, scale, times
from ..unroll import written
from .dmv_series import SERIES, Table
from .energies import MOSER_VESELOV


@kernel
def lowered_moments(v: Vec3, i: Vec3) -> tuple[Vec3, Number]:
    """The numbers l = 2 I - kappa of the step, for moments whose sum is 1, and the miss of kappa.

    kappa^4 - 2 kappa^3 + (4 E2 + 2 v^2) kappa^2 - (8 E3 + 2 v^2) kappa + 4 E3 sum v_i^2/I_i + v^4 = 0.
    """
    pairs = (i[1] * i[2], i[2] * i[0], i[0] * i[1])
    e3 = i[0] * pairs[0]
    squares = times(v, v)
    v2 = squares[0] + squares[1] + squares[2]
    kappa, miss = small_root(
        4 * dot(pairs, squares) + v2 * v2, 8 * e3 + 2 * v2, 4 * (pairs[0] + pairs[1] + pairs[2]) + 2 * v2
    )
    return (2 * i[0] - kappa, 2 * i[1] - kappa, 2 * i[2] - kappa), miss


@kernel
def _above(v: Vec3, v2: Number, low: Vec3) -> Vec3:
    """The numerator of the Cayley vector, adj(l) v + v^2 v + (l v) x v."""
    a, b, c = low
    return along(along((b * (c * v[0]), c * (a * v[1]), a * (b * v[2])), v2, v), 1, cross(times(low, v), v))


@kernel
def cayley_vector(v: Vec3, low: Vec3) -> Vec3:
    """The solution e of l e = v + v x e: its numerator over l1 l2 l3 + sum l_i v_i^2."""
    a, b, c = low
    return scale(1 / (a * b * c + dot(low, times(v, v))), _above(v, dot(v, v), low))


@kernel
def _unbiased_cayley_vector(v: Vec3, low: Vec3) -> Vec3:
    """The same, its length found from v.(l e) = v^2.

    The product l1 l2 l3 is rounded the same way in each step, so that e is a little too long or too short for ever and
    energy and momentum drift; here every rounded number changes from step to step.
    """
    v2 = dot(v, v)
    e = _above(v, v2, low)
    reach = dot(times(low, v), e)
    return scale(where(reach > 0, v2 / where(reach > 0, reach, 1 + reach), 0 * v2), e)


@kernel
def _increment(e: Vec3, low: Vec3) -> Vec3:
    """The vector (l e) x e = 2 (I e) x e, along which the momentum moves.

    It uses the very numbers with which e was found: rounded otherwise, the same way in each step, they would let
    energy and momentum drift.
    """
    return ((low[1] - low[2]) * (e[1] * e[2]), (low[2] - low[0]) * (e[2] * e[0]), (low[0] - low[1]) * (e[0] * e[1]))


@kernel
def _moved(y: Any, rate: Number, v: Vec3, low: Vec3) -> Any:
    """The state turned by (1, e), its momentum grown by 4 alpha (I e) x e/rate with alpha = 1/(1 + e^2)."""
    e = cayley_vector(v, low)
    alpha = 1 / (1 + dot(e, e))
    s = sqrt(alpha)
    return mul(y[0], (s, s * e[0], s * e[1], s * e[2])), along(y[1], 2 * alpha / rate, _increment(e, low))


@kernel
def _moved_carrying(y: Any, rate: Number, v: Vec3, low: Vec3) -> Any:
    """The same; for a symmetric body 1 + e^2 is rounded the same way in each step, and that is corrected."""
    e = _unbiased_cayley_vector(v, low)
    e2 = dot(e, e)
    alpha = 1 / (1 + e2)
    s = sqrt(alpha)
    dq = mul(y[0], (-e2 * alpha / (1 + s), s * e[0], s * e[1], s * e[2]))
    x = scale(2 * alpha, _increment(e, low))
    dm = (x[0] / rate, x[1] / rate, x[2] / rate)
    return corrected(grown(y, dq, dm), (1 - alpha) - alpha * e2, dm)


moved = fork(_moved, _moved_carrying)


@kernel
def moser_veselov(h: Number, inertia: Vec3, y: Any) -> Any:
    """One step with given moments, in units of their sum."""
    unit = 1 / (inertia[0] + inertia[1] + inertia[2])
    rate = unit * h
    v = scale(rate, y[1])
    low, miss = lowered_moments(v, scale(unit, inertia))
    return moved(y, rate, v, low), miss


def _sum(table: Table, m: int, power: int, number: Callable[[Any], Any], space: dict[str, Any]) -> str:
    """Text of the polynomial in e1, e2, e3 that multiplies H^power C^(m - power)."""
    terms = []
    for (i, j, k, rest), (top, bottom) in table.items():
        if rest == power:
            name = f"k{len(space)}"
            space[name] = converted(Fraction(top, bottom), number)
            terms.append(" * ".join([name, *["e1"] * i, *["e2"] * j, *["e3"] * k]))
    return " + ".join(terms)


def preprocessed(order: int, number: Callable[[Any], Any]) -> Step:
    """Kernel (h2, e1, e2, e3, H, C) -> (sum of h^2m s, sum of h^2m t), by Horner's rule in h^2."""
    space: dict[str, Any] = {}
    texts = []
    for which in (0, 1):
        nested = ""
        for m in range(order // 2 - 1, 0, -1):
            table = SERIES[m - 1][which]
            powers = [(p, _sum(table, m, p, number, space)) for p in range(m + 1)]
            term = " + ".join(" * ".join([f"({t})", *["H"] * p, *["C"] * (m - p)]) for p, t in powers if t)
            nested = f"h2 * ({term}{' + ' + nested if nested else ''})"
        texts.append(nested)
    return written("h2, e1, e2, e3, H, C", f"({texts[0]}, {texts[1]})", **space)


@kernel
def _plain(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    return moser_veselov(h, system[0], y)


def _build(order: int, number: Callable[[Any], Any]) -> Step:
    """The step with modified moments 1/I~_j = (1 + s)/I_j + t."""
    if order == 2:
        return _plain
    corrections = preprocessed(order, number)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        inverse, m = system[1], y[1]
        a, b, c = inverse
        energy, casimir = dot(inverse, times(m, m)) / 2, dot(m, m) / 2
        s, shift = corrections(h * h, a + b + c, a * b + b * c + c * a, a * b * c, energy, casimir)
        x, y1, z = a + (a * s + shift), b + (b * s + shift), c + (c * s + shift)
        common = 1 / (x * y1 * z)
        return moser_veselov(h, (y1 * z * common, z * x * common, x * y1 * common), y)

    return step


for _order in range(2, 2 * len(SERIES) + 3, 2):
    declare(
        functools.partial(_build, _order),
        name=f"dmv{_order}", order=_order, order_free=_order, symmetric=True, symplectic=_order == 2, poisson=True,
        flows=MOSER_VESELOV if _order == 2 else (),
        implicit=True, solves=1, torque_evals=0, conserves=("energy", "spatial_momentum", "momentum_norm"),
        needs="free", increments=True, cite="hairer2006preprocessed" if _order > 2 else "moser1991",
        where="Vilmart (2013), Algorithm 4" if _order > 2 else "Vilmart (2013), Algorithm 3",
        aliases=("DMV",) if _order == 2 else (f"DMVP{_order}",),
        doc=f"Discrete Moser-Veselov method{', preprocessed to order ' + str(_order) if _order > 2 else ''}.",
    )  # fmt: skip


def dmv(order: int | str) -> Method:
    """The discrete Moser-Veselov method of an even order; 2 is the plain one, the others are preprocessed."""
    return methods[f"dmv{order}"]


methods.add_combinator("dmv", dmv)
