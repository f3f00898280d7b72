"""Pictures of the races, drawn from the tables in their pages: ``python -m tools.race_pictures``.

A picture keeps the digest of its table in its metadata, so that a test sees when a table was measured anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import PIL.Image
from tools.documents import ROOT

DOCS = ROOT / "docs"
RACES = {
    "tolerance_race": ("case", "microseconds for a call"),
    "crowd_race": ("ensemble", "nanoseconds for a body"),
}
"""Page, the column that chooses the panel, and what the times are."""

NOT_TIMES = ("case", "ensemble", "bodies", "error", "method")
COLUMNS = 3
"""Of panels; the last place is left for the legend."""

OURS = ("polhode", "propagator", "solve")
KEY = "Description"

Row = dict[str, str]


def table(page: str) -> str:
    """The text of the first table of a race."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return text.split("<!-- race -->\n")[1].split("\n<!-- end of race -->")[0]


def digest(page: str) -> str:
    """A number that changes with the table."""
    return hashlib.sha256(table(page).encode()).hexdigest()


def drawn_from(page: str) -> str:
    """The digest of the table from which the picture in docs/ was drawn."""
    with PIL.Image.open(_picture(page)) as picture:
        return str(picture.info.get(KEY, ""))


def rows(page: str) -> list[Row]:
    """The rows of a table by the heads of the columns; of several sizes of an ensemble the largest."""
    head, _, *lines = ([cell.strip() for cell in line.strip("| ").split("|")] for line in table(page).splitlines())
    found = [dict(zip(head, line, strict=True)) for line in lines]
    largest = max(float(row.get("bodies", 0)) for row in found)
    return [row for row in found if float(row.get("bodies", 0)) == largest]


def curves(found: list[Row]) -> Iterator[tuple[str, list[float], list[float]]]:
    """The tools of a panel, each with the errors that it reaches and the times that it takes."""
    for name in found[0]:
        if name in NOT_TIMES or name.startswith("best other"):
            continue
        times = [(float(row["error"]), re.match(r"[\d.]+", row[name])) for row in found]
        reached = [(error, float(time[0])) for error, time in times if time]
        yield name, [error for error, _ in reached], [time for _, time in reached]


def draw(page: str) -> None:
    """A panel for each case: time against error, our calls with full lines."""
    column, said = RACES[page]
    found = rows(page)
    panels = list(dict.fromkeys(row[column] for row in found))
    lines = len(panels) // COLUMNS + 1
    fig, axes = plt.subplots(lines, COLUMNS, figsize=(8, 3 * lines), sharey=True, squeeze=False, layout="constrained")
    for ax, panel in zip(axes.flat, panels, strict=False):
        for i, (name, errors, times) in enumerate(curves([row for row in found if row[column] == panel])):
            style = "o-" if name.startswith(OURS) else "s--"
            ax.loglog(errors, times, style, color=f"C{i}", ms=4, lw=1.3, label=name.removesuffix(" (ns)"))
        ax.set(title=panel.replace("_", " "), xlabel="error")
        ax.invert_xaxis()
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel(said)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", frameon=False)
    fig.savefig(_picture(page), dpi=110, metadata={KEY: digest(page)})
    plt.close(fig)


def _picture(page: str) -> Path:
    return DOCS / f"{page}.png"


if __name__ == "__main__":
    matplotlib.use("Agg")
    for name in RACES:
        draw(name)
