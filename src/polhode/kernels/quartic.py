"""The quartic equation of the discrete Moser-Veselov map, and its small root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numbers.dispatch import kernel, solver
from ..numbers.primitives import all_lanes, epsilon, stop_gradient, where
from ..numbers.types import Number, Vec3
from .solvers import SWEEPS, arrived


@kernel
def _small_root(near: Number, inverse: Number, x: Number, c: Number, e: Vec3) -> tuple[Number, Number, Number]:
    """Return the small root k of the quartic of Moser and Veselov, r = c + k^2, and the residual (0 if it exists).

    k = x + e1 k^2 + r (e3 r - e2 k) with r = c + k^2 and e the symmetric functions of g_i = 1/(2 I_i). `_belongs`
    decides which root this is.

    The guess `near` has an error of third order in x and c, the inverse slope `inverse` one of second order; one
    correction with it leaves an error of at most 32 (e1 x)^2 of the correction. If that is not round-off, Newton's
    method follows. The root is subtracted from 1/g_i, so errors count relative to the root or 1/e1, whichever is
    larger. In r the square of the correction, of sixth order, is left out, so that r is ready at the same time as k.
    """
    residual = 0
    value = quartic(near, x, c, e)
    r = (near * near + c) + (2 * near * inverse) * value
    k = near + inverse * value
    done = (x * x) * ((e[0] * e[0] * e[0]) * abs(value)) <= epsilon(x) / 32
    if not all_lanes(done):
        k, residual = _searched(near, k, done, 8 * e[0] * x < 1, x, c, e)
        r = where(done, r, k * k + c)
    return k, r, residual


@kernel
def _searched(near: Number, k: Number, done: Any, trusted: Any, x: Number, c: Number, e: Vec3) -> tuple[Number, Number]:
    """Solve by Newton's method from k, or from zero if k cannot be trusted; done lanes do not change.

    Left of the root the polynomial is decreasing and convex, and the correction that follows a correction d is at most
    d^2 (e1 + 2 e3 c)/slope.
    """
    last, enough = k - near, epsilon(x) / 32
    for _ in range(SWEEPS):
        if all_lanes(done):
            break
        near = where(trusted, k, 0 * k)
        slope = _fall(near, c, e)
        before, last = last, quartic(near, x, c, e) / slope
        k = where(done, k, near + last)
        reach = 1 + e[0] * near
        soon = (e[0] * last) * ((e[0] + 2 * e[2] * c) * last) <= enough * reach * slope
        there = soon | (trusted & arrived(abs(e[0] * last), abs(e[0] * before), reach))
        done = done | (there & _belongs(near, c, e))
        trusted = near == near
    return k, where(done, 0 * x, abs(last) + epsilon(x))


@kernel
def _belongs(k: Number, c: Number, e: Vec3) -> Any:
    """Whether a root of the quartic is on the branch of short steps, which ends where two roots meet.

    On it the spectrum of W = Omega^T D has Re > 0, so that its trace, half the sum of the moments minus k, is positive:
    k < e2/(4 e3). For a linear body, whose axis has g = 0, this does not help, and k = 2 I solves the quartic for every
    step. But up to the small root the quartic is convex, and at k = 2 I it is not.
    """
    bend = e[0] + 2 * e[2] * (c + 3 * k * k) - 3 * e[1] * k
    return (4 * e[2] * k <= e[1]) & (8 * bend > -e[0])


@kernel
def _small_root_followed(near: Number, inverse: Number, x: Number, c: Number, e: Vec3) -> Any:
    k, _, residual = _small_root(
        stop_gradient(near), stop_gradient(inverse), stop_gradient(x), stop_gradient(c), stop_gradient(e)
    )
    f = quartic(k, x, c, e) / _fall(k, stop_gradient(c), stop_gradient(e))
    k = k + (f - stop_gradient(f))
    return k, k * k + c, residual


@kernel
def _fall(k: Number, c: Number, e: Vec3) -> Number:
    """Negative slope of the quartic in k."""
    square = k * k
    r = square + c
    return 1 - 2 * k * (e[0] + 2 * e[2] * r) + e[1] * (2 * square + r)


@kernel
def quartic(k: Number, x: Number, c: Number, e: Vec3) -> Number:
    """The polynomial x - k + e1 k^2 + r (e3 r - e2 k), r = c + k^2."""
    r = k * k + c
    return r * (e[2] * r - e[1] * k) + (k * (e[0] * k) + (x - k))


def _small_root_of(find: Callable[..., Any], near: Number, inverse: Number, x: Number, c: Number, e: Vec3) -> Any:
    """Solve by any solver, from the guess if it can be trusted, otherwise from zero."""
    k, residual = find(quartic, where(8 * e[0] * x < 1, near, 0 * near), x, c, e)
    return k, k * k + c, where(_belongs(k, c, e), residual, 1 + 0 * k)


small_root = solver(_small_root, _small_root_followed, _small_root_of)
