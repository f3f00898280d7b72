"""Format of a trajectory file: its variables with units and meaning, and its attributes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _version
from ..._extras import needed
from ...physics import shapes
from .. import observables
from ..trajectory import PRIMARY, STATES, Info, Trajectory

if TYPE_CHECKING:
    import xarray

FORMAT = "polhode trajectory 2"
WITHOUT_CHECKSUMS = "polhode trajectory 1"
"""Format of earlier versions: the same without checksums and digest."""

ROWS_PER_CHUNK = 16384

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "quaternion": (("time", "component"), "1", "attitude, body to space, unit quaternion, scalar first (w, x, y, z)"),
    "matrix": (("time", "row", "column"), "1", "attitude, body to space, rotation matrix"),
    "momentum": (("time", "axis"), "M L^2 T^-1", "angular momentum in the body frame"),
    "omega": (("time", "axis"), "rad T^-1", "angular velocity in the body frame"),
    "spatial_momentum": (("time", "axis"), "M L^2 T^-1", "angular momentum in the space frame"),
    "energy": (("time",), "M L^2 T^-2", "kinetic plus potential energy (kinetic where there is no potential)"),
    "t": (("time",), "T", "time"),
}
"""Dimensions, unit and meaning of every variable."""

States = tuple[tuple[str, tuple[int, ...]], ...]
"""Names and shapes of states of a method or of a controller."""

MOST_NUMBERS = 1 << 16
"""Largest size of a dimension of a state."""

SIZES = {"component": 4, "row": 3, "column": 3, "axis": 3}
LABELS = {"component": ["w", "x", "y", "z"], "axis": ["x", "y", "z"]}
SAID_OF_ALL = {
    "format": FORMAT,
    "polhode_version": _version.__version__,
    "units": "M, L, T are the user's consistent units of mass, length and time: none are converted",
    "conventions": "R maps body to space; quaternions are scalar first; vectors are in the body frame unless the "
    "name says space or spatial",
}


def attributes(info: Info) -> dict[str, Any]:
    """Attributes of a file: strings, numbers, and the inertia tensor as nine numbers, row by row."""
    fields = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    del fields["compile_seconds"]
    fields |= {"inertia": [x for row in info.inertia for x in row], "looks": shapes.to_json(fields.pop("shapes"))}
    fields["states"] = json.dumps(info.states) if info.states else None
    return SAID_OF_ALL | {name: value for name, value in fields.items() if value is not None}


def info_of_attributes(attrs: Mapping[str, Any]) -> Info:
    """Inverse of `attributes`; ValueError, TypeError or KeyError if the attributes are not valid."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Info):
        if field.name in attrs and field.name != "states":
            value = attrs[field.name]
            values[field.name] = _of_type(str(field.type), value.item() if isinstance(value, np.generic) else value)
    inertia = np.array(attrs["inertia"], dtype=float).reshape(3, 3)
    if not np.isfinite(inertia).all():
        raise ValueError(f"the inertia tensor is {inertia.tolist()}")
    values["inertia"] = tuple(map(tuple, inertia.tolist()))
    return Info(**values, shapes=shapes.read(attrs.get("looks", "")), states=states_of(attrs))


STATE = "state_"
"""Beginning of the name of a variable that is a state of the method."""


def states_of(attrs: Mapping[str, Any]) -> States:
    """Names and shapes of the states of the method in a file; ValueError or TypeError if they are not valid."""
    found = tuple((str(name), tuple(map(int, shape))) for name, shape in json.loads(attrs.get("states", "[]")))
    if not all(name.isidentifier() and all(0 < n <= MOST_NUMBERS for n in shape) for name, shape in found):
        raise ValueError(f"the states are {found}")
    return found


def variables(states: States) -> dict[str, tuple[tuple[str, ...], str, str]]:
    """Dimensions, unit and meaning of every variable of a file that holds these states of the method."""
    more = {
        STATE + name: (("time", *(f"{name}_{i}" for i in range(len(shape)))), "", f"state {name}")
        for name, shape in states
    }
    return VARIABLES | more


def sizes(states: States) -> dict[str, int]:
    """Sizes of the dimensions besides the time."""
    return SIZES | {f"{name}_{i}": n for name, shape in states for i, n in enumerate(shape)}


def primary(states: States) -> tuple[str, ...]:
    """Names of the variables from which the others follow."""
    return *PRIMARY, *(STATE + name for name, _ in states)


def _of_type(kind: str, value: Any) -> Any:
    """Return a value if it has the type of its field, else raise TypeError."""
    plain = kind.partition(" | ")[0]
    expected: Any = {"str": str, "int": int, "float": (int, float)}.get(plain, object)
    if not isinstance(value, expected) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no {kind}")
    return float(value) if plain == "float" else value


def described(name: str, known: Mapping[str, tuple[tuple[str, ...], str, str]] | None = None) -> dict[str, str]:
    """Attributes of a variable; `coordinates` tells readers to attach the times to it."""
    return labelled(name, known) if name == "t" else labelled(name, known) | {"coordinates": "t"}


def labelled(name: str, known: Mapping[str, tuple[tuple[str, ...], str, str]] | None = None) -> dict[str, str]:
    """Meaning and unit of a variable."""
    _, unit, meaning = (known or VARIABLES)[name]
    return {"long_name": meaning, "units": unit} if unit else {"long_name": meaning}


def derived(data: Mapping[str, np.ndarray], info: Info) -> dict[str, np.ndarray]:
    """All variables of a file, computed from the primary ones."""
    q, m = data["quaternion"], data["momentum"]
    states: Any = data.get(STATES, {})
    return {
        **{name: values for name, values in data.items() if name != STATES},
        **{STATE + name: values for name, values in states.items() if info.states},
        "matrix": observables.matrices(q),
        "omega": observables.angular_velocity(m, np.array(info.inertia)),
        "spatial_momentum": observables.to_space(q, m),
    }


def dataset(trajectory: Trajectory) -> xarray.Dataset:
    """A trajectory as an xarray Dataset."""
    xarray = needed("xarray")

    arrays = {
        name: xarray.Variable(dims, getattr(trajectory, name), labelled(name)) for name, (dims, *_) in VARIABLES.items()
    }
    for name, values in trajectory.states.items():
        dims = ("time", *(f"{name}_{i}" for i in range(values.ndim - 1)))
        arrays[STATE + name] = xarray.Variable(dims, values, {"long_name": f"state {name} of the field"})
    t = arrays.pop("t")
    return xarray.Dataset(arrays, {"t": t, **LABELS}, attributes(trajectory.info))
