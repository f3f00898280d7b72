"""Who takes part: the packages of each, and what it prepares for a case."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

import polhode as ph

from . import compiled_rivals
from .cases import Case
from .compiled_rivals import Prepared


@dataclasses.dataclass(frozen=True)
class Contender:
    """A tool: what to import for it, and its prepared calls."""

    name: str
    packages: tuple[str, ...]
    prepared: Callable[[Case], Prepared]
    start: Callable[[Case, np.ndarray], Any] = lambda case, start: start
    """An initial state in the form that the calls take."""

    def missing(self) -> str:
        """Why it cannot take part; empty if it can."""
        for package in self.packages:
            try:
                importlib.import_module(package)
            except ImportError as why:
                return f"{why}"
        return ""

    @property
    def version(self) -> str:
        """Of its package."""
        return metadata.version(self.packages[-1].split(".")[0])


def solve(name: str) -> Callable[[Case], Prepared]:
    """`ph.solve` with a tolerance of this name, from a problem with the new state to the quaternion at the end."""

    def prepared(case: Case) -> Prepared:
        def prepare(tol: float) -> Callable[[np.ndarray], Any]:
            return lambda start: ph.solve(start, t_end=case.end, **{name: tol}).last().quaternion[0]

        return {"": prepare}

    return prepared


def propagate(name: str) -> Callable[[Case], Prepared]:
    """`ph.propagator` with a tolerance of this name, from a quaternion and a momentum to the quaternion at the end."""

    def prepared(case: Case) -> Prepared:
        end = float(case.end)

        def prepare(tol: float) -> Callable[[Any], Any]:
            fly = ph.propagator(case.problem, **{name: tol})
            return lambda start: fly(start[0], start[1], end).quaternion

        return {"": prepare}

    return prepared


def ensemble(case: Case) -> Prepared:
    """`ph.ensemble` with many copies of a state, from a quaternion and a momentum to the quaternion of the first."""

    def prepare(tol: float) -> Callable[[Any], Any]:
        def call(start: Any) -> Any:
            q, m = (np.tile(part, (BODIES, 1)) for part in start)
            found = ph.ensemble(case.problem.body, q, m, field=case.problem.field, t_end=case.end, step_tol=tol)
            return found.quaternion[-1, 0]

        return call

    return {"": prepare}


BODIES = 1024
TOLERANCES = ("step_tol", "tol")
OURS = (
    *(Contender(f"propagator, {x}", ("polhode",), propagate(x), Case.quaternion_and_momentum) for x in TOLERANCES),
    *(Contender(f"solve, {x}", ("polhode",), solve(x), Case.started) for x in TOLERANCES),
)
ENSEMBLE = Contender("ensemble, step_tol", ("polhode",), ensemble, Case.quaternion_and_momentum)
"""Only its first call is timed here."""

RIVALS = (
    Contender("heyoka", ("heyoka",), compiled_rivals.heyoka),
    Contender("CyRK", ("numba", "CyRK"), compiled_rivals.cyrk),
    Contender("numbalsoda", ("numba", "numbalsoda"), compiled_rivals.numbalsoda),
)
