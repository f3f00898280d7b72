"""Combinators over what they accept: a sample of validation/combinators.py, which sweeps over all of it."""

import dataclasses
import functools
import importlib.util
import random
from pathlib import Path

import mpmath
import pytest

import polhode as ph
from plain import run
from polhode.analysis import checks
from polhode.methods.queries import TorqueAndCorrector
from proofs import checks as proofs

_path = Path(__file__).parents[2] / "validation" / "combinators.py"
_spec = importlib.util.spec_from_file_location("combinators", _path)
sweep = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sweep)

SHORT = 20
"""Work of a step, in the units of `sweep.length`, up to which an expression is checked here."""


SAMPLE = 6


@functools.cache
def sample(depth):
    """The same short expressions every time, from all combinators: seconds of work, so not before a test asks."""
    tried = sweep.pairs(sweep.arguments(depth))
    random.Random(10 + depth).shuffle(tried)
    return [e for e in sweep.accepted(tried, 40)[0] if sweep.length(e) <= SHORT][:SAMPLE]


QUICK = (checks.check_order, checks.check_symmetric, checks.check_needs)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("which", range(SAMPLE))
def test_what_a_combinator_makes_is_what_it_declares(depth, which):
    expression = sample(depth)[which]
    assert [fault for check in QUICK for fault in check(ph.methods[expression], (0,))] == [], expression


def test_the_sweep_finds_a_false_declaration(monkeypatch):
    false = dataclasses.replace(ph.methods["rot123"], name="false", order=3, order_free=3, symmetric=False)
    monkeypatch.setattr(sweep.ph, "methods", {"false": false})
    monkeypatch.setattr(proofs, "CHECKS", QUICK)
    faults = sweep.checked(("false", (0,), True)).faults
    assert len(faults) == 2, faults


OVER_IMR = [n for n in ph.methods.combinators if sweep.accepted([(n, "imr")])[0]]


@pytest.mark.parametrize("name", [n for n in OVER_IMR if sweep.length(f"{n}(imr)") <= 2 * SHORT])
def test_every_combinator_over_the_midpoint_rule_has_its_order(name):
    """The kernel of `imr` once asked for the torque itself, so that it acted twice."""
    method = ph.methods[f"{name}(imr)"]
    for kind, order in (("free", method.order_free), (method.needs, method.order)):
        measured = checks.measured_order(method, kind, 0)
        assert abs(measured - order) < 0.1 or measured == order


def test_a_corrected_scheme_over_the_midpoint_rule_compiles():
    top = ph.problems.heavy_top()
    ours, free = ph.solve(top, "saba2c(imr)", dt=1e-3, steps=8), run(top, "saba2c(jacobi)", 1e-3, 8)
    assert abs(ours.momentum[-1] - free.momentum[-1]).max() < 1e-5 * abs(free.momentum[-1]).max()


def test_a_composition_of_a_corrected_scheme_asks_for_the_corrector():
    """It once did not, and its kernel took the torque for a pair of torques."""
    method = ph.methods["yoshida4(saba2c(dmv4))"]
    assert method.asks == TorqueAndCorrector()
    with mpmath.workdps(50):
        assert abs(checks.measured_order(method, "potential", 0) - method.order) < 0.1
