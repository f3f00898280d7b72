"""Moments that no rigid body has, for Euler's equations: accepted on request, and with a warning."""

import copy
import pickle
import warnings

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.reference import flow

MOMENTS = (3.0, 3.5, 9.0)
START = {"attitude": (0.8, 0.4, 0.2, -0.4), "momentum": (1.0, -2.0, 1.5)}


@pytest.fixture
def body():
    with pytest.warns(ph.ResultWarning, match="unphysical moments of inertia: 9 exceeds the sum of 3 and 3.5 by 2.5"):
        return ph.Body(MOMENTS, physical=False)


@pytest.fixture
def problem(body):
    return ph.Problem(body, **START)


def test_they_are_refused_unless_asked_for():
    with pytest.raises(ph.InputError, match=r"triangle inequality.*physical=False"):
        ph.Body(MOMENTS)


@pytest.mark.parametrize("moments", [(-1, 2, 3), (1, 2, np.nan), (1, 2, np.inf), (0, 1, 3), (0, 0, 1), (0, 0, 0)])
def test_negative_zero_and_infinite_moments_are_still_refused(moments):
    with pytest.raises(ph.InputError):
        ph.Body(moments, physical=False)


def test_physical_is_a_word_of_its_own():
    with pytest.raises(ph.InputError, match="physical must be True, False or None; got 'no'"):
        ph.Body(MOMENTS, physical="no")


def test_a_body_that_can_exist_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ph.Body([1, 2, 2.5], physical=False).physical
        assert ph.Body([1, 2, 3], physical=False).is_flat


def test_what_it_says_of_itself(body):
    assert [body.physical, body.is_flat, body.has_thickness] == [False, False, False]
    assert repr(body) == "Body([3.0, 3.5, 9.0], physical=False)"


def test_copies_and_changes_keep_it_without_another_warning(body):
    for other in (pickle.loads(pickle.dumps(body)), copy.deepcopy(body), body.turned((0.5, 0.5, 0.5, 0.5))):
        assert not other.physical
        np.testing.assert_allclose(sorted(other.moments), MOMENTS)


@pytest.mark.parametrize("name", [m.name for m in ph.methods.values() if m.flat_bodies and m.order == 2])
def test_methods_that_need_no_mass_distribution_take_it(problem, name):
    """One small step against the Taylor series of Euler's equations."""
    h = 2.0**-10
    end = ph.solve(problem, name, dt=h, steps=1, digits=30)
    with mpmath.workdps(40):
        exact = flow(problem, h, digits=40)
        assert max(abs(a - b) for a, b in zip(end.mp.momentum[-1], exact[1], strict=True)) < 10 * h**3


@pytest.mark.parametrize("name", [m.name for m in ph.methods.values() if not m.flat_bodies])
def test_the_others_refuse_it(problem, name):
    with pytest.raises(ph.InputError, match=r"half the difference .* negative for unphysical moments"):
        ph.solve(problem, name, dt=0.01, steps=1)


def test_exact(problem):
    exact = ph.exact(problem, [0.0, 5.0], digits=30)
    with mpmath.workdps(40):
        steps = flow(problem, 5.0, digits=40)
    np.testing.assert_allclose(exact.momentum[-1], [float(x) for x in steps[1]], rtol=1e-14)
    assert ph.solve(problem, tol=1e-10, t_end=5.0).error_estimate < 1e-9


def test_ensemble_of_bodies(body):
    many = ph.ensemble([body, body], None, [START["momentum"]] * 2, "imidm", dt=0.01, steps=10)
    one = ph.solve(ph.Problem(body, momentum=START["momentum"]), "imidm", dt=0.01, steps=10)
    np.testing.assert_allclose(many.momentum[-1][1], one.momentum[-1], rtol=1e-13)


def test_files(problem, tmp_path):
    sol = ph.solve(problem, "symrot", dt=0.01, steps=10, out=tmp_path / "a.zarr")
    back = ph.load(tmp_path / "a.zarr")
    np.testing.assert_array_equal(back.omega, sol.omega)
    np.testing.assert_array_equal(back.energy, sol.energy)


FILE = """
[body]
moments = [3, 3.5, 9]
physical = {}

[start]
momentum = [1, -2, 1.5]

[run]
method = "symrot"
dt = 0.01
steps = 10
"""


def test_problem_file(tmp_path):
    from polhode.problem_file import load

    path = tmp_path / "a.toml"
    path.write_text(FILE.format("false"))
    with pytest.warns(ph.ResultWarning, match="unphysical moments"):
        assert not load(path).problem.body.physical
    path.write_text(FILE.format("true"))
    with pytest.raises(ph.InputError, match="triangle inequality"):
        load(path)
