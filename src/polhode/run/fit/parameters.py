"""The numbers that a fit varies, and the problem that they describe.

* attitude: a rotation vector r from the first guess, R = R_0 exp(hat r);
* omega: the initial angular velocity in body axes;
* inertia: logarithms of a, b, c > 0 with the principal moments (b + c, c + a, a + b), so that moments are positive and
  none exceeds the sum of the two others;
* axes: a rotation vector of the principal axes in the body;
* every other name: a parameter of the field.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import mul
from ...physics.body import Body
from ...physics.fields.of_body import are_inertia, inertia_parameters
from ...physics.problem import Problem
from ...physics.validate import several
from ...results.observables import matrices
from ...results.trajectory import Trajectory
from .measurements import Measurement, hat, right_jacobian, rotation_vector

STATE = ("attitude", "omega")
BODY = ("inertia", "axes")
BIAS = "bias"
NUDGE = 1e-5
"""Rotation of the principal axes, in rad, from which the axes of a body given by its moments are estimated."""

FROM_MOMENTS = (np.ones((3, 3)) - 2 * np.eye(3)) / 2
"""(a, b, c) from the moments."""


@dataclasses.dataclass(frozen=True, eq=False)
class Free:
    """The free numbers of a fit, in groups: their places in a vector x."""

    problem: Problem
    names: tuple[str, ...]
    biased: tuple[int, ...]
    """Numbers of the measurements whose bias is free."""
    widths: tuple[int, ...]
    """Numbers in each of these biases."""

    @functools.cached_property
    def places(self) -> dict[str, slice]:
        """Place of each group."""
        found, first = {}, 0
        for name in self.names:
            size = 3 if name in (*STATE, *BODY) else int(np.size(self._parameter(name)))
            found[name] = slice(first, first + size)
            first += size
        for i, width in zip(self.biased, self.widths, strict=True):
            found[f"{BIAS} {i}"] = slice(first, first + width)
            first += width
        return found

    @property
    def size(self) -> int:
        """Length of x."""
        return max((place.stop for place in self.places.values()), default=0)

    def _parameter(self, name: str) -> Any:
        assert self.problem.field is not None
        return self.problem.field.values[name]

    @functools.cached_property
    def carried(self) -> tuple[str, ...]:
        """Parameters of the field that are the inertia of the body, and change with it."""
        if set(BODY).isdisjoint(self.names):
            return ()
        tensor = np.asarray(self.problem.body.inertia, float)
        found = [name for name in inertia_parameters(self.problem.field) if name not in self.names or name in BODY]
        return tuple(name for name in found if are_inertia(self._parameter(name), tensor))

    @functools.cached_property
    def start(self) -> np.ndarray:
        """The first guess."""
        x = np.zeros(self.size)
        for name, place in self.places.items():
            if name == "omega":
                x[place] = self.problem.omega
            elif name == "inertia":
                x[place] = np.log(FROM_MOMENTS @ self.problem.body.moments)
            elif name not in ("attitude", "axes") and not name.startswith(BIAS):
                x[place] = np.ravel(self._parameter(name))
        return x

    @functools.cached_property
    def _axes(self) -> np.ndarray:
        """The principal axes of the first guess, columns."""
        body = self.problem.body
        axes = np.asarray(body.axes, float) if body.has_principal_rotation else np.eye(3)
        if "axes" in self.names and not body.has_principal_rotation:
            return np.asarray(axes @ _exp(np.full(3, NUDGE)))
        return axes

    def moments(self, x: np.ndarray) -> np.ndarray:
        """The principal moments."""
        if "inertia" not in self.places:
            return np.asarray(self.problem.body.moments, float)
        a = np.exp(x[self.places["inertia"]])
        return np.asarray(a.sum() - a)

    def turned_axes(self, x: np.ndarray) -> np.ndarray:
        """The principal axes, columns."""
        return np.asarray(self._axes @ _exp(x[self.places["axes"]])) if "axes" in self.places else self._axes

    def problem_at(self, x: np.ndarray) -> Problem:
        """The problem that x describes."""
        first = self.problem
        body, field, omega, q = first.body, first.field, first.omega, first.quaternion
        if not set(BODY).isdisjoint(self.places):
            moments, A = self.moments(x), self.turned_axes(x)
            turned = body.has_principal_rotation or "axes" in self.places
            body = Body((A * moments) @ A.T) if turned else Body(moments)
        if "omega" in self.places:
            omega = x[self.places["omega"]]
        if "attitude" in self.places:
            q = mul(q, quaternion_of(x[self.places["attitude"]]))
        changes = {
            name: _shaped(x[place], self._parameter(name))
            for name, place in self.places.items()
            if name not in (*STATE, *BODY) and not name.startswith(BIAS)
        }  # fmt: skip
        for name in self.carried:
            changes[name] = body.moments if np.ndim(self._parameter(name)) == 1 else body.inertia
        if changes:
            assert field is not None
            field = field.bind(**changes)
        return Problem(body, attitude=q, omega=omega, t0=first.t0).in_field(field)

    def with_short_rotations(self, x: np.ndarray) -> np.ndarray:
        """Return x with rotation vectors of at most pi: the same rotations."""
        found = x.copy()
        for name in {"attitude", "axes"} & set(self.places):
            place = self.places[name]
            found[place] = rotation_vector(np.array([quaternion_of(x[place])]))[0]
        return found

    def bias(self, x: np.ndarray, i: int) -> np.ndarray | None:
        """The bias of measurement i, or None."""
        place = self.places.get(f"{BIAS} {i}")
        return None if place is None else x[place]

    def slopes(self, x: np.ndarray, problem: Problem, sol: Trajectory, first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (n, 6, p) of the states (d, Pi) at all times, and (n, 3, p) of omega at a fixed state, by x.

        `first` says that the motion begins with the initial state; otherwise its start is not described by x.
        """
        tangent, omega = sol.tangent, sol.omega
        assert tangent is not None
        number, inertia = len(omega), np.asarray(problem.body.inertia, float)
        by_state, by_omega = np.zeros((number, 6, self.size)), np.zeros((number, 3, self.size))
        for name, place in self.places.items():
            if name in STATE and not first:
                continue
            if name == "attitude":
                by_state[..., place] = tangent.matrix[..., :3] @ right_jacobian(x[place][None])[0]
            elif name == "omega":
                by_state[..., place] = tangent.matrix[..., 3:] @ inertia
            elif name in BODY:
                for k, change in enumerate(self._changes(name, x)):
                    slopes = [tangent.inertia, *(tangent.params[carried] for carried in self.carried)]
                    by_state[..., place.start + k] = sum(_contracted(slope, change) for slope in slopes)
                    if first:  # at fixed omega, not momentum
                        by_state[..., place.start + k] += tangent.matrix[..., 3:] @ (change @ problem.omega)
                    by_omega[..., place.start + k] = -np.linalg.solve(inertia, change @ omega.T).T
            elif not name.startswith(BIAS):
                by_state[..., place] = tangent.params[name].reshape(number, 6, -1)
        return by_state, by_omega

    def _changes(self, name: str, x: np.ndarray) -> list[np.ndarray]:
        """Derivatives of the tensor by the three numbers of `inertia` or `axes`, in the user's axes."""
        A, moments = self.turned_axes(x), self.moments(x)
        if name == "inertia":
            a = np.exp(x[self.places["inertia"]])
            by_logarithm = [a[k] * (1 - np.eye(3)[k]) for k in range(3)]
            return [(A * rates) @ A.T for rates in by_logarithm]
        J = right_jacobian(x[self.places["axes"]][None])[0]
        found = []
        for k in range(3):
            turn = hat(J[:, k][None])[0]
            found.append(A @ (turn * moments - moments[:, None] * turn) @ A.T)
        return found

    # --- what is reported -------------------------------------------------------------------------

    def labels(self) -> list[str]:
        """A name for each number, as reported."""
        found = []
        for name, place in self.places.items():
            size = place.stop - place.start
            found += [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
        return found

    def reported(self, x: np.ndarray) -> np.ndarray:
        """The numbers as reported: moments instead of logarithms."""
        found = x.copy()
        if "inertia" in self.places:
            found[self.places["inertia"]] = self.moments(x)
        return found

    def reported_slope(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of `reported`."""
        slope = np.eye(self.size)
        if "inertia" in self.places:
            place = self.places["inertia"]
            slope[place, place] = (1 - np.eye(3)) * np.exp(x[place])
        return slope


def _shaped(numbers: np.ndarray, like: Any) -> Any:
    return np.reshape(numbers, np.shape(like)) if np.ndim(like) else float(numbers[0])


def _contracted(slope: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Derivatives (n, 6) of the states by a change of the tensor, from those by the inertia."""
    if slope.ndim == 3:
        return np.asarray(slope @ np.diag(change))
    return np.einsum("nkij,ij->nk", slope, change)


def quaternion_of(r: np.ndarray) -> Any:
    """The unit quaternion of a rotation vector."""
    angle = float(np.linalg.norm(r))
    return (np.cos(angle / 2), *(np.sinc(angle / (2 * np.pi)) * r / 2))


def _exp(r: np.ndarray) -> np.ndarray:
    return np.asarray(matrices(np.array([quaternion_of(r)]))[0])


def free_numbers(problem: Problem, names: Any, data: list[Measurement]) -> Free:
    """Read the names of what is free, and refuse what cannot be."""
    known = [*STATE, *BODY, *(problem.field.values if problem.field is not None else ())]
    expected = f"free must be some of {', '.join(known)}, each once"
    given = [names] if isinstance(names, str) else several(names, expected, "free")
    wrong = [name for name in given if not isinstance(name, str) or name not in known]
    if wrong or not given or len(set(given)) < len(given):
        got = f"{wrong[0]!r}" if wrong else f"{names!r}"
        raise InputError(f"{expected}; got {got}", "free")
    body = problem.body
    if not set(BODY).isdisjoint(given) and (body.linear_axis is not None or (FROM_MOMENTS @ body.moments <= 0).any()):
        raise InputError(
            f"the inertia of a linear, flat or unphysical body cannot be estimated; got {body.moments.tolist()}"
        )
    if "axes" in given and not body.has_principal_rotation and inertia_parameters(problem.field):
        assert problem.field is not None
        raise InputError(
            f"axes cannot be free with the field {problem.field.name}, which was made for a body given by its moments; "
            "give a first guess whose tensor is not diagonal, and make the field for it", "free",
        )  # fmt: skip
    biased = tuple(i for i, one in enumerate(data) if one.bias)
    return Free(problem, tuple(given), biased, tuple(data[i].value.shape[1] for i in biased))
