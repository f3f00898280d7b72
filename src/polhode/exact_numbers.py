"""Coefficients without rounding: fractions and numbers a + b sqrt(r), converted once per number type."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

from .scalar import sqrt


@dataclasses.dataclass(frozen=True)
class Surd:
    """The number rational + factor sqrt(radicand)."""

    rational: Fraction
    factor: Fraction
    radicand: int

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Surd):
            assert other.radicand == self.radicand
            return tidy(Surd(self.rational + other.rational, self.factor + other.factor, self.radicand))
        return Surd(self.rational + Fraction(other), self.factor, self.radicand)

    __radd__ = __add__

    def __str__(self) -> str:
        return f"{self.rational} + {self.factor}*sqrt({self.radicand})"


def tidy(x: Surd) -> Surd | Fraction:
    """A surd without irrational part is a fraction."""
    return x if x.factor else x.rational


def exact(value: Any) -> Any:
    """The exact number behind an int, a Fraction, a Surd, a float, or a string such as "1/3" or "0.1"."""
    return value if isinstance(value, Surd) else Fraction(value)


def surd(rational: str, factor: str, radicand: int) -> Surd:
    """``surd("1/2", "-1/6", 3)`` is 1/2 - sqrt(3)/6."""
    return Surd(Fraction(rational), Fraction(factor), radicand)


def converted(value: Any, number: Any) -> Any:
    """An exact number in a number type, given the type's conversion from integers."""
    if isinstance(value, Surd):
        root = sqrt(number(value.radicand))
        return converted(value.rational, number) + converted(value.factor, number) * root
    return number(value.numerator) / number(value.denominator)
