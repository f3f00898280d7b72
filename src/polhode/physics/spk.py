"""Positions from SPK kernels (the binary ephemerides of JPL and NAIF), through jplephem (extra ``polhode[spk]``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _files
from .._extras import needed
from ..errors import InputError
from .epochs import epoch_of
from .validate import file_path, real_array

METRES, DAY = 1000.0, 86400.0
FIRST_DAY = 1721424.5
"""Julian date of midnight before day 0 of the calendar of Python."""


def states(path: Any, target: Any, centre: Any, times: Any, epoch: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities (n, 3) of a target seen from a centre, in metres, at seconds of TDB after an epoch."""
    file = file_path(path, "an SPK kernel must be a file")
    seconds = real_array(times, "times must be numbers", key="times")
    if seconds.ndim != 1 or not len(seconds) or not np.isfinite(seconds).all():
        raise InputError(f"times must be a list of finite numbers; got shape {seconds.shape}", "times")
    day, second = epoch_of(epoch)
    moments = FIRST_DAY + day, (second + seconds) / DAY
    try:
        _files.ordinary(file).close()  # the reader would wait for a pipe
        with needed("jplephem.spk").SPK.open(file) as kernel:
            return _difference(kernel, (_whole("target", target), _whole("centre", centre)), moments)
    except InputError:
        raise
    except Exception as problem:  # a file that is not a kernel raises exceptions of several types
        raise InputError(f"{file.name} cannot be read as an SPK kernel: {' '.join(str(problem).split())}") from None


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a NAIF number such as 399 (Earth) or 10 (Sun); got {value!r}", name)
    return int(value)


def _difference(kernel: Any, bodies: tuple[int, int], moments: Any) -> tuple[np.ndarray, np.ndarray]:
    """State of the first body minus that of the second, each followed to the root of its chain of centres."""
    (root, *first), (other, *second) = (_from_root(kernel, body, moments) for body in bodies)
    if root != other:
        raise InputError(
            f"the kernel does not connect {bodies[0]} with {bodies[1]}; it has the pairs "
            f"{', '.join(f'{segment.center} to {segment.target}' for segment in kernel.segments)}"
        )
    position, velocity = ((a - b).T for a, b in zip(first, second, strict=True))
    return METRES * position, METRES / DAY * velocity


def _from_root(kernel: Any, body: int, moments: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """The root, and the state of a body (km, km/day) with respect to it."""
    position = velocity = np.zeros((3, len(moments[1])))
    low, high = moments[0] + moments[1].min(), moments[0] + moments[1].max()
    while found := [segment for segment in kernel.segments if segment.target == body]:
        # the last segment of a file has priority
        covering = [one for one in found if one.start_jd <= low and high <= one.end_jd]
        if not covering:
            raise InputError(
                f"the kernel has {body} from Julian date {found[-1].start_jd} to {found[-1].end_jd}; the times reach "
                f"from {low} to {high}",
                "times",
            )
        x, v = covering[-1].compute_and_differentiate(*moments)
        position, velocity, body = position + x, velocity + v, covering[-1].center
    return body, position, velocity
