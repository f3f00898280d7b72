"""What is kept of a run, and where."""

from __future__ import annotations

import dataclasses
import types
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from . import store
from .backends import arrays  # noqa: F401 - makes arrays a number type
from .problem import Problem
from .trajectory import Info, Trajectory


class Recorder(Protocol):
    """Takes rows as they come and makes a Trajectory of them at the end."""

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Keep these states (principal axes)."""

    def finish(self, status: str, seconds: float) -> Trajectory:
        """The trajectory so far."""


def primary(problem: Problem, t: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Times, attitudes, momenta and energies in the user's axes, from rows in principal axes."""
    values = rows.astype(float)
    q = tuple(values[:, i] for i in range(4))
    m = tuple(values[:, i] for i in range(4, 7))
    kinetic = sum(i * x * x for i, x in zip(problem.body.inverse_moments, m, strict=True)) / 2
    q, m = problem.user_axes(q, m)
    energy = kinetic + problem.potential(q)
    return {"t": t, "quaternion": np.stack(q, 1), "momentum": np.stack(m, 1), "energy": energy}


def full_precision(problem: Problem, rows: np.ndarray) -> types.SimpleNamespace:
    """Quaternion and momentum as mpmath numbers, in the user's axes."""
    states = [problem.user_axes(tuple(r[:4]), tuple(r[4:])) for r in rows]
    return types.SimpleNamespace(
        quaternion=np.array([q for q, _ in states], dtype=object),
        momentum=np.array([m for _, m in states], dtype=object),
    )


class Memory:
    """Keeps everything in memory."""

    def __init__(self, problem: Problem, info: Info) -> None:
        self.problem, self.info = problem, info
        self.t: list[np.ndarray] = []
        self.rows: list[np.ndarray] = []

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Keep a copy: the loop uses its buffer again."""
        self.t.append(t)
        self.rows.append(rows.copy())

    def finish(self, status: str, seconds: float) -> Trajectory:
        """The trajectory so far."""
        rows = np.concatenate(self.rows)
        data = primary(self.problem, np.concatenate(self.t), rows)
        mp = full_precision(self.problem, rows) if self.info.digits else None
        return Trajectory(data, dataclasses.replace(self.info, status=status, seconds=seconds), mp)


class Disk:
    """Appends to a file as the run goes; memory stays bounded."""

    def __init__(self, problem: Problem, info: Info, path: Path) -> None:
        self.problem, self.info = problem, info
        self.writer = store.Writer(path, info)

    def add(self, t: np.ndarray, rows: np.ndarray) -> None:
        """Write these states."""
        self.writer.append(primary(self.problem, t, rows))

    def finish(self, status: str, seconds: float) -> Trajectory:
        """Close the file and open it as a trajectory."""
        return store.load(self.writer.close(status=status, seconds=seconds))


def recorder(problem: Problem, info: Info, out: Any, overwrite: bool) -> Recorder:
    """A recorder to memory, or to a fresh file."""
    return Memory(problem, info) if out is None else Disk(problem, info, store.fresh(out, overwrite))
