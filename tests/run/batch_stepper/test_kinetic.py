"""Kinetic energies and temperatures of many bodies, in the arrays of the caller."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polhode as ph

N, KB = 7, 0.0019872
RNG = np.random.default_rng(11)
MOMENTS = RNG.uniform(1.0, 1.9, (N, 3))
AXES = np.linalg.qr(RNG.normal(size=(N, 3, 3)))[0]
TENSORS = np.einsum("nij,nj,nkj->nik", AXES, MOMENTS, AXES)
MASSES = RNG.uniform(1.0, 2.0, N)
P, PI = RNG.normal(size=(2, N, 3))
TRANSLATION = (P**2).sum(axis=1) / (2 * MASSES)


def rotation(tensors: Any) -> np.ndarray:
    return np.einsum("ni,nij,nj->n", PI, np.linalg.inv(tensors), PI) / 2


BODIES = {
    "own moments": (MOMENTS, MOMENTS[:, :, None] * np.eye(3)),
    "own tensors": (TENSORS, TENSORS),
    "one inertia": (MOMENTS[0], np.broadcast_to(np.diag(MOMENTS[0]), (N, 3, 3))),
    "one tensor": (ph.Body(TENSORS[0]), np.broadcast_to(TENSORS[0], (N, 3, 3))),
}


@pytest.mark.parametrize("form", [{}, {"vector": "omega", "layout": "columns"}], ids=["momenta", "velocities"])
@pytest.mark.parametrize("name", BODIES)
def test_kinetic_energies_of_translation_and_rotation(name: str, form: dict[str, Any]) -> None:
    bodies, tensors = BODIES[name]
    p, momenta = P, PI
    if form:
        omega = np.einsum("nij,nj->ni", np.linalg.inv(tensors), PI)
        p, momenta = (P / MASSES[:, None]).T.copy(), omega.T.copy()
    found = ph.batch_stepper(bodies, "strang(dmv6)", 0.1, masses=MASSES, **form).kinetic_energy(p, momenta)
    np.testing.assert_allclose(found.translation, TRANSLATION, rtol=1e-14)
    np.testing.assert_allclose(found.rotation, rotation(tensors), rtol=1e-13)
    np.testing.assert_array_equal(found.total, found.translation + found.rotation)
    alone = ph.batch_stepper(bodies, "dmv6", 0.1, **form).kinetic_energy(momenta)
    np.testing.assert_array_equal(alone, found.rotation)


def test_temperatures_divide_by_the_degrees_of_freedom() -> None:
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1, masses=MASSES)
    energy = stepper.kinetic_energy(P, PI)
    moving, turning = energy.translation.sum(), energy.rotation.sum()
    for fixed in (0, 3):
        found, degrees = stepper.temperature(P, PI, k=KB, fixed=fixed), 3 * N - fixed
        assert found.translation == pytest.approx(2 * moving / (degrees * KB), rel=1e-14)
        assert found.rotation == pytest.approx(2 * turning / (3 * N * KB), rel=1e-14)
        assert found.total == pytest.approx(2 * (moving + turning) / ((degrees + 3 * N) * KB), rel=1e-14)
    assert ph.batch_stepper(MOMENTS, "dmv6", 0.1).temperature(PI, k=KB) == found.rotation
    assert ph.batch_stepper(MOMENTS, "dmv6", 0.1).temperature(PI) == pytest.approx(KB * found.rotation, rel=1e-14)


def test_linear_bodies_have_two_rotational_degrees() -> None:
    flat = PI * [1.0, 1.0, 0.0]
    one = ph.batch_stepper([2.0, 2.0, 0.0], "dmv6", 0.1)
    assert one.temperature(flat) == pytest.approx((flat**2).sum() / 2 / (2 * N), rel=1e-14)
    some = np.where(np.arange(N)[:, None] < 3, [2.0, 2.0, 0.0], [2.0, 2.0, 1.0])
    mixed = ph.batch_stepper(some, "dmv6", 0.1)
    expected = (flat[:3] ** 2).sum() / 2 + (PI[3:] ** 2 / some[3:]).sum()
    assert mixed.temperature(np.where(np.arange(N)[:, None] < 3, flat, PI)) == pytest.approx(
        expected / (2 * 3 + 3 * (N - 3)), rel=1e-14
    )


def test_a_heat_bath_and_its_temperature_agree() -> None:
    """Momenta drawn from the distribution of Gibbs with 90,000 degrees of freedom, to five standard errors."""
    many, kT = 15_000, 0.7
    stepper = ph.batch_stepper(MOMENTS[0], "strang(dmv6)", 0.1, masses=2.0)
    rng = np.random.default_rng(2)
    p, momenta = rng.normal(size=(2, many, 3)) * np.sqrt(kT * np.array([[[2.0] * 3], [MOMENTS[0]]]))
    for found, degrees in zip(stepper.temperature(p, momenta), (3 * many, 3 * many, 6 * many), strict=True):
        assert found == pytest.approx(kT, abs=5 * kT * np.sqrt(2 / degrees))


def test_arrays_of_jax_stay_arrays_of_jax_and_can_be_traced() -> None:
    stepper = ph.batch_stepper(TENSORS, "strang(dmv6)", 0.1, masses=MASSES)
    expected = stepper.temperature(P, PI, k=KB)
    with jax.enable_x64(True):
        found = stepper.temperature(jnp.asarray(P), jnp.asarray(PI), k=KB)
        assert all(isinstance(x, jax.Array) for x in found)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        slopes = jax.jit(jax.grad(lambda p: stepper.kinetic_energy(p, jnp.asarray(PI)).total.sum()))(jnp.asarray(P))
        np.testing.assert_allclose(slopes, P / MASSES[:, None], rtol=1e-14)
    singles = jax.jit(stepper.temperature)(jnp.asarray(P, np.float32), jnp.asarray(PI, np.float32))
    assert all(x.dtype == np.float32 for x in singles)
    np.testing.assert_allclose(singles, stepper.temperature(P, PI), rtol=1e-5)


def test_singles_have_results_in_single_precision() -> None:
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1, masses=MASSES)
    found = stepper.kinetic_energy(P.astype(np.float32), PI.astype(np.float32))
    assert found.translation.dtype == found.rotation.dtype == np.float32
    np.testing.assert_allclose(found.total, stepper.kinetic_energy(P, PI).total, rtol=1e-5)


def test_replaced_bodies_have_their_own_inertia_and_mass() -> None:
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1, masses=MASSES)
    before = stepper.kinetic_energy(P, PI)
    stepper.replace([2], 2 * MOMENTS[2], masses=4 * MASSES[2])
    after = stepper.kinetic_energy(P, PI)
    kept = np.arange(N) != 2
    np.testing.assert_array_equal(after.total[kept], before.total[kept])
    np.testing.assert_allclose(after.rotation[2], before.rotation[2] / 2, rtol=1e-14)
    np.testing.assert_allclose(after.translation[2], before.translation[2] / 4, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((P, PI[:3]), {}, r"momentum must have the shape \(N, 3\) with N = 7 bodies; got \(3, 3\)"),
        ((P[:3], PI), {}, r"p must have the shape \(N, 3\) with N = 7 bodies; got \(3, 3\)"),
        ((P.T, PI), {}, r"p must have the shape \(N, 3\); got \(3, 7\); for \(3, N\) give layout='columns'"),
        ((P, PI.astype(int)), {}, "momentum must hold float64 or float32 numbers; got int64"),
        ((P, PI.tolist()), {}, "momentum must be an array of NumPy, CuPy, PyTorch or JAX; got list"),
        ((P, PI), {"k": 0.0}, "k must be positive; got 0"),
        ((P, PI), {"fixed": 21}, "fixed must be a whole number below 21, the degrees of freedom of the translation"),
        ((P, PI), {"fixed": -1}, "fixed must be a whole number below 21"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: Any, more: dict[str, Any], message: str) -> None:
    stepper = ph.batch_stepper(MOMENTS, "strang(dmv6)", 0.1, masses=MASSES)
    with pytest.raises(ph.InputError, match=message):
        stepper.temperature(*arguments, **more)
