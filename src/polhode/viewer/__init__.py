"""A self-contained browser page of trajectories: the rotating body, polhode and herpolhode, the drift.

The page needs no network: it contains the 3D library (three.js, MIT licence, `three.LICENSE`).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics.body import Body
from ..results.trajectory import Trajectory
from .data import SPEEDS, drawn, labels, note, run_data, shown_indices, speed_of, upwards
from .delivery import checked, delivered

FRAMES, ALL_FRAMES = 20_000, 60_000
"""Most states shown of one trajectory, and of all together; more are thinned evenly."""

PANELS = 9
"""Most trajectories side by side."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7f7f7f", "#8c564b", "#17becf")

SCRIPTS = (
    "motion.js", "live.js", "runs.js", "things.js", "panel.js", "top.js", "many.js", "stage.js", "chart.js",
    "charts.js", "view.js", "gif.js", "record.js",
)  # fmt: skip


def view(
    sols: Trajectory | Sequence[Trajectory],
    path: str | Path | None = None,
    *,
    body: Body | None = None,
    title: str = "",
    overwrite: bool = False,
) -> Path:
    """Write a page that shows one trajectory, or several side by side in the same time; return its path.

    Without a path a notebook shows the page below the cell; elsewhere it is opened in the browser.

    The body is drawn with its shapes (those of `body`, if given; files do not store large meshes), or without shapes as
    its energy ellipsoid omega . I omega = 2 T. At most 20,000 states of each trajectory are shown. Between two states
    the attitude is the cubic that matches their attitudes and angular velocities.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> sol = ph.exact(ph.problems.t_handle(), [0.1 * i for i in range(100)])
    >>> page = ph.view(sol, Path(tempfile.mkdtemp()) / "handle.html")
    >>> page.suffix
    '.html'
    """
    several = several_of(sols)
    place = checked(path, overwrite)
    title = checked_title(title) or _title(several)
    empty = [s.method for s in several if not len(shown_indices(s, 1))]
    if empty:
        raise InputError(f"there is nothing to show: the trajectory of {empty[0] or 'a file'} has no finite state")
    check_body(body)
    return delivered(place, title, page(several, title, body))


def check_body(body: Any) -> None:
    """Refuse what has no shapes."""
    if body is not None and not isinstance(body, Body):
        raise InputError(f"body must be a ph.Body; got {type(body).__name__}", "body")


def several_of(sols: Any) -> list[Trajectory]:
    """The trajectories of a page as a list."""
    several: list[Any] = list(sols) if isinstance(sols, Iterable) and not isinstance(sols, str | np.ndarray) else [sols]
    strange = [type(s).__name__ for s in several if not isinstance(s, Trajectory)]
    if strange:
        raise InputError(f"view shows trajectories from ph.solve, ph.exact or ph.load; got {strange[0]}")
    if not 1 <= len(several) <= PANELS:
        raise InputError(f"view needs 1 to {PANELS} trajectories; got {len(several)}")
    return several


def page(sols: Sequence[Trajectory], title: str, body: Body | None = None) -> str:
    """The text of the page."""
    frames = min(FRAMES, ALL_FRAMES // len(sols))
    kept = [shown_indices(s, frames) for s in sols]
    looks = [drawn(s, None if body is None else body.looks) for s in sols]
    names = labels(sols)
    pulls = [pull for _, pull in looks]
    runs = [
        run_data(s, of, *look) | {"label": name, "how": how}
        for s, of, look, (name, how) in zip(sols, kept, looks, names, strict=True)
    ]
    data = {
        "runs": runs, "colours": COLOURS, "speeds": SPEEDS, "speed": speed_of(sols, kept, pulls),
        "up": upwards(sols[0], kept[0], pulls[0]), "note": note(sols, kept),
    }  # fmt: skip
    return filled(title, data)


def filled(title: str, data: Mapping[str, Any], kernel: str = "") -> str:
    """The text of a page with its data, and the kernel if it computes itself."""
    parts = {
        "title": html.escape(title),
        "style": _file("view.css"),
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "three": _file("three.js").replace("</script", "<\\/script"),
        "script": "\n".join([_file("data.js"), kernel.replace("</script", "<\\/script"), *map(_file, SCRIPTS)]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("page.html"))


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def checked_title(title: Any) -> str:
    """A title that a page may have."""
    if not isinstance(title, str) or not title.isprintable():
        raise InputError(f"title must be a line of text; got {title!r}")
    return title


def _title(sols: Sequence[Trajectory]) -> str:
    """The names of the problems, in words."""
    return " and ".join(sorted({s.info.title for s in sols}))
