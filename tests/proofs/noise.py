"""Verification of a declaration of noise, in 50 digits: the weak order, and the random numbers of a step.

The weak order is that of the expectation of a polynomial f(R, Pi) after one step, by a cubature in the normal numbers,
against exp(h L) f with the generator

    L f = (R hat(omega)) : df/dR + (Pi x omega + T(R)) . df/dPi + L_bath f,   omega = I^-1 Pi,

which takes polynomials to polynomials. For Langevin dynamics L_bath f = -Gamma omega . df/dPi + kT Gamma : d2f/dPi2.
For velocity rescaling of three degrees of freedom, with E = Pi . d/dPi, u = 1/(Pi . omega) and g = tr(Gamma I^-1)/3,

    L_bath f = g (kT u (E^2 + E) - E) f,

and the polynomials have the further variable u. A local error h^(p + 1) is weak order p.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

from polhode._memo import Memo
from polhode.analysis.generic_problems import ALL_STARTS, FRICTION, KT, generic
from polhode.analysis.setting import (
    EXACT,
    FINE_STEPS,
    LARGE_STEP,
    LOCAL_STEPS,
    Setting,
    agrees,
    distance,
    fifty,
    largest,
)
from polhode.kernels.so3 import cross, dot, matrix, times
from polhode.methods import Method
from polhode.methods.queries import HeatBath
from polhode.methods.record import LANGEVIN, RESCALING
from polhode.numbers.multiprecision import number
from polhode.numbers.philox import normals
from polhode.physics.fields.kernels import formula_kernel
from polhode.physics.problem import Problem

from .cubature import degree_7
from .polynomials import Polynomial

# --- random numbers ---------------------------------------------------------------------------------


class Given:
    """Normal numbers that are given in `xi`, in the place of random ones."""

    xi: tuple[Any, ...] = ()

    def __call__(self, seed: Any, body: Any, step: Any, k: int) -> Any:
        """The k-th vector of a step."""
        return self.xi[3 * k : 3 * k + 3]


class Driven(Setting):
    """A method with noise on a generic problem, with normal numbers from `draw`."""

    def __init__(self, method: Method, kind: str, which: int, draw: Callable[..., Any]) -> None:
        assert method.noise is not None
        super().__init__(method, kind, which, repeated=True)
        self.kernel = method.noise.driven(number, draw)


@fifty
def drawn(method: Method, which: int = 0) -> tuple[Any, list[int]]:
    """Distance between the step and that of `driven` with the same random numbers, and the vectors that it draws."""
    places: list[int] = []

    def draw(seed: Any, body: Any, step: Any, k: int) -> Any:
        places.append(k)
        return normals(seed, body, step, k)

    end = Driven(method, "linear", which, draw).step(LARGE_STEP)
    return distance(end, Setting(method, "linear", which, repeated=True).step(LARGE_STEP)), places


def check_drawn(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """Noise is declared if a heat bath is asked for, and only then; the step draws the declared vectors, once each."""
    noise, asked = method.noise, method.asks.find(HeatBath) is not None
    if noise is None:
        return ["asks for a heat bath, but declares no noise"] if asked else []
    if not asked:
        return ["declares noise, but asks for no heat bath"]
    found = [drawn(method, which) for which in starts]
    faults = []
    if any(places != list(range(noise.vectors)) for _, places in found):
        faults.append(f"declared to draw {noise.vectors} vectors of normal numbers, measured {found[0][1]}")
    difference = largest(distance for distance, _ in found)
    if not difference <= EXACT:
        faults.append(f"the step of `driven` differs from the step by {mpmath.nstr(difference, 3)}")
    return faults


# --- measurements that are kept ---------------------------------------------------------------------


def of_the_step(measure: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a measurement of a method with noise for all methods with the same step.

    They differ only in the orders that their noise declares, which `measure` must not read.
    """

    def run(method: Method, *args: Any) -> Any:
        fields = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
        fields["noise"] = method.noise and method.noise._replace(**UNREAD)
        return kept((*fields.values(), *args), lambda: measure(method, *args))

    kept = Memo()
    return functools.wraps(measure)(run)


UNREAD: dict[str, Any] = {"weak_order": 0, "invariant_measure": None, "invariant_measure_free": None}
"""The orders that noise declares, in the place of any others."""


# --- weak order -------------------------------------------------------------------------------------


def expectation(method: Method, which: int, h: Any, f: Callable[[Any, Any], Any]) -> Any:
    """E f(R, Pi) after one step over h from a generic start, in a potential linear in R."""
    assert method.noise is not None
    given, total = Given(), number(0)
    setting = Driven(method, "linear", which, given)
    start = setting.initial_state(h)
    for xi, weight in degree_7(3 * method.noise.vectors):
        given.xi = xi
        q, m, _ = setting.step(h, y=start)
        total = total + weight * f(matrix(q), m)
    return total


Operator = Callable[[Polynomial], Polynomial]

U = 12
"""Place of the variable u, after those of R and Pi."""


def _variables(one: Any) -> tuple[Any, Any]:
    """R and Pi as polynomials; the last of thirteen variables is u = 1/(Pi . omega)."""
    x = Polynomial.variables(U + 1, one)
    return ((x[0], x[1], x[2]), (x[3], x[4], x[5]), (x[6], x[7], x[8])), (x[9], x[10], x[11])


def observable(R: Any, m: Any) -> Any:
    """A polynomial with no symmetry in which all errors of low order show."""
    a, b, c = m
    return (
        2 * a - 3 * b + c + 5 * a * a + a * b - 2 * b * c + 3 * c * c + b * b - 2 * a * c
        + 4 * R[0][0] - R[0][1] + 3 * R[1][2] + R[2][0] * a - 2 * R[1][1] * b + R[2][2] * c
    )  # fmt: skip


def _langevin(inverse: Any) -> Operator:
    """Friction and noise about all axes."""
    _, m = _variables(number(1))
    G, kT, w = [[number(g) for g in row] for row in FRICTION], number(KT), times(inverse, m)

    def bath(f: Polynomial) -> Polynomial:
        total, first = Polynomial({}), [f.derivative(9 + i) for i in range(3)]
        for i, j in itertools.product(range(3), repeat=2):
            total = total - first[i] * w[j] * G[i][j] + first[i].derivative(9 + j) * (kT * G[i][j])
        return total

    return bath


def _times_degree(f: Polynomial) -> Polynomial:
    """E f: every monomial times its degree in Pi, of which u has -2."""
    return Polynomial({powers: c * (sum(powers[9:U]) - 2 * powers[U]) for powers, c in f.terms.items()})


def _rescaling(inverse: Any) -> Operator:
    """Friction and noise along the momentum."""
    rate = sum(number(FRICTION[i][i]) * inverse[i] for i in range(3)) / 3
    u = Polynomial.variables(U + 1, number(1))[U]

    def bath(f: Polynomial) -> Polynomial:
        once = _times_degree(f)
        return ((_times_degree(once) + once) * u * number(KT) - once) * rate

    return bath


BATHS = {LANGEVIN: _langevin, RESCALING: _rescaling}
"""The part L_bath of the generator of an equation, made from the inverse moments."""


def generator(problem: Problem, equation: str = LANGEVIN) -> Operator:
    """The generator L of a problem with a polynomial torque."""
    _, (_, inverse, p) = problem.kernel_data(number)
    R, m = _variables(number(1))
    w, u = times(inverse, m), Polynomial.variables(U + 1, number(1))[U]
    assert problem.field is not None
    force = formula_kernel(problem.field.text[0], number)(number(0), R, w, p)
    rates = [x for row in R for x in cross(row, w)]  # a row of R hat(w)
    rates += [turn + push for turn, push in zip(cross(m, w), force, strict=True)]
    power = w[0] * force[0] + w[1] * force[1] + w[2] * force[2]
    rates.append(u * u * power * -2)  # of u
    bath = BATHS[equation](inverse)

    def apply(f: Polynomial) -> Polynomial:
        total = bath(f)
        for i, rate in enumerate(rates):
            total = total + f.derivative(i) * rate
        return total

    return apply


@functools.cache
@fifty
def derivatives(which: int, count: int, equation: str = LANGEVIN) -> tuple[Any, ...]:
    """(f, L f, L^2 f, ...) at a start, `count` of them after the first."""
    problem = generic("linear", which, True)
    apply, (R, m) = generator(problem, equation), _variables(number(1))
    (q, momentum), (_, inverse, _) = problem.kernel_data(number)
    point = [*(x for row in matrix(q) for x in row), *momentum, 1 / dot(momentum, times(inverse, momentum))]
    return repeated(apply, observable(R, m), point, count)


def repeated(
    apply: Callable[[Polynomial], Polynomial], f: Polynomial, point: Sequence[Any], count: int
) -> tuple[Any, ...]:
    """(f, L f, L^2 f, ...) at a point, with `apply` for the generator L."""
    found = []
    for _ in range(count + 1):
        found.append(f.at(point))
        f = apply(f)
    return tuple(found)


@of_the_step
@fifty
def weak_slope(method: Method, which: int = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order of the error of an expectation after one step, less one."""
    assert method.noise is not None
    return slope_of_expectation(method, which, steps, derivatives(which, 3, method.noise.equation), observable)


def slope_of_expectation(
    method: Method, which: int, steps: tuple[float, float], series: tuple[Any, ...], f: Callable[..., Any]
) -> float:
    """Order of E f(step) - exp(h L) f, less one; `series` has (f, L f, L^2 f, ...) at the start."""
    errors = []
    for h in map(number, steps):
        exact = sum(value * h**k / math.factorial(k) for k, value in enumerate(series))
        errors.append(abs(expectation(method, which, h, f) - exact))
    return float(mpmath.log(errors[0] / errors[1], 2)) - 1


def check_weak_order(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """The declared weak order is the measured one."""
    if method.noise is None:
        return []
    declared, faults = method.noise.weak_order, []
    for which in starts:
        measured = weak_slope(method, which)
        if not agrees(measured, declared):
            measured = weak_slope(method, which, FINE_STEPS)
        if not agrees(measured, declared):
            faults.append(f"weak order declared {declared}, measured {measured:.2f} on start {which}")
    return faults
