"""Bodies made of atoms in extended XYZ, read by ASE, and in GSD, read by gsd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ase.io
import gsd.hoomd
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph

WATER = ph.sites([15.9994, 1.008, 1.008], [[0, 0, 0], [0.8165, 0.5774, 0], [-0.8165, 0.5774, 0]])
NAMES = ["O", "H", "H"]
BOX = ph.PeriodicBox([9.0, 10.0, 11.0])
RNG = np.random.default_rng(7)
N, FRAMES = 4, 3
X = RNG.uniform(-3, 14, (FRAMES, N, 3))
Q = Rotation.random(FRAMES * N, rng=RNG).as_quat(scalar_first=True).reshape(FRAMES, N, 4)
V, OMEGA = RNG.normal(size=(2, FRAMES, N, 3))


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, sites: Any = WATER, symbols: Any = NAMES, **options: Any) -> None:
    with sites.frames(path, symbols=symbols, box=BOX, **options) as file:
        for i in range(FRAMES):
            file.write(X[i], Q[i], t=0.5 * i, velocity=V[i], omega=OMEGA[i])


# --- extended XYZ -----------------------------------------------------------------------------------


def test_xyz_by_ase() -> None:
    write("water.xyz")
    found = ase.io.read("water.xyz", ":")
    assert len(found) == FRAMES
    for i, atoms in enumerate(found):
        assert atoms.get_chemical_symbols() == NAMES * N
        np.testing.assert_array_equal(atoms.positions, WATER.positions(X[i], Q[i]).reshape(-1, 3))
        np.testing.assert_array_equal(atoms.arrays["velo"], WATER.velocities(V[i], Q[i], OMEGA[i]).reshape(-1, 3))
        np.testing.assert_array_equal(atoms.cell.lengths(), BOX.lengths)
        assert atoms.pbc.all()
        assert atoms.info["Time"] == 0.5 * i


def test_xyz_back_to_molecules() -> None:
    """What ASE reads has the centres and attitudes that were written, up to the sign."""
    write("water.xyz")
    x, q = WATER.fit(ase.io.read("water.xyz", 1).positions.reshape(N, 3, 3))
    np.testing.assert_allclose(x, X[1], atol=1e-14)
    np.testing.assert_allclose(np.abs((q * Q[1]).sum(1)), 1, atol=1e-15)


def test_xyz_without_a_box_and_with_several_kinds() -> None:
    places = [[[0, 0, 0], [1.1, 0, 0]], [[0, 0, 0], [0, 0, 0.9]]]
    several = ph.sites([[14.0, 14.0], [16.0, 1.0]], places, kinds=[0, 1, 1])
    with several.frames("mixed.xyz", symbols=[["N", "N"], ["O", "H"]]) as file:
        file.write(X[0, :3], Q[0, :3])
    atoms = ase.io.read("mixed.xyz")
    assert atoms.get_chemical_symbols() == ["N", "N", "O", "H", "O", "H"]
    assert not atoms.pbc.any()
    np.testing.assert_array_equal(atoms.positions.reshape(3, 2, 3), several.positions(X[0, :3], Q[0, :3]))


def test_xyz_of_a_trajectory() -> None:
    """The points are in the axes of the body, which need not be principal."""
    points = np.array([[0.1, 0.2, 0.0], [1.0, 0.3, 0.4], [-1.0, 0.5, 0.2]])
    body = ph.Body.from_points(points, [16.0, 1.0, 2.0])
    sol = ph.solve(ph.Problem(body, omega=[0.1, 1.0, 0.2]), "imidm", dt=0.1, steps=10)
    sol.export("one.xyz", points=points - body.centre, symbols=NAMES)
    found = ase.io.read("one.xyz", ":")
    assert len(found) == 11
    for atoms, R, t in zip(found, sol.matrix, sol.t, strict=True):
        np.testing.assert_allclose(atoms.positions, (points - body.centre) @ R.T, atol=1e-14)
        assert atoms.info["Time"] == t


def test_xyz_of_an_ensemble() -> None:
    momenta = np.array([[0.1, 0.2, 0.3], [1.0, 0.2, 0.1]])
    many = ph.ensemble(WATER.moments, None, momenta, "dmv2", dt=0.1, steps=4, every=2)
    centres = np.array([[0, 0, 0], [5.0, 0, 0]])
    many.export("two.xyz", points=WATER.arms, symbols=NAMES, centres=centres, box=BOX)
    found = ase.io.read("two.xyz", ":")
    assert len(found) == 3
    for atoms, q in zip(found, many.quaternion, strict=True):
        np.testing.assert_allclose(atoms.positions.reshape(2, 3, 3), WATER.positions(centres, q), atol=1e-14)


# --- GSD --------------------------------------------------------------------------------------------


def single(array: Any) -> np.ndarray:
    return np.asarray(array, dtype=np.float32)


def test_gsd_has_bodies_and_then_their_atoms() -> None:
    write("water.gsd")
    with gsd.hoomd.open("water.gsd", "r") as file:
        assert len(file) == FRAMES
        for i, frame in enumerate(file):
            particles, half = frame.particles, BOX.lengths / 2
            assert particles.N == N * 4
            np.testing.assert_array_equal(frame.configuration.box, single([*BOX.lengths, 0, 0, 0]))
            assert [particles.types[k] for k in particles.typeid] == ["body"] * N + NAMES * N
            np.testing.assert_array_equal(particles.body, [*range(N), *np.repeat(np.arange(N), 3)])
            np.testing.assert_array_equal(particles.orientation[:N], single(Q[i]))  # scalar first
            np.testing.assert_array_equal(particles.moment_inertia[:N], single([WATER.moments] * N))
            np.testing.assert_array_equal(particles.mass, single([WATER.mass] * N + WATER.masses.tolist() * N))
            assert (np.abs(particles.position) <= half * (1 + 1e-7)).all()
            places = np.concatenate([X[i], WATER.positions(X[i], Q[i]).reshape(-1, 3)])
            whole = particles.position + particles.image * BOX.lengths + half
            np.testing.assert_allclose(whole, places, atol=2e-6)
            moving = np.concatenate([V[i], WATER.velocities(V[i], Q[i], OMEGA[i]).reshape(-1, 3)])
            np.testing.assert_allclose(particles.velocity, moving, atol=2e-6)
            assert frame.log["polhode/time"] == [0.5 * i]


def test_angular_momenta_of_gsd_are_those_of_hoomd() -> None:
    """P = 2 q L as quaternions, so L = q* P/2 (HOOMD-blue, Kamberaj 2005)."""
    write("water.gsd")
    with gsd.hoomd.open("water.gsd", "r") as file:
        momenta = file[1].particles.angmom[:N].astype(float)
    for q, P, omega in zip(Q[1], momenta, OMEGA[1], strict=True):
        w, v = P[0], P[1:]
        vector = q[0] * v - w * q[1:] - np.cross(q[1:], v)
        np.testing.assert_allclose(vector / 2, WATER.moments * omega, atol=3e-6)
        assert abs(q @ P) < 3e-6


def test_gsd_of_an_ensemble() -> None:
    many = ph.ensemble(WATER.moments, None, np.ones((2, 3)), "dmv2", dt=0.1, steps=4, every=2)
    many.export("two.gsd", points=WATER.arms, symbols=NAMES, centres=[[1, 1, 1], [5, 1, 1.0]], box=BOX)
    with gsd.hoomd.open("two.gsd", "r") as file:
        np.testing.assert_array_equal(file[2].particles.orientation[:2], single(many.quaternion[2]))


# --- mistakes ---------------------------------------------------------------------------------------


def test_no_half_written_file_remains() -> None:
    def broken() -> None:
        with WATER.frames("water.xyz", symbols=NAMES) as file:
            file.write(X[0], Q[0])
            file.write(X[0], 2 * Q[0])

    with pytest.raises(ph.InputError, match="q must hold unit quaternions"):
        broken()
    assert list(Path().iterdir()) == []
    write("water.xyz")
    with pytest.raises(ph.InputError, match=r"^water.xyz exists"):
        write("water.xyz")
    write("water.xyz", overwrite=True)


def frames(path: str = "a.xyz", symbols: Any = NAMES, **first: Any) -> None:
    with WATER.frames(path, symbols=symbols) as file:
        if first:
            file.write(first.pop("x", X[0]), first.pop("q", Q[0]), **first)
            file.write(X[0][:2], Q[0][:2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: frames("a.pdb"), "a file of molecules must end in .xyz or .gsd; got 'a.pdb'"),
        (lambda: frames(), "no frame was written"),
        (lambda: frames(symbols=["O", "H"]), "symbols must have a name for each of the 3 atoms; got 2"),
        (lambda: frames(symbols=["O", "H", "H 2"]), "symbols must be names such as 'O', without spaces; got 'H 2'"),
        (lambda: frames(t=1.0), "all frames must have the same 4 molecules; got 2"),
        (lambda: frames(velocity=V[0]), "give velocity and omega, or neither of them"),
        (lambda: frames("a.gsd", t=1.0), "a GSD file needs a periodic box: give box=ph.PeriodicBox(lengths)"),
    ],
)
def test_mistakes(call: Any, words: str) -> None:
    with pytest.raises(ph.InputError) as caught:
        call()
    assert str(caught.value).startswith(words)
    assert list(Path().iterdir()) == []


def test_mistakes_of_results() -> None:
    many = ph.ensemble(WATER.moments, None, np.ones((2, 3)), "dmv2", dt=0.1, steps=4, every=2)
    with pytest.raises(ph.InputError, match=r"give centres, the positions of the 2 bodies, as an array \(2, 3\)"):
        many.export("a.xyz", points=WATER.arms, symbols=NAMES)
    with pytest.raises(ph.InputError, match="the format xyz needs the option points"):
        many.export("a.xyz", symbols=NAMES)
    own = ph.ensemble(WATER.moments, None, np.ones((2, 3)), "dmv2", dt=[0.1, 0.2], steps=4)
    with pytest.raises(ph.InputError, match="the bodies have different times"):
        own.export("a.xyz", points=WATER.arms, symbols=NAMES, centres=np.zeros((2, 3)))
