"""Exact derivatives of a torque along the motion, as kernels built from the torque's formula.

With N = R T the torque in space, (R Pi)' = N. A Taylor method needs the derivatives of N in the body frame at the start
of the step,

    f_n = R^T N^(n):        f_0 = T,   f_(n+1) = D f_n,   D a = a' + omega x a,

with T' from R' = R hat(omega) and Pi' = Pi x omega + T. The Taylor coefficients of every node of the torque's graph
follow order by order, as formulas: sums by sums, products by convolution, and any other y by
k y_k = sum_j j x_j s_(k-j), where s is the node of the slope dy/dx.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..kernels.so3 import add, apply, cross, scale
from ..kernels.unroll import unrolled_kernel
from ..numbers.dispatch import kernel
from ..symbolic.expression import LOOK_UPS, Expr, Exprs, lift, ordered, source, symbol, symbols
from ..taylor.graph import LOGIC, slopes
from .axes import axes
from .fields import Field
from .fields.kernels import formula_kernel
from .fields.torque_formulas import attitude_symbols
from .fields.trace import once_for_formula

Vector = tuple[Expr, Expr, Expr]


class Motion:
    """Taylor coefficients of the state and the torque in the time since the start, as formulas of the initial state."""

    def __init__(self, field: Field, has_principal_rotation: bool) -> None:
        self.force = field.graph[0]
        self.known: dict[tuple[Expr, int], Expr] = {}
        s = [symbol(f"s{i}") for i in range(6)]
        zero = lift(0)
        self.inverse = (
            ((s[0], s[1], s[2]), (s[1], s[3], s[4]), (s[2], s[4], s[5]))
            if has_principal_rotation
            else ((s[0], zero, zero), (zero, s[1], zero), (zero, zero, s[2]))
        )

    def row(self, i: int, k: int) -> Any:
        """Row i of R, from R' = R hat(omega): row' = row x omega."""
        if k == 0:
            return attitude_symbols()[i]
        return scale(lift(1) / k, self._product(k - 1, functools.partial(self.row, i)))

    @functools.cache  # noqa: B019 - lives as long as one derivation
    def momentum(self, k: int) -> Any:
        """Pi, from Pi' = Pi x omega + T."""
        if k == 0:
            return symbols("m", 3)
        return scale(lift(1) / k, add(self._product(k - 1, self.momentum), self.vector(self.force, k - 1)))

    def velocity(self, k: int) -> Any:
        """The angular velocity I^-1 Pi."""
        return apply(self.inverse, self.momentum(k))

    def _product(self, k: int, a: Callable[[int], Any]) -> Any:
        """The k-th coefficient of a x omega."""
        return functools.reduce(add, (cross(a(j), self.velocity(k - j)) for j in range(k + 1)))

    def vector(self, nodes: Sequence[Expr], k: int) -> Any:
        """The k-th coefficients of three nodes. Lower orders are computed first, which keeps the recursion shallow."""
        for order in range(k + 1):
            for node in ordered(nodes):
                self.coefficient(node, order)
        return tuple(self.coefficient(node, k) for node in nodes)

    def coefficient(self, node: Expr, k: int) -> Expr:
        """The k-th Taylor coefficient of a node."""
        if (node, k) not in self.known:
            self.known[node, k] = self._symbol(node.args[0], k) if node.op == "symbol" else self._derivative(node, k)
        return self.known[node, k]

    def _symbol(self, name: str, k: int) -> Expr:
        if name[0] == "R":
            return self.row(int(name[1]), k)[int(name[2])]
        if name[0] == "w":
            return self.velocity(k)[int(name[1])]
        if k == 0:
            return symbol(name)
        return lift(int(name == "t" and k == 1))

    def _derivative(self, node: Expr, k: int) -> Expr:
        if k == 0:
            return Expr.make(node.op, *(self.coefficient(a, 0) if isinstance(a, Expr) else a for a in node.args))
        c, args = self.coefficient, node.args
        if node.op in ("const", "named", "total", *LOGIC, *LOOK_UPS):  # a total counts by its items
            return lift(0)
        if node.op in ("add", "sub"):
            a, b = c(args[0], k), c(args[1], k)
            return a + b if node.op == "add" else a - b
        if node.op == "mul":
            return _total(c(args[0], j) * c(args[1], k - j) for j in range(k + 1))
        if node.op == "div":
            rest = _total(c(args[1], j) * c(node, k - j) for j in range(1, k + 1))
            return (c(args[0], k) - rest) / c(args[1], 0)
        if node.op == "where":
            return Exprs.where(c(args[0], 0), c(args[1], k), c(args[2], k))
        return _total(j * c(x, j) * c(slope, k - j) for x, slope in slopes(node) for j in range(1, k + 1)) / k


def _total(terms: Any) -> Expr:
    return functools.reduce(lambda a, b: a + b, terms, lift(0))


def derivatives(field: Field, count: int, has_principal_rotation: bool) -> list[Vector]:
    """f_0, ..., f_count in the user's axes, as formulas of t, R, m, p and s, the inverse inertia."""
    motion = Motion(field, has_principal_rotation)
    if field.template.frame == "space":
        columns: Any = tuple(zip(*attitude_symbols(), strict=True))
        in_user_axes = []
        for n in range(count + 1):
            rate = scale(math.factorial(n), motion.vector(field.written, n))
            in_user_axes.append(apply(columns, rate))
        return in_user_axes
    series = [motion.vector(motion.force, k) for k in range(count + 1)]
    rates = []
    while series:
        rates.append(series[0])
        series = [
            add(scale(k + 1, series[k + 1]), _crossed(motion, series, k)) for k in range(len(series) - 1)
        ]  # fmt: skip
    return rates


def _crossed(motion: Motion, series: Sequence[Any], k: int) -> Any:
    """The k-th coefficient of omega x a, a given by its series."""
    return functools.reduce(add, (cross(motion.velocity(k - j), series[j]) for j in range(k + 1)))


@once_for_formula
def text(field: Field, count: int, has_principal_rotation: bool) -> tuple[str, dict[str, Any]]:
    """Source and constants of f_0, ..., f_count.

    I^-1 is three numbers, or six (by rows) if the body's axes are not the principal ones.
    """
    unpack = {"t": "t"} | {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
    unpack |= {f"{a}{i}": f"{a}[{i}]" for a, n in (("m", 3), ("s", 6), ("p", len(field.parameters))) for i in range(n)}
    outputs = [x for f in derivatives(field, count, has_principal_rotation) for x in f]
    return source("rates_value", "t, R, m, p, s", unpack, outputs)


def rates_kernel(
    field: Field, count: int, number: Callable[[Any], Any], has_principal_rotation: bool
) -> Callable[..., Any]:
    """The kernel (f_0, ..., f_count)(t, q, m, system) in principal axes, in one number type."""
    value = formula_kernel(text(field, count, has_principal_rotation), number)
    attitude, vector, inverse, back = axes(has_principal_rotation, len(field.parameters))
    threes = unrolled_kernel("v, system", _threes(count), back=back)

    @kernel
    def rates(t: Any, q: Any, m: Any, system: Any) -> Any:
        return threes(value(t, attitude(q, system), vector(m, system), system[2], inverse(system)), system)

    return rates


def _threes(count: int) -> str:
    """Source text that groups 3 (count + 1) numbers into a tuple of vectors in principal axes."""
    vectors = (f"back((v[{3 * n}], v[{3 * n + 1}], v[{3 * n + 2}]), system)" for n in range(count + 1))
    return f"({', '.join(vectors)},)"
