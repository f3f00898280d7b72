"""Position and velocity on a conic section, by one formula for ellipses, parabolas and hyperbolas.

Lengths are in units of the periapsis distance q, times in units of sqrt(q^3/mu). In these units the only parameter is
the eccentricity e. With beta = 1 - e = q/a, the universal anomaly s and the functions of Stumpff

    G_k(s) = s^k c_k(beta s^2),    c_k(z) = 1/k! - z/(k + 2)! + z^2/(k + 4)! - ...

Kepler's equation is tau = s + e G_3(s), and the distance from the focus is r = 1 + e G_2 (Stiefel and Scheifele 1971,
section 11; Danby 1988, section 6.9). Nothing is singular at e = 1.

The kernels have neither branches nor loops that depend on time, so they are formulas: they can be differentiated
and expanded in Taylor series.
"""

from typing import Any

from ..numbers.primitives import atan2, cos, exp, log, sin, sqrt, where
from ..numbers.types import Number

HALVINGS = 4
"""The functions are computed at s/2^4 and carried to s by the formulas for the doubled argument."""

TERMS = 22
"""Terms of the continued fraction, enough for 1e-50 if |beta| s^2 < 900."""

ROUGH_TERMS = (5, 8)
"""Terms in the iterations of order four before the last one; they leave an error below 1e-12 (measured)."""


def stumpff(s: Number, beta: Number, terms: int = TERMS) -> tuple[Number, Number, Number, Number]:
    """The functions G_0, G_1, G_2, G_3 of s, beta s^2 < 16 pi^2.

    With z = x^2 = beta s^2/4^n and Lambert's continued fraction K = 1/(3 - (z/4)/(5 - (z/4)/(7 - ...))), the tangent is
    T = tan(x/2)/(x/2) = 1/(1 - K z/4), and c_2 = 2 T^2/(4 + z T^2), c_3 = T (T - K)/(4 + z T^2) without cancellation.
    Then c_2(4z) = c_1^2/2 and c_3(4z) = (c_2 + c_0 c_3)/4 double x, n times; v = 4^k c_2 and w = 4^k c_3 save
    operations.
    """
    part = s / 2**HALVINGS
    square = part * part
    z = beta * square
    quarter = z / 4
    K = 0 * z + 2 * terms + 1
    for odd in range(2 * terms - 1, 1, -2):
        K = odd - quarter / K
    K = 1 / K
    T = 1 / (1 - quarter * K)
    share = T / (4 + z * T * T)
    v, w = 2 * T * share, (T - K) * share
    for k in range(HALVINGS):
        c0, c1 = 1 - z * v, 1 - z * w
        v, w = 2 * 4**k * (c1 * c1), v + c0 * w
    return 1 - z * v, s * (1 - z * w), square * v, s * square * w


def universal_functions(e: Number, tau: Number) -> tuple[Number, Number, Number]:
    """G_0, G_1, G_2 at the root s of Kepler's equation s + e G_3(s) = tau; |tau| up to half a period if e < 1.

    Three iterations of order four (Danby and Burkardt 1983), from the root of a similar cubic equation. The functions
    at the root follow from those before the last correction d: G_2(s + d) = G_2 + G_1 g_1 + G_0 g_2 with g_k = G_k(d).
    """
    s, beta = _start(e, tau), 1 - e
    for terms in ROUGH_TERMS:
        s = s + _correction(e, tau, s, stumpff(s, beta, terms))
    G0, G1, G2, G3 = stumpff(s, beta)
    d = _correction(e, tau, s, (G0, G1, G2, G3))
    g1, g2 = d - beta * d * d * d / 6, d * d / 2
    G2 = G2 + G1 * g1 + G0 * g2
    return 1 - beta * G2, G1 + G0 * g1 - beta * G1 * g2, G2


def _correction(e: Number, tau: Number, s: Number, G: tuple[Number, Number, Number, Number]) -> Number:
    """Correction of order four of an approximate root s."""
    f, slope, bend, twist = s + e * G[3] - tau, 1 + e * G[2], e * G[1] / 2, e * G[0] / 6
    d = -f / slope
    d = -f / (slope + d * bend)
    return -f / (slope + d * bend + d * d * twist)


def _start(e: Number, tau: Number) -> Number:
    """Approximate root: that of s + e s^3/6 = tau; on a hyperbola one fixed-point iteration follows.

    The cubic has the root 3 tau/(w^2 + 1 + w^-2) with w^3 = |A| + sqrt(A^2 + 1) and A = 3/2 tau sqrt(e/2) (Barker's
    equation if e = 1). The iteration is sinh F = (M + F)/e with asinh x about x (1 + log u)/u, u = sqrt(1 + x^2). Even,
    smooth functions take the place of |A| and |x|, so the Taylor series of the start are those of smooth functions.
    """
    square = e * tau * tau * 9 / 8
    w = exp(log(sqrt(square + 0.25) + sqrt(square + 1)) / 3)
    share = 3 / (w * w + 1 + 1 / (w * w))  # s/tau
    wide = where(e > 1, e, 0 * e + 1)
    x_share = (wide - 1 + share) / wide
    u = sqrt(1 + (wide - 1) * tau * tau * x_share * x_share)
    return tau * where(e > 1, x_share * (1 + log(u)) / u, share)


def nearest_passage(e: Number, tau: Number) -> Number:
    """Time since the nearest passage of the periapsis; tau itself unless e < 1.

    The period is 2 pi/(1 - e)^(3/2).
    """
    beta = where(e < 1, 1 - e, 0 * e + 1)
    rate = beta * sqrt(beta)
    return where(e < 1, atan2(sin(rate * tau), cos(rate * tau)) / rate, tau)


def conic(e: Number, tau: Number) -> tuple[Any, Any]:
    """Position (x, y) and velocity at time tau after a periapsis on the x axis, in the units of this file.

    x = 1 - G_2, y = sqrt(1 + e) G_1; the velocity is (-G_1, sqrt(1 + e) G_0)/r.
    """
    G0, G1, G2 = universal_functions(e, nearest_passage(e, tau))
    across, r = sqrt(1 + e), 1 + e * G2
    return (1 - G2, across * G1), (-G1 / r, across * G0 / r)
