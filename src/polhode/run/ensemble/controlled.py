"""Ensembles under sampled-data control: the controller is a part of the field, with parameters for each body."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import InputError
from ...methods import Method
from ...physics.control.controller import CLOCK, PERIOD, control_in
from ...physics.fields import FieldTemplate
from ...physics.fields.template import unbound
from ...physics.problem import Problem
from ...physics.validate import real_array
from .. import control, control_tangent
from ..parts import Commands
from .batch import BodyBatch
from .inputs import Inputs


def with_controller(inputs: Inputs, law: Any, period: Any, dt: Any) -> Inputs:
    """Return the inputs with the torques of a controller added to their field."""
    found, checked = control.read(law, period)
    if isinstance(inputs.field, FieldTemplate):
        raise unbound(inputs.field)
    if real_array(dt, "dt must be a number").ndim:
        raise InputError("with control all bodies make the same steps; give one dt for all", "dt")
    field = control.controlled(inputs.field, found, checked, inputs.t0)
    reserved = control.full_names(field, (PERIOD, CLOCK))
    taken = [name for name in inputs.params if name in reserved]
    if taken:
        raise InputError(f"{taken[0]} is the same for all bodies; give period as an argument, not in params", taken[0])
    return dataclasses.replace(inputs, field=field)


def check_controlled(batch: BodyBatch, method: Method) -> None:
    """Refuse bodies and parameters that do not go with a controller."""
    assert batch.field is not None
    own = control_in(batch.field)
    assert own is not None
    control.check_method(method)
    control.check_period(own.values[PERIOD], float(batch.dt[0]))
    control.check_body(bool((batch.moments == 0).any()))


def check_closed_loops(model: Problem, method: Method, tangent: bool, **in_lanes: Any) -> None:
    """Refuse a controller that is no formula, and derivatives with what only lanes know."""
    Commands(model).check_formula("an ensemble")
    if not tangent:
        return
    for name, value in in_lanes.items():
        if value is not None:
            raise InputError(
                f"derivatives under control are computed body by body on the processor, without {name}; leave out "
                f"`{name}` or `tangent`"
            )
    problem, law = control.separated(model)
    control_tangent.check(problem, law["control"], law["period"], method)
