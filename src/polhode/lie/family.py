"""Methods on matrix Lie groups: Taylor series of the exponent, Munthe-Kaas and Crouch-Grossman Runge-Kutta methods.

A step is built for a `Setting` and has the signature of every step of the library; y holds the entries of the matrix,
row by row, as (real parts, imaginary parts), and there is no torque. If W is right-trivialised, y' = W y, a velocity A
moves y to exp(A) y; if left-trivialised, y' = y W, to y exp(A), and brackets change sign.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import Step
from ..kernels.solvers import PATIENCE, STALL
from ..methods.ranking import best_first, listed
from ..methods.record import Method
from ..methods.registry import Methods
from ..methods.tables.butcher import Tableau, tableaus
from ..numbers.exact import converted
from .formulas import Formula
from .group import Group, Matrix
from .magnus import Algebra, dexpinv, exponent, summed
from .numbers import Numbers
from .order_conditions import crouch_grossman_order
from .tableaus import OWN, tableau_named

TAG = "lie"
"""The family of these methods."""

SWEEPS = 200
"""Fixed-point sweeps after which an implicit step fails."""

HIGHEST = 64
"""Highest order of a Taylor step; the cost grows with the third power of the order."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """Arguments for building a step: a group, a number type, and the velocity with its side."""

    group: Group
    numbers: Numbers
    formula: Formula

    @functools.cached_property
    def algebra(self) -> Algebra:
        """Operations on velocities, with the sign of the bracket for the side."""
        algebra = self.group.algebra
        return algebra if self.formula.side == "right" else algebra.opposite

    def matrix(self, y: Any) -> Matrix:
        """Convert a state to a matrix."""
        return self.numbers.array(y[0], y[1], (self.group.size, self.group.size))

    def parts(self, y: Matrix) -> Any:
        """Convert a matrix to a state."""
        real, imag = self.numbers.parts(y)
        return real, imag if self.group.is_complex else ()

    def advanced(self, y: Matrix, A: Matrix) -> Matrix:
        """Move an element by a velocity: exp(A) y or y exp(A)."""
        turn = self.group.exp(A, self.numbers)
        return turn @ y if self.formula.side == "right" else y @ turn


class Registry(Methods):
    """The methods of this family, by name."""

    def _unknown(self, label: str) -> str:
        kinds = "taylor(order), munthe_kaas(tableau), crouch_grossman(tableau)"
        able = listed(best_first(self.values(), "velocity"))
        return f"unknown method {label!r} for a Lie group; there are {kinds}, such as {able}"


methods = Registry()


def declared(build: Callable[[Setting], Step], **declared: Any) -> Method:
    """Make a Method from a builder and its declaration."""
    shared: dict[str, Any] = {
        "order_free": declared["order"], "symmetric": None, "symplectic": None, "poisson": None,
        "conserves": frozenset(),
        "needs": "velocity",
    }  # fmt: skip
    return Method(build=build, **(shared | declared))


def guarded(step: Callable[..., Any], setting: Setting) -> Step:
    """Make a step on states from a step on matrices; the step fails if a formula has no value."""

    def safe(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                new, residual = step(h, t, setting.matrix(y))
            return setting.parts(new), residual
        except (ArithmeticError, ValueError):  # LinAlgError is a ValueError
            return y, math.nan

    return safe


# --- Taylor series ----------------------------------------------------------------------------------


def taylor(order: int | str) -> Method:
    """One exponential of the Taylor series of the exponent, to any order: ``taylor(6)``."""
    try:
        p = int(order)
    except (TypeError, ValueError, OverflowError):
        p = 0
    if not 1 <= p <= HIGHEST or p != float(order):
        raise InputError(f"taylor takes an order from 1 to {HIGHEST}; got {order!r}")

    def build(setting: Setting) -> Step:
        series, algebra = setting.formula.series(setting.numbers, p), setting.algebra

        def step(h: Any, t: Any, y: Matrix) -> Any:
            coefficients = exponent(series(t, setting.parts(y)), algebra, setting.numbers.number)
            return setting.advanced(y, h * summed(coefficients, h, algebra)), 0

        return guarded(step, setting)

    return declared(
        build, name=f"taylor({p})", order=p, implicit=False, solves=0, torque_evals=1, family=TAG,
        cite="magnus1954", where="Bernoulli's recursion", doc=f"Taylor series of the exponent to order {p}.",
    )  # fmt: skip


# --- Runge-Kutta methods ----------------------------------------------------------------------------

Slope = Callable[[Any, Matrix, Matrix | None], Matrix]


def _exponents(tableau: Tableau, number: Callable[[Any], Any]) -> tuple[list[list[Any]], list[Any], list[Any]]:
    a = [[converted(x, number) for x in row] for row in tableau.a]
    return a, [converted(x, number) for x in tableau.b], [converted(x, number) for x in tableau.c]


def runge_kutta(tableau: Tableau, point: Callable[..., Any], setting: Setting) -> Step:
    """Build a step with K_i the slope at the point that row i leads to; the weights b lead to the end.

    point(setting, value, y, h, row, K, s) returns the point and its slope at time s (no slope if s is None).
    """
    numbers = setting.numbers
    a, b, c = _exponents(tableau, numbers.number)
    value = setting.formula.values(numbers)
    blocks = [(block, tableau.is_explicit(block)) for block in tableau.blocks()]

    def step(h: Any, t: Any, y: Matrix) -> Any:
        K: list[Matrix] = []
        for block, explicit in blocks:
            sweep = functools.partial(
                _swept, point, setting, value, y, h, t, [a[i] for i in block], [c[i] for i in block]
            )
            if explicit:
                K.extend(sweep(K))
                continue
            guess = value(t, setting.parts(y))
            found, residual = fixed_point(functools.partial(_after, sweep, K), [guess] * len(block), numbers, h)
            if residual > 0:
                return y, residual
            K.extend(found)
        return point(setting, value, y, h, b, K, None)[0], 0

    return guarded(step, setting)


def _after(sweep: Callable[[list[Matrix]], list[Matrix]], K: list[Matrix], X: list[Matrix]) -> list[Matrix]:
    """Slopes of a block of stages, from those of the blocks before and a guess X."""
    return sweep([*K, *X])


def _swept(
    point: Any, setting: Setting, value: Any, y: Any, h: Any, t: Any, rows: Any, nodes: Any, K: list[Matrix]
) -> list[Matrix]:
    """Slopes of a block of stages, from slopes K."""
    return [point(setting, value, y, h, row, K, t + c * h)[1] for row, c in zip(rows, nodes, strict=True)]


def fixed_point(sweep: Callable[[Any], Any], x: list[Matrix], numbers: Numbers, h: Any) -> tuple[list[Matrix], Any]:
    """Return the fixed point of a sweep and zero, or the last iterate and the relative size of its change.

    If terms cancel, slopes change by more than their own round-off. Then the iteration also ends if the changes have
    stopped shrinking and, times the step h, are round-off relative to the unit matrix, as in `solvers.judged`.
    """
    last, size, least, since = math.inf, math.inf, math.inf, 0
    whole = 1.0
    for _ in range(SWEEPS):
        new = sweep(x)
        size = float(max(np.abs(p - q).max() for p, q in zip(new, x, strict=True)))
        whole = float(max(np.abs(p).max() for p in new))
        x = new
        if not math.isfinite(size):
            return x, math.inf
        if size <= 4 * numbers.epsilon * whole or (size >= last / 2 and size <= STALL * numbers.epsilon * whole):
            return x, 0
        least, since = (size, 0) if 2 * size < least else (least, since + 1)
        if since >= PATIENCE and size * abs(float(h)) <= STALL * numbers.epsilon:
            return x, 0
        last = size
    return x, size / max(whole, 1e-300)


def _sum(row: Sequence[Any], K: Sequence[Matrix]) -> Any:
    """sum_j a_j K_j without zero terms; None if there is no other term."""
    terms = [a * k for a, k in zip(row, K, strict=False) if a != 0]
    return functools.reduce(lambda x, y: x + y, terms) if terms else None


def munthe_kaas(tableau: str | Tableau) -> Method:
    """Munthe-Kaas: the tableau for U' = dexp_U^-1 W(t, exp(U) y), one exponential per stage: ``munthe_kaas(rk4)``.

    The series of dexp^-1 ends with ad^(p-2) for order p: U - h K is O(h^2), so ad_U^k K is O(h^(k+1)).
    """
    tableau = tableau_named(tableau)
    terms = max(0, (2 * len(tableau.b) if tableau.order is None else tableau.order) - 2)

    def point(setting: Setting, value: Any, y: Matrix, h: Any, row: Any, K: Any, s: Any) -> Any:
        total = _sum(row, K)
        here = y if total is None else setting.advanced(y, h * total)
        if s is None:
            return here, None
        k = value(s, setting.parts(here))
        return here, k if total is None else dexpinv(h * total, k, terms, setting.algebra, setting.numbers.number)

    return _runge_kutta_method("munthe_kaas", tableau, point, tableau.order, "munthekaas1998", "algorithm of section 4")


def crouch_grossman(tableau: str | Tableau) -> Method:
    """Crouch-Grossman: stage i is exp(h a_is K_s) ... exp(h a_i1 K_1) y, no bracket: ``crouch_grossman(cg3)``.

    The order follows from the conditions for ordered forests: for classical tableaus at most 2.
    """
    tableau = tableau_named(tableau)

    def point(setting: Setting, value: Any, y: Matrix, h: Any, row: Any, K: Any, s: Any) -> Any:
        here = y
        for a, k in zip(row, K, strict=False):
            if a != 0:
                here = setting.advanced(here, (h * a) * k)
        return here, None if s is None else value(s, setting.parts(here))

    order = crouch_grossman_order(tableau)
    return _runge_kutta_method("crouch_grossman", tableau, point, order, "crouch1993", "section 4; Hairer IV.8.1")


def _runge_kutta_method(kind: str, tableau: Tableau, point: Any, order: int | None, cite: str, where: str) -> Method:
    implicit = [block for block in tableau.blocks() if not tableau.is_explicit(block)]
    return declared(
        functools.partial(runge_kutta, tableau, point), name=f"{kind}({tableau.name})", order=order, cite=cite,
        where=where, implicit=bool(implicit), solves=sum(map(len, implicit)), torque_evals=len(tableau.b),
        family=TAG, doc=f"{kind} with the tableau {tableau.name!r}.",
    )  # fmt: skip


for _name, _make in (("taylor", taylor), ("munthe_kaas", munthe_kaas), ("crouch_grossman", crouch_grossman)):
    methods.add_combinator(_name, _make)
for _order in (*range(1, 9), 12):
    methods.add(taylor(_order))
for _tableau in tableaus | OWN:
    methods.add(munthe_kaas(_tableau))
    methods.add(crouch_grossman(_tableau))
