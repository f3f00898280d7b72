"""Implicit equations: the only loops whose end depends on numbers.

Both solvers stop at round-off of the number type they run in: when the last correction is below it,
when the corrections shrink so fast that the next one will be, or when they stop shrinking just above
it. A lane that has stopped is frozen, so its bits do not depend on its neighbours. They return the root
and a `miss`: zero after convergence, otherwise the relative size of the last correction.
"""

from collections.abc import Callable
from typing import Any

from .scalar import Number, Rows, Vec3, epsilon, kernel, settled, sqrt, where
from .so3 import add, along, apply, apply_transposed, dot, inverse3, norm, scale
from .unroll import Vectors, inner, moved

SWEEPS = 60
"""Corrections after which a step is given up; a healthy step takes two to five."""

STALL = 1024
"""Corrections this many epsilons small that no longer shrink are round-off, not divergence."""


@kernel
def finished(size: Number, before: Number, reach: Number) -> Any:
    """Has the iteration arrived, given its last two corrections and the size of the unknown.

    Superlinear convergence makes the next correction at most size^2/before.
    """
    eps = epsilon(size) * reach
    arrived = (size <= eps) | (size * size <= eps * before / 4)
    stalled = (2 * size >= before) & (size <= STALL * eps)
    return arrived | stalled


def newton(residual: Callable[..., Vec3], columns: Callable[..., tuple[Vec3, Vec3, Vec3]]) -> Callable[..., Any]:
    """Solver of residual(x, data, system, torque) = 0 for a vector x.

    Newton's method with the analytic Jacobian at the start (its columns; the torque's own derivative
    left out), improved after every sweep by Broyden's good update of the inverse H: with s the last
    correction and z = H f, the next one is -z |s|^2/(|s|^2 + s.z) and H loses z (s^T H)/(|s|^2 + s.z).
    """

    @kernel
    def root(x: Vec3, data: Any, system: Any, torque: Any) -> tuple[Vec3, Number]:
        a, b, c = columns(x, data, system)
        inverse: Rows = inverse3(a, b, c)
        step = scale(0, x)
        size, done = 0 * x[0], x[0] != x[0]
        for _ in range(SWEEPS):
            z = apply(inverse, residual(x, data, system, torque))
            s2 = dot(step, step)
            secant = s2 + dot(step, z)
            secant = where(secant > s2 / 8, secant, s2)
            weight = where(s2 > 0, 1 / where(s2 > 0, secant, 1 + s2), s2)
            row = scale(weight, apply_transposed(inverse, step))
            inverse = (
                along(inverse[0], -z[0], row),
                along(inverse[1], -z[1], row),
                along(inverse[2], -z[2], row),
            )
            move = where(done, 0 * s2, where(s2 > 0, -s2 * weight, s2 - 1))
            step = scale(move, z)
            x = add(x, step)
            before, size = size, norm(step)
            reach = norm(x)
            done = done | finished(size, before, reach)
            if settled(done):
                break
        return x, missed(done, size, norm(x))

    return root


@kernel
def missed(done: Any, size: Number, reach: Number) -> Number:
    """Zero if done, else the relative size of the last correction (positive, or NaN)."""
    return where(done, 0 * reach, size / where(reach > 0, reach, 1 + reach) + epsilon(size))


def accelerated(correction: Callable[..., Vectors], n: int) -> Callable[..., Any]:
    """Solver for n vectors at once, given correction(x, data, system, torque): a step towards the root.

    Each correction z is scaled by the secant rule of Broyden's method with a memory of one step s:
    z/(1 - s.z/|s|^2) (Kelley, Iterative Methods for Linear and Nonlinear Equations, 1995, section 7.3).
    """
    product, move = inner(n), moved(n)

    @kernel
    def root(x: Vectors, data: Any, system: Any, torque: Any) -> tuple[Vectors, Number]:
        step = move(x, -1, x)
        size, done = 0 * x[0][0], x[0][0] != x[0][0]
        for _ in range(SWEEPS):
            z = correction(x, data, system, torque)
            s2 = product(step, step)
            overlap = where(s2 > 0, product(step, z) / where(s2 > 0, s2, 1 + s2), 0 * s2)
            overlap = where(abs(overlap) < 1 / 2, overlap, 0 * overlap)
            step = move(z, where(done, 0 * s2, 1 / (1 - overlap)) - 1, z)
            x = move(x, 1, step)
            before, size = size, sqrt(product(step, step))
            reach = sqrt(product(x, x))
            done = done | finished(size, before, reach)
            if settled(done):
                break
        return x, missed(done, size, sqrt(product(x, x)))

    return root
