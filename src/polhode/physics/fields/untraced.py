"""Torques that are not formulas: functions with branches, loops, NumPy, or objects with state.

Such a function is a call in the graph of its field (`expression.Opaque`). Compiled code contains the function unchanged
if the compiler accepts it (`compile/untraced` decides); otherwise it is called as plain Python. In both cases only
its values are available: it has no derivatives, no Taylor series and no digits beyond those of doubles.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._memo import KEPT, MADE
from ...errors import InputError
from ...kernels import so3
from ...numbers import floats, primitives, user_math
from ...numbers.dispatch import OVERLOADS, has_tangents, kernel, lane_by_lane, user_code
from ...numbers.nested import nested
from ...symbolic.expression import Opaque
from ...symbolic.rows import Rows
from ...symbolic.snapshot import content, copied
from ...symbolic.user_function import UserFunction

COMPILED, PYTHON = "compiled", "python"
"""Modes of evaluation: compiled unchanged, or called as plain Python."""

FORMULA = "a formula"

_serial = itertools.count()
_LAST: OrderedDict[Any, Untraced] = OrderedDict()
"""The last `Untraced` made for each function."""


def untraced(user: UserFunction, shapes: dict[str, Any], reason: str, plain: bool) -> Untraced:
    """The `Untraced` of a user's function; the same object as long as the outside values that it reads do not change.

    A function that is called as plain Python always sees the current outside values. Equal functions do not share one,
    because each may have its own state.
    """
    function = user.function
    assert isinstance(function, types.FunctionType)
    own = id(function), repr(shapes), plain
    last = _LAST.get(own)
    if last is not None and last.user.function is function and last.mode == PYTHON:
        return last
    made: Untraced = MADE(("untraced", own, content(function)), lambda: Untraced(user, shapes, reason, next(_serial)))
    if plain:
        made.call_as_python("")
    _LAST[own] = made
    while len(_LAST) > KEPT:
        _LAST.popitem(last=False)
    return made


@dataclasses.dataclass(eq=False)
class Untraced(Opaque):
    """A torque that is not a formula, as a function of all the numbers in its arguments."""

    user: UserFunction
    shapes: dict[str, Any]
    """Shapes of its arguments by name: 0 for a number, or nested tuples of 0."""
    reason: str
    """Why it is not a formula, as text that begins with "it"."""
    serial: int
    mode: str = ""
    """`COMPILED` or `PYTHON`; empty until decided (`compile/untraced`)."""
    why_python: str = ""
    """Why it is called as plain Python, if it is."""
    run: Callable[..., Any] | None = None
    """The compiled function, if it is compiled."""
    _kinds: tuple[Callable[[Any], Any], ...] = (np.array, nested)

    def __post_init__(self) -> None:
        self._scalar: Callable[..., Any] | None = None
        self._kernel = self._made_kernel()

    def __repr__(self) -> str:
        return f"<{self.user.owner}, untraced, {self.serial}>"

    @property
    def no_formula(self) -> str:
        """Text that says why it is not a formula."""
        return f"{self.user.owner} is not a formula ({self.reason})"

    @property
    def evaluated(self) -> str:
        """Text that says how it is evaluated."""
        if self.mode == PYTHON:
            return f"called as plain Python ({'; '.join(filter(None, (self.reason, self.why_python)))})"
        return f"compiled as it stands ({self.reason})"

    def call_as_python(self, why: str) -> None:
        """Set the mode to plain Python, with the reason."""
        self.mode, self.why_python = PYTHON, why

    # --- plain Python ------------------------------------------------------------------------------

    def plain(self, *flat: Any) -> tuple[float, ...]:
        """Torque for plain numbers, evaluated by the user's function itself."""
        numbers = [float(x) for x in flat]
        place = f"at t = {numbers[self._clock]:g}" if self._clock is not None else "during the run"
        fault: Exception | None = None
        for kind in self._kinds:
            try:
                value = self.user.function(**self._arguments(numbers, kind))
            except Exception as problem:
                fault = fault or problem
                continue
            self._kinds = (kind,)
            return self.user.numbers(value, place)
        assert fault is not None
        raise self.user.raised(fault, place) from fault

    @property
    def _clock(self) -> int | None:
        """Index of t among the numbers."""
        if "t" not in self.shapes:
            return None
        before = list(self.shapes.values())[: list(self.shapes).index("t")]
        return sum(_count(shape) for shape in before)

    def _arguments(self, numbers: Sequence[float], kind: Callable[[Any], Any]) -> dict[str, Any]:
        rest = iter(numbers)
        shaped = {name: _shaped(shape, rest) for name, shape in self.shapes.items()}
        return {name: kind(value) if isinstance(value, tuple) else value for name, value in shaped.items()}

    # --- kernels -----------------------------------------------------------------------------------

    def kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The kernel on doubles; other number types are refused."""
        if number is not floats.number:
            raise InputError(f"digits needs a formula, and {self.no_formula}; leave out `digits`")
        return self._kernel

    def without_derivatives(self) -> Exception:
        """Error for a request for its derivatives."""
        return InputError(f"derivatives of the torque are needed, and {self.no_formula}; it has values only")

    def fingerprint(self) -> Any:
        """Key for compiled code: everything that the code depends on."""
        return self.user.owner, self.scalar()

    def _made_kernel(self) -> Callable[..., Any]:
        def call(*flat: Any) -> Any:
            if any(isinstance(x, np.ndarray) for x in flat):
                return self._at_many(*flat)
            return self.plain(*flat)

        def choice(*kinds: Any) -> Callable[..., Any]:
            if has_tangents(kinds):
                raise self.without_derivatives()
            return lane_by_lane(self.scalar(), 3, kinds)

        OVERLOADS.append((call, choice))
        return call

    def _at_many(self, *flat: Any) -> tuple[np.ndarray, ...]:
        """Torque for arrays of numbers; NaN where the function fails."""
        grid = np.broadcast_arrays(*flat)
        found = np.full((3, grid[0].size), math.nan)
        for i, numbers in enumerate(zip(*(x.ravel().tolist() for x in grid), strict=True)):
            try:
                found[:, i] = self.run(*numbers) if self.run else self.plain(*numbers)
            except InputError:
                continue
        return tuple(x.reshape(grid[0].shape) for x in found)

    def scalar(self) -> Callable[..., Any]:
        """Torque for numbers, as a function for the compiler; NaN if the user's function raises an exception.

        It contains a copy of the user's function, with the outside values at the time of the first call.
        """
        if self._scalar is None:
            function: Any = self.user.function
            copy = copied(function, stand_in, lambda made: kernel(user_code(made)), through=_three)
            self._scalar = self._around(copy)
        return self._scalar

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function as one of numbers; it gets vectors as arrays, as in plain Python."""
        names = [f"x{i}" for i in range(sum(map(_count, self.shapes.values())))]
        rest, parts = iter(names), []
        for name, shape in self.shapes.items():
            value = _text(_shaped(shape, rest))
            by_name = inspect.signature(self.user.function).parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
            value = f"array({value})" if _is_regular(shape) and shape != 0 else value
            parts.append(f"{name}={value}" if by_name else value)
        text = (
            f"def torque_value({', '.join(names)}):\n"
            "    try:\n"
            f"        return three(function({', '.join(parts)}))\n"
            "    except Exception:\n"
            "        return (nan, nan, nan)\n"
        )
        space: dict[str, Any] = {"function": function, "three": _three, "array": np.array, "nan": math.nan}
        exec(text, space)  # the text contains nothing of the user's except argument names
        made: Callable[..., Any] = space["torque_value"]
        made.__module__ = __name__
        return kernel(user_code(made))


def _count(shape: Any) -> int:
    return sum(map(_count, shape)) if isinstance(shape, tuple) else 1


def shape_of(value: Any) -> Any:
    """Shape of a value: nested tuples with 0 for every number; for rows of data, the number of columns."""
    if isinstance(value, Rows):
        return "rows", value.inner
    return tuple([0 if type(x) is float else shape_of(x) for x in value]) if isinstance(value, tuple) else 0


def _shaped(shape: Any, rest: Any) -> Any:
    return tuple(_shaped(inner, rest) for inner in shape) if isinstance(shape, tuple) else next(rest)


def _is_regular(shape: Any) -> bool:
    """True for the shape of an array."""
    return not isinstance(shape, tuple) or (len(set(shape)) == 1 and _is_regular(shape[0]))


def _text(names: Any) -> str:
    return f"({''.join(_text(x) + ', ' for x in names)})" if isinstance(names, tuple) else names


# --- substitutes for ph.math in compiled code -------------------------------------------------------


@kernel
def _three(value: Any) -> Any:
    """Convert three numbers in a tuple, a list or an array to a tuple."""
    if len(value) != 3:
        raise ValueError
    return (float(value[0]), float(value[1]), float(value[2]))


@kernel
def _array_cross(a: Any, b: Any) -> Any:
    return np.array(so3.cross(a, b))


@kernel
def _array_matvec(A: Any, v: Any) -> Any:
    return np.array((so3.dot(A[0], v), so3.dot(A[1], v), so3.dot(A[2], v)))


def _math_module() -> types.ModuleType:
    """``ph.math`` for the compiler: functions that it knows, and functions of three-component vectors."""
    made = types.ModuleType("polhode_math")
    for name in user_math.__all__:
        known = getattr(primitives, name, None) or getattr(math, name, None)
        if known is not None:
            setattr(made, name, known)
    vars(made).update(cross=_array_cross, dot=so3.dot, matvec=_array_matvec, norm=so3.norm)
    return made


MATH, PACKAGE = _math_module(), types.ModuleType("polhode_for_compilers")
vars(PACKAGE).update(math=MATH, where=primitives.where)
MODULES = {"polhode": PACKAGE, "polhode.math": MATH, user_math.__name__: MATH}


def stand_in(value: Any) -> Any:
    """Substitute for an outside value if it is ``ph`` or one of its functions; otherwise None."""
    if isinstance(value, types.ModuleType):
        return MODULES.get(value.__name__)
    if getattr(value, "__module__", None) in (user_math.__name__, primitives.__name__):
        return getattr(MATH, getattr(value, "__name__", ""), value)
    return None
