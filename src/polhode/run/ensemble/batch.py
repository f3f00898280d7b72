"""The bodies of an ensemble: check the user's input and convert it to arrays for a loop."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...methods import Method
from ...numbers.arrays import components
from ...physics.bodies import Bodies
from ...physics.body import TOLERANCE, Body, real_array
from ...physics.fields import Field, FieldTemplate
from ...physics.fields.field import HEAT_BATH, THERMOSTAT
from ...physics.fields.heat_bath import of_all as in_heat_baths
from ...physics.fields.of_body import are_inertia, inertia_parameters
from ...physics.fields.parameters import check_size, leaves_of
from ...physics.fields.thermostat import of_all as with_thermostats
from ...physics.problem import Problem
from ...symbolic.rows import Rows
from ..integrator import check_compiled, check_fit
from .inertia import PLAIN, inertia_of
from .memory import HOST, Memory
from .start import UNIT, Start, finite_copy, quaternions


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class BodyBatch(Bodies):
    """Checked bodies with initial states and steps, in arrays with N rows, or with one row for all bodies."""

    quaternion: np.ndarray
    momentum: np.ndarray
    dt: np.ndarray
    per_body_dt: bool
    plain: bool = False
    """Whether it is known that no body is linear, flat, or has rotated principal axes."""
    tangents: np.ndarray | None = None
    """Numbers of a tangent beside each body (`compile/batch/lane_tangents.py`), or None."""

    @property
    def bodies(self) -> Bodies:
        """The bodies and their field, without initial states."""
        return Bodies(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Bodies)})

    def speeds(self) -> np.ndarray:
        """Return the initial |omega| of every body."""
        return np.broadcast_to(np.linalg.norm(self.omega_of(self.momentum), axis=-1), (self.number,))

    def given(self, steps: Any) -> tuple[np.ndarray, ...]:
        """Return the arguments of a loop (`compile/batch/layout.py`), with the number of steps for all or for each."""
        axes = np.empty((1, 0)) if self.own is None else self.own
        columns = (self.dt.reshape(-1, 1), np.reshape(steps, (-1, 1)))
        data = () if self.field is None else (column[None, :] for column in self.field.columns.values())
        values = self.values
        if self.tangents is not None:
            values = np.concatenate([np.broadcast_to(x, (self.number, x.shape[1])) for x in (values, self.tangents)], 1)
        all_of_it = (self.quaternion, self.momentum, self.moments, values, axes, *columns, *data)
        return tuple(np.require(array, float, ("C", "W")) for array in all_of_it)


def from_arrays(
    bodies: Any, attitudes: Any, start: Start, field: Any, params: dict[str, Any], dt: Any, name: str = "",
    memory: Memory = HOST,
) -> BodyBatch:  # fmt: skip
    """Check the arguments of `ensemble` and return the batch, in memory of a kind."""
    only = next(iter(params.values())) if len(params) == 1 else None
    values = only.reshape(len(only), -1) if isinstance(only, np.ndarray) and only.size and only.ndim else None
    arrays = {"moments": bodies, "attitudes": attitudes, start.name: start.value, "params": values}
    memory.copy_in_advance((PLAIN, UNIT), arrays)
    inertia = inertia_of(bodies, memory)
    q, vectors, h = quaternions(attitudes, memory), start.rows(memory), _steps(dt)
    sizes = {"bodies": len(inertia.moments), "attitudes": len(q), start.name: len(vectors), "dt": len(h)}
    number = agreed(sizes)
    bound, values = parameters_of(field, params, number, memory)
    number = agreed(sizes | {"params": len(values)})
    every_body: dict[str, Any] = {
        "moments": inertia.moments, "own": inertia.own, "field": bound, "values": values, "number": number,
        "listed": inertia.listed, "tensors": inertia.tensors, "name": name,
    }  # fmt: skip
    check_inertia_of_field(Bodies(**every_body), params)
    m = start.momenta(vectors, q, Bodies(**every_body))
    own_dt = np.ndim(dt) > 0 and len(h) == number  # also for one body: its bits are those among others
    return BodyBatch(**every_body, quaternion=q, momentum=m, dt=h, per_body_dt=own_dt, plain=inertia.plain)


def check_inertia_of_field(bodies: Bodies, params: dict[str, Any]) -> None:
    """Refuse a field that was made for a body of another inertia; warn if `params` have another one."""
    for name in inertia_parameters(bodies.field):
        assert bodies.field is not None
        own = bodies.field.values[name]
        given, kind = np.asarray(params.get(name, own), float), "moments" if np.ndim(own) == 1 else "tensors"
        tensors = given[..., None] * np.eye(3) if kind == "moments" else given
        wrong = np.flatnonzero(~are_inertia(tensors, bodies.inertia_tensors()))
        if not wrong.size:
            continue
        instead = f"that of body {wrong[0]}; give the inertia of all bodies, params={{{name!r}: ...}}, as {kind}"
        if name not in params:
            field = f"the field {bodies.field.name} was made for a body whose inertia is not"
            raise InputError(f"{field} {instead}", "params")
        told = f"the {name} in params is not {instead}, unless that is a model with a scale of its own"
        warnings.warn(told, ResultWarning, stacklevel=5)


def agreed(sizes: dict[str, int]) -> int:
    """Return the number of bodies, which must agree wherever it is not 1."""
    several = {name: n for name, n in sizes.items() if n != 1}
    if len(set(several.values())) > 1:
        counts = ", ".join(f"{name} {n}" for name, n in several.items())
        raise InputError(f"the number of bodies must be the same everywhere (or 1, for all); got {counts}")
    return next(iter(several.values()), 1)


def _steps(dt: Any) -> np.ndarray:
    expected = "dt must be a number other than 0, or one for each body"
    given = np.atleast_1d(real_array(dt, expected))
    if given.ndim != 1 or not given.size or not (np.isfinite(given) & (given != 0)).all():
        raise InputError(f"{expected}; got {dt!r}")
    return given


def parameters_of(
    field: Any, params: dict[str, Any], number: int, memory: Memory = HOST
) -> tuple[Field | None, np.ndarray]:
    """Return the field with the parameters of the first body, and the flattened parameters (N or 1, k) of all."""
    if field is None:
        if params:
            raise InputError(f"params are given ({', '.join(params)}) but no field; give field, or leave out params")
        return None, np.empty((1, 0))
    if not isinstance(field, Field | FieldTemplate):
        raise InputError(f"field must be made by @ph.torque or @ph.potential; got {type(field).__name__}")
    template, known = (field.template, dict(field.values)) if isinstance(field, Field) else (field, {})
    unknown = [name for name in params if name not in template.parameters]
    if unknown:
        takes = ", ".join(template.parameters) or "none"
        raise InputError(
            f"the {template.kind} {template.function.__name__} has no parameter {unknown[0]!r}; it has {takes}"
        )
    given = {
        name: real_array(value, f"parameter {name} must be numbers", fresh=False) for name, value in params.items()
    }
    bound, own = _bound_to(template, known, given, number)
    data = [name for name in own if isinstance(bound.values[name], Rows)]
    if data:
        raise InputError(f"parameter {data[0]} is rows of data, the same for all bodies; give one array of them")
    count = agreed({name: len(given[name]) for name in own} | {"bodies": number})
    columns = [
        np.broadcast_to(given[name].reshape(len(given[name]), -1), (count, np.size(value)))
        if name in own
        else np.tile([0.0 if isinstance(x, np.ndarray) else x for x in leaves_of(value)], (count, 1))
        for name, value in bound.values.items()
    ]
    values = finite_copy("params", columns, memory) if columns else np.empty((1, 0))
    return bound, values if bound.bath is None else OF_ALL[bound.bath_kind[0]](bound, values, own)


OF_ALL = {HEAT_BATH: in_heat_baths, THERMOSTAT: with_thermostats}
"""Functions that check the parameters of all bodies, by what their field brings."""


MOST_READINGS = 256
"""Largest number of interpretations of the parameter shapes that are all tried."""


def _bound_to(
    template: FieldTemplate, known: dict[str, Any], given: dict[str, np.ndarray], number: int
) -> tuple[Field, list[str]]:
    """Return the field with the parameters of the first body, and the names of those that have a value for each body.

    The shape of one value is known from the bound field or the default. Otherwise it is the shape that the function
    accepts: if a parameter could be one value for all bodies or one for each, both are tried.
    """
    shapes = {name: np.shape(value) for name, value in _defaults(template).items()}
    shapes |= {name: np.shape(value) for name, value in known.items()}
    expanded = {name for name, _ in template.checks}
    readings = [
        [False] if array.ndim == 0 and name in expanded else _readings(name, array, number, shapes.get(name))
        for name, array in given.items()
    ]
    found, faults = list[tuple[Field, list[str]]](), list[InputError]()
    for choice in _choices(readings, [len(array) if array.ndim else 1 for array in given.values()]):
        own = [name for name, each in zip(given, choice, strict=True) if each]
        if len({len(given[name]) for name in own} - {1}) > 1:
            continue
        first = {name: array[0] if name in own else array for name, array in given.items()}
        try:
            check_size(template, sum(value.size for value in first.values()))  # before a long array becomes a list
            bound = _bound(template, known | {name: value.tolist() for name, value in first.items()})
            _check_widths(bound, {name: given[name] for name in own})
            if not given.keys() <= shapes.keys():
                _call(bound)
            found.append((bound, own))
        except InputError as fault:
            faults.append(fault.with_traceback(None))  # whose frames hold this list and all arrays of the call
    if len(found) == 1:
        return found[0]
    if found:
        (one, two, *_) = ([name in own for name in given] for _, own in found)
        name = next(n for n, a, b in zip(given, one, two, strict=True) if a != b)
        raise InputError(
            f"parameter {name} of shape {given[name].shape} could be one value for all bodies or one for each; bind "
            f"the field with a value of the right shape first: {_binding(template)}"
        )
    if faults:
        other = [name for name, array in given.items() if array.ndim and len(array) not in (1, number)]
        if other:
            shape = given[other[0]].shape
            raise InputError(
                f"parameter {other[0]} of shape {shape} has no row for each of {number} bodies; {faults[0]}"
            )
        raise faults[0]
    lengths = ", ".join(f"{name} {array.shape}" for name, array in given.items())
    raise InputError(f"the number of bodies must be the same everywhere (or 1, for all); got params {lengths}")


def _choices(readings: list[list[bool]], lengths: list[int]) -> Iterable[tuple[bool, ...]]:
    """Return the interpretations of all parameters to be tried: all of them if they are not too many.

    Otherwise all arrays of one length have a value for each body, and then one of the parameters is read the other way.
    """
    if math.prod(map(len, readings)) <= MOST_READINGS:
        return itertools.product(*readings)
    found = dict[tuple[bool, ...], None]()
    for number in sorted({*lengths}):
        first = tuple((length == number) if len(r) > 1 else r[0] for r, length in zip(readings, lengths, strict=True))
        found[first] = None
        for i in (i for i, both in enumerate(readings) if len(both) > 1):
            found[(*first[:i], not first[i], *first[i + 1 :])] = None
    return found


def _readings(name: str, array: np.ndarray, number: int, shape: tuple[int, ...] | None) -> list[bool]:
    """Return the possible readings of an array: one value for all bodies (False), or one row for each body (True)."""
    if not array.size:
        raise InputError(f"parameter {name} must have values; got an array of shape {array.shape}")
    for_each = array.ndim > 0 and (number == 1 or len(array) in (1, number))
    if shape is None:
        return [False, True] if for_each else [False]
    if array.shape == shape:
        return [False]
    if for_each and array.shape[1:] == shape:
        return [True]
    one, each = shape or "a number", f"(N, {', '.join(map(str, shape))})" if shape else "(N,)"
    bodies = f"{number} bodies" if number > 1 else "one body"
    raise InputError(
        f"parameter {name} must be one value for all bodies, {one}, or one for each, {each}; got shape {array.shape} "
        f"for {bodies}"
    )


def _check_widths(bound: Field, own: dict[str, np.ndarray]) -> None:
    """Refuse one number per body for a vector: the array could also be one vector for all bodies."""
    for name, array in own.items():
        if array.shape[1:] != (shape := np.shape(bound.values[name])):
            raise InputError(
                f"parameter {name} must be {math.prod(shape)} numbers for each body, "
                f"(N, {', '.join(map(str, shape))}); got shape {array.shape}"
            )


def _call(field: Field) -> None:
    """Check that the function accepts parameters of these shapes; its values are checked later."""
    R, omega, user = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.1, 0.2, 0.3), field.template.user
    if field.states:
        field.check(0.1, R, omega, "for the first body")
        return
    try:
        value = user.function(**field.arguments(0.1, R, omega, field.values))
    except ArithmeticError:
        return  # a value out of range is not a shape error
    except Exception as fault:
        raise InputError(f"{user.owner} raised {type(fault).__name__}: {fault}") from None
    if not user.fits(value):
        raise InputError(f"{user.owner} must return {user.expected}; it returned {value!r}")


def _defaults(template: FieldTemplate) -> dict[str, Any]:
    parameters = template.signature.parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _binding(template: FieldTemplate) -> str:
    return f"field={template.function.__name__}({', '.join(f'{name}=...' for name in template.parameters)})"


_BOUND: dict[tuple[FieldTemplate, str], Field] = {}
"""Cache of bound fields: each keeps its formulas, and calls with the same arrays reuse them."""


def _bound(template: FieldTemplate, values: dict[str, Any]) -> Field:
    key = (template, repr(values))
    if key not in _BOUND:
        if len(_BOUND) >= 64:
            _BOUND.clear()
        _BOUND[key] = template(**values)
    return _BOUND[key]


def step_counts(steps: Any, number: int) -> np.ndarray:
    """Return the checked numbers of steps, one for each body."""
    try:
        given = np.asarray(steps)
    except ValueError:  # sequences of different lengths
        given = np.empty(0)
    if given.shape != (number,) or given.dtype.kind not in "iu" or (given < 1).any():
        raise InputError(f"steps must be a whole number above 0, or one for each of the {number} bodies; got {steps!r}")
    return given.astype(np.int64)


def model_problem(batch: BodyBatch, method: Method, t0: float) -> Problem:
    """Return one of the problems, whose torque kernel serves all; check that the method fits special bodies too."""
    if batch.plain and batch.field is None:
        return _plain_problem(method, t0)
    chosen = [0] if batch.plain else awkward(batch)
    # without shapes: the model may be sent to other machines
    batch, found = dataclasses.replace(batch, listed=(), tensors=None), []
    for i in chosen:
        q, m = batch.of(batch.quaternion, i), batch.of(batch.momentum, i)
        found.append(Problem(batch.body(i), attitude=q, momentum=m, t0=t0).in_field(batch.field))
        check_fit(method, found[-1])
        check_compiled(found[-1], "an ensemble", "run ph.solve for each body")
    if not batch.plain:
        batch.check_axial("momentum", batch.momentum)
    return found[-1]


@functools.lru_cache(maxsize=64)
def _plain_problem(method: Method, t0: float) -> Problem:
    """Return a free body, neither linear nor flat, that represents all such bodies."""
    found = Problem(Body([1.0, 1.1, 1.2]), momentum=[1.0, 1.0, 1.0], t0=t0)
    check_fit(method, found)
    return found


def awkward(batch: Bodies) -> list[int]:
    """Return the first flat body, linear body and body with rotated principal axes, if any; otherwise body 0."""
    x, y, z = components(batch.moments)
    high = np.maximum(np.maximum(x, y), z)
    flat = np.flatnonzero(x + y + z - 2 * high <= TOLERANCE * high)
    linear = np.flatnonzero(np.minimum(np.minimum(x, y), z) == 0)
    turned = np.flatnonzero((batch.own[:, 1:] != 0).any(axis=1)) if batch.own is not None else linear[:0]
    return [int(indices[0]) for indices in (flat, linear, turned) if len(indices)] or [0]
