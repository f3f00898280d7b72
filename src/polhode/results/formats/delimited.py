"""CSV: a table as text, by RFC 4180, with the shortest decimals that give the same doubles."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

from ...physics.validate import flag
from . import table
from .place import Place


def write(result: Any, place: Place, *, comments: bool = False, euler: str | None = None) -> None:
    """Write a CSV file; with `comments`, lines that begin with # say units and conventions before the header.

    euler : a sequence such as "ZYX", for columns of Euler angles in degrees
    """
    with place.file.open("w", encoding="utf-8", newline="") as file:
        for number, block in enumerate(table.blocks_of(result, euler)):
            if not number and flag("comments", comments):
                file.writelines(f"# {line}\n" for line in _comments(result, block))
            lines = csv.writer(file, lineterminator="\n")
            if not number:
                lines.writerow(block)
            lines.writerows(zip(*map(_texts, block.values()), strict=True))


def _comments(result: Any, block: dict[str, Any]) -> list[str]:
    said = [f"{name}: {value}" for name, value in table.about(result).items()]
    for name in block:
        known = table.meaning(name)
        unit = f" [{known['units']}]" if "units" in known else ""
        said.append(f"{name}: {known['long_name']}{unit}")
    return [" ".join(line.split()) for line in said]


def _texts(column: Any) -> list[Any]:
    """Numbers of a column as `csv` writes them; what is not known is empty."""
    return ["" if x != x else x for x in np.asarray(column).tolist()]
