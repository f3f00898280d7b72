"""The thermostat of one body: a Nosé-Hoover chain, with its temperature, time constant and initial state.

A thermostat exerts no torque that a field could give: methods with a chain ask for its parameters
(`methods/queries.ChainStart`), and other methods refuse it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.unroll import unrolled_kernel
from ..validate import positive, real_array
from .decorators import potential
from .field import THERMOSTAT, Field
from .parameters import name_of_parameter
from .registry import reading
from .template import FieldTemplate

KT, TAU, START = 0, 1, 2
"""Places of the parameters; the initial chain is one number, zero, or the positions and then the velocities."""


class ThermostatField(Field):
    """A thermostat with its parameters bound."""

    bath = 0

    @property
    def bath_kind(self) -> tuple[str, int]:  # type: ignore[override]  # of other fields a constant
        """A thermostat, and the number of its parameters."""
        return THERMOSTAT, len(self.parameters)


def chain_start(name: str, value: Any) -> Any:
    """Check the initial state of a chain: 0, or positions and velocities, (2, links)."""
    expected = f"{name} must be 0, at rest, or the positions and velocities of the links, an array of shape (2, links)"
    given = real_array(value, expected)
    at_rest = given.ndim == 0 and given == 0
    if not at_rest and (given.ndim != 2 or len(given) != 2 or not given.size or not np.isfinite(given).all()):
        raise InputError(f"{expected}; got {value!r}", name)
    return float(given) if at_rest else given


def _with_chain(template: FieldTemplate) -> FieldTemplate:
    return dataclasses.replace(template, makes=ThermostatField)


@reading(kT=positive, tau=positive, chain=chain_start)
@_with_chain
@potential
def nose_hoover(R: Any, kT: Any, tau: Any, chain: Any = 0) -> Any:
    """Thermostat of one body: a Nosé-Hoover chain, for methods that have one.

    kT : temperature times Boltzmann's constant, an energy
    tau : time constant: the period of the chain is about 2 pi tau
    chain : positions and velocities of the links at the start, (2, links); 0 is a chain at rest
    """
    return 0 * kT


def links_at_start(field: Field) -> int | None:
    """Number of links whose initial state a field with a thermostat has; None for a chain at rest."""
    numbers = field.bath_kind[1] - START
    return None if numbers == 1 else numbers // 2


def of_all(field: Field, values: np.ndarray, own: Collection[str]) -> np.ndarray:
    """Check the parameters of the thermostats of all bodies, one row each; name the first body at fault."""
    assert field.bath is not None
    for name, place in (("kT", KT), ("tau", TAU)):
        wrong = np.flatnonzero(values[:, field.bath + place] <= 0)
        if len(wrong):
            i = int(wrong[0])
            positive(f"body {i}: {name}", float(values[i, field.bath + place]))
    return values


def written_out(field: Field, values: np.ndarray, links: int) -> tuple[Field, np.ndarray]:
    """The field, and the parameters of all bodies, with the initial state of every link, also of chains at rest."""
    assert field.bath is not None
    if links_at_start(field) is not None:
        return field, values
    place = field.bath + START
    bound = field.bind(**{name_of_parameter(field, place): np.zeros((2, links))})
    at_rest = np.zeros((len(values), 2 * links))
    return bound, np.concatenate([values[:, :place], at_rest, values[:, place + 1 :]], axis=1)


def chain_kernel(field: Field, links: int) -> Callable[..., Any]:
    """The kernel that answers the query `ChainStart`."""
    place, own = field.bath, links_at_start(field)
    assert place is not None
    first = place + START
    start = [f"p[{first + i}]" if own is not None else f"0 * p[{place}]" for i in range(2 * links)]
    return unrolled_kernel(
        "t, q, m, system, h", f"(p[{place + KT}], p[{place + TAU}], {', '.join(start)})", "p = system[2]"
    )
