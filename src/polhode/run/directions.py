"""Variations of the data of a problem: initial state, inertia and parameters, as tangents of dual numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..kernels.so3 import mul, unrotate
from ..numbers import floats
from ..numbers.dual import Dual
from ..physics.fields.parameters import like
from ..physics.problem import Problem
from ..symbolic.rows import Rows

CLOSE = 1e-8
"""Moments this close, relative to the largest, count as equal when principal axes rotate: sqrt(epsilon)."""


@dataclasses.dataclass(frozen=True)
class Direction:
    """A variation of the initial data: rates of the moments, of the principal axes (a rotation in them), and so on."""

    moments: Any = (0, 0, 0)
    axes: Any = (0, 0, 0)
    momentum: Any = (0, 0, 0)
    attitude: Any = (0, 0, 0)
    parameter: int = -1
    """Index of the varied parameter, -1 for none."""
    other: Any = ()
    """Rotation (quaternion) from the principal axes to other principal axes, in which the variation is diagonal."""


def varied_parameters(problem: Problem) -> list[int]:
    """Return the places of the numbers among the parameters of the field; the others are columns of data."""
    field = problem.field
    return [] if field is None else [i for i in range(len(field.parameters)) if i not in field.columns]


UNITS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def directions_of(name: str, problem: Problem) -> list[Direction]:
    """Return the variations of the initial data for one name."""
    if name == "params":
        assert problem.field is not None
        return [Direction(parameter=i) for i in varied_parameters(problem)]
    if name == "inertia":
        diagonal = [Direction(moments=unit) for unit in UNITS]
        return (
            diagonal + [_off_diagonal(problem, k) for k in range(3)]
            if problem.body.has_principal_rotation
            else diagonal
        )
    return [dataclasses.replace(Direction(), **{name: unit}) for unit in UNITS]  # type: ignore[arg-type]  # attitude or momentum


def _off_diagonal(problem: Problem, k: int) -> Direction:
    """Return the variation e_i e_j^T + e_j e_i^T of the tensor in principal axes, (i, j, k) cyclic.

    The axes i and j rotate about k at the rate 1/(I_i - I_j). If these moments are equal, any two perpendicular axes of
    their plane are principal. In axes rotated by 45 degrees the variation is diagonal: 1 and -1.
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    moments = problem.body.moments
    gap = float(moments[i] - moments[j])
    if abs(gap) > CLOSE * float(moments.max()):
        return Direction(axes=tuple(x / gap for x in UNITS[k]))
    rates = tuple(1 if x == i else -1 if x == j else 0 for x in range(3))
    return Direction(moments=rates, other=between_axes(k))


def between_axes(k: int) -> Any:
    """Return the rotation by 45 degrees about axis k, a quaternion."""
    return math.cos(math.pi / 8), *(math.sin(math.pi / 8) * x for x in UNITS[k])


def seeds(problem: Problem, directions: Sequence[Direction], other: Any) -> tuple[Any, Any, Any]:
    """Return the initial state, system and principal axes as numbers with tangents.

    `other` rotates the principal axes of the body to other principal axes.
    """

    def varied(value: float, tangents: Iterable[float]) -> Dual:
        return Dual(1, float(value), np.array(list(tangents), dtype=float))

    def vector(values: Any, name: str) -> Any:
        return tuple(varied(values[i], (getattr(d, name)[i] for d in directions)) for i in range(3))

    def turn(name: str) -> Any:
        x, y, z = vector((0, 0, 0), name)
        return (1 + 0 * x, x / 2, y / 2, z / 2)

    q, m = mul(problem.quaternion, turn("attitude")), vector(problem.momentum, "momentum")
    moments, principal_to_body = problem.principal(floats.number)
    inertia = vector(moments, "moments")
    if principal_to_body:
        principal_to_body = mul(mul(principal_to_body, other) if other else principal_to_body, turn("axes"))
        q, m = mul(q, principal_to_body), unrotate(principal_to_body, m)
    m = tuple(x if i > 0 else 0 * x for i, x in zip(inertia, m, strict=True))
    inverse = tuple(1 / x if x > 0 else x for x in inertia)
    given = problem.field.parameters if problem.field is not None else ()
    parameters = [
        varied(0.0 if isinstance(p, np.ndarray) else p, (float(d.parameter == i) for d in directions))
        for i, p in enumerate(given)
    ]  # a column of data has a placeholder
    return (q, m), (inertia, inverse, (*parameters, *principal_to_body)), principal_to_body


def table(y: Any, system: Any, width: int) -> np.ndarray:
    """Return the numbers of a state and a system, a row each: the value, then tangents in `width` directions."""
    numbers = [x for part in (*y, *system) for x in part]
    data = np.zeros((len(numbers), 1 + width))
    data[:, 0] = [x.value for x in numbers]
    data[:, 1 : 1 + len(numbers[0].tangent)] = [x.tangent for x in numbers]
    return data


def to_tensor(part: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Convert derivatives by the six tensor components in principal axes, columns of A, to a matrix in user's axes."""
    G = np.zeros((*part.shape[:-1], 3, 3))
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        G[..., k, k] = part[..., k]
        G[..., i, j] = G[..., j, i] = part[..., 3 + k] / 2
    return np.asarray(A @ G @ A.swapaxes(-1, -2))


def by_name(part: np.ndarray, problem: Problem) -> dict[str, np.ndarray]:
    """Return derivatives by the parameters of the field (last axis) by name, in the shapes of the parameters."""
    assert problem.field is not None
    values = {name: value for name, value in problem.field.values.items() if not isinstance(value, Rows)}
    columns = [part[..., i] for i in range(part.shape[-1])]
    shaped, _ = like(tuple(values.values()), columns)
    return {
        name: np.moveaxis(np.array(columns_of), range(np.ndim(values[name])), range(-np.ndim(values[name]), 0))
        for name, columns_of in zip(values, shaped, strict=True)
    }
