"""Kernels, and the choice among several of one name: by number type, by kind of state, by arguments."""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from .types import Number

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Callable[..., Any]] = []
"""Every kernel, in order of definition; the compiling backends read this list."""


def kernel(function: F) -> F:
    """Mark a function as a kernel. It stays an ordinary Python function."""
    KERNELS.append(function)
    return function


OVERLOADS: list[tuple[Callable[..., Any], Callable[..., Callable[..., Any]]]] = []
"""Every overloaded kernel with the function that selects its version by the arguments or their types.

The compiling backends read this list.
"""


def overloaded(
    plain: Callable[..., Any], compensated: Callable[..., Any], with_memory: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Overload a kernel whose first argument is a state: (q, m), with low parts, or with a memory.

    The length of the state, 2, 4 or 3, selects the version, so compiled code contains only one of them.
    """
    kernels = {2: plain, 4: compensated} | ({3: with_memory} if with_memory else {})

    def overload(y: Any, *rest: Any) -> Any:
        return kernels[len(y)](y, *rest)

    overload.__name__, overload.__doc__ = plain.__name__.strip("_"), plain.__doc__
    OVERLOADS.append((overload, lambda y, *rest: kernels[len(y)]))
    return overload


def by_arguments(few: Callable[..., Any], more: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Overload a kernel by its number of arguments: `more` for more than `count`, else `few`."""

    def overload(*arguments: Any) -> Any:
        return (more if len(arguments) > count else few)(*arguments)

    OVERLOADS.append((overload, lambda *arguments: more if len(arguments) > count else few))
    return overload


_HAVE_TANGENTS: set[type] = set()

_GROUPS: list[Any] = [tuple]

_SEEDERS: list[Callable[..., Any]] = []

_JOINERS: list[Callable[..., Any]] = []


def register_tangents(
    number_type: type,
    groups: tuple[type, ...] = (),
    seeder: Callable[..., Any] | None = None,
    joiner: Callable[..., Any] | None = None,
) -> None:
    """Register a number type that carries tangents (derivatives).

    `groups` are types besides `tuple` that hold several numbers; `seeder` implements `seed_tangents`, and `joiner`
    `with_tangents`.
    """
    _HAVE_TANGENTS.add(number_type)
    _GROUPS.extend(groups)
    _SEEDERS.extend([seeder] if seeder else [])
    _JOINERS.extend([joiner] if joiner else [])


def has_tangents(x: Any) -> bool:
    """Whether a number, or any number in a tuple, carries tangents; takes values, or types when compiling."""
    if any(isinstance(x, group) for group in _GROUPS):
        return any(has_tangents(part) for part in x)
    return type(x) in _HAVE_TANGENTS


def with_custom_tangent(plain: Callable[..., Any], following: Callable[..., Any]) -> Callable[..., Any]:
    """Overload a kernel by tangents: `following` if an argument carries tangents, else `plain`."""

    def overload(*arguments: Any) -> Any:
        return (following if has_tangents(arguments) else plain)(*arguments)

    OVERLOADS.append((overload, lambda *arguments: following if has_tangents(arguments) else plain))
    return overload


_solve_listener: ContextVar[Callable[[Any], None] | None] = ContextVar("solve_listener", default=None)


@contextlib.contextmanager
def solve_listener(listen: Callable[[Any], None]) -> Iterator[None]:
    """Call `listen` with the initial guess of every equation that this thread solves in plain Python.

    Checks count solves with it. It has no effect on other threads or on compiled code.
    """
    token = _solve_listener.set(listen)
    try:
        yield
    finally:
        _solve_listener.reset(token)


def solver(
    plain: Callable[..., Any], following: Callable[..., Any], equation: Callable[..., Any]
) -> Callable[..., Any]:
    """Overload the solver of an equation, called with a guess and the data of the equation.

    `plain(guess, *data)` is a loop whose length depends on the numbers; `following` is for numbers that carry tangents.
    Traced numbers cannot end a loop. For them equation(root, guess, *data) solves the same equation with the `root` of
    their namespace, root(f, x, *data) -> (the solution of f(x, *data) = 0 nearest to x, residual).
    """

    def solved(guess: Any, *arguments: Any) -> Any:
        listen = _solve_listener.get()
        if listen is not None:
            listen(guess)
        first = guess
        while isinstance(first, tuple):
            first = first[0]
        root = getattr(_space(first), "root", None)
        if root is not None:
            return equation(root, guess, *arguments)
        return (following if has_tangents((guess, *arguments)) else plain)(guess, *arguments)

    OVERLOADS.append((solved, lambda *arguments: following if has_tangents(arguments) else plain))
    return solved


_WHOLE: list[type] = [int]


def register_whole(number_type: type) -> None:
    """Register the type of integers in compiled code."""
    _WHOLE.append(number_type)


def by_absence(present: Callable[..., Any], missing: Callable[..., Any]) -> Callable[..., Any]:
    """Overload a kernel by its first argument: `missing` if that is an `absent` torque, else `present`."""

    def overload(force: Any, *rest: Any) -> Any:
        return (missing if isinstance(force[0], tuple(_WHOLE)) else present)(force, *rest)

    OVERLOADS.append((overload, lambda force, *rest: missing if isinstance(force[0], tuple(_WHOLE)) else present))
    return overload


_HALVERS: list[Callable[..., Any]] = []


def register_halves(halver: Callable[..., Any]) -> None:
    """Register halver(kernel, workspace), which returns the kernel split into register halves, or the kernel itself."""
    _HALVERS.append(halver)


def by_halves(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Let vectors of two registers pass a kernel (workspace, k) -> tuple of numbers one register after the other."""

    def overload(workspace: Any, k: int) -> Any:
        return plain(workspace, k)

    OVERLOADS.append((overload, lambda workspace, k: _HALVERS[0](plain, workspace)))
    return overload


NO_FMA: set[Callable[..., Any]] = set()
"""Kernels in which the compiler may not fuse a product with a sum."""


def no_fma(function: F) -> F:
    """Mark a kernel that relies on the rounding of every single operation: error-free sums and products."""
    NO_FMA.add(function)
    return kernel(function)


NOINLINE: set[Callable[..., Any]] = set()
"""Kernels that compiled code calls; the others are inlined."""


def noinline(function: F) -> F:
    """Mark a kernel that is rarely needed, so that it is not inlined into its callers."""
    NOINLINE.add(function)
    return function


USER_CODE: set[Callable[..., Any]] = set()
"""Functions that users wrote, compiled as they stand: with checks of indices, and not inlined."""


def user_code(function: F) -> F:
    """Say of a kernel that a user wrote it."""
    USER_CODE.add(function)
    return function


_LANES: list[Callable[..., Any]] = []


def register_lanes(by_lanes: Callable[..., Any]) -> None:
    """Say how a function of numbers is called for vectors; by_lanes(function, count, types of the arguments)."""
    _LANES.append(by_lanes)


def lane_by_lane(function: F, count: int, kinds: tuple[Any, ...]) -> Callable[..., Any]:
    """A function of numbers that returns `count` numbers, for arguments of these types when compiling.

    Where some of them are vectors it is called for one lane after the other.
    """
    made: Callable[..., Any] = _LANES[0](function, count, kinds)
    return made


class Floats:
    """Functions of the built-in numbers; every registered type has a namespace with the same names."""

    sqrt, exp, log = math.sqrt, math.exp, math.log
    sin, cos, tan = math.sin, math.cos, math.tan
    asin, acos, atan, atan2 = math.asin, math.acos, math.atan, math.atan2
    sinh, cosh, tanh = math.sinh, math.cosh, math.tanh
    power = math.pow

    whole = int

    @staticmethod
    def epsilon() -> float:
        """Distance from 1 to the next number."""
        return 2.0**-52

    @staticmethod
    def where(condition: Any, yes: Number, no: Number) -> Number:
        """Choose by a condition."""
        return yes if condition else no

    @staticmethod
    def bracket(x: Number, knots: Any) -> Any:
        """Index of the table interval that contains x."""
        return min(max(bisect.bisect_right(knots, x) - 1, 0), len(knots) - 2)

    @staticmethod
    def take(index: Any, column: Any) -> Number:
        """An entry of a table."""
        value = column[index]
        return value.item() if hasattr(value, "item") else value


_SPACES: dict[type, Any] = {}

_BUILT_ON_OTHERS: set[type] = set()


def register(number_type: type, namespace: Any, built_on_others: bool = False) -> None:
    """Register the namespace (with the names of `Floats`) that holds the functions of a number type.

    A type built on other numbers also takes the calls in which some arguments are such plain numbers.
    """
    _SPACES[number_type] = namespace
    if built_on_others:
        _BUILT_ON_OTHERS.add(number_type)


def _space(*values: Any) -> Any:
    chosen = None
    for value in values:
        found = _SPACES.get(type(value))
        if type(value) in _BUILT_ON_OTHERS:
            return found
        chosen = chosen or found
    return chosen or Floats
