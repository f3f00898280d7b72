"""Misprints of the papers, as printed and as corrected: the printed one visibly fails, the corrected one holds.

Exact fractions where there is nothing but arithmetic, otherwise 50 digits. Derivatives are central differences with
steps of 1e-13 to 1e-16, which leaves errors of their squares. Misprints of the algorithms are measured in the tests
of the algorithms (test_rattle.py, test_schemes.py, test_lie.py, test_vector.py, test_identities.py).
"""

from fractions import Fraction

import mpmath
import pytest
from validation.papers import buss_series, vilmart_equations
from validation.papers import krysl_section2 as vector

from polhode.analysis.checks import DIGITS
from polhode.numbers.multiprecision import number

VISIBLE, ROUND_OFF, DIFFERENCES = 1e-3, mpmath.mpf(10) ** -45, mpmath.mpf(10) ** -24


def check(printed, corrected, bound=ROUND_OFF):
    assert printed > VISIBLE
    assert corrected < bound


@pytest.mark.parametrize("kind", ["free", "attitude"])
def test_the_dots_of_the_equations_of_motion(kind):
    """Krysl's (7): the scan has Pi where the rate of Pi stands."""
    check(*vector.rate_of_momentum(kind), DIFFERENCES)


def test_the_midpoint_rule_on_vector_spaces():
    """Krysl's (5): u1 = u + dt/2 M^-1 p_mid; the composition of the Euler steps has dt."""
    with mpmath.workdps(DIGITS):
        end = vector.composed("backward_euler", "forward_euler")
        gaps = [vector.gap(vector.midpoint(f)(vector.START, end), end) for f in (number(1) / 2, 1)]
        check(*gaps)


def test_the_velocity_of_a_point():
    """Vilmart: v = x cross omega gives -Theta omega, exactly; v = omega cross x is right."""
    printed, corrected = vilmart_equations.angular_momentum()
    assert isinstance(printed, Fraction)
    assert corrected == 0
    assert printed > 1


def test_the_left_side_of_the_reduced_equations():
    """Vilmart's (8): a matrix on the left, a vector on the right."""
    check(*vilmart_equations.reduced_equations(), DIFFERENCES)


def test_the_units_of_a_quaternion():
    """Vilmart: i q2 instead of j q2."""
    printed, corrected = vilmart_equations.quaternion_units()
    assert isinstance(printed, Fraction)
    assert corrected == 0
    assert printed > VISIBLE


def test_the_frame_of_the_conserved_momentum():
    """Vilmart: Q y is constant and belongs to the fixed frame; that of the body frame changes."""
    check(*vilmart_equations.momentum_frames())


def test_the_normalisation_of_the_midpoint_rule():
    """Vilmart's Remark 4: without the normalisation in (13) Q is not orthogonal and Q y changes."""
    found = vilmart_equations.midpoint_normalisation()
    for name in ("Q orthogonal", "Q y"):
        check(*found[name])
    for name in ("C", "H"):
        assert max(found[name]) < ROUND_OFF


def test_powers_of_the_step_in_modified_energies():
    """Vilmart: H + h K2 + ...: reversible steps have no term in h. A step that is not reversible has one near 1."""
    for term, asymmetry in vilmart_equations.powers_of_h().values():
        assert term < vilmart_equations.EXACT_TERM
        assert asymmetry < ROUND_OFF
    kept = vilmart_equations.TABLE_2
    try:
        vilmart_equations.TABLE_2 = ("fem",)
        term, asymmetry = vilmart_equations.powers_of_h()["fem"]
    finally:
        vilmart_equations.TABLE_2 = kept
    assert term > 0.1
    assert asymmetry > VISIBLE


def test_the_trivialised_velocity():
    """Buss: y' = W and y' = dexp_Y(Y') lack y^-1."""
    found = buss_series.velocities()
    check(found["printed"], found["corrected"], DIFFERENCES)


def test_the_rotation_of_a_step():
    """Buss: exp(Z) is not the rotation over a step, exp(h Z) is."""
    found = buss_series.updates()
    check(found["printed"], found["corrected"])


def test_the_bracket_is_that_of_the_algebra():
    """Buss: u, v "Lie group elements": the commutator of two rotations is no rotation."""
    found = buss_series.brackets()
    assert found["printed"] >= 1
    assert found["corrected"] == 0


def test_the_printed_series_has_a_stray_term():
    """Buss: order five as printed and stopped after h^4, six without the term of the wrong weight."""
    fourth, fifth, stray = buss_series.FOURTH, buss_series.FIFTH, buss_series.STRAY
    orders = [buss_series.order(words) for words in (fourth, fourth + fifth + stray, fourth + fifth)]
    assert orders == pytest.approx([5, 5, 6], abs=0.05)
    weights = {(power, sum(k + 1 for k in word)) for _, power, word in fourth + fifth}
    assert all(weight == power + 1 for power, weight in weights)
    assert [sum(k + 1 for k in word) for _, _, word in stray] == [5]


def test_the_false_third_order_estimate():
    """Buss: right as printed, of the estimate: its h^2 coefficient is wrong, with the bracket it is right."""
    false, true = (buss_series.estimate_errors(words) for words in (buss_series.FALSE_THIRD, buss_series.FOURTH))
    check(false[2], true[2])
    assert false[1] < ROUND_OFF
