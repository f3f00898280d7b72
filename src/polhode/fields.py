"""What acts on a body: torques and potentials, written as plain Python functions.

A field's function is called once with floats (so that its errors are readable), then traced into a
graph (`expression`), from which its kernels come. The torque of a potential U(R) is exact:
T = -rot(R^T dU/dR) with hat(rot M) = M - M^T.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import dis
import functools
import inspect
import math
import numbers
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import math as polhode_math
from . import scalar
from .backends import floats
from .errors import InputError
from .expression import BranchError, Expr, compiled, constant, gradient, lift, source, symbol, symbols_in
from .scalar import kernel
from .so3 import conj, dot, matrix, mul, rotate, times, unit, unrotate

FRAMES = ("body", "space")
STATE_ARGUMENTS = ("t", "R", "omega")
OBSERVABLE_ARGUMENTS = (*STATE_ARGUMENTS, "momentum")
BUILTINS = ("abs", "enumerate", "len", "list", "map", "pow", "range", "reversed", "sum", "tuple", "zip")
RUBBER = "allowed are arithmetic, math.*, ph.math.*, ph.where, abs, min, max, range, and functions made of these"


# --- reading a user's function ----------------------------------------------------------------------


def _extreme(better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``min`` or ``max`` without a branch."""

    def chosen(*values: Any) -> Any:
        items = tuple(values[0]) if len(values) == 1 else values
        return functools.reduce(lambda a, b: scalar.where(better(b, a), b, a), items)

    return chosen


def _lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with plain numbers kept as formulas, so that sqrt(2) has all digits of every number type."""
    return lambda *args: function(*(lift(float(x)) if isinstance(x, numbers.Real) else x for x in args))


def _trace_math() -> types.SimpleNamespace:
    """``math`` as a traced function sees it: generic functions, and constants exact in every type."""
    space = dict(vars(polhode_math))
    space |= {name: _lifted(getattr(scalar, name)) for name in scalar.FUNCTIONS}
    pi = constant("pi")
    space |= {"_log": space["log"], "pi": pi, "e": constant("e"), "tau": 2 * pi}
    for name, value in vars(polhode_math).items():
        if isinstance(value, types.FunctionType) and value.__module__ == polhode_math.__name__:
            space[name] = types.FunctionType(value.__code__, space, name, value.__defaults__)
    space["pow"] = _lifted(polhode_math.pow)
    return types.SimpleNamespace(**{name: space[name] for name in polhode_math.__all__})


TRACE_MATH = _trace_math()
TRACE_MODULES = {
    "math": TRACE_MATH,
    "polhode.math": TRACE_MATH,
    "polhode": types.SimpleNamespace(math=TRACE_MATH, where=scalar.where),
    "numpy": types.SimpleNamespace(pi=TRACE_MATH.pi, e=TRACE_MATH.e),
}
TRACE_BUILTINS: dict[str, Any] = {name: getattr(builtins, name) for name in BUILTINS} | {
    "min": _extreme(lambda a, b: a < b),
    "max": _extreme(lambda a, b: b < a),
    "float": lambda x: x,
}
NAMED = {math.pi: TRACE_MATH.pi, math.e: TRACE_MATH.e, math.tau: TRACE_MATH.tau}


def _dotted(code: types.CodeType) -> dict[tuple[str, bool], set[str]]:
    """Outside names a function reads and whether each is of its closure, with the attributes taken from it."""
    found: dict[tuple[str, bool], set[str]] = {}
    instructions = list(dis.get_instructions(code))
    for here, after in zip(instructions, [*instructions[1:], None], strict=True):
        if here.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            attributes = found.setdefault((str(here.argval), here.opname == "LOAD_DEREF"), set())
            if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(str(after.argval))
        elif here.opname == "IMPORT_NAME":
            found.setdefault((f"import {here.argval}", False), set())
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for name, attributes in _dotted(inner).items():
                found.setdefault(name, set()).update(attributes)
    return {name: attributes for name, attributes in found.items() if not (name[1] and name[0] in code.co_cellvars)}


def _constant(value: Any) -> Any:
    """A number, or nested tuples of numbers, as traced functions use them; None for anything else."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | list):
        items = tuple(_constant(v) for v in value)
        return None if any(item is None for item in items) else items
    if not isinstance(value, numbers.Real):
        return None
    return NAMED.get(value, value) if isinstance(value, float) else value


def _refused(owner: str, value: Any, name: str) -> InputError:
    """The error for a name that cannot be traced, with the name that can where there is one."""
    kind = "calls" if callable(value) else "uses"
    plain = name.rpartition(".")[2]
    hint = f"write math.{plain}" if kind == "calls" and hasattr(TRACE_MATH, plain) else RUBBER
    return InputError(f"{owner} {kind} {name}, which cannot be compiled; {hint}")


def _module(owner: str, name: str, value: types.ModuleType, attributes: set[str]) -> Any:
    """What stands for a module in a traced function."""
    stand_in = TRACE_MODULES.get(value.__name__)
    for attribute in sorted(attributes):
        if not hasattr(stand_in, attribute):
            raise _refused(owner, getattr(value, attribute, None), f"{name}.{attribute}")
    if stand_in is None:
        raise InputError(f"{owner} uses the module {name}, which cannot be compiled; {RUBBER}")
    return stand_in


def _meaning(owner: str, name: str, value: Any, attributes: set[str], known: dict[Any, Any]) -> Any:
    """What an outside name shall mean in the traced function; refuse what cannot be traced."""
    if isinstance(value, types.ModuleType):
        return _module(owner, name, value, attributes)
    number = _constant(value)
    if number is not None:
        return number
    if getattr(value, "__module__", None) in ("math", "polhode.scalar", "polhode.math"):
        if hasattr(TRACE_MATH, value.__name__):
            return getattr(TRACE_MATH, value.__name__)
    elif isinstance(value, types.FunctionType):
        return rebound(value, owner, known)
    if isinstance(value, types.BuiltinFunctionType | type) and value.__name__ in TRACE_BUILTINS:
        return TRACE_BUILTINS[value.__name__]
    raise _refused(owner, value, name)


def rebound(function: Callable[..., Any], owner: str, known: dict[Any, Any] | None = None) -> Callable[..., Any]:
    """The same function with ``math`` and friends meaning the generic ones; `known` are those met already."""
    assert isinstance(function, types.FunctionType)
    known = {} if known is None else known
    if function in known:
        return known[function]
    code = function.__code__
    space: dict[str, Any] = {"__builtins__": builtins}
    cells = dict(zip(code.co_freevars, (types.CellType() for _ in code.co_freevars), strict=True))
    made = types.FunctionType(code, space, function.__name__, function.__defaults__, tuple(cells.values()))
    made.__kwdefaults__ = function.__kwdefaults__
    known[function] = made
    closed_over = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for (name, of_closure), attributes in _dotted(code).items():
        if name.startswith("import "):
            raise InputError(f"{owner} has an {name!r} inside; import at the top of the file instead")
        if of_closure:
            value = closed_over[name].cell_contents
            cells[name].cell_contents = _meaning(owner, name, value, attributes, known)
        elif name in function.__globals__ or hasattr(builtins, name):
            value = function.__globals__.get(name, getattr(builtins, name, None))
            space[name] = _meaning(owner, name, value, attributes, known)
        else:
            raise InputError(f"{owner} uses the name {name}, which is not defined")
    return made


# --- fields -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class FieldTemplate:
    """A decorated torque or potential; calling it binds its parameters and gives a `Field`."""

    function: Callable[..., Any]
    kind: str
    frame: str
    by_hand: FieldTemplate | None = None
    """The torque a user wrote down for a potential; it is checked and not used."""

    @property
    def arguments(self) -> list[str]:
        """Names of the function's arguments."""
        return list(inspect.signature(self.function).parameters)

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
        known = inspect.signature(self.function).parameters
        return all(known[name].default is not inspect.Parameter.empty for name in self.parameters)

    def __call__(self, *args: Any, **named: Any) -> Field:
        """Bind the parameters, by position or by name."""
        signature = inspect.signature(self.function)
        wanted = [p for p in signature.parameters.values() if p.name in self.parameters]
        try:
            bound = signature.replace(parameters=wanted).bind(*args, **named)
        except TypeError as problem:
            names = ", ".join(self.parameters)
            takes = f"the parameters ({names})" if names else "no parameters"
            raise InputError(f"the {self.kind} {self.function.__name__} takes {takes}: {problem}") from None
        bound.apply_defaults()
        values = {name: _checked_value(self, name, value) for name, value in bound.arguments.items()}
        return Field(self, values)


def _checked_value(template: FieldTemplate, name: str, value: Any) -> Any:
    """A parameter as a float or as nested tuples of floats."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return tuple(_checked_value(template, name, v) for v in value)
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        where = f"parameter {name} of the {template.kind} {template.function.__name__}"
        raise InputError(f"{where} must be a finite number or a sequence of them; got {value!r}")
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
    """A torque or potential with its parameters bound."""

    def __init__(self, template: FieldTemplate, values: dict[str, Any]) -> None:
        self.template = template
        self.values = values
        self.name = template.function.__name__
        self.kind = template.kind

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"

    @property
    def parameters(self) -> tuple[float, ...]:
        """All parameter values, flattened."""
        return tuple(leaves_of(tuple(self.values.values())))

    def called(
        self, function: Callable[..., Any], t: Any, R: Any, omega: Any, values: dict[str, Any], momentum: Any = None
    ) -> Any:
        """The function's value, its arguments matched by name."""
        state = {"t": t, "R": R, "omega": omega, "momentum": momentum}
        given = {n: state[n] if n in self.template.state else values[n] for n in self.template.arguments}
        return function(**given)

    def check(self, t: float, R: Any, omega: Any, place: str) -> None:
        """Call the function once in plain Python and say clearly what is wrong with it."""
        owner = f"the {self.kind} {self.name}"
        try:
            value = self.called(self.template.function, t, R, omega, self.values)
        except InputError:
            raise
        except Exception as problem:
            raise InputError(f"{owner} raised {type(problem).__name__} {place}: {_line(problem)}") from problem
        count, expected = (3, "three numbers") if self.kind == "torque" else (1, "one number")
        parts = value if self.kind == "torque" else (value,)
        try:
            parts = tuple(float(x) for x in parts)
        except (TypeError, ValueError):
            raise InputError(f"{owner} must return {expected}; it returned {value!r} {place}") from None
        if len(parts) != count:
            raise InputError(f"{owner} must return {expected}; it returned {len(parts)} {place}")
        if not all(math.isfinite(x) for x in parts):
            raise InputError(f"{owner} must return finite numbers; it returned {value!r} {place}")
        if self.kind == "potential":
            self._check_slope(t, R, omega, place)

    def _check_slope(self, t: float, R: Any, omega: Any, place: str) -> None:
        """A potential must have a torque: finite slopes."""
        try:
            slopes = self.torque_value(t, R, omega)
        except (ArithmeticError, ValueError):
            slopes = (math.nan,)
        if not all(math.isfinite(x) for x in slopes):
            raise InputError(f"the potential {self.name} must be smooth; its derivative is not finite {place}")
        if self.template.by_hand is not None:
            self._check_by_hand(self.template.by_hand, t, R, omega, place)

    def _check_by_hand(self, template: FieldTemplate, t: float, R: Any, omega: Any, place: str) -> None:
        """The torque given by hand must be that of the potential, at the state and at attitudes all around."""
        hand = Field(template, {name: self.values[name] for name in template.parameters})
        hand.check(t, R, omega, place)
        found = _compared(self, hand, R, place)
        scale = max(abs(x) for _, ours, _ in found for x in ours)
        for point, ours, theirs in found:
            gap, axis = max((abs(a - b), i) for i, (a, b) in enumerate(zip(ours, theirs, strict=True)))
            if not gap <= 64 * 2.0**-52 * scale:  # a few literals of 16 digits on both sides
                raise InputError(
                    f"the torque {hand.name} given for the potential {self.name} is not its torque: component "
                    f"{axis + 1} is {float(theirs[axis]):.10g} instead of {float(ours[axis]):.10g} (difference "
                    f"{float(gap):.3g}) {point}; the torque of U(R) in the body frame is -rot(R^T dU/dR)"
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
        return self.traced(lambda value: tuple(lift(x) for x in value))

    def traced(self, read: Callable[[Any], Any], at: tuple[Any, Any, Any, Sequence[Any]] | None = None) -> Any:
        """What `read` makes of the function's value on the symbols t, R, w, p, or `at` formulas of these four."""
        owner = f"the {self.kind} {self.name}"
        symbols = [symbol(f"p{i}") for i in range(len(self.parameters))]
        omega, momentum = (tuple(symbol(f"{letter}{i}") for i in range(3)) for letter in "wm")
        t, R, omega, leaves = at or (symbol("t"), _attitude_symbols(), omega, symbols)
        shaped, _ = like(tuple(self.values.values()), leaves)
        values = dict(zip(self.values, shaped, strict=True))
        function = rebound(self.template.function, owner)
        try:
            return read(self.called(function, t, R, omega, values, momentum))
        except BranchError as problem:
            raise InputError(f"{owner} cannot be compiled: {problem}") from problem
        except Exception as problem:
            raise InputError(f"{owner} cannot be compiled: {_line(problem)}; {RUBBER}") from problem

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

    def torque_value(self, t: float, R: Any, omega: Any) -> Any:
        """The body torque at one state, in the user's axes."""
        return formula_kernel(self.text[0], floats.number)(t, R, omega, self.parameters)

    def torque_kernel(self, number: Callable[[Any], Any], own_axes: bool) -> Callable[..., Any]:
        """The kernel torque(t, q, m, system) in principal axes, in one number type."""
        return _torque_kernel(formula_kernel(self.text[0], number), len(self.parameters), own_axes)

    @functools.cache  # noqa: B019 - fields are few and small
    def pair_text(self, own_axes: bool) -> tuple[str, dict[str, Any]]:
        """Source and constants of the torque and of the torque of V = g^T I^-1 g, g the torque of the potential.

        I^-1 comes as three numbers, or as six (by rows) where the body's axes are not the principal ones.
        """
        unpack = {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))} | {f"s{i}": f"s[{i}]" for i in range(6)}
        R = tuple(tuple(symbol(f"R{i}{j}") for j in range(3)) for i in range(3))
        (a, b, c), s = self.graph[0], [symbol(f"s{i}") for i in range(6)]
        V = s[0] * a * a + s[1] * b * b + s[2] * c * c
        if own_axes:
            V = s[0] * a * a + s[3] * b * b + s[5] * c * c + 2 * (s[1] * a * b + s[2] * a * c + s[4] * b * c)
        return source("pair_value", "R, p, s", unpack, [a, b, c, *_potential_torque(V, R)])

    def pair_kernel(self, number: Callable[[Any], Any], own_axes: bool) -> Callable[..., Any]:
        """The kernel (torque, torque of V)(t, q, m, system) in principal axes, in one number type."""
        return _pair_kernel(formula_kernel(self.pair_text(own_axes), number), len(self.parameters), own_axes)

    def potential_kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The kernel U(R, p), R in the user's axes."""
        value = formula_kernel(self.text[1], number)
        return lambda R, p: value(R, p)[0]


CHECK_DIGITS = 50
CHECK_ATTITUDES = ((5, 1, -2, 3), (2, 4, 1, -1), (-1, 2, 5, 2), (1, -3, 2, 6), (3, 3, -1, 4), (4, -1, -5, 1))
"""Quaternions, not normalised, at which a torque given by hand is compared with the exact one."""


def _compared(field: Field, hand: Field, R: Any, place: str) -> list[tuple[str, Any, Any]]:
    """Where, the exact torque and the one by hand, in 50 digits; without attitudes at which one is singular."""
    import mpmath

    from .backends.multiprecision import number

    found = []
    with mpmath.workdps(CHECK_DIGITS):
        zero = number(0)
        points = [(place, tuple(tuple(number(x) for x in row) for row in R))]
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


_FLOAT_KERNELS: dict[str, Callable[..., Any]] = {}


def formula_kernel(text: tuple[str, dict[str, Any]], number: Callable[[Any], Any]) -> Callable[..., Any]:
    """The kernel of a formula; the one for doubles is made once (others depend on the working precision)."""
    if number is not floats.number:
        return compiled(*text, number)
    key = repr(text)
    if key not in _FLOAT_KERNELS:
        _FLOAT_KERNELS[key] = compiled(*text, number)
    return _FLOAT_KERNELS[key]


def _attitude_symbols() -> Any:
    return tuple(tuple(symbol(f"R{i}{j}") for j in range(3)) for i in range(3))


def _line(problem: BaseException) -> str:
    """What an exception says, on one line."""
    return " ".join(str(problem).split()) or "no message"


def _potential_torque(U: Expr, R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T dU/dR)."""
    slopes = gradient(U, [R[i][j] for i in range(3) for j in range(3)])
    G = [slopes[0:3], slopes[3:6], slopes[6:9]]

    def M(i: int, j: int) -> Expr:
        return R[0][i] * G[0][j] + R[1][i] * G[1][j] + R[2][i] * G[2][j]

    return M(1, 2) - M(2, 1), M(2, 0) - M(0, 2), M(0, 1) - M(1, 0)


def _torque_kernel(value: Callable[..., Any], count: int, own_axes: bool) -> Callable[..., Any]:
    """Wrap a formula of (t, R, omega) in the user's axes into a torque in principal axes.

    With axes of their own, the quaternion a that turns principal into user axes follows the parameters.
    """
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any) -> Any:
            return value(t, matrix(q), times(system[1], m), system[2])

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any) -> Any:
        p = system[2]
        a = (p[count], p[count + 1], p[count + 2], p[count + 3])
        force = value(t, matrix(mul(q, conj(a))), rotate(a, times(system[1], m)), p)
        return unrotate(a, force)

    return turned


@kernel
def inverse_tensor(axes: Any, inverse: Any) -> Any:
    """I^-1 in the user's axes as six numbers, by rows, from the principal ones and the quaternion that turns them."""
    x, y, z = matrix(axes)
    return (
        dot(x, times(inverse, x)), dot(x, times(inverse, y)), dot(x, times(inverse, z)),
        dot(y, times(inverse, y)), dot(y, times(inverse, z)), dot(z, times(inverse, z)),
    )  # fmt: skip


def _pair_kernel(value: Callable[..., Any], count: int, own_axes: bool) -> Callable[..., Any]:
    """As `_torque_kernel`, for a formula that gives the torque and the torque of V."""
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any) -> Any:
            a, b, c, d, e, f = value(matrix(q), system[2], system[1])
            return (a, b, c), (d, e, f)

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any) -> Any:
        p = system[2]
        axes = (p[count], p[count + 1], p[count + 2], p[count + 3])
        a, b, c, d, e, f = value(matrix(mul(q, conj(axes))), p, inverse_tensor(axes, system[1]))
        return unrotate(axes, (a, b, c)), unrotate(axes, (d, e, f))

    return turned


@kernel
def no_pair(t: Any, q: Any, m: Any, system: Any) -> Any:
    """The pair of torques on a free body."""
    return (0, 0, 0), (0, 0, 0)


@kernel
def no_torque(t: Any, q: Any, m: Any, system: Any) -> Any:
    """The torque on a free body."""
    return (0, 0, 0)


def template_of(function: Any, kind: str, frame: str, forbidden: Sequence[str]) -> FieldTemplate:
    """A user's function made ready to have its parameters bound, its arguments checked."""
    if not isinstance(function, types.FunctionType):
        raise InputError(f"@ph.{kind} decorates a plain Python function; got {type(function).__name__}")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"the {kind} {function.__name__} must name its arguments, which are matched by name; "
                f"got {str(parameter).partition('=')[0]}{' before /' if parameter.kind == 0 else ''}"
            )
        if parameter.name in forbidden:
            raise InputError(
                f"a potential is a function of R (and parameters) alone; {function.__name__} takes "
                f"{parameter.name}, so make it a @ph.torque"
            )
    return FieldTemplate(function, kind, frame)


def torque(function: Any = None, *, frame: str = "body") -> Any:
    """Make a torque of a function of t, R, omega (any of them) and parameters.

    ``R[i][j]`` maps body to space, ``omega`` is the body angular velocity; the three numbers returned
    are the torque in the named frame, "body" or "space".
    """
    if frame not in FRAMES:
        raise InputError(f"frame must be 'body' or 'space'; got {frame!r}")
    if function is None:
        return lambda f: template_of(f, "torque", frame, ())
    return template_of(function, "torque", frame, ())


def potential(function: Any = None, *, torque: Any = None) -> Any:
    """Make a potential energy of a function of R and parameters; its torque follows by itself.

    A `torque` written down by hand, a function of R and the same parameters that returns three numbers in the body
    frame (or such a function made a ``@ph.torque(frame="space")``), is compared with the exact one wherever a
    problem starts and at attitudes all around; a difference beyond round-off is an error.
    """
    if function is None:
        return lambda f: potential(f, torque=torque)
    made = template_of(function, "potential", "body", ("t", "omega"))
    return made if torque is None else dataclasses.replace(made, by_hand=_by_hand(made, torque))


def _by_hand(made: FieldTemplate, given: Any) -> FieldTemplate:
    """The template of a torque given for a potential: a function of R and the potential's parameters."""
    template = given if isinstance(given, FieldTemplate) else template_of(given, "torque", "body", ())
    allowed = ["R", *made.parameters]
    extra = [name for name in template.arguments if name not in allowed]
    if template.kind != "torque" or extra:
        got = f"it takes {', '.join(extra)}" if extra else f"got a {template.kind}"
        raise InputError(
            f"the torque given for the potential {made.function.__name__} must be a function of {', '.join(allowed)} "
            f"that returns three numbers; {got}"
        )
    return template
