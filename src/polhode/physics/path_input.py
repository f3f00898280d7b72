"""Paths that a user gives: as objects, or as a table of keywords in a problem file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError
from .ephemeris import Ephemeris
from .orbits import Orbit
from .paths import Path

OEM = "oem"
"""Keyword of a table that names a file with an ephemeris."""


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
    if OEM in value:
        return _from_keywords(
            Ephemeris.from_oem, {"path" if word == OEM else word: x for word, x in value.items()}, name
        )
    return _from_keywords(Ephemeris if "times" in value or "positions" in value else Orbit, value, name)


def _from_keywords(maker: Callable[..., Path], given: Mapping[str, Any], name: str) -> Path:
    """Call a maker with keywords; say which one is unknown or missing."""
    known = inspect.signature(maker).parameters
    unknown = [word for word in given if word not in known]
    missing = [word for word, p in known.items() if p.default is p.empty and word not in given]
    if unknown or missing:
        fault = f"it has no keyword {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        takes = ", ".join(OEM if word == "path" else word for word in known)
        raise InputError(f"{name} takes {takes}; {fault}", name)
    return maker(**given)
