"""The named groups: rotations in any dimension, SU(2), SE(3), SL(2, R), Heisenberg.

The closed forms of the exponential hold for every number type.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels import so3
from ..numbers.primitives import cosh, sinh, sqrt
from .group import Group, Matrix

# --- rotations and motions of space -----------------------------------------------------------------


def _rows(rows: Any, like: Matrix) -> Matrix:
    return np.array(rows, dtype=like.dtype)


def _orthogonality(y: Matrix) -> Matrix:
    return y.T @ y - np.eye(len(y), dtype=int)


def _proper(y: Matrix) -> np.ndarray:
    """Quantities that vanish on SO(N); the last one detects reflections."""
    sign = np.linalg.slogdet(y.astype(float))[0]
    return np.append(_orthogonality(y).ravel(), 0 if sign > 0 else 2)


def _orthogonal(y: Matrix) -> Matrix:
    """Make one Newton step towards orthogonality: y - y (y^T y - 1)/2."""
    return y - y @ _orthogonality(y) / 2


def _turn(A: Matrix) -> tuple[tuple[Any, ...], Matrix]:
    """Return the vector of a skew 3 x 3 matrix, and its rotation."""
    a = A.tolist()
    v = (a[2][1], a[0][2], a[1][0])
    return v, _rows(so3.matrix(so3.exp(v)), A)


def _so3_exp(A: Matrix) -> Matrix:
    return _turn(A)[1]


def _skew_basis(n: int) -> list[list[list[int]]]:
    """E_ji - E_ij for i < j; for n = 3 hat(e_1), hat(e_2), hat(e_3)."""
    pairs = [(1, 2), (2, 0), (0, 1)] if n == 3 else list(itertools.combinations(range(n), 2))
    return [[[((r, c) == (j, i)) - ((r, c) == (i, j)) for c in range(n)] for r in range(n)] for i, j in pairs]


def _se3_exp(A: Matrix) -> Matrix:
    """Exponential with the rotation exp(w) and the translation dexp_w v."""
    w, R = _turn(A[:3, :3])
    y = np.eye(4, dtype=A.dtype) + 0 * A
    y[:3, :3], y[:3, 3] = R, so3.dexp(w, tuple(A[:3, 3].tolist()))
    return y


def _se3_defect(y: Matrix) -> np.ndarray:
    return np.append(_proper(y[:3, :3]), y[3] - np.array([0, 0, 0, 1]))


def _se3_tidied(y: Matrix) -> Matrix:
    y = y.copy()
    y[:3, :3] = _orthogonal(y[:3, :3])
    return y


def _se3_basis() -> list[np.ndarray]:
    turns = [np.pad(np.array(b), ((0, 1), (0, 1))) for b in _skew_basis(3)]
    shifts = [np.eye(4, dtype=int)[:, [i]] * np.eye(4, dtype=int)[3] for i in range(3)]
    return [*turns, *shifts]


# --- SU(2), SL(2, R), Heisenberg --------------------------------------------------------------------


def _of_quaternion(q: Any, like: Matrix) -> Matrix:
    """Matrix w - i (x s1 + y s2 + z s3) with the Pauli matrices s; products correspond to those of quaternions."""
    w, x, y, z = q
    return _rows([[w - 1j * z, -y - 1j * x], [y - 1j * x, w + 1j * z]], like)


def _quaternion(y: Matrix) -> tuple[Any, ...]:
    (a, _), (b, _) = y.tolist()
    return (a.real, -b.imag, b.real, -a.imag)


def _su2_exp(A: Matrix) -> Matrix:
    _, x, y, z = _quaternion(A)
    return _of_quaternion(so3.exp((2 * x, 2 * y, 2 * z)), A)


def _su2_defect(y: Matrix) -> Matrix:
    """The second column must follow from the first, and |q| = 1."""
    q = _quaternion(y)
    return np.append((y - _of_quaternion(q, y)).ravel(), so3.norm2(q) - 1)


def _su2_tidied(y: Matrix) -> Matrix:
    return _of_quaternion(so3.nearly_unit(_quaternion(y)), y)


def _determinant(y: Matrix) -> Any:
    return y[0, 0] * y[1, 1] - y[0, 1] * y[1, 0]


def _sl2_defect(y: Matrix) -> Any:
    return _determinant(y) - 1


def _sl2_tidied(y: Matrix) -> Matrix:
    return y * (1 - _sl2_defect(y) / 2)


def _sl2_exp(A: Matrix) -> Matrix:
    """cosh(r) + sinh(r)/r A with r^2 = -det A; circular functions if r^2 < 0."""
    square = (A[0, 0] - A[1, 1]) ** 2 / 4 + A[0, 1] * A[1, 0]
    if square > 0:
        r = sqrt(square)
        c, s = cosh(r), sinh(r) / r
    else:
        s, c = so3.sinc_cos(-square)
    return c * np.eye(2, dtype=int) + s * A


def _heisenberg_defect(y: Matrix) -> Matrix:
    return np.tril(y) - np.eye(3, dtype=int)


def _unipotent(A: Matrix) -> Matrix:
    """1 + A + A^2/2, because A^3 = 0."""
    return np.eye(3, dtype=int) + A + A @ A / 2


SO3 = Group("SO(3)", _skew_basis(3), exp=_so3_exp, defect=_proper, tidied=_orthogonal)
"""Rotations in three dimensions; the coordinates of a velocity are the angular velocity."""

SU2 = Group(
    "SU(2)", [[[0, -0.5j], [-0.5j, 0]], [[0, -0.5], [0.5, 0]], [[-0.5j, 0], [0, 0.5j]]],
    exp=_su2_exp, defect=_su2_defect, tidied=_su2_tidied,
)  # fmt: skip
"""Unit quaternions as w - i (x s1 + y s2 + z s3); the coordinates of a velocity are the angular velocity."""

SE3 = Group("SE(3)", _se3_basis(), exp=_se3_exp, defect=_se3_defect, tidied=_se3_tidied)
"""Rigid motions [[R, x], [0, 1]]; the coordinates of a velocity are angular velocity, then linear velocity."""

SL2 = Group(
    "SL(2,R)", [[[1, 0], [0, -1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]],
    exp=_sl2_exp, defect=_sl2_defect, tidied=_sl2_tidied,
)  # fmt: skip
"""Real 2 x 2 matrices of determinant 1; coordinates (a, b, c) of a velocity [[a, b], [c, -a]]."""


HEISENBERG = Group(
    "Heisenberg", [[[0, a, c], [0, 0, b], [0, 0, 0]] for a, b, c in ((1, 0, 0), (0, 1, 0), (0, 0, 1))],
    exp=_unipotent, defect=_heisenberg_defect,
)  # fmt: skip
"""Upper triangular 3 x 3 matrices with unit diagonal; coordinates (a, b, c) of a velocity: entries 12, 23, 13."""


LARGEST_GROUP = 100
"""Largest n of SO(n): its basis has n^3 (n - 1)/2 entries."""


def SO(n: int) -> Group:
    """Rotations in n dimensions; the coordinates of a velocity belong to the planes 12, 13, ... (for n = 3: `SO3`)."""
    if isinstance(n, bool) or not isinstance(n, int) or not 2 <= n <= LARGEST_GROUP:
        raise InputError(f"SO(n) takes a whole number from 2 to {LARGEST_GROUP}; got {n!r}")
    return _rotations(n)


@functools.cache
def _rotations(n: int) -> Group:
    return SO3 if n == 3 else Group(f"SO({n})", _skew_basis(n), defect=_proper, tidied=_orthogonal)


NAMED = {"so3": SO3, "su2": SU2, "se3": SE3, "sl2": SL2, "heisenberg": HEISENBERG}


def group_named(group: Any) -> Group:
    """Return a group, given itself or its name: ``"SO(3)"``, ``"so5"``, ``"SL(2,R)"``, ..."""
    if isinstance(group, Group):
        return group
    key = "".join(c for c in str(group).lower() if c.isalnum()).removesuffix("r")
    if isinstance(group, str) and key in NAMED:
        return NAMED[key]
    if isinstance(group, str) and key.startswith("so") and key[2:].isdigit():
        return SO(int(key[2:]))
    raise InputError(f"a group is a lie.Group or one of SO(n), SU(2), SE(3), SL(2,R), Heisenberg; got {group!r}")
