"""Methods for the N-dimensional body: Moser-Veselov, the midpoint rule, the isospectral midpoint rule.

J. Moser and A. P. Veselov, Discrete versions of some classical integrable systems and factorization of matrix
polynomials (1991); J. R. Cardoso and F. Silva Leite, The Moser-Veselov equation (2003); A. Zanna's slides on
the explicit 3 x 3 method, whose signs and transposes docs/ndim.md corrects; M. Viviani, A minimal-variable symplectic
method for isospectral flows (2020).

A step is built for a `Body` and has the signature of every step of the library, with y = (M, X), matrices of doubles or
of mpmath numbers; only `strang` calls the torque, a skew matrix torque(X). All three find a skew A, rotate the attitude
by the Cayley map, X_1 = X_0 (1 - A)^-1 (1 + A), and add an increment to M.
The terms of a declaration: `needs` is `free` or `potential`; `symplectic` on T*SO(N); `poisson` on so(N)*; `conserves`
has names from `body.WORDS`, for every N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from ..errors import InputError
from ..kernels.loops import Step
from ..methods.ranking import best_first
from ..methods.record import Method
from ..methods.registry import Methods
from . import linear
from .body import WORDS, Body, momentum_of
from .linear import plain

FLAT = 1e-3
"""Below this ratio of the smallest to the largest J the Riccati equation is not used, because it divides by J."""

AXIS = 1e-10
"""Real parts below this, relative to the largest J, are the round-off of an eigenvalue on the imaginary axis."""


def triple_jump(number: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """Steps of Yoshida's composition in units of h: g, 1 - 2 g, g with g = 1/(2 - 2^(1/3))."""
    outer = 1 / (2 - number(2) ** (number(1) / 3))
    return outer, 1 - 2 * outer, outer


LONGEST = -triple_jump(float)[1]
"""Size of the longest of them, which is negative."""

TAG = "ndim"
"""The family of these methods."""


class Registry(Methods):
    """The methods of this family, by name."""

    def _unknown(self, label: str) -> str:
        names = ", ".join([*(m.name for m in best_first(self.values(), "free")), "yoshida4(...)"])
        return f"unknown method {label!r} for an N-dimensional body; there are {names} and strang(...)"


methods = Registry()


BOUNDED: dict[str, float] = {}
"""Methods whose step exists only below `largest_step`, with the longest of their inner steps over h."""


def declared(build: Callable[[Body], Step], *, bounded: float | None = None, **declared: Any) -> Method:
    """Make a Method from a builder and its declaration, in the names of `WORDS`; `bounded` goes into `BOUNDED`."""
    if bounded is not None:
        BOUNDED[declared["name"]] = bounded
    declared["conserves"] = frozenset(declared["conserves"])
    if declared["conserves"] - set(WORDS):
        raise ValueError(f"{declared['name']}: unknown names in the declaration: {declared['conserves'] - set(WORDS)}")
    shared: dict[str, Any] = {
        "order_free": declared["order"], "implicit": True, "torque_evals": 0, "needs": "free", "family": TAG,
        "doc": build.__doc__ or "",
    }  # fmt: skip
    return Method(build=build, **(shared | declared))


# --- Moser-Veselov ----------------------------------------------------------------------------------


def moser_veselov(body: Body) -> Step:
    """Moser-Veselov: h M_0 = X J - J X^T with X in SO(N), M_1 = X^T M_0 X, X_1 = X_0 X.

    With X = (1 - A)^-1 (1 + A) the increment is M_1 - M_0 = [J, X + X^T] / h = (4/h) [J, A^2 (1 - A^2)^-1].
    """
    one, differences = np.eye(body.n), body.J[:, None] - body.J[None, :]

    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        M, X = y
        A, residual = moser_veselov_root(body, h * M)
        if residual > 0:
            return y, residual
        square = A @ A
        B = linear.solve(one - square, square)
        return (M + (2 / h) * differences * (B + B.T), rotated(X, A)), residual

    return step


def moser_veselov_root(body: Body, m: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the skew A whose Cayley map X solves m = X J - J X^T, on the branch of small m, and the residual."""
    rough = body.plain
    guess = _by_continuation if rough.J.min() <= FLAT * rough.J.max() else _by_riccati
    try:
        A = guess(rough, plain(m))
        if A is None:
            return np.zeros_like(m), math.inf
        A, residual = refined(body, m, A)
        return A, residual if residual > 0 or _belongs(rough, plain(A)) else math.inf
    except (np.linalg.LinAlgError, ValueError):  # a singular matrix, or one that is not finite
        return np.zeros_like(m), math.inf


def riccati(J: np.ndarray, m: np.ndarray) -> np.ndarray | None:
    """W = m/2 + S with S^2 + S m/2 - m S/2 = m^2/4 + J^2 and the spectrum of W in Re > 0; None if there is none.

    S = Q21 Q11^-1 from the Schur form, ordered by Re > 0, of the Hamiltonian matrix [[m/2, 1], [m^2/4 + J^2, m/2]].
    """
    n, unit = len(J), J.max()
    half = m / (2 * unit)
    hamiltonian = np.block([[half, np.eye(n)], [half @ half + np.diag((J / unit) ** 2), half]])
    _, Q, count = scipy.linalg.schur(hamiltonian, output="real", sort=lambda re, im: re > AXIS)
    if count != n:
        return None
    S = np.linalg.solve(Q[:n, :n].T, Q[n:, :n].T)
    return unit * (half + (S + S.T) / 2)


def _by_riccati(body: Body, m: np.ndarray) -> np.ndarray | None:
    W = riccati(body.J, m)
    return None if W is None else inverse_cayley(W / body.J)


def _by_continuation(body: Body, m: np.ndarray) -> np.ndarray | None:
    """Newton's method by continuation from m = 0, in more and more pieces until it converges; no division by J."""
    for pieces in (1, 4, 16, 64):
        A, residual = np.zeros_like(m), 0.0
        before = A
        for k in range(1, pieces + 1):
            ahead = 2 * A - before if k > 1 else m * body.rates / (2 * pieces)
            before = A
            A, residual = refined(body, m * (k / pieces), ahead)
            if residual > 0:
                break
        if residual <= 0:
            return A
    return None


def refined(body: Body, m: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, float]:
    """Newton's method for m + [m, A] - A m A = 2 (A J + J A), which is m = X J - J X^T times 1 - A and 1 + A.

    Replacing X by (1 + eta) X changes X J - J X^T by eta W + W^T eta, W = X J: a Lyapunov equation. Every term is as
    small as A, so A has full relative accuracy.
    """
    one, J = np.eye(body.n), body.plain.J

    def residual(A: np.ndarray) -> np.ndarray:
        return m + m @ A - A @ m - A @ m @ A - 2 * A * body.sums

    def correction(A: np.ndarray, rest: np.ndarray) -> np.ndarray:
        left, right = one - A, one + A
        W = np.linalg.solve(left, right) * J
        inner = np.linalg.solve(left, rest)
        eta = lyapunov(W, np.linalg.solve(left, inner.T).T)
        return skew(left @ eta @ right) / 2

    return linear.newton(A, residual, correction)


def lyapunov(W: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the skew eta with eta W + W^T eta = right, through the Schur form of W.

    It exists as long as no two eigenvalues of W add up to zero. One eigenvalue may vanish, as for a flat body: the
    equation is then singular only for symmetric matrices, where LAPACK perturbs it and `right` has no component.
    """
    T, U = scipy.linalg.schur(W, output="real")
    Y, scale, _ = scipy.linalg.lapack.dtrsyl(T, T, U.T @ right @ U, trana="T")
    return skew(U @ Y @ U.T) / scale


def _belongs(body: Body, A: np.ndarray) -> bool:
    """Whether the root is on the branch of small steps: no eigenvalue of W = X J has a negative real part."""
    W = cayley(A) * body.J
    return bool(np.linalg.eigvals(W).real.min() > -AXIS * body.J.max())


def largest_step(J: Any, M: Any) -> float:
    """Step size below which the Moser-Veselov equation has the solution that is continuous to h -> 0.

    It exists as long as nu^2 + J^2 + i nu h M is positive definite for all real nu, because i nu is an eigenvalue of
    the Hamiltonian matrix if this is singular. So 1/h is the largest value over nu of the spectral radius of
    nu D^-1/2 M D^-1/2, D = nu^2 + J^2. It depends on M through the integrals only and is a constant of the motion.
    """
    body = Body(J)
    M = momentum_of(body, M)

    def radius(log_nu: float) -> float:
        nu = math.exp(log_nu)
        root = np.sqrt(nu**2 + body.J**2)
        return float(np.abs(np.linalg.eigvalsh(1j * nu * M / root[:, None] / root)).max())

    positive = body.J[body.J > 0]
    span = (math.log(positive.min()) - (20 if (body.J == 0).any() else 0), math.log(positive.max()))
    places = np.linspace(*span, 129) if span[1] > span[0] else np.array(span)
    heights = np.array([radius(x) for x in places])
    best = int(heights.argmax())
    top = heights[best]
    if 0 < best < len(places) - 1:
        ends = (places[best - 1], places[best + 1])
        minimum = scipy.optimize.minimize_scalar(lambda x: -radius(x), bounds=ends, method="bounded")
        top = max(top, -minimum.fun)
    return 1 / top if top > 0 else math.inf


# --- midpoint rules ---------------------------------------------------------------------------------


def imr(body: Body) -> Step:
    """Implicit midpoint rule: M_1 = M_0 + h [M, Omega(M)], M = (M_0 + M_1)/2, X_1 = X_0 cay(h Omega(M))."""
    one, rates, rough = np.eye(body.n), body.rates, body.plain.rates

    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        M0, X = y
        half = float(h) / 2

        def residual(M: np.ndarray) -> np.ndarray:
            return M0 - M + (h / 2) * bracket(M, M * rates)

        def correction(M: np.ndarray, rest: np.ndarray) -> np.ndarray:
            omega = M * rough
            slopes = sides(one, omega) - sides(omega, one) + (sides(M, one) - sides(one, M)) * rough.ravel()
            return solved(np.eye(body.n**2) - half * slopes, rest)

        M, unsolved = linear.newton(M0 + (h / 2) * bracket(M0, M0 * rates), residual, correction)
        omega = M * rates
        return (M0 + h * bracket(M, omega), rotated(X, (h / 2) * omega)), unsolved

    return step


def isospectral_midpoint(body: Body) -> Step:
    """Isospectral midpoint rule: M_0 = (1 + A) M (1 - A), M_1 = (1 - A) M (1 + A), A = h Omega(M)/2.

    The attitude X_1 = X_0 (1 - A)^-1 (1 + A) keeps the spatial momentum.
    """
    one, rates, rough = np.eye(body.n), body.rates, body.plain.rates

    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        M0, X = y
        half = float(h) / 2

        def residual(M: np.ndarray) -> np.ndarray:
            A = (h / 2) * M * rates
            return M0 - M - bracket(A, M) + A @ M @ A

        def correction(M: np.ndarray, rest: np.ndarray) -> np.ndarray:
            A = half * M * rough
            left, right = one + A, one - A
            slopes = sides(left, right) + half * (sides(one, M @ right) - sides(left @ M, one)) * rough.ravel()
            return solved(slopes, rest)

        M, unsolved = linear.newton(M0 + (h / 2) * bracket(M0, M0 * rates), residual, correction)
        omega = M * rates
        return (M0 + h * bracket(M, omega), rotated(X, (h / 2) * omega)), unsolved

    return step


def sides(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Matrix of the map D -> A D B on the entries, row by row."""
    return np.kron(A, B.T)


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the skew D with matrix D = right, for a map of skew matrices given on all entries."""
    n = len(right)
    i, j = np.triu_indices(n, 1)
    above, below = i * n + j, j * n + i
    rows = matrix[above]
    D = np.zeros((n, n))
    D[i, j] = np.linalg.solve(rows[:, above] - rows[:, below], right[i, j])
    return D - D.T


# --- shared functions -------------------------------------------------------------------------------


def bracket(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """[A, B] = A B - B A of skew matrices, exactly skew."""
    product = A @ B
    return product - product.T


def skew(A: np.ndarray) -> np.ndarray:
    """Skew part of a matrix."""
    return (A - A.T) / 2


def cayley(A: np.ndarray) -> np.ndarray:
    """(1 - A)^-1 (1 + A)."""
    one = np.eye(len(A))
    return np.linalg.solve(one - A, one + A)


def inverse_cayley(X: np.ndarray) -> np.ndarray:
    """Return the skew A with X = (1 - A)^-1 (1 + A)."""
    one = np.eye(len(X))
    return skew(np.linalg.solve((X + one).T, (X - one).T).T)


def rotated(X: np.ndarray, A: np.ndarray) -> np.ndarray:
    """X (1 - A)^-1 (1 + A), by its increment, so that the round-off is only that of one addition."""
    return X + 2 * X @ linear.solve(np.eye(len(A)) - A, A)


def _inner(name: str, method: str | Method) -> Method:
    inner = methods[method]
    if inner.family != TAG or inner.order != 2 or not inner.symmetric:
        raise InputError(
            f"{name} takes a symmetric method of order 2 for N-dimensional bodies, such as {name}(imr); got "
            f"{inner.name}"
        )
    return inner


def yoshida4(method: str | Method) -> Method:
    """Order 4 from a symmetric method of order 2: steps g h, (1 - 2 g) h, g h with g = 1/(2 - 2^(1/3)).

    Quantities that the parts conserve are conserved.
    """
    inner = _inner("yoshida4", method)

    def build(body: Body) -> Step:
        part, steps = inner.build(body), triple_jump(body.number)

        def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
            worst = 0.0
            for fraction in steps:
                y, residual = part(fraction * h, t, y, system, torque)
                worst = max(worst, residual)
            return y, worst

        return step

    return declared(
        build, name=f"yoshida4({inner.name})", order=4, symmetric=True,
        symplectic=inner.symplectic, poisson=inner.poisson, solves=3 * inner.solves, conserves=inner.conserves,
        cite="yoshida1990", where="triple jump", doc=f"Triple jump of {inner.name}.", needs=inner.needs,
        bounded=LONGEST * BOUNDED[inner.name] if inner.name in BOUNDED else None,
    )  # fmt: skip


def strang(method: str | Method) -> Method:
    """Splitting for a potential U(X): half a kick, a step of a free method, half a kick: M += (h/2) T(X).

    Over `moser_veselov` it gives the stationary points of Moser and Veselov's sum of tr(X_k J X_{k+1}^T) with
    h^2 U(X_k) added to each term, which is RATTLE; the torque is T = G^T X - X^T G, G = dU/dX.
    """
    inner = _inner("strang", method)
    if inner.needs != "free":
        raise InputError(f"strang takes a free method for N-dimensional bodies, such as strang(imr); got {inner.name}")

    def build(body: Body) -> Step:
        drift = inner.build(body)

        def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
            M, X = y
            (M, X), residual = drift(h, t, (M + (h / 2) * torque(X), X), system, torque)
            return (M + (h / 2) * torque(X), X), residual

        return step

    return declared(
        build, name=f"strang({inner.name})", order=2, symmetric=True, symplectic=inner.symplectic,
        poisson=inner.poisson, solves=inner.solves, conserves=inner.conserves, needs="potential", torque_evals=2,
        cite="strang1968", where="kicks around a free step; Vilmart (2013), (16)",
        doc=f"Strang splitting over {inner.name}.", bounded=BOUNDED.get(inner.name),
    )  # fmt: skip


methods.add(
    declared(
        moser_veselov, name="moser_veselov", order=2, symmetric=True, symplectic=True, poisson=True, solves=1,
        conserves=WORDS, cite="moser1991", where="discrete Euler-Arnold equation; Zanna (2), (8), (9)",
        aliases=("mv", "dmv"), bounded=1.0,
    )
)  # fmt: skip
methods.add(
    declared(
        imr, name="imr", order=2, symmetric=True, symplectic=False, poisson=False, solves=1,
        conserves=("energy", "momentum_norm", "quadratic"), cite="mclachlan2005", where="IMR",
        aliases=("midpoint",),
    )
)  # fmt: skip
methods.add(
    declared(
        isospectral_midpoint, name="isospectral_midpoint", order=2, symmetric=True, symplectic=True, poisson=True,
        solves=1, conserves=("momentum_norm", "spatial_momentum", "casimirs"), cite="viviani2020",
        where="minimal midpoint", aliases=("isomp",),
    )
)  # fmt: skip
methods.add_combinator("yoshida4", yoshida4)
methods.add_combinator("strang", strang)
