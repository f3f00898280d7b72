"""The book of methods, expressions, and methods of the user's own."""

from fractions import Fraction

import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.numbers.exact import Surd, converted, surd


def test_papers_labels_are_aliases_in_any_case():
    assert ph.methods["LIEMID[I]"] is ph.methods["imidm"]
    assert ph.methods["liemid[ea]"] is ph.methods["liemid_ea"]
    assert ph.methods["TRAPM"].name == "trapm"


def test_expressions_strings_and_python_are_one():
    assert ph.methods["mkrk(rk4)"] is ph.mkrk("rk4")
    assert ph.methods[" MKRK( rk4 ) "] is ph.mkrk("rk4")
    assert ph.methods["mkrk(lobatto3a2)"] is ph.mkrk("trapezoid")
    assert ph.methods[ph.mkrk("rk4")] is ph.mkrk("rk4")


def test_unknown_names_get_the_nearest():
    with pytest.raises(ph.InputError, match=r"unknown method 'imdim'; nearest: .*imid"):
        ph.methods["imdim"]
    with pytest.raises(ph.InputError, match=r"unknown tableau 'rk5'; the named ones are euler"):
        ph.methods["mkrk(rk5)"]


@pytest.mark.parametrize("label", ["mkrk()", "mkrk(rk4, gauss2)"])
def test_expressions_with_wrong_arguments(label):
    with pytest.raises(ph.InputError, match="is not a method"):
        ph.methods[label]


def test_names_are_unique():
    with pytest.raises(ValueError, match="names 'fe' already"):
        ph.methods.add(ph.mkrk(ph.Tableau([[0]], [1], name="x")).__class__(**{**vars(ph.methods["be"]), "name": "FE"}))


@pytest.mark.usefixtures("plain_first")
def test_a_tableau_of_your_own():
    ralston = ph.Tableau([[0, 0], ["2/3", 0]], ["1/4", "3/4"], name="ralston", order=2, symmetric=False)
    method = ph.mkrk(ralston)
    assert method.name == "mkrk(ralston)"
    assert checks.check(method) == []
    assert "mkrk(ralston)" not in ph.methods
    sol = ph.solve(ph.problems.free_body(), method, dt=0.01, steps=10)
    assert sol.drift()["spatial_momentum"] < 1e-14


@pytest.mark.parametrize(
    "checked", [(checks.check_order, checks.check_cost), pytest.param(checks.CHECKS, marks=pytest.mark.slow)]
)
def test_a_diagonally_implicit_tableau_is_solved_stage_by_stage(checked):
    """Crouzeix' two-stage method of order 3: gamma = 1/2 + sqrt(3)/6."""
    gamma, other = surd("1/2", "1/6", 3), surd("0", "-1/3", 3)
    tableau = ph.Tableau([[gamma, 0], [other, gamma]], ["1/2", "1/2"], name="crouzeix", order=3, symmetric=False)
    assert tableau.blocks() == [(0,), (1,)]
    assert [fault for check in checked for fault in check(ph.mkrk(tableau))] == []


def test_a_wrong_order_of_your_own_tableau_is_found():
    tableau = ph.Tableau([[0, 0], ["2/3", 0]], ["1/4", "3/4"], name="boast", order=3, symmetric=False)
    assert any("declared order 3" in fault for fault in checks.check_order(ph.mkrk(tableau)))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([[0, 0]], [1], "needs a square matrix"),
        ([[0]], [], "needs a square matrix"),
        ([["one"]], [1], "must be a finite number or a string such as '1/3'; got 'one'"),
        ([[float("nan")]], [1], "must be a finite number"),
    ],
)
def test_bad_tableaus(a, b, message):
    with pytest.raises(ph.InputError, match=message):
        ph.Tableau(a, b)


def test_surds_are_exact():
    x = surd("1/2", "-1/6", 3)
    assert x + surd("0", "1/6", 3) == Fraction(1, 2)
    assert converted(x, float) == pytest.approx(0.5 - 3**0.5 / 6, abs=1e-16)
    assert isinstance(1 + x, Surd)
