"""The input forms of `ph.ensemble` (arrays, a Problem, or a list of problems), all converted to `Inputs`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...methods import EXAMPLE, Method
from ...physics.control.controller import control_in
from ...physics.fields import Field
from ...physics.fields.parameters import like
from ...physics.fields.states import coupled_text
from ...physics.problem import Problem
from ...physics.validate import by_name, finite_number
from ...symbolic.rows import Rows
from ..step_count import Interval, number_of_steps, signed_step
from .batch import BodyBatch, from_arrays
from .memory import MEMORY
from .start import VECTORS, Start, euler_rotation

ATTITUDES = ("attitude", "euler", "euler_deg")
"""Arguments for the attitudes, of which at most one is given."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Bodies, initial states, field and times."""

    bodies: Any
    attitudes: Any
    start: Start
    field: Any
    params: dict[str, Any]
    t0: float
    t_end: float | None = None
    name: str = ""

    def batch(self, dt: Any, device: str = "cpu") -> BodyBatch:
        """Return the checked arrays, in memory for a device."""
        given = self.bodies, self.attitudes, self.start, self.field, self.params, dt
        return from_arrays(*given, self.name, MEMORY[device]())

    def steps(self, method: Method, dt: Any, steps: Any, t_end: Any) -> tuple[Any, Any]:
        """Return dt, negative in a run backwards in time, and `steps`, or the number of steps to the end time."""
        if steps is not None and t_end is None:
            return dt, steps
        per_body_dt = isinstance(dt, list | tuple) or bool(getattr(dt, "ndim", 0))
        if steps is None and (method.has_own_time or per_body_dt):
            why = f"{method.name} chooses its own steps" if method.has_own_time else "every body has its own dt"
            raise InputError(f"{why}, so give steps instead of t_end", "steps")
        run = Interval(self.t0, self.t_end)
        dt = signed_step(run, dt, t_end, steps)
        return dt, number_of_steps(run, dt, t_end, steps, sampled=control_in(self.field) is not None)


def read(
    bodies: Any, attitudes: Any, momenta: Any, method: Any, given: Mapping[str, Any], timed: bool
) -> tuple[Inputs, Any]:
    """Convert the arguments to `Inputs`, and return the method too: after a Problem it is the second argument.

    `given` holds the keywords body, field, params, t0 and t_end, and those of `ATTITUDES` and `VECTORS`. `timed` says
    whether the run needs a common end time.
    """
    by_name("params", given["params"], "{'mgl': 1.0}")
    problems = _problems(bodies)
    if problems is None:
        return _of_arrays(bodies, attitudes, momenta, given), method
    if isinstance(attitudes, str | Method):
        if method is not None:
            raise InputError(f"give one method; got {attitudes!r} and {method!r}")
        attitudes, method = None, attitudes
    for name, value in (("attitudes", attitudes), ("momenta", momenta)):
        if value is not None:
            raise InputError(
                f"with a Problem give {name} by name, such as ph.ensemble(problem, '{EXAMPLE}', momentum=array, "
                f"...); got a positional {type(value).__name__}"
            )
    return _of_problems(problems, given, timed), method


def _problems(bodies: Any) -> list[Problem] | None:
    """Return the problems given instead of bodies; None if there are none."""
    if isinstance(bodies, Problem):
        return [bodies]
    if not isinstance(bodies, list | tuple) or not any(isinstance(one, Problem) for one in bodies):
        return None
    strange = next((i for i, one in enumerate(bodies) if not isinstance(one, Problem)), None)
    if strange is not None:
        raise InputError(
            f"a list of problems must hold nothing else; entry {strange} is a {type(bodies[strange]).__name__}"
        )
    return list(bodies)


def _of_arrays(bodies: Any, attitudes: Any, momenta: Any, given: Mapping[str, Any]) -> Inputs:
    """Read the form ``ensemble(bodies, attitudes, momenta, method, ...)``."""
    if given["body"] is not None:
        raise InputError("bodies are the first argument; body= replaces the body of a Problem. Remove one of them")
    start = _only({"momenta": momenta} | {name: given[name] for name in VECTORS})
    if start is None:
        raise InputError(f"give momenta, or one of {', '.join(VECTORS)} by name")
    attitude = _attitude({"attitudes": attitudes} | {name: given[name] for name in ATTITUDES})
    t0 = 0.0 if given["t0"] is None else finite_number("t0", given["t0"])
    return Inputs(bodies, attitude, Start(*start), given["field"], dict(given["params"] or {}), t0, given["t_end"])


def _of_problems(problems: Sequence[Problem], given: Mapping[str, Any], timed: bool) -> Inputs:
    """Read the form ``ensemble(problem, method, ...)``: omitted arguments take the values of the problem."""
    first, several = problems[0], len(problems) > 1
    start = _only({name: given[name] for name in VECTORS})
    if start is None:
        start = "momentum", [one.momentum for one in problems] if several else first.momentum
    attitude = _attitude({name: given[name] for name in ATTITUDES})
    if attitude is None:
        attitude = [one.quaternion for one in problems] if several else first.quaternion
    bodies = given["body"]
    if bodies is None:
        bodies = first.body if all(one.body is first.body for one in problems) else [one.body for one in problems]
    field, params = (given["field"], {}) if given["field"] is not None else _field(problems)
    t0 = _common("t0", problems) if given["t0"] is None else finite_number("t0", given["t0"])
    t_end = _common("t_end", problems) if given["t_end"] is None and timed else given["t_end"]
    name = first.name if all(one.name == first.name for one in problems) else ""
    return Inputs(bodies, attitude, Start(*start), field, params | dict(given["params"] or {}), t0, t_end, name)


def _only(given: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return the only argument given, or None; refuse several."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) > 1:
        raise InputError(f"give only one of {', '.join(given)}; got {' and '.join(name for name, _ in found)}")
    return found[0] if found else None


def _attitude(given: Mapping[str, Any]) -> Any:
    """Return the attitudes in a form that `start.quaternions` accepts."""
    found = _only(given)
    if found is None:
        return None
    name, value = found
    return euler_rotation(name, value, name == "euler_deg") if name.startswith("euler") else value


def _common(name: str, problems: Sequence[Problem]) -> Any:
    """Return a time that all problems must share."""
    values = list(dict.fromkeys(getattr(one, name) for one in problems))
    if len(values) > 1:
        raise InputError(
            f"all problems must have the same {name}; got {values[0]} and {values[1]}. Give {name}= for all", name
        )
    return values[0]


def _structure(field: Field) -> str:
    return repr(coupled_text(field)) if field.states else str(field.structure)


def _field(problems: Sequence[Problem]) -> tuple[Field | None, dict[str, Any]]:
    """Return the common field of the problems, and the parameters that differ, with a value for each body."""
    first = problems[0].field
    fields = [one.field for one in problems]
    for i, field in enumerate(fields):
        if (field is None) != (first is None) or (field and first and _structure(field) != _structure(first)):
            raise InputError(
                f"all problems must have a field of the same formula, with any parameters; problem 0 has {first!r} "
                f"and problem {i} has {field!r}. Run them apart"
            )
    if first is None:
        return None, {}
    shapes = tuple(first.values.values())
    values = [like(shapes, field.parameters)[0] for field in fields if field]
    columns = dict(zip(first.values, zip(*values, strict=True), strict=True))
    for name, column in columns.items():
        if isinstance(column[0], Rows) and len(set(column)) > 1:
            raise InputError(f"all problems must have the same rows of data {name}; run them apart")
    return first, {name: np.array(column) for name, column in columns.items() if len(set(column)) > 1}
