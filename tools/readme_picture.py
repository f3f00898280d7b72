"""The figure that the first lines of Python draw: ``python -m tools.readme_picture`` writes docs/free_body.svg.

The picture keeps the block that drew it in its metadata, so that a test sees when the block was changed.
"""

from __future__ import annotations

import contextlib
import html
import re
import tempfile

import matplotlib as mpl
from tools.documents import ROOT, blocks

from polhode.plots.style import STYLE

PICTURE = ROOT / "docs" / "free_body.svg"
PAGES = (ROOT / "README.md", ROOT / "docs" / "pictures.md")
DRAWS = ".plot.omega()"


def block() -> str:
    """The block that draws the angular velocity: that of the README if it has one."""
    found = [text.lstrip("\n") for page in PAGES for _, text in blocks(page) if DRAWS in text]
    return found[0]


def drawn_from() -> str:
    """The block that drew the picture."""
    text = PICTURE.read_text("utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def draw() -> None:
    """Run the block, and write its figure."""
    code = block()
    space: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the block writes its own copy
        exec(compile(code, "block", "exec"), space)
    with mpl.rc_context(STYLE):
        space["fig"].savefig(PICTURE, metadata={"Date": None, "Description": code})  # type: ignore[attr-defined]


if __name__ == "__main__":
    draw()
