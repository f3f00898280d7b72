"""SPICE C-kernels, through spiceypy (extra ``polhode[ck]``): the binary attitude files of NAIF.

A C-matrix takes coordinates in space to those in the body, C = R^T. SPICE quaternions are scalar first, and that of C
is the conjugate of the quaternion of this library. Angular velocities are in the space frame. A C-kernel counts ticks
of the clock of a spacecraft; a text kernel beside it says what they are in TDB, and names the frame.

C. Acton, N. Bachman, B. Semenov and E. Wright, A look towards the future in the handling of space science mission
geometry, Planet. Space Sci. 150 (2018); CK Required Reading (segments of type 3), SCLK Required Reading (clocks of
type 1), NAIF.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._extras import needed
from ...errors import InputError
from ...kernels.so3 import conj
from ...numbers.arrays import components
from ...physics.aem import Attitudes
from ...physics.epochs import DAY, epoch_of
from ...physics.validate import file_path, finite_number, quaternions_of, real_array, several
from .. import observables
from .aem import one_body, ordered
from .place import Place

TICKS = 1_000_000
"""Ticks of the clock in a second; attitudes may lie between two ticks."""

J2000 = datetime.date(2000, 1, 1).toordinal(), DAY / 2
LONGEST = 2**31 - 1
NAME = re.compile(r"[A-Z][A-Z0-9_]{0,25}")

_SPICE = threading.Lock()
"""SPICE has one pool of kernels for the whole process."""

CLOCK = """KPL/SCLK
A clock of {ticks} ticks a second, which begins with the C-kernel {kernel}, and the frame of the body.

\\begindata
SCLK_KERNEL_ID = ( @{today} )
SCLK_DATA_TYPE_{code} = ( 1 )
SCLK01_TIME_SYSTEM_{code} = ( 1 )
SCLK01_N_FIELDS_{code} = ( 2 )
SCLK01_MODULI_{code} = ( 100000000000 {ticks} )
SCLK01_OFFSETS_{code} = ( 0 0 )
SCLK01_OUTPUT_DELIM_{code} = ( 1 )
SCLK_PARTITION_START_{code} = ( 0.0E0 )
SCLK_PARTITION_END_{code} = ( 1.0E17 )
SCLK01_COEFFICIENTS_{code} = ( 0.0E0 {start!r} 1.0E0 )
FRAME_{name} = {instrument}
FRAME_{instrument}_NAME = '{name}'
FRAME_{instrument}_CLASS = 3
FRAME_{instrument}_CLASS_ID = {instrument}
FRAME_{instrument}_CENTER = {spacecraft}
CK_{instrument}_SCLK = {spacecraft}
CK_{instrument}_SPK = {spacecraft}
\\begintext
"""


def write(
    result: Any, place: Place, *, epoch: str, spacecraft: int = -999, space: str = "J2000", body: str = "POLHODE_BODY"
) -> None:
    """Write the attitudes and angular velocities of a trajectory whose times are seconds, and a text kernel (.tsc).

    epoch : the time t = 0, such as "2029-04-13T21:46:00", in TDB
    spacecraft : its NAIF number, negative; the number of the frame is 1000 times as large
    space : the inertial frame, by its name in SPICE
    body : the name of the frame of the body
    """
    spice = needed("spiceypy")
    one_body(result, "a C-kernel")
    if isinstance(spacecraft, bool) or not isinstance(spacecraft, int) or not -LONGEST // 1000 < spacecraft < 0:
        raise InputError(f"spacecraft must be a negative NAIF number such as -999; got {spacecraft!r}", "spacecraft")
    for name, value in (("space", space), ("body", body)):
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise InputError(f"{name} must be the name of a frame in capitals, such as J2000; got {value!r}", name)
    t, q, omega = ordered(result)
    _check_turns(t, omega)
    ticks = (t - t[0]) * TICKS
    instrument = 1000 * spacecraft
    quaternions = np.stack(conj(components(q)), -1)
    data = (ticks, quaternions, observables.to_space(q, omega))
    start = float(seconds_of_tdb(epoch) + t[0])
    text = CLOCK.format(
        ticks=TICKS, kernel=place.path.name, today=datetime.datetime.now(datetime.UTC).date(), code=-spacecraft,
        start=start, name=body, instrument=instrument, spacecraft=spacecraft,
    )  # fmt: skip
    place.beside(f"{place.path.stem}.tsc").write_text(text, "ascii")
    with _faults(spice, f"{place.path.name} cannot be written"):
        _write_kernel(spice, place.file, instrument, space, data)


def _write_kernel(spice: Any, file: Path, instrument: int, space: str, data: tuple[np.ndarray, ...]) -> None:
    ticks, quaternions, rates = (np.ascontiguousarray(one) for one in data)
    handle = spice.ckopn(str(file), "polhode", 0)
    try:
        spice.ckw03(
            handle, ticks[0], ticks[-1], instrument, space, True, "polhode", len(ticks), ticks, quaternions, rates, 1,
            ticks[:1],
        )  # fmt: skip
        spice.ckcls(handle)
    except BaseException:
        with contextlib.suppress(Exception):
            spice.dafcls(handle)
        raise


def _check_turns(t: np.ndarray, omega: np.ndarray) -> None:
    """Refuse states so far apart that SPICE would interpolate another rotation: the shortest one."""
    speed = np.linalg.norm(omega, axis=1)
    turns = np.diff(t) * np.maximum(speed[1:], speed[:-1])
    if not (np.diff(t) > 0).all():
        at = int((np.diff(t) <= 0).argmax())
        raise InputError(f"times must increase; {t[at + 1]:g} follows {t[at]:g}, so sort the states or drop some")
    if (turns >= np.pi).any():
        at = int(turns.argmax())
        raise InputError(
            f"between the states {at} and {at + 1} the body turns by about {turns[at]:.3g} rad, and SPICE interpolates "
            "the shortest rotation; keep more states, or take them from sol.at(times)"
        )


def seconds_of_tdb(epoch: str) -> float:
    """Seconds of TDB since J2000, the ephemeris time of SPICE, of an epoch."""
    day, second = epoch_of(epoch)
    return DAY * float(day - J2000[0]) + (second - J2000[1])


def read_ck(kernels: Any, instrument: int, times: Any, *, epoch: str, space: str = "J2000") -> Attitudes:
    """Read attitudes at some times from SPICE C-kernels (extra ``polhode[ck]``).

    Parameters
    ----------
    kernels : the paths of the C-kernel, of its clock kernel, and of others that it needs
    instrument : NAIF number of the frame of the body, such as -999000
    times : seconds of TDB since the epoch
    epoch : the time t = 0, such as "2029-04-13T21:46:00", in TDB
    space : the frame to which attitudes refer, by its name in SPICE
    """
    spice = needed("spiceypy")
    t = np.atleast_1d(real_array(times, "times must be seconds since the epoch", key="times"))
    if t.ndim != 1 or not np.isfinite(t).all():
        raise InputError(f"times must be finite, in one dimension; got shape {t.shape}", "times")
    given = [kernels] if isinstance(kernels, str | Path) else kernels
    paths = several(given, "kernels must be the paths of the C-kernel and of its clock kernel", "kernels")
    number = finite_number("instrument", instrument)
    if number != int(number) or abs(number) >= 2**31:
        raise InputError(f"instrument must be a NAIF number, such as -999000; got {instrument!r}", "instrument")
    if not isinstance(space, str) or not space.isascii() or not space.isprintable():
        raise InputError(f"space must be the name of a frame, such as 'J2000'; got {space!r}", "space")
    instrument = int(number)
    start, clock = seconds_of_tdb(epoch), instrument // 1000 if instrument >= 0 else -(-instrument // 1000)
    matrices, rates = np.empty((len(t), 3, 3)), np.empty((len(t), 3))
    with _faults(spice, "the kernels cannot be read"), _loaded(spice, paths):
        for i, seconds in enumerate(t.tolist()):
            ticks = spice.sce2c(clock, start + seconds)
            try:
                matrices[i], rates[i], _ = spice.ckgpav(instrument, ticks, 0.0, space)
            except spice.NotFoundError:
                raise InputError(
                    f"the kernels have no attitude with angular velocity of {instrument} at t = {seconds!r}", "times"
                ) from None
    q = quaternions_of(matrices.swapaxes(1, 2))
    return Attitudes(t, q, observables.product(matrices, rates), space, str(instrument), epoch, "TDB")


@contextlib.contextmanager
def _loaded(spice: Any, paths: list[Any]) -> Iterator[None]:
    """Load kernels, and unload them at the end."""
    names = [str(file_path(path, "a kernel must be a file")) for path in paths]
    done: list[str] = []
    try:
        for name in names:
            spice.furnsh(name)
            done.append(name)
        yield
    finally:
        for name in reversed(done):
            spice.unload(name)


@contextlib.contextmanager
def _faults(spice: Any, what: str) -> Iterator[None]:
    """Let one thread use SPICE, and turn its errors into one line."""
    with _SPICE:
        try:
            yield
        except spice.exceptions.SpiceyError as fault:
            said = " ".join(str(getattr(fault, "long", "") or getattr(fault, "short", "") or fault).split())
            raise InputError(f"{what}: {said}") from None
