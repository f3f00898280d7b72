"""Compositions and splittings: their order conditions, both ways, and their orders measured in 50 digits."""

import re
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from mpmath import mpf
from tools import derive_coefficients as derive

from polhode.methods import citations
from polhode.methods.tables import compositions as coefficients
from polhode.methods.tables.compositions import DIGITS, Part, compositions, corrected, processed, splittings
from polhode.numbers.exact import converted
from polhode.numbers.multiprecision import number

TOLERANCE = mpf(10) ** -55
VISIBLE = mpf(10) ** -12
NYSTROM = [name for name, scheme in splittings.items() if scheme.generalised is None]
NEAR = [name for name, scheme in splittings.items() if scheme.generalised and not name.endswith("c")]
EVERY = {**compositions, **splittings, **processed}


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(70):
        yield


def mp(value):
    return converted(value, number)


def weights(scheme):
    return [mp(w) for w in scheme.weights]


def sequence(scheme):
    return [(flow, mp(time), mp(modified)) for flow, time, modified in scheme.sequence]


def largest(values):
    return max(abs(value) for value in values)


# --- the stored numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIGITS)
def test_stored_strings_have_60_decimals(name):
    for value in DIGITS[name]:
        assert re.fullmatch(r"-?\d\.\d{60}", value)
        assert len(value.lstrip("-0.")) >= 45


def test_stored_strings_are_what_the_derivation_gives():
    module = Path(coefficients.__file__).read_text()
    assert derive.rewritten(module) == module


def test_derived_numbers_are_the_printed_ones():
    printed = {name: start for name, (_, start) in derive.COMPOSITIONS.items()}
    printed |= {name: start for name, (_, _, start) in derive.SPLITTINGS.items()}
    for name, start in printed.items():
        for old, new in zip(start, DIGITS[name], strict=True):
            assert abs(mpf(old) - mpf(new)) < 2e-12, (name, old, new)


@pytest.mark.parametrize("scheme", EVERY.values(), ids=list(EVERY))
def test_every_scheme_has_a_source(scheme):
    assert scheme.cite in citations.entries()
    assert scheme.where
    assert scheme.kind in {"composition", "rkn", "modified", "near-integrable", "processed"}


def test_names():
    assert all(name == scheme.name for name, scheme in EVERY.items())
    assert len(EVERY) == len(compositions) + len(splittings) + len(processed)


@pytest.mark.parametrize("scheme", compositions.values(), ids=list(compositions))
def test_composition_is_consistent_and_symmetric(scheme):
    assert sum(scheme.weights) == 1
    assert scheme.weights == scheme.weights[::-1]
    assert scheme.stages == 2 * len(scheme.half) - 1


@pytest.mark.parametrize("scheme", splittings.values(), ids=list(splittings))
def test_splitting_is_consistent_and_symmetric(scheme):
    for times in (scheme.drifts, scheme.kicks):
        assert abs(sum(mp(time) for time in times) - 1) < TOLERANCE
        if all(isinstance(time, Fraction) for time in times):
            assert sum(times) == 1
    assert scheme.sequence == scheme.sequence[::-1]
    assert all(a.flow != b.flow for a, b in zip(scheme.sequence, scheme.sequence[1:], strict=False))
    assert len(scheme.modified) == len(scheme.kicks)
    assert all(part.modified == 0 for part in scheme.sequence if part.flow == "T")


def test_stages():
    stages = {name: scheme.stages for name, scheme in compositions.items()}
    assert stages == {
        "yoshida4": 3, "yoshida6": 7, "yoshida8": 15, "suzuki4": 5, "suzuki6": 25, "suzuki8": 125,
        "kahan_li6": 9, "kahan_li8": 17, "mclachlan8": 15, "sofroniou_spaletta10": 35,
    }  # fmt: skip
    assert [splittings[name].evaluations for name in NYSTROM] == [6, 11, 14, 2]


# --- order conditions -------------------------------------------------------------------------------


def test_numbers_of_conditions():
    """Those of the literature: for compositions, and for Nystrom splittings (2, 1, 2, 2, 4)."""
    assert [len(derive.lyndon_words(derive.odd_letters(n), n)) for n in (1, 3, 5, 7, 9)] == [1, 1, 2, 4, 8]
    flows = [("T", mpf(1), 0), ("U", mpf(1), 0)]
    assert [len(derive.splitting_residuals(flows, n)) for n in (1, 2, 3, 4, 5)] == [2, 1, 2, 2, 4]


def test_the_weight_five_condition_does_not_see_the_ideal():
    """On [T, [U,[U,[U,T]]]], written out in words, the functional 3 TTUUU + TUTUU vanishes."""

    def bracket(a, b):
        out = {}
        for x, p in a.items():
            for y, q in b.items():
                out[x + y] = out.get(x + y, 0) + p * q
                out[y + x] = out.get(y + x, 0) - p * q
        return out

    t, u = {"T": 1}, {"U": 1}
    r = bracket(u, bracket(u, bracket(u, t)))
    for element in (bracket(t, r), bracket(u, r)):
        assert 3 * element.get("TTUUU", 0) + element.get("TUTUU", 0) == 0
        assert all(element.get(word, 0) == 0 for word in ("TTTTU", "TTTUU", "TTUTU"))
    v = bracket(u, bracket(u, t))
    assert {word: c for word, c in v.items() if c} == {"UUT": 1, "UTU": -2, "TUU": 1}


@pytest.mark.parametrize("scheme", compositions.values(), ids=list(compositions))
def test_composition_conditions(scheme):
    w = weights(scheme)
    for n in range(1, scheme.order, 2):
        assert largest(derive.composition_residuals(w, n)) < TOLERANCE
    assert largest(derive.composition_residuals(w, scheme.order + 1)) > VISIBLE


@pytest.mark.parametrize("name", NYSTROM)
def test_splitting_conditions(name):
    scheme = splittings[name]
    parts = sequence(scheme)
    for n in range(1, scheme.order, 2):
        assert largest(derive.splitting_residuals(parts, n)) < TOLERANCE
    if scheme.order == 4:
        assert largest(derive.splitting_residuals(parts, 5)) > VISIBLE
    assert largest(derive.linear_residuals(parts, scheme.order + 1)) > VISIBLE


@pytest.mark.parametrize("name", ["blanes_moan6", "blanes_moan6a"])
def test_nystrom_splittings_of_order_six_need_the_relation(name):
    """As splittings of any two fields they have order 4."""
    parts = [derive.flow(*part) for part in sequence(splittings[name])]
    found = derive.coefficients([tuple("TUUUU")], parts)[tuple("TUUUU")] - derive.target(tuple("TUUUU"))
    assert abs(found) > VISIBLE


@pytest.mark.parametrize("name", NEAR)
def test_near_integrable_conditions(name):
    """Linear in U through weight 2n, not 2n + 1; quadratic from weight 3 on, with the corrector from 5 on."""
    scheme = splittings[name]
    m, two = scheme.generalised
    better = splittings[name + "c"]
    assert better == corrected(scheme)
    assert (two, better.generalised) == (2, (m, 4))
    quadratic = tuple("TUU")
    for parts in (sequence(scheme), sequence(better)):
        for n in range(1, m + 1):
            assert largest(derive.linear_residuals(parts, n)) < TOLERANCE
        assert largest(derive.linear_residuals(parts, m + 1)) > VISIBLE
    factors = [derive.flow(*part) for part in sequence(scheme)]
    missing = derive.target(quadratic) - derive.coefficients([quadratic], factors)[quadratic]
    assert abs(missing - mp(scheme.corrector)) < TOLERANCE
    assert abs(missing) > VISIBLE
    factors = [derive.flow(*part) for part in sequence(better)]
    assert abs(derive.target(quadratic) - derive.coefficients([quadratic], factors)[quadratic]) < TOLERANCE
    words = derive.lyndon_words(("T", "U"), 5)
    left = derive.coefficients([w for w in words if w.count("U") == 2], factors)
    assert largest(value - derive.target(word) for word, value in left.items()) > VISIBLE


@pytest.mark.parametrize("scheme", processed.values(), ids=list(processed))
def test_processed_conditions(scheme):
    """The kernel is P exp(T + U) P^-1 and the processor P, through the weights that matter."""
    parts, twist = sequence(scheme), [mp(x) for x in scheme.twist]
    for n in range(1, min(scheme.order, 5)):
        assert largest(derive.splitting_residuals(parts, n)) < TOLERANCE
    kernel = derive.kernel_residuals(sequence(scheme.kernel), twist)
    assert largest(kernel if scheme.order == 6 else kernel[:4]) < TOLERANCE
    times = [mp(part.time) for part in scheme.post]
    assert largest(derive.processor_conditions("U", twist, scheme.order - 1)(times)) < TOLERANCE
    assert largest(derive.linear_residuals(parts, scheme.order + 1)) > VISIBLE
    assert largest(derive.splitting_residuals(sequence(scheme.kernel), 3)) > VISIBLE


@pytest.mark.parametrize("scheme", processed.values(), ids=list(processed))
def test_processor_is_undone(scheme):
    assert scheme.kernel.sequence == scheme.kernel.sequence[::-1]
    for flow in "TU":
        assert sum(part.time for part in scheme.kernel.sequence if part.flow == flow) == 1
        assert sum(part.time for part in scheme.post if part.flow == flow) == 0
    for a, b in zip(scheme.pre, reversed(scheme.post), strict=True):
        assert a == Part(b.flow, -b.time, -b.modified)


# --- measured orders --------------------------------------------------------------------------------


def force(y, size):
    return size * (-mpmath.sin(y) + y**3 / 7)


def slope(y, size):
    return size * (-mpmath.cos(y) + 3 * y**2 / 7)


def split_step(parts, h, y, p, size=1):
    """Drifts y += t p; kicks by U and by V = f^2, so that p changes by -dV/dy = -2 f f'."""
    for flow, time, modified in parts:
        if flow == "T":
            y += h * time * p
        else:
            f = force(y, size)
            p += h * time * f
            if modified:
                p -= 2 * h**3 * modified * f * slope(y, size)
    return y, p


def leapfrogs(w):
    """A composition of the leapfrog, kicks first, as drifts and kicks."""
    return [part for x in w for part in (("U", x / 2, 0), ("T", x, 0), ("U", x / 2, 0))]


def taylor_step(h, y0, p0, size=1, terms=40):
    """The motion of y'' = f(y) by its Taylor series: s and c are those of sin y and cos y, q of y^2."""
    y, s, c, q = [y0, p0], [mpmath.sin(y0)], [mpmath.cos(y0)], [y0**2]
    for k in range(terms):
        cube = sum(q[j] * y[k - j] for j in range(k + 1))
        y.append(size * (-s[k] + cube / 7) / ((k + 1) * (k + 2)))
        s.append(sum((j + 1) * y[j + 1] * c[k - j] for j in range(k + 1)) / (k + 1))
        c.append(-sum((j + 1) * y[j + 1] * s[k - j] for j in range(k + 1)) / (k + 1))
        q.append(sum(y[j] * y[k + 1 - j] for j in range(k + 2)))
    return sum(x * h**k for k, x in enumerate(y)), sum(k * x * h ** (k - 1) for k, x in enumerate(y) if k)


def measured_order(parts, h, size=1):
    """From the errors of one step over h and h/2."""
    start = mpf("0.9"), mpf("0.7")
    errors = []
    for step in (h, h / 2):
        found, true = split_step(parts, step, *start, size), taylor_step(step, *start, size)
        errors.append(mpmath.hypot(found[0] - true[0], found[1] - true[1]))
    return mpmath.log(errors[0] / errors[1], 2) - 1


@pytest.mark.parametrize("scheme", compositions.values(), ids=list(compositions))
def test_measured_order_of_compositions(scheme):
    assert measured_order(leapfrogs(weights(scheme)), mpf(1) / 512) == pytest.approx(scheme.order, abs=0.05)


@pytest.mark.parametrize("name", [*splittings, *processed])
def test_measured_order_of_splittings(name):
    scheme = EVERY[name]
    assert measured_order(sequence(scheme), mpf(1) / 512) == pytest.approx(scheme.order, abs=0.05)


@pytest.mark.parametrize("name", [name for name in splittings if splittings[name].generalised])
def test_measured_generalised_order(name):
    """With a small U the first number is seen; the second is the order for U = O(1), or less if the first is less."""
    scheme = splittings[name]
    order = measured_order(sequence(scheme), mpf(1) / 64, size=mpf(10) ** -25)
    assert order == pytest.approx(scheme.generalised[0], abs=0.05)


def test_a_wrong_sign_of_the_modified_potential_is_seen():
    parts = [(flow, time, -modified) for flow, time, modified in sequence(splittings["nystrom4"])]
    assert measured_order(parts, mpf(1) / 512) == pytest.approx(2, abs=0.05)
