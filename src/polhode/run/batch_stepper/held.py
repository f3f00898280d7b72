"""The programs of a stepper of many bodies: torques held over a step, as fields with three parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import InputError
from ...methods import Method
from ...methods.ranking import fitting, listed
from ...numbers import floats
from ...physics.bodies import Bodies
from ...physics.fields import Field
from ...physics.fields import torque as field_torque
from ...physics.fields.decorators import check_frame
from ...physics.fields.states import without_states
from ...physics.fields.template import FRAMES
from ...physics.fields.thermostat import START
from ...physics.problem import Problem
from ...physics.queries import answering
from ..ensemble.batch import awkward
from ..integrator import beginning, check_compiled, check_fit


def _held_torque(x: Any, y: Any, z: Any) -> Any:
    return (x, y, z)


HELD = {frame: field_torque(_held_torque, frame=frame)(0.0, 0.0, 0.0) for frame in FRAMES}
"""A torque held constant over a step in a frame, as a field with three parameters."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a step is compiled for: the frame of a held torque (or None), its form for sub-steps, and own steps."""

    frame: str | None
    each: bool
    own_dt: bool


def field_with(field: Field | None, method: Method, frame: str | None) -> Field | None:
    """Return the field of a step: that of the bodies, plus a torque held in a frame."""
    if frame is None:
        return field
    held = HELD[check_frame(frame)]
    if not method.takes("attitude"):
        able = listed(fitting("attitude"))
        raise InputError(
            f"{method.name} does not take a torque that is constant over a step; methods that do: {able}. "
            "Without a torque, write step(q, pi)"
        )
    return held if field is None else field + held


def check_bodies(bodies: Bodies, method: Method, field: Field | None) -> None:
    """Refuse a method that cannot handle one of the bodies or their field."""
    if field is not None and field.states:
        raise without_states(field)
    for i in awkward(bodies):
        problem = Problem(bodies.body(i), momentum=(0.0, 0.0, 0.0)).in_field(field)
        check_fit(method, problem)
        check_compiled(problem, "a stepper of many bodies", "give the torques as an array or as a function of arrays")


def compiled(bodies: Bodies, method: Method, form: Any, kind: Kind) -> Any:
    """Return the compiled step of these bodies."""
    from ...compile.batch import in_place
    from ...compile.batch.layout import Sizes
    from ...compile.lazily import program

    field = field_with(bodies.field, method, kind.frame)
    check_bodies(bodies, method, field)
    held, turned = kind.frame is not None, bodies.own is not None
    places = () if field is None else tuple(field.columns)
    size = Sizes(bodies.values.shape[1] + 3 * held, 4 * turned, places)
    call = in_place.Call(held, kind.each, kind.own_dt)

    def build() -> Any:
        torque = answering(method.asks, field, turned, floats.number)
        before, after = method.processors(floats.number)
        if method.thermostat is not None:
            carried = in_place.continuing(beginning(method), chain_of(bodies, method))
        elif method.memory:  # `memories` has filled it
            width = bodies.values.shape[1]
            carried, before = in_place.remembering(beginning(method), method.memory, width), None
        else:
            carried = in_place.carrying(beginning(method))
        return in_place.loop(method.build(floats.number), torque, size, form, call, carried, before, after)

    return program(build, "in place", method, _structure(field), size, form, call).run


def chain_of(bodies: Bodies, method: Method) -> Any:
    """Return where the chain of a method stands in its memory, after its energy, and among the parameters of bodies."""
    from ...compile.batch.in_place import Chain

    assert bodies.field is not None
    assert bodies.field.bath is not None
    assert method.thermostat is not None
    return Chain(1, bodies.field.bath + START, 2 * method.thermostat.links)


def memories(bodies: Bodies, method: Method, own_dt: bool) -> Any:
    """Return the compiled function that fills the memories of a method with noise, friction and noise of a step."""
    from ...compile.batch import in_place
    from ...compile.batch.layout import Sizes
    from ...compile.lazily import program

    field, turned = bodies.field, bodies.own is not None
    size = Sizes(bodies.values.shape[1], 4 * turned, () if field is None else tuple(field.columns))

    def build() -> Any:
        torque, before = answering(method.asks, field, turned, floats.number), method.before
        assert before is not None
        begin, start = beginning(method), before(floats.number)
        return in_place.filling(begin, start, torque, size, method.memory, own_dt)

    return program(build, "memories", method, _structure(field), size, own_dt).run


def _structure(field: Field | None) -> str | None:
    return None if field is None else field.structure
