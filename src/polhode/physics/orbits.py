"""Orbits: the position of the body, seen from an attracting centre, as a function of time, in the space frame.

`Orbit` is a conic section given by its elements, `Ephemeris` a table of positions. Each has a formula, a plain
function (t, parameters) -> (position, velocity), and the values of the parameters by name. A field that needs the orbit
has these parameters besides its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.kepler import conic
from ..numbers.user_math import cos, sin, sqrt, where
from . import oem, spk
from .tables import FEW_ROWS, derivative, found_in, horner, interpolated, piecewise, rows_of
from .validate import finite_number, positive, real_array, whole_number

OUTSIDE = math.nan
"""Factor of a position before or after a table: no guess is made there, and a run that gets there stops."""


OEM = "oem"
"""Keyword of a table that names a file with an ephemeris."""


class Path:
    """A position as a function of time: `Orbit`, `Ephemeris`, or the difference of two (`seen_from`).

    Attributes
    ----------
    formula : (t, **values) -> (position, velocity), three numbers each
    values : the parameters by name, in the order of the formula; "mu" is G M of the attracting centre
    """

    formula: Callable[..., tuple[Any, Any]]
    values: dict[str, Any]

    @property
    def mu(self) -> float:
        """G M of the attracting centre."""
        return float(self.values["mu"])

    def position(self, t: Any) -> np.ndarray:
        """Position at a time, (3,), or at an array of times, (..., 3), in the space frame."""
        return self._at(t)[0]

    def velocity(self, t: Any) -> np.ndarray:
        """Velocity at a time, (3,), or at an array of times, (..., 3), in the space frame."""
        return self._at(t)[1]

    def _at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        times = real_array(t, "t must be a time or an array of times", key="t")
        found = np.array([self.function(x) for x in times.ravel().tolist()]).reshape(*times.shape, 2, 3)
        return found[..., 0, :], found[..., 1, :]

    @property
    def function(self) -> Callable[[Any], tuple[Any, Any]]:
        """Position and velocity as a plain function of t, for a ``@ph.torque`` of your own; the elements are constants.

        >>> where_it_is = orbit.function
        >>> @ph.torque
        ... def mine(t, R):
        ...     position, velocity = where_it_is(t)
        """
        return _with_constants(self.formula, tuple(self.values.values()))

    def seen_from(self, source: Path, mu: float) -> Path:
        """The same motion seen from another attracting body: this position minus that of the source.

        source : path of the other body, about the same centre and in the same axes
        mu : G M of the source
        """
        return _Difference(self, path_of(source, "source"), positive("mu", mu))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Path) and (self.formula, self.values) == (other.formula, other.values)

    def __hash__(self) -> int:
        return hash((self.formula, *self.values.items()))


def _with_constants(formula: Callable[..., Any], values: tuple[Any, ...]) -> Callable[[Any], tuple[Any, Any]]:
    def path(t: Any) -> tuple[Any, Any]:
        return formula(t, *values)

    return path


class Orbit(Path):
    """Kepler orbit: a circle, an ellipse (e < 1), a parabola (e = 1) or a hyperbola (e > 1).

    The position solves r'' = -mu r/|r|^3. The elements are those of celestial mechanics, angles in radians, in any
    consistent units: R_z(node) R_x(inclination) R_z(argument) maps the x axis to the periapsis. The defaults are an
    orbit in the space x-y plane with its periapsis on the x axis at t = 0.

    Parameters
    ----------
    mu : G M of the centre (Earth: 3.986004418e14 m^3/s^2)
    periapsis : q, the smallest distance from the centre
    eccentricity : e, not negative
    periapsis_time : T, a time at which the body is at the periapsis
    inclination, node, argument : inclination, longitude of the ascending node, argument of the periapsis
    semi_major_axis : a, instead of `periapsis`: q = a (1 - e), negative for a hyperbola
    """

    def __init__(
        self,
        mu: float,
        periapsis: float | None = None,
        eccentricity: float = 0.0,
        periapsis_time: float = 0.0,
        inclination: float = 0.0,
        node: float = 0.0,
        argument: float = 0.0,
        *,
        semi_major_axis: float | None = None,
    ) -> None:
        e = finite_number("eccentricity", eccentricity)
        if e < 0:
            raise InputError(f"eccentricity must not be negative; got {eccentricity!r}", "eccentricity")
        q = _periapsis(periapsis, semi_major_axis, e)
        strength = positive("mu", mu)
        rate = math.sqrt(strength / q) / q
        if not 0 < rate < math.inf:
            raise InputError(
                f"mu = {strength:g} and periapsis = {q:g} give an orbital rate outside the range of doubles; "
                f"check the units",
                "mu",
            )
        self.formula = on_conic
        self.values = {
            "mu": strength,
            "periapsis": q,
            "eccentricity": e,
            "periapsis_time": finite_number("periapsis_time", periapsis_time),
            "inclination": finite_number("inclination", inclination),
            "node": finite_number("node", node),
            "argument": finite_number("argument", argument),
        }

    @property
    def period(self) -> float:
        """Time of one revolution, 2 pi sqrt(a^3/mu); infinite unless e < 1."""
        q, beta = self.values["periapsis"], 1 - self.values["eccentricity"]
        return 2 * math.pi * q / beta * math.sqrt(q / beta / self.mu) if beta > 0 else math.inf


def _periapsis(periapsis: Any, semi_major_axis: Any, e: float) -> float:
    if (periapsis is None) == (semi_major_axis is None):
        got = "neither" if periapsis is None else "both"
        raise InputError(f"give periapsis or semi_major_axis; got {got}", "periapsis")
    if semi_major_axis is None:
        return positive("periapsis", periapsis)
    a = finite_number("semi_major_axis", semi_major_axis)
    if not a * (1 - e) > 0:
        raise InputError(
            f"semi_major_axis must be positive if e < 1 and negative if e > 1, and a parabola has none: give periapsis "
            f"then; got {semi_major_axis!r} with e = {e:g}",
            "semi_major_axis",
        )
    return a * (1 - e)


def on_conic(
    t: Any,
    mu: Any,
    periapsis: Any,
    eccentricity: Any,
    periapsis_time: Any,
    inclination: Any,
    node: Any,
    argument: Any,
) -> tuple[Any, Any]:
    """Position and velocity on an `Orbit`; `conic` in units of q and sqrt(q^3/mu), rotated into space."""
    speed = sqrt(mu / periapsis)
    (x, y), (u, v) = conic(eccentricity, speed / periapsis * (t - periapsis_time))
    along, across = _directions(inclination, node, argument)
    position = [periapsis * (x * a + y * b) for a, b in zip(along, across, strict=True)]
    return position, [speed * (u * a + v * b) for a, b in zip(along, across, strict=True)]


def _directions(inclination: Any, node: Any, argument: Any) -> tuple[Any, Any]:
    """Unit vectors in space towards the periapsis, and a quarter of a turn later in the plane of the orbit."""
    ci, si, cn, sn, ca, sa = *_turn(inclination), *_turn(node), *_turn(argument)
    along = (cn * ca - sn * sa * ci, sn * ca + cn * sa * ci, sa * si)
    return along, (-cn * sa - sn * ca * ci, -sn * sa + cn * ca * ci, ca * si)


def _turn(angle: Any) -> tuple[Any, Any]:
    return cos(angle), sin(angle)


class Ephemeris(Path):
    """Positions from a table over time, in the space frame; between the times, cubic polynomials.

    Without velocities they form the spline with continuous second derivatives (not-a-knot at the ends), with
    velocities the Hermite polynomials of positions and velocities. A run that leaves the table stops with an error.

    Parameters
    ----------
    mu : G M of the attracting centre
    times : increasing, at least 2 of them. The numbers of a table of 65 or more times are data that an ensemble or a
        gradient cannot vary
    positions : three numbers for each time, from the centre to the body
    velocities : three numbers for each time, or None
    """

    meta: Mapping[str, str] = {}
    """Metadata of the file, if there is one: CENTER_NAME, REF_FRAME, TIME_SYSTEM, ..."""

    def __init__(self, mu: float, times: Any, positions: Any, velocities: Any = None) -> None:
        slopes = None if velocities is None else ("velocities", velocities)
        knots, pieces = interpolated(times, positions, "positions", slopes=slopes)
        at_centre = np.flatnonzero(~np.array(positions, dtype=float).any(axis=1))
        if len(at_centre):
            raise InputError(f"position {at_centre[0]} is at the attracting centre; all must be away from it")
        self.start, self.end = float(knots[0]), float(knots[-1])
        self.values = {"mu": positive("mu", mu)}
        if len(knots) > FEW_ROWS:
            self.formula = in_rows
            self.values["table"] = rows_of(knots, pieces)
        else:
            self.formula = in_table
            self.values |= {"knots": tuple(knots.tolist()), "pieces": _tuples(pieces.tolist())}

    @classmethod
    def from_oem(cls, path: Any, mu: float, *, epoch: str | None = None, segment: int | None = None) -> Ephemeris:
        """Positions and velocities from an Orbit Ephemeris Message (CCSDS 502.0-B, text), in metres and seconds.

        mu : G M of the centre that the file names, in m^3/s^2
        epoch : the time t = 0, such as "2029-04-13T21:46:00" in the time system of the file (default: its first line)
        segment : number of the segment, from 1; needed if there are several (a manoeuvre begins a new one)
        """
        segments = oem.read(path)
        number = whole_number("segment", 1 if segment is None else segment)
        if number > len(segments) or (segment is None and len(segments) > 1):
            got = "none" if segment is None else repr(segment)
            raise InputError(f"the file has {len(segments)} segments; give segment, from 1 on; got {got}", "segment")
        chosen = segments[number - 1]
        start = chosen.epochs[0] if epoch is None else oem.epoch_of(epoch)
        made = cls(mu, chosen.times(start), chosen.states[:, :3], chosen.states[:, 3:])
        made.meta = chosen.meta
        return made

    @classmethod
    def from_spk(cls, path: Any, mu: float, *, target: int, centre: int, times: Any, epoch: str) -> Ephemeris:
        """A table of positions and velocities from an SPK kernel, in metres and seconds (extra ``polhode[spk]``).

        mu : G M of the centre, in m^3/s^2
        target, centre : NAIF numbers of the body and of the attracting centre (10 Sun, 399 Earth, 301 Moon)
        times : times of the table, seconds of TDB after the epoch
        epoch : the time t = 0, such as "2029-04-13T21:46:00", in TDB
        """
        positions, velocities = spk.states(path, target, centre, times, epoch)
        return cls(mu, times, positions, velocities)

    @property
    def function(self) -> Callable[[Any], tuple[Any, Any]]:
        """Position and velocity as a plain function of t, for a ``@ph.torque`` of your own; the table is constant."""
        if self.formula is in_table:
            return super().function
        columns = tuple(tuple(column.tolist()) for column in self.values["table"].columns)
        return _with_constants(in_columns, (self.start, self.end, columns))

    def __repr__(self) -> str:
        count = len(self.values.get("knots") or self.values["table"])
        return f"Ephemeris(mu={self.mu!r}, {count} times from {self.start:g} to {self.end:g})"


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def in_rows(t: Any, mu: Any, table: Any) -> tuple[Any, Any]:
    """Position and velocity in a table of any length; NaN outside."""
    return in_columns(t, table[0][0], table[-1][0], table.columns)


def in_columns(t: Any, start: Any, end: Any, columns: Any) -> tuple[Any, Any]:
    """As `in_rows`, from the columns of the table."""
    return _evaluated(t, *found_in(t, start, end, columns))


def in_table(t: Any, mu: Any, knots: Any, pieces: Any) -> tuple[Any, Any]:
    """Position and velocity in a table of few rows; NaN outside."""
    return _evaluated(t, *piecewise(t, knots, pieces))


def _evaluated(t: Any, at: Any, x: Any, coefficients: Any) -> tuple[Any, Any]:
    inside = where(at == t, 1, OUTSIDE)
    position, velocity = horner(x, coefficients), horner(x, derivative(coefficients))
    return [inside * a for a in position], [inside * a for a in velocity]


class _Difference(Path):
    """One path seen from another."""

    def __init__(self, orbit: Path, source: Path, mu: float) -> None:
        self.parts = orbit, source
        self.formula = _difference(orbit.formula, source.formula)
        self.values = {"mu": mu}
        for part, path in zip(("orbit", "source"), self.parts, strict=True):
            self.values |= {f"{part}_{name}": value for name, value in path.values.items()}

    @property
    def function(self) -> Callable[[Any], tuple[Any, Any]]:
        """Position and velocity as a plain function of t."""
        orbit, source = (part.function for part in self.parts)

        def path(t: Any) -> tuple[Any, Any]:
            return _gap(orbit(t), source(t))

        return path

    def __reduce__(self) -> Any:
        """Made again of its parts: its formula is a closure."""
        return _Difference, (*self.parts, self.mu)

    def __repr__(self) -> str:
        return f"{self.parts[0]!r}.seen_from({self.parts[1]!r}, mu={self.mu!r})"


@functools.cache
def _difference(orbit: Callable[..., Any], source: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    def difference(t: Any, mu: Any, **values: Any) -> tuple[Any, Any]:
        first = {name.removeprefix("orbit_"): x for name, x in values.items() if name.startswith("orbit_")}
        second = {name.removeprefix("source_"): x for name, x in values.items() if name.startswith("source_")}
        return _gap(orbit(t, **first), source(t, **second))

    return difference


def _gap(first: Any, second: Any) -> tuple[Any, Any]:
    """Differences of positions and of velocities."""
    position, velocity = ([a - b for a, b in zip(x, y, strict=True)] for x, y in zip(first, second, strict=True))
    return position, velocity


def path_of(value: Any, name: str = "orbit") -> Path:
    """The path that a user gave: an `Orbit`, an `Ephemeris`, or the keywords of one of them (as in a problem file).

    The keywords of `Ephemeris.from_oem` have the name of the file under "oem".
    """
    if isinstance(value, Path):
        return value
    if not isinstance(value, Mapping):
        raise InputError(
            f"{name} must be a ph.Orbit, a ph.Ephemeris, or the keywords of one of them; got {value!r}", name
        )
    kind: Any = Ephemeris if "times" in value or "positions" in value else Orbit
    try:
        if OEM in value:
            return Ephemeris.from_oem(value[OEM], **{name: x for name, x in value.items() if name != OEM})
        return kind(**value)
    except TypeError as problem:
        raise InputError(f"{name}: {str(problem).replace('__init__()', kind.__name__)}", name) from None
