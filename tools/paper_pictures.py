"""Pictures for docs/papers.md: ``python -m tools.paper_pictures FOLDER`` shrinks those of ``validation.papers``.

FOLDER holds the results (`python -m validation.papers all --out FOLDER`); the pictures go to docs/papers/, named
after the results.
"""

from __future__ import annotations

import sys
from pathlib import Path

import PIL.Image
from tools.documents import ROOT
from validation import papers

PICTURES = ROOT / "docs" / "papers"
LARGEST, COLOURS = 900, 256
"""Pixels of the longer side, and colours; the palette must cover thin lines too, not only what fills areas."""


def shrink(folder: Path) -> None:
    """Write a small copy of every picture in a folder of results."""
    PICTURES.mkdir(exist_ok=True)
    for source in sorted(folder.glob("*/*.png")):
        papers.get(source.parent.name)  # raises an error if no result has this name
        with PIL.Image.open(source) as drawn:
            small = drawn.convert("RGB")
        small.thumbnail((LARGEST, LARGEST))
        small.quantize(COLOURS, PIL.Image.Quantize.MAXCOVERAGE, dither=PIL.Image.Dither.NONE).save(
            PICTURES / f"{source.parent.name}.png", optimize=True
        )


if __name__ == "__main__":
    shrink(Path(sys.argv[1]))
