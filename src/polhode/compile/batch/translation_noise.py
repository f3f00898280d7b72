"""The loop of friction and noise of the translation of many bodies, in a user's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...kernels.ornstein_uhlenbeck import decay
from ...numbers.philox import normals
from ...numbers.primitives import sqrt
from .layout import inner


def relaxing(velocities: bool) -> Callable[..., Any]:
    """The exact Ornstein-Uhlenbeck step of the momentum p (or velocity) of one body, to be compiled.

    ``relaxed(p, h, mass, kT, friction, seed, stream, step, vector)`` is

        e p + sqrt(kT m (1 - e^2)) xi,   e = exp(-h friction/m),

    with xi the vector of normal numbers `vector` of the step.
    """

    def relaxed(
        p: Any, h: Any, mass: Any, kT: Any, friction: Any, seed: Any, stream: Any, step: Any, vector: int
    ) -> Any:  # fmt: skip
        e, spread = decay(h * friction / mass, kT)
        spread *= 1 / sqrt(mass) if velocities else sqrt(mass)
        x, y, z = normals(seed, stream, step, vector)
        return e * p[0] + spread * x, e * p[1] + spread * y, e * p[2] + spread * z

    return relaxed


def loop(velocities: bool) -> Callable[..., Any]:
    """The step of friction and noise of all momenta p (or velocities), one row for each body, to be compiled.

    ``run(p, h, masses, kT, friction, seeds, streams, steps, vector, begin, end)``, for the bodies from `begin` to `end`
    """
    relaxed = inner(relaxing(velocities))

    def run(
        p: Any, h: Any, masses: Any, kT: Any, friction: Any, seeds: Any, streams: Any, steps: Any, vector: int,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        for i in range(begin, end):
            row = p[i, 0], p[i, 1], p[i, 2]
            p[i, 0], p[i, 1], p[i, 2] = relaxed(
                row, h[i], masses[i], kT[i], friction[i], seeds[i], streams[i], steps[i], vector
            )

    return run
