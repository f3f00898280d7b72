"""Films and moving scenes of trajectories."""

from __future__ import annotations

import json
import math
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from PIL import Image
from typer.testing import CliRunner

import polhode as ph
from pages import turned
from polhode.cli import app
from polhode.physics import triangles
from polhode.viewer.data import largest_turn
from polhode.viewer.motion import attitudes_at
from polhode.viewer.painter import finer
from polhode.viewer.uniform_pull import uniform_pull
from waiting import PATIENCE

TYPES = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


@pytest.fixture(scope="module")
def top() -> ph.Trajectory:
    return ph.solve(ph.problems.get("fast_top"), "strang(dmv6)", dt=0.005, t_end=1.0)


@pytest.fixture(scope="module")
def handle() -> ph.Trajectory:
    return ph.solve(ph.problems.get("t_handle"), "dmv6", dt=0.02, t_end=4.0)


class Gltf:
    """A binary glTF file, read by the specification."""

    def __init__(self, path: Path) -> None:
        raw = path.read_bytes()
        magic, version, length = struct.unpack_from("<4sII", raw)
        assert (magic, version, length) == (b"glTF", 2, len(raw))
        size, kind = struct.unpack_from("<I4s", raw, 12)
        assert kind == b"JSON"
        self.document: dict[str, Any] = json.loads(raw[20 : 20 + size])
        rest, kind = struct.unpack_from("<I4s", raw, 20 + size)
        assert kind == b"BIN\0"
        self.binary = raw[28 + size : 28 + size + rest]

    def array(self, number: int) -> np.ndarray:
        accessor = self.document["accessors"][number]
        view = self.document["bufferViews"][accessor["bufferView"]]
        kind = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        flat = np.frombuffer(self.binary, kind, accessor["count"] * TYPES[accessor["type"]], view["byteOffset"])
        return flat.reshape(accessor["count"], -1)


def test_attitudes_between_states(handle: ph.Trajectory) -> None:
    times = np.linspace(0.0, 4.0, 333)
    between = attitudes_at(handle, np.arange(len(handle)), times)
    for one, other in zip(between, handle.at(times).quaternion, strict=True):
        assert turned(one, other) < 1e-5  # cubics over a tenth of a radian
    sparse = ph.exact(ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, math.tau]), np.arange(5.0))
    (quarter,) = attitudes_at(sparse, np.arange(5), np.array([1.25]))
    assert turned(quarter, [math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4)]) < 1e-7


@pytest.mark.parametrize("name", ["fast_top", "t_handle"])
def test_runs_to_a_tolerance_keep_enough_states(name: str) -> None:
    """From their steps alone the motion in between is known to a hundredth of a degree."""
    sol = ph.solve(ph.problems.get(name), tol=1e-6, t_end=2.0)
    kept, times = np.arange(len(sol)), np.linspace(0.0, 2.0, 501)
    assert largest_turn(sol, kept) < math.pi / 2
    apart = [turned(*two) for two in zip(attitudes_at(sol, kept, times), sol.at(times).quaternion, strict=True)]
    assert max(apart) < math.radians(0.01)


def test_a_scene_turns_as_the_body_does(top: ph.Trajectory, tmp_path: Path) -> None:
    scene = Gltf(top.animate(tmp_path / "top.glb", speed=0.25))
    (animation,) = scene.document["animations"]
    ((channel,), (sampler,)) = animation["channels"], animation["samplers"]
    assert channel["target"] == {"node": 1, "path": "rotation"}
    seconds, keys = scene.array(sampler["input"])[:, 0], scene.array(sampler["output"])
    assert seconds[-1] == pytest.approx(4.0)
    assert scene.document["accessors"][sampler["input"]]["max"] == [pytest.approx(4.0)]
    assert (keys[1:] * keys[:-1]).sum(axis=1).min() > math.cos(math.radians(8))  # 15 degrees of rotation
    for second, (x, y, z, w) in list(zip(seconds, keys, strict=True))[::7]:
        there = top.at([min(1.0, 0.25 * float(second))]).quaternion[0]
        assert turned([w, x, y, z], there) < 2e-5
    x, y, z, w = scene.document["nodes"][0]["rotation"]
    upwards = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])  # the image of z
    assert upwards == pytest.approx([0, 1, 0], abs=1e-7)


def test_a_scene_is_read_by_trimesh(top: ph.Trajectory, handle: ph.Trajectory, tmp_path: Path) -> None:
    """Its triangles enclose the cone, and stand where the first state has it."""
    scene = trimesh.load_scene(ph.animate([top], tmp_path / "top.glb"))
    joined = scene.to_mesh()
    joined.merge_vertices(merge_tex=True, merge_norm=True)
    (cone,) = top.info.shapes
    volume = math.pi / 3 * cone.sizes["radius"] ** 2 * cone.sizes["height"]
    assert joined.volume == pytest.approx(volume, rel=0.01)
    centre = top.matrix[0] @ cone.position
    assert np.linalg.norm(joined.center_mass) == pytest.approx(np.linalg.norm(centre), rel=1e-5)
    assert joined.center_mass[1] == pytest.approx(centre[2], rel=1e-5)  # y is up
    both = trimesh.load_scene(ph.animate([top, handle], tmp_path / "both.glb"))
    assert len({both.graph[name][0].tobytes() for name in both.graph.nodes_geometry}) == 2


def test_a_gif(top: ph.Trajectory, tmp_path: Path) -> None:
    pictures = []
    with Image.open(top.animate(tmp_path / "top.gif", seconds=0.4, speed=1.0, fps=25, size=(160, 120))) as film:
        assert (film.size, film.n_frames, film.info["duration"], film.info["loop"]) == ((160, 120), 10, 40, 0)
        for number in (0, 5, 9):
            film.seek(number)
            pictures.append(np.array(film.convert("RGB")))
    assert (pictures[0] != pictures[1]).any()
    assert (pictures[1] != pictures[2]).any()


def test_an_mp4(top: ph.Trajectory, tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()
    path = top.animate(tmp_path / "top.mp4", seconds=0.4, speed=1.0, size=(160, 120))
    decode = [ffmpeg, "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    read = subprocess.run(decode, capture_output=True, check=True, timeout=PATIENCE)
    assert b"h264" in read.stderr
    assert b"25 fps" in read.stderr
    pictures = np.frombuffer(read.stdout, np.uint8).reshape(10, 120, 160, 3)
    assert np.abs(pictures[0].astype(int) - pictures[9]).max() > 50


def test_the_body_is_drawn_at_its_attitude(tmp_path: Path) -> None:
    """A long box seen from the front: upright, it covers a tall part of the picture; lying, a wide one."""
    rod = ph.Body.box(0.2, 0.2, 2.0)
    for attitude, tall in (([1.0, 0.0, 0.0, 0.0], True), ([math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0], False)):
        still = ph.solve(ph.Problem(rod, attitude=attitude, omega=[0.0, 0.0, 0.0]), "dmv2", dt=0.1, steps=3)
        with Image.open(still.animate(tmp_path / f"{tall}.gif", size=(200, 200))) as film:
            picture = np.array(film.convert("RGB")).astype(int)[40:]  # without the title
        rows, columns = np.nonzero(picture[..., 2] - picture[..., 0] > 40)  # blue
        assert (np.ptp(rows) > 2 * np.ptp(columns)) == tall
        assert (np.ptp(columns) > 2 * np.ptp(rows)) == (not tall)


def test_bad_input(top: ph.Trajectory, tmp_path: Path) -> None:
    for change, said in (
        ({"fps": 0}, "fps must be a whole number"),
        ({"size": (161, 120)}, "size must be an even width"),
        ({"speed": -1.0}, "speed must be"),
        ({"seconds": 1e4, "speed": 1e-4}, "a film may have at most"),
    ):
        with pytest.raises(ph.InputError, match=said):
            top.animate(tmp_path / "bad.gif", **change)
    with pytest.raises(ph.InputError, match=r"must end in \.gif, \.mp4 or \.glb; got .*top\.avi"):
        top.animate(tmp_path / "top.avi")
    top.animate(tmp_path / "top.glb")
    with pytest.raises(ph.InputError, match=r"top\.glb exists"):
        top.animate(tmp_path / "top.glb")
    top.animate(tmp_path / "top.glb", overwrite=True)
    apart = ph.exact(ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, math.tau]), np.arange(5.0))
    with pytest.raises(ph.InputError, match="more than half a turn apart"):
        apart.animate(tmp_path / "apart.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["top.glb"]  # nothing half-written


def test_command(handle: ph.Trajectory, tmp_path: Path) -> None:
    handle.save(tmp_path / "run.nc")
    run = CliRunner()
    done = run.invoke(app, ["export", str(tmp_path / "run.nc"), "--to", "glb"])
    assert done.exit_code == 0, done.output
    assert len(Gltf(tmp_path / "run.glb").document["nodes"]) == 2
    film = [str(tmp_path / "film.gif"), "--seconds", "0.2", "--size", "120", "80"]
    done = run.invoke(app, ["export", str(tmp_path / "run.nc"), *film])
    assert done.exit_code == 0, done.output
    with Image.open(tmp_path / "film.gif") as made:
        assert made.size == (120, 80)
    for wrong, said in (
        (["--to", "avi"], "--to with one of csv"),
        ([], "give the name of the new file"),
        ([str(tmp_path / "a.gif"), "--to", "mp4"], "does not match"),
        ([str(tmp_path / "a.nc"), "--speed", "2"], "are for films and scenes"),
    ):
        failed = run.invoke(app, ["export", str(tmp_path / "run.nc"), *wrong])
        assert failed.exit_code == 2
        assert said in " ".join(failed.output.split())


def test_which_potentials_pull() -> None:
    """Linear in R and of rank one: weight, also from a file's formula or a user's, and a dipole; nothing else."""
    cone = ph.Body.cone(0.3, 1.0, mass=2.0).turned([0.0, 1.0, 0.0, 0.0]).about([0.1, 0.0, -0.75])
    weight = ph.fields.uniform_gravity(cone, g=[0.0, 3.0, 4.0])
    found = uniform_pull(ph.Problem(cone, weight + ph.fields.linear_drag(coefficients=0.1), omega=[0.0, 0.0, 1.0]))
    assert found is not None
    assert found.is_weight
    assert found.down == pytest.approx([0.0, 0.6, 0.8])
    arm = cone.centre - cone.pivot
    assert found.arm == pytest.approx(arm / np.linalg.norm(arm))

    @ph.potential
    def own(R: Any) -> Any:
        return 3.0 * R[2][0] + 1.0

    mine = uniform_pull(ph.Problem(ph.Body([1.0, 2.0, 3.0]), own(), omega=[0.0, 0.0, 1.0]))
    assert mine is not None
    assert mine.down == pytest.approx([0.0, 0.0, -1.0])
    assert mine.arm == pytest.approx([1.0, 0.0, 0.0])
    magnet = uniform_pull(ph.problems.get("dipole_in_field"))
    assert magnet is not None
    assert not magnet.is_weight
    assert magnet.arm == pytest.approx(np.array([0.3, -0.2, 0.5]) / math.sqrt(0.38))

    @ph.potential
    def logarithm(R: Any) -> Any:
        return ph.math.log(R[2][2])

    assert uniform_pull(ph.Problem(ph.Body([1.0, 2.0, 3.0]), logarithm(), omega=[0.0, 0.0, 1.0])) is None
    for name in ("free_body", "libration", "soft_wall", "quadratic_well"):
        assert uniform_pull(ph.problems.get(name)) is None


def test_small_triangles_cover_the_same_surface() -> None:
    (part,) = triangles.meshes(ph.Body.cone(0.5, 2.0).shapes)
    small = finer(part, 0.3)
    corners = small.vertices[small.faces]
    assert np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() <= 0.3
    areas = [trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).area for mesh in (part, small)]
    assert areas[0] == pytest.approx(areas[1])
    assert trimesh.Trimesh(small.vertices, small.dark, process=False).area == pytest.approx(areas[0] / 2)
