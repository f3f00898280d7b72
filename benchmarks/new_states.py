"""What a new state costs: problems, parameters and exact solutions, in microseconds of processor time and as ratios.

    python benchmarks/new_states.py

Each figure is the smallest of several measurements of many calls. The last column is the ratio to the first row, the
construction of a problem of a free body, in the same run.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph
from polhode.numbers import floats

CALLS, MEASUREMENTS = 500, 15
BODY = ph.Body([1.0, 2.0, 2.5])
TENSOR = ph.Body([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]])
ATTITUDE, MOMENTUM = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.3, 0.5, 0.7])


@ph.potential
def spring(R: Any, k: Any, a: Any) -> Any:
    """A potential of two parameters."""
    return k * R[2][2] + a * R[0][1] ** 2


@ph.torque
def drag(t: Any, omega: Any, c: Any) -> Any:
    """A torque of one parameter."""
    return (-c * omega[0] * math.cos(t), -c * omega[1], -c * omega[2])


def microseconds(call: Callable[[], Any]) -> float:
    """Processor time of one call, in microseconds."""
    call()
    found = []
    for _ in range(MEASUREMENTS):
        began = time.process_time()
        for _ in range(CALLS):
            call()
        found.append(time.process_time() - began)
    return 1e6 * min(found) / CALLS


def calls() -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    one, two = spring(1.0, 2.0), spring(1.0, 2.0) + drag(0.1)
    free, forced = (ph.Problem(BODY, field, attitude=ATTITUDE, momentum=MOMENTUM) for field in (None, one))
    stepper, state = ph.stepper(BODY, "jacobi", 1.0), (free.quaternion, free.momentum, 0.0)
    forced_stepper, fly = ph.stepper(BODY, "mkrk(rk4)", 0.1), ph.propagator(forced, step_tol=1e-6)
    start, values = (free.quaternion, free.momentum, 1.0), map(float, itertools.count(1))
    return {
        "Problem, free": lambda: ph.Problem(BODY, attitude=ATTITUDE, momentum=MOMENTUM),
        "Problem, free, tensor": lambda: ph.Problem(TENSOR, attitude=ATTITUDE, momentum=MOMENTUM),
        "Problem, from omega": lambda: ph.Problem(BODY, attitude=ATTITUDE, omega=MOMENTUM),
        "Problem, potential": lambda: ph.Problem(BODY, one, attitude=ATTITUDE, momentum=MOMENTUM),
        "Problem, sum of two fields": lambda: ph.Problem(BODY, two, attitude=ATTITUDE, momentum=MOMENTUM),
        "starting, free": lambda: free.starting(momentum=MOMENTUM),
        "starting, potential": lambda: forced.starting(momentum=MOMENTUM),
        "kernel_data, again": lambda: free.kernel_data(floats.number),
        "kernel_data, of a new problem": lambda: free.starting(momentum=MOMENTUM).kernel_data(floats.number),
        "bind": lambda: one.bind(k=3.0),
        "bind and its formula": lambda: one.bind(k=3.0).structure,
        "bind, sum of two fields": lambda: two.bind(k=3.0),
        "bind and Problem": lambda: ph.Problem(BODY, one.bind(k=3.0), momentum=MOMENTUM),
        "step": lambda: forced_stepper.step(state, one),
        "bind and step": lambda: forced_stepper.step(state, one.bind(k=1 / next(values))),
        "bind and step, sum of two fields": lambda: forced_stepper.step(state, two.bind(k=1 / next(values))),
        "run to a tolerance": lambda: fly(*start),
        "run with new parameters": lambda: fly(*start, params={"k": 1 / next(values)}),
        "exact, one time": lambda: ph.exact(free, 1.0),
        "starting and exact": lambda: ph.exact(free.starting(momentum=MOMENTUM), 1.0),
        "exact step of a stepper": lambda: stepper.step(state),
    }


def main() -> None:
    """Print the table."""
    times = {name: microseconds(call) for name, call in calls().items()}
    unit = next(iter(times.values()))
    for name, value in times.items():
        print(f"{name:32} {value:8.2f} us {value / unit:8.2f}")


if __name__ == "__main__":
    main()
