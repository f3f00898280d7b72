"""Solvers of implicit equations: the only loops whose length depends on the numbers.

The solvers stop at the round-off of the number type they run in: when the last correction is below it,
when the corrections shrink so fast that the next one will be (not `broyden`, whose corrections shrink
unevenly), or when they stop shrinking just above it. If torques balance, the unknown may be far smaller than the
terms of its equation; its corrections then stop shrinking at the round-off of those terms (`judged`). A lane that has
stopped is frozen, so its bits do not depend on its neighbours. The solvers return the root and a `residual`: zero
after convergence, otherwise the relative size of the last correction.

For numbers that carry tangents only the values are iterated. Tangents carried through the iteration are not the
derivative of the root: they lag behind the values, and secant updates divide by corrections that vanish. The
tangents of the root follow from the equation it solves, f(x, p) = 0: f_x dx = -f_p dp.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..numbers.dispatch import kernel, solver
from ..numbers.primitives import (
    all_lanes,
    epsilon,
    finite,
    max_tangent_ratio,
    relative_tangents,
    seed_tangents,
    sqrt,
    stop_gradient,
    tangent,
    tangents_squared,
    where,
)
from ..numbers.types import Number, Rows, Vec3
from .so3 import add, along, apply, apply_transposed, dot, extent, inverse3, scale, solve3, sub
from .unroll import Vectors, inner, shifted_vectors, unrolled_kernel

SWEEPS = 200
"""Corrections after which a step fails; a normal step takes two to five, in 50 digits up to a hundred."""

STALL = 1024
"""Corrections below this many epsilons that no longer shrink are round-off, not divergence."""


@kernel
def arrived(size: Number, before: Number, reach: Number) -> Any:
    """Whether the last correction is round-off: below it, or just above it and no longer shrinking."""
    eps = epsilon(size) * reach
    return (size <= eps) | ((2 * size >= before) & (size <= STALL * eps))


@kernel
def finished(size: Number, before: Number, reach: Number) -> Any:
    """Whether the iteration has converged, given its last two corrections and the size of the unknown.

    True also if the next correction will be round-off: size^2/before if convergence continues at its rate,
    and 1/256 of the last one if it becomes slower (the torque's derivative is not known).
    """
    eps = epsilon(size) * reach
    soon = (size * size <= eps * before) & (size <= 256 * eps)
    return soon | arrived(size, before, reach)


MANY_SWEEPS = 12
"""The result is checked after more than this many secant updates."""

PATIENCE = 4
"""After this many corrections in a row, none below half the smallest one before, convergence has stopped."""


@kernel
def unstarted(size: Number) -> tuple[Number, Number, Number]:
    """Initial track of `judged`: last correction, smallest correction, corrections since that was last halved."""
    return 0 * size, 0 * size - 1, 0 * size


@kernel
def waited(size: Number, least: Number, since: Number) -> tuple[Number, Number]:
    """Return the smallest correction so far, and the number of corrections since it was last halved."""
    gains = (least < 0) | (2 * size < least)
    return where(gains, size, least), where(gains, 0 * since, since + 1)


@kernel
def judged(size: Number, track: Any, reach: Number, around: Number) -> tuple[Any, Any]:
    """Return whether the iteration has converged, and the track for the next correction.

    `reach` is the size of the unknown, `around` the size of an unknown that turns the body by about one radian in the
    step. Round-off of the attitude, epsilon, causes an error of epsilon times the stiffness in the torque. This moves
    the unknown by epsilon times `around` if the step resolves the torque (h^2 stiffness is at most the inertia).
    Corrections below that, which have stopped shrinking, are the round-off of terms that cancel.
    """
    before, least, since = track
    least, since = waited(size, least, since)
    stuck = (since >= PATIENCE) & (size <= STALL * epsilon(size) * around)
    return finished(size, before, reach) | stuck, (size, least, since)


@dataclasses.dataclass(frozen=True)
class Algebra:
    """Kernels for vectors of one length and square matrices of that size, given by rows."""

    dot: Callable[..., Number]
    scale: Callable[..., Any]
    along: Callable[..., Any]
    apply: Callable[..., Any]
    apply_transposed: Callable[..., Any]
    lowered: Callable[..., Any]
    """lowered(m, z, row) = m - z row, the matrix minus a column times a row"""


@kernel
def _lowered3(m: Rows, z: Vec3, row: Vec3) -> Rows:
    return (along(m[0], -z[0], row), along(m[1], -z[1], row), along(m[2], -z[2], row))


TRIPLES = Algebra(dot, scale, along, apply, apply_transposed, _lowered3)
"""Vectors in space."""


def secant(space: Algebra) -> Callable[..., Any]:
    """Kernel: Broyden's good update of an inverse Jacobian H.

    With s the last correction and z = H f, the next one is -z |s|^2/(|s|^2 + s.z), and z (s^T H)/(|s|^2 + s.z) is
    subtracted from H. Returns H and the factor of z; before the first correction (s = 0), and if |s|^2 is outside the
    range of the number type, H is unchanged and the factor is -1.
    """
    dot, scale, apply_transposed, lowered = space.dot, space.scale, space.apply_transposed, space.lowered

    @kernel
    def update(inverse: Any, step: Any, z: Any) -> Any:
        s2 = dot(step, step)
        slope = s2 + dot(step, z)
        slope = where(slope > s2 / 8, slope, s2)
        weight = 1 / where(s2 > 0, slope, 1 + s2)
        sound = (s2 > 0) & finite(s2) & finite(weight)
        row = scale(where(sound, weight, 0 * step[0]), apply_transposed(inverse, step))
        return lowered(inverse, z, row), where(sound, -s2 * weight, 0 * step[0] - 1)

    return update


def _following(function: Callable[..., Vec3]) -> Callable[..., Vec3]:
    """Kernel: give the plain root x the tangents for which the residual's tangents are zero, by its exact Jacobian."""

    @kernel
    def follow(x: Vec3, data: Any, system: Any, torque: Any) -> Vec3:
        r = function(seed_tangents(x), stop_gradient(data), stop_gradient(system), torque)
        a = (tangent(r[0], 0), tangent(r[1], 0), tangent(r[2], 0))
        b = (tangent(r[0], 1), tangent(r[1], 1), tangent(r[2], 1))
        c = (tangent(r[0], 2), tangent(r[1], 2), tangent(r[2], 2))
        f = solve3(a, b, c, function(x, data, system, torque))
        return sub(x, sub(f, stop_gradient(f)))

    return follow


@kernel
def radian(data: Any, system: Any) -> Number:
    """Size of a rotation of about one radian, for unknowns that are rotations."""
    return 1 + 0 * data[0]


@kernel
def radian_per_step(data: Any, system: Any) -> Number:
    """Size of a momentum that turns the body by about one radian in the step h = data[0]."""
    inertia = system[0]
    return (inertia[0] + inertia[1] + inertia[2]) / abs(data[0])


def _correction(function: Callable[..., Vec3], columns: Callable[..., Any]) -> Callable[..., Vec3]:
    """Kernel: the correction of Newton's method, to be subtracted."""

    @kernel
    def correction(x: Vec3, data: Any, system: Any, torque: Any) -> Vec3:
        a, b, c = columns(x, data, system)
        return solve3(a, b, c, function(x, data, system, torque))

    return correction


def _exact_newton(
    correction: Callable[..., Vec3], function: Callable[..., Vec3], columns: Callable[..., Any],
    around: Callable[..., Number],
) -> Callable[..., Any]:  # fmt: skip
    """Kernel: Newton's method with the exact Jacobian."""

    @kernel
    def root(x: Vec3, data: Any, system: Any, torque: Any) -> tuple[Vec3, Number]:
        size, done = 0 * x[0], x[0] != x[0]
        track, large = unstarted(size), around(data, system)
        for _ in range(SWEEPS):
            step = scale(where(done, 0 * size, -1 + 0 * size), correction(x, data, system, torque))
            x = add(x, step)
            size = extent(step)
            now, track = judged(size, track, extent(x), large)
            done = done | now
            if all_lanes(done):
                break
        return x, final_residual(done, size, extent(x))

    return root


def _secant_newton(
    correction: Callable[..., Vec3], function: Callable[..., Vec3], columns: Callable[..., Any],
    around: Callable[..., Number],
) -> Callable[..., Any]:  # fmt: skip
    """Kernel: Newton's method with the Jacobian at the initial guess and secant updates.

    After many updates the inverse Jacobian may be so wrong that corrections vanish although the residual does not;
    then a correction by the analytic Jacobian decides.
    """
    update = secant(TRIPLES)

    @kernel
    def root(x: Vec3, data: Any, system: Any, torque: Any) -> tuple[Vec3, Number]:
        a, b, c = columns(x, data, system)
        inverse: Rows = inverse3(a, b, c)
        step = scale(0, x)
        size, done = 0 * x[0], x[0] != x[0]
        track, large = unstarted(size), around(data, system)
        sweeps = 0
        for _ in range(SWEEPS):
            z = apply(inverse, function(x, data, system, torque))
            inverse, move = update(inverse, step, z)
            step = scale(where(done, 0 * move, move), z)
            x = add(x, step)
            size = extent(step)
            now, track = judged(size, track, extent(x), large)
            done = done | now
            sweeps += 1
            if all_lanes(done):
                break
        if sweeps > MANY_SWEEPS:
            left, eps = extent(correction(x, data, system, torque)), epsilon(size)
            done = done & (left <= sqrt(eps) * extent(x) + STALL * eps * large)
        return x, final_residual(done, size, extent(x))

    return root


def newton(
    function: Callable[..., Vec3],
    columns: Callable[..., tuple[Vec3, Vec3, Vec3]],
    around: Callable[..., Number] = radian_per_step,
    exact: bool = False,
) -> Callable[..., Any]:
    """Return a solver of function(x, data, system, torque) = 0 for a vector x.

    Newton's method with the analytic Jacobian, given by its columns. If they are the full Jacobian (`exact`) they
    are computed in every sweep. Otherwise they leave out the derivative of the torque; they are computed once at the
    start and improved after every sweep by the secant update. The unknown is a momentum and data[0] the step, unless
    another kernel around(data, system) gives the size that `judged` needs.
    """
    root = (_exact_newton if exact else _secant_newton)(_correction(function, columns), function, columns, around)
    follow = _following(function)

    @kernel
    def followed(x: Vec3, data: Any, system: Any, torque: Any) -> tuple[Vec3, Number]:
        x, residual = root(stop_gradient(x), stop_gradient(data), stop_gradient(system), torque)
        return follow(x, data, system, torque), residual

    def equation(find: Callable[..., Any], x: Vec3, data: Any, system: Any, torque: Any) -> Any:
        return find(function, x, data, system, torque, around=around(data, system))

    return solver(root, followed, equation)


def broyden(function: Callable[..., Any], space: Algebra) -> Callable[..., Any]:
    """Return a solver of function(x, data, system, force) = 0 in any dimension, for an unknown Jacobian.

    The secant updates start from the Jacobian 1 (`unit`, given by its rows) and solve a linear equation in at
    most 2n sweeps (Gay, SIAM J. Numer. Anal. 16 (1979) 623-630). Corrections need not shrink evenly, so
    only their size ends the iteration. `around` is the size of the terms whose sum is x.
    """
    update = secant(space)
    dot, scale, along, apply = space.dot, space.scale, space.along, space.apply

    @kernel
    def root(x: Any, unit: Any, around: Number, data: Any, system: Any, force: Any) -> tuple[Any, Number]:
        inverse, step = unit, scale(0, x)
        size, done = 0 * x[0], x[0] != x[0]
        reach = around
        for _ in range(SWEEPS):
            z = apply(inverse, function(x, data, system, force))
            inverse, move = update(inverse, step, z)
            step = scale(where(done, 0 * move, move), z)
            x = along(x, 1, step)
            before, size = size, sqrt(dot(step, step))
            reach = around + sqrt(dot(x, x))
            done = done | arrived(size, before, reach)
            if all_lanes(done):
                break
        return x, final_residual(done, size, reach)

    return root


@kernel
def final_residual(done: Any, size: Number, reach: Number) -> Number:
    """Return zero if done, else the relative size of the last correction (positive, or NaN)."""
    return where(done, 0 * reach, size / where(reach > 0, reach, 1 + reach) + epsilon(size))


def accelerated(correction: Callable[..., Vectors], n: int, attitude: Callable[..., Any]) -> Callable[..., Any]:
    """Return a solver for n vectors, given correction(x, data, system, torque): a step towards the root.

    The unknowns are rotations, or of that size; attitude(data) is the quaternion at the start of the step.

    Each correction z is scaled by the secant rule of Broyden's method with a memory of one step s:
    z/(1 - s.z/|s|^2) = z + z (s.z)/(|s|^2 - s.z)
    (Kelley, Iterative Methods for Linear and Nonlinear Equations, 1995, section 7.3).
    """
    product, move = inner(n), shifted_vectors(n)

    @kernel
    def root(x: Vectors, data: Any, system: Any, torque: Any) -> tuple[Vectors, Number]:
        one = 0 * x[0][0] + 1  # of the number type, so that `move` is compiled once
        step = move(x, -one, x)
        size, done = 0 * x[0][0], x[0][0] != x[0][0]
        track, large = unstarted(size), radian(data, system)
        for _ in range(SWEEPS):
            z = correction(x, data, system, torque)
            s2, overlap = product(step, step), product(step, z)
            helps = 2 * abs(overlap) < s2
            step = move(z, where(done, -1, where(helps, overlap, 0) / where(helps, s2 - overlap, 1)), z)
            x = move(x, one, step)
            size = sqrt(product(step, step))
            now, track = judged(size, track, sqrt(product(x, x)), large)
            done = done | now
            if all_lanes(done):
                break
        return x, final_residual(done, size, sqrt(product(x, x)))

    tangents_of = _tangents_of(n)

    @kernel
    def followed(x: Vectors, data: Any, system: Any, torque: Any) -> tuple[Vectors, Number]:
        """Find the tangents by the same corrections, repeated until they are round-off in all directions.

        The round-off of tangents is relative to the tangents of x, and to |x| times the relative tangents of the data
        and the system: these cancel if x does not vary. If torques balance, it is relative to the attitude's tangents,
        as in `judged`.
        """
        x, residual = root(stop_gradient(x), stop_gradient(data), stop_gradient(system), torque)
        one = 0 * system[1][0] + 1
        floor = product(x, x) * (relative_tangents(data) + relative_tangents(system))
        frame = relative_tangents(attitude(data)) + relative_tangents(system)
        x = move(x, one - 1, x)
        gap, before = 1 + 0 * residual, 1 + 0 * residual
        wide, least, since, done = gap, gap, 0 * gap, gap != gap
        for _ in range(SWEEPS):
            z = correction(x, data, system, torque)
            x = move(x, where(done, 0 * one, one), move(z, -one, stop_gradient(z)))
            change, whole = tangents_of(z), tangents_of(x) + floor
            before, gap = gap, where(done, gap, sqrt(max_tangent_ratio(change, whole)))
            wide = where(done, wide, sqrt(max_tangent_ratio(change, whole + frame)))
            least, since = waited(gap, least, since)
            done = done | arrived(gap, before, one) | ((since >= PATIENCE) & (wide <= STALL * epsilon(wide)))
            if all_lanes(done):
                break
        return x, residual + where(wide <= STALL * epsilon(wide), 0 * gap, gap)

    def equation(find: Callable[..., Any], x: Vectors, data: Any, system: Any, torque: Any) -> Any:
        return find(correction, x, data, system, torque, around=radian(data, system))

    return solver(root, followed, equation)


def _tangents_of(n: int) -> Callable[[Vectors], Number]:
    """Kernel: the sums of the squares of the tangents of n vectors, direction by direction."""
    terms = [f"squared(x[{j}][{i}])" for j in range(n) for i in range(3)]
    return unrolled_kernel("x", " + ".join(terms), squared=tangents_squared)
