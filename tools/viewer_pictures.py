"""Pictures of the viewer: ``python -m tools.viewer_pictures`` photographs its pages in Chromium for the documentation.

The film docs/t_handle.gif shows the flip of a T-handle. Its initial state makes a whole number of turns about the
momentum in one period, so that the film repeats without a jump.
"""

from __future__ import annotations

import io
import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageColor
from scipy.optimize import brentq
from tools.documents import ROOT

import polhode as ph

DOCS = ROOT / "docs"
SWITCHES = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")

SIZE, DELAY, PERIOD, FIRST = (600, 400), 70, 8.0, 0.425
"""Pixels of the film, milliseconds between its pictures, its length in seconds, and where in the period it begins."""

TURNS = 7
"""Turns of the handle about its momentum in a period."""

COLOURS = 200
LINES = ("#c2185b", "#22303c", "#8e44ad", "#D55E00", "#009E73", "#2b7bba", "#1a1a1a", "#f4f6f8")
"""The number of colours of the film, and those of what covers few pixels, which have their own places among them."""

FILM = """
header, #bar, #toggles, #tabs, #caption, details, .name, .how { display: none !important; }
main { padding: 0; }
#stage { height: 290px !important; min-height: 0 !important; border: 0; border-radius: 0; }
figure { margin: 0; }
#chart { height: 110px; border: 0; border-radius: 0; background: #f4f6f8; }
.label { font-size: 16px; }
"""
"""The stage and the chart of the page, without the rest."""


def looping() -> ph.Problem:
    """The T-handle, spun so near to its intermediate axis that it makes a whole number of turns in a period."""

    def start(aside: float) -> ph.Problem:
        return ph.Problem(ph.problems.t_handle().body, omega=[aside, 1.0, 0.0], name="t_handle")

    aside = brentq(lambda x: float(ph.precession_angle(start(x))) - 2 * math.pi * TURNS, 1e-4, 0.5, xtol=1e-13)
    faster = float(ph.period(start(aside))) / PERIOD
    return ph.Problem(start(aside).body, omega=[faster * aside, faster, 0.0], name="t_handle")


def film(browser: Any, folder: Path) -> None:
    """One period as a GIF."""
    sol = ph.exact(looping(), np.linspace(0.0, PERIOD, 400))
    page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
    page.goto(sol.view(folder / "film.html").as_uri())
    page.add_style_tag(content=FILM)
    page.evaluate("polhode.pause(); for (const kind of ['axes', 'space']) toggle(kind, false);")
    page.evaluate("arrange(); lookFrom(1.0, 0.05, 0.94);")
    number = round(1000 * PERIOD / DELAY)

    def pictures() -> Iterator[PIL.Image.Image]:
        for k in range(number):
            page.evaluate(f"polhode.seek({(FIRST + k / number) % 1.0 * PERIOD})")
            yield PIL.Image.open(io.BytesIO(page.screenshot())).convert("RGB")

    save(list(pictures()), DOCS / "t_handle.gif")


def save(pictures: list[PIL.Image.Image], path: Path) -> None:
    """A GIF with one palette, from all of its pictures, which repeats for ever."""
    sheet = PIL.Image.fromarray(np.concatenate([np.asarray(one)[::2, ::2] for one in pictures[::8]]))
    common = sheet.quantize(COLOURS - len(LINES), PIL.Image.Quantize.MEDIANCUT, dither=PIL.Image.Dither.NONE)
    palette = PIL.Image.new("P", (1, 1))
    palette.putpalette([*itertools.chain(*map(PIL.ImageColor.getrgb, LINES)), *(common.getpalette() or [])])
    first, *rest = (one.quantize(palette=palette, dither=PIL.Image.Dither.NONE) for one in pictures)
    first.save(path, save_all=True, append_images=rest, duration=DELAY, loop=0, disposal=1, optimize=True)


def stills(browser: Any, folder: Path) -> None:
    """The pages of docs/viewer.md."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 2.0, 0.01])
    fine = ph.solve(problem, "dmv10", dt=0.02, t_end=40.0)
    coarse = ph.solve(problem, "symrot", dt=0.2, t_end=40.0)
    handle = ph.exact(ph.problems.t_handle(), np.linspace(0.0, 20.0, 400))
    top = ph.solve(ph.problems.get("fast_top"), tol=1e-8)
    pages = {
        "handle": (handle.view(folder / "handle.html"), 960, 700, 6.0),
        "both": (ph.view([fine, coarse], folder / "both.html", title="dmv10 and symrot"), 1000, 760, 7.12),
        "top": (top.view(folder / "top.html"), 960, 660, 6.0),
        "live": (ph.view_live(folder / "live.html", "top", spin=30.0, tilt=25.0), 960, 520, 3.0),
    }
    for name, (path, width, height, time) in pages.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(path.as_uri())
        page.evaluate(f"polhode.pause(); polhode.seek({time})")
        page.screenshot(path=DOCS / f"viewer_{name}.png")
        page.close()


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path="/usr/bin/chromium", args=list(SWITCHES))
        stills(chromium, Path(place))
        film(chromium, Path(place))
        chromium.close()
