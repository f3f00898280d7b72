"""One step inside somebody else's loop."""

from __future__ import annotations

from typing import Any, NamedTuple

from .backends import floats
from .body import Body
from .engine import torque_kernel
from .errors import InputError, StepError
from .fields import Field
from .loop import good
from .methods import Method, methods
from .problem import Problem, _finite_number, _vector
from .scalar import kernel
from .so3 import nearly_unit, unrotate


class State(NamedTuple):
    """Attitude (unit quaternion, scalar first, body to space), body momentum, time."""

    quaternion: tuple[float, float, float, float]
    momentum: tuple[float, float, float]
    t: float = 0.0


@kernel
def _held_body(t: Any, q: Any, m: Any, system: Any) -> Any:
    """A torque held in the body frame over the step."""
    p = system[2]
    return (p[0], p[1], p[2])


@kernel
def _held_space(t: Any, q: Any, m: Any, system: Any) -> Any:
    """A torque held in the space frame over the step."""
    p = system[2]
    return unrotate(q, (p[0], p[1], p[2]))


class Stepper:
    """Advances states of one body by one step of one method; made by `ph.stepper`."""

    def __init__(self, body: Body, method: Method, dt: float) -> None:
        self.body, self.method, self.dt = body, method, dt
        self._steps: dict[str, Any] = {}

    def step(self, state: State | tuple[Any, ...], torque: Any = (0.0, 0.0, 0.0), frame: str = "body") -> State:
        """The state one step later.

        Parameters
        ----------
        state : (quaternion, momentum) or (quaternion, momentum, t), such as the last call returned
        torque : three numbers, held constant over the step in the named frame, or a bound field
        frame : "body" or "space", for three numbers
        """
        start = State(*state)
        field = torque if isinstance(torque, Field) else None
        problem = Problem(self.body, field, attitude=start.quaternion, momentum=start.momentum, t0=start.t)
        y, (inertia, inverse, parameters) = problem.kernel_data(floats.number)
        if field is None:
            if frame not in ("body", "space"):
                raise InputError(f"frame must be 'body' or 'space'; got {frame!r}")
            given = _vector("torque", torque)
            if frame == "body":
                given = self.body.axes.T @ given
            parameters = (*(float(x) for x in given), *parameters)
        advance = self._compiled(problem, frame)
        new, miss = advance(self.dt, float(start.t), y, (inertia, inverse, parameters))
        if not good(new, miss):
            raise StepError(f"{self.method.name} failed in one step from t = {start.t:g} with dt = {self.dt:g}; "
                            f"try a smaller dt")  # fmt: skip
        q, m = problem.user_axes(nearly_unit(new[0]), new[1])
        return State(tuple(map(float, q)), tuple(map(float, m)), start.t + self.dt)  # type: ignore[arg-type]

    def _compiled(self, problem: Problem, frame: str) -> Any:
        field = problem.field
        key = repr(field.text[0]) if field else frame
        if key not in self._steps:
            from .backends import cpu
            from .engine import check_fit

            if field is not None:
                check_fit(self.method, problem)
                torque = torque_kernel(problem, floats.number)
            elif self.method.takes("attitude"):
                torque = _held_body if frame == "body" else _held_space
            else:
                raise InputError(f"{self.method.name} takes no torque")
            step = self.method.build(floats.number)

            def one(h: Any, t: Any, y: Any, system: Any) -> Any:
                return step(h, t, y, system, torque)

            name = f"one|{self.method.name}|{self.method.identity}|{key}|{self.body.has_own_axes}"
            self._steps[key], _ = cpu.compiled(one, name)
        return self._steps[key]


def stepper(body: Body, method: str | Method, dt: float) -> Stepper:
    """A stepper for loops that are not ours: ``state = ph.stepper(body, "imidm", dt).step(state, torque)``."""
    if not isinstance(body, Body):
        raise InputError(f"body must be a ph.Body; got {type(body).__name__}")
    dt = _finite_number("dt", dt)
    if dt == 0:
        raise InputError("dt must not be zero")
    return Stepper(body, methods[method], dt)


