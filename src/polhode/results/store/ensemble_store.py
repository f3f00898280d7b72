"""Ensembles as Zarr stores that are written unit by unit.

A *unit* (a shard of the ensemble) is a slice of the bodies, one chunk of the store along `body`. The bits of a body do
not depend on its neighbours, so a unit may be run anywhere and any number of times. Its results are written chunk by
chunk, each file atomically, then its checksums, a row of `checks/units`. The chunk of `failed` is written last, once
the others are on disk, and marks the unit as done. So the store is readable at any time: a body not run yet has
`failed` = -2 and NaN states. A unit whose numbers no longer match their checksums can be run again.

The inputs are in the group `inputs`. So a worker needs only the path of the store to run a unit, and a resumed run can
be compared with the stopped one. The checksums of the inputs are in the attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...physics.observers.statistics import PARTS
from ..ensemble import NOT_YET
from . import event_files, file_format, integrity
from .integrity import CHECKSUMS, DIGEST

FORMAT = "polhode ensemble 2"
WITHOUT_CHECKSUMS = "polhode ensemble 1"
"""Format of earlier versions."""

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "t": (("time", "body"), *file_format.VARIABLES["t"][1:]),
    "quaternion": (("time", "body", "component"), *file_format.VARIABLES["quaternion"][1:]),
    "momentum": (("time", "body", "axis"), *file_format.VARIABLES["momentum"][1:]),
    "moments": (("body", "axis"), "M L^2", "principal moments of inertia"),
    "energy_change": (
        ("body",),
        "1",
        "largest relative change, among the states kept, of kinetic plus potential energy (kinetic where there is no "
        "potential)",
    ),
    "failed": (("body",), "1", "number of the step that failed, counting from 1; -1: none did; -2: not run yet"),
}
SAVED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "energy": (("time", "body"), *file_format.VARIABLES["energy"][1:]),
    "steps": (("body",), "1", "number of steps of each body"),
    "error_estimate": (
        ("body",),
        "1",
        "estimated error at the end: the larger of the attitude error (an angle) and the momentum error relative to "
        "the largest momentum",
    ),
    "axes": (("body", "component"), "1", "rotation from the principal axes to the axes of the body, scalar first"),
}
"""Further variables of files, if they are known and needed."""

PLAIN = ("t", "quaternion", "momentum", "moments", "failed")
"""Variables that are attributes of an `Ensemble`."""

UNITS = {name: unit for name, (_, unit, _) in file_format.VARIABLES.items()} | {
    "momentum_norm": file_format.VARIABLES["momentum"][1]
}
"""Physical units of the named observables; a user's function has the user's units."""


# --- variables and attributes -----------------------------------------------------------------------


SAID = {**file_format.SAID_OF_ALL, "format": FORMAT}

CHECKED = "checked"
"""Attribute: the variables whose checksums are the columns of `checks/units`."""


def counted_from_one(failed: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
    """Numbers of failed steps, counting from 1; files without checksums count from 0."""
    return np.where(failed >= 0, failed + 1, failed) if attrs.get("format") == WITHOUT_CHECKSUMS else failed


def statistics_names(observed: Iterable[str]) -> list[str]:
    """Names of the variables for the statistics of some observables."""
    return [f"{name}_{part}" for name in observed for part in PARTS]


def dims_of(name: str, per_body_times: bool, observed: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Dimensions of a variable; for a statistic, they depend on the components of its observable."""
    if name in SAVED:
        return SAVED[name][0]
    if name in VARIABLES:
        return ("time",) if name == "t" and not per_body_times else VARIABLES[name][0]
    if is_state(name):
        raise KeyError(f"{name}: its dimensions are those of `state_variables`")
    of, _, part = name.rpartition("_")
    return ("body", "axis") if (observed or {})[of] > 1 and part != "drift" else ("body",)


def labelled(name: str) -> dict[str, str]:
    """Meaning and unit of a variable."""
    if (known := (VARIABLES | SAVED).get(name)) is not None:
        return {"long_name": known[2], "units": known[1]}
    if is_state(name):
        return {"long_name": f"state {name.removeprefix(file_format.STATE)}"}
    of, _, part = name.rpartition("_")
    unit = "1" if part == "drift" else UNITS.get(of)
    return {"long_name": f"{of}, {PARTS[part]}"} | ({} if unit is None else {"units": unit})


def is_state(name: str) -> bool:
    """True for the variable of a state of a field, such as what a controller holds; statistics have other names."""
    return name.startswith(file_format.STATE) and name.rpartition("_")[2] not in PARTS


def states_attribute(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The attribute with names and shapes of states; none if there are none (see `file_format.states_of`)."""
    return {"states": json.dumps([[name, list(shape)] for name, shape in shapes.items()])} if shapes else {}


def state_variables(states: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Dimensions and values (n, N, ...) of the variables of states; a name that could be a statistic is refused."""
    found = {}
    for name, values in states.items():
        full = file_format.STATE + name
        if not is_state(full):
            part = name.rpartition("_")[2]
            raise InputError(f"in files, names that end with _{part} are those of statistics; rename the state {name}")
        found[full] = ("time", "body", *(f"{name}_{i}" for i in range(values.ndim - 2))), values
    return found


# --- units ------------------------------------------------------------------------------------------


def described(path: Path) -> dict[str, Any]:
    """Description of a store of this library, checked for damage."""
    try:
        found = integrity.described(path)
    except Exception as problem:
        raise InputError(f"{path} cannot be read as an ensemble: {integrity.line(problem)}") from problem
    attrs = found["attributes"]
    if attrs.get("format") not in (FORMAT, WITHOUT_CHECKSUMS):
        raise InputError(f"{path} is not a polhode ensemble (format {attrs.get('format')!r}, expected {FORMAT!r})")
    if attrs["format"] == FORMAT and not {DIGEST, CHECKSUMS} <= attrs.keys():
        raise integrity.damaged(path, "its checksums are missing")
    return found


def opened(path: Path, mode: str = "r") -> Any:
    """Open the group of a store of this library; the descriptions of all arrays are read at once."""
    described(path)
    try:
        return integrity.opened(path, mode)
    except Exception as problem:
        raise InputError(f"{path} cannot be read as an ensemble: {integrity.line(problem)}") from problem


def missing(path: Path) -> list[int]:
    """Numbers of the units that are not done."""
    root = opened(path)
    try:
        first = root["failed"][:][:: root.attrs["unit"]]
    except Exception as problem:
        raise integrity.damaged(path, f"failed cannot be read ({integrity.line(problem)})") from problem
    return [int(u) for u in np.flatnonzero(first == NOT_YET)]


def number_of_units(root: Any) -> int:
    """Number of units."""
    return int(-(-root.attrs["bodies"] // root.attrs["unit"]))


def bounds(root: Any, number: int) -> tuple[int, int]:
    """Index of the first body of a unit, and of the one after its last."""
    shard_size = root.attrs["unit"]
    return number * shard_size, min((number + 1) * shard_size, root.attrs["bodies"])


def is_done(root: Any, number: int) -> bool:
    """True if a unit has been run and written."""
    return bool(root["failed"][number * root.attrs["unit"]] != NOT_YET)


def body_axis(name: str) -> int:
    """Axis of the dimension `body`."""
    return int(is_state(name) or "time" in (VARIABLES | SAVED).get(name, ((),))[0])


def _where(root: Any, name: str, number: int) -> Any:
    begin, end = bounds(root, number)
    return (slice(None),) * body_axis(name) + (slice(begin, end),)


def is_finished(path: Path) -> bool:
    """True if the store is marked as finished."""
    return bool(described(path)["attributes"].get("status") == "finished")


# --- checks -----------------------------------------------------------------------------------------


def check_unit(root: Any, number: int) -> None:
    """Verify the checksums of a unit that is done."""
    row = root["checks/units"][number]
    for name, expected in zip(root.attrs[CHECKED].split(), row, strict=True):
        values = root[name][_where(root, name, number)]
        integrity.check(name, integrity.checksum(values, axis=body_axis(name)), {name: int(expected)})
    if root.attrs.get("events"):
        event_files.read(Path(root.store.root), number)


def check_constant(path: Path, root: Any) -> None:
    """Verify the checksums of the arrays that no unit writes: the inputs, and the varied values of a sweep."""
    metadata = integrity.arrays(described(path))
    sums = integrity.checksums_of(root.attrs) or {}
    for name in sums:
        try:
            integrity.check_chunks(path, name, metadata[name])
            array, found = root[name], 0
            block = max(array.chunks[0], 1 << 16)
            for begin in range(0, array.shape[0], block):
                found = integrity.checksum(array[begin : begin + block], found)
            integrity.check(name, found, sums)
        except Exception as problem:
            raise integrity.damaged(path, f"{name} cannot be read ({integrity.line(problem)})") from problem


def check_units(path: Path) -> list[int]:
    """Numbers of the units that are marked as done but damaged."""
    root = opened(path)
    return [number for number in range(number_of_units(root)) if not _is_sound(root, number)]


def _is_sound(root: Any, number: int) -> bool:
    try:
        if is_done(root, number):
            check_unit(root, number)
    except Exception:
        return False
    return True
