"""Pages that are made, not written: methods, the Python interface, which method to use, and the gallery."""

from __future__ import annotations

import ast
import os
import runpy
from pathlib import Path

import api
import combinations
import command_pages
import guide
import method_pages

import polhode as ph


def write(folder: Path) -> None:
    """All generated pages, below docs/."""
    made = method_pages.pages()
    for old in (folder / "methods").glob("*.md"):
        if old.stem not in made:
            old.unlink()
    for name, text in made.items():
        _put(folder / "methods" / f"{name}.md", text)
    for name, text in api.pages().items():
        _put(folder / "api" / f"{name}.md", text)
    _put(folder / "which_method.md", guide.page())
    _put(folder / "combinations.md", combinations.page())
    _put(folder / "commands.md", command_pages.page())
    _put(folder / "gallery" / "index.md", gallery(folder / "gallery"))
    _moving_page(folder / "moving" / "t_handle.html")


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


def gallery(folder: Path) -> str:
    """Run every script of the gallery in its folder, and show its text, its picture and its code."""
    lines = ["# Gallery", "", "Each picture is made by the script below it.", ""]
    here = Path.cwd()
    for script in sorted(folder.glob("*.py")):
        picture = folder / f"{script.stem}.png"
        source = script.read_text("utf-8")
        if not picture.exists() or picture.stat().st_mtime < script.stat().st_mtime:
            os.chdir(folder)
            try:
                runpy.run_path(str(script), run_name="__main__")
            finally:
                os.chdir(here)
        text = ast.get_docstring(ast.parse(source)) or script.stem
        title, _, rest = text.partition("\n")
        code = source.split('"""', 2)[2].strip()
        lines += [
            f"## {title.rstrip('.')}",
            "",
            rest.strip(),
            "",
            f"![{title}]({picture.name})",
            "",
            "```python",
            code,
            "```",
            "",
        ]
    return "\n".join(lines)
