"""Running statistics of an ensemble: observables are accumulated step by step; no trajectory is stored.

All observables of a run form one straight-line formula of t, q, m and the system, compiled without fused multiply-add.
Evaluated on a stored trajectory it gives the same bits (unless it calls elementary functions).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...kernels.loops import COLUMNS, StateSpace
from ...kernels.so3 import apply, conj, dot, matrix, mul, norm, rotate, times, unrotate
from ...kernels.state import collapse, summed
from ...kernels.unroll import unrolled_kernel
from ...numbers import floats
from ...numbers.arrays import relative
from ...numbers.dispatch import NO_FMA, kernel, no_fma
from ...numbers.primitives import where
from ...numbers.types import Number
from ...physics.validate import several
from ...symbolic.expression import Expr, compiled, lift, source, symbol, symbols, symbols_in
from ...taylor.graph import substituted
from ..fields import Field, FieldTemplate
from ..fields.decorators import template_of
from ..fields.parameters import leaves_of
from ..fields.variation import GROWTH, MEAN, PER_SPAN, SOON, TIME, WEIGHTED, WITH_CONSTANTS
from ..fields.varying_inertia import VaryingField
from ..problem import Problem
from .event import Event


@dataclasses.dataclass(frozen=True, eq=False)
class Statistic:
    """Statistics of an observable: arrays (N,) for a number, (N, 3) for a vector (by component); in the user's axes.

    Attributes
    ----------
    first, last : at the start, and at the last sampled step
    min, max, mean : over the start and all sampled steps
    drift : (N,) largest change since the start, relative to the initial value (absolute if that is zero)
    """

    first: np.ndarray
    last: np.ndarray
    min: np.ndarray
    max: np.ndarray
    mean: np.ndarray
    drift: np.ndarray


PARTS: dict[str, str] = {
    "first": "at the start",
    "last": "at the last sampled step",
    "min": "smallest",
    "max": "largest",
    "mean": "mean",
    "drift": "largest change since the start, relative to the initial value (absolute if that is zero)",
}
"""Descriptions of the arrays of a `Statistic`."""


# --- observables as formulas ------------------------------------------------------------------------


class _Formulas(NamedTuple):
    """The state of a body as formulas: principal q, m, omega; the user's R, omega, momentum; parameters; the field."""

    q: Any
    m: Any
    w: Any
    R: Any
    omega: Any
    momentum: Any
    parameters: list[Expr]
    field: Field | None
    z: Any
    """The variation beside the body."""

    def of(self, field: Field, parameters: list[Any]) -> Expr:
        """A user's function of t, R, omega and parameters."""
        formula: Expr = field.traced(lift, (symbol("t"), self.R, self.omega, parameters))
        return formula


def _kinetic_energy(s: _Formulas) -> list[Expr]:
    return [dot(s.m, s.w) / 2]


def _energy(s: _Formulas) -> list[Expr]:
    """As `Trajectory.energy`: with the potentials of all parts of the field, whatever else acts."""
    U = None if s.field is None else s.field.energy
    if U is None:
        return _kinetic_energy(s)
    meaning = {f"R{i}{j}": s.R[i][j] for i in range(3) for j in range(3)}
    return [x + y for x, y in zip(_kinetic_energy(s), substituted([U], meaning), strict=True)]


WORDS: dict[str, Callable[[_Formulas], Iterable[Expr]]] = {
    "energy": _energy,
    "kinetic_energy": _kinetic_energy,
    "momentum_norm": lambda s: [norm(s.m)],
    "spatial_momentum": lambda s: rotate(s.q, s.m),
    "momentum": lambda s: s.momentum,
    "omega": lambda s: s.omega,
}
"""Observables by name: kinetic plus potential energy, kinetic energy, |momentum|, vectors in space and body frame."""


def _per_time(s: _Formulas, value: Expr) -> list[Expr]:
    """A number divided by the time since the start in units of the run; zero at the start."""
    passed = s.z[TIME]
    return [value * passed / (passed * passed + SOON**2)]


CHAOS_WORDS: dict[str, Callable[[_Formulas], Iterable[Expr]]] = {
    "megno": lambda s: _per_time(s, 2 * s.z[WEIGHTED]),
    "mean_megno": lambda s: _per_time(s, s.z[MEAN]),
    "fli": lambda s: [s.z[GROWTH]],
    "lyapunov": lambda s: _per_time(s, s.z[GROWTH] * s.z[PER_SPAN]),
}
"""Chaos indicators (`fields/variation`): MEGNO and its mean, the logarithm of the growth, and growth over time."""

ALL_WORDS = WORDS | CHAOS_WORDS


def _formulas(model: Problem) -> _Formulas:
    q, m, inverse, z = symbols("q", 4), symbols("m", 3), symbols("s", 3), symbols("z", WITH_CONSTANTS)
    w = times(inverse, m)
    parameters = list(symbols("p", len(model.field.parameters) if model.field is not None else 0))
    a: Any = symbols("a", 4) if model.body.has_principal_rotation else ()
    R, omega, momentum = (matrix(mul(q, conj(a))), rotate(a, w), rotate(a, m)) if a else (matrix(q), w, m)
    if isinstance(model.field, VaryingField):  # the run is that of a constant inertia
        momentum = apply(tuple(model.field.tensor[i : i + 3] for i in (0, 3, 6)), omega)
        m = unrotate(a, momentum) if a else momentum
    return _Formulas(q, m, w, R, omega, momentum, parameters, model.field, z)


def _unpack(parameters: int) -> dict[str, str]:
    """Source text of each symbol in t, q, m, system; a principal rotation is behind the parameters of the field.

    It is counted from the end, because steps that are cut at jumps in time have edges before it. With a variation, its
    numbers are the last part of the system.
    """
    unpack = {"t": "t"} | {f"q{i}": f"q[{i}]" for i in range(4)} | {f"m{i}": f"m[{i}]" for i in range(3)}
    unpack |= {f"s{i}": f"system[1][{i}]" for i in range(3)} | {f"p{i}": f"system[2][{i}]" for i in range(parameters)}
    unpack |= {f"z{i}": f"system[3][{i}]" for i in range(WITH_CONSTANTS)}
    return unpack | {f"a{i}": f"system[2][{i - 4}]" for i in range(4)}


# --- the user's observables -------------------------------------------------------------------------


def watch(statistics: Any, model: Problem) -> Watch | None:
    """The observables of a run: a name, a function of t, R, omega and parameters, or several; None for none."""
    if statistics is None:
        return None
    one = isinstance(statistics, str | Event | types.FunctionType)
    items = [statistics] if one else several(statistics, f"statistics must be {_EXPECTED}", "statistics")
    state, found = _formulas(model), dict[str, list[Expr]]()
    for one in items:
        name, formulas = _observable(one, state, model)
        if name in found:
            raise InputError(f"statistics has two observables named {name!r}; each needs a different name")
        found[name] = formulas
    if not found:
        raise InputError(f"statistics must be {_EXPECTED}; got none")
    text = source("observed", "t, q, m, system", _unpack(len(state.parameters)), list(itertools.chain(*found.values())))
    chaos = any(name in CHAOS_WORDS for name in found)
    return Watch({name: len(formulas) for name, formulas in found.items()}, text, chaos)


_EXPECTED = (
    f"some of the names {', '.join(map(repr, ALL_WORDS))}, or functions of t, R, omega and parameters that return a "
    "number"
)


def _observable(one: Any, state: _Formulas, model: Problem) -> tuple[str, list[Expr]]:
    """Name and formulas of one observable."""
    if isinstance(one, str) and one in ALL_WORDS:
        return one, list(ALL_WORDS[one](state))
    if not isinstance(one, Event | types.FunctionType):
        raise InputError(f"statistics must be {_EXPECTED}; got {one!r}")
    template = one.template if isinstance(one, Event) else template_of(one, "observable")
    known = one.field.values if isinstance(one, Event) and one.field is not None else {}
    bound, parameters = _bound(template, known, model.field, state.parameters)
    R = tuple(tuple(float(x) for x in row) for row in matrix(model.quaternion))
    bound.check(model.t0, R, tuple(float(x) for x in model.omega), f"at the start (t = {model.t0:g})")
    formula = state.of(bound, parameters)
    if not any(name[0] in "qm" for name in symbols_in([formula])):
        raise InputError(
            f"the observable {bound.name} depends neither on R nor on omega; leave it out, as it is the same for all "
            "states"
        )
    return bound.name, [formula]


_MISSING = inspect.Parameter.empty


def _bound(
    template: FieldTemplate, known: Mapping[str, Any], field: Field | None, symbols: list[Expr]
) -> tuple[Field, list[Any]]:
    """The function with its parameters bound, and the parameters as formulas.

    A parameter that is neither bound nor has a default is the field's parameter of that name, one value per body.
    """
    shared, start = dict[str, list[Any]](), 0
    for name, value in field.values.items() if field is not None else ():
        shared[name] = symbols[start : start + len(leaves_of(value))]
        start += len(shared[name])
    defaults = {p.name: p.default for p in inspect.signature(template.function).parameters.values()}
    values = {n: known.get(n, defaults[n]) for n in template.parameters if n in known or defaults[n] is not _MISSING}
    from_field = [name for name in template.parameters if name not in values]
    for name in from_field:
        if name not in shared:
            has = f"which has {', '.join(shared) or 'none'}" if field is not None else "but there is no field"
            raise InputError(
                f"the observable {template.function.__name__} has no value for {name}: give it a default, or rename it "
                f"to a parameter of the field, {has}"
            )
    bound = template(**values, **{name: field.values[name] for name in from_field if field is not None})
    leaves = [x for n, value in bound.values.items() for x in (shared[n] if n in from_field else leaves_of(value))]
    return bound, leaves


# --- accumulation -----------------------------------------------------------------------------------

FIRST, LAST, MIN, MAX, SUM, LOW = range(6)
"""Slots of one component. The sum is compensated (low part), so the mean is correct to round-off for any number of
steps."""

SLOTS = 6


@kernel
def lower(a: Number, v: Number) -> Number:
    """Minimum that propagates NaN."""
    return where((v < a) | (v != v), v, a)


@kernel
def higher(a: Number, v: Number) -> Number:
    """Maximum that propagates NaN."""
    return where((v > a) | (v != v), v, a)


@kernel
def nothing(rows: Any, t: Any, y: Any, system: Any) -> None:
    """Start a run without statistics: do nothing."""


@kernel
def same_system(y: Any, system: Any) -> Any:
    """The system that observables read, without a variation."""
    return system


@no_fma
def squared_gap(x: Number, y: Number, z: Number, a: Number, b: Number, c: Number) -> Number:
    """|(x, y, z) - (a, b, c)|^2."""
    x, y, z = x - a, y - b, z - c
    return x * x + y * y + z * z


@dataclasses.dataclass(frozen=True)
class Watch:
    """Observables of a run: names with numbers of components, and the joint formula."""

    sizes: dict[str, int]
    text: tuple[str, dict[str, Any]]
    chaos: bool = False
    """Whether some of them are chaos indicators, which need a variation beside the body."""

    @property
    def components(self) -> int:
        """Number of components of all observables."""
        return sum(self.sizes.values())

    @property
    def columns(self) -> int:
        """Numbers stored per body: `SLOTS` for each component, and the largest squared change of each vector."""
        return SLOTS * self.components + sum(size > 1 for size in self.sizes.values())

    @functools.cached_property
    def structure(self) -> str:
        """Text that determines its kernels."""
        return repr((self.sizes, self.text))

    @functools.cached_property
    def observed(self) -> Callable[..., Any]:
        """Kernel (t, q, m, system) -> all components."""
        made = compiled(*self.text, floats.number)
        NO_FMA.add(made)
        return made

    def __reduce__(self) -> Any:
        """Pickle without the kernel, which is rebuilt."""
        return Watch, (self.sizes, self.text, self.chaos)

    def state_space(
        self, plain: StateSpace, clock: bool, kept: int, read: Any, write: Any, states: int = 0,
        system_of: Any = same_system,
    ) -> tuple[StateSpace, Callable[..., Any]]:  # fmt: skip
        """The state space of a run that accumulates statistics in columns after the state, and its initial kernel.

        `plain` writes the state to the single row, with `states` numbers of a variation; ``read(rows, j)`` and
        ``write(rows, j, v)`` access the extra columns, of which the first `kept` are in use. With `clock`, the method
        keeps its own time in the state. ``system_of(y, system)`` is the system that observables read, of which a
        variation is the last part.
        """
        observed, write_state, columns = self.observed, plain.write, COLUMNS + kept + states

        @kernel
        def observe(t: Any, y: Any, system: Any) -> Any:
            q, m = collapse(y)
            return y, observed(t, q, m, system_of(y, system))

        @kernel
        def observe_with_own_time(t: Any, y: Any, system: Any) -> Any:
            q, m = collapse(y)
            return y, observed(y[2][0], q, m, system)

        space = {"read": read, "write": write, "write_state": write_state, "observed": observed}
        space |= {"system_of": system_of, "lower": lower, "higher": higher, "summed": summed, "gap": squared_gap}
        fold = unrolled_kernel(
            "rows, i, seen", "None", "y, v = seen", "write_state(rows, 0, y)", *self._folding(columns), **space
        )
        first = "v = observed(t, y[0], y[1], system_of(y, system))"
        opened = unrolled_kernel("rows, t, y, system", "None", first, *self._opening(columns), **space)
        return plain._replace(write=fold, observe=observe_with_own_time if clock else observe), opened

    def _opening(self, columns: int) -> list[str]:
        lines = []
        for j in range(self.components):
            b = columns + SLOTS * j
            lines += [f"write(rows, {b + slot}, v[{j}])" for slot in (FIRST, LAST, MIN, MAX, SUM)]
            lines.append(f"write(rows, {b + LOW}, 0 * v[{j}])")
        changes = range(columns + SLOTS * self.components, columns + self.columns)
        return lines + [f"write(rows, {b}, 0 * v[0])" for b in changes]

    def _folding(self, columns: int) -> list[str]:
        lines = []
        for j in range(self.components):
            b = columns + SLOTS * j
            lines += [
                f"write(rows, {b + LAST}, v[{j}])",
                f"write(rows, {b + MIN}, lower(read(rows, {b + MIN}), v[{j}]))",
                f"write(rows, {b + MAX}, higher(read(rows, {b + MAX}), v[{j}]))",
                f"total, low = summed(read(rows, {b + SUM}), read(rows, {b + LOW}), v[{j}])",
                f"write(rows, {b + SUM}, total)",
                f"write(rows, {b + LOW}, low)",
            ]
        change = columns + SLOTS * self.components
        for first in self._vectors():
            now = ", ".join(f"v[{first + k}]" for k in range(3))
            then = ", ".join(f"read(rows, {columns + SLOTS * (first + k) + FIRST})" for k in range(3))
            lines.append(f"write(rows, {change}, higher(read(rows, {change}), gap({now}, {then})))")
            change += 1
        return lines

    def _vectors(self) -> list[int]:
        """The first component of every vector."""
        starts = np.cumsum([0, *self.sizes.values()])[:-1].tolist()
        return [start for start, size in zip(starts, self.sizes.values(), strict=True) if size > 1]

    def over(self, values: np.ndarray, sums: np.ndarray) -> dict[str, Statistic]:
        """The statistics of one body from all values (components, n), and their sums with low parts (components, 2)."""
        slots = values[:, 0], values[:, -1], values.min(1), values.max(1), *sums.T
        changes = [squared_gap(*values[j : j + 3], *values[j : j + 3, :1]).max() for j in self._vectors()]
        numbers = np.concatenate([np.stack(slots, 1).ravel(), changes])
        found = self.results(numbers[None], np.array([values.shape[1]]))
        return {name: Statistic(**{part: getattr(one, part)[0] for part in PARTS}) for name, one in found.items()}

    def results(self, numbers: np.ndarray, samples: np.ndarray) -> dict[str, Statistic]:
        """The statistics from the stored numbers (N, columns) and the number of samples of each body."""
        slots = numbers[:, : SLOTS * self.components].reshape(len(numbers), self.components, SLOTS)
        changes = iter(np.sqrt(numbers[:, SLOTS * self.components :]).T)
        statistics, start = {}, 0
        for name, size in self.sizes.items():
            part = slots[:, start : start + size] if size > 1 else slots[:, start]
            start += size
            first, last, low, high, total, rest = np.moveaxis(part, -1, 0)
            mean = (total + rest) / (samples[:, None] if size > 1 else samples)
            if size > 1:
                drift = relative(next(changes), np.sqrt((first * first).sum(axis=1)))
            else:
                drift = relative(np.maximum(high - first, first - low), np.abs(first))
            statistics[name] = Statistic(first, last, low, high, mean, drift)
        return statistics
