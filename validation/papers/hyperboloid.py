"""Energy preservation as drawn in Buss's talk, by a quadric through the polhode, for comparison with `ep`.

The polhode of rho = omega/sqrt(2 E) satisfies sum J_i rho_i^2 = 1 and sum J_i^2 rho_i^2 = |L|^2/2E. Its tangent is
k_i/rho_i with k_i = J_j J_k (J_j - J_k), up to a factor. So the surfaces perpendicular to all polhodes are
prod |rho_i|^(k_i) = const, which are not quadrics. The quadric tangent to such a surface at a given point,

    sum a_i x_i^2 = c,      a_i = k_i rho_j^2 rho_k^2,      c = (k_1 + k_2 + k_3) rho_1^2 rho_2^2 rho_3^2,

depends on the point. With the two ellipsoids it gives three linear equations for the squares of the new rho.
"""

from __future__ import annotations

from typing import Any

from polhode.kernels.so3 import dot, solve3, times
from polhode.numbers.primitives import sqrt

CYCLE = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


def weights(J: Any) -> Any:
    """The k_i = J_j J_k (J_j - J_k)."""
    return tuple(J[j] * J[k] * (J[j] - J[k]) for _, j, k in CYCLE)


def quadric(rho: Any, J: Any) -> tuple[Any, Any]:
    """The coefficients a and c of the quadric through rho."""
    k = weights(J)
    x = tuple(r * r for r in rho)
    return tuple(k[i] * x[j] * x[n] for i, j, n in CYCLE), sum(k) * x[0] * x[1] * x[2]


def projected(m: Any, J: Any, energy: Any) -> Any:
    """The body momentum m moved along the quadric to the polhode of this energy; length and signs are preserved.

    The quadric is that at the rho of m. On a principal axis the equations are singular.
    """
    root = sqrt(2 * energy)
    a, c = quadric(tuple(x / i / root for x, i in zip(m, J, strict=True)), J)
    one = c * 0 + 1
    first, second, third = ((J[i], J[i] * J[i], a[i]) for i in range(3))
    squares = solve3(first, second, third, (one, dot(m, m) / (2 * energy), c))
    signs = tuple(1 if x >= 0 else -1 for x in m)
    return times(J, tuple(s * sqrt(x) * root for s, x in zip(signs, squares, strict=True)))
