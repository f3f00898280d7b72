"""heyoka, CyRK, numbalsoda and scipy; each integrates (q, omega) with the equations of `cases.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case, _wall, equations, wall_of_powers
from .clock import Attempt, Ladder

OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}}
"""The compiler options of the library, used for the right-hand sides of the other tools."""


# --- heyoka -----------------------------------------------------------------------------------------


def heyoka(case: Case) -> list[Ladder]:
    """The Taylor integrator with unrolled code (compact_mode off)."""
    import heyoka as hy

    x = hy.make_vars("a", "b", "c", "d", "u", "v", "w")
    slope = wall_of_powers if case.slope is _wall else case.slope
    motion = list(zip(x, equations(case.moments, slope)(*x), strict=True))
    start, t0, end = case.start, case.problem.t0, case.end

    def attempt(tol: float) -> Attempt:
        run = hy.taylor_adaptive(motion, start.tolist(), time=t0, tol=tol, compact_mode=False)
        state = run.state

        def call() -> Any:
            run.time = t0
            state[:] = start
            return run.propagate_until(end)

        return Attempt(call, lambda r: run.state[:4], lambda r: r[3], f"Taylor({run.order})")

    return [Ladder("heyoka", attempt, 1, 18)]


# --- tools that call a compiled right-hand side -----------------------------------------------------


def compiled_rates(case: Case) -> Callable[..., Any]:
    """The equations compiled by numba, seven numbers to seven."""
    import numba

    slope = numba.njit(**OPTIONS)(case.slope) if case.slope else None
    return numba.njit(**OPTIONS)(equations(case.moments, slope))


CYRK_METHODS = ("RK45", "DOP853", "Tsit5", "Vern7", "Vern8")


def cyrk(case: Case) -> list[Ladder]:
    """CyRK's C++ solver called from compiled code with a compiled right-hand side, its explicit methods."""
    from CyRK import cyjit

    rates, t0, end, start = compiled_rates(case), case.problem.t0, case.end, case.start

    def right(dy: Any, t: Any, y: Any, args: Any) -> None:
        r = rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6])
        for i in range(7):
            dy[i] = r[i]

    pointer = cyjit(right)

    def ladder(method: str) -> Ladder:
        run, address = _cyrk_call(method), pointer.address

        def attempt(tol: float) -> Attempt:
            keep = pointer  # the address is valid as long as the function is alive
            return Attempt(
                lambda: run(address, t0, end, start, tol),
                lambda r: r[0][:4],
                lambda r: r[1],
                method,
                lambda r: bool(keep and r[2]),
            )

        return Ladder(f"CyRK {method}", attempt, 2, 15)

    return [ladder(method) for method in CYRK_METHODS]


@functools.cache
def _cyrk_call(method: str) -> Callable[..., Any]:
    """A compiled call of the solver with one method: the last state, the number of steps, and True on success."""
    import numba
    from CyRK import nbsolve2_ivp

    @numba.njit
    def run(address: Any, t0: Any, end: Any, y: Any, tol: Any) -> Any:
        solution = nbsolve2_ivp(
            address, (t0, end), y, method=method, rtol=tol, atol=tol, max_num_steps=100_000_000, max_ram_MB=8000,
            force_retain_solver=False,
        )  # fmt: skip
        last = solution.y[:, solution.size - 1].copy()
        steps, fine = solution.steps_taken, solution.success
        solution.free()
        return last, steps, fine

    return run


def numbalsoda(case: Case) -> list[Ladder]:
    """The DOP853 of numbalsoda called from compiled code; it returns the states at the start and at the end."""
    import numba
    from numbalsoda import dop853, lsoda_sig

    rates, start = compiled_rates(case), case.start
    when = np.array([case.problem.t0, case.end])

    @numba.cfunc(lsoda_sig)
    def right(t: Any, y: Any, dy: Any, p: Any) -> None:
        r = rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6])
        for i in range(7):
            dy[i] = r[i]

    address = right.address

    @numba.njit
    def run(y: Any, tol: Any) -> Any:
        return dop853(address, y, when, rtol=tol, atol=tol, mxstep=100_000_000)

    def attempt(tol: float) -> Attempt:
        keep = right
        return Attempt(
            lambda: run(start, tol), lambda r: r[0][-1, :4], lambda r: 0, "DOP853", lambda r: bool(keep and r[1])
        )

    return [Ladder("numbalsoda DOP853", attempt, 2, 15)]


def scipy(case: Case) -> list[Ladder]:
    """The DOP853 of scipy with a compiled right-hand side; its own loop is Python."""
    import numba
    from scipy.integrate import solve_ivp

    rates, span, start = compiled_rates(case), (case.problem.t0, case.end), case.start

    @numba.njit(**OPTIONS)
    def right(t: Any, y: Any) -> Any:
        r = rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6])
        return np.array([r[0], r[1], r[2], r[3], r[4], r[5], r[6]])

    right(0.0, start)

    def attempt(tol: float) -> Attempt:
        return Attempt(
            lambda: solve_ivp(right, span, start, method="DOP853", rtol=tol, atol=tol),
            lambda r: r.y[:4, -1],
            lambda r: len(r.t) - 1,
            "DOP853",
            lambda r: bool(r.success),
        )

    return [Ladder("scipy DOP853", attempt, 3, 13)]  # below 100 EPS scipy replaces the requested tolerance
