"""Coefficients without rounding: fractions and numbers a + b sqrt(r), converted once per number type."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction
from typing import Any

from ..errors import InputError
from .primitives import sqrt


@dataclasses.dataclass(frozen=True)
class Surd:
    """The number rational + factor sqrt(radicand).

    Examples
    --------
    >>> gauss = ph.surd("1/2", "-1/6", 3)
    >>> gauss.rational, gauss.radicand
    (Fraction(1, 2), 3)
    """

    rational: Fraction
    factor: Fraction
    radicand: int

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Surd):
            if other.radicand != self.radicand:
                raise InputError(f"{self} and {other} have different radicands, so their sum is not a surd")
            return tidy(Surd(self.rational + other.rational, self.factor + other.factor, self.radicand))
        return Surd(self.rational + Fraction(other), self.factor, self.radicand)

    __radd__ = __add__

    def __str__(self) -> str:
        return f"{self.rational} + {self.factor}*sqrt({self.radicand})"


def tidy(x: Surd) -> Surd | Fraction:
    """Reduce a surd without irrational part to a fraction."""
    return x if x.factor else x.rational


TEXT = re.compile(r"\s*[+-]?(\d+(/\d+|(\.\d*)?(e[+-]?\d{1,3})?)|\.\d+(e[+-]?\d{1,3})?)\s*", re.IGNORECASE)
"""A number as text. Exponents are limited to three digits: 1e999999999 as a fraction would fill the memory."""


def exact(value: Any, what: str = "a coefficient") -> Any:
    """Return the exact value of an int, a Fraction, a Surd, a float, or a string such as "1/3" or "0.1"."""
    if isinstance(value, Surd):
        return value
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not TEXT.fullmatch(value)):
            raise ValueError
        return Fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InputError(f"{what} must be a finite number or a string such as '1/3'; got {value!r}") from None


def surd(rational: Any, factor: Any, radicand: int) -> Surd:
    """``surd("1/2", "-1/6", 3)`` is 1/2 - sqrt(3)/6.

    Examples
    --------
    >>> ph.surd("1/2", "-1/6", 3).factor
    Fraction(-1, 6)
    """
    if isinstance(radicand, bool) or not isinstance(radicand, int) or radicand < 0:
        raise InputError(f"the radicand of a surd must be a whole number, 0 or more; got {radicand!r}")
    parts = [exact(x, "the rational part and the factor of a surd") for x in (rational, factor)]
    if any(isinstance(x, Surd) for x in parts):
        raise InputError(f"a surd consists of two fractions and a whole number; got {rational!r} and {factor!r}")
    return Surd(parts[0], parts[1], radicand)


def converted(value: Any, number: Any) -> Any:
    """Convert an exact number to a number type, with the type's conversion from integers."""
    if isinstance(value, Surd):
        root = sqrt(number(value.radicand))
        return converted(value.rational, number) + converted(value.factor, number) * root
    return number(value.numerator) / number(value.denominator)
