"""Numbers: what a kernel may do with them, whatever their type.

Kernels are plain functions on tuples of numbers. They use ``+ - * /``, comparisons, ``&`` and ``|``
between comparisons, ``abs``, and the primitives of this file; so the same source runs on floats, on
mpmath numbers, on NumPy arrays, on traced expressions, and compiled. This is the only file that knows
that number types exist: a type says once, with `register`, which namespace holds its functions.
"""

import bisect
import contextlib
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

Number = Any
Vec3 = tuple[Number, Number, Number]
Quat = tuple[Number, Number, Number, Number]
Rows = tuple[Vec3, Vec3, Vec3]
State = tuple[Quat, Vec3]
F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Callable[..., Any]] = []
"""Every kernel, in order of definition; the compiling backends read this list."""

FUNCTIONS = (
    *("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "exp", "log", "power"),
)
"""Names of the elementary functions every number type provides."""


def kernel(function: F) -> F:
    """Mark a function as a kernel. It stays an ordinary Python function."""
    KERNELS.append(function)
    return function


FORKS: list[tuple[Callable[..., Any], Callable[..., Callable[..., Any]]]] = []
"""Every fork with the choice of its kernel by the (types of the) arguments; the compiling backends read this list."""


def fork(
    plain: Callable[..., Any], carrying: Callable[..., Any], remembering: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """One name for kernels whose first argument is a state: (q, m), with low parts, or with a memory.

    Which one is meant follows from the length of the state, 2, 4 or 3, so compiled code holds only one of them.
    """
    kernels = {2: plain, 4: carrying} | ({3: remembering} if remembering else {})

    def forked(y: Any, *rest: Any) -> Any:
        return kernels[len(y)](y, *rest)

    forked.__name__, forked.__doc__ = plain.__name__.strip("_"), plain.__doc__
    FORKS.append((forked, lambda y, *rest: kernels[len(y)]))
    return forked


def by_arguments(few: Callable[..., Any], more: Callable[..., Any], count: int) -> Callable[..., Any]:
    """One name for two kernels: `more` where there are more than `count` arguments, else `few`."""

    def forked(*given: Any) -> Any:
        return (more if len(given) > count else few)(*given)

    FORKS.append((forked, lambda *given: more if len(given) > count else few))
    return forked


_SLOPED: set[type] = set()
_GROUPS: list[Any] = [tuple]
_SEEDERS: list[Callable[..., Any]] = []


def register_slopes(number_type: type, groups: tuple[type, ...] = (), seeder: Callable[..., Any] | None = None) -> None:
    """Say that a number type carries slopes (derivatives).

    `groups` are types besides `tuple` that hold several numbers; `seeder` does what `seeded` promises.
    """
    _SLOPED.add(number_type)
    _GROUPS.extend(groups)
    _SEEDERS.extend([seeder] if seeder else [])


def sloped(x: Any) -> bool:
    """Does a number, or one of a tuple of numbers, carry slopes; asked of values, and of types when compiling."""
    if any(isinstance(x, group) for group in _GROUPS):
        return any(sloped(part) for part in x)
    return type(x) in _SLOPED


def by_slopes(plain: Callable[..., Any], following: Callable[..., Any]) -> Callable[..., Any]:
    """One name for two kernels: `following` where an argument carries slopes, else `plain`."""

    def forked(*given: Any) -> Any:
        return (following if sloped(given) else plain)(*given)

    FORKS.append((forked, lambda *given: following if sloped(given) else plain))
    return forked


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

    `plain(guess, *given)` is a loop whose end depends on numbers; `following` is for numbers that carry slopes. Traced
    numbers cannot end a loop: for them equation(root, guess, *given) says the same by the `root` of their namespace,
    root(f, x, *data) -> (the solution of f(x, *data) = 0 next to x, miss).
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
        return (following if sloped((guess, *given)) else plain)(guess, *given)

    FORKS.append((solved, lambda *given: following if sloped(given) else plain))
    return solved


_WHOLE: list[type] = [int]


def register_whole(number_type: type) -> None:
    """Say that a type, when compiling, is one of integers."""
    _WHOLE.append(number_type)


def by_absence(present: Callable[..., Any], missing: Callable[..., Any]) -> Callable[..., Any]:
    """One name for two kernels: `missing` where the first argument is a torque that is `absent`, else `present`."""

    def forked(force: Any, *rest: Any) -> Any:
        return (missing if isinstance(force[0], tuple(_WHOLE)) else present)(force, *rest)

    FORKS.append((forked, lambda force, *rest: missing if isinstance(force[0], tuple(_WHOLE)) else present))
    return forked


_HALVERS: list[Callable[..., Any]] = []


def register_halves(halver: Callable[..., Any]) -> None:
    """Say how sums over room for vectors are taken: halver(kernel, room) is the kernel by halves, or the kernel."""
    _HALVERS.append(halver)


def by_halves(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel (room, k) -> tuple of numbers that vectors of two registers pass one register after the other."""

    def forked(room: Any, k: int) -> Any:
        return plain(room, k)

    FORKS.append((forked, lambda room, k: _HALVERS[0](plain, room)))
    return forked


UNFUSED: set[Callable[..., Any]] = set()
"""Kernels in which no product may be fused with a sum."""


def unfused(function: F) -> F:
    """Mark a kernel that lives on the rounding of every single operation: error-free sums and products."""
    UNFUSED.add(function)
    return kernel(function)


APART: set[Callable[..., Any]] = set()
"""Kernels that compiled code calls, where it contains the others."""


def apart(function: F) -> F:
    """Say of a kernel that it is rarely needed: code that calls it does not grow by it."""
    APART.add(function)
    return function


@unfused
def _split(a: Number) -> tuple[Number, Number]:
    """Two halves of a double, 26 bits each (Veltkamp)."""
    c = 134217729 * a
    high = c - (c - a)
    return high, a - high


@unfused
def dekker(a: Number, b: Number, p: Number) -> Number:
    """What the rounded product p = a b of two doubles has lost, exactly, by sums and products alone (Dekker)."""
    ah, al = _split(a)
    bh, bl = _split(b)
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


def lost(a: Number, b: Number, p: Number) -> Number:
    """What the rounded product p = a b has lost, exactly; compiled, one fused instruction."""
    return dekker(a, b, p)


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
    def piece(x: Number, knots: Any) -> Any:
        """The piece of a table in which x lies."""
        return min(max(bisect.bisect_right(knots, x) - 1, 0), len(knots) - 2)

    @staticmethod
    def entry(index: Any, column: Any) -> Number:
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


def sqrt(x: Number) -> Number:
    """Square root."""
    return _space(x).sqrt(x)


def sin(x: Number) -> Number:
    """Sine."""
    return _space(x).sin(x)


def cos(x: Number) -> Number:
    """Cosine."""
    return _space(x).cos(x)


def tan(x: Number) -> Number:
    """Tangent."""
    return _space(x).tan(x)


def asin(x: Number) -> Number:
    """Inverse sine."""
    return _space(x).asin(x)


def acos(x: Number) -> Number:
    """Inverse cosine."""
    return _space(x).acos(x)


def atan(x: Number) -> Number:
    """Inverse tangent."""
    return _space(x).atan(x)


def atan2(y: Number, x: Number) -> Number:
    """Angle of the point (x, y)."""
    return _space(y, x).atan2(y, x)


def sinh(x: Number) -> Number:
    """Hyperbolic sine."""
    return _space(x).sinh(x)


def cosh(x: Number) -> Number:
    """Hyperbolic cosine."""
    return _space(x).cosh(x)


def tanh(x: Number) -> Number:
    """Hyperbolic tangent."""
    return _space(x).tanh(x)


def exp(x: Number) -> Number:
    """Exponential of a number (the rotation through a vector is `so3.exp`)."""
    return _space(x).exp(x)


def log(x: Number) -> Number:
    """Natural logarithm."""
    return _space(x).log(x)


def power(x: Number, y: Number) -> Number:
    """The real power x**y, x > 0."""
    return _space(x, y).power(x, y)


def sincos(x: Number) -> tuple[Number, Number]:
    """Sine and cosine of one angle."""
    return sin(x), cos(x)


def where(condition: Any, yes: Number, no: Number) -> Number:
    """Choose by a condition. Both sides are computed, so both must be finite."""
    return _space(condition, yes, no).where(condition, yes, no)


def piece(x: Number, knots: Any) -> Any:
    """The k with knots[k] <= x < knots[k + 1], of the first or the last piece outside; only for `entry`. No slope."""
    return _space(x).piece(x, knots)


def entry(index: Any, column: Any) -> Number:
    """column[index], a constant; the index is a `piece`."""
    return _space(index).entry(index, column)


_TABLES: dict[Callable[[Any], Any], Callable[[Any], Any]] = {}


def register_table(number: Callable[[Any], Any], make: Callable[[Any], Any]) -> None:
    """Say how many constants become a table of the numbers that `number` makes; a tuple unless said."""
    _TABLES[number] = make


def table(values: tuple[float, ...], number: Callable[[Any], Any]) -> Any:
    """Constants as a table: the knots of `piece`, the column of `entry`."""
    return _TABLES[number](values) if number in _TABLES else tuple(number(x) for x in values)


def epsilon(x: Number) -> Number:
    """Distance from 1 to the next number of x's type."""
    return _space(x).epsilon()


def narrow(x: Number) -> Number:
    """Convert to single precision if the type has one (SIMD vectors); otherwise return x."""
    return x


def widen(x: Number) -> Number:
    """The number of the usual type with the value of a narrow one."""
    return x


def rough_log2(x: Number) -> Number:
    """The logarithm of a narrow number x >= 0 to the base 2, to a tenth; that of zero is some number below -100."""
    return math.log2(max(x, 1e-300))


def rough_exp2(x: Number) -> Number:
    """2^x, to one part in a thousand."""
    return 2.0**x


def circle(x: Number) -> tuple[Number, Number]:
    """The number pi of x's type, and what it lacks to twice the precision."""
    pi = 4 * atan(0 * x + 1)
    return pi, sin(pi)


def scratch(like: Number, count: int) -> Any:
    """Room for `count` numbers of one type, to be written before they are read; gone when the kernel returns."""
    return [like] * count


def combined(weights: Any, rows: Any) -> Any:
    """The sum of weights[j] rows[j], from the first to the last, number by number; weights are single numbers.

    Compiled, the numbers of a row travel together through the sum, as one vector.
    """
    totals = []
    for i in range(len(rows[0])):
        total = weights[0] * rows[0][i]
        for weight, row in zip(weights[1:], rows[1:], strict=True):
            total = total + weight * row[i]
        totals.append(total)
    return tuple(totals)


def settled(condition: Any) -> bool:
    """Is the condition true everywhere: for one number itself, for lanes in all of them."""
    return bool(condition)


def absent(force: Any) -> bool:
    """Is this the torque on a free body: the integers of `fields.no_torque`. Known when a kernel is compiled."""
    return isinstance(force[0], int)


def finite(x: Number) -> Any:
    """Is x neither infinite nor NaN."""
    return x - x == 0


# --- numbers that carry slopes ----------------------------------------------------------------------


def steady(x: Any) -> Any:
    """A number, or nested tuples of numbers, as constants: without slopes, not differentiated by JAX."""
    if isinstance(x, tuple):
        return tuple(steady(part) for part in x)
    constant = getattr(_space(x), "steady", None)
    return constant(x) if constant else x


def seeded(v: Vec3) -> Vec3:
    """Three plain numbers as independent variables: with the slopes (1, 0, 0), (0, 1, 0), (0, 0, 1)."""
    return _SEEDERS[0](v)


def slope(x: Number, i: int) -> Number:
    """The slope of a number made of `seeded` ones in direction i, as a plain number."""
    return _space(x).slope(x, i)


def slopes_squared(x: Number) -> Number:
    """A number with the value zero and the squares of x's slopes."""
    return _space(x).slopes_squared(x)


def steepest(a: Number, b: Number) -> Number:
    """The largest quotient, over all directions, of a's and b's slopes; none is negative, and 0/0 counts as 0."""
    return _space(a).steepest(a, b)


def relative_slopes(x: Any) -> Number:
    """A number with the value zero, its slopes those of the numbers in nested tuples, squared, in units of them.

    The sum over all innermost tuples of |slopes|^2/|values|^2, without those of zeros.
    """
    numbers = [part for part in x if type(part) in _SLOPED]
    total = sum((relative_slopes(part) for part in x if isinstance(part, tuple)), 0)
    size = sum(steady(part) * steady(part) for part in numbers)
    return sum((slopes_squared(part) for part in numbers), 0 * size) / size + total if size > 0 else total
