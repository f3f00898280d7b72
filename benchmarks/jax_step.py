"""Cost of one step in a user's own JAX loop: python benchmarks/jax_step.py [method ...].

1000 free bodies that turn with 7 rad/s for 2 s, their states in single precision, in jit(scan(vmap(step))). For each
method: nanoseconds of a body and step, the same with the gradient of the final states by the initial ones, and the
angle by which the final attitudes are wrong (root mean square). First, semi-implicit Euler written by hand.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import polhode as ph

Step = Callable[[Any, Any, Any], tuple[Any, Any]]
"""A step: attitude, angular velocity and torque -> attitude and angular velocity after it."""

METHODS = ("fem", "buss2", "lietaylor(2)", "strang(dmv4)")
BODIES, STEPS, DT, REPEATS = 1000, 200, 0.01, 5
INERTIA = np.array([0.0021, 0.0023, 0.0040], dtype=np.float32)


def by_hand(q: Any, omega: Any, torque: Any) -> tuple[Any, Any]:
    """Semi-implicit Euler: the new angular velocity turns the body."""
    omega = omega + DT * (torque - jnp.cross(omega, INERTIA * omega)) / INERTIA
    w, v, half = q[0], q[1:], DT / 2 * omega
    q = q + jnp.append(-v @ half, w * half + jnp.cross(v, half))
    return q / jnp.linalg.norm(q), omega


@ph.torque
def held(u: Any) -> tuple[Any, Any, Any]:
    """A torque that is held over a step, in the body frame."""
    return (u[0], u[1], u[2])


def step_of(method: str) -> Step:
    """The step of a method, from single precision to single precision."""
    problem = ph.Problem(ph.Body(INERTIA.astype(float)), held(u=[0.0, 0.0, 0.0]), momentum=[0.0, 0.0, 0.0])
    f = ph.jax.flow(problem, method, dt=DT, steps=1)

    def step(q: Any, omega: Any, torque: Any) -> tuple[Any, Any]:
        with jax.enable_x64(True):
            q, momentum, torque = (x.astype(jnp.float64) for x in (q, INERTIA * omega, torque))
            q, momentum = f(attitude=q, momentum=momentum, params={"u": torque})
            return q.astype(jnp.float32), (momentum / INERTIA).astype(jnp.float32)

    return step


def final(step: Step, omega: Any) -> tuple[Any, Any]:
    """Attitudes and angular velocities after all steps."""
    begin = jnp.zeros((BODIES, 4)).at[:, 0].set(1.0), omega

    def advance(state: Any, _: None) -> tuple[Any, None]:
        return jax.vmap(step)(*state, jnp.zeros((BODIES, 3))), None

    return jax.lax.scan(advance, begin, None, length=STEPS)[0]


def nanoseconds(function: Callable[..., Any], *given: Any) -> float:
    """The fastest of a few calls, for a body and step."""
    found = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        jax.block_until_ready(function(*given))
        found.append(time.perf_counter() - began)
    return 1e9 * min(found[1:]) / (BODIES * STEPS)


def main(methods: Sequence[str]) -> None:
    """Print a line for each method."""
    omega = np.random.default_rng(1).normal(size=(BODIES, 3))
    omega = (7 * omega / np.linalg.norm(omega, axis=1)[:, None]).astype(np.float32)
    moments, start = INERTIA.astype(float), np.tile([1.0, 0.0, 0.0, 0.0], (BODIES, 1))
    exact = ph.ensemble(moments, start, omega * moments, "jacobi", dt=STEPS * DT, steps=1).quaternion[-1]
    print(f"{'method':20} {'step':>8} {'gradient':>9} ns   {'error, rad':>10}")
    for name in ("by hand", *methods):
        step = by_hand if name == "by hand" else step_of(name)
        value = jax.jit(lambda omega, step=step: final(step, omega))
        slope = jax.jit(jax.grad(lambda omega, step=step: sum(x.sum() for x in final(step, omega))))
        q = np.asarray(value(omega)[0], dtype=float)
        angle = 2 * np.sqrt(np.maximum(1 - np.einsum("ni,ni->n", q, exact) ** 2 / (q**2).sum(axis=1), 0))
        cost = f"{nanoseconds(value, omega):8.0f} {nanoseconds(slope, omega):9.0f}"
        print(f"{name:20} {cost}    {np.sqrt((angle**2).mean()):10.2g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or METHODS)
