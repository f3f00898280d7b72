"""What a controller decided at its samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..physics.control.controller import TORQUE

ON_SAMPLE = 1e-9
"""Distance of a time from a sample, in periods, that is round-off."""


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


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How a controller was sampled: what a file holds of it beside the states of the run."""

    t0: float
    period: float
    compiled: bool
    names: tuple[str, ...]
    """Names of torque, memory and states of the actuators, in the order of the states of the run."""

    @classmethod
    def of(cls, samples: Samples) -> Sampling:
        """Return how these samples were taken; the first one was at the start."""
        return cls(float(samples.t[0]), samples.period, samples.compiled, (TORQUE, *samples.memory))

    def are_samples(self, t: np.ndarray) -> np.ndarray:
        """Return which of these times, in order, are those of samples: of several as near to one, the nearest."""
        number = (t - self.t0) / self.period
        sample = np.round(number)
        near = np.flatnonzero(np.abs(number - sample) <= ON_SAMPLE * np.maximum(1.0, number))
        away = np.abs(t - (self.t0 + sample * self.period))
        nearest = near[np.lexsort((away[near], sample[near]))]
        first = np.diff(sample[nearest], prepend=-1.0) > 0
        found = np.zeros(len(t), dtype=bool)
        found[nearest[first]] = True
        return found

    def samples(self, t: np.ndarray, states: Mapping[str, np.ndarray]) -> Samples:
        """Return what was decided at those samples that are among the states of a run."""
        chosen = np.flatnonzero(self.are_samples(t))
        found = {name: x[chosen] for name, x in zip(self.names, states.values(), strict=True)}
        return Samples(t[chosen], found.pop(TORQUE), found, self.period, self.compiled)
