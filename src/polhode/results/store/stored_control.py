"""How a controller was sampled, as an attribute of the file of a run: text, covered by the digest."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from typing import Any

from ...physics.control.controller import TORQUE
from ..samples import Sampling
from ..trajectory import Trajectory

CONTROL = "control"
"""Attribute of a file: period, first sample and names of the states of a controller."""


def attribute(sampling: Sampling) -> dict[str, str]:
    """The attribute that holds how a controller was sampled. JSON preserves doubles exactly."""
    return {CONTROL: json.dumps(dataclasses.asdict(sampling))}


def attribute_of(sol: Trajectory) -> dict[str, str]:
    """The attribute of a trajectory in memory; none if it has no controller."""
    return {} if sol.control is None or not len(sol.control) else attribute(Sampling.of(sol.control))


def restore(sol: Trajectory, attrs: Mapping[str, Any]) -> None:
    """Give a trajectory its samples from a file, read on first use; ValueError or TypeError if the text is invalid."""
    if CONTROL not in attrs:
        return
    found = json.loads(attrs[CONTROL])
    sampling = Sampling(float(found["t0"]), float(found["period"]), bool(found["compiled"]), tuple(found["names"]))
    if not (math.isfinite(sampling.t0) and 0 < sampling.period < math.inf and sampling.names[:1] == (TORQUE,)):
        raise ValueError(f"the sampling is {sampling}")
    if len(sampling.names) != len(sol.info.states):
        raise ValueError(f"the names are {sampling.names}, and there are {len(sol.info.states)} states")
    sol.control = functools.partial(_samples, sampling, sol)


def _samples(sampling: Sampling, sol: Trajectory) -> Any:
    return sampling.samples(sol.t, sol.states)
