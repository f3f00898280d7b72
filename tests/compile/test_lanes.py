"""The vector number type: its functions, and kernels run with it."""

import functools
import math

import mpmath
import numba
import numpy as np
import pytest

from polhode.compile import numba_target
from polhode.compile.program import compiled
from polhode.compile.simd import functions, rough, vector_types
from polhode.kernels.elliptic import carlson_rf, carlson_rj, quarter_period, rc1, sncndn
from polhode.kernels.so3 import dexpinv, exp, mul
from polhode.methods.families.jacobi import motion, state_after
from polhode.numbers import primitives

RNG = np.random.default_rng(20)
MANY = 4000


@functools.cache
def mapped(function):
    """A compiled function from arrays to arrays, a vector of numbers at a time."""

    def every(x, out):
        for i in range(0, len(x), vector_types.LANES):
            vector_types.store(out, i, function(vector_types.load(x, i)))

    run = compiled(every).run

    def call(x):
        whole = np.pad(x, (0, -len(x) % vector_types.LANES), mode="edge") if x.flags.contiguous else x
        out = np.empty_like(whole)
        run(whole, out)
        return out[: len(x)]

    return call


def wide(low, high):
    return 10.0 ** RNG.uniform(low, high, MANY)


ANGLES = np.concatenate(
    [RNG.uniform(-1, 1, MANY), RNG.uniform(-1e6, 1e6, MANY), np.arange(-500, 500) * (math.pi / 2), wide(-300, 0)]
)
ARGUMENTS = {
    "sin": ANGLES,
    "cos": ANGLES,
    "exp": np.concatenate([RNG.uniform(-700, 700, MANY), RNG.uniform(-1, 1, MANY)]),
    "log": np.concatenate([wide(-299, 299), RNG.uniform(0.5, 1.5, MANY), 1 + wide(-16, -1)]),
    "acos": np.concatenate([RNG.uniform(-1, 1, MANY), 1 - wide(-16, 0), wide(-15, 0) - 1]),
    "atan": np.concatenate([RNG.uniform(-5, 5, MANY), -wide(-300, 300)]),
    "sinh": RNG.uniform(-1, 1, MANY),
}


BEFORE = {"acos": 2.5}
"""Units lost before the inverse tangent: (1 - x)/(1 + x) has three roundings, halved by the root, which adds one."""


@pytest.mark.parametrize("name", ARGUMENTS)
def test_functions_are_right_to_the_last_place(name):
    x = ARGUMENTS[name]
    got = mapped(functions.FUNCTIONS[name])(x)
    with mpmath.workdps(40):
        true = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x.tolist()]
        error = np.array([float(mpmath.mpf(g) - t) for g, t in zip(got.tolist(), true, strict=True)])
        size = np.spacing(np.abs([float(t) for t in true]))
    assert np.max(np.abs(error) / size) < 1.5 + BEFORE.get(name, 0)


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "log", "atan", "sinh", "tan", "asin", "acos", "cosh", "tanh"])
def test_rare_arguments_go_to_the_library(name):
    x = np.array([0.25, 0.5, 1e7, -1e300, math.inf, -math.inf, math.nan, 5e-324])
    with np.errstate(all="ignore"):
        expected = getattr(np, {"atan": "arctan", "asin": "arcsin", "acos": "arccos"}.get(name, name))(x)
    np.testing.assert_allclose(mapped(functions.FUNCTIONS[name])(x), expected, rtol=1e-15)


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "log", "atan", "sinh", "tan", "asin", "acos", "cosh", "tanh"])
def test_bits_do_not_depend_on_the_neighbours(name):
    """A number among small ones, next to an ordinary one and next to a rare one; zeros with their signs."""
    alone = mapped(functions.FUNCTIONS[name])
    for x in (-0.0, 0.0, 1e-9, -0.3, 0.74, 0.76, 0.9, 1.2, -4.0, 300.0, *RNG.uniform(-1, 1, 200)):
        row = np.full(vector_types.LANES, x)
        expected = alone(row)[0]
        for other in (2.0, 1e5, 1e9, math.inf, math.nan):
            row[-1] = other
            assert alone(row)[0].tobytes() == expected.tobytes() or math.isnan(expected), (name, x, other)


def test_only_contiguous_rows_are_read():
    with pytest.raises(numba.TypingError, match="contiguous rows of doubles"):
        mapped(functions.FUNCTIONS["sin"])(np.zeros(32)[::2])


def test_two_arguments():
    x, y = RNG.uniform(0.1, 3, 80), RNG.uniform(-3, 3, 80)

    def both(x, y, a, b):
        for i in range(0, len(x), vector_types.LANES):
            u, v = vector_types.load(x, i), vector_types.load(y, i)
            vector_types.store(a, i, functions.atan2(u, v))
            vector_types.store(b, i, functions.power(u, v))

    a, b = np.empty_like(x), np.empty_like(x)
    compiled(both).run(x, y, a, b)
    np.testing.assert_allclose(a, np.arctan2(x, y), rtol=1e-15)
    np.testing.assert_allclose(b, x**y, rtol=1e-15)


def test_narrow_numbers_are_those_of_single_precision():
    x = np.concatenate([RNG.normal(size=96) * wide(-30, 30)[:96], [1e39, 1e-50, 0.0, math.nan]])
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
        expected = single * single - np.float32(3) * single
    twice = numba.extending.register_jitable(lambda v: vector_types.to_float64(vector_types.to_float32(v)))
    product = numba.extending.register_jitable(lambda v: _product(vector_types.to_float32(v)))
    np.testing.assert_array_equal(mapped(twice)(x), single.astype(float))
    np.testing.assert_array_equal(mapped(product)(x), expected.astype(float))


@numba.extending.register_jitable(fastmath=False)
def _product(v):
    return vector_types.to_float64(v * v - 3 * v)


def test_rough_logarithms_and_powers():
    x = np.concatenate([wide(-37, 37), 2.0 ** np.arange(-100, 100), np.nextafter(2.0 ** np.arange(-100, 100), 0)])
    log2 = numba.extending.register_jitable(
        lambda v: vector_types.to_float64(vector_types.rough_log2(vector_types.to_float32(v)))
    )
    exp2 = numba.extending.register_jitable(functions.rough_exp2)
    np.testing.assert_allclose(mapped(log2)(x), np.log2(x), rtol=0, atol=0.044)
    assert mapped(log2)(np.zeros(vector_types.LANES))[0] < -100
    assert (mapped(log2)(np.full(vector_types.LANES, math.inf)) > 127).all()
    np.testing.assert_allclose(mapped(exp2)(np.log2(x)), x, rtol=1e-3)
    one = np.concatenate([wide(-37, 37), 10.0 ** np.arange(-300, 300)])
    log2, exp2 = (numba.njit(lambda x, f=f: f(x)) for f in (rough.rough_log2, rough.rough_exp2))
    np.testing.assert_allclose([log2(v) for v in one], np.log2(one), rtol=0, atol=0.044)
    np.testing.assert_allclose([exp2(v) for v in np.log2(one)], one, rtol=1e-3)
    assert log2(0.0) < -100
    assert primitives.rough_log2(5.0) == math.log2(5)
    assert primitives.rough_log2(0.0) < -100
    assert primitives.rough_exp2(2.5) == 2**2.5


# --- kernels in lanes -------------------------------------------------------------------------------


def _exact(t, m, i):
    turn, new = state_after(t, motion(m, i))
    return (*turn, *new)


def _turned(t, m, i):
    q = mul(exp(m), exp(i))
    return (*q, *dexpinv(m, i))


def _integrals(t, m, i):
    a, b, c = i
    s, cn, d = sncndn(t, a / (a + b))
    return (
        carlson_rf(a, b, c), carlson_rj(a, b, c, c), carlson_rj(a, b, c, a + b), rc1(a - 1, a) / 765765, s + cn, d,
        quarter_period(a / (a + b))[0],
    )  # fmt: skip


def both_ways(function):
    """A function of (t, m, I) to seven numbers, on single numbers and in lanes."""
    inner = numba.extending.register_jitable(**numba_target.INNER)(function)
    load, store = vector_types.load, vector_types.store

    def single(t, m, i, out):
        for k in range(len(t)):
            r = inner(t[k], (m[0, k], m[1, k], m[2, k]), (i[0, k], i[1, k], i[2, k]))
            for j in range(7):
                out[j, k] = r[j]

    def vector(t, m, i, out):
        for k in range(0, len(t), vector_types.LANES):
            v = (load(m[0], k), load(m[1], k), load(m[2], k))
            r = inner(load(t, k), v, (load(i[0], k), load(i[1], k), load(i[2], k)))
            for j in range(7):
                store(out[j], k, r[j])

    return compiled(single).run, compiled(vector).run


@pytest.mark.parametrize("function", [_exact, _turned, _integrals])
def test_a_lane_agrees_with_a_single_number_and_ignores_its_neighbours(function):
    n = 800
    parts = RNG.uniform(0.1, 1, (3, n))
    inertia = parts + np.roll(parts, 1, axis=0)
    momentum = RNG.normal(size=(3, n)) * wide(-3, 0)[:n]
    momentum[:, ::5] *= np.array([[1.0], [1e-9], [1e-9]])  # next to an axis: other branches
    times = RNG.uniform(-30, 30, n)
    single, vector = both_ways(function)
    one, lane, mixed = np.empty((7, n)), np.empty((7, n)), np.empty((7, n))
    single(times, momentum, inertia, one)
    vector(times, momentum, inertia, lane)
    assert np.max(np.abs(one - lane)) < 1e-12
    order = RNG.permutation(n)
    vector(times[order], np.ascontiguousarray(momentum[:, order]), np.ascontiguousarray(inertia[:, order]), mixed)
    assert np.array_equal(mixed, lane[:, order])
