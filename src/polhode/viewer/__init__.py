"""Trajectories as one self-contained page for a browser: the body turning, polhode and herpolhode, the drift.

The page needs no network: the 3D library (three.js, MIT licence, `three.LICENSE`) lies within it.
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .. import shapes
from ..analysis.invariants import energy_change, momentum_change
from ..analysis.observables import shown
from ..body import Body
from ..errors import InputError
from ..problem import quaternion_of
from ..shapes import Shape
from ..trajectory import Trajectory

FRAMES = 20_000
"""States of a trajectory that are shown at most; more are thinned evenly."""

PANELS = 9
"""Trajectories side by side at most."""

SPEEDS = (0.001, 0.01, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 64, 256, 1024, 10_000, 100_000)
"""Units of time a second."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7f7f7f", "#8c564b", "#17becf")

WIDE = math.radians(100)
"""A larger turn between two frames is shown as a shorter one, or the other way round."""

STEADY = 1e-3
"""Below this relative change the momentum in space is upwards in the picture."""


def view(
    sols: Trajectory | Sequence[Trajectory],
    path: str | Path,
    *,
    body: Body | None = None,
    title: str = "",
    overwrite: bool = False,
) -> Path:
    """Write a page that shows one trajectory, or several side by side on the same clock; return its path.

    The body is drawn as its shapes (those of `body`, if it is given; large meshes are not kept with a trajectory), or
    without any as its energy ellipsoid omega . I omega = 2 T. At most 20,000 states of each trajectory are shown;
    between them the attitude goes along the shorter arc.
    """
    several = [sols] if isinstance(sols, Trajectory) else list(sols)
    path = checked(path, overwrite)
    if not several or len(several) > PANELS or not all(isinstance(s, Trajectory) for s in several):
        raise InputError(f"view needs 1 to {PANELS} trajectories; got {len(several)} things")
    empty = [s.method for s in several if not len(s)]
    if empty:
        raise InputError(f"there is nothing to show: the trajectory of {empty[0] or 'a file'} has no states")
    if body is not None and not isinstance(body, Body):
        raise InputError(f"body must be a ph.Body; got {type(body).__name__}")
    path.write_text(page(several, title, body), encoding="utf-8")
    return path


def page(sols: Sequence[Trajectory], title: str = "", body: Body | None = None) -> str:
    """The text of the page."""
    runs = [_run(s, shapes.read(s.info.looks) if body is None else body.looks) for s in sols]
    data = {
        "runs": runs, "colours": COLOURS, "speeds": SPEEDS, "speed": _speed(sols), "up": _up(sols), "note": _note(sols),
    }  # fmt: skip
    title = title or _title(sols)
    parts = {
        "title": html.escape(title),
        "style": _file("view.css"),
        "data": json.dumps(data).replace("<", "\\u003c"),
        "three": _file("three.js").replace("</script", "<\\/script"),
        "script": _file("view.js"),
    }
    text = _file("page.html")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def checked(path: str | Path, overwrite: bool) -> Path:
    """A path that a page may be written to."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a view is a page: its name must end in .html; got {path}")
    if not path.parent.exists():
        raise InputError(f"there is no folder {path.parent}")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; give another name, or overwrite=True (--overwrite)")
    return path


# --- what the page is given -------------------------------------------------------------------------


def _run(sol: Trajectory, looks: Sequence[Shape]) -> dict[str, Any]:
    """One trajectory, its numbers as base64 of little-endian doubles."""
    kept = _kept(sol)
    moments, axes = np.linalg.eigh(np.array(sol.info.inertia))
    axes[:, 0] *= np.linalg.det(axes)
    omega, momentum = sol.omega[kept], sol.momentum[kept]
    arrays = {
        "t": sol.t[kept],
        "quaternion": sol.quaternion[kept],
        "omega": omega,
        "momentum": momentum,
        "twice_kinetic": (omega * momentum).sum(axis=1),
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
    """A shape as the page takes it: corners and faces, points, or a solid with its sizes in the order of its name."""
    place = {"position": shape.position.tolist(), "quaternion": list(quaternion_of(shape.rotation.tolist()))}
    if shape.faces is not None and shape.vertices is not None:
        form: dict[str, Any] = {"kind": "mesh", "vertices": shape.vertices.tolist(), "faces": shape.faces.tolist()}
    elif shape.vertices is not None:
        form = {"kind": "points", "vertices": shape.vertices.tolist()}
    else:
        form = {"kind": shape.name, "size": [float(x) for x in shape.sizes.values()]}
    return form | place | {"hole": shape.hole}


def _kept(sol: Trajectory) -> np.ndarray:
    return shown(sol.quaternion, sol.momentum, FRAMES)


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode()


def _label(sol: Trajectory) -> str:
    return sol.info.made or "trajectory"


def _title(sols: Sequence[Trajectory]) -> str:
    names = {s.info.problem for s in sols if s.info.problem}
    return " and ".join(sorted(names)) if names else "rigid body"


def _speed(sols: Sequence[Trajectory]) -> float:
    """Real time, unless the body would whirl or hardly turn: then about a turn in three seconds."""
    spin = max(float(np.median(np.linalg.norm(s.omega, axis=1))) for s in sols)
    if 0.3 <= spin <= 6 or spin == 0:
        return 1.0
    return min(SPEEDS, key=lambda speed: abs(math.log(speed * spin / 2)))


def _up(sols: Sequence[Trajectory]) -> list[float]:
    """The momentum in space where it stays, else the third axis of space."""
    first = sols[0].spatial_momentum
    size = float(np.linalg.norm(first[0]))
    steady = size > 0 and momentum_change(first, np.eye(3)).max() < STEADY
    return (first[0] / size).tolist() if steady else [0.0, 0.0, 1.0]


def _note(sols: Sequence[Trajectory]) -> str:
    """What the viewer should know: frames too far apart, or a run that did not end."""
    said = []
    for sol in sols:
        kept = sol.quaternion[_kept(sol)]
        overlap = np.abs((kept[1:] * kept[:-1]).sum(axis=1)).clip(max=1)
        turn = float(2 * np.arccos(overlap.min())) if len(overlap) else 0.0
        if turn > WIDE:
            said.append(
                f"{_label(sol)}: up to {math.degrees(turn):.0f} degrees from one state kept to the next, so the "
                "turning between them is a guess; keep more states"
            )
        if sol.status != "finished":
            said.append(f"{_label(sol)}: the run is {sol.status}")
    return ". ".join(said)
