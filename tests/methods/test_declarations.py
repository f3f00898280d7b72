"""Every property every registered method declares, measured in 50 digits, both ways."""

import math

import pytest

import polhode as ph
from proofs import checks
from representatives import representatives, slow_unless


def quick():
    """All methods but the longest: of those that solve for several stages at once, one for each paper is enough here.

    These differ in their coefficients, which tests/methods/test_order_conditions.py checks as well.
    """
    several = [method for method in ph.methods.values() if method.solves > 1]
    return {*ph.methods} - {method.name for method in several} | representatives(several)


@pytest.mark.parametrize("name", slow_unless(quick(), ph.methods))
def test_method_is_what_it_declares(name):
    """All checks in one test: they share steps of the method."""
    assert checks.check(ph.methods[name]) == []


def test_every_method_is_named_once_and_found_by_its_labels():
    for method in ph.methods.values():
        for label in (method.name, method.name.upper(), *method.aliases):
            assert ph.methods[label] is method


def test_declarations_speak_the_agreed_words():
    for method in ph.methods.values():
        assert isinstance(method.order, int) or method.order == math.inf, method
        assert isinstance(method.order_free, int) or method.order_free == math.inf, method
        assert method.order_free >= method.order, method
        assert method.summary, method
        assert method.where, method
