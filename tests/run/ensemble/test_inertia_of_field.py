"""Built-in fields that contain the inertia of their body, with other bodies."""

import numpy as np
import pytest

import polhode as ph

MOMENTS = np.array([[1.0, 2.0, 2.5], [1.5, 2.0, 2.5]])
AXES = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
TENSORS = np.einsum("ij,nj,kj->nik", AXES, MOMENTS, AXES)
RUN = {"method": "imidm", "omega": np.ones((2, 3)), "dt": 0.01, "steps": 2}
OF_ANOTHER = "was made for a body whose inertia is not that of body 1; give the inertia of all bodies, params="


@pytest.mark.parametrize("bodies", [MOMENTS, TENSORS])
def test_the_inertia_of_one_body_is_refused(bodies):
    first = ph.Body(bodies[0])
    field = ph.fields.distant_centre(first, strength=0.7)
    problem = ph.Problem(first, field, omega=[1.0, 1.0, 1.0])
    with pytest.raises(ph.InputError, match=OF_ANOTHER + "{'inertia'"):
        ph.ensemble(bodies, field=field, **RUN)
    with pytest.raises(ph.InputError, match=OF_ANOTHER):
        ph.ensemble(problem, body=bodies, **RUN)
    with pytest.raises(ph.InputError, match=OF_ANOTHER + "{'distant_centre_inertia'"):
        ph.ensemble(bodies, field=field + ph.fields.internal_damping(first, rate=0.1), **RUN)
    with pytest.raises(ph.InputError, match=OF_ANOTHER):
        ph.batch_stepper(bodies, "imidm", dt=0.01, field=field)


@pytest.mark.parametrize("bodies", [MOMENTS, TENSORS])
def test_the_inertia_of_all_bodies(bodies):
    field = ph.fields.distant_centre(ph.Body(bodies[0]), strength=0.7)
    given = ph.ensemble(bodies, field=field, params={"inertia": bodies}, **RUN)
    apart = [ph.Problem(b, ph.fields.distant_centre(b, strength=0.7), omega=[1.0] * 3) for b in map(ph.Body, bodies)]
    listed = ph.ensemble(apart, "imidm", dt=0.01, steps=2)
    np.testing.assert_allclose(given.momentum, listed.momentum, rtol=0, atol=1e-14)
    same = ph.ensemble(np.stack([bodies[0]] * 2), field=field, **RUN)  # all are the body of the field
    np.testing.assert_allclose(same.momentum[:, 1], given.momentum[:, 0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("made_for", ["moments", "tensors"])
def test_another_inertia_among_the_parameters_is_told(made_for):
    """Three rows of moments, given to a field made for a tensor, are one tensor, and none of the bodies has it."""
    moments = np.array([[1.0, 2.0, 2.5], [1.5, 2.0, 2.5], [2.0, 2.2, 2.4]])
    run = RUN | {"omega": np.ones((3, 3))}
    first = moments[0] if made_for == "moments" else TENSORS[0]
    field, wrong = ph.fields.distant_centre(ph.Body(first), strength=0.7), moments[[0, 2, 1]]
    with pytest.warns(
        ph.ResultWarning, match=f"the inertia in params is not that of body [01]; .*, as {made_for}, unless"
    ):
        ph.ensemble(moments, field=field, params={"inertia": wrong}, **run)
    with pytest.warns(ph.ResultWarning, match="the inertia in params is not that of body"):
        ph.batch_stepper(moments, "imidm", dt=0.01, field=field, params={"inertia": wrong})
    right = moments if made_for == "moments" else moments[..., None] * np.eye(3)
    found = ph.ensemble(moments, field=field, params={"inertia": right}, **run)
    listed = [ph.Problem(b, ph.fields.distant_centre(b, strength=0.7), omega=[1.0] * 3) for b in map(ph.Body, moments)]
    np.testing.assert_allclose(found.momentum, ph.ensemble(listed, "imidm", dt=0.01, steps=2).momentum, atol=1e-14)


def test_replaced_bodies_would_keep_their_torque():
    field = ph.fields.distant_centre(ph.Body(MOMENTS[0]), strength=0.7)
    stepper = ph.batch_stepper(MOMENTS, "imidm", dt=0.01, field=field, params={"inertia": MOMENTS})
    with pytest.raises(ph.InputError, match="the inertia of the bodies among its parameters, which replace does not"):
        stepper.replace(0, ph.Body(MOMENTS[1]))


def test_one_body_in_the_field_of_another_is_told():
    one, other = map(ph.Body, MOMENTS)
    field = ph.fields.distant_centre(one, strength=0.7)
    message = "was made for a body with another inertia; make it for this body"
    for acting in (field, field + ph.fields.linear_drag(0.1)):
        with pytest.warns(ph.ResultWarning, match=message):
            ph.Problem(other, acting, omega=[1.0, 1.0, 1.0])
    ph.Problem(other, field.bind(inertia=MOMENTS[1]), omega=[1.0, 1.0, 1.0])
    ph.Problem(ph.Body(np.diag(MOMENTS[0])), field, omega=[1.0, 1.0, 1.0])
