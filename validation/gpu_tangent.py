"""Derivatives, chaos indicators and closed loops of tops on a real NVIDIA GPU against the processor, and their cost.

    python -m validation.gpu_tangent [--bodies 20000] [--steps 200]

The largest difference of the derivatives of a body is divided by the largest of them. With equal steps both devices
make the same steps, up to round-off. With a tolerance their steps may differ, and the derivatives by the errors of the
steps. Chaos indicators are compared likewise, and so are the last states of bodies under sampled-data control: the
largest difference of all bodies is divided by the largest value. Rates are those of a second run, without compilation.
The exit status is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import polhode as ph

END = 2.0
BODY = ph.Body([1.0, 1.3, 1.7])
TOP = ph.Problem(BODY, ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.2))
TENSOR = ph.Body([[1.2, 0.1, 0.0], [0.1, 1.5, 0.2], [0.0, 0.2, 1.9]])

ROUND_OFF = 1e-11
"""Largest relative difference with equal steps: 200 of them, with some tens of roundings each, whose effects grow."""

STEP_TOL, FACTOR = 1e-9, 1e3
"""Tolerance of a step, and the largest relative difference in its units: tens of steps, whose errors grow."""


def cases(steps: int) -> dict[str, tuple[dict[str, Any], float]]:
    """Return the arguments of a run and the largest allowed difference, by name."""
    fixed, adaptive = {"dt": END / steps, "steps": steps}, {"step_tol": STEP_TOL, "t_end": END}
    return {
        "strang(dmv6)": ({"method": "strang(dmv6)", **fixed}, ROUND_OFF),
        "strang(dmv6), tensors": ({"method": "strang(dmv6)", "body": TENSOR, **fixed}, ROUND_OFF),
        "imidm": ({"method": "imidm", **fixed}, ROUND_OFF),
        "mkrk(rk4)": ({"method": "mkrk(rk4)", **fixed}, ROUND_OFF),
        f"step_tol={STEP_TOL:g}": (adaptive, FACTOR * STEP_TOL),
        "times": ({**adaptive, "times": [END / 3, END]}, FACTOR * STEP_TOL),
    }


WORDS = ["megno", "mean_megno", "fli", "lyapunov", "energy"]
"""Statistics: chaos indicators, and one that needs no variation."""


def chaos_cases(steps: int) -> dict[str, tuple[dict[str, Any], float]]:
    """Return the same for chaos indicators."""
    fixed, times = {"dt": END / steps, "steps": steps}, {"times": [END / 3, END]}
    return {
        "chaos, strang(dmv6)": ({"method": "strang(dmv6)", **fixed}, ROUND_OFF),
        "chaos, imidm, tensors": ({"method": "imidm", "body": TENSOR, "every": 5, **fixed}, ROUND_OFF),
        "chaos, mkrk(rk4)": ({"method": "mkrk(rk4)", **fixed}, ROUND_OFF),
        f"chaos, step_tol={STEP_TOL:g}": ({"step_tol": STEP_TOL, "t_end": END, **times}, FACTOR * STEP_TOL),
    }


def _commands(R: Any, omega: Any) -> list[Any]:
    e = (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2
    return [e[i] + 2.0 * omega[i] for i in range(3)]


@ph.controller(integral=[0.0, 0.0, 0.0])
def pid(R: Any, omega: Any, integral: Any, period: float, gain: float = 0.1) -> Any:
    """PID control."""
    new = [integral[i] + period * x for i, x in enumerate(_commands(R, omega))]
    return [-x - gain * new[i] for i, x in enumerate(_commands(R, omega))], {"integral": new}


@ph.controller(wheels=ph.actuators.wheels(max_torque=0.15, max_momentum=0.4, inertia=0.01, viscous=1e-3, coulomb=2e-3))
def turning(R: Any, omega: Any, wheels: Any) -> Any:
    """PD control by three wheels with limits and friction."""
    return {"wheels": _commands(R, omega)}


@ph.controller(jets=ph.actuators.thrusters(0.5 * np.vstack([np.eye(3), -np.eye(3)]), min_pulse=1e-4))
def pulsing(R: Any, omega: Any, period: float) -> Any:
    """PD control by six thrusters."""
    on = [-period * x for x in _commands(R, omega)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


def loop_cases(steps: int) -> dict[str, tuple[dict[str, Any], float]]:
    """Return the same for closed loops, with four steps in a period."""
    run = {"dt": END / steps, "steps": steps, "period": 4 * END / steps}
    return {
        f"{law.template.function.__name__}, {method}": ({"control": law, "method": method, **run}, ROUND_OFF)
        for law, method in ((pid, "strang(dmv6)"), (turning, "imidm"), (pulsing, "mkrk(rk4)"))
    }


def derivatives(many: ph.Ensemble) -> dict[str, np.ndarray]:
    """Return the derivatives of the states, each (n, N, 6, directions)."""
    tangent, number = many.tangent, len(many.failed)
    found = {"state": tangent.matrix, "inertia": tangent.inertia, "mgl": tangent.params["mgl"]}
    return {name: x.reshape(len(x), number, 6, -1) for name, x in found.items()}


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference of a body, relative to its largest derivative; infinite if one is not finite."""
    size = np.abs(theirs).max(axis=(0, 2, 3))
    found = (np.abs(ours - theirs).max(axis=(0, 2, 3)) / size).max()
    return float(found) if np.isfinite(found) else np.inf


def seconds(given: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of the plain run and of the matrices."""
    begin = time.perf_counter()
    many = ph.ensemble(TOP, tangent=True, **given)
    middle = time.perf_counter()
    _ = many.tangent.matrix
    return middle - begin, time.perf_counter() - middle


def compared(name: str, given: dict[str, Any], limit: float) -> bool:
    """Print the differences and the rates of a case; return whether they are small enough."""
    card, processor = (ph.ensemble(TOP, tangent=True, device=device, **given) for device in ("cuda", "cpu"))
    theirs, fine = derivatives(processor), not (card.failed >= 0).any()
    for kind, ours in derivatives(card).items():
        found = difference(ours, theirs[kind])
        fine &= found <= limit
        print(f"{name}: by {kind}, largest relative difference {found:.1e} (limit {limit:.0e})")
    number = len(card.failed)
    for device in ("cuda", "cpu"):
        plain, matrices = seconds({**given, "device": device})
        print(
            f"{name}: {device}: {number / plain:.3g} bodies/s, {number / matrices:.3g} matrices/s; the matrices take "
            f"{matrices / plain:.1f} times the plain run"
        )
    print(f"{name}: {'ok' if fine else 'FAILED'}", flush=True)
    return fine


def watched(given: dict[str, Any]) -> tuple[dict[str, np.ndarray], float]:
    """Return the statistics of a second run, each (5, N), and its seconds."""
    many, passed = second(statistics=WORDS, **given)
    return {word: np.array([x.first, x.last, x.min, x.max, x.mean]) for word, x in many.statistics.items()}, passed


def last_states(given: dict[str, Any]) -> tuple[dict[str, np.ndarray], float]:
    """Return the last states of a second run by name, and its seconds."""
    many, passed = second(**given)
    return {"quaternion": many.quaternion[-1], "momentum": many.momentum[-1]} | {
        name: values[-1] for name, values in many.states.items() if values[-1].any()
    }, passed


def second(**given: Any) -> tuple[ph.Ensemble, float]:
    """Return a second run, without compilation, and its seconds."""
    ph.ensemble(TOP, **given)
    begin = time.perf_counter()
    many = ph.ensemble(TOP, **given)
    passed = time.perf_counter() - begin
    assert (many.failed < 0).all(), "a step failed"
    return many, passed


def same(name: str, run: Any, given: dict[str, Any], limit: float) -> bool:
    """Print the differences of what a run gives and the rates of a case; return whether they are small enough."""
    (ours, on_card), (theirs, on_cores) = (run({**given, "device": device}) for device in ("cuda", "cpu"))
    fine = True
    for word, values in theirs.items():
        found = float(np.abs(ours[word] - values).max() / np.abs(values).max())
        fine &= found <= limit  # false for NaN
        print(f"{name}: {word}, largest relative difference {found:.1e} (limit {limit:.0e})")
    number = len(given["omega"])
    print(f"{name}: cuda: {number / on_card:.3g} bodies/s, cpu: {number / on_cores:.3g} bodies/s")
    print(f"{name}: {'ok' if fine else 'FAILED'}", flush=True)
    return fine


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=200)
    chosen = parser.parse_args()
    rng = np.random.default_rng(3)
    start = {
        "omega": rng.normal(size=(chosen.bodies, 3)),
        "params": {"mgl": rng.uniform(0.5, 2.0, chosen.bodies)},
    }
    results = [compared(name, start | given, limit) for name, (given, limit) in cases(chosen.steps).items()]
    for run, others in ((watched, chaos_cases(chosen.steps)), (last_states, loop_cases(chosen.steps))):
        results += [same(name, run, start | given, limit) for name, (given, limit) in others.items()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
