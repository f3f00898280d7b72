"""Paths: the position of the body, seen from an attracting centre, as a function of time, in the space frame.

A path has a formula, a plain function (t, parameters) -> (position, velocity), and the values of its parameters by
name. A field that needs the path has these parameters besides its own. `Orbit` and `Ephemeris` are paths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .validate import positive, real_array


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
        times, path = real_array(t, "t must be a time or an array of times", key="t"), self.function
        if not np.isfinite(times).all():
            raise InputError(f"t must be finite; got {t!r}", "t")
        found = np.array([path(x) for x in times.ravel().tolist()]).reshape(*times.shape, 2, 3)
        return found[..., 0, :], found[..., 1, :]

    @property
    def function(self) -> Callable[[Any], tuple[Any, Any]]:
        """Position and velocity as a plain function of t, for a ``@ph.torque`` of your own; the elements are constants.

        >>> where_it_is = orbit.function
        >>> @ph.torque
        ... def mine(t, R):
        ...     position, velocity = where_it_is(t)
        """
        return with_constants(self.formula, tuple(self.values.values()))

    def seen_from(self, source: Path, mu: float) -> Path:
        """The same motion seen from another attracting body: this position minus that of the source.

        source : path of the other body, about the same centre and in the same axes
        mu : G M of the source
        """
        if not isinstance(source, Path):
            raise InputError(f"source must be a ph.Orbit or a ph.Ephemeris; got {type(source).__name__}", "source")
        return _Difference(self, source, positive("mu", mu))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Path) and (self.formula, self.values) == (other.formula, other.values)

    def __hash__(self) -> int:
        return hash((self.formula, *self.values.items()))


def with_constants(formula: Callable[..., Any], values: tuple[Any, ...]) -> Callable[[Any], tuple[Any, Any]]:
    """The formula as a function of t alone."""

    def path(t: Any) -> tuple[Any, Any]:
        return formula(t, *values)

    return path


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
