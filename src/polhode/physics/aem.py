"""Attitude Ephemeris Messages: the text form (KVN) of CCSDS 504.0-B, version 1 or 2.

Annex F of 504.0-B-2: the quaternion from frame A to frame B, (Q1, Q2, Q3, QC) with the scalar last, is that of the
rotation that takes the axes of A to those of B. With A in space and B in the body it has the components of the
quaternion of this library, body to space, in another order. Angles are in degrees, and Euler angles belong to rotations
about moving axes. Files of version 1 say in which order and direction their quaternions are.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import conj, rotate, unrotate
from ..numbers.arrays import components
from . import epochs, kvn

COLUMNS = {
    "QUATERNION": 4, "QUATERNION/DERIVATIVE": 8, "QUATERNION/ANGVEL": 7, "QUATERNION/RATE": 7,
    "EULER_ANGLE": 3, "EULER_ANGLE/DERIVATIVE": 6, "EULER_ANGLE/ANGVEL": 6, "EULER_ANGLE/RATE": 6,
    "SPIN": 4, "SPIN/NUTATION": 7, "SPIN/NUTATION_MOM": 7,
}  # fmt: skip
"""Numbers in a line of data, by the type of the attitude (table 4-4; those with RATE are of version 1)."""

VERSIONS = ("1", "2")
NEEDED = ("REF_FRAME_A", "REF_FRAME_B", "TIME_SYSTEM", "ATTITUDE_TYPE")
EULER = re.compile(r"([XYZ])(?!\1)([XYZ])(?!\2)[XYZ]")
"""Three axes, no two alike in a row."""

BODY = "SC_BODY"
"""How names of frames of a spacecraft begin."""

LENGTH = 1e-3
"""Allowed deviation of the length of a quaternion from 1: files may have few decimals."""


@dataclasses.dataclass(frozen=True, eq=False)
class Attitudes:
    """Attitudes over time, from a file.

    Attributes
    ----------
    t : (n,) seconds since `epoch`
    quaternion : (n, 4) body to space, SCALAR FIRST
    omega : (n, 3) angular velocities in the body frame, in rad/s; None if the file has none
    space, body : names of the frames
    epoch, system : the time t = 0, and the time system
    meta : all metadata of the segment
    """

    t: np.ndarray
    quaternion: np.ndarray
    omega: np.ndarray | None
    space: str
    body: str
    epoch: str
    system: str
    meta: dict[str, str] = dataclasses.field(repr=False, default_factory=dict)

    @property
    def rotation(self) -> Any:
        """The attitudes as a scipy Rotation, body to space."""
        from scipy.spatial.transform import Rotation

        return Rotation.from_quat(self.quaternion, scalar_first=True)

    def __len__(self) -> int:
        return len(self.t)


def read_aem(path: Any, *, epoch: str | None = None) -> list[Attitudes]:
    """Read an Attitude Ephemeris Message of CCSDS (text, version 1 or 2); one entry for each segment.

    epoch : the time t = 0, such as "2029-04-13T21:46:00" in the time system of the file (default: its first line)
    """
    start = None if epoch is None else epochs.epoch_of(epoch)
    return _Reader(path, start).read()


class _Reader(kvn.Reader):
    kind, fewest = "AEM", 1
    blocks = {"META_STOP": "between", "DATA_START": "data", "DATA_STOP": "between"}  # noqa: RUF012

    def __init__(self, path: Any, start: epochs.Epoch | None) -> None:
        super().__init__(path)
        self.start = start

    def outside(self, line: str) -> None:
        raise self.fault("lines of data stand between DATA_START and DATA_STOP", line)

    def check_numbers(self, numbers: list[float], line: str) -> None:
        kind = (self.meta or {}).get("ATTITUDE_TYPE", "").upper()
        if kind not in COLUMNS:
            raise self.fault(f"ATTITUDE_TYPE must be one of {', '.join(COLUMNS)}", kind)
        if len(numbers) != COLUMNS[kind]:
            raise self.fault(f"a line of data of the type {kind} is an epoch and {COLUMNS[kind]} numbers", line)

    def segment(self, meta: dict[str, str], rows: list[kvn.Row]) -> Attitudes:
        if self.version[0] not in VERSIONS:
            raise InputError(f"CCSDS_AEM_VERS of {self.file.name} must be 1 or 2; got {self.version!r}")
        for name in NEEDED:
            if name not in meta:
                raise InputError(
                    f"{self.file.name} has a segment without {name}, which says what its numbers mean; add it to the "
                    "file"
                )
        moments, system = [moment for moment, _ in rows], meta["TIME_SYSTEM"]
        self.start = self.start or moments[0]
        t = epochs.seconds_since(self.start, moments, system)
        if not (np.diff(t) > 0).all():
            at = int(np.flatnonzero(np.diff(t) <= 0)[0]) + 2
            raise InputError(
                f"times must increase; line {at} of the data of a segment of {self.file.name} is not later, so sort or "
                "remove lines"
            )
        q, omega = self._motion(meta, np.array([numbers for _, numbers in rows]))
        frames = meta["REF_FRAME_A"], meta["REF_FRAME_B"]
        if frames[0].startswith(BODY) and not frames[1].startswith(BODY):  # from body to space
            omega = None if omega is None else np.stack(rotate(components(q), components(-omega)), -1)
            q, frames = np.stack(conj(components(q)), -1), frames[::-1]
        return Attitudes(t, q, omega, *frames, epochs.written(self.start, [0.0], system)[0], system, meta)

    def _motion(self, meta: dict[str, str], data: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Quaternions, scalar first, from A to B, and angular velocities of B with respect to A in the axes of B."""
        kind, _, more = meta["ATTITUDE_TYPE"].upper().partition("/")
        angles = {"QUATERNION": self._quaternions, "EULER_ANGLE": self._euler, "SPIN": self._spin}
        q = angles[kind](meta, data)
        omega = np.radians(data[:, -3:]) if more == "ANGVEL" else None
        if omega is not None:
            frame = meta.get("ANGVEL_FRAME", "")
            if frame in ("REF_FRAME_A", meta["REF_FRAME_A"]):
                omega = np.stack(unrotate(components(q), components(omega)), -1)
            elif frame not in ("REF_FRAME_B", meta["REF_FRAME_B"]):
                raise InputError(f"ANGVEL_FRAME of {self.file.name} must be one of its two frames; got {frame!r}")
        return q, omega

    def _quaternions(self, meta: dict[str, str], data: np.ndarray) -> np.ndarray:
        newer = self.version[0] >= "2"
        order, direction = (
            self._choice(meta, name, choices, choices[0] if newer else None)
            for name, choices in (("QUATERNION_TYPE", ("LAST", "FIRST")), ("ATTITUDE_DIR", ("A2B", "B2A")))
        )
        q = data[:, :4] if order == "FIRST" else data[:, [3, 0, 1, 2]]
        length = np.linalg.norm(q, axis=1)
        if not (np.abs(length - 1) <= LENGTH).all():
            at = int(np.abs(length - 1).argmax())
            raise InputError(f"quaternion {at + 1} of {self.file.name} must have the length 1; it has {length[at]:.6g}")
        q = q / length[:, None]
        return q if direction == "A2B" else np.stack(conj(components(q)), -1)

    def _euler(self, meta: dict[str, str], data: np.ndarray) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        if self.version[0] < "2":
            raise InputError(
                f"{self.file.name} has Euler angles of version 1 of the standard, whose order is not certain; convert "
                "it to version 2, or to quaternions"
            )
        sequence = meta.get("EULER_ROT_SEQ", "").upper()
        if not EULER.fullmatch(sequence):
            raise InputError(f"EULER_ROT_SEQ of {self.file.name} must be three axes such as ZXZ; got {sequence!r}")
        found: np.ndarray = Rotation.from_euler(sequence, data[:, :3], degrees=True).as_quat(scalar_first=True)
        return found

    def _spin(self, meta: dict[str, str], data: np.ndarray) -> np.ndarray:
        """Annex F5.2: rotations about Z, X, Z by alpha + 90, 90 - delta and the spin angle, in degrees."""
        from scipy.spatial.transform import Rotation

        alpha, delta, spin = data[:, :3].T
        angles = np.stack([alpha + 90, 90 - delta, spin], 1)
        found: np.ndarray = Rotation.from_euler("ZXZ", angles, degrees=True).as_quat(scalar_first=True)
        return found

    def _choice(self, meta: dict[str, str], name: str, choices: tuple[str, ...], default: str | None) -> str:
        found = meta.get(name, default)
        if found is None or found.upper() not in choices:
            raise InputError(f"{name} of {self.file.name} must be one of {', '.join(choices)}; got {found!r}")
        return found.upper()
