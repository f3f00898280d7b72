"""A page of many bodies in one scene, coloured by a number of each: ensembles, and molecules made of sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..physics import library
from ..physics.body import Body
from ..physics.periodic_box import PeriodicBox
from ..physics.shapes import to_json
from ..physics.triangles import Mesh, balls, meshes, reach
from ..physics.validate import real_array, several
from ..results.ensemble import Ensemble
from ..results.trajectory import Trajectory
from ..run.sites import Sites
from . import checked_title, filled
from .data import SPEEDS, WIDE, drawn, largest_turn, packed, part_data, pleasant, principal, shown_indices
from .delivery import checked, delivered
from .looks import default_shapes, energy_ellipsoid
from .motion import attitudes_at

MOST_BODIES, MOST_STATES = 1000, 600_000
"""Most bodies in a scene, and most states of all bodies together; more states are thinned evenly."""

SPACING, HALF_VIEW = 1.9, 2.1
"""Distance of neighbours in units of their extent, and half the extent of what is drawn."""

SMOOTH = 0.4
"""Rotation between two shown states of an ensemble, in radians, if there is room for them."""

RAMP = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
"""Colours from the lowest to the highest value: viridis, which is also told apart in grey."""


def view_many(
    t: Any,
    quaternion: Any,
    path: str | Path | None = None,
    *,
    body: Body | Sites | Sequence[Body],
    positions: Any = None,
    colour: Any = None,
    statistic: str = "",
    box: PeriodicBox | Sequence[float] | None = None,
    title: str = "",
    overwrite: bool = False,
) -> Path:
    """Write a page that shows many moving bodies in one scene; return its path.

    Without a path a notebook shows the page below the cell; elsewhere it is opened in the browser.

    Parameters
    ----------
    t : (n,) times
    quaternion : (n, N, 4) attitudes, body to space, SCALAR FIRST
    body : the body of all, one for each, or the sites of molecules (`ph.sites`)
    positions : (n, N, 3), or (N, 3) if they do not move; by default the bodies are arranged in rows
    colour : (N,) or (n, N) numbers that choose the colours, such as energies; `statistic` is their name
    box : a periodic box, or its three edges; its corner is at the origin

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> momenta = [[1.0, 0.01, 0.0], [0.0, 1.0, 0.01]]
    >>> many = ph.ensemble([1.5, 2.0, 2.5], None, momenta, "dmv10", dt=0.1, steps=10, every=1)
    >>> page = Path(tempfile.mkdtemp()) / "many.html"
    >>> ph.view_many(many.t, many.quaternion, page, body=ph.Body([1.5, 2.0, 2.5])).name
    'many.html'
    """
    if not isinstance(statistic, str) or not statistic.isprintable():
        raise InputError(f"statistic must be the name of the colours; got {statistic!r}", "statistic")
    times, q = _states(t, quaternion)
    number = q.shape[1]
    looks, look = _looks(body, number)
    edges = _edges(box)
    values = _values(colour, len(times), number)
    place, title = checked(path, overwrite), checked_title(title) or "Rigid bodies"
    places = _places(positions, len(times), number, looks)
    kept = _thinned(len(times), number)
    data = _data(times, q, places, values, kept) | {
        "shapes": [[part_data(part) for part in parts] for parts in looks], "look": look, "box": edges,
        "statistic": statistic, "label": f"{number} bodies",
    } | _framed(places, looks, edges)  # fmt: skip
    apart = _largest_turn(q[kept])
    note = "" if apart < 0.5 * WIDE else (
        f"some body turns {math.degrees(apart):.0f} degrees or more from one shown state to the next, so the motion "
        "between them is a guess; record more states"
    )  # fmt: skip
    spin = apart / max(float(np.median(np.diff(times[kept]))) if len(kept) > 1 else 1.0, 1e-300)
    page = {
        "runs": [], "colours": RAMP, "ramp": RAMP, "speeds": SPEEDS, "speed": pleasant(spin), "up": [0.0, 0.0, 1.0],
        "note": note, "many": data,
    }  # fmt: skip
    return delivered(place, title, filled(title, page))


def view_ensemble(
    many: Ensemble,
    path: str | Path | None,
    bodies: Sequence[int],
    colour: Any,
    positions: Any,
    title: str,
    overwrite: bool,
) -> Path:
    """Write a page with the bodies of an ensemble in one scene; see `Ensemble.view`."""
    chosen = np.asarray(bodies)
    if not 1 <= len(chosen) <= MOST_BODIES:
        raise InputError(f"one scene holds 1 to {MOST_BODIES} bodies; got {len(chosen)}: choose some with bodies=")
    sols = [many[int(i)] for i in chosen]
    times, q = _resampled(sols)
    values, name = _statistic(many, colour)
    if values is not None:
        if values.shape not in ((len(many),), (len(many.t), len(many))):
            raise InputError(
                f"colour must be a name, or numbers ({len(many)},) or {(len(many.t), len(many))}; got shape "
                f"{values.shape}", "colour",
            )  # fmt: skip
        values = values[..., chosen]
        if values.ndim == 2:
            values = np.stack([np.interp(times, s.t, values[: len(s.t), k]) for k, s in enumerate(sols)], -1)
    shown: dict[Any, Body] = {}  # bodies that look alike are one
    keys = [(sol.info.inertia, to_json(sol.info.shapes)) for sol in sols]
    for key, sol in zip(keys, sols, strict=True):
        if key not in shown:
            shown[key] = Body([1.0, 1.0, 1.0], shapes=drawn(sol, None)[0] or [energy_ellipsoid(*principal(sol))])
    page = title or library.title(many.known_bodies.name) or "Ensemble"
    body = [shown[key] for key in keys]
    return view_many(
        times, q, path, body=body, positions=positions, colour=values, statistic=name, title=page, overwrite=overwrite
    )


def _resampled(sols: Sequence[Trajectory]) -> tuple[np.ndarray, np.ndarray]:
    """Common times and the attitudes at them, NaN outside of the run of a body."""
    kept = [shown_indices(s, 20_000) for s in sols]
    start = min(float(s.t[k[0]]) for s, k in zip(sols, kept, strict=True))
    end = max(float(s.t[k[-1]]) for s, k in zip(sols, kept, strict=True))
    spin = max(float(np.linalg.norm(s.omega[k], axis=1).max()) for s, k in zip(sols, kept, strict=True))
    wish = math.ceil(spin * (end - start) / SMOOTH) + 1
    times = np.linspace(start, end, max(2, min(wish, MOST_STATES // len(sols)))) if end > start else np.array([start])
    q = np.stack([attitudes_at(s, k, times) for s, k in zip(sols, kept, strict=True)], 1)
    for number, (s, k) in enumerate(zip(sols, kept, strict=True)):
        q[(times < s.t[k[0]]) | (times > s.t[k[-1]]), number] = np.nan
    wide = [i for i, (s, k) in enumerate(zip(sols, kept, strict=True)) if largest_turn(s, k) > WIDE]
    if wide:
        raise InputError(
            f"the stored states of {len(wide)} of {len(sols)} bodies are more than half a turn apart, so the motion "
            "between them is not known; store more of them (every= or times=)"
        )
    return times, q


def _statistic(many: Ensemble, colour: Any) -> tuple[np.ndarray | None, str]:
    """Numbers by which bodies are coloured, (N,) or (n, N), and their name."""
    if colour is None:
        return None, ""
    if not isinstance(colour, str):
        return real_array(colour, "colour must be a name or numbers (N,) or (n, N)", key="colour"), ""
    known: dict[str, Any] = {
        "energy": lambda: many.energy, "drift": lambda: _drift_of_energy(many),
        "energy_change": lambda: many.changes()["energy"],
    }  # fmt: skip
    known |= {name: (lambda s=s: s) for name in ("steps", "error_estimate") if (s := getattr(many, name)) is not None}
    for name, found in many.statistics.items():
        for part in ("first", "last", "min", "max", "mean", "drift"):
            if getattr(found, part).ndim == 1:
                known[f"{name}.{part}"] = lambda found=found, part=part: getattr(found, part)
    if colour not in known:
        raise InputError(f"colour must be numbers or one of {', '.join(known)}; got {colour!r}", "colour")
    change = "largest relative change of the energy"
    names = {"drift": change, "energy_change": change, "error_estimate": "estimated error"}
    return np.asarray(known[colour](), dtype=float), names.get(colour, colour)


def _drift_of_energy(many: Ensemble) -> np.ndarray:
    drift = many.drift()
    if "energy" not in drift:
        raise InputError("these bodies do not conserve their energy; use colour='energy_change'", "colour")
    return drift["energy"]


# --- what view_many is given ------------------------------------------------------------------------


def _states(t: Any, quaternion: Any) -> tuple[np.ndarray, np.ndarray]:
    times = np.atleast_1d(real_array(t, "t must be times (n,)", key="t"))
    q = real_array(quaternion, "quaternion must be attitudes (n, N, 4)", key="quaternion")
    if times.ndim != 1 or not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise InputError(f"t must be finite increasing times (n,); got shape {times.shape}", "t")
    if q.ndim != 3 or q.shape[2] != 4 or len(q) != len(times) or not 1 <= q.shape[1] <= MOST_BODIES:
        raise InputError(
            f"quaternion must have the shape ({len(times)}, N, 4) with N from 1 to {MOST_BODIES}; got {q.shape}",
            "quaternion",
        )
    return times, q


def _looks(body: Any, number: int) -> tuple[list[list[Mesh]], list[int]]:
    """The different looks of the bodies as meshes, and the number of the look of each body."""
    if isinstance(body, Sites):
        kinds = body.kinds if body.kinds.size else np.zeros(number, dtype=int)
        if len(kinds) != number:
            raise InputError(
                f"there are {len(kinds)} molecules in the sites, and {number} in the attitudes; give one attitude "
                "for each",
                "body",
            )
        arms, masses = np.atleast_3d(body.arms.T).T, np.atleast_2d(body.masses)
        return [_molecule(a, m) for a, m in zip(arms, masses, strict=True)], kinds.tolist()
    expected = f"body must be a ph.Body, one for each of {number} bodies, or ph.sites"
    bodies = [body] if isinstance(body, Body) else several(body, expected, "body")
    if len(bodies) not in (1, number) or not all(isinstance(one, Body) for one in bodies):
        raise InputError(f"{expected}; got {body!r}", "body")
    different = {id(one): one for one in bodies}
    place = {key: i for i, key in enumerate(different)}
    look = [place[id(one)] for one in (bodies * number if len(bodies) == 1 else bodies)]
    return [_meshes_of(one) for one in different.values()], look


def _meshes_of(body: Body) -> list[Mesh]:
    """The shapes of a body, or the box with its moments."""
    return meshes(body.looks or default_shapes(body.moments, body.axes, None))


def _molecule(arms: np.ndarray, masses: np.ndarray) -> list[Mesh]:
    """Sites as spheres that overlap; sites without mass are not drawn, and light ones have the other colour."""
    solid = masses > 0
    centres, weights = arms[solid], masses[solid]
    apart = np.linalg.norm(centres[:, None] - centres, axis=-1)
    nearest = float(apart[apart > 0].min()) if (apart > 0).any() else 1.0
    relative = np.cbrt(weights / weights.max())
    return [balls(centres, 0.62 * nearest * np.clip(relative, 0.6, 1.0), dark=relative < 0.7)]


def _edges(box: Any) -> list[float] | None:
    if box is None:
        return None
    lengths = box.lengths if isinstance(box, PeriodicBox) else box
    edges = real_array(lengths, "box must be a ph.PeriodicBox or three edges", key="box")
    if edges.shape != (3,) or not (np.isfinite(edges) & (edges > 0)).all():
        raise InputError(f"box must be a rectangular ph.PeriodicBox or three positive edges; got {box!r}", "box")
    return [float(x) for x in edges]


def _values(colour: Any, states: int, number: int) -> np.ndarray | None:
    if colour is None:
        return None
    values = real_array(colour, "colour must be numbers (N,) or (n, N)", key="colour")
    if values.shape not in ((number,), (states, number)):
        raise InputError(
            f"colour must have the shape ({number},) or ({states}, {number}); got {values.shape}", "colour"
        )
    return values


def _places(positions: Any, states: int, number: int, looks: list[list[Mesh]]) -> np.ndarray:
    """Positions as given, or rows and columns in the plane of y and z."""
    if positions is not None:
        places = real_array(positions, "positions must be (n, N, 3) or (N, 3)", key="positions")
        if places.shape not in ((number, 3), (states, number, 3)):
            raise InputError(
                f"positions must have the shape ({number}, 3) or ({states}, {number}, 3); got {places.shape}",
                "positions",
            )
        return places
    columns = math.ceil(math.sqrt(number))
    k, wide = np.arange(number), SPACING * max(map(reach, looks))
    return np.stack([np.zeros(number), wide * (k % columns), -wide * (k // columns)], -1)


# --- data of the page -------------------------------------------------------------------------------


def _thinned(states: int, number: int) -> np.ndarray:
    most = min(states, max(2, MOST_STATES // number))
    return np.unique(np.linspace(0, states - 1, most).round().astype(int))


def _data(
    times: np.ndarray, q: np.ndarray, places: np.ndarray, values: np.ndarray | None, kept: np.ndarray
) -> dict[str, Any]:
    """The arrays of the page: single precision is enough for a picture."""
    fine = np.zeros(1) if values is None else values[np.isfinite(values)]
    span = [float(fine.min()), float(fine.max())] if fine.size else [0.0, 1.0]
    return {
        "t": packed(times[kept]), "number": q.shape[1], "quaternion": packed(q[kept], "<f4"), "range": span,
        "positions": packed(places if places.ndim == 2 else places[kept], "<f4"),
        "values": None if values is None else packed(values if values.ndim == 1 else values[kept], "<f4"),
    }  # fmt: skip


def _framed(places: np.ndarray, looks: list[list[Mesh]], edges: list[float] | None) -> dict[str, Any]:
    """The middle of the scene, and the scale that makes it fill the picture."""
    finite = places.reshape(-1, 3)[np.isfinite(places).all(axis=-1).ravel()]
    low, high = (np.zeros(3), np.array(edges)) if edges else (finite.min(axis=0), finite.max(axis=0))
    margin = max(map(reach, looks))
    depth, width, height = (high - low) / 2 + margin  # what is nearer to the camera, at x, looks larger
    half = max(width, height) + 0.25 * (depth - margin)
    return {"centre": ((low + high) / 2).tolist(), "scale": float(HALF_VIEW / half)}


def _largest_turn(q: np.ndarray) -> float:
    """The largest rotation of any body from one state to the next, at most half a turn."""
    near = np.abs((q[1:] * q[:-1]).sum(axis=-1))
    near = near[np.isfinite(near)]
    return float(2 * np.arccos(np.clip(near.min(), 0.0, 1.0))) if near.size else 0.0
