"""Trajectories and ensembles as bodies made of atoms, in extended XYZ and GSD."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InputError
from ...physics.array_arguments import finite_rows
from ...physics.periodic_box import box_of
from .. import observables
from ..ensemble import Ensemble
from . import atoms
from .aem import NO_STATES
from .place import Place


def write_xyz(result: Any, place: Place, *, points: Any, symbols: Any, centres: Any = None, box: Any = None) -> None:
    """Write the atoms of a body, or of all bodies of an ensemble, at all stored times.

    points : (S, 3) atoms in the axes of the body, from its pivot
    symbols : (S,) their names, such as ["O", "H", "H"]
    centres : (N, 3) places of the pivots; needed for an ensemble
    box : a periodic box, or its edges
    """
    _write(".xyz", result, place, points, symbols, centres, box)


def write_gsd(result: Any, place: Place, *, points: Any, symbols: Any, centres: Any = None, box: Any) -> None:
    """Write bodies and their atoms at all stored times; the arguments are those of `write_xyz`."""
    _write(".gsd", result, place, points, symbols, centres, box)


def _write(kind: str, result: Any, place: Place, points: Any, symbols: Any, centres: Any, box: Any) -> None:
    arms = finite_rows("points", points, (None, 3))
    q = result.quaternion if isinstance(result, Ensemble) else result.quaternion[:, None]
    check_complete(result, q)
    x = centres_of(centres, q.shape[1])
    box = box_of(box)
    names = np.array([atoms.checked_symbols(symbols, len(arms))] * q.shape[1])
    with contextlib.closing(atoms.writer(kind, place.file, atoms.Layout(names, box=box))) as file:
        for frame in _frames(result.t, q, x, arms):
            file.add(frame)


def check_complete(result: Any, q: np.ndarray) -> None:
    """Refuse results without states, or whose bodies do not all have all states at the same times."""
    if not len(q):
        raise InputError(NO_STATES)
    if result.t.ndim != 1:
        raise InputError("the bodies have different times; run them with times=..., or use many.at(...)")
    if not np.isfinite(q).all():
        bad = int(np.flatnonzero(~np.isfinite(q).all(axis=(0, 2)))[0])
        raise InputError(f"body {bad} does not have all states; export single bodies, such as many[0].export(...)")


def centres_of(centres: Any, number: int) -> np.ndarray:
    """Return the places of the pivots; that of a single body is the origin, unless it is given."""
    if centres is None and number > 1:
        raise InputError(f"give centres, the positions of the {number} bodies, as an array ({number}, 3)", "centres")
    return np.zeros((1, 3)) if centres is None else finite_rows("centres", centres, (number, 3))


def _frames(t: np.ndarray, q: np.ndarray, x: np.ndarray, arms: np.ndarray) -> Iterator[atoms.Frame]:
    for time, attitudes in zip(t.tolist(), q, strict=True):
        turned = observables.matrices(attitudes) @ arms.T  # (N, 3, S)
        yield atoms.Frame(x, attitudes, x[:, None] + turned.swapaxes(1, 2), time)
