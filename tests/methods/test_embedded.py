"""The embedded pair: its orders in 50 digits, and its estimates against the embedded solution itself."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.reference import flow
from polhode.kernels.so3 import conj, mul, norm, sub
from polhode.methods.adaptive.dormand_prince import EMBEDDED, PAIR, dormand_prince, embedded
from polhode.numbers.multiprecision import number
from polhode.run.integrator import torque_kernel


@ph.torque
def pushed(t, R, omega, k):
    return R[2][1] - k * omega[0], math.sin(t) * omega[1] * R[0][1], math.cos(3 * t) + R[1][0]


def problem():
    return ph.Problem(ph.Body([1.0, 1.75, 2.25]), pushed(0.25), omega=[1.0, -0.5, 0.75], attitude=[0.5, -0.5, 0.5, 0.5])


def angle(p, q):
    """Of the rotation between two attitudes."""
    d = mul(conj(p), q)
    return 2 * mpmath.atan2(norm(d[1:]), abs(d[0]))


def attempted(h, digits=50):
    """The step from the start, its two estimates, and what the system was."""
    body = problem()
    torque = torque_kernel(body, number)
    y, system = body.kernel_data(number)
    return embedded(number)(mpmath.mpf(h), mpmath.mpf(0), y, system, torque), y, system, torque


def slope(values):
    return float(mpmath.log(values[0] / values[1], 2))


def test_orders_of_the_step_and_of_its_estimates():
    """Local errors h^6 in attitude and momentum; the estimates are of order 4, so h^5."""
    with mpmath.workdps(50):
        found = {"attitude": [], "momentum": [], "attitude estimate": [], "momentum estimate": []}
        for h in (2.0**-9, 2.0**-10):
            ((q, m), over_attitude, over_momentum), *_ = attempted(h)
            exact_q, exact_m = flow(problem(), h)
            found["attitude"].append(angle(q, exact_q))
            found["momentum"].append(norm(sub(m, exact_m)))
            found["attitude estimate"].append(over_attitude)
            found["momentum estimate"].append(over_momentum)
        slopes = {name: slope(values) for name, values in found.items()}
    assert slopes["attitude"] == pytest.approx(dormand_prince.order + 1, abs=0.1)
    assert slopes["momentum"] == pytest.approx(dormand_prince.order + 1, abs=0.1)
    assert slopes["attitude estimate"] == pytest.approx(dormand_prince.estimate_order + 1, abs=0.1)
    assert slopes["momentum estimate"] == pytest.approx(dormand_prince.estimate_order + 1, abs=0.1)


def test_estimates_are_the_differences_of_the_two_solutions():
    """The solution of order 4 made as a method of its own: seven stages, the last with the weights of order 5."""
    rows = [[*row, 0] for row in PAIR.a] + [[*PAIR.b, 0]]
    low, high = (ph.mkrk(ph.Tableau(rows, weights, name="seven")) for weights in (EMBEDDED, (*PAIR.b, 0)))
    with mpmath.workdps(50):
        h = 2.0**-5
        ((q, m), over_attitude, over_momentum), y, system, torque = attempted(h)
        (q4, m4), _ = low.build(number)(mpmath.mpf(h), mpmath.mpf(0), y, system, torque)
        (q5, m5), _ = high.build(number)(mpmath.mpf(h), mpmath.mpf(0), y, system, torque)
        assert angle(q, q5) < 1e-48
        assert norm(sub(m, m5)) < 1e-48
        # both estimates are right to their own square
        assert abs(over_attitude / angle(q, q4) - 1) < 4 * over_attitude
        assert abs(over_momentum / norm(sub(m, m4)) - 1) < 4 * over_attitude


def test_the_weights_of_order_four():
    """The eight conditions up to order 4 for seven stages, in fractions."""
    a = [[*row, 0] for row in PAIR.a] + [[*PAIR.b, 0]]
    c = [sum(row) for row in a]
    assert c == [*PAIR.c, 1]
    b, s = EMBEDDED, range(7)
    ac = [sum(a[i][j] * c[j] for j in s) for i in s]
    ac2 = [sum(a[i][j] * c[j] ** 2 for j in s) for i in s]
    aac = [sum(a[i][j] * ac[j] for j in s) for i in s]
    sums = [[1] * 7, c, [x**2 for x in c], ac, [x**3 for x in c], [c[i] * ac[i] for i in s], ac2, aac]
    inverse = [1, 2, 3, 6, 4, 8, 12, 24]
    assert [sum(b[i] * x[i] for i in s) * n for x, n in zip(sums, inverse, strict=True)] == [1] * 8


def test_in_doubles_and_compiled():
    from polhode.compile.program import compiled
    from polhode.numbers import floats

    body = problem()
    torque, attempt = torque_kernel(body, floats.number), embedded(floats.number)
    y, system = body.kernel_data(floats.number)

    def once(h, t, y, system):
        return attempt(h, t, y, system, torque)

    (q, m), over_attitude, over_momentum = once(0.125, 0.0, y, system)
    fast = compiled(once).run
    (q2, m2), over_attitude2, over_momentum2 = fast(0.125, 0.0, y, system)
    assert np.allclose((*q, *m), (*q2, *m2), rtol=0, atol=1e-15)
    assert over_attitude == pytest.approx(over_attitude2, rel=1e-9)
    assert over_momentum == pytest.approx(over_momentum2, rel=1e-9)
