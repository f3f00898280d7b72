"""Verification of the declared invariant measure of a method with noise, in 50 digits.

The order k of the invariant measure is that of the integral of E f(step) - f over the Gibbs distribution,
exp(-H/kT), which goes as h^(k + 1). The integral is a cubature in the normal numbers of the momentum and of the step
and in the attitudes; it shows orders below `MOST_VISIBLE`. Above, the order is that of the step without friction and
noise, which must keep the density: -(H1 - H0)/kT + log det J goes as h^(k + 1), or is zero for an exact measure.

Velocity rescaling is not a polynomial of the momentum. Its parts are measured one by one: the thermostat must keep the
distribution without error (`bath_defect`), so that the order is that of the step without it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath

from polhode.analysis.generic_problems import ALL_STARTS, FRICTION, KT, STARTS
from polhode.analysis.measurements import NUDGE, invariants, nudged, slopes
from polhode.analysis.setting import (
    EXACT,
    FINE_STEPS,
    LARGE_STEP,
    LOCAL_STEPS,
    SLOPE_TOLERANCE,
    Setting,
    agrees,
    distance,
    fifty,
    largest,
)
from polhode.kernels.so3 import cross, dot, exp, matrix, mul, norm, scale, times
from polhode.kernels.state import with_memory
from polhode.methods import Method
from polhode.methods.record import RESCALING
from polhode.numbers.multiprecision import number
from polhode.physics.body import Body
from polhode.physics.fields import gravity, heat_bath
from polhode.physics.problem import Problem
from polhode.run.integrator import torque_kernel

from .cubature import Rule, degree_1, degree_3, degree_5, degree_7
from .noise import Given, of_the_step

MGL = 0.4
"""Strength of the potential U = mgl R33."""

MOST_VISIBLE = 3
"""The cubature has an error h^4, so that it shows orders below this."""

FREE, IN_POTENTIAL = "free", "linear"
"""Kinds of field for the free body and for a potential linear in R."""


# --- points of the Gibbs distribution ------------------------------------------------------------


@functools.cache
@fifty
def gauss(slope: float, count: int) -> list[tuple[Any, Any]]:
    """Nodes and weights (of sum 1) of Gauss's quadrature for the weight exp(-slope z) on -1 < z < 1.

    The nodes are the eigenvalues of multiplication by z in the basis of orthogonal polynomials, which follows from the
    moments (G. H. Golub and J. H. Welsch, Math. Comp. 23 (1969) 221-230).
    """
    moments = [mpmath.quad(lambda z, k=k: z**k * mpmath.exp(-slope * z), [-1, 1]) for k in range(2 * count)]
    products, shifted = (
        mpmath.matrix([[moments[i + j + shift] for j in range(count)] for i in range(count)]) for shift in (0, 1)
    )
    basis = mpmath.cholesky(products) ** -1
    nodes, vectors = mpmath.eigsy(basis * shifted * basis.T)
    return [(nodes[i], vectors[0, i] ** 2) for i in range(count)]


def attitudes(degree: int) -> Iterator[tuple[Any, Any]]:
    """Attitudes and weights of exp(-mgl R33/kT), up to rotations about the vertical, for polynomials of odd degree."""
    turns = degree + 1
    for z, weight in gauss(MGL / KT, turns // 2):
        tilt = exp((mpmath.acos(z), number(0), number(0)))
        for k in range(turns):
            yield mul(tilt, exp((number(0), number(0), 2 * mpmath.pi * k / turns))), weight / turns


def points(n: int) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """Attitudes, n normal numbers and weights, for polynomials of total degree 5 (S. A. Smolyak, 1963).

    Odd powers of the normal numbers vanish. So their degree 0 goes with degree 5 in the attitude, 2 with 3 and 4 with
    1, and of the product of two rules of degree 5 the sum A5 X1 + A3 (X3 - X1) + A1 (X5 - X3) is enough.
    """
    signed: tuple[tuple[int, int, Callable[[int], Rule]], ...] = (
        (5, 1, degree_1), (3, 1, degree_3), (3, -1, degree_1), (1, 1, degree_5), (1, -1, degree_3),
    )  # fmt: skip
    for degree, sign, rule in signed:
        normal = list(rule(n))
        for q, share in attitudes(degree):
            for x, weight in normal:
                yield q, x, sign * share * weight


def points_of_free_body(n: int) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """The same for the free body, whose attitude does not act on its momentum."""
    for x, weight in degree_5(n):
        yield (number(1), number(0), number(0), number(0)), x, weight


# --- order of the invariant measure -----------------------------------------------------------------


def of_momentum(R: Any, m: Any) -> Any:
    """A polynomial of the momentum, for the free body."""
    a, b, c = m
    return 2 * a * b - b * c + 3 * a * a + c * c - 2 * b * b


def seen_from_above(R: Any, m: Any) -> Any:
    """A polynomial that does not change if the body is rotated about the vertical.

    The errors of symmetric splittings are odd in Pi where the friction is weak: it has odd terms too.
    """
    (x, y, z), (a, b, c) = R[2], m
    return of_momentum(R, m) + 3 * x * b + y * a + z * c + 3 * z - x


def measure_defect(method: Method, kind: str, h: Any, which: int) -> Any:
    """Integral of E f(step) - f over the Gibbs distribution, for the free body or in the potential mgl R33.

    The coefficient of h^k in E f(step) is a polynomial of (R, Pi) and the normal numbers whose degree is at most k more
    than that of f, 2. So the integral is exact up to h^3.
    """
    assert method.noise is not None
    given, t, total = Given(), number(0), number(0)
    step = method.noise.driven(number, given)
    memory, system, torque = at_start(method, kind, h, which)
    a, b, c = (mpmath.sqrt(KT * moment) for moment in system[0])
    f, rule = (of_momentum, points_of_free_body) if kind == FREE else (seen_from_above, points)
    for q, x, weight in rule(3 + 3 * method.noise.vectors):
        given.xi, m = x[3:], (a * x[0], b * x[1], c * x[2])
        (q1, m1, _), _ = step(h, t, (q, m, memory), system, torque)
        total = total + weight * (f(matrix(q1), m1) - f(matrix(q), m))
    return total


def at_start(method: Method, kind: str, h: Any, which: int) -> tuple[Any, Any, Any]:
    """The memory of a method for steps over h, the system and the torque."""
    assert method.before is not None
    field = heat_bath(kT=KT, friction=FRICTION)
    inertia, momentum = STARTS[which]["inertia"], STARTS[which]["momentum"]
    problem = Problem(Body(inertia), field if kind == FREE else gravity(MGL) + field, momentum=momentum)
    y, system = problem.kernel_data(number)
    torque = torque_kernel(problem, number, method)
    (_, _, memory), _ = method.before(number)(h, number(0), with_memory(method.memory)(y), system, torque)
    return memory, system, torque


def density_defect(method: Method, kind: str, which: int, h: Any) -> Any:
    """Change of log(density of Gibbs) by a step without friction and noise, with that of the volume.

    The volume is that of rotations and body momenta, by central differences: their error, NUDGE^2 = 1e-28, counts as
    zero.
    """
    setting = Setting(method, kind, which, bath=False)
    start, end = setting.y, setting.step(h)
    sides = [[setting.step(h, y=nudged(start, k, s * NUDGE)) for s in (1, -1)] for k in range(6)]
    columns = [slopes(end, up, down) for up, down in sides]
    volume = mpmath.log(abs(mpmath.det(mpmath.matrix([[*turn, *change] for turn, change in columns]))))
    energies = [invariants(setting.problem, y, setting.system)[0] for y in (start, end)]
    return abs((energies[0] - energies[1]) / KT + (0 if abs(volume) < 1e-25 else volume))


@fifty
def density_slope(method: Method, kind: str, which: int = 0) -> float:
    """Order at which a step without friction and noise preserves the density; infinite if exactly.

    If it is not near a whole number, the leading term is small by accident, and the steps are taken finer.
    """
    if density_defect(method, kind, which, number(LARGE_STEP)) < EXACT:
        return math.inf
    measured = math.nan
    for steps in (LOCAL_STEPS, FINE_STEPS):
        long, short = (density_defect(method, kind, which, number(h)) for h in steps)
        measured = float(mpmath.log(long / short, 2)) - 1
        if abs(measured - round(measured)) <= SLOPE_TOLERANCE:
            break
    return measured


INSTANT = mpmath.mpf(10) ** -50
"""A step in which a body does not move visibly; some steps divide by h."""

MOMENTS = (1, 2, 3)
"""Powers of the kinetic energy whose means are compared: with the numbers of a step, polynomials of degree 6."""


def sums_of_three_squares() -> Iterator[tuple[Any, Any]]:
    """Gauss's rule for the sum of squares of three normal numbers: the roots of t^2 - 10 t + 15, exact to degree 3."""
    root = mpmath.sqrt(10)
    yield 5 + root, number(1) / 2 - 1 / root
    yield 5 - root, number(1) / 2 + 1 / root


@fifty
def bath_defect(method: Method, which: int = 0) -> Any:
    """How much friction and noise alone change the Gibbs distribution, for a thermostat that rescales the momentum.

    A step over almost no time that has the memory of a long one consists of them. The direction of the momentum must
    stay, and the means of powers of the kinetic energy.
    """
    assert method.noise is not None
    given, none = Given(), number(0)
    step = method.noise.driven(number, given)
    memory, system, torque = at_start(method, FREE, number(LARGE_STEP), which)
    q, direction = (number(1), none, none, none), tuple(map(number, STARTS[which]["momentum"]))
    numbers, changes, turned = list(degree_7(3 * method.noise.vectors)), [none for _ in MOMENTS], none
    for energy, share in sums_of_three_squares():
        m = scale(mpmath.sqrt(KT * energy / dot(direction, times(system[1], direction))), direction)
        for xi, weight in numbers:
            given.xi = xi
            (after, m1, _), _ = step(INSTANT, none, (q, m, memory), system, torque)
            turned = largest([turned, norm(cross(m, m1)), distance((after,), (q,))])
            end = dot(m1, times(system[1], m1)) / KT
            changes = [x + share * weight * (end**k - energy**k) for k, x in zip(MOMENTS, changes, strict=True)]
    return largest([turned, *map(abs, changes)])


@of_the_step
@fifty
def measure_slope(method: Method, kind: str, which: int = 0) -> float:
    """Order of the error of the invariant measure."""
    assert method.noise is not None
    if method.noise.equation == RESCALING:
        return density_slope(method, kind, which) if bath_defect(method, which) <= EXACT else 0.0
    long, short = (measure_defect(method, kind, number(h), which) for h in FINE_STEPS)
    visible = float(mpmath.log(abs(long / short), 2)) - 1 if abs(short) > EXACT else math.inf
    return visible if visible < MOST_VISIBLE - SLOPE_TOLERANCE else density_slope(method, kind, which)


def check_measure(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """The declared orders of the invariant measure, with a potential and for the free body, are the measured ones."""
    if method.noise is None:
        return []
    faults = []
    for name, kind in (("invariant_measure", IN_POTENTIAL), ("invariant_measure_free", FREE)):
        declared = getattr(method.noise, name)
        expected = 0 if declared is None else declared
        for which in starts:
            measured = measure_slope(method, kind, which)
            if not agrees(measured, expected):
                faults.append(f"{name} declared {declared}, measured {measured:.2f} on start {which}")
    return faults
