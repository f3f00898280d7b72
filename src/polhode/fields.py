"""What acts on a body: torques and potentials, written as plain Python functions.

A field's function is called once with floats (so that its errors are readable), then traced into a
graph (`expression`), from which its kernels come. The torque of a potential U(R) is exact:
T = -rot(R^T dU/dR) with hat(rot M) = M - M^T.
"""

from __future__ import annotations

import builtins
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
from .expression import Expr, compiled, constant, gradient, lift, source, symbol, symbols_in
from .scalar import kernel
from .so3 import conj, matrix, mul, rotate, times, unrotate

FRAMES = ("body", "space")
STATE_ARGUMENTS = ("t", "R", "omega")
BUILTINS = ("abs", "enumerate", "len", "pow", "range", "sum", "tuple", "list", "zip")
RUBBER = "allowed are arithmetic, math.*, ph.math.*, ph.where, abs, range, and functions made of these"


# --- reading a user's function ----------------------------------------------------------------------


def _trace_math() -> types.SimpleNamespace:
    """``math`` as a traced function sees it: generic functions, and constants exact in every type."""
    names = {n: v for n, v in vars(polhode_math).items() if not n.startswith("_") and n != "Number"}
    pi = constant("pi")
    names |= {"pi": pi, "e": constant("e"), "tau": 2 * pi}
    names |= {"radians": lambda x: x * pi / 180, "degrees": lambda x: x * 180 / pi}
    return types.SimpleNamespace(**names)


TRACE_MATH = _trace_math()
TRACE_PACKAGE = types.SimpleNamespace(math=TRACE_MATH, where=scalar.where)


def _dotted(code: types.CodeType) -> dict[str, set[str]]:
    """Global names a function reads, each with the attributes taken from it."""
    found: dict[str, set[str]] = {}
    instructions = list(dis.get_instructions(code))
    for here, after in zip(instructions, [*instructions[1:], None], strict=True):
        if here.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            attributes = found.setdefault(str(here.argval), set())
            if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(str(after.argval))
        elif here.opname == "IMPORT_NAME":
            found.setdefault(f"import {here.argval}", set())
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for name, attributes in _dotted(inner).items():
                found.setdefault(name, set()).update(attributes)
    return found


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_constant(v) for v in value)
    return isinstance(value, numbers.Real)


def _meaning(owner: str, name: str, value: Any, attributes: set[str]) -> Any:
    """What a global name shall mean in the traced function; refuse what cannot be traced."""
    if isinstance(value, types.ModuleType):
        stand_in = {"math": TRACE_MATH, "polhode.math": TRACE_MATH, "polhode": TRACE_PACKAGE}.get(value.__name__)
        for attribute in sorted(attributes):
            if stand_in is None or not hasattr(stand_in, attribute):
                raise InputError(f"{owner} calls {name}.{attribute}, which cannot be compiled; {RUBBER}")
        if stand_in is None:
            raise InputError(f"{owner} uses the module {name}, which cannot be compiled; {RUBBER}")
        return stand_in
    if _is_constant(value):
        return value
    if isinstance(value, FieldTemplate):
        return rebound(value.function, owner)
    if getattr(value, "__module__", None) in ("math", "polhode.scalar", "polhode.math"):
        if hasattr(TRACE_MATH, value.__name__):
            return getattr(TRACE_MATH, value.__name__)
    elif isinstance(value, types.FunctionType):
        return rebound(value, owner)
    if isinstance(value, types.BuiltinFunctionType | type) and value.__name__ in BUILTINS:
        return value
    kind = "calls" if callable(value) else f"uses a {type(value).__name__} named"
    raise InputError(f"{owner} {kind} {name}, which cannot be compiled; {RUBBER}")


def rebound(function: Callable[..., Any], owner: str) -> Callable[..., Any]:
    """The same function with ``math`` and friends meaning the generic ones."""
    assert isinstance(function, types.FunctionType)
    space: dict[str, Any] = {"__builtins__": builtins}
    for name, attributes in _dotted(function.__code__).items():
        if name.startswith("import "):
            raise InputError(f"{owner} has an {name!r} inside; {RUBBER}")
        if name in function.__globals__:
            space[name] = _meaning(owner, name, function.__globals__[name], attributes)
        elif hasattr(builtins, name):
            space[name] = _meaning(owner, name, getattr(builtins, name), attributes)
        else:
            raise InputError(f"{owner} uses the name {name}, which is not defined")
    cells = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        cells.append(types.CellType(_meaning(owner, name, cell.cell_contents, set())))
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, tuple(cells))
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# --- fields -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class FieldTemplate:
    """A decorated torque or potential; calling it binds its parameters and gives a `Field`."""

    function: Callable[..., Any]
    kind: str
    frame: str

    @property
    def arguments(self) -> list[str]:
        """Names of the function's arguments."""
        return list(inspect.signature(self.function).parameters)

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters: the arguments other than t, R, omega."""
        return [name for name in self.arguments if name not in STATE_ARGUMENTS]

    def __call__(self, *args: Any, **named: Any) -> Field:
        signature = inspect.signature(self.function)
        wanted = [p for p in signature.parameters.values() if p.name in self.parameters]
        try:
            bound = signature.replace(parameters=wanted).bind(*args, **named)
        except TypeError as problem:
            names = ", ".join(self.parameters) or "no parameters"
            raise InputError(f"the {self.kind} {self.function.__name__} takes {names}: {problem}") from None
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


def _leaves(value: Any) -> list[float]:
    return [x for v in value for x in _leaves(v)] if isinstance(value, tuple) else [value]


def _like(value: Any, leaves: Sequence[Any], start: int = 0) -> tuple[Any, int]:
    """The leaves, taken in order, in the shape of `value`."""
    if not isinstance(value, tuple):
        return leaves[start], start + 1
    items = []
    for v in value:
        item, start = _like(v, leaves, start)
        items.append(item)
    return tuple(items), start


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
        return tuple(_leaves(tuple(self.values.values())))

    def called(self, function: Callable[..., Any], t: Any, R: Any, omega: Any, values: dict[str, Any]) -> Any:
        """The function's value, its arguments matched by name."""
        state = {"t": t, "R": R, "omega": omega}
        given = {n: state[n] if n in state else values[n] for n in self.template.arguments}
        return function(**given)

    def check(self, t: float, R: Any, omega: Any, place: str) -> tuple[float, ...]:
        """Call the function once in plain Python and say clearly what is wrong with it."""
        owner = f"the {self.kind} {self.name}"
        try:
            value = self.called(self.template.function, t, R, omega, self.values)
        except InputError:
            raise
        except Exception as problem:
            raise InputError(f"{owner} raised {type(problem).__name__} {place}: {problem}") from problem
        parts = (value,) if self.kind == "potential" else value
        expected = "one number" if self.kind == "potential" else "three numbers"
        try:
            parts = tuple(float(x) for x in parts)
        except (TypeError, ValueError):
            raise InputError(f"{owner} must return {expected}; it returned {value!r} {place}") from None
        if len(parts) != (1 if self.kind == "potential" else 3):
            raise InputError(f"{owner} must return {expected}; it returned {len(parts)} {place}")
        if not all(math.isfinite(x) for x in parts):
            raise InputError(f"{owner} must return finite numbers; it returned {value!r} {place}")
        return parts

    @functools.cached_property
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The body torque and the potential (None for a torque) as formulas of t, R, w, p."""
        owner = f"the {self.kind} {self.name}"
        t = symbol("t")
        R = tuple(tuple(symbol(f"R{i}{j}") for j in range(3)) for i in range(3))
        omega = tuple(symbol(f"w{i}") for i in range(3))
        leaves = [symbol(f"p{i}") for i in range(len(self.parameters))]
        shaped, _ = _like(tuple(self.values.values()), leaves)
        values = dict(zip(self.values, shaped, strict=True))
        function = rebound(self.template.function, owner)
        try:
            value = self.called(function, t, R, omega, values)
            if self.kind == "potential":
                U = lift(value)
                return _potential_torque(U, R), U
            force = tuple(lift(x) for x in value)
        except InputError:
            raise
        except Exception as problem:
            raise InputError(f"{owner} cannot be compiled: {problem}; {RUBBER}") from problem
        if self.template.frame == "space":
            force = tuple(R[0][j] * force[0] + R[1][j] * force[1] + R[2][j] * force[2] for j in range(3))
        return (force[0], force[1], force[2]), None

    @property
    def needs(self) -> str:
        """The kind of field this is, in the words of `methods.NEEDS`."""
        if self.kind == "potential":
            return "potential"
        velocity = any(name.startswith("w") for name in symbols_in(self.graph[0]))
        return "velocity" if velocity else "attitude"

    @functools.cached_property
    def text(self) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
        """Source and constants of the torque and of the potential (zero where there is none)."""
        unpack = {"t": "t"} | {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
        unpack |= {f"w{i}": f"w[{i}]" for i in range(3)} | {f"p{i}": f"p[{i}]" for i in range(len(self.parameters))}
        force, U = self.graph
        torque = source("torque_value", "t, R, w, p", unpack, force)
        potential = source("potential_value", "R, p", unpack, [lift(0) if U is None else U])
        return torque, potential

    def torque_value(self, t: float, R: Any, omega: Any) -> Any:
        """The body torque at one state, in the user's axes."""
        return compiled(*self.text[0], floats.number)(t, R, omega, self.parameters)

    def torque_kernel(self, number: Callable[[Any], Any], own_axes: bool) -> Callable[..., Any]:
        """The kernel torque(t, q, m, system) in principal axes, in one number type."""
        return _torque_kernel(compiled(*self.text[0], number), len(self.parameters), own_axes)

    def potential_kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The kernel U(R, p), R in the user's axes."""
        value = compiled(*self.text[1], number)
        return lambda R, p: value(R, p)[0]


def _potential_torque(U: Expr, R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T dU/dR)."""
    slopes = gradient(U, [R[i][j] for i in range(3) for j in range(3)])
    G = [slopes[0:3], slopes[3:6], slopes[6:9]]

    def M(i: int, j: int) -> Expr:
        return R[0][i] * G[0][j] + R[1][i] * G[1][j] + R[2][i] * G[2][j]  # type: ignore[no-any-return]

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
def no_torque(t: Any, q: Any, m: Any, system: Any) -> Any:
    """The torque on a free body."""
    return (0, 0, 0)


def _template(function: Any, kind: str, frame: str, forbidden: Sequence[str]) -> FieldTemplate:
    if not isinstance(function, types.FunctionType):
        raise InputError(f"@ph.{kind} decorates a plain Python function; got {type(function).__name__}")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(f"the {kind} {function.__name__} must name its arguments; *args cannot be matched")
        if parameter.name in forbidden:
            raise InputError(
                f"a potential is a function of R (and parameters) alone; {function.__name__} takes "
                f"{parameter.name}. Use @ph.torque for what depends on {parameter.name}"
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
        return lambda f: _template(f, "torque", frame, ())
    return _template(function, "torque", frame, ())


def potential(function: Any) -> FieldTemplate:
    """Make a potential energy of a function of R and parameters; its torque follows by itself."""
    return _template(function, "potential", "body", ("t", "omega"))
