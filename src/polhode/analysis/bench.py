"""Timings as ratios measured in one run: compiled code against plain Python and against scipy's DOP853."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import InputError, StepError
from ..kernels.so3 import add, mul
from ..methods import NEEDS, Method, methods
from ..methods.mechanics import gyration, velocity
from ..methods.ranking import fitting, listed
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..physics import library
from ..physics.problem import Problem
from ..results.observables import attitude_error, matrices
from ..results.store.atomic import place_for
from ..run.cost import cost
from ..run.integrator import Engine, torque_kernel
from ..run.solve import solve
from ..run.system import System, engine

STEP_SIZES = {"free_body": 0.01, "slow_top": 0.001, "fast_top": 0.001, "soft_wall": 0.01, "heavy_top": 0.01}
"""The problems timed, each with its step size."""

RIVAL = "fast_top"
"""The problem of the comparison with scipy."""

SECONDS = 0.05
"""Seconds of one measurement; the best of several counts, because machines are shared."""


def _best(work: Callable[[int], Any], start: int, repeats: int) -> float:
    """Seconds per unit of work(n): n grows until a call takes SECONDS, then the best of some calls."""
    n = start
    while True:
        began = time.perf_counter()
        work(n)
        spent = time.perf_counter() - began
        if spent > SECONDS / 2:
            break
        n = int(n * min(10.0, max(2.0, SECONDS / max(spent, 1e-6))))
    for _ in range(repeats):
        began = time.perf_counter()
        work(n)
        spent = min(spent, time.perf_counter() - began)
    return spent / n


def _step_ns(advance: Callable[..., Any], problem: Problem, dt: float, run: Engine, steps: int, repeats: int) -> float:
    """Nanoseconds per step, from repeated short runs without output.

    Each run restarts from the initial state, so that a method that gains energy does not blow up during the timing.
    """
    rows, y, system, last = run.buffer(2), run.y, run.system, run.last(steps)

    def work(runs: int) -> None:
        for _ in range(runs):
            *_, fine = advance(dt, problem.t0, 0, steps, steps, last, y, system, rows)
            if not fine:
                raise StepError(f"a step of {dt:g} failed on {problem.name}")

    work(1)
    return 1e9 * _best(work, 1, repeats) / steps


def compiled_ns(method: Method, problem: Problem, dt: float) -> float:
    """Nanoseconds of one compiled step."""
    run = engine(problem, method)
    return _step_ns(run.advance, problem, dt, run, steps=500, repeats=7)


def plain_ns(method: Method, problem: Problem, dt: float) -> float:
    """Nanoseconds of one step of the same kernel in plain Python."""
    run, loop = engine(problem, method), System(problem, method).equal_loop()
    return _step_ns(loop, problem, dt, run, steps=50, repeats=2)


# --- scipy ------------------------------------------------------------------------------------------


def right_hand_side(problem: Problem) -> Callable[[float, np.ndarray], np.ndarray]:
    """The compiled right-hand side q (0, omega)/2, Pi x omega + T in scipy's calling convention."""
    from ..compile.program import compiled

    rates, system = equations(problem, floats.number)

    def right(t: float, y: np.ndarray) -> np.ndarray:
        turning, turned = rates(t, (y[0], y[1], y[2], y[3]), (y[4], y[5], y[6]), system)
        return np.array([turning[0], turning[1], turning[2], turning[3], turned[0], turned[1], turned[2]])

    run: Callable[[float, np.ndarray], np.ndarray] = compiled(right).run
    return run


def equations(problem: Problem, number: Callable[[Any], Any]) -> tuple[Callable[..., Any], Any]:
    """Kernel (t, q, m, system) -> (q', m') of a problem in one number type, and its system."""
    torque = torque_kernel(problem, number)

    @kernel
    def rates(t: Any, q: Any, m: Any, system: Any) -> Any:
        w = velocity(m, system)
        turning = mul(q, (0 * w[0], w[0] / 2, w[1] / 2, w[2] / 2))
        return turning, add(gyration(m, system), torque(t, q, m, system))

    return rates, problem.kernel_data(number)[1]


def dop853_curve(problem: Problem, tolerances: Iterable[float]) -> list[dict[str, float]]:
    """Error and seconds of scipy's DOP853 with a compiled right-hand side, for a ladder of tolerances."""
    from scipy.integrate import solve_ivp

    rates = right_hand_side(problem)
    start = np.array([*problem.quaternion, *problem.momentum])
    assert problem.t_end is not None
    rates(0.0, start)
    curve = []
    for rtol in tolerances:
        best = np.inf
        for _ in range(3):
            began = time.perf_counter()
            run = solve_ivp(rates, (problem.t0, problem.t_end), start, method="DOP853", rtol=rtol, atol=rtol)
            best = min(best, time.perf_counter() - began)
        q = run.y[:4, -1] / np.linalg.norm(run.y[:4, -1])
        curve.append({"rtol": rtol, "seconds": best, "attitude_error": reference_error(problem, q)})
    return curve


def reference_error(problem: Problem, q: Any) -> float:
    """Attitude error of a quaternion at the end of a named problem."""
    if problem.reference is None:
        raise InputError(f"{problem.name} has no reference solution; take one of those that `polhode bench` measures")
    return attitude_error(matrices(np.array(q)), matrices(np.array(problem.reference.quaternion)))


def _against_scipy(
    method: Method, problem: Problem, dt: float, ns: float, curve: list[dict[str, float]]
) -> dict[str, Any]:
    """Ratio of the time of DOP853 at equal or smaller error to ours; None if it never reaches our error."""
    assert problem.t_end is not None
    end = solve(problem, method, dt=dt, every=10**9, progress=False)
    error = reference_error(problem, end.quaternion[-1])
    ours = ns * 1e-9 * (problem.t_end - problem.t0) / dt
    theirs = min((row["seconds"] for row in curve if row["attitude_error"] <= error), default=None)
    return {"attitude_error": error, "seconds": ours, "dop853_over_ours": theirs / ours if theirs else None}


# --- the run ----------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """The machine and the software versions of the measurement."""
    names = ("numpy", "scipy", "numba", "llvmlite", "mpmath")
    return {
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "polhode": __version__,
        "commit": _commit(),
        "versions": {name: metadata.version(name) for name in names},
        "date": time.strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def measure(
    names: list[str] | None, tell: Callable[[str, int, int], Any], problem: Problem | None = None
) -> dict[str, Any]:
    """Time methods (all by default) on the problems of STEP_SIZES, or on one problem, in one run.

    `tell(what, done, total)` reports. The step of another problem turns the body by TURN.
    """
    chosen = [methods[name] for name in names] if names else methods.taking(NEEDS[0])
    known = [library.get(name) for name in STEP_SIZES] if problem is None else [problem]
    pairs = [(m, one) for m in chosen for one in known if m.takes(one.needs)]
    if not pairs:
        able = listed(fitting(known[0].needs))
        raise InputError(
            f"none of these methods takes the field of this problem: {', '.join(m.name for m in chosen)}; those that "
            f"do: {able}"
        )
    tell("scipy DOP853", 0, len(pairs))
    rival = next((one for one in known if one.name == RIVAL and one.reference is not None), None)
    curve = [] if rival is None else dop853_curve(rival, [10.0**-k for k in range(3, 14)])
    rows = []
    for done, (method, one) in enumerate(pairs):
        tell(f"{method.name} on {one.name}", done, len(pairs))
        rows.append(_row(method, one, step_size(one), curve))
    tell("done", len(pairs), len(pairs))
    return {"machine": machine(), "dop853": curve, "rows": rows}


TURN = 0.01
"""Angle in radians by which a body turns in a step of a timing."""


def step_size(problem: Problem) -> float:
    """The step with which methods are timed on a problem."""
    speed = float(np.linalg.norm(problem.omega)) or 1.0
    return STEP_SIZES[problem.name] if problem.reference is not None and problem.name in STEP_SIZES else TURN / speed


def _row(method: Method, problem: Problem, dt: float, curve: list[dict[str, float]]) -> dict[str, Any]:
    ns, plain = compiled_ns(method, problem, dt), plain_ns(method, problem, dt)
    operations = cost(method, problem, dt)
    row: dict[str, Any] = {
        "method": method.name,
        "problem": problem.name,
        "dt": dt,
        "ns_per_step": ns,
        "plain_over_compiled": plain / ns,
        "flops": operations.flops,
        "functions": operations.function,
        "gflops": operations.flops / ns,
        "solves": method.solves,
        "torque_evals": method.torque_evals,
    }
    return row | (_against_scipy(method, problem, dt, ns, curve) if curve and problem.name == RIVAL else {})


def checked(path: Path, overwrite: bool) -> Path:
    """The path, if the figures may be written there."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another name or use --overwrite")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    return place_for(path)


def write(result: dict[str, Any], path: Path) -> Path:
    """Write the figures as JSON."""
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path
