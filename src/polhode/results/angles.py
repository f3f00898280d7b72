"""Euler angles of recorded attitudes, in degrees: as arrays, as columns of tables and in data sets.

They are named after their sequence, such as euler_deg_ZYX, so that axes, order and unit are said by the name.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from ..physics.validate import euler_sequence

if TYPE_CHECKING:
    import xarray

EULER = "euler_deg_"
"""Beginning of the names."""

_NAME = re.compile(f"{EULER}([XYZ]{{3}}|[xyz]{{3}})(?:_([123]))?")


def degrees(quaternion: np.ndarray, sequence: str) -> np.ndarray:
    """Euler angles (..., 3) in degrees of attitudes (..., 4), in the order of the sequence."""
    return of_attitudes(quaternion, euler_sequence("euler", sequence, "euler"), degrees=True)


def of_attitudes(quaternion: np.ndarray, axes: str, degrees: bool) -> np.ndarray:
    """Euler angles (..., 3) of attitudes (..., 4), in the order of a checked sequence; NaN where there is none.

    Where the first and the last axis are parallel, only their sum or difference is determined; SciPy then sets the
    last angle to zero, which gives the right attitude, so its warning is left out.
    """
    from scipy.spatial.transform import Rotation

    known = np.isfinite(quaternion).all(axis=-1)
    found = np.full((*quaternion.shape[:-1], 3), np.nan)
    if known.any():
        turned = Rotation.from_quat(quaternion[known], scalar_first=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Gimbal lock")
            found[known] = turned.as_euler(axes, degrees=degrees)
    return found


def columns(quaternion: np.ndarray, sequence: str | None) -> dict[str, np.ndarray]:
    """The three columns of a table, none without a sequence."""
    if sequence is None:
        return {}
    found = degrees(quaternion, sequence)
    return {f"{EULER}{sequence}_{i + 1}": found[:, i] for i in range(3)}


def meaning(name: str) -> dict[str, str] | None:
    """Meaning and unit of a column or an array of Euler angles; None for other names."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    sequence, number = found.groups()
    which = f"Euler angles {sequence}" if number is None else f"Euler angle {number} of {sequence}"
    axes = "axes that turn with the body (intrinsic)" if sequence.isupper() else "axes fixed in space (extrinsic)"
    return {"long_name": f"{which}, body to space, about {axes}", "units": "degree"}


def added(data: xarray.Dataset, sequence: str | None) -> xarray.Dataset:
    """The data set with the Euler angles of its attitudes as a further variable."""
    if sequence is None:
        return data
    name, attitude = f"{EULER}{sequence}", data["quaternion"]
    values = degrees(attitude.values, sequence)
    return data.assign({name: ((*attitude.dims[:-1], "angle"), values, meaning(name) or {})})
