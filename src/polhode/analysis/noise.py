"""Verification of the declaration of a method with noise: weak order and invariant measure.

The weak order is measured in 50 digits: the expectation of a polynomial f(R, Pi) after one step, by a cubature in the
normal numbers, against exp(h L) f with the generator

    L f = (R hat(omega)) : df/dR + (Pi x omega + T(R) - Gamma omega) . df/dPi + kT Gamma : d2f/dPi2,   omega = I^-1 Pi,

which takes polynomials to polynomials. A local error h^(p + 1) is weak order p. The order of the invariant measure is
that of the integral of E f(step) - f over the distribution of Gibbs: h^(k + 1), and zero if the step preserves it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from ..kernels.so3 import cross, exp, matrix, mul, times
from ..kernels.state import with_memory
from ..methods import Method
from ..numbers import floats
from ..numbers.multiprecision import number
from ..physics.body import Body
from ..physics.fields import gravity, heat_bath
from ..physics.fields.kernels import formula_kernel
from ..physics.problem import Problem
from ..run.integrator import torque_kernel
from .measurements import FINE_STEPS, LOCAL_STEPS, STARTS, fifty, linear
from .polynomials import Polynomial

FRICTION = ((0.9, 0.2, -0.1), (0.2, 1.3, 0.3), (-0.1, 0.3, 0.7))
KT = 0.75
SLOPE_TOLERANCE = 0.1
MOST_VISIBLE = 3
"""Orders of the invariant measure from here on cannot be told from an exact one: the cubature has an error h^4."""
MEASURE_STEPS = (1 / 256, 1 / 512)
"""Step sizes for the invariant measure, in doubles."""


# --- cubature ---------------------------------------------------------------------------------------


def cubature(n: int, root: Callable[[Any], Any], one: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Points and weights that integrate polynomials of degree 7 in n <= 7 independent normal numbers exactly.

    The points are 0, (+-a, 0, ...), (+-b, +-b, 0, ...) and (+-c, ..., +-c), in all orders. The moments of degree 2 to
    6 give 2 B + C = 1, (8 - n) A = 1 - (n - 2) B and a quadratic equation for B, with A = 1/a^2, B = 1/b^2, C = 1/c^2
    (A. H. Stroud, Approximate calculation of multiple integrals, 1971, formulas of degree 7 for E_n with weight
    exp(-r^2)).
    """
    rest = 8 - n
    p, q, r = one * 2 * (n - 2) ** 2 / rest + 2 * (n - 1) + 4, one * 4 * (n - 2) / rest + 4, one * 2 / rest
    B = (q - root(q * q - 4 * p * r)) / (2 * p)
    A, C = (1 - (n - 2) * B) / rest, 1 - 2 * B
    a, b, c = (1 / root(x) for x in (A, B, C))
    wa, wb, wc = rest * A**3, B**3 / 2, C**3 / 2**n
    yield (0 * one,) * n, 1 - 2 * n * wa - 2 * n * (n - 1) * wb - 2**n * wc
    for i, s in itertools.product(range(n), (1, -1)):
        yield tuple(s * a if j == i else 0 * one for j in range(n)), wa
    for (i, j), s, t in itertools.product(itertools.combinations(range(n), 2), (1, -1), (1, -1)):
        yield tuple(s * b if k == i else t * b if k == j else 0 * one for k in range(n)), wb
    for signs in itertools.product((1, -1), repeat=n):
        yield tuple(s * c for s in signs), wc


# --- weak order -------------------------------------------------------------------------------------


def _bath() -> Any:
    return heat_bath(kT=KT, friction=FRICTION)


def _problem(which: int) -> Problem:
    """A generic start in a potential linear in R and a heat bath with an anisotropic friction tensor."""
    start = STARTS[which]
    length = math.hypot(*start["attitude"])
    return Problem(
        Body(start["inertia"]), linear(0.8, 0.3, -0.5) + _bath(), momentum=start["momentum"], t0=start["t0"],
        attitude=[x / length for x in start["attitude"]],
    )  # fmt: skip


def expectation(method: Method, problem: Problem, h: Any, f: Callable[[Any, Any], Any]) -> Any:
    """E f(R, Pi) after one step over h from the start of a problem."""
    assert method.noise is not None
    assert method.before is not None
    y, system = problem.kernel_data(number)
    torque, t, total = torque_kernel(problem, number, method), number(problem.t0), number(0)
    y, _ = method.before(number)(h, t, with_memory(method.memory)(y), system, torque)
    drawn = Given()
    step = method.noise.driven(number, drawn)
    for xi, weight in cubature(3 * method.noise.vectors, mpmath.sqrt, number(1)):
        drawn.xi = xi
        (q, m, _), _ = step(h, t, y, system, torque)
        total = total + weight * f(matrix(q), m)
    return total


class Given:
    """Normal numbers that are given in `xi`, in the place of random ones."""

    xi: tuple[Any, ...] = ()

    def __call__(self, seed: Any, body: Any, step: Any, k: int) -> Any:
        """The k-th vector of a step."""
        return self.xi[3 * k : 3 * k + 3]


def _variables(one: Any) -> tuple[Any, Any]:
    """R and Pi as polynomials in twelve variables."""
    x = Polynomial.variables(12, one)
    return ((x[0], x[1], x[2]), (x[3], x[4], x[5]), (x[6], x[7], x[8])), (x[9], x[10], x[11])


def observable(R: Any, m: Any) -> Any:
    """A polynomial with no symmetry in which all errors of low order show."""
    a, b, c = m
    return (
        2 * a - 3 * b + c + 5 * a * a + a * b - 2 * b * c + 3 * c * c + b * b - 2 * a * c
        + 4 * R[0][0] - R[0][1] + 3 * R[1][2] + R[2][0] * a - 2 * R[1][1] * b + R[2][2] * c
    )  # fmt: skip


def generator(problem: Problem) -> Callable[[Polynomial], Polynomial]:
    """The generator L of the Langevin equation of a problem with a polynomial torque."""
    _, (_, inverse, p) = problem.kernel_data(number)
    R, m = _variables(number(1))
    w = times(inverse, m)
    G = [[number(g) for g in row] for row in FRICTION]
    assert problem.field is not None
    force = formula_kernel(problem.field.text[0], number)(number(0), R, w, p)
    gyration = cross(m, w)
    rates = [x for row in R for x in cross(row, w)]  # a row of R hat(w)
    rates += [gyration[i] + force[i] - (G[i][0] * w[0] + G[i][1] * w[1] + G[i][2] * w[2]) for i in range(3)]
    kT = number(KT)

    def apply(f: Polynomial) -> Polynomial:
        total = Polynomial({})
        for i, rate in enumerate(rates):
            total = total + f.derivative(i) * rate
        for i, j in itertools.product(range(3), repeat=2):
            total = total + f.derivative(9 + i).derivative(9 + j) * (kT * G[i][j])
        return total

    return apply


@functools.cache
@fifty
def derivatives(which: int, count: int) -> tuple[Any, ...]:
    """(f, L f, L^2 f, ...) at a start, `count` of them after the first."""
    problem = _problem(which)
    apply, (R, m) = generator(problem), _variables(number(1))
    (q, momentum), _ = problem.kernel_data(number)
    point = [*(x for row in matrix(q) for x in row), *momentum]
    f, found = observable(R, m), []
    for _ in range(count + 1):
        found.append(f.at(point))
        f = apply(f)
    return tuple(found)


@fifty
def weak_slope(method: Method, which: int = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order of the error of an expectation after one step, less one."""
    series = derivatives(which, 4)
    errors = []
    for h in map(number, steps):
        exact = sum(value * h**k / math.factorial(k) for k, value in enumerate(series))
        errors.append(abs(expectation(method, _problem(which), h, observable) - exact))
    return float(mpmath.log(errors[0] / errors[1], 2)) - 1


def check_weak_order(method: Method, starts: tuple[int, ...] = (0, 1)) -> list[str]:
    """The declared weak order is the measured one."""
    assert method.noise is not None
    declared, faults = method.noise.weak_order, []
    for which in starts:
        measured = weak_slope(method, which)
        if abs(measured - declared) > SLOPE_TOLERANCE:
            measured = weak_slope(method, which, FINE_STEPS)
        if not abs(measured - declared) <= SLOPE_TOLERANCE:
            faults.append(f"weak order declared {declared}, measured {measured:.2f} on start {which}")
    return faults


# --- invariant measure ------------------------------------------------------------------------------

MGL = 0.4
"""Strength of the potential U = mgl R33."""

HEIGHTS, TURNS = 3, 6
"""Nodes of an attitude: of R33, and of the angle about the body's third axis; exact for degree 5 in R."""


def gauss(slope: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (of sum 1) of Gauss's quadrature for the weight exp(-slope z) on -1 < z < 1.

    The recurrence of the orthogonal polynomials comes from a finer rule (Stieltjes), the nodes from the eigenvalues of
    their matrix (G. H. Golub and J. H. Welsch, Math. Comp. 23 (1969) 221-230).
    """
    z, w = np.polynomial.legendre.leggauss(40)
    w = w * np.exp(-slope * z)
    before, now = np.zeros_like(z), np.full_like(z, 1 / math.sqrt(w.sum()))
    diagonal, beside = list[float](), list[float]()
    for _ in range(count):
        diagonal.append(float(w @ (z * now * now)))
        following = (z - diagonal[-1]) * now - (beside[-1] if beside else 0.0) * before
        beside.append(math.sqrt(w @ following**2))
        before, now = now, following / beside[-1]
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))
    return nodes, vectors[0] ** 2


def attitudes(mgl: float) -> Iterator[tuple[Any, float]]:
    """Attitudes and weights of the distribution exp(-mgl R33/kT), up to rotations about the vertical."""
    if mgl == 0:
        yield (1.0, 0.0, 0.0, 0.0), 1.0
        return
    for z, weight in zip(*gauss(mgl / KT, HEIGHTS), strict=True):
        for k in range(TURNS):
            tilt, turn = math.acos(z), 2 * math.pi * k / TURNS
            yield mul(exp((tilt, 0.0, 0.0)), exp((0.0, 0.0, turn))), float(weight) / TURNS


def momenta_only(R: Any, m: Any) -> Any:
    """A polynomial of the momentum, for the free body: its attitude does not act on it."""
    a, b, c = m
    return 2 * a * b - b * c + 3 * a * a + c * c - 2 * b * b + a * b * c


def seen_from_above(R: Any, m: Any) -> Any:
    """A polynomial that does not change if the body is rotated about the vertical."""
    (x, y, z), (a, b, c) = R[2], m
    return 2 * a * b - b * c + 3 * a * a + c * c - 2 * b * b + 3 * x * b + y * a + z * c + 3 * z - x


def small_cubature(n: int) -> Iterator[tuple[tuple[float, ...], float]]:
    """As `cubature`, of degree 5 and for any n: the points are 0, (+-a, 0, ...) and (+-a, +-a, 0, ...), a^2 = 3."""
    a, single, double = math.sqrt(3), (4 - n) / 18, 1 / 36
    yield (0.0,) * n, 1 - 2 * n * single - 2 * n * (n - 1) * double
    for i, s in itertools.product(range(n), (a, -a)):
        yield tuple(s * (j == i) for j in range(n)), single
    for (i, j), s, t in itertools.product(itertools.combinations(range(n), 2), (a, -a), (a, -a)):
        yield tuple(s * (k == i) + t * (k == j) for k in range(n)), double


def nodes(vectors: int, free: bool) -> list[tuple[tuple[float, ...], float]]:
    """Normal numbers of the momentum and of a step; for the free body of degree 7, else of degree 5."""
    if not free:
        return list(small_cubature(3 + 3 * vectors))
    pairs = itertools.product(cubature(3, math.sqrt, 1.0), cubature(3 * vectors, math.sqrt, 1.0))
    return [((*x, *xi), weight * likely) for (x, weight), (xi, likely) in pairs]


def measure_defect(method: Method, h: float, mgl: float, moments: tuple[float, float, float]) -> float:
    """Integral of E f(step) - f over the distribution of Gibbs, in doubles, with the potential mgl R33.

    The coefficient of h^k in E f(step) is a polynomial of (R, Pi) and the normal numbers whose degree is at most k more
    than that of f (2, or 3 for the free body), so the integral is exact up to h^3, for the free body up to h^4. The
    errors of symmetric splittings are odd in Pi: f has odd terms too.
    """
    noise, before = method.noise, method.before
    assert noise is not None
    assert before is not None
    problem = Problem(Body(moments), gravity(mgl) + _bath(), momentum=(1.0, 1.0, 1.0))
    (_, _), system = problem.kernel_data(floats.number)
    torque, drawn = torque_kernel(problem, floats.number, method), Given()
    step, begin, start = noise.driven(floats.number, drawn), before(floats.number), with_memory(method.memory)
    a, b, c = (math.sqrt(KT * moment) for moment in moments)
    f, total = momenta_only if mgl == 0 else seen_from_above, 0.0
    points = nodes(noise.vectors, mgl == 0)
    for q, share in attitudes(mgl):
        for x, weight in points:
            drawn.xi = x[3:]
            y, _ = begin(h, 0.0, start((q, (a * x[0], b * x[1], c * x[2]))), system, torque)
            (p, m, _), _ = step(h, 0.0, y, system, torque)
            total += share * weight * (f(matrix(p), m) - f(matrix(q), y[1]))
    return total


def measure_slope(method: Method, mgl: float, which: int = 0) -> float:
    """Order of the error of the invariant measure; at most `MOST_VISIBLE`."""
    first, second = (abs(measure_defect(method, h, mgl, STARTS[which]["inertia"])) for h in MEASURE_STEPS)
    return MOST_VISIBLE if second < 1e-13 else min(float(MOST_VISIBLE), math.log2(first / second) - 1)


def check_measure(method: Method, starts: tuple[int, ...] = (0,)) -> list[str]:
    """The declared orders of the invariant measure, with a potential and for the free body, are the measured ones."""
    assert method.noise is not None
    faults = []
    for name, mgl in (("invariant_measure", MGL), ("invariant_measure_free", 0.0)):
        declared = getattr(method.noise, name)
        expected = 0.0 if declared is None else min(declared, MOST_VISIBLE)
        for which in starts:
            measured = measure_slope(method, mgl, which)
            if not abs(measured - expected) <= SLOPE_TOLERANCE:
                faults.append(f"{name} declared {declared}, measured {measured:.2f} on start {which}")
    return faults


def check_noise(method: Method) -> list[str]:
    """List all false declarations about the noise of a method; empty if all are correct."""
    return check_weak_order(method) + check_measure(method)
