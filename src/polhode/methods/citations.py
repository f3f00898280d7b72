"""Citations from references.bib."""

from __future__ import annotations

import functools
import re
import unicodedata
from importlib import resources

Book = dict[str, dict[str, str]]
"""Fields of the entries of a bibliography, by key."""


@functools.cache
def entries() -> Book:
    """Fields of every entry, by key."""
    return parsed(resources.files(__package__).joinpath("references.bib").read_text("utf-8"))


def parsed(text: str) -> Book:
    """Read the text of a BibTeX file in which every field has a line."""
    found = {}
    for part in re.split(r"^@", text, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\w+)\{([^,]+),", part)
        if head:
            pairs = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*\}?$", part, flags=re.MULTILINE)
            found[head[2]] = {name.lower(): _plain(value) for name, value in pairs} | {"kind": head[1].lower()}
    return found


ACCENTS = {"`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "c": "\u0327", "v": "\u030c"}
"""Accents of TeX as combining marks."""


def _plain(value: str) -> str:
    """Remove the braces, dashes, quotes and accents of TeX."""
    text = re.sub(r"\\(?:([`'^~\"])|([cv]) )\{?(\w)\}?", _accented, value)
    return text.replace("{", "").replace("}", "").replace("--", "-").replace("``", '"').replace("''", '"')


def _accented(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", found[3] + ACCENTS[found[1] or found[2]])


def citation(key: str, book: Book | None = None) -> str:
    """Return one line: authors, title, journal, year; or the key itself if the file does not have it."""
    entry = (entries() if book is None else book).get(key)
    if entry is None:
        return key
    authors = entry.get("author", "").replace(" and ", "; ")
    place = entry.get("journal") or entry.get("booktitle") or entry.get("publisher") or entry.get("school") or ""
    volume = " ".join(x for x in (place, entry.get("volume", "")) if x)
    pages = f", {entry['pages']}" if "pages" in entry else ""
    parts = (authors, entry.get("title", ""), f"{volume}{pages}", entry.get("year", ""), entry.get("doi", ""))
    return ". ".join(x.rstrip(".") for x in parts if x)


def short(key: str, book: Book | None = None) -> str:
    """Return the authors' family names and the year; only the first name for more than three authors."""
    entry = (entries() if book is None else book).get(key, {})
    names = entry.get("author", key).split(" and ")
    families = [name.split(",")[0] if "," in name else name.split()[-1] for name in names]
    authors = f"{families[0]} and others" if len(families) > 3 else " and ".join(_listed(families))
    return f"{authors} ({entry['year']})" if "year" in entry else authors


def _listed(families: list[str]) -> list[str]:
    """Join all names but the last with commas."""
    return [", ".join(families[:-1]), families[-1]] if len(families) > 1 else families
