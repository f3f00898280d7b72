"""Problem files: what they say is what runs, and every mistake is told with its line, key and remedy."""

import json
import math
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from commands import good, polhode, refused
from examples import KEYWORDS, TILTED
from polhode import problem_file
from polhode.config import toml as toml_files
from polhode.config.problem_file import Contents
from polhode.config.toml import toml
from polhode.physics.body import SHAPES

METHOD = ph.methods["imidm"]  # many tests share its programs
FREE = next(m for m in ph.methods.values() if m.needs == "free")
SCHEMA = Path(__file__).parents[2] / "docs" / "problem.schema.json"

TEXT = f"""\
[body]
moments = [2.0, 3.0, 4.0]

[field]
name = "gravity"
mgl = 2.0

[start]
omega = [0.1, 0.2, 3.0]

[run]
method = "{METHOD.name}"
dt = 0.01
t_end = 1.0
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(old="", new="", text=TEXT):
    """A file in which something stands instead of something else."""
    assert old in text
    Path("a.toml").write_text(text.replace(old, new, 1) if old else text)
    return "a.toml"


def loaded(*change, **options):
    return problem_file.load(written(*change), **options)


# --- what a file says -------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_first")
def test_a_file_is_the_problem_it_describes():
    said = loaded()
    same = ph.Problem(ph.Body([2.0, 3.0, 4.0]), ph.fields.gravity(2.0), omega=[0.1, 0.2, 3.0])
    assert said.settings == {"method": METHOD.name, "dt": 0.01, "t_end": 1.0}
    assert said.problem.name == "a"
    found, wanted = said.solve(), ph.solve(same, METHOD, dt=0.01, t_end=1.0)
    assert np.array_equal(found.quaternion, wanted.quaternion)
    assert np.array_equal(found.momentum, wanted.momentum)


BODIES = {
    "tensor = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]": ph.Body([[2, 0.1, 0], [0.1, 3, 0], [0, 0, 4]]),
    "moments = [2, 3, 4]\nmass = 5\ncentre = [0, 0, 1]\npivot = [0, 1, 0]": ph.Body(
        [2, 3, 4], mass=5, centre=[0, 0, 1], pivot=[0, 1, 0]
    ),
    'shape = "box"\ndimensions = { c = 3, b = 2, a = 1 }\ndensity = 2': ph.Body.box(1, 2, 3, density=2),
    'shape = "box"\ndimensions = [1, 2, 3]\nmass = 7': ph.Body.box(1, 2, 3, mass=7),
    'shape = "t_handle"': ph.Body.t_handle(),
    'shape = "cone"\ndimensions = [1, 4]\npivot = [0, 0, 3]': ph.Body.cone(1, 4).about([0, 0, 3]),
    "points = [[1, 0, 0],\n  [0, 1, 0], # two\n  [0, 0, 2]]\nmasses = [1, 2, 3]": ph.Body.from_points(
        [[1, 0, 0], [0, 1, 0], [0, 0, 2]], [1, 2, 3]
    ),
    'mesh = "part.obj"\nunit = "mm"\ndensity = 2700': None,
}


@pytest.mark.parametrize("said", BODIES)
def test_bodies(said):
    corners = ["v 0 0 0", "v 100 0 0", "v 0 100 0", "v 0 0 100", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    Path("part.obj").write_text("\n".join(corners) + "\n")
    wanted = BODIES[said] or ph.Body.from_mesh("part.obj", unit="mm", density=2700)
    found = loaded("moments = [2.0, 3.0, 4.0]", said).problem.body
    assert repr(found) == repr(wanted)


ATTITUDES = {
    "": Rotation.identity(),
    "quaternion = [0.6, 0.0, 0.8, 0.0]": Rotation.from_quat([0.6, 0, 0.8, 0], scalar_first=True),
    "rotation_vector = [0.1, 0.2, 0.3]": Rotation.from_rotvec([0.1, 0.2, 0.3]),
    "rotation_vector = [0, 0, 90]\ndegrees = true": Rotation.from_rotvec([0, 0, math.pi / 2]),
    'euler = [0.1, 0.2, 0.3]\nsequence = "ZXZ"': Rotation.from_euler("ZXZ", [0.1, 0.2, 0.3]),
    'euler = [10, 20, 30]\nsequence = "xyz"\ndegrees = true': Rotation.from_euler("xyz", [10, 20, 30], degrees=True),
    "matrix = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]": Rotation.from_rotvec([0, 0, math.pi / 2]),
}


@pytest.mark.parametrize("said", ATTITUDES)
def test_attitudes(said):
    problem = loaded("[start]", f"[start]\n{said}").problem
    turn = Rotation.from_quat(problem.quaternion, scalar_first=True) * ATTITUDES[said].inv()
    assert turn.magnitude() < 1e-15


@pytest.mark.parametrize("word", ["omega", "momentum", "spatial_omega", "spatial_momentum"])
def test_one_of_four_vectors_starts_the_motion(word):
    said = f"rotation_vector = [0.3, 0.0, 0.0]\n{word} = [0.1, 0.2, 3.0]\nt0 = 0.5"
    found = loaded("omega = [0.1, 0.2, 3.0]", said).problem
    given = {word: [0.1, 0.2, 3.0], "attitude": Rotation.from_rotvec([0.3, 0, 0]), "t0": 0.5}
    assert found.momentum == ph.Problem(found.body, **given).momentum
    assert found.t0 == 0.5


@pytest.mark.parametrize("name", ph.fields.names())
def test_every_ready_made_field(name):
    body = {"tensor": TILTED.inertia, "mass": TILTED.mass, "centre": TILTED.centre, "pivot": TILTED.pivot}
    lines = [f"{word} = {toml(np.asarray(value).tolist())}" for word, value in body.items()]
    keys = [f"{word} = {toml(value)}" for word, value in KEYWORDS[name].items()]
    text = TEXT.replace("moments = [2.0, 3.0, 4.0]", "\n".join(lines))
    path = written('name = "gravity"\nmgl = 2.0', "\n".join([f'name = "{name}"', *keys]), text)
    assert repr(problem_file.load(path).problem.field) == repr(ph.fields.make(name, TILTED, **KEYWORDS[name]))


def test_several_fields_are_added():
    more = '[[field]]\nname = "gravity"\nmgl = 2\n[[field]]\nname = "linear_drag"\ncoefficients = 0.1'
    found = loaded('[field]\nname = "gravity"\nmgl = 2.0', more).problem.field
    assert repr(found) == repr(ph.fields.gravity(2.0) + ph.fields.linear_drag(0.1))
    assert loaded('[field]\nname = "gravity"\nmgl = 2.0', "").problem.field is None


MINE = """\
import polhode as ph
from pathlib import Path

Path("was_here").touch()

@ph.torque
def drag(omega, k):
    return tuple(-k * x for x in omega)
"""


@pytest.mark.usefixtures("plain_first")
def test_code_of_others_runs_only_when_it_is_allowed():
    Path("mine.py").write_text(MINE)
    path = written('name = "gravity"\nmgl = 2.0', 'python = "mine.py:drag"\nk = 0.1')
    assert "line 5: field.python: this runs the Python code in mine.py:drag" in refused("run", path)
    assert not Path("was_here").exists()
    assert repr(problem_file.load(path, allow_code=True).problem.field) == "drag(k=0.1)"
    good("run", path, "--allow-code")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_this_name", "cannot be run: ModuleNotFoundError"),
        ("raise SystemExit(0)", "cannot be run: SystemExit"),
        ("def drag(omega): return omega", "has no torque or potential 'drag'"),
        (None, "there is no such file"),
    ],
)
def test_faulty_code_is_told(code, said):
    if code is not None:
        Path("mine.py").write_text(code)
    path = written('name = "gravity"\nmgl = 2.0', 'python = "mine.py:drag"\nk = 0.1')
    result = polhode("run", path, "--allow-code")  # Python may leave a __pycache__
    assert result.exit_code == 2
    assert "a.toml, line 5: field.python: " in result.stderr
    assert said in result.stderr


# --- mistakes ---------------------------------------------------------------------------------------

MOMENTS, FIELD, OMEGA = "moments = [2.0, 3.0, 4.0]", 'name = "gravity"\nmgl = 2.0', "omega = [0.1, 0.2, 3.0]"
METHOD_LINE = f'method = "{METHOD.name}"'

FAULTS = [
    # what is replaced, by what, line, key, and what is said
    (MOMENTS, "moment = [1, 2, 3]", 2, "body.moment", "there is no such key here; did you mean moments?"),
    (MOMENTS, "moments = [1, 2]", 2, "body.moments", "must be three principal moments .*; got [1, 2]; write for"),
    (MOMENTS, 'moments = [1, 2, "3"]', 2, "body.moments", 'got "3"; write for example moments = [1.0, 2.0, 3.0]'),
    (MOMENTS, "moments = [1, 2, 5]", 2, "body.moments", "triangle inequality"),
    (MOMENTS, "# nothing", 1, "body", "give exactly one of .*; got none of them: write for example"),
    (MOMENTS, f'{MOMENTS}\nshape = "box"', 3, "body.shape", "got moments and shape: remove all but one"),
    (MOMENTS, f'{MOMENTS}\nunit = "mm"', 3, "body.unit", "this cannot be combined with moments, only with mesh"),
    (MOMENTS, 'shape = "bax"', 2, "body.shape", "unknown shape 'bax'; did you mean box?"),
    (MOMENTS, 'shape = "box"\ndimensions = [1, 2]', 3, "body.dimensions", "the shape box has a, b, c; got 2 numbers"),
    (MOMENTS, 'shape = "box"\ndimensions = {a=1, b=2, h=3}', 3, "body.dimensions.h", "no such length; there are a"),
    (MOMENTS, 'shape = "box"\ndimensions = {a=1, b=2}', 3, "body.dimensions", "missing .* 'c'"),
    (MOMENTS, 'shape = "t_handle"\nmass = 1\ndensity = 1', 4, "body.density", "at most one of mass, density"),
    (MOMENTS, 'shape = "t_handle"\nmass = -1', 3, "body.mass", "must be a number above 0"),
    (MOMENTS, 'mesh = "no.stl"', 2, "body.mesh", "there is no file"),
    (MOMENTS, "points = [[1, 2, 3],\n [1, 2]]", 2, "body.points", "must be a list of points of three numbers"),
    (MOMENTS, "tensor = [[1, 1, 0], [0, 1, 0], [0, 0, 1]]", 2, "body.tensor", "must be symmetric"),
    (FIELD, 'name = "gravty"\nmgl = 1', 5, "field.name", "unknown field 'gravty'; did you mean gravity?"),
    (FIELD, 'name = "gravity"\nmlg = 1', 6, "field.mlg", "the field gravity has no such keyword; did you mean mgl?"),
    (FIELD, 'name = "gravity"', 4, "field.mgl", "is missing; the field gravity needs mgl"),
    (FIELD, 'nmae = "gravity"\nmgl = 1', 4, "field", "give name or python, .*; got neither, but nmae, mgl"),
    (FIELD, 'name = "gravity"\nmgl = true', 6, "field.mgl", "must be a number, .*; got true"),
    (FIELD, 'name = "gravity"\nmgl = nan', 6, "field.mgl", "must be a finite number"),
    (FIELD, 'name = "gravity"\nmgl = 2024-01-01', 6, "field.mgl", "got 2024-01-01"),
    (FIELD, 'name = "gravity"\nmgl = [1, 2]', 4, "field", "must return one number; it returned (1.0, 2.0)"),
    (FIELD, f'{FIELD}\n[field.deep]\nx = 1', 7, "field.deep", "must be a number, .*; got { x = 1 }"),
    (f"[field]\n{FIELD}", f'[[field]]\n{FIELD}\n[[field]]\nname = "linear_drag"\ncoefficients = -1', 9,
     "field.coefficients", "must not be negative"),
    (OMEGA, f"{OMEGA}\nmomentum = [1, 2, 3]", 10, "start.momentum", "got omega and momentum: remove all but one"),
    (OMEGA, "t0 = 0", 8, "start", "got none of them: write for example omega"),
    (OMEGA, "omega = [0, inf, 1]", 9, "start.omega", "must be three numbers: angular velocity .*; got inf"),
    (OMEGA, f"{OMEGA}\nquaternion = [1, 1, 0, 0]", 10, "start.quaternion", "its length is 1.41.*, so divide by it"),
    (OMEGA, f"{OMEGA}\nquaternion = [1, 0, 0]", 10, "start.quaternion", "must be four numbers, the SCALAR FIRST"),
    (OMEGA, f"{OMEGA}\nmatrix = [[1,0,0],[0,1,0],[0,0,-1]]", 10, "start.matrix", "a reflection"),
    (OMEGA, f"{OMEGA}\neuler = [1, 0, 0]", 10, "start.euler", "euler and sequence go together"),
    (OMEGA, f'{OMEGA}\neuler = [1, 0, 0]\nsequence = "abc"', 11, "start.sequence", "must be three letters"),
    (OMEGA, f'{OMEGA}\neuler = [1, 0, 0]\nsequence = "XXZ"', 11, "start.sequence", "no two alike in a row; got 'XXZ'"),
    (OMEGA, f"{OMEGA}\ndegrees = true", 10, "start.degrees", "only for euler or rotation_vector"),
    (METHOD_LINE, f'method = "{METHOD.name}x"', 12, "run.method", f"nearest: .*{METHOD.name}"),
    (METHOD_LINE, f'method = "{FREE.name}"', 12, "run.method", "integrates free bodies only"),
    (METHOD_LINE, f"{METHOD_LINE}\ntol = 1e-6", 12, "run.method", "cannot be combined with tol, .*remove method"),
    (METHOD_LINE, "# nothing", 11, "run", "method is missing: give method and dt, or tol"),
    ("dt = 0.01", "dt = 0.01\nstops = [0.5]", 14, "run.stops", "for adaptive steps; give tol or remove"),
    ("dt = 0.01", "dt = 0.01\nmax_step = -1", 14, "run.max_step", "must be a number above 0: the longest step"),
    (f"{METHOD_LINE}\ndt = 0.01", "tol = 1e-6\nstops = [2.0]", 13, "run.stops", "between t0 = 0 and t_end = 1; got 2"),
    ("dt = 0.01", "dt = 0.03", 14, "run.t_end", "the nearest t_end are 0.99 and 1.02"),
    ("dt = 0.01", "dt = -1", 13, "run.dt", "goes backwards in time, and t_end = 1 lies after t0 = 0"),
    ("dt = 0.01", "dt = 0.0", 13, "run.dt", "must not be zero"),
    ("dt = 0.01", 'dt = "0.1"', 13, "run.dt", 'must be a number: the step size; .*; got "0.1"; write for example'),
    ("dt = 0.01", "delta = 1", 13, "run.delta", "there is no such key here; there are method, dt"),
    ("t_end = 1.0", "steps = 2.5", 14, "run.steps", "must be a whole number of at least 1: .*; got 2.5"),
    ("t_end = 1.0", "t_end = 1.0\nsteps = 100", 15, "run.steps", "got t_end and steps"),
    ("t_end = 1.0", "t_end = 0", 14, "run.t_end", "must differ from t0 = 0; got 0"),
    ("t_end = 1.0", "t_end = 1.0\nevery = true", 15, "run.every", "must be a whole number"),
    ("[run]", '[output]\nfil = "x.nc"\n[run]', 12, "output.fil", "did you mean file?"),
    ("[run]", '[output]\nfile = "x.txt"\n[run]', 12, "output.file", 'must be a .zarr or .nc file .*; got "x.txt"'),
    ("[run]", '[output]\nfile = "x\\u0000.nc"\n[run]', 12, "output.file", "must be a .zarr or .nc file"),
    ("[run]", '[output]\nview = "no/x.html"\n[run]', 12, "output.view", "the folder no does not exist; create it"),
    ("t_end = 1.0", "steps = 99999999999999999999", 14, "run.steps", "must be a whole number"),
    ("[run]", "[rum]", 11, "rum", "there is no such table here; did you mean run?"),
    ("[body]", "dt = 1\n[body]", 1, "dt", "it belongs in [run]"),
    ("[body]", "[[body]]", 1, "body", "must be a table, [body]: the rigid body"),
    (f"[start]\n{OMEGA}", "", None, "start", "is missing; it is a table, [start]: .*`polhode init` writes an example"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "key", "said"), FAULTS, ids=[f"{f[3]}-{f[1]}"[:40] for f in FAULTS])
def test_a_mistake_is_told_with_line_and_key(old, new, line, key, said):
    with pytest.raises(ph.InputError) as caught:
        loaded(old, new)
    told, place = str(caught.value), "" if line is None else f", line {line}"
    assert told.startswith(f"a.toml{place}: {key}: ")
    assert re.search(".*".join(re.escape(part) for part in said.split(".*")), told), told


FROM_THE_LIBRARY = [
    # mistakes that the library finds, not the schema: what is replaced, by what, line, key
    (MOMENTS, "tensor = [[1, 0, 0], [0, 2, 0], [0, 0, 5]]", 2, "body.tensor"),
    (MOMENTS, "points = [[1, 2, 3], [1, 2, 4]]\nmasses = [1, -2]", 3, "body.masses"),
    (MOMENTS, 'mesh = "no.stl"\nunit = "ell"', 3, "body.unit"),
    (FIELD, 'name = "gravity"\nmgl = nan', 6, "field.mgl"),
    (FIELD, 'name = "gravity_gradient"\nmu = 1\nradius = -1', 7, "field.radius"),
    (FIELD, 'name = "gravity_gradient"\nmu = 1e300\nradius = 1e-300', 6, "field.mu"),
    (FIELD, 'name = "eccentric_gravity_gradient"\nmu = 1\nsemi_major_axis = 1\neccentricity = 2', 8,
     "field.eccentricity"),
    (FIELD, 'name = "linear_drag"\ncoefficients = -1', 6, "field.coefficients"),
    (FIELD, 'name = "attitude_spring"\nstiffness = 1\ntarget = [1, 1, 0, 0]', 7, "field.target"),
    (FIELD, 'name = "constant_torque"\ntorque = [1, 2]', 6, "field.torque"),
    (FIELD, 'name = "constant_torque"\ntorque = [1, 2, 3]\nframe = "none"', 7, "field.frame"),
    (FIELD, 'name = "thruster"\ntorque = [1, 2, 3]\non = [2, 1]', 7, "field.on"),
    (FIELD, 'name = "tabulated"\ntimes = [1, 0]\ntorques = [[1, 2, 3], [1, 2, 3]]', 6, "field.times"),
    (FIELD, 'name = "tabulated"\ntimes = [0, 1]\ntorques = [1, 2]', 7, "field.torques"),
    (FIELD, 'name = "tabulated"\ntimes = [0, 1]\ntorques = [[1, 2, 3], [1, 2, 3]]\nbetween = "x"', 8, "field.between"),
]  # fmt: skip


@pytest.mark.parametrize("reworded", [False, True])
@pytest.mark.parametrize(("old", "new", "line", "key"), FROM_THE_LIBRARY + [f[:4] for f in FAULTS])
def test_a_mistake_is_found_whatever_the_words_of_its_message(old, new, line, key, reworded, monkeypatch):
    if reworded:
        plain = ph.InputError.__init__

        def other_words(self, message, *args, **named):
            plain(self, f"Oops! {str(message).upper()}", *args, **named)

        monkeypatch.setattr(ph.InputError, "__init__", other_words)
    with pytest.raises(ph.InputError) as caught:
        loaded(old, new)
    place = "" if line is None else f", line {line}"
    wanted = f"a.toml{place}: {key}: "
    assert str(caught.value).startswith(f"Oops! {wanted.upper()}" if reworded else wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[run\n", r"is not TOML: .*line 1.*"),
        (b"a = 1\na = 2", r"is not TOML: .*line 2.*"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "thousands of digits"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "body: is missing"),
    ],
)
def test_what_is_no_problem_file(text, said):
    Path("a.toml").write_bytes(text)
    assert re.search(said, refused("run", "a.toml"))


def test_a_file_that_is_not_there():
    assert "none.toml cannot be read: No such file" in refused("run", "none.toml")


def test_a_mistake_leaves_one_sentence_and_exit_code_2():
    assert "a.toml, line 13: run.dt" in refused("run", written("dt = 0.01", "dt = 0"))


def test_lines_are_found_in_all_that_toml_allows():
    text = '''# a = 1
"a" = """
b = 2
[c]
"""
[t."x.y"] # [u]
l = [
  [1, 2], # ]
  [3, 4],
]
d.e = { f = 1 }
[[s]]
k = 1
[s.in]
m = 1
[[s]]
k = 2
'''
    tomllib.loads(text)
    found = dict(toml_files.places(text))
    wanted = {("a",): 2, ("t", "x.y"): 6, ("t", "x.y", "l"): 7, ("t", "x.y", "d", "e", "f"): 11, ("s", 0, "k"): 13,
              ("s", 0, "in", "m"): 15, ("s", 1): 16, ("s", 1, "k"): 17}  # fmt: skip
    assert {place: found.get(place) for place in wanted} == wanted
    assert ("b",) not in found
    assert ("c",) not in found
    assert toml_files.line_of(text, ("s", 1, "none")) == ", line 16"
    assert toml_files.line_of(text, ("none",)) == ""


# --- the commands -----------------------------------------------------------------------------------


def test_init_then_run():
    Path("here").mkdir()
    assert "polhode run here/top.toml" in good("init", "here/top.toml")
    said = good("run", "here/top.toml")
    assert "2000 steps" in said
    assert all(f"here/top.{suffix}" in said for suffix in ("zarr", "png", "html"))
    sol = ph.load("here/top.zarr")
    assert len(sol) == 501
    assert sol.info.problem == "top"
    assert "exists" in refused("run", "here/top.toml")
    assert "exists" in refused("init", "here/top.toml")
    good("init", "here/top.toml", "--overwrite")
    assert ".toml" in refused("init", "top.txt")
    assert "folder" in refused("init", "none/top.toml")


def test_the_example_names_every_key():
    good("init")
    good("init", "satellite.toml", "--satellite")
    lines = Path("problem.toml").read_text() + Path("satellite.toml").read_text()
    named = set(re.findall(r"^(?:# )?(\w+) = ", lines, re.MULTILINE))
    for _, part in toml_files._tables(Contents):
        assert set(part.model_fields) - {"density", "unit", "centre"} <= named
    assert all(word in lines for word in ("density", "unit", "centre", *SHAPES))


def test_each_comment_of_the_example_is_right():
    """Every key that stands in a comment is taken, in place of those of its kind."""
    good("init")
    text = Path("problem.toml").read_text()
    for word, gone in (
        ("moments", "shape|dimensions|mass|pivot"), ("tensor", "shape|dimensions|mass|pivot"), ("t0", "none"),
        ("quaternion", "rotation_vector"), ("matrix", "rotation_vector"), ("euler|sequence|degrees", "rotation_vector"),
        ("points|masses", "shape|dimensions|mass|pivot"), ("momentum", "omega"), ("spatial_momentum", "omega"),
        ("spatial_omega", "omega"),
        ("tol|stops|max_step", "method|dt|every"), ("steps", "t_end"), ("digits", "none"), ("step_tol", "method|dt"),
        ("times", "every"), ("samples", "every"), ("max_turn", "every"), ("times", "every|t_end"),
    ):  # fmt: skip
        changed = re.sub(rf"^({gone}) = ", r"# \1 = ", text, flags=re.MULTILINE)
        changed = re.sub(rf"^# ({word}) = ", r"\1 = ", changed, flags=re.MULTILINE)
        if gone.startswith("shape"):  # and with it the mass that gravity needs
            changed = re.sub(r'name = "uniform_gravity".*\ng = .*', 'name = "gravity"\nmgl = 1.0', changed)
        assert changed != text
        Path("b.toml").write_text(changed)
        problem_file.load("b.toml")


@pytest.mark.usefixtures("plain_first")
def test_options_replace_what_the_file_says():
    path = written()
    assert "100 steps of dt = 0.01 to t = 1" in good("run", path)
    assert "50 steps of dt = 0.02 to t = 1" in good("run", path, "--dt", "0.02")
    assert "30 steps of dt = 0.01 to t = 0.3" in good("run", path, "--steps", "30")
    assert "requested 1e-06" in good("run", path, "--tol", "1e-6")
    assert "stops is for adaptive steps" in refused("run", path, "--stops", "0.5")
    assert "stops must be times" in refused("run", path, "--tol", "1e-6", "--stops", "0.5,soon")
    assert "max_step must be positive" in refused("run", path, "--tol", "1e-6", "--max-step", "0")
    good("run", path, "--tol", "1e-6", "--stops", "0.5,0.25", "--max-step", "0.125", "--out", "stops.zarr")
    times = ph.load("stops.zarr").t
    assert {0.25, 0.5} <= set(times.tolist())
    assert np.diff(times).max() <= 0.125 + 1e-15
    to_tolerance = written(f"{METHOD_LINE}\ndt = 0.01", "tol = 1e-6")
    assert "requested 1e-06" in good("run", to_tolerance)
    assert "20 steps of dt = 0.05" in good("run", to_tolerance, "--method", METHOD.name, "--dt", "0.05")
    assert "give --method and --dt" in refused("run", to_tolerance, "--dt", "0.05")


@pytest.mark.usefixtures("plain_first")
def test_run_writes_a_page_of_a_named_problem():
    run = ("run", "free_body", "-m", METHOD.name, "--dt", "0.5", "--view", "spin.html")
    assert "spin.html" in good(*run)
    assert "exists" in refused(*run)
    good(*run, "--overwrite")


@pytest.mark.parametrize("run", ["dt = -0.01\nsteps = 50", "dt = -0.01\nt_end = -0.5", "dt = 0.01\nt_end = -0.5"])
def test_backwards_in_time(run):
    said = loaded("dt = 0.01\nt_end = 1.0", run)
    back = ph.solve(said.problem, METHOD, dt=-0.01, steps=50)
    assert (said.solve().momentum == back.momentum).all()
    assert back.t[-1] == -0.5


# --- the schema -------------------------------------------------------------------------------------


def test_the_published_schema_is_the_current_one():
    said = good("init", "--schema")
    assert said == SCHEMA.read_text(), "run `polhode init --schema > docs/problem.schema.json`"
    found = json.loads(said)
    assert set(found["properties"]) == {"body", "field", "orbit", "facets", "start", "run", "output"}
    assert found["required"] == ["body", "start", "run"]
    assert found["$defs"]["FieldPart"]["properties"]["name"]["enum"] == ph.fields.names()
