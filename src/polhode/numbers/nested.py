"""Vectors and matrices of numbers of any type: tuples with the arithmetic of arrays.

A user's function gets R, omega and its parameters as `Nested`. They are still tuples (``R[i][j]``, unpacking, ``len``),
and they follow the rules of NumPy: ``-k * omega``, ``R.T @ v``, ``R[i, j]``. Every component is the same expression,
with the same order of operands, as written by hand: x0 y0 + x1 y1 + x2 y2 for a product of matrices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

Operation = Callable[[Any, Any], Any]


class Nested(tuple[Any, ...]):
    """A vector, a matrix (a tuple of its rows), or a deeper array."""

    __slots__ = ()
    __array_priority__ = 1000.0  # NumPy numbers and arrays defer to this class

    def __getitem__(self, index: Any) -> Any:
        """One item, a slice, or with several indices an entry of a matrix: A[i, j], A[:, j]."""
        if isinstance(index, tuple):
            first, *rest = index
            chosen = self[first]
            if not rest:
                return chosen
            inner = tuple(rest)
            return Nested(row[inner] for row in chosen) if isinstance(first, slice) else chosen[inner]
        item = super().__getitem__(index)
        return Nested(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        return _elementwise(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _elementwise(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _elementwise(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _elementwise(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _elementwise(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _elementwise(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _elementwise(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _elementwise(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Any:
        return _elementwise(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _elementwise(operator.pow, other, self)

    def __neg__(self) -> Any:
        return Nested(-x for x in self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return Nested(abs(x) for x in self)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    def dot(self, other: Any) -> Any:
        """Product of vectors and matrices, the same as ``@``."""
        return matmul(self, other)

    @property
    def T(self) -> Any:
        """Transpose of a matrix; a vector is returned unchanged."""
        return self if _depth(self) < 2 else Nested(Nested(column) for column in zip(*self, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return (len(self), *(nested(self[0]).shape if self and _depth(self) > 1 else ()))


def nested(value: Any) -> Any:
    """Convert sequences and arrays, at every depth, to `Nested`; a number is returned unchanged."""
    if type(value) is Nested and not any(isinstance(x, tuple | list) and type(x) is not Nested for x in value):
        return value
    return Nested(map(nested, value)) if _is_sequence(value) else value


def _is_sequence(value: Any) -> bool:
    return isinstance(value, tuple | list) or getattr(value, "ndim", 0) > 0


def _depth(value: Any) -> int:
    """Number of dimensions, 0 for a number."""
    return 1 + (_depth(value[0]) if len(value) else 0) if _is_sequence(value) else 0


def _elementwise(operation: Operation, a: Any, b: Any) -> Any:
    """Apply an elementwise operation; the operand with fewer dimensions is combined with each item of the other."""
    deep, deeper = _depth(a), _depth(b)
    if deep == deeper == 0:
        return operation(a, b)
    if deep > deeper:
        return Nested(_elementwise(operation, x, b) for x in a)
    if deep < deeper:
        return Nested(_elementwise(operation, a, y) for y in b)
    if len(a) != len(b):
        raise TypeError(f"arrays of {len(a)} and of {len(b)} items cannot be combined")
    return Nested(_elementwise(operation, x, y) for x, y in zip(a, b, strict=True))


def inner(a: Any, b: Any) -> Any:
    """Scalar product of two vectors, a0 b0 + a1 b1 + ..., summed from the left."""
    if _depth(a) != 1 or _depth(b) != 1 or len(a) != len(b) or not len(a):
        raise TypeError(f"a scalar product needs two vectors of the same length; got {_said(a)} and {_said(b)}")
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def matmul(a: Any, b: Any) -> Any:
    """Product of matrices (given by rows) and vectors, by NumPy's rule for ``@``."""
    a, b = nested(a), nested(b)
    ranks = _depth(a), _depth(b)
    if ranks == (1, 1):
        return inner(a, b)
    if ranks == (2, 1):
        return Nested(inner(row, b) for row in a)
    if ranks == (1, 2):
        return Nested(inner(a, column) for column in b.T)
    if ranks == (2, 2):
        return Nested(Nested(inner(row, column) for column in b.T) for row in a)
    raise TypeError(f"a product needs vectors or matrices; got {_said(a)} and {_said(b)}")


def cross(a: Any, b: Any) -> Any:
    """Vector product a x b of two vectors of three components."""
    for v in (a, b):
        if _depth(v) != 1 or len(v) != 3:
            raise TypeError(f"a vector product needs two vectors of three components; got {_said(a)} and {_said(b)}")
    return Nested((a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]))


def _said(value: Any) -> str:
    """Description of the shape of a value, for messages."""
    depth = _depth(value)
    return {0: "a number", 1: f"{len(value)} components" if depth else ""}.get(depth, f"an array of {depth} dimensions")
