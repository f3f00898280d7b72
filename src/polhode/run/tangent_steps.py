"""Derivatives from states of a run to later ones, by the kernels of a step on dual numbers."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import StepError
from ..kernels.loops import COLUMNS
from ..kernels.so3 import mul, unrotate
from ..methods import Method
from ..numbers import floats
from ..physics.fields.sides import SidedField
from ..physics.fields.switches import PiecewiseField, between
from ..physics.problem import Problem
from ..results.derivatives import STATE, by_blocks
from ..results.observables import matrices
from .cut_steps import cut_at_edges
from .directions import Direction, seeds, table
from .integrator import beginning
from .system import System

WIDTHS = (4, 8, 16)
"""Numbers of directions processed together: whole vector registers."""

MANY = 2000
"""Pairs of states that are worth several threads: about five milliseconds of work."""


def in_batches(directions: list[Direction]) -> Iterator[tuple[Any, list[int], int]]:
    """Yield directions that are computed together: their principal axes, their places, and a compiled width."""
    for other in dict.fromkeys(d.other for d in directions):
        here = [i for i, d in enumerate(directions) if d.other == other]
        for some in (here[i : i + WIDTHS[-1]] for i in range(0, len(here), WIDTHS[-1])):
            yield other, some, next(w for w in WIDTHS if w >= len(some))


class Spans(NamedTuple):
    """Pairs of states: times of the first and of the second, steps between them, rows of the first, sides between."""

    starts: np.ndarray
    ends: np.ndarray
    parts: np.ndarray
    rows: np.ndarray
    sides: np.ndarray
    """(n, conditions) where jumps in the state are located, else (n, 0)."""

    def some(self, which: Any) -> Spans:
        """Return some of the pairs."""
        return Spans(*(np.ascontiguousarray(part[which]) for part in self))

    def by_sides(self) -> list[np.ndarray]:
        """Return the pairs with equal sides, by number."""
        _, group = np.unique(self.sides, axis=0, return_inverse=True)
        return [np.flatnonzero(group.ravel() == k) for k in range(int(group.max(initial=-1)) + 1)]


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Derivatives from states of a run to later ones, by the steps of a method.

    `held` says that no step crosses a jump of the field in time: each sees one side of it only. `located` says the
    same of jumps in the state. `end` is the end of a run with equal steps, which are cut at jumps in time.
    """

    problem: Problem
    method: Method
    held: bool
    located: bool = False
    end: float | None = None

    @functools.cached_property
    def inner(self) -> Problem:
        """The problem with the field that the steps see."""
        if self.end is not None:
            return cut_at_edges(self.problem, self.method, self.end)
        field = between(self.problem.field) if self.held else self.problem.field
        if self.located:
            assert field is not None
            field = SidedField(field)
        if field is self.problem.field:
            return self.problem
        made = copy.copy(self.problem)
        made.field = field
        return made

    def by_state(self, spans: Spans) -> np.ndarray:
        """Return the derivatives (n, 6, 6) by the state at the start of each pair, in principal axes."""
        return self._with_state(spans)[:, 1:, 1 : 1 + STATE]

    def ends(self, spans: Spans) -> np.ndarray:
        """Return the rows (n, 7) at the ends of the pairs."""
        return self._with_state(spans)[..., 0]

    def _with_state(self, spans: Spans) -> np.ndarray:
        return self._run(spans, self._constants(8), 8, True)

    def _constants(self, width: int) -> np.ndarray:
        """Return the data of a run in which inertia and parameters do not vary."""
        _, (inertia, inverse, parameters) = self.inner.kernel_data(floats.number)
        numbers = [0.0 if isinstance(x, np.ndarray) else x for x in parameters]  # a column of data has a placeholder
        data = np.zeros((COLUMNS + 6 + len(numbers), 1 + width))
        data[COLUMNS:, 0] = *inertia, *inverse, *numbers
        return data

    def by_data(self, spans: Spans, directions: list[Direction]) -> np.ndarray:
        """Return the derivatives (n, 6, directions) by inertia and parameters, at fixed states at the starts."""
        found = np.empty((len(spans.starts), STATE, len(directions)))
        for other, some, width in in_batches(directions):
            data = self._data([directions[i] for i in some], other, width)
            output = self._run(spans._replace(rows=turned(spans.rows, other)), data, width, False)
            found[:, :, some] = turned_back(output[:, 1:, 1 : 1 + len(some)], other)
        return found

    def _data(self, directions: list[Direction], other: Any, width: int) -> np.ndarray:
        y, system, _ = seeds(self.inner, directions, other)
        data = table(y, system, width)
        data[:COLUMNS, 1:] = 0.0  # the states at the starts are fixed
        return data

    def _run(self, spans: Spans, data: Any, width: int, seeded: bool) -> np.ndarray:
        if not self.located:
            return self._run_on_one_side(spans, data, width, seeded)
        assert isinstance(self.inner.field, SidedField)
        output, first = np.empty((len(spans.starts), COLUMNS, 1 + width)), len(self.inner.field.whole.parameters)
        for group in spans.by_sides():
            held, sides = data.copy(), spans.sides[group[0]]
            held[COLUMNS + 6 + first : COLUMNS + 6 + first + len(sides), 0] = sides
            output[group] = self._run_on_one_side(spans.some(group), held, width, seeded)
        return output

    def _run_on_one_side(self, spans: Spans, data: Any, width: int, seeded: bool) -> np.ndarray:
        from ..compile.threads import elsewhere

        field = self.inner.field
        columns = {} if field is None else field.columns
        number = len(spans.starts)
        output = np.empty((number, COLUMNS, 1 + width))
        run = self._program(len(data) - COLUMNS - 6, tuple(columns), width, seeded)
        failed = []

        def work(begin: int, end: int, stop: np.ndarray) -> None:
            reached = run(*spans[:4], data, tuple(columns.values()), output, stop, begin, end)
            if reached < end:
                failed.append(reached)

        elsewhere(work, int(spans.parts.sum()), number, None if number >= MANY else 1)
        if failed:
            raise StepError(
                f"the step of {self.method.name} from t = {spans.starts[min(failed)]:g} failed with tangents"
            )
        if not np.isfinite(output).all():
            raise StepError(
                f"the formulas of {self.method.name} have no finite derivative at this motion (equal moments, a spin "
                f"about a principal axis, or a body at rest); use another method"
            )
        return output

    def _program(self, parameters: int, columns: tuple[int, ...], width: int, seeded: bool) -> Any:
        from ..compile.batch import tangents

        system, field = System(self.inner, self.method), self.inner.field
        whole = field.whole if isinstance(field, SidedField) else field
        moment = len(whole.parameters) - 1 if isinstance(whole, PiecewiseField) else -1

        def build_loop() -> Any:
            return tangents.between_states(
                system.step(), system.torque(), system.space, beginning(self.method), parameters, columns, width,
                seeded, moment,
            )  # fmt: skip

        return system.built(build_loop, "tangents between states", width, seeded, moment)[0]


def rotation_and_momentum(output: np.ndarray) -> np.ndarray:
    """Return (d, dPi) (n, 6, directions) from the values and tangents of quaternion and momentum: d = 2 Im(q* dq)."""
    w, x, y, z = (output[:, i, :1] for i in range(4))
    a, b, c, d = (output[:, i, 1:] for i in range(4))
    turn = (w * b - x * a - y * d + z * c, w * c - y * a - z * b + x * d, w * d - z * a - x * c + y * b)
    return np.concatenate([2 * np.stack(turn, 1), output[:, 4:7, 1:]], 1)


def turned(rows: np.ndarray, other: Any) -> np.ndarray:
    """Return rows in other principal axes."""
    if not other:
        return rows
    q, m = tuple(rows[:, :4].T), tuple(rows[:, 4:7].T)
    return np.stack([*mul(q, other), *unrotate(other, m)], 1)


def turned_back(tangents: np.ndarray, other: Any) -> np.ndarray:
    """Return tangents in the principal axes of the body, from others."""
    return by_blocks(matrices(np.array([other]))[0], tangents) if other else tangents
