"""P. Krysl (2006 and 2004), section 2 of both: the algorithms on vector spaces, p' = f(u, t), u' = M^-1 p.

The formulas are as printed, the steps are those of `polhode.vector`; both in 50 digits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import mpmath

from polhode.analysis.checks import DIGITS, generic
from polhode.analysis.reference import flow
from polhode.kernels import so3
from polhode.methods import methods as rotations
from polhode.numbers.multiprecision import number
from polhode.run.integrator import torque_kernel
from polhode.vector import methods
from polhode.vector.tuples import Space

from .curves import listed
from .identities import apart
from .results import Outcome, Verdict, Watch, misprint, not_zero, passed, result, zero

N = 3
H, T0 = mpmath.mpf(1) / 8, mpmath.mpf(3) / 10
STEPS = (2**-8, 2**-9)
INVERSE_MASSES = tuple(mpmath.mpf(1) / m for m in (2, 3, 5))
START = (tuple(mpmath.mpf(k) / 16 for k in (6, -8, 12)), tuple(mpmath.mpf(k) / 16 for k in (10, 4, -14)))
SYSTEM = (tuple(tuple(x if i == j else 0 * x for j in range(N)) for i, x in enumerate(INVERSE_MASSES)),)

Vector = tuple[Any, ...]
State = tuple[Vector, Vector]

HOW = (
    "Three particles on a line with masses 2, 3, 5 and the pair force (1 + t/3)(x^3 - sin x); one "
    "step of 1/8 in 50 digits, formulas as printed beside the steps of the library. A defect below 1e-22 counts as "
    "zero. Orders are from steps of 2^-8 and 2^-9 against a Taylor solution."
)


def force(t: Any, u: Vector, p: Any = None, system: Any = None) -> Vector:
    """Force of all pairs; it has a potential, and its sum is zero."""
    total = [0 * t] * N
    for i, j in itertools.combinations(range(N), 2):
        x = u[i] - u[j]
        pull = (1 + t / 3) * (x**3 - mpmath.sin(x))
        total[i], total[j] = total[i] - pull, total[j] + pull
    return tuple(total)


def along(a: Vector, s: Any, b: Vector) -> Vector:
    """A + s b."""
    return tuple(x + s * y for x, y in zip(a, b, strict=True))


def velocity(p: Vector) -> Vector:
    """M^-1 p."""
    return tuple(w * x for w, x in zip(INVERSE_MASSES, p, strict=True))


def step(name: str, h: Any = H, t: Any = T0, y: State = START) -> State:
    """One step of the library's method."""
    new, residual = methods[name].build(Space(number, N, False))(h, t, y, SYSTEM, force)
    assert residual == 0
    return new


def gap(a: tuple[Vector, ...], b: tuple[Vector, ...]) -> Any:
    """Largest difference of two states, or of parts of them."""
    return max(abs(x - y) for one, other in zip(a, b, strict=True) for x, y in zip(one, other, strict=True))


def _missed(rule: Callable[[State, State], State], end: State) -> Any:
    """Residual of an implicit rule for a start and an end state."""
    return gap(rule(START, end), end)


def trapezoid(start: State, end: State) -> State:
    """Equation (4)."""
    (u, p), (u1, p1) = start, end
    forces = along(force(T0, u), 1, force(T0 + H, u1))
    return along(u, H / 2, velocity(along(p, 1, p1))), along(p, H / 2, forces)


def midpoint(factor: Any) -> Callable[[State, State], State]:
    """Equation (5) with dt times a factor before M^-1 p; the midpoint is the result of backward Euler over dt/2."""

    def rule(start: State, end: State) -> State:
        u, p = start
        middle, momentum = step("backward_euler", H / 2)
        return along(u, factor * H, velocity(momentum)), along(p, H, force(T0 + H / 2, middle))

    return rule


def newmark(start: State) -> State:
    """Explicit Newmark, beta = 0, gamma = 1/2: u1 = u + h v + h^2/2 a, v1 = v + h/2 (a + a1)."""
    u, p = start
    f = force(T0, u)
    u1 = along(along(u, H, velocity(p)), H * H / 2, velocity(f))
    return u1, along(p, H / 2, along(f, 1, force(T0 + H, u1)))


def composed(first: str, second: str, h: Any = H) -> State:
    """A step of h/2 with the first method, then one with the second."""
    return step(second, h / 2, T0 + h / 2, step(first, h / 2))


def undone(name: str, adjoint: str) -> Any:
    """Distance from the start after a step and a step back with the supposed adjoint."""
    return gap(step(adjoint, -H, T0 + H, step(name)), START)


def symplectic_defect(name: str) -> Any:
    """Largest entry of J^T Omega J - Omega, J by central differences with an error of their step squared, 1e-32."""
    d = mpmath.mpf(10) ** -16
    flat = (*START[0], *START[1])
    columns = []
    for i in range(2 * N):
        ends = []
        for sign in (1, -1):
            y = [x + sign * d * (j == i) for j, x in enumerate(flat)]
            u, p = step(name, y=(tuple(y[:N]), tuple(y[N:])))
            ends.append((*u, *p))
        columns.append([(a - b) / (2 * d) for a, b in zip(*ends, strict=True)])
    return max(
        abs(sum(a[k] * b[k + N] - a[k + N] * b[k] for k in range(N)) - (j == i + N) + (i == j + N))
        for (i, a), (j, b) in itertools.product(enumerate(columns), repeat=2)
    )


def momentum_change(name: str) -> Any:
    """Change of the sum of all momenta in a step."""
    return abs(sum(step(name)[1]) - sum(START[1]))


@functools.cache
def _exact(h: float) -> State:
    """The state after h to 20 digits, which is enough for errors of 1e-8."""
    with mpmath.workdps(20):
        flow = mpmath.odefun(lambda t, y: [*velocity(y[N:]), *force(t, y[:N])], T0, [*START[0], *START[1]])
        end = flow(T0 + h)
        return tuple(end[:N]), tuple(end[N:])


def order(name: str) -> float:
    """Slope of the local error, minus one."""
    errors = [gap(step(name, number(h)), _exact(h)) for h in STEPS]
    return float(mpmath.log(errors[0] / errors[1], 2)) - 1


def conjugacy_defect() -> Any:
    """Difference of (half a forward Euler step, then midpoint) and (trapezoid, then half a forward Euler step)."""
    ahead = step("midpoint", H, T0 + H / 2, step("forward_euler", H / 2))
    return gap(ahead, step("forward_euler", H / 2, T0 + H, step("trapezoid")))


def rate_of_momentum(kind: str) -> tuple[Any, Any]:
    """Defects of Pi = Pi x omega + T, as scanned, and of Pi' = Pi x omega + T; Pi' by central differences."""
    with mpmath.workdps(DIGITS):
        problem, d = generic(kind), mpmath.mpf(10) ** -13
        (q, m), system = problem.kernel_data(number)
        torque = torque_kernel(problem, number, rotations["fe"])(number(problem.t0), q, m, system)
        right = so3.add(so3.cross(m, so3.times(system[1], m)), torque)
        rate = so3.scale(1 / (2 * d), so3.sub(flow(problem, d)[1], flow(problem, -d)[1]))
        return so3.norm(so3.sub(m, right)), so3.norm(so3.sub(rate, right))


@result("krysl2006-section2", cite="krysl2006", where="sections 1, 2", title="algorithms on vector spaces")
def implicit(watch: Watch) -> Outcome:
    """Trapezoid and midpoint as compositions of Euler steps, and their conjugacy."""
    watch("vector spaces in 50 digits")
    with mpmath.workdps(DIGITS):
        half = mpmath.mpf(1) / 2
        ends = composed("forward_euler", "backward_euler"), composed("backward_euler", "forward_euler")
        orders = {name: order(name) for name in ("trapezoid", "midpoint")}
        rates = rate_of_momentum("attitude")
        verdicts = [
            zero("(4)", "forward, then backward Euler over dt/2 is the trapezoidal rule (4)",
                 {"(4)": _missed(trapezoid, ends[0]), "the library's": gap(step("trapezoid"), ends[0])}),
            misprint(
                "(5)", "backward, then forward Euler over dt/2 is the midpoint rule u1 = u + (dt/2) M^-1 p_mid",
                {"composition less (5)": _missed(midpoint(half), ends[1])},
                "with u1 = u + dt M^-1 p_mid", {"composition less (5)": _missed(midpoint(1), ends[1])},
            ),
            Verdict(
                "(4), (5)", "the trapezoidal and the midpoint rule are of second order", listed(list(orders.items())),
                passed(all(abs(x - 2) < 0.1 for x in orders.values())),
            ),
            zero("section 1", "the midpoint and the trapezoidal rule are dynamically equivalent (conjugate)",
                 {"by half a step of forward Euler": conjugacy_defect()}),
            not_zero(
                "(6)", "from the rates and from the integrals follow different algorithms for rotations",
                {"(11) and (18)": apart("FE", "FEM", "attitude"), "(12) and (19)": apart("BE", "BEM", "attitude")},
            ),
            misprint(
                "(7)", "Pi = -skew[I^-1 Pi] Pi + T (the scan has lost the dot of the left side)",
                {"defect": rates[0]}, "with the rate of Pi", {"defect": rates[1]},
            ),
        ]  # fmt: skip
    return Outcome(HOW, [], [], verdicts)


@result("krysl2005-section2", cite="krysl2005", where="section 2", title="algorithms on vector spaces")
def explicit(watch: Watch) -> Outcome:
    """Symplectic Euler, its adjoint, and Verlet, from the midpoint rule with concentrated impulses."""
    watch("vector spaces in 50 digits")
    names = ("symplectic_euler", "symplectic_euler_adjoint", "verlet")
    with mpmath.workdps(DIGITS):
        u, p = START
        orders = {name: order(name) for name in names}
        first = gap((step(names[0])[0],), (along(u, H, velocity(along(p, H, force(T0, u)))),))
        last = gap((step(names[1])[0],), (along(u, H, velocity(p)),))
        verdicts = [
            zero("section 2", "u1 = u + dt M^-1 p_mid with the impulse at the start is symplectic Euler, with the "
                 "impulse at the end its adjoint", {"at the start": first, "at the end": last}),
            zero("section 2", "Phi* is the adjoint of Phi", {"Phi* back after Phi": undone(*names[:2])}),
            zero("section 2", "both, and their composition, are symplectic", {n: symplectic_defect(n) for n in names}),
            zero("section 2", "both, and their composition, conserve momentum", {n: momentum_change(n) for n in names}),
            Verdict(
                "section 2", "both are of first order, their composition is of second", listed(list(orders.items())),
                passed(all(abs(orders[n] - due) < 0.1 for n, due in zip(names, (1, 1, 2), strict=True))),
            ),
            zero("section 2", "Phi* after Phi, over half steps, is Verlet, the explicit Newmark with gamma = 1/2",
                 {"Newmark": gap(composed(*names[:2]), newmark(START)),
                  "the library's": gap(composed(*names[:2]), step("verlet"))}),
        ]  # fmt: skip
    return Outcome(HOW, [], [], verdicts)
