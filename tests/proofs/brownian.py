"""Verification of the declarations of overdamped Brownian rotation, in 50 digits.

The equation has no momentum, so the checks of the equations of motion do not apply. Verified are, from both sides, the
order without noise, the weak order against exp(h L) f with the generator of the overdamped equation,

    L f = sum_ij kT (Gamma^-1)_ij X_i X_j f + (Gamma^-1 T) . X f,   X_i f = (R hat(e_i)) : df/dR,

and the order of the invariant measure, exp(-U/kT) dR.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

from polhode.analysis.generic_problems import ALL_STARTS, FRICTION, KT, generic
from polhode.analysis.setting import EXACT, FINE_STEPS, LARGE_STEP, LOCAL_STEPS, agrees, distance, fifty, largest
from polhode.kernels.so3 import conj, cross, matrix, mul
from polhode.methods import Method
from polhode.numbers.multiprecision import number
from polhode.physics.fields import heat_bath
from polhode.physics.fields.kernels import formula_kernel
from polhode.physics.problem import Problem
from polhode.run.integrator import start, torque_kernel

from .cubature import degree_7
from .gibbs import IN_POTENTIAL, at_start, attitudes
from .noise import Driven, Given, of_the_step, repeated, slope_of_expectation
from .polynomials import Polynomial

VERY_SHORT_STEPS = (2**-17, 2**-18)


def _fault(name: str, declared: Any, measured: float, which: int = 0) -> list[str]:
    """A sentence if a measured order is not the declared one."""
    if agrees(measured, declared or 0):
        return []
    return [f"{name} declared {declared}, measured {measured:.2f} on start {which}"]


# --- order without noise ----------------------------------------------------------------------------


def _cold_step(method: Method, which: int, h: Any, steps: int) -> Any:
    """Attitude after steps of length h at the temperature zero, with a torque of time and attitude."""
    plain = generic("attitude", which)
    assert plain.field is not None
    assert method.before is not None
    problem = Problem(
        plain.body, plain.field + heat_bath(kT=0.0, friction=FRICTION), attitude=plain.quaternion,
        momentum=plain.momentum, t0=plain.t0,
    )  # fmt: skip
    y, system = start(problem, method, number)
    torque, step, t = torque_kernel(problem, number, method), method.build(number), number(problem.t0)
    y, _ = method.before(number)(h, t, y, system, torque)
    for k in range(steps):
        y, _ = step(h, t + k * h, y, system, torque)
    return y[0]


@fifty
def cold_slope(method: Method, which: int = 0) -> float:
    """Order without noise: by how a step differs from two steps of half the length."""
    differences = [
        distance((_cold_step(method, which, h, 1),), (_cold_step(method, which, h / 2, 2),))
        for h in map(number, LOCAL_STEPS)
    ]
    return float(mpmath.log(differences[0] / differences[1], 2)) - 1


def check_overdamped_order(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """The declared order is that without noise; without torque nothing moves, so the step is exact.

    What is said about momenta must be declared absent: the equation has none.
    """
    faults = [] if method.order_free == math.inf else [f"declared order {method.order_free} (free), measured inf"]
    for name in ("symmetric", "symplectic", "poisson", "conserves", "implicit", "solves"):
        if getattr(method, name):
            faults.append(f"declares {name}={getattr(method, name)!r}, for an explicit step without momenta")
    return faults + [f for i in starts for f in _fault("order", method.order, cold_slope(method, i), i)]


# --- weak order -------------------------------------------------------------------------------------


def observable(R: Any, m: Any) -> Any:
    """A polynomial of the attitude with no symmetry."""
    linear = 4 * R[0][0] - R[0][1] + 3 * R[1][2] + 2 * R[2][1] - 5 * R[1][0]
    return linear + R[2][0] * R[1][1] - 2 * R[0][2] * R[0][2] + 3 * R[0][0] * R[2][2]


def generator(problem: Problem) -> Callable[[Polynomial], Polynomial]:
    """The generator of the overdamped equation of a problem with a torque linear in R."""
    _, (_, _, p) = problem.kernel_data(number)
    x = Polynomial.variables(9, number(1))
    R: Any = ((x[0], x[1], x[2]), (x[3], x[4], x[5]), (x[6], x[7], x[8]))
    assert problem.field is not None
    zero = (number(0),) * 3
    force = formula_kernel(problem.field.text[0], number)(number(0), R, zero, p)
    mobility = mpmath.matrix([[number(g) for g in row] for row in FRICTION]) ** -1
    units = [tuple(number(int(i == j)) for j in range(3)) for i in range(3)]
    moved = [[entry for row in R for entry in cross(row, unit)] for unit in units]  # R hat(e_i)

    def along(f: Polynomial, i: int) -> Polynomial:
        total = Polynomial({})
        for k, rate in enumerate(moved[i]):
            total = total + f.derivative(k) * rate
        return total

    def apply(f: Polynomial) -> Polynomial:
        total, first = Polynomial({}), [along(f, i) for i in range(3)]
        for i, j in itertools.product(range(3), repeat=2):
            total = total + first[j] * force[i] * mobility[j, i] + along(first[j], i) * (number(KT) * mobility[i, j])
        return total

    return apply


@functools.cache
@fifty
def derivatives(which: int, count: int) -> tuple[Any, ...]:
    """(f, L f, L^2 f, ...) at a start, `count` of them after the first."""
    problem = generic("linear", which, True)
    apply, x = generator(problem), Polynomial.variables(9, number(1))
    (q, _), _ = problem.kernel_data(number)
    return repeated(apply, observable((x[:3], x[3:6], x[6:]), None), [x for row in matrix(q) for x in row], count)


@of_the_step
@fifty
def weak_slope(method: Method, which: int = 0) -> float:
    """Order of the error of an expectation after one step, less one.

    The steps are very short because the coefficient of h^3 almost vanishes on one of the starts: the error changes
    its sign near h = 0.0015 there.
    """
    return slope_of_expectation(method, which, VERY_SHORT_STEPS, derivatives(which, 3), observable)


def check_overdamped_weak_order(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """The declared weak order is the measured one."""
    assert method.noise is not None
    return [f for i in starts for f in _fault("weak order", method.noise.weak_order, weak_slope(method, i), i)]


# --- invariant measure ------------------------------------------------------------------------------


def _seen_from_above(R: Any) -> Any:
    """A polynomial that does not change if the body is rotated about the vertical."""
    x, y, z = R[2]
    return 3 * z - x + 2 * x * y + z * z


def measure_defect(method: Method, h: Any, which: int) -> Any:
    """Integral of E f(step) - f over the attitudes with the weight exp(-U/kT), U = mgl R33.

    The coefficient of h^k in E f(step) is a polynomial of degree 2 k in the normal numbers and at most 2 + k in R. So
    the integral is exact up to h^3.
    """
    assert method.noise is not None
    given, total = Given(), number(0)
    step = method.noise.driven(number, given)
    memory, system, torque = at_start(method, IN_POTENTIAL, h, which)
    normal, m = list(degree_7(3 * method.noise.vectors)), (number(0),) * 3
    for q, share in attitudes(5):
        before = _seen_from_above(matrix(q))
        for xi, weight in normal:
            given.xi = xi
            (after, _, _), _ = step(h, number(0), (q, m, memory), system, torque)
            total = total + share * weight * (_seen_from_above(matrix(after)) - before)
    return total


@of_the_step
@fifty
def measure_slope(method: Method, which: int = 0) -> float:
    """Order of the error of the invariant measure in a potential, up to 2."""
    long, short = (abs(measure_defect(method, number(h), which)) for h in FINE_STEPS)
    return float(mpmath.log(long / short, 2)) - 1


@fifty
def dependence_on_attitude(method: Method, which: int = 0) -> Any:
    """How much the rotation of a step without torque depends on the attitude; then all attitudes stay equally likely.

    A rotation from the right that does not depend on R maps the uniform distribution to itself.
    """
    turns = []
    for q in (number(1), *(number(0),) * 3), generic("free", which).kernel_data(number)[0][0]:
        given = Given()
        setting = Driven(method, "free", which, given)
        given.xi = tuple(number(k + 2) / 7 for k in range(3 * (method.noise.vectors if method.noise else 0)))
        memory = setting.initial_state(number(LARGE_STEP))[2]
        turns.append(mul(conj(q), setting.step(LARGE_STEP, y=(q, setting.y[1], memory))[0]))
    return largest(abs(a - b) for a, b in zip(*turns, strict=True))


def check_overdamped_measure(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """The declared orders of the invariant measure, with a potential and without torque, are the measured ones."""
    assert method.noise is not None
    faults = []
    for which in starts:
        faults += _fault("invariant_measure", method.noise.invariant_measure, measure_slope(method, which), which)
        free = math.inf if dependence_on_attitude(method, which) <= EXACT else 0.0
        faults += _fault("invariant_measure_free", method.noise.invariant_measure_free, free, which)
    return faults
