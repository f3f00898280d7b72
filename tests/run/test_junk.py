"""Wrong arguments of public functions end in one sentence; `validation/fuzz_inputs.py` tries all things everywhere."""

import itertools
import random
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import junk
import junk_calls
import polhode as ph

pytestmark = pytest.mark.xdist_group("junk")

SAMPLES = 2
"""Things tried for each argument of each function."""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("calls"))
        warnings.simplefilter("ignore")
        return junk_calls.calls()


def fault(function, given):
    """What is wrong with how a call ends; None if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**given)
    except junk.ALLOWED as refusal:
        return None if str(refusal) and "\n" not in str(refusal) and len(str(refusal)) < 2000 else repr(str(refusal))
    except Exception as raw:
        inside = traceback.extract_tb(raw.__traceback__)[-1].filename == junk.__file__  # a function of the user raised
        return None if inside else f"{type(raw).__name__}: {raw}"
    return None


NEVER = [10**400, "x", 1j, "a\0b.zarr", [[1, 2], [3]], np.empty((2, 0)), object(), junk.NoFloat(), junk.NoArray(), ph,
         b"x", {1, 2}, 1e-320, np.array(np.datetime64("2020")), junk.gravity(1.0), ph.problems.free_body()]  # fmt: skip
"""Things that are right in very few places."""

SLOW = ("chaos", "fit", "gradient", "lyapunov", "animate", "Trajectory.animate", "plots.poincare", "jax.flow", "warm")
"""Functions whose calls compile, or take a second where a thing happens to be right."""


def test_every_argument_of_every_public_function_is_called(calls):
    """What `validation/fuzz_inputs.py` throws things at is the whole public interface."""
    missing = {name: set(words) - junk_calls.given(name, calls) for name, words in junk_calls.public()}
    called = {label.partition(",")[0] for label in calls}
    assert {name: words for name, words in missing.items() if words or name not in called} == {}
    strange = {"methods[]", *ph.methods.combinators}
    assert called - strange <= set(missing)


def test_the_calls_are_right(calls):
    """Each ends without an error, except those that read a file that is not there."""
    refused = []
    for name, (function, given) in calls.items():
        if name.partition(",")[0] not in SLOW and "none." not in str(given) and name != "load":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(**given)
                except junk.ALLOWED as refusal:
                    refused.append(f"{name}: {refusal}")
    assert refused == []


def test_wrong_arguments_end_in_a_sentence(calls):
    chance, found = random.Random(14), []
    for name, (function, given) in calls.items():
        for argument in given if name.partition(",")[0] not in SLOW else ():
            for thing in chance.sample(NEVER, SAMPLES):
                said = fault(function, given | {argument: thing})
                if said:
                    found.append(f"{name}({argument}={repr(thing)[:60]}): {said[:200]}")
    assert found == []


def controlled(**run):
    return ph.solve(ph.problems.free_body(), t_end=1.0, control=lambda omega: [-x for x in omega], **run)


KNOWN = {
    "huge steps": lambda: ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=10**400),
    "NUL in a path": lambda: ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=2, out="a\0b.zarr"),
    "a name of 5000 letters": lambda: ph.load("x" * 5000 + ".zarr"),
    "a lone surrogate": lambda: ph.load("\ud800.zarr"),
    "no problem": lambda: ph.exact(None, [1]),
    "no trajectory": lambda: ph.modified_energy(ph.problems.free_body(), None),
    "nothing at all": lambda: ph.modified_energy(None, None),
    "an array as a word": lambda: ph.torque(frame=np.array([])),
    "an array as a flag": lambda: ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=2, resume=np.array([])),
    "a list as a unit": lambda: ph.Body.from_mesh("x.stl", unit=[]),
    "a list as a tableau": lambda: ph.mkrk([]),
    "no tableau": lambda: ph.Tableau(None, None),
    "NaN in a tableau": lambda: ph.Tableau([[float("nan")]], [1]),
    "a name that is none": lambda: ph.Tableau([[0]], [1], name=None),
    "a surd of nothing": lambda: ph.surd(None, "1", 2),
    "a surd of an infinity": lambda: ph.surd("1", float("inf"), 2),
    "a root of a fraction": lambda: ph.surd("1", "1", 1.5),
    "a number of a gigabyte": lambda: ph.surd("1e999999999", "1", 2),
    "roots that do not go together": lambda: ph.Tableau([[ph.surd(0, 1, 2), ph.surd(0, 1, 3)], [0, 0]], [1, 0]),
    "digits that are none": lambda: ph.period(ph.problems.free_body(), digits=float("nan")),
    "shapes that are none": lambda: ph.Body([1, 2, 2.5], shapes=None),
    "ragged steps": lambda: ph.ensemble([1, 2, 2.5], None, [[1, 0, 0]], "imidm", dt=0.1, steps=[[1, 2], [3]]),
    "parameters that are no dictionary": lambda: ph.ensemble([1, 2, 2.5], None, [[1, 0, 0]], "imidm", dt=1, steps=1,
                                                              params=True),
    "a group of no size": lambda: ph.lie.SO(2**53),
    "a step that is none": lambda: ph.lie.magnus([np.eye(2)], None),
    "a field as a method": lambda: ph.emit(ph.fields.gravity(1.0)),
    "an emitted step beyond all angles": lambda: ph.emit("fem", dt=1e308),
    "a slider without end": lambda: ph.view_live("x.html", spin=1e308),
    "times whose powers exceed doubles": lambda: ph.kinematics(lambda t: (0.0 * t, 0.0, 1.0), 1.0, t0=1e308),
    "a box of no size": lambda: ph.PeriodicBox(1e-320),
    "a page of a kind that is none": lambda: ph.view_live("x.html", []),
    "a page of no bodies": lambda: ph.view_many([0.0], [[[1.0, 0, 0, 0]]], "x.html", body=None),
    "an expression without end": lambda: ph.methods["strang(" * 200 + "dmv10" + ")" * 200],
    "a period of more steps than can be counted": lambda: controlled(dt=0.1, method="imidm", period=1e308),
    "more steps in a period than an integer holds": lambda: controlled(dt=0.1, method="imidm", period=2.0**64),
    "samples closer than can be counted": lambda: controlled(tol=1e-8, period=1e-320),
    "states closer than can be kept": lambda: ph.solve(ph.problems.free_body(), tol=1e-8, t_end=1.0, max_turn=1e-320),
    "times beyond all steps": lambda: ph.solve(ph.problems.free_body(), "imidm", dt=0.1, times=[0.5, 1e308]),
    "times beyond all angles": lambda: ph.solve(ph.problems.fast_top(), tol=1e-8, times=[0.5, 1e308]),
    "more angles than memory": lambda: ph.Facets.box(1, 2, 3).mean_radiation_torque(1.0, (0, 0, 1), 0.1, angles=2**53),
    "more polhodes than memory": lambda: ph.plots.polhode_family(ph.Body([1, 2, 2.5]), count=2**53),
    "a kernel that is none": lambda: ph.formats.read_ck(None, -999000, [0.5], epoch="2029-04-13T21:46:00"),
    "an instrument that is none": lambda: ph.formats.read_ck("x.bc", None, [0.5], epoch="2029-04-13T21:46:00"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_mistakes_are_input_errors(name):
    with pytest.raises(ph.InputError) as refusal:
        KNOWN[name]()
    assert "\n" not in str(refusal.value)


def test_long_and_broken_texts_become_one_short_line():
    said = str(ph.InputError(f"got {np.eye(200)!r} and {'x' * 10_000}"))
    assert "\n" not in said
    assert len(said) < 2000
    assert said.startswith("got array")
    assert said.endswith("x")


PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 1 {index}
"""

MESHES = {
    "beyond.ply": PLY.format(index=7),
    "negative.ply": PLY.format(index=-7),
    "two.obj": "v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n",
    "beyond.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 1000000000000000\n",
    "negative.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -1 -2 -9\n",
    "text.stl": "solid x\nfacet normal a b c\n",
}


@pytest.mark.parametrize("name", MESHES)
def test_damaged_meshes_are_input_errors(name, capfd):
    Path(name).write_text(MESHES[name])
    with pytest.raises(ph.InputError):
        ph.Body.from_mesh(name, mass=1.0)
    assert capfd.readouterr().err == ""


def measured(omega=0.0, sigma=1e-3):
    t = np.linspace(0.0, 1.0, 5)
    return ph.measurements.rates(t, np.full((5, 3), omega), sigma=sigma)


@pytest.mark.parametrize("given", [
    {"data": None}, {"free": None}, {"free": [{}]}, {"priors": 3}, {"priors": {"omega": {1}}}, {"spread": 3},
    {"spread": {"omega": object()}}, {"arcs": 2**53}, {"starts": 2**53}, {"data": measured(omega=1e308)},
    {"data": measured(sigma=1e-320)},
], ids=itertools.count())  # fmt: skip
def test_wrong_arguments_of_fit_end_in_a_sentence(given):
    with pytest.raises(ph.InputError, match=r"must be|exceed|finite"), np.errstate(all="ignore"):
        ph.fit(**{"problem": ph.problems.free_body(), "data": measured(), "free": ["omega"], "starts": 2} | given)


@pytest.mark.parametrize("changed", ["q", "pi", "torque", "shape"])
def test_arrays_that_change_between_two_batch_steps_are_checked_again(changed):
    """The arrays of the last call are not checked again, unless their numbers or dimensions have changed."""
    stepper = ph.batch_stepper([1.0, 2.0, 2.5], "fem", 0.1)
    q, pi, torque = np.tile([1.0, 0, 0, 0], (2, 1)), np.ones((2, 3)), np.zeros((2, 3))
    for _ in range(2):
        stepper.step(q, pi, torque)
    if changed == "torque":
        torque.dtype = np.int64  # whole numbers are copied as doubles, as in a first call
        before = q.copy(), pi.copy()
        stepper.step(q, pi, torque)
        fresh = ph.batch_stepper([1.0, 2.0, 2.5], "fem", 0.1).step(*before, torque)
        assert np.array_equal(fresh[0], q)
        assert np.array_equal(fresh[1], pi)
        return
    if changed == "shape":
        q.shape = (2, 2, 2)
    else:
        (q if changed == "q" else pi).dtype = np.int64
    with pytest.raises(ph.InputError, match="must have the shape" if changed == "shape" else "must hold float64"):
        stepper.step(q, pi, torque)
