"""heyoka, CyRK and numbalsoda in the race; each integrates (q, omega) with the equations of `cases.py`.

A rival gives, for each of its methods, a function of the tolerance, which returns a prepared and compiled call from an
initial state to the quaternion at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case, _wall, equations, wall_of_powers

Prepared = dict[str, Callable[[float], Callable[[np.ndarray], Any]]]

OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}}
"""The compiler's options of the library itself, for the right-hand sides of others."""


# --- heyoka -----------------------------------------------------------------------------------------


def heyoka(case: Case) -> Prepared:
    """The Taylor integrator, whole code unrolled (compact_mode off)."""
    import heyoka as hy

    x = hy.make_vars("a", "b", "c", "d", "u", "v", "w")
    slope = wall_of_powers if case.slope is _wall else case.slope
    motion, end = list(zip(x, equations(case.moments, slope)(*x), strict=True)), case.end

    def prepare(tol: float) -> Callable[[np.ndarray], Any]:
        run = hy.taylor_adaptive(motion, [1.0, *[0.0] * 6], tol=tol, compact_mode=False)
        state = run.state

        def call(start: np.ndarray) -> Any:
            run.time = 0.0
            state[:] = start
            run.propagate_until(end)
            return state[:4].copy()

        return call

    return {"Taylor": prepare}


# --- tools that call a compiled right-hand side -----------------------------------------------------


def compiled_rates(case: Case) -> Callable[..., Any]:
    """The equations compiled by numba, seven numbers to seven."""
    import numba

    slope = numba.njit(**OPTIONS)(case.slope) if case.slope else None
    return numba.njit(**OPTIONS)(equations(case.moments, slope))


CYRK_METHODS = ("RK45", "DOP853", "Tsit5", "Vern7", "Vern8")


def cyrk(case: Case) -> Prepared:
    """CyRK's C++ solver called from compiled code with a compiled right-hand side, its explicit methods."""
    from CyRK import cyjit

    rates, end = compiled_rates(case), case.end

    def right(dy: Any, t: Any, y: Any, args: Any) -> None:
        r = rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6])
        for i in range(7):
            dy[i] = r[i]

    pointer = cyjit(right)

    def of(method: str) -> Callable[[float], Callable[[np.ndarray], Any]]:
        run, keep = _cyrk_call(method), pointer  # its address is good as long as the function lives
        return lambda tol: lambda start: run(keep.address, 0.0, end, start, tol)[0][:4]

    return {method: of(method) for method in CYRK_METHODS}


@functools.cache
def _cyrk_call(method: str) -> Callable[..., Any]:
    """A compiled call of the solver with one method: the last state, the steps, and whether all went well."""
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


def numbalsoda(case: Case) -> Prepared:
    """The DOP853 of numbalsoda called from compiled code; it returns the states at the start and at the end."""
    import numba
    from numbalsoda import dop853, lsoda_sig

    rates, when = compiled_rates(case), np.array([0.0, case.end])

    @numba.cfunc(lsoda_sig)
    def right(t: Any, y: Any, dy: Any, p: Any) -> None:
        r = rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6])
        for i in range(7):
            dy[i] = r[i]

    address = right.address

    @numba.njit
    def run(y: Any, tol: Any) -> Any:
        return dop853(address, y, when, rtol=tol, atol=tol, mxstep=100_000_000)

    def prepare(tol: float) -> Callable[[np.ndarray], Any]:
        keep = right
        return lambda start: run(start, tol)[0][-1, :4] if keep else None

    return {"DOP853": prepare}
