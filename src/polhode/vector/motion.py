"""Run a method of the vector-space family: from a force and a mass matrix to arrays of states."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import StateSpace, stepping
from ..methods import Method
from ..methods.ranking import best_first, listed
from ..numbers import arrays, floats  # noqa: F401 - makes arrays a number type
from ..numbers.precision import guarded
from ..physics.validate import finite_number, number_of_digits, positive, real_array, whole_number
from ..results import motion
from ..results.progress import Progress
from ..results.recorder import Memory
from ..run.failures import explain_in
from ..run.fixed_step import RunState, solved
from ..run.integrator import Engine
from ..run.step_count import Interval, number_of_steps
from ..symbolic.expression import compiled, gradient, lift, source, symbol, symbols
from ..symbolic.user_function import UserFunction, plain_function
from .family import forced, methods
from .tuples import Space, is_valid, same, write_row

STATE_SPACE = StateSpace(is_valid, same, write_row)

COMPILED = 8
"""Largest dimension for which the loop is compiled: an unrolled matrix has n^2 entries."""


SYMMETRY = 1e-12
"""Largest asymmetry of a mass matrix, relative to its largest entry."""


@dataclasses.dataclass(frozen=True, repr=False)
class Motion(motion.Motion):
    """The result: arrays with time first.

    Attributes
    ----------
    t : (n,) times
    u, p : (n, dimension) configuration and momentum
    velocity : (n, dimension) M^-1 p
    energy : (n,) kinetic plus potential energy; None without a potential
    method, dt, status : how it was made
    mp : with ``digits=...``, u and p as arrays of mpmath numbers
    """

    u: np.ndarray
    p: np.ndarray
    velocity: np.ndarray
    energy: np.ndarray | None
    dt: float
    mp: types.SimpleNamespace | None = None

    @property
    def _space(self) -> str:
        return f"in {self.u.shape[1]} dimensions"


def solve(
    force: Callable[..., Any] | None,
    M: Any,
    u0: Any,
    p0: Any,
    method: str | Method,
    *,
    dt: float,
    steps: int | None = None,
    t_end: float | None = None,
    t0: float = 0.0,
    every: int = 1,
    potential: Callable[..., Any] | None = None,
    digits: int | None = None,
    progress: bool | Callable[[float], Any] | None = None,
) -> Motion:
    """Integrate p' = f(u, t), u' = M^-1 p with a fixed step.

    Parameters
    ----------
    force : plain function of u, or of u and t; u is a tuple, the result a sequence of as many numbers.
        None derives it from the potential: f = -dU/du, exactly. It may call the same functions as a torque
    M : symmetric positive definite matrix, or its diagonal, or one number for equal masses
    u0, p0 : configuration and momentum at time t0
    method : a name or alias from `polhode.vector.methods`, or one of its Methods
    dt : step size, positive
    t_end, steps : end time or number of steps; give one of them
    every : keep steps 0, every, 2 every, ... and always the last
    potential : plain function of u, or of u and t, whose energy is then recorded
    digits : run the same kernels in mpmath with this many digits (slow)
    progress : as in `polhode.run.solve`

    Raises
    ------
    InputError : an argument is invalid
    StepError : a step failed; ``.partial`` holds the Motion before it
    """
    chosen = methods[method]
    if not _is_ours(chosen):
        able = listed(best_first(methods.values(), "velocity"))
        raise InputError(f"{chosen.name} is a method for rotations; a vector space takes {able}")
    system = System(force, potential, M, u0, p0, t0)
    start, dt, every = Interval(system.t0), positive("dt", dt), whole_number("every", every)
    count = number_of_steps(start, dt, t_end, steps)
    state = RunState(system.engine(chosen, digits), start, dt, count, every, method=chosen)
    bar = Progress(progress, chosen.name, count)
    return solved(state, Memory(functools.partial(system.motion, state)), bar, system.explain)


def _is_ours(method: Method) -> bool:
    """Whether it is in the registry, or composed of such methods."""
    return method in methods.values() or (bool(method.halves) and all(map(_is_ours, method.halves)))


# --- the system -------------------------------------------------------------------------------------


class System:
    """A force, a mass matrix, and a state at time t0, all checked."""

    def __init__(self, force: Any, potential: Any, M: Any, u0: Any, p0: Any, t0: Any) -> None:
        """Check the arguments of `solve`."""
        self.t0 = finite_number("t0", t0)
        self.u0 = _numbers("u0", u0)
        self.n = len(self.u0)
        self.p0 = _numbers("p0", p0)
        if len(self.p0) != self.n:
            raise InputError(f"u0 and p0 must have the same length; got {self.n} and {len(self.p0)}")
        self.mass = _mass(M, self.n)
        if force is None and potential is None:
            raise InputError("give a force or a potential; got neither")
        self.potential = None if potential is None else Formula("potential", potential, self, None)
        formula = self.potential if force is None else Formula("force", force, self, self.n)
        assert formula is not None
        self.force = formula

    @property
    def diagonal(self) -> bool:
        """Whether the mass matrix is diagonal."""
        return self.mass.ndim == 1

    @functools.cached_property
    def text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of the force."""
        outputs = self.force.outputs
        if self.force is self.potential:
            u = symbols("u", self.n)
            outputs = [lift(0) - slope for slope in gradient(outputs[0], u)]
        return source("force_value", "t, u", _unpack(self.n), outputs)

    def force_kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """Kernel force(t, u, p, system) in one number type."""
        return forced(compiled(*self.text, number))

    def engine(self, method: Method, digits: int | None) -> Engine:
        """Build the loop: compiled in few dimensions, plain Python in many, and on mpmath numbers with `digits`."""
        if digits is not None:
            return self._precise(method, digits)
        inverse = 1 / self.mass if self.diagonal else np.linalg.inv(self.mass)
        y, system = (self.u0, self.p0), (_tuples(inverse),)
        advance, warm = self._compiled(method) if self.n <= COMPILED else (self._plain(method, floats.number), True)
        return Engine(advance, y, system, float, lambda k: np.empty((k, 2 * self.n)), warm, None)

    def _compiled(self, method: Method) -> tuple[Any, bool]:
        """Return the compiled loop, and whether it was already compiled."""
        from ..compile.lazily import program

        def made() -> Callable[..., Any]:
            return self._loop(method, floats.number, self.force_kernel(floats.number))

        loop = program(made, "vector", method, self.n, self.diagonal, repr(self.text))
        return loop.run, loop.is_warm

    def _loop(self, method: Method, number: Callable[[Any], Any], force: Callable[..., Any]) -> Callable[..., Any]:
        return stepping(method.build(Space(number, self.n, self.diagonal)), force, STATE_SPACE)

    def _plain(self, method: Method, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """Build the loop in plain Python; if a formula has no real value the force is NaN, as in compiled code."""
        formula, nowhere = self.force_kernel(number), (number(math.nan),) * self.n

        def force(t: Any, u: Any, p: Any, system: Any) -> Any:
            try:
                value = formula(t, u, p, system)
            except (ArithmeticError, ValueError):
                return nowhere
            return nowhere if any(x.imag for x in value) else value

        return self._loop(method, number, force)

    def _precise(self, method: Method, digits: int) -> Engine:
        digits = number_of_digits(digits)
        from ..numbers.multiprecision import mp, number

        with guarded(digits):
            if self.diagonal:
                inverse: Any = tuple(1 / number(x) for x in self.mass)
            else:
                inverse = tuple(map(tuple, (mp.matrix(self.mass.tolist()) ** -1).tolist()))
            y = tuple(tuple(number(x) for x in v) for v in (self.u0, self.p0))
            advance = self._plain(method, number)
        return Engine(
            advance, y, (inverse,), number, lambda k: np.empty((k, 2 * self.n), dtype=object), True, digits
        )  # fmt: skip

    def motion(self, state: RunState[Any], t: np.ndarray, rows: np.ndarray, *, status: str, **timing: Any) -> Motion:
        """Build the result from the rows."""
        t, mp = t.astype(float), _full_precision(rows, self.n) if state.run.digits else None
        u, p = np.split(rows.astype(float), 2, axis=1)
        velocity = p / self.mass if self.diagonal else np.linalg.solve(self.mass, p.T).T
        energy = None
        if self.potential is not None:
            text = source("potential_value", "t, u", _unpack(self.n), self.potential.outputs)
            height = compiled(*text, floats.number)(t, tuple(u.T))[0]
            energy = (p * velocity).sum(axis=1) / 2 + height
        return Motion(t, u, p, velocity, energy, state.dt, mp, method=state.method.name, status=status)

    def explain(self, state: RunState[Any]) -> str:
        """Reason why the next step failed, and a dt to try."""
        u = tuple(float(x) for x in state.y[0])
        return explain_in(state, lambda t: self.force.check(t, u, f"at t = {t:g}"))


def _full_precision(rows: np.ndarray, n: int) -> types.SimpleNamespace:
    from ..numbers.multiprecision import public

    exact = public(rows)
    return types.SimpleNamespace(u=exact[:, :n], p=exact[:, n:])


def _tuples(array: np.ndarray) -> Any:
    return tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.tolist())


def _unpack(n: int) -> dict[str, str]:
    return {"t": "t"} | {f"u{i}": f"u[{i}]" for i in range(n)}


# --- the arguments ----------------------------------------------------------------------------------


class Formula:
    """A user's function of u, or of u and t: called once with floats, then traced."""

    def __init__(self, kind: str, function: Any, system: System, count: int | None) -> None:
        """Check the function at the initial state, and trace it; it returns `count` numbers, or one if None."""
        plain_function(function, f"the {kind} must be a plain Python function of u, or of u and t")
        self.user = UserFunction(function, f"the {kind} {function.__name__}", count)
        self.arguments = self.user.positional("a function of u, or of u and t", 2)
        self.check(system.t0, system.u0, f"at the start (t = {system.t0:g})")
        inputs = (symbols("u", system.n), symbol("t"))[: self.arguments]
        self.outputs = self.user.traced(inputs, lambda value: [lift(x) for x in ([value] if count is None else value)])

    def check(self, t: float, u: tuple[float, ...], context: str) -> None:
        """Call the function once in plain Python and check its value."""
        self.user.numbers(self.user.value((u, t)[: self.arguments], context), context)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    vector = real_array(value, f"{name} must be a sequence of numbers")
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"{name} must be a sequence of numbers; got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise InputError(f"{name} must be finite; got {vector.tolist()}")
    return tuple(vector.tolist())


def _mass(M: Any, n: int) -> np.ndarray:
    """Return the mass matrix (n, n), or its diagonal (n,) if it is diagonal."""
    mass = real_array(M, "M must be a matrix, its diagonal, or one number")
    if mass.ndim == 0:
        mass = np.full(n, mass)
    if mass.shape not in ((n,), (n, n)):
        raise InputError(f"M must have shape ({n}, {n}) or ({n},) to match u0; got {mass.shape}")
    if not np.isfinite(mass).all():
        raise InputError(f"M must be finite; got {mass.tolist()}")
    if mass.ndim == 2:
        gap = np.abs(mass - mass.T).max()
        if gap > SYMMETRY * np.abs(mass).max():
            raise InputError(f"M must be symmetric; entries differ from those of its transpose by up to {gap:.3g}")
        mass = (mass + mass.T) / 2
        if not (mass - np.diag(np.diag(mass))).any():
            mass = np.diag(mass)
    smallest = mass.min() if mass.ndim == 1 else np.linalg.eigvalsh(mass).min()
    if smallest <= 0:
        raise InputError(f"M must be positive definite; its smallest eigenvalue is {smallest:.3g}")
    return mass
