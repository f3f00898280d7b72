"""Build the loop for a problem and a method, in double precision or with any number of digits."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import CLOCKED, ROTATION, StateSpace, change_of_variables, with_states
from ..kernels.so3 import matrix, unit
from ..kernels.state import compensate, with_memory
from ..kernels.unroll import unrolled_kernel
from ..methods import Method, methods
from ..methods.adaptive.verner87 import verner87
from ..methods.queries import Torque
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..numbers.precision import guarded
from ..physics.fields.states import without_states
from ..physics.problem import Problem
from ..physics.queries import answering
from .noise import able, check_noise


@dataclasses.dataclass
class Engine:
    """A loop that is ready to run: call `advance` with the state, the system and a buffer from `buffer`."""

    advance: Callable[..., Any]
    y: Any
    system: Any
    number: Callable[[Any], Any]
    buffer: Callable[[int], np.ndarray]
    warm: bool
    digits: int | None
    has_own_time: bool = False
    plain: bool = False
    """Whether the loop runs in plain Python with floats; an undefined formula then raises, as it does with digits."""
    singly: bool = False
    """Whether steps are requested one at a time, so that none is repeated: the field may be a stateful function."""

    def last(self, count: int, end: float = math.inf) -> Any:
        """Return the end for `advance`: the last step number, and the end time if the method has its own time."""
        return (count, self.number(end)) if self.has_own_time else count

    def precision(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that sets the working precision."""
        return guarded(self.digits)


def number_type(digits: int | None) -> Callable[[Any], Any]:
    """Return the function that makes numbers of a run: doubles, or mpmath numbers in the working precision."""
    if digits is None:
        return floats.number
    from ..numbers.multiprecision import number

    return number


def check_fit(method: Method, problem: Problem) -> None:
    """Refuse a method that cannot handle the problem's body or field, and name methods that can."""
    if not method.has_step:
        method.build(floats.number)  # raises the error
    if problem.body.linear_axis is not None and not method.linear_bodies:
        fitting = able(method, problem.needs, lambda m: m.linear_bodies)
        raise InputError(
            f"{method.name} divides by the zero moment of a linear body, or gives it momentum along its axis; "
            f"methods that do not: {fitting}"
        )
    if not (problem.body.has_thickness or method.flat_bodies):
        fitting = able(method, problem.needs, lambda m: m.flat_bodies)
        raise InputError(
            f"{method.name} divides by half the difference between the sum of two moments and the third, which is zero "
            f"for a flat body (and negative for unphysical moments); methods that do not: {fitting}"
        )
    if problem.field is not None and problem.field.states and problem.field.coupled[1] and method is not verner87:
        raise without_states(problem.field)
    check_noise(method, problem)
    if method.takes(problem.needs):
        prepare(problem, method)
        return
    raise _cannot_take(method, problem)


TAKEN = {
    "free": "integrates free bodies only", "potential": "takes potentials U(R) only",
    "attitude": "takes torques T(t, R) only",
}  # fmt: skip
GIVEN = {"potential": "a potential", "attitude": "a torque T(t, R)", "velocity": "a torque that depends on omega"}
"""What methods take, and what they are given, by kind."""


def _cannot_take(method: Method, problem: Problem) -> InputError:
    """Return the error of a method that cannot take the field; a free flow can be split."""
    what = f"{method.name} {TAKEN[method.needs]}, and {problem.field!r} is {GIVEN[problem.needs]}"
    split = methods.get(f"strang({method.name})")
    if split is not None and split.takes(problem.needs):
        return InputError(f"{what}; write {split.name}, which splits the motion into free motion and torque")
    return InputError(f"{what}; methods that take it: {able(method, problem.needs)}")


PROBES = 3
"""Number of states, besides the start, at which a compiled function is compared with plain Python."""


def prepare(problem: Problem, method: Method | None = None) -> None:
    """Decide how torques without a formula are evaluated; refuse a method that needs more than their values."""
    field = problem.field
    if field is None or not field.opaque:
        return
    if method is not None and not method.asks.values_only:
        fitting = able(method, problem.needs, lambda m: m.asks.values_only)
        raise InputError(
            f"{method.name} asks a field for {method.asks}, and {field.untraced[0].no_formula}; write it as a formula "
            f"(ph.where instead of branches), or use a method that needs values only: {fitting}"
        )
    if all(function.mode for function in field.untraced):
        return
    from ..compile.untraced import decide

    scatter = np.random.default_rng(0)
    states = [(problem.quaternion, problem.omega)]
    size = float(np.abs(problem.omega).max()) or 1.0
    for _ in range(PROBES):
        q: Any = tuple(scatter.normal(size=4).tolist())
        states.append((unit(q), size * scatter.normal(size=3)))
    seen = [field.opaque_arguments(problem.t0, matrix(q), tuple(omega.tolist())) for q, omega in states]
    for calls in zip(*seen, strict=True):
        decide(calls[0][0], [point for _, point in calls])


def check_formula(problem: Problem, what: str) -> None:
    """Refuse a torque without a formula if `what` needs its derivatives."""
    field = problem.field
    if field is not None and field.opaque:
        raise InputError(
            f"{what} needs derivatives of the torque, and {field.untraced[0].no_formula}; write it as a formula "
            "(ph.where instead of branches)"
        )


def check_compiled(problem: Problem, what: str, instead: str) -> None:
    """Refuse a torque that is called as plain Python if `what` only runs as compiled code."""
    prepare(problem)
    if problem.field is not None and problem.field.in_python:
        raise InputError(f"{what} needs a torque that can be compiled; {problem.field.evaluated}: {instead}")


def structure(problem: Problem, method: Method | None = None) -> tuple[Hashable, ...]:
    """Return what the kernels of a method and a problem are built from: a short key for `compile.program`."""
    field = problem.field
    return method, problem.body.has_principal_rotation, None if field is None else field.structure


def torque_kernel(problem: Problem, number: Callable[[Any], Any], method: Method | None = None) -> Callable[..., Any]:
    """Return the kernel that answers the method's field query in one number type; without a method, the torque."""
    asks = Torque() if method is None else method.asks
    return answering(asks, problem.field, problem.body.has_principal_rotation, number)


def state_space(method: Method) -> StateSpace:
    """Return the state space in which the loop handles the states of a method."""
    if method.states:
        return with_states(method.kept_memory)
    return CLOCKED if method.has_own_time else ROTATION


@kernel
def unchanged(y: Any) -> Any:
    """The state itself."""
    return y


def beginning(method: Method) -> Callable[..., Any]:
    """Kernel: the initial state of a method, from (q, m)."""
    if method.memory:
        return with_memory(method.memory)
    return compensate if method.compensated else unchanged


def start(problem: Problem, method: Method, number: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the initial state and the system in one number type."""
    y, system = problem.kernel_data(number)
    first = beginning(method)(y)
    return (with_first_states(problem, method, first, system, number) if method.states else first), system


def keeping(problem: Problem, method: Method) -> Problem:
    """Return the problem of a run, whose results have the numbers that the method keeps with every state."""
    if problem.kept == method.states:
        return problem
    made = copy.copy(problem)
    made.kept = method.states
    return made


def kept_step(method: Method, number: Callable[[Any], Any]) -> Any:
    """Step kernel on (q, m, z), z the numbers that a method keeps with every state; the rest of its memory is filled.

    The rest does not change from step to step.
    """
    assert method.before is not None
    fill, step, kept = method.before(number), method.build(number), method.kept_memory
    numbers = "".join(f"z[{i}], " for i in range(kept))
    rest = "".join(f"filled[{i}], " for i in range(kept, method.memory))
    whole, part = unrolled_kernel("z, filled", f"({numbers}{rest})"), unrolled_kernel("z", f"({numbers})")

    @kernel
    def made(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        filled, _ = fill(h, t, y, system, torque)
        new, residual = step(h, t, (y[0], y[1], whole(y[2], filled[2])), system, torque)
        return (new[0], new[1], part(new[2])), residual

    return made


def with_first_states(
    problem: Problem, method: Method, y: Any, system: Any, number: Callable[[Any], Any]
) -> Any:  # fmt: skip
    """Return the initial state with the states that the method keeps, for the first row of a run.

    They do not depend on the step.
    """
    assert method.before is not None
    torque = torque_kernel(problem, number, method)
    filled, _ = method.before(number)(number(0), number(problem.t0), y, system, torque)
    return filled


def to_output(run: Engine, problem: Problem, method: Method | None, h: Any, t: Any, y: Any) -> Any:
    """Convert a state to its recorded form: undo the processor of a processed method. None if that fails."""
    if method is None or method.after is None:
        return y
    number = floats.number if run.digits is None else run.number
    torque = torque_kernel(problem, number, method)
    try:
        seen, _, fine = change_of_variables(method.after(number))(run.number(h), run.number(t), y, run.system, torque)
    except (ArithmeticError, TypeError, ValueError):  # raised by the field in plain Python
        return None
    return seen if fine else None
