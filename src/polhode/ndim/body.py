"""The body in N dimensions and the conserved quantities of its free motion.

Energy T = tr(M^T Omega)/4 = sum over i < j of m_ij^2 / (2 (J_i + J_j)), spatial momentum X M X^T, and
Manakov's integrals, the coefficients c_ab of

    det(nu - s M - J^2) = sum over a, b of c_ab nu^a s^b,   b = 0, 2, 4, ...,   a = 0 ... N - b.

The c_ab with a = N - b are the coefficients of det(nu - s M), the Casimirs; with nu = l^2, s = l the polynomial
becomes Moser and Veselov's det(l^2 - l M - J^2). Expanded over the even sets S of axes it is

    sum over S of Pf(M_S)^2 s^|S| product over i not in S of (nu - J_i^2),

where all terms of one c_ab have the same sign: there is cancellation only inside the Pfaffians.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import InputError

WORDS = ("energy", "momentum_norm", "spatial_momentum", "casimirs", "quadratic", "integrals", "polynomial")
"""Quantities that a method may conserve, and the keys of `Motion.invariants`: T; |M|, so tr M^2; X M X^T; the Casimirs;
the c_ab with b = 2, quadratic in M; all c_ab; the coefficients of det(l^2 - l M - J^2)."""

LARGEST = 14
"""Largest N for which the integrals are computed: there are 2^(N-1) Pfaffians."""

SKEWNESS, ORTHOGONALITY = 1e-12, 1e-10
"""Tolerances for skew (relative to the largest entry) and for orthogonal matrices."""


class Body:
    """A body given by its diagonal mass tensor J: J_i is the integral of x_i^2 dm.

    In three dimensions the moments of inertia are (J2 + J3, J1 + J3, J1 + J2). The J_i are not negative, and at most
    one is zero: a body with mass in fewer than N - 1 directions has velocities without momentum.
    """

    def __init__(self, J: Any) -> None:
        """Take the diagonal of J, or J as a diagonal matrix."""
        given = _array("J", J.J if isinstance(J, Body) else J)
        if given.ndim == 2 and given.shape[0] == given.shape[1]:
            if (given - np.diag(np.diag(given))).any():
                raise InputError("J must be diagonal; transform to the principal axes first (numpy.linalg.eigh)")
            given = np.diag(given)
        if given.ndim != 1 or given.size < 2:
            raise InputError(f"J must be a sequence of N >= 2 numbers, or a diagonal matrix; got shape {given.shape}")
        if (given < 0).any():
            raise InputError(f"the entries of J are integrals of x^2 dm and cannot be negative; got {given.tolist()}")
        if np.count_nonzero(given == 0) > 1:
            raise InputError(
                f"at most one entry of J may be zero, otherwise M does not determine Omega; got {given.tolist()}"
            )
        self.J: np.ndarray = given.copy()
        self.n = given.size
        self.sums = given[:, None] + given[None, :]
        self.rates = 1 / (self.sums + np.diag(given == 0.0))
        self.J.setflags(write=False)
        self.plain: Body = self
        self.number: Callable[[Any], Any] = float
        self.bits = 53

    def in_digits(self) -> Body:
        """Return the body with mpmath numbers of the working precision; its `plain` is the body with doubles."""
        from ..numbers.multiprecision import mp, number

        body = copy.copy(self)
        body.number, body.bits = number, mp.prec
        body.J = precise(self.J)
        body.sums = body.J[:, None] + body.J[None, :]
        body.rates = 1 / (body.sums + np.diag(self.J == 0.0).astype(int))
        return body

    def __repr__(self) -> str:
        return f"<Body in {self.n} dimensions, J = {self.J.tolist()}>"

    def momentum(self, omega: Any) -> np.ndarray:
        """M = J Omega + Omega J."""
        return np.asarray(omega) * self.sums

    def omega(self, M: Any) -> np.ndarray:
        """Omega of M = J Omega + Omega J, entry by entry: m_ij / (J_i + J_j)."""
        return np.asarray(M) * self.rates

    def energy(self, M: Any) -> np.ndarray:
        """Kinetic energy tr(M^T Omega)/4; M may have leading axes."""
        M = np.asarray(M)
        return (M * M * self.rates).sum(axis=(-2, -1)) / 4

    def integrals(self, M: Any) -> np.ndarray:
        """Return the c_ab (..., count) with b = 2, 4, ... and for each b from a = N - b down to 0."""
        return np.concatenate(self._by_degree(M), axis=-1)

    def casimirs(self, M: Any) -> np.ndarray:
        """Coefficients of det(nu - M): one for each b = 2, 4, ..."""
        return np.stack([part[..., 0] for part in self._by_degree(M)], axis=-1)

    def quadratic(self, M: Any) -> np.ndarray:
        """Return the c_ab with b = 2; the energy is a combination of them."""
        M = np.asarray(M)
        squares = np.stack([M[..., i, j] ** 2 for i, j in combinations(range(self.n), 2)], axis=-1)
        return np.asarray(squares @ self._weights(2))

    def polynomial(self, M: Any) -> np.ndarray:
        """Coefficients of det(l^2 - l M - J^2), the highest power first: l^(2N), l^(2N-1), ..., 1."""
        return self._polynomial(self._by_degree(M))

    def _weights(self, b: int) -> np.ndarray:
        """For each set of b axes, coefficients of the product over the other axes, in the number type of this body."""
        return _weights(tuple(self.J), b, self.bits)

    def _polynomial(self, parts: list[np.ndarray]) -> np.ndarray:
        n = self.n
        whole = np.zeros((*parts[0].shape[:-1], 2 * n + 1), dtype=parts[0].dtype)
        whole[..., ::2] = self._weights(0)[0]
        for b, part in zip(range(2, n + 1, 2), parts, strict=True):
            for k in range(n - b + 1):  # nu^(n-b-k) s^b is l^(2n-b-2k)
                whole[..., b + 2 * k] += part[..., k]
        return whole

    def _by_degree(self, M: Any) -> list[np.ndarray]:
        if self.n > LARGEST:
            raise InputError(
                f"Manakov's integrals are computed for N up to {LARGEST} (they are sums over 2^(N-1) Pfaffians); "
                f"this body has N = {self.n}: use energy, spatial momentum and |M|"
            )
        pfaffian = pfaffians(np.asarray(M))
        found = []
        for b in range(2, self.n + 1, 2):
            squares = np.stack([pfaffian[axes] ** 2 for axes in combinations(range(self.n), b)], axis=-1)
            found.append(squares @ self._weights(b))
        return found

    def invariants(self, M: np.ndarray, X: np.ndarray) -> dict[str, np.ndarray]:
        """Return all quantities of `WORDS` (no Manakov integrals above N = 14), with the leading axes of M and X."""
        found = {
            "energy": self.energy(M),
            "momentum_norm": (M * M).sum(axis=(-2, -1)) ** 0.5,
            "spatial_momentum": X @ M @ np.swapaxes(X, -1, -2),
            "quadratic": self.quadratic(M),
        }
        if self.n <= LARGEST:
            parts = self._by_degree(M)
            found["casimirs"] = np.stack([part[..., 0] for part in parts], axis=-1)
            found["integrals"] = np.concatenate(parts, axis=-1)
            found["polynomial"] = self._polynomial(parts)
        return {word: found[word] for word in WORDS if word in found}

    def _sizes(self, M: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each b, sizes of the terms of the c_ab, and their sizes without cancellation."""
        signed, unsigned = pfaffians(M), pfaffians(np.abs(M), signed=False)
        found = []
        for b in range(2, self.n + 1, 2):
            sets = list(combinations(range(self.n), b))
            whole = np.array([unsigned[axes] for axes in sets])
            weights = np.abs(self._weights(b))
            found.append((np.abs([signed[axes] for axes in sets]) * whole @ weights, whole**2 @ weights))
        return found

    def scales(self, M: np.ndarray) -> dict[str, Any]:
        """Scale of the change of each invariant: its size at M, or the size of the terms that cancel in it."""
        size = float(np.linalg.norm(M))
        found: dict[str, Any] = {
            "energy": float(self.energy(M)), "momentum_norm": size, "spatial_momentum": size,
            "quadratic": _floor(self.quadratic(M), size**2 * self._weights(2).max(axis=0)),
        }  # fmt: skip
        if self.n <= LARGEST:
            parts = [_floor(*sizes) for sizes in self._sizes(M)]
            found["casimirs"] = np.array([part[0] for part in parts])
            found["integrals"] = np.concatenate(parts)
            found["polynomial"] = self._polynomial([np.abs(part) for part in parts]) + 0.0
            found["polynomial"][::2] += 2 * np.abs(self._weights(0)[0])
        return found


def _floor(value: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Size of a value, but not less than 1e-8 of its bound."""
    return np.maximum(np.abs(value), 1e-8 * np.abs(bound))


@functools.lru_cache(maxsize=256)
def _weights(J: tuple[Any, ...], b: int, bits: int) -> np.ndarray:
    """For each set S of b axes, coefficients of the product of (nu - J_i^2), i not in S, the highest power first.

    `bits` is part of the key: doubles and mpmath numbers are equal and have equal hashes.
    """
    rows = []
    for axes in combinations(range(len(J)), b):
        rows.append(_monic([J[i] ** 2 for i in range(len(J)) if i not in axes]))
    return np.array(rows)


def _monic(roots: list[Any]) -> list[Any]:
    """Coefficients of the polynomial with these roots, the highest power first."""
    found: list[Any] = [1]
    for root in roots:
        found = [a - root * b for a, b in zip([*found, 0], [0, *found], strict=True)]
    return found


def pfaffians(M: np.ndarray, signed: bool = True) -> dict[tuple[int, ...], np.ndarray]:
    """Pfaffians of M (..., N, N) over all even sets of axes, each expanded along its first axis.

    Without signs they are the sums of the absolute terms (M then has no negative entries).
    """
    sign = -1 if signed else 1
    n = M.shape[-1]
    found: dict[tuple[int, ...], np.ndarray] = {(): np.ones(M.shape[:-2])}
    for b in range(2, n + 1, 2):
        for axes in combinations(range(n), b):
            first, rest = axes[0], axes[1:]
            terms = (
                sign**k * M[..., first, j] * found[rest[:k] + rest[k + 1 :]] for k, j in enumerate(rest)
            )  # fmt: skip
            found[axes] = functools.reduce(np.add, terms)
    return found


def precise(A: np.ndarray) -> np.ndarray:
    """Convert a matrix of doubles to mpmath numbers of the working precision."""
    from ..numbers.multiprecision import number

    return np.array(np.vectorize(number, otypes=[object])(A), dtype=object)


# --- the arguments ----------------------------------------------------------------------------------


def momentum_of(body: Body, M: Any) -> np.ndarray:
    """Check and return a skew N x N matrix."""
    given = _matrix("M0", M, body.n)
    gap = np.abs(given + given.T).max()
    if gap > SKEWNESS * np.abs(given).max():
        raise InputError(f"M0 must be skew-symmetric, M^T = -M; entries of M + M^T reach {gap:.3g}: give (M - M.T) / 2")
    return (given - given.T) / 2


def attitude_of(body: Body, X: Any) -> np.ndarray:
    """Check and return an orthogonal N x N matrix; the identity for None."""
    if X is None:
        return np.eye(body.n)
    given = _matrix("X0", X, body.n)
    gap = np.abs(given.T @ given - np.eye(body.n)).max()
    if gap > ORTHOGONALITY:
        raise InputError(f"X0 must be orthogonal, X^T X = 1; it differs by {gap:.3g}: give its polar factor")
    return given


def _matrix(name: str, value: Any, n: int) -> np.ndarray:
    given = _array(name, value)
    if given.shape != (n, n):
        raise InputError(f"{name} must have shape ({n}, {n}) to match J; got {given.shape}")
    return given


def _array(name: str, value: Any) -> np.ndarray:
    try:
        given = np.array(value, dtype=float) if isinstance(value, np.ndarray | Sequence) else None
    except Exception:  # the value may be any object
        given = None
    if given is None or isinstance(value, str):
        raise InputError(f"{name} must be an array of numbers; got {value!r}")
    if not np.isfinite(given).all():
        raise InputError(f"{name} must be finite; got {given.tolist()}")
    return given
