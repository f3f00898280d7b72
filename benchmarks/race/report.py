"""Numbers, tables and files of the races."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

NEVER = "-"
"""In a table, where no tolerance reaches the error."""


def number(x: float) -> str:
    """Three figures, no exponent."""
    return f"{x:.0f}" if x >= 99.5 else f"{x:.1f}"


def ratio(x: float) -> str:
    """Ratios are told from 1 by their second decimal."""
    return f"{x:.0f}" if x >= 9.95 else f"{x:.2f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def into_page(path: Path, parts: dict[str, str]) -> None:
    """Put tables between their marks in a page of the documentation."""
    text = path.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, rest = text.split(begin)
        text = head + begin + part + end + rest.split(end)[1]
    path.write_text(text)


def write(found: dict[str, Any], path: Path) -> None:
    """Everything as JSON, a line for each run, times and errors to five figures."""
    text = json.dumps(_rounded(found), indent=1)
    path.write_text(re.sub(r"\{[^{}]*\}", lambda row: " ".join(row[0].split()), text) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
