"""diffrax: compiled by XLA in double precision; tolerance and end time are arguments of one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case, equations
from .clock import Attempt, Ladder

SOLVERS = ("Dopri8", "Tsit5")
STEPS = 10_000_000

_PROGRAMS: dict[Any, Callable[..., Any]] = {}


def diffrax(case: Case) -> list[Ladder]:
    """Dopri8 and Tsit5 with their step control (PIDController), saving only the final state."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    t0, end, start = case.problem.t0, jnp.float64(case.end), jnp.array(case.start)

    def ladder(solver: str) -> Ladder:
        run = _program(case, solver, t0)

        def attempt(tol: float) -> Attempt:
            at = jnp.float64(tol)
            return Attempt(
                lambda: jax.block_until_ready(run(start, at, end)),
                lambda r: np.asarray(r[0])[-1, :4],
                lambda r: int(r[1]),
                solver,
                lambda r: bool(r[2]),
            )

        return Ladder(f"diffrax {solver}", attempt, 2, 15)

    return [ladder(solver) for solver in SOLVERS]


def _program(case: Case, solver: str, t0: float) -> Callable[..., Any]:
    """One program for a body and a field; the long and the short run share it."""
    import diffrax as dx
    import jax
    import jax.numpy as jnp

    key = (case.moments, case.slope, solver)
    if key not in _PROGRAMS:
        rates = equations(case.moments, case.slope)
        term = dx.ODETerm(lambda t, y, args: jnp.stack(rates(*(y[i] for i in range(7)))))
        method = getattr(dx, solver)()

        @jax.jit
        def run(y: Any, tol: Any, end: Any) -> Any:
            found = dx.diffeqsolve(
                term, method, t0, end, None, y, saveat=dx.SaveAt(t1=True), max_steps=STEPS, throw=False,
                stepsize_controller=dx.PIDController(rtol=tol, atol=tol),
            )  # fmt: skip
            return found.ys, found.stats["num_steps"], found.result == dx.RESULTS.successful

        _PROGRAMS[key] = run
    return _PROGRAMS[key]
