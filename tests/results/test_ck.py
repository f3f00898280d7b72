"""SPICE C-kernels, read by SPICE itself: as matrices, which have no order of components."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spiceypy

import polhode as ph

EPOCH = "2029-04-13T21:46:00"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert spiceypy.ktotal("ALL") == 0
    spiceypy.kclear()


@pytest.fixture(scope="module")
def sol() -> ph.Trajectory:
    return ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=100)


def ephemeris_time(seconds: float) -> float:
    """By SPICE: seconds since J2000 by the calendar, without leap seconds, which TDB does not have."""
    return spiceypy.tparse(EPOCH)[0] + seconds


def test_spice_reads_attitudes_and_angular_velocities(sol: ph.Trajectory) -> None:
    sol.export("run.bc", epoch=EPOCH)
    for name in ("run.tsc", "run.bc"):
        spiceypy.furnsh(name)
    for i in range(0, 101, 10):
        et = ephemeris_time(sol.t[i])
        C, omega, _ = spiceypy.ckgpav(-999000, spiceypy.sce2c(-999, et), 1.0, "J2000")
        np.testing.assert_allclose(C, sol.matrix[i].T, atol=1e-5)  # et has 1e-7 s, in which the top turns by 5e-6
        np.testing.assert_allclose(omega, sol.spatial_omega[i], rtol=1e-4)
        np.testing.assert_allclose(spiceypy.pxform("POLHODE_BODY", "J2000", et), sol.matrix[i], atol=1e-5)
    spiceypy.kclear()


def test_states_are_exact_at_the_ticks(sol: ph.Trajectory) -> None:
    sol.export("run.bc", epoch=EPOCH)
    spiceypy.furnsh("run.bc")
    for i in (0, 7, 100):
        C, omega, _ = spiceypy.ckgpav(-999000, sol.t[i] * 1e6, 1e-4, "J2000")
        np.testing.assert_allclose(C, sol.matrix[i].T, atol=1e-14)
        np.testing.assert_allclose(omega, sol.spatial_omega[i], rtol=1e-12)
    spiceypy.kclear()


def test_a_round_trip(sol: ph.Trajectory) -> None:
    sol.export("run.bc", epoch="2000-01-01T12:00:00", spacecraft=-82, body="CASSINI_LIKE")
    found = ph.formats.read_ck(["run.bc", "run.tsc"], -82000, sol.t, epoch="2000-01-01T12:00:00")
    np.testing.assert_allclose(found.rotation.as_matrix(), sol.matrix, atol=1e-10)
    np.testing.assert_allclose(found.omega, sol.omega, atol=1e-8)
    between = ph.formats.read_ck(["run.bc", "run.tsc"], -82000, 0.505, epoch="2000-01-01T12:00:00")
    np.testing.assert_allclose(between.rotation.as_matrix()[0], sol.at(0.505).matrix[0], atol=1e-3)


def test_a_run_backwards() -> None:
    back = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, t_end=-0.1)
    back.export("run.bc", epoch="2000-01-01T12:00:00")
    found = ph.formats.read_ck(["run.bc", "run.tsc"], -999000, back.t[1:-1], epoch="2000-01-01T12:00:00")
    np.testing.assert_allclose(found.rotation.as_matrix(), back.matrix[1:-1], atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "the format ck needs the option epoch"),
        ({"epoch": EPOCH, "spacecraft": 5}, "spacecraft must be a negative NAIF number such as -999; got 5"),
        ({"epoch": EPOCH, "body": "my body"}, "body must be the name of a frame in capitals, such as J2000"),
        ({"epoch": EPOCH, "space": "NOWHERE"}, "run.bc cannot be written: "),
    ],
)
def test_mistakes(sol: ph.Trajectory, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ph.InputError) as caught:
        sol.export("run.bc", **options)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
    assert list(Path().iterdir()) == []


def test_states_too_far_apart_are_refused() -> None:
    few = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=100, every=10)
    with pytest.raises(ph.InputError, match=r"between the states \d+ and \d+ the body turns by about 5 rad"):
        few.export("run.bc", epoch=EPOCH)


def test_mistakes_in_reading(sol: ph.Trajectory) -> None:
    sol.export("run.bc", epoch=EPOCH)
    with pytest.raises(ph.InputError, match=r"no attitude with angular velocity of -999000 at t = 5.0"):
        ph.formats.read_ck(["run.bc", "run.tsc"], -999000, 5.0, epoch=EPOCH)
    with pytest.raises(ph.InputError, match="the kernels cannot be read: "):
        ph.formats.read_ck(["none.bc"], -999000, 5.0, epoch=EPOCH)
    with pytest.raises(ph.InputError, match="the kernels cannot be read: "):
        ph.formats.read_ck(["run.bc"], -999000, 0.5, epoch=EPOCH)
    with pytest.raises(ph.InputError, match=r"^run.bc exists"):
        sol.export("run.bc", epoch=EPOCH)
    Path("run.bc").unlink()
    with pytest.raises(ph.InputError, match=r"^run.tsc exists"):
        sol.export("run.bc", epoch=EPOCH)
    sol.export("run.bc", epoch=EPOCH, overwrite=True)
