"""The page of a top, and of other bodies under a torque; films recorded in the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polhode as ph
from pages import paused, until

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def top() -> ph.Trajectory:
    return ph.solve(ph.problems.get("slow_top"), "strang(dmv6)", dt=0.02, t_end=4.0)


def test_a_top_is_shown_as_a_top(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(top.view(tmp_path / "top.html")))
    assert page.get_by_role("checkbox", name="Path of the axis").is_checked()
    assert page.get_by_role("checkbox", name="Ground and pull").is_checked()
    assert page.get_by_role("checkbox", name="Polhode").count() == 0
    drawn = page.evaluate("polhode.drawn(0)")
    assert drawn["plane"] is False  # nothing rolls under a torque
    trace = np.reshape(drawn["trace"], (-1, 3))
    radius = np.linalg.norm(trace, axis=1)
    assert radius == pytest.approx(np.full(len(trace), radius[0]))
    axes = top.at(np.array(drawn["angles"]["times"]).clip(0.0, 4.0)).matrix[:, :, 2]
    assert np.abs(trace / radius[0] - axes).max() < 1e-4  # cubics over a tenth of a radian
    page.evaluate("polhode.seek(1.5)")
    words = page.inner_text(".said")
    assert all(word in words for word in ("tilt", "precession", "spin"))
    page.click("#numbers summary")
    until(page, "document.getElementById('values').textContent !== ''")
    numbers = page.inner_text("#values")
    assert "relative error of energy" in numbers
    assert "relative error of L" not in numbers
    assert page.locator(".label", has_text="g").count() == 1


def test_the_angles_of_a_top(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    """Tilt and precession are those of the third column of R; the spin of a symmetric top is constant."""
    page = paused(opened(top.view(tmp_path / "top.html")))
    angles = page.evaluate("polhode.drawn(0).angles")
    t = np.array(angles["times"]).clip(0.0, 4.0)
    axis = top.at(t).matrix[:, :, 2]
    assert angles["tilt"] == pytest.approx(np.degrees(np.arccos(axis[:, 2])), abs=0.01)
    azimuth = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0])) / math.tau
    assert angles["precession"] == pytest.approx(azimuth - azimuth[0], abs=1e-3)
    assert abs(azimuth[-1] - azimuth[0]) > 0.2
    assert angles["spin"] == pytest.approx(np.full(len(t), 5.0), rel=1e-5)


def test_without_a_pull_and_with_a_torque(opened: Any, tmp_path: Path) -> None:
    sol = ph.solve(ph.problems.get("libration"), "strang(dmv6)", dt=0.02, t_end=2.0)
    page = paused(opened(sol.view(tmp_path / "libration.html")))
    assert page.is_hidden("#angles")
    assert page.get_by_role("checkbox", name="Path of ω in space").is_checked()
    assert page.evaluate("polhode.drawn(0).plane") is False
    hidden = page.locator("#scene").screenshot()
    page.keyboard.press("1")  # the body: a box with its moments
    assert page.locator("#scene").screenshot() != hidden


def test_from_a_file(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    """The file holds the potential as a formula, and the shape."""
    top.save(tmp_path / "top.nc")
    page = paused(opened(ph.load(tmp_path / "top.nc").view(tmp_path / "top.html")))
    assert page.get_by_role("checkbox", name="Ground and pull").count() == 1


def test_a_film_recorded_in_the_page(browser: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 300}, accept_downloads=True, offline=True)
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.goto(top.view(tmp_path / "top.html").as_uri())
    until(page, "Boolean(window.polhode)")
    paused(page).select_option("#speed", "2")
    with page.expect_download() as waiting:
        page.click("#record")
        assert page.inner_text("#record") == "Stop"
    film = Path(tmp_path / waiting.value.suggested_filename)
    waiting.value.save_as(film)
    raw = film.read_bytes()
    assert raw[4:8] == b"ftyp" if film.suffix == ".mp4" else raw[:4] == b"\x1aE\xdf\xa3"  # ISO media, or Matroska
    assert len(raw) > 5000
    assert page.inner_text("#record") == "Record"
    assert page.evaluate("polhode.state().loop")
    context.close()
