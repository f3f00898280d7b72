"""Wrong arguments of public functions end in one sentence; `validation/fuzz_inputs.py` tries all things everywhere."""

import random
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import junk
import polhode as ph

pytestmark = pytest.mark.xdist_group("junk")

SAMPLES = 5
"""Things tried for each argument of each function."""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def calls():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return junk.calls()


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


NEVER = [10**400, "x", 1j, "a\0b.zarr", [[1, 2], [3]], np.empty((2, 0)), object(), junk.NoFloat(), junk.NoArray(), ph]
"""Things that are right in very few places."""


def test_wrong_arguments_end_in_a_sentence(calls):
    chance, found = random.Random(14), []
    for name, (function, given) in calls.items():
        for argument in given:
            for thing in chance.sample(NEVER, SAMPLES):
                said = fault(function, given | {argument: thing})
                if said:
                    found.append(f"{name}({argument}={repr(thing)[:60]}): {said[:200]}")
    assert found == []


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
