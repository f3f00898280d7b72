"""Recognise Lagrange tops and compute the constants of their exact motion.

A uniform field has U = const + a . R b, that is the body torque (R^T a) x b; the body must be symmetric about b. The
field is identified by evaluating the user's function at five attitudes whose matrices have entries 0 and +-1, which
give the matrix N = a b^T without rounding, and verified at random attitudes, velocities and times.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ..errors import InputError
from ..kernels.so3 import conj, matrix, mul, unit
from ..methods.exact.lagrange_constants import Motion, motion
from ..numbers.multiprecision import mp, number
from ..symbolic.expression import COMPARISONS, ordered
from .fields import Field
from .problem import Problem

DOUBLE_DIGITS = 17
PROBES = 6
"""Random attitudes at which the identified field is verified."""

ROUNDING = 16 * 2.0**-52
"""Asymmetry of a body, and deviation of N from a b^T, that rounding of the data may cause."""

INSTEAD = "free bodies and symmetric tops in a uniform field have one; use ph.solve with another method"

CYCLE = (0.5, 0.5, 0.5, 0.5)
"""Maps the first axis to the second, the second to the third, the third to the first."""


def working_digits(digits: int | None) -> int:
    """Working digits for the constants of a motion: double roots lose half of them."""
    return 2 * (digits or DOUBLE_DIGITS) + 30


# --- the field --------------------------------------------------------------------------------------


def _torque(field: Field) -> Any:
    """The body torque at (t, q, omega), in the user's axes and the working precision."""
    kernel = field.torque_kernel(number, False)
    system = (None, (1, 1, 1), tuple(number(x) for x in field.parameters))
    return lambda t, q, omega: kernel(number(t), tuple(map(number, q)), tuple(map(number, omega)), system)


def _uniform(N: Any, q: Any) -> tuple[Any, ...]:
    """The body torque -rot(R^T N)."""
    R = matrix(q)
    M = [[sum(R[k][i] * N[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    return M[1][2] - M[2][1], M[2][0] - M[0][2], M[0][1] - M[1][0]


def _matrix(torque: Any) -> list[list[Any]]:
    """N from the torque at the identity, at 180 degrees about each axis and at 120 degrees about (1, 1, 1)."""
    still = (0, 0, 0)
    here = torque(0, (1, 0, 0, 0), still)
    N = [[number(0)] * 3 for _ in range(3)]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        half = [0, 0, 0, 0]
        half[1 + k] = 1
        there = torque(0, half, still)[i]
        N[j][k], N[k][j] = (here[i] - there) / 2, -(here[i] + there) / 2
    third = torque(0, CYCLE, still)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        N[k][k] = third[i] + N[i][j]
    return N


def _probes() -> Iterator[tuple[Any, Any, Any]]:
    scatter = random.Random(0)
    for _ in range(PROBES):
        q = unit(tuple(number(scatter.gauss(0, 1)) for _ in range(4)))
        yield 10 ** scatter.uniform(-2, 2), q, [scatter.gauss(0, 1) for _ in range(3)]


def _branches(field: Field) -> bool:
    branching = {*COMPARISONS, "where", "abs"}
    return any(node.op in branching for node in ordered(field.graph[0]))


def _largest(values: Any) -> Any:
    return max(abs(x) for row in values for x in row)


def linear_field(field: Field) -> list[list[Any]]:
    """The matrix N of a field with the torque -rot(R^T N); an error if the field has another form."""
    if _branches(field):
        raise InputError(f"{field!r} has branches, so there is no exact solution; {INSTEAD}")
    torque = _torque(field)
    tolerance = mp.mpf(10) ** (8 - mp.dps)
    try:
        N = _matrix(torque)
        misses = [
            max(abs(a - b) for a, b in zip(torque(t, q, omega), _uniform(N, q), strict=True))
            for t, q, omega in _probes()
        ]
        fits = max(misses) <= tolerance * _largest(N)
    except (ArithmeticError, ValueError, TypeError):
        fits = False
    if not fits:
        raise InputError(
            f"{field!r} is not linear in the attitude (U = const + a . R b, the same at all times and velocities), "
            f"so there is no exact solution; {INSTEAD}"
        )
    return N


def directions(field: Field, N: list[list[Any]]) -> tuple[list[Any], list[Any], Any]:
    """Vectors a (space) and b (body, largest component 1) with N = a b^T, and the relative deviation of N from it."""
    size, i, j = max((abs(N[i][j]), i, j) for i in range(3) for j in range(3))
    a, b = [N[k][j] for k in range(3)], [x / N[i][j] for x in N[i]]
    defect = _largest([[N[k][n] - a[k] * b[n] for n in range(3)] for k in range(3)]) / size
    if defect > ROUNDING:
        raise InputError(
            f"{field!r} is linear in the attitude, but not U = const + a . R b with one vector a in space and one "
            f"vector b in the body (it is off by {float(defect):.2g}), so there is no exact solution; {INSTEAD}"
        )
    return a, b, defect


# --- the body ---------------------------------------------------------------------------------------


def moments_about(problem: Problem, b: list[Any]) -> tuple[Any, Any, Any]:
    """Moments perpendicular and parallel to the line b, and the relative asymmetry of the body about it."""
    tensor = [[number(x) for x in row] for row in problem.body.inertia.tolist()]
    square = sum(x * x for x in b)
    along = sum(b[i] * tensor[i][j] * b[j] for i in range(3) for j in range(3)) / square
    across = (tensor[0][0] + tensor[1][1] + tensor[2][2] - along) / 2

    def symmetric(i: int, j: int) -> Any:
        return across * (i == j) + (along - across) * b[i] * b[j] / square

    defect = _largest([[tensor[i][j] - symmetric(i, j) for j in range(3)] for i in range(3)]) / _largest(tensor)
    if defect > ROUNDING:
        line = ", ".join(f"{float(x / mp.sqrt(square)):.6g}" for x in b)
        raise InputError(
            f"the body is not symmetric about the line ({line}) on which {problem.field!r} acts: its inertia differs "
            f"by {float(defect):.2g} from moments {float(across):.6g} perpendicular and {float(along):.6g} "
            "parallel to it, so "
            f"there is no exact solution; {INSTEAD}"
        )
    linear = problem.body.linear_axis is not None
    return across, along * (0 if linear else 1), defect


# --- the frames -------------------------------------------------------------------------------------


def _tidy(terms: list[Any]) -> Any:
    """The sum of the terms, set to exactly zero if they cancel to the last digits."""
    total, size = mp.fsum(terms), mp.fsum(abs(x) for x in terms)
    return total if abs(total) > mp.mpf(10) ** (6 - mp.dps) * size else 0 * total


def _product(q: Any, p: Any) -> tuple[Any, ...]:
    """The quaternion product q p with cancelling components set to zero, so that an upright body stays upright."""
    signs = ((1, -1, -1, -1), (1, 1, 1, -1), (1, -1, 1, 1), (1, 1, -1, 1))
    return tuple(_tidy([signs[i][j] * q[j] * p[i ^ j] for j in range(4)]) for i in range(4))


def _to_third(v: list[Any]) -> tuple[Any, ...]:
    """The rotation that maps v to the third axis; without rounding if v lies along a coordinate axis."""
    one, zero = number(1), number(0)
    size = mp.sqrt(sum(x * x for x in v))
    if v[0] == 0 and v[1] == 0:
        return (one, zero, zero, zero) if v[2] > 0 else (zero, one, zero, zero)
    for axis, turn in ((1, CYCLE), (0, mul(CYCLE, CYCLE))):
        if abs(v[axis]) == size and v[2] == 0 and v[1 - axis] == 0:
            cycle = tuple(number(x) for x in turn)
            return cycle if v[axis] > 0 else mul((zero, one, zero, zero), cycle)
    x, y, z = (component / size for component in v)
    return unit((1 + z, y, -x, zero)) if z > 0 else mul((zero, one, zero, zero), unit((1 - z, -y, x, zero)))


def _momentum(turn: Any, m: Any) -> tuple[Any, ...]:
    """R(turn) m, with cancelling components set to exactly zero."""
    product = _product(_product(turn, (number(0), *m)), conj(turn))
    return product[1:]


class Top:
    """A problem recognised as a Lagrange top, with its constants in the working precision of mp."""

    def __init__(self, problem: Problem, digits: int | None) -> None:
        assert problem.field is not None
        N = linear_field(problem.field)
        self.free = _largest(N) == 0
        if self.free:
            return
        a, b, bent = directions(problem.field, N)
        across, along, uneven = moments_about(problem, b)
        self._check_exact(problem, digits, max(bent, uneven))
        strength = mp.sqrt(sum(x * x for x in a)) * mp.sqrt(sum(x * x for x in b))
        space, body = _to_third(a), _to_third(b)
        q = unit(tuple(number(x) for x in problem.quaternion))
        q = _product(_product(space, q), conj(body))
        m = _momentum(body, tuple(number(x) for x in problem.momentum))
        if along == 0:
            m = (m[0], m[1], 0 * m[2])
        self.motion: Motion = motion(q, m, across, along, strength / across, digits or DOUBLE_DIGITS)
        self.space, self.body, self.problem = space, body, problem

    @staticmethod
    def _check_exact(problem: Problem, digits: int | None, defect: Any) -> None:
        if digits is not None and defect > mp.mpf(10) ** -(digits + 5):
            raise InputError(
                f"the body is symmetric about the line on which {problem.field!r} acts only to round-off "
                f"({float(defect):.1g}), so there is no exact solution to {digits} digits; leave out "
                "`digits`, or give moments that are exactly equal"
            )

    def digits_of_turns(self, times: Any) -> int:
        """Integer digits of the largest phase up to these times: the digits that the phases lose."""
        longest = max((abs(number(t) - number(self.problem.t0)) for t in times.tolist()), default=number(0))
        fastest = max(abs(rate) for rate in (self.motion.travel[1], *(turning[1] for turning in self.motion.turnings)))
        return int(mp.ceil(mp.log10(1 + fastest * longest)))

    def constants(self, kind: Any, principal_to_body: Any) -> Any:
        """The constants as numbers of one type, for the kernel `lagrange.moved`.

        `principal_to_body` is the quaternion from principal to body axes.
        """

        def pair(x: Any) -> tuple[Any, Any]:
            high = kind(x)
            return high, kind(x - number(high))

        def plain(x: Any) -> Any:
            return tuple(plain(y) for y in x) if isinstance(x, tuple) else kind(x)

        motion = self.motion
        left, right = conj(self.space), mul(self.body, principal_to_body) if principal_to_body else self.body
        return (
            kind(self.problem.t0),
            tuple(pair(x) for x in motion.travel),
            tuple(tuple(pair(x) for x in turning) for turning in motion.turnings),
            plain(motion.terms),
            plain(motion.numbers),
            (plain(left), plain(right)),
        )
