"""A potential U(X) of the attitude in N dimensions, and its exact torque from the graph of the user function.

With G = dU/dX the equations are M' = [M, Omega] + T, T = G^T X - X^T G, X' = X Omega, and T(M) + U(X) is conserved,
T(M) = tr(M^T Omega)/4. In three dimensions T = hat(-rot(R^T G)), as in the rest of the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..symbolic.expression import compiled, gradient, lift, source, symbol
from ..symbolic.user_function import UserFunction


class Potential:
    """A plain Python function of X, nested tuples X[i][j], that returns a number."""

    def __init__(self, function: Callable[..., Any], n: int) -> None:
        self.function, self.n = function, n
        if not callable(function):
            raise InputError(f"potential must be a function of X, such as lambda X: X[0][1]; got {function!r}")
        user = UserFunction(function, f"the potential {getattr(function, '__name__', repr(function))}")
        entries = [symbol(f"X{i}_{j}") for i in range(n) for j in range(n)]
        rows = tuple(tuple(entries[n * i : n * i + n]) for i in range(n))
        value = user.traced((rows,), lift)
        unpack = {f"X{i}_{j}": f"X[{i}][{j}]" for i in range(n) for j in range(n)}
        self.texts = (
            source("potential_value", "X", unpack, [value]), source("slopes", "X", unpack, gradient(value, entries)),
        )  # fmt: skip

    def energy(self, X: np.ndarray, number: Callable[[Any], Any]) -> np.ndarray:
        """Potential energy U of attitudes (..., N, N)."""
        value = compiled(*self.texts[0], number)
        flat = X.reshape(-1, self.n, self.n)
        energies = np.array([value(_rows(x))[0] for x in flat], dtype=X.dtype)
        return energies.reshape(X.shape[:-2])

    def torque(self, number: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function X -> T = G^T X - X^T G."""
        slopes = compiled(*self.texts[1], number)

        def torque(X: np.ndarray) -> np.ndarray:
            G = np.array(slopes(_rows(X)), dtype=X.dtype).reshape(X.shape)
            product = X.T @ G
            return product.T - product

        return torque


def _rows(X: np.ndarray) -> Any:
    return tuple(map(tuple, X.tolist()))
