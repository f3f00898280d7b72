"""Pages that are made, not written: methods, the Python interface, which method to use, and the gallery."""

from __future__ import annotations

from pathlib import Path

import api
import combinations
import command_pages
import gallery_pages
import guide
import method_pages

import polhode as ph


def write(folder: Path) -> None:
    """All generated pages, below docs/."""
    _put_all(folder / "methods", method_pages.pages())
    _put_all(folder / "gallery", gallery_pages.pages(folder / "gallery"))
    for name, text in api.pages().items():
        _put(folder / "api" / f"{name}.md", text)
    _put(folder / "which_method.md", guide.page())
    _put(folder / "combinations.md", combinations.page())
    _put(folder / "commands.md", command_pages.page())
    _moving_page(folder / "moving" / "t_handle.html")


def _put_all(folder: Path, pages: dict[str, str]) -> None:
    """Write the pages of a folder, and remove those of scripts and methods that are gone."""
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        _put(folder / f"{name}.md", text)


def _put(path: Path, text: str) -> None:
    """Write a page if it changed, so that Sphinx rebuilds what it must."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, encoding="utf-8")


EMBEDDED = """<style>
main { padding: 0; }
header, #bar label, #clock, #record, #toggles, #drift, details { display: none; }
#stage { height: calc(100vh - 3.6rem) !important; min-height: 0; }
</style>
</head>"""
"""In the frame on the first page: the body, the button and the slider of time, as high as the frame."""


def _moving_page(path: Path) -> None:
    """The viewer on the first page."""
    path.parent.mkdir(exist_ok=True)
    ph.view(ph.exact(ph.problems.t_handle(), [0.05 * i for i in range(400)]), path, overwrite=True)
    path.write_text(path.read_text("utf-8").replace("</head>", EMBEDDED, 1), encoding="utf-8")
