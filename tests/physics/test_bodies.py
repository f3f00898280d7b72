"""Bodies from geometry: solids against integration, compositions, meshes and what can be wrong with them."""

import inspect
import itertools
import json
import math
import re
import sys

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import polhode as ph
from polhode import cli
from polhode.physics.body import SHAPES, shape_sizes
from polhode.physics.shapes import SOLIDS

TURN = Rotation.from_rotvec([0.3, -0.7, 0.4])
EDGES = (1.0, 2.0, 3.0)


def close(a, b, tolerance=1e-13):
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


# --- solids -----------------------------------------------------------------------------------------


def nodes(low, high):
    """Gauss points and weights, exact for polynomials up to degree 23."""
    x, w = np.polynomial.legendre.leggauss(12)
    return low + (high - low) * (x + 1) / 2, w * (high - low) / 2


def angles():
    """The trapezoidal rule over a turn, exact for trigonometric polynomials up to degree 15."""
    return np.arange(16) * math.pi / 8, np.full(16, math.pi / 8)


def integrated(axes, place, jacobian):
    """Volume, centre and inertia tensor about it at density 1, summed over the points of a product rule."""
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for points in itertools.product(*(list(zip(*axis, strict=True)) for axis in axes)):
        at = [x for x, _ in points]
        weight = math.prod(w for _, w in points) * jacobian(*at)
        r = np.array(place(*at))
        volume, first, second = volume + weight, first + weight * r, second + weight * np.outer(r, r)
    centre = first / volume
    second -= volume * np.outer(centre, centre)
    return volume, centre, np.trace(second) * np.eye(3) - second


def polar(s, a, z):
    return (s * math.cos(a), s * math.sin(a), z)


SHAPED = {
    "box": (EDGES, [nodes(-0.5, 0.5), nodes(-1, 1), nodes(-1.5, 1.5)], lambda x, y, z: (x, y, z), lambda x, y, z: 1),
    "ellipsoid": (
        EDGES,
        [nodes(0, 1), nodes(-1, 1), angles()],
        lambda s, c, a: (
            s * math.sqrt(1 - c * c) * math.cos(a), 2 * s * math.sqrt(1 - c * c) * math.sin(a), 3 * s * c,
        ),
        lambda s, c, a: 6 * s * s,
    ),
    "cylinder": ((0.7, 2.0), [nodes(0, 0.7), angles(), nodes(-1, 1)], polar, lambda s, a, z: s),
    "cone": (
        (0.7, 2.0),
        [nodes(0, 1), angles(), nodes(0, 2)],
        lambda s, a, z: polar(s * 0.7 * (1 - z / 2), a, z - 0.5),
        lambda s, a, z: s * (0.7 * (1 - z / 2)) ** 2,
    ),
    "torus": (
        (2.0, 0.6),
        [nodes(0, 0.6), angles(), angles()],
        lambda s, a, b: polar(2 + s * math.cos(b), a, s * math.sin(b)),
        lambda s, a, b: s * (2 + s * math.cos(b)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_against_integration(name):
    sizes, axes, place, jacobian = SHAPED[name]
    volume, centre, tensor = integrated(axes, place, jacobian)
    body = getattr(ph.Body, name)(*sizes, density=2.5)
    assert body.mass == pytest.approx(2.5 * volume, rel=1e-13)
    assert close(centre, [0, 0, 0]) or np.abs(centre).max() < 1e-14
    assert close(body.tensor, 2.5 * tensor)
    unit = getattr(ph.Body, name)(*sizes)
    assert unit.mass == 1
    assert close(unit.moments, body.moments / body.mass)


def test_known_values():
    assert ph.Body.cone(2.0, 5.0, mass=3.0).moments[2] == pytest.approx(0.3 * 3 * 4, rel=1e-15)
    assert ph.Body.torus(3.0, 1.0, mass=2.0).moments[2] == pytest.approx(2 * (9 + 0.75), rel=1e-15)
    assert ph.Body.cylinder(0.1, 3.0, mass=4.0).moments[2] == pytest.approx(4 * 0.01 / 2, rel=1e-15)
    sphere = ph.Body.ellipsoid(2, 2, 2, mass=5.0)
    assert close(sphere.moments, np.full(3, 0.4 * 5 * 4))
    about_apex = ph.Body.cone(2.0, 5.0, mass=3.0).about([0, 0, 3.75])
    assert about_apex.moments[0] == pytest.approx(3 * (3 / 20 * 4 + 3 / 5 * 25), rel=1e-14)


def test_points():
    body = ph.Body.from_points([[0, 0, 0], [2, 0, 0]], [1, 3])
    assert (body.mass, body.centre.tolist()) == (4, [1.5, 0, 0])
    assert body.moments.tolist() == [0, 3, 3]  # the reduced mass times the square of the distance
    cube = ph.Body.from_points(list(itertools.product([-1, 1], repeat=3)), 0.5)
    assert close(cube.moments, np.full(3, 8.0))
    assert not cube.has_principal_rotation


# --- compositions -----------------------------------------------------------------------------------


def test_two_half_boxes_are_a_box():
    half = ph.Body.box(0.5, 2, 3, mass=1.5)
    whole = half.moved([0.25, 0, 0]) + half.moved([-0.25, 0, 0])
    box = ph.Body.box(1, 2, 3, mass=3)
    assert whole.mass == 3
    assert close(whole.tensor, box.tensor)
    assert not whole.centre.any()
    assert [shape.name for shape in whole.shapes] == ["box", "box"]
    turned = half.turned(TURN).moved(TURN.apply([0.25, 0, 0])) + half.moved([-0.25, 0, 0]).turned(TURN)
    R = TURN.as_matrix()
    assert close(turned.tensor, R @ box.tensor @ R.T)
    assert close(np.sort(turned.moments), np.sort(box.moments))


def test_a_hole_is_the_opposite_of_a_part():
    outer, inner = ph.Body.box(4, 4, 4, density=2), ph.Body.cylinder(0.5, 2, density=2).moved([0.3, 0.2, -0.4])
    hollow = outer - inner
    assert hollow.mass == pytest.approx(outer.mass - inner.mass, rel=1e-15)
    filled = hollow + inner
    assert close(filled.tensor, outer.tensor)
    assert np.abs(filled.centre).max() < 1e-15
    assert [shape.hole for shape in hollow.shapes] == [False, True]
    shell = ph.Body.ellipsoid(2, 2, 2, density=1) - ph.Body.ellipsoid(1, 1, 1, density=1)
    assert shell.moments[0] == pytest.approx(0.4 * shell.mass * (32 - 1) / (8 - 1), rel=1e-13)


def test_parallel_axes_both_ways():
    body = ph.Body.box(*EDGES, mass=2).turned(TURN).moved([1, 2, 3])
    point = [0.4, -0.3, 0.9]
    away = body.about(point)
    d = body.centre - point
    assert close(away.tensor, body.tensor + 2 * (d @ d * np.eye(3) - np.outer(d, d)))
    assert close(away.about(body.centre).tensor, body.tensor)
    assert close(away.central, body.tensor)
    rod = ph.Body.cylinder(1e-9, 2, mass=3).about([0, 0, -1])
    assert rod.moments[0] == pytest.approx(3 * 4 / 3, rel=1e-12)


def test_order_and_grouping_do_not_matter():
    parts = [
        ph.Body.box(*EDGES).moved([1, 0, 2]),
        ph.Body.cone(1, 2).turned(TURN),
        ph.Body.torus(2, 1).moved([0, 3, 0]),
    ]
    a = sum(parts)
    b = parts[2] + (parts[1] + parts[0])
    assert close(a.tensor, b.tensor)
    assert close(a.centre, b.centre)
    away = a.about([1, 1, 1])
    assert close((away.moved([1, 0, 0]) + parts[0].moved([1, 0, 0])).tensor, (a + parts[0]).tensor)


def test_turning_is_done_about_the_origin():
    body = ph.Body.cone(1, 2).moved([1, 0, 0]).turned(Rotation.from_rotvec([0, 0, math.pi / 2]))
    assert close(body.centre, [0, 1, 0])
    assert close(body.shapes[0].position, [0, 1, 0])
    assert not body.has_principal_rotation  # round-off in the products of inertia is no tilt


def test_the_t_handle_turns_over_about_its_stem():
    body = ph.Body.t_handle(mass=2.0)
    assert body.mass == pytest.approx(2.0)
    assert np.abs(body.centre).max() < 1e-16
    stem, bar, across = body.moments
    assert bar < stem < across
    sol = ph.exact(ph.Problem(body, omega=[1.0, 1e-3, 0.0]), np.linspace(0, 60, 200))
    assert sol.omega[:, 0].min() < -0.99
    dense = ph.Body.t_handle(1, 0.1, 0.5, 0.1, density=7)
    assert dense.mass == pytest.approx(7 * math.pi * 0.01 * 1.5)
    assert close(dense.moments / dense.mass, body.moments / body.mass)


def test_a_body_without_matter_is_as_before():
    body = ph.Body([1.0, 2.0, 2.5])
    assert (body.mass, body.shapes, repr(body)) == (None, (), "Body([1.0, 2.0, 2.5])")
    assert body.tensor is body.inertia
    for use in (lambda: body + body, lambda: body.about([1, 0, 0]), lambda: body.scaled(2)):
        with pytest.raises(ph.InputError, match="needs a body with a mass"):
            use()
    assert "mass=2.0, centre=[0.0, 0.0, 1.0], pivot=[0.0, 0.0, 0.0]" in repr(
        ph.Body([1, 2, 2.5], mass=2, centre=[0, 0, 1], pivot=[0, 0, 0])
    )


WRONG = [
    (lambda: ph.Body.box(1, 0, 2), "b must be positive; got 0"),
    (lambda: ph.Body.box(1, "a", 2), "b must be a number; got 'a'"),
    (lambda: ph.Body.box(1, 2, 3, mass=1, density=1), "give the mass or the density, not both"),
    (lambda: ph.Body.box(1, 2, 3, mass=-1), "mass must be positive; got -1"),
    (lambda: ph.Body.torus(1, 2), "a torus needs r <= R"),
    (lambda: ph.Body.from_points([[1, 2, 3]]), "all points coincide"),
    (lambda: ph.Body.from_points([[1, 2, 3], [1, 2]]), "positions must be points of three numbers"),
    (lambda: ph.Body.from_points([[1, 2, 3], [0, 0, 0]], [1, 2, 3]), "one number for each of the 2 points"),
    (lambda: ph.Body.from_points([[1, 2, 3], [0, 0, 0]], [1, -2]), "masses must be positive and finite"),
    (lambda: ph.Body.box(1, 1, 1) + 3, "a body can only be combined with a ph.Body; got int"),
    (lambda: ph.Body.box(1, 1, 1) - ph.Body.box(1, 1, 1), "nothing is left: a mass of 1"),
    (lambda: ph.Body.box(1, 1, 1) - ph.Body.box(5, 5, 5, mass=0.9), "must not be negative"),
    (lambda: ph.Body.box(1, 1, 1).moved([1, 2]), "by must be three numbers"),
    (lambda: ph.Body(mass=1, size=[1, 2, 3]), "has no argument 'size', .*; a box .* is ph.Body.box(1, 2, 3, mass=1)"),
    (lambda: ph.Body(radius=1, height=2, density=5), "is ph.Body.cylinder(radius=1.0, height=2.0, density=5)"),
    (lambda: ph.Body([1, 2, 2.5], center=[0, 0, 1]), "ph.Body has no argument 'center', but .*; did you mean centre?"),
    (lambda: ph.Body(moments=[1, 2, 2.5]), "the inertia comes first: ph.Body([1.0, 2.0, 3.0], mass=1.0)"),
    (lambda: ph.Body(mass=1), "the inertia is missing: write ph.Body([1.0, 2.0, 3.0], mass=1.0)"),
    (lambda: ph.Body([1, 2, 2.5], 3.0), "all arguments but the first are named: write ph.Body([1.0"),
    (lambda: ph.Body([1, 2, 2.5], inertia=[1, 2, 2.5]), "all arguments but the first are named"),
    (lambda: ph.Body.from_shape("boxes", a=1), "unknown shape 'boxes'; nearest: box"),
    (lambda: ph.Body.from_shape("box", a=1), "the shape box takes a, b, c, mass, density: missing a required"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), WRONG, ids=[words for _, words in WRONG])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert re.search(".*".join(map(re.escape, words.split(".*"))), str(caught.value))


def test_the_signature_of_a_body_is_its_own():
    assert list(inspect.signature(ph.Body).parameters)[:2] == ["inertia", "mass"]
    assert repr(ph.Body(inertia=[1, 2, 2.5])) == repr(ph.Body([1, 2, 2.5]))


def test_every_shape_by_name():
    for name in SHAPES:
        sizes = dict(zip(shape_sizes(name), (2.0, 0.5, 0.7, 0.2), strict=False))
        assert ph.Body.from_shape(name, **sizes, density=3).tensor.tolist() == (
            getattr(ph.Body, name)(*sizes.values(), density=3).tensor.tolist()
        )


# --- meshes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hull():
    """A convex body with nothing regular about it."""
    return trimesh.convex.convex_hull(np.random.default_rng(1).normal(size=(30, 3)) * [1, 2, 0.7] + [3, -1, 2])


def saved(mesh, folder, kind="stl"):
    path = folder / f"part.{kind}"
    mesh.export(path)
    return path


@pytest.mark.parametrize("kind", ["stl", "obj", "ply"])
def test_a_mesh_against_trimesh(kind, hull, tmp_path):
    body = ph.Body.from_mesh(saved(hull, tmp_path, kind), density=2.0)
    rounding = 1e-6  # the files hold 7 or 8 digits
    assert body.mass == pytest.approx(2 * hull.volume, rel=rounding)
    assert close(body.centre, hull.center_mass, rounding)
    assert close(body.tensor, 2 * hull.moment_inertia, rounding)
    assert body.shapes[0].faces.shape == hull.faces.shape
    assert close(body.axes @ np.diag(body.moments) @ body.axes.T, body.tensor)


def test_a_mesh_of_a_box_is_the_box(tmp_path):
    path = saved(trimesh.creation.box((10, 20, 30)), tmp_path)
    body, box = ph.Body.from_mesh(path, density=2700, unit="mm"), ph.Body.box(0.01, 0.02, 0.03, density=2700)
    assert body.mass == pytest.approx(box.mass, rel=1e-14)
    assert close(body.tensor, box.tensor)
    assert ph.Body.from_mesh(path).mass == 1


def test_a_hollow_part(tmp_path):
    inner = trimesh.creation.box((1, 1, 1))
    inner.invert()
    body = ph.Body.from_mesh(
        saved(trimesh.util.concatenate([trimesh.creation.box((3, 3, 3)), inner]), tmp_path), density=1
    )
    assert close(body.tensor, (ph.Body.box(3, 3, 3, density=1) - ph.Body.box(1, 1, 1, density=1)).tensor)


def test_the_mesh_of_a_ball_converges_to_the_ball(tmp_path):
    errors = [
        abs(ph.Body.from_mesh(saved(trimesh.creation.icosphere(n), tmp_path, "ply"), density=1).moments[0] / exact - 1)
        for exact in [ph.Body.ellipsoid(1, 1, 1, density=1).moments[0]] for n in (2, 3)
    ]  # fmt: skip
    assert 3.8 < errors[0] / errors[1] < 4.2


def open_box():
    mesh = trimesh.creation.box(EDGES)
    return trimesh.Trimesh(mesh.vertices, mesh.faces[1:], process=False)


def flipped_face():
    mesh = trimesh.creation.box(EDGES)
    faces = mesh.faces.copy()
    faces[0] = faces[0][::-1]
    return trimesh.Trimesh(mesh.vertices, faces, process=False)


def inside_out():
    mesh = trimesh.creation.box(EDGES)
    return trimesh.Trimesh(mesh.vertices, mesh.faces[:, ::-1], process=False)


def sliver():
    mesh = trimesh.creation.box(EDGES)
    return trimesh.Trimesh(mesh.vertices, [*mesh.faces, [0, 1, 1]], process=False)


def doubled():
    mesh = trimesh.creation.box(EDGES)
    return trimesh.Trimesh(mesh.vertices, [*mesh.faces, mesh.faces[0], mesh.faces[0]], process=False)


def two_sided():
    return trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]], process=False)


def beside(*, by, turned=False):
    """A box, and another one moved, perhaps inside out."""
    one, two = trimesh.creation.box(EDGES), trimesh.creation.box(EDGES)
    two.apply_translation(by)
    faces = two.faces[:, ::-1] if turned else two.faces
    return trimesh.Trimesh([*one.vertices, *two.vertices], [*one.faces, *(faces + len(one.vertices))], process=False)


def overlapping():
    return beside(by=[0.3, 0.2, 0.1])


def one_part_inside_out():
    mesh = beside(by=[5.0, 0.0, 0.0], turned=True)
    mesh.vertices[:8] *= 1.5  # so that the volume of all is positive
    return mesh


def far_too_large():
    mesh = trimesh.creation.box(EDGES)
    mesh.apply_scale(1e35)
    return mesh


BROKEN = [
    (overlapping, "parts of part.stl overlap, near ("),
    (one_part_inside_out, "a part of part.stl, near (5, 0, 0), is inside out and not a cavity of another"),
    (far_too_large, "part.stl has coordinates beyond 1e+30; give the unit"),
    (open_box, "part.stl is not watertight: 3 edges belong to one triangle only, the first near ("),
    (flipped_face, "the triangles of part.stl are not wound consistently"),
    (inside_out, "part.stl is inside out (its volume is -6)"),
    (sliver, "part.stl has 1 degenerate triangles (without area)"),
    (doubled, "part.stl is not a simple surface: 3 edges belong to more than two triangles"),
    (two_sided, "part.stl encloses no volume"),
]


def test_parts_beside_each_other_and_in_a_cavity(tmp_path):
    """Two boxes apart are one body; so is a ball in a hollow ball."""
    body = ph.Body.from_mesh(saved(beside(by=[5.0, 0.0, 0.0]), tmp_path), density=1.0)
    box = ph.Body.box(*EDGES, density=1.0)
    both = box + box.moved([5.0, 0.0, 0.0])
    assert body.mass == pytest.approx(both.mass, rel=1e-6)
    np.testing.assert_allclose(body.tensor, both.tensor, atol=1e-5 * both.moments.max())
    balls = [trimesh.creation.icosphere(2, radius) for radius in (1.0, 0.6, 0.3)]
    balls[1].invert()
    nested = ph.Body.from_mesh(saved(trimesh.util.concatenate(balls), tmp_path), density=1.0)
    assert nested.mass == pytest.approx(sum(ball.volume for ball in balls), rel=1e-6)


@pytest.mark.parametrize(("make", "words"), BROKEN, ids=[make.__name__ for make, _ in BROKEN])
def test_broken_meshes_are_explained(make, words, tmp_path):
    with pytest.raises(ph.InputError) as caught:
        ph.Body.from_mesh(saved(make(), tmp_path))
    assert words in str(caught.value)


def test_files_that_are_no_meshes(tmp_path, monkeypatch):
    def said(name, content=b""):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ph.InputError) as caught:
            ph.Body.from_mesh(tmp_path / name)
        return str(caught.value)

    noise = np.random.default_rng(0).bytes(300)
    assert "stl, obj, ply; got 'part.step'" in said("part.step")
    assert "bad.ply cannot be read as PLY" in said("bad.ply", noise)
    assert all("bad." in said(f"bad.{kind}", noise) for kind in ("stl", "obj"))
    assert "has no triangles" in said("empty.obj", b"# nothing\n")
    assert "vertices that are not finite" in said("nan.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(ph.InputError, match="there is no file"):
        ph.Body.from_mesh(tmp_path / "absent.stl")
    with pytest.raises(ph.InputError, match="unit must be one of m, km"):
        ph.Body.from_mesh(tmp_path / "bad.stl", unit="furlong")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    assert (
        said("bad.ply", noise) == "bodies from meshes need trimesh, which is not installed: pip install 'polhode[mesh]'"
    )


def test_other_files_named_in_a_mesh_are_not_read(tmp_path):
    path = saved(trimesh.creation.box(EDGES), tmp_path, "obj")
    path.write_text(f"mtllib {tmp_path / 'secret.mtl'}\nusemtl a\n" + path.read_text())
    (tmp_path / "secret.mtl").write_text("newmtl a\nmap_Kd secret.png\n")
    opened = []
    watching = True
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" and watching else None)
    body = ph.Body.from_mesh(path)
    watching = False
    assert body.mass == 1
    assert str(path) in opened
    assert not [name for name in opened if "secret" in name]


# --- the command ------------------------------------------------------------------------------------


def run(*args):
    result = CliRunner().invoke(cli.app, [str(a) for a in args], prog_name="polhode")
    return result.exit_code, result.output


def test_the_command_prints_mass_centre_moments_and_axes(hull, tmp_path):
    path = saved(hull, tmp_path)
    code, said = run("body", path, "--density", 2, "--unit", "mm")
    body = ph.Body.from_mesh(path, density=2, unit="mm")
    assert code == 0
    for number in (body.mass, *body.centre, *body.tensor.ravel(), *body.moments):
        assert f"{number:.10g}" in said
    facts = json.loads(run("body", path, "--density", 2, "--unit", "mm", "--json")[1])
    assert facts["moments"] == body.moments.tolist()
    assert facts["axes"] == body.axes.T.tolist()
    box = json.loads(run("body", "box", 10, 20, 30, "--unit", "cm", "--mass", 3, "--json")[1])
    assert close(np.array(box["tensor"]), ph.Body.box(0.1, 0.2, 0.3, mass=3).tensor)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("body", "absent.stl"), "polhode: there is no file 'absent.stl'"),
        (("body", "bix", 1, 2, 3), "polhode: 'bix' must be a shape followed by its dimensions (box, "),
        (("body", "box", 1, 2), "missing a required argument: 'c'"),
        (("body", "box", 1, 2, 3, 4), "the shape box takes a, b, c; got 4 lengths"),
        (("body", "box", 1, 2, 3, "--mass", 1, "--density", 2), "not both"),
    ],
)
def test_the_command_explains_mistakes_in_one_sentence(args, words):
    code, said = run(*args)
    assert code == 2
    assert words in said
    assert said.count("\n") == 1
