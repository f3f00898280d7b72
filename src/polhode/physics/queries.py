"""Kernels that answer the field queries of methods (`methods/queries.py`), in principal axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..methods.queries import (
    STATE,
    ChainStart,
    DiscreteGradient,
    FieldQuery,
    HeatBath,
    MeanFriction,
    MotionSeries,
    Together,
    Torque,
    TorqueAndCorrector,
    TorqueGradient,
    TorqueRates,
)
from ..numbers.dispatch import by_arguments, kernel
from .fields import Field
from .fields.heat_bath import bath_kernel
from .fields.kernels import no_answer
from .fields.thermostat import chain_kernel
from .taylor_steps import lie_taylor_kernel, taylor_kernel
from .torque_gradient import no_gradient, rate_kernel
from .torque_rates import rates_kernel

Number = Callable[[Any], Any]
Kernel = Callable[..., Any]


@functools.singledispatch
def answering(query: FieldQuery, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    """The kernel torque(t, q, m, system, ...) that answers a query, in one number type.

    With `has_principal_rotation` the user's axes differ from the principal ones.
    """
    raise TypeError(f"no kernel answers the query {query!r}")


@answering.register
def _(query: Together, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    kernel, counted = answering(query.parts[0], field, has_principal_rotation, number), query.parts[0]
    for part in query.parts[1:]:
        kernel = by_arguments(
            kernel, answering(part, field, has_principal_rotation, number), 4 + len(counted.arguments)
        )
        counted = part
    return kernel


@answering.register
def _(query: Torque, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    return no_answer(query) if field is None else field.torque_kernel(number, has_principal_rotation)


@answering.register
def _(query: TorqueAndCorrector, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    return no_answer(query) if field is None else field.pair_kernel(number, has_principal_rotation)


@answering.register
def _(query: TorqueRates, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    return no_answer(query) if field is None else rates_kernel(field, query.count, number, has_principal_rotation)


@answering.register
def _(query: TorqueGradient, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    return no_gradient if field is None else rate_kernel(field, number, has_principal_rotation)


@answering.register
def _(query: DiscreteGradient, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    if field is None or field.kind != "potential":
        return no_answer(query)
    return field.difference_kernel(number, has_principal_rotation)


@answering.register
def _(query: MotionSeries, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    if query.of == STATE:
        return taylor_kernel(field, has_principal_rotation, query.order, number)
    return lie_taylor_kernel(field, has_principal_rotation, query.order, number, "lead" in query.arguments)


@answering.register
def _(query: HeatBath, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    if field is None or field.bath is None:
        return no_answer(query)
    return bath_kernel(field, has_principal_rotation)


@answering.register
def _(query: ChainStart, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    if field is None or field.bath is None:
        return no_answer(query)
    return chain_kernel(field, query.links)


@answering.register
def _(query: MeanFriction, field: Field | None, has_principal_rotation: bool, number: Number) -> Kernel:
    if field is None or field.bath is None:
        return no_answer(query)
    whole = bath_kernel(field, has_principal_rotation)

    @kernel
    def bath(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        kT, diagonal, _, seed, stream, first = whole(t, q, m, system, h)
        return kT, diagonal, seed, stream, first

    return bath
