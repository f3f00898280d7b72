"""The cost of sampled-data control: microseconds for each sample and body, and the ratio to a plain run.

    python benchmarks/control.py [--steps 1 10] [--bodies 10000] [--samples 20000]

A sample is a call of the controller and the steps to the next one. Processor time counts, of all threads, without
compilation; of several runs the best one counts, which removes most of the load of a shared machine. The plain run has
the same steps with a constant torque. One body keeps every step, as `ph.solve` does; many bodies keep the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
PERIOD = 0.1
METHODS = ("fem", "verner87")
TRIES = 5
START: dict[str, Any] = {"euler": ("XYZ", [0.5, 1.0, -0.7]), "omega": [0.1, -0.2, 0.3]}


def error(R: Any) -> Any:
    """Return the vector of the attitude error."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller
def pd(R: Any, omega: Any, stiffness: Any = 1.0, damping: Any = 2.0) -> Any:
    """Return the torque of PD control."""
    e = error(R)
    return [-stiffness * e[i] - damping * omega[i] for i in range(3)]


@ph.controller(wheels=ph.actuators.wheels(max_torque=0.3, max_momentum=5.0, inertia=0.01, viscous=1e-4, coulomb=1e-3))
def by_wheels(R: Any, omega: Any, wheels: Any) -> Any:
    """Return the motor torques of three wheels."""
    e = error(R)
    return {"wheels": [e[i] + 2.0 * omega[i] for i in range(3)]}


@ph.controller(jets=ph.actuators.thrusters(0.5 * np.vstack([np.eye(3), -np.eye(3)]), min_pulse=0.01))
def by_thrusters(R: Any, omega: Any, period: Any) -> Any:
    """Return the pulses of six thrusters."""
    e = error(R)
    on = [-period * (e[i] + 2.0 * omega[i]) for i in range(3)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


def in_python(R: Any, omega: Any) -> Any:
    """Return the torque of PD control, by NumPy."""
    return -np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2 - 2.0 * omega


LAWS = {"formula": pd, "three wheels": by_wheels, "six thrusters": by_thrusters, "plain Python": in_python}


def best(run: Callable[[], Any]) -> float:
    """Return the least processor time of several runs, in seconds; the first one compiles."""
    run()
    found = []
    for _ in range(TRIES):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def one_body(method: str, per: int, samples: int) -> dict[str, float]:
    """Return microseconds for each sample of one body."""
    free = ph.Problem(BODY, **START)
    pushed = ph.Problem(BODY, ph.fields.constant_torque([1e-4, 0.0, 0.0]), **START)
    run: dict[str, Any] = {"dt": PERIOD / per, "progress": False}
    found = {"plain run": best(lambda: ph.solve(pushed, method, steps=samples * per, **run)) / samples}
    for name, law in LAWS.items():
        count = samples if name != "plain Python" else samples // 10
        control = {"control": law, "period": PERIOD}
        found[name] = best(lambda c=count, o=control: ph.solve(free, method, steps=c * per, **run, **o)) / count  # type: ignore[misc]
    return {name: 1e6 * value for name, value in found.items()}


def many_bodies(method: str, per: int, number: int, samples: int) -> dict[str, float]:
    """Return microseconds for each sample and body of many bodies."""
    omega = 0.2 * np.random.default_rng(0).normal(size=(number, 3))
    free = ph.Problem(BODY, **START)
    pushed = ph.Problem(BODY, ph.fields.constant_torque([1e-4, 0.0, 0.0]), **START)
    run: dict[str, Any] = {"dt": PERIOD / per, "steps": samples * per, "omega": omega, "progress": False}
    found = {"plain run": best(lambda: ph.ensemble(pushed, method, **run))}
    for name, law in LAWS.items():
        if name != "plain Python":
            found[name] = best(lambda o=law: ph.ensemble(free, method, **run, control=o, period=PERIOD))  # type: ignore[misc]
    return {name: 1e6 * value / number / samples for name, value in found.items()}


def show(title: str, found: dict[str, float]) -> None:
    """Print one row of results."""
    plain = found["plain run"]
    cells = [f"{name} {value:.3g} ({value / plain:.2g})" for name, value in found.items()]
    print(f"{title}: {', '.join(cells)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 10], help="steps in a period")
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=20_000, help="samples of one body")
    given = parser.parse_args()
    print("microseconds of processor time for each sample and body (ratio to the plain run)")
    for method in METHODS:
        for per in given.steps:
            what = f"{method}, {per} steps in a period"
            show(f"{what}, one body", one_body(method, per, given.samples))
            show(f"{what}, {given.bodies} bodies", many_bodies(method, per, given.bodies, 100))


if __name__ == "__main__":
    main()
