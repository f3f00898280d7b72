"""Ephemerides: positions from a table over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..numbers.user_math import where
from . import epochs, oem, spk
from .paths import Path, with_constants
from .tables import FEW_ROWS, derivative, found_in, horner, interpolated, piecewise, rows_of
from .validate import positive, whole_number

OUTSIDE = math.nan
"""Factor of a position before or after a table: no guess is made there, and a run that gets there stops."""


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

    Examples
    --------
    >>> positions = [[1.0, 0.0, 0.0], [0.9, 0.4, 0.0], [0.6, 0.8, 0.0], [0.2, 1.0, 0.0]]
    >>> moving = ph.Ephemeris(1.0, [0.0, 1.0, 2.0, 3.0], positions)
    >>> moving.mu
    1.0
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
        start = chosen.epochs[0] if epoch is None else epochs.epoch_of(epoch)
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
        return with_constants(in_columns, (self.start, self.end, columns))

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
