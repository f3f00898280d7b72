"""Derivatives of the states of an ensemble: those of `ph.solve` for every body."""

import sys

import numpy as np
import pytest

import polhode as ph
from simulated_card import computed

RNG = np.random.default_rng(5)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN *= np.sign(np.linalg.det(TURN))
FIELD = ph.fields.gravity(mgl=1.5)
UNEQUAL, EQUAL = (ph.Body(TURN @ np.diag([1.0, 2.0, x]) @ TURN.T) for x in (2.5, 2.0))
PROBLEM = ph.Problem(UNEQUAL, FIELD, omega=(0.3, 1.0, 0.2))
OMEGA = RNG.normal(size=(3, 3))
MGL = np.array([1.5, 0.7, 1.1])
MANY = {"body": [UNEQUAL, EQUAL, UNEQUAL], "omega": OMEGA, "params": {"mgl": MGL}, "tangent": True}
FIXED = {
    "method": "strang(dmv2)",
    "dt": 0.05,
}  # does not depend on the axes, so derivatives at equal moments are unique


def one(i, body=None):
    """Body i of the ensemble as a problem."""
    return ph.Problem(body or MANY["body"][i], ph.fields.gravity(mgl=MGL[i]), omega=OMEGA[i])


def compare(tangent, i, expected, rtol):
    """Assert that all derivatives of body i are those of a run of this body."""
    scale = rtol * abs(expected.matrix).max()
    assert abs(tangent.matrix[:, i] - expected.matrix).max() < scale
    assert abs(tangent.inertia[:, i] - expected.inertia).max() < scale
    assert abs(tangent.params["mgl"][:, i] - expected.params["mgl"]).max() < scale
    assert abs(tangent.symplectic_defect[:, i] - expected.symplectic_defect).max() < 20 * scale
    sigma = np.full(6, 1e-3)
    ours, theirs = (x.covariance(sigma, params={"mgl": 0.01}) for x in (tangent, expected))
    assert np.allclose(ours.sigma[:, i], theirs.sigma, rtol=20 * rtol)
    assert np.allclose(ours.attitude[0][:, i], theirs.attitude[0], rtol=1e3 * rtol)


@pytest.mark.parametrize("kept", [{"every": 9}, {"times": [0.5, 1.0, 2.0]}], ids=["every", "times"])
def test_derivatives_with_equal_steps_are_those_of_each_body(kept):
    many = ph.ensemble(PROBLEM, **FIXED, t_end=2.0, **kept, **MANY)
    assert many.tangent.matrix.shape == (len(many.t), 3, 6, 6)
    assert many.tangent.inertia.shape == (len(many.t), 3, 6, 3, 3)
    assert many.tangent.symplectic_defect.max() < 1e-12
    for i in range(3):
        sol = ph.solve(one(i), **FIXED, t_end=2.0, tangent=True)
        compare(many.tangent, i, sol.at(many.t).tangent, 1e-13)


def test_principal_moments_own_steps_and_numbers_of_steps():
    omega, dt, steps = OMEGA, np.array([0.05, -0.04, 0.1]), np.array([20, 7, 33])
    body = ph.Body((1.0, 2.0, 2.5))
    given = {**MANY, "body": body}
    many = ph.ensemble(PROBLEM, FIXED["method"], dt=dt, steps=steps, **given)
    assert many.tangent.inertia.shape == (2, 3, 6, 3)
    for i in range(3):
        sol = ph.solve(one(i, body), FIXED["method"], dt=dt[i], steps=int(steps[i]), tangent=True, every=1000)
        compare(many.tangent, i, sol.tangent, 1e-13)
    alone = ph.ensemble(
        PROBLEM, FIXED["method"], dt=dt[1:2], steps=steps[1:2],
        **{**given, "omega": omega[1:2], "params": {"mgl": MGL[1:2]}},
    )  # fmt: skip
    assert (alone.tangent.matrix[:, 0] == many.tangent.matrix[:, 1]).all()
    assert (alone.tangent.inertia[:, 0] == many.tangent.inertia[:, 1]).all()


@pytest.mark.parametrize("how", [{"tol": 1e-8}, {"step_tol": 1e-11}], ids=["tol", "step_tol"])
def test_derivatives_with_a_tolerance_are_those_of_each_body(how):
    end, times = 2.0, [0.5, 2.0]
    many = ph.ensemble(PROBLEM, **how, t_end=end, times=times, **MANY)
    for i in range(3):
        sol = ph.solve(one(i), tol=1e-12, t_end=end, tangent=True)
        compare(many.tangent, i, sol.at(many.t).tangent, 1e-8 if "tol" in how else 1e-10)
    first = {"body": UNEQUAL, "omega": OMEGA[:1], "params": {"mgl": MGL[:1]}}
    alone = ph.ensemble(PROBLEM, **how, t_end=end, times=times, **{**MANY, **first})
    assert (alone.tangent.matrix[:, 0] == many.tangent.matrix[:, 0]).all()


def test_derivatives_backwards_with_a_tolerance():
    many = ph.ensemble(PROBLEM, step_tol=1e-11, t_end=-1.0, **MANY)
    for i in range(3):
        expected = ph.solve(one(i), tol=1e-12, t_end=-1.0, tangent=True).tangent.matrix[-1]
        assert abs(many.tangent.matrix[-1, i] - expected).max() < 1e-10


def test_free_bodies_have_derivatives_even_where_the_exact_formulas_have_none():
    omega, body = np.array([[0.0, 0.0, 1.3], [0.2, 0.1, 1.0]]), ph.Body((1.0, 1.0, 2.0))
    many = ph.ensemble(ph.Problem(body, omega=omega[0]), omega=omega, tol=1e-10, t_end=2.0, tangent=True)
    for i in range(2):
        expected = ph.solve(ph.Problem(body, omega=omega[i]), tol=1e-10, t_end=2.0, tangent=True).tangent
        assert abs(many.tangent.matrix[-1, i] - expected.matrix[-1]).max() < 1e-11
    assert many.tangent.params == {}


def test_statistics_keep_the_ends_of_the_derivatives():
    many = ph.ensemble(PROBLEM, **FIXED, t_end=1.0, statistics="energy", **MANY)
    ends = ph.ensemble(PROBLEM, **FIXED, t_end=1.0, **MANY)
    assert (many.tangent.matrix == ends.tangent.matrix).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "abm4"}, "needs steps from state to state"),
        ({"out": "x.zarr"}, "leave out `out`"),
        ({"tangent": 3}, "tangent"),
    ],
)
def test_what_has_no_tangent_is_refused(given, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        ph.ensemble(PROBLEM, **{**FIXED, "t_end": 1.0, **MANY, **given})


def test_conditions_and_linear_bodies_are_refused():
    @ph.torque
    def relay(omega):
        return (ph.where(omega[0] > 0, -1.0, 1.0), 0.0, 0.0)

    problem = ph.Problem(ph.Body((1.0, 2.0, 3.0)), relay(), omega=(0.1, 0.2, 0.3))
    with pytest.raises(ph.InputError, match="smooth in the state"):
        ph.ensemble(problem, "mkrk(rk4)", dt=0.1, t_end=1.0, omega=OMEGA, tangent=True, statistics="energy")
    rod = ph.Problem(ph.Body((0.0, 1.0, 1.0)), omega=(0.0, 0.2, 0.3))
    many = ph.ensemble(rod, "jacobi", dt=0.1, t_end=1.0, omega=[[0.0, 0.2, 0.3]] * 2, tangent=True)
    with pytest.raises(ph.InputError, match="linear body"):
        _ = many.tangent.inertia


# --- on a GPU -----------------------------------------------------------------------------------------

ON_CARD = {
    "steps": {**FIXED, "t_end": 0.5, "every": 4, **MANY},
    "own steps": {
        "method": FIXED["method"],
        "dt": np.array([0.05, -0.04, 0.1]),
        "steps": np.array([7, 3, 5]),
        **MANY,
        "body": ph.Body((1.0, 2.0, 2.5)),
    },
    "times": {"step_tol": 1e-7, "t_end": 0.5, "times": [0.2, 0.5], **MANY},
    "tol": {"tol": 1e-6, "t_end": 0.5, **MANY},
}


def derivatives(case, device):
    """All derivatives of a case, by name."""
    tangent = ph.ensemble(PROBLEM, device=device, **ON_CARD[case]).tangent
    return {"matrix": tangent.matrix, "inertia": tangent.inertia, "mgl": tangent.params["mgl"]}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("cuda") / "tangents.npz")


@pytest.mark.parametrize("case", ON_CARD)
def test_the_card_computes_the_derivatives_of_the_processor(simulated, case):
    """With equal steps to round-off; with a tolerance to a part of it, because the steps may differ by round-off."""
    near = 1e-13 if "dt" in ON_CARD[case] else 1e-8
    for name, values in derivatives(case, "cpu").items():
        np.testing.assert_allclose(simulated[f"{case}: {name}"], values, rtol=0, atol=near * abs(values).max())


def write_all(path):
    """What the card (its simulator) computes."""
    found = {f"{case}: {name}": x for case in ON_CARD for name, x in derivatives(case, "cuda").items()}
    np.savez(path, **found)


if __name__ == "__main__":
    write_all(sys.argv[1])


def test_states_at_other_times_have_no_tangents_of_the_run():
    top = ph.problems.heavy_top()
    many = ph.ensemble(top, "imidm", omega=[[0.3, 0.2, 0.1]] * 2, dt=0.01, steps=5, every=1, tangent=True)
    assert many.at([0.012, 0.03]).tangent is None
