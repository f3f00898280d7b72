"""Rigid bodies."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import matrix
from .call_hints import says_what_to_write
from .inertia_tensor import (
    TOLERANCE,
    Principal,
    checked_moments,
    in_principal_axes,
    of_squares,
    parallel,
    principal_axes,
    tensor_of,
    tidied,
)
from .shapes import SOLIDS, Shape
from .validate import apart, attitude_quaternion, positive, real_array, vector


class Body:
    """A rigid body, defined by its inertia about the fixed point or the centre of mass.

    Parameters
    ----------
    inertia : three principal moments, or a symmetric 3x3 tensor. With a tensor, all input and output
        stays in the axes of that tensor.
    mass, centre : mass, and position of the centre of mass in the axes of the body; only gravity and compositions
        (``+``, `moved`, `about`) need them
    pivot : the point about which the body rotates and the inertia is taken (default: the centre of mass)
    shapes : geometry for pictures
    physical : False accepts positive moments that no mass distribution has, such as (3, 3, 9), with a
        `ResultWarning`; Euler's equations are still defined for them. None accepts them without a warning

    `box`, `ellipsoid`, `cylinder`, `cone`, `torus`, `t_handle`, `from_points` and `from_mesh` build bodies from their
    geometry; the solids have their centre of mass at the origin. `from_urdf`, `from_sdf` and `from_mjcf` read the
    inertia of a part of a robot. ``a + b`` joins two bodies, ``a - b`` cuts b out of a.
    Lengths and masses are in any consistent units.

    Examples
    --------
    >>> body = ph.Body([5.0, 5.0, 1.0])
    >>> body.moments
    array([5., 5., 1.])
    >>> ph.Body.box(1.0, 2.0, 3.0, mass=12.0).moments
    array([13., 10.,  5.])
    """

    @says_what_to_write
    def __init__(
        self,
        inertia: Any,
        *,
        mass: float | None = None,
        centre: Any = (0.0, 0.0, 0.0),
        pivot: Any = None,
        shapes: Iterable[Shape] = (),
        physical: bool | None = True,
    ) -> None:
        if not (physical is None or isinstance(physical, bool)):
            raise InputError(f"physical must be True, False or None; got {physical!r}", "physical")
        tensor = tensor_of(inertia)
        moments, axes = principal_axes(tensor)
        moments = checked_moments(moments, physical)
        if (moments == 0).any():
            tensor = axes * moments @ axes.T
        self.inertia = tensor
        self.moments = moments
        self.axes = axes
        self.mass = None if mass is None else positive("mass", mass)
        self.centre = vector("centre", centre)
        self.pivot = self.centre.copy() if pivot is None else vector("pivot", pivot)
        self.shapes = _shapes(shapes)
        for array in (self.inertia, self.moments, self.axes, self.centre, self.pivot):
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        """Data to pickle; derived data are recomputed."""
        return {name: value for name, value in vars(self).items() if name != "_derived"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the data and make the arrays read-only again."""
        vars(self).update(state)
        for array in (self.inertia, self.moments, self.axes, self.centre, self.pivot):
            array.flags.writeable = False

    # --- bodies from their geometry ----------------------------------------------------------------

    @classmethod
    def box(cls, a: float, b: float, c: float, *, mass: float | None = None, density: float | None = None) -> Body:
        """A box with the FULL edges a, b, c along x, y, z: I1 = m (b^2 + c^2)/12.

        For all solids: give the mass or the density; without either, the mass is 1.
        """
        return cls._solid("box", {"a": a, "b": b, "c": c}, mass, density)

    @classmethod
    def ellipsoid(
        cls, a: float, b: float, c: float, *, mass: float | None = None, density: float | None = None
    ) -> Body:
        """An ellipsoid with the SEMI-axes a, b, c along x, y, z: I1 = m (b^2 + c^2)/5."""
        return cls._solid("ellipsoid", {"a": a, "b": b, "c": c}, mass, density)

    @classmethod
    def cylinder(cls, radius: float, height: float, *, mass: float | None = None, density: float | None = None) -> Body:
        """A cylinder with its axis along z: I3 = m r^2/2, I1 = m (3 r^2 + h^2)/12."""
        return cls._solid("cylinder", {"radius": radius, "height": height}, mass, density)

    @classmethod
    def cone(cls, radius: float, height: float, *, mass: float | None = None, density: float | None = None) -> Body:
        """A cone with its axis along z: I3 = 3/10 m r^2, I1 = 3/80 m (4 r^2 + h^2) about the centre of mass.

        The apex is at (0, 0, 3 h/4), the base at z = -h/4.
        """
        return cls._solid("cone", {"radius": radius, "height": height}, mass, density)

    @classmethod
    def torus(cls, R: float, r: float, *, mass: float | None = None, density: float | None = None) -> Body:
        """A solid torus about z: R from its centre to the centre of the tube, tube radius r <= R.

        I3 = m (R^2 + 3/4 r^2), I1 = m (R^2/2 + 5/8 r^2).
        """
        if positive("r", r) > positive("R", R):
            raise InputError(f"a torus needs r <= R, or it intersects itself; got R = {R!r}, r = {r!r}")
        return cls._solid("torus", {"R": R, "r": r}, mass, density)

    @classmethod
    def t_handle(
        cls,
        bar_length: float = 1.0,
        bar_radius: float = 0.1,
        stem_length: float = 0.5,
        stem_radius: float = 0.1,
        *,
        mass: float | None = None,
        density: float | None = None,
    ) -> Body:
        """The T-handle of Dzhanibekov: two cylinders, a bar along y and a stem along x that starts at its surface.

        Spun about its stem, it flips periodically: the stem is the intermediate axis unless the stem is long.
        """
        bar_radius, stem_length = positive("bar_radius", bar_radius), positive("stem_length", stem_length)
        bar = cls.cylinder(bar_radius, bar_length, density=1.0).turned(_Z_TO_Y)
        stem = cls.cylinder(stem_radius, stem_length, density=1.0).turned(_Z_TO_X)
        whole = bar + stem.moved([bar_radius + stem_length / 2, 0.0, 0.0])
        return whole.moved(-whole.centre).scaled(_one_of(mass, density, whole._matter()))

    @classmethod
    def from_points(cls, positions: Any, masses: Any = 1.0) -> Body:
        """Point masses: I = sum m (r^2 1 - r r^T) about their centre of mass.

        positions : (n, 3), in the axes of the body
        masses : one for each point, or one for all
        """
        points = np.atleast_2d(real_array(positions, "positions must be points of three numbers", key="positions"))
        if points.ndim != 2 or points.shape[1] != 3 or not len(points) or not np.isfinite(points).all():
            raise InputError(f"positions must be finite points of three numbers; got shape {points.shape}", "positions")
        values = real_array(masses, "masses must be one number for each point, or one for all", key="masses")
        if values.shape not in ((), (len(points),)):
            raise InputError(
                f"masses must be one number for each of the {len(points)} points; got shape {values.shape}", "masses"
            )
        weights = np.broadcast_to(values, len(points))
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError(f"masses must be positive and finite; got {weights.tolist()}", "masses")
        mass = float(weights.sum())
        centre = weights @ points / mass
        arms = points - centre
        tensor = of_squares(np.einsum("n,ni,nj->ij", weights, arms, arms))
        if not np.abs(tensor).max() > TOLERANCE * mass * np.abs(points).max() ** 2:
            raise InputError("all points coincide; a body needs at least two different points")
        return cls(tidied(tensor), mass=mass, centre=centre, shapes=[Shape("points", vertices=points)])

    @classmethod
    def from_mesh(cls, path: Any, *, mass: float | None = None, density: float | None = None, unit: str = "m") -> Body:
        """The solid inside a closed surface of triangles, from an STL, OBJ or PLY file (extra ``polhode[mesh]``).

        unit : length unit of the file: m, mm, cm, km, um, in, ft; results are in metres. With "m" nothing is
            converted, so any unit passes unchanged
        """
        from . import meshes

        surface = meshes.read(path, unit)
        volume, centre, second = surface.integrals()
        mass = _one_of(mass, density, volume)
        shape = Shape("mesh", vertices=surface.vertices, faces=surface.faces)
        return cls(tidied(of_squares(second * (mass / volume))), mass=mass, centre=centre, shapes=[shape])

    @classmethod
    def from_urdf(cls, path: Any, link: str | None = None) -> Body:
        """The inertia of a link of a URDF file (robots, ROS), in the axes of the link; SI units.

        link : its name; needed if several links have an inertia
        """
        from . import robots

        return cls._of_inertial(robots.urdf(path, link))

    @classmethod
    def from_sdf(cls, path: Any, link: str | None = None) -> Body:
        """The inertia of a link of an SDF file (Gazebo), in the axes of the link; SI units.

        link : its name, or model::link; needed if several links have an inertia
        """
        from . import robots

        return cls._of_inertial(robots.sdf(path, link))

    @classmethod
    def from_mjcf(cls, path: Any, body: str | None = None) -> Body:
        """The inertia of a body of an MJCF file (MuJoCo), in the axes of the body.

        body : its name; needed if several bodies have an inertia
        """
        from . import robots

        return cls._of_inertial(robots.mjcf(path, body))

    @classmethod
    def _of_inertial(cls, found: Any) -> Body:
        return cls(tidied(found.turned), mass=found.mass, centre=found.centre)

    @classmethod
    def from_shape(cls, name: str, **sizes: Any) -> Body:
        """Make a body from the name of a shape and its keywords: ``from_shape("box", a=1, b=2, c=3, density=2)``."""
        if not isinstance(name, str) or name not in SHAPES:
            near = difflib.get_close_matches(str(name), SHAPES, n=3, cutoff=0.4) or SHAPES
            raise InputError(f"unknown shape {name!r}; nearest: {', '.join(near)}")
        maker = getattr(cls, name)
        try:
            inspect.signature(maker).bind(**sizes)
        except TypeError as problem:
            raise InputError(
                f"the shape {name} takes {', '.join(shape_sizes(name))}, mass, density: {problem}"
            ) from None
        return maker(**sizes)

    @classmethod
    def _solid(cls, name: str, sizes: dict[str, float], mass: float | None, density: float | None) -> Body:
        """A named solid, with its centre of mass at the origin."""
        sizes = {word: positive(word, value) for word, value in sizes.items()}
        solid = SOLIDS[name](**sizes)
        mass = _one_of(mass, density, solid.volume)
        return cls([mass * x for x in solid.moments], mass=mass, shapes=[Shape(name, sizes)])

    # --- compositions ------------------------------------------------------------------------------

    @property
    def tensor(self) -> np.ndarray:
        """The inertia tensor about the pivot, in the axes of the body."""
        return self.inertia

    @property
    def central(self) -> np.ndarray:
        """The inertia tensor about the centre of mass."""
        arm = self.pivot - self.centre
        return self.inertia - parallel(self._matter(), arm) if arm.any() else self.inertia

    def moved(self, by: Any) -> Body:
        """The body translated in the same axes, for compositions."""
        step = vector("by", by)
        return self._with(
            self.inertia,
            centre=self.centre + step,
            pivot=self.pivot + step,
            shapes=[s.moved(step) for s in self.shapes],
        )

    def turned(self, rotation: Any) -> Body:
        """The body rotated about the origin of its axes.

        rotation : a scipy Rotation, a 3x3 matrix, or a quaternion with the SCALAR FIRST
        """
        R: np.ndarray = np.array(matrix(attitude_quaternion(rotation)))
        return self._with(
            tidied(R @ self.inertia @ R.T),
            centre=R @ self.centre,
            pivot=R @ self.pivot,
            shapes=[s.turned(R) for s in self.shapes],
        )

    def placed(self, pose: Any) -> Body:
        """The body rotated about the origin of its axes and then translated, by a scipy RigidTransform."""
        from .poses import from_rigid_transform

        shift, rotation = from_rigid_transform(pose)
        return self.turned(rotation).moved(shift)

    @property
    def looks(self) -> tuple[Shape, ...]:
        """Its shapes with the pivot at the origin, for pictures."""
        return tuple(shape.moved(-self.pivot) for shape in self.shapes) if self.shapes else ()

    def about(self, pivot: Any) -> Body:
        """The body with another pivot; its inertia follows from the parallel axis theorem."""
        point = vector("pivot", pivot)
        return self._with(tidied(self.central + parallel(self._matter(), point - self.centre)), pivot=point)

    def scaled(self, mass: float) -> Body:
        """The body with another mass: its density is multiplied by a constant."""
        return self._with(self.inertia * (positive("mass", mass) / self._matter()), mass=mass)

    def __add__(self, other: Any) -> Body:
        """The two bodies joined, about their common centre of mass."""
        return self._joined(other, 1)

    def __radd__(self, other: Any) -> Body:
        """Support ``sum(bodies)``, which starts with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> Body:
        """The body with `other` cut out of it. For a hole, `other` must have the density of the removed material."""
        return self._joined(other, -1)

    def _joined(self, other: Any, sign: int) -> Body:
        if not isinstance(other, Body):
            raise InputError(f"a body can only be combined with a ph.Body; got {type(other).__name__}")
        m1, m2 = self._matter(), sign * other._matter()
        mass = m1 + m2
        if mass <= TOLERANCE * m1:
            removed, whole = apart(-m2, m1)
            raise InputError(f"nothing is left: a mass of {removed} is removed from a body of mass {whole}")
        centre = (m1 * self.centre + m2 * other.centre) / mass
        tensor = self.central + sign * other.central
        tensor = tensor + parallel(m1 * m2 / mass, other.centre - self.centre)
        shapes = [*self.shapes, *(s if sign > 0 else s.removed() for s in other.shapes)]
        return Body(tidied(tensor), mass=mass, centre=centre, shapes=shapes)

    def _with(self, inertia: Any, **changes: Any) -> Body:
        current = {"mass": self.mass, "centre": self.centre, "pivot": self.pivot, "shapes": self.shapes}
        current["physical"] = True if self.physical else None
        return Body(inertia, **(current | changes))

    def _matter(self) -> float:
        if self.mass is None:
            raise InputError(
                "this needs a body with a mass: make it with ph.Body.box or another shape, or with "
                "ph.Body(inertia, mass=..., centre=...)"
            )
        return self.mass

    # --- properties --------------------------------------------------------------------------------

    _derived: tuple[Any, Any, Any, Principal] | None = None

    @property
    def principal(self) -> Principal:
        """The body in its principal axes; cached, and recomputed if its arrays were replaced."""
        kept = self._derived
        if kept and kept[0] is self.inertia and kept[1] is self.moments and kept[2] is self.axes:
            return kept[3]
        own = self.inertia, self.moments, self.axes
        self._derived = (*own, in_principal_axes(*own))
        return self._derived[3]

    @property
    def has_principal_rotation(self) -> bool:
        """True if the principal axes differ from the axes of the tensor."""
        return bool(self.principal.to_body)

    @property
    def linear_axis(self) -> int | None:
        """Index of the principal axis with zero moment, if there is one."""
        return self.principal.linear_axis

    @property
    def _thickness(self) -> float:
        """(Sum of the other two moments - largest moment) / largest moment."""
        return float(self.moments.sum() / self.moments.max() - 2)

    @property
    def is_flat(self) -> bool:
        """True if all points lie in a plane: one moment is the sum of the others."""
        return abs(self._thickness) <= TOLERANCE

    @property
    def physical(self) -> bool:
        """True if a mass distribution with these moments exists: none is larger than the sum of the others."""
        return self._thickness >= -TOLERANCE

    @property
    def has_thickness(self) -> bool:
        """True if all second moments of the mass, (I1 + I2 - I3)/2 and so on, are positive."""
        return self._thickness > TOLERANCE

    @property
    def inverse_moments(self) -> np.ndarray:
        """1/I_i; zero for the axis of a linear body, about which it does not rotate."""
        return np.array(self.principal.inverse)

    def __repr__(self) -> str:
        matter = "" if self.mass is None else f", mass={self.mass!r}"
        matter += f", centre={self.centre.tolist()}" if self.centre.any() else ""
        matter += f", pivot={self.pivot.tolist()}" if (self.pivot != self.centre).any() else ""
        matter += "" if self.physical else ", physical=False"
        return f"Body({(self.inertia if self.has_principal_rotation else self.moments).tolist()}{matter})"


SHAPES = (*SOLIDS, "t_handle")
"""Names that `Body.from_shape` accepts."""

_Z_TO_X, _Z_TO_Y = (0.5, 0.5, 0.5, 0.5), (0.5, -0.5, -0.5, -0.5)
"""Rotations by 120 degrees about (1, 1, 1), whose matrices have only entries 0 and 1: z -> x, z -> y."""


def shape_sizes(name: str) -> list[str]:
    """The keywords of a shape that are lengths."""
    parameters = inspect.signature(getattr(Body, name)).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]


def _shapes(value: Any) -> tuple[Shape, ...]:
    shapes = tuple(value) if isinstance(value, Iterable) and not isinstance(value, np.ndarray) else (value,)
    for one in shapes:
        if not isinstance(one, Shape):
            raise InputError(f"shapes must be a sequence of polhode.shapes.Shape; got {type(one).__name__}", "shapes")
    return shapes


def _one_of(mass: float | None, density: float | None, volume: float | None) -> float:
    """The mass: as given, or density times volume, or 1 by default."""
    if mass is not None and density is not None:
        raise InputError(f"give the mass or the density, not both; got mass = {mass!r} and density = {density!r}")
    if density is not None and volume is not None:
        return positive("density", density) * volume
    return 1.0 if mass is None else positive("mass", mass)
