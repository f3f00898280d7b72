"""Torques and potentials that act on a body, written as plain Python functions.

The function of a field is called once with floats (for readable errors), then traced into a
graph (`expression`), from which its kernels are built. The torque of a potential U(R) is exact:
T = -rot(R^T dU/dR) with hat(rot M) = M - M^T.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...errors import InputError
from ...numbers import floats
from ...numbers.nested import nested
from ...symbolic.discrete_gradient import discrete_gradient
from ...symbolic.expression import Expr, called, lift, opaque_calls, ordered, source, symbol, symbols, symbols_in
from ...symbolic.formula import Formula, formula_of
from ...symbolic.tracing import UntraceableError
from ...symbolic.user_function import in_order
from .by_hand import compared, difference
from .kernels import difference_kernel, formula_kernel, pair_kernel, torque_kernel
from .parameters import changed, check_size, checked_value, leaves_of, like
from .torque_formulas import attitude_symbols, in_body_frame, potential_torque, turning_torque
from .trace import Trace, of_formula, once_for_formula
from .untraced import FORMULA, PYTHON, Untraced, shape_of, untraced

if TYPE_CHECKING:
    from .template import FieldTemplate

FEW_ROWS = 2
"""Rows of data over which a sum is taken when a function is called once to find its mistakes."""
LONGEST = 120
"""Most characters of parameters that an error message shows."""


def unpickled(kind: type[Field], template: FieldTemplate, values: dict[str, Any], first: int) -> Field:
    """Rebuild a pickled field."""
    made = kind(template, values)
    made.first = first
    return made


HEAT_BATH, THERMOSTAT = "heat bath", "thermostat"
"""What a field may bring that is no torque: `heat_bath`, `thermostat`. Only methods that ask for it take it."""


class Field:
    """A torque or potential with its parameters bound. Fields are added with ``+`` (see `sums`)."""

    first = 0
    """Index of its first parameter among the symbols p0, p1, ... of its graph; not zero for a part of a sum."""

    bath: int | None = None
    """Place of the first parameter of its heat bath (`heat_bath`) or thermostat (`thermostat`); None without one."""

    bath_kind: tuple[str, int] = ("", 0)
    """What stands at `bath`, and its number of parameters."""

    stands_alone = ""
    """The reason why it cannot be added to other fields, if there is one."""

    _trace: Trace | None = None
    _shape: Any = None

    def __init__(self, template: FieldTemplate, values: Mapping[str, Any]) -> None:
        self.template = template
        self.values: Mapping[str, Any] = types.MappingProxyType(dict(values))
        self._parameters = tuple(leaves_of(tuple(values.values())))
        check_size(template, len(self._parameters))
        self.name = template.function.__name__
        self.kind = template.kind

    @property
    def shape(self) -> Any:
        """Shapes of the values of its parameters, in order (`untraced.shape_of`)."""
        if self._shape is None:
            self._shape = shape_of(tuple(self.values.values()))
        return self._shape

    @property
    def trace(self) -> Trace:
        """Data that it shares with all fields of the same formula."""
        if self._trace is None:
            self._trace = self.find_trace()
        return self._trace

    def find_trace(self) -> Trace:
        """Trace of its formula, made if there is no valid one."""
        return self.template.trace_of(self, self.first)

    def traced_anew(self) -> Trace:
        """Make a new trace, with the graph of the function in its current state."""
        self._trace = made = Trace()
        try:
            self.coupled  # noqa: B018 - built now, not on first use
        except BaseException:
            self._trace = None
            raise
        return made

    def as_formula(self) -> Formula:
        """Its function as data."""
        names = [f"p{i}" for i in range(len(self.parameters))]
        shaped = dict(zip(self.values, like(tuple(self.values.values()), names)[0], strict=True))
        R = tuple(tuple(f"R{i}{j}" for j in range(3)) for i in range(3))
        inputs = self.arguments("t", R, ("w0", "w1", "w2"), shaped, ("m0", "m1", "m2"))
        value = self.numbered(0).traced(lambda value: _as_nodes(self.returned(value)))
        return formula_of(self.template.function, _plain_signature(self.template), inputs, value)

    def returned(self, value: Any) -> Any:
        """The value of the function as a number or nested sequences of numbers."""
        return value

    def __reduce__(self) -> Any:
        """Pickle a field as its formula and the values of its parameters."""
        return unpickled, (type(self), self.template_as_data(), dict(self.values), self.first)

    def template_as_data(self) -> FieldTemplate:
        """Its template with a formula for a function."""
        template = self.template
        if not isinstance(template.function, Formula):
            try:
                template = self.trace("template", lambda: template.with_formulas(self))
            except UntraceableError as fault:
                raise InputError(
                    f"{template.user.owner} is no formula, which is what a pickle holds: {fault.why}; make the problem "
                    "again where it is needed"
                ) from fault
        return template

    def __copy__(self) -> Field:
        """Itself: fields do not change."""
        return self

    def __deepcopy__(self, memo: Any) -> Field:
        """Itself."""
        return self

    def bind(self, **changes: Any) -> Field:
        """The same field with other values of some parameters; nothing is traced or compiled again."""
        return self.template.bound(changed(self.template, self.values, changes))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"

    def __add__(self, other: Any) -> Field:
        from .sums import total

        return total((self, other))

    def __radd__(self, other: Any) -> Field:
        """Support ``sum(fields)``, which starts with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def numbered(self, first: int) -> Self:
        """The same field with its parameters numbered from `first` on in its graph."""
        if first == self.first:
            return self
        made: Any = self.template.bound(self.values)  # a template makes fields of one class
        made.first = first
        return made

    @property
    def parameters(self) -> tuple[Any, ...]:
        """All parameter values, flattened; rows of data are one array for each column."""
        return self._parameters

    def arguments(self, t: Any, R: Any, omega: Any, values: Mapping[str, Any], momentum: Any = None) -> dict[str, Any]:
        """Arguments of the function, by name; vectors and matrices support array arithmetic."""
        state = {"t": t, "R": R, "omega": omega, "momentum": momentum}
        by_name = {**{name: state[name] for name in self.template.state_used}, **values}
        return {name: nested(value) for name, value in by_name.items()}

    def value(self, t: float, R: Any, omega: Any, place: str, momentum: Any = None) -> Any:
        """Value of the function for plain numbers; sums over data are taken over a few rows only."""
        arguments = self.arguments(t, R, omega, self._with_few_rows(), momentum)
        try:
            return self.template.user.value(arguments, place, self._hint)
        except InputError as fault:
            if self.kind != "torque" or isinstance(fault.__cause__, ArithmeticError):
                raise
            with contextlib.suppress(Exception), np.errstate(all="ignore"):  # it may need NumPy arrays
                return self.template.function(
                    **{name: np.array(x) if isinstance(x, tuple) else x for name, x in arguments.items()}
                )
            raise

    def _with_few_rows(self) -> Mapping[str, Any]:
        """Its values, with few rows of the data that it sums over, which must agree in length."""
        if not self.columns:
            return self.values
        names = [name for name, value in self.values.items() for _ in leaves_of(value)]
        summed = set[str]()
        for places in self._sums:
            summed |= {names[i] for i in places}
            lengths = {names[i]: len(self.parameters[i]) for i in places}
            if len(set(lengths.values())) > 1:
                got = ", ".join(f"{name} {length}" for name, length in lengths.items())
                raise InputError(f"{self.template.user.owner} sums over arrays with different numbers of rows: {got}")
        return {name: value.head(FEW_ROWS) if name in summed else value for name, value in self.values.items()}

    @of_formula
    def _sums(self) -> list[list[int]]:
        """For every sum over data, the places of its columns among the parameters."""
        found = []
        for node in ordered([*itertools.chain(*self.coupled), *([] if self.energy is None else [self.energy])]):
            if node.op == "total":
                columns = node.args[1 + node.args[0].args[0].inputs :]
                found.append([int(x.args[0][1:]) - self.first for x in columns if x.op == "symbol"])
        return found

    def _hint(self, problem: Exception) -> str:
        """A hint for an exception raised by the function."""
        values = ", ".join(f"{name} = {value!r}" for name, value in self.values.items())
        hint = f"; its parameters are {values[:LONGEST]}" if values else ""
        return hint + "; R[i, j] and omega[i] are numbers, R and omega arrays" * isinstance(problem, TypeError)

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Evaluate the function once in plain Python; raise a clear error if it fails.

        Once it has been traced, finite values of its formula say the same in a third of the time.
        """
        if self._trace is not None and not self.opaque and not self.columns and self._is_finite(t, R, omega):
            return
        self.template.user.numbers(self.value(t, R, omega, context), context)
        if self.kind == "potential":
            self._check_slope(t, R, omega, context)

    def _is_finite(self, t: float, R: Any, omega: Any) -> bool:
        """Return whether torque and potential are finite at a state; False also if there is more to check."""
        if self.template.by_hand is not None:
            return False
        try:
            x, y, z = self.torque_value(t, R, omega)
            value = self.potential_formula(R, self.parameters)[0] if self.kind == "potential" else 0.0
        except (ArithmeticError, TypeError, ValueError):
            return False
        return -math.inf < x + y + z + value < math.inf

    def _check_slope(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check that a potential has finite derivatives, hence a torque."""
        try:
            slopes = self.torque_value(t, R, omega)
        except UntraceableError:
            raise
        except (ArithmeticError, ValueError):
            slopes = (math.nan,)
        if not all(map(math.isfinite, slopes)):
            raise InputError(
                f"the potential {self.name} must be smooth; its derivative is not finite {context}, so write it "
                "without this singularity"
            )
        if self.template.by_hand is not None:
            self._check_by_hand(self.template.by_hand, t, R, omega, context)

    def _check_by_hand(self, template: FieldTemplate, t: float, R: Any, omega: Any, context: str) -> None:
        """Check that the user's torque is the torque of the potential, at this state and at `CHECK_ATTITUDES`."""
        hand = Field(template, {name: self.values[name] for name in template.parameters})
        hand.check(t, R, omega, context)
        gap = difference(compared(self, hand, R, context))
        if gap:
            raise InputError(
                f"{hand.name} is not the torque of the potential {self.name}: {gap}; the torque of U(R) in the body "
                f"frame is -rot(R^T dU/dR)"
            )

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The body torque and the potential (None for a torque) as formulas of t, R, w, p."""
        R = attitude_symbols()
        if self.kind == "potential":
            U = self.traced(lift)
            return potential_torque(U, R), U
        return in_body_frame(self.written, self.template.frame), None

    @property
    def states(self) -> dict[str, Any]:
        """Initial values of the states that it brings, by name (see `states`)."""
        return {}

    @property
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The body torque, and the rates of its states."""
        return self.graph[0], ()

    @property
    def energy(self) -> Expr | None:
        """The potential as a formula; None if there is none."""
        return self.graph[1]

    @of_formula
    def written(self) -> Any:
        """The torque in the user's frame; for a potential in the body frame."""
        if self.kind == "potential":
            return self.graph[0]
        if self.template.plain:
            return self._called("it is declared plain")
        try:
            return self.traced(lambda value: tuple(lift(x) for x in in_order(value)))
        except UntraceableError as fault:
            if type(self) is not Field:  # a field made of derivatives
                raise
            return self._called(fault.why)

    def _called(self, reason: str) -> tuple[Expr, ...]:
        """Torque as a call of the function, which is not a formula for this reason."""
        t, R, omega, values = self._symbols()
        arguments = {name: (values | {"t": t, "R": R, "omega": omega})[name] for name in self.template.arguments}
        function = untraced(
            self.template.user,
            {name: shape_of(value) for name, value in arguments.items()},
            reason,
            self.template.plain,
        )
        return called(function, leaves_of(tuple(arguments.values())), 3)

    @of_formula
    def opaque(self) -> tuple[Expr, ...]:
        """Calls in its formula to functions that are not formulas."""
        return tuple(opaque_calls(self.coupled[0]))

    @property
    def untraced(self) -> list[Untraced]:
        """Functions in its formula that are not formulas."""
        return [node.args[0].args[0] for node in self.opaque]

    @property
    def in_python(self) -> bool:
        """True if one of its functions is called as plain Python, so that the field cannot be compiled."""
        return bool(self.opaque) and any(function.mode == PYTHON for function in self.untraced)

    @property
    def evaluated(self) -> str:
        """Text that says how the torque is evaluated."""
        return "; ".join(dict.fromkeys(f"{f.user.owner}: {f.evaluated}" for f in self.untraced)) or FORMULA

    def opaque_arguments(self, t: float, R: Any, omega: Any) -> list[tuple[Untraced, tuple[float, ...]]]:
        """Functions that are not formulas, each with its arguments at a state."""
        found = []
        for node in self.opaque:
            text = source("opaque_arguments", "t, R, w, p", self.unpack, list(node.args[1:]))
            values = formula_kernel(text, floats.number)(t, R, omega, self.parameters)
            found.append((node.args[0].args[0], tuple(map(float, values))))
        return found

    def traced(self, read: Callable[[Any], Any], at: tuple[Any, Any, Any, Sequence[Any]] | None = None) -> Any:
        """`read` applied to the function's value on the symbols t, R, w, p, or on the four formulas `at`."""
        momentum = symbols("m", 3)
        t, R, omega, values = self._symbols(at)
        return self.template.user.traced(self.arguments(t, R, omega, values, momentum), read)

    def _symbols(self, at: tuple[Any, Any, Any, Sequence[Any]] | None = None) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Formulas for t, R, omega and the parameters by name: `at` if given, else their symbols."""
        parameters = [symbol(f"p{self.first + i}") for i in range(len(self.parameters))]
        t, R, omega, leaves = at or (symbol("t"), attitude_symbols(), symbols("w", 3), parameters)
        shaped, _ = like(tuple(self.values.values()), leaves)
        return t, R, omega, dict(zip(self.values, shaped, strict=True))

    @property
    def columns(self) -> dict[int, np.ndarray]:
        """Columns of data, by their places among the parameters."""
        return {i: x for i, x in enumerate(self.parameters) if isinstance(x, np.ndarray)}

    @of_formula
    def needs(self) -> str:
        """The kind of this field, one of `methods.NEEDS`."""
        if self.kind == "potential":
            return "potential"
        return "velocity" if self.coupled[1] or "w" in self.reads else "attitude"

    @of_formula
    def reads(self) -> frozenset[str]:
        """First letters of the symbols in its torque: t, R, w for omega, p for parameters."""
        return frozenset(name[0] for name in symbols_in(self.graph[0]))

    @property
    def unpack(self) -> dict[str, str]:
        """Source text of each symbol of the graph in t, R, w, p."""
        unpack = {"t": "t"} | {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"{letter}{i}": f"{letter}[{i}]" for letter in "wm" for i in range(3)}
        return unpack | {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))}

    @of_formula
    def text(self) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
        """Source and constants of the torque and of the potential (zero if there is none)."""
        torque = source("torque_value", "t, R, w, p", self.unpack, self.graph[0])
        return torque, self._potential_text

    @of_formula
    def _potential_text(self) -> tuple[str, dict[str, Any]]:
        U = self.energy
        return source("potential_value", "R, p", self.unpack, [lift(0) if U is None else U])

    @of_formula
    def structure(self) -> str:
        """Text that determines its kernels, without parameter values: fields of equal structure share kernels."""
        bath = () if self.bath is None else (self.bath, *self.bath_kind)
        return repr((type(self).__name__, self.kind, self.template.frame, len(self.parameters), self.text, *bath))

    def torque_value(self, t: float, R: Any, omega: Any) -> Any:
        """The body torque at one state, in the user's axes."""
        return self.torque_formula(t, R, omega, self.parameters)

    @of_formula
    def torque_formula(self) -> Callable[..., Any]:
        """Torque as a function of t, R, omega and the parameters, in floats."""
        return formula_kernel(self.text[0], floats.number)

    @of_formula
    def potential_formula(self) -> Callable[..., Any]:
        """Potential, in a tuple, as a function of R and the parameters, in floats."""
        return formula_kernel(self._potential_text, floats.number)

    def torque_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel torque(t, q, m, system) in principal axes, in one number type."""
        return torque_kernel(formula_kernel(self.text[0], number), len(self.parameters), has_principal_rotation)

    @once_for_formula
    def pair_text(self, has_principal_rotation: bool) -> tuple[str, dict[str, Any]]:
        """Source and constants of the torque and of the torque of V = g^T I^-1 g, g the torque of the potential.

        I^-1 is three numbers, or six (by rows) if the body's axes are not the principal ones.
        """
        unpack = {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))} | {f"s{i}": f"s[{i}]" for i in range(6)}
        R = attitude_symbols()
        (a, b, c), s = self.graph[0], symbols("s", 6)
        V = s[0] * a * a + s[1] * b * b + s[2] * c * c
        if has_principal_rotation:
            V = s[0] * a * a + s[3] * b * b + s[5] * c * c + 2 * (s[1] * a * b + s[2] * a * c + s[4] * b * c)
        return source("pair_value", "R, p, s", unpack, [a, b, c, *potential_torque(V, R)])

    def pair_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel (torque, torque of V)(t, q, m, system) in principal axes, in one number type."""
        return pair_kernel(
            formula_kernel(self.pair_text(has_principal_rotation), number), len(self.parameters), has_principal_rotation
        )

    @of_formula
    def difference_text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of the mean torque of a potential between two attitudes, and of its change.

        With the discrete gradient G between R0 and R1 and the mean R = (R0 + R1)/2, the torque is T = -rot(R^T G). With
        R1 = R0 cay(v), its work equals the loss of potential: U1 - U0 = -T.v.
        """
        U = self.graph[1]
        if self.kind != "potential" or U is None:
            raise ValueError(f"{self.name} is not a potential")
        R, S = attitude_symbols(), attitude_symbols("S")
        first, last = [x for row in R for x in row], [x for row in S for x in row]
        slopes, change = discrete_gradient(U, first, last)
        mean = tuple(tuple((a + b) / 2 for a, b in zip(x, y, strict=True)) for x, y in zip(R, S, strict=True))
        unpack = self.unpack | {f"S{i}{j}": f"S[{i}][{j}]" for i in range(3) for j in range(3)}
        return source("difference_value", "R, S, p", unpack, [*turning_torque(slopes, mean), change])

    def difference_kernel(self, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
        """The kernel (mean torque, change of U)(t, q, m, system, t1, q1, m1) in principal axes."""
        return difference_kernel(
            formula_kernel(self.difference_text, number), len(self.parameters), has_principal_rotation
        )

    def potential_kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The kernel U(R, p), R in the user's axes."""
        value = formula_kernel(self._potential_text, number)
        return lambda R, p: value(R, p)[0]


def _as_nodes(value: Any) -> Any:
    """Convert the value of a function, a number or nested sequences of numbers, to nodes."""
    return tuple(map(_as_nodes, value)) if isinstance(value, tuple | list) else lift(value)


def _plain_signature(template: FieldTemplate) -> inspect.Signature:
    """The signature of the function with its defaults as tuples of floats."""
    whole = inspect.signature(template.function)
    plain = []
    for parameter in whole.parameters.values():
        if parameter.default is not parameter.empty:
            parameter = parameter.replace(default=checked_value(template, parameter.name, parameter.default))
        plain.append(parameter.replace(annotation=parameter.empty))
    return inspect.Signature(plain)
