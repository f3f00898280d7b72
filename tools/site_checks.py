"""What built pages must be: complete, without the network, and found by the search."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.search.en import SearchEnglish

NOT_FETCHED = ("canonical", "next", "prev", "index", "search", "author", "help")
"""Relations of <link> that a browser does not follow by itself."""

STYLE_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


@dataclass
class Page(HTMLParser):
    """What a page fetches by itself, where its links lead, and the places that links can lead to."""

    fetched: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Prepare the parser."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of an element."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a":
            self.links += [given["href"]] if "href" in given else []
        elif tag != "link" or given.get("rel") not in NOT_FETCHED:
            self.fetched += [given[name] for name in ("src", "href", "data", "poster") if given.get(name)]
            self.fetched += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]


def read(path: Path) -> Page:
    """Parse a page; addresses in its styles count as fetched."""
    text = path.read_text("utf-8")
    page = Page()
    page.feed(text)
    styles = re.findall(r"<style.*?</style>|style=\"[^\"]*\"", text, re.DOTALL)
    page.fetched += [found for style in styles for found in STYLE_URL.findall(style)]
    return page


def from_the_network(site: Path) -> Iterator[str]:
    """Everything that a page or a style sheet fetches from elsewhere."""
    for path in sorted(site.rglob("*.html")):
        yield from (f"{path.name}: {x}" for x in read(path).fetched if re.match(r"(https?:)?//", x))
    for path in sorted(site.rglob("*.css")):
        yield from (f"{path.name}: {x}" for x in STYLE_URL.findall(path.read_text("utf-8")))


def dead_ends(site: Path) -> Iterator[str]:
    """Links and pictures of the pages that lead to no file, or to no place in a page."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].places
            if lost or not target.exists():
                yield f"{path.name}: {address}"


def search(site: Path, words: str) -> set[str]:
    """Pages that have all words, or a title with them, in the index of the search."""
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    stem = SearchEnglish({}).stem
    found = [_pages(index["terms"], stem(w)) | _pages(index["titleterms"], stem(w)) for w in words.lower().split()]
    return {index["docnames"][i] for i in set.intersection(*found)}


def _pages(terms: dict[str, int | list[int]], word: str) -> set[int]:
    found = terms.get(word, [])
    return {found} if isinstance(found, int) else set(found)
