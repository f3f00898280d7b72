"""The loop of friction and noise of the translation of many bodies, in a user's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...kernels.ornstein_uhlenbeck import decay
from ...numbers.philox import normals
from ...numbers.primitives import sqrt


def loop(velocities: bool) -> Callable[..., Any]:
    """The exact Ornstein-Uhlenbeck step of all momenta p (or velocities), one row for each body, to be compiled.

    ``run(p, h, masses, kT, friction, seeds, streams, steps, vector, begin, end)``: each body from `begin` to `end`
    makes

        p <- e p + sqrt(kT m (1 - e^2)) xi,   e = exp(-h friction/m),

    with xi the vector of normal numbers `vector` of its step.
    """

    def run(
        p: Any, h: Any, masses: Any, kT: Any, friction: Any, seeds: Any, streams: Any, steps: Any, vector: int,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        for i in range(begin, end):
            e, spread = decay(h[i] * friction[i] / masses[i], kT[i])
            spread *= 1 / sqrt(masses[i]) if velocities else sqrt(masses[i])
            x, y, z = normals(seeds[i], streams[i], steps[i], vector)
            p[i, 0] = e * p[i, 0] + spread * x
            p[i, 1] = e * p[i, 1] + spread * y
            p[i, 2] = e * p[i, 2] + spread * z

    return run
