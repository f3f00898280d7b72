"""Vectors, quaternions and rotations, as kernels.

Vectors are triples, quaternions are quadruples with the scalar first, and a unit quaternion q represents
the rotation R(q) from body to space. ``hat(a) b = a x b``. The three functions of the angle that
need care near zero (`sinc_cos`, `tail`, `cot_tail`) take the SQUARE of the angle, so they are smooth there.
"""

from ..numbers.dispatch import kernel
from ..numbers.primitives import epsilon, sincos, sqrt, stop_gradient, where
from ..numbers.types import Number, Quat, Rows, Vec3

# --- vectors ----------------------------------------------------------------------------------------


@kernel
def add(a: Vec3, b: Vec3) -> Vec3:
    """The sum a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def sub(a: Vec3, b: Vec3) -> Vec3:
    """The difference a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale(s: Number, a: Vec3) -> Vec3:
    """The vector a times the number s."""
    return (s * a[0], s * a[1], s * a[2])


@kernel
def along(a: Vec3, s: Number, b: Vec3) -> Vec3:
    """The sum a + s b."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2])


@kernel
def times(a: Vec3, b: Vec3) -> Vec3:
    """Componentwise product: a diagonal matrix times a vector."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


@kernel
def dot(a: Vec3, b: Vec3) -> Number:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vec3, b: Vec3) -> Vec3:
    """Vector product a x b = hat(a) b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def norm(a: Vec3) -> Number:
    """Euclidean length."""
    return sqrt(dot(a, a))


@kernel
def extent(a: Vec3) -> Number:
    """Sum of the absolute components: a norm that does not overflow or underflow unless the components do."""
    return abs(a[0]) + abs(a[1]) + abs(a[2])


# --- 3x3 systems ------------------------------------------------------------------------------------


@kernel
def apply(m: Rows, v: Vec3) -> Vec3:
    """Matrix (given by its rows) times vector."""
    return (dot(m[0], v), dot(m[1], v), dot(m[2], v))


@kernel
def apply_transposed(m: Rows, v: Vec3) -> Vec3:
    """Transposed matrix times vector: the rows of m combined with weights v."""
    return along(along(scale(v[0], m[0]), v[1], m[1]), v[2], m[2])


@kernel
def inverse3(a: Vec3, b: Vec3, c: Vec3) -> Rows:
    """Rows of the inverse of the matrix with COLUMNS a, b, c (Cramer's rule)."""
    bc = cross(b, c)
    s = 1 / dot(a, bc)
    return (scale(s, bc), scale(s, cross(c, a)), scale(s, cross(a, b)))


@kernel
def solve3(a: Vec3, b: Vec3, c: Vec3, v: Vec3) -> Vec3:
    """Solve x1 a + x2 b + x3 c = v for x."""
    return apply(inverse3(a, b, c), v)


# --- quaternions ------------------------------------------------------------------------------------


@kernel
def mul(p: Quat, q: Quat) -> Quat:
    """Quaternion product; R(p q) = R(p) R(q)."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@kernel
def conj(q: Quat) -> Quat:
    """Conjugate; for a unit quaternion, the inverse rotation."""
    return (q[0], -q[1], -q[2], -q[3])


@kernel
def norm2(q: Quat) -> Number:
    """Square of the quaternion's length."""
    return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]


@kernel
def unit(q: Quat) -> Quat:
    """Q divided by its length."""
    s = 1 / sqrt(norm2(q))
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s)


@kernel
def restored(q: Quat) -> Quat:
    """Normalise q at the end of a step in its components; leave it unchanged if its length is not in (1/2, 2).

    A step with such a large error has not produced a rotation; the loop detects this by the length.
    """
    square = norm2(q)
    near = (4 * square > 1) & (square < 4)
    s = where(near, 1 / sqrt(where(near, square, 1 + 0 * square)), 1 + 0 * square)
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s)


@kernel
def nearly_unit(q: Quat) -> Quat:
    """Make one Newton step towards length 1 if the length is off by more than the round-off of a few time steps.

    Correcting the last bit at every step would round the components in the same direction for many steps in a row;
    the spatial momentum then drifts in proportion to the number of steps instead of its square root.

    The factor is not differentiated. Round-off decides which branch is taken, and XLA may evaluate the comparison
    several times with different rounding: parts of a cotangent would then take one branch and parts the other.
    Nothing is lost: the derivative of a unit quaternion is orthogonal to it.
    """
    excess = norm2(stop_gradient(q)) - 1
    s = where(abs(excess) < 4 * epsilon(excess), 1, 1 - excess / 2)
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s)


@kernel
def rotate(q: Quat, v: Vec3) -> Vec3:
    """R(q) v, body to space."""
    u = (q[1], q[2], q[3])
    a = scale(2, cross(u, v))
    return add(along(v, q[0], a), cross(u, a))


@kernel
def unrotate(q: Quat, v: Vec3) -> Vec3:
    """R(q)^T v, space to body."""
    return rotate(conj(q), v)


@kernel
def matrix(q: Quat) -> Rows:
    """Rows of R(q) for a unit quaternion."""
    w, x, y, z = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


# --- functions of the angle -------------------------------------------------------------------------


@kernel
def series_reach(x2: Number) -> Number:
    """epsilon^(1/8): an eight-term power series with radius r is exact up to about r times this."""
    return sqrt(sqrt(sqrt(epsilon(x2))))


@kernel
def sinc_cos(x2: Number) -> tuple[Number, Number]:
    """sin(x)/x and cos(x) as functions of x^2.

    The quotient has no cancellation; only zero itself needs care. For x^2 below epsilon two terms of each
    series are exact to round-off (the next are x^4/120 and x^4/24).
    """
    small = x2 < epsilon(x2)
    x = sqrt(where(small, 1 + x2, x2))
    s, c = sincos(x)
    return where(small, 6 - x2, s) / where(small, 6 + 0 * x, x), where(small, 1 - x2 / 2, c)


@kernel
def tail(x2: Number) -> Number:
    """(x - sin x)/x^3 as a function of x^2: 1/6 - x^2/120 + ... = sum_k (-x2)^k/(2k+3)!.

    For small x2, eight terms of the series over 17!; the ninth is (x2/110)^8 of the first. Otherwise the closed
    form with sin x/x = sinc(x/2) cos(x/2), whose cancellation leaves a relative error of 6 epsilon/x2.
    """
    small = x2 < 64 * series_reach(x2)
    sn, cs = sinc_cos(x2 / 4)
    s = 57120 - x2 * (272 - x2)
    s = 59281238016000 - x2 * (2964061900800 - x2 * (70572902400 - x2 * (980179200 - x2 * (8910720 - x2 * s))))
    return where(small, s, 1 - sn * cs) / where(small, 355687428096000 + 0 * x2, x2)


@kernel
def cot_tail(x2: Number) -> Number:
    """(1 - (x/2) cot(x/2))/x^2 as a function of x^2: 1/12 + x^2/720 + ... = sum_k |B_2k| x2^(k-1)/(2k)!.

    For small x2, eight terms of the series over their common denominator; the ninth is (x2/39)^8 of the
    first. Otherwise the closed form, whose cancellation leaves an error of 12 epsilon/x2. Like `exp` and
    `tail` it needs the half angle only, so that one sine and cosine serve all three.
    """
    small = x2 < 32 * series_reach(x2)
    sn, cs = sinc_cos(x2 / 4)
    s = 5638560 + x2 * (142800 + x2 * 3617)
    s = 889218570240000 + x2 * (14820309504000 + x2 * (352864512000 + x2 * (8821612800 + x2 * (222768000 + x2 * s))))
    return where(small, s, sn - cs) / where(small, 10670622842880000 + 0 * x2, sn * x2)


# --- the exponential, the Cayley map, and the differential of the exponential -----------------------


@kernel
def exp(v: Vec3) -> Quat:
    """Unit quaternion of the rotation by the vector v: (cos x, v/2 sinc x), x = |v|/2."""
    s, c = sinc_cos(dot(v, v) / 4)
    return (c, s * v[0] / 2, s * v[1] / 2, s * v[2] / 2)


@kernel
def cay(v: Vec3) -> Quat:
    """Unit quaternion of the Cayley map (1 - hat v/2)^-1 (1 + hat v/2): (1, v/2) normalised."""
    s = 1 / sqrt(1 + dot(v, v) / 4)
    return (s, s * v[0] / 2, s * v[1] / 2, s * v[2] / 2)


@kernel
def dexp(v: Vec3, a: Vec3) -> Vec3:
    """Differential of the exponential: a + (1 - cos x)/x^2 v x a + (x - sin x)/x^3 v x (v x a), x = |v|.

    The body angular velocity of R exp(v(t)) with constant R is dexp_{-v} v'.
    """
    x2 = dot(v, v)
    s, _ = sinc_cos(x2 / 4)
    va = cross(v, a)
    return along(along(a, s * s / 2, va), tail(x2), cross(v, va))


@kernel
def dexpinv(v: Vec3, a: Vec3) -> Vec3:
    """Inverse of dexp_v: a - v x a/2 + cot_tail v x (v x a)."""
    va = cross(v, a)
    half = (a[0] - va[0] / 2, a[1] - va[1] / 2, a[2] - va[2] / 2)
    return along(half, cot_tail(dot(v, v)), cross(v, va))


@kernel
def negative(v: Vec3) -> Vec3:
    """-v."""
    return (-v[0], -v[1], -v[2])
