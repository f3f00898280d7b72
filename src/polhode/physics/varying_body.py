"""Bodies whose inertia tensor changes with time: deployed arms, moving parts, burning fuel."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import InputError
from .body import Body
from .fields.decorators import template_of
from .fields.field import Field
from .fields.template import FieldTemplate
from .fields.varying_inertia import CARRIED, InertiaField, VaryingField, varying_field
from .tables import horner, interpolated, looked_up, rows_of
from .validate import real_array

DIAGONAL, OTHERS = ((0, 0), (1, 1), (2, 2)), ((1, 2), (0, 2), (0, 1))
"""Places of the numbers of a symmetric tensor."""

SYMMETRY = 1e-12
"""Allowed difference of a tensor in a table from its transpose, relative to its size."""


class VaryingBody:
    """A body whose inertia tensor is a function of time, or a table over time.

    Parameters
    ----------
    inertia : function of t (and parameters with defaults) that returns the tensor, 3x3 numbers in body axes, or three
        moments. It must be a formula, because its derivative is needed. Or with `times`, tensors (n, 3, 3) or moments
        (n, 3) at these times
    times : (n,) increasing times of a table; before and after it the inertia is constant
    between : "cubic" (a spline with continuous second derivatives) or "linear", for a table
    leaving : rate at which matter carries momentum away: None if matter only moves within the body, "carried" if it
        leaves with the velocity of the body at that point, or a function of t and omega (either or both) that
        returns three numbers in body axes

    Examples
    --------
    >>> @ph.VaryingBody
    ... def unfolding(t):
    ...     return 1.0 + 0.1 * t, 1.0 + 0.1 * t, 0.5
    ...
    >>> ship = ph.Problem(unfolding, omega=[0.1, 0.0, 1.0])
    >>> sol = ph.solve(ship, tol=1e-9, t_end=5.0)
    >>> (sol.spatial_momentum[-1] - sol.spatial_momentum[0]).round(6) + 0.0
    array([0., 0., 0.])
    """

    def __init__(self, inertia: Any, *, times: Any = None, between: str = "cubic", leaving: Any = None) -> None:
        self.inertia = _function(inertia) if times is None else _table(times, inertia, between)
        self.leaving = _leaving(leaving)

    @classmethod
    def of(cls, field: VaryingField) -> VaryingBody:
        """The body of a field made by `at`."""
        made = cls.__new__(cls)
        made.inertia, made.leaving = field.inertia, field.leaving
        return made

    def at(self, t: float, base: Field | None = None) -> tuple[Body, Field]:
        """The body at a time, and the field that moves it, with constant inertia, as `base` moves this one."""
        body = self._body(t)
        return body, varying_field(self.inertia, self.leaving, base, tuple(map(tuple, body.inertia.tolist())))

    def _body(self, t: float) -> Body:
        context = f"at t = {t:g}"
        tensor = self.inertia.tensor(t, context)
        try:
            return Body(tensor)
        except InputError as fault:
            owner = self.inertia.template.user.owner
            raise InputError(f"{owner} returned no inertia tensor {context}: {fault}") from None

    def __repr__(self) -> str:
        lost = "" if self.leaving is None else f", leaving={self.leaving!r}"
        return f"VaryingBody({self.inertia!r}{lost})"


def _function(inertia: Any) -> InertiaField:
    rule, expected = "the inertia is a function of t (and parameters)", "inertia must be a plain function of t"
    if not callable(inertia):
        raise InputError(f"{expected}, or an array with times=...; got {inertia!r}; for a constant one use ph.Body")
    return _bound(template_of(inertia, "inertia", forbidden=("R", "omega"), rule=rule))


def _bound(template: FieldTemplate, *values: Any) -> InertiaField:
    made = dataclasses.replace(template, makes=InertiaField)
    if not values and not made.complete:
        raise InputError(f"{made.user.owner} must have defaults for its parameters ({', '.join(made.parameters)})")
    field = made(*values)
    assert isinstance(field, InertiaField)
    return field


def tabulated_inertia(t: Any, table: Any) -> Any:
    """The tensor from a table: polynomials of the diagonal, then of the other numbers."""
    _, x, coefficients = looked_up(t, table)
    half = len(coefficients) // 2
    (a, b, c), (d, e, f) = horner(x, coefficients[:half]), horner(x, coefficients[half:])
    return (a, f, e), (f, b, d), (e, d, c)


def _table(times: Any, inertia: Any, between: str) -> InertiaField:
    expected = "inertia must be tensors (n, 3, 3) or moments (n, 3), one for each of the times"
    tensors = real_array(inertia, expected, key="inertia")
    if tensors.ndim == 2 and tensors.shape[1] == 3:
        tensors = tensors[:, :, None] * np.eye(3)
    if tensors.ndim != 3 or tensors.shape[1:] != (3, 3):
        raise InputError(f"{expected}; got shape {tensors.shape}", "inertia")
    gaps = np.abs(tensors - tensors.swapaxes(1, 2)).max(axis=(1, 2))
    askew = np.flatnonzero(gaps > SYMMETRY * np.abs(tensors).max(axis=(1, 2)))
    if len(askew):
        raise InputError(f"an inertia tensor must be symmetric; tensor {askew[0]} of the table is not", "inertia")
    for n, tensor in enumerate(tensors):
        try:
            Body(tensor)
        except InputError as fault:
            raise InputError(f"tensor {n} of the table is not that of a body: {fault}", "inertia") from None
    (knots, first), (_, second) = (
        interpolated(times, np.stack([tensors[:, i, j] for i, j in places], 1), "inertia", between)
        for places in (DIAGONAL, OTHERS)
    )
    table = rows_of(knots, np.concatenate([first, second], axis=1))
    return _bound(FieldTemplate(tabulated_inertia, "inertia", "body"), table)


def _leaving(leaving: Any) -> Field | str | None:
    if leaving is None or (isinstance(leaving, str) and leaving == CARRIED):
        return leaving
    if not callable(leaving):
        raise InputError(f"leaving must be None, {CARRIED!r} or a function of t and omega; got {leaving!r}", "leaving")
    rule = "the momentum that leaves is a function of t and omega"
    template = template_of(leaving, "torque", forbidden=("R",), rule=rule)
    if template.parameters and not template.complete:
        raise InputError(f"{rule}; {leaving.__name__} takes {', '.join(template.parameters)}")
    return template()
