"""Epochs: calendar dates with the time of day, as the standards of CCSDS write them, and seconds between them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ..errors import InputError

LEAP_SECONDS = (
    *("1972-06-30", "1972-12-31", "1973-12-31", "1974-12-31", "1975-12-31", "1976-12-31", "1977-12-31", "1978-12-31"),
    *("1979-12-31", "1981-06-30", "1982-06-30", "1983-06-30", "1985-06-30", "1987-12-31", "1989-12-31", "1990-12-31"),
    *("1992-06-30", "1993-06-30", "1994-06-30", "1995-12-31", "1997-06-30", "1998-12-31", "2005-12-31", "2008-12-31"),
    *("2012-06-30", "2015-06-30", "2016-12-31"),
)
"""Days of UTC that end with a leap second (IERS Bulletin C)."""

LEAP_DAYS = tuple(datetime.date.fromisoformat(day).toordinal() for day in LEAP_SECONDS)

UTC = "UTC"
EPOCH = re.compile(r"(\d{4})-(?:(\d{2})-(\d{2})|(\d{3}))T(\d{2}):(\d{2}):(\d{2}(?:\.\d*)?)Z?$")

DECIMALS = 12
"""Decimals of seconds that are written."""

DAY, TICKS = 86400, 10**DECIMALS

Epoch = tuple[int, float]
"""Day number and seconds of the day."""


def epoch_of(text: Any, place: str = "epoch") -> Epoch:
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


def leaps(day: int, system: str | None) -> int:
    """Leap seconds before the start of a day; only UTC has them."""
    return sum(leap < day for leap in LEAP_DAYS) if system == UTC else 0


def seconds_since(epoch: Epoch, epochs: Iterable[Epoch], system: str | None) -> np.ndarray:
    """Seconds from an epoch to others in the same time system."""
    day, second = epoch
    first = leaps(day, system)
    return np.array([DAY * float(d - day) + (s - second) + (leaps(d, system) - first) for d, s in epochs])


def written(epoch: Epoch, seconds: Sequence[float], system: str | None) -> list[str]:
    """Write the epochs that are some seconds after an epoch, with up to twelve decimals."""
    day, second = epoch
    start, first = _ticks(second), leaps(day, system)
    found = []
    for t in seconds:
        passed = start + _ticks(t)  # since the start of the first day
        here = day + passed // (DAY * TICKS)
        while passed < _midnight(here, day, first, system):  # leap seconds make days longer
            here -= 1
        found.append(_text(here, passed - _midnight(here, day, first, system)))
    return found


def _ticks(seconds: float) -> int:
    return round(Decimal(repr(float(seconds))).scaleb(DECIMALS))  # the shortest decimal that is this double


def _midnight(day: int, since: int, first: int, system: str | None) -> int:
    """Ticks from the start of a day to the start of another one."""
    return (DAY * (day - since) + leaps(day, system) - first) * TICKS


def _text(day: int, ticks: int) -> str:
    second, part = divmod(ticks, TICKS)
    minute = min(second // 60, 1439)  # a leap second is 23:59:60
    decimals = f"{part:0{DECIMALS}d}".rstrip("0").ljust(3, "0")
    clock = f"{minute // 60:02d}:{minute % 60:02d}:{second - 60 * minute:02d}.{decimals}"
    try:
        return f"{datetime.date.fromordinal(day).isoformat()}T{clock}"
    except (ValueError, OverflowError):
        raise InputError(
            "the times reach beyond the calendar, the years 1 to 9999; choose another epoch or unit of time"
        ) from None
