"""Actuators: what a controller commands, and the torques that follow until the next sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Actuator:
    """Parameters, states, and the torque that follows from them, in formulas for every number type.

    A state with the empty name is the one that the controller sees, under the name of the actuator. `own` holds
    parameters and states by name.
    """

    commands: int
    """Number of numbers in a command."""
    parameters: Mapping[str, Any]
    states: Mapping[str, Any]
    """Names and initial values."""

    def held(self, command: Any, own: Mapping[str, Any], omega: Any, period: Any) -> dict[str, Any]:
        """States after a sample with this command: all of them."""
        raise NotImplementedError

    def torque(self, t: Any, R: Any, omega: Any, own: Mapping[str, Any], start: Any) -> Sequence[Any]:
        """The torque on the body, in its frame, at a time in a step that began at `start`."""
        raise NotImplementedError

    def later(self, s: Any, own: Mapping[str, Any]) -> dict[str, Any]:
        """States that change without a sample, a time s after those in `own`."""
        return {}

    def breaks(self, own: Mapping[str, Any]) -> Sequence[Any]:
        """Times until the torque jumps; not positive if a jump is not ahead."""
        return ()
