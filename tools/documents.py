"""What the documents hold: their blocks of code, and the files that their readers have."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def blocks(page: Path, kinds: str = "python") -> Iterator[tuple[str, str]]:
    """Blocks of a page: the language, and the text behind as many empty lines as keep its line numbers true."""
    text = page.read_text("utf-8")
    for found in re.finditer(rf"^```({kinds})\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield found[1], "\n" * text[: found.start(2)].count("\n") + found[2]


def command_lines(block: str) -> Iterator[str]:
    """Command lines of a block marked console."""
    for line in filter(None, block.splitlines()):
        if not line.startswith("polhode "):
            raise ValueError(f"blocks marked console hold commands of polhode, which are run; got {line!r}")
        yield line


def reader_files(folder: Path) -> None:
    """Write the files that readers of the pages have: a solid, and a sweep (that of docs/sweeps.md)."""
    import trimesh

    trimesh.creation.box((10, 20, 30)).export(folder / "part.stl")
    sweep = next(text for _, text in blocks(ROOT / "docs" / "sweeps.md", "toml"))
    (folder / "tops.toml").write_text(sweep.lstrip("\n"), "utf-8")


def made_by(module: str) -> ModuleType:
    """A module of docs/, where the pages are made."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.pop(0)
