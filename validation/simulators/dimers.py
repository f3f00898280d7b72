"""64,000 Lennard-Jones dimers at constant energy, in reduced units: linear molecules, which have one moment of zero.

python -m validation.simulators.dimers
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from validation.simulators.forces import Forces, Model

import polhode as ph

DIMER = ph.sites([1.0, 1.0], [[0.0, 0.0, -0.3], [0.0, 0.0, 0.3]])
LENNARD_JONES = Model(charges=(), epsilon=1.0, sigma=1.0, cutoff=2.5, lj_inner=2.0, lj_sites=2)
DENSITY, TEMPERATURE = 0.25, 1.0


def start(number: int, seed: int = 2) -> tuple[tuple[np.ndarray, ...], ph.PeriodicBox]:
    """Return dimers of random directions on a lattice, with momenta of Maxwell; `number` must be a cube."""
    edge, rng = round(number ** (1 / 3)), np.random.default_rng(seed)
    length = (edge**3 / DENSITY) ** (1 / 3)
    x = (np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * length / edge
    q = rng.normal(size=(len(x), 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    p = rng.normal(size=(len(x), 3)) * np.sqrt(TEMPERATURE * DIMER.mass)
    pi = rng.normal(size=(len(x), 3)) * np.sqrt(TEMPERATURE * DIMER.moments)  # none about the axis
    return (x, p - p.mean(axis=0), q, pi), ph.PeriodicBox(length)


def energies(number: int, steps: int, dt: float = 0.004, method: str = "strang(jacobi)") -> tuple[np.ndarray, float]:
    """Return the energy of a dimer every ten steps, and the time of a dimer and step in seconds."""
    state, box = start(number)
    forces = Forces(DIMER, box, LENNARD_JONES, skin=0.3)
    stepper = ph.batch_stepper(DIMER.moments, method, dt, masses=DIMER.mass)
    turning = np.divide(0.5, DIMER.moments, out=np.zeros(3), where=DIMER.moments > 0)
    found, begin = [], time.perf_counter()
    for _ in range(steps // 10):
        stepper.step(*state, forces, n=10)
        _, p, _, pi = state
        found.append((forces.energy + (p**2).sum() / (2 * DIMER.mass) + (pi**2 * turning).sum()) / len(p))
    return np.array(found), (time.perf_counter() - begin) / (steps * len(p))


def main() -> None:
    """Print how well the energy is kept, and the time of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=64_000, help="a cube of a whole number")
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    energy, seconds = energies(given.number, given.steps)
    print(
        f"{given.number} dimers, {given.steps} steps: energy of a dimer {energy[0]:.6f} at the start, "
        f"{energy[-1]:.6f} at the end, {energy.min():.6f} to {energy.max():.6f}; {1e6 * seconds:.2f} microseconds for "
        "a dimer and step"
    )


if __name__ == "__main__":
    main()
