"""Animated GIFs written by the page of the viewer, read by Pillow."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageSequence
import pytest

import polhode as ph
from pages import paused, until
from waiting import PATIENCE

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def top() -> ph.Trajectory:
    return ph.solve(ph.problems.get("slow_top"), "strang(dmv6)", dt=0.02, t_end=4.0)


ENCODE = """async ({ pictures, width, height }) => {
  const pixels = pictures.map((rgb) => new Uint8ClampedArray(rgb.flatMap((c) => [...c, 255]))), palette = new Palette();
  for (const one of pixels) palette.count(one);
  const gif = new Gif(width, height, 7, palette.finish());
  for (const one of pixels) gif.add(one);
  return [...new Uint8Array(await gif.file().arrayBuffer())];
}"""


def encoded(page: Any, pictures: np.ndarray) -> Any:
    """Pictures (n, height, width, 3) as a GIF written by the page and read by Pillow."""
    number, height, width, _ = pictures.shape
    given = {"pictures": pictures.reshape(number, -1, 3).tolist(), "width": width, "height": height}
    return PIL.Image.open(io.BytesIO(bytes(page.evaluate(ENCODE, given))))


def frames(gif: Any) -> np.ndarray:
    return np.array([np.asarray(one.convert("RGB")) for one in PIL.ImageSequence.Iterator(gif)])


def test_the_encoder_keeps_few_colours_exactly(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    """Noise fills the table of codes; two of the pictures are equal, and one differs in one place."""
    page = paused(opened(top.view(tmp_path / "top.html")))
    rng = np.random.default_rng(3)
    colours = 8 * rng.permutation(32768)[:255]
    table = np.stack([colours // 8 >> 10, colours // 8 >> 5 & 31, colours // 8 & 31], -1) * 8
    noise = table[rng.integers(0, 255, (2, 70, 80))]
    plain = np.broadcast_to(table[0], (70, 80, 3))
    dot = plain.copy()
    dot[17, 23] = table[1]
    pictures = np.concatenate([noise, noise[-1:], [plain, dot]])
    gif = encoded(page, pictures)
    np.testing.assert_array_equal(frames(gif), pictures)
    assert gif.info["loop"] == 0
    assert gif.info["duration"] == 70
    single = encoded(page, np.full((1, 1, 1, 3), 200))
    assert single.size == (1, 1)


def test_the_encoder_is_near_to_many_colours(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(top.view(tmp_path / "top.html")))
    x, y = np.meshgrid(np.arange(96), np.arange(64))
    shades = np.stack([2 * x, 4 * y - y // 8, 255 - x - y], -1)[None].clip(0, 255)
    apart = np.abs(frames(encoded(page, shades)).astype(int) - shades)
    assert apart.mean() < 6
    assert apart.max() <= 40


def test_a_gif_saved_in_the_page(browser: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    """The whole run at the chosen speed, with what is seen at each of the times."""
    context = browser.new_context(viewport={"width": 420, "height": 400}, accept_downloads=True, offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.goto(top.view(tmp_path / "top.html").as_uri())
    until(page, "Boolean(window.polhode)")
    paused(page).select_option("#speed", "4")
    page.evaluate("polhode.seek(0.7)")
    with page.expect_download() as waiting:
        page.click("#gif")
    assert waiting.value.suggested_filename == "Slow_top.gif"
    waiting.value.save_as(tmp_path / "top.gif")
    gif = PIL.Image.open(io.BytesIO((tmp_path / "top.gif").read_bytes()))
    wanted = page.evaluate("pictureTimes()")
    assert wanted["faster"] == pytest.approx(1, abs=0.05)
    assert gif.n_frames == len(wanted["times"])
    shown = frames(gif)
    for i in (0, len(shown) // 2, len(shown) - 1):
        gif.seek(i)
        assert gif.info["duration"] == (800 if i == len(shown) - 1 else 10 * wanted["delay"])
        seen = page.evaluate(
            """([t, width, height]) => {
              const sheet = Object.assign(document.createElement("canvas"), { width, height });
              seek(t);
              copyStage(sheet);
              return sheet.toDataURL("image/png").split(",")[1];
            }""",
            [wanted["times"][i], *gif.size],
        )
        picture = np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(seen))).convert("RGB")).astype(int)
        assert np.abs(shown[i].astype(int) - picture).mean() < 2
    assert (shown[0] != shown[len(shown) // 2]).any()
    assert page.inner_text("#gif") == "Save GIF"
    assert page.evaluate("polhode.state().time") == wanted["times"][-1]  # the last time asked for above
    context.close()


def test_a_long_run_is_shown_faster_and_said_so(opened: Any, top: ph.Trajectory, tmp_path: Path) -> None:
    page = paused(opened(top.view(tmp_path / "top.html")))
    page.evaluate("now.speed = 0.001")
    found = page.evaluate("pictureTimes()")
    assert (len(found["times"]), found["delay"]) == (400, 10)
    assert found["faster"] == pytest.approx(1000 * (top.t[-1] - top.t[0]) / 39.9)
