"""The gallery: a page for every script of docs/gallery, and an index of pictures by audience."""

from __future__ import annotations

import ast
import dataclasses
import os
import runpy
from pathlib import Path

import matplotlib.pyplot


@dataclasses.dataclass(frozen=True)
class Case:
    """A picture of a page that is written by hand.

    Attributes
    ----------
    page : name of the page in docs/, with the section if it is not the whole page
    picture : name of its picture in docs/
    title : what the picture shows
    """

    page: str
    picture: str
    title: str


GROUPS: dict[str, tuple[str | Case, ...]] = {
    "Spacecraft": (
        *("slew", "bdot", "flat_spin", "rotor", "libration"),
        Case("satellite.md", "satellite.png", "A satellite for a day"),
        Case("monte_carlo.md", "monte_carlo.png", "200 launches of a CubeSat"),
        Case("free_flyer.md", "free_flyer.png", "The inertia of a free flyer"),
    ),
    "Asteroids, moons and planets": (
        *("toutatis", "equinoxes", "tumblers"),
        Case("toutatis.md", "toutatis.png", "The light curve of Toutatis"),
        Case("apophis.md", "apophis.png", "Apophis after its flyby in 2029"),
        Case("environments.md#a-flyby", "environments.png", "Angular momentum in a flyby"),
        Case("hyperion.md", "hyperion.png", "The chaotic zone of Hyperion"),
        Case("mercury.md", "mercury.png", "Mercury in the 3:2 resonance"),
    ),
    "Molecules and grains": (
        *("heat", "langevin_function", "diffusion", "dumbbells"),
        Case("lammps.md", "lammps.png", "Rigid water compared with LAMMPS"),
    ),
    "Games and robots": (
        *("game_loop", "coin", "coning"),
        Case("viewer.md#many-bodies-in-one-scene", "viewer_many.png", "Many bodies in the viewer"),
    ),
    "Teaching": (
        *("flip", "poinsot", "lagrange_top", "sleeping_top", "levitron"),
        Case("pictures.md#poincaré-sections", "heavy_top_section.png", "Islands in a chaotic sea: the heavy top"),
        Case("chaos.md", "chaos_map.png", "A map of chaos"),
    ),
    "Methods": ("soft_wall", "orders", "six_dimensions"),
}
"""Entries of the gallery by audience: names of scripts, and cases."""

HOW_TO = "How to: "
"""Begins the last paragraph of a script's text: links to the pages that explain what it uses."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """The parts of a script: title, text, links to other pages, and code."""

    title: str
    text: str
    links: str
    code: str


def read(script: Path) -> Entry:
    """Take a script apart; its docstring must have a title, a text and links."""
    source = script.read_text("utf-8")
    said = ast.get_docstring(ast.parse(source)) or ""
    title, _, rest = said.partition("\n")
    text, found, links = rest.strip().rpartition(f"\n\n{HOW_TO}")
    if not (title and found):
        raise ValueError(
            f"{script.name}: expected a docstring with a title, a text and a last paragraph that begins with "
            f"{HOW_TO!r}, got {said!r}; add what is missing"
        )
    return Entry(title.rstrip("."), text, links, source.split('"""', 2)[2].strip())


def pages(folder: Path) -> dict[str, str]:
    """All pages of the gallery by name, with the pictures drawn where a script is newer."""
    entries = {script.stem: read(script) for script in sorted(folder.glob("*.py"))}
    for name in entries:
        _draw(folder / f"{name}.py")
    return {"index": index(entries), **{name: page(name, entry) for name, entry in entries.items()}}


def page(name: str, entry: Entry) -> str:
    """Return the page of one script."""
    return "\n".join([
        f"# {entry.title}", "", entry.text, "", f"![{entry.title}]({name}.png)", "",
        f"**How to:** {entry.links}", "", "```python", entry.code, "```", "",
        f"This script is `docs/gallery/{name}.py`; the tests run it. Back to the [gallery](index.md).", "",
    ])  # fmt: skip


def index(entries: dict[str, Entry]) -> str:
    """Return the first page: a grid of pictures for each audience."""
    lines = ["# Gallery", "", "Choose a picture to see the code that made it.", ""]
    for group, members in GROUPS.items():
        lines += [f"## {group}", "", "::::{container} gallery", ""]
        for member in members:
            lines += _tile(member, entries)
        lines += ["::::", ""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", *_scripts(), "```", ""])


def _scripts() -> list[str]:
    """Names of all scripts in the order of the index."""
    return [member for members in GROUPS.values() for member in members if isinstance(member, str)]


def _tile(member: str | Case, entries: dict[str, Entry]) -> list[str]:
    """Lines of one picture with its title; both lead to the page."""
    if isinstance(member, Case):
        title, picture, target = member.title, f"../{member.picture}", f"../{member.page}"
    else:
        title, picture, target = entries[member].title, f"{member}.png", f"{member}.md"
    return [":::{container} entry", f"[![{title}]({picture})]({target})", "", f"[{title}]({target})", ":::", ""]


def _draw(script: Path) -> None:
    """Run a script in its folder, if its picture is missing or older."""
    picture, here = script.with_suffix(".png"), Path.cwd()
    if picture.exists() and picture.stat().st_mtime >= script.stat().st_mtime:
        return
    os.chdir(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(here)
        matplotlib.pyplot.close("all")
