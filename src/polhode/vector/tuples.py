"""Vectors of any length: kernels on n-tuples, unrolled for one n."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from ..kernels.solvers import Algebra
from ..kernels.unroll import unrolled_kernel
from ..numbers.dispatch import kernel
from ..numbers.primitives import finite, sqrt
from ..numbers.types import Number

Vector = tuple[Number, ...]


@kernel
def dot(a: Vector, b: Vector) -> Number:
    """Scalar product."""
    total = a[0] * b[0]
    for i in range(1, len(a)):
        total = total + a[i] * b[i]
    return total


@kernel
def norm(a: Vector) -> Number:
    """Euclidean length."""
    return sqrt(dot(a, a))


@kernel
def is_valid(y: Any, residual: Any) -> Any:
    """Whether the step was solved, and configuration and momentum are finite."""
    u, p = y
    total = u[0] + p[0]
    for i in range(1, len(u)):
        total = total + u[i] + p[i]
    return (residual <= 0) & finite(total)


@kernel
def same(y: Any) -> Any:
    """Return the state unchanged: the space has no constraint to restore after a step."""
    return y


@kernel
def write_row(rows: Any, i: int, y: Any) -> None:
    """Write one state into a row: the configuration, then the momentum."""
    u, p = y
    n = len(u)
    for k in range(n):
        rows[i, k], rows[i, n + k] = u[k], p[k]


def _listed(n: int, entry: Callable[[int], str]) -> str:
    return f"({', '.join(entry(i) for i in range(n))},)"


def _sum(n: int, term: Callable[[int], str]) -> str:
    return " + ".join(term(i) for i in range(n))


@functools.cache
def algebra(n: int) -> Algebra:
    """Kernels for n-tuples and n x n matrices."""
    return Algebra(
        dot=dot,
        scale=unrolled_kernel("s, a", _listed(n, lambda i: f"s * a[{i}]")),
        along=unrolled_kernel("a, s, b", _listed(n, lambda i: f"a[{i}] + s * b[{i}]")),
        apply=unrolled_kernel("m, v", _listed(n, lambda i: _sum(n, lambda j: f"m[{i}][{j}] * v[{j}]"))),
        apply_transposed=unrolled_kernel("m, v", _listed(n, lambda j: _sum(n, lambda i: f"v[{i}] * m[{i}][{j}]"))),
        lowered=unrolled_kernel(
            "m, z, r", _listed(n, lambda i: _listed(n, lambda j: f"m[{i}][{j}] - z[{i}] * r[{j}]"))
        ),
    )


@functools.cache
def _times(n: int) -> Callable[..., Vector]:
    """Kernel: a diagonal matrix times a vector."""
    return unrolled_kernel("m, v", _listed(n, lambda i: f"m[{i}] * v[{i}]"))


@functools.cache
def _unit(n: int) -> Callable[..., Any]:
    """Kernel: the unit matrix in the number type of x."""
    return unrolled_kernel("x", _listed(n, lambda i: _listed(n, lambda j: f"0 * x + {int(i == j)}")))


@dataclasses.dataclass(frozen=True)
class Space:
    """Arguments for building a step in R^n: the number conversion, the dimension, and the kind of mass matrix.

    It can be called like the conversion itself, so a builder may take either.
    """

    number: Callable[[Any], Any]
    n: int
    diagonal: bool

    def __call__(self, value: Any) -> Any:
        """Convert an exact number to the number type."""
        return self.number(value)

    @property
    def vectors(self) -> Algebra:
        """Kernels for vectors and matrices."""
        return algebra(self.n)

    @property
    def unit(self) -> Callable[..., Any]:
        """Kernel: the unit matrix in the number type of its argument."""
        return _unit(self.n)

    @property
    def product(self) -> Callable[..., Vector]:
        """Kernel: the inverse mass matrix (its diagonal, if it is diagonal) times a vector."""
        return _times(self.n) if self.diagonal else self.vectors.apply
