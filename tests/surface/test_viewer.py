"""The page that shows a body turning: in a real browser, without a network, and with bad input."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from typer.testing import CliRunner

import polhode as ph
from pages import paused, turned, until
from polhode.cli import app
from polhode.physics.shapes import to_json
from waiting import PATIENCE

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def flip() -> ph.Trajectory:
    """The Dzhanibekov motion."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    return ph.solve(problem, "dmv6", dt=0.05, t_end=20.0)


@pytest.fixture(scope="module")
def coarse() -> ph.Trajectory:
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    return ph.solve(problem, "symrot", dt=0.1, t_end=20.0)


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
        assert turned(state["attitudes"][0], there) < 1e-5  # cubics over a tenth of a radian


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


def test_one_second_of_the_clock_is_one_of_the_motion(browser: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    """With a clock of the test's own: the stamps that the browser gives every picture."""
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(
        "window.waiting = null; window.requestAnimationFrame = (next) => { window.waiting = next; };"
    )
    page = context.new_page()
    page.goto(flip.view(tmp_path / "spin.html").as_uri())
    until(page, "Boolean(window.polhode)")
    for stamp in range(5000, 8001, 200):
        page.evaluate(f"window.waiting({stamp})")
    assert page.evaluate("polhode.state().speed") == 1
    assert page.evaluate("polhode.state().time") == pytest.approx(3.0)
    page.select_option("#speed", "4")
    page.evaluate("window.waiting(8200)")
    assert page.evaluate("polhode.state().time") == pytest.approx(3.8)
    context.close()


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
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.goto(flip.view(tmp_path / "spin.html").as_uri())
    until(page, "Boolean(window.polhode)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.tap("#play")
    assert not page.evaluate("polhode.state().playing")
    before = page.locator("#scene").screenshot()
    fingers = context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": 150, "y": 200}]),
        ("touchMove", [{"x": 190, "y": 210}]),
        ("touchMove", [{"x": 230, "y": 220}]),
        ("touchEnd", []),
    ):
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert page.locator("#scene").screenshot() != before  # seen from another side
    assert page.evaluate("window.scrollY") == 0
    context.close()


def test_a_single_state_and_a_body_at_rest(opened: Any, tmp_path: Path) -> None:
    rest = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, 0.0]), "dmv2", dt=0.1, steps=3)
    page = opened(rest.view(tmp_path / "rest.html"))
    assert page.evaluate("polhode.state().attitudes") == [[1, 0, 0, 0]]
    one = ph.exact(ph.problems.get("free_body"), [0.0])
    opened(one.view(tmp_path / "one.html"))


def test_between_states_far_apart(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    """Which way and how often a body turns between two states follows from the angular velocities at both."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    sparse = ph.solve(problem, "dmv6", dt=0.05, t_end=20.0, every=20)
    page = paused(opened(sparse.view(tmp_path / "far.html")))
    assert np.degrees(np.linalg.norm(sparse.omega, axis=1)).max() > 120  # within the unit of time between two states
    assert page.inner_text("#note") == ""
    for time in (0.5, 4.3, 9.7, 15.2):
        page.evaluate(f"polhode.seek({time})")
        assert turned(page.evaluate("polhode.state().attitudes[0]"), flip.at([time]).quaternion[0]) < math.radians(3)


def test_whole_turns_between_states(opened: Any, tmp_path: Path) -> None:
    """A body that turns once from one state to the next, as if it stood still, is shown turning."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, math.tau])
    page = paused(opened(ph.exact(problem, np.arange(5.0)).view(tmp_path / "turns.html")))
    assert "turns up to 360 degrees" in page.inner_text("#note")
    for time in (0.25, 1.5, 3.1):
        page.evaluate(f"polhode.seek({time})")
        there = [math.cos(math.pi * time), 0.0, 0.0, math.sin(math.pi * time)]
        assert turned(page.evaluate("polhode.state().attitudes[0]"), there) < 1e-7


@pytest.mark.parametrize("order", ["decreasing", "unsorted"])
def test_times_in_any_order(order: str, opened: Any, tmp_path: Path) -> None:
    problem = ph.problems.get("free_body")
    t = np.linspace(5.0, -5.0, 201)
    page = paused(opened(ph.exact(problem, t if order == "decreasing" else np.roll(t, 70)).view(tmp_path / "t.html")))
    for time in (-5.0, -1.23, 0.0, 4.999):
        page.evaluate(f"polhode.seek({time})")
        shown = page.evaluate("polhode.state()")
        assert shown["time"] == time
        assert turned(shown["attitudes"][0], ph.exact(problem, [time]).quaternion[0]) < 1e-6


def test_polhode_and_herpolhode(opened: Any, tmp_path: Path) -> None:
    """The drawn polhode lies on the ellipsoid of the energy, the drawn herpolhode in the invariable plane."""
    body = ph.Body([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])
    sol = ph.exact(ph.Problem(body, omega=[0.1, 2.0, 0.3]), np.linspace(0.0, 8.0, 41))
    page = paused(opened(sol.view(tmp_path / "roll.html")))
    page.evaluate("polhode.seek(3.21)")
    drawn = page.evaluate("polhode.drawn(0)")
    in_body, in_space = (np.reshape(drawn[name], (-1, 3)) / drawn["scale"] for name in ("polhode", "herpolhode"))
    assert len(in_body) > 2 * len(sol)  # curves, not polygons
    twice = 2 * sol.energy[0]
    on_ellipsoid = np.einsum("ni,ij,nj->n", in_body, body.inertia, in_body)
    assert on_ellipsoid == pytest.approx(np.full(len(in_body), twice), rel=1e-4)  # cubics over 0.4 radians
    momentum = sol.spatial_momentum[0]
    assert in_space @ momentum == pytest.approx(np.full(len(in_space), twice), rel=1e-4)
    assert np.array(drawn["plane"]) / drawn["scale"] == pytest.approx(
        twice * momentum / (momentum @ momentum), rel=1e-4
    )
    assert np.array(drawn["tip"]) / drawn["scale"] @ momentum == pytest.approx(twice, rel=1e-4)


def test_a_slender_ellipsoid_stays_in_the_picture(opened: Any, tmp_path: Path) -> None:
    sol = ph.exact(ph.Problem(ph.Body([0.001, 1.0, 1.0]), omega=[0.0, 1.0, 0.2]), np.linspace(0.0, 8.0, 81))
    scale = paused(opened(sol.view(tmp_path / "needle.html"))).evaluate("polhode.drawn(0).scale")
    assert scale * math.sqrt(2 * sol.energy[0] / 0.001) < 2.3  # the camera sees 2.4 up and down


def test_a_run_that_blew_up(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    """What is finite is shown, beside a run that went on."""
    data = {name: getattr(flip, name).copy() for name in ("t", "quaternion", "momentum", "energy")}
    for name in ("quaternion", "momentum", "energy"):
        data[name][100:] = math.nan
    data["energy"][90:] = math.inf
    lost = ph.Trajectory(data, dataclasses.replace(flip.info, status="failed"))
    page = paused(opened(ph.view([flip, lost], tmp_path / "lost.html")))
    assert "the run is failed" in page.inner_text("#note")
    page.evaluate("polhode.seek(15)")
    assert "ended at t = 4.95" in page.locator(".panel").nth(1).inner_text()
    data["quaternion"][:] = math.nan
    with pytest.raises(ph.InputError, match="has no finite state"):
        ph.view(ph.Trajectory(data, flip.info), tmp_path / "none.html")


def test_without_three_dimensions(browser: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(
        "const real = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...how) "
        "{ return kind.startsWith('webgl') ? null : real.call(this, kind, ...how); };"
    )
    page = context.new_page()
    page.goto(flip.view(tmp_path / "flat.html").as_uri())
    until(page, "Boolean(window.polhode)")
    assert "WebGL is off" in page.inner_text("#note")
    page.evaluate("polhode.pause(); polhode.seek(7)")
    assert page.inner_text("#clock") == "t = 7.00"
    context.close()


def test_people_who_want_no_motion_or_darkness(browser: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    context = browser.new_context(reduced_motion="reduce", color_scheme="dark")
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.goto(flip.view(tmp_path / "spin.html").as_uri())
    until(page, "Boolean(window.polhode)")
    assert not page.evaluate("polhode.state().playing")
    dark = page.locator("#scene").screenshot()
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    assert page.locator("#scene").screenshot() != dark
    context.close()


def test_everything_has_a_name(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    """What a reader of the screen says of every control, and that the running clock is not read out."""
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    for role, name in (
        ("button", "Play"), ("slider", "Time"), ("combobox", "Speed"), ("checkbox", "Loop"), ("checkbox", "Herpolhode"),
        ("group", "What is shown"), ("tab", "Angular velocity"), ("tab", "Error of energy"),
    ):  # fmt: skip
        assert page.get_by_role(role, name=name, exact=True).count() == 1
    assert page.get_by_role("img").count() == 2
    assert page.get_attribute("#clock", "aria-live") == "off"


def test_below_the_picture_is_the_angular_velocity(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    """Its components, in which the flips are seen; the error, which is round-off, by choice."""
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    assert page.get_attribute("#tab-omega", "aria-selected") == "true"
    drawn = page.evaluate("chart.rows[0].curves.map(({ t, values }) => ({ t: [...t], values }))")
    for i, curve in enumerate(drawn):
        there = flip.at(np.clip(curve["t"], 0.0, 20.0)).omega[:, i]
        assert curve["values"] == pytest.approx(there, abs=1e-4)  # cubics over a tenth of a radian
    assert np.min(drawn[1]["values"]) < -1.9, "it flips"
    first = page.locator("#chart").screenshot()
    page.click("#tab-error")
    assert "Error of energy (solid) and momentum (dashed)" in page.inner_text("#caption")
    assert "round-off" in page.inner_text("#caption")
    assert page.locator("#chart").screenshot() != first
    page.keyboard.press("c")
    page.evaluate("polhode.seek(0)")
    assert page.get_attribute("#tab-omega", "aria-selected") == "true"


def test_errors_come_first_where_methods_differ(
    opened: Any, flip: ph.Trajectory, coarse: ph.Trajectory, tmp_path: Path
) -> None:
    page = paused(opened(ph.view([flip, coarse], tmp_path / "both.html")))
    assert page.get_attribute("#tab-error", "aria-selected") == "true"
    page.click("#tab-omega")
    assert page.evaluate("chart.rows.map(({ curves }) => curves.length)") == [2, 2, 2]


def test_what_is_not_conserved_is_no_error(opened: Any, tmp_path: Path) -> None:
    drag = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.linear_drag(0.1), omega=[1.0, 0.2, 0.3])
    page = paused(opened(ph.solve(drag, "fem", dt=0.1, steps=20).view(tmp_path / "drag.html")))
    assert page.locator("#tabs button").all_inner_texts() == ["Angular velocity", "Change of energy"]


def test_words_of_physics(opened: Any, tmp_path: Path) -> None:
    sol = ph.solve(ph.problems.t_handle(), "dmv6", dt=0.05, t_end=4.0)
    page = paused(opened(sol.view(tmp_path / "handle.html")))
    assert page.inner_text("h1") == page.inner_text(".panel b") == "T-handle"
    assert page.inner_text(".panel .how") == "computed by dmv6, dt = 0.05"
    assert page.locator(".entry").all_inner_texts() == ["ω angular velocity", "L angular momentum"]
    page.uncheck("#show-vectors")
    assert page.is_hidden(".key")


OVERLAPS = """() => {
  const all = [...document.querySelectorAll(".label, .text > *")].map((one) => one.getBoundingClientRect());
  const boxes = all.filter((one) => one.width && one.height);
  const meet = (a, b, low, high) => a[low] < b[high] - 0.5 && b[low] < a[high] - 0.5;
  const cover = (a, b) => meet(a, b, "left", "right") && meet(a, b, "top", "bottom");
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => cover(a, b))).length;
}"""


def test_labels_do_not_overlap(browser: Any, tmp_path: Path) -> None:
    """Also at the start, where ω, L and an axis of the body point the same way, and in a small window."""
    sol = ph.solve(ph.problems.t_handle(), "dmv6", dt=0.05, t_end=20.0)
    path = sol.view(tmp_path / "handle.html")
    for width, height in ((1280, 900), (390, 844)):
        context = browser.new_context(viewport={"width": width, "height": height})
        page = context.new_page()
        page.goto(path.as_uri())
        until(page, "Boolean(window.polhode)")
        paused(page)
        for time in np.linspace(0.0, 20.0, 17):
            page.evaluate(f"polhode.seek({time})")
            assert page.evaluate(OVERLAPS) == 0, (width, time)
        context.close()


def test_looking_from_another_side_by_keys(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(flip.view(tmp_path / "spin.html")))
    page.evaluate("polhode.seek(1)")
    first = page.locator("#scene").screenshot()
    for key in "adwseq":
        page.keyboard.press(key)
        assert page.locator("#scene").screenshot() != first
        page.keyboard.press("r")
        assert page.locator("#scene").screenshot() == first


def test_words_of_a_user_stay_words(opened: Any, flip: ph.Trajectory, tmp_path: Path) -> None:
    title = "</script><script>window.bad = 1</script>"
    page = opened(flip.view(tmp_path / "spin.html", title=title))
    assert page.evaluate("window.bad") is None
    assert page.inner_text("h1") == title
    page = opened(flip.view(tmp_path / "braces.html", title="{{data}} {{script}}"))
    assert page.inner_text("h1") == "{{data}} {{script}}"
    named = ph.Trajectory(flip.stored, dataclasses.replace(flip.info, method=title, problem=title))
    page = opened(named.view(tmp_path / "named.html"))
    assert page.evaluate("window.bad") is None
    assert title in page.inner_text(".panel b")
    assert title in page.inner_text(".panel .how")


def test_long_runs_are_thinned(tmp_path: Path) -> None:
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    sol = ph.solve(problem, "symrot", dt=0.001, steps=100_000)
    assert sol.view(tmp_path / "long.html").stat().st_size < 6e6


def test_bad_input(flip: ph.Trajectory, tmp_path: Path) -> None:
    with pytest.raises(ph.InputError, match=r"must end in \.html; got .*spin\.png"):
        flip.view(tmp_path / "spin.png")
    with pytest.raises(ph.InputError, match="does not exist; create it first"):
        flip.view(tmp_path / "none" / "spin.html")
    flip.view(tmp_path / "spin.html")
    with pytest.raises(ph.InputError, match=r"spin\.html exists"):
        flip.view(tmp_path / "spin.html")
    flip.view(tmp_path / "spin.html", overwrite=True)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ph.InputError, match=r"folder\.html cannot be written: Is a directory"):
        flip.view(tmp_path / "folder.html", overwrite=True)
    for wrong, said in ((3, "got int"), ("run.nc", "got str"), ([flip, "run.nc"], "got str"), ([flip] * 10, "got 10")):
        with pytest.raises(ph.InputError, match=said):
            ph.view(wrong, tmp_path / "none.html")
    with pytest.raises(ph.InputError, match=r"such as 'spin\.html'; got 3"):
        flip.view(3)
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
    assert to_json(again.info.shapes) == to_json(sol.info.shapes) != ""
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


def test_a_large_mesh_is_drawn_as_long_as_it_is_at_hand(tmp_path: Path) -> None:
    """In the process that has the body, without naming it again; a file holds no large mesh."""
    egg = trimesh.creation.icosphere(4).apply_scale([1.0, 0.6, 0.4])
    egg.export(tmp_path / "egg.stl")
    sol = ph.solve(ph.Problem(ph.Body.from_mesh(tmp_path / "egg.stl"), omega=[0.0, 3.0, 0.1]), "dmv6", dt=0.1, steps=9)
    assert '"vertices"' in sol.view(tmp_path / "egg.html").read_text("utf-8")
    sol.save(tmp_path / "egg.nc")
    assert '"vertices"' not in ph.load(tmp_path / "egg.nc").view(tmp_path / "file.html").read_text("utf-8")


def test_a_body_turns_about_its_pivot() -> None:
    disc = ph.Body.cylinder(0.05, 0.02, mass=0.2).moved([0.1, 0.0, 0.0]).about([0.0, 0.0, -0.04])
    sol = ph.solve(ph.Problem(disc, omega=[0.0, 0.0, 1.0]), "dmv2", dt=0.1, steps=2)
    (shape,) = sol.info.shapes
    assert shape.position == pytest.approx([0.1, 0.0, 0.04])
    free = ph.Body.cylinder(0.05, 0.02).moved([0.1, 0.0, 0.0])
    assert free.looks[0].position == pytest.approx(np.zeros(3))
