"""Zanna's explicit algorithm and the form without eigenvectors: equal to Moser-Veselov, and her experiment."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from plain import run
from polhode.analysis.checks import EXACT, Setting, distance, poisson_defect
from polhode.methods.families.zanna import cubic_roots
from polhode.run.cost import cost

EXPLICIT = ("mv_explicit", "mv_explicit_free")
ZANNA = ph.problems.zanna_body()


@pytest.mark.parametrize("name", [*EXPLICIT, "rattle"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_all_are_the_discrete_moser_veselov_map(name, which):
    with mpmath.workdps(55):
        ours, dmv = (Setting(ph.methods[n], "free", which).step(0.125) for n in (name, "dmv2"))
        assert distance(ours, dmv) < EXACT


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.usefixtures("plain_first")
def test_solution_exists_where_that_of_dmv_does(name):
    """Random bodies and steps on both sides of the limit; where it exists, all agree to round-off of a double."""
    rng = np.random.default_rng(3)
    found, pairs = {True: 0, False: 0}, 0
    for _ in range(120):
        d, h = rng.uniform(0.05, 1, 3), 10 ** rng.uniform(-1, 0.6)
        problem = ph.Problem(ph.Body(d.sum() - d), momentum=rng.normal(size=3))
        ends = [_end(problem, n, h) for n in ("dmv2", name)]
        assert (ends[0] is None) == (ends[1] is None)
        found[ends[0] is None] += 1
        if ends[0] is not None:
            assert np.abs(ends[1] - ends[0]).max() < 1e-12  # eigenvectors within a thousandth of each other
            pairs += _has_complex_pair(problem, h)
    assert min(found.values()) > 30
    assert pairs > 3  # real and complex eigenvalues both occur


def _end(problem, name, h):
    try:
        end = ph.solve(problem, name, dt=h, steps=1)
    except ph.StepError:
        return None
    return np.concatenate([end.quaternion[-1], end.momentum[-1]])


def _has_complex_pair(problem, h):
    d = problem.body.moments.sum() / 2 - problem.body.moments
    m = h * np.asarray(problem.momentum)
    M = np.array([[0, -m[2], m[1]], [m[2], 0, -m[0]], [-m[1], m[0], 0]])
    H = np.block([[M / 2, np.eye(3)], [M @ M / 4 + np.diag(d**2), M / 2]])
    return bool(np.abs(np.linalg.eigvals(H).imag).max() > 1e-6)


@pytest.mark.parametrize("name", [*EXPLICIT, "dmv2"])
@pytest.mark.parametrize("dt", [0.999, 1.001, 3.0, 1e3, 1e9])
def test_at_the_limit_of_the_step(name, dt):
    """About a principal axis the solution exists while h |y| < I; beyond, a sentence and never a NaN."""
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0.0, 0.0, 1.0])
    if dt < 1:
        assert np.isfinite(ph.solve(problem, name, dt=dt, steps=3).quaternion).all()
    else:
        with pytest.raises(ph.StepError, match="was not solved"):
            ph.solve(problem, name, dt=dt, steps=3)


@pytest.mark.parametrize("name", ["dmv4", "dmv10", "dmv14"])
@pytest.mark.parametrize("dt", [10.0, 1e3, 1e9])
def test_preprocessing_beyond_its_reach_is_no_solution(name, dt):
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0.0, 0.0, 1.0])
    with pytest.raises(ph.StepError, match="was not solved"):
        ph.solve(problem, name, dt=dt, steps=3)


def test_flat_bodies():
    """The form without eigenvectors does not divide by J."""
    flat = ph.Problem(ph.Body([0.4, 0.6, 1.0]), momentum=[0.3, 0.2, 0.5])
    ours, dmv = (ph.solve(flat, name, dt=0.05, steps=100) for name in ("mv_explicit_free", "dmv2"))
    assert np.abs(ours.quaternion - dmv.quaternion).max() < 100 * 2.0**-50
    with pytest.raises(ph.InputError, match=r"mv_explicit divides by .* flat body.*do not: jacobi, dmv14"):
        ph.solve(flat, "mv_explicit", dt=0.05, steps=1)


def test_next_to_a_double_root_no_digit_is_lost():
    """Equal J and a small M: double roots of the cubic in the limit, whose eigenvectors have half the digits."""
    problem = ph.Problem(ph.Body([0.6, 0.6, 1.0]), momentum=[0.3, -0.2, 0.4])
    exact, eigen, free = (ph.solve(problem, n, dt=1e-7, steps=1).momentum[-1] for n in ("dmv2", *EXPLICIT))
    assert np.abs(free - exact).max() < 1e-15
    assert np.abs(eigen - exact).max() < 1e-15


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("thin", [1e-2, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10])
def test_needles_keep_their_integrals_or_are_refused(name, thin):
    """The formulas lose digits as the body becomes a line; the result has them all, or there is none."""
    moments = np.array([0.7, 0.7 * (1 - 1e-13), 0.7 * thin])
    for seed in range(5):
        omega = np.random.default_rng(seed).normal(size=3)
        done = run(ph.Problem(ph.Body(moments.tolist()), omega=omega.tolist()), name, 0.05, 10)
        energies = (done.momentum**2 / moments).sum(1) / (omega**2 * moments).sum() - 1
        assert done.fine or thin < 1e-5
        assert np.abs(energies).max(initial=0) < 1e-13


@pytest.mark.parametrize("name", EXPLICIT)
def test_a_sphere_that_hardly_turns(name):
    """All roots of the cubic meet, and no eigenvector is known; so nearly at rest the solution is h omega/2."""
    for speed in (1e-9, 1e-3):
        sol = ph.solve(ph.Problem(ph.Body([0.8, 0.8, 0.8]), omega=[0, speed, 0]), name, dt=0.1, steps=2)
        assert np.abs(sol.momentum - sol.momentum[0]).max() < 1e-15 * speed
        assert abs(sol.quaternion[-1, 2] - 0.1 * speed) < 1e-4 * speed


@pytest.mark.parametrize(
    "roots",
    [(1.0, 2.0, 3.5), (0.25, 0.5, 4.0), (-1.0, -2.0, 3.0), (2.0, 1 + 3j, 1 - 3j), (0.1, 5 + 0.2j, 5 - 0.2j), (1, 1, 1)],
)
def test_cubic(roots):
    """One real root and the middle and product of the others, by Viete or by Cardano."""
    with mpmath.workdps(40):
        x, y, z = (mpmath.mpmathify(r) for r in roots)
        one, middle, product = cubic_roots(
            *(mpmath.mpf(mpmath.re(c)) for c in (x + y + z, x * y + y * z + z * x, x * y * z))
        )
        half = mpmath.sqrt(middle**2 - product)
        for found in (one, middle + half, middle - half):
            assert min(abs(found - r) for r in (x, y, z)) < mpmath.mpf(10) ** -18  # half of the digits at (1, 1, 1)


# --- Zanna's experiment -----------------------------------------------------------------------------

MCLACHLAN = "mclachlan_splitting"


def momentum_error(name, t_end, steps):
    end = ph.solve(ZANNA, name, dt=t_end / steps, steps=steps, every=10**9).momentum[-1]
    return float(np.linalg.norm(end - ph.exact(ZANNA, [t_end]).momentum[-1]))


@pytest.mark.parametrize("name", ["mv_explicit", MCLACHLAN, "imr"])
@pytest.mark.parametrize("t_end", [1.0, 10.0])
@pytest.mark.usefixtures("plain_first")
def test_error_at_1_and_10_is_of_second_order(name, t_end):
    errors = [momentum_error(name, t_end, int(t_end) * n) for n in (20, 40, 80)]
    slopes = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert slopes == pytest.approx([2, 2], abs=0.1)


def test_errors_in_the_order_of_her_figures():
    """At t = 1 Moser-Veselov and the splitting err alike, at t = 10 it errs twice as much; the midpoint rule errs
    about a hundred times less for this start."""
    for t_end, low, high in ((1.0, 0.99, 1.13), (10.0, 2.0, 2.25)):
        for n in (2, 4, 8, 20, 80):
            mv, imr, mclachlan = (momentum_error(m, t_end, int(t_end) * n) for m in ("mv_explicit", "imr", MCLACHLAN))
            assert 80 < mv / imr < 125
            assert low < mv / mclachlan < high


def test_hamiltonian_over_100_with_half_steps():
    """Moser-Veselov and the midpoint rule keep H to round-off; the splitting errs by a bounded amount."""
    energies = {n: ph.solve(ZANNA, n, dt=0.5, t_end=100.0).energy for n in ("mv_explicit", "imr", MCLACHLAN)}
    drift = {n: float(np.abs(e / e[0] - 1).max()) for n, e in energies.items()}
    assert max(drift["mv_explicit"], drift["imr"]) < 200 * 8 * 2.0**-52  # a few roundings a step, all one way
    halves = [np.abs(part / energies[MCLACHLAN][0] - 1).max() for part in np.array_split(energies[MCLACHLAN], 2)]
    assert drift[MCLACHLAN] > 1e-3
    assert halves[1] < 1.1 * halves[0]


def test_the_sufficient_condition_of_the_slides_is_not_necessary():
    """M^2/4 + J^2 > 0 fails for her own run with h = 1/2, where the solution exists."""
    m = 0.5 * np.asarray(ZANNA.momentum)
    M = np.array([[0, -m[2], m[1]], [m[2], 0, -m[0]], [-m[1], m[0], 0]])
    d = ZANNA.body.moments.sum() / 2 - ZANNA.body.moments
    assert np.linalg.eigvalsh(M @ M / 4 + np.diag(d**2)).min() < 0
    assert len(ph.solve(ZANNA, "mv_explicit", dt=0.5, steps=3)) == 4


def test_operations_of_the_three():
    """The splitting is cheapest by far; Moser-Veselov without an iteration costs less than the midpoint rule."""
    count = {
        n: cost(ph.methods[n], ZANNA, 0.1).flops for n in ("mv_explicit", "mv_explicit_free", "dmv2", "imr", MCLACHLAN)
    }
    assert count["mv_explicit"] > 10 * count[MCLACHLAN]  # "about 10 more expensive than the McL-splitting"
    assert count["dmv2"] < count["imr"] < count["mv_explicit_free"] < count["mv_explicit"]


def test_mclachlans_splitting_is_the_three_rotations_in_the_order_of_h1_h2_h3():
    for label in (MCLACHLAN, "McL-splitting"):
        assert ph.methods[label] is ph.methods["rot123"]


def test_claims_about_the_poisson_structure():
    """The slides say that Moser-Veselov and the midpoint rule keep it: the first does, the second does not."""
    assert poisson_defect(ph.methods["mv_explicit"]) < 1e-25
    assert poisson_defect(ph.methods["imr"]) > 1e-6
