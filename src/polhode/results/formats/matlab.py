"""MAT files (level 5), which MATLAB, Octave and SciPy read.

The variables are the arrays of the result with their own names and shapes; quaternions are scalar first, as those of
MATLAB's own toolboxes. The struct `units` has the unit of each of them, and `about` what is known of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from .. import angles
from ..ensemble import Ensemble
from ..store.file_format import VARIABLES
from . import table
from .place import Place

LARGEST = 2**31 - 1
"""Bytes of the largest variable of a MAT file of level 5."""


def write(result: Any, place: Place, *, euler: str | None = None) -> None:
    """Write a MAT file; with `euler`, a sequence such as "ZYX", it has euler_deg_ZYX (..., 3), in degrees."""
    from scipy.io import savemat

    arrays = _arrays(result)
    if euler is not None:
        arrays |= {f"{angles.EULER}{euler}": angles.degrees(arrays["quaternion"], euler)}
    for name, array in arrays.items():
        if array.nbytes > LARGEST:
            raise InputError(f"{name} has more than 2 GB, the limit of MAT files; keep fewer states, or use NetCDF")
    units = {name: VARIABLES[name][1] for name in arrays if name in VARIABLES} | {
        "moments": "M L^2",
        "inertia": "M L^2",
    }
    units |= {name: said["units"] for name in arrays if (said := angles.meaning(name))}
    about = {name: value for name, value in table.about(result).items() if name not in ("units", "inertia")}
    contents = arrays | {"units": {name: unit for name, unit in units.items() if name in arrays}, "about": about}
    savemat(place.file, contents, appendmat=False, long_field_names=True, do_compression=True, oned_as="column")


def _arrays(result: Any) -> dict[str, np.ndarray]:
    if isinstance(result, Ensemble):
        names = ("t", "quaternion", "momentum", "spatial_momentum", "moments", "failed", *_more(result))
        found = {name: np.asarray(getattr(result, name)) for name in names}
    else:
        found = {name: getattr(result, name) for name in (*VARIABLES, "inertia")}
    return found | {table.STATE + name: values for name, values in result.states.items()}


def _more(many: Ensemble) -> list[str]:
    known = table.known(many)
    return [name for name in ("omega", "energy") if name in known]
