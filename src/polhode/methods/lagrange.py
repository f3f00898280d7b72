"""The exact motion of the Lagrange top: its Cayley-Klein parameters as quotients of theta functions.

J. L. Lagrange, Mecanique analytique (1788); F. Klein and A. Sommerfeld, Ueber die Theorie des Kreisels (1897-1910),
who write each Cayley-Klein parameter as one quotient. Space and body are turned so that the potential is A g u with
g > 0, u = R33, and the body's third axis is that of symmetry; A and C are the moments across and along it. Then

    R = R_A exp(t (1/C - 1/A) m_3 e_3),   R_A the motion of the body with three moments A.

Of R_A, with omega = m/A, s = omega_3, p the vertical component of omega, x = 1 - u, y = 1 + u, and complex numbers
alpha = q0 + i q3, beta = q2 - i q1, w = omega_2 - i omega_1:

    |alpha|^2 = y/2,   |beta|^2 = x/2,   |w|^2 = 2 g (x - x_e),   x_e = x - |w|^2/(2g) a constant,
    arg alpha' = sigma/(2y),   arg beta' = delta/(2x),   arg w' = -s/2 - kappa/(2 (x - x_e)),
    sigma = p + s,   delta = p - s,   kappa = delta + s x_e,
    x'^2 = -delta^2 + 2b x + c x^2 - 2g x^3 = 2g (x_1 - x)(x - x_2)(x - x_3),   x_3 <= 0 <= x_2 <= x_1 <= 2.

So x = x_1 - (x_1 - x_2) sn^2 v, v' = lambda = sqrt(g (x_1 - x_3)/2), 1 - k^2 = (x_2 - x_3)/(x_1 - x_3), and with
z = pi v/(2K) each of the three is a constant times

    exp(i mu t) theta_4(z + iY)/theta_4(z)  (alpha),    exp(i mu t) theta_3(z + iY)/theta_4(z)  (beta, w).

A parameter that passes near or through zero is then nothing special: no angle is ever computed. From k^2 = 1/2 on
the theta functions are those of the complementary nome, and k = 1 (the top that takes for ever to stand up) is no
case of its own.

`motion` finds the constants; it subtracts without care and wants twice the digits of the result. `moved` is the
kernel: it takes the rates as unevaluated sums of two numbers, so that its error does not grow with time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..elliptic import Pair, carlson_rf, complete, nearest, pair_product, pair_sum, two_sum
from ..scalar import Number, Quat, State, Vec3, atan, atan2, cosh, epsilon, exp, kernel, sincos, sinh, sqrt, where
from ..so3 import mul, unrotate

NEWTON_SWEEPS = 200
"""More Newton steps than an isolated root of a cubic needs in 10^4 digits."""

Complex = tuple[Number, Number]


# --- the state at a time ----------------------------------------------------------------------------


@kernel
def _unwound(x: Pair) -> tuple[Number, Number]:
    """What is left of x beside the nearest whole number, and that number."""
    n = nearest(x[0])
    return (x[0] - n) + x[1], n


@kernel
def _waves(terms: Any, c: Number, s: Number) -> Complex:
    """sum a_n cos nx + i b_n sin nx, from cos x and sin x."""
    re, im = terms[0][0], 0 * c
    a, b = c, s
    for n in range(1, len(terms)):
        re, im = re + terms[n][0] * a, im + terms[n][1] * b
        a, b = a * c - b * s, b * c + a * s
    return re, im


@kernel
def circular(v: Pair, terms: Any, full: Number, length: Number, bounded: Number) -> Any:
    """Numerators and denominator for k^2 < 1/2, v in units of the period, and the whole periods passed."""
    r, n = _unwound(v)
    s, c = sincos(full * r)
    alpha, beta, w = _waves(terms[0], c, s), _waves(terms[1], c, s), _waves(terms[2], c, s)
    return n, alpha, beta, w, _waves(terms[3], c, s)[0]


@kernel
def _powers(terms: Any, up: Number, down: Number, first: Number, sign: Number) -> Complex:
    """sum (a_n + i sign b_n) up^n + first (c_n - i sign d_n) down^n."""
    re, im = 0 * up, 0 * up
    grow, fall = 1 + 0 * up, first
    for n in range(len(terms)):
        a, b, c, d = terms[n]
        re, im = re + (a * grow + c * fall), im + sign * (b * grow - d * fall)
        grow, fall = grow * up, fall * down
    return re, im


@kernel
def hyperbolic(v: Pair, terms: Any, full: Number, length: Number, bounded: Number) -> Any:
    """The same for k^2 >= 1/2, in the complementary nome q: theta functions of i z, z = length * v.

    All are multiplied by e = exp(-|z|); powers of q/e^2 = exp(2|z| - length) <= 1 replace the growing exponentials.
    Without a period (bounded = 0) there is no nome, and v is not reduced.
    """
    r, n = _unwound(v)
    finite = bounded > 0
    r, n = where(finite, r, v[0] + v[1]), where(finite, n, 0 * n)
    size, sign = abs(r), where(r < 0, -1 + 0 * r, 1 + 0 * r)
    e = exp(-length * size)
    up = where(finite, exp(-length * where(finite, 1 - 2 * size, 1 + size)), 0 * e)
    ee, one = e * e, 1 + 0 * e
    alpha = _powers(terms[0], up, ee, ee, sign)
    b, w = _powers(terms[1], up, ee, one, sign), _powers(terms[2], up, ee, one, sign)
    return n, alpha, (e * b[0], e * b[1]), (e * w[0], e * w[1]), _powers(terms[3], up, ee, ee, sign)[0]


@kernel
def _turned(turning: Any, elapsed: Pair, turns: Number, full: Number, z: Complex, over: Number) -> Complex:
    """z/over, turned by the phase (start, rate, step per period), which counts full turns."""
    start, rate, step = turning
    x = pair_sum(start, pair_sum(pair_product(rate, elapsed), pair_product(step, (turns, 0 * turns))))
    s, c = sincos(full * _unwound(x)[0])
    re, im = z[0] / over, z[1] / over
    return c * re - s * im, s * re + c * im


def moved(shape: Callable[..., Any]) -> Callable[..., State]:
    """Kernel: attitude and body momentum at the time t, from `circular` or `hyperbolic` and the constants."""

    @kernel
    def state(t: Number, about: Any) -> State:
        t0, (start, rate), turnings, terms, (full, length, bounded, spin), (left, right) = about
        elapsed = pair_sum(two_sum(t, -t0[0]), (-t0[1], 0 * t))
        v = pair_sum(start, pair_product(rate, elapsed))
        turns, alpha, beta, w, over = shape(v, terms, full, length, bounded)
        a = _turned(turnings[0], elapsed, turns, full, alpha, over)
        b = _turned(turnings[1], elapsed, turns, full, beta, over)
        m = _turned(turnings[2], elapsed, turns, full, w, over)
        q = mul(mul(left, (a[0], -b[1], b[0], a[1])), right)
        return q, unrotate(right, (-m[1], m[0], spin))

    return state


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
    """The outer simple root of f0 + f1 x + f2 x^2 + f3 x^3 next to a start beyond it, by Newton's method."""
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


def _clipped(x: Number) -> Number:
    """X, or zero where round-off made it negative."""
    return x if x > 0 else 0 * x


def _positive_roots(total: Number, product: Number) -> tuple[Number, Number, Number]:
    """Both roots r >= s >= 0 of given sum and product, and their difference."""
    half = sqrt(_clipped(total * total / 4 - product))
    r = _clipped(total / 2) + half
    return r, product / r if r > 0 else 0 * r, 2 * half


def _roots(g: Number, x: Number, y: Number, low: Any, high: Any) -> Roots:
    """Roots of x'^2, from the state (x, y) and the coefficients about u = 1 (low) and about u = -1 (high).

    The root further from the middle one is found by Newton's method, the others from their sum and product.
    """
    (delta, b, c), (sigma, b2, c2) = low, high
    cubic = (-delta * delta, 2 * b, c, -2 * g)
    middle = c / (6 * g)
    reach = sqrt(_clipped(middle * middle + b / (3 * g)))
    if cubic[0] + middle * (cubic[1] + middle * (cubic[2] + middle * cubic[3])) > 0:
        x1 = _root(cubic, middle + 2 * reach)
        y1 = 0 * x if sigma == 0 else _clipped(_root((-sigma * sigma, 2 * b2, c2, 2 * g), 2 - x1))
        product = delta * delta / (2 * g * x1)
        total = (product - b / g) / x1
        far = abs(total) / 2 + sqrt(total * total / 4 + product)
        near = product / far if far > 0 else far
        x2, x3 = (far, -near) if total > 0 else (near, -far)
        return Roots(x1, x2, x3, y1, 2 - x2, 2 - x3, x1 - x2)
    x3 = -_clipped(-_root(cubic, middle - 2 * reach))
    if -x3 > x:
        product = delta * delta / (-2 * g * x3)
        total = (b / g + product) / -x3
    else:
        total = c / (2 * g) - x3
        product = _clipped(-b / g - x3 * total)
    x1, x2, swing = _positive_roots(total, product)
    y3 = 2 - x3
    product = sigma * sigma / (2 * g * y3)
    y2, y1, other = _positive_roots((b2 / g - product) / y3, product)
    return Roots(x1, x2, x3, y1, y2, y3, swing if x < y else other)


# --- theta functions, to find the constants ---------------------------------------------------------


class Curve(NamedTuple):
    """Modulus, periods and the nome in use; `near` is k^2 >= 1/2."""

    m: Number
    m1: Number
    near: bool
    K: Number
    K1: Number
    q: Number
    rate: Number
    count: int


def _curve(roots: Roots, g: Number, count: int) -> Curve:
    span = roots.x1 - roots.x3
    one = 1 + 0 * span
    m, m1 = (roots.swing / span, (roots.x2 - roots.x3) / span) if span > 0 else (0 * span, one)
    m, m1 = (m, m1) if m < 1 else (one, _clipped(m1))
    rate = sqrt(g * span / 2)
    quarter = 2 * atan(one)
    near = m1 < one / 2
    small, large = (m1, m) if near else (m, m1)
    # the nome of the smaller of both; zero together with it
    short = complete(large) if large < 1 else quarter
    long = complete(small) if small > 0 else 0 * one
    q = exp(-2 * quarter * long / short) if small > 0 else 0 * one
    K, K1 = (long, short) if near else (short, long)
    return Curve(m, m1, near, K, K1, q, rate, count)


class Quotient(NamedTuple):
    """One of the three: how large and how fast it turns at its reference point, and where its zero is."""

    size: Number
    turning: Number
    """arg' at u = u_2 (alpha) or u = u_1 (beta, w)"""
    sense: Number
    sine: Number
    cosine: Number
    """sn^2 and cn^2 of Y's argument for the complementary modulus"""
    even: bool
    """theta_3 (beta, w) or theta_4 (alpha)"""


def _shift(of: Quotient, curve: Curve) -> Number:
    """Y = pi y/(2K), or near k = 1 pi y/(2K')."""
    unit = curve.K1 if curve.near else curve.K
    pi = 4 * atan(1 + 0 * unit)
    if curve.m <= 0 or curve.m1 <= 0 and of.even:
        return 0 * unit
    modulus = of.cosine + curve.m * of.sine
    y = sqrt(of.sine) * carlson_rf(of.cosine, modulus, 1 + 0 * unit) if modulus > 0 else curve.K1
    return (-1 if of.sense < 0 else 1) * pi * y / (2 * unit)


def _product(curve: Curve, Y: Number, n: int) -> tuple[Number, Number]:
    """q^(n^2) exp(2nY) and q^(n^2) exp(-2nY), without the quotient of two small numbers."""
    if curve.q <= 0:
        return curve.q, curve.q
    pi = 4 * atan(1 + 0 * Y)
    log = -pi * (curve.K / curve.K1 if curve.near else curve.K1 / curve.K)
    return exp(n * n * log + 2 * n * Y), exp(n * n * log - 2 * n * Y)


def _power(q: Number, n: int) -> Number:
    return q**n if n else 1 + 0 * q


class Series(NamedTuple):
    """The numerator of one quotient, ready for `moved`, and the same where the motion starts."""

    terms: tuple[Any, ...]
    rate: Number
    step: Number
    start: Complex
    slope: Complex


def _circular_series(of: Quotient, curve: Curve, z: Number) -> Series:
    """theta_3 or theta_4 of z + iY as sum a_n cos 2nz + i b_n sin 2nz, n <= count."""
    Y = _shift(of, curve)
    pairs = [_product(curve, Y, n) for n in range(1, curve.count)]
    sign = [(1 if of.even else -1) ** n for n in range(1, curve.count)]
    size = 1 + sum(a + b for a, b in pairs)
    plain = [2 * _power(curve.q, n * n) for n in range(1, curve.count)]
    base = 1 + sum(x * (-1) ** (n + 1) for n, x in enumerate(plain)) if of.even else 1 + sum(plain)
    f = of.size * base / size
    terms = ((f, 0 * f), *((f * i * (a + b), f * i * (b - a)) for i, (a, b) in zip(sign, pairs, strict=True)))
    angle = 2 * atan(1 + 0 * z) * curve.rate / curve.K
    rate = of.turning + angle * sum(2 * (n + 1) * (a - b) for n, (a, b) in enumerate(pairs)) / size
    re, im, dre, dim = f, 0 * f, 0 * f, 0 * f
    for n in range(1, curve.count):
        s, c = sincos(2 * n * z)
        a, b = terms[n]
        re, im, dre, dim = re + a * c, im + b * s, dre - 2 * n * a * s, dim + 2 * n * b * c
    return Series(terms, rate, 0 * rate, (re, im), (angle * dre, angle * dim))


def _hyperbolic_series(of: Quotient, curve: Curve, z: Number) -> Series:
    """theta_3 (beta, w) or theta_2 (alpha) of iz - Y: sums of powers of exp(2z), see `hyperbolic`."""
    Y, q, one = _shift(of, curve), curve.q, 1 + 0 * z
    turns = [sincos(2 * n * Y) for n in range(1, curve.count)]
    size = 1 + 2 * sum(_power(q, (n + 1) ** 2) * c for n, (_, c) in enumerate(turns))
    angle = 2 * atan(one) * curve.rate / curve.K1
    rate = of.turning - angle * sum(4 * (n + 1) * _power(q, (n + 1) ** 2) * s for n, (s, _) in enumerate(turns)) / size
    terms, re, im, dre, dim = [], 0 * z, 0 * z, 0 * z, 0 * z
    if of.even:
        base = 2 * sum(_power(q, n * n + n) for n in range(curve.count))
    else:
        base = 1 + 2 * sum(_power(q, n * n) for n in range(1, curve.count))
    f = of.size * base / size
    for n in range(curve.count):
        k = 2 * n if of.even else 2 * n + 1
        s, c = sincos(k * Y)
        if n == 0 and of.even:
            grow = fall = one / 2
        else:
            grow, fall = _power(q, n * n - n if of.even else n * n), _power(q, n * n if of.even else n * n + n)
        terms.append((f * grow * c, f * grow * s, f * fall * c, f * fall * s))
        weight = f * (fall if n or not of.even else one) * (1 if n == 0 or not of.even else 2)
        up, across = cosh(k * z), sinh(k * z)
        re, im = re + weight * up * c, im + weight * across * s
        dre, dim = dre + k * weight * across * c, dim + k * weight * up * s
    pi = 4 * atan(one)
    return Series(tuple(terms), rate, Y / pi, (re, im), (angle * dre, angle * dim))


# --- the constants of one motion --------------------------------------------------------------------


class Motion(NamedTuple):
    """Constants of `moved`: which shape, those wanted to twice the precision (turns), and the others."""

    near: bool
    travel: tuple[Number, Number]
    turnings: tuple[tuple[Number, Number, Number], ...]
    terms: tuple[Any, ...]
    numbers: tuple[Number, Number, Number, Number]


def _mixed(a: Complex, b: Complex) -> Complex:
    """A times the conjugate of b."""
    return a[0] * b[0] + a[1] * b[1], a[1] * b[0] - a[0] * b[1]


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _half(a: Complex, b: Complex) -> Complex:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def _start_angle(value: Complex, slope: Complex, made: Series, over: Series, rate: Number) -> Number:
    """The phase at the start: that of (value, slope) against the same two of the series.

    Both together, because one of them may vanish: the body that starts upright or hanging.
    """
    d, e = over.start[0], over.slope[0]
    real = (value[0] * d, value[1] * d)
    real_slope = (slope[0] * d + value[0] * e, slope[1] * d + value[1] * e)
    turn = (made.slope[0] - made.rate * made.start[1], made.slope[1] + made.rate * made.start[0])
    a, b = _mixed(real, made.start), _mixed(real_slope, turn)
    weight = 1 / (rate * rate) if rate > 0 else 1 + 0 * rate
    re, im = a[0] + weight * b[0], a[1] + weight * b[1]
    return atan2(im, re) if re != 0 or im != 0 else 0 * re


def _quotients(g: Number, roots: Roots, s: Number, ww: Number, x: Number, momenta: Any) -> tuple[Quotient, ...]:
    """alpha, beta and w of a motion (module docstring), A = 1."""
    sigma, delta, kappa = momenta
    zero = 0 * s
    x1, x2, x3, y1, y2, y3, _ = roots
    edge = x - ww / (2 * g)
    square = 2 * g * (x1 - edge)
    alpha = Quotient(sqrt(y2 / 2), sigma / (2 * y2) if y2 > 0 else zero, sigma, (x1 - x3) / y3, y1 / y3, False)
    width = x2 - x3
    if width <= 0:
        width, x2 = 1 + zero, 1 + x2
    beta = Quotient(sqrt(x1 / 2), delta / (2 * x1) if x1 > 0 else zero, delta, -x3 / width, x2 / width, True)
    above, below = _clipped(x2 - edge), _clipped(edge - x3)
    if square > 0:
        above, below = (kappa**2 / (square * below), below) if below > above else (above, kappa**2 / (square * above))
    turning = -s / 2 - (g * kappa / square if square > 0 else zero)
    w = Quotient(sqrt(_clipped(square)), turning, -kappa, below / width, above / width, True)
    return alpha, beta, w


def motion(q: Quat, m: Vec3, across: Number, along: Number, g: Number, digits: int) -> Motion:
    """The constants of a motion with the vertical and the body's axis third, potential `across` g R33, g > 0.

    `across` and `along` the axis are the moments (the latter zero for a linear body); the result is good to
    `digits` if the numbers have more than twice as many.
    """
    alpha, beta, w, s = (q[0], q[3]), (q[2], -q[1]), (m[1] / across, -m[0] / across), m[2] / across
    x, y = 2 * (beta[0] ** 2 + beta[1] ** 2), 2 * (alpha[0] ** 2 + alpha[1] ** 2)
    ww = w[0] ** 2 + w[1] ** 2
    still = x == 0 and ww == 0
    fall, lean = (2 * part for part in _times(w, _mixed(alpha, beta)))
    sigma, delta, kappa = lean + s * y, lean - s * x, lean - s * ww / (2 * g)
    low = (delta, ww - 2 * g * x - s * delta, 4 * g - s * s - ww + 2 * g * x)
    high = (sigma, ww + 2 * g * y + s * sigma, -4 * g - s * s - ww - 2 * g * y)
    two = 2 + 0 * s
    roots = Roots(x, x, x, two, two, two, x) if still else _roots(g, x, y, low, high)
    count = 2 + math.isqrt(1 + math.ceil((digits * math.log(10) + 2) / math.pi))
    curve = _curve(roots, g, count)
    v = 0 * s
    if roots.swing > 0:
        from_low, from_high = (roots.x1 - x, x - roots.x2) if x < y else (y - roots.y1, roots.y2 - y)
        sine, cosine = (min(_clipped(d) / roots.swing, 1 + 0 * s) for d in (from_low, from_high))
        steep = _clipped(x - roots.x3) / (roots.x1 - roots.x3)
        v = (1 if fall <= 0 else -1) * sqrt(sine) * carlson_rf(cosine, steep, 1 + 0 * s)
    bounded = curve.K > 0
    pi = 4 * atan(1 + 0 * s)
    z = pi * v / (2 * (curve.K1 if curve.near else curve.K))
    series = _hyperbolic_series if curve.near else _circular_series
    one = 1 + 0 * s
    over = series(Quotient(one, 0 * s, 0 * s, 0 * s, one, False), curve, z)
    made = [series(of, curve, z) for of in _quotients(g, roots, s, ww, x, (sigma, delta, kappa))]
    values = (alpha, beta, w)
    bar = (w[0], -w[1])
    slopes = (
        _half(_times((0 * s, s), alpha), _times((-beta[0], -beta[1]), bar)),
        _half(_times(alpha, w), _times((0 * s, -s), beta)),
        tuple(2 * g * part for part in _mixed(beta, alpha)),
    )
    spin = (m[2] / along if along > 0 else 0 * s) - s
    turnings = tuple(
        (_start_angle(a, b, c, over, curve.rate) / (2 * pi), (c.rate + extra * spin / 2) / (2 * pi), c.step / 1)
        for a, b, c, extra in zip(values, slopes, made, (1, -1, -2), strict=True)
    )
    period = 2 * curve.K if bounded else one
    travel = (v / period, curve.rate / period) if bounded else (z, pi * curve.rate / (2 * curve.K1))
    length = pi * curve.K / curve.K1 if bounded and curve.near else one
    terms = (made[0].terms, made[1].terms, _scaled(across, made[2].terms), over.terms)
    return Motion(curve.near, travel, turnings, terms, (2 * pi, length, one if bounded else 0 * one, m[2]))


def _scaled(f: Number, terms: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(f * x for x in term) for term in terms)
