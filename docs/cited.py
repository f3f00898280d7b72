"""The paper for the site: `paper.md` has the form of a journal (front matter, citations as [@key]), unknown to Sphinx.

The title becomes a heading, the other headings go down by one level, and the citations become names and years, with the
entries of `paper.bib` that are cited at the end.
"""

from __future__ import annotations

import re
from pathlib import Path

from polhode.methods import citations

FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
CITED = re.compile(r"\[@[^\]]+\]")
BIBLIOGRAPHY = Path(__file__).with_name("paper.bib")


def keys(text: str) -> list[str]:
    """Keys that a text cites, in the order of their first occurrence."""
    return list(dict.fromkeys(re.findall(r"@([\w-]+)", " ".join(CITED.findall(text)))))


def for_the_site(text: str) -> str:
    """The paper as a page of the site; a key that `paper.bib` has not is a KeyError."""
    book = citations.parsed(BIBLIOGRAPHY.read_text("utf-8"))
    front = FRONT.match(text)
    if front is None:
        raise ValueError("the paper must begin with front matter between two lines ---; found none")
    title = re.search(r"^title: ['\"](.*)['\"]$", front[1], re.MULTILINE)
    if title is None:
        raise ValueError("the front matter of the paper must have a title in quotation marks; found none")
    body = re.sub(r"^#", "##", text[front.end() :], flags=re.MULTILINE)
    cited = [key for key in keys(body) if book[key]]
    listed = "\n".join(f"- {citations.citation(key, book)}." for key in sorted(cited))
    named = CITED.sub(lambda found: f"({'; '.join(short(key, book) for key in keys(found[0]))})", body)
    return f"# {title[1]}\n\n{named.rstrip()}\n\n{listed}\n"


def short(key: str, book: citations.Book) -> str:
    """Names and year without parentheses of their own."""
    return re.sub(r" \((\d{4})\)$", r" \1", citations.short(key, book))
