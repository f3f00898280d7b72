"""Ensembles made of problems: whatever is not given is the problem's own."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.run.ensemble.inputs import ATTITUDES, read
from polhode.run.ensemble.start import VECTORS

RNG = np.random.default_rng(3)
N = 5
OMEGA = RNG.normal(size=(N, 3))
ATTITUDES_GIVEN = Rotation.random(N, random_state=4)
WEIGHTS = np.linspace(0.5, 2, N)
TENSOR = np.array([[2.0, 0.1, 0.2], [0.1, 2.5, 0.0], [0.2, 0.0, 3.0]])
EPS = np.finfo(float).eps
METHOD = "strang(dmv4)"


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque
def thrust(torque):
    return torque


BODY = ph.Body([1.5, 2.0, 2.5])
TOP = ph.Problem(
    BODY, gravity(mgl=1.0), attitude=[0, 0, 0.6, 0.8], omega=[0.1, 0.2, 3.0], t0=1.0, t_end=1.1, name="top"
)


def batch_of(first, second=None, third=None, method=None, **given):
    """The arrays that an ensemble is made of, and the method."""
    keywords = ("body", "field", "params", "t0", "t_end", *ATTITUDES, *VECTORS)
    inputs, method = read(first, second, third, method, {name: given.get(name) for name in keywords}, timed=False)
    return inputs.batch(0.1), method


def test_all_forms_are_the_same_run():
    """A problem with arrays, a list of problems, and arrays alone, to the last bit."""
    momenta = OMEGA * BODY.moments
    plain = ph.ensemble(
        BODY, TOP.quaternion, momenta, METHOD, field=gravity, params={"mgl": WEIGHTS}, t0=1.0, dt=0.01, steps=10
    )
    forms = [
        ph.ensemble(TOP, METHOD, dt=0.01, omega=OMEGA, params={"mgl": WEIGHTS}),
        ph.ensemble(TOP, method=METHOD, dt=0.01, steps=10, momentum=momenta, params={"mgl": WEIGHTS}),
        ph.ensemble([_problem(i) for i in range(N)], METHOD, dt=0.01, t_end=1.1),
    ]
    for many in forms:
        assert many.method == plain.method
        np.testing.assert_array_equal(many.t, plain.t)
        np.testing.assert_array_equal(many.quaternion, plain.quaternion)
        np.testing.assert_array_equal(many.momentum, plain.momentum)
    one = ph.solve(_problem(3), METHOD, dt=0.01, t_end=1.1)
    assert np.abs(one.quaternion[-1] - plain.quaternion[-1, 3]).max() < 100 * EPS


def _problem(i):
    return ph.Problem(BODY, gravity(mgl=WEIGHTS[i]), attitude=TOP.quaternion, omega=OMEGA[i], t0=1.0)


def test_a_problem_alone():
    batch, method = batch_of(TOP, METHOD)
    assert method == METHOD
    assert (batch.number, batch.name) == (1, "top")
    np.testing.assert_array_equal(batch.quaternion, [TOP.quaternion])
    np.testing.assert_array_equal(batch.momentum, [TOP.momentum])
    assert batch.field.values == {"mgl": 1.0}
    assert batch.body(0) is BODY


@pytest.mark.parametrize("inertia", [[1.5, 2.0, 2.5], TENSOR], ids=["principal axes", "tensor"])
@pytest.mark.parametrize("name", ["momentum", "omega", "spatial_momentum"])
def test_the_start_is_that_of_a_problem(name, inertia):
    body = ph.Body(inertia)
    batch, _ = batch_of(ph.Problem(body, omega=[0, 0, 1]), **{name: OMEGA, "attitude": ATTITUDES_GIVEN})
    for i in range(N):
        alone = ph.Problem(body, attitude=ATTITUDES_GIVEN[i], **{name: OMEGA[i]})
        np.testing.assert_allclose(batch.momentum[i], alone.momentum, rtol=8 * EPS, atol=16 * EPS)
        np.testing.assert_allclose(batch.quaternion[i], alone.quaternion, rtol=8 * EPS)
        np.testing.assert_allclose(batch.omega_of(batch.momentum)[i], alone.omega, atol=16 * EPS)


def test_spatial_omega():
    """omega = R^T of what is given."""
    batch, _ = batch_of(ph.Problem(ph.Body(TENSOR), omega=[0, 0, 1]), spatial_omega=OMEGA, attitude=ATTITUDES_GIVEN)
    np.testing.assert_allclose(batch.momentum, ATTITUDES_GIVEN.inv().apply(OMEGA) @ TENSOR, atol=32 * EPS)


def test_attitudes_in_every_form():
    wanted = ATTITUDES_GIVEN.as_quat(scalar_first=True)
    sequence = "ZXZ"
    forms = (
        {"attitude": wanted},
        {"attitude": ATTITUDES_GIVEN},
        {"attitude": ATTITUDES_GIVEN.as_matrix()},
        {"euler": (sequence, ATTITUDES_GIVEN.as_euler(sequence))},
        {"euler_deg": (sequence, ATTITUDES_GIVEN.as_euler(sequence, degrees=True))},
    )
    for form in forms:
        found = batch_of(TOP, **form)[0].quaternion
        same = Rotation.from_quat(found, scalar_first=True) * ATTITUDES_GIVEN.inv()
        assert same.magnitude().max() < 1e-14, form
    assert batch_of(TOP, euler=("ZXZ", [0.1, 0.2, 0.3]))[0].quaternion.shape == (1, 4)
    assert batch_of(TOP, attitude=np.eye(3))[0].quaternion.tolist() == [[1, 0, 0, 0]]


def test_other_bodies_keep_the_momentum():
    bodies = [ph.Body([1.5, 2.0, 2.5]), ph.Body(TENSOR)]
    batch, _ = batch_of(TOP, body=bodies)
    assert batch.number == 2
    assert [batch.body(i) for i in range(2)] == bodies
    np.testing.assert_array_equal(batch.momentum, [TOP.momentum])
    assert batch_of(TOP, body=[[1, 1, 1], [1, 2, 2.0]])[0].moments.tolist() == [[1, 1, 1], [1, 2, 2]]


def test_a_list_of_problems_with_parameters_that_are_vectors():
    torques = OMEGA.tolist()
    problems = [ph.Problem(BODY, thrust(torque=x), momentum=[0, 0, 1]) for x in torques]
    batch, _ = batch_of(problems)
    assert batch.values.tolist() == torques
    assert [batch.field_of(i).values["torque"] for i in range(N)] == [tuple(x) for x in torques]
    alike, _ = batch_of([problems[0]] * 3)
    assert (alike.number, alike.values.tolist()) == (3, [torques[0]] * 3)


def test_arrays_take_the_names_too():
    batch, _ = batch_of([1.5, 2.0, 2.5], None, None, METHOD, omega=OMEGA, euler_deg=("xyz", [0, 0, 90]))
    np.testing.assert_array_equal(batch.momentum, OMEGA * BODY.moments)
    np.testing.assert_allclose(batch.quaternion, [[np.sqrt(0.5), 0, 0, np.sqrt(0.5)]], atol=EPS)


def test_to_a_tolerance():
    many = ph.ensemble(ph.Problem(BODY, momentum=[0, 0, 1], t0=1.0, t_end=3.0), tol=1e-9, momentum=OMEGA)
    assert many.t.tolist() == [1.0, 3.0]


LINEAR = ph.Body([0.0, 1.0, 1.0])
FREE = ph.Problem(BODY, momentum=[0, 0, 1])
REFUSED = {
    "two vectors": ((TOP, METHOD), {"omega": OMEGA, "momentum": OMEGA}, "give only one of momentum, omega"),
    "two attitudes": ((TOP, METHOD), {"attitude": [1, 0, 0, 0], "euler": ("xyz", [0, 0, 0])}, "give only one of attit"),
    "two methods": ((TOP, METHOD), {"method": METHOD}, "give one method"),
    "positional": ((TOP, ATTITUDES_GIVEN, None, METHOD), {}, "give attitudes by name"),
    "momenta": ((TOP, METHOD, OMEGA), {}, "give momenta by name"),
    "sizes": ((TOP, METHOD), {"omega": OMEGA, "attitude": np.eye(4)[:2]}, "attitudes 2, omega 5"),
    "shape": ((TOP, METHOD), {"omega": OMEGA[:, :2]}, r"omega must have the shape \(N, 3\)"),
    "infinite": ((TOP, METHOD), {"omega": [np.inf, 0, 0]}, "omega must be finite"),
    "no start": (([1, 1, 1], None, None, METHOD), {}, "give momenta, or one of momentum, omega"),
    "body": (([1, 1, 1], None, [0, 0, 1], METHOD), {"body": BODY}, "bodies are the first argument"),
    "mixed list": (([TOP, BODY], METHOD), {}, "entry 1 is a Body"),
    "other field": (([TOP, FREE], METHOD), {"t0": 0.0}, "a field of the same formula"),
    "other times": (([FREE, ph.Problem(BODY, momentum=[0, 0, 1], t0=2)], METHOD), {}, "the same t0; got 0.0 and 2.0"),
    "other ends": (
        ([FREE, ph.Problem(BODY, momentum=[0, 0, 1], t_end=2)], METHOD), {"steps": None}, "the same t_end; got None"
    ),
    "no end": ((FREE, METHOD), {"steps": None}, r"method, dt and steps \(or t_end\)"),
    "end and steps": ((TOP, METHOD), {"t_end": 2.0}, "t_end or steps, not both"),
    "not whole": ((TOP, METHOD), {"t_end": 2.005, "steps": None}, "not a whole number of steps"),
    "own steps and end": ((TOP, METHOD), {"steps": None, "dt": [0.1, 0.2]}, "give steps instead of t_end"),
    "reversible": ((TOP, "reversible(strang(dmv4))"), {"steps": None}, "chooses its own steps, so give steps"),
    "euler": ((TOP, METHOD), {"euler": [0.1, 0.2, 0.3]}, "euler must be a sequence and angles"),
    "sequence": ((TOP, METHOD), {"euler": ("abc", [0.1, 0.2, 0.3])}, "got 'abc'"),
    "angles": ((TOP, METHOD), {"euler": ("ZXZ", [0.1, 0.2])}, "the angles of euler must have the shape"),
    "reflection": ((TOP, METHOD), {"attitude": -np.eye(3)}, "attitudes must be rotations"),
    "not a rotation": ((TOP, METHOD), {"attitude": [np.eye(3), 2 * np.eye(3)]}, "that of body 1 is not one"),
    "nan": ((TOP, METHOD), {"attitude": np.full((3, 3), np.nan)}, "attitudes must be rotations"),
    "axial": ((FREE, METHOD), {"body": LINEAR, "omega": [1, 1, 0]}, "body 0 is linear and must have no omega"),
    "params": ((TOP, METHOD), {"params": 3}, "params must be a dictionary"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    given, named, words = REFUSED[case]
    with pytest.raises(ph.InputError, match=words if "\\" in words else re.escape(words)):
        ph.ensemble(*given, **{"dt": 0.01, "steps": 10} | named)
