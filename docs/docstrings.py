"""Sections of docstrings as Sphinx reads them.

In our docstrings a line of a section is a name and its description; napoleon takes what follows the colon for a type.
"""

from __future__ import annotations

import re
from typing import Any

SECTIONS = ("Parameters", "Attributes")
ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*) : (.*)$")


def separate(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put descriptions on lines of their own, below the names."""
    found, inside = [], False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and set(lines[i + 1].strip()) == {"-"}:
            inside = line.strip() in SECTIONS
        line = _with_bars(line)
        entry = ENTRY.match(line) if inside else None
        found += [entry[1], f"    {entry[2]}"] if entry else [line]
    lines[:] = found


def _with_bars(line: str) -> str:
    """Escape the bars of absolute values outside of code: they would mark substitutions."""
    parts = line.split("`")
    return "`".join(part.replace("|", "\\|") if i % 2 == 0 else part for i, part in enumerate(parts))
