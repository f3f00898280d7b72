"""The exact motion of the free body: elliptic functions for the momentum, a third-kind integral for the attitude.

C. G. J. Jacobi, Sur la rotation d'un corps (1850). The axes are labelled a, b, c: b has the intermediate moment and the
momentum circulates about a. The formulas are in the docstring of the method, at the end of this file. The names are the
same, with y for the momentum, alpha, beta and gamma multiplied by the moments, and psi the angle by which the body axis
j (the one of a and c that stays farther from the momentum) rotates about the momentum.
"""

from __future__ import annotations

import math
from typing import Any

from ...kernels.elliptic import carlson_rj, jacobi_reduced, modulus, odd, rc1, reduced, third_sums
from ...kernels.so3 import conj, mul, norm
from ...numbers.dispatch import kernel
from ...numbers.double_double import Pair, leading, nearest, pair_product, pair_sum, two_sum
from ...numbers.primitives import atan, sincos, sqrt, where
from ...numbers.types import Number, State, Vec3
from ..exact.free_series import with_slopes
from ..flows import kinetic
from ..record import Term
from ..registry import method

# --- axes -------------------------------------------------------------------------------------------


@kernel
def _first(swap: Any, v: Vec3) -> Vec3:
    """Exchange the first two numbers of a triple if `swap`."""
    return (where(swap, v[1], v[0]), where(swap, v[0], v[1]), v[2])


@kernel
def _last(swap: Any, v: Vec3) -> Vec3:
    """Exchange the last two numbers of a triple if `swap`."""
    return (v[0], where(swap, v[2], v[1]), where(swap, v[1], v[2]))


@kernel
def _outer(swap: Any, v: Vec3) -> Vec3:
    """Exchange the first and the last number of a triple if `swap`."""
    return (where(swap, v[2], v[0]), v[1], where(swap, v[0], v[2]))


@kernel
def _back(order: Any, v: Vec3) -> Vec3:
    """Convert a vector from the labels c, b, a to the axes of the body."""
    return _first(order[0], _last(order[1], _first(order[2], _outer(order[3], v))))


@kernel
def _sign(negative: Any, like: Number) -> Number:
    """-1 if `negative`, else 1."""
    return where(negative, -1 + 0 * like, 1 + 0 * like)


@kernel
def _largest(v: Vec3) -> Number:
    """Largest absolute value of three numbers."""
    a, b, c = abs(v[0]), abs(v[1]), abs(v[2])
    d = where(a > b, a, b)
    return where(c > d, c, d)


@kernel
def _term(i: Number, j: Number, k: Number, y: Number) -> Pair:
    """I (j - k) y^2, to twice the precision."""
    zero = 0 * y
    square = pair_product((y, zero), (y, zero))
    return pair_product(pair_product((i, zero), two_sum(j, -k)), square)


@kernel
def _over(x: Number, y: Number, otherwise: Number) -> Number:
    """x/y, or `otherwise` if y is zero."""
    zero = y == 0
    return where(zero, otherwise, x / where(zero, 1 + y, y))


@kernel
def _inverse(x: Number) -> Number:
    """1/x, or zero if x is zero."""
    return _over(1 + 0 * x, x, 0 * x)


@kernel
def _tilted(x: Number, y: Number, z: Number, m: Number) -> Any:
    """Quaternion that turns the third axis to (x, y, z), |(x, y, z)| = m: by theta about 2, then phi about 3."""
    r = sqrt(x * x + y * y)
    c, d = r + x, m + z  # (c, y) and (d, r) point to half the angles; if they vanish, the angle is zero
    first, second = c * c + y * y, d * d + r * r
    c, first = where(first == 0, 1 + first, c), where(first == 0, 1 + first, first)
    d, second = where(second == 0, 1 + second, d), where(second == 0, 1 + second, second)
    over = 1 / sqrt(first * second)
    c, y = c * over, y * over
    return (c * d, -y * r, c * r, y * d)


# --- one motion -------------------------------------------------------------------------------------


@kernel
def _swept(s: Number, c: Number, n: Number, m1: Number, near: Any) -> Number:
    """G = int_0^u sn^2/(1 + n sn^2) du from sn and cn >= 0, or near k = 1 the bounded P = u - (1 + n) G.

    With p = 1 + n sn^2 and q = cn^2 + m1 sn^2/(1 + n) (DLMF 19.21.12)

        G = sn^3/3 R_J(cn^2, dn^2, 1, p),   P = sn cn R_C(dn^2, p q) + sn^3 m1/(3 + 3n) R_J(cn^2, dn^2, 1, q),

    where dn^2 = cn^2 + m1 sn^2: then the error of cn does not affect P near the intermediate axis, where cn is small.
    R_C(dn^2, p q) = R_C(1, 1 + e)/dn with e dn^2 = p q - dn^2 = n sn^2 cn^2 (1 - m1/(1 + n)), so that 0 <= e <= n.
    """
    one = 1 + 0 * s
    x, rest = c * c, m1 * s * s
    lost = x + rest <= 0
    x = where(lost, one, x)
    y, p = x + rest, 1 + n * s * s
    third = 1 / (3 + 3 * n)
    share = 3 * third * m1
    q = where(near, x + 3 * third * rest, p)
    rj = s * s * s * third * where(near, m1, 1 + n) * carlson_rj(x, y, one, q)
    over = 1 / sqrt(y)
    e = n * s * s * (1 - share) * (x * over * over)
    return where(near, s * where(lost, one, c) * over * rc1(e, 1 + e) / 765765 + rj, rj)


@kernel
def _addition(s0: Number, s1: Number, after: Any, n: Number, m1: Number, near: Any) -> Number:
    """F(u0 + v) - F(u0) - F(v) for the F of `_swept`, from sn u0, sn v and (sn, cn, dn)(u0 + v), |u0| and |v| <= K.

    With d = n (1 + n) (n + k^2) and x = sn u0 sn v sn(u0+v) / (1 + n sn^2(u0+v) - n sn u0 sn v cn(u0+v) dn(u0+v))

        G(u0 + v) - G(u0) - G(v) = atan(sqrt(d) x) / sqrt(d) = x R_C(1, 1 + d x^2)

    (Byrd and Friedman, Handbook of elliptic integrals, 116.03), and P has -(1 + n) times as much. In these ranges the
    denominator of x is at least 1: sn u0 sn v cn(u0+v) is positive only if both are smaller than |sn(u0+v)|.
    """
    ss, cs, ds = after
    x = s0 * s1 * ss / (1 + n * (ss * ss - s0 * s1 * cs * ds))
    e = n * (1 + n) * (n + (1 - m1)) * x * x
    return where(near, -(1 + n), 1 + 0 * n) * x * rc1(e, 1 + e) / 765765


@kernel
def _half_turn(n: Number, m1: Number, curve: Any) -> Number:
    """Value of `_swept` for sn = 1, cn = 0, by the means of 1 and sqrt(m1); zero if K is infinite."""
    total, rest = third_sums(where(m1 > 0, m1, 1 + m1), 1 + n)
    return curve[5] / 2 * where(curve[0], rest, total / (1 + n))


@kernel
def motion(m: Vec3, inertia: Vec3) -> Any:
    """Compute the constants of a free motion from the body momentum and the moments.

    Momentum and moments are first divided by powers of two, so that no square overflows or underflows; the
    discriminant gamma y_a^2 - alpha y_c^2 is computed to twice the precision.
    """
    size, weight = leading(_largest(m)), leading(_largest(inertia))
    size = where(size > 0, size, 1 + size)
    y = (m[0] / size, m[1] / size, m[2] / size)
    i = (inertia[0] / weight, inertia[1] / weight, inertia[2] / weight)
    s1 = i[0] > i[1]
    i, y = _first(s1, i), _first(s1, y)
    s2 = i[1] > i[2]
    i, y = _last(s2, i), _last(s2, y)
    s3 = i[0] > i[1]
    i, y = _first(s3, i), _first(s3, y)
    more, less = _term(i[0], i[2], i[1], y[2]), _term(i[2], i[1], i[0], y[0])
    gap = pair_sum(more, (-less[0], -less[1]))[0]
    s4 = gap < 0
    i, y = _outer(s4, i), _outer(s4, y)
    gap = abs(gap)
    order = (s1, s2, s3, s4)
    tau = _sign(s4, gap)
    hand = -_sign(s1, gap) * _sign(s2, gap) * _sign(s3, gap) * tau

    (ic, ib, ia), (yc, yb, ya) = i, y
    zero = 0 * gap
    alpha, beta, gamma = ia * abs(ib - ic), ib * abs(ic - ia), ic * abs(ia - ib)
    per_beta, per_gamma = _inverse(beta), _inverse(gamma)
    ratio = where(gamma == 0, 1 + zero, beta * per_gamma)
    share = where(beta == 0, 1 + zero, gamma * per_beta)
    aa = ya * ya + alpha * per_beta * yb * yb
    bb = yb * yb + ratio * yc * yc
    cc = share * bb
    total = norm(y)
    a, b, c = sqrt(aa), sqrt(bb), sqrt(cc)
    per_a, per_b, steep = _inverse(a), _inverse(b), where(share == 0, zero, sqrt(ratio))
    m1 = _over(where(gamma > 0, gap, ya * ya), where(gamma > 0, gamma, 1 + zero) * aa, 1 + zero)
    m1 = where(m1 < 1, m1, 1 + zero)
    curve = modulus(m1)

    up = _sign(ya < 0, gap)
    way = -hand * tau * up
    speed = way * a / ia * sqrt(_over(abs(ic - ia) * abs(ia - ib), ib * ic, zero)) * (size / weight)

    sn, cn = yb * per_b, where(b == 0, 1 + zero, yc * steep * per_b)
    dn = where(a == 0, 1 + zero, abs(ya) * per_a)
    fold = _sign(cn < 0, gap)
    sn, cn = fold * sn, fold * cn

    flat = cc <= aa
    n = where(flat, cc * per_a * per_a, alpha * per_gamma)
    sheer = where(flat, n, -n) * steep * tau * way * (total * per_a)
    steady = total * (size / weight) * _over(1 + zero, where(flat, ia, ic), zero)
    hand = where(flat, up * hand, -hand)

    whole = _half_turn(n, m1, curve)
    left = _tilted(where(flat, abs(ya), fold * yc), where(flat, yb, fold * yb), where(flat, yc, ya), total)
    return (
        order, curve, (size, total, a, b, c), (sn, cn, dn), (up, fold, hand, flat), (speed, steady, sheer, n),
        whole, left,
    )  # fmt: skip


@kernel
def state_after(h: Number, about: Any) -> State:
    """Return the rotation since the start (a quaternion in body axes) and the body momentum a time h later."""
    order, curve, (size, total, a, b, c), (s0, c0, d0), (up, fold, hand, flat), rates, whole, left = about
    speed, steady, sheer, n = rates
    u = speed * h
    v, turns = reduced(u, curve)
    s1, c1, d1 = jacobi_reduced(v, curve)
    swept = 2 * turns * whole + _swept(s1, c1, n, curve[7], curve[0])
    small = where(c1 > d0, c1, d0)
    none = small == 0
    over = 1 / where(none, 1 + small, small)
    c1, d0 = where(none, 1 + small, c1 * over), where(none, small, d0 * over)
    over = small * (c1 * c1 + s1 * s1 * d0 * d0)
    none = over == 0
    over = 1 / where(none, 1 + over, over)
    ss = where(none, s0, (s0 * c1 * d1 + s1 * c0 * d0) * over)
    cs = where(none, c0, (c0 * c1 - s0 * d0 * s1 * d1) * over)
    ds = where(none, small, (d0 * d1 - (1 - curve[7]) * s0 * c0 * s1 * c1) * over)
    swept = swept + _addition(s0, s1, (ss, cs, ds), n, curve[7], curve[0])
    swept = where(curve[0], (u - swept) / (1 + n), swept)

    beyond = cs < 0
    turns = turns + where(beyond, _sign(v < 0, v), 0 * v)
    flip = _sign(beyond, v)
    ss, cs = flip * ss, flip * cs

    half = (steady * h + sheer * swept) / 2
    sine, cosine = sincos(half)
    middle = (cosine, 0 * half, 0 * half, hand * sine)

    sense = fold * _sign(odd(turns), v)
    ya, yb, yc = up * a * ds, sense * b * ss, sense * c * cs
    right = _tilted(where(flat, a * ds, c * cs), where(flat, yb, b * ss), where(flat, yc, ya), total)
    quarter = turns - 4 * nearest(turns / 4)
    quarter = where(flat, 0 * quarter, quarter)
    uneven = odd(quarter)
    wound = (
        where(uneven, 0 * v, where(quarter == 0, 1 + 0 * v, -1 + 0 * v)), 0 * v, 0 * v, where(uneven, quarter, 0 * v),
    )  # fmt: skip
    w, x, y, z = mul(mul(left, middle), conj(mul(wound, right)))
    first = where(flat, z, fold * x)
    last = where(flat, up * x, z)
    turn = _back(order, (hand * first, hand * where(flat, y, fold * y), hand * last))
    new = _back(order, (size * yc, size * yb, size * ya))
    return (w, turn[0], turn[1], turn[2]), new


@kernel
def cycle(about: Any) -> tuple[Number, Number]:
    """Return the period of the body momentum, and the rotation angle about the momentum in one period.

    The period is 4 K/|u'|; zero means infinite. In the limit of no motion it is the period of small motions. Over a
    period psi grows by the same amount for every axis, up to whole turns: near the axis a the body rotates about a, and
    a itself precesses by 2 pi more if I_a is the largest moment, by 2 pi less if it is the smallest.
    """
    order, curve, _, _, (_, _, _, flat), (speed, steady, sheer, n), whole, _ = about
    quarter, way = curve[5], _sign(speed < 0, speed)
    period = _over(4 * quarter, abs(speed), 0 * speed)
    swept = 4 * whole
    swept = way * where(curve[0], (4 * quarter - swept) / (1 + n), swept)
    psi = steady * period + sheer * swept
    turn = 8 * atan(1 + 0 * psi)
    return period, where(period > 0, where(flat, psi, psi - _sign(order[3], psi) * turn), 0 * psi)


@kernel
def _plain_flow(h: Number, m: Vec3, system: Any) -> State:
    """Return the rotation since the start, and the body momentum."""
    return state_after(h, motion(m, system[0]))


_flow = with_slopes(_plain_flow)


@method(
    order=math.inf, order_free=math.inf, symmetric=True, symplectic=True, poisson=True, solves=0, torque_evals=0,
    conserves=("energy", "spatial_momentum", "momentum_norm"), needs="free", cite="jacobi1850",
    where="elliptic functions; Vilmart, algorithm 1", flows=((Term(kinetic),),),
)  # fmt: skip
@kernel
def jacobi(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""The exact flow of the free body: momentum by sn, cn, dn, attitude by an integral of the third kind.

    The axes are labelled $a$, $b$, $c$: $b$ has the intermediate moment and the momentum circulates about $a$. With
    $\alpha = |1/I_b - 1/I_c|$, $\beta = |1/I_c - 1/I_a|$, $\gamma = |1/I_a - 1/I_b|$, all $\Pi$ below at the start,

    $$\begin{aligned}
    A^2 &= \Pi_a^2 + (\alpha/\beta)\,\Pi_b^2, & B^2 &= \Pi_b^2 + (\beta/\gamma)\,\Pi_c^2, &
    C^2 &= (\gamma/\beta)\,B^2, \\
    k^2 &= \frac{\alpha\,B^2}{\beta\,A^2}, & 1 - k^2 &= \frac{\gamma\,\Pi_a^2 - \alpha\,\Pi_c^2}{\gamma\,A^2}, &
    \lambda &= A \sqrt{\beta \gamma}
    \end{aligned}$$

    and the momentum a time $h$ later is

    $$\Pi_a = \pm A\,\mathrm{dn}\,u, \qquad \Pi_b = B\,\mathrm{sn}\,u, \qquad \Pi_c = C\,\mathrm{cn}\,u, \qquad
    u = u_0 \pm \lambda h$$

    with the signs and $u_0$ of the start. For the attitude let $m = |\Pi|$, and let $j$ be the one of the axes $a$ and
    $c$ that stays farther from the momentum. Let $Q(\Pi)$ be the rotation that turns $\mathrm{e}_j$ to $\Pi/m$ and is
    composed of a rotation about $\mathrm{e}_b$ followed by one about $\mathrm{e}_j$. Then

    $$R_1 = R_0\,Q(\Pi_0) \exp(\psi\,\mathrm{e}_j)\,Q(\Pi_1)^{\mathsf T}, \qquad
    \psi = \int_0^h m\,\frac{2 E - \Pi_j^2/I_j}{m^2 - \Pi_j^2}\,dt$$

    The integral is of the third kind. The integrand is

    $$\begin{aligned}
    j = c \colon \quad & \frac{m}{I_a} + m \Bigl(\frac{1}{I_b} - \frac{1}{I_a}\Bigr) \frac{B^2}{A^2}\,
    \frac{\mathrm{sn}^2 u}{1 + n\,\mathrm{sn}^2 u}, & n &= C^2/A^2 \le 1, \\
    j = a \colon \quad & \frac{m}{I_c} + m \Bigl(\frac{1}{I_b} - \frac{1}{I_c}\Bigr) \frac{B^2}{C^2}\,
    \frac{\mathrm{sn}^2 u}{1 + n\,\mathrm{sn}^2 u}, & n &= \alpha/\gamma \le 1
    \end{aligned}$$
    """
    q, m = y
    turn, new = _flow(h, m, system)
    return (mul(q, turn), new), 0
