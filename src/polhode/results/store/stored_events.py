"""The events of a run as an attribute of its file: text, exact to the last bit, and covered by the digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..trajectory import PRIMARY, Info, Trajectory
from .file_format import SIZES, VARIABLES

EVENTS = "events"
"""Attribute of a file: for each event of the run, the states at which it occurred."""


def attribute(sol: Trajectory) -> dict[str, str]:
    """The attribute that holds the events of a trajectory; none if it has none. JSON preserves doubles exactly."""
    if not sol.events:
        return {}
    return {EVENTS: json.dumps([{name: getattr(one, name).tolist() for name in PRIMARY} for one in sol.events])}


def read(attrs: Mapping[str, Any], info: Info) -> list[Trajectory]:
    """Inverse of `attribute`; ValueError, TypeError or KeyError if the text is not valid."""
    return [Trajectory(_data(one), info) for one in json.loads(attrs.get(EVENTS, "[]"))]


def _data(one: Mapping[str, Any]) -> dict[str, np.ndarray]:
    count = len(one["t"])
    shapes = {name: (count, *(SIZES[dimension] for dimension in VARIABLES[name][0][1:])) for name in PRIMARY}
    return {name: np.array(one[name], dtype=float).reshape(shape) for name, shape in shapes.items()}
