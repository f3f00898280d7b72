"""Runs in a heat bath: the noise of a body depends on seed, stream and step only; what does not fit is refused."""

import numpy as np
import pytest

import polhode as ph
from polhode.compile.simd.vector_types import LANES

MOMENTS = (0.2, 1.0, 1.1)
FRICTION = ((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5))
BATH = ph.fields.heat_bath(kT=1.5, friction=FRICTION, seed=3)
METHOD = "baoab(rot123)"
START = [0.2, 2.0, 3.3]
STEPS = 40


def problem(field=BATH, **start):
    return ph.Problem(ph.Body(MOMENTS), field, **({"momentum": START} | start))


def crowd(number, **changed):
    given = {"field": BATH, "dt": 0.05, "steps": STEPS, "every": 10} | changed
    return ph.ensemble([ph.Body(MOMENTS)] * number, None, [START] * number, METHOD, **given)


def same(a, b):
    return np.array_equal(a.momentum, b.momentum) and np.array_equal(a.quaternion, b.quaternion)


def test_a_run_is_repeated_by_its_seed_and_changed_by_another():
    one = ph.solve(problem(), METHOD, dt=0.05, steps=STEPS)
    assert same(one, ph.solve(problem(), METHOD, dt=0.05, steps=STEPS))
    other = ph.solve(problem(BATH.bind(seed=4)), METHOD, dt=0.05, steps=STEPS)
    assert not np.allclose(one.momentum[-1], other.momentum[-1], atol=0.01)


def test_a_continued_run_has_the_noise_that_follows():
    whole = ph.solve(problem(), METHOD, dt=0.05, steps=STEPS)
    half = ph.solve(problem(), METHOD, dt=0.05, steps=STEPS // 2)
    rest = problem(
        BATH.bind(first_step=STEPS // 2), momentum=half.momentum[-1], attitude=half.quaternion[-1], t0=half.t[-1]
    )
    again = ph.solve(rest, METHOD, dt=0.05, steps=STEPS // 2)
    assert again.momentum == pytest.approx(whole.momentum[STEPS // 2 :], abs=1e-13)


def test_a_resumed_file_is_the_same_run(tmp_path):
    whole = ph.solve(problem(), METHOD, dt=0.05, steps=STEPS, every=5)
    path = tmp_path / "run.zarr"
    ph.solve(problem(), METHOD, dt=0.05, steps=STEPS // 2, every=5, out=path)
    assert same(whole, ph.solve(problem(), METHOD, dt=0.05, steps=STEPS, every=5, out=path, resume=True))


def test_noise_of_a_body_does_not_depend_on_its_neighbours():
    many, few = crowd(2 * LANES + 3), crowd(3)
    assert np.array_equal(many.momentum[:, :3], few.momentum)
    assert len(np.unique(many.momentum[-1, :, 0])) == 2 * LANES + 3
    backwards = crowd(3, params={"stream": np.array([2.0, 1.0, 0.0])})
    assert np.array_equal(backwards.momentum[:, ::-1], few.momentum)


def test_a_body_of_an_ensemble_moves_as_alone():
    few = crowd(3)
    for i in range(3):
        alone = ph.solve(problem(BATH.bind(stream=i)), METHOD, dt=0.05, steps=STEPS, every=10)
        assert few.momentum[:, i] == pytest.approx(alone.momentum, abs=1e-12)


def test_digits_make_the_same_run():
    precise = ph.solve(problem(), METHOD, dt=0.05, steps=10, digits=30)
    assert precise.momentum == pytest.approx(ph.solve(problem(), METHOD, dt=0.05, steps=10).momentum, abs=1e-13)


TURN = np.array(((2.0, -2.0, 1.0), (1.0, 2.0, 2.0), (-2.0, -1.0, 2.0))) / 3


def in_turned_axes(moments, field):
    tensor = TURN @ np.diag(moments) @ TURN.T
    return ph.Problem(ph.Body((tensor + tensor.T) / 2), field, momentum=START)


def in_digits(digits):
    def way(one, method):
        sol = ph.solve(one, method, dt=0.05, steps=10, digits=digits)
        return sol.quaternion, sol.momentum

    return way


def in_lanes(one, method):
    many = ph.ensemble([one] * 9, method, params={"stream": np.zeros(9)}, dt=0.05, steps=10, every=1)
    return many.quaternion[:, 8], many.momentum[:, 8]


def in_arrays(one, method):
    """By the batch stepper, the body among others."""
    q, m, found = np.tile(one.quaternion, (3, 1)), np.tile(one.momentum, (3, 1)), []
    many = ph.batch_stepper([one.body] * 3, method, dt=0.05, field=one.field, params={"stream": np.zeros(3)})
    for _ in range(11):
        found.append((q[1].copy(), m[1].copy()))
        many.step(q, m)
    return tuple(map(np.array, zip(*found, strict=True)))


WAYS = {"20 digits": in_digits(20), "40 digits": in_digits(40), "lanes": in_lanes, "arrays": in_arrays}


@pytest.mark.parametrize("friction", [0.7, FRICTION], ids=["isotropic", "tensor"])
@pytest.mark.parametrize("moments", [MOMENTS, (1.0, 1.0, 0.5), (1.0, 1.0, 1.0)], ids=["any", "symmetric", "sphere"])
@pytest.mark.parametrize("method", [METHOD, "brownian(2)"])
def test_every_way_has_the_same_noise_along_the_same_principal_axes(method, moments, friction):
    """Round-off chooses neither the order nor the sign of the axes, nor their directions where moments are equal."""
    one = in_turned_axes(moments, BATH.bind(friction=friction))
    sol = ph.solve(one, method, dt=0.05, steps=10)
    for name, way in WAYS.items():
        quaternion, momentum = way(one, method)
        assert momentum == pytest.approx(sol.momentum, abs=1e-13), name
        assert quaternion == pytest.approx(sol.quaternion, abs=1e-13), name


def test_digits_take_the_axes_of_a_splitting_in_the_same_order():
    one = in_turned_axes(MOMENTS, None)
    sol = ph.solve(one, "rot123", dt=0.05, steps=10)
    precise = ph.solve(one, "rot123", dt=0.05, steps=10, digits=20)
    assert precise.momentum == pytest.approx(sol.momentum, abs=1e-13)
    assert precise.quaternion == pytest.approx(sol.quaternion, abs=1e-13)


def test_the_friction_tensor_is_in_the_axes_of_the_body():
    """The same body with its tensor and its bath in turned axes has the same energies."""
    turn = ph.solve(problem(None, omega=[1, 2, 3], momentum=None), "jacobi", dt=0.7, steps=1).matrix[-1]
    turned = ph.Problem(
        ph.Body(turn @ np.diag(MOMENTS) @ turn.T), BATH.bind(friction=turn @ np.array(FRICTION) @ turn.T, kT=0.0),
        momentum=turn @ np.array(START),
    )  # fmt: skip
    cold = problem(BATH.bind(kT=0.0))
    energies = [ph.solve(one, "baoab(jacobi)", dt=0.05, steps=STEPS).energy for one in (cold, turned)]
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)
    assert energies[0][-1] < 0.2 * energies[0][0]


def test_without_friction_the_scheme_is_that_of_strang():
    field = ph.fields.gravity(mgl=1.0)
    plain = ph.solve(problem(field), "strang(rot123)", dt=0.05, steps=STEPS)
    for bath in (BATH.bind(friction=0.0 * np.eye(3)), BATH.bind(friction=0.0 * np.eye(3), kT=0.0)):
        found = ph.solve(problem(field + bath), "obabo(rot123)", dt=0.05, steps=STEPS)
        assert found.momentum == pytest.approx(plain.momentum, abs=1e-12)


def test_a_bath_survives_sums_and_pickles():
    import pickle

    field = ph.fields.gravity(mgl=1.0) + BATH
    kept = pickle.loads(pickle.dumps(field))
    assert kept.bath == field.bath == 1
    runs = [ph.solve(problem(f), METHOD, dt=0.05, steps=5) for f in (field, kept, BATH + ph.fields.gravity(mgl=1.0))]
    assert same(runs[0], runs[1])
    assert runs[0].momentum == pytest.approx(runs[2].momentum, abs=1e-14)


REFUSED = [
    (lambda: ph.solve(problem(), "imidm", dt=0.1, steps=1), "needs a method with noise"),
    (lambda: ph.solve(problem(), tol=1e-6, t_end=1.0), "needs a method with noise and a step dt"),
    (lambda: ph.exact(problem(), [1.0]), "needs a method with noise"),
    (lambda: ph.propagator(problem(), tol=1e-6), "needs a method with noise"),
    (lambda: ph.solve(problem(None), METHOD, dt=0.1, steps=1), "needs a heat bath"),
    (lambda: ph.solve(problem(), METHOD, dt=-0.1, steps=1), "forwards in time only"),
    (lambda: crowd(2, dt=-0.1), "forwards in time only"),
    (lambda: ph.solve(problem(), METHOD, dt=0.1, steps=2, times=[0.15]), "no states between its steps"),
    (lambda: ph.solve(problem(), METHOD, dt=0.1, steps=2).at(0.15), "dense output"),
    (lambda: ph.ensemble([MOMENTS] * 2, None, [START] * 2, "imidm", field=BATH, dt=0.1, steps=1), "method with noise"),
    (lambda: ph.ensemble([MOMENTS] * 2, None, [START] * 2, field=BATH, tol=1e-6, t_end=1.0), "method with noise"),
    (lambda: ph.methods["yoshida4(baoab(jacobi))"], "baoab"),
    (lambda: ph.methods["baoab(imidm)"], "needs a method for free bodies"),
    (lambda: ph.methods["strang(baoab(jacobi))"], "has noise"),
    (lambda: BATH + BATH, "one heat bath"),
    (lambda: BATH.bind(kT=-1.0), "must be 0 or more; got -1.0"),
    (lambda: BATH.bind(friction=-np.eye(3)), "eigenvalue -1"),
    (lambda: BATH.bind(friction=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
    (lambda: BATH.bind(seed=0.5), "whole number"),
    (lambda: BATH.bind(stream=-1), "whole number"),
    (lambda: crowd(3, params={"kT": np.array([1.0, -1.0, 1.0])}), "body 1: kT"),
    (lambda: crowd(2, params={"stream": np.array([0.0, 0.5])}), "those of body 1"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ph.InputError, match=message):
        call()
