"""Molecules made of sites, periodic boxes, and the energies and temperatures of many bodies."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from .check import Cell
from .in_arrays import KINDS, MASSES, MOMENTS, NUMBER, PI, P, Q, X
from .runs import ROUND_OFF

RNG = np.random.default_rng(37)
WEIGHTS = [15.9994, 1.008, 1.008]
POINTS = np.array([[0.0, 0.0, 0.0], [0.8165, 0.5774, 0.0], [-0.8165, 0.5774, 0.0]])
WATER = ph.sites(WEIGHTS, POINTS)
BOX = ph.PeriodicBox([5.0, 6.0, 7.0])
STRENGTH = np.array([1.0, 0.5, 2.0])[:, None]
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN *= np.linalg.det(TURN)


def sites_and_bodies(cell: Cell) -> None:
    """Mass and moments of sites are those of a body of points; in other axes, from another origin, too."""
    body = ph.Body.from_points(POINTS, WEIGHTS)
    cell.close("moments", np.sort(WATER.moments), np.sort(body.moments), ROUND_OFF)
    turned = ph.sites(WEIGHTS, POINTS @ TURN.T + [3.0, -2.0, 1.0])
    cell.close("moments in other axes", np.sort(turned.moments), np.sort(WATER.moments), ROUND_OFF)
    cell.close("mass", turned.mass, sum(WEIGHTS), ROUND_OFF)


def sites_and_back(cell: Cell) -> None:
    """Positions give back centres and attitudes; wrapped into a box, too; arrays of the caller are filled alike."""
    r = WATER.positions(X, Q)
    x, q = WATER.fit(r)
    cell.close_states("fit", (q, x), (Q, X), 1e-12)
    x, q = WATER.fit(BOX.wrap(r), box=BOX)
    gap = BOX.minimum_image(WATER.positions(x, q) - r)
    cell.claim(np.abs(gap).max() < 1e-12, f"in a box, positions differ by {np.abs(gap).max()}")
    out = np.empty_like(r)
    WATER.positions(X, Q, out=out)
    cell.same("positions in a given array", out, r)
    kept = pickle.loads(pickle.dumps(WATER))
    cell.same("positions of pickled sites", kept.positions(X, Q), r)
    speeds = WATER.velocities(P / WATER.mass, Q, PI / WATER.moments)
    p, pi = WATER.gather(np.array(WEIGHTS)[:, None] * speeds, Q)
    cell.close("momentum of sites", p, P, ROUND_OFF)
    cell.close("angular momentum of sites", pi, PI, ROUND_OFF)


def forces_on_sites(cell: Cell) -> None:
    """Forces on sites give the same force and torque in both frames, and for molecules of several kinds."""
    f = RNG.normal(size=(NUMBER, 3, 3))
    force, torque = WATER.gather(f, Q)
    spatial = WATER.gather(f, Q, frame="space")
    arms = WATER.positions(X, Q) - X[:, None]
    cell.close("force", force, f.sum(axis=1), ROUND_OFF)
    cell.close("torque in space", spatial[1], np.cross(arms, f).sum(axis=1), ROUND_OFF)
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_quat(Q, scalar_first=True).apply(torque)
    cell.close("torque in the body", turned, spatial[1], ROUND_OFF)
    kinds = np.arange(NUMBER) % 2
    other = ph.sites([3.0, 2.0, 1.0], 1.5 * POINTS)
    both = ph.sites([WEIGHTS, [3.0, 2.0, 1.0]], [POINTS, 1.5 * POINTS], kinds)
    mixed = both.positions(X, Q), *both.gather(f, Q)
    for kind, alone in enumerate((WATER, other)):
        some = kinds == kind
        single = alone.positions(X[some], Q[some]), *alone.gather(f[some], Q[some])
        for what, one, whole in zip(("positions", "forces", "torques"), single, mixed, strict=True):
            cell.same(f"{what} of kind {kind}", whole[some], one)


def _springs(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
    """Every site is tied to the origin by a spring."""
    return WATER.gather(-STRENGTH * WATER.positions(x, q), q)


def _energy(x: np.ndarray, q: np.ndarray) -> float:
    return float((STRENGTH * WATER.positions(x, q) ** 2).sum() / 2)


def _moved(scheme: Any, step: float, steps: int, **more: Any) -> Any:
    stepper = ph.batch_stepper(WATER.moments, scheme, step, masses=WATER.mass)
    state = tuple(a.copy() for a in (X, P, Q, PI))
    stepper.step(*state, _springs, n=steps, **more)
    return stepper, state


def motion_of_sites(cell: Cell) -> None:
    """Molecules on springs keep their energy, go back, and move as with multiple steps that are not needed."""
    stepper, state = _moved("strang(dmv6)", 0.01, 40)
    x, p, q, pi = state
    before = _energy(X, Q) + stepper.kinetic_energy(P, PI).total.sum()
    after = _energy(x, q) + stepper.kinetic_energy(p, pi).total.sum()
    cell.close("energy", after, before, 1e-4)
    stepper.step(*state, _springs, n=40, dt=-0.01)
    for name, now, first in zip("xpq", state, (X, P, Q), strict=False):
        cell.close(f"back: {name}", now, first, 1e-11)
    plain = _moved("strang(dmv6)", 0.05, 8)[1]
    one = _moved(ph.respa("strang(dmv6)", "strang(dmv6)", 1), 0.05, 8, slow=_nothing)[1]
    for name, now, first in zip(("x", "p", "q", "pi"), one, plain, strict=True):
        cell.close(f"one inner step: {name}", now, first, ROUND_OFF)
    fine = _moved("strang(dmv6)", 0.0125, 32)[1]
    four = _moved(ph.respa("strang(dmv6)", "strang(dmv6)", 4), 0.05, 8, slow=_nothing)[1]
    for name, now, first in zip(("x", "p", "q", "pi"), four, fine, strict=True):
        cell.close(f"four inner steps: {name}", now, first, ROUND_OFF)


def _nothing(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
    return np.zeros_like(x), np.zeros_like(x)


def energies_of_functions(cell: Cell) -> None:
    """The energy that a force function returns is that of the last states, and changes no step."""

    def with_energy(t: Any, x: np.ndarray, q: np.ndarray) -> Any:
        return (*_springs(t, x, q), _energy(x, q))

    stepper = ph.batch_stepper(WATER.moments, "strang(dmv6)", 0.05, masses=WATER.mass)
    state = tuple(a.copy() for a in (X, P, Q, PI))
    stepper.step(*state, with_energy, n=8)
    cell.close("energy", stepper.potential_energy, _energy(state[0], state[2]), ROUND_OFF)
    for name, now, first in zip(("x", "p", "q", "pi"), state, _moved("strang(dmv6)", 0.05, 8)[1], strict=True):
        cell.same(name, now, first)


def boxes(cell: Cell) -> None:
    """Wrapped positions have the same nearest images, inside the box; single precision and given arrays alike."""
    x = 10 * RNG.normal(size=(NUMBER, 3))
    inside = BOX.wrap(x)
    cell.claim(((inside >= 0) & (inside < BOX.lengths)).all(), "a wrapped position is outside")
    cell.close("nearest images", BOX.minimum_image(inside - inside[:1]), BOX.minimum_image(x - x[:1]), ROUND_OFF)
    cell.same("wrapped twice", BOX.wrap(inside), inside)
    cell.same("wrapped in place", BOX.wrap(x.copy(), out=np.empty_like(x)), inside)
    kept = pickle.loads(pickle.dumps(BOX))
    cell.same("pickled", kept.wrap(x), inside)


def kinetic_energies(cell: Cell) -> None:
    """Kinetic energies and temperatures are those of the moments, from momenta, velocities and in columns."""
    base = KINDS["moving"].stepper()
    energy, heat = base.kinetic_energy(P, PI), base.temperature(P, PI, fixed=3)
    cell.close("rotation", energy.rotation, (PI**2 / MOMENTS).sum(axis=1) / 2, ROUND_OFF)
    cell.close("translation", energy.translation, (P**2).sum(axis=1) / MASSES / 2, ROUND_OFF)
    many = ph.ensemble(MOMENTS, Q, PI, "dmv6", dt=0.1, steps=1, every=1)
    cell.close("energy of an ensemble", many.energy[0], energy.rotation, ROUND_OFF)
    v, omega = P / MASSES[:, None], PI / MOMENTS
    for name, form, given in (
        ("velocities", {"vector": "omega"}, (v, omega)),
        ("columns", {"layout": "columns"}, (P.T.copy(), PI.T.copy())),
    ):
        other = KINDS["moving"].stepper(**form)
        for what, one, first in zip(energy._fields, other.kinetic_energy(*given), energy, strict=True):
            cell.close(f"{what}, {name}", one, first, ROUND_OFF)
        cell.close(f"temperatures, {name}", other.temperature(*given, fixed=3), heat, ROUND_OFF)
    turning = KINDS["free"].stepper()
    cell.same("rotation alone", turning.kinetic_energy(PI), energy.rotation)
    cell.close("temperature of rotation", turning.temperature(PI), heat.rotation, ROUND_OFF)


CELLS: dict[str, Callable[[Cell], None]] = {
    "sites and bodies": sites_and_bodies,
    "sites and back": sites_and_back,
    "forces on sites": forces_on_sites,
    "motion of sites": motion_of_sites,
    "energies of force functions": energies_of_functions,
    "boxes": boxes,
    "kinetic energies": kinetic_energies,
}
"""By name."""
