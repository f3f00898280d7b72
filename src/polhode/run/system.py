"""What is integrated, a problem and a method. The only place where steps, their torques and their loops are joined."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS, StateSpace, stepping
from ..methods import Method
from ..numbers.precision import guarded
from ..physics.problem import Problem
from ..physics.validate import number_of_digits
from .integrator import Engine, check_fit, number_type, start, state_space, step_kernel, structure, torque_kernel

Kernel = Callable[..., Any]


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """A problem and a method, and all that is built from them: kernels, loops, the first state.

    Attributes
    ----------
    problem : with the field that the kernels see, in the units of the run
    method : makes the steps
    digits : decimal digits of the numbers; None for doubles
    """

    problem: Problem
    method: Method
    digits: int | None = None

    # --- kernels ------------------------------------------------------------------------------------

    def step(self) -> Kernel:
        """Return the kernel of a step of a loop; it ends at the edges of the field, if these are known."""
        return step_kernel(self.problem, self.method.build(self._number))

    def torque(self) -> Kernel:
        """Return the kernel that answers the queries of the step."""
        return torque_kernel(self.problem, self._number, self.method)

    @property
    def space(self) -> StateSpace:
        """The space of the states of a loop."""
        return state_space(self.method)

    @property
    def _number(self) -> Callable[[Any], Any]:
        return number_type(self.digits)

    # --- loops --------------------------------------------------------------------------------------

    @functools.cached_property
    def engine(self) -> Engine:
        """The loop over equal steps, with its start."""
        with guarded(self.digits):
            advance, warm = self._built(self._equal_loop, "loop")
            y, data = start(self.problem, self.method, self._number)
        columns = COLUMNS + self.method.kept_memory
        kind = float if self.digits is None else object
        return Engine(
            advance, y, data, float if self.digits is None else self._number,
            lambda n: np.empty((n, columns), dtype=kind), warm, self.digits, self.method.has_own_time,
            plain=self._is_called, singly=self._is_called,
        )  # fmt: skip

    def _equal_loop(self) -> Kernel:
        return stepping(self.step(), self.torque(), self.space, *self.method.processors(self._number))

    def _built(self, make: Callable[[], Kernel], *shortcut: Hashable) -> tuple[Any, bool]:
        """Return the function that `make` builds, compiled where it can be, and whether that is done already."""
        if self.digits is not None or self._is_called:
            return make(), True
        from ..compile.lazily import program

        found = program(make, *shortcut, *structure(self.problem, self.method))
        return found.run, found.is_warm

    @property
    def _is_called(self) -> bool:
        """Whether the torque is called as plain Python."""
        return self.problem.field is not None and self.problem.field.in_python


def engine(problem: Problem, method: Method, digits: int | None = None) -> Engine:
    """Return the loop over equal steps: compiled, or with `digits` the same on mpmath numbers."""
    check_fit(method, problem)
    return System(problem, method, None if digits is None else number_of_digits(digits)).engine
