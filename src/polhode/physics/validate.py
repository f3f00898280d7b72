"""Validation of user input: numbers, vectors, attitudes, paths."""

from __future__ import annotations

import inspect
import math
import numbers
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import unit

LONGEST_NAME = 255
"""Longest name of a file or folder in bytes, on all common file systems."""

ROTATION_TOLERANCE = 1e-6
"""Allowed deviation of an attitude from a rotation (single-precision data pass); it is then normalised."""

EULER_SEQUENCE = re.compile(r"([XYZ])(?!\1)([XYZ])(?!\2)[XYZ]|([xyz])(?!\3)([xyz])(?!\4)[xyz]")
"""Three axes of one case, no two alike in a row."""


def real_array(value: Any, expected: str, fresh: bool = True, key: str = "") -> np.ndarray:
    """Convert to an array of doubles (a copy unless `fresh` is False), or raise an error that says what is expected."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        return np.array(value, dtype=float, copy=True if fresh else None)
    except Exception:  # the value may be any object, and its conversion may fail in any way
        raise InputError(f"{expected}; got {value!r}", key) from None


def flag(name: str, value: Any) -> bool:
    """Return the value if it is True or False, else raise an error."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False; got {value!r}", name)
    return bool(value)


def word(name: str, value: Any, *allowed: str) -> str:
    """Return the value if it is one of the words, else raise an error."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r}", name)
    return value


def several(value: Any, expected: str, key: str = "") -> list[Any]:
    """Return what a list or another iterable holds, or raise an error that says what is expected."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return list(value)
    except Exception:  # the value may be any object
        raise InputError(f"{expected}; got {value!r}", key) from None


def by_name(name: str, value: Any, example: str) -> dict[str, Any]:
    """Return the entries of a dictionary, none for None, or raise an error."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} must be a dictionary such as {example}; got {value!r}", name)
    return dict(value or {})


def check_call(name: str, function: Any, *arguments: str) -> None:
    """Refuse a function that cannot be called with so many arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise InputError(f"{name} must be a function of ({', '.join(arguments)}); got {function!r}", name) from None
    except ValueError:  # a function in C whose signature is not known
        return


def file_path(value: Any, expected: str) -> Path:
    """Convert to a path that the file system accepts, or raise an error that says what is expected."""
    try:
        path = Path(value)
        if b"\0" in os.fsencode(path) or any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
            raise ValueError
        path.resolve()
    except (TypeError, ValueError, OSError, RuntimeError):  # RuntimeError: circular links
        raise InputError(f"{expected}; got {value!r}") from None
    return path


def is_finite_real(value: Any) -> bool:
    """True for a finite real number within the range of doubles."""
    try:
        return isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:  # an integer beyond all doubles
        return False


def finite_number(name: str, value: Any) -> float:
    """Convert to a finite float, or raise an error."""
    if type(value) is float and value - value == 0.0:
        return value
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except Exception:
        number = math.nan
    if isinstance(value, str) or (math.isnan(number) and not isinstance(value, numbers.Real)):
        raise InputError(f"{name} must be a number; got {value!r}", name)
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite; got {value!r}", name)
    return number


def number_of_digits(value: Any, most: int = 10_000) -> int:
    """Check a number of decimal digits."""
    if not _is_whole(value) or value > most:
        raise InputError(f"digits must be a whole number from 1 to {most}; got {value!r}", "digits")
    return int(value)


def positive(name: str, value: Any) -> float:
    """Convert to a positive float, or raise an error."""
    number = finite_number(name, value)
    if number <= 0:
        raise InputError(f"{name} must be positive; got {number:g}", name)
    return number


def check_times(t0: float, dt: float, steps: int, step: str = "dt") -> None:
    """Reject steps below the spacing of doubles: consecutive times t0 + n dt would coincide."""
    end = t0 + steps * dt
    if not math.isfinite(end):
        raise InputError(
            f"{steps} steps of {step} = {dt:g} exceed the largest double; choose a smaller {step} or fewer steps"
        )
    spacing = max(float(np.spacing(abs(t0))), float(np.spacing(np.nextafter(abs(end), 0.0))))
    if abs(dt) < spacing:
        raise InputError(
            f"{step} = {dt:g} is below {spacing:g}, the spacing of doubles between t0 = {t0:g} and t_end = {end:g}: "
            f"the times of the steps would coincide; choose a larger {step}, or a t0 closer to 0",
            step,
        )


def apart(*values: float) -> list[str]:
    """Return numbers as text, with six digits or as many more as tell those apart that differ."""
    for digits in range(6, 17):
        texts = [f"{x:.{digits}g}" for x in values]
        if len(set(texts)) == len(set(values)):
            return texts
    return list(map(repr, values))


def excess(value: float, limit: float) -> str:
    """Return a number above a limit as text, with the fewest digits that are above it too."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 17))
    return next((text for text in texts if float(text) > limit), repr(value))


def check_between(first: float, last: float, times: np.ndarray, given: Any) -> None:
    """Refuse times outside a run from `first` to `last`, in either direction; `given` is what the user wrote."""
    low, high = sorted((float(first), float(last)))
    if times.ndim == 1 and (np.isfinite(times) & (times >= low) & (times <= high)).all():
        return
    outside = [*times[times < low][:1].tolist(), *times[times > high][:1].tolist()] if times.ndim == 1 else []
    first_text, last_text, *wrong = apart(low, high, *outside)
    got = " and ".join(wrong) or repr(given)
    raise InputError(f"t must be times between {first_text} and {last_text}, in one dimension; got {got}")


MODERATE = 1e60
"""Times beyond this, or below its inverse, imply angular velocities whose fourth powers overflow or underflow."""

RANGE = 290
"""Decimal exponent of the smallest number that terms of a series may have."""


def check_unit_of_time(name: str, shortest: float, longest: float, powers: int = 4) -> None:
    """Reject a unit of time in which products of angular velocities leave the range of doubles.

    `ph.solve` rescales by itself. The bodies of an ensemble share one unit, and a single step cannot choose one.
    `powers` is the highest power of angular velocities in a step. High ones that overflow make a step fail; those that
    underflow would only be missing.
    """
    most = 10.0 ** (RANGE // powers)
    if longest > most and most < MODERATE:
        raise InputError(
            f"with this method {name} must be at most {most:g}, or high powers of angular velocities underflow; got "
            f"{longest:g}: choose a unit of time in which angular velocities are of moderate size",
            name,
        )
    if shortest < 1 / MODERATE or longest > MODERATE:
        raise InputError(
            f"{name} must lie between {1 / MODERATE:g} and {MODERATE:g}; got {longest if longest > 1 else shortest:g}: "
            f"choose a unit of time in which angular velocities are of moderate size",
            name,
        )


TINY = 2.0**-1022
"""The smallest double with all its digits."""


def check_momenta(name: str, moments: Any, omega: Any) -> None:
    """Reject angular velocities whose momenta I omega leave the range of doubles, or lose digits at its lower end.

    Both are in principal axes, one row or one for each body. Along an axis that hardly turns, a momentum below the
    range changes nothing: the velocity that it stands for is wrong by less than a rounding error of the fastest.
    """
    fastest = np.abs(omega).max(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        momentum = np.abs(moments * omega)
        faint = (momentum < TINY) & (omega != 0) & (moments > 0) & (moments * fastest < TINY)
    bad = np.flatnonzero((faint | ~np.isfinite(momentum)).any(axis=-1))
    if bad.size:
        body = f" of body {bad[0]}" if len(momentum) > 1 else ""
        speed = float(np.broadcast_to(fastest, (len(momentum), 1))[bad[0], 0])
        raise InputError(
            f"{name}{body}, up to {speed:.3g}, gives an angular momentum outside the range of doubles with all digits, "
            f"{TINY:.3g} to {MOST_DOUBLE:.3g}: choose a unit of time in which angular velocities are of moderate size",
            name,
        )


MOST_DOUBLE = float(np.finfo(float).max)
_DOUBLES = np.dtype(float)


def plain_floats(value: Any, count: int) -> tuple[float, ...] | None:
    """Return a list, tuple or array of exactly `count` finite doubles as a tuple; None if the full check is needed.

    This is only a fast path: the full check accepts or rejects all other values.
    """
    kind = type(value)
    if kind is np.ndarray:
        if value.dtype is not _DOUBLES or value.shape != (count,):
            return None
        value = value.tolist()
    elif (kind is not list and kind is not tuple) or len(value) != count:
        return None
    for x in value:
        if type(x) is not float or x - x != 0.0:  # x - x is NaN unless x is finite
            return None
    return tuple(value)


def triple(name: str, value: Any) -> tuple[float, float, float]:
    """Convert to a tuple of three finite numbers, or raise an error."""
    x, y, z = plain_floats(value, 3) or vector(name, value).tolist()
    return x, y, z


def vector(name: str, value: Any) -> np.ndarray:
    """Convert to three finite numbers, or raise an error."""
    expected = f"{name} must be three numbers"
    array = real_array(value, expected, key=name)
    if array.shape != (3,):
        raise InputError(f"{expected}; got {f'shape {array.shape}' if array.shape else repr(value)}", name)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; got {array.tolist()}", name)
    return array


def attitude_quaternion(attitude: Any) -> tuple[float, float, float, float]:
    """Unit quaternion, scalar first, of any accepted attitude."""
    if attitude is None:
        return (1.0, 0.0, 0.0, 0.0)
    if hasattr(attitude, "as_quat"):
        attitude = attitude.as_quat(scalar_first=True)
    given = plain_floats(attitude, 4)
    if given is None:
        array = _attitude_array(attitude)
        if array.shape == (3, 3):
            return _rotation_quaternion(array)
        given = tuple(array.tolist())
    return unit_quaternion(given)


def _attitude_array(attitude: Any) -> np.ndarray:
    """Convert to an array of four finite numbers, or three rows of three."""
    expected = "attitude must be a scipy Rotation, a 3x3 rotation matrix or a unit quaternion with the scalar first"
    given = real_array(attitude, expected)
    if given.shape not in ((4,), (3, 3)):
        raise InputError(f"{expected}; got {f'shape {given.shape}' if given.shape else repr(attitude)}")
    if not np.isfinite(given).all():
        raise InputError(f"attitude must be finite; got {given.tolist()}")
    return given


def _rotation_quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    """Quaternion of a matrix that is a rotation to within `ROTATION_TOLERANCE`, or raise an error."""
    defect = np.abs(R.T @ R - np.eye(3)).max()
    if defect > ROTATION_TOLERANCE:
        raise InputError(f"attitude is not a rotation: R^T R must be 1 and differs from it by {defect:.3g}")
    if np.linalg.det(R) < 0:
        raise InputError("attitude is not a rotation but a reflection: its determinant must be 1 and is -1")
    return quaternion_of(R.tolist())


def unit_quaternion(given: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Normalise a quaternion whose length is 1 to within `ROTATION_TOLERANCE`, or raise an error."""
    length = math.hypot(*given)
    if abs(length - 1) > ROTATION_TOLERANCE:
        raise InputError(
            f"attitude must be a unit quaternion (scalar first); its length is {length:.8g}, so divide by it"
            if length > 0
            else "attitude must be a unit quaternion (scalar first); its length is 0"
        )
    a, b, c, d = given
    s = 1 / math.sqrt(a * a + b * b + c * c + d * d)  # the bits of `unit`, in a third of its time
    return a * s, b * s, c * s, d * s


def start_quaternion(attitude: Any, euler: Any, euler_deg: Any) -> tuple[float, float, float, float]:
    """Unit quaternion, scalar first, of the initial attitude, which is given by at most one of the three arguments."""
    if euler is None and euler_deg is None:
        return attitude_quaternion(attitude)
    given = {"attitude": attitude, "euler": euler, "euler_deg": euler_deg}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"give at most one of attitude, euler, euler_deg; got {' and '.join(named)}")
    return euler_quaternion(named[0], given[named[0]], degrees=euler is None)


def euler_quaternion(name: str, value: Any, degrees: bool) -> tuple[float, float, float, float]:
    """Unit quaternion, body to space, of Euler angles given as (sequence, angles).

    The sequence is that of `euler_sequence`.
    """
    from scipy.spatial.transform import Rotation

    expected = f"{name} must be three axes and three angles, such as ('ZXZ', [0.1, 0.3, 0.0])"
    if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[0], str):
        raise InputError(f"{expected}; got {value!r}", name)
    angles = vector(f"the angles of {name}", value[1])
    sequence = euler_sequence(f"the sequence of {name}", value[0], name)
    return attitude_quaternion(Rotation.from_euler(sequence, angles, degrees=degrees))


def euler_sequence(name: str, value: Any, key: str) -> str:
    """Check the axes of Euler angles, as in SciPy: upper case turn with the body, lower case are fixed in space."""
    if isinstance(value, str) and EULER_SEQUENCE.fullmatch(value):
        return value
    raise InputError(
        f"{name} must be three axes, such as ZYX: upper case (axes of the body, intrinsic) or lower case (axes of "
        f"space, extrinsic), no two alike in a row; got {value!r}",
        key,
    )


def quaternion_of(R: Any) -> tuple[Any, ...]:
    """Quaternion of a rotation matrix (rows), in any number type, by Shepperd's method (largest component first)."""
    squares = _four_squares(R)
    return _by_shepperd(R, max(range(4), key=squares.__getitem__))


def quaternions_of(R: np.ndarray) -> np.ndarray:
    """Quaternions (N, 4) of rotation matrices (N, 3, 3), with the numbers of `quaternion_of`."""
    found = np.empty((len(R), 4))
    largest = np.argmax(_four_squares(np.moveaxis(R, 0, -1)), axis=0)
    for k in range(4):
        chosen = largest == k
        if chosen.any():
            found[chosen] = np.stack(_by_shepperd(np.moveaxis(R[chosen], 0, -1), k), axis=-1)
    return found


def _four_squares(R: Any) -> list[Any]:
    """Four times the squares of the components of the quaternion of a rotation matrix."""
    trace = R[0][0] + R[1][1] + R[2][2]
    return [1 + trace, *(1 - trace + 2 * R[i][i] for i in range(3))]


def _by_shepperd(R: Any, k: int) -> tuple[Any, ...]:
    """Quaternion of a rotation matrix from its component k, the largest one."""
    square = _four_squares(R)[k]
    skew = (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    if k == 0:
        return unit((square, *skew))
    i = k - 1
    return unit((skew[i], *(square if j == i else R[i][j] + R[j][i] for j in range(3))))


MOST_STEPS = 2**53
"""Largest number of steps that a double counts exactly."""


def _is_whole(value: Any) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and 1 <= value <= MOST_STEPS and value == int(value)


def whole_number(name: str, value: Any) -> int:
    """Check a whole number from 1 to `MOST_STEPS`."""
    if not _is_whole(value):
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}", name)
    return int(value)
