"""Docstrings as Sphinx reads them: headings of sections, and names with their descriptions as lists.

In our docstrings an entry is a line `name : description`, with or without a heading above it, and its further lines are
indented. numpydoc takes what follows the colon for a type, so we do not use it.
"""

from __future__ import annotations

import re
from typing import Any

import polhode as ph

ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*) : (.*)$")


def separate(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place (a listener of autodoc)."""
    lines[:] = rewritten(lines)


def rewritten(lines: list[str]) -> list[str]:
    """Headings as rubrics, entries as definitions; examples stay as they are."""
    found: list[str] = []
    example = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        example = bool(line.strip()) and (example or line.startswith(">>>"))
        if example:
            found.append(line)
        elif _underlines(following):
            found += [f".. rubric:: {line}", ""]
        elif not _underlines(line):
            _add(found, _with_bars(line))
    return found


def _underlines(line: str) -> bool:
    return len(line) > 2 and set(line) == {"-"}


def _add(found: list[str], line: str) -> None:
    """Append a line; where a list begins or ends without an empty line, put one."""
    entry = ENTRY.match(line)
    in_list = bool(found) and found[-1].startswith(" ")
    if found and found[-1] and line and not line.startswith(" ") and in_list != bool(entry):
        found.append("")
    found += [_term(entry[1]), f"    {entry[2]}"] if entry else [_linked(line)]


def _term(names: str) -> str:
    return _linked(names) if _is_public_class(names) else f"``{names}``"


def _linked(line: str) -> str:
    """A line that is the name of a public class, as a link to it."""
    return f":py:class:`~polhode.{line}`" if _is_public_class(line) else line


def _is_public_class(line: str) -> bool:
    return isinstance(getattr(ph, line, None), type)


def _with_bars(line: str) -> str:
    """Escape the bars of absolute values outside of code: they would mark substitutions."""
    parts = line.split("`")
    return "`".join(part.replace("|", "\\|") if i % 2 == 0 else part for i, part in enumerate(parts))
