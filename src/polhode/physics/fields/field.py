"""What acts on a body: torques and potentials, written as plain Python functions.

A field's function is called once with floats (so that its errors are readable), then traced into a
graph (`expression`), from which its kernels come. The torque of a potential U(R) is exact:
T = -rot(R^T dU/dR) with hat(rot M) = M - M^T.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._memo import KEPT
from ...errors import InputError
from ...kernels.so3 import matrix, unit
from ...numbers import floats
from ...numbers.nested import nested
from ...symbolic.discrete_gradient import discrete_gradient
from ...symbolic.expression import (
    LOOK_UPS,
    Expr,
    called,
    gradient,
    lift,
    opaque_calls,
    ordered,
    source,
    symbol,
    symbols_in,
)
from ...symbolic.tracing import UntraceableError
from ...symbolic.user_function import UserFunction
from ..validate import is_finite_real
from .kernels import difference_kernel, formula_kernel, pair_kernel, torque_kernel
from .untraced import FORMULA, PYTHON, Untraced, shape_of, untraced

FRAMES = ("body", "space")
STATE_ARGUMENTS = ("t", "R", "omega")
OBSERVABLE_ARGUMENTS = (*STATE_ARGUMENTS, "momentum")
LONGEST = 120
"""Characters of parameters that an error shows."""
MOST_PARAMETERS = 900
"""Numbers in the parameters of a field: compiled code takes tuples of less than 1000."""


@dataclasses.dataclass(frozen=True)
class FieldTemplate:
    """A decorated torque or potential; calling it binds its parameters and gives a `Field`."""

    function: Callable[..., Any]
    kind: str
    frame: str
    by_hand: FieldTemplate | None = None
    """The torque a user wrote down for a potential; it is checked and not used."""
    checks: tuple[tuple[str, Callable[[str, Any], Any]], ...] = ()
    """Parameters with the function (name, value) -> value that reads them, or says what they should have been."""
    makes: type[Field] | None = None
    """The kind of field that a call gives, if not `Field`."""
    plain: bool = False
    """Is the function called as plain Python at every evaluation, because the user says so."""

    @functools.cached_property
    def arguments(self) -> list[str]:
        """Names of the function's arguments."""
        return list(inspect.signature(self.function).parameters)

    @property
    def user(self) -> UserFunction:
        """The function with what messages call it."""
        count = 3 if self.kind == "torque" else None
        return UserFunction(self.function, f"the {self.kind} {self.function.__name__}", count)

    @property
    def state(self) -> tuple[str, ...]:
        """Arguments that stand for the state: t, R, omega; of an observable also momentum."""
        return OBSERVABLE_ARGUMENTS if self.kind == "observable" else STATE_ARGUMENTS

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters: the arguments other than those of the state."""
        return [name for name in self.arguments if name not in self.state]

    @property
    def complete(self) -> bool:
        """Has every parameter a default."""
        return all(p.default is not inspect.Parameter.empty for p in self.signature.parameters.values())

    @property
    def signature(self) -> inspect.Signature:
        """The parameters, in order, with their defaults."""
        whole = inspect.signature(self.function)
        return whole.replace(parameters=[p for p in whole.parameters.values() if p.name in self.parameters])

    def __call__(self, *args: Any, **named: Any) -> Field:
        """Bind the parameters, by position or by name."""
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as problem:
            names = ", ".join(self.parameters)
            takes = f"the parameters ({names})" if names else "no parameters"
            raise InputError(f"{self.user.owner} takes {takes}: {problem}") from None
        bound.apply_defaults()
        values = bound.arguments | {name: check(name, bound.arguments[name]) for name, check in self.checks}
        return self.bound({name: _checked_value(self, name, value) for name, value in values.items()})

    def bound(self, values: dict[str, Any]) -> Field:
        """The field with these values of all parameters."""
        return (self.makes or Field)(self, values)

    def __add__(self, other: Any) -> Any:
        raise unbound(self)

    __radd__ = __add__


def _checked_value(template: FieldTemplate, name: str, value: Any) -> Any:
    """A parameter as a float or as nested tuples of floats."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return tuple(_checked_value(template, name, v) for v in value)
    if not is_finite_real(value):
        where = f"parameter {name} of {template.user.owner}"
        raise InputError(f"{where} must be a finite number or a sequence of them; got {value!r}", name)
    return float(value)


def leaves_of(value: Any) -> list[Any]:
    """The numbers of nested tuples, in order."""
    return [x for v in value for x in leaves_of(v)] if isinstance(value, tuple) else [value]


def like(value: Any, leaves: Sequence[Any], start: int = 0) -> tuple[Any, int]:
    """The leaves, taken in order, in the shape of `value`."""
    if not isinstance(value, tuple):
        return leaves[start], start + 1
    items = []
    for v in value:
        item, start = like(v, leaves, start)
        items.append(item)
    return tuple(items), start


def unbound(template: FieldTemplate) -> InputError:
    """The error for a field that was not called."""
    name = template.function.__name__
    return InputError(f"the field {name} has no parameters bound; call it: {name}({', '.join(template.parameters)})")


class Field:
    """A torque or potential with its parameters bound. Fields are added with ``+`` (see `sums`)."""

    first = 0
    """Number of its first parameter among the symbols p0, p1, ... of its graph; not zero for a part of a sum."""

    def __init__(self, template: FieldTemplate, values: dict[str, Any]) -> None:
        self.template = template
        self.values = values
        if len(self.parameters) > MOST_PARAMETERS:
            raise InputError(
                f"the parameters of a field must be at most {MOST_PARAMETERS} numbers; {template.function.__name__} "
                f"has {len(self.parameters)}; remove some of them"
            )
        self.name = template.function.__name__
        self.kind = template.kind

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"

    def __add__(self, other: Any) -> Field:
        from .sums import total

        return total((self, other))

    def __radd__(self, other: Any) -> Field:
        """So that ``sum(fields)``, which starts with 0, works."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def numbered(self, first: int) -> Field:
        """The same field with its parameters numbered from `first` on in its graph."""
        made = self.template.bound(self.values)
        made.first = first
        return made

    @property
    def parameters(self) -> tuple[float, ...]:
        """All parameter values, flattened."""
        return tuple(leaves_of(tuple(self.values.values())))

    def arguments(self, t: Any, R: Any, omega: Any, values: dict[str, Any], momentum: Any = None) -> dict[str, Any]:
        """What the function is called with, by name; vectors and matrices have the arithmetic of arrays."""
        state = {"t": t, "R": R, "omega": omega, "momentum": momentum}
        return {n: nested(state[n] if n in self.template.state else values[n]) for n in self.template.arguments}

    def value(self, t: float, R: Any, omega: Any, place: str, momentum: Any = None) -> Any:
        """What the function returns for plain numbers."""
        given = self.arguments(t, R, omega, self.values, momentum)
        try:
            return self.template.user.value(given, place, self._hint)
        except InputError:
            if self.kind != "torque":
                raise
            with contextlib.suppress(Exception):  # it may need arrays of NumPy
                return self.template.function(
                    **{n: np.array(x) if isinstance(x, tuple) else x for n, x in given.items()}
                )
            raise

    def _hint(self, problem: Exception) -> str:
        """What may help with an exception of the function."""
        given = ", ".join(f"{name} = {value!r}" for name, value in self.values.items())
        told = f"; its parameters are {given[:LONGEST]}" if given else ""
        return told + "; R[i, j] and omega[i] are numbers, R and omega arrays" * isinstance(problem, TypeError)

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Call the function once in plain Python and say clearly what is wrong with it."""
        self.template.user.numbers(self.value(t, R, omega, context), context)
        if self.kind == "potential":
            self._check_slope(t, R, omega, context)

    def _check_slope(self, t: float, R: Any, omega: Any, context: str) -> None:
        """A potential must have a torque: finite slopes."""
        try:
            slopes = self.torque_value(t, R, omega)
        except UntraceableError:
            raise
        except (ArithmeticError, ValueError):
            slopes = (math.nan,)
        if not all(math.isfinite(x) for x in slopes):
            raise InputError(f"the potential {self.name} must be smooth; its derivative is not finite {context}")
        if self.template.by_hand is not None:
            self._check_by_hand(self.template.by_hand, t, R, omega, context)

    def _check_by_hand(self, template: FieldTemplate, t: float, R: Any, omega: Any, context: str) -> None:
        """The torque given by hand must be that of the potential, at the state and at attitudes all around."""
        hand = Field(template, {name: self.values[name] for name in template.parameters})
        hand.check(t, R, omega, context)
        gap = difference(_compared(self, hand, R, context))
        if gap:
            raise InputError(
                f"the torque {hand.name} given for the potential {self.name} is not its torque: {gap}; the torque of "
                f"U(R) in the body frame is -rot(R^T dU/dR)"
            )

    @functools.cached_property
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The body torque and the potential (None for a torque) as formulas of t, R, w, p."""
        R = _attitude_symbols()
        if self.kind == "potential":
            U = self.traced(lift)
            return _potential_torque(U, R), U
        force = self.written
        if self.template.frame == "space":
            force = tuple(R[0][j] * force[0] + R[1][j] * force[1] + R[2][j] * force[2] for j in range(3))
        return (force[0], force[1], force[2]), None

    @functools.cached_property
    def written(self) -> Any:
        """The torque in the frame in which the user wrote it; for a potential that of the body."""
        if self.kind == "potential":
            return self.graph[0]
        if self.template.plain:
            return self._called("it is declared plain")
        try:
            return self.traced(lambda value: tuple(lift(x) for x in value))
        except UntraceableError as fault:
            if type(self) is not Field:  # a field made of derivatives
                raise
            return self._called(fault.why)

    def _called(self, reason: str) -> tuple[Expr, ...]:
        """The torque as a call of the function, which is no formula for this reason."""
        t, R, omega, values = self._symbols()
        arguments = {name: (values | {"t": t, "R": R, "omega": omega})[name] for name in self.template.arguments}
        function = untraced(
            self.template.user,
            {name: shape_of(value) for name, value in arguments.items()},
            reason,
            self.template.plain,
        )
        return called(function, leaves_of(tuple(arguments.values())), 3)

    @functools.cached_property
    def opaque(self) -> tuple[Expr, ...]:
        """The calls in its formula of functions that are no formulas."""
        return tuple(opaque_calls(self.graph[0]))

    @property
    def untraced(self) -> list[Untraced]:
        """Functions in its formula that are no formulas."""
        return [node.args[0].args[0] for node in self.opaque]

    @property
    def in_python(self) -> bool:
        """Is one of its functions called as plain Python, so that it cannot be compiled."""
        return any(function.mode == PYTHON for function in self.untraced)

    @property
    def evaluated(self) -> str:
        """How the torque is evaluated, in words."""
        return "; ".join(dict.fromkeys(f"{f.user.owner}: {f.evaluated}" for f in self.untraced)) or FORMULA

    def opaque_arguments(self, t: float, R: Any, omega: Any) -> list[tuple[Untraced, tuple[float, ...]]]:
        """Functions that are no formulas, each with the numbers that it is called with at a state."""
        found = []
        for node in self.opaque:
            text = source("opaque_arguments", "t, R, w, p", self.unpack, list(node.args[1:]))
            values = formula_kernel(text, floats.number)(t, R, omega, self.parameters)
            found.append((node.args[0].args[0], tuple(map(float, values))))
        return found

    def traced(self, read: Callable[[Any], Any], at: tuple[Any, Any, Any, Sequence[Any]] | None = None) -> Any:
        """What `read` makes of the function's value on the symbols t, R, w, p, or `at` formulas of these four."""
        momentum = tuple(symbol(f"m{i}") for i in range(3))
        t, R, omega, values = self._symbols(at)
        return self.template.user.traced(self.arguments(t, R, omega, values, momentum), read)

    def _symbols(self, at: tuple[Any, Any, Any, Sequence[Any]] | None = None) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Formulas for t, R, omega and the parameters by name; their symbols unless `at` gives others."""
        symbols = [symbol(f"p{self.first + i}") for i in range(len(self.parameters))]
        t, R, omega, leaves = at or (
            symbol("t"), _attitude_symbols(), tuple(symbol(f"w{i}") for i in range(3)), symbols,
        )  # fmt: skip
        shaped, _ = like(tuple(self.values.values()), leaves)
        return t, R, omega, dict(zip(self.values, shaped, strict=True))

    @property
    def has_tables(self) -> bool:
        """Does its formula read tables of constants."""
        return any(node.op in LOOK_UPS for node in ordered(self.graph[0]))

    @property
    def needs(self) -> str:
        """The kind of field this is, in the words of `methods.NEEDS`."""
        if self.kind == "potential":
            return "potential"
        velocity = any(name.startswith("w") for name in symbols_in(self.graph[0]))
        return "velocity" if velocity else "attitude"

    @property
    def unpack(self) -> dict[str, str]:
        """How the symbols of the graph are read from t, R, w, p."""
        unpack = {"t": "t"} | {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"{letter}{i}": f"{letter}[{i}]" for letter in "wm" for i in range(3)}
        return unpack | {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))}

    @functools.cached_property
    def text(self) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
        """Source and constants of the torque and of the potential (zero where there is none)."""
        force, U = self.graph
        unpack = self.unpack
        torque = source("torque_value", "t, R, w, p", unpack, force)
        potential = source("potential_value", "R, p", unpack, [lift(0) if U is None else U])
        return torque, potential

    @functools.cached_property
    def structure(self) -> str:
        """What its kernels are built from, values of parameters apart: fields of equal structure share them."""
        return repr((type(self).__name__, self.kind, self.template.frame, len(self.parameters), self.text))

    def torque_value(self, t: float, R: Any, omega: Any) -> Any:
        """The body torque at one state, in the user's axes."""
        return formula_kernel(self.text[0], floats.number)(t, R, omega, self.parameters)

    def torque_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel torque(t, q, m, system) in principal axes, in one number type."""
        return torque_kernel(formula_kernel(self.text[0], number), len(self.parameters), has_principal_rotation)

    @functools.lru_cache(maxsize=KEPT)  # noqa: B019 - few fields are kept alive by it
    def pair_text(self, has_principal_rotation: bool) -> tuple[str, dict[str, Any]]:
        """Source and constants of the torque and of the torque of V = g^T I^-1 g, g the torque of the potential.

        I^-1 comes as three numbers, or as six (by rows) where the body's axes are not the principal ones.
        """
        unpack = {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))} | {f"s{i}": f"s[{i}]" for i in range(6)}
        R = tuple(tuple(symbol(f"R{i}{j}") for j in range(3)) for i in range(3))
        (a, b, c), s = self.graph[0], [symbol(f"s{i}") for i in range(6)]
        V = s[0] * a * a + s[1] * b * b + s[2] * c * c
        if has_principal_rotation:
            V = s[0] * a * a + s[3] * b * b + s[5] * c * c + 2 * (s[1] * a * b + s[2] * a * c + s[4] * b * c)
        return source("pair_value", "R, p, s", unpack, [a, b, c, *_potential_torque(V, R)])

    def pair_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel (torque, torque of V)(t, q, m, system) in principal axes, in one number type."""
        return pair_kernel(
            formula_kernel(self.pair_text(has_principal_rotation), number), len(self.parameters), has_principal_rotation
        )

    @functools.cached_property
    def difference_text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of the mean torque of a potential between two attitudes, and of its change.

        With G the discrete gradient between R0 and R1 and the mean R = (R0 + R1)/2 the torque is -rot(R^T G), so that
        over R1 = R0 cay(v) it does the work that the potential loses: U1 - U0 = -T.v.
        """
        U = self.graph[1]
        if self.kind != "potential" or U is None:
            raise ValueError(f"{self.name} is not a potential")
        R, S = _attitude_symbols(), _attitude_symbols("S")
        first, last = [x for row in R for x in row], [x for row in S for x in row]
        slopes, change = discrete_gradient(U, first, last)
        mean = tuple(tuple((a + b) / 2 for a, b in zip(x, y, strict=True)) for x, y in zip(R, S, strict=True))
        unpack = self.unpack | {f"S{i}{j}": f"S[{i}][{j}]" for i in range(3) for j in range(3)}
        return source("difference_value", "R, S, p", unpack, [*_turning(slopes, mean), change])

    def difference_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel (mean torque, change of U)(t, q, m, system, t1, q1, m1) in principal axes."""
        return difference_kernel(
            formula_kernel(self.difference_text, number), len(self.parameters), has_principal_rotation
        )

    def potential_kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The kernel U(R, p), R in the user's axes."""
        value = formula_kernel(self.text[1], number)
        return lambda R, p: value(R, p)[0]


CHECK_DIGITS = 50
CHECK_ATTITUDES = ((5, 1, -2, 3), (2, 4, 1, -1), (-1, 2, 5, 2), (1, -3, 2, 6), (3, 3, -1, 4), (4, -1, -5, 1))
"""Quaternions, not normalised, at which a torque given by hand is compared with the exact one."""


def difference(seen: Sequence[tuple[str, Any, Any]]) -> str:
    """The first place at which what was given is not the exact vector, in words; `seen` are (place, exact, given)."""
    scale = max(abs(x) for _, exact, given in seen for x in (*exact, *given))
    for place, exact, given in seen:
        gap, i = max((abs(a - b), i) for i, (a, b) in enumerate(zip(exact, given, strict=True)))
        if not gap <= 64 * 2.0**-52 * scale:  # a few literals of 16 digits on both sides
            values = f"{float(given[i]):.10g} instead of {float(exact[i]):.10g}"
            return f"component {i + 1} is {values} (difference {float(gap):.3g}) {place}"
    return ""


def _compared(field: Field, hand: Field, R: Any, context: str) -> list[tuple[str, Any, Any]]:
    """Where, the exact torque and the one by hand, in 50 digits; without attitudes at which one is singular."""
    from ...numbers.multiprecision import number, working

    found = []
    with working(CHECK_DIGITS):
        zero = number(0)
        points = [(context, tuple(tuple(number(x) for x in row) for row in R))]
        for q in CHECK_ATTITUDES:
            a, b, c, d = (number(x) for x in q)
            points.append((f"at the attitude {q} (a quaternion, not normalised)", matrix(unit((a, b, c, d)))))
        for point, A in points:
            with contextlib.suppress(ArithmeticError, ValueError, TypeError):  # TypeError: complex, out of its domain
                values = [
                    formula_kernel(f.text[0], number)(
                        zero, A, (zero, zero, zero), tuple(number(x) for x in f.parameters)
                    )
                    for f in (field, hand)
                ]
                if all(math.isfinite(float(x)) for value in values for x in value):
                    found.append((point, values[0], values[1]))
    return found


def _attitude_symbols(letter: str = "R") -> Any:
    return tuple(tuple(symbol(f"{letter}{i}{j}") for j in range(3)) for i in range(3))


def _potential_torque(U: Expr, R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T dU/dR)."""
    return _turning(gradient(U, [R[i][j] for i in range(3) for j in range(3)]), R)


def _turning(slopes: Sequence[Expr], R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T G), G given by rows."""
    G = [slopes[0:3], slopes[3:6], slopes[6:9]]

    def M(i: int, j: int) -> Expr:
        return R[0][i] * G[0][j] + R[1][i] * G[1][j] + R[2][i] * G[2][j]

    return M(1, 2) - M(2, 1), M(2, 0) - M(0, 2), M(0, 1) - M(1, 0)
