"""Elliptic functions and integrals, as kernels.

Jacobi's functions take the COMPLEMENTARY parameter m1 = 1 - m = 1 - k^2, which is small near m = 1. They are
quotients of theta functions in the nome of the smaller of m and m1 (at most exp(-pi), so that a few terms suffice);
beyond m = 1/2 the theta functions have an imaginary argument, and m1 = 0 gives tanh and sech without a special case.
Carlson's symmetric integrals are computed by duplication (Carlson, Numer. Algorithms 10 (1995) 13-26).
"""

from __future__ import annotations

from typing import Any

from ..numbers.dispatch import kernel
from ..numbers.double_double import (
    Pair,
    nearest,
    pair_means,
    pair_quotient,
    pair_sqrt,
    pair_sum,
    two_product,
    two_sum,
)
from ..numbers.primitives import all_lanes, atan, epsilon, exp, log, pi_pair, sincos, sinh, sqrt, where
from ..numbers.types import Number

SWEEPS = 80
"""More duplications, means or terms than any precision below 10^4 digits needs."""


# --- lanes that have converged are frozen, so that no number depends on its neighbours ----------------


@kernel
def _kept2(done: Any, old: Pair, new: Pair) -> Pair:
    """Return the old pair if done, else the new one."""
    return where(done, old[0], new[0]), where(done, old[1], new[1])


@kernel
def _quartered(done: Any, x: Number, shift: Number) -> Number:
    """Return (x + shift)/4, the duplication of Carlson's integrals, if not done, else x."""
    return where(done, x, (x + shift) / 4)


@kernel
def _quartered4(done: Any, x: Number, y: Number, z: Number, mean: Number, shift: Number) -> Any:
    """Duplicate three arguments and their mean if not done."""
    x, y, z = _quartered(done, x, shift), _quartered(done, y, shift), _quartered(done, z, shift)
    return x, y, z, _quartered(done, mean, shift)


# --- the complete integral --------------------------------------------------------------------------


@kernel
def quarter_period(m1: Number) -> Pair:
    """K = pi/(2 agm(1, sqrt(m1))) as a pair, for m1 > 0.

    The means are iterated until d = (a - b)/(a + b) is so small that 1/agm = 2/(a + b) (1 + d^2/4 + 9 d^4/64 + ...),
    the series of K itself, needs only its first two terms.
    """
    one, zero = 0 * m1 + 1, 0 * m1
    a, b = (one, zero), pair_sqrt((m1, zero))
    for _ in range(SWEEPS):
        gap, both = (a[0] - b[0]) + (a[1] - b[1]), a[0] + b[0]
        done = gap * gap <= epsilon(m1) * (both * both)
        if all_lanes(done):
            break
        mean, root = pair_means(a, b)
        a, b = _kept2(done, a, mean), _kept2(done, b, root)
    d = gap / both
    high, low = pair_quotient(pi_pair(m1), pair_sum(a, b))
    return two_sum(high, low + high * (d * d / 4))


@kernel
def third_sums(m1: Number, pp: Number) -> tuple[Number, Number]:
    """Return S = sum Q_n in Pi - K = (1/pp - 1) K/2 S, the complete integral with 1 - alpha^2 = pp >= 1, and 2 - S.

    Q_0 = 1, Q_(n+1) = Q_n e_n/2, e = (p^2 - a g)/(p^2 + a g), p -> (p^2 + a g)/(2 p) along the means of 1, sqrt(m1)
    (DLMF 19.8.6). As p >= a all e_n >= 0, and 2 - S = sum Q_n (1 - e_n) is a sum of positive terms too.
    """
    a, g, p = 1 + 0 * m1, sqrt(m1), sqrt(pp)
    term, total, rest = 1 + 0 * m1, 1 + 0 * m1, 0 * m1
    done = m1 != m1
    for _ in range(SWEEPS):
        square, product = p * p, a * g
        both = square + product
        inverse = 1 / (2 * p * both)
        over = 2 * p * inverse * term
        rest = rest + 2 * product * over
        term = where(done, 0 * term, (square - product) * over / 2)
        total = total + term
        done = done | (abs(term) <= epsilon(m1) / 8 * rest)
        if all_lanes(done):
            break
        p, a, g = both * both * inverse, (a + g) / 2, sqrt(product)
    return total, rest


@kernel
def complete(m1: Number) -> Number:
    """K of the complementary parameter m1 > 0."""
    return quarter_period(m1)[0]


# --- Jacobi's functions -----------------------------------------------------------------------------


@kernel
def nome(m: Number) -> Number:
    """Nome q of a parameter 0 <= m <= 1/2, to full relative precision.

    With k' = sqrt(1 - m), x = (1 - sqrt k')/(1 + sqrt k')/2 the series q = x + 2 x^5 + 15 x^9 + ... is truncated after
    seven terms (the next is 3567400 x^29); if that gives too few digits, Landen's transformation to the modulus
    (1 - k')/(1 + k') squares the nome first.
    """
    depth, done = 0 * m, m != m
    for _ in range(SWEEPS):
        root = sqrt(1 - m)
        quarter = sqrt(root)
        x = m / (2 * (1 + root) * (1 + quarter) * (1 + quarter))
        x4 = (x * x) * (x * x)
        x8 = x4 * x4
        done = done | (4000000 * x8 * x8 * x8 <= epsilon(m))
        if all_lanes(done):
            break
        ratio = m / ((1 + root) * (1 + root))
        m = where(done, m, ratio * ratio)
        depth = where(done, depth, depth + 1)
    q = x * (1 + x4 * (2 + x4 * (15 + x4 * (150 + x4 * (1707 + x4 * (20910 + x4 * 268616))))))
    for _ in range(SWEEPS):
        if all_lanes(depth <= 0):
            break
        q = where(depth > 0, sqrt(q), q)
        depth = depth - 1
    return q


Modulus = tuple[Any, Number, Number, Number, Number, Number, Number, Number]
"""near, q, theta_2/(2 q^(1/4)), theta_3, theta_4, K as a pair (zero if it is infinite), and m1.

`near` is m >= 1/2; then q is the complementary nome, and the theta constants are those of q.
"""


@kernel
def modulus(m1: Number) -> Modulus:
    """Constants of Jacobi's functions for the complementary parameter 0 <= m1 <= 1."""
    near = m1 <= 1 / 2
    q = nome(where(near, m1, 1 - m1))
    t2, t3, t4 = 1 + 0 * q, 1 + 0 * q, 1 + 0 * q
    square, power, sign = q, q, -2
    for _ in range(SWEEPS):
        t2, t3, t4 = t2 + square * power, t3 + 2 * square, t4 + sign * square
        if all_lanes(square <= epsilon(q) / 8):
            break
        square, power, sign = square * power * power * q, power * q, -sign
    bounded = m1 > 0
    high, low = quarter_period(where(bounded, m1, 1 + m1))
    return near, q, t2, t3, t4, where(bounded, high, 0 * m1), where(bounded, low, 0 * m1), m1


@kernel
def reduced(u: Number, curve: Modulus) -> tuple[Number, Number]:
    """Return v, |v| <= K, and the integer n with u = v + 2 n K."""
    high, low = curve[5], curve[6]
    bounded = high > 0
    n = where(bounded, nearest(u / (2 * where(bounded, high, 1 + high))), 0 * u)
    p, e = two_product(2 * n, high)
    return ((u - p) - e) - 2 * n * low, n


@kernel
def _trigonometric(z: Number, curve: Modulus) -> tuple[Number, Number, Number, Number]:
    """sn, cn, dn by theta functions of z = pi u/(2K): theta_1 = sum (-1)^n q^(n^2+n) sin((2n+1)z) and so on.

    The fourth result is the common denominator of the others.
    """
    _, q, t2, t3, t4, _, _, _ = curve
    s, c = sincos(z)
    twice = 2 * (c - s) * (c + s)
    s0, c0, d0 = -s, c, 1 + 0 * z
    s1, c1, d1 = s, c, twice / 2
    a, b, e, f = s, c, 1 + 0 * z, 1 + 0 * z
    square, power, sign = q, q, -1
    for _ in range(SWEEPS):
        s0, s1 = s1, twice * s1 - s0
        c0, c1 = c1, twice * c1 - c0
        a, b = a + sign * square * power * s1, b + square * power * c1
        e, f = e + 2 * square * d1, f + 2 * sign * square * d1
        d0, d1 = d1, twice * d1 - d0
        if all_lanes(square <= epsilon(q) / 8):
            break
        square, power, sign = square * power * power * q, power * q, -sign
    return t3 * t3 * a, t3 * t4 * b, t2 * t4 * e, t2 * t3 * f


@kernel
def _hyperbolic(z: Number, curve: Modulus) -> tuple[Number, Number, Number, Number]:
    """sn, cn, dn by theta functions of i z, z = pi u/(2K'), |u| <= K, in the complementary nome q.

    sn = t3 sum (-1)^n q^(n^2+n) sinh((2n+1)z) / (t4 D), cn = t2 Theta_4/(t4 D), dn = t2 Theta_3/(t3 D), with
    D = sum q^(n^2+n) cosh((2n+1)z), all times e = exp(-|z|); p = q/e^2 <= 1 replaces the growing exponential.
    The fourth result is the common denominator of the others.
    """
    _, q, t2, t3, t4, _, _, _ = curve
    x = abs(z)
    e = exp(-x)
    ee = e * e
    low = x < 1
    s = where(low, e * sinh(where(low, x, 0 * x)), (1 - ee) / 2)
    p = where(q > 0, q / where(q > 0, ee, 1 + q), q)
    a, b, c, d = 1 + 0 * z, (1 + ee) / 2, 1 + 0 * z, 1 + 0 * z
    odd, square, power, up, down, sign = 1 + 0 * z, q, q, p, ee, -1
    before = 1 + 0 * z
    for _ in range(SWEEPS):
        odd = power * power * odd + square * (up + power * down)
        a = a + sign * odd
        b = b + square * (up + power * down * ee) / 2
        term = before * up + square * down
        c, d = c + sign * term, d + term
        if all_lanes(square <= epsilon(q) / 8):
            break
        before = before * power * power
        square, power, sign = square * power * power * q, power * q, -sign
        up, down = up * p, down * ee
    sn = t3 * t3 * s * a
    return where(z < 0, -sn, sn), t2 * t3 * e * c, t2 * t4 * e * d, t3 * t4 * b


@kernel
def jacobi_reduced(u: Number, curve: Modulus) -> tuple[Number, Number, Number]:
    """sn, cn, dn of |u| <= K (any u if K is infinite)."""
    near, z = curve[0], u / (curve[3] * curve[3])
    s, c, d, all_over = 0 * z, 1 + 0 * z, 1 + 0 * z, 1 + 0 * z
    for _ in range(1):  # skips the kind of function that no lane needs
        if all_lanes(near):
            break
        s, c, d, all_over = _trigonometric(where(near, 0 * z, z), curve)
    for _ in range(1):
        if all_lanes(near == (z != z)):
            break
        s1, c1, d1, over1 = _hyperbolic(where(near, z, 0 * z), curve)
        s, c, d = where(near, s1, s), where(near, c1, c), where(near, d1, d)
        all_over = where(near, over1, all_over)
    inverse = 1 / all_over
    return s * inverse, c * inverse, d * inverse


@kernel
def odd(n: Number) -> Number:
    """Whether the integer n is odd."""
    return n != 2 * nearest(n / 2)


@kernel
def sncndn(u: Number, m1: Number) -> tuple[Number, Number, Number]:
    """Jacobi's sn, cn, dn of the argument u and the complementary parameter 0 <= m1 <= 1."""
    curve = modulus(m1)
    v, n = reduced(u, curve)
    s, c, d = jacobi_reduced(v, curve)
    flip = where(odd(n), -1 + 0 * u, 1 + 0 * u)
    return flip * s, flip * c, d


# --- Carlson's integrals ----------------------------------------------------------------------------


@kernel
def _eighth(x: Number) -> Number:
    """epsilon^(1/8); below it the eighth power, the first omitted in a series, is round-off."""
    return sqrt(sqrt(sqrt(epsilon(x))))


@kernel
def _tail3(a: Number, b: Number) -> Number:
    """240240 times (the series of R_F at nearly equal arguments minus 1), through the seventh degree (DLMF 19.36.1)."""
    c = -a - b
    e2, e3 = a * b - c * c, a * b * c
    return e2 * (-24024 + e2 * (10010 - 5775 * e2)) + e3 * (17160 + 6930 * e3 + e2 * (15015 * e2 - 16380))


@kernel
def carlson_rf(x: Number, y: Number, z: Number) -> Number:
    """R_F(x, y, z) = 1/2 int_0^oo dt / sqrt((t+x)(t+y)(t+z)); at most one argument zero."""
    mean = (x + y + z) / 3
    for _ in range(SWEEPS):
        done = abs(mean - x) + abs(mean - y) + abs(mean - z) <= _eighth(x) * mean
        if all_lanes(done):
            break
        a, b, c = sqrt(x), sqrt(y), sqrt(z)
        shift = a * b + (a + b) * c
        x, y, z, mean = _quartered4(done, x, y, z, mean, shift)
    return (1 + _tail3(1 - x / mean, 1 - y / mean) / 240240) / sqrt(mean)


@kernel
def _tail5(a: Number, b: Number, c: Number, p: Number) -> Number:
    """4084080 times the series of R_J at nearly equal arguments, through the seventh degree (DLMF 19.36.2)."""
    e2 = a * b + a * c + b * c - 3 * p * p
    e3 = a * b * c + 2 * e2 * p + 4 * p * p * p
    e4 = (2 * a * b * c + e2 * p + 3 * p * p * p) * p
    e5 = a * b * c * p * p
    low = e2 * (-875160 + 417690 * e2 - 706860 * e3) + 680680 * e3 - 556920 * e4 + 471240 * e5
    high = e2 * (612612 * e4 - 540540 * e5 + e2 * (675675 * e3 - 255255 * e2)) + e3 * (306306 * e3 - 540540 * e4)
    return 4084080 + (low + high)


@kernel
def rc1(e: Number, f: Number) -> Number:
    """765765 R_C(1, f), f = 1 + e > 0; R_C is atan(sqrt e)/sqrt e, atanh(sqrt -e)/sqrt -e, sum (-e)^k/(2k+1)."""
    small = abs(e) < _eighth(e)
    one = 1 + 0 * e
    x = 85085 - e * (69615 - e * (58905 - e * (51051 - e * 45045)))
    x = 765765 - e * (255255 - e * (153153 - e * (109395 - e * x)))
    for _ in range(1):  # most of the time the series is enough
        if all_lanes(small):
            break
        r = sqrt(where(small, one, abs(e)))
        far = atan(r)
        for _ in range(1):
            if all_lanes(small | (e >= 0)):
                break
            far = where(e < 0, log((1 + r) * (1 + r) / where(e < 0, f, one)) / 2, far)
        x = where(small, x, 765765 * far / r)
    return x


@kernel
def carlson_rj(x: Number, y: Number, z: Number, p: Number) -> Number:
    """R_J(x, y, z, p) = 3/2 int_0^oo dt / ((t+p) sqrt((t+x)(t+y)(t+z))), p > 0, at most one of x, y, z zero."""
    mean = (x + y + z + 2 * p) / 5
    px, py, pz = p - x, p - y, p - z
    total, weight = 0 * mean, 1 + 0 * mean
    for _ in range(SWEEPS):
        done = abs(mean - x) + abs(mean - y) + abs(mean - z) + abs(mean - p) <= _eighth(x) * mean
        if all_lanes(done):
            break
        a, b, c, r = sqrt(x), sqrt(y), sqrt(z), sqrt(p)
        shift = a * b + (a + b) * c
        ra, rb, rc = r + a, r + b, r + c
        over = 1 / (ra * rb * rc)
        e = (px * over) * (py * over) * pz
        total = total + where(done, 0 * over, weight * over * rc1(e, 2 * r * (p + shift) * over))
        px, py, pz, weight = px / 4, py / 4, pz / 4, where(done, weight, weight / 4)
        p = _quartered(done, p, shift)
        x, y, z, mean = _quartered4(done, x, y, z, mean, shift)
    over = 1 / mean
    a, b, c = (mean - x) * over, (mean - y) * over, (mean - z) * over
    tail = weight * _tail5(a, b, c, -(a + b + c) / 2)
    return 2 * total / 255255 + tail / (4084080 * mean * sqrt(mean))
