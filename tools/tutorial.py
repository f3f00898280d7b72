"""What the tutorial prints and draws: ``python -m tools.tutorial`` puts it below the blocks of docs/tutorial.md.

Pictures that a block saves as NAME.png become docs/tutorial_NAME.png; a page NAME.html is photographed in Chromium.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import PIL.Image
from tools.documents import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]\d+)?")
DRAWN = re.compile(r"\b(?:savefig|view)\(\"(\w+)\.(png|html)\"")
DIGITS, NOISE = 1e-5, 1e-8
"""Printed numbers agree to five digits; those below NOISE, error estimates and round-off, within a factor of ten."""

LARGEST = 800
"""Pixels of a picture along its longer side."""


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Blocks of Python of a page, each with the output that stands below it."""
    for found in BLOCK.finditer(text):
        yield found[1], found[2] or ""


def printed(block: str, space: dict[str, Any]) -> str:
    """Run a block in a name space and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, str(PAGE), "exec"), space)
    return out.getvalue()


def same(first: str, second: str) -> bool:
    """Equal words, and numbers that differ only by rounding."""
    if NUMBER.sub("#", first).split() != NUMBER.sub("#", second).split():
        return False
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    return all(_close(float(a), float(b)) for a, b in pairs)


def _close(a: float, b: float) -> bool:
    small, large = sorted((abs(a), abs(b)))
    return abs(a - b) <= DIGITS * large or (large < NOISE and large <= 10 * small)


def pictures(text: str) -> Iterator[tuple[str, str]]:
    """Files that the blocks draw, and the names of their pictures in docs/."""
    for block, _ in shown(text):
        for name, kind in DRAWN.findall(block):
            yield f"{name}.{kind}", f"tutorial_{name}.png"


def write() -> None:
    """Run the tutorial in an empty folder and put outputs and pictures into docs/."""
    space: dict[str, Any] = {"__name__": "__main__"}

    def with_output(found: re.Match[str]) -> str:
        out = printed(found[1], space)
        return f"```python\n{found[1]}```\n" + (f"\n```text\n{out}```\n" if out else "")

    text = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        PAGE.write_text(BLOCK.sub(with_output, text), "utf-8")
        for source, picture in pictures(text):
            _photograph(Path(folder) / source, ROOT / "docs" / picture)
        os.chdir(ROOT)


def _photograph(source: Path, picture: Path) -> None:
    if source.suffix == ".png":
        drawn = PIL.Image.open(source)
        drawn.thumbnail((LARGEST, LARGEST))
        drawn.save(picture)
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 740})
        page.goto(source.as_uri())
        page.wait_for_timeout(3000)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    matplotlib.use("Agg")
    write()
