"""Ensembles of bodies with varying inertia.

The loop integrates a constant reference inertia; results are converted to I(t).
"""

from __future__ import annotations

import numpy as np

from ...errors import InputError
from ...physics.fields.varying_inertia import VaryingField
from ...physics.problem import REFERENCE_TOLERANCE
from ...results import observables
from .batch import BodyBatch


def momenta(batch: BodyBatch, t: np.ndarray, momentum: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Return the momenta I(t) omega; NaN for the last good state of a body that failed, whose time is not known."""
    inertia = batch.bodies.inertia_at(t)
    if inertia is None:
        return momentum
    found = observables.product(inertia, batch.omega_of(momentum))
    found[-1, failed >= 0] = np.nan
    return found


def check_same_start(batch: BodyBatch, t0: float) -> None:
    """Refuse inertias that differ at the start: a momentum would mean a different velocity for every body."""
    inertia = batch.bodies.inertia_at(np.array([t0]))
    if inertia is None:
        return
    assert isinstance(batch.field, VaryingField)
    constant = np.array(batch.field.template.reference)
    away = np.abs(inertia[0] - constant).max(axis=(1, 2))
    bad = np.flatnonzero(~(away <= REFERENCE_TOLERANCE * np.abs(constant).max()))
    if len(bad) or np.ptp(batch.moments, axis=0).max() > REFERENCE_TOLERANCE * batch.moments.max():
        which = f"body {bad[0]} has another" if len(bad) else "the bodies have others"
        raise InputError(
            f"all bodies of an ensemble must have the inertia of the problem at t0 = {t0:g} if it varies with time; "
            f"{which}: run ph.solve for each body"
        )
