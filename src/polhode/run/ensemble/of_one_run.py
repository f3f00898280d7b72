"""Statistics of a run of `ph.solve`: over the states that it returns, as those of an ensemble are over its own."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import InputError, ResultWarning, StepError
from ...physics.fields.variation import PREFIX, SIZE, VariationField
from ...physics.observers.event import Event, checked
from ...physics.observers.statistics import CHAOS_WORDS, PARTS, Statistic, Watch, watch
from ...physics.problem import Problem
from ...results.trajectory import Trajectory
from .. import control
from ..adaptive import Path
from ..dense import path_of
from ..kept import Kept, round_off
from . import chaos_words, sampled_statistics

IN_MEMORY = ("out", "digits", "max_turn")
"""Arguments of `solve` that do not go with statistics."""


def solved_with(statistics: Any, problem: Problem, method: Any, given: dict[str, Any]) -> Trajectory:
    """Return a run with its statistics; `given` are the other arguments of `solve`.

    A run that fails has those of the states before its failure, without chaos indicators.
    """
    from ..solve import solve

    request = _Request.of(statistics, problem, method, given)
    try:
        sol = solve(problem, method, **given)
    except StepError as failed:
        if failed.partial is not None:
            failed.partial.statistics = request.before_failure(failed.partial)
        raise
    sol.statistics = request.over(sol)
    return sol


@dataclasses.dataclass(frozen=True)
class _Request:
    """What is asked for: the names in order, the observables of states, and the chaos indicators."""

    model: Problem
    """The problem, with its controller."""
    method: Any
    given: dict[str, Any]
    names: list[str]
    wanted: Watch | None
    """Observables that are evaluated over the states of the run."""
    indicators: list[str]
    """Chaos indicators that the steps of an equal run carry with them."""

    @classmethod
    def of(cls, statistics: Any, problem: Problem, method: Any, given: dict[str, Any]) -> _Request:
        """Check the arguments before the run."""
        for name in IN_MEMORY:
            if given[name] is not None:
                raise InputError(f"statistics are computed in memory, without {name}; leave out `{name}`")
        model = problem
        if given["control"] is not None or given["period"] is not None:
            model = control.with_controller(problem, *control.read(given["control"], given["period"]))
        adaptive = next((name for name in ("tol", "step_tol") if given[name] is not None), None)
        if adaptive is not None:
            sampled_statistics.check_times(adaptive, given["times"])
        whole = watch(statistics, model)
        assert whole is not None
        if whole.chaos:
            _check_chaos(problem, adaptive is not None, given)
        indicators = [name for name in whole.sizes if name in CHAOS_WORDS] if adaptive is None else []
        rest = [one for one in _items(statistics) if not (isinstance(one, str) and one in indicators)]
        wanted = whole if not indicators else watch(rest, model) if rest else None
        return cls(model, method, given, list(whole.sizes), wanted, indicators)

    def over(self, sol: Trajectory) -> dict[str, Statistic]:
        """Return the statistics of a run."""
        found = {} if self.wanted is None else self._over_path(sol, self._sampled(sol))
        if self.indicators:
            found |= self._of_equal_steps()
        return {name: found[name] for name in self.names}

    def before_failure(self, partial: Trajectory) -> dict[str, Statistic]:
        """Return the statistics of a run that failed, up to the last state at which they are evaluated."""
        if self.wanted is None or self.wanted.chaos or not len(partial):
            return {}
        times = self._sampled(partial)
        if times is not None:
            return {} if partial.dense is None else self._over_path(partial, times[:-1])
        done = 1 + partial.info.steps // partial.info.every  # without the last good state between two of these
        path = path_of(self.model, partial)
        return self._along(Path(path.times[:done], path.rows[:done]))

    def _sampled(self, sol: Trajectory) -> np.ndarray | None:
        """Return the times at which observables are evaluated, if they are given: the start and the end are."""
        if self.given["times"] is None:
            return None
        (t0, end), kept = sol.span, Kept.of(1, self.given["times"], None)
        assert kept.times is not None
        if self.given["t_end"] is None and self.given["steps"] is None:  # the run may go on to the end of a step
            end = min(end, float(kept.times[-1]), key=lambda t: abs(t - t0))
        before = kept.times[abs(kept.times - t0) < abs(end - t0) - round_off(t0, end)]
        return dataclasses.replace(kept, times=before).with_ends(t0, end)

    def _over_path(self, sol: Trajectory, times: np.ndarray | None) -> dict[str, Statistic]:
        if times is None:
            return self._along(path_of(self.model, sol))
        assert sol.dense is not None
        seen = Trajectory(sol.dense(times), sol.info, problem=self.model)
        return self._along(path_of(self.model, seen), self._variation(sol, times))

    def _along(self, path: Path, variation: np.ndarray | None = None) -> dict[str, Statistic]:
        assert self.wanted is not None
        return sampled_statistics.along(self.wanted, self.model, path, variation)

    def _variation(self, sol: Trajectory, times: np.ndarray) -> np.ndarray | None:
        """Return the numbers of a variation beside a run to a tolerance; NaN where its tangents do not exist."""
        assert self.wanted is not None
        if not self.wanted.chaos:
            return None
        from ..variation_along import on_run

        end, problem = float(times[-1]), self.model
        field = chaos_words.varied_field(problem, chaos_words.frequency(problem, end), end)
        assert isinstance(field, VariationField)
        constants = [field.values[PREFIX + name] for name in ("period", "per_span")]
        try:
            found = on_run(problem, field, times, sol)
        except StepError as failed:
            found = np.full((len(times), SIZE), np.nan)
            warnings.warn(f"there are no chaos indicators (NaN): {failed}", ResultWarning, stacklevel=6)
        return np.concatenate([found, np.broadcast_to(constants, (len(times), 2))], axis=1)

    def _of_equal_steps(self) -> dict[str, Statistic]:
        """Return the chaos indicators of equal steps: their tangents, as those of an ensemble of one body."""
        from .api import ensemble

        shared = {name: self.given[name] for name in ("dt", "t_end", "steps", "every")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResultWarning)  # the run of the body has told of them
            many = ensemble(self.model, method=self.method, **shared, statistics=self.indicators, progress=False)
        return {
            name: Statistic(**{part: getattr(one, part)[0] for part in PARTS}) for name, one in many.statistics.items()
        }


def _items(statistics: Any) -> list[Any]:
    """Return the observables that a user asks for."""
    single = isinstance(statistics, str | Event) or callable(statistics)
    return [statistics] if single or not isinstance(statistics, Iterable) else list(statistics)


def _check_chaos(problem: Problem, to_tolerance: bool, given: dict[str, Any]) -> None:
    """Refuse runs beside which there is no variation."""
    chaos_words.check(problem, "a chaos indicator", to_tolerance)
    if given["control"] is not None:
        raise InputError("chaos indicators cannot be combined with control; leave out `control`")
    if to_tolerance:
        return
    if given["times"] is not None:
        raise InputError("chaos indicators need equal steps for all bodies; remove the times")
    if any(event.terminal for event in checked(given["events"], problem)):
        raise InputError(
            "chaos indicators of equal steps end with a step, and a terminal event ends the run between two; give "
            "step_tol and times instead of a method and dt, or t_end instead of the event"
        )
