"""Torques on facets: symmetric surfaces, a windmill computed by hand, and averages by another quadrature."""

import math
import pickle

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import polhode as ph

fields = ph.fields
ROTATIONS = Rotation.random(4, rng=np.random.default_rng(5)).as_matrix().tolist()
BODY = ph.Body([2.0, 3.0, 4.0])
OMEGA = (0.1, 0.2, 0.3)
SUN = [0.6, -0.3, 0.7]
SPHERE = trimesh.creation.icosphere(subdivisions=2)
ROUND = ph.Facets.from_triangles(SPHERE.vertices, SPHERE.faces)
_POINTS = trimesh.creation.icosphere(subdivisions=1)
WEDGES = ph.Facets.from_triangles(
    _POINTS.vertices @ np.diag([1, 1.3, 0.8]) + 0.1 * _POINTS.vertices[:, [1, 2, 0]] ** 2, _POINTS.faces
)
"""A body without symmetry."""


def windmill(angle, arm):
    """Two one-sided blades on the y axis, tilted by opposite angles from the x-y plane."""
    s, c = math.sin(angle), math.cos(angle)
    return ph.Facets([[s, 0, c], [-s, 0, c]], [0.3, 0.3], [[0, arm, 0], [0, -arm, 0]])


def test_surfaces():
    box = ph.Facets.box(1, 2, 3, centre=[0.1, 0, 0])
    assert box.areas.sum() == 22
    assert np.allclose((box.areas[:, None] * box.normals).sum(axis=0), 0)
    assert box.centres[0] == pytest.approx([0.4, 0, 0])
    assert np.einsum("f,fi,fi->", box.areas, box.normals, box.centres) / 3 == pytest.approx(6)  # the volume
    assert np.einsum("f,fi,fi->", ROUND.areas, ROUND.normals, ROUND.centres) / 3 == pytest.approx(SPHERE.volume)
    both = box + ph.Facets.plate([0, 3, 0], [0, 0, 2], 4.0)
    assert len(both) == 8
    assert both.normals[-2:] == pytest.approx(np.array([[0, 0, 1], [0, 0, -1]]))


def test_a_mesh_file(tmp_path):
    trimesh.creation.box((10, 20, 30)).apply_translation((5, 5, 5)).export(tmp_path / "part.stl")
    found = ph.Facets.from_mesh(tmp_path / "part.stl", unit="mm")
    assert len(found) == 12
    assert found.areas.sum() == pytest.approx(22e-4)
    assert np.einsum("f,fi->i", found.areas, found.centres) == pytest.approx(np.zeros(3), abs=1e-12)


@pytest.mark.parametrize("facets", [ph.Facets.box(1, 2, 3), ph.Facets.plate([0, 0, 0], [0, 0, 1], 2.0)])
def test_symmetric_surfaces_about_their_centre_feel_no_torque(facets):
    light = fields.radiation_pressure(facets, 1.0, sun=SUN, specular=0.3, diffuse=0.4)
    air = fields.facet_drag(facets, 1.0, velocity=SUN)
    for R in ROTATIONS:
        assert np.abs(light.torque_value(0.0, R, OMEGA)).max() < 1e-14
        assert np.abs(air.torque_value(0.0, R, (0.0, 0.0, 0.0))).max() < 1e-14


def test_a_sphere_feels_no_torque_in_the_limit_of_small_facets():
    """Centroids of the facets are not on their normals; the torque falls as the square of the size of the facets."""
    suns = Rotation.random(50, rng=np.random.default_rng(1)).as_matrix()[:, 0]
    sizes = []
    for k in (2, 3, 4):
        ball = trimesh.creation.icosphere(subdivisions=k)
        facets = ph.Facets.from_triangles(ball.vertices, ball.faces)
        sizes.append(np.abs(facets.radiation_torque(suns, 1.0, 0.3, 0.4)).max())
    assert sizes[0] < 2e-4
    assert sizes[1] < sizes[0] / 3
    assert sizes[2] < sizes[1] / 3


def test_light_on_an_absorbing_sphere_off_its_centre():
    """The force is P times the shadow, at the centre of the sphere: T = -c x (-P pi a^2 s), c the centre of mass."""
    ball = trimesh.creation.icosphere(subdivisions=4)
    centre, s = np.array([0.2, -0.1, 0.3]), np.array(SUN) / np.linalg.norm(SUN)
    field = fields.radiation_pressure(ph.Facets.from_triangles(ball.vertices, ball.faces, centre), 1.7, sun=SUN)
    found = field.torque_value(0.0, np.eye(3).tolist(), OMEGA)
    assert found == pytest.approx(np.cross(-centre, -1.7 * math.pi * s), rel=5e-3)


@pytest.mark.parametrize("angle", [0.2, 0.9])
def test_the_windmill(angle):
    """By hand, light from +z: 4 P A c^2 d sin for mirrors, 4/3 P A c d sin for white blades, 0 for black ones."""
    P, A, d, s, c = 1.7, 0.3, 2.0, math.sin(angle), math.cos(angle)
    mill = windmill(angle, d)
    for reflection, goal in (
        ({"specular": 1.0}, 4 * P * A * c * c * d * s),
        ({"diffuse": 1.0}, 4 / 3 * P * A * c * d * s),
        ({}, 0.0),
    ):
        field = fields.radiation_pressure(mill, P, sun=[0, 0, 2.0], **reflection)
        assert field.torque_value(0.0, np.eye(3).tolist(), OMEGA) == pytest.approx([0, 0, goal], abs=1e-15)
        dark = fields.radiation_pressure(mill, P, sun=[0, 0, -2.0], **reflection)
        assert dark.torque_value(0.0, np.eye(3).tolist(), OMEGA) == pytest.approx([0, 0, 0], abs=0)


def test_the_windmill_in_the_air():
    """By hand, v along z and a rotation W about z: the torque about z is -C density A (v c - W d s) W d^2."""
    C, density, v, W, d, angle = 2.1, 0.4, 3.0, 0.6, 2.0, 0.3
    field = fields.facet_drag(windmill(angle, d), density, velocity=[0, 0, v], coefficient=C)
    goal = -C * density * 0.3 * (v * math.cos(angle) - W * d * math.sin(angle)) * W * d * d
    assert field.torque_value(0.0, np.eye(3).tolist(), (0.0, 0.0, W))[2] == pytest.approx(goal, rel=1e-14)


def test_along_an_orbit():
    orbit = ph.Orbit(2.0, 0.9, 0.3, inclination=0.4, node=1.0)
    light = fields.radiation_pressure(WEDGES, 1.7, orbit=orbit, distance=1.2, specular=0.3, diffuse=0.2)
    air = fields.facet_drag(WEDGES, 0.4, orbit=orbit, radius=1.0, scale_height=0.3)
    for R, t in zip(ROTATIONS, (0.0, 1.0, -2.0, 30.0), strict=True):
        r = orbit.position(t)
        distance = np.linalg.norm(r)
        goal = WEDGES.radiation_torque(np.array(R).T @ -r / distance, 1.7 * (1.2 / distance) ** 2, 0.3, 0.2)
        assert light.torque_value(t, R, OMEGA) == pytest.approx(goal, rel=1e-12, abs=1e-14)
        here = 0.4 * math.exp((1.0 - distance) / 0.3)
        fixed = fields.facet_drag(WEDGES, here, velocity=orbit.velocity(t))
        assert air.torque_value(t, R, OMEGA) == pytest.approx(fixed.torque_value(t, R, OMEGA), rel=1e-12, abs=1e-14)


def test_the_mean_torque_in_space():
    """Rotation and orbit in the space frame, with Gauss points instead of equal angles."""
    axis, tilt, count = np.array([0.2, -0.3, 0.9]), 0.6, 300
    found = WEDGES.mean_radiation_torque(1.3, axis, tilt, diffuse=0.8, specular=0.1, angles=288)
    w = axis / np.linalg.norm(axis)
    up = Rotation.align_vectors([[math.sin(tilt), 0, math.cos(tilt)]], [w])[0]  # the spin axis in space; N = z
    points, weights = np.polynomial.legendre.leggauss(count)
    points, weights = math.pi * (points + 1), weights / 2
    mean = np.zeros(3)
    for a, share in zip(points, weights, strict=True):
        attitude = up * Rotation.from_rotvec(a * w)
        suns = np.stack([np.cos(points), np.sin(points), 0 * points], axis=1)
        torques = attitude.apply(WEDGES.radiation_torque(attitude.inv().apply(suns), 1.3, 0.1, 0.8))
        mean += share * (weights @ torques)
    W, N = up.apply(w), np.array([0, 0, 1.0])
    assert found.spin == pytest.approx(mean @ W, rel=3e-3)
    assert found.obliquity == pytest.approx(mean @ ((N @ W) * W - N) / math.sin(tilt), rel=3e-3)
    assert abs(found.spin) > 1e-4
    black = WEDGES.mean_radiation_torque(1.3, axis, tilt)  # Nesvorny and Vokrouhlicky 2008
    assert np.abs(black).max() < 1e-15
    assert np.abs(ph.Facets.box(1, 2, 3).mean_radiation_torque(1.3, axis, tilt, diffuse=1.0)).max() < 1e-14


def test_the_mean_torque_of_a_windmill():
    """By hand, for mirrors and the spin axis along the normal of the orbit: the light comes from the equator.

    The cosine of a blade with normal (s, 0, c) is s cos(angle to the Sun); the mean of its square over the lit half of
    a turn, and the dark one, is s^2/4. The torque of each blade about z is 2 P A d s times that.
    """
    angle, P, d = 0.4, 1.7, 2.0
    s = math.sin(angle)
    found = windmill(angle, d).mean_radiation_torque(P, [0, 0, 1], 0.0, specular=1.0)
    assert found.spin == pytest.approx(2 * 2 * P * 0.3 * d * s * s * s / 4, rel=1e-12)


@pytest.mark.parametrize("made", ["light", "air"])
def test_every_way_to_run(made):
    field = {
        "light": lambda: fields.radiation_pressure(WEDGES, 0.3, sun=SUN, specular=0.3, diffuse=0.2),
        "air": lambda: fields.facet_drag(WEDGES, 0.1, orbit=ph.Orbit(2.0, 0.9, 1.2), radius=1.0, scale_height=0.5),
    }[made]()
    problem = ph.Problem(BODY, field, omega=OMEGA)
    alone = ph.solve(problem, "fem", dt=0.05, steps=10)
    precise = ph.solve(problem, "fem", dt=0.05, steps=10, digits=30)
    assert alone.momentum[-1] == pytest.approx(precise.momentum[-1], rel=1e-12)
    many = ph.ensemble([BODY] * 3, None, [problem.momentum] * 3, "fem", field=field, dt=0.05, steps=10)
    assert many.momentum[-1][2] == pytest.approx(alone.momentum[-1], rel=1e-12)
    again = pickle.loads(pickle.dumps(field))
    assert again.torque_value(0.1, ROTATIONS[0], OMEGA) == field.torque_value(0.1, ROTATIONS[0], OMEGA)
    assert fields.radiation_pressure(ROUND, 1.0, sun=SUN).structure == (
        fields.radiation_pressure(WEDGES, 2.0, sun=SUN).structure
    )


EYE = np.eye(3)
ORBIT = ph.Orbit(1.0, 1.0)
MISTAKES = [
    (lambda: ph.Facets(EYE, [1, 1], EYE), "got shapes (3, 3), (3, 3), (2,)"),
    (lambda: ph.Facets(EYE[0], [1], EYE), "normals must be three numbers for each facet"),
    (lambda: ph.Facets(EYE, [1, 1, -1], EYE), "areas must be positive"),
    (lambda: ph.Facets(2 * EYE, [1, 1, 1], EYE), "normals must have length 1; got one of length 2"),
    (lambda: ph.Facets(EYE, [1, 1, 1], EYE * math.nan), "centres must be three numbers for each facet, all of them"),
    (lambda: ph.Facets.from_triangles(EYE, [[0, 1, 3]]), "faces refer to vertices from 0 to 2"),
    (lambda: ph.Facets.from_triangles(EYE, [[0, 1, 1]]), "face 0 has no area"),
    (lambda: ph.Facets.plate([0, 0, 0], [0, 0, 0], 1), "normal must not be zero"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0), "give sun or orbit; got neither"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, SUN, ORBIT), "give sun or orbit; got both"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, SUN, distance=1.0), "distance goes with orbit"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, orbit=ORBIT), "also give distance, at which it is pressure"),
    (lambda: fields.facet_drag(WEDGES, 1.0, orbit=ORBIT), "the density falls with height: also give radius,"),
    (lambda: fields.facet_drag(WEDGES, 1.0, orbit=ORBIT, radius=1.0), "also give scale_height, over which it falls"),
    (lambda: fields.radiation_pressure(WEDGES, -1.0, SUN), "pressure must be positive; got -1"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, [0, 0, 0]), "sun must not be zero"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, SUN, specular=0.6, diffuse=0.6), "their sum at most 1"),
    (lambda: fields.radiation_pressure(WEDGES, 1.0, SUN, specular=[0.1, 0.2]), "or one for each of the 80 facets"),
    (lambda: fields.radiation_pressure("box", 1.0, SUN), "facets must be ph.Facets, or a table"),
    (lambda: fields.radiation_pressure({"edges": 1}, 1.0, SUN), "got edges"),
    (lambda: fields.facet_drag(WEDGES, 0.0, SUN), "density must be positive; got 0"),
    (lambda: fields.facet_drag(WEDGES, 1.0, SUN, radius=1.0), "radius and scale_height go with orbit"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)
