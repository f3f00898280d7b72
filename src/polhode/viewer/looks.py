"""What a body looks like: its own shapes, or solids that have its moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..physics import equimomental
from ..physics.shapes import Shape
from .uniform_pull import UniformPull

PARALLEL = 1e-6
"""Largest sine of the angle between an arm and a principal axis that count as parallel."""


def default_shapes(moments: np.ndarray, axes: np.ndarray, pull: UniformPull | None) -> tuple[Shape, ...]:
    """Solids with given principal moments, in the axes of the body; under weight they stand on an axle."""
    if pull is not None and pull.is_weight:
        along = axes.T @ pull.arm
        axis = int(np.abs(along).argmax())
        if np.linalg.norm(np.delete(along, axis)) < PARALLEL:
            shapes: Sequence[Shape] = equimomental.plate(moments.tolist(), axis, float(np.sign(along[axis])))
            return tuple(shape.turned(axes) for shape in shapes)
    return tuple(shape.turned(axes) for shape in equimomental.box(moments.tolist()))


def energy_ellipsoid(moments: np.ndarray, axes: np.ndarray) -> Shape:
    """The ellipsoid omega . I omega = 2 T of a free body, of unit size; a rod if a moment is zero."""
    if not moments.all():
        empty = axes[:, int(moments.argmin())]
        side = np.cross(empty, np.eye(3)[np.abs(empty).argmin()])
        side /= np.linalg.norm(side)
        return Shape(
            "cylinder", {"radius": 0.05, "height": 2.0}, rotation=np.stack([side, np.cross(empty, side), empty], 1)
        )
    a, b, c = np.sqrt(moments.min() / moments).tolist()
    return Shape("ellipsoid", {"a": a, "b": b, "c": c}, rotation=axes)
