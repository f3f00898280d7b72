"""The user's velocity W(t) or W(t, y): called once with floats, then traced into a graph.

The graph yields its values in any number type and its Taylor coefficients along the motion (`taylor/interpreter.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..symbolic.expression import Expr, compiled, lift, ordered, source, symbol
from ..symbolic.user_function import UserFunction, plain_function
from ..taylor.graph import Plan, plan, substituted
from ..taylor.interpreter import expansion
from .group import Group, Matrix
from .numbers import Numbers

SIDES = ("right", "left")


class Pair:
    """A complex number of two traced numbers: an entry of a complex y, as passed to W."""

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    def conjugate(self) -> Pair:
        """The complex conjugate."""
        return Pair(self.real, -self.imag)

    def __neg__(self) -> Pair:
        return Pair(-self.real, -self.imag)

    def __add__(self, other: Any) -> Pair:
        a, b = _parts(other)
        return Pair(self.real + a, self.imag + b)

    def __sub__(self, other: Any) -> Pair:
        return self + -other

    def __rsub__(self, other: Any) -> Pair:
        return -self + other

    def __mul__(self, other: Any) -> Pair:
        a, b = _parts(other)
        return Pair(self.real * a - self.imag * b, self.real * b + self.imag * a)

    __radd__, __rmul__ = __add__, __mul__


def _parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of a number, a traced number, or a pair."""
    return (x, 0) if isinstance(x, Expr) else (x.real, x.imag)


class Formula:
    """A user's velocity: values and Taylor coefficients as matrices."""

    def __init__(self, group: Group, W: Any, side: str, t0: float, y0: Matrix) -> None:
        if not isinstance(side, str) or side not in SIDES:
            raise InputError(f"trivialised must be 'right' (y' = W y) or 'left' (y' = y W); got {side!r}")
        self.group, self.side = group, side
        functions = list(W) if isinstance(W, list | tuple) else [W]
        self.known = len(functions) if isinstance(W, list | tuple) else None
        if not functions:
            raise InputError(
                "W must be a function of t or of t and y, or the functions [W, W', W'', ...] of t; got none"
            )
        only_t = self.known is not None
        self.traces = [Trace(group, f, _name(k), t0, y0, only_t=only_t) for k, f in enumerate(functions)]

    @property
    def depends_on_y(self) -> bool:
        """Whether it is a function of t and y."""
        return self.traces[0].arguments == 2

    def check_order(self, order: int) -> None:
        """Raise an error if a Taylor step needs more derivatives than there are."""
        if self.known is not None and order > self.known:
            raise InputError(
                f"order {order} needs W and its first {order - 1} derivatives, {order} functions; got {self.known}. "
                f"Give W as one function, and its derivatives are computed"
            )

    def values(self, numbers: Numbers) -> Callable[[Any, Any], Matrix]:
        """Return the function (t, parts of y) -> W."""
        return self.traces[0].values(numbers)

    def series(self, numbers: Numbers, order: int) -> Callable[[Any, Any], list[Matrix]]:
        """Return the function (t, parts of y) -> Taylor coefficients 0 .. order - 1 of W along the motion."""
        self.check_order(order)
        if self.known is not None:
            values = [trace.values(numbers) for trace in self.traces[:order]]
            return lambda t, y: [value(t, y) / math.factorial(k) for k, value in enumerate(values)]
        trace, ready = self.traces[0], self._plan
        outputs = trace.smooth

        def coefficients(t: Any, y: Any) -> list[Matrix]:
            start = {"t": t} | dict(zip(trace.names, (*y[0], *y[1]), strict=self.depends_on_y))
            nodes = expansion(ready, start, order - 1, numbers.arithmetic)
            return [trace.matrix([nodes[x][k] for x in outputs]) for k in range(order)]

        return coefficients

    @functools.cached_property
    def _plan(self) -> Plan:
        """Graph of y' = W y (or y W), prepared for Taylor coefficients."""
        trace = self.traces[0]
        if not self.depends_on_y:
            return plan((), (), trace.smooth)
        n = self.group.size
        real, imag = trace.entries(trace.smooth)
        states = [symbol(name) for name in trace.names]
        a, b = states[: n * n], states[n * n :]
        order = (lambda x, y: (x, y)) if self.side == "right" else (lambda x, y: (y, x))
        rates = _product(*order(real, a), n)
        if b:
            rates = _sum(rates, _product(*order(imag, b), n), -1)
            rates += _sum(_product(*order(real, b), n), _product(*order(imag, a), n), 1)
        return plan(states, rates, trace.smooth)


def _name(k: int) -> str:
    return "W" if k == 0 else f"derivative {k} of W"


def _product(A: Sequence[Any], B: Sequence[Any], n: int) -> list[Any]:
    """Entries of the product of two matrices, all given row by row."""
    return [sum((lift(A[n * i + k]) * B[n * k + j] for k in range(n)), lift(0)) for i in range(n) for j in range(n)]


def _sum(a: Sequence[Any], b: Sequence[Any], sign: int) -> list[Any]:
    return [x + sign * y for x, y in zip(a, b, strict=True)]


class Trace:
    """One function, checked and traced. It returns coordinates in the group's basis, or the matrix itself."""

    def __init__(self, group: Group, function: Any, name: str, t0: float, y0: Matrix, only_t: bool) -> None:
        takes = "a plain Python function of t" + ("" if only_t else ", or of t and y")
        plain_function(function, f"{name} must be {takes}")
        self.group, self.user = group, UserFunction(function, f"the velocity {function.__name__}")
        self.arguments = self.user.positional(takes, 1 if only_t else 2)
        self.as_matrix = self.check(t0, y0, f"at the start (t = {t0:g})")
        n = group.size**2
        self.names = [f"a{i}" for i in range(n)] + [f"b{i}" for i in range(n) if group.is_complex]
        if self.arguments == 1:
            self.names = []
        self.outputs = self._traced()
        self.smooth = substituted(self.outputs, {x.args[0]: x for x in ordered(self.outputs) if x.op == "symbol"})

    def expected(self) -> str:
        """The required return value, in words."""
        coordinates = f"{self.group.dimension} coordinates of {self.group.name}"
        return coordinates + (f" or a {self.group.size} x {self.group.size} matrix" if self.takes_matrix else "")

    @property
    def takes_matrix(self) -> bool:
        """Whether it may return a matrix."""
        return not self.group.is_complex

    def check(self, t: float, y: Matrix, context: str) -> bool:
        """Call the function once with floats and check its value; return True if it is a matrix."""
        n, d = self.group.size, self.group.dimension
        value = self.user.value((t, y.tolist())[: self.arguments], context)
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise self.user.refused(self.expected(), repr(value), context) from None
        matrix = array.shape == (n, n) and self.takes_matrix
        if array.shape != (d,) and not matrix:
            raise self.user.refused(self.expected(), f"numbers of shape {array.shape}", context)
        if not np.isfinite(array).all():
            raise self.user.refused("finite numbers", repr(value), context)
        if matrix:
            gap = np.abs(self.group.hat(self.group.vee(array)) - array).max()
            if gap > 1e-9 * np.abs(array).max():
                raise InputError(f"{self.user.owner} must return a matrix of the Lie algebra of {self.group.name}; "
                                 f"its value {context} is off by {gap:.3g}")  # fmt: skip
        return matrix

    def _traced(self) -> list[Expr]:
        """Return the values of the function as formulas."""
        n = self.group.size
        symbols = [symbol(name) for name in self.names]
        entries: list[Any] = symbols[: n * n]
        if self.group.is_complex:
            entries = [Pair(a, b) for a, b in zip(entries, symbols[n * n :], strict=True)]
        y = tuple(tuple(entries[n * i : n * i + n]) for i in range(n))

        def read(value: Any) -> list[Expr]:
            flat = [x for row in value for x in row] if self.as_matrix else list(value)
            if any(isinstance(x, Pair) for x in flat):
                raise TypeError("coordinates are real numbers; use .real and .imag of the entries of y")
            return [lift(x) for x in flat]

        outputs: list[Expr] = self.user.traced((symbol("t"), y)[: self.arguments], read)
        return outputs

    def entries(self, outputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Real and imaginary parts of the entries of W, from the values of the function."""
        return (list(outputs), []) if self.as_matrix else self.group.entries(outputs)

    def matrix(self, outputs: Sequence[Any]) -> Matrix:
        """Return W, from the values of the function."""
        n = self.group.size
        return np.array(outputs).reshape(n, n) if self.as_matrix else self.group.hat(outputs)

    def returned(self, numbers: Numbers) -> Callable[[Any, Any], tuple[Any, ...]]:
        """Return the compiled function (t, parts of y) -> its values, flat, in one number type."""
        size = self.group.size**2
        unpack = {"t": "t"} | {name: f"y[{i // size}][{i % size}]" for i, name in enumerate(self.names)}
        return compiled(*source("velocity_value", "t, y", unpack, self.outputs), numbers.number)

    def values(self, numbers: Numbers) -> Callable[[Any, Any], Matrix]:
        """Return the function (t, parts of y) -> W in one number type."""
        outputs = self.returned(numbers)
        return lambda t, y: self.matrix(outputs(t, y))
