"""A self-contained browser page of trajectories: the rotating body, polhode and herpolhode, the drift.

The page needs no network: it contains the 3D library (three.js, MIT licence, `three.LICENSE`).
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.invariants import energy_change, momentum_change
from ..errors import InputError
from ..physics.body import Body
from ..physics.problem import quaternion_of
from ..physics.shapes import Shape
from ..physics.validate import file_path, flag
from ..results.observables import thinned_indices
from ..results.store.atomic import place_for, write_whole
from ..results.trajectory import Trajectory

FRAMES, ALL_FRAMES = 20_000, 60_000
"""Most states shown of one trajectory, and of all together; more are thinned evenly."""

PANELS = 9
"""Most trajectories side by side."""

SPEEDS = (0.001, 0.01, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 64, 256, 1024, 10_000, 100_000)
"""Playback speeds in units of time per second."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7f7f7f", "#8c564b", "#17becf")

SCRIPTS = ("motion.js", "things.js", "panel.js", "stage.js", "chart.js", "view.js")

WIDE = math.pi
"""Largest rotation between two states, in radians, from which the motion between them can be interpolated."""

STEADY = 1e-3
"""If the spatial momentum changes less than this (relative), it points upwards in the picture."""


def view(
    sols: Trajectory | Sequence[Trajectory],
    path: str | Path,
    *,
    body: Body | None = None,
    title: str = "",
    overwrite: bool = False,
) -> Path:
    """Write a page that shows one trajectory, or several side by side in the same time; return its path.

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
    several = _several(sols)
    path = checked(path, overwrite)
    if not isinstance(title, str) or not title.isprintable():
        raise InputError(f"title must be a line of text; got {title!r}")
    empty = [s.method for s in several if not len(_shown_indices(s, 1))]
    if empty:
        raise InputError(f"there is nothing to show: the trajectory of {empty[0] or 'a file'} has no finite state")
    if body is not None and not isinstance(body, Body):
        raise InputError(f"body must be a ph.Body; got {type(body).__name__}")
    write_whole(path, page(several, title, body), durable=False)
    return path


def _several(sols: Any) -> list[Trajectory]:
    """The trajectories of a page as a list."""
    several: list[Any] = list(sols) if isinstance(sols, Iterable) and not isinstance(sols, str | np.ndarray) else [sols]
    strange = [type(s).__name__ for s in several if not isinstance(s, Trajectory)]
    if strange:
        raise InputError(f"view shows trajectories from ph.solve, ph.exact or ph.load; got {strange[0]}")
    if not 1 <= len(several) <= PANELS:
        raise InputError(f"view needs 1 to {PANELS} trajectories; got {len(several)}")
    return several


def page(sols: Sequence[Trajectory], title: str = "", body: Body | None = None) -> str:
    """The text of the page."""
    frames = min(FRAMES, ALL_FRAMES // len(sols))
    kept = [_shown_indices(s, frames) for s in sols]
    runs = [_run(s, of, s.info.shapes if body is None else body.looks) for s, of in zip(sols, kept, strict=True)]
    data = {
        "runs": runs, "colours": COLOURS, "speeds": SPEEDS, "speed": _speed(sols, kept), "up": _up(sols[0], kept[0]),
        "note": _note(sols, kept),
    }  # fmt: skip
    parts = {
        "title": html.escape(str(title or _title(sols))),
        "style": _file("view.css"),
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "three": _file("three.js").replace("</script", "<\\/script"),
        "script": "\n".join(map(_file, SCRIPTS)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("page.html"))


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def checked(path: str | Path, overwrite: bool) -> Path:
    """A path that a page may be written to."""
    path = file_path(path, "path must be the name of a page such as 'spin.html'")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the name of the page must end in .html; got {path}")
    if not path.parent.exists():
        raise InputError(f"there is no folder {path.parent}")
    if path.exists() and not flag("overwrite", overwrite):
        raise InputError(f"{path} exists; give another name, or overwrite=True (--overwrite)")
    return place_for(path)


# --- data of the page -------------------------------------------------------------------------------


def _run(sol: Trajectory, kept: np.ndarray, looks: Sequence[Shape]) -> dict[str, Any]:
    """One trajectory, its numbers as base64 of little-endian doubles."""
    moments, axes = np.linalg.eigh(np.array(sol.info.inertia))
    axes[:, 0] *= np.linalg.det(axes)
    with np.errstate(all="ignore"):  # the status reports a run that blew up
        arrays = {
            "t": sol.t[kept],
            "quaternion": sol.quaternion[kept],
            "momentum": sol.momentum[kept],
            "energy_change": np.abs(energy_change(sol.energy))[kept],
            "momentum_change": momentum_change(sol.spatial_momentum, np.eye(3))[kept],
        }
    return {
        "label": _label(sol),
        "moments": np.where(moments > 1e-9 * moments.max(), moments, 0.0).tolist(),
        "axes": list(quaternion_of(axes.tolist())),
        "shape": [_part(shape) for shape in looks] or None,
        **{name: _packed(array) for name, array in arrays.items()},
    }


def _part(shape: Shape) -> dict[str, Any]:
    """A shape as data for the page: vertices and faces, points, or a solid with its sizes in the usual order."""
    place = {"position": shape.position.tolist(), "quaternion": list(quaternion_of(shape.rotation.tolist()))}
    if shape.vertices is None:
        form: dict[str, Any] = {"kind": shape.name, "size": [float(x) for x in shape.sizes.values()]}
    else:
        form = {"kind": "points" if shape.faces is None else "mesh", "vertices": _packed(shape.vertices, "<f4")}
    if shape.faces is not None:
        form["faces"] = _packed(shape.faces, "<u4")
    return form | place | {"hole": shape.hole}


def _shown_indices(sol: Trajectory, most: int) -> np.ndarray:
    """Indices of the states to show, in order of time."""
    kept = thinned_indices(sol.quaternion, sol.momentum, most)
    return kept[np.argsort(sol.t[kept], kind="stable")]


def _packed(array: np.ndarray, kind: str = "<f8") -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _label(sol: Trajectory) -> str:
    return sol.info.made or "trajectory"


def _title(sols: Sequence[Trajectory]) -> str:
    names = {s.info.problem for s in sols if s.info.problem}
    return " and ".join(sorted(names)) if names else "rigid body"


def _speed(sols: Sequence[Trajectory], kept: Sequence[np.ndarray]) -> float:
    """Playback speed: real time, unless the rotation would be too fast or too slow; then about 3 s per turn."""
    spin = max(float(np.median(np.linalg.norm(s.omega[of], axis=1))) for s, of in zip(sols, kept, strict=True))
    if 0.3 <= spin <= 6 or not 0 < spin < math.inf:
        return 1.0
    return min(SPEEDS, key=lambda speed: abs(math.log(speed * spin / 2)))


def _up(sol: Trajectory, kept: np.ndarray) -> list[float]:
    """The upward direction: the spatial momentum if it is constant, else the third space axis."""
    momentum = sol.spatial_momentum[kept]
    size = float(np.linalg.norm(momentum[0]))
    steady = 0 < size < math.inf and momentum_change(momentum, np.eye(3)).max() < STEADY
    return (momentum[0] / size).tolist() if steady else [0.0, 0.0, 1.0]


def _note(sols: Sequence[Trajectory], kept: Sequence[np.ndarray]) -> str:
    """Warnings for the viewer: states too far apart, or an unfinished run."""
    notes = []
    for sol, of in zip(sols, kept, strict=True):
        spin = np.linalg.norm(sol.omega[of], axis=1)
        turn = float((np.maximum(spin[1:], spin[:-1]) * np.diff(sol.t[of])).max(initial=0.0))
        if turn > WIDE:
            notes.append(
                f"{_label(sol)}: the body turns up to {math.degrees(turn):.0f} degrees from one shown state to the "
                "next, so the motion between them is a guess; record more states, or view a shorter run"
            )
        if sol.status != "finished":
            notes.append(f"{_label(sol)}: the run is {sol.status} at t = {sol.t[-1]:g}")
    return ". ".join(notes)
