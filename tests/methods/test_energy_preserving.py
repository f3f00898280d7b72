"""Energy preservation: what `ep` declares, degenerate motions, the extra order over whole periods, Buss's quadric."""

import math

import mpmath
import numpy as np
import pytest
from validation.papers import hyperboloid

import polhode as ph
from polhode.analysis import checks, generic_problems, reference
from polhode.kernels.so3 import add, cross, dot, norm, rotate, sub, times
from polhode.methods.combinators.polhode_projection import least_turn, to_polhode
from polhode.numbers.multiprecision import number
from polhode.results.observables import attitude_error
from polhode.run import integrator
from polhode.tableaus import gauss_rule, tableaus
from representatives import slow_unless

EPS = 2.0**-52
BASES = (
    *("buss1", "buss2plus", "buss3", "buss4", "rot123", "mkrk(rk4)", "imidm", "swc1", "akw", "abm4"),
    *("nystrom4(dmv4)", "yoshida4(rot123)", "yoshida6(strang(dmv6))", "processed4(dmv4)"),
    *("lietaylor(1)", "lietaylor(3)", "lietaylor(6)"),
    *("compensated(symrot123)", "compensated(strang(rot123))", "reversible(strang(rot123))"),
)
ALL = [m.name for m in ph.methods.values() if "spatial_momentum" in m.conserves]
MADE = (
    *("strang(rot123)", "suzuki4(trapm)", "yoshida4(imidm)", "yoshida4(akw)", "blanes_moan6(dmv6)", "saba2c(dmv4)"),
    *("sbab3(jacobi)", "processed6(dmv6)", "kahan_li6(strang(rot123))", "yoshida8(rot123)", "mclachlan8(dmv8)"),
    *("reversible(imidm)", "reversible(nystrom4(dmv4))", "strang(ep(rot123))"),
)


LONG = ("yoshida6(strang(dmv6))", "reversible(strang(rot123))")
"""Those of BASES whose checks in 50 digits take several seconds."""


@pytest.mark.parametrize("base", slow_unless({*BASES} - {*LONG}, BASES))
def test_it_is_what_it_declares(base):
    assert checks.check(ph.methods[f"ep({base})"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("base", sorted({*ALL, *MADE} - {*BASES}))
def test_every_one_is_what_it_declares(base):
    assert checks.check(ph.methods[f"ep({base})"]) == []


@pytest.mark.parametrize("base", [*ALL, *MADE, *BASES])
def test_order_and_torques_are_those_of_the_method(base):
    plain, kept = ph.methods[base], ph.methods[f"ep({base})"]
    assert (kept.order, kept.order_free, kept.needs) == (plain.order, plain.order_free, plain.needs)
    assert kept.conserves >= {"energy", "spatial_momentum", "momentum_norm"}
    assert kept.compensated == plain.compensated
    assert kept.has_own_time == plain.has_own_time


def test_a_free_flow_that_keeps_the_energy_is_returned():
    for name in ("dmv4", "jacobi", "imr", "compensated(dmv6)"):
        assert ph.ep(ph.methods[name]).name == name


def test_a_method_of_unproven_order_gets_a_rule_for_the_highest_it_may_have():
    rk4 = tableaus["rk4"]
    method = ph.ep(ph.mkrk(ph.Tableau(rk4.a, rk4.b, rk4.c, name="mine")))
    assert method.order is None
    assert checks.measured_order(method, "velocity") == pytest.approx(4, abs=0.1)
    assert checks.check_cost(method) == []


def test_what_cannot_be_turned_is_refused():
    with pytest.raises(
        ph.InputError, match="needs a method that conserves the spatial momentum, and imid does not; use mkrk"
    ):
        ph.ep("imid")


# --- the closed form --------------------------------------------------------------------------------


def energy(m, inverse):
    return dot(times(inverse, m), m) / 2


def add4(p, q):
    return tuple(x + y for x, y in zip(p, q, strict=True))


def moved(m, inverse, target):
    """The momentum on the polhode of this energy."""
    return add(m, to_polhode(m, 2 * (target - energy(m, inverse)), (None, inverse, ())))


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
            turn = add4((1, 0, 0, 0), least_turn(sub(new, m), m))
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
    torque = integrator.torque_kernel(problem, float, method)
    before, size = energy(y[1], system[1]), norm(y[1])
    for n in range(40):
        y, _ = step(0.2, 0.2 * n, y, system, torque)
        assert all(math.isfinite(x) for part in y for x in part)
    assert abs(energy(y[1], system[1]) - before) <= 40 * 4 * EPS * before
    assert norm(sub(rotate(*y), m)) <= 40 * 8 * EPS * size  # a product of quaternions and two turns of a vector a step


def test_next_to_an_axis_the_small_components_keep_their_ellipse():
    """Energies counted from the axis: the squares of 1e-9 lie below the round-off of the energy itself."""
    inverse, m = (1.0, 0.5, 0.4), (1.0, 1e-9, 2e-9)
    method, y = ph.methods["ep(buss1)"], ((1.0, 0.0, 0.0, 0.0), m)
    step = method.build(float)
    torque = integrator.torque_kernel(ph.Problem(ph.Body([1.0, 2.0, 2.5]), momentum=m), float, method)
    ellipse = 0.5 * m[1] ** 2 + 0.6 * m[2] ** 2
    for n in range(200):
        y, _ = step(0.1, 0.1 * n, y, ((1.0, 2.0, 2.5), inverse, ()), torque)
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


# --- the work ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["buss1", "buss2", "abm4", "lietaylor(5)", "yoshida6(strang(dmv6))"])
def test_the_total_energy_of_a_heavy_top_is_exact(base):
    """Large steps, in 50 digits: E + U and not only E less the work to the order of the method."""
    mp = ph.solve(ph.problems.heavy_top(), f"ep({base})", dt=0.1, steps=10, digits=50).mp
    assert np.abs(mp.energy - mp.energy[0]).max() < 1e-47
    if base not in ("abm4", "lietaylor(5)"):  # the others keep the vertical momentum, and turns do not touch it
        assert np.abs(mp.spatial_momentum[:, 2] - mp.spatial_momentum[0, 2]).max() < 1e-47


WELLS = {
    "sphere": ((1.0, 1.0, 1.0), (0.3, 0.4, 0.5)),
    "nearly a sphere": ((1.0, 1.0 + 1e-9, 1.0 - 1e-9), (0.3, 0.4, 0.5)),
    "symmetric": ((1.0, 1.0, 0.5), (0.3, 0.4, 0.5)),
    "symmetric, about its axis": ((1.0, 1.0, 0.5), (0.0, 0.0, 2.0)),
    "first axis": ((1.0, 2.0, 2.5), (2.7, 0.0, 0.0)),
    "next to the first axis": ((1.0, 2.0, 2.5), (3.0, 1e-9, 2e-9)),
    "from rest": ((1.0, 2.0, 2.5), (0.0, 0.0, 0.0)),
    "linear": ((1.0, 1.0, 0.0), (0.3, -0.4, 0.0)),
}


@ph.potential
def well(R, depth):
    """No torque about axis 3 of the body, so that a linear body takes it."""
    return depth * (R[0][2] + R[2][2] ** 3 + math.exp(R[1][2]))


@pytest.mark.parametrize("name", WELLS)
@pytest.mark.parametrize("base", ["buss1", "buss3"])
def test_the_total_energy_is_exact_where_no_turn_reaches_it(name, base):
    """Then the momentum is scaled; in doubles, to the round-off of forty steps."""
    inertia, m = WELLS[name]
    problem, method = ph.Problem(ph.Body(inertia), well(0.3), momentum=m), ph.methods[f"ep({base})"]
    y, system = problem.kernel_data(float)
    step, torque = method.build(float), integrator.torque_kernel(problem, float, method)
    before = problem.energy()
    for n in range(40):
        y, residual = step(0.1, 0.1 * n, y, system, torque)
        assert residual == 0
        total = energy(y[1], system[1]) + problem.potential(y[0], float)
        assert abs(total - before) <= 16 * (n + 1) * EPS * (1 + before)


@pytest.mark.slow
def test_in_a_potential_all_ways_to_run_agree():
    """Six steps, compiled, in lanes and in 20 digits, of which one body is a sphere: its momentum is scaled."""
    for inertia in ([1.0, 2.0, 2.5], [1.0, 1.0, 1.0]):
        body, field = ph.Body(inertia), well(0.3)
        problem = ph.Problem(body, field, omega=[0.8, 0.4, -0.2])
        one = ph.solve(problem, "ep(buss2)", dt=0.05, steps=6)
        precise = ph.solve(problem, "ep(buss2)", dt=0.05, steps=6, digits=20)
        many = ph.ensemble(body, None, [problem.momentum] * 9, "ep(buss2)", field=field, dt=0.05, steps=6)
        assert np.abs(one.momentum - precise.momentum).max() < 1e-14
        assert np.abs(many.momentum[-1] - one.momentum[-1]).max() < 1e-14


def test_an_attitude_above_the_total_energy_fails():
    """A step of first order from rest over the top of a pendulum's swing: no momentum has that energy."""
    start = ph.Problem(ph.Body([1.0, 2.0, 2.5]), well(40.0), momentum=(0.0, 0.9, 0.0))
    with pytest.raises(ph.StepError):
        ph.solve(start, "ep(buss1)", dt=0.7, steps=40, digits=20)


@ph.torque
def drag(t, R, omega, k):
    return (-k * omega[0], -k * omega[1] * (1 + omega[1] ** 2), -k * omega[2])


@ph.torque(frame="space")
def driven(t, R, k):
    return (k * math.sin(3 * t), k * R[0][1], k * math.cos(t) * R[2][2])


FEHLBERG = ph.mkrk(
    ph.Tableau(
        [
            [0, 0, 0, 0, 0, 0],
            ["1/4", 0, 0, 0, 0, 0],
            ["3/32", "9/32", 0, 0, 0, 0],
            ["1932/2197", "-7200/2197", "7296/2197", 0, 0, 0],
            ["439/216", -8, "3680/513", "-845/4104", 0, 0],
            ["-8/27", 2, "-3544/2565", "1859/4104", "-11/40", 0],
        ],
        ["16/135", 0, "6656/12825", "28561/56430", "-9/50", "2/55"], name="fehlberg", order=5,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "field", [pytest.param(drag(0.4), id="drag"), pytest.param(driven(0.8), id="driven", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("base", "order"),
    [("buss1", 1), ("imidm", 2), ("buss3", 3), ("abm4", 4), ("lietaylor(5)", 5), ("fehlberg", 5)],
)
def test_the_energy_advances_by_the_work(field, base, order):
    """What is taken from the body or given to it in a second, against the Taylor series of the motion."""
    method = ph.ep(FEHLBERG if base == "fehlberg" else base)
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), field, omega=[1.9, 0.5, -0.9])
    with mpmath.workdps(30):
        _, m = reference.flow(problem, 1.0, digits=25)
        inverse = tuple(1 / number(x) for x in (0.6, 0.8, 1.0))
        exact = energy(m, inverse) - number(problem.energy())
        errors = []
        for steps in (64, 128):
            sol = ph.solve(problem, method, dt=1 / steps, steps=steps, every=steps, digits=22)
            errors.append(sol.energy[-1] - sol.energy[0] - exact)
    assert abs(exact) > 0.05
    assert float(mpmath.log(abs(errors[0] / errors[1]), 2)) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 8])
def test_gauss_rules_integrate_polynomials(nodes):
    with mpmath.workdps(55):
        rule = gauss_rule(nodes, number)
        for power in range(2 * nodes):
            assert abs(sum(b * c**power for c, b in rule) - number(1) / (power + 1)) < 1e-53
        assert abs(sum(b * c ** (2 * nodes) for c, b in rule) - number(1) / (2 * nodes + 1)) > 1e-12
    for (c, b), (x, w) in zip(gauss_rule(nodes, float), rule, strict=True):
        assert abs(c - x) < 2 * EPS
        assert abs(b - w) < 8 * EPS


# --- compiled, in lanes, in many digits -------------------------------------------------------------


COMPILED = ("lietaylor(2)",)
"""Compiling takes seconds; a method with a potential is compiled above, and the others are among the long tests."""


def runs_alike(base):
    """Six steps, compiled, in lanes and in 20 digits: apart by round-off."""
    method, body, start = ph.methods[f"ep({base})"], ph.Body([1.0, 2.0, 2.5]), [0.8, 0.4, -0.2]
    fields = {
        "free": None,
        "potential": generic_problems.hills(0.7, -0.4),
        "attitude": driven(0.8),
        "velocity": drag(0.4),
    }
    field = fields[method.needs]
    problem = ph.Problem(body, field, omega=start)
    one = ph.solve(problem, method, dt=0.05, steps=6)
    precise = ph.solve(problem, method, dt=0.05, steps=6, digits=20)
    assert np.abs(one.momentum - precise.momentum.astype(float)).max() < 1e-14
    if not method.has_own_time:
        many = ph.ensemble(body, None, [problem.momentum] * 9, method, field=field, dt=0.05, steps=6)
        assert np.abs(many.momentum[-1] - one.momentum[-1]).max() < 1e-14


@pytest.mark.parametrize("base", COMPILED)
def test_all_ways_to_run_agree(base):
    runs_alike(base)


@pytest.mark.slow
@pytest.mark.parametrize("base", sorted({*ALL, *MADE, *BASES} - {*COMPILED}))
def test_all_ways_to_run_agree_for_every_one(base):
    runs_alike(base)


def test_compensated_either_way_round_is_the_same_and_drifts_less():
    """10^5 short steps: what is left is the rounding of the two states looked at; without, sqrt(10^5) EPS or more."""
    problem = ph.problems.prism()
    inner, outer = ph.ep(ph.compensated("rot123")), ph.compensated(ph.ep("rot123"))
    runs = [
        ph.solve(problem, method, dt=problem.t_end / 56_700, steps=100_000, every=100_000)
        for method in (inner, outer, "ep(rot123)")
    ]
    assert (runs[0].momentum == runs[1].momentum).all()
    drift, plain = runs[0].drift(), runs[2].drift()
    assert max(drift["energy"], drift["spatial_momentum"]) < 4 * EPS
    assert min(plain["energy"], plain["spatial_momentum"]) > 40 * EPS


# --- why it helps splittings ------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_first")
def test_a_splitting_gains_from_ep_only_what_its_mean_energy_is_off():
    """Where the start has the mean energy right, the gain vanishes; elsewhere it is a factor (docs/buss.md)."""
    prism = ph.problems.prism()
    period, ratios, offsets = float(ph.period(prism)), [], []
    for phase in (0.125, 0.25):
        start = ph.exact(prism, [phase * period])
        problem = ph.Problem(prism.body, attitude=start.quaternion[0], momentum=start.momentum[0])
        exact = ph.exact(problem, [prism.t_end]).matrix[-1]
        runs = [ph.solve(problem, name, dt=prism.t_end / 1200, steps=1200) for name in ("mry2_321", "ep(mry2_321)")]
        errors = [attitude_error(sol.matrix[-1], exact) for sol in runs]
        ratios.append(errors[0] / errors[1])
        offsets.append(abs(np.mean(runs[0].energy) / problem.energy() - 1))
    assert 0.5 < ratios[0] < 1.3
    assert ratios[1] > 2.5
    assert offsets[1] > 8 * offsets[0]


@pytest.mark.usefixtures("plain_first")
def test_no_step_in_a_potential_jumps():
    """Where turning changes kinetic and potential energy alike, only a turn of half a radian would keep their sum."""
    rng = np.random.default_rng(1)
    moments, q, m = rng.uniform(1, 1.9, (2048, 3)), rng.normal(size=(2048, 4)), rng.normal(size=(2048, 3))
    weights = np.linspace(0.5, 2, 2048)
    for i in (616, 1104, 1510, 1846):
        field = ph.fields.gravity(weights[i])
        top = ph.Problem(ph.Body(moments[i]), field, attitude=q[i] / np.linalg.norm(q[i]), momentum=m[i])
        plain, kept = (ph.solve(top, name, dt=0.05, steps=200) for name in ("imidm", "ep(imidm)"))
        assert np.ptp(kept.energy) < 1e-13
        longest = np.abs(np.diff(plain.momentum, axis=0)).max()
        assert np.abs(np.diff(kept.momentum, axis=0)).max() < 1.5 * longest
        assert np.abs(kept.momentum - plain.momentum).max() < 0.05
