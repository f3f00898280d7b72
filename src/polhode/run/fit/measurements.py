"""Measurements of a motion: attitudes, angular velocities, directions, and values of any observable.

Each gives residuals (model minus measurement, over the standard deviation) and their derivatives by the state
(d, Pi) at the times of the measurement, in body axes, and by the inertia tensor and a bias.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...kernels.so3 import conj, mul
from ...numbers.dual import Dual
from ...physics.observers.observable import Observable
from ...physics.problem import Problem
from ...physics.validate import apart, flag, real_array
from ...results.trajectory import Trajectory

__all__ = ["attitudes", "directions", "rates", "values"]


class Residuals(NamedTuple):
    """Residuals (n, k), and their derivatives by the state (n, k, 6), by omega at fixed state (n, k, 3), by a bias."""

    value: np.ndarray
    by_state: np.ndarray
    by_omega: np.ndarray
    by_bias: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement:
    """Measured values at times, with the standard deviations of their components.

    Attributes
    ----------
    kind : what is measured
    t : (n,) times, ascending
    value : (n, k) measured values
    sigma : (n, k) standard deviations
    bias : whether a constant bias (k numbers) is estimated too
    """

    kind: str
    t: np.ndarray
    value: np.ndarray
    sigma: np.ndarray
    model: Callable[[Measurement, Problem, Trajectory], Residuals] = dataclasses.field(repr=False)
    """(measurement, problem, states at its times) -> residuals, not yet divided by sigma."""
    bias: bool = False
    extra: np.ndarray | None = dataclasses.field(default=None, repr=False)
    """Further known numbers for each time."""

    def at(self, here: np.ndarray) -> Measurement:
        """Return the measurement at some of its times."""
        extra = None if self.extra is None else self.extra[here]
        return dataclasses.replace(self, t=self.t[here], value=self.value[here], sigma=self.sigma[here], extra=extra)

    def residuals(self, problem: Problem, sol: Trajectory, bias: np.ndarray | None) -> Residuals:
        """Return residuals and derivatives at the states of a trajectory, one for each time."""
        found = self.model(self, problem, sol)
        value = found.value + (0.0 if bias is None else bias)
        size = self.sigma[..., None]
        by_bias = np.broadcast_to(np.eye(value.shape[1]), (*value.shape, value.shape[1])) / size if self.bias else None
        return Residuals(value / self.sigma, found.by_state / size, found.by_omega / size, by_bias)


def attitudes(t: Any, quaternion: Any, *, sigma: Any) -> Measurement:
    """Measured attitudes: unit quaternions (n, 4), SCALAR FIRST, body to space.

    `sigma` is the standard deviation in rad: one number, three for the body axes, or (n, 3). A residual is the rotation
    vector from the measured to the computed attitude, in body axes.
    """
    times, q = _times(t), _rows("quaternion", quaternion, t, 4)
    length = np.linalg.norm(q, axis=1)
    wrong = np.flatnonzero(abs(length - 1) > 1e-6)
    if len(wrong):
        first = apart(float(length[wrong[0]]), 1.0)[0]
        raise InputError(f"quaternion must be unit quaternions; row {wrong[0]} has the length {first}")
    q = q / length[:, None]

    def model(one: Measurement, problem: Problem, sol: Trajectory) -> Residuals:
        turn = np.stack(mul(conj(tuple(one.value.T)), tuple(sol.quaternion.T)), 1)
        r = rotation_vector(turn)
        by_state = np.concatenate([inverse_right_jacobian(r), np.zeros((len(r), 3, 3))], 2)
        return Residuals(r, by_state, np.zeros((len(r), 3, 3)))

    return Measurement("attitudes", times, q, _sigma(sigma, (len(times), 3)), model)


def rates(t: Any, omega: Any, *, sigma: Any, bias: bool = False) -> Measurement:
    """Measured angular velocities (n, 3) in body axes, such as those of gyros.

    With `bias` a constant that adds to them is estimated. `sigma` is one number, three, or (n, 3).
    """
    times, w = _times(t), _rows("omega", omega, t, 3)

    def model(one: Measurement, problem: Problem, sol: Trajectory) -> Residuals:
        inverse = np.linalg.inv(np.asarray(problem.body.inertia, float))
        n = len(one.t)
        by_state = np.concatenate([np.zeros((n, 3, 3)), np.broadcast_to(inverse, (n, 3, 3))], 2)
        return Residuals(sol.omega - one.value, by_state, np.broadcast_to(np.eye(3), (n, 3, 3)))

    return Measurement("rates", times, w, _sigma(sigma, w.shape), model, flag("bias", bias))


def directions(t: Any, seen: Any, known: Any, *, sigma: Any) -> Measurement:
    """Directions seen in body axes, (n, 3) unit vectors, of objects whose directions in space are known.

    `known` is (n, 3), or (3,) for one object: a star, the Sun, the magnetic field. `sigma` in rad, as in `rates`.
    """
    times, v = _times(t), _rows("seen", seen, t, 3)
    expected = "known must be unit vectors (3,) or (n, 3)"
    space = real_array(known, expected, key="known")
    if space.shape not in ((3,), v.shape):
        raise InputError(f"{expected}; got shape {space.shape}", "known")
    space = np.broadcast_to(space, v.shape)
    for name, one in (("seen", v), ("known", space)):
        wrong = np.flatnonzero(abs(np.linalg.norm(one, axis=1) - 1) > 1e-3)
        if len(wrong):
            raise InputError(f"{name} must be unit vectors; row {wrong[0]} is {one[wrong[0]].tolist()}")

    def model(one: Measurement, problem: Problem, sol: Trajectory) -> Residuals:
        assert one.extra is not None
        body = np.einsum("nji,nj->ni", sol.matrix, one.extra)
        zeros = np.zeros((len(body), 3, 3))
        return Residuals(body - one.value, np.concatenate([hat(body), zeros], 2), zeros)

    return Measurement("directions", times, v, _sigma(sigma, v.shape), model, extra=space)


def values(t: Any, fn: Callable[..., Any], measured: Any, *, sigma: Any) -> Measurement:
    """Measured values (n,) or (n, k) of any observable: a light curve, an angle, a signal.

    `fn` is a function of any of t, R, omega, momentum (in body axes) and parameters with defaults, as in `ph.gradient`;
    it returns a number or k numbers. It must be a formula (`ph.where` instead of branches).
    """
    observable = Observable(fn)
    width = int(np.prod(observable.shape))
    times = _times(t)
    given = real_array(measured, "measured must be the values of the observable")
    y = _rows("measured", given[:, None] if given.ndim == 1 else given, t, width)

    def model(one: Measurement, problem: Problem, sol: Trajectory) -> Residuals:
        return _of_observable(observable, problem, sol, one.value)

    return Measurement(observable.name, times, y, _sigma(sigma, y.shape), model)


def _of_observable(observable: Observable, problem: Problem, sol: Trajectory, y: np.ndarray) -> Residuals:
    """Residuals of an observable, differentiated by dual numbers, one direction at a time for all times."""
    inverse = np.linalg.inv(np.asarray(problem.body.inertia, float))
    R = sol.matrix
    by_state, by_omega, value = np.zeros((*y.shape, 6)), np.zeros((*y.shape, 3)), y
    for k in range(9):
        turn, omega, momentum = np.zeros(3), np.zeros(3), np.zeros(3)
        if k < 3:
            turn[k] = 1
        elif k < 6:
            momentum[k - 3] = 1
            omega = inverse[:, k - 3]
        else:
            omega[k - 6] = 1
        dR = R @ hat(turn[None])[0]
        at = (
            sol.t, _duals(R, dR), _duals(sol.omega, np.broadcast_to(omega, sol.omega.shape)),
            _duals(sol.momentum, np.broadcast_to(momentum, sol.momentum.shape)),
        )  # fmt: skip
        parts = observable.at(*at)
        value = np.stack([np.broadcast_to(_value(x), len(sol.t)) for x in parts], 1)
        slope = np.stack([np.broadcast_to(_tangent(x), len(sol.t)) for x in parts], 1)
        if k < 6:
            by_state[..., k] = slope
        else:
            by_omega[..., k - 6] = slope
    fine = np.isfinite(value).all(axis=1) & np.isfinite(by_state).all(axis=(1, 2))
    if not fine.all():
        raise InputError(
            f"the observable {observable.name} has no finite value or derivative on the motion, first in row "
            f"{fine.argmin()}; "
            "write it without this singularity, or remove the row"
        )
    return Residuals(value - y, by_state, by_omega)


def _duals(values: np.ndarray, tangents: np.ndarray) -> Any:
    """Nested tuples of dual numbers over all times from arrays (n, ...)."""
    if values.ndim == 1:
        return Dual(1, values, np.array(tangents))
    return tuple(_duals(values[:, i], tangents[:, i]) for i in range(values.shape[1]))


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Dual) else x


def _tangent(x: Any) -> Any:
    return x.tangent if isinstance(x, Dual) else 0.0


# --- rotations --------------------------------------------------------------------------------------


def hat(v: np.ndarray) -> np.ndarray:
    """The matrices (n, 3, 3) of v x."""
    x, y, z = v.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).reshape(-1, 3, 3)


def rotation_vector(q: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3) of unit quaternions (n, 4), of at most pi."""
    q = np.where(q[:, :1] < 0, -q, q)
    size = np.linalg.norm(q[:, 1:], axis=1)
    angle = 2 * np.arctan2(size, q[:, 0])
    small = size < 1e-8
    return np.asarray(np.where(small, 2.0, angle / np.where(small, 1.0, size))[:, None] * q[:, 1:])


def right_jacobian(r: np.ndarray) -> np.ndarray:
    """The matrices J with exp(r + dr) = exp(r) exp(J dr)."""
    a, X = np.linalg.norm(r, axis=1), hat(r)
    small = a < 1e-4
    b = np.where(small, 1.0, a)
    first = np.where(small, 0.5 - a**2 / 24, (1 - np.cos(b)) / b**2)
    second = np.where(small, 1 / 6 - a**2 / 120, (b - np.sin(b)) / b**3)
    return np.asarray(np.eye(3) - first[:, None, None] * X + second[:, None, None] * (X @ X))


def inverse_right_jacobian(r: np.ndarray) -> np.ndarray:
    """The inverses of `right_jacobian`, for rotations by less than 2 pi."""
    a, X = np.linalg.norm(r, axis=1), hat(r)
    small = a < 1e-4
    b = np.where(small, 1.0, a)
    second = np.where(small, 1 / 12 + a**2 / 720, 1 / b**2 - (1 + np.cos(b)) / (2 * b * np.sin(b)))
    return np.asarray(np.eye(3) + X / 2 + second[:, None, None] * (X @ X))


# --- arguments --------------------------------------------------------------------------------------


def _times(t: Any) -> np.ndarray:
    times = np.atleast_1d(real_array(t, "t must be the times of the measurements"))
    if times.ndim != 1 or not len(times):
        raise InputError(f"t must be the times of the measurements, in one dimension; got shape {times.shape}", "t")
    _finite("t", times)
    wrong = np.flatnonzero(np.diff(times) <= 0)
    if len(wrong):
        i = int(wrong[0]) + 1
        later, earlier = apart(*times[[i, i - 1]].tolist())
        raise InputError(f"t must ascend; t[{i}] = {later} follows {earlier}. Sort the measurements", "t")
    return times


def _rows(name: str, given: Any, t: Any, width: int) -> np.ndarray:
    array = real_array(given, f"{name} must be an array (n, {width})")
    number = np.size(t)
    if array.shape != (number, width):
        raise InputError(f"{name} must be ({number}, {width}), a row for each time; got shape {array.shape}", name)
    _finite(name, array)
    return array


def _finite(name: str, array: np.ndarray) -> None:
    wrong = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(1))
    if len(wrong):
        raise InputError(f"{name} has NaN or infinity in row {wrong[0]} ({len(wrong)} rows in all); remove them", name)


def _sigma(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    sigma = real_array(given, "sigma must be standard deviations")
    if sigma.ndim == 1 and len(sigma) == shape[0] and shape[1] != shape[0]:
        sigma = sigma[:, None]
    try:
        found = np.broadcast_to(sigma, shape)
    except ValueError:
        raise InputError(f"sigma must be one number, ({shape[1]},) or {shape}; got shape {sigma.shape}") from None
    if not (np.isfinite(found) & (found > 0)).all():
        raise InputError(
            f"sigma must be positive: standard deviations of the measurements; got {found.min():g}", "sigma"
        )
    return found
