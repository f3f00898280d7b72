"""Energies whose exact flows compose a step: the starting point of backward error analysis.

A kinetic energy is a function (m, system) -> (E, dE/dm) of the body momentum; its flow rotates the body with the
angular velocity dE/dm. The strings "U" and "V" denote the potential and the modified potential.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from ..kernels.so3 import along, dot, scale, times
from ..numbers.types import Number, Vec3
from .mechanics import basis
from .record import Flow, Term
from .tables.dmv_series import SERIES, Table

Diagonal = Callable[[Any], Vec3]
Energy = Callable[[Vec3, Any], tuple[Number, Vec3]]
HALF = (Fraction(1, 2),)


def quadratic(diagonal: Diagonal) -> Energy:
    """The energy sum_i d_i m_i^2/2, d = diagonal(system)."""

    def energy(m: Vec3, system: Any) -> tuple[Number, Vec3]:
        omega = times(diagonal(system), m)
        return dot(omega, m) / 2, omega

    return energy


def _inverse(system: Any) -> Vec3:
    inverse: Vec3 = system[1]
    return inverse


kinetic = quadratic(_inverse)
"""The full kinetic energy."""


def symmetric(outer: Sequence[Energy], inner: Energy) -> tuple[Flow, ...]:
    """Flows of the outer energies over h/2, of the inner one over h, and of the outer ones in reverse over h/2."""
    first = tuple((Term(energy, HALF),) for energy in outer)
    return (*first, (Term(inner),), *reversed(first))


def about(axis: int, less: int | None = None) -> Diagonal:
    """Diagonal with the 1/I of one axis, minus the 1/I of the axis `less`, if given."""

    def diagonal(system: Any) -> Vec3:
        inverse = system[1]
        rate = inverse[axis] if less is None else inverse[axis] - inverse[less]
        return scale(rate, basis(rate)[axis])

    return diagonal


def about_both(reference: int, axis: int) -> Diagonal:
    """Diagonal of a symmetric body: 1/I of the reference axis, except 1/I of `axis` in its own entry."""

    def diagonal(system: Any) -> Vec3:
        inverse = system[1]
        same, more = inverse[reference], inverse[axis] - inverse[reference]
        return along((same, same, same), more, basis(same)[axis])

    return diagonal


def scaled(flows: Iterable[Flow], factor: Any) -> tuple[Flow, ...]:
    """Scale the flows to another step: a term of weight w belongs to h^w."""
    return tuple(tuple(t._replace(times=(*t.times, *[factor] * t.weight)) for t in flow) for flow in flows)


# --- discrete Moser-Veselov -------------------------------------------------------------------------


def total(values: Iterable[Any]) -> Any:
    """Sum of at least one value of any type."""
    return functools.reduce(operator.add, values)


class Series:
    """A polynomial in h^2, truncated after `length` terms; its coefficients are numbers of any type."""

    def __init__(self, terms: list[Any], length: int) -> None:
        self.terms, self.length = terms[:length], length

    def __add__(self, other: Any) -> Series:
        a, b = self.terms, other.terms if isinstance(other, Series) else [other]
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        return Series([x + y for x, y in zip(longer, shorter, strict=False)] + longer[len(shorter) :], self.length)

    def __mul__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return Series([x * other for x in self.terms], self.length)
        terms: list[Any] = []
        for n in range(min(self.length, len(self.terms) + len(other.terms) - 1)):
            pairs = [(i, n - i) for i in range(n + 1) if i < len(self.terms) and n - i < len(other.terms)]
            terms.append(total(self.terms[i] * other.terms[j] for i, j in pairs))
        return Series(terms, self.length)

    __radd__, __rmul__ = __add__, __mul__


def _sum(table: Table, m: int, symmetric_functions: Sequence[Series], energy: Series, casimir: Any) -> Series:
    """Homogeneous polynomial s or t, the coefficient of h^2m."""
    terms = []
    for (*powers, rest), (top, bottom) in table.items():
        term = Series([top + 0 * casimir], energy.length) * (1 / (bottom + 0 * casimir))
        for factor, power in zip((*symmetric_functions, energy), (*powers, rest), strict=True):
            for _ in range(power):
                term = term * factor
        for _ in range(m - rest):
            term = term * casimir
        terms.append(term)
    return total(terms)


def moser_veselov_rates(m: Vec3, system: Any, length: int) -> tuple[list[Any], list[Any]]:
    """Coefficients in h^2 of a and b: a plain Moser-Veselov step is the exact motion with 1/I~ = a/I + b.

    The preprocessed step with 1/I = (1 + s)/I~ + t is exact for the moments I~ (Hairer and Vilmart 2006). So
    a = 1/(1 + s) and b = -t/(1 + s), with s and t evaluated at I~: solved by iteration, one power of h^2 per sweep.
    """
    inverse = system[1]
    casimir, energy = dot(m, m) / 2, dot(m, times(inverse, m)) / 2
    a, b = Series([1 + 0 * energy], length), Series([0 * energy], length)
    for _ in range(length):
        x, y, z = (a * i + b for i in inverse)
        functions = (x + y + z, x * y + y * z + z * x, x * y * z)
        new = a * energy + b * casimir
        s, t = (
            total(
                _shifted(_sum(SERIES[k - 1][which], k, functions, new, casimir), k)
                for k in range(1, min(length, len(SERIES) + 1))
            )
            for which in (0, 1)
        )
        a, b = Series([1 + 0 * energy], length) + a * s * -1, a * t * -1
    return a.terms, b.terms


def _shifted(series: Series, k: int) -> Series:
    return Series([0 * series.terms[0]] * k + series.terms, series.length)


def moser_veselov_energy(k: int) -> Energy:
    """Coefficient of h^2k in the modified energy of the plain step.

    It is a function of the energy H and the Casimir C, homogeneous of degree k + 1, with the derivatives a and b with
    respect to them; so it is (a H + b C)/(k + 1).
    """

    def energy(m: Vec3, system: Any) -> tuple[Number, Vec3]:
        a, b = (terms[k] for terms in moser_veselov_rates(m, system, k + 1))
        omega = times(system[1], m)
        return (a * (dot(m, omega) / 2) + b * (dot(m, m) / 2)) / (k + 1), along(scale(a, omega), b, m)

    return energy


MOSER_VESELOV: tuple[Flow, ...] = (
    (Term(kinetic), *(Term(moser_veselov_energy(k), weight=2 * k + 1) for k in range(1, len(SERIES) + 1))),
)
"""One flow, of the modified energy, as far as the series are known."""
