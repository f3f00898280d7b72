"""polhode with ensembles: whole calls of `ph.ensemble`, arrays in, arrays out."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

import polhode as ph
from polhode.run.cost import cost, cost_to_tolerance

from .crowd_clock import Run, Runner
from .crowds import END, Crowd, problem, weight

library = sys.modules["polhode.run.ensemble.api"]

TOPS = ("processed6(dmv10)", "taylor(8)", "taylor(10)", "taylor(12)", "taylor(14)", "taylor(16)")
"""Methods on a GPU, where all threads should have equal steps."""

CHOSEN = "own steps"
TOLERANCES = tuple(10 ** (-5 - k / 6) for k in range(55))
FINENESS = tuple(0.5 * 1.08**k for k in range(31))
"""Steps per radian of rotation; varied like the tolerance of other tools."""

LADDER = 1.3
"""Numbers of steps are powers of this, rounded up, so that many bodies share one number, as a GPU needs."""


def numbers_of_steps(crowd: Crowd, fineness: float, ratio: float) -> np.ndarray:
    """Steps of each body from its rate of rotation and swing, sqrt(omega^2 + 4 m g l / I_min)."""
    assert crowd.mgl is not None
    rate = np.sqrt((crowd.omega**2).sum(axis=1) + 4 * crowd.mgl / crowd.moments.min(axis=1))
    rungs = np.ceil(np.log(np.maximum(END * fineness * rate, 1)) / np.log(ratio))
    return np.ceil(ratio**rungs).astype(int)


def _exact(device: str, crowd: Crowd, setting: float) -> Run:
    given = (crowd.moments, crowd.quaternions, crowd.momenta)
    return Run(
        lambda: ph.ensemble(*given, "jacobi", dt=END, steps=1, device=device).quaternion[-1],
        functools.partial(_flops, crowd, "jacobi", 1.0),
    )


def _stepped(device: str, name: str, crowd: Crowd, setting: float) -> Run:
    assert crowd.mgl is not None
    steps = numbers_of_steps(crowd, setting, LADDER)
    given = (crowd.moments, crowd.quaternions, crowd.momenta, name)
    params = {"mgl": crowd.mgl}

    def call() -> np.ndarray:
        dt = END / steps
        found = ph.ensemble(*given, field=weight, params=params, dt=dt, steps=steps, device=device)
        return found.quaternion[-1]

    return Run(call, functools.partial(_flops, crowd, name, float(steps.mean())))


def _chosen(crowd: Crowd, setting: float) -> Run:
    """Every body with its own adaptive steps, to a tolerance."""
    given = (crowd.moments, crowd.quaternions, crowd.momenta)
    field: dict[str, Any] = {"field": weight, "params": {"mgl": crowd.mgl}}
    taken = []

    def call() -> np.ndarray:
        found = ph.ensemble(*given, **field, step_tol=setting, t_end=END)
        taken[:] = [float(found.steps.mean())]
        return found.quaternion[-1]

    return Run(call, lambda: taken[0] * cost_to_tolerance(_typical(crowd), setting).flops)


def prepared(crowd: Crowd, name: str, setting: float) -> tuple[Any, np.ndarray]:
    """Validated input and number of steps of each body, for a run on a GPU without transfers."""
    given = (crowd.moments, crowd.quaternions, crowd.momenta, name)
    if crowd.mgl is None:
        return library.prepared(*given, dt=END, steps=1, device="cuda"), np.ones(len(crowd), dtype=int)
    steps = numbers_of_steps(crowd, setting, LADDER)
    field: dict[str, Any] = {"field": weight, "params": {"mgl": crowd.mgl}}
    return library.prepared(*given, dt=END / steps, steps=1, device="cuda", **field), steps


def _flops(crowd: Crowd, name: str, steps: float) -> float:
    """Operations per body, counted in a step of a typical body; elementary functions are not included."""
    return steps * cost(ph.methods[name], _typical(crowd), END / steps).flops


def _typical(crowd: Crowd) -> ph.Problem:
    """The body of median speed."""
    given = (crowd.moments, crowd.quaternions, crowd.momenta, crowd.mgl)
    return problem(given, int(np.argsort((crowd.omega**2).sum(axis=1))[len(crowd) // 2]))


def runners(crowd: Crowd, device: str = "cpu", quick: bool = False) -> list[Runner]:
    """The exact solution for free bodies; for tops adaptive steps, on a GPU methods with fixed steps."""
    if crowd.mgl is None:
        return [Runner("jacobi", (1.0,), functools.partial(_exact, device))]
    if device == "cpu":
        return [Runner(CHOSEN, TOLERANCES[::3] if quick else TOLERANCES, _chosen)]
    return [
        Runner(name, FINENESS, functools.partial(_stepped, device, name))
        for name in (TOPS[:4:3] if quick else TOPS)
    ]  # fmt: skip
