"""Attitude Ephemeris Messages (CCSDS 504.0-B-2, text form). `physics/aem` reads them and states the conventions."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import numpy as np

from ...errors import InputError
from ...physics import epochs
from ...physics.aem import BODY
from ...physics.validate import flag
from ..ensemble import Ensemble
from .place import Place

NO_STATES = "the trajectory has no states"
SYSTEMS = ("UTC", "TAI", "TT", "GPS", "TDB", "TCB")


def write(
    result: Any,
    place: Place,
    *,
    epoch: str,
    system: str = "TDB",
    space: str = "ICRF",
    body: str = f"{BODY}_1",
    object_name: str = "UNKNOWN",
    object_id: str = "UNKNOWN",
    center: str | None = None,
    originator: str = "POLHODE",
    omega: bool = False,
) -> None:
    """Write the attitudes of a trajectory whose times are seconds.

    epoch : the time t = 0, such as "2029-04-13T21:46:00"
    system : the time system: UTC (with leap seconds), TAI, TT, GPS, TDB or TCB
    space, body : names of the frames A and B
    object_name, object_id, center, originator : metadata that the standard requires
    omega : True also writes angular velocities (in degrees per second, in the body frame)
    """
    one_body(result, "an AEM")
    if not isinstance(system, str) or system not in SYSTEMS:
        raise InputError(f"system must be one of {', '.join(SYSTEMS)}; got {system!r}", "system")
    names = {"space": space, "body": body, "object_name": object_name, "object_id": object_id}
    for name, value in (names | {"center": center or "-", "originator": originator}).items():
        _check_text(name, value)
    t, q, rates = ordered(result)
    moments = epochs.written(epochs.epoch_of(epoch), t.tolist(), system)
    check_apart(moments)
    numbers = [q[:, [1, 2, 3, 0]], np.degrees(rates)] if flag("omega", omega) else [q[:, [1, 2, 3, 0]]]
    meta = {
        "OBJECT_NAME": object_name, "OBJECT_ID": object_id, "CENTER_NAME": center, "REF_FRAME_A": space,
        "REF_FRAME_B": body, "TIME_SYSTEM": system, "START_TIME": moments[0], "STOP_TIME": moments[-1],
        "ATTITUDE_TYPE": "QUATERNION/ANGVEL" if omega else "QUATERNION", "ANGVEL_FRAME": body if omega else None,
    }  # fmt: skip
    with place.file.open("w", encoding="ascii", newline="\n") as file:
        file.write(_header(originator))
        file.write("META_START\n")
        file.writelines(f"{name} = {value}\n" for name, value in meta.items() if value is not None)
        file.write("META_STOP\n\nDATA_START\n")
        for moment, row in zip(moments, np.hstack(numbers).tolist(), strict=True):
            file.write(" ".join([moment, *map(repr, row)]) + "\n")
        file.write("DATA_STOP\n")


def one_body(result: Any, what: str) -> None:
    """Refuse an ensemble, for formats that have one body."""
    if isinstance(result, Ensemble):
        raise InputError(f"{what} has the attitudes of one body; export one of them, such as many[0].export(...)")


def ordered(sol: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, quaternions and angular velocities in the body frame, in the order of time."""
    t, q, rates = sol.t, sol.quaternion, sol.omega
    if not len(t):
        raise InputError(NO_STATES)
    return (t, q, rates) if t[0] <= t[-1] else (t[::-1], q[::-1], rates[::-1])


def check_apart(moments: list[str]) -> None:
    """Refuse times that cannot be told apart; epochs of one length are compared as text."""
    wide = [moment.ljust(40, "0") for moment in moments]
    for i, (a, b) in enumerate(itertools.pairwise(wide)):
        if a >= b:
            raise InputError(
                f"times must increase by at least 1e-{epochs.DECIMALS} s; states {i} and {i + 1} are both at "
                f"{moments[i]}"
            )


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value.strip() or not value.isascii() or not value.isprintable():
        raise InputError(f"{name} must be a line of ASCII text; got {value!r}", name)


def _header(originator: str) -> str:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return (
        "CCSDS_AEM_VERS = 2.0\n"
        "COMMENT Quaternions are Q1 Q2 Q3 QC, the scalar last, from REF_FRAME_A to REF_FRAME_B.\n"
        f"CREATION_DATE = {now}\nORIGINATOR = {originator}\n\n"
    )
