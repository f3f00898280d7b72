"""The states of a trajectory or an ensemble as a table: one row for each state, one column for each number.

A column is named after its array and the component, such as quaternion_w or spatial_momentum_x, so that order and frame
are said by the names. Ensembles have a column `body`, and their rows are sorted by body, then by time.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._extras import needed
from .. import angles, one_body
from ..ensemble import Ensemble
from ..store import ensemble_store, file_format
from ..store.file_format import LABELS, VARIABLES
from ..trajectory import Trajectory

if TYPE_CHECKING:
    import pandas

COLUMNS = ("t", "quaternion", "momentum", "omega", "spatial_momentum", "energy")
"""Arrays that are written, in this order; rotation matrices follow from the quaternions."""

BODY, STATE = "body", "state_"
ROWS = 1 << 16
"""Rows of a block of an ensemble, about."""


def frame(result: Trajectory | Ensemble, euler: str | None = None) -> pandas.DataFrame:
    """The whole table as a DataFrame; units, meaning and conventions are in its `attrs`."""
    pandas = needed("pandas")
    blocks = list(blocks_of(result, euler))
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    made = pandas.DataFrame(whole)
    made.attrs = about(result)
    made.attrs["columns"] = {name: meaning(name) for name in whole}
    return made


def blocks_of(result: Trajectory | Ensemble, euler: str | None = None) -> Iterator[dict[str, np.ndarray]]:
    """Iterate over the table, a bounded number of rows at a time if the states are in a file; at least one block.

    euler : a sequence such as "ZYX", for columns of Euler angles in degrees
    """
    if isinstance(result, Trajectory):
        parts = iter(result.parts()) if len(result) else iter([result])
        return (_of_trajectory(part, euler) for part in parts)
    return _of_ensemble(result, euler)


def _of_trajectory(sol: Trajectory, euler: str | None) -> dict[str, np.ndarray]:
    return _columns({name: getattr(sol, name) for name in COLUMNS}, sol.states, euler)


def _of_ensemble(many: Ensemble, euler: str | None) -> Iterator[dict[str, np.ndarray]]:
    """Blocks of whole bodies. A body that failed has its good states only, and one that was not run has none."""
    arrays = {name: getattr(many, name) for name in known(many)}
    step = max(1, ROWS // max(1, len(many.t)))
    for begin in range(0, max(1, len(many)), step):
        body, time, t = _rows(many, range(begin, min(begin + step, len(many))))
        values = {name: array[time, body] for name, array in arrays.items()}
        states = {name: array[time, body] for name, array in many.states.items()}
        yield {BODY: body, **_columns({"t": t, **values}, states, euler)}


def known(many: Ensemble) -> list[str]:
    """Names of the arrays beside the times; angular velocities and energies need the bodies and their field."""
    unknown = {"t"} | (set() if many.bodies is not None else {"omega"}) | (set() if many.has_energy else {"energy"})
    return [name for name in COLUMNS if name not in unknown]


def _rows(many: Ensemble, bodies: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The body of each row, the index of its state, and its time."""
    found = [(i, *one_body.states_of(many, i)) for i in bodies if many.failed[i] != one_body.NOT_YET]
    body = np.repeat([i for i, *_ in found], [len(t) for _, t, _ in found]).astype(np.int64)
    time = np.concatenate([np.empty(0, np.int64), *(chosen for *_, chosen in found)])
    return body, time, np.concatenate([np.empty(0), *(t for _, t, _ in found)])


def _columns(arrays: dict[str, np.ndarray], states: Any, euler: str | None) -> dict[str, np.ndarray]:
    """The columns of arrays whose first dimension is the row."""
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            found[name] = array
            continue
        labels = LABELS[VARIABLES[name][0][1]]
        found |= {f"{name}_{label}": array[:, i] for i, label in enumerate(labels)}
    found |= angles.columns(arrays["quaternion"], euler)
    for name, values in states.items():
        for index in itertools.product(*map(range, values.shape[1:])):
            found["_".join([STATE + name, *map(str, index)])] = values[(slice(None), *index)]
    return found


def meaning(column: str) -> dict[str, str]:
    """Meaning and unit of a column."""
    name = column if column in VARIABLES else column.rpartition("_")[0]
    if name in VARIABLES:
        return file_format.labelled(name)
    return angles.meaning(column) or {
        "long_name": "number of the body, from 0" if column == BODY else "state of the field"
    }


def about(result: Trajectory | Ensemble) -> dict[str, Any]:
    """How a result was computed, and the conventions of its numbers, as plain text and numbers."""
    if isinstance(result, Trajectory):
        found = file_format.attributes(result.info)
        found["format"] = "polhode trajectory"
        del found["looks"]
        return found
    known = {"method": result.method, "seconds": result.seconds, "tol": result.tol}
    said = ensemble_store.SAID | {"format": "polhode ensemble"}
    return said | {name: value for name, value in known.items() if value is not None}


def about_text(result: Trajectory | Ensemble) -> str:
    """The same as JSON, for formats whose attributes are text."""
    return json.dumps(about(result))
