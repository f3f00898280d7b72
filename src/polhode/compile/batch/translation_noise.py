"""The loop of friction and noise of the translation of many bodies, in a user's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...kernels.ornstein_uhlenbeck import decay, relaxation, relaxed
from ...kernels.so3 import rotate, scale, unit, unrotate
from ...numbers.philox import normals
from ...numbers.primitives import sqrt
from .layout import inner


def relaxing(velocities: bool) -> Callable[..., Any]:
    """The exact Ornstein-Uhlenbeck step of the momentum p (or velocity) of one body, to be compiled.

    ``relax(p, h, mass, kT, friction, seed, stream, step, vector)`` is

        e p + sqrt(kT m (1 - e^2)) xi,   e = exp(-h friction/m),

    with xi the vector of normal numbers `vector` of the step.
    """

    def relax(
        p: Any, h: Any, mass: Any, kT: Any, friction: Any, seed: Any, stream: Any, step: Any, vector: int
    ) -> Any:  # fmt: skip
        e, spread = decay(h * friction / mass, kT)
        spread *= 1 / sqrt(mass) if velocities else sqrt(mass)
        x, y, z = normals(seed, stream, step, vector)
        return e * p[0] + spread * x, e * p[1] + spread * y, e * p[2] + spread * z

    return relax


def loop(velocities: bool) -> Callable[..., Any]:
    """The step of friction and noise of all momenta p (or velocities), one row for each body, to be compiled.

    ``run(p, h, masses, kT, friction, seeds, streams, steps, vector, begin, end)``, for the bodies from `begin` to `end`
    """
    relax = inner(relaxing(velocities))

    def run(
        p: Any, h: Any, masses: Any, kT: Any, friction: Any, seeds: Any, streams: Any, steps: Any, vector: int,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        for i in range(begin, end):
            row = p[i, 0], p[i, 1], p[i, 2]
            p[i, 0], p[i, 1], p[i, 2] = relax(
                row, h[i], masses[i], kT[i], friction[i], seeds[i], streams[i], steps[i], vector
            )

    return run


def matrices_of(velocities: bool) -> Callable[..., Any]:
    """The matrices A by rows and B by columns of a body with a friction tensor, nine numbers, to be compiled.

    ``matrices(h, mass, kT, friction)``
    """

    def matrices(h: Any, mass: Any, kT: Any, f: Any) -> Any:
        system = (mass, mass, mass), (1 / mass, 1 / mass, 1 / mass)
        mean, noise = relaxation(h, kT, ((f[0], f[4], f[8]), (f[5], f[6], f[1])), system)
        unit_of = 1 / mass if velocities else 1.0
        return mean, (scale(unit_of, noise[0]), scale(unit_of, noise[1]), scale(unit_of, noise[2]))

    return matrices


@inner
def relaxed_in_body(p: Any, q: Any, mean: Any, noise: Any, xi: Any) -> Any:
    """The step of a momentum with a friction tensor in the body: R (A R^T p + B xi)."""
    attitude = unit(q)
    return rotate(attitude, relaxed(unrotate(attitude, p), mean, noise, xi))


def relaxations(velocities: bool) -> Callable[..., Any]:
    """The matrices of `turned_loop`, to be compiled: nine numbers of A by rows and nine of B by columns for each body.

    ``run(h, masses, kT, friction, matrices, begin, end)``; `friction` has nine rows, the tensors in the body.
    """
    found = inner(matrices_of(velocities))

    def run(h: Any, masses: Any, kT: Any, friction: Any, matrices: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            mean, noise = found(h[i], masses[i], kT[i], friction[:, i])
            for j in range(3):
                for k in range(3):
                    matrices[i, 3 * j + k] = mean[j][k]
                    matrices[i, 9 + 3 * j + k] = noise[j][k]

    return run


def turned_loop() -> Callable[..., Any]:
    """The exact Ornstein-Uhlenbeck step of all momenta p with friction tensors in the bodies, at fixed attitudes q.

    ``run(p, q, matrices, seeds, streams, steps, vector, begin, end)``: p <- R (A R^T p + B xi), with xi the vector of
    normal numbers `vector` of the step of a body, and the matrices of `kernels/ornstein_uhlenbeck`.
    """

    def run(
        p: Any, q: Any, matrices: Any, seeds: Any, streams: Any, steps: Any, vector: int, begin: int, end: int
    ) -> None:
        for i in range(begin, end):
            c, row = matrices[i], (p[i, 0], p[i, 1], p[i, 2])
            mean = (c[0], c[1], c[2]), (c[3], c[4], c[5]), (c[6], c[7], c[8])
            noise = (c[9], c[10], c[11]), (c[12], c[13], c[14]), (c[15], c[16], c[17])
            xi = normals(seeds[i], streams[i], steps[i], vector)
            attitude = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
            p[i, 0], p[i, 1], p[i, 2] = relaxed_in_body(row, attitude, mean, noise, xi)

    return run
