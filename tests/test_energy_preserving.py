"""Energy preservation: what `ep` declares, degenerate motions, the extra order over whole periods, Buss's quadric."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks, hyperboloid
from polhode.analysis.observables import attitude_error
from polhode.backends.multiprecision import number
from polhode.methods.energy_preserving import leads, least_turn, on_polhode
from polhode.so3 import cross, dot, norm, rotate, sub, times

EPS = 2.0**-52
BASES = (
    "buss1",
    "buss2plus",
    "buss3",
    "buss4",
    "rot123",
    "mkrk(rk4)",
    "imidm",
    "swc1",
    "abm4",
    "nystrom4(dmv4)",
    "lietaylor(3)",
)


@pytest.mark.parametrize("base", BASES)
def test_it_is_what_it_declares(base):
    assert checks.check(ph.methods[f"ep({base})"]) == []


def test_torques_of_the_velocity_are_taken_where_their_work_is_accurate_enough():
    assert ph.methods["ep(buss2)"].needs == "velocity"
    assert ph.methods["ep(buss3)"].needs == "attitude"
    assert ph.methods["ep(mkrk(gauss3))"].order == 4 < ph.methods["ep(mkrk(gauss3))"].order_free
    assert ph.ep("dmv4") is ph.methods["dmv4"]  # a free flow that keeps the energy already


@pytest.mark.parametrize(
    ("part", "why"),
    [("imid", "does not conserve the spatial momentum"), ("compensated(rot123)", "carries low parts of the state")],
)
def test_what_cannot_be_turned_is_refused(part, why):
    with pytest.raises(ph.InputError, match=why):
        ph.ep(part)


# --- the closed form --------------------------------------------------------------------------------


def energy(m, inverse):
    return dot(times(inverse, m), m) / 2


def moved(m, inverse, target):
    """`on_polhode` with the energy itself."""
    system = (None, inverse, ())
    lead = leads(m, system)
    d = inverse[0] - lead[0]
    return on_polhode(m, 2 * target - d * dot(m, m), lead, system)


@pytest.mark.parametrize("inertia", [(0.6, 0.8, 1.0), (1.0, 1.0, 1.7), (1.6, 0.9, 0.9)])
@pytest.mark.parametrize("m", [(1.8, 0.4, -0.9), (-0.3, 1.1, 0.2), (0.2, 1.3, 0.1)])
def test_both_integrals_and_the_signs_are_kept(inertia, m):
    with mpmath.workdps(55):
        inverse, m = tuple(1 / number(x) for x in inertia), tuple(number(x) for x in m)
        for part in (mpmath.mpf("0.999"), mpmath.mpf("1.002")):
            target = part * energy(m, inverse)
            new = moved(m, inverse, target)
            assert abs(norm(new) - norm(m)) < 1e-50
            assert abs(energy(new, inverse) - target) < 1e-50
            assert all(a * b > 0 or a == b == 0 for a, b in zip(m, new, strict=True))
            turn = least_turn(new, m)
            assert norm(sub(rotate(turn, new), m)) < 1e-50
            assert abs(turn[0] - mpmath.sqrt((1 + dot(m, new) / dot(m, m)) / 2)) < 1e-50  # no spin about m


def test_a_component_that_would_change_its_sign_becomes_zero():
    """Next to the intermediate axis, towards the polhodes on the other side of the separatrix."""
    inverse, m = (2.0, 1.5, 1.0), (1e-3, 1.0, 2e-4)
    target = 0.75 * dot(m, m) - 1e-6
    new = moved(m, inverse, target)
    assert new[0] == 0
    assert new[2] > 0
    assert norm(new) == pytest.approx(norm(m), rel=4 * EPS)
    assert energy(new, inverse) == pytest.approx(target, rel=4 * EPS)


def test_where_there_is_no_such_polhode_nothing_is_moved():
    inverse, m = (2.0, 1.5, 1.0), (0.2, 0.9, 0.3)
    for impossible in (1.01, 0.49):  # more than about the axis of the largest 1/I, less than about the smallest
        assert moved(m, inverse, impossible * dot(m, m)) == pytest.approx(m, rel=4 * EPS)


# --- motions on the edge ----------------------------------------------------------------------------

SEPARATRIX = (math.sqrt(1 / 3), 1.0, 1.0)  # with I = (1, 2, 3): 2 E I_2 = |Pi|^2
EDGES = {
    "sphere": ((1.0, 1.0, 1.0), (0.3, 0.4, 0.5)),
    "symmetric": ((1.0, 1.0, 0.5), (0.3, 0.4, 0.5)),
    "symmetric about the largest": ((1.0, 1.0, 1.7), (0.3, 0.4, -0.5)),
    "across the axis of symmetry": ((1.0, 1.0, 0.5), (0.3, 0.4, 0.0)),
    "first axis": ((1.0, 2.0, 2.5), (0.7, 0.0, 0.0)),
    "intermediate axis": ((1.0, 2.0, 2.5), (0.0, -0.7, 0.0)),
    "third axis": ((1.0, 2.0, 2.5), (0.0, 0.0, 0.7)),
    "next to the first axis": ((1.0, 2.0, 2.5), (1.0, 1e-9, 2e-9)),
    "closer still": ((1.0, 2.0, 2.5), (1.0, 1e-17, 1e-160)),
    "next to the intermediate axis": ((1.0, 2.0, 2.5), (1e-9, 1.0, -1e-9)),
    "separatrix": ((1.0, 2.0, 3.0), SEPARATRIX),
    "at rest": ((1.0, 2.0, 2.5), (0.0, 0.0, 0.0)),
    "tiny": ((1.0, 2.0, 2.5), (1e-170, 2e-170, 1e-170)),
    "linear": ((1.0, 1.0, 0.0), (0.3, -0.4, 0.0)),
    "flat": ((1.0, 2.0, 3.0), (0.3, -0.4, 0.2)),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("base", ["buss1", "buss3"])
def test_degenerate_motions(name, base):
    """Forty steps of plain Python: finite, both integrals to the round-off of the steps."""
    inertia, m = EDGES[name]
    method = ph.methods[f"ep({base})"]
    problem = ph.Problem(ph.Body(inertia), momentum=m)
    y, system = problem.kernel_data(float)
    step = method.build(float)
    torque = checks.torque_kernel(problem, float, method)
    before, size = energy(y[1], system[1]), norm(y[1])
    for n in range(40):
        y, _ = step(0.2, 0.2 * n, y, system, torque)
        assert all(math.isfinite(x) for part in y for x in part)
    assert abs(energy(y[1], system[1]) - before) <= 40 * 4 * EPS * before
    assert norm(sub(rotate(*y), m)) <= 40 * 8 * EPS * size  # a product of quaternions and two turns of a vector a step


def test_next_to_an_axis_the_small_components_keep_their_ellipse():
    """Energies counted from the axis: the squares of 1e-9 lie below the round-off of the energy itself."""
    inverse, m = (1.0, 0.5, 0.4), (1.0, 1e-9, 2e-9)
    step, y = ph.methods["ep(buss1)"].build(float), ((1.0, 0.0, 0.0, 0.0), m)
    ellipse = 0.5 * m[1] ** 2 + 0.6 * m[2] ** 2
    for n in range(200):
        y, _ = step(0.1, 0.1 * n, y, ((1.0, 2.0, 2.5), inverse, ()), lambda t, q, m, system: (0, 0, 0))
    assert 0.5 * y[1][1] ** 2 + 0.6 * y[1][2] ** 2 == pytest.approx(ellipse, rel=200 * 16 * EPS)


# --- long runs and whole periods --------------------------------------------------------------------


def test_round_off_of_long_runs():
    """10^5 steps: random, so about sqrt(10^5) EPS = 7e-14 of both; a drift would be 10^5 EPS = 2e-11."""
    problem = ph.problems.prism()
    sol = ph.solve(problem, "ep(buss3)", dt=problem.t_end / 567, steps=100_000, every=1000)
    drift = sol.drift()
    assert drift["energy"] < 2e-12
    assert drift["spatial_momentum"] < 2e-12


def period_slope(name, periods, steps):
    """Order of the attitude error at a number of periods, from two step sizes, in 25 digits."""
    problem = ph.problems.book()
    with mpmath.workdps(30):
        end = float(ph.period(problem) * periods)
    exact = np.asarray(ph.exact(problem, [end], digits=20).matrix[-1], float)
    errors = []
    for n in (steps, 2 * steps):
        sol = ph.solve(problem, name, dt=end / n, steps=n, every=n, digits=20)
        errors.append(attitude_error(np.asarray(sol.matrix[-1], float), exact))
    return math.log2(errors[0] / errors[1])


@pytest.mark.parametrize(
    ("name", "whole", "part"), [("ep(buss1)", 2, 1), ("ep(buss3)", 4, 3), ("ep(lietaylor(5))", 6, 5)]
)
def test_an_order_more_over_whole_periods_for_odd_orders(name, whole, part):
    """Over a whole period the error of odd order p is h^(p+1), on the way h^p; the next power is 1/steps of it."""
    assert period_slope(name, 1, 80) == pytest.approx(whole, abs=0.1)
    assert period_slope(name, 0.3, 256) == pytest.approx(part, abs=0.1)


def test_no_such_gain_for_even_orders_or_without_ep():
    assert period_slope("ep(buss2)", 1, 160) == pytest.approx(2, abs=0.1)
    assert period_slope("buss1", 1, 640) == pytest.approx(1, abs=0.25)


# --- the talk's own projection ----------------------------------------------------------------------


def test_the_quadric_touches_the_surface_across_the_polhodes():
    """Its normal at the point is along the polhode's tangent, k_i/rho_i."""
    with mpmath.workdps(55):
        J, rho = tuple(map(number, (0.6, 0.8, 1.0))), tuple(map(number, (0.7, -0.4, 0.5)))
        a, c = hyperboloid.quadric(rho, J)
        assert abs(dot(a, times(rho, rho)) - c) < 1e-50
        tangent = cross(times(J, rho), times(times(J, J), rho))
        assert norm(cross(times(a, rho), tangent)) < 1e-50


def test_the_talks_projection_and_the_closed_form_reach_the_same_polhode():
    """Two points of one polhode, apart by the first order of what lacks: they are reached in different directions."""
    with mpmath.workdps(55):
        J, m = tuple(map(number, (0.6, 0.8, 1.0))), tuple(map(number, (1.8, 0.4, -0.9)))
        inverse = tuple(1 / x for x in J)
        gaps = []
        for lack in (mpmath.mpf("1e-6"), mpmath.mpf("1e-7")):
            target = energy(m, inverse) * (1 + lack)
            drawn, closed = hyperboloid.projected(m, J, target), moved(m, inverse, target)
            assert abs(norm(drawn) - norm(m)) < 1e-48
            assert abs(energy(drawn, inverse) - target) < 1e-48
            gaps.append(norm(sub(drawn, closed)) / norm(sub(closed, m)))
        assert gaps[0] == pytest.approx(gaps[1], rel=1e-4)


def test_the_work_of_a_torque_reaches_the_energy():
    """Kinetic energy of ep(buss4) follows the work, so that the total energy of a heavy top errs as h^4."""
    top, errors = ph.problems.heavy_top(), []
    for steps in (20, 40):
        sol = ph.solve(top, "ep(buss4)", dt=1 / steps, steps=steps, digits=20)
        errors.append(float(np.abs(sol.energy - sol.energy[0]).max()))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.5)
