"""The loop of a fixed-step run in plain Python: what `ph.solve` compiles."""

from __future__ import annotations

from typing import Any

import numpy as np

import polhode as ph
from polhode.kernels import loops
from polhode.numbers import floats
from polhode.results.progress import Progress
from polhode.results.recorder import Memory
from polhode.run.failures import explain
from polhode.run.fixed_step import RunState, solved
from polhode.run.integrator import Engine, torque_kernel
from polhode.run.integrator import start as begun


def python_run(start: ph.Problem, method: str, dt: float, steps: int) -> Any:
    """The loop in plain Python: what `ph.solve` compiles."""
    chosen = ph.methods[method]
    y, system = begun(start, chosen, floats.number)
    torque = torque_kernel(start, floats.number, chosen)
    before, after = chosen.processors(floats.number)
    advance = loops.stepping(chosen.build(floats.number), torque, before=before, after=after)
    run = Engine(advance, y, system, float, lambda n: np.empty((n, 7)), True, None, plain=True)
    return RunState(run, start, dt, steps, 1, method=chosen)


def python_states(start: ph.Problem, method: str, dt: float, steps: int) -> tuple[Any, Any]:
    state = python_run(start, method, dt, steps)
    y, _, _, residual, fine = state.run.advance(
        dt, 0.0, 0, steps, 1, steps, state.run.y, state.run.system, np.empty((steps, 7))
    )
    return y, None if fine else residual


def failed_in_python(start: ph.Problem, method: str, dt: float) -> str | None:
    try:
        solved(python_run(start, method, dt, 1), Memory(lambda t, rows, **_: rows), Progress(False, method, 1), explain)
    except ph.StepError as error:
        return str(error)
    return None
