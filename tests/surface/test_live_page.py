"""The page that computes its motion itself: its numbers are those of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import plain
import polhode as ph
from pages import paused, until
from polhode.cli import app
from polhode.physics import equimomental
from polhode.viewer.live import STEPS

pytestmark = pytest.mark.xdist_group("browser")


def computed(page: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, attitudes and momenta that the page has computed."""
    run = page.evaluate("polhode.run(0)")
    return np.array(run["t"]), np.reshape(run["quaternion"], (-1, 4)), np.reshape(run["momentum"], (-1, 3))


def moved(page: Any, name: str, value: float) -> None:
    """Move a slider, and wait for the new motion."""
    page.evaluate("window.before = polhode.run(0).momentum.join()")
    page.locator(f"#live-{name}").fill(str(value))
    until(page, "polhode.run(0).momentum.join() !== window.before")


def method_of(page: Any) -> str:
    """The method by which the page says that it computes."""
    return str(page.inner_text(".panel .how").removeprefix("computed by "))


def same(page: Any, problem: ph.Problem, method: str) -> None:
    """Every state of the page is that of the Python kernel, bit by bit, from the first state of the page."""
    t, q, m = computed(page)
    assert len(t) == STEPS + 1
    start = problem.starting(attitude=q[0], momentum=m[0])
    there = plain.run(start, method, t[1] - t[0], STEPS)
    assert there.fine
    assert (m[1:] == there.momentum).all()
    assert (q[1:] == there.quaternion).all()


def test_a_top(opened: Any, tmp_path: Path) -> None:
    page = paused(opened(ph.view_live(tmp_path / "top.html", "top", spin=25.0)))
    method = method_of(page)
    moved(page, "tilt", 40.0)
    moved(page, "I3", 1.5)
    same(page, ph.Problem(ph.Body([5.0, 5.0, 1.5]), ph.fields.gravity(20.0), omega=[0, 0, 1.0]), method)
    _, q, m = computed(page)
    assert np.arccos(1 - 2 * (q[0, 1] ** 2 + q[0, 2] ** 2)) == pytest.approx(np.radians(40.0))
    assert m[0] == pytest.approx([0.0, 0.0, 1.5 * 25.0])
    assert page.inner_text("#note") == ""
    assert not page.is_hidden("#angles")
    drawn = page.evaluate("discSizes([5, 5, 1])")
    _, disc = equimomental.plate([5.0, 5.0, 1.0])
    assert drawn == pytest.approx({"radius": disc.sizes["radius"], "far": disc.position[2]})


def test_a_free_body(opened: Any, tmp_path: Path) -> None:
    page = paused(opened(ph.view_live(tmp_path / "free.html", "free")))
    same(
        page,
        ph.Problem(ph.Body([1.0, 2.0, 2.8]), omega=[0, 1.0, 0]),
        method_of(page),
    )
    edges = page.evaluate("boxEdges([1, 2, 2.8])")
    (shape,) = equimomental.box([1.0, 2.0, 2.8])
    assert edges == pytest.approx(list(shape.sizes.values()))
    moved(page, "I1", 0.5)
    assert "No body has these moments" in page.inner_text("#note")
    moved(page, "I1", 1.1)
    assert page.inner_text("#note") == ""


def test_it_plays_on_a_phone(browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, offline=True)
    page = context.new_page()
    page.goto(ph.view_live(tmp_path / "top.html", "top").as_uri())
    until(page, "Boolean(window.polhode) && polhode.state().time > 0.05")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for slider in page.locator("#live input").all():
        box = slider.bounding_box()
        assert box is not None
        assert box["width"] > 60
    context.close()


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ph.InputError, match="kind must be top or free; got 'disc'"):
        ph.view_live(tmp_path / "a.html", "disc")
    with pytest.raises(ph.InputError, match="a free page has no slider 'mgl'"):
        ph.view_live(tmp_path / "a.html", "free", mgl=1.0)
    with pytest.raises(ph.InputError, match="I1 must be"):
        ph.view_live(tmp_path / "a.html", "free", I1=-1.0)
    assert not list(tmp_path.iterdir())


def test_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["live", "free", "--out", str(tmp_path / "live.html")])
    assert done.exit_code == 0, done.output
    assert "polhode_step" in (tmp_path / "live.html").read_text("utf-8")
