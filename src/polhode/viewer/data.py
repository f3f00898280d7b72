"""The data of a page: trajectories as arrays, thinned, with what is drawn of them."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..analysis.invariants import energy_change, momentum_change
from ..physics.shapes import Shape
from ..physics.triangles import Mesh, meshes, reach
from ..physics.validate import quaternion_of
from ..results.observables import thinned_indices
from ..results.trajectory import Trajectory
from .looks import default_shapes
from .uniform_pull import UniformPull, uniform_pull

SPEEDS = (0.001, 0.01, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 64, 256, 1024, 10_000, 100_000)
"""Playback speeds in units of time per second."""

WIDE = math.pi
"""Largest rotation between two states, in radians, from which the motion between them can be interpolated."""

STEADY = 1e-3
"""If the spatial momentum changes less than this (relative), it points upwards in the picture."""

PLEASANT, PLEASANT_TOP = (0.3, 2.0, 6.0), (3.0, 9.0, 14.0)
"""Slowest, chosen and fastest angular velocity on the screen, radians per second; a top spins faster."""


def is_free(sol: Trajectory) -> bool:
    """True if no torque acts, and Poinsot's ellipsoid rolls on the invariable plane."""
    return not sol.info.field and sol.control is None and not sol.has_varying_inertia


def shown_indices(sol: Trajectory, most: int) -> np.ndarray:
    """Indices of the states to show, in order of time."""
    kept = thinned_indices(sol.quaternion, sol.momentum, most)
    return kept[np.argsort(sol.t[kept], kind="stable")]


def principal(sol: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments, and the axes as columns of a rotation."""
    moments, axes = np.linalg.eigh(np.array(sol.info.inertia))
    axes[:, 0] *= np.linalg.det(axes)
    return np.where(moments > 1e-9 * moments.max(), moments, 0.0), axes


def drawn(sol: Trajectory, shapes: Sequence[Shape] | None) -> tuple[Sequence[Shape], UniformPull | None]:
    """The shapes that are drawn, and the pull on the body; a free body without shapes is its energy ellipsoid."""
    own = sol.info.shapes if shapes is None else shapes
    pull = uniform_pull(sol.problem, own)
    moments, axes = principal(sol)
    if own or is_free(sol) or not moments.all():
        return own, pull
    return default_shapes(moments, axes, pull), pull


def run_data(sol: Trajectory, kept: np.ndarray, look: Sequence[Shape], pull: UniformPull | None) -> dict[str, Any]:
    """One trajectory, its numbers as base64 of little-endian doubles."""
    moments, axes = principal(sol)
    parts = meshes(look)
    with np.errstate(all="ignore"):  # the status reports a run that blew up
        arrays = {
            "t": sol.t[kept],
            "quaternion": sol.quaternion[kept],
            "momentum": sol.momentum[kept],
            "energy_change": np.abs(energy_change(sol.energy))[kept],
            "momentum_change": momentum_change(sol.spatial_momentum, np.eye(3))[kept],
        }
    return {
        "conserves": sol.conserved is not None and sol.conserved.energy,
        "moments": moments.tolist(),
        "axes": list(quaternion_of(axes.tolist())),
        "shape": [part_data(part) for part in parts] or None,
        "reach": reach(parts),
        "free": is_free(sol),
        "pull": None if pull is None else _pull_data(pull),
        **{name: packed(array) for name, array in arrays.items()},
    }


def _pull_data(pull: UniformPull) -> dict[str, Any]:
    return {"down": pull.down.tolist(), "arm": pull.arm.tolist(), "name": pull.name, "weight": pull.is_weight}


def part_data(part: Mesh) -> dict[str, Any]:
    """A mesh as data for the page."""
    return {
        "vertices": packed(part.vertices, "<f4"),
        "normals": None if part.normals is None else packed(part.normals, "<f4"),
        "light": packed(part.light, "<u4"),
        "dark": packed(part.dark, "<u4"),
        "hole": part.hole,
    }


def packed(array: np.ndarray, kind: str = "<f8") -> str:
    """An array as base64."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def label(sol: Trajectory) -> str:
    """The name of a trajectory in messages, and beside others of the same problem."""
    return sol.info.made or "trajectory"


def labels(sols: Sequence[Trajectory]) -> list[tuple[str, str]]:
    """What moves and, in small print, how it was computed; of several runs of one problem only how."""
    if len(sols) > 1 and len({sol.info.title for sol in sols}) == 1:
        return [(label(sol), "") for sol in sols]
    return [(sol.info.title, sol.info.made and f"computed by {sol.info.made}") for sol in sols]


def speed_of(sols: Sequence[Trajectory], kept: Sequence[np.ndarray], pulls: Sequence[UniformPull | None]) -> float:
    """Playback speed: real time, unless the rotation would be too fast or too slow to see."""
    spin = max(float(np.median(np.linalg.norm(s.omega[of], axis=1))) for s, of in zip(sols, kept, strict=True))
    return pleasant(spin, any(pull is not None and pull.is_weight for pull in pulls))


def pleasant(spin: float, is_top: bool = False) -> float:
    """Playback speed for an angular velocity."""
    slowest, chosen, fastest = PLEASANT_TOP if is_top else PLEASANT
    if slowest <= spin <= fastest or not 0 < spin < math.inf:
        return 1.0
    return min(SPEEDS, key=lambda speed: abs(math.log(speed) + math.log(spin) - math.log(chosen)))


def upwards(sol: Trajectory, kept: np.ndarray, pull: UniformPull | None) -> list[float]:
    """The upward direction: against the weight, else the spatial momentum if it is constant, else z."""
    if pull is not None and pull.is_weight:
        return (-pull.down).tolist()
    momentum = sol.spatial_momentum[kept]
    size = float(np.linalg.norm(momentum[0]))
    steady = 0 < size < math.inf and momentum_change(momentum, np.eye(3)).max() < STEADY
    return (momentum[0] / size).tolist() if steady else [0.0, 0.0, 1.0]


def note(sols: Sequence[Trajectory], kept: Sequence[np.ndarray]) -> str:
    """Warnings for the viewer: states too far apart, or an unfinished run."""
    notes = []
    for sol, of in zip(sols, kept, strict=True):
        turn = largest_turn(sol, of)
        if turn > WIDE:
            notes.append(
                f"{label(sol)}: the body turns up to {math.degrees(turn):.0f} degrees from one shown state to the "
                "next, so the motion between them is a guess; record more states, or view a shorter run"
            )
        if sol.status != "finished":
            notes.append(f"{label(sol)}: the run is {sol.status} at t = {sol.t[-1]:g}")
    return ". ".join(notes)


def largest_turn(sol: Trajectory, kept: np.ndarray) -> float:
    """Largest rotation from one shown state to the next, in radians."""
    spin = np.linalg.norm(sol.omega[kept], axis=1)
    return float((np.maximum(spin[1:], spin[:-1]) * np.diff(sol.t[kept])).max(initial=0.0))
