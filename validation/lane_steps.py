"""Time and steps of ensembles to a tolerance with Taylor steps and with each pair: the constants of `lane_steps`.

    python validation/lane_steps.py

For four fields: processor time per body, steps and step tolerance at equal errors at the end (95 % of the bodies).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import polhode as ph
from polhode.methods.families.taylor import taylor
from polhode.physics.taylor_steps import motion_series
from polhode.run.ensemble import api
from polhode.run.ensemble.lane_steps import lane_order
from polhode.run.ensemble.tolerance import Ends, distances
from polhode.run.step_control import torque_flops

NUMBER, END = 4096, 10.0


@ph.potential
def weight(R: Any, *, k: float) -> Any:
    """The heavy top."""
    return k * R[2][2]


@ph.potential
def quadratic(R: Any, *, k: float) -> Any:
    """A potential as of a gravity gradient."""
    return k * (R[2][0] ** 2 + 2 * R[2][1] ** 2 + 3 * R[2][2] ** 2)


@ph.torque(frame="body")
def driven(t: Any, R: Any, omega: Any, *, k: float) -> Any:
    """A driven top with friction."""
    sine, cosine = ph.math.sin(2 * t), ph.math.cos(t)
    return k * sine * R[2][1] - 0.1 * omega[0], k * cosine * R[2][0] - 0.1 * omega[1], -0.1 * omega[2]


@ph.torque(frame="body")
def mixture(t: Any, R: Any, omega: Any, *, k: float) -> Any:
    """Functions, quotients and powers of everything that moves."""
    d = 2 + R[2][2] + 0.3 * ph.math.sin(2 * t) * R[0][1]
    push = k * ph.math.exp(-d) + ph.math.log(d) / d**3
    return push * R[2][1], ph.math.sqrt(d) * R[0][2] - k * omega[1] / (1 + omega[2] ** 2), ph.math.atan2(R[1][0], d)


KINDS = {
    "taylor": lambda tolerance: taylor(lane_order(tolerance)),
    "verner87": lambda tolerance: ph.methods["verner87"],
    "enright_verner76": lambda tolerance: ph.methods["enright_verner76"],
}


def bodies() -> dict[str, Any]:
    """Tops as in `benchmarks/race/crowds.py`."""
    rng = np.random.default_rng(2)
    half, momenta = rng.uniform(0.05, 0.5, NUMBER), rng.normal(scale=0.5, size=(NUMBER, 3))
    momenta[:, 2] += rng.uniform(3, 8, NUMBER)
    attitudes = np.stack([np.cos(half), np.sin(half), 0 * half, 0 * half], axis=1)
    return {"bodies": rng.uniform(1, 1.9, (NUMBER, 3)), "attitudes": attitudes, "momenta": momenta,
            "params": {"k": rng.uniform(0.5, 2, NUMBER)}}  # fmt: skip


def ends(many: ph.Ensemble) -> Ends:
    """Return the final states of a run."""
    size = np.linalg.norm(many.momentum, axis=-1).max(0)
    number, nothing = len(many.failed), np.empty((len(many.failed), 0))
    path, tolerances = nothing[..., None], np.zeros(number)
    return Ends(many.quaternion[-1], many.momentum[-1], many.steps, size, many.failed, nothing, path, tolerances)


def measured(field: Any, kind: str, given: dict[str, Any], reference: Ends) -> None:
    """Print nanoseconds, steps and step tolerance for some errors, interpolated."""
    api.adaptive_method = lambda field, tolerance, *_, **named: KINDS[kind](tolerance)
    rows = []
    for exponent in range(-1, -13, -1):
        seconds = np.inf
        for _ in range(6):
            began = time.process_time()
            many = ph.ensemble(**given, field=field, step_tol=10.0**exponent, t_end=END, max_step=END)
            seconds = min(seconds, time.process_time() - began)
        error = np.quantile(distances(ends(many), reference), 0.95)
        rows.append((-np.log10(error), 1e9 * seconds / NUMBER, many.steps.mean(), exponent))
    digits, *columns = np.transpose(rows)
    for wanted in (2, 3, 4, 6, 8, 9, 10, 12):
        ns, steps, exponent = (np.interp(wanted, np.maximum.accumulate(digits), column) for column in columns)
        print(f"  {kind:17s} 1e-{wanted:<2d} {ns:6.0f} ns, {steps:5.1f} steps of 1e{exponent:.1f}", flush=True)


def main() -> None:
    """Measure and print."""
    given = bodies()
    for field in (weight, quadratic, driven, mixture):
        bound = field(k=1.0)
        print(f"{bound.name}: {torque_flops(bound)} operations, {motion_series(bound, False).terms} terms", flush=True)
        api.adaptive_method = lambda field, tolerance, *_, **named: KINDS["taylor"](tolerance)
        reference = ends(ph.ensemble(**given, field=field, step_tol=1e-15, t_end=END, max_step=END))
        for kind in KINDS:
            measured(field, kind, given, reference)


if __name__ == "__main__":
    main()
