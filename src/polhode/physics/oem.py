"""Orbit Ephemeris Messages: the text form (KVN) of CCSDS 502.0-B, version 1, 2 or 3.

Positions are in km and velocities in km/s, as the standard requires; here they become metres. Covariances and
accelerations are skipped.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .validate import file_path

METRES = 1000.0
COLUMNS = (7, 10)
"""Numbers of entries in a line of data: epoch, position, velocity, and perhaps acceleration."""

LEAP_SECONDS = (
    *("1972-06-30", "1972-12-31", "1973-12-31", "1974-12-31", "1975-12-31", "1976-12-31", "1977-12-31", "1978-12-31"),
    *("1979-12-31", "1981-06-30", "1982-06-30", "1983-06-30", "1985-06-30", "1987-12-31", "1989-12-31", "1990-12-31"),
    *("1992-06-30", "1993-06-30", "1994-06-30", "1995-12-31", "1997-06-30", "1998-12-31", "2005-12-31", "2008-12-31"),
    *("2012-06-30", "2015-06-30", "2016-12-31"),
)
"""Days of UTC that end with a leap second (IERS Bulletin C)."""

LEAP_DAYS = tuple(datetime.date.fromisoformat(day).toordinal() for day in LEAP_SECONDS)

EPOCH = re.compile(r"(\d{4})-(?:(\d{2})-(\d{2})|(\d{3}))T(\d{2}):(\d{2}):(\d{2}(?:\.\d*)?)Z?$")


@dataclasses.dataclass(frozen=True)
class Segment:
    """One block of an ephemeris: its metadata, times in seconds since an epoch, positions and velocities in metres."""

    meta: dict[str, str]
    epochs: list[tuple[int, float]]
    """Day number and seconds of the day."""
    states: np.ndarray

    def times(self, epoch: tuple[int, float]) -> np.ndarray:
        """Seconds since an epoch; leap seconds count if the time system is UTC."""
        day, second = epoch
        utc = self.meta.get("TIME_SYSTEM") == "UTC"
        leaps = _leaps if utc else lambda day: 0
        return np.array([86400.0 * (d - day) + (s - second) + (leaps(d) - leaps(day)) for d, s in self.epochs])


def _leaps(day: int) -> int:
    """Leap seconds before the start of a day."""
    return sum(leap < day for leap in LEAP_DAYS)


def read(path: Any) -> list[Segment]:
    """Read the segments of a file; errors name the line."""
    file = file_path(path, "an ephemeris must be a file in the OEM format")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{file.name} cannot be read: {problem}") from None
    if text.lstrip().startswith("<"):
        raise InputError(f"{file.name} is an OEM in XML; export it as text (KVN)")
    return _Reader(file).read(text)


def epoch_of(text: Any, place: str = "epoch") -> tuple[int, float]:
    """Day number and seconds of the day of an epoch, 2029-04-13T21:46:00.5 or 2029-103T21:46:00.5."""
    found = EPOCH.match(text.strip()) if isinstance(text, str) else None
    expected = f"{place} must be a time such as 2029-04-13T21:46:00.5 or 2029-103T21:46:00.5; got {text!r}"
    if found is None:
        raise InputError(expected, "epoch")
    year, month, day, number, hour, minute, second = found.groups()
    try:
        if number is None:
            date = datetime.date(int(year), int(month), int(day))
        else:
            date = datetime.date(int(year), 1, 1) + datetime.timedelta(int(number) - 1)
        late = float(second) >= 60 and (hour, minute) != ("23", "59")  # a leap second
        if date.year != int(year) or int(hour) > 23 or int(minute) > 59 or float(second) >= 61 or late:
            raise ValueError
    except ValueError:
        raise InputError(expected, "epoch") from None
    return date.toordinal(), 3600.0 * int(hour) + 60.0 * int(minute) + float(second)


class _Reader:
    """The lines of a file, one after the other."""

    def __init__(self, file: Path) -> None:
        self.file, self.number = file, 0
        self.segments: list[Segment] = []
        self.meta: dict[str, str] | None = None
        self.rows: list[tuple[tuple[int, float], list[float]]] = []

    def read(self, text: str) -> list[Segment]:
        """Read all lines."""
        block, has_header = "header", False
        for number, raw in enumerate(text.splitlines(), 1):
            line, self.number = raw.strip(), number
            if not line or line.startswith("COMMENT"):
                continue
            if not has_header and not line.startswith("CCSDS_OEM_VERS"):
                raise self.fault("an OEM begins with CCSDS_OEM_VERS = ...", line)
            has_header = True
            if line == "META_START":
                self.finish()
                block, self.meta = "meta", {}
            elif line in ("META_STOP", "COVARIANCE_STOP"):
                block = "data"
            elif line == "COVARIANCE_START":
                block = "covariance"
            elif block == "meta":
                self.keyword(line)
            elif block == "data":
                self.row(line)
        self.finish()
        if not self.segments:
            raise InputError(f"{self.file.name} has no data: META_START ... META_STOP, and lines of positions")
        return self.segments

    def keyword(self, line: str) -> None:
        """A line of metadata."""
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or self.meta is None:
            raise self.fault("a line of metadata is KEYWORD = value", line)
        self.meta[name] = value

    def row(self, line: str) -> None:
        """A line of data."""
        epoch, *words = line.split()
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) + 1 not in COLUMNS or not np.isfinite(numbers).all():
            raise self.fault("a line of data is an epoch, three positions and three velocities", line)
        self.rows.append((epoch_of(epoch, f"line {self.number} of {self.file.name}: the epoch"), numbers[:6]))

    def finish(self) -> None:
        """End the segment, if there is one."""
        if self.meta is not None:
            if len(self.rows) < 2:
                raise self.fault("a segment needs at least 2 lines of data", f"{len(self.rows)}")
            states = METRES * np.array([numbers for _, numbers in self.rows])
            self.segments.append(Segment(self.meta, [epoch for epoch, _ in self.rows], states))
        self.meta, self.rows = None, []

    def fault(self, expected: str, line: str) -> InputError:
        """An error at the current line."""
        return InputError(f"line {self.number} of {self.file.name}: {expected}; got {line[:60]!r}")
