"""Constants of the motion of a Lagrange top (notation and equations: `lagrange_top`).

They are computed once for a motion, by plain functions on numbers of any type. Cancellation is handled by extra digits:
nearly double roots lose half of the digits, so a result in doubles or in n digits needs a call of `motion` with
more than twice as many. The distances from upright and hanging, which may be arbitrarily small, keep their relative
precision.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...kernels.elliptic import carlson_rf, complete
from ...numbers.primitives import atan, atan2, cosh, epsilon, exp, sincos, sinh, sqrt
from ...numbers.types import Number, Quat, Vec3
from .lagrange_top import Complex

NEWTON_SWEEPS = 200
"""More Newton steps than an isolated root of a cubic needs in 10^4 digits."""


def _clipped(x: Number) -> Number:
    """Return x, or zero if round-off made it negative."""
    return x if x > 0 else 0 * x


def _over(x: Number, y: Number) -> Number:
    """x/y, or zero if y is zero: the rate of a quantity that vanishes."""
    return x / y if y > 0 else 0 * y


def _times(a: Complex, b: Complex) -> Complex:
    """The product a b."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _against(a: Complex, b: Complex) -> Complex:
    """A times the conjugate of b."""
    return a[0] * b[0] + a[1] * b[1], a[1] * b[0] - a[0] * b[1]


# --- the start --------------------------------------------------------------------------------------


class Start(NamedTuple):
    """A state of the body with three moments A, and its conserved quantities."""

    g: Number
    s: Number
    alpha: Complex
    beta: Complex
    w: Complex
    x: Number
    y: Number
    ww: Number
    """|w|^2 = 2 g (x - x_e)"""
    rise: Number
    """u'"""
    sigma: Number
    delta: Number
    kappa: Number

    @property
    def upright(self) -> bool:
        """Whether the body is upright and at rest there, stable or not."""
        return bool(self.x == 0 and self.ww == 0)

    @property
    def low(self) -> bool:
        """Whether the body is nearer to hanging than to upright."""
        return bool(self.y <= self.x)

    def cubic(self) -> tuple[Number, Number, Number, Number]:
        """Coefficients of x'^2 in x = 1 - u."""
        g, s = self.g, self.s
        b = self.ww - 2 * g * self.x - s * self.delta
        return -self.delta * self.delta, 2 * b, 4 * g - s * s - self.ww + 2 * g * self.x, -2 * g

    def cubic_below(self) -> tuple[Number, Number, Number, Number]:
        """Coefficients of the same in y = 1 + u."""
        g, s = self.g, self.s
        b = self.ww + 2 * g * self.y + s * self.sigma
        return -self.sigma * self.sigma, 2 * b, -4 * g - s * s - self.ww - 2 * g * self.y, 2 * g

    def slopes(self) -> tuple[Complex, Complex, Complex]:
        """Derivatives of alpha, beta, w: q' = q (0, omega)/2 and omega' = g (R^T e_3) x e_3."""
        a, b, w, turn = self.alpha, self.beta, self.w, (0 * self.s, self.s)
        ahead, across, pull = _times(turn, a), _against(b, w), _against(b, a)
        kick, back = _times(a, w), _times(turn, b)
        return (
            ((ahead[0] - across[0]) / 2, (ahead[1] - across[1]) / 2),
            ((kick[0] - back[0]) / 2, (kick[1] - back[1]) / 2),
            (2 * self.g * pull[0], 2 * self.g * pull[1]),
        )


def _start(q: Quat, m: Vec3, across: Number, g: Number) -> Start:
    """Build the start from attitude and body momentum; p - s and p + s without subtracting p and s."""
    alpha, beta, w, s = (q[0], q[3]), (q[2], -q[1]), (m[1] / across, -m[0] / across), m[2] / across
    x, y = 2 * (beta[0] ** 2 + beta[1] ** 2), 2 * (alpha[0] ** 2 + alpha[1] ** 2)
    ww = w[0] ** 2 + w[1] ** 2
    fall, lean = _times(w, _against(alpha, beta))
    sigma, delta, kappa = 2 * lean + s * y, 2 * lean - s * x, 2 * lean - s * ww / (2 * g)
    return Start(g, s, alpha, beta, w, x, y, ww, -2 * fall, sigma, delta, kappa)


# --- roots ------------------------------------------------------------------------------------------


class Roots(NamedTuple):
    """Roots in x = 1 - u and, to their own relative precision, in y = 1 + u; `swing` is x_1 - x_2."""

    x1: Number
    x2: Number
    x3: Number
    y1: Number
    y2: Number
    y3: Number
    swing: Number


def _root(f: tuple[Number, Number, Number, Number], x: Number) -> Number:
    """Outer root of f0 + f1 x + f2 x^2 + f3 x^3 by Newton's method, from a start beyond it."""
    before = abs(x) + 1
    for _ in range(NEWTON_SWEEPS):
        value = f[0] + x * (f[1] + x * (f[2] + x * f[3]))
        slope = f[1] + x * (2 * f[2] + x * 3 * f[3])
        if value == 0 or slope == 0:
            break
        d = value / slope
        x = x - d
        if abs(d) <= 4 * epsilon(x) * abs(x) or (2 * abs(d) >= before and abs(d) <= 1024 * epsilon(x) * abs(x)):
            break
        before = abs(d)
    return x


def _positive_roots(total: Number, product: Number) -> tuple[Number, Number, Number]:
    """Return the roots r >= s >= 0 with the given sum and product, and their difference."""
    half = sqrt(_clipped(total * total / 4 - product))
    r = _clipped(total / 2) + half
    return r, _over(product, r), 2 * half


def roots_of(start: Start) -> Roots:
    """Roots of x'^2: the one farther from the middle root by Newton's method, the others by sum and product."""
    if start.upright:
        two = 2 + 0 * start.x
        return Roots(start.x, start.x, start.x, two, two, two, start.x)
    f = start.cubic()
    middle = -f[2] / (3 * f[3])
    reach = sqrt(_clipped(middle * middle - f[1] / (3 * f[3])))
    if f[0] + middle * (f[1] + middle * (f[2] + middle * f[3])) > 0:
        return _roots_from_x1(start, _root(f, middle + 2 * reach))
    return _roots_from_x3(start, -_clipped(-_root(f, middle - 2 * reach)))


def _roots_from_x1(start: Start, x1: Number) -> Roots:
    f, below = start.cubic(), start.cubic_below()
    y1 = start.sigma * 0 if start.sigma == 0 else _clipped(_root(below, 2 - x1))
    product = f[0] / f[3] / x1
    total = (product + f[1] / f[3]) / x1
    far = abs(total) / 2 + sqrt(total * total / 4 + product)
    near = _over(product, far)
    x2, x3 = (far, -near) if total > 0 else (near, -far)
    return Roots(x1, x2, x3, y1, 2 - x2, 2 - x3, x1 - x2)


def _roots_from_x3(start: Start, x3: Number) -> Roots:
    f, below, y3 = start.cubic(), start.cubic_below(), 2 - x3
    if -x3 > start.x:
        product = f[0] / f[3] / -x3
        total = (product - f[1] / f[3]) / -x3
    else:
        total = -f[2] / f[3] - x3
        product = _clipped(f[1] / f[3] - x3 * total)
    x1, x2, swing = _positive_roots(total, product)
    product = -below[0] / below[3] / y3
    y2, y1, other = _positive_roots((below[1] / below[3] - product) / y3, product)
    return Roots(x1, x2, x3, y1, y2, y3, other if start.low else swing)


# --- the elliptic curve -----------------------------------------------------------------------------


class Curve(NamedTuple):
    """Modulus, periods, nome and rate; `near` is k^2 > 1/2, and then the nome is the complementary one."""

    m: Number
    m1: Number
    near: bool
    K: Number
    """zero if it is infinite"""
    K1: Number
    nome_log: Number
    """log q, zero if q is zero"""
    rate: Number
    """lambda"""
    length: int
    """terms of a theta series"""

    @property
    def unit(self) -> Number:
        """Quarter period in z = pi v/(2 unit)."""
        return self.K1 if self.near else self.K

    @property
    def angle(self) -> Number:
        """The rate of z."""
        return 2 * atan(1 + 0 * self.unit) * self.rate / self.unit

    def power(self, n: int, more: Number = 0) -> Number:
        """q^n exp(more)."""
        if n == 0:
            return exp(more + 0 * self.rate)
        return exp(n * self.nome_log + more) if self.nome_log < 0 else 0 * self.rate


def curve_of(roots: Roots, g: Number, digits: int) -> Curve:
    """Curve of a motion, with enough terms: q^(n^2 - n) is below 10^-digits where the series end, q <= e^-pi."""
    span = roots.x1 - roots.x3
    one, zero = 1 + 0 * span, 0 * span
    m, m1 = (roots.swing / span, (roots.x2 - roots.x3) / span) if span > 0 else (zero, one)
    m, m1 = min(m, one), min(m1, one)
    near = bool(2 * m1 < 1)
    small, large = (m1, m) if near else (m, m1)
    pi = 4 * atan(one)
    short, long = complete(large), complete(small) if small > 0 else zero
    K, K1 = (long, short) if near else (short, long)
    length = 2 + math.isqrt(1 + math.ceil((digits * math.log(10) + 2) / math.pi))
    return Curve(m, m1, near, K, K1, -pi * long / short, sqrt(g * span / 2), length)


def argument_of(start: Start, roots: Roots) -> Number:
    """Return v at the start, |v| <= K, from sn^2, cn^2, dn^2."""
    one = 1 + 0 * start.x
    if roots.swing <= 0:
        return 0 * one
    x, y = start.x, start.y
    down, up = (y - roots.y1, roots.y2 - y) if start.low else (roots.x1 - x, x - roots.x2)
    sine, cosine = min(_clipped(down) / roots.swing, one), min(_clipped(up) / roots.swing, one)
    v = sqrt(sine) * carlson_rf(cosine, _clipped(x - roots.x3) / (roots.x1 - roots.x3), one)
    return v if start.rise >= 0 else -v


# --- the three quotients ----------------------------------------------------------------------------


class Quotient(NamedTuple):
    """alpha, beta or w: its size and its rotation rate at u_2 (alpha) or u_1 (beta, w), and its zero.

    The zero is at z = -iY up to a multiple of pi/2; Y = pi y/(2 unit) has the sign `sense`, and `sine`, `cosine` are
    sn^2 y and cn^2 y for the complementary modulus. `even`: the numerator is theta_3 (beta, w), not theta_4.
    """

    size: Number
    turning: Number
    sense: Number
    sine: Number
    cosine: Number
    even: bool


def quotients_of(start: Start, roots: Roots) -> tuple[Quotient, Quotient, Quotient]:
    """alpha, beta and w of a motion."""
    g, x1, x2, x3, y1, y2, y3 = start.g, *roots[:6]
    one = 1 + 0 * g
    width = x2 - x3 if x2 > x3 else one
    lift = start.ww / (2 * g)  # x - x_e
    first, second = (start.y - y1, start.y - y2) if start.low else (x1 - start.x, x2 - start.x)
    square = 2 * g * _clipped(first + lift)
    above, below, edge = _clipped(second + lift), _clipped((start.x - x3) - lift), _over(start.kappa**2, square)
    above, below = (_over(edge, below), below) if below > above else (above, _over(edge, above))
    turning = -start.s / 2 - _over(g * start.kappa, square)
    return (
        Quotient(sqrt(y2 / 2), _over(start.sigma, 2 * y2), start.sigma, (x1 - x3) / y3, y1 / y3, False),
        Quotient(sqrt(x1 / 2), _over(start.delta, 2 * x1), start.delta, -x3 / width, x2 / width, True),
        Quotient(sqrt(square), turning, -start.kappa, below / width, above / width, True),
    )


def _shift(of: Quotient, curve: Curve) -> Number:
    """Y, or zero if it does not matter: without nutation, and for beta and w on the separatrix."""
    one = 1 + 0 * of.sine
    if curve.m <= 0 or (curve.m1 <= 0 and of.even):
        return 0 * one
    y = sqrt(of.sine) * carlson_rf(of.cosine, of.cosine + curve.m * of.sine, one)
    Y = 2 * atan(one) * y / curve.unit
    return -Y if of.sense < 0 else Y


class Series(NamedTuple):
    """A numerator for `lagrange_top.state_kernel`, its phase, and its value and slope at the start of the motion."""

    terms: tuple[Any, ...]
    rate: Number
    step: Number
    start: Complex
    slope: Complex


def _circular(of: Quotient, curve: Curve, z: Number) -> Series:
    """theta_3 or theta_4 of z + iY: sum a_n cos 2nz + i b_n sin 2nz."""
    Y, n_max = _shift(of, curve), range(1, curve.length)
    pairs = [(curve.power(n * n, 2 * n * Y), curve.power(n * n, -2 * n * Y)) for n in n_max]
    whole = 1 + sum(a + b for a, b in pairs)
    sign = 1 if of.even else -1
    f = of.size * (1 + 2 * sum((-sign) ** n * curve.power(n * n) for n in n_max)) / whole
    waves = [(f * sign**n * (a + b), f * sign**n * (b - a)) for n, (a, b) in zip(n_max, pairs, strict=True)]
    rate = of.turning + curve.angle * sum(2 * n * (a - b) for n, (a, b) in zip(n_max, pairs, strict=True)) / whole
    re, im, dre, dim = f, 0 * f, 0 * f, 0 * f
    for n, (a, b) in zip(n_max, waves, strict=True):
        s, c = sincos(2 * n * z)
        re, im, dre, dim = re + a * c, im + b * s, dre - 2 * n * a * s, dim + 2 * n * b * c
    return Series(((f, 0 * f), *waves), rate, 0 * f, (re, im), (curve.angle * dre, curve.angle * dim))


def _hyperbolic(of: Quotient, curve: Curve, z: Number) -> Series:
    """theta_3 (beta, w) or theta_2 (alpha) of iz - Y: powers of exp(2z), scaled as in `lagrange_top.hyperbolic`."""
    Y, n_max, power = _shift(of, curve), range(1, curve.length), curve.power
    turns = [sincos(2 * n * Y) for n in n_max]
    whole = 1 + 2 * sum(power(n * n) * c for n, (_, c) in zip(n_max, turns, strict=True))
    drift = 4 * sum(n * power(n * n) * s for n, (s, _) in zip(n_max, turns, strict=True)) / whole
    if of.even:
        f = of.size * 2 * sum(power(n * n + n) for n in range(curve.length)) / whole
    else:
        f = of.size * (1 + 2 * sum(power(n * n) for n in n_max)) / whole
    terms, re, im, dre, dim = [], 0 * z, 0 * z, 0 * z, 0 * z
    for n in range(curve.length):
        k, grow, fall = (2 * n, n * n - n, n * n) if of.even else (2 * n + 1, n * n, n * n + n)
        half = 2 if of.even and n == 0 else 1  # the constant of theta_3 occurs in both sums
        s, c = sincos(k * Y)
        up, down = f * power(grow) / half, f * power(fall) / half
        terms.append((up * c, up * s, down * c, down * s))
        re, im = re + down * cosh(k * z) * c, im + down * sinh(k * z) * s
        dre, dim = dre + k * down * sinh(k * z) * c, dim + k * down * cosh(k * z) * s
    rate = of.turning - curve.angle * drift
    return Series(tuple(terms), rate, Y / (4 * atan(1 + 0 * Y)), (re, im), (curve.angle * dre, curve.angle * dim))


def _phase(value: Complex, slope: Complex, made: Series, over: Series, rate: Number) -> Number:
    """Phase at the start: of (value, slope) times the denominator, relative to value and slope of the numerator.

    Both are used, because one of them may vanish: alpha of a body that starts hanging, beta of one that starts upright.
    """
    d, e = over.start[0], over.slope[0]
    scaled = (slope[0] * d + value[0] * e, slope[1] * d + value[1] * e)
    turned = (made.slope[0] - made.rate * made.start[1], made.slope[1] + made.rate * made.start[0])
    a, b = _against((value[0] * d, value[1] * d), made.start), _against(scaled, turned)
    weight = _over(1 + 0 * rate, rate * rate)
    re, im = a[0] + weight * b[0], a[1] + weight * b[1]
    return atan2(im, re) if re != 0 or im != 0 else 0 * re


# --- all of it --------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """Constants of `lagrange_top.state_kernel`: first those needed to twice the precision, in turns and periods."""

    near: bool
    travel: tuple[Number, Number]
    """v at the start and its rate, in periods 2K"""
    turnings: tuple[tuple[Number, Number, Number], ...]
    """phases of alpha, beta, w: start, rate, step per period"""
    terms: tuple[Any, ...]
    numbers: tuple[Number, Number, Number, Number]
    """2 pi, length, bounded, m_3"""


def motion(q: Quat, m: Vec3, across: Number, along: Number, g: Number, digits: int) -> Motion:
    """Constants of the motion from attitude q and body momentum m, to `digits` if the numbers have twice as many.

    `across` and `along` are the moments perpendicular to and along the body's third axis (`along` is zero for a linear
    body); U = across g R33.
    """
    start = _start(q, m, across, g)
    roots = roots_of(start)
    curve, v = curve_of(roots, g, digits), argument_of(start, roots)
    one = 1 + 0 * start.s
    pi = 4 * atan(one)
    z = pi * v / (2 * curve.unit)
    series = _hyperbolic if curve.near else _circular
    over = series(Quotient(one, 0 * one, one, 0 * one, one, False), curve, z)
    made = [series(of, curve, z) for of in quotients_of(start, roots)]
    values = zip((start.alpha, start.beta, start.w), start.slopes(), made, strict=True)
    phases = [_phase(value, slope, above, over, curve.rate) for value, slope, above in values]
    spin = _over(m[2], along) - start.s
    rates = (made[0].rate + spin / 2, made[1].rate - spin / 2, made[2].rate - spin)
    turns = zip(phases, rates, made, strict=True)
    turnings = tuple((phase / (2 * pi), rate / (2 * pi), above.step) for phase, rate, above in turns)
    bounded = curve.K > 0
    travel = (v / (2 * curve.K), curve.rate / (2 * curve.K)) if bounded else (z, curve.angle)
    length = pi * curve.K / curve.K1 if bounded and curve.near else one
    momentum = tuple(tuple(across * x for x in term) for term in made[2].terms)
    terms = (made[0].terms, made[1].terms, momentum, over.terms)
    return Motion(curve.near, travel, turnings, terms, (2 * pi, length, one if bounded else 0 * one, m[2]))
