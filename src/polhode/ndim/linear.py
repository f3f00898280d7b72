"""Linear equations and Newton's method for matrices of doubles or of mpmath numbers.

With many digits a linear equation is solved by iterative refinement: residuals in all digits, corrections with the
inverse in doubles. Every sweep gains about fifteen digits, minus the digits of the condition number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)
ITERATIONS = 40
"""Sweeps after which a solve fails; with mpmath numbers one more for every six digits."""

RUNAWAY = 1e6
"""Newton's method has failed if a correction is this many times the initial guess."""

STALL = 2.0**16
"""Corrections below this many epsilons that no longer shrink are round-off."""


def is_precise(A: np.ndarray) -> bool:
    """Whether the matrix holds mpmath numbers."""
    return A.dtype == object


def epsilon(A: np.ndarray) -> Any:
    """Distance from 1 to the next number of the matrix's type."""
    if not is_precise(A):
        return EPS
    from ..numbers.multiprecision import mp

    return +mp.eps


def plain(A: Any) -> Any:
    """Convert a matrix or a number to doubles."""
    return A.astype(float) if isinstance(A, np.ndarray) else float(A)


def sweeps(A: np.ndarray) -> int:
    """Largest number of sweeps."""
    return ITERATIONS + int(-math.log10(epsilon(A)) / 6) if is_precise(A) else ITERATIONS


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve A X = B for X."""
    if not is_precise(A):
        return np.linalg.solve(A, B)
    inverse = np.linalg.inv(plain(A))
    X, rest, last = 0 * B, B, math.inf
    small = 4 * epsilon(A) * largest(B)
    for _ in range(sweeps(A)):
        size = largest(rest)
        if size <= small or 2 * size >= last:
            break
        X = X + size * (inverse @ plain(rest / size))
        rest, last = B - A @ X, size
    return X


def largest(A: np.ndarray) -> Any:
    """Absolute value of the largest entry."""
    return np.abs(A).max()


def newton(
    x: np.ndarray, residual: Callable[[Any], Any], correction: Callable[[Any, Any], np.ndarray]
) -> tuple[np.ndarray, Any]:
    """Apply corrections until they are round-off; return the root and zero, or the last x and the correction's size.

    residual(x) is evaluated in the number type of its data. correction(x, r) is in doubles: the change that removes r.
    """
    last, far, whole = math.inf, RUNAWAY * float(largest(x)), 1.0
    for _ in range(sweeps(residual(x))):
        try:
            r = residual(x)
            scale = largest(r) if is_precise(r) else 1.0
            if scale == 0:
                return x, 0.0
            change = scale * correction(plain(x), plain(r / scale) if is_precise(r) else r)
        except (np.linalg.LinAlgError, ValueError):
            return x, math.inf
        size, whole = largest(change), largest(x)
        if not size <= far:
            return x, math.inf
        x = x + change
        eps = epsilon(r)
        if size <= 2 * eps * whole or (size >= last / 2 and size <= STALL * eps * whole):
            return x, 0.0
        last = size
    return x, float(last / max(whole, EPS))
