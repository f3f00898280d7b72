"""What methods with noise or a thermostat, and fields with a heat bath or a thermostat, need and exclude."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..methods import Method, methods
from ..methods.ranking import best_first, fitting, listed
from ..methods.record import OVERDAMPED, RESCALING
from ..physics.fields.field import HEAT_BATH, THERMOSTAT
from ..physics.fields.heat_bath import friction_of
from ..physics.fields.thermostat import links_at_start
from ..physics.problem import Problem

NOISY = "baoab(jacobi)"
"""Example of a method with noise in messages."""

CHAINED = "nose_hoover(strang(jacobi))"
"""Example of a method with a thermostat in messages."""


OVER_SCHEMES = "bussi"
"""The combinator that adds noise to any scheme, so that its methods take all bodies and fields that schemes take."""


def check_noise(method: Method | None, problem: Problem) -> None:
    """Refuse a heat bath without a method with noise, and such a method without a heat bath; so with a thermostat."""
    _check_thermostat(method, problem)
    bath = problem.field is not None and problem.field.bath_kind[0] == HEAT_BATH
    noisy = method is not None and method.noise is not None
    if bath and not noisy:
        given = f"; {method.name} has no noise" if method is not None else ""
        raise InputError(f"a field with a heat bath needs a method with noise and a step dt, such as {NOISY!r}{given}")
    if noisy and not bath:
        raise InputError(
            f"{method and method.name} needs a heat bath: add ph.fields.heat_bath(kT=..., friction=...) to the field"
        )
    if bath and method is not None and method.noise is not None and method.noise.equation == OVERDAMPED:
        _check_mobile(method, problem)


def _check_thermostat(method: Method | None, problem: Problem) -> None:
    """Refuse a thermostat without a method with a chain, such a method without a thermostat, and other lengths."""
    field, chain = problem.field, None if method is None else method.thermostat
    name = method.name if method is not None else ""
    if field is None or field.bath_kind[0] != THERMOSTAT:
        if chain is not None:
            raise InputError(f"{name} needs a thermostat: add ph.fields.nose_hoover(kT=..., tau=...) to the field")
        return
    if chain is None:
        given = f"; {name} has none" if name else ""
        raise InputError(
            f"a field with a thermostat needs a method with a chain and a step dt, such as {CHAINED!r}{given}"
        )
    links = links_at_start(field)
    if links not in (None, chain.links):
        raise InputError(
            f"{name} has a chain of {chain.links} links, but the initial chain of the thermostat has {links}; give an "
            f"array chain of shape (2, {chain.links})"
        )


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
        raise InputError(
            f"{what} takes methods without noise, and {method.name} has noise; use the method within it, or imidm"
        )


def check_forward(method: Method, dt: float) -> None:
    """Refuse a method with noise backwards in time: friction would heat."""
    if method.noise is not None and dt < 0:
        raise InputError(
            f"{method.name} has noise and runs forwards in time only; got dt = {dt:g}, so give a positive one", "dt"
        )


def multiplies(method: Method) -> bool:
    """Return whether a method has a thermostat that multiplies the momentum, so that it moves no body at rest."""
    return method.noise is not None and method.noise.equation == RESCALING


def check_moving(method: Method, momenta: Any) -> None:
    """Refuse bodies at rest, one row of momenta each, for a thermostat that multiplies the momentum."""
    if not multiplies(method):
        return
    resting = np.flatnonzero(~np.reshape(momenta, (-1, 3)).any(axis=1))
    if len(resting):
        raise InputError(
            f"{method.name} multiplies the momentum by random factors, and that of body {resting[0]} is zero; give it "
            "a momentum"
        )


def able(method: Method, kind: str, fits: Callable[[Method], bool] = lambda method: True) -> str:
    """Return the methods that take a field of this kind and fit, best first; with noise, if the method has noise.

    These are made by the combinator of the method, if it makes any, else by `OVER_SCHEMES`.
    """
    if method.noise is None:
        return listed(fitting(kind, fits))
    own = method.name.partition("(")[0]
    for name in (own, OVER_SCHEMES) if own in methods.combinators else (OVER_SCHEMES,):
        found = [m for m in _made_by(name) if m.takes(kind) and fits(m)]
        if found:
            return listed(best_first(found, kind))
    return ""


def _made_by(name: str) -> Iterator[Method]:
    """What a combinator makes of the methods that it takes."""
    seen = set()
    for part in methods.values():
        try:
            made = methods.combinators[name](part)
        except InputError:
            continue
        if made.name not in seen:
            seen.add(made.name)
            yield made


def without_chain(method: Method, what: str) -> None:
    """Refuse a method with a thermostat, where attitude and momentum must determine the motion."""
    if method.thermostat is not None:
        raise InputError(
            f"{what} takes methods whose motion follows from attitude and momentum; that of {method.name} also depends "
            "on its chain, so use the method within it"
        )


def between_steps_without_noise(method: Method) -> None:
    """Refuse states between the steps of a method with noise: they are not determined by those at the steps."""
    if method.noise is not None:
        raise InputError(
            f"{method.name} has noise, so there are no states between its steps: remove times, max_turn and events, "
            "and keep steps with every"
        )
