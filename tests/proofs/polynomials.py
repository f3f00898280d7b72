"""Polynomials in several variables, as numbers for kernels: the generator of a diffusion acts on them exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Powers = tuple[int, ...]


class Polynomial:
    """A sum of coefficients times monomials, the powers of all variables."""

    def __init__(self, terms: Mapping[Powers, Any]) -> None:
        self.terms = {powers: c for powers, c in terms.items() if c != 0}

    @classmethod
    def variables(cls, count: int, one: Any) -> list[Polynomial]:
        """The variables themselves; `one` is the number 1 of the coefficients."""
        return [cls({tuple(int(i == j) for j in range(count)): one}) for i in range(count)]

    def _of(self, other: Any) -> Polynomial:
        """Another polynomial, or a number as a constant."""
        if isinstance(other, Polynomial):
            return other
        count = len(next(iter(self.terms))) if self.terms else 0
        return Polynomial({(0,) * count: other})

    def __add__(self, other: Any) -> Polynomial:
        if not self.terms:
            return self._of(other)
        terms = dict(self.terms)
        for powers, c in self._of(other).terms.items():
            terms[powers] = terms.get(powers, 0) + c
        return Polynomial(terms)

    def __mul__(self, other: Any) -> Polynomial:
        if not isinstance(other, Polynomial):
            return Polynomial({powers: c * other for powers, c in self.terms.items()})
        terms: dict[Powers, Any] = {}
        for a, c in self.terms.items():
            for b, d in other.terms.items():
                powers = tuple(map(int.__add__, a, b))
                terms[powers] = terms.get(powers, 0) + c * d
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: Any) -> Polynomial:
        return self + -other

    def __rsub__(self, other: Any) -> Polynomial:
        return -self + other

    def __truediv__(self, number: Any) -> Polynomial:
        return Polynomial({powers: c / number for powers, c in self.terms.items()})

    __radd__, __rmul__ = __add__, __mul__

    def derivative(self, i: int) -> Polynomial:
        """The derivative with respect to variable i."""
        lower = {}
        for powers, c in self.terms.items():
            if powers[i]:
                lower[(*powers[:i], powers[i] - 1, *powers[i + 1 :])] = c * powers[i]
        return Polynomial(lower)

    def at(self, point: Sequence[Any]) -> Any:
        """The value at a point."""
        total = 0 * point[0]
        for powers, c in self.terms.items():
            for x, power in zip(point, powers, strict=True):
                c = c * x**power if power else c
            total = total + c
        return total
