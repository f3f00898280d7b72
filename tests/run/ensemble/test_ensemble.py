"""Many bodies at once: each comes out as if it were alone, and is computed in vectors."""

import dataclasses
import re

import numba
import numpy as np
import pytest

import polhode as ph
from plain import run as plain_run
from polhode._memo import Memo
from polhode.compile import program
from polhode.compile.simd.vector_types import LANES, Lanes, extract, insert
from polhode.numbers.dispatch import kernel
from polhode.numbers.primitives import tan
from representatives import slow_unless
from vector_code import scalar_work

RNG = np.random.default_rng(11)
N = 19
PARTS = RNG.uniform(0.2, 1, (N, 3))
MOMENTS = PARTS + np.roll(PARTS, 1, axis=1)
ATTITUDES = RNG.normal(size=(N, 4))
ATTITUDES /= np.linalg.norm(ATTITUDES, axis=1)[:, None]
MOMENTA = RNG.normal(size=(N, 3))
WEIGHTS = RNG.uniform(0.1, 2, N)
DT = RNG.uniform(0.01, 0.03, N)
STEPS, EVERY, KEPT = 10, 4, [3, 7, 9]
EPS = np.finfo(float).eps

SOME = ("dmv10", "symrot_auto", "imidm", "mkrk(midpoint)", "mv_explicit", "nmb")
SCHEMES = ("strang(dmv4)", "nystrom4(dmv10)", "compensated(strang(dmv4))", "reversible(strang(dmv4))")
"""Methods of every kind of step; the others, and combinations, take longer."""

ELSEWHERE = "mkrk(midpoint)"
"""That of SOME which another fast test runs in lanes (tests/run/test_rest.py)."""

ALONE = "symrot_auto"
"""That of SOME for which a crowd of one is run too: with one step size for all it has a program of its own."""


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque
def drag(t, R, omega, k):
    return (-k[0] * omega[0], -k[1] * omega[1], -k[2] * omega[2])


@ph.torque(frame="space")
def swaying(t, R, mgl):
    return (mgl * R[1][2], -mgl * R[0][2], mgl * t)


@ph.torque
def swaying_drag(t, R, omega, mgl):
    return (mgl * R[2][1] - omega[0], -mgl * R[2][0], mgl * t - omega[2])


FIELDS = {"free": None, "potential": gravity, "attitude": swaying, "velocity": swaying_drag}
"""One of every kind; a method is given the most general one it declares to take."""


def alone(i, method, field, steps, every, dt=0.02, body=None):
    body = ph.Body(MOMENTS[i]) if body is None else body
    problem = ph.Problem(body, field, attitude=ATTITUDES[i], momentum=MOMENTA[i])
    return ph.solve(problem, method, dt=dt, steps=steps, every=every)


def in_plain_python(i, method, field):
    """A body of the crowd alone, with the loop and the step in plain Python: what was kept after the start."""
    problem = ph.Problem(ph.Body(MOMENTS[i]), field, attitude=ATTITUDES[i], momentum=MOMENTA[i])
    return plain_run(problem, method.name, DT[i], STEPS).rows[KEPT]


def difference(many, i, one):
    return max(np.abs(many.quaternion[:, i] - one.quaternion).max(), np.abs(many.momentum[:, i] - one.momentum).max())


def crowd(method, which=slice(None)):
    """Some bodies of the crowd, each with its own inertia, attitude, momentum, parameter and step."""
    field = FIELDS[method.needs]
    return ph.ensemble(
        MOMENTS[which], ATTITUDES[which], MOMENTA[which], method, field=field,
        params={"mgl": WEIGHTS[which]} if field else None, dt=DT[which], steps=STEPS, every=EVERY,
    )  # fmt: skip


def error_of(many, i, method, compiled):
    """How far a body of the crowd is from its own run."""
    field = FIELDS[method.needs] and FIELDS[method.needs](WEIGHTS[i])
    if compiled:
        return difference(many, i, alone(i, method, field, STEPS, EVERY, DT[i]))
    rows = np.concatenate([many.quaternion[1:, i], many.momentum[1:, i]], axis=1)
    return np.abs(rows - in_plain_python(i, method, field)).max()


@pytest.fixture
def fresh(monkeypatch):
    """Runs whose loops over bodies are compiled anew, so that their code can be read; the function gives the last one.

    Everything else is taken from the cache, and the loops are kept there.
    """
    runs, made = Memo(), program._made

    def anew(function, key):
        new = made(function, key)
        if function.__qualname__ == "loop.<locals>.run" and new.was_kept:
            new.run._cache.flush()
        return new

    monkeypatch.setattr(program, "_made", anew)
    monkeypatch.setattr(program, "MADE", runs)
    return lambda: next(
        entry.value.run for key, entry in reversed(runs.entries.items()) if key[:2] == ("shortcut", "lanes")
    )


STEPPING = [name for name in ph.methods if ph.methods[name].needs in FIELDS]
"""Methods for any body: exact solutions of tops are not among them."""


@pytest.mark.parametrize("name", slow_unless({*SOME} - {ELSEWHERE}, [*STEPPING, *SCHEMES]))
def test_every_method_in_lanes(name, fresh):
    """As alone to round-off, the same bits in any company, and no scalar code.

    SOME are compared with plain Python here, and with the compiled loop of one body below.

    The loop of one body fuses and orders its operations in its own way and takes sines from the C library: some tens of
    roundings a step, each of half an EPS.
    """
    method = ph.methods[name]
    many = crowd(method)
    assert scalar_work(fresh()) == []
    assert (many.failed == -1).all()
    assert many.t.shape == (4, N)
    for i in range(0, N, 3):
        assert error_of(many, i, method, name not in SOME) < 16 * STEPS * EPS * (1 + np.abs(MOMENTA[i]).max())
    few = [5, 14] if name in SOME and name != ALONE else [5]
    for which in (RNG.permutation(N), np.array(few), np.arange(3, 12)):
        part = crowd(method, which)
        assert np.array_equal(part.quaternion, many.quaternion[:, which])
        assert np.array_equal(part.momentum, many.momentum[:, which])


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_a_crowd_of_one_and_the_loop_of_one_body(name):
    """A body alone has the bits that it has in a crowd."""
    method, which = ph.methods[name], np.array([5])
    many, one = crowd(method), crowd(method, which)
    assert np.array_equal(one.quaternion, many.quaternion[:, which])
    assert np.array_equal(one.momentum, many.momentum[:, which])
    for i in range(0, N, 3):
        assert error_of(many, i, method, True) < 16 * STEPS * EPS * (1 + np.abs(MOMENTA[i]).max())


def chained(x):
    """Every lane grows by a little of the one before: nothing that a vector could do."""
    return x


@numba.extending.overload(chained)
def _chained(x):
    if not isinstance(x, Lanes):
        return lambda x: x

    def one_by_one(x):
        for i in range(1, LANES):
            x = insert(x, i, extract(x, i) + 1e-300 * extract(x, i - 1))
        return x

    return one_by_one


@kernel
def by_function(h, t, y, system, torque):
    """A step that asks the C library for a function, lane by lane."""
    return (y[0], (y[1][0] + tan(h), y[1][1], y[1][2])), 0


@kernel
def by_number(h, t, y, system, torque):
    """A step with arithmetic lane by lane."""
    return (y[0], (chained(y[1][0]), y[1][1], y[1][2])), 0


@pytest.mark.parametrize(("step", "said"), [(by_function, "calls tan on single"), (by_number, "scalar and .* vector")])
def test_scalar_code_is_found(step, said, fresh):
    crowd(dataclasses.replace(ph.methods["fe"], name=step.__name__, build=lambda number: step, needs="free"))
    (fault,) = scalar_work(fresh())
    assert re.search(said, fault)


@pytest.mark.parametrize("counts", [np.resize([4, 9, 4, 7, 4, 9, 4, 4], N), 1 + RNG.permutation(N)])
def test_a_number_of_steps_for_each_body(counts):
    """The same bits as in a run of its own, whatever the others do; the end is the same for all here."""
    many = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv4", field=None, dt=0.1 / counts, steps=counts)
    assert many.quaternion.shape == (2, N, 4)
    assert np.allclose(many.t, [[0.0], [0.1]])
    for count in np.unique(counts):
        which = np.flatnonzero(counts == count)
        dt = np.full(N, 0.1 / count)
        same = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv4", dt=dt, steps=int(count))
        assert np.array_equal(many.quaternion[:, which], same.quaternion[:, which])
        assert np.array_equal(many.momentum[:, which], same.momentum[:, which])


def test_failures_keep_their_bodies_with_their_own_numbers_of_steps():
    counts = np.array([3] * (N - 1) + [5])
    momenta = np.where(np.arange(N)[:, None] == 2, 1e200, 1.0) * MOMENTA
    given = {"field": swaying, "params": {"mgl": WEIGHTS}, "dt": np.full(N, 0.01)}
    with pytest.warns(ph.ResultWarning, match=f"1 of {N} bodies failed .*body 2 in step 1: the state became infinite"):
        many = ph.ensemble(MOMENTS, ATTITUDES, momenta, "nmb", steps=counts, **given)
    assert many.failed[2] == 1
    assert (np.delete(many.failed, 2) == -1).all()
    alone = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "nmb", steps=5, **given)
    assert np.array_equal(many.quaternion[:, -1], alone.quaternion[:, -1])


def test_more_bodies_than_are_sorted_together():
    from polhode.run.ensemble.task import NEAR, _by_steps

    counts = RNG.integers(1, 400, NEAR + 33)
    order = _by_steps(counts)
    assert np.array_equal(np.sort(order), np.arange(len(counts)))
    for part in (order[:NEAR], order[NEAR:]):
        assert (np.diff(counts[part]) <= 0).all()


@pytest.mark.parametrize("steps", [[3, 4], [0] * N, [2.5] * N, np.full((N, 1), 2), [True] * N])
def test_numbers_of_steps_must_be_whole_and_one_a_body(steps):
    with pytest.raises(ph.InputError, match="steps must be a whole number"):
        ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv4", dt=0.1, steps=steps)


def test_every_needs_one_number_of_steps():
    with pytest.raises(ph.InputError, match="every needs"):
        ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv4", dt=0.1, steps=[3] * N, every=2)


def test_a_step_for_each_body():
    steps = RNG.uniform(0.01, 0.05, N)
    many = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv4", dt=steps, steps=10)
    assert many.t.shape == (2, N)
    for i in range(N):
        assert difference(many, i, alone(i, "dmv4", None, 10, 10, dt=steps[i])) < 1e-14


def test_tensors_keep_the_users_axes():
    turn = np.linalg.qr(RNG.normal(size=(N, 3, 3)))[0]
    tensors = turn * MOMENTS[:, None, :] @ turn.transpose(0, 2, 1)
    k = RNG.uniform(0, 1, (N, 3))
    many = ph.ensemble(tensors, ATTITUDES, MOMENTA, "fe", field=drag, params={"k": k}, dt=0.02, steps=20)
    bodies = [ph.Body(tensor) for tensor in tensors]
    again = ph.ensemble(bodies, ATTITUDES, MOMENTA, "fe", field=drag, params={"k": k}, dt=0.02, steps=20)
    assert np.array_equal(many.quaternion, again.quaternion)
    for i in range(N):
        assert difference(many, i, alone(i, "fe", drag(k[i]), 20, 20, body=bodies[i])) < 1e-13
    space = many.matrix[-1] @ many.momentum[-1][:, :, None]
    np.testing.assert_allclose(space[..., 0], many.spatial_momentum[-1], atol=1e-14)


def test_one_for_all():
    many = ph.ensemble(ph.Body([1, 2, 2.5]), None, MOMENTA, "dmv10", dt=np.full(N, 0.1), steps=5)
    assert len(many) == N
    one = ph.solve(ph.Problem(ph.Body([1, 2, 2.5]), momentum=MOMENTA[4]), "dmv10", dt=0.1, steps=5, every=5)
    assert difference(many, 4, one) < 1e-14
    given = {"field": swaying_drag(1.0), "params": {"mgl": WEIGHTS}, "dt": np.full(N, 0.1), "steps": 2}
    assert len(ph.ensemble([1, 2, 2.5], None, [1, 0, 0], "imidm", **given)) == N


def test_a_failed_body_is_marked_and_the_others_go_on():
    fast = MOMENTA * np.where(np.arange(N) % 5 == 2, 100, 1)[:, None]
    said = f"4 of {N} bodies failed .*: bodies 2, 7, 12, 17; body 2 in step 1: its equation was not solved"
    with pytest.warns(ph.ResultWarning, match=said):
        many = ph.ensemble(MOMENTS, ATTITUDES, fast, "dmv2", dt=0.1, steps=20, every=5)
    assert np.array_equal(np.flatnonzero(many.failed >= 0), [2, 7, 12, 17])
    assert np.isnan(many.momentum[1:-1, 2]).all()
    assert np.array_equal(many.momentum[-1, 2], fast[2])
    calm = ph.ensemble(MOMENTS, ATTITUDES, MOMENTA, "dmv2", dt=0.1, steps=20, every=5)
    fine = many.failed < 0
    assert np.array_equal(many.quaternion[:, fine], calm.quaternion[:, fine])


@ph.torque
def thrust(t, omega, k):
    """A torque that becomes infinite at t = 1/k."""
    return (1 / (1 - k * t), 0.0 * omega[1], 0.0 * omega[2])


def test_steps_count_from_one_as_in_single_runs():
    """The step that fails has the same number alone and among others, and so has the reason."""
    k = np.array([0.0, 2.0, 0.0, 0.0])
    given = {"dt": 0.125, "steps": 8}
    with pytest.warns(ph.ResultWarning, match=r"1 of 4 bodies failed .*: body 1; body 1 in step (4|5): ") as said:
        many = ph.ensemble([1, 2, 2.5], None, [0, 0, 1.0], "fe", field=thrust, params={"k": k}, **given)
    alone = ph.Problem(ph.Body([1, 2, 2.5]), thrust(2.0), momentum=[0, 0, 1.0])
    with pytest.raises(ph.StepError) as fault:
        ph.solve(alone, "fe", **given)
    assert f"failed in step {many.failed[1]} " in str(fault.value)
    assert f"body 1 in step {many.failed[1]}: " in str(said[0].message)
    assert np.array_equal(many.momentum[-1, 1], fault.value.partial.momentum[-1])


def test_a_step_of_the_field_that_fails_is_explained():
    """The field itself cannot be evaluated where the body was last."""
    with pytest.warns(ph.ResultWarning, match=r"the body failed .*step 5: the torque thrust raised ZeroDivisionError"):
        ph.ensemble([1, 2, 2.5], None, [0, 0, 1.0], "fe", field=thrust, params={"k": 2.0}, dt=0.125, steps=8)


BAD = {
    "triangle": ({"bodies": MOMENTS * [1, 1, 9.0]}, "body 0: moments of inertia must satisfy the triangle inequality"),
    "shape": ({"bodies": np.ones((4, 2))}, "bodies must be .* got shape"),
    "numbers": ({"momenta": MOMENTA[:5]}, "the number of bodies must be the same everywhere .* momenta 5"),
    "nan": ({"momenta": np.where(np.arange(N)[:, None] == 3, np.nan, MOMENTA)}, "must be finite; those of body 3"),
    "length": ({"attitudes": 2 * ATTITUDES}, "unit quaternions .* body 0 has length 2"),
    "dt": ({"dt": 0.0}, "dt must be a number other than 0"),
    "steps": ({"steps": 0}, "steps"),
    "params": ({"params": {"mgl": WEIGHTS}}, "params are given .* but no field"),
    "unknown": ({"field": gravity(1.0), "params": {"mg": WEIGHTS}, "method": "imidm"}, "no parameter 'mg'; it has mgl"),
    "field": ({"field": gravity, "params": {"mgl": WEIGHTS}}, "dmv4 integrates free bodies only"),
    "kind": ({"field": 3}, "field must be made by @ph.torque or @ph.potential; got int"),
    "linear": ({"bodies": [[1, 1, 0.0]] * N, "method": "rot123"}, "linear body"),
    "flat": ({"bodies": np.vstack([MOMENTS[:-1], [1, 2, 3.0]]), "method": "mv_explicit"}, "zero for a flat body"),
    "axial": ({"bodies": [[1, 1, 0.0]] * N, "method": "akw"}, "neither rotates about its axis"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    given, said = BAD[case]
    call = {"bodies": MOMENTS, "attitudes": ATTITUDES, "momenta": MOMENTA, "method": "dmv4", "dt": 0.1, "steps": 2}
    with pytest.raises(ph.InputError, match=said):
        ph.ensemble(**(call | given))
