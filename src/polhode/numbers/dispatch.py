"""Kernels, and which of several stands for a name: by number type, by kind of state, by arguments."""

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
"""Every fork with the choice of its kernel by the (types of the) arguments; the compiling backends read this list."""


def overloaded(
    plain: Callable[..., Any], compensated: Callable[..., Any], with_memory: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """One name for kernels whose first argument is a state: (q, m), with low parts, or with a memory.

    Which one is meant follows from the length of the state, 2, 4 or 3, so compiled code holds only one of them.
    """
    kernels = {2: plain, 4: compensated} | ({3: with_memory} if with_memory else {})

    def overload(y: Any, *rest: Any) -> Any:
        return kernels[len(y)](y, *rest)

    overload.__name__, overload.__doc__ = plain.__name__.strip("_"), plain.__doc__
    OVERLOADS.append((overload, lambda y, *rest: kernels[len(y)]))
    return overload


def by_arguments(few: Callable[..., Any], more: Callable[..., Any], count: int) -> Callable[..., Any]:
    """One name for two kernels: `more` where there are more than `count` arguments, else `few`."""

    def overload(*given: Any) -> Any:
        return (more if len(given) > count else few)(*given)

    OVERLOADS.append((overload, lambda *given: more if len(given) > count else few))
    return overload


_HAVE_TANGENTS: set[type] = set()

_GROUPS: list[Any] = [tuple]

_SEEDERS: list[Callable[..., Any]] = []


def register_tangents(
    number_type: type, groups: tuple[type, ...] = (), seeder: Callable[..., Any] | None = None
) -> None:
    """Say that a number type carries tangents (derivatives).

    `groups` are types besides `tuple` that hold several numbers; `seeder` does what `seeded` promises.
    """
    _HAVE_TANGENTS.add(number_type)
    _GROUPS.extend(groups)
    _SEEDERS.extend([seeder] if seeder else [])


def has_tangents(x: Any) -> bool:
    """Does a number, or one of a tuple of numbers, carry tangents; asked of values, and of types when compiling."""
    if any(isinstance(x, group) for group in _GROUPS):
        return any(has_tangents(part) for part in x)
    return type(x) in _HAVE_TANGENTS


def with_custom_tangent(plain: Callable[..., Any], following: Callable[..., Any]) -> Callable[..., Any]:
    """One name for two kernels: `following` where an argument carries tangents, else `plain`."""

    def overload(*given: Any) -> Any:
        return (following if has_tangents(given) else plain)(*given)

    OVERLOADS.append((overload, lambda *given: following if has_tangents(given) else plain))
    return overload


_solve_listener: ContextVar[Callable[[Any], None] | None] = ContextVar("solve_listener", default=None)


@contextlib.contextmanager
def solve_listener(listen: Callable[[Any], None]) -> Iterator[None]:
    """Call `listen` with the first guess of every equation that this thread solves in plain Python.

    This is how checks count solves. Other threads, and compiled code, do not notice it.
    """
    token = _solve_listener.set(listen)
    try:
        yield
    finally:
        _solve_listener.reset(token)


def solver(
    plain: Callable[..., Any], following: Callable[..., Any], equation: Callable[..., Any]
) -> Callable[..., Any]:
    """One name for three ways to solve an equation from a guess, with what it is made of.

    `plain(guess, *given)` is a loop whose end depends on numbers; `following` is for numbers that carry tangents.
    Traced numbers cannot end a loop: for them equation(root, guess, *given) says the same by the `root` of their
    namespace, root(f, x, *data) -> (the solution of f(x, *data) = 0 next to x, residual).
    """

    def solved(guess: Any, *given: Any) -> Any:
        listen = _solve_listener.get()
        if listen is not None:
            listen(guess)
        first = guess
        while isinstance(first, tuple):
            first = first[0]
        root = getattr(_space(first), "root", None)
        if root is not None:
            return equation(root, guess, *given)
        return (following if has_tangents((guess, *given)) else plain)(guess, *given)

    OVERLOADS.append((solved, lambda *given: following if has_tangents(given) else plain))
    return solved


_WHOLE: list[type] = [int]


def register_whole(number_type: type) -> None:
    """Say that a type, when compiling, is one of integers."""
    _WHOLE.append(number_type)


def by_absence(present: Callable[..., Any], missing: Callable[..., Any]) -> Callable[..., Any]:
    """One name for two kernels: `missing` where the first argument is a torque that is `absent`, else `present`."""

    def overload(force: Any, *rest: Any) -> Any:
        return (missing if isinstance(force[0], tuple(_WHOLE)) else present)(force, *rest)

    OVERLOADS.append((overload, lambda force, *rest: missing if isinstance(force[0], tuple(_WHOLE)) else present))
    return overload


_HALVERS: list[Callable[..., Any]] = []


def register_halves(halver: Callable[..., Any]) -> None:
    """Say how sums over room for vectors are taken: halver(kernel, room) is the kernel by halves, or the kernel."""
    _HALVERS.append(halver)


def by_halves(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel (room, k) -> tuple of numbers that vectors of two registers pass one register after the other."""

    def overload(workspace: Any, k: int) -> Any:
        return plain(workspace, k)

    OVERLOADS.append((overload, lambda workspace, k: _HALVERS[0](plain, workspace)))
    return overload


NO_FMA: set[Callable[..., Any]] = set()
"""Kernels in which no product may be fused with a sum."""


def no_fma(function: F) -> F:
    """Mark a kernel that lives on the rounding of every single operation: error-free sums and products."""
    NO_FMA.add(function)
    return kernel(function)


NOINLINE: set[Callable[..., Any]] = set()
"""Kernels that compiled code calls, where it contains the others."""


def noinline(function: F) -> F:
    """Say of a kernel that it is rarely needed: code that calls it does not grow by it."""
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
    """Functions of the built-in numbers; every registered type has a namespace of this shape."""

    sqrt, exp, log = math.sqrt, math.exp, math.log
    sin, cos, tan = math.sin, math.cos, math.tan
    asin, acos, atan, atan2 = math.asin, math.acos, math.atan, math.atan2
    sinh, cosh, tanh = math.sinh, math.cosh, math.tanh
    power = math.pow

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
        """The piece of a table in which x lies."""
        return min(max(bisect.bisect_right(knots, x) - 1, 0), len(knots) - 2)

    @staticmethod
    def take(index: Any, column: Any) -> Number:
        """An entry of a table."""
        value = column[index]
        return value.item() if hasattr(value, "item") else value


_SPACES: dict[type, Any] = {}

_BUILT_ON_OTHERS: set[type] = set()


def register(number_type: type, namespace: Any, built_on_others: bool = False) -> None:
    """Say which namespace (shaped like `Floats`) holds the functions of a number type.

    A type made of other numbers takes the call also where one of the arguments is such a number.
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
