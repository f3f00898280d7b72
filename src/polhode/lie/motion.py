"""Run a method on a Lie group, from a velocity W and an initial element to arrays of matrices; single exponents."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import types
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import StateSpace, stepping
from ..methods.ranking import best_first, listed
from ..methods.record import Method
from ..physics.fields.kernels import no_torque
from ..physics.validate import finite_number, positive, whole_number
from ..results import motion
from ..results.progress import Progress
from ..results.recorder import Memory
from ..run.failures import explain_in
from ..run.fixed_step import RunState, solved
from ..run.integrator import Engine
from ..run.step_count import Interval, end_time, number_of_steps
from .family import TAG, Setting, methods
from .formulas import SIDES, Formula
from .group import Group, commutator
from .groups import group_named
from .magnus import exponent, summed, with_bracket
from .numbers import Numbers, numbers_for


@dataclasses.dataclass(frozen=True, repr=False)
class Motion(motion.Motion):
    """The result: arrays with time first.

    Attributes
    ----------
    t : (n,) times
    y : (n, size, size) elements of the group, real or complex
    group, method, dt, status : how it was made
    mp : with ``digits=...``, y as an array of mpmath numbers
    """

    y: np.ndarray
    group: Group
    dt: float
    mp: types.SimpleNamespace | None = None

    def defect(self) -> float:
        """Largest distance of the elements from the group."""
        return max(self.group.defect(y) for y in self.y)

    @property
    def _space(self) -> str:
        return f"on {self.group.name}"


def solve(
    group: Group | str,
    W: Callable[..., Any] | Sequence[Callable[..., Any]],
    y0: Any = None,
    method: str | Method = "taylor(6)",
    *,
    dt: float | None = None,
    t_end: float | None = None,
    steps: int | None = None,
    t0: float = 0.0,
    trivialised: str = "right",
    every: int = 1,
    digits: int | None = None,
    progress: bool | Callable[[float], Any] | None = None,
) -> Motion:
    """Integrate y' = W y (right-trivialised) or y' = y W (left-trivialised) on a matrix Lie group, with a fixed step.

    Parameters
    ----------
    group : a `Group`, or the name of one: "SO(3)", "SU(2)", "SE(3)", "SO(5)", "SL(2,R)", "Heisenberg"
    W : plain function of t, or of t and y (nested tuples); or the functions [W, W', W'', ...] of t. It returns the
        coordinates in the group's basis, or (for real matrices) a matrix. It may call the same functions as a torque
    y0 : element of the group at t0; by default the identity
    method : "taylor(k)", "munthe_kaas(tableau)", "crouch_grossman(tableau)", or a Method of `polhode.lie.methods`
    dt, t_end, steps : step size, end time, number of steps: give two of the three
    trivialised : "right", y' y^-1 = W, or "left", y^-1 y' = W (as for the attitude, R' = R hat(omega))
    every : keep steps 0, every, 2 every, ... and always the last
    digits : run with this many digits in mpmath (slow)
    progress : as in `polhode.run.solve`

    Raises
    ------
    InputError : an argument is invalid
    StepError : a step failed; ``.partial`` holds the Motion before it
    """
    chosen = methods[method]
    if chosen.family != TAG:
        able = listed(best_first(methods.values(), "velocity"))
        raise InputError(f"{chosen.name} is not a method for Lie groups; there are {able}")
    place, numbers = group_named(group), numbers_for(digits)
    start = Interval(finite_number("t0", t0))
    dt, count = _steps(start, dt, t_end, steps)
    every = whole_number("every", every)
    with numbers.precision():
        first = place.element(y0, numbers)
        formula = Formula(place, W, trivialised, start.t0, first.astype(complex if place.is_complex else float))
        setting = Setting(place, numbers, formula)
        advance = stepping(chosen.build(setting), no_torque, _state_space(setting))

    def precisely(*arguments: Any) -> Any:
        with numbers.precision():
            return advance(*arguments)

    width = place.size**2 * (2 if place.is_complex else 1)
    dtype = object if numbers.digits else float
    run = Engine(
        precisely, setting.parts(first), None, numbers.number, lambda k: np.empty((k, width), dtype=dtype), True,
        numbers.digits, plain=True,
    )  # fmt: skip
    state = RunState(run, start, dt, count, every, method=chosen)
    kept = Memory(functools.partial(_motion, setting, state))
    return solved(state, kept, Progress(progress, chosen.name, count), functools.partial(_explain, setting))


def _steps(start: Interval, dt: float | None, t_end: float | None, steps: int | None) -> tuple[float, int]:
    """Return step size and number of steps, from two of the three arguments."""
    if sum(x is None for x in (dt, t_end, steps)) != 1:
        got = [name for name, x in (("dt", dt), ("t_end", t_end), ("steps", steps)) if x is not None]
        raise InputError(f"give two of dt, t_end and steps; got {' and '.join(got) or 'none'}")
    if dt is not None:
        dt = positive("dt", dt)
        return dt, number_of_steps(start, dt, t_end, steps)
    count = whole_number("steps", steps)
    return (end_time(start, t_end) - start.t0) / count, count


def _explain(setting: Setting, state: RunState[Any]) -> str:
    """Reason why the next step failed, and a dt to try."""
    y = setting.matrix(state.y).astype(complex if setting.group.is_complex else float)
    return explain_in(state, lambda t: setting.formula.traces[0].check(t, y, f"at t = {t:g}"))


# --- the state space of the loop --------------------------------------------------------------------


def _state_space(setting: Setting) -> StateSpace:
    """Return the operations on states, which are (real parts, imaginary parts) of the entries."""

    def is_valid(y: Any, residual: Any) -> bool:
        return bool(residual <= 0) and math.isfinite(sum(map(abs, (*y[0], *y[1]))))

    def renormalise(y: Any) -> Any:
        return setting.parts(setting.group.tidied(setting.matrix(y)))

    def write_row(rows: Any, i: int, y: Any) -> None:
        rows[i] = (*y[0], *y[1])

    return StateSpace(is_valid, renormalise, write_row)


def _motion(
    setting: Setting, state: RunState[Any], t: np.ndarray, rows: np.ndarray, *, status: str, **timing: Any
) -> Motion:  # fmt: skip
    """Build the result from the rows."""
    n = setting.group.size
    shape = (len(rows), n, n)
    with setting.numbers.precision():
        matrices = setting.numbers.array(rows[:, : n * n].ravel(), rows[:, n * n :].ravel(), shape)
    y = Numbers().array(rows[:, : n * n].astype(float), rows[:, n * n :].astype(float).ravel(), shape)
    mp = types.SimpleNamespace(y=setting.numbers.public(matrices)) if setting.numbers.digits else None
    return Motion(t.astype(float), y, setting.group, state.dt, mp, method=state.method.name, status=status)


# --- one exponent -----------------------------------------------------------------------------------


def magnus(
    derivatives: Sequence[Any], h: Any, order: int | None = None, group: Group | str | None = None,
    trivialised: str = "right",
) -> np.ndarray:  # fmt: skip
    """Averaged velocity Z over a step: y(h) = exp(h Z) y(0), or y(0) exp(h Z), up to h^(order + 1).

    Parameters
    ----------
    derivatives : W, W', W'', ... at the start, matrices, or coordinates in the basis of a group
    h : the step
    order : at most the number of derivatives, which is the default
    group : its bracket is used; without one the derivatives are matrices and the bracket is A B - B A
    trivialised : "right" for y' = W y, "left" for y' = y W

    Floats, mpmath numbers and fractions keep their type. Z has the form of the derivatives.
    """
    values = _matrices(derivatives)
    if isinstance(h, bool) or not (isinstance(h, numbers.Complex) or hasattr(h, "_mpf_")):
        raise InputError(f"h must be a number; got {h!r}")
    order = len(values) if order is None else whole_number("order", order)
    if not 1 <= order <= len(values):
        raise InputError(f"order {order} needs W and its first {order - 1} derivatives; got {len(values)} matrices")
    if not isinstance(trivialised, str) or trivialised not in SIDES:
        raise InputError(f"trivialised must be 'right' (y' = W y) or 'left' (y' = y W); got {trivialised!r}")
    place = None if group is None else group_named(group)
    coordinates = place is not None and values[0].shape == (place.dimension,)
    shape = values[0].shape
    if any(x.shape != shape for x in values) or not (coordinates or (len(shape) == 2 and shape[0] == shape[1])):
        raise InputError(f"derivatives must be square matrices of one size, or coordinates in the basis of a group; "
                         f"got shapes {[x.shape for x in values]}")  # fmt: skip
    if place is not None and coordinates:
        values = [place.hat(x.tolist()) for x in values]
    algebra = with_bracket(commutator) if place is None else place.algebra
    algebra = algebra if trivialised == "right" else algebra.opposite
    number = _number_of([x for value in values for x in value.ravel().tolist()])
    w = [number(1) / math.factorial(k) * x for k, x in enumerate(values[:order])]
    Z = np.asarray(summed(exponent(w, algebra, number), h, algebra))
    return place.vee(Z) if place is not None and coordinates else Z


def _matrices(derivatives: Any) -> list[np.ndarray]:
    try:
        values = [np.asarray(x) for x in derivatives]
        if all(
            isinstance(x, numbers.Complex) or hasattr(x, "_mpf_") for value in values for x in value.ravel().tolist()
        ):
            return values
    except Exception:  # the argument may be any object
        pass
    raise InputError(f"derivatives must be a sequence of matrices of numbers; got {derivatives!r}")


def _number_of(entries: list[Any]) -> Callable[[Any], Any]:
    """Return the conversion of fractions to the number type of the entries."""
    if any(isinstance(x, float | complex) for x in entries):
        return float
    if all(isinstance(x, int | Fraction) for x in entries):
        return Fraction
    from ..numbers.multiprecision import number

    return number
