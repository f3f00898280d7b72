"""Orbit Ephemeris Messages: the text form (KVN) of CCSDS 502.0-B, version 1, 2 or 3.

Positions are in km and velocities in km/s, as the standard requires; here they become metres. Covariances and
accelerations are skipped.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import kvn
from .epochs import Epoch, seconds_since

METRES = 1000.0
COLUMNS = (6, 9)
"""Numbers in a line of data: position, velocity, and perhaps acceleration."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """One block of an ephemeris: its metadata, times in seconds since an epoch, positions and velocities in metres."""

    meta: dict[str, str]
    epochs: list[Epoch]
    states: np.ndarray

    def times(self, epoch: Epoch) -> np.ndarray:
        """Seconds since an epoch; leap seconds count if the time system is UTC."""
        return seconds_since(epoch, self.epochs, self.meta.get("TIME_SYSTEM"))


def read(path: Any) -> list[Segment]:
    """Read the segments of a file; errors name the line."""
    return _Reader(path).read()


class _Reader(kvn.Reader):
    kind, fewest = "OEM", 2
    blocks = {"META_STOP": "data", "COVARIANCE_START": "covariance", "COVARIANCE_STOP": "data"}  # noqa: RUF012

    def check_numbers(self, numbers: list[float], line: str) -> None:
        if len(numbers) not in COLUMNS:
            raise self.fault("a line of data is an epoch, three positions and three velocities", line)

    def segment(self, meta: dict[str, str], rows: list[kvn.Row]) -> Segment:
        return Segment(meta, [epoch for epoch, _ in rows], METRES * np.array([numbers[:6] for _, numbers in rows]))
