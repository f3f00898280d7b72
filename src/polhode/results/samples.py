"""What a controller decided at its samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class Samples:
    """Commands and memory of a controller at its samples, each as it is from this sample on.

    Attributes
    ----------
    t : (n,) times of the samples whose states were kept
    torque : (n, 3) torque that the function returned, body frame
    memory : memory, and states of the actuators, by name, each (n, ...)
    period : time between samples
    compiled : whether the controller is a formula, compiled with the steps; otherwise it was called as plain Python
    """

    t: np.ndarray
    torque: np.ndarray
    memory: Mapping[str, np.ndarray]
    period: float
    compiled: bool

    def __len__(self) -> int:
        return len(self.t)
