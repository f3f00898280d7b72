"""The simulators of validation/, with small numbers: water, dimers, grains and drones."""

import numpy as np
import pytest
from validation.simulators import dimers, drone, grains
from validation.simulators.forces import Forces, Model, shift
from validation.simulators.water import FS, SPCE, WATER, State, kelvin_of, kinetic, lattice, nve, nvt

import polhode as ph

SMALL = Model(charges=SPCE.charges, epsilon=SPCE.epsilon, sigma=SPCE.sigma, cutoff=4.0, lj_inner=3.2)
"""Water with a cut-off that fits a box of 64 molecules."""

NUMBER = 64


@pytest.fixture(scope="module")
def liquid() -> tuple[State, ph.PeriodicBox]:
    state, box = lattice(NUMBER)
    stepper = ph.batch_stepper(WATER.moments, "strang(dmv6)", 0.5 * FS, masses=WATER.mass)
    for _ in range(20):
        stepper.step(*state, Forces(WATER, box, SMALL, skin=0.4), n=20)
        scale = np.sqrt(298.0 / np.array(kelvin_of(state)))
        state.p[:], state.pi[:] = state.p * scale[0], state.pi * scale[1]
    return state, box


def pairs(state: State, box: ph.PeriodicBox, model: Model) -> float:
    """The potential energy, by a loop over all pairs of sites."""
    r, rc, total = WATER.positions(state.x, state.q), model.cutoff, 0.0
    s6 = model.sigma**6
    for i in range(len(r)):
        for j in range(i):
            for a in range(3):
                for b in range(3):
                    d = float(np.linalg.norm(box.minimum_image(r[i, a] - r[j, b])))
                    if d >= rc:
                        continue
                    A, B, C = shift(1 / rc, -1 / rc**2, 2 / rc**3, rc)
                    total += 332.06371 * model.charges[a] * model.charges[b] * (1 / d + A / 3 * d**3 + B / 4 * d**4 + C)
                    if a == b == 0:
                        c6, c12, u = 4 * model.epsilon * s6, 4 * model.epsilon * s6**2, max(d - model.lj_inner, 0)
                        E = c12 / rc**12 - c6 / rc**6
                        first, second = -12 * c12 / rc**13 + 6 * c6 / rc**7, 156 * c12 / rc**14 - 42 * c6 / rc**8
                        A, B, C = shift(E, first, second, rc - model.lj_inner)
                        total += c12 / d**12 - c6 / d**6 + A / 3 * u**3 + B / 4 * u**4 + C
    return total


def test_the_cut_off_is_smooth() -> None:
    """Energy, force and its derivative vanish at the cut-off, for E = 1/r from 2 to 3."""
    A, B, C = shift(1 / 3, -1 / 9, 2 / 27, 1.0)
    assert pytest.approx(0, abs=1e-15) == 1 / 3 + A / 3 + B / 4 + C
    assert pytest.approx(0, abs=1e-15) == -1 / 9 + A + B
    assert pytest.approx(0, abs=1e-15) == 2 / 27 + 2 * A + 3 * B


def test_the_energy_is_that_of_all_pairs(liquid: tuple[State, ph.PeriodicBox]) -> None:
    state, box = liquid
    forces = Forces(WATER, box, SMALL, skin=0.4)
    forces.on_sites(state.x, state.q)
    assert forces.energy == pytest.approx(pairs(state, box, SMALL), rel=1e-12)


def test_forces_are_the_gradient_of_the_energy(liquid: tuple[State, ph.PeriodicBox]) -> None:
    state, box = liquid
    forces, h = Forces(WATER, box, SMALL, skin=0.4), 1e-5
    force, _ = forces(0.0, state.x, state.q)
    for molecule, axis in ((0, 0), (17, 1), (63, 2)):
        ends = []
        for sign in (1, -1):
            x = state.x.copy()
            x[molecule, axis] += sign * h
            forces(0.0, x, state.q)
            ends.append(forces.energy)
        assert force[molecule, axis] == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5, abs=1e-5)


def test_water_keeps_its_energy_and_more_so_at_higher_order(liquid: tuple[State, ph.PeriodicBox]) -> None:
    state, box = liquid
    spreads = {}
    for method in ("strang(dmv6)", "blanes_moan4(dmv6)"):
        run = nve(state.copy(), Forces(WATER, box, SMALL, skin=0.4), method, 2.0, 100)
        spreads[method] = float(np.ptp(run.energy)) / (kinetic(state)[0] + kinetic(state)[1])
    assert spreads["strang(dmv6)"] < 5e-3
    assert spreads["blanes_moan4(dmv6)"] < spreads["strang(dmv6)"] / 20


def test_fast_and_slow_forces_of_water(liquid: tuple[State, ph.PeriodicBox]) -> None:
    """Lennard-Jones forces every two steps of the Coulomb forces; together they are those of the model."""
    state, box = liquid
    coulomb, lj, both = (
        Forces(WATER, box, SMALL, skin=0.4, **parts) for parts in ({"lj": False}, {"coulomb": False}, {})
    )
    for one, two, whole in zip(*(f(0.0, state.x, state.q) for f in (coulomb, lj, both)), strict=True):
        np.testing.assert_allclose(one + two, whole, atol=1e-10)
    stepper = ph.batch_stepper(WATER.moments, ph.respa(*["strang(dmv6)"] * 2, 2), 2 * FS, masses=WATER.mass)
    moving = state.copy()
    energies = []
    for _ in range(30):
        stepper.step(*moving, coulomb, slow=lj)
        energies.append(sum(kinetic(moving)) + coulomb.energy + lj.energy)
    assert np.ptp(energies) < 5e-3 * sum(kinetic(state))


def test_the_heat_bath_brings_water_to_its_temperature(liquid: tuple[State, ph.PeriodicBox]) -> None:
    """From half the temperature; the mean over 1.5 ps scatters by 7 K."""
    state, box = liquid
    cold = state.copy()
    cold.p[:], cold.pi[:] = cold.p / np.sqrt(2), cold.pi / np.sqrt(2)
    kelvin = nvt(cold, Forces(WATER, box, SMALL, skin=0.4), 1.0, 2000, 298.0, rate=0.02)
    assert np.abs(kelvin[50:].mean(axis=0) - 298.0).max() < 25.0


def test_dimers_keep_their_energy() -> None:
    energy, _ = dimers.energies(216, 100)
    assert np.ptp(energy) < 2e-3


def test_grains_keep_their_energy_and_lose_it_by_dashpots() -> None:
    _, kept = grains.run(2, 1500, 0.0)
    heap, lost = grains.run(2, 1500, 5.0)
    assert kept[:, 0].max() > 20
    assert np.ptp(kept[:, 1]) < 2e-3 * kept[0, 1]
    assert lost[-1, 1] < 0.8 * lost[0, 1]
    assert heap.x[:, 2].min() > 0.3


def test_drones_reach_their_attitude() -> None:
    angles = drone.flown(50, 3.0)
    assert angles[0].mean() > 1.5
    assert angles[-1].max() < np.radians(1.0)
