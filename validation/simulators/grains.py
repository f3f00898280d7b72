"""Grains of three spheres that fall into a heap, with a contact law of the caller.

The law is a linear spring and a dashpot along the normal of each contact (Cundall and Strack 1979, without friction).
It depends on velocities, so the loop makes the kicks itself: half a drift, forces, a kick, half a drift. Without
dashpots this is the leapfrog scheme, and the energy is conserved.

    python -m validation.simulators.grains
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

import polhode as ph

GRAIN = ph.sites([1.0, 1.0, 1.0], [[0.6, 0.0, 0.0], [-0.3, 0.5, 0.0], [-0.3, -0.5, 0.0]])
RADIUS, GRAVITY, STIFFNESS = 0.5, 1.0, 2000.0
SPHERES = 3


class Heap(NamedTuple):
    """Centres, momenta, attitudes and angular momenta of grains."""

    x: np.ndarray
    p: np.ndarray
    q: np.ndarray
    pi: np.ndarray


def dropped(edge: int, seed: int = 6) -> Heap:
    """Return edge^3 grains at rest, above the floor z = 0."""
    rng, gap = np.random.default_rng(seed), 2.6
    x = (np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * gap
    q = rng.normal(size=(len(x), 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    return Heap(x + rng.normal(size=x.shape) * 0.02, np.zeros_like(x), q, np.zeros_like(x))


def contacts(heap: Heap, damping: float, width: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return force and torque of all grains, and the potential energy; walls stand at 0 and `width` in x and y."""
    r = GRAIN.positions(heap.x, heap.q).reshape(-1, 3)
    v = GRAIN.velocities(heap.p / GRAIN.mass, heap.q, heap.pi / GRAIN.moments).reshape(-1, 3)
    forces = np.zeros_like(r)
    i, j = cKDTree(r).query_pairs(2 * RADIUS, output_type="ndarray").T
    other = i // SPHERES != j // SPHERES
    i, j = i[other], j[other]
    d = r[i] - r[j]
    distance = np.linalg.norm(d, axis=1)
    normal, overlap = d / distance[:, None], 2 * RADIUS - distance
    pushed = (STIFFNESS * overlap - damping * ((v[i] - v[j]) * normal).sum(axis=1))[:, None] * normal
    np.add.at(forces, i, pushed)
    np.add.at(forces, j, -pushed)
    energy = STIFFNESS / 2 * (overlap**2).sum() + GRAIN.mass * GRAVITY * heap.x[:, 2].sum()
    for axis, wall, inward in ((2, 0.0, 1), (0, 0.0, 1), (0, width, -1), (1, 0.0, 1), (1, width, -1)):
        depth = np.maximum(RADIUS - inward * (r[:, axis] - wall), 0)
        forces[:, axis] += inward * STIFFNESS * depth - damping * v[:, axis] * (depth > 0)
        energy += STIFFNESS / 2 * (depth**2).sum()
    force, torque = GRAIN.gather(forces.reshape(-1, SPHERES, 3), heap.q)
    force[:, 2] -= GRAIN.mass * GRAVITY
    return force, torque, float(energy)


def kinetic(heap: Heap) -> float:
    """Kinetic energy."""
    return float((heap.p**2).sum() / (2 * GRAIN.mass) + (heap.pi**2 / GRAIN.moments).sum() / 2)


def run(edge: int, steps: int, damping: float, dt: float = 0.002) -> tuple[Heap, np.ndarray]:
    """Return the grains after some steps, and kinetic and total energy every ten steps."""
    heap, width = dropped(edge), 2.6 * edge
    free = ph.batch_stepper(GRAIN.moments, "dmv4", dt / 2, masses=GRAIN.mass)
    found = []
    for k in range(steps):
        free.step(*heap)
        force, torque, energy = contacts(heap, damping, width)
        if k % 10 == 0:  # in the middle of the kick, where positions and momenta belong to one time
            middle = heap._replace(p=heap.p + dt / 2 * force, pi=heap.pi + dt / 2 * torque)
            found.append((kinetic(middle), kinetic(middle) + energy))
        heap.p[:], heap.pi[:] = heap.p + dt * force, heap.pi + dt * torque
        free.step(*heap)
    return heap, np.array(found)


def main() -> None:
    """Print how the energy is kept without dashpots, and lost with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edge", type=int, default=8, help="number of grains along each edge of the block that falls")
    parser.add_argument("--steps", type=int, default=10_000)
    given = parser.parse_args()
    for damping in (0.0, 5.0):
        heap, energy = run(given.edge, given.steps, damping)
        print(
            f"{given.edge**3} grains, dashpot {damping:g}: kinetic energy at most {energy[:, 0].max():.4g}, at the end "
            f"{energy[-1, 0]:.4g}; total {energy[0, 1]:.6g} at the start, {energy[-1, 1]:.6g} at the end; lowest "
            f"centre {heap.x[:, 2].min():.3f}"
        )


if __name__ == "__main__":
    main()
