"""Rigid water (SPC/E) at 298 K with forces that are cut off at 9 angstrom.

Lengths in angstrom, masses in g/mol, energies in kcal/mol; the unit of time that follows is 48.888 fs.

    python -m validation.simulators.water            # NVE over 1e5 steps, and NVT
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from validation.simulators.forces import Forces, Model

import polhode as ph

FS = 1 / 48.88821291
"""A femtosecond."""

KB = 0.0019872067
"""Boltzmann's constant in kcal/mol/K."""

DENSITY = 0.0334
"""Molecules in a cubic angstrom."""

ANGLE = np.arccos(-1 / 3) / 2
GEOMETRY = [[0.0, 0.0, 0.0], [np.sin(ANGLE), np.cos(ANGLE), 0.0], [-np.sin(ANGLE), np.cos(ANGLE), 0.0]]
WATER = ph.sites([15.9994, 1.008, 1.008], GEOMETRY)
SPCE = Model(charges=(-0.8476, 0.4238, 0.4238), epsilon=0.15535, sigma=3.166, cutoff=9.0, lj_inner=7.5)


class State(NamedTuple):
    """Centres, momenta, attitudes and angular momenta of all molecules."""

    x: np.ndarray
    p: np.ndarray
    q: np.ndarray
    pi: np.ndarray

    def copy(self) -> State:
        """Copy all arrays."""
        return State(*(array.copy() for array in self))


def velocities(rng: np.random.Generator, number: int, kT: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw momenta and angular momenta from the distribution of Maxwell, without total momentum."""
    p = rng.normal(size=(number, 3)) * np.sqrt(WATER.mass * kT)
    return p - p.mean(axis=0), rng.normal(size=(number, 3)) * np.sqrt(WATER.moments * kT)


def lattice(number: int, seed: int = 1, kelvin: float = 298.0) -> tuple[State, ph.PeriodicBox]:
    """Return molecules of random attitudes on a simple cubic lattice; `number` must be a cube."""
    edge = round(number ** (1 / 3))
    assert edge**3 == number
    rng, length = np.random.default_rng(seed), (number / DENSITY) ** (1 / 3)
    x = (np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * length / edge
    q = rng.normal(size=(number, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    return State(x, *_ordered(velocities(rng, number, KB * kelvin), q)), ph.PeriodicBox(length)


def _ordered(momenta: tuple[np.ndarray, np.ndarray], q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return momenta[0], q, momenta[1]


def kinetic(state: State) -> tuple[float, float]:
    """Kinetic energies of translation and rotation."""
    return float((state.p**2).sum() / (2 * WATER.mass)), float((state.pi**2 / WATER.moments).sum() / 2)


def kelvin_of(state: State) -> tuple[float, float]:
    """Temperatures of translation and rotation."""
    moving, turning = kinetic(state)
    number = len(state.x)
    return 2 * moving / (3 * (number - 1) * KB), 2 * turning / (3 * number * KB)


def equilibrated(state: State, forces: Forces, *, kelvin: float = 298.0, dt: float = 1.0, rounds: int = 200) -> State:
    """Run 25 steps between new velocities of Maxwell, `rounds` times."""
    stepper = ph.batch_stepper(WATER.moments, "strang(dmv6)", dt * FS, masses=WATER.mass)
    rng = np.random.default_rng(3)
    for k in range(rounds):
        stepper.step(*state, forces, n=25, dt=min(dt, 0.1 * (k + 1)) * FS)
        state.p[:], state.pi[:] = velocities(rng, len(state.x), KB * kelvin)
    return state


class Run(NamedTuple):
    """Times in ps, energies in kcal/mol, temperatures of translation and rotation in K.

    `seconds` is the processor time of a step.
    """

    t: np.ndarray
    energy: np.ndarray
    kelvin: np.ndarray
    seconds: float

    def drift(self, number: int) -> tuple[float, float]:
        """Drift of the energy in K/ns for each degree of freedom, E = f kB T/2, and its standard error.

        The error is that of a line through the means of ten parts of the run, which are nearly independent.
        """
        f = 6 * number - 3
        t, E = (np.array([part.mean() for part in np.array_split(a, 10)]) for a in (self.t, self.energy))
        (slope, _), cov = np.polyfit(t, E, 1, cov=True)
        scale = 2 / (f * KB) * 1e3
        return float(slope * scale), float(np.sqrt(cov[0, 0]) * scale)

    def fluctuation(self, number: int) -> float:
        """Root mean square of the deviations of the energy from its line, in K for each degree of freedom."""
        line = np.polyval(np.polyfit(self.t, self.energy, 1), self.t)
        return float((self.energy - line).std() * 2 / ((6 * number - 3) * KB))


def nve(state: State, forces: Forces, method: str, dt: float, steps: int, every: int = 10) -> Run:
    """Run at constant energy, `dt` in fs; keep the energy every few steps."""
    stepper = ph.batch_stepper(WATER.moments, method, dt * FS, masses=WATER.mass)
    rows = []
    stepper.step(*state.copy(), forces)  # compiles
    begin = time.process_time()
    for k in range(0, steps, every):
        stepper.step(*state, forces, n=every)
        rows.append(((k + every) * dt * 1e-3, sum(kinetic(state)) + forces.energy, *kelvin_of(state)))
    seconds = (time.process_time() - begin) / steps
    table = np.array(rows)
    return Run(table[:, 0], table[:, 1], table[:, 2:], seconds)


def nvt(
    state: State, forces: Forces, dt: float, steps: int, kelvin: float, *, rate: float = 1e-3, every: int = 10,
    seed: int = 5,
) -> np.ndarray:  # fmt: skip
    """Run Langevin dynamics and return temperatures of translation and rotation; `dt` in fs, `rate` in 1/fs.

    A step is BAOAB (Leimkuhler and Matthews 2013): half a kick, half a drift, friction and noise, and the same in
    reverse. The drifts are those of the stepper. The friction is `rate` times mass and inertia, so the momenta decay by
    one factor, and friction and noise are exact: p <- c p + sqrt(kT m (1 - c^2)) xi, c = exp(-rate dt).

    The temperatures are those at the ends of the steps, where BAOAB has an error of order 2: with 1, 2 and 4 fs the
    rotation of water is too cold by 1, 4 and 14 K at 298 K.
    """
    free = ph.batch_stepper(WATER.moments, "dmv6", dt * FS / 2, masses=WATER.mass)
    rng, half = np.random.default_rng(seed), dt * FS / 2
    decay = np.exp(-rate * dt)
    spread = np.sqrt(KB * kelvin * (1 - decay**2))
    force, torque = forces(0.0, state.x, state.q)
    found = []
    for k in range(steps):
        state.p[:], state.pi[:] = state.p + half * force, state.pi + half * torque
        free.step(*state)
        for momenta, inertia in ((state.p, WATER.mass), (state.pi, WATER.moments)):
            momenta[:] = decay * momenta + spread * np.sqrt(inertia) * rng.normal(size=momenta.shape)
        free.step(*state)
        force, torque = forces(0.0, state.x, state.q)
        state.p[:], state.pi[:] = state.p + half * force, state.pi + half * torque
        if (k + 1) % every == 0:
            moving, turning = kinetic(state)
            found.append([2 * e / (3 * len(state.x) * KB) for e in (moving, turning)])  # the bath moves the centre, too
    return np.array(found)


def main() -> None:
    """Print the drift at constant energy and the temperatures at constant temperature."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--method", default="strang(dmv6)")
    parser.add_argument("--dt", type=float, default=2.0, help="step in fs")
    given = parser.parse_args()
    state, box = lattice(512)
    forces = Forces(WATER, box, SPCE)
    state = equilibrated(state, forces)
    run = nve(state.copy(), forces, given.method, given.dt, given.steps)
    drift, error = run.drift(512)
    print(
        f"NVE, {given.method}, {given.dt:g} fs, {given.steps} steps: drift {drift:.3f} +- {error:.3f} K/ns, "
        f"fluctuation {run.fluctuation(512):.2e} K, temperatures {run.kelvin.mean(axis=0).round(1).tolist()} K, "
        f"{run.seconds / 512 * 1e6:.1f} microseconds for a molecule and step",
        flush=True,
    )
    kelvin = nvt(state, forces, given.dt, given.steps // 5, 298.0)
    print(f"NVT at 298 K: temperatures {kelvin[len(kelvin) // 4 :].mean(axis=0).round(2).tolist()} K")


if __name__ == "__main__":
    main()
