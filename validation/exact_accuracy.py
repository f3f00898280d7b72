"""Accuracy of `ph.exact`: errors of random and degenerate motions against many digits.

The data of a case (moments, momentum, quaternion, field) are doubles and count as exact. An error is the larger of
the momentum error, relative to the largest momentum of the motion, and the attitude error (spectral norm, to
first order), both at one time.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from polhode.kernels.so3 import Quat, mul, unit
from polhode.methods.families.jacobi import motion, state_after
from polhode.numbers.multiprecision import number
from polhode.physics.body import Body
from polhode.physics.fields import potential
from polhode.physics.problem import Problem
from polhode.run.exact import exact

EPS = 2.0**-52
DIGITS = 60
"""Digits for the free body: near the separatrix 1 - k^2 is as small as 1e-32 and needs 20 digits itself."""

ALLOWED = 100
"""The guaranteed bound of errors is ALLOWED EPS (1 + |omega| t), or ten times the effect of one ulp in the data."""


@potential
def uniform(R: Any, a: Any, b: Any) -> Any:
    """A uniform field: U = a . R b."""
    return sum(a[i] * R[i][j] * b[j] for i in range(3) for j in range(3))


class Case(NamedTuple):
    """A motion and a time."""

    kind: str
    problem: Problem
    t: float
    size: float
    """the largest momentum of the motion"""
    pace: float
    """rate of the rotation: |omega| at the start; for a body at rest from the field"""

    @property
    def unit(self) -> float:
        """EPS (1 + |omega| t) with the initial omega."""
        return EPS * (1 + float(np.linalg.norm(self.problem.omega)) * abs(self.t))


def gap(found: Any, true: Any, size: float) -> float:
    """The larger of the relative momentum error and the attitude error, for states (q, m)."""
    with mpmath.workdps(DIGITS):
        momentum = max(abs(a - b) for a, b in zip(found[1], true[1], strict=True)) / (size or 1)
        attitude = 2 * mpmath.sqrt(sum((a - b) ** 2 for a, b in zip(found[0], true[0], strict=True)))
        return float(max(momentum, attitude))


def error(case: Case, digits: int = 40) -> float:
    """The error of the double result, against the same kernels in this many digits."""
    found, true = exact(case.problem, case.t), exact(case.problem, case.t, digits=digits).mp
    assert true is not None
    return gap((found.quaternion[0], found.momentum[0]), (true.quaternion[0], true.momentum[0]), case.size)


# --- free bodies ------------------------------------------------------------------------------------


def some_moments(scatter: random.Random) -> tuple[float, ...]:
    """Moments of a body: generic, symmetric, spherical, flat, thin, and nearly symmetric or spherical."""
    kind = scatter.randrange(9)
    a, b = scatter.uniform(0.05, 1), scatter.uniform(0.05, 1)
    if kind < 3:
        moments = [a, b, scatter.uniform(abs(a - b), a + b)]
    elif kind == 3:
        moments = [a, a, scatter.uniform(0.01, 2) * a]
    elif kind == 4:
        moments = [a, a, a]
    elif kind == 5:
        moments = [a, b, a + b]
    elif kind == 6:
        thin = 10 ** scatter.uniform(-10, -1)
        moments = [thin, b, b + thin * scatter.random()]
    elif kind == 7:
        moments = [a, a * (1 + 10 ** scatter.uniform(-16, -2)), scatter.uniform(0.1, 1.9) * a]
    else:
        moments = [1.0, 1 + scatter.randrange(4) * EPS, 1 + scatter.randrange(6) * EPS]
    scatter.shuffle(moments)
    unit = 10 ** scatter.uniform(-3, 3)
    return tuple(x * unit for x in moments)


def some_momentum(scatter: random.Random, moments: Sequence[float]) -> tuple[float, ...]:
    """A momentum: generic, on and near an axis, in a principal plane, on and near the separatrix."""
    kind = scatter.randrange(7)
    m = [scatter.gauss(0, 1) for _ in range(3)]
    order = sorted(range(3), key=lambda i: moments[i])
    small, middle, large = (moments[i] for i in order)
    if kind == 0:  # near an axis
        j = scatter.randrange(3)
        m = [1.0 if i == j else scatter.choice([0, 1]) * x * 10 ** scatter.uniform(-17, -1) for i, x in enumerate(m)]
    elif kind == 1:
        m[scatter.randrange(3)] = 0.0
    elif kind in (2, 3) and small * (large - middle) > 0:  # on or near the separatrix
        slope = math.sqrt(large * (middle - small) / (small * (large - middle)))
        m[order[2]] = scatter.choice([-1, 1]) * slope * abs(m[order[0]])
        m[order[2]] *= 1 + scatter.choice([0, 0, 1, -1]) * 10 ** scatter.uniform(-17, -2)
        if scatter.random() < 0.3:
            m[order[1]] = 10 ** scatter.uniform(0, 9) * math.hypot(m[order[0]], m[order[2]])
    elif kind == 4:
        j = scatter.randrange(3)
        m = [scatter.choice([-1.0, 1.0]) if i == j else 0.0 for i in range(3)]
    unit = 10 ** scatter.uniform(-3, 3)
    return tuple(x * unit for x in m)


def free_case(scatter: random.Random) -> Case:
    """A free body that rotates by 10^-4 to 10^4 radians, forwards or backwards."""
    moments = some_moments(scatter)
    momentum = some_momentum(scatter, moments)
    speed = math.hypot(*(x / i for x, i in zip(momentum, moments, strict=True)))
    body = Body([1, 1, 1])
    body.moments = np.array(moments)  # unchanged: Body would make thin bodies linear
    body.inertia = np.diag(moments)
    t = scatter.choice([-1, 1]) * 10 ** scatter.uniform(-4, 4) / speed
    return Case("free", Problem(body, momentum=momentum), t, math.hypot(*momentum), speed)


def precise(moments: Sequence[float], momentum: Sequence[float], h: float) -> Any:
    """The rotation since the start and the body momentum of a free body, in many digits."""
    with mpmath.workdps(DIGITS):
        return state_after(number(h), motion(tuple(map(number, momentum)), tuple(map(number, moments))))


def effect_of_one_ulp(moments: Sequence[float], momentum: Sequence[float], h: float, true: Any, size: float) -> float:
    """Largest change of a free body's state if one datum changes by one ulp."""
    effects = []
    for i, sign in itertools.product(range(3), (-1, 1)):
        m, inertia = list(momentum), list(moments)
        m[i] = math.nextafter(m[i], sign * math.inf) if m[i] else 0.0
        inertia[i] = math.nextafter(inertia[i], sign * math.inf)
        effects += [gap(precise(moments, m, h), true, size), gap(precise(inertia, momentum, h), true, size)]
    return max(effects)


# --- tops -------------------------------------------------------------------------------------------

TOPS = (
    "generic", "upright", "next to upright", "critical", "hanging", "next to hanging", "from rest", "pendulum",
    "spherical pendulum", "regular precession", "separatrix", "fast", "weak field",
)  # fmt: skip


def _tilted(kind: str, scatter: random.Random) -> tuple[complex, complex]:
    """The start as alpha = q0 + i q3 and beta = q2 - i q1, the vertical and the body's axis third."""
    far = 10 ** scatter.uniform(-17, -1)
    a, b = {
        "upright": (1.0, 0.0),
        "next to upright": (math.cos(far), math.sin(far)),
        "critical": scatter.choice([(1.0, 0.0), (math.cos(far), math.sin(far))]),
        "hanging": (0.0, 1.0),
        "next to hanging": (math.sin(far), math.cos(far)),
    }.get(kind) or _pair(math.acos(scatter.uniform(-1, 1)) / 2)
    if kind in ("upright", "hanging") and scatter.random() < 0.5:
        return complex(a), complex(b)
    one, two = (scatter.uniform(-math.pi, math.pi) for _ in range(2))
    return a * complex(*_pair(one)), b * complex(*_pair(two))


def _pair(angle: float) -> tuple[float, float]:
    return math.cos(angle), math.sin(angle)


def _off(scatter: random.Random) -> float:
    """1, or a number close to it."""
    return 1 + scatter.choice([0, 0, 1, -1]) * 10 ** scatter.uniform(-17, -2)


def _turning(kind: str, scatter: random.Random, g: float, a: complex, b: complex) -> tuple[complex, float]:
    """The velocity as w = omega_2 - i omega_1 and s = omega_3 of a body with three moments 1 in the field g R33."""
    x, y = 2 * abs(b) ** 2, 2 * abs(a) ** 2
    root = math.sqrt(g)
    w = complex(scatter.gauss(0, 1), scatter.gauss(0, 1)) * root * 10 ** scatter.uniform(-1, 1)
    s = scatter.choice([-1, 1]) * root * 10 ** scatter.uniform(-1.5, 1.5)
    side = (a.conjugate() * b) / abs(a * b) if a * b else 1  # the w that lifts the axis
    small = scatter.choice([0, 1]) * 10 ** scatter.uniform(-17, -1)
    if kind in ("upright", "from rest"):
        return 0j, s * scatter.choice([0, 1])
    if kind in ("next to upright", "hanging", "next to hanging"):
        return w * small, s
    if kind == "critical":
        return 0j, 2 * root * _off(scatter)
    if kind == "pendulum":
        fall = scatter.choice([g * 10 ** scatter.uniform(-1, 1), 2 * g * x * _off(scatter)])
        return math.sqrt(fall) * side * scatter.choice([-1, 1]), 0.0
    if kind == "spherical pendulum":
        circle = 1j * side * math.sqrt(2 * g * x * y / (x - y)) if x > y else w
        return scatter.choice([w, circle]), 0.0
    if kind == "regular precession" and x * y > 0:
        rate = scatter.choice([-1, 1]) * root * 10 ** scatter.uniform(-1, 1)
        return 1j * side * rate * math.sqrt(x * y) * _off(scatter), rate * (y - x) / 2 + g / rate
    if kind == "separatrix" and x * y > 0:
        s = scatter.uniform(-1, 1) * math.sqrt(2 * g * y)
        lean = s * x
        fall = scatter.choice([-1, 1]) * math.sqrt(max(2 * g * x * x * y - lean * lean, 0.0))
        return complex(fall, lean) / 2 / (a * b.conjugate()) * _off(scatter), s
    return w, s * (10 ** scatter.uniform(1, 4) if kind == "fast" else 1)


def _largest_momentum(g: float, a: complex, b: complex, w: complex, s: float) -> float:
    """The largest |omega| of the motion, at the lowest root of u'^2."""
    u = abs(a) ** 2 - abs(b) ** 2
    p = s * u + 2 * (w * a * b.conjugate()).imag
    e = (s * s + abs(w) ** 2) / 2 + g * u
    roots = np.roots([2 * g, -2 * e, 2 * p * s - 2 * g, 2 * e - p * p - s * s])
    lowest = min(u, max(-1.0, float(roots.real.min())))
    return math.sqrt(s * s + abs(w) ** 2 + 2 * g * (u - lowest))


def top_case(scatter: random.Random, kind: str) -> Case:
    """A Lagrange top that rotates by 10^-4 to 10^4 radians, its axis and the vertical along any coordinate axes."""
    g = 10 ** scatter.uniform(-1, 1)
    a, b = _tilted(kind, scatter)
    w, s = _turning(kind, scatter, g, a, b)
    g *= 10 ** scatter.uniform(-30, -3) if kind == "weak field" else 1
    mass, hurry = 10 ** scatter.uniform(-3, 3), 10 ** scatter.uniform(-3, 3)
    along = scatter.choice([scatter.uniform(0.01, 2), scatter.uniform(0.01, 2), 1.0, 2.0]) * mass
    axis, vertical, sign = scatter.randrange(3), scatter.randrange(3), scatter.choice([-1, 1])

    def third_to(k: int, v: Sequence[float]) -> list[float]:
        return [v[(i - k + 2) % 3] for i in range(3)]

    q: Quat = (a.real, *third_to(axis, (-b.imag, b.real, a.imag)))  # type: ignore[assignment]
    for _ in range((vertical - axis) % 3):
        q = mul((0.5, 0.5, 0.5, 0.5), q)
    force = third_to(vertical, (0.0, 0.0, sign * mass * g * hurry**2))
    body = Body(third_to(axis, (mass, mass, along)))
    momentum = third_to(axis, [mass * hurry * x for x in (-w.imag, w.real, s)])
    field = uniform(force, third_to(axis, (0.0, 0.0, float(sign))))
    problem = Problem(body, field, attitude=unit(q), momentum=momentum)
    pace = math.sqrt(float(np.dot(problem.omega, problem.omega)) + g * hurry**2)
    t = scatter.choice([-1, 1]) * 10 ** scatter.uniform(-4, 4) / pace
    return Case(kind, problem, t, mass * hurry * _largest_momentum(g, a, b, w, s), pace)
