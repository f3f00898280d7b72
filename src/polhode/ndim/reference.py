"""Reference solutions by Taylor series of the continuous equations, independent of the methods of the family.

(n + 1) M_{n+1} = sum over j of [M_j, Omega_{n-j}],   (n + 1) X_{n+1} = sum over j of X_j Omega_{n-j}.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics.validate import finite_number, number_of_digits, real_array
from .body import Body, attitude_of, momentum_of
from .motion import Motion

ORDER = 28
"""Number of terms in doubles; with `digits`, one for each digit and ten more."""


def reference(J: Any, M0: Any, t: Any, X0: Any = None, *, t0: float = 0.0, digits: int | None = None) -> Motion:
    """Compute the motion at the given times, to a few units of round-off (or to `digits` digits, in mpmath).

    Parameters
    ----------
    J, M0, X0 : as in `polhode.ndim.solve`, at time t0
    t : one time or a sequence of times, in any order, before or after t0
    digits : work with this many digits; ``.mp.M`` and ``.mp.X`` then hold mpmath numbers
    """
    body = Body(J)
    M, X = momentum_of(body, M0), attitude_of(body, X0)
    times = np.atleast_1d(real_array(t, "t must be a time or a sequence of times"))
    if times.ndim != 1 or times.size == 0 or not np.isfinite(times).all():
        raise InputError(f"t must be one or more finite times; got {t!r}")
    t0 = finite_number("t0", t0)
    if digits is None:
        states = _at(times, t0, M, X, body.rates, ORDER, float(np.finfo(float).eps))
        return Motion(times, *states, body, method="taylor")
    digits = number_of_digits(digits, 1000)
    from ..numbers.multiprecision import number, public, working

    with working(digits + 5):
        precise = np.vectorize(number, otypes=[object])
        J_mp = precise(body.J)
        sums = J_mp[:, None] + J_mp[None, :]
        rates = np.array([[1 / s if s else s for s in row] for row in sums], dtype=object)
        many = _at(precise(times), number(t0), precise(M), precise(X), rates, digits + 10, number(10) ** -digits)
        M_mp, X_mp, energy = map(public, (*many, body.in_digits().energy(many[0])))
    return Motion(
        times, M_mp.astype(float), X_mp.astype(float), body, method="taylor",
        mp=types.SimpleNamespace(M=M_mp, X=X_mp, energy=energy, digits=digits),
    )  # fmt: skip


def _at(times: Any, t0: Any, M: Any, X: Any, rates: Any, order: int, eps: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return M and X at each time: forwards through the later times, backwards through the earlier ones."""
    n = len(M)
    Ms, Xs = (np.empty((len(times), n, n), dtype=M.dtype) for _ in range(2))
    later = [i for i in np.argsort(times) if times[i] >= t0]
    earlier = [i for i in np.argsort(times)[::-1] if times[i] < t0]
    for indices in (later, earlier):
        now, state = t0, (M, X)
        for i in indices:
            now, state = times[i], _advanced(times[i] - now, *state, rates, order, eps)
            Ms[i], Xs[i] = state
    return Ms, Xs


def _advanced(span: Any, M: Any, X: Any, rates: Any, order: int, eps: Any) -> tuple[Any, Any]:
    """Return M and X after a time span, in pieces for which the last terms of the series are below eps."""
    while span != 0:
        with np.errstate(over="ignore", invalid="ignore"):
            Ms, Xs = series(M, X, rates, order)
        reach = min(_reach(Ms, eps), _reach(Xs, eps))
        if not reach > 0:
            raise InputError(
                "the Taylor series of the motion exceeds all doubles; choose a unit of time in which angular "
                "velocities are of moderate size", "M0",
            )  # fmt: skip
        if abs(span) * eps > reach:  # pieces could not be subtracted from such a span
            raise InputError(
                f"a time is {float(span):g} away, and the body turns in {float(reach):.2g}: one rounding error in the "
                "data changes its attitude by more than a radian; choose nearer times, or more digits", "t",
            )  # fmt: skip
        piece = span if abs(span) <= reach else (reach if span > 0 else -reach)
        M, X = _summed(Ms, piece), _summed(Xs, piece)
        span = span - piece
    return M, X


def series(M: Any, X: Any, rates: Any, order: int) -> tuple[list[Any], list[Any]]:
    """Taylor coefficients of M and X."""
    Ms, Xs, omegas = [M], [X], [M * rates]
    for n in range(order):
        product = sum(Ms[j] @ omegas[n - j] for j in range(n + 1))
        Ms.append((product - product.T) / (n + 1))
        Xs.append(sum(Xs[j] @ omegas[n - j] for j in range(n + 1)) / (n + 1))
        omegas.append(Ms[-1] * rates)
    return Ms, Xs


def _reach(terms: list[Any], eps: Any) -> Any:
    """Step for which the last two terms are eps times the first; infinite if they vanish."""
    sizes = [abs(term).max() for term in terms]
    reaches = [(eps * sizes[0] / sizes[k]) ** (eps * 0 + 1 / k) for k in (-1 + len(terms), -2 + len(terms)) if sizes[k]]
    return min(reaches, default=float("inf"))


def _summed(terms: list[Any], h: Any) -> Any:
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = term + h * total
    return total
