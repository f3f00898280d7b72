"""The equation of Moser and Veselov, M = W - W^T with W = X J and X a rotation, solved by formulas for 3 x 3 matrices.

A. Zanna's slides (2002), with the signs and transposes corrected (docs/schemes.md); J. R. Cardoso and F. Silva Leite,
The Moser-Veselov equation (2003). M = hat(v), v = h y; J = diag(d) with I_1 = d_2 + d_3 and so on; the step is
R_1 = R_0 X, y_1 = X^T y_0. `mv_explicit` is her algorithm: the squares of the eigenvalues of the Hamiltonian matrix
[[M/2, 1], [M^2/4 + J^2, M/2]] are the roots of a cubic, its eigenvectors with Re > 0 are orthogonalised, and
X = (M/2 + Q21 Q11^-1) J^-1. `mv_explicit_free` needs neither eigenvectors nor 1/J. Both end with two steps of Newton's
method for the Cayley vector of X, which remove its round-off.
"""

from __future__ import annotations

from typing import Any

from ...kernels.quartic import small_root
from ...kernels.so3 import (
    add,
    along,
    apply_transposed,
    cay,
    cross,
    dot,
    extent,
    inverse3,
    mul,
    scale,
    solve3,
    sub,
    times,
    unrotate,
)
from ...numbers.dispatch import kernel
from ...numbers.primitives import acos, cos, epsilon, exp, log, sqrt, where
from ...numbers.types import Number, Rows, Vec3
from ..mechanics import basis, columns
from ..registry import method
from .dmv import QUARTIC, pairs, scaled, series, symmetric_functions
from .rattle import equation, equation_columns, equation_data, half_traces, short_step

Half = tuple[Vec3, Vec3]
"""A vector of six numbers."""


# --- the cubic --------------------------------------------------------------------------------------


@kernel
def cube_root(x: Number) -> Number:
    """Real cube root, by the logarithm and one Newton step to full precision."""
    size = abs(x)
    cube = where(size > 0, size, 1 + size)
    root = exp(log(cube) / 3)
    root = root - (root - cube / (root * root)) / 3
    return where(size > 0, where(x < 0, -root, root), 0 * x)


@kernel
def cubic_roots(a: Number, b: Number, c: Number) -> tuple[Number, Number, Number]:
    """Roots of t^3 - a t^2 + b t - c: the real one farthest from the other two, then the mean and product of these.

    Viete's cosines are used for three real roots, Cardano's formula for one. A Newton step gives a root that is small
    compared with the others its full relative precision; the product c/t does so for the smaller of the others.
    """
    third = a / 3
    p = third * third - b / 3
    q = third * (third * third - b / 2) + c / 2
    inside = q * q - p * p * p
    real = inside <= 0
    s = sqrt(where(p > 0, p, 0 * p))
    cube = where(real & (s > 0), s * s * s, 1 + 0 * s)
    ratio = q / cube
    ratio = where(real, where(ratio > 1, 1 + 0 * ratio, where(ratio < -1, -1 + 0 * ratio, ratio)), 0 * ratio)
    angle = acos(abs(ratio)) / 3
    spread = where(q < 0, -2, 2) * s * cos(angle)
    big = cube_root(q + where(q < 0, -1, 1) * sqrt(where(real, 0 * inside, inside)))
    cardano = big + p / where(big * big > 0, big, 1 + 0 * big)
    t = where(real, spread, cardano) + third
    slope = t * (3 * t - 2 * a) + b
    t = t - (t * (t * (t - a) + b) - c) / where(slope * slope > 0, slope, 1 + 0 * slope)
    return t, (a - t) / 2, c / where(t * t > 0, t, 1 + 0 * t)


# --- the eigenvectors -------------------------------------------------------------------------------


@kernel
def _column(n: Vec3, w: Vec3, axis: Vec3) -> Vec3:
    """Column of the adjugate of diag(n) + hat(w): adj(n) a + w (w.a) - (n w) x a."""
    return sub(along(times(pairs(n), axis), dot(w, axis), w), cross(times(n, w), axis))


@kernel
def _null_pair(m: Number, v: Number, M: Vec3, J2: Vec3, axis: Vec3) -> Half:
    """Real and imaginary part of a column of the adjugate of J^2 + l M - l^2, l = m + i v, in real numbers."""
    shift, turn = m * m - v * v, 2 * m * v
    n, k = (J2[0] - shift, J2[1] - shift, J2[2] - shift), (-turn, -turn, -turn)
    a, b = scale(m, M), scale(v, M)
    real = sub(_column(n, a, axis), _column(k, b, axis))
    both = _column(add(n, k), add(a, b), axis)
    return real, sub(sub(both, _column(n, a, axis)), _column(k, b, axis))


@kernel
def _null(m: Number, v: Number, M: Vec3, J2: Vec3) -> Half:
    """Null vector of J^2 + l M - l^2: the longest column of the adjugate, chosen as in pivoting."""
    e1, e2, e3 = basis(m)
    a, b, c = _null_pair(m, v, M, J2, e1), _null_pair(m, v, M, J2, e2), _null_pair(m, v, M, J2, e3)
    one, two, three = _length2(a), _length2(b), _length2(c)
    best = _chosen(two > one, b, a)
    return _chosen((three > one) & (three > two), c, best)


@kernel
def _chosen(condition: Any, yes: Half, no: Half) -> Half:
    (a, b, c), (d, e, f) = yes
    (g, h, i), (j, k, m) = no
    first = (where(condition, a, g), where(condition, b, h), where(condition, c, i))
    return first, (where(condition, d, j), where(condition, e, k), where(condition, f, m))


@kernel
def _length2(a: Half) -> Number:
    return dot(a[0], a[0]) + dot(a[1], a[1])


@kernel
def _without(a: Half, b: Half) -> Half:
    """Component of a orthogonal to the unit vector b."""
    s = -(dot(a[0], b[0]) + dot(a[1], b[1]))
    return along(a[0], s, b[0]), along(a[1], s, b[1])


@kernel
def _unit(a: Half) -> Half:
    size = sqrt(_length2(a))
    s = where(size > 0, 1 / where(size > 0, size, 1 + size), 0 * size)
    return scale(s, a[0]), scale(s, a[1])


@kernel
def _with_dependent(u: Vec3, value: Number, rest: Vec3, M: Vec3) -> Half:
    """Eigenvector of the Hamiltonian matrix, with u above (value) u + rest - M u/2."""
    return _unit((u, along(along(rest, value, u), -0.5, cross(M, u))))


@kernel
def eigenspace(M: Vec3, d: Vec3) -> tuple[Half, Half, Half, Any]:
    """Return an orthogonal basis of the eigenspace with Re > 0, and whether its dimension is three.

    For a complex pair l = m +- i v the basis has the real and the imaginary part of the eigenvector.
    """
    J2, squares = times(d, d), times(M, M)
    big = dot(J2, (1, 1, 1)) - dot(squares, (1, 1, 1))
    two = pairs(J2)
    mean, middle, product = cubic_roots(big, two[0] + two[1] + two[2] - dot(squares, J2), J2[0] * two[0])
    gap = middle * middle - product
    pair = gap < 0
    half = sqrt(abs(gap))
    high = middle + half
    low = where(high * high > 0, product / where(high * high > 0, high, 1 + 0 * high), middle - half)
    exists = (mean > 0) & (pair | ((high > 0) & (low > 0)))
    # for a complex pair of squares, middle +- i half: Re l = m, Im l = v
    m = where(pair, sqrt(abs(sqrt(abs(product)) + middle) / 2), sqrt(abs(high)))
    v = where(pair, half / 2 / where(m > 0, m, 1 + m), 0 * m)
    lone = sqrt(abs(mean))
    zero = scale(0, M)
    first = _null(lone, zero[0], M, J2)[0]
    u, w = _null(m, v, M, J2)
    third = sqrt(abs(low))
    other = _null(third, zero[0], M, J2)[0]
    a = _with_dependent(first, lone, zero, M)
    b = _with_dependent(u, m, scale(-v, w), M)
    c = _chosen(pair, _with_dependent(w, m, scale(v, u), M), _with_dependent(other, third, zero, M))
    b = _unit(_without(b, a))
    return a, b, _unit(_without(_without(c, a), b)), exists


# --- the steps --------------------------------------------------------------------------------------


@kernel
def _cayley_vector(X: Rows) -> Vec3:
    """Vector e of a rotation X, the Cayley map of 2 e."""
    a, b, c = X
    s = 1 / (1 + (a[0] + b[1] + c[2]))
    return scale(s, (c[1] - b[2], a[2] - c[0], b[0] - a[1]))


@kernel
def _corrected(e: Vec3, data: Any, system: Any, torque: Any) -> tuple[Vec3, Number]:
    """Make one Newton step for the Cayley vector; return the vector and the size of the step."""
    a, b, c = equation_columns(e, data, system)
    change = solve3(a, b, c, equation(e, data, system, torque))
    return sub(e, change), extent(change)


@kernel
def _rotated_state(h: Number, X: Rows, y: Any, system: Any, torque: Any, residual: Number) -> Any:
    """Return R_1 = R_0 X, y_1 = X^T y_0 for an approximate X, and the residual; start from `short_step` if X is bad.

    X may lose all its digits for nearly linear bodies and at double roots of the cubic. Two Newton steps for its Cayley
    vector restore them if X has a quarter of them; if the second step is not below half the digits, X is not the
    solution.
    """
    q, m = y
    data = equation_data(h, m, system)
    sound = _is_rotation(X)
    found, short = _cayley_vector(X), short_step(h, m, system)
    e = (where(sound, found[0], short[0]), where(sound, found[1], short[1]), where(sound, found[2], short[2]))
    e, _ = _corrected(e, data, system, torque)
    e, size = _corrected(e, data, system, torque)
    turn = cay(scale(2, e))
    solved = size * size <= epsilon(size)
    return (mul(q, turn), unrotate(turn, m)), where(solved, residual, 1 + 0 * size)


@kernel
def _squared_up(X: Rows, d: Vec3) -> Rows:
    """Replace the column of X with the smallest d, by which it was divided, by the vector product of the others."""
    a, b, c = columns(X)
    one, two = (d[0] <= d[1]) & (d[0] <= d[2]), (d[1] < d[0]) & (d[1] <= d[2])
    a, b = _chosen(one, (cross(b, c), b), (a, b))
    b, c = _chosen(two, (cross(c, a), c), (b, c))
    last = cross(a, b)
    c, _ = _chosen(one | two, (c, c), (last, last))
    return columns((a, b, c))


@kernel
def _is_rotation(X: Rows) -> Any:
    """Whether X^T X = 1 to a quarter of the digits."""
    x, y, z = columns(X)
    off = abs(dot(x, x) - 1) + abs(dot(y, y) - 1) + abs(dot(z, z) - 1) + abs(dot(x, y)) + abs(dot(y, z))
    return off + abs(dot(z, x)) < sqrt(sqrt(epsilon(off)))


@method(
    order=2, order_free=2, symmetric=True, symplectic=True, poisson=True, solves=0, torque_evals=0,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="free",
    cite="zanna2002", where="the numerical algorithm", linear_bodies=False, flat_bodies=False,
)  # fmt: skip
@kernel
def mv_explicit(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""Moser-Veselov by the eigenvectors of a 6 x 6 matrix, in real arithmetic and without iteration (Zanna).

    With $M = h\,\widehat{\Pi_0}$, $v = h\,\Pi_0$ and $J = \mathrm{diag}(d_1, d_2, d_3)$, $I_1 = d_2 + d_3$ and so on,
    the rotation $X$ with $X J - J X^{\mathsf T} = M$ is

    $$\begin{aligned}
    X &= \bigl(\tfrac{1}{2} M + Q_{21} Q_{11}^{-1}\bigr) J^{-1}, & R_1 &= R_0 X, \qquad \Pi_1 = X^{\mathsf T} \Pi_0
    \end{aligned}$$

    where the columns of $Q_{11}$ above $Q_{21}$ are an orthogonal basis of the eigenspace with
    $\operatorname{Re} \lambda > 0$ of

    $$\begin{pmatrix} \tfrac{1}{2} M & 1 \\ \tfrac{1}{4} M^2 + J^2 & \tfrac{1}{2} M \end{pmatrix}$$

    Its eigenvalues are those with $(J^2 + \lambda M - \lambda^2)\,u = 0$; their squares $s = \lambda^2$ are the roots
    of

    $$s^3 - \bigl(\operatorname{tr} J^2 - |v|^2\bigr)\,s^2
    + \bigl(d_1^2 d_2^2 + d_2^2 d_3^2 + d_3^2 d_1^2 - |J v|^2\bigr)\,s - \det J^2 = 0$$

    and the eigenvector of $\lambda$ is $u$ above $\lambda u - \tfrac{1}{2} M u$.
    """
    trace = system[0][0] + system[0][1] + system[0][2]
    d, M = scale(1 / trace, half_traces(system[0])), scale(h / trace, y[1])
    a, b, c, exists = eigenspace(M, d)
    over = inverse3(a[0], b[0], c[0])
    lower = columns((a[1], b[1], c[1]))
    x, z, w = M
    rows = (
        add(apply_transposed(over, lower[0]), (0, -w / 2, z / 2)),
        add(apply_transposed(over, lower[1]), (w / 2, 0, -x / 2)),
        add(apply_transposed(over, lower[2]), (-z / 2, x / 2, 0)),
    )
    inverse = (1 / d[0], 1 / d[1], 1 / d[2])
    X = (times(rows[0], inverse), times(rows[1], inverse), times(rows[2], inverse))
    return _rotated_state(h, _squared_up(X, d), y, system, torque, where(exists, 0 * x, 1 + 0 * x))


LINEAR_SYSTEM = (
    r"""Moser-Veselov as a linear system for the rotation, without eigenvectors.

With $M = h\,\widehat{\Pi_0}$, $v = h\,\Pi_0$ and $J = \mathrm{diag}(d_1, d_2, d_3)$, $I_1 = d_2 + d_3$ and so on,
the rotation $X$ with $X J - J X^{\mathsf T} = M$ is found from

$$\begin{aligned}
(M^2 + J^2 - \sigma_1 M + \sigma_2)\,X &= \operatorname{adj} J + \sigma_1 J - M J, \\
\sigma_1 = \operatorname{tr} J - \kappa, \qquad
\sigma_2 &= \tfrac{1}{2}\bigl(\sigma_1^2 - \operatorname{tr} J^2 + |v|^2\bigr), \\
R_1 = R_0 X, \qquad \Pi_1 &= X^{\mathsf T} \Pi_0
\end{aligned}$$

$W = X J$ has $W W^{\mathsf T} = J^2$, hence $W^2 = M W + J^2$, and the Cayley-Hamilton theorem gives the rest.
The number $\kappa$ is the small root of the quartic of the discrete Moser-Veselov method,

"""
    + QUARTIC
)


@method(
    order=2, order_free=2, symmetric=True, symplectic=True, poisson=True, solves=1, torque_evals=0,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="free",
    cite="moser1991", where="W^3 - s1 W^2 + s2 W = det J", linear_bodies=False, doc=LINEAR_SYSTEM,
)  # fmt: skip
@kernel
def mv_explicit_free(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Moser-Veselov as a linear system for the rotation."""
    _, g, v, x, c = scaled(h, y[1], system)
    e = symmetric_functions(g, pairs(g))
    guess = series(x, c, e)
    kappa, _, residual = small_root(guess[0], guess[1], x, c, e)
    trace = system[0][0] + system[0][1] + system[0][2]
    J = scale(1 / trace, half_traces(system[0]))
    s1 = J[0] + J[1] + J[2] - kappa
    s2 = (s1 * s1 - dot(J, J) + c) / 2
    adjugate = add(pairs(J), scale(s1, J))
    # columns of M^2 + J^2 - s1 M + s2, where M^2 = v v^T - c
    a, b, d = scale(s1, v)
    n = s2 - c
    left = inverse3(
        (v[0] * v[0] + (J[0] * J[0] + n), v[1] * v[0] - d, v[2] * v[0] + b),
        (v[0] * v[1] + d, v[1] * v[1] + (J[1] * J[1] + n), v[2] * v[1] - a),
        (v[0] * v[2] - b, v[1] * v[2] + a, v[2] * v[2] + (J[2] * J[2] + n)),
    )
    right = (
        (adjugate[0], J[1] * v[2], -J[2] * v[1]),
        (-J[0] * v[2], adjugate[1], J[2] * v[0]),
        (J[0] * v[1], -J[1] * v[0], adjugate[2]),
    )
    X = (apply_transposed(right, left[0]), apply_transposed(right, left[1]), apply_transposed(right, left[2]))
    return _rotated_state(h, X, y, system, torque, residual)
