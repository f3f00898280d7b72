"""What one way says of one motion: numbers, sentences, and how they disagree with those of another way."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import polhode as ph

PATIENCE = 200.0
"""Seconds after which a way counts as hung; the first one compiles."""

ALARM = hasattr(signal, "setitimer")
"""Whether a process can be interrupted at a time: not on Windows."""

CROSSED = "conditions on the state"
"""Words of the warning that steps cross jumps of a field, so that ways with other steps differ."""


class Skip(BaseException):
    """The way makes no sense for the motion."""


class Hung(BaseException):
    """A way took too long."""


@dataclasses.dataclass
class Cell:
    """One way of running one motion.

    Attributes
    ----------
    numbers : everything computed, by name, in the order in which it was computed
    refused : the sentence with which the library refused the way; empty if it ran
    warned : the sentences of its warnings
    found : in what it disagrees with another way
    admitted : disagreements of which a warning of the run tells
    expected : words that one of its warnings, and only one, has to contain
    """

    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    refused: str = ""
    warned: list[str] = dataclasses.field(default_factory=list)
    found: list[str] = dataclasses.field(default_factory=list)
    admitted: list[str] = dataclasses.field(default_factory=list)
    expected: list[str] = dataclasses.field(default_factory=list)

    def keep(self, name: str, value: Any) -> None:
        """Keep a number or an array."""
        self.numbers[name] = value

    def claim(self, holds: Any, sentence: str) -> None:
        """Note a disagreement unless the claim holds."""
        if not holds:
            self.found.append(sentence)

    def says(self, words: str) -> None:
        """Claim that a warning with these words is given, once."""
        self.expected.append(words)

    def refuses(self, words: str, call: Callable[[], Any]) -> None:
        """Claim that a call is refused with these words."""
        try:
            call()
        except ph.InputError as refusal:
            self.keep(words, str(refusal))
            self.claim(words in str(refusal), f"refused with other words: {refusal}")
        else:
            self.found.append(f"not refused: {words}")

    def same(self, what: str, now: Any, before: Any) -> None:
        """Claim that arrays have the same bits."""
        self.keep(what, now)
        now, before = np.asarray(now), np.asarray(before)
        if now.shape != before.shape:
            self.found.append(f"{what}: shape {now.shape}, elsewhere {before.shape}")
        elif not np.array_equal(now, before, equal_nan=now.dtype.kind == "f"):
            self.found.append(f"{what}: differs by {_distance(now, before):.2g} where bits should be equal")

    def close(self, what: str, now: Any, before: Any, allowed: float) -> None:
        """Claim that arrays differ by no more than allowed, relative to the largest number."""
        self.keep(what, now)
        now, before = np.asarray(now, dtype=float), np.asarray(before, dtype=float)
        if now.shape != before.shape:
            self.found.append(f"{what}: shape {now.shape}, elsewhere {before.shape}")
            return
        size = max(1.0, float(np.abs(before).max(initial=0.0))) if what.startswith("quaternion") else _size(before)
        apart = _distance(now, before)
        if not apart <= allowed * size:
            self.found.append(f"{what}: differs by {apart / size:.2g}, more than {allowed:.2g}")

    def same_path(self, what: str, now: Any, before: Any, rows: Any = slice(None)) -> None:
        """Claim that trajectories have the same times, states and further states."""
        self.same(f"{what}: t", now.t, before.t[rows])
        self.same(f"{what}: quaternion", now.quaternion, before.quaternion[rows])
        self.same(f"{what}: momentum", now.momentum, before.momentum[rows])
        for name, values in before.states.items():
            if name in now.states:
                self.same(f"{what}: {name}", now.states[name], values[rows])
            else:
                self.found.append(f"{what}: has no {name}")

    def close_states(self, what: str, now: Any, before: Any, allowed: float) -> None:
        """Claim that attitudes and momenta, as pairs (quaternion, momentum), agree."""
        (q, m), (q0, m0) = now, before
        q, q0 = np.asarray(q, dtype=float), np.asarray(q0, dtype=float)
        if q.shape == q0.shape:
            q = q * np.where((q * q0).sum(axis=-1) < 0, -1.0, 1.0)[..., None]
        self.close(f"quaternion, {what}", q, q0, allowed)
        self.close(f"momentum, {what}", m, m0, allowed)


def _size(values: np.ndarray) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return largest if largest > 0 else 1.0


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if (np.isnan(a) != np.isnan(b)).any():
        return np.inf
    return float(np.nanmax(np.abs(a - b), initial=0.0))


def filled(way: Callable[[Any, Cell], None], run: Any) -> Cell:
    """Run one way of a motion; whatever happens becomes part of the cell."""
    cell = Cell()
    with warnings.catch_warnings(record=True) as said, within(PATIENCE):
        warnings.simplefilter("always")
        try:
            way(run, cell)
        except ph.InputError as refusal:
            cell.refused = str(refusal)
            if type(refusal) is not ph.InputError:
                cell.found.append(f"{type(refusal).__name__}: {refusal}")
        except ph.StepError as failure:
            cell.found.append(f"StepError: {failure}")
        except Hung:
            cell.found.append(f"no end after {PATIENCE:g} s")
        except Exception as fault:  # what no user should see
            cell.found.append(f"bare {type(fault).__name__}: {fault}"[:300])
    for one in said:
        if issubclass(one.category, ph.ResultWarning):
            cell.warned.append(str(one.message))
        elif not issubclass(one.category, DeprecationWarning | ph.errors.SpeedWarning | ph.errors.CacheWarning):
            cell.found.append(f"{one.category.__name__}: {one.message}"[:300])
    for words in cell.expected:
        cell.claim(sum(words in str(one.message) for one in said) == 1, f"not said once: {words}")
    if any(CROSSED in sentence for sentence in cell.warned):
        cell.admitted = [one for one in cell.found if "differs" in one]
        cell.found = [one for one in cell.found if "differs" not in one]
    return cell


@contextlib.contextmanager
def within(seconds: float, stop: type[BaseException] = Hung) -> Iterator[None]:
    """Raise an exception in the main thread after so many seconds, where the system has an alarm."""
    if not ALARM:
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise stop

    before, left = signal.signal(signal.SIGALRM, ring), signal.setitimer(signal.ITIMER_REAL, seconds)[0]
    started = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, left - (time.monotonic() - started)))
