"""The ways of computing a motion; the docstring of each says what it must agree with. See `WAYS`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from .cases import CASES
from .check import Cell, Skip, filled
from .entries import (
    batch_stepper,
    digits,
    ensemble_events,
    ensemble_every,
    ensemble_in_a_store,
    ensemble_of_many,
    ensemble_of_one,
    ensemble_statistics,
    ensemble_tangent,
    ensemble_times,
    propagator,
    stepper,
)
from .faults import (
    ensemble_fails,
    ensemble_interrupted,
    ensemble_memory,
    ensemble_progress,
    fails,
    interrupted,
    memory,
    progress,
)
from .files import netcdf, resumed, zarr
from .kept import again, at_steps, events, every, gradient, max_turn, plain, tangent, terminal, times
from .rooms import cells
from .runs import HOWS, Run, Way
from .scales import backwards, ensemble_units, max_step, pickled, restarted, stops, tangent_units, units
from .statistics import statistics, statistics_of_a_failure, statistics_to_an_event

WAYS: dict[str, Way] = {
    way.__name__.replace("_", " "): way
    for way in (
        plain, again, every, times, max_turn, at_steps, events, terminal, statistics, statistics_to_an_event,
        statistics_of_a_failure, tangent, gradient, zarr, netcdf, resumed, ensemble_of_one, ensemble_of_many,
        ensemble_times, ensemble_every, ensemble_statistics, ensemble_events, ensemble_tangent,
        ensemble_in_a_store, propagator, stepper, batch_stepper, digits, units, ensemble_units, tangent_units,
        backwards, restarted, stops, max_step, pickled, progress, ensemble_progress, interrupted,
        ensemble_interrupted, fails, ensemble_fails, memory, ensemble_memory,
    )
}  # fmt: skip
"""All ways, by name. The docstring of each says what it claims."""


def net(
    names: Callable[[str], bool] = lambda name: True, ways: dict[str, Way] | None = None
) -> Iterator[tuple[str, Cell]]:
    """Yield each wanted cell, "motion | how it steps | way" or "room | what", and what was found."""
    for case in CASES.values():
        for how in HOWS:
            run = Run(case, how)
            for way_name, way in (WAYS if ways is None else ways).items():
                name = f"{case.name} | {how} | {way_name}"
                if names(name):
                    with contextlib.suppress(Skip):
                        yield name, filled(way, run)
    if ways is None:
        yield from cells(names)
