"""Citations from references.bib."""

from __future__ import annotations

import functools
import re
from importlib import resources


@functools.cache
def entries() -> dict[str, dict[str, str]]:
    """Fields of every entry, by key."""
    text = resources.files(__package__).joinpath("references.bib").read_text()
    found = {}
    for part in re.split(r"^@", text, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\w+)\{([^,]+),", part)
        if head:
            pairs = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*\}?$", part, flags=re.MULTILINE)
            found[head[2]] = {name.lower(): _plain(value) for name, value in pairs} | {"kind": head[1].lower()}
    return found


def _plain(value: str) -> str:
    """Text without the braces and dashes of TeX."""
    return value.replace("{", "").replace("}", "").replace("--", "-")


def citation(key: str) -> str:
    """One line: authors, title, where, year. The key itself if the file does not have it."""
    entry = entries().get(key)
    if entry is None:
        return key
    authors = entry.get("author", "").replace(" and ", "; ")
    place = entry.get("journal") or entry.get("booktitle") or entry.get("publisher") or entry.get("school") or ""
    volume = " ".join(x for x in (place, entry.get("volume", "")) if x)
    pages = f", {entry['pages']}" if "pages" in entry else ""
    parts = (authors, entry.get("title", ""), f"{volume}{pages}", entry.get("year", ""), entry.get("doi", ""))
    return ". ".join(x.rstrip(".") for x in parts if x)


def short(key: str) -> str:
    """First author and year."""
    entry = entries().get(key, {})
    author = entry.get("author", key).split(" and ")[0]
    family = author.split(",")[0] if "," in author else author.split()[-1]
    return f"{family} ({entry['year']})" if "year" in entry else family
