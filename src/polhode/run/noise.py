"""What a method with noise and a field with a heat bath need, and what they exclude."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..methods import Method
from ..physics.fields.heat_bath import friction_of
from ..physics.problem import Problem

NOISY = "baoab(jacobi)"
"""Example of a method with noise in messages."""


def check_noise(method: Method | None, problem: Problem) -> None:
    """Refuse a heat bath without a method with noise, and such a method without a heat bath."""
    bath = problem.field is not None and problem.field.bath is not None
    noisy = method is not None and method.noise is not None
    if bath and not noisy:
        given = f"; {method.name} has no noise" if method is not None else ""
        raise InputError(f"a field with a heat bath needs a method with noise and a step dt, such as {NOISY!r}{given}")
    if noisy and not bath:
        raise InputError(
            f"{method and method.name} needs a heat bath: add ph.fields.heat_bath(kT=..., friction=...) to the field"
        )
    if bath and method is not None and method.noise is not None and method.noise.overdamped:
        _check_mobile(method, problem)


def _check_mobile(method: Method, problem: Problem) -> None:
    """Refuse friction that vanishes about an axis for the equation without inertia."""
    assert problem.field is not None
    lowest = np.linalg.eigvalsh(friction_of(problem.field))[0]
    if lowest <= 0:
        raise InputError(
            f"{method.name} divides by the friction, which must be positive about all axes; the smallest eigenvalue of "
            f"the friction tensor is {lowest:.6g}",
            "friction",
        )


def without_noise(method: Method, what: str) -> None:
    """Refuse a method with noise."""
    if method.noise is not None:
        raise InputError(f"{what} takes methods without noise; {method.name} has noise")


def check_forward(method: Method, dt: float) -> None:
    """Refuse a method with noise backwards in time: friction would heat."""
    if method.noise is not None and dt < 0:
        raise InputError(f"{method.name} has noise and runs forwards in time only; got dt = {dt:g}", "dt")


def between_steps_without_noise(method: Method) -> None:
    """Refuse states between the steps of a method with noise: they are not determined by those at the steps."""
    if method.noise is not None:
        raise InputError(
            f"{method.name} has noise, so there are no states between its steps: remove times, max_turn and events, "
            "and keep steps with every"
        )
