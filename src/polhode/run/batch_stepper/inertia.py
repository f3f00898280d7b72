"""The bodies of a stepper as columns of numbers for its loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...physics.bodies import Bodies
from ...physics.fields.of_body import inertia_parameters
from ...physics.validate import by_name
from ..ensemble.batch import agreed, check_inertia_of_field, parameters_of
from ..ensemble.inertia import Inertia, inertia_of


def columns(rows: np.ndarray) -> np.ndarray:
    """One row for each number and one column for each body, padded to whole groups; one body fills a group."""
    from ...compile.batch.layout import LANES, padded

    extra = LANES - 1 if len(rows) == 1 else padded(len(rows)) - len(rows)
    return np.ascontiguousarray(np.pad(rows, ((0, extra), (0, 0)), mode="edge").T, dtype=float)


def bodies_of(bodies: Any, field: Any, params: dict[str, Any] | None) -> Bodies:
    """Check the bodies and the parameters of their field."""
    inertia = inertia_of(bodies)
    number = len(inertia.moments)
    params = by_name("params", params, "{'mgl': 1.0}")
    bound, values = parameters_of(field, params, number)
    number = agreed({"bodies": number, "params": len(values)})
    found = Bodies(moments=inertia.moments, own=inertia.own, field=bound, values=values, number=number)
    check_inertia_of_field(found, params)
    return found


def replaced(old: Bodies, indices: Any, bodies: Any) -> tuple[Bodies, np.ndarray]:
    """Return the bodies with some replaced by others (one for each index, or one for all), and the indices."""
    if inertia_parameters(old.field):
        assert old.field is not None
        raise InputError(
            f"the field {old.field.name} has the inertia of the bodies among its parameters, which replace does not "
            "change; make a new stepper"
        )
    number = len(old.moments)
    chosen = _indices(indices, number)
    new = inertia_of(bodies)
    if len(new.moments) not in (1, len(chosen)):
        raise InputError(f"replace needs one body for each of the {len(chosen)} indices; got {len(new.moments)}")
    moments, own = old.moments.copy(), old.own
    moments[chosen] = new.moments
    if own is not None or new.own is not None:
        own = _turned(old.own, number)
        own[chosen] = _turned(new.own, len(new.moments))
    return Bodies(moments=moments, own=own, field=old.field, values=old.values, number=old.number), chosen


def _turned(own: np.ndarray | None, number: int) -> np.ndarray:
    """A copy of the quaternions of the principal axes, written out for all bodies."""
    unturned = np.array([[1.0, 0.0, 0.0, 0.0]])
    return np.array(np.broadcast_to(unturned if own is None else own, (number, 4)))


def _indices(indices: Any, number: int) -> np.ndarray:
    try:
        given = np.atleast_1d(np.asarray(indices))
    except ValueError:  # sequences of different lengths
        given = np.empty(0)
    if given.dtype == bool and given.shape == (number,):
        return np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not ((given >= 0) & (given < number)).all():
        raise InputError(f"indices must be whole numbers from 0 to {number - 1}; got {indices!r}", "indices")
    if len(np.unique(given)) != len(given):
        raise InputError(f"indices must be different from one another; got {indices!r}", "indices")
    return given.astype(np.int64)


__all__ = ["Inertia", "bodies_of", "columns", "replaced"]
