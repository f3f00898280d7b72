"""Inertia from URDF, SDF and MJCF files: one body, told in every way that the formats have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import polhode as ph
from polhode import cli

MASS, CENTRE = 3.5, np.array([0.1, -0.2, 0.35])
OWN = np.diag([0.2, 0.3, 0.45])
TURN = Rotation.from_matrix(  # roll 0.3, then pitch -0.5, then yaw 1.1, about fixed axes
    [[np.cos(1.1), -np.sin(1.1), 0], [np.sin(1.1), np.cos(1.1), 0], [0, 0, 1]]
    @ np.array([[np.cos(-0.5), 0, np.sin(-0.5)], [0, 1, 0], [-np.sin(-0.5), 0, np.cos(-0.5)]])
    @ np.array([[1, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]])
)
R = TURN.as_matrix()
TENSOR = R @ OWN @ R.T


def words(values: object) -> str:
    return " ".join(map(repr, np.asarray(values, float).tolist()))


def urdf(inertial: str) -> str:
    return f'<robot name="r"><link name="base"/><link name="arm">{inertial}</link></robot>'


def sdf(inertial: str) -> str:
    return (
        f'<sdf version="1.9"><world name="w"><model name="m"><link name="arm">{inertial}</link></model></world></sdf>'
    )


def mjcf(inertial: str, compiler: str = "") -> str:
    return (
        f'<mujoco>{compiler}<worldbody><body name="base"><geom size="1"/><body name="arm">{inertial}'
        '<geom type="sphere" size="0.1"/></body></body></worldbody></mujoco>'
    )


def attributes(tensor: np.ndarray) -> str:
    return " ".join(f'i{"xyz"[i]}{"xyz"[j]}="{float(tensor[i, j])!r}"' for i in range(3) for j in range(i, 3))


def elements(tensor: np.ndarray) -> str:
    return "".join(
        f"<i{'xyz'[i]}{'xyz'[j]}>{float(tensor[i, j])!r}</i{'xyz'[i]}{'xyz'[j]}>" for i in range(3) for j in range(i, 3)
    )


def of_urdf(tensor: np.ndarray, rpy: str) -> str:
    origin = f'<origin xyz="{words(CENTRE)}" {rpy}/>'
    return urdf(f'<inertial>{origin}<mass value="{MASS}"/><inertia {attributes(tensor)}/></inertial>')


def of_sdf(tensor: np.ndarray, pose: str) -> str:
    return sdf(f"<inertial>{pose}<mass>{MASS}</mass><inertia>{elements(tensor)}</inertia></inertial>")


def of_mjcf(more: str, compiler: str = "") -> str:
    return mjcf(f'<inertial pos="{words(CENTRE)}" mass="{MASS}" {more}/>', compiler)


DIAGONAL = f'diaginertia="{words(np.diag(OWN))}"'
FULL = words([TENSOR[0, 0], TENSOR[1, 1], TENSOR[2, 2], TENSOR[0, 1], TENSOR[0, 2], TENSOR[1, 2]])
AXIS = TURN.as_rotvec() / TURN.magnitude()
RADIAN = '<compiler angle="radian"/>'
WAYS = {
    "tensor.urdf": of_urdf(TENSOR, ""),
    "rpy.urdf": of_urdf(OWN, 'rpy="0.3 -0.5 1.1"'),
    "tensor.sdf": of_sdf(TENSOR, f"<pose>{words(CENTRE)} 0 0 0</pose>"),
    "rpy.sdf": of_sdf(OWN, f"<pose>{words(CENTRE)} 0.3 -0.5 1.1</pose>"),
    "degrees.sdf": of_sdf(OWN, f'<pose degrees="true">{words(CENTRE)} {words(np.degrees([0.3, -0.5, 1.1]))}</pose>'),
    "quat.sdf": of_sdf(OWN, f'<pose rotation_format="quat_xyzw">{words(CENTRE)} {words(TURN.as_quat())}</pose>'),
    "full.xml": of_mjcf(f'fullinertia="{FULL}"'),
    "quat.xml": of_mjcf(f'{DIAGONAL} quat="{words(3 * TURN.as_quat(scalar_first=True))}"'),
    "axis.xml": of_mjcf(f'{DIAGONAL} axisangle="{words([*2 * AXIS, np.degrees(TURN.magnitude())])}"'),
    "radian.xml": of_mjcf(f'{DIAGONAL} axisangle="{words([*AXIS, TURN.magnitude()])}"', RADIAN),
    "axes.xml": of_mjcf(f'{DIAGONAL} xyaxes="{words([*2 * R[:, 0], *(R[:, 1] + 0.3 * R[:, 0])])}"'),
    "moving.xml": of_mjcf(f'{DIAGONAL} euler="{words(TURN.as_euler("XYZ", degrees=True))}"'),
    "fixed.xml": of_mjcf(f'{DIAGONAL} euler="0.3 -0.5 1.1"', '<compiler angle="radian" eulerseq="XYZ"/>'),
}
READ = {".urdf": ph.Body.from_urdf, ".sdf": ph.Body.from_sdf, ".xml": ph.Body.from_mjcf}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("which", [None, "arm"])
def test_every_way_gives_the_same_body(name: str, which: str | None) -> None:
    """The link without an inertia is not a choice."""
    Path(name).write_text(WAYS[name], "utf-8")
    body = READ[Path(name).suffix](name, which)
    assert body.mass == MASS
    np.testing.assert_allclose(body.centre, CENTRE, atol=1e-15)
    np.testing.assert_allclose(body.tensor, TENSOR, atol=1e-15)
    np.testing.assert_allclose(body.moments, np.diag(OWN), rtol=1e-14)


def test_links_of_several_models() -> None:
    model = '<model name="{}"><link name="arm"><inertial><mass>{}</mass><inertia>' + elements(OWN) + "</inertia>"
    parts = "".join((model + "</inertial></link></model>").format(name, mass) for name, mass in (("a", 1), ("b", 2)))
    Path("m.sdf").write_text(f"<sdf>{parts}</sdf>", "utf-8")
    assert ph.Body.from_sdf("m.sdf", "b::arm").mass == 2
    with pytest.raises(
        ph.InputError, match=r"m.sdf has more than one link 'arm' with an inertia; it has a::arm, b::arm"
    ):
        ph.Body.from_sdf("m.sdf", "arm")


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
MISTAKES = [
    ("m.urdf", urdf(""), "give link, one of those of m.urdf that have an inertia: none"),
    ("m.urdf", urdf("<inertial><mass value='1'/></inertial>"), "link 'arm' of m.urdf needs <mass> and <inertia>"),
    ("m.urdf", WAYS["rpy.urdf"].replace("0.3 -0.5", "0.3"), "rpy of link 'arm' of m.urdf must be 3 numbers; got"),
    ("m.urdf", WAYS["rpy.urdf"].replace('iyy="', 'iYY="'), "iyy of link 'arm' of m.urdf must be a number; got None"),
    ("m.urdf", WAYS["rpy.urdf"].replace("3.5", "-3.5"), "mass must be positive; got -3.5"),
    ("m.urdf", WAYS["rpy.urdf"].replace("0.45", "4.5"), "moments of inertia must satisfy the triangle inequality"),
    ("m.urdf", "<robot", "m.urdf is not an XML file"),
    ("m.urdf", WAYS["rpy.sdf"], "m.urdf is not URDF: it begins with <sdf>, not with <robot>"),
    ("m.urdf", BOMB + urdf(""), "m.urdf defines entities; write it without <!DOCTYPE ...>"),
    (
        "m.urdf",
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>',
        "m.urdf has macros; expand it first",
    ),
    ("m.sdf", sdf("<inertial auto='true'/>"), "link 'm::arm' of m.sdf needs <mass> and <inertia> within <inertial>"),
    ("m.sdf", of_sdf(OWN, "<pose relative_to='x'>0 0 0 0 0 0</pose>"), "is relative to another frame"),
    ("m.sdf", f"<sdf>{'<model>' * 9999}{'</model>' * 9999}</sdf>", "models are nested more than 100 times"),
    ("m.xml", mjcf(""), "give body, one of those of m.xml that have an inertia: none"),
    ("m.xml", of_mjcf("", "<compiler settotalmass='3'/>"), "lets MuJoCo change the inertia (settotalmass)"),
    ("m.xml", of_mjcf(""), "diaginertia, or fullinertia, of body 'arm' of m.xml must be 3 numbers; got None"),
    ("m.xml", of_mjcf(f'{DIAGONAL} zaxis="0 0 1"'), "is oriented by zaxis, which is not read; write quat instead"),
    ("m.xml", of_mjcf(f'{DIAGONAL} quat="0 0 0 0"'), "the quaternion of body 'arm' of m.xml must not be zero"),
]


@pytest.mark.parametrize(("name", "text", "said"), MISTAKES, ids=[said for *_, said in MISTAKES])
def test_mistakes_are_explained(name: str, text: str, said: str) -> None:
    Path(name).write_text(text, "utf-8")
    with pytest.raises(ph.InputError) as caught:
        READ[Path(name).suffix](name)
    assert said in str(caught.value)


def test_names_and_files_that_do_not_exist() -> None:
    Path("m.urdf").write_text(WAYS["rpy.urdf"], "utf-8")
    with pytest.raises(ph.InputError, match=r"m.urdf has no link 'leg' with an inertia; it has arm"):
        ph.Body.from_urdf("m.urdf", "leg")
    with pytest.raises(ph.InputError, match=r"none.urdf cannot be read"):
        ph.Body.from_urdf("none.urdf")


# --- the command ------------------------------------------------------------------------------------


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, ["body", *args], prog_name="polhode")
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["rpy.urdf", "rpy.sdf", "quat.xml"])
def test_the_command_prints_the_link(name: str) -> None:
    Path(name).write_text(WAYS[name], "utf-8")
    body = READ[Path(name).suffix](name)
    code, said = run(name, "--link", "arm")
    assert code == 0
    assert "SI; in the axes of the link" in said
    for number in (body.mass, *body.centre, *body.tensor.ravel(), *body.moments):
        assert f"{number:.10g}" in said
    facts = json.loads(run(name, "--json")[1])
    assert (facts["mass"], facts["centre"]) == (MASS, CENTRE.tolist())
    assert facts["tensor"] == body.tensor.tolist()
    assert facts["moments"] == body.moments.tolist()


TWO = WAYS["rpy.urdf"].replace('<link name="base"/>', '<link name="base"><inertial/></link>')


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("<robot", [], "m.urdf is not an XML file"),
        (TWO, [], "give link, one of those of m.urdf that have an inertia: base, arm"),
        (TWO, ["--link", "base"], "link 'base' of m.urdf needs <mass> and <inertia>"),
        (TWO, ["--link", "leg"], "m.urdf has no link 'leg' with an inertia; it has base, arm"),
        (TWO, ["1", "2", "--mass", "0"], "in SI units; remove dimensions and --mass"),
        (TWO, ["--unit", "mm"], "remove --unit"),
    ],
)  # fmt: skip
def test_the_command_explains_mistakes_in_one_sentence(text: str, options: list[str], said: str) -> None:
    Path("m.urdf").write_text(text, "utf-8")
    code, told = run("m.urdf", *options)
    assert code == 2
    assert told.startswith("polhode: ")
    assert said in told
    assert told.count("\n") == 1


def test_links_are_of_robots() -> None:
    assert run("box", "1", "2", "3", "--link", "arm") == (
        2, "polhode: --link is for robots, files that end in .urdf, .sdf, .xml; got box\n"
    )  # fmt: skip
    assert run("none.urdf")[0] == 2
