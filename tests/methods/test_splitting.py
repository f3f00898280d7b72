"""Splittings and discrete Moser-Veselov: what the papers say of them."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.analysis.checks import EXACT, VISIBLE, Setting, distance
from polhode.analysis.reference import flow
from polhode.numbers.multiprecision import number

LABELS = ["".join(p) for p in itertools.permutations("123")]
FASSO = ph.Problem(ph.Body([1.0, 0.75, 0.25]), momentum=[0.6, 0.5, 0.4])


def energy_error(method, h, t_end=20.0, problem=FASSO):
    return ph.solve(problem, method, dt=h, t_end=t_end).drift()["energy"]


def test_fasso_order_four_by_accident():
    """Moments 1 : 0.75 : 0.25 and the smallest outside: energy errors fall by 16 with h/2; else by 4."""
    best = [energy_error("rot321", h) for h in (0.1, 0.05, 0.025)]
    assert [math.log2(a / b) for a, b in itertools.pairwise(best)] == pytest.approx([4, 4], abs=0.1)
    for label in LABELS:
        if label != "321":
            errors = [energy_error(f"rot{label}", h) for h in (0.1, 0.05)]
            assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)
            assert errors[0] > 100 * best[0]


@pytest.mark.parametrize("moments", list(itertools.permutations((1.0, 0.75, 0.25))))
def test_rot_auto_takes_the_smallest_outside_and_the_largest_inside(moments):
    small, middle, large = np.argsort(moments) + 1
    problem = ph.Problem(ph.Body(moments), momentum=[0.6, 0.5, 0.4])
    auto, named = (ph.solve(problem, m, dt=0.1, steps=50) for m in ("rot_auto", f"rot{small}{middle}{large}"))
    assert np.abs(auto.quaternion - named.quaternion).max() < 50 * 8 * 2.0**-52  # a few roundings a step


@pytest.mark.parametrize(
    "moments", [(1.0, 1.0, 0.4), (0.4, 1.0, 1.0), (1.0, 0.4, 1.0), (1.0, 1.0, 1.6), (2.0, 2.0, 2.0)]
)
def test_symrot_auto_is_exact_for_every_symmetric_body(moments):
    problem = ph.Problem(ph.Body(moments), momentum=[0.6, 0.5, 0.4])
    sol = ph.solve(problem, "symrot_auto", dt=0.5, steps=4, digits=30)
    q, m = flow(problem, 2.0, digits=30)
    with mpmath.workdps(35):
        ours = (tuple(sol.mp.quaternion[-1]), tuple(sol.mp.momentum[-1]))
        assert distance(ours, (q, m)) < mpmath.mpf(10) ** -29


def test_remark_3_holds_for_two_of_three_pairs_of_equal_moments():
    """Algorithm 2 as labelled is exact if the reference moment equals one of the others, not if I1 = I3."""
    for moments, exact in (((1.0, 1.0, 0.4), True), ((0.4, 1.0, 1.0), True), ((1.0, 0.4, 1.0), False)):
        problem = ph.Problem(ph.Body(moments), momentum=[0.6, 0.5, 0.4])
        assert (ph.solve(problem, "symrot", dt=0.1, t_end=1.0).drift()["energy"] < 1e-14) is exact


def test_outer_and_inner_of_symrot_may_be_exchanged():
    """R outside S or S outside R with the same labels read backwards: conjugate, both of order 2; not equal here."""
    with mpmath.workdps(55):
        one, other = (Setting(ph.methods[f"symrot{label}"], "free").step(0.125) for label in ("123", "321"))
        assert distance(one, other) > VISIBLE


def test_hairer_vilmart_driver():
    """Their Fortran's numbers: I = (0.6, 0.8, 1), y = (1.8, 0.4, -0.9), t = 10, order 10."""
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[1.8, 0.4, -0.9])
    fine = ph.solve(problem, "dmv10", dt=0.01, t_end=10.0)
    assert fine.momentum[-1] == pytest.approx(
        [1.7659625085182075, -0.69546419703308912, 0.77955498148187109], abs=2e-14
    )
    q = [-0.73606136416079394, -0.57078695124035073, -0.29938857183079009, -0.20683908610467319]
    assert fine.quaternion[-1] == pytest.approx(q, abs=2e-14)
    coarse = ph.solve(problem, "dmv10", dt=0.1, t_end=10.0)
    assert coarse.momentum[-1] == pytest.approx(
        [1.7659625085196600, -0.69546419702325246, 0.77955498148735591], abs=2e-14
    )


def test_hairer_vilmart_driver_with_gravity():
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), ph.fields.gravity(1.0), momentum=[1.8, 0.4, -0.9])
    sol = ph.solve(problem, "strang(dmv10)", dt=0.01, t_end=10.0)
    assert sol.momentum[-1] == pytest.approx([1.9226340612884927, 0.77203412291776519, -0.20105263722083863], abs=2e-13)


@pytest.mark.parametrize("name", ["dmv2", "dmv6", "dmv14"])
def test_dmv_works_for_flat_bodies(name):
    problem = ph.Problem(ph.Body([0.4, 0.6, 1.0]), momentum=[0.3, 0.2, 0.5])
    assert ph.solve(problem, name, dt=0.05, t_end=10.0).drift()["energy"] < 1e-13


def test_dmv_says_when_there_is_no_solution():
    """About a principal axis a solution exists while h |y| < I."""
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0.0, 0.0, 1.0])
    assert len(ph.solve(problem, "dmv2", dt=0.95, steps=3)) == 4
    with pytest.raises(ph.StepError, match="was not solved"):
        ph.solve(problem, "dmv2", dt=1.05, steps=3)


def test_dmv_solves_the_equation_of_moser_and_veselov():
    """omega^T D - D omega = h hat(y), y_1 = omega y_0, Q_1 = Q_0 omega^T with D of I = (d2+d3, d3+d1, d1+d2)."""
    with mpmath.workdps(55):
        s = Setting(ph.methods["dmv2"], "free")
        h = mpmath.mpf(1) / 8
        (q0, m0), (q1, m1) = s.y, s.step(h)
        from polhode.kernels.so3 import conj, matrix, mul

        turn = mpmath.matrix(matrix(mul(conj(q0), q1)))
        trace = sum(s.system[0]) / 2
        d = mpmath.diag([trace - i for i in s.system[0]])
        x, y, z = m0
        hat = mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        assert mpmath.mnorm(turn * d - d * turn.T - h * hat, mpmath.inf) < EXACT
        assert mpmath.mnorm(turn.T * mpmath.matrix(m0) - mpmath.matrix(m1), mpmath.inf) < EXACT


@pytest.mark.parametrize("flow_name", ["symrot", "dmv4", "rot_auto"])
def test_strang_over_any_free_flow_and_nothing_else(flow_name):
    assert ph.methods[f"strang({flow_name})"].order == 2
    with pytest.raises(
        ph.InputError, match=r"; imidm integrates torques itself: write imidm, or yoshida4\(imidm\) for order 4"
    ):
        ph.methods["strang(imidm)"]


def test_a_free_flow_refuses_a_potential_and_names_others():
    with pytest.raises(ph.InputError, match=r"dmv10 integrates free bodies only, and .*; write strang\(dmv10\)"):
        ph.solve(ph.problems.heavy_top(), "dmv10", dt=0.1, steps=1)


def test_the_implicit_midpoint_rule_is_not_poisson():
    """Zanna's slides say it is. It keeps all quadratic integrals, and its bracket defect is of order h^3."""
    method = ph.methods["imr"]
    assert method.conserves == {"energy", "spatial_momentum", "momentum_norm"}
    assert checks.poisson_defect(method) > 1e-6
    assert checks.poisson_defect(ph.methods["dmv2"]) < 1e-25
    assert distance(
        Setting(method, "free").step(0.125), Setting(ph.methods["akw"], "free").step(0.125)
    ) == 0  # fmt: skip


ALL = {"spatial_momentum", "momentum_norm", "energy"}


@pytest.mark.parametrize(
    ("name", "order", "conserved", "poisson", "symplectic"),
    [
        ("jacobi", math.inf, ALL, True, True),
        ("symrot", 2, {"spatial_momentum", "momentum_norm"}, True, True),
        ("rattle", 2, ALL, True, True),
        ("dmv2", 2, ALL, True, True),
        ("imr", 2, ALL, False, False),
        ("dmv8", 8, ALL, True, False),
    ],
)
def test_table_2_of_vilmart(name, order, conserved, poisson, symplectic):
    """The table's rows, measured: order, quadratic invariants Qy, C, H, Poisson, symplectic. All entries are right."""
    method = ph.methods[name]
    measured = checks.measured_order(method, "free")
    assert measured == order or abs(measured - order) < 0.1
    assert {what for what, change in checks.changes(method).items() if change < EXACT} & ALL == conserved
    assert (checks.poisson_defect(method) < 1e-25) is poisson
    assert (checks.symplectic_defect(method, "free") < 1e-25) is symplectic


def test_preprocessed_dmv_is_poisson_and_symplectic_only_to_its_order():
    """The bracket of the momentum is kept exactly; the defect of the two-form falls with the order, never to zero."""
    defects = [checks.symplectic_defect(ph.methods[f"dmv{k}"], "free") for k in (4, 6, 8, 10)]
    assert [checks.poisson_defect(ph.methods[f"dmv{k}"]) < 1e-25 for k in (4, 6, 8, 10)] == [True] * 4
    assert all(b < a / 50 for a, b in itertools.pairwise(defects))
    assert defects[-1] > 1e-16


def test_spatial_momentum_errs_like_the_root_of_the_steps():
    """A random walk: over 16 times the steps 4 times the error, not 16 times (the mean over twelve bodies)."""
    rng = np.random.default_rng(5)
    growth = []
    for _ in range(12):
        d, m, q = rng.uniform(0.05, 1, 3), rng.normal(size=3) * 0.7, rng.normal(size=4)
        problem = ph.Problem(ph.Body(d.sum() - d), momentum=m, attitude=q / np.linalg.norm(q))
        L = ph.solve(problem, "dmv2", dt=0.03, steps=800_000, every=50_000).spatial_momentum
        errors = np.linalg.norm(L - L[0], axis=1)
        growth.append(math.log(errors[-1] / errors[1]))
    assert math.exp(np.mean(growth)) < 8


def test_series_of_the_preprocessing_are_table_1():
    """s3, t3, s5, t5 of Vilmart's Table 1 in terms of e1, e2, e3 (sigma_-1 = e1, sigma_1/delta = e2, 1/delta = e3)."""
    from polhode.methods.tables.dmv_series import SERIES

    assert SERIES[0][0] == {(1, 0, 0, 1): (-1, 3), (0, 1, 0, 0): (1, 6)}
    assert SERIES[0][1] == {(0, 1, 0, 1): (1, 6), (0, 0, 1, 0): (-1, 3)}
    inverse = (1 / 0.6, 1 / 0.8, 1.0)
    e1, e2, e3 = (
        sum(inverse),
        inverse[0] * inverse[1] + inverse[1] * inverse[2] + inverse[2] * inverse[0],
        math.prod(inverse),
    )
    delta, moments = 1 / e3, (0.6, 0.8, 1.0)
    sigma = {a: sum(i**a for i in moments) for a in (-3, -2, -1, 1, 2, 3)}
    tau11 = sum((sum(moments) - i) / i for i in moments)
    H, C = 1.3, 2.1
    s5 = ((3 * sigma[1] + 2 * delta * sigma[-2]) / (60 * delta) * H * H + (1 - tau11) / (30 * delta) * C * H
          + (sigma[2] - delta * sigma[-1]) / (30 * delta**2) * C * C)  # fmt: skip
    t5 = (-(9 + tau11) / (60 * delta) * H * H + (6 * delta * sigma[-1] - sigma[2]) / (60 * delta**2) * C * H
          - sigma[1] / (60 * delta**2) * C * C)  # fmt: skip
    for table, printed in zip(SERIES[1], (s5, t5), strict=True):
        ours = sum(a / b * e1**i * e2**j * e3**k * H**p * C ** (2 - p) for (i, j, k, p), (a, b) in table.items())
        assert ours == pytest.approx(printed, rel=1e-13)


def test_the_series_are_derived_again():
    """The first four powers of h^2, in exact rational numbers."""
    from polhode.methods.tables.dmv_derivation import derive
    from polhode.methods.tables.dmv_series import SERIES

    assert tuple(derive(1, 4)) == SERIES[:4]


@pytest.mark.parametrize("order", [16, pytest.param(20, marks=pytest.mark.slow)])
def test_orders_beyond_the_stored_ones(order):
    """Derived when asked for; the order measured from local errors of 1e-60 and less, and all else it declares."""
    method, problem = ph.methods[f"dmv{order}"], checks.generic("free")
    assert method.order == order
    assert ph.dmv(order) is method is ph.methods[f"DMVP{order}"]
    errors = []
    for h in (2.0**-6, 2.0**-7):
        with mpmath.workdps(120):
            y, system = problem.kernel_data(number)
            end, residual = method.build(number)(number(h), number(0), y, system, None)
            exact = flow(problem, h, digits=110)
            assert residual == 0
            errors.append(checks.distance(end, exact))
    assert errors[0] > 1e-100
    assert float(mpmath.log(errors[0] / errors[1], 2)) == pytest.approx(order + 1, abs=0.05)
    for check in (checks.check_symmetric, checks.check_poisson, checks.check_conserves):
        assert check(method) == []


@pytest.mark.parametrize("order", [0, 1, 7, 15, 42, -2, "many", 2.5])
def test_orders_that_do_not_exist(order):
    with pytest.raises(ph.InputError, match="even orders from 2 to 40"):
        ph.dmv(order)
    with pytest.raises(ph.InputError):
        ph.methods["dmv17"]
