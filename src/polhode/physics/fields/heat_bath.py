"""The heat bath of a body: temperature and friction, and the counters of its random numbers.

A heat bath exerts no torque that a field could give: methods with noise ask for its parameters
(`methods/queries.HeatBath`), and other methods refuse it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import apply, dot
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel
from ..axes import axes
from ..validate import finite_number, real_array
from .decorators import potential
from .field import HEAT_BATH, Field
from .parameters import name_of_parameter
from .registry import reading
from .template import FieldTemplate

LARGEST = 2**53
"""Counters are whole numbers below this: doubles hold them exactly."""

KT, FRICTION, SEED, STREAM, FIRST = 0, 1, 10, 11, 12
"""Places of the parameters; the friction tensor is nine numbers by rows."""

ROUND_OFF = 1e-12
"""Asymmetry and negative eigenvalues of a friction tensor, relative to its size, that count as round-off."""


class BathField(Field):
    """A heat bath with its parameters bound."""

    bath, bath_kind = 0, (HEAT_BATH, FIRST + 1)


def temperature(name: str, value: Any) -> float:
    """Check a temperature times Boltzmann's constant."""
    value = finite_number(name, value)
    if value < 0:
        raise InputError(f"{name}, the temperature times Boltzmann's constant, must be 0 or more; got {value!r}", name)
    return value


def counter(name: str, value: Any) -> float:
    """Check a whole number that counts random numbers."""
    number = finite_number(name, value)
    if number != int(number) or not 0 <= number < LARGEST:
        raise InputError(f"{name} must be a whole number from 0 to 2^53 - 1; got {value!r}", name)
    return number


def friction_tensor(name: str, value: Any) -> np.ndarray:
    """The friction tensor of a number, three numbers (its diagonal) or a 3x3 matrix."""
    expected = f"{name} must be a number, three numbers (the diagonal) or a symmetric 3x3 tensor"
    given = real_array(value, expected)
    if given.shape in ((), (3,)):
        given = np.diag(np.broadcast_to(given, (3,)))
    if given.shape != (3, 3) or not np.isfinite(given).all():
        raise InputError(f"{expected}, finite; got {value!r}", name)
    size = np.abs(given).max()
    if np.abs(given - given.T).max() > ROUND_OFF * size:
        raise InputError(f"{expected}; got {given.tolist()}, which is not symmetric", name)
    lowest = np.linalg.eigvalsh(given)[0]
    if lowest < -ROUND_OFF * size:
        raise InputError(f"{name} must be positive semidefinite; got a tensor with the eigenvalue {lowest:.6g}", name)
    return (given + given.T) / 2


def _with_bath(template: FieldTemplate) -> FieldTemplate:
    return dataclasses.replace(template, makes=BathField)


@reading(kT=temperature, friction=friction_tensor, seed=counter, stream=counter, first_step=counter)
@_with_bath
@potential
def heat_bath(R: Any, kT: Any, friction: Any, seed: Any = 0, stream: Any = 0, first_step: Any = 0) -> Any:
    """Heat bath for methods with noise: friction -Gamma omega and the noise of its temperature, sqrt(2 kT Gamma) dW.

    kT : temperature times Boltzmann's constant, an energy
    friction : Gamma, a torque for each unit of angular velocity: a number, three numbers, or a tensor in the body. It
        is no rate: for one rate gamma (1/time) about all axes give gamma * moments
    seed : whole number that chooses the random numbers of the whole run
    stream : number of the body; in an ensemble body i has the stream that is given plus i
    first_step : number of steps that were made before, to continue a run with the noise that follows
    """
    return 0 * kT


def friction_of(field: Field) -> np.ndarray:
    """The friction tensor of a field with a heat bath."""
    assert field.bath is not None
    first = field.bath + FRICTION
    return np.array(field.parameters[first : first + 9], dtype=float).reshape(3, 3)


def of_all(field: Field, values: np.ndarray, own: Collection[str]) -> np.ndarray:
    """Check the parameters of all bodies, one row each; the number of the body is added to its stream.

    `own` names the parameters that have a value for each body: streams given so are left as they are.
    """
    place = field.bath
    assert place is not None
    counted = np.array(values)
    if name_of_parameter(field, place + STREAM) not in own:
        counted[:, place + STREAM] += np.arange(len(values))
    _check_rows(counted[:, place : place + FIRST + 1])
    return counted


def of_each(field: Field, values: np.ndarray, number: int) -> np.ndarray:
    """Write out checked parameters for this number of bodies; if they are one row, body i has its stream plus i."""
    if len(values) == number:
        return values
    assert field.bath is not None
    each = np.repeat(values, number, axis=0)
    each[:, field.bath + STREAM] += np.arange(number)
    return each


def _check_rows(rows: np.ndarray) -> None:
    """Check the parameters of the baths of all bodies; name the first body at fault."""
    for i in sorted(np.unique(rows[:, :SEED], axis=0, return_index=True)[1].tolist()):
        try:
            temperature("kT", float(rows[i, KT]))
            friction_tensor("friction", rows[i, FRICTION:SEED].reshape(3, 3))
        except InputError as fault:
            raise InputError(f"body {i}: {fault}") from None
    counters = rows[:, SEED:]
    bad = np.flatnonzero(((counters != np.floor(counters)) | (counters < 0) | (counters >= LARGEST)).any(axis=1))
    if len(bad):
        raise InputError(
            f"seed, stream and first_step must be whole numbers from 0 to 2^53 - 1; those of body {bad[0]} are "
            f"{counters[bad[0]].tolist()}"
        )


def bath_kernel(field: Field, has_principal_rotation: bool) -> Callable[..., Any]:
    """The kernel that answers the query `HeatBath`."""
    place = field.bath
    assert place is not None
    vector = axes(has_principal_rotation, len(field.parameters)).vector
    p = [f"p[{place + i}]" for i in range(FIRST + 1)]
    rows = ", ".join(f"({', '.join(p[FRICTION + 3 * i : FRICTION + 3 * i + 3])})" for i in range(3))
    tensor = unrolled_kernel("p", f"({rows})")
    numbers = unrolled_kernel("p", f"({', '.join(p[i] for i in (KT, SEED, STREAM, FIRST))})")

    @kernel
    def bath(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        kT, seed, stream, first = numbers(system[2])
        zero, one, friction = 0 * m[0], 0 * m[0] + 1, tensor(system[2])
        x, y, z = (
            vector((one, zero, zero), system), vector((zero, one, zero), system), vector((zero, zero, one), system)
        )  # fmt: skip
        u, v, w = apply(friction, x), apply(friction, y), apply(friction, z)
        return kT, (dot(x, u), dot(y, v), dot(z, w)), (dot(y, w), dot(z, u), dot(x, v)), seed, stream, first

    return bath
