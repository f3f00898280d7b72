"""Built-in fields that act on the facets of a surface: radiation pressure, and drag in a rarefied atmosphere."""

from __future__ import annotations

import functools
from typing import Any

from ...errors import InputError
from ...kernels.so3 import add, apply_transposed, cross, dot, scale
from ...numbers.user_math import exp, sqrt
from ...symbolic.rows import Rows
from ...symbolic.total import total
from ..facets import facets_of
from ..path_input import path_of
from ..validate import positive, vector
from .decorators import torque
from .field import Field
from .orbital import along, seen
from .registry import ready
from .template import FieldTemplate

DRAG_COEFFICIENT = 2.2
"""Usual drag coefficient of satellites in free molecular flow."""


def light_torque(pressure: Any, s: Any, normals: Any, centres: Any, areas: Any, specular: Any, diffuse: Any) -> Any:
    """Sum of r x F over the facets, F = -P A c ((1 - specular) s + 2 (specular c + diffuse/3) n), c = max(n . s, 0)."""

    def facet(n: Any, r: Any, area: Any, shiny: Any, dull: Any) -> Any:
        c = max(dot(n, s), 0)
        force = add(scale(1 - shiny, s), scale(2 * (shiny * c + dull / 3), n))
        return scale(-pressure * area * c, cross(r, force))

    return total(facet, normals, centres, areas, specular, diffuse)


@ready
def radiation_pressure(
    facets: Any,
    pressure: float,
    sun: Any = None,
    orbit: Any = None,
    distance: float | None = None,
    specular: Any = 0.0,
    diffuse: Any = 0.0,
) -> Field:
    """Radiation pressure on flat facets: T = sum r x F, body frame, F = -P A c ((1 - rho) s + 2 (rho c + delta/3) n).

    s is the direction to the Sun in the body frame, n the outer normal of a facet, c = max(n . s, 0); a fraction rho of
    the light is reflected specularly, delta diffusely (Lambert), and the rest is absorbed (Wertz 1978, section 17.2).
    The force points away from the Sun. Facets do not shade each other. Give the direction of the Sun, or an orbit about
    it: then s points to its centre and the pressure is P (distance/r)^2.

    facets : `ph.Facets`, or a table with normals, areas and centres, or with box = [a, b, c]
    pressure : P, solar flux over the speed of light (4.54e-6 N/m^2 at 1 au)
    sun : direction to the Sun, a vector in space (its length does not matter)
    orbit, distance : heliocentric orbit of the body, and the distance from the Sun at which the pressure is P
    specular, diffuse : rho and delta, one number, or one for each facet
    """
    surface = facets_of(facets)
    rho, delta = surface.reflections(specular, diffuse)
    P = positive("pressure", pressure)
    data = {**_columns(surface), "specular": Rows.of(rho, "specular"), "diffuse": Rows.of(delta, "diffuse")}
    _check_choice("sun", sun, orbit)
    if orbit is None:
        if distance is not None:
            raise InputError("distance goes with orbit; give orbit, or remove distance", "distance")
        return _light_from(P, _unit("sun", sun), **data)
    path = path_of(orbit)
    why = "with orbit, the pressure falls with the distance from the Sun: also give distance, at which it is pressure"
    return _light_on(path.formula, tuple(path.values))(P, _positive("distance", distance, why), **data, **path.values)


@torque
def _light_from(
    R: Any, pressure: Any, sun: Any, normals: Any, centres: Any, areas: Any, specular: Any, diffuse: Any
) -> Any:
    return light_torque(pressure, apply_transposed(R, sun), normals, centres, areas, specular, diffuse)


_light_from.function.__name__ = radiation_pressure.__name__


@functools.cache
def _light_on(formula: Any, names: tuple[str, ...]) -> FieldTemplate:
    def radiation_pressure(
        t: Any,
        R: Any,
        pressure: Any,
        distance: Any,
        normals: Any,
        centres: Any,
        areas: Any,
        specular: Any,
        diffuse: Any,
        **path: Any,
    ) -> Any:
        u, r = seen(R, formula(t, **path)[0])
        here = pressure * (distance / r) ** 2
        return light_torque(here, scale(-1, u), normals, centres, areas, specular, diffuse)

    return along(radiation_pressure, names)


def drag_torque(pressure: Any, v: Any, omega: Any, normals: Any, centres: Any, areas: Any) -> Any:
    """Sum of r x F over the facets, F = -pressure A max(n . w, 0) w, w = v + omega x r, pressure = C_D density/2."""

    def facet(n: Any, r: Any, area: Any) -> Any:
        w = add(v, cross(omega, r))
        return scale(-pressure * area * max(dot(n, w), 0), cross(r, w))

    return total(facet, normals, centres, areas)


@ready
def facet_drag(
    facets: Any,
    density: float,
    velocity: Any = None,
    orbit: Any = None,
    radius: float | None = None,
    scale_height: float | None = None,
    coefficient: float = DRAG_COEFFICIENT,
) -> Field:
    """Drag of a rarefied atmosphere on flat facets: T = sum r x F, body frame, F = -C/2 density A max(n . w, 0) w.

    w = R^T v + omega x r is the velocity of a facet with respect to the air, in the body frame. The molecules of a free
    flow hit the facets that face it (n . w > 0) and lose their momentum (Wertz 1978, section 17.2). Facets do not shade
    each other. Because of omega x r the rotation is damped. Give the velocity v, or an orbit: then v is its velocity in
    an atmosphere at rest in space, and the density falls with the distance r as exp(-(r - radius)/scale_height).

    facets : `ph.Facets`, or a table with normals, areas and centres, or with box = [a, b, c]
    density : of the air; with an orbit, at the distance `radius` from the centre
    velocity : v of the body with respect to the air, a vector in space
    orbit, radius, scale_height : instead, the orbit of the body, and the fall of the density; all three together
    coefficient : C, the drag coefficient, 2 for molecules that are absorbed
    """
    columns = _columns(facets_of(facets))
    half = positive("coefficient", coefficient) * positive("density", density) / 2
    _check_choice("velocity", velocity, orbit)
    if orbit is None:
        if radius is not None or scale_height is not None:
            raise InputError("radius and scale_height go with orbit; give orbit, or remove them", "radius")
        return _drag_at(half, vector("velocity", velocity), **columns)
    path = path_of(orbit)
    why = "with orbit, the density falls with height: also give"
    known = (
        _positive("radius", radius, f"{why} radius, the distance from the centre at which it is density"),
        _positive("scale_height", scale_height, f"{why} scale_height, over which it falls by the factor e"),
    )
    return _drag_on(path.formula, tuple(path.values))(half, *known, **columns, **path.values)


@torque
def _drag_at(R: Any, omega: Any, pressure: Any, velocity: Any, normals: Any, centres: Any, areas: Any) -> Any:
    return drag_torque(pressure, apply_transposed(R, velocity), omega, normals, centres, areas)


_drag_at.function.__name__ = facet_drag.__name__


@functools.cache
def _drag_on(formula: Any, names: tuple[str, ...]) -> FieldTemplate:
    def facet_drag(
        t: Any,
        R: Any,
        omega: Any,
        pressure: Any,
        radius: Any,
        scale_height: Any,
        normals: Any,
        centres: Any,
        areas: Any,
        **path: Any,
    ) -> Any:
        position, velocity = formula(t, **path)
        here = pressure * exp((radius - sqrt(dot(position, position))) / scale_height)
        return drag_torque(here, apply_transposed(R, velocity), omega, normals, centres, areas)

    return along(facet_drag, names)


def _columns(facets: Any) -> dict[str, Rows]:
    """The arrays of a surface as rows of data."""
    return {name: Rows.of(getattr(facets, name), name) for name in ("normals", "centres", "areas")}


def _check_choice(name: str, value: Any, orbit: Any) -> None:
    if (value is None) == (orbit is None):
        raise InputError(f"give {name} or orbit; got {'neither' if orbit is None else 'both'}", name)


def _positive(name: str, value: Any, missing: str) -> float:
    """Check an argument that an orbit needs; `missing` is the message if it is not given."""
    if value is None:
        raise InputError(missing, name)
    return positive(name, value)


def _unit(name: str, value: Any) -> Any:
    direction = vector(name, value)
    length = sqrt(float(direction @ direction))
    if not length > 0:
        raise InputError(f"{name} must not be zero; it gives a direction", name)
    return direction / length
