"""The benchmark ensembles: random bodies, the same arrays for every tool, and reference attitudes of a sample."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.analysis import reference
from polhode.results.observables import matrices

END = 10.0
SAMPLE = 64
"""Number of first bodies of an ensemble whose errors represent the ensemble."""

DIGITS = 22
MOST = 1 << 20
"""Number of bodies drawn, always the same, so that the first ones are equal in every ensemble."""

QUANTILE = 0.95
"""Quantile of the sampled errors that must be at most the target error."""

TARGETS = (1e-6, 1e-9, 1e-12)
KEPT = Path(__file__).with_name("crowd_references.json")


@ph.potential
def weight(R: Any, *, mgl: float) -> Any:
    return mgl * R[2][2]


@dataclasses.dataclass(frozen=True)
class Crowd:
    """Bodies in principal axes: moments, quaternions, body momenta, and weights times distances (None: free)."""

    name: str
    moments: np.ndarray
    quaternions: np.ndarray
    momenta: np.ndarray
    mgl: np.ndarray | None
    reference: np.ndarray
    """Rotation matrices of the first SAMPLE bodies at the end."""

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def omega(self) -> np.ndarray:
        """Angular velocities at the start, body frame."""
        return self.momenta / self.moments

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Input of the other tools: initial (q, omega) (N, 7), and the factors of `cases.forced_rates` (N, 3 or 5)."""
        i1, i2, i3 = self.moments.T
        factors = [(i2 - i3) / i1, (i3 - i1) / i2, (i1 - i2) / i3]
        if self.mgl is not None:
            factors += [2 * self.mgl / i1, -2 * self.mgl / i2]
        return np.concatenate([self.quaternions, self.omega], axis=1), np.stack(factors, axis=1)

    def errors(self, quaternions: np.ndarray) -> np.ndarray:
        """Frobenius norms of R - R_ref of the sample."""
        q = np.asarray(quaternions)[:SAMPLE]
        with np.errstate(invalid="ignore"):
            q = q / np.linalg.norm(q, axis=1)[:, None]
        found = np.linalg.norm(matrices(q) - self.reference, axis=(1, 2))
        return np.where(np.isfinite(found), found, np.inf)

    def first(self, number: int) -> Crowd:
        """The ensemble of the first bodies only."""
        weights = None if self.mgl is None else self.mgl[:number]
        arrays = (self.moments[:number], self.quaternions[:number], self.momenta[:number], weights)
        return Crowd(self.name, *arrays, self.reference)


def problem(crowd: Any, i: int) -> ph.Problem:
    """Body i as a problem."""
    moments, q, m, mgl = crowd
    field = None if mgl is None else weight(mgl=float(mgl[i]))
    return ph.Problem(ph.Body(moments[i]), field, attitude=q[i], momentum=m[i])


def free_bodies(number: int) -> Crowd:
    """Moments from 1 to 1.9 (any three satisfy the triangle inequality), normal momenta, identity attitudes."""
    rng = np.random.default_rng(1)
    moments, momenta = rng.uniform(1, 1.9, (MOST, 3)), rng.normal(size=(MOST, 3))
    quaternions = np.tile([1.0, 0.0, 0.0, 0.0], (MOST, 1))
    given = (moments, quaternions, momenta, None)
    ends = [ph.exact(problem(given, i), END, digits=DIGITS).matrix[0] for i in range(SAMPLE)]
    return Crowd("free bodies", *given, np.array(ends)).first(number)


def heavy_tops(number: int) -> Crowd:
    """Such moments, tilts of 0.1 to 1 rad, spin momentum 3 to 8, some perpendicular momentum, m g l from 0.5 to 2."""
    rng = np.random.default_rng(2)
    moments = rng.uniform(1, 1.9, (MOST, 3))
    half, towards = rng.uniform(0.05, 0.5, MOST), rng.uniform(0, 2 * np.pi, MOST)
    across = np.sin(half) * np.array([np.cos(towards), np.sin(towards)])
    quaternions = np.stack([np.cos(half), *across, np.zeros(MOST)], axis=1)
    momenta = rng.normal(scale=0.5, size=(MOST, 3))
    momenta[:, 2] += rng.uniform(3, 8, MOST)
    given = (moments, quaternions, momenta, rng.uniform(0.5, 2, MOST))
    return Crowd("heavy tops", *given, _tops_reference(given)).first(number)


def _tops_reference(given: Any) -> np.ndarray:
    """Taylor series in many digits, stored in a file (they take a minute). One is recomputed to check the file."""
    key = [float(array[:SAMPLE].sum()) for array in given]
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if kept.get("key") != key:
        kept = {"key": key, "digits": DIGITS, "end": END, "quaternions": [_end(given, i) for i in range(SAMPLE)]}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    if np.abs(np.subtract(_end(given, SAMPLE - 1), kept["quaternions"][-1])).max() > 1e-15:
        raise SystemExit(f"{KEPT.name} does not belong to this ensemble; remove it")
    return matrices(np.array(kept["quaternions"]))


def _end(given: Any, i: int) -> list[float]:
    q, _ = reference.flow(problem(given, i), END, digits=DIGITS)
    return [float(x) for x in q]
