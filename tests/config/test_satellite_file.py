"""Problem files of satellites: [orbit] and [facets], which fields share, and runs whose length is given in orbits."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import polhode as ph
from commands import good, refused
from polhode import cli, problem_file
from polhode.config import sweep_file
from polhode.config.field_tables import FacetsPart, OrbitPart
from polhode.config.problem_file import resolved

EARTH, RADIUS = 3.986004418e14, 6.878137e6

FIELDS = """\
[[field]]
name = "orbit_gravity_gradient"
[[field]]
name = "residual_dipole"
moment = [0.05, -0.1, 0.08]
strength = 7.7e15
tilt = 2.967
rate = 7.292e-5
[[field]]
name = "facet_drag"
density = 5e-13
radius = 6.878137e6
scale_height = 6e4
[[field]]
name = "radiation_pressure"
pressure = 4.54e-6
sun = [0.8, -0.5, 0.3]
"""

ORBIT = """\
[orbit]
mu = 3.986004418e14
semi_major_axis = 6.878137e6
inclination = 97.4
degrees = true
"""

FACETS = """\
[facets]
box = [0.6, 0.6, 0.8]
centre = [0.0, 0.03, 0.02]
plates = [{ centre = [0.0, 0.7, 0.0], normal = [1.0, 0.0, 0.0], area = 0.4 }]
"""

START = """\
[start]
euler = [3.0, -2.0, 4.0]
sequence = "XYZ"
degrees = true
omega = [0.0, 0.001, 0.0]
"""

RUN = """\
[run]
method = "fem"
dt = 2.0
orbits = 0.01
"""

TEXT = f"[body]\ntensor = [[4.0, 0.4, 0.3], [0.4, 5.0, 0.5], [0.3, 0.5, 3.0]]\n{ORBIT}{FACETS}{FIELDS}{START}{RUN}"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def loaded(old="", new=""):
    assert old in TEXT
    Path("a.toml").write_text(TEXT.replace(old, new, 1) if old else TEXT)
    return problem_file.load("a.toml")


def fault(old, new):
    """The message about a mistake, without the name of the file."""
    with pytest.raises(ph.InputError) as caught:
        loaded(old, new)
    return re.fullmatch(r"a\.toml, line \d+: (.*)", str(caught.value), re.DOTALL)[1]


def in_python():
    """The same satellite, as docs/satellite.md makes it, with sunlight."""
    orbit = ph.Orbit(EARTH, semi_major_axis=RADIUS, inclination=np.radians(97.4))
    body = ph.Body([[4.0, 0.4, 0.3], [0.4, 5.0, 0.5], [0.3, 0.5, 3.0]])
    surface = ph.Facets.box(0.6, 0.6, 0.8, centre=[0.0, 0.03, 0.02])
    surface += ph.Facets.plate(centre=[0.0, 0.7, 0.0], normal=[1.0, 0.0, 0.0], area=0.4)
    gravity = ph.fields.orbit_gravity_gradient(body, orbit)
    dipole = ph.fields.residual_dipole([0.05, -0.1, 0.08], orbit, strength=7.7e15, tilt=2.967, rate=7.292e-5)
    air = ph.fields.facet_drag(surface, density=5e-13, orbit=orbit, radius=RADIUS, scale_height=6e4)
    light = ph.fields.radiation_pressure(surface, pressure=4.54e-6, sun=[0.8, -0.5, 0.3])
    field = gravity + dipole + air + light
    return ph.Problem(body, field, euler_deg=("XYZ", [3.0, -2.0, 4.0]), omega=[0.0, 0.001, 0.0]), orbit


# --- what a file says -------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_first")
def test_a_satellite_in_python_and_in_a_file_has_equal_bits():
    said, (problem, orbit) = loaded(), in_python()
    assert repr(said.problem.field) == repr(problem.field)
    assert said.shared.orbit == orbit
    steps = int(np.ceil(0.01 * orbit.period / 2.0))
    found, wanted = said.solve(), ph.solve(problem, "fem", dt=2.0, steps=steps)
    for name in ("t", "quaternion", "momentum"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    good("run", "a.toml", "--csv", "a.csv", "--euler", "ZYX")
    rows = np.genfromtxt("a.csv", delimiter=",", names=True)
    assert np.array_equal(rows["quaternion_w"], wanted.quaternion[:, 0])
    assert np.array_equal(rows["euler_deg_ZYX_1"], wanted.euler_deg("ZYX")[:, 0])


ORBITS = {
    "periapsis = 7e6\neccentricity = 0.1\nperiapsis_time = 5.0\nnode = 1\nargument = 2\ninclination = 0.5": ph.Orbit(
        EARTH, 7e6, 0.1, periapsis_time=5.0, node=1.0, argument=2.0, inclination=0.5
    ),
    "semi_major_axis = 8e6\nnode = 90\ndegrees = true": ph.Orbit(EARTH, semi_major_axis=8e6, node=np.pi / 2),
    "times = [0, 9]\npositions = [[7e6, 0, 0], [6e6, 1e5, 0]]": ph.Ephemeris(
        EARTH, [0, 9], [[7e6, 0, 0], [6e6, 1e5, 0]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("keys", ORBITS)
@pytest.mark.parametrize("shared", [True, False])
def test_orbits_by_elements_and_tables(keys, shared):
    """In the table [orbit] and in a field, with the same keys."""
    lines = [f"mu = {EARTH}", *keys.split("\n")]
    old = f"{ORBIT}{FACETS}{FIELDS}"
    table, own = (["[orbit]", *lines], []) if shared else ([], [f"orbit = {{ {', '.join(lines)} }}"])
    new = "\n".join([*table, '[field]\nname = "orbit_gravity_gradient"', *own, ""])
    Path("a.toml").write_text(TEXT.replace(old, new).replace("orbits = 0.01", "t_end = 8.0"))
    found = problem_file.load("a.toml").problem
    assert repr(found.field) == repr(ph.fields.orbit_gravity_gradient(found.body, ORBITS[keys]))


def test_an_ephemeris_file_lies_beside_the_problem_file():
    lines = ["CCSDS_OEM_VERS = 2.0", "META_START", "CENTER_NAME = EARTH", "REF_FRAME = EME2000", "TIME_SYSTEM = TDB",
             "META_STOP", "2029-04-13T21:45:00 37990.0  450.0 0.0 -0.05 7.4 0.0",
             "2029-04-13T21:46:00 37985.0  894.0 0.0 -0.07 7.4 0.0"]  # fmt: skip
    Path("deep").mkdir()
    Path("deep/flyby.oem").write_text("\n".join(lines))
    new = '[orbit]\nmu = 3.986004418e14\noem = "flyby.oem"\nepoch = "2029-04-13T21:45:30"\n'
    Path("deep/a.toml").write_text(TEXT.replace(ORBIT, new).replace("orbits = 0.01", "t_end = 8.0"))
    found = problem_file.load("deep/a.toml").shared.orbit
    assert found == ph.Ephemeris.from_oem("deep/flyby.oem", mu=EARTH, epoch="2029-04-13T21:45:30")


SURFACES = {
    "box = [1, 2, 3]": ph.Facets.box(1, 2, 3),
    "plates = [{ centre = [0, 1, 0], normal = [2, 0, 0], area = 4 }]": ph.Facets.plate([0, 1, 0], [2, 0, 0], 4),
    "normals = [[0, 0, 1]]\nareas = [2]\ncentres = [[0, 0, 3]]": ph.Facets(
        np.array([[0.0, 0, 1]]), np.array([2.0]), np.array([[0.0, 0, 3]])
    ),
    'mesh = "part.obj"\nunit = "mm"\ncentre = [0, 0, 0.01]': None,
}


@pytest.mark.parametrize("keys", SURFACES)
@pytest.mark.parametrize("shared", [True, False])
def test_surfaces(keys, shared):
    corners = ["v 0 0 0", "v 100 0 0", "v 0 100 0", "v 0 0 100", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    Path("part.obj").write_text("\n".join(corners) + "\n")
    wanted = SURFACES[keys] or ph.Facets.from_mesh("part.obj", unit="mm", centre=[0, 0, 0.01])
    table, own = (f"[facets]\n{keys}\n", "") if shared else ("", "facets = { " + keys.replace("\n", ", ") + " }\n")
    drag = f'[field]\nname = "facet_drag"\ndensity = 1\nvelocity = [1, 2, 3]\n{own}'
    found = loaded(f"{FACETS}{FIELDS}", f"{table}{drag}").problem.field
    assert repr(found) == repr(ph.fields.facet_drag(wanted, density=1.0, velocity=[1, 2, 3]))


def test_a_field_of_its_own_orbit_and_light_of_the_sun_do_not_take_the_shared_one():
    own = 'name = "orbit_gravity_gradient"\norbit = { mu = 1.0, periapsis = 7.0 }'
    assert "mu=1.0, periapsis=7.0" in repr(loaded('name = "orbit_gravity_gradient"', own).problem.field)
    light = 'name = "radiation_pressure"\npressure = 4.54e-6\n'
    about_the_sun = loaded(f"{FIELDS}", f"[field]\n{light}distance = 1.5e11\n").problem.field
    assert "distance=150000000000.0" in repr(about_the_sun)
    assert "sun or orbit; got neither" in fault(FIELDS, f"[field]\n{light}")


# --- the length of a run ----------------------------------------------------------------------------


def test_orbits_end_with_the_step_that_reaches_them():
    said = loaded()
    period = said.shared.orbit.period
    assert said.settings == {"method": "fem", "dt": 2.0, "orbits": 0.01}
    steps = said.solve().t[-1] / 2.0
    assert steps == round(steps)
    assert 0 <= said.solve().t[-1] - 0.01 * period < 2.0
    assert 0 <= said.solve(dt=0.5).t[-1] - 0.01 * period < 0.5
    assert said.solve(steps=3).t[-1] == 6.0
    assert said.solve(t_end=8.0).t[-1] == 8.0
    exactly = loaded('method = "fem"\ndt = 2.0\n', "tol = 1e-6\n")
    problem = ph.Problem(exactly.problem.body, omega=[0, 0.001, 0])
    assert resolved(problem, exactly.settings, exactly.shared) == {"tol": 1e-6, "t_end": 0.01 * period}


@pytest.mark.parametrize(("option", "said"), [("nan", "dt must be finite"), ("1e-320", "steps of dt = .* away")])
def test_orbits_of_no_number_of_steps_are_refused(option, said):
    loaded()
    assert re.search(said, refused("run", "a.toml", "--dt", option))
    assert "run.orbits: t_end must be finite" in fault("orbits = 0.01", "orbits = 1e308")


@pytest.mark.usefixtures("plain_first")
def test_options_replace_the_orbits():
    loaded()
    assert "29 steps of dt = 2 to t = 58" in good("run", "a.toml")
    assert "57 steps of dt = 1 to t = 57" in good("run", "a.toml", "--dt", "1")
    assert "2 steps of dt = 2 to t = 4" in good("run", "a.toml", "--steps", "2")
    assert "to t = 6" in good("run", "a.toml", "--t-end", "6")
    assert "t end          58" in good("problems", "a.toml")


# --- mistakes ---------------------------------------------------------------------------------------

FAULTS = [
    # what is replaced, by what, and what is said
    ("semi_major_axis", "semimajor_axis", "orbit.semimajor_axis: there is no such .*did you mean semi_major_axis?"),
    ("semi_major_axis = 6.878137e6\n", "", "orbit: give exactly one of semi_major_axis, .*; got none"),
    ("mu = 3.986004418e14\n", "", "orbit.mu: is missing; it is a number above 0: G M of the attracting centre"),
    ("mu = 3.986004418e14\n", "mu = -1.0\n", "orbit.mu: must be a number above 0"),
    ("semi_major_axis = 6.878137e6", "semi_major_axis = -7e6", "orbit.semi_major_axis: .*must be positive"),
    ("degrees = true\n[facets]", "epoch = '2029'\n[facets]", "orbit.epoch: this goes with oem, not with semi_"),
    ("inclination = 97.4", 'inclination = "polar"', 'orbit.inclination: must be an angle: .*; got "polar"'),
    ("box = [0.6, 0.6, 0.8]", "box = [0.6, 0.6]", "facets.box: must be three numbers: the edges of a box .*; got"),
    ("box = [0.6, 0.6, 0.8]", "box = [0.6, 0.6, -1.0]", "facets: c must be positive"),
    ("box = [0.6, 0.6, 0.8]", "normals = [[1, 0, 0]]", "facets.centre: this goes with box or mesh; remove it"),
    ("area = 0.4", "aera = 0.4", "facets.plates.aera: there is no such key here; did you mean area?"),
    (ORBIT, "", "field.orbit: is missing; .* needs orbit; write it as a table, [orbit]"),
    (FACETS, "", "field.facets: is missing; .* needs facets, density; write it as a table, [facets]"),
    ('gradient"\n', 'gradient"\norbit = { mu = 1, peri = 1.0 }\n', "field.orbit.peri: .*key here; .*periapsis?"),
    ('gradient"\n', 'gradient"\norbit = 7.0\n', "field.orbit: orbit must be a ph.Orbit"),
    ("scale_height = 6e4\n", "", "field: with orbit, the density falls with height: also give scale_height"),
    ("orbits = 0.01", "orbits = 0", "run.orbits: must be a number above 0: the length of the run in revolutions"),
    ("orbits = 0.01", "orbits = 1\nt_end = 2.0", "run.orbits: give exactly one of .*; got t_end and orbits"),
    ("semi_major_axis = 6.878137e6", "periapsis = 7e6\neccentricity = 1.2", "run.orbits: this needs an orbit by"),
    (f"{ORBIT}{FACETS}{FIELDS}", "", "run.orbits: this needs the table [orbit]; add it, or give t_end instead"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), FAULTS, ids=[f[2][:30] for f in FAULTS])
def test_a_mistake_names_its_key(old, new, said):
    told = fault(old, new)
    assert re.match(".*".join(map(re.escape, said.split(".*"))), told), told


# --- sweeps -----------------------------------------------------------------------------------------


def test_a_sweep_takes_the_tables_of_a_satellite():
    Path("sweep.toml").write_text(f"{TEXT}[grid]\nomega.y = [0.001, 0.002]\n")
    made = sweep_file.read(Path("sweep.toml"))
    assert made.task.count == 29
    Path("alone.toml").write_text('[problem]\nname = "fast_top"\n' + ORBIT + RUN + "[grid]\nomega.y = [1.0]\n")
    with pytest.raises(ph.InputError, match=r"orbit: this needs \[body\] and \[start\], as in a problem file"):
        sweep_file.read(Path("alone.toml"))


# --- the example ------------------------------------------------------------------------------------


def test_the_example_of_a_satellite_runs():
    good("init", "sat.toml", "--satellite")
    text = Path("sat.toml").read_text()
    said = good("run", "sat.toml", "--steps", "3")
    assert "3 steps" in said
    assert all(f"sat.{suffix}" in said for suffix in ("zarr", "png", "html"))
    named = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))
    assert set(OrbitPart.model_fields) | set(FacetsPart.model_fields) <= named
    assert "exists" in refused("init", "sat.toml", "--satellite")


@pytest.mark.parametrize(
    ("word", "gone"),
    [
        ("eccentricity|node|argument|periapsis_time", "none"), ("periapsis", "semi_major_axis"),
        ("times|positions|velocities", "semi_major_axis|inclination|degrees|orbits|samples"),
        ("normals|areas|centres", "box|centre"), ("coefficient|phase", "none"), ("tol|samples", "method|dt|every"),
    ],
)  # fmt: skip
def test_each_comment_of_the_example_is_right(word, gone):
    good("init", "sat.toml", "--satellite")
    text = Path("sat.toml").read_text()
    changed = re.sub(rf"^({gone}) = ", r"# \1 = ", text, flags=re.MULTILINE)
    changed = re.sub(rf"^# ({word}) = ", r"\1 = ", changed, flags=re.MULTILINE)
    if "orbits" in gone:
        changed = changed.replace("[run]\n", "[run]\nt_end = 60.0\n", 1).replace("x", "x")
    assert changed != text
    Path("b.toml").write_text(changed)
    problem_file.load("b.toml")


def test_the_comment_about_light_is_right():
    good("init", "sat.toml", "--satellite")
    text = Path("sat.toml").read_text()
    light = text[text.index("# [[field]]") : text.index("[start]")]
    Path("b.toml").write_text(text.replace(light, re.sub("^# ", "", light, flags=re.MULTILINE)))
    assert "radiation_pressure" in repr(problem_file.load("b.toml").problem.field)


def test_the_schema_knows_the_tables():
    schema = json.loads(CliRunner().invoke(cli.app, ["init", "--schema"]).output)
    assert {"orbit", "facets"} <= set(schema["properties"])
    assert set(schema["$defs"]["OrbitPart"]["properties"]) == set(OrbitPart.model_fields)
    drag = next(one for one in schema["$defs"]["FieldPart"]["allOf"] if "facet_drag" in str(one["if"]))
    assert drag["then"]["required"] == ["density"]
