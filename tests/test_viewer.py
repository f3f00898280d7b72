"""The page that shows a body turning: in a real browser, without a network, and with bad input."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, sync_playwright
from typer.testing import CliRunner

import polhode as ph
from polhode.cli import app

SWITCHES = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking")
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = shutil.which("chromium")
    assert found, "the viewer is tested in Chromium: apt-get install chromium (make browser)"
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield made
        made.close()


@pytest.fixture(scope="module")
def flip() -> ph.Trajectory:
    """The Dzhanibekov motion."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    return ph.solve(problem, "dmv6", dt=0.05, t_end=20.0)


@pytest.fixture(scope="module")
def coarse() -> ph.Trajectory:
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    return ph.solve(problem, "symrot", dt=0.1, t_end=20.0)


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """A function that opens a page, and fails afterwards if anything was said on its console or asked of a network."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 720, "height": 560}, offline=True)

    def open_page(path: Path) -> Page:
        page: Page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else faults.append(asked.url))
        page.goto(path.resolve().as_uri())
        until(page, "Boolean(window.polhode)")
        return page

    yield open_page
    context.close()
    assert faults == []


def until(page: Page, condition: str) -> None:
    """Wait for a condition; the page's policy forbids the driver to compile one within it."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never {condition}")


def paused(page: Page) -> Page:
    page.evaluate("polhode.pause()")
    return page


def test_the_picture_changes_when_played(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    page.evaluate("polhode.seek(0)")
    still = page.locator("#scene").screenshot()
    assert page.locator("#scene").screenshot() == still
    page.click("#play")
    until(page, "polhode.state().time > 0.3")
    assert page.inner_text("#play") == "Pause"
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    assert page.locator("#scene").screenshot() != still


def test_scrubbing_shows_the_right_attitude(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    for share in (0.0, 0.137, 0.5, 0.9, 1.0):
        page.locator("#scrub").fill(str(round(10_000 * share)))
        state = page.evaluate("polhode.state()")
        assert state["time"] == pytest.approx(20.0 * share, abs=1e-9)
        there = flip.at([state["time"]]).quaternion[0]
        # between states 0.05 apart the arc is that of the mean velocity: wrong by about |omega'| dt^2/8
        assert abs(np.dot(state["attitudes"][0], there)) == pytest.approx(1, abs=1e-5)
        assert state["attitudes"][0] == pytest.approx(
            list(there * np.sign(np.dot(there, state["attitudes"][0]))), abs=3e-3
        )


def test_keys(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    page.keyboard.press("Home")
    for key, time in (
        ("ArrowRight", 0.05),
        ("ArrowRight", 0.1),
        ("ArrowLeft", 0.05),
        ("Shift+ArrowRight", 0.45),
        ("End", 20),
    ):
        page.keyboard.press(key)
        assert page.evaluate("polhode.state().time") == pytest.approx(time)
    speed = page.evaluate("polhode.state().speed")
    page.keyboard.press("+")
    assert page.evaluate("polhode.state().speed") == 2 * speed
    page.keyboard.press("l")
    assert not page.evaluate("polhode.state().loop")
    page.keyboard.press(" ")
    assert page.evaluate("polhode.state().playing")
    page.keyboard.press("1")
    assert not page.is_checked("#show-body")


def test_the_end_of_a_run_without_a_loop(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    page.uncheck("#loop")
    page.evaluate("polhode.seek(19.9); polhode.play()")
    until(page, "!polhode.state().playing")
    assert page.evaluate("polhode.state().time") == 20


def test_several_on_one_clock(opened: Any, flip: ph.Trajectory, coarse: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(ph.view([flip, coarse], tmp_path / "both.html")))
    assert page.locator(".panel b").all_inner_texts() == ["dmv6, dt = 0.05", "symrot123, dt = 0.1"]
    page.evaluate("polhode.seek(15)")
    for sol, shown in zip((flip, coarse), page.evaluate("polhode.state().attitudes"), strict=True):
        there = sol.quaternion[round(15 / sol.dt)]
        assert shown == pytest.approx(list(there), abs=1e-9)
    assert abs(flip.quaternion[300] - coarse.quaternion[150]).max() > 1e-4


def test_on_a_phone(browser: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(flip.view(tmp_path / "spin.html").as_uri())
    until(page, "Boolean(window.polhode)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.tap("#play")
    assert not page.evaluate("polhode.state().playing")
    context.close()


def test_a_single_state_and_a_body_at_rest(opened: Any, tmp_path: Path) -> None:
    rest = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, 0.0]), "dmv2", dt=0.1, steps=3)
    page = opened(rest.view(tmp_path / "rest.html"))
    assert page.evaluate("polhode.state().attitudes") == [[1, 0, 0, 0]]
    one = ph.exact(ph.problems.get("free_body"), [0.0])
    opened(one.view(tmp_path / "one.html"))


def test_states_too_far_apart_are_said(opened: Any, tmp_path: Path) -> None:
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    sol = ph.solve(problem, "dmv6", dt=0.05, t_end=20.0, every=20)
    page = opened(sol.view(tmp_path / "far.html"))
    assert "degrees from one state kept to the next" in page.inner_text("#note")
    turn = math.degrees(2 * math.acos(min(abs((sol.quaternion[1:] * sol.quaternion[:-1]).sum(axis=1)))))
    assert f"{turn:.0f} degrees" in page.inner_text("#note")


def test_words_of_a_user_stay_words(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    title = "</script><script>window.bad = 1</script>"
    page = opened(flip.view(tmp_path / "spin.html", title=title))
    assert page.evaluate("window.bad") is None
    assert page.inner_text("h1") == title


def test_long_runs_are_thinned(tmp_path: Path) -> None:
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    sol = ph.solve(problem, "symrot", dt=0.001, steps=100_000)
    assert sol.view(tmp_path / "long.html").stat().st_size < 6e6


def test_bad_input(flip: ph.Trajectory, tmp_path: Path) -> None:
    with pytest.raises(ph.InputError, match=r"must end in \.html; got .*spin\.png"):
        flip.view(tmp_path / "spin.png")
    with pytest.raises(ph.InputError, match="there is no folder"):
        flip.view(tmp_path / "none" / "spin.html")
    flip.view(tmp_path / "spin.html")
    with pytest.raises(ph.InputError, match=r"spin\.html exists"):
        flip.view(tmp_path / "spin.html")
    flip.view(tmp_path / "spin.html", overwrite=True)
    with pytest.raises(ph.InputError, match="1 to 9 trajectories; got 0"):
        ph.view([], tmp_path / "none.html")


def test_command(flip: ph.Trajectory, coarse: ph.Trajectory, opened: Any, tmp_path: Path) -> None:
    flip.save(tmp_path / "one.zarr")
    coarse.save(tmp_path / "two.nc")
    run = CliRunner()
    done = run.invoke(app, ["view", str(tmp_path / "one.zarr"), str(tmp_path / "two.nc")])
    assert done.exit_code == 0
    assert "one.html" in done.output
    assert opened(tmp_path / "one.html").locator(".panel").count() == 2
    again = run.invoke(app, ["view", str(tmp_path / "one.zarr")])
    assert again.exit_code == 2
    assert "exists" in again.output
    missing = run.invoke(app, ["view", str(tmp_path / "none.zarr")])
    assert missing.exit_code == 2
    assert "there is no file" in missing.output


def test_shapes_are_drawn(opened: Any, tmp_path: Path) -> None:
    """Those of a composed body go with the trajectory, also through a file; a mesh is given by its body."""
    handle = ph.Body.t_handle() + ph.Body.torus(0.3, 0.05, mass=0.1).moved([0.0, 0.4, 0.0])
    sol = ph.solve(ph.Problem(handle, omega=[5.0, 0.01, 0.0]), "dmv6", dt=0.02, t_end=4.0)
    sol.save(tmp_path / "handle.nc")
    again = ph.load(tmp_path / "handle.nc")
    assert again.info.looks == sol.info.looks
    pictures = [paused(opened(s.view(tmp_path / f"{i}.html"))) for i, s in enumerate((sol, again))]
    for page in pictures:
        page.evaluate("polhode.seek(1)")
    shots = [page.locator("#scene").screenshot() for page in pictures]
    assert shots[0] == shots[1]
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    other = paused(opened(sol.view(tmp_path / "points.html", body=ph.Body.from_points(corners))))
    other.evaluate("polhode.seek(1)")
    assert other.locator("#scene").screenshot() != shots[0]
    with pytest.raises(ph.InputError, match=r"body must be a ph\.Body"):
        sol.view(tmp_path / "none.html", body="part.stl")


def test_a_body_turns_about_its_pivot() -> None:
    disc = ph.Body.cylinder(0.05, 0.02, mass=0.2).moved([0.1, 0.0, 0.0]).about([0.0, 0.0, -0.04])
    sol = ph.solve(ph.Problem(disc, omega=[0.0, 0.0, 1.0]), "dmv2", dt=0.1, steps=2)
    (shape,) = json.loads(sol.info.looks)
    assert shape["position"] == pytest.approx([0.1, 0.0, 0.04])
    free = ph.Body.cylinder(0.05, 0.02).moved([0.1, 0.0, 0.0])
    assert free.looks[0].position == pytest.approx(np.zeros(3))
