"""Pictures of a moving body without a browser: triangles and lines in order of their depth, drawn by Pillow."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ..physics.triangles import Mesh

FINER = 2
"""Pictures are drawn this many times larger and reduced, for smooth edges."""

PAPER, INK, SOFT = (244, 246, 248), (34, 48, 60), (110, 116, 124)
OMEGA, AXIS, TRAIL = (194, 24, 91), (184, 134, 11), (142, 68, 173)
GROUND, FAINT, PULL, HOLE = (196, 190, 178), (205, 210, 216), (165, 101, 42), (50, 50, 50)
NEARER = 0.15
"""Holes end in the surface that they are cut into, and are drawn before it."""
HALF_VIEW = math.radians(35 / 2)
"""Half of the camera's field of view, that of the page."""


@dataclasses.dataclass(frozen=True)
class Camera:
    """Looks at `target` from a little above, with `up` upwards; pictures have `size` pixels."""

    up: np.ndarray
    target: np.ndarray
    size: tuple[int, int]

    @functools.cached_property
    def axes(self) -> np.ndarray:
        """Rows: to the right, upwards in the picture, and towards the viewer."""
        aside = np.eye(3)[0 if abs(self.up[0]) < 0.9 else 1]
        away = aside - (aside @ self.up) * self.up
        back = 7.4 * away / np.linalg.norm(away) + 2.6 * self.up
        back /= np.linalg.norm(back)
        right = np.cross(self.up, back)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(back, right), back])

    @property
    def distance(self) -> float:
        """From the viewer to the target."""
        return math.hypot(7.4, 2.6)

    def seen(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pixels (n, 2) and depths (n,), larger for what is nearer."""
        x, y, z = ((np.asarray(points) - self.target) @ self.axes.T).T
        width, height = self.size
        scale = min(width, height) / 2 / math.tan(HALF_VIEW) / (self.distance - z)
        return np.stack([width / 2 + scale * x, height / 2 - scale * y], -1), z


class Canvas:
    """Collects what is to be drawn in one picture."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self.items: list[tuple[float, Any]] = []

    def mesh(self, part: Mesh, turn: np.ndarray, scale: float, colour: Sequence[float]) -> None:
        """Triangles in the light of a lamp beside the viewer; those that face away are not seen."""
        vertices = scale * part.vertices @ turn.T
        at, depth = self.camera.seen(vertices)
        light = np.asarray(colour, dtype=float)
        tint = light if part.hole else 0.4 * light + 0.6 * 255
        lamp = self.camera.axes.T @ np.array([0.35, 0.6, 0.72])
        for faces, ink in ((part.light, light), (part.dark, tint)):
            corner = vertices[faces]
            normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
            normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
            p = at[faces]
            one, two = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
            seen = one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0] < 0  # pixels count downwards
            shade = 0.45 + 0.55 * np.clip(normal @ lamp, 0.0, 1.0)
            colours = np.clip(shade[:, None] * ink, 0, 255).astype(int)
            middle = depth[faces].mean(axis=1) + (NEARER if part.hole else 0.0)
            for k in np.flatnonzero(seen):
                self.items.append((middle[k], ("face", p[k].ravel().tolist(), tuple(colours[k].tolist()))))

    def line(self, points: np.ndarray, colour: tuple[int, int, int], width: float) -> None:
        """A line through points, each piece at its own depth."""
        at, depth = self.camera.seen(points)
        for k in range(len(at) - 1):
            ends = [*at[k].tolist(), *at[k + 1].tolist()]
            self.items.append(((depth[k] + depth[k + 1]) / 2, ("line", ends, colour, width)))

    def arrow(
        self, start: np.ndarray, end: np.ndarray, colour: tuple[int, int, int], name: str, *, beside: bool = False
    ) -> None:
        """An arrow with a letter beyond its tip, or beside it."""
        if np.linalg.norm(end - start) < 1e-9:
            return
        self.line(start + np.linspace(0, 1, 9)[:, None] * (end - start), colour, 3.0)
        (tip, tail), depth = self.camera.seen(np.stack([end, start]))
        along = (tip - tail) / max(float(np.linalg.norm(tip - tail)), 1e-9)
        across = np.array([-along[1], along[0]])
        size = 0.02 * min(self.camera.size)
        head = [tip + size * along, tip - size * along + 0.6 * size * across, tip - size * along - 0.6 * size * across]
        self.items.append((depth[0], ("face", np.concatenate(head).tolist(), colour)))
        place = tip + (2.0 * size * across if beside else 2.6 * size * along)
        self.items.append((math.inf, ("text", place.tolist(), colour, name)))

    def disc(self, centre: np.ndarray, radius: float, colour: tuple[int, int, int]) -> None:
        """A horizontal disc behind everything else."""
        points = centre + radius * circle(self.camera.up)
        self.items.append((-math.inf, ("face", self.camera.seen(points)[0].ravel().tolist(), colour)))

    def picture(self, title: Sequence[str]) -> Image.Image:
        """The picture, with lines of text in the corner."""
        width, height = self.camera.size
        image = Image.new("RGB", (FINER * width, FINER * height), PAPER)
        pen = ImageDraw.Draw(image)
        for _, (kind, at, colour, *rest) in sorted(self.items, key=lambda item: item[0]):
            place = [FINER * x for x in at]
            if kind == "face":
                pen.polygon(place, fill=colour)
            elif kind == "line":
                pen.line(place, fill=colour, width=max(1, round(FINER * rest[0])), joint="curve")
            else:
                pen.text((place[0], place[1]), rest[0], fill=colour, font=font(FINER * 15), anchor="mm")
        for k, text in enumerate(title):
            ink = INK if k == 0 else SOFT
            pen.text((FINER * 10, FINER * (8 + 19 * k)), text, fill=ink, font=font(FINER * (15 if k == 0 else 13)))
        return image.resize((width, height), Image.Resampling.LANCZOS)


def circle(normal: np.ndarray, number: int = 72) -> np.ndarray:
    """Points of the unit circle about an axis, closed."""
    one = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    one /= np.linalg.norm(one)
    angle = np.linspace(0.0, 2 * math.pi, number + 1)[:, None]
    return np.asarray(np.cos(angle) * one + np.sin(angle) * np.cross(normal, one))


def finer(part: Mesh, longest: float) -> Mesh:
    """The mesh with its longer edges halved until none exceeds a length: only small triangles have one depth."""
    vertices, groups = part.vertices, list[np.ndarray]()
    for group in (part.light, part.dark):
        faces = group
        while True:
            edges = vertices[np.roll(faces, -1, axis=1)] - vertices[faces]
            lengths = np.linalg.norm(edges, axis=2)
            long = lengths.max(axis=1, initial=0.0) > longest
            if not long.any():
                break
            place = lengths[long].argmax(axis=1)[:, None]
            a, b, c = (np.take_along_axis(faces[long], (place + k) % 3, axis=1)[:, 0] for k in range(3))
            middle = len(vertices) + np.arange(len(a))
            vertices = np.concatenate([vertices, (vertices[a] + vertices[b]) / 2])
            halves = [np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)]
            faces = np.concatenate([faces[~long], *halves])
        groups.append(faces)
    light, dark = groups
    return Mesh(vertices, None, light, dark, part.hole)


@functools.cache
def font(size: int) -> Any:
    """The typeface of Matplotlib, which has Greek letters."""
    import matplotlib as mpl

    return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
