"""What is integrated, a problem and a method. The only place where steps, their torques and their loops are joined."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.cut import cut_step
from ..kernels.loops import (
    COLUMNS,
    ROTATION,
    StateSpace,
    adaptive_stepping,
    fitted,
    interpolating,
    one_step,
    repeating,
    stepping,
    with_states,
)
from ..kernels.sampled import sampling, sampling_adaptively
from ..methods import Method
from ..methods.adaptive.controller import controlled_step_from_estimate
from ..methods.combinators.compose import collapsed_step, whole
from ..numbers.dispatch import kernel
from ..numbers.precision import guarded
from ..physics.fields.edged import EdgedField
from ..physics.fields.states import without_states
from ..physics.problem import Problem
from ..physics.validate import number_of_digits
from .integrator import (
    Engine,
    beginning,
    check_fit,
    kept_step,
    number_type,
    start,
    state_space,
    structure,
    torque_kernel,
)
from .parts import Commands, Kernel, Make, parts_of

if TYPE_CHECKING:
    from .control_in_python import InPython
    from .schedule import Schedule


@dataclasses.dataclass(eq=False)
class System:
    """A problem and a method, and all that is built from them: kernels, loops, the first state.

    Attributes
    ----------
    problem : with the field that the kernels see, in the units of the run
    method : makes the steps
    digits : decimal digits of the numbers; None for doubles
    parts : what follows attitude and momentum in a state, in the order in which it wraps a step
    is_compiled : whether the loops are compiled
    """

    problem: Problem
    method: Method
    digits: int | None = None

    def __post_init__(self) -> None:
        field = self.problem.field
        self.parts = parts_of(self.problem)
        self.is_compiled = self.digits is None and not (field is not None and field.in_python)

    # --- kernels ------------------------------------------------------------------------------------

    def step(self) -> Kernel:
        """Return the kernel of a step of a loop."""
        return self._step(self._alone if self.parts else lambda: self.method.build(self._number))

    def step_alone(self) -> Kernel:
        """Return the kernel of a step between two states as they are kept: all else that a run carries begins anew."""
        return self._step(self._alone)

    def _alone(self) -> Kernel:
        method, number = self.method, self._number
        if method.states:
            return kept_step(method, number)
        step = whole(method)(number)
        return collapsed_step(step) if method.compensated else step

    def _step(self, make: Make) -> Kernel:
        """Return the kernel of a step, in the parts; it ends at the edges of the field, if these are known."""
        for part in self.parts:
            make = functools.partial(part.step, make)
        step, field = make(), self.problem.field
        if not isinstance(field, EdgedField):
            return step
        return cut_step(step, len(field.parameters) + len(self.problem.axes_quaternion), field.moment_place)

    def torque(self) -> Kernel:
        """Return the kernel that answers the queries of the step."""
        make: Make = functools.partial(torque_kernel, self.problem, self._number, self.method)
        for part in self.parts:
            make = functools.partial(part.torque, make)
        return make()

    def attempt(self, own: Make | None = None) -> Kernel:
        """Return the kernel of a controlled step: that which `own` makes, or that of a method with error estimates."""
        make = own or self._attempt
        for part in self.parts:
            make = functools.partial(part.attempt, make)
        return make()

    def _attempt(self, length: Kernel = fitted) -> Kernel:
        return controlled_step_from_estimate(self.method, self._number, self.torque(), length=length)

    @property
    def commands(self) -> Commands:
        """The part of a controller."""
        (part,) = self.parts
        assert isinstance(part, Commands)
        return part

    @property
    def size(self) -> int:
        """Count of the numbers of the parts."""
        return sum(part.size for part in self.parts)

    @property
    def space(self) -> StateSpace:
        """The space of the states of a loop."""
        return with_states(self.size) if self.parts else state_space(self.method)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What the kernels are built from."""
        make = functools.partial(structure, self.problem, self.method)
        for part in self.parts:
            make = functools.partial(part.key, make)
        return make()

    @property
    def _number(self) -> Callable[[Any], Any]:
        return number_type(self.digits)

    # --- loops --------------------------------------------------------------------------------------

    @functools.cached_property
    def engine(self) -> Engine:
        """The loop over equal steps, with its start; those of a controlled body are between two samples."""
        return self._engine(*self.built(self.equal_loop, "loop"))

    def sampled(self, sample: InPython, advance: Kernel | None = None) -> Engine:
        """Return the loop over equal steps and samples of a controller, with the state after the first sample.

        `advance` is the loop between two samples, if it is another one than that of `engine`.
        """
        commands, t0 = self.commands, self.problem.t0

        def around(loop: Kernel, sample: Any) -> Kernel:
            return sampling(loop, sample, self.space, commands.steps_per_sample())

        if advance is None:
            engine = self._engine(*self._with_samples(self.equal_loop, around, sample, "loop"))
        else:
            engine = dataclasses.replace(self.engine, advance=around(advance, sample))
        q, m, z = engine.y
        return dataclasses.replace(engine, y=(q, m, sample.numbers(t0, (q, m, z), f"at the start (t = {t0:g})")))

    def _engine(self, advance: Any, warm: bool) -> Engine:
        with guarded(self.digits):
            y, data = start(self.problem, self.method, self._number)
        columns = COLUMNS + (len(y[2]) if self.parts else self.method.kept_memory)
        kind = float if self.digits is None else object
        is_called = self.digits is None and not self.is_compiled
        return Engine(
            advance, y, data, float if self.digits is None else self._number,
            lambda n: np.empty((n, columns), dtype=kind), warm, self.digits, self.method.has_own_time,
            plain=is_called, singly=is_called,
        )  # fmt: skip

    def equal_loop(self) -> Kernel:
        """Return the kernel of the loop over equal steps."""
        processors = () if self.parts else self.method.processors(self._number)  # a step in parts is a whole one
        return stepping(self.step(), self.torque(), self.space, *processors)

    @functools.cached_property
    def between(self) -> Any:
        """The dense output between equal steps."""
        return self._interpolating(lambda: one_step(self.step_alone(), self.torque()))

    def adaptive_loop(self, name: str, make: Make, sample: InPython | None = None) -> Any:
        """Return the loop over controlled steps that `make` builds, called `name`, with samples of a controller."""
        if self.digits is not None:
            return in_working_precision(self.digits, adaptive_stepping(rejecting(make())))

        def loop() -> Kernel:
            return adaptive_stepping(make(), self.space)

        def around(loop: Kernel, sample: Any) -> Kernel:
            commands = self.commands
            return sampling_adaptively(loop, sample, self.space, commands.period_place, commands.clock_place)

        return self._with_samples(loop, around, sample, "adaptive loop", name)[0]

    def interpolate(self, name: str, make: Make) -> Any:
        """Return the dense output between the same steps."""
        return self._interpolating(make, name)

    def repeat(self, name: str, make: Make) -> Any:
        """Return the loop that repeats a run with shorter steps."""
        return self.built(lambda: repeating(make(), self.space), "repeat", name)[0]

    def _interpolating(self, make: Make, *name: str) -> Any:
        space = ROTATION if self.method.has_own_time else self.space  # times are not kept in the states of a result
        run, _ = self.built(lambda: interpolating(make(), space), "interpolate", *name)
        return run if self.is_compiled else in_plain_python(run)

    def _with_samples(
        self, make: Make, around: Callable[[Kernel, Any], Kernel], sample: InPython | None, *shortcut: Hashable
    ) -> tuple[Any, bool]:
        """Return a loop, with samples if there are any: compiled with it for a formula, else around it."""
        if sample is None:
            return self.built(make, *shortcut)
        commands = self.commands
        if not commands.is_formula:
            run, warm = self.built(make, *shortcut)
            return around(run, sample), warm
        return self.built(
            lambda: around(kernel(make()), commands.sample()), "sampled", *shortcut, *commands.sampled_key
        )

    def built(self, make: Make, *shortcut: Hashable) -> tuple[Any, bool]:
        """Return the function that `make` builds, compiled where it can be, and whether that is done already."""
        if not self.is_compiled:
            with guarded(self.digits):
                return make(), True
        from ..compile.lazily import program

        found = program(make, *shortcut, *self.key)
        return found.run, found.is_warm

    # --- states and rows ----------------------------------------------------------------------------

    def state_at(
        self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray, data: Any = None
    ) -> np.ndarray | None:
        """Return rows at any times between equal steps, with kernel data other than those of the problem if given."""
        known = self.problem.kernel_data(self._number)[1] if data is None else data
        return interpolated(self.between, times, path_times, rows, known, 0)

    def row(self, y: Any) -> np.ndarray:
        """Return a state as a row, without low parts."""
        return np.array([x for part in y[: 2 + bool(self.parts)] for x in part])

    def state(self, row: np.ndarray) -> Any:
        """Return the state in a row."""
        x = row.tolist()
        y = tuple(x[:4]), tuple(x[4:COLUMNS])
        return (*y, tuple(x[COLUMNS:])) if self.parts else beginning(self.method)(y)


def engine(problem: Problem, method: Method, digits: int | None = None) -> Engine:
    """Return the loop over equal steps of attitude and momentum: compiled, or with `digits` on mpmath numbers."""
    check_fit(method, problem)
    if problem.field is not None and problem.field.states:
        raise without_states(problem.field)
    return System(problem, method, None if digits is None else number_of_digits(digits)).engine


def interpolated(
    interpolate: Any, times: np.ndarray, starts: np.ndarray, rows: np.ndarray, system: Any, order: int,
    schedule: Schedule | None = None,
) -> np.ndarray | None:  # fmt: skip
    """Return rows at any times, each by one step from the last stored state before it; None on failure."""
    seen = np.empty((len(times), rows.shape[1]), dtype=rows.dtype)
    ahead = 1 if starts[-1] >= starts[0] else -1  # steps of a chain go backwards themselves
    first = np.clip(np.searchsorted(ahead * starts, ahead * times, side="right") - 1, 0, len(starts) - 1)
    if schedule is None or len(schedule.legs) == 1:
        data = system if schedule is None else schedule.system(system, schedule.legs[0])
        return seen if interpolate(times, first, starts, rows, data, order, seen) else None
    for leg, group in schedule.by_leg(times):
        part = np.empty((len(group), rows.shape[1]), dtype=rows.dtype)
        if not interpolate(times[group], first[group], starts, rows, schedule.system(system, leg), order, part):
            return None
        seen[group] = part
    return seen


def compiled(make: Callable[[], Kernel], *shortcut: Hashable) -> Any:
    """Return the compiled form of the function that `make` builds."""
    from ..compile.lazily import program

    return program(make, *shortcut).run


def in_plain_python(interpolate: Callable[..., bool]) -> Callable[..., bool]:
    """Return the dense output with undefined numbers, such as the root of -1, as a failure instead of an exception."""

    def fails_instead(*arguments: Any) -> bool:
        try:
            fine, rows = interpolate(*arguments), arguments[-1]
            if fine:
                rows.astype(float)  # a complex number is an error
            return fine
        except (ArithmeticError, TypeError, ValueError):
            return False

    return fails_instead


def in_working_precision(digits: int, loop: Kernel) -> Kernel:
    """Return a loop over controlled steps in plain Python, whose numbers are all in the working precision."""
    number = number_type(digits)

    def precise(
        t: Any, end: Any, last: Any, longest: Any, proposal: Any, y: Any, system: Any, tolerance: Any, largest: Any,
        order: int, times: Any, rows: Any,
    ) -> Any:  # fmt: skip
        with guarded(digits):
            numbers = (number(x) for x in (t, end, last, longest, proposal))
            return loop(*numbers, y, system, number(tolerance), number(largest), order, times, rows)

    return precise


def rejecting(controlled_step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a controlled step that rejects a step with undefined numbers, such as the root of -1."""

    def rejects(t: Any, y: Any, proposal: Any, left: Any, system: Any, weights: Any, order: int) -> Any:
        try:
            new, step, following, accepted = controlled_step(t, y, proposal, left, system, weights, order)
            _ = max(x for part in new for x in part)  # complex numbers have no order
        except (ArithmeticError, TypeError, ValueError):
            return y, left, min(proposal, left) / 5, False
        return new, step, following, accepted

    return rejects
