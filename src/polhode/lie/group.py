"""A matrix Lie group: a basis of the Lie algebra, the exponential, and the test of membership.

Elements and velocities are square NumPy arrays; `hat` converts coordinates in the basis to a velocity, and `vee` is its
inverse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InputError
from .magnus import Algebra, with_bracket
from .numbers import Numbers

Matrix = np.ndarray

MEMBER = 1e-6
"""Largest distance of a user's element from the group (single-precision data pass); it is then moved onto it."""


def commutator(A: Matrix, B: Matrix) -> Matrix:
    """[A, B] = A B - B A."""
    return A @ B - B @ A


class Group:
    """A matrix Lie group.

    Parameters
    ----------
    name : for messages
    basis : square matrices that span the Lie algebra; integers, fractions and floats are converted exactly. With
        complex matrices the group is complex; velocities are still real combinations
    exp : function of a velocity (an array), in closed form; by default the matrix exponential
    defect : function of a matrix that returns an array of quantities that vanish on the group
    tidied : function that removes the round-off of an element; by default it returns the element unchanged
    bracket : function of two velocities; by default A B - B A

    Attributes
    ----------
    size, dimension : size of the matrices, dimension of the Lie algebra
    """

    def __init__(
        self,
        name: str,
        basis: Sequence[Any],
        *,
        exp: Callable[[Matrix], Matrix] | None = None,
        defect: Callable[[Matrix], Any] | None = None,
        tidied: Callable[[Matrix], Matrix] | None = None,
        bracket: Callable[[Matrix, Matrix], Matrix] | None = None,
    ) -> None:
        self.name = str(name)
        self.real, self.imag, self.size = _exact_basis(self.name, basis)
        self.dimension = len(self.real)
        self._exp, self._defect, self._tidied = exp, defect, tidied
        self.algebra: Algebra = with_bracket(commutator if bracket is None else bracket)
        self._inverse_gram = _inverse(_gram(self), self.name)
        _check_closed(self)

    def __repr__(self) -> str:
        kind = "complex " if self.is_complex else ""
        return f"<Group {self.name}: {kind}{self.size} x {self.size} matrices, dimension {self.dimension}>"

    @property
    def is_complex(self) -> bool:
        """Whether the matrices are complex."""
        return bool(self.imag)

    # --- the Lie algebra ---------------------------------------------------------------------------

    def entries(self, coordinates: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Entries of a velocity, row by row: real and imaginary parts (none for real matrices), for any numbers."""
        real, imag = (
            [_combined(coordinates, column) for column in zip(*part, strict=True)] for part in (self.real, self.imag)
        )
        return real, imag

    def hat(self, coordinates: Any) -> Matrix:
        """Return the velocity with these coordinates."""
        if len(coordinates) != self.dimension:
            raise InputError(f"a velocity of {self.name} has {self.dimension} coordinates; got {len(coordinates)}")
        real, imag = self.entries(coordinates)
        flat = [a + 1j * b for a, b in zip(real, imag, strict=True)] if imag else real
        return np.array(flat).reshape(self.size, self.size)

    def vee(self, A: Any) -> np.ndarray:
        """Return the coordinates of a velocity; for any other matrix, of the nearest velocity (Frobenius norm)."""
        flat = np.asarray(A).ravel().tolist()
        products = [_combined([x.real for x in flat], b) for b in self.real]
        if self.is_complex:
            imag = [x.imag for x in flat]
            products = [p + _combined(imag, b) for p, b in zip(products, self.imag, strict=True)]
        return np.array([_combined(products, row) for row in self._inverse_gram])

    # --- the group ---------------------------------------------------------------------------------

    def exp(self, A: Matrix, numbers: Numbers | None = None) -> Matrix:
        """Exponential of a velocity."""
        return self._exp(A) if self._exp is not None else (numbers or Numbers()).exp(A)

    def tidied(self, y: Matrix) -> Matrix:
        """Remove the round-off of an element, so that it lies on the group."""
        return y if self._tidied is None else self._tidied(y)

    def defect(self, y: Any) -> float:
        """Distance of a matrix from the group: the largest of the quantities that vanish on it."""
        if self._defect is None:
            raise InputError(
                f"the group {self.name} has no defect function, so membership cannot be "
                "checked; give defect= when making it"
            )
        return float(np.max(np.abs(self._defect(np.asarray(y)))))

    def element(self, y: Any, numbers: Numbers) -> Matrix:
        """Convert a user's matrix to an element, moved onto the group; the identity for None."""
        n = self.size
        if y is None:
            return numbers.array(np.eye(n).ravel(), np.zeros(n * n) if self.is_complex else (), (n, n))
        given = _given_matrix(f"y0 must be a {n} x {n} matrix of {self.name}", y, n, self.is_complex)
        if self._defect is not None and not self.defect(given) <= MEMBER:
            raise InputError(f"y0 must be an element of {self.name}; it is off by {self.defect(given):.3g}")
        imag = given.imag.ravel().tolist() if self.is_complex else ()
        element = numbers.array(given.real.ravel().tolist(), imag, (n, n))
        for _ in range(3 + (numbers.digits or 0).bit_length()):  # the correction converges quadratically
            element = self.tidied(element)
        return element


def _combined(values: Sequence[Any], factors: Sequence[Fraction]) -> Any:
    """Sum of factors times values, without products by 0 and 1."""
    total: Any = 0
    for x, f in zip(values, factors, strict=True):
        if f:
            term = x if f == 1 else x * f.numerator
            total = total + (term if f.denominator == 1 else term / f.denominator)
    return total


def _given_matrix(expected: str, y: Any, n: int, complex_too: bool) -> np.ndarray:
    try:
        given = np.array(y, dtype=complex if complex_too else float)
    except Exception:  # y may be any object
        raise InputError(f"{expected}; got {y!r}") from None
    if given.shape != (n, n):
        raise InputError(f"{expected}; got shape {given.shape}")
    if not np.isfinite(given).all():
        raise InputError(f"{expected} of finite numbers; got {given.tolist()}")
    return given


# --- a basis, exactly -------------------------------------------------------------------------------


def _exact_basis(name: str, basis: Sequence[Any]) -> tuple[list[list[Fraction]], list[list[Fraction]], int]:
    """Return real and imaginary parts of the basis, flat, as fractions (no imaginary parts for real matrices)."""
    expected = f"the basis of {name} must be a sequence of square matrices of one size"
    try:
        entries = [[x for row in matrix for x in row] for matrix in basis]
        sizes = {len(matrix) for matrix in basis} | {len(row) for matrix in basis for row in matrix}
        real = [[Fraction(x.real) for x in flat] for flat in entries]
        imag = [[Fraction(x.imag) for x in flat] for flat in entries]
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise InputError(f"{expected}, made of finite numbers; got {basis!r}") from None
    if not entries or len(sizes) != 1:
        raise InputError(f"{expected}; got {len(entries)} with rows and columns of lengths {sorted(sizes)}")
    return real, imag if any(x for flat in imag for x in flat) else [], sizes.pop()


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _gram(group: Group) -> list[list[Fraction]]:
    """Scalar products of the basis: real parts of tr(a^* b)."""
    whole = [a + b for a, b in zip(group.real, group.imag or [[] for _ in group.real], strict=True)]
    return [[_dot(a, b) for b in whole] for a in whole]


def _inverse(gram: list[list[Fraction]], name: str) -> list[list[Fraction]]:
    """Inverse of a matrix of fractions, by elimination."""
    n = len(gram)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(gram)]
    for i in range(n):
        pivot = next((k for k in range(i, n) if rows[k][i]), None)
        if pivot is None:
            raise InputError(
                f"the basis of {name} must be linearly independent; matrix {i + 1} depends on the previous ones, "
                "so remove it"
            )
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def _check_closed(group: Group) -> None:
    """Raise an error if brackets of the basis leave its span."""
    one = [group.hat([float(i == j) for j in range(group.dimension)]) for i in range(group.dimension)]
    for i, j in itertools.combinations(range(group.dimension), 2):
        bracket = group.algebra.bracket(one[i], one[j])
        gap = np.abs(group.hat(group.vee(bracket)) - bracket).max()
        if gap > 1e-9 * (np.abs(bracket).max() + np.abs(one[i]).max() * np.abs(one[j]).max()):
            raise InputError(
                f"the basis of {group.name} does not span a Lie algebra: the bracket of matrices {i + 1} and {j + 1} "
                f"is not a combination of the basis (it is off by {gap:.3g}); add the missing matrices"
            )
