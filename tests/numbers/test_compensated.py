"""States that carry what rounding loses, and the runs they are for."""

import json
from fractions import Fraction
from pathlib import Path

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polhode as ph
from polhode import plots
from polhode.analysis import checks
from polhode.analysis.long_run import drifts, growth_exponent, root_mean_square, scattered_starts
from polhode.kernels.loops import stepping
from polhode.kernels.state import collapse, compensate, renormalise, summed
from polhode.methods.families.splitting import excess, less_one
from polhode.numbers import floats
from polhode.physics.fields.kernels import no_torque
from polhode.run.system import engine

BY_INCREMENTS = [m.name for m in ph.methods.values() if m.increments]
SYMMETRIC = ph.Problem(ph.Body([0.9, 0.9, 1.6]), momentum=[0.3, 0.7, 1.1])
EPS = 2.0**-52


def final(problem, name, dt, steps, chunks=1):
    """The full state after some steps, made in equal chunks."""
    run = engine(problem, ph.methods[name])
    y, rows = run.y, run.buffer(1)
    for k in range(chunks):
        part = steps // chunks
        y, *_, fine = run.advance(dt, problem.t0, k * part, part, 2 * steps, 2 * steps, y, run.system, rows)
        assert fine
    return y


# --- arithmetic -------------------------------------------------------------------------------------

sizes = st.floats(min_value=-1.0, max_value=1.0, allow_nan=False)


@given(sizes, sizes, sizes)
def test_a_sum_loses_only_the_round_off_of_round_off(a, fraction, step):
    low = a * fraction * EPS / 2
    high, rest = summed(a, low, step)
    lost = Fraction(high) + Fraction(rest) - Fraction(a) - Fraction(low) - Fraction(step)
    assert abs(lost) <= Fraction(EPS) ** 2 * 2
    assert high == high + rest


@given(st.floats(min_value=1e-8, max_value=1.0))
def test_excess_of_a_sine_and_a_cosine(angle):
    s, c = float(np.sin(angle)), float(np.cos(angle))
    exact = Fraction(s) ** 2 + Fraction(c) ** 2 - 1
    assert abs(Fraction(excess(s, c)) - exact) <= Fraction(EPS) ** 2 + Fraction(EPS) * Fraction(1 - c) ** 2


@given(st.floats(min_value=1e-9, max_value=3.1))
def test_cosine_less_one_without_cancellation(angle):
    with mpmath.workdps(40):
        expected = float(mpmath.cos(angle) - 1)
    s, c = float(np.sin(angle)), float(np.cos(angle))
    assert less_one(s * s, c) == pytest.approx(expected, rel=8 * EPS)


def test_tidying_changes_the_length_and_not_the_attitude():
    q = tuple(x * (1 + 3e-15) for x in (0.5, 0.1, -0.7, 0.5))
    y = (q, (1.0, 2.0, 3.0), (1e-18, -2e-18, 3e-18, 0.0), (0.0, 0.0, 0.0))
    new = renormalise(y)
    assert new[0] == q
    assert new[1:2] + new[3:] == y[1:2] + y[3:]
    with mpmath.workdps(50):
        before, after = ([mpmath.mpf(a) + b for a, b in zip(z[0], z[2], strict=True)] for z in (y, new))
        off = mpmath.norm(before) - 1
        assert off > 10 * EPS
        assert abs(mpmath.norm(after) - 1) < 2 * off**2
        ratios = [b / a for a, b in zip(before, after, strict=True)]
        assert max(ratios) - min(ratios) < EPS**2 * 100


def test_a_state_is_rounded_as_a_whole():
    y = ((1.0, 0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    assert collapse(compensate(y)) == y
    assert collapse(y) is y
    assert collapse((*y, (0.0, 1e-20, 0.0, 0.0), (EPS, 0.0, 0.0))) == ((1.0, 1e-20, 0.0, 0.0), (1 + EPS, 2.0, 3.0))


# --- the combinator ---------------------------------------------------------------------------------


def test_what_is_written_by_increments():
    expected = {n for n in ph.methods if n.startswith(("rot", "symrot", "dmv"))}
    assert expected <= set(BY_INCREMENTS)
    assert ph.strang("dmv10").increments
    assert ph.yoshida4(ph.strang("symrot")).increments
    assert not ph.yoshida4("imidm").increments


@pytest.mark.parametrize("name", ["imidm", "jacobi", "yoshida4(imidm)", "strang(jacobi)"])
def test_other_methods_are_refused(name):
    with pytest.raises(ph.InputError, match=r"increments of the state, and .*use dmv14, .*rot123, .*or schemes"):
        ph.compensated(name)


def test_the_declaration_is_that_of_the_part():
    part, made = ph.methods["dmv10"], ph.methods["compensated(dmv10)"]
    assert (made.name, made.cite, made.compensated) == ("compensated(dmv10)", "vilmart2008", True)
    said = ("order", "order_free", "symmetric", "symplectic", "poisson", "implicit", "solves", "conserves", "needs")
    assert all(getattr(made, word) == getattr(part, word) for word in said)
    assert ph.compensated(made) is made
    assert made.name not in ph.methods


@pytest.mark.usefixtures("plain_first")
def test_schemes_over_a_compensated_flow_are_compensated():
    top = ph.problems.heavy_top()
    for outside, inside in (("compensated(strang(dmv10))", "strang(compensated(dmv10))"),
                            ("compensated(yoshida4(symrot))", "yoshida4(compensated(symrot))")):  # fmt: skip
        assert final(top, outside, 0.05, 50) == final(top, inside, 0.05, 50)


@pytest.mark.parametrize("name", ["dmv10", "symrot123", "rot_auto", "strang(symrot_auto)", "nystrom4(dmv4)"])
def test_every_property_holds_with_low_parts(name):
    assert checks.check(ph.compensated(name)) == []


@pytest.mark.parametrize("name", [*BY_INCREMENTS, "blanes_moan6(rot_auto)", "saba2c(dmv6)"])
def test_a_step_is_the_same_in_many_digits(name):
    method, kind = ph.methods[name], "free" if ph.methods[name].needs == "free" else "potential"
    with mpmath.workdps(checks.DIGITS):
        plain, made = (checks.Setting(m, kind).step(0.125) for m in (method, ph.compensated(method)))
        assert checks.distance(plain, made) < checks.EXACT


# --- runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_INCREMENTS)
@pytest.mark.usefixtures("plain_first")
def test_every_method_runs_compensated(name):
    free = ph.problems.free_body()
    plain, made = (ph.solve(free, m, dt=0.1, steps=200) for m in (name, f"compensated({name})"))
    np.testing.assert_allclose(made.quaternion, plain.quaternion, atol=2e-13)
    np.testing.assert_allclose(made.momentum, plain.momentum, atol=2e-13)
    assert np.abs(np.linalg.norm(made.quaternion, axis=1) - 1).max() < 2 * EPS


@pytest.mark.parametrize("name", ["symrot", "strang(dmv4)"])
def test_more_accurate_than_the_plain_method(name):
    top = ph.problems.heavy_top() if name.startswith("strang") else ph.problems.free_body()
    exact = ph.solve(top, name, dt=0.05, steps=4000, every=4000, digits=30)
    plain, made = (ph.solve(top, m, dt=0.05, steps=4000, every=4000) for m in (name, f"compensated({name})"))
    errors = [np.abs(run.quaternion[-1] - exact.quaternion[-1]).max() for run in (plain, made)]
    assert errors[1] < errors[0] / 4


@pytest.mark.parametrize("name", ["compensated(dmv10)", "compensated(strang(symrot))"])
def test_a_run_does_not_depend_on_its_chunks(name):
    problem = ph.problems.heavy_top() if "strang" in name else ph.problems.free_body()
    whole = final(problem, name, 0.05, 1000)
    assert len(whole) == 4
    assert whole == final(problem, name, 0.05, 1000, chunks=50)
    assert max(map(abs, whole[3])) > 0
    rows = [ph.solve(problem, name, dt=0.05, steps=1000, every=every) for every in (1, 7, 1000)]
    q, m = collapse(whole)
    for run in rows:
        assert (*run.quaternion[-1], *run.momentum[-1]) == (*q, *m)


def test_compiled_and_interpreted_steps_agree():
    """To the round-off of increments: compiled code may round a product and a sum at once."""
    free = ph.problems.free_body()
    _, system = free.kernel_data(floats.number)
    advance = stepping(ph.methods["dmv10"].build(floats.number), no_torque)
    run = engine(free, ph.methods["compensated(dmv10)"])
    y, *_, fine = advance(0.1, 0.0, 0, 100, 200, 200, run.y, system, run.buffer(1))
    assert fine
    compiled = final(free, "compensated(dmv10)", 0.1, 100)
    for a, b, a_low, b_low in ((y[0], compiled[0], y[2], compiled[2]), (y[1], compiled[1], y[3], compiled[3])):
        gap = (np.array(a) - np.array(b)) + (np.array(a_low) - np.array(b_low))
        assert np.abs(gap).max() < 8 * EPS  # 100 increments of a tenth, each to its own round-off


def test_bodies_that_are_flat_linear_or_at_rest():
    flat, line = ph.Body([1.0, 2.0, 3.0]), ph.Body([0.0, 2.0, 2.0])
    for body, momentum in ((flat, (0.3, -0.5, 0.7)), (line, (0.0, -0.5, 0.7)), (flat, (0.0, 0.0, 0.0))):
        problem = ph.Problem(body, momentum=momentum)
        plain, made = (ph.solve(problem, m, dt=0.1, steps=100) for m in ("dmv10", "compensated(dmv10)"))
        np.testing.assert_allclose(made.momentum, plain.momentum, atol=1e-14)
        np.testing.assert_allclose(made.quaternion, plain.quaternion, atol=1e-13)


def test_a_body_with_axes_of_its_own():
    body = ph.Body([[3.0, 0.5, 0.0], [0.5, 2.5, 0.2], [0.0, 0.2, 2.0]])
    problem = ph.Problem(body, momentum=[1.0, -0.4, 0.8])
    run = drifts(problem, ph.methods["compensated(dmv10)"], 0.1, [100_000])[0]
    assert abs(run.energy) < 20 * EPS
    assert run.spatial_momentum < 100 * EPS


def test_a_run_in_many_digits():
    sol = ph.solve(ph.problems.free_body(), "compensated(dmv10)", dt=0.1, steps=5, digits=40)
    plain = ph.solve(ph.problems.free_body(), "dmv10", dt=0.1, steps=5, digits=40)
    assert max(abs(x) for x in (sol.mp.momentum - plain.mp.momentum).flat) < mpmath.mpf(10) ** -38


def test_a_stepper_has_no_room_for_low_parts():
    with pytest.raises(ph.InputError, match=r"which a stepper does not store; use ph.solve"):
        ph.stepper(ph.Body([1.0, 2.0, 2.5]), "compensated(dmv10)", 0.1)


# --- growth of round-off ----------------------------------------------------------------------------

COUNTS = [10**3, 10**4, 10**5, 10**6]
GROWTH = [
    (ph.problems.free_body(), "dmv10", 0.1, ("energy", "momentum_norm", "spatial_momentum")),
    (ph.problems.free_body(), "symrot", 0.1, ("momentum_norm", "spatial_momentum")),
    (SYMMETRIC, "symrot_auto", 0.1, ("energy", "momentum_norm", "spatial_momentum")),
    (SYMMETRIC, "dmv10", 0.1, ("spatial_momentum",)),
    (ph.problems.heavy_top(), "strang(symrot)", 0.02, ("spatial_momentum",)),
]
"""Problem, method, step size, and errors that are nothing but round-off."""


@pytest.mark.parametrize(("problem", "name", "dt", "kept"), GROWTH, ids=lambda x: x if isinstance(x, str) else "")
def test_round_off_grows_like_a_random_walk(problem, name, dt, kept):
    """A walk of random steps below h epsilon stays under epsilon sqrt(N); steps of one sign would not."""
    starts = scattered_starts(problem, 4)
    made = [drifts(start, ph.compensated(name), dt, COUNTS) for start in starts]
    plain = [drifts(start, ph.methods[name], dt, COUNTS[-1:]) for start in starts]
    for what in kept:
        errors = root_mean_square(made, what)
        assert (errors < EPS / 4 * np.sqrt(COUNTS)).all(), (what, errors)
        assert errors[-1] < root_mean_square(plain, what)[-1] / 4


def test_compensated_runs_are_nearer_and_walk():
    """The momentum in space after 10^6 steps: a walk, and far below that of the plain method."""
    starts = scattered_starts(ph.problems.free_body(), 8)
    plain, made = (
        root_mean_square([drifts(start, ph.methods[name], 0.1, COUNTS) for start in starts], "spatial_momentum")
        for name in ("dmv10", "compensated(dmv10)")
    )
    assert growth_exponent(COUNTS, made) < 0.65
    assert made[-1] < plain[-1] / 4


def test_growth_exponent_of_powers():
    assert growth_exponent(COUNTS, [3e-16 * n**0.5 for n in COUNTS]) == pytest.approx(0.5)
    assert growth_exponent(COUNTS, [1e-18 * n for n in COUNTS]) == pytest.approx(1.0)


def test_a_long_run_that_fails_says_so():
    with pytest.raises(ph.StepError, match=r"compensated\(dmv2\) failed in step 1 with dt = 50"):
        drifts(ph.problems.free_body(), ph.compensated("dmv2"), 50.0, [10])


def test_growth_is_drawn_with_its_guides():
    fig, ax = plots.growth_plot(
        {"plain": (COUNTS, [1e-18 * n for n in COUNTS]), "none": (COUNTS, [0.0] * 4)}, title="here"
    )
    drawn = {line.get_label(): np.array(line.get_data()) for line in ax.get_lines()}
    np.testing.assert_allclose(drawn["plain"][1], [1e-15, 1e-14, 1e-13, 1e-12])
    assert (drawn["none"][1] > 0).all()
    slopes = [np.polyfit(*np.log(line.get_data()), 1)[0] for line in ax.get_lines()[2:]]
    assert slopes == pytest.approx([1.0, 0.5])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["plain", "none"]
    plt.close(fig)


def test_the_benchmark_holds_what_the_document_says():
    """Figures of record: compensated errors grow like a random walk up to the last step, and end far below plain ones.

    The rms of four random walks is known to 1/sqrt(8) of itself, so a slope fitted to it over ln(N1/N0) scatters by
    about 0.4/ln(N1/N0) around 1/2; three times that is allowed.
    """
    rows = json.loads((Path(__file__).parents[2] / "benchmarks" / "long_run.json").read_text())["rows"]
    assert max(row["steps"][-1] for row in rows) == 10**8
    text = (Path(__file__).parents[2] / "docs" / "long_runs.md").read_text()
    for plain, made in zip(rows[::2], rows[1::2], strict=True):
        assert made["method"] == f"compensated({plain['method']})"
        for what in made["round_off"]:
            assert made["exponent"][what] < 0.5 + 1.2 / np.log(made["steps"][-1] / 1000)
            assert made["rms"][what][-1] < EPS * np.sqrt(made["steps"][-1])
            assert f"| {plain['rms'][what][-1]:.1e} | {plain['exponent'][what]:.2f} " in text
            assert f"| {made['rms'][what][-1]:.1e} | {made['exponent'][what]:.2f} |" in text
            assert plain["rms"][what][-1] > 30 * made["rms"][what][-1]
