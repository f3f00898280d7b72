"""Cost of the flow traced by JAX, as ratios within one run: python benchmarks/jax_backend.py [method ...].

For each method on the fast top: seconds of XLA compilation, nanoseconds per step, the ratio to the compiled loop of
`ph.solve`, and the cost of one forward and one reverse derivative relative to the value.
"""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp

import polhode as ph

METHODS = ("strang(symrot123)", "strang(dmv10)", "mkrk(rk4)", "imidm")
STEPS, REPEATS, DT = 1000, 7, 0.001


def best(call):
    """Seconds of the fastest of a few calls."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(call())
        found.append(time.perf_counter() - began)
    return min(found)


def compiled(function, *given):
    """The compiled function, and the seconds of compilation."""
    began = time.perf_counter()
    made = jax.jit(function).lower(*given).compile()
    return made, time.perf_counter() - began


def measure(problem, method):
    f, start = ph.jax.flow(problem, method, dt=DT, steps=STEPS), jnp.array(problem.momentum)

    def ended(momentum):
        return jnp.concatenate(f(momentum=momentum))

    def forward(momentum):
        return jax.jvp(ended, (momentum,), (momentum,))

    def backward(momentum):
        return jax.value_and_grad(lambda m: jnp.sum(ended(m)))(momentum)

    ours = best(lambda: ph.solve(problem, method, dt=DT, steps=STEPS, every=STEPS, progress=False))
    value, *slopes = (compiled(function, start) for function in (ended, forward, backward))
    seconds = best(lambda: value[0](start))
    ratios = "  ".join(f"{best(lambda made=made: made(start)) / seconds:8.2f}" for made, _ in slopes)
    compiling = "  ".join(f"{spent:6.1f}" for _, spent in (value, *slopes))
    print(f"{method:20} {1e9 * seconds / STEPS:10.0f} {seconds / ours:12.2f}  {ratios}   {compiling}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    print(f"{'method':20} {'ns/step':>10} {'over solve':>12}  forward  backward   seconds to compile all three")
    for name in sys.argv[1:] or METHODS:
        measure(ph.problems.fast_top(), name)
