"""Solids with given principal moments, for pictures of bodies that are defined by their moments alone.

Two bodies with equal mass and moments move alike. The mass is 1 here: pictures are drawn to their own scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .shapes import Shape

THIN = 0.03
"""Least edge of a box and thickness of rods and plates, relative to the largest extent, so that they are visible."""

Z_TO_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
Z_TO_Y = Z_TO_X.T
TO_AXIS = (Z_TO_X, Z_TO_Y, np.eye(3))
"""Rotations that take the z axis to the axes x, y and z."""


def box(moments: Sequence[float]) -> tuple[Shape, ...]:
    """The uniform box: I1 = (b^2 + c^2)/12 and so on, hence a^2 = 6 (I2 + I3 - I1)."""
    a, b, c = moments
    squares = 6 * np.array([b + c - a, c + a - b, a + b - c])
    edges = np.sqrt(np.maximum(squares, THIN**2 * squares.max())).tolist()
    return (Shape("box", dict(zip("abc", edges, strict=True))),)


def cone(moments: Sequence[float]) -> tuple[Shape, ...]:
    """The uniform cone that stands on its apex, the pivot: I3 = 3 r^2/10, I1 = I2 = 3 (r^2/4 + h^2)/5."""
    across, _, along = moments
    square = 10 * along / 3
    height = math.sqrt(5 * across / 3 - square / 4)
    upside_down = np.diag([1.0, -1.0, -1.0])  # `Body.cone` has its apex up, and its centre of mass at the origin
    sizes = {"radius": math.sqrt(square), "height": height}
    return (Shape("cone", sizes, np.array([0.0, 0.0, 3 * height / 4]), upside_down),)


def plate(moments: Sequence[float], axis: int = 2, sign: float = 1.0) -> tuple[Shape, ...]:
    """A thin plate on an axle without mass, which leads from the pivot along a principal axis to its centre.

    At the distance l, a plate with the edges a and b has I1 = b^2/12 + l^2, I2 = a^2/12 + l^2 and I3 = (a^2 + b^2)/12;
    a disc of radius r has r^2 = a^2/3. Hence l^2 = (I1 + I2 - I3)/2.
    """
    first, second, along = (moments[(axis + i) % 3] for i in (1, 2, 3))
    square = max(0.0, (first + second - along) / 2)
    a, b = (math.sqrt(max(0.0, 12 * (moment - square))) for moment in (second, first))
    far = math.sqrt(square) or 0.5 * max(a, b)
    thin = THIN * max(a, b, far)
    turned = TO_AXIS[axis]
    to = sign * turned[:, 2]
    axle = Shape("cylinder", {"radius": 0.5 * thin, "height": far}, 0.5 * far * to, turned)
    if math.isclose(a, b, rel_tol=1e-6):
        return axle, Shape("cylinder", {"radius": a / math.sqrt(3), "height": thin}, far * to, turned)
    return axle, Shape("box", {"a": a, "b": b, "c": thin}, far * to, turned)


def tee(moments: Sequence[float]) -> tuple[Shape, ...]:
    """A flat T of thin rods of one density: the bar along axis 1, the stem along axis 2; I3 = I1 + I2.

    Bar of length 2 and density k: I2 = 8 k/12. Stem of length s, from the bar: with its centre of mass at
    y = s^2/(2 (2 + s)), I1 = k (s^3/3 - (2 + s) y^2).
    """
    first, second, _ = moments
    density = 1.5 * second
    low, high = 0.0, 100.0
    for _ in range(200):
        stem = (low + high) / 2
        height = stem**2 / (2 * (2 + stem))
        low, high = (stem, high) if density * (stem**3 / 3 - (2 + stem) * height**2) < first else (low, stem)
    radius = 4 * THIN
    bar = Shape("cylinder", {"radius": radius, "height": 2.0}, np.array([0.0, -height, 0.0]), Z_TO_X)
    middle = np.array([0.0, stem / 2 - height, 0.0])
    return bar, Shape("cylinder", {"radius": radius, "height": stem}, middle, Z_TO_Y)
