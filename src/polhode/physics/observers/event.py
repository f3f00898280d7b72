"""Events: zeros of a user's function g(t, R, omega, parameters), located during a run.

The function is written and traced like a torque (`fields.py`); it returns one number. An event happens when g
passes through zero in the given direction.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.so3 import matrix, times
from ...numbers import floats
from ...numbers.dispatch import kernel
from ...symbolic.expression import Expr, compiled, lift, source, symbols_in
from ..axes import axes
from ..fields import Field, FieldTemplate
from ..fields.decorators import template_of
from ..problem import Problem
from ..validate import flag

DIRECTIONS = (-1, 0, 1)
"""Falling through zero, either way, rising."""


class Event:
    """A function whose zeros are events; made by `ph.event`.

    Attributes
    ----------
    name : the function's name
    direction : -1 for g falling through zero, 1 for rising, 0 for both
    terminal : True if the run ends at the first one
    field : the function with its parameters bound; None if they are unbound. Call the event to bind them

    Examples
    --------
    >>> @ph.event(direction=1, terminal=True)
    ... def upright(R):
    ...     return R[2][2] - 0.99
    ...
    >>> upright.terminal
    True
    """

    def __init__(self, template: FieldTemplate, direction: int, terminal: bool, field: Field | None) -> None:
        self.template, self.direction, self.terminal, self.field = template, direction, terminal, field
        self.name = template.function.__name__

    def __call__(self, *args: Any, **named: Any) -> Event:
        """The same event with its parameters bound, by position or by name."""
        return Event(self.template, self.direction, self.terminal, self.template(*args, **named))

    def __reduce__(self) -> Any:
        """Pickle a bound event as its formula, without code."""
        if self.field is None:
            return Event, (self.template, self.direction, self.terminal, None)
        return _of_field, (self.field, self.direction, self.terminal)

    def __repr__(self) -> str:
        shown = repr(self.field) if self.field is not None else f"{self.name} without its parameters"
        return f"<Event {shown}, direction {self.direction}{', terminal' if self.terminal else ''}>"

    @property
    def bound(self) -> Field:
        """The function with its parameters bound; an error if they are unbound."""
        if self.field is None:
            names = ", ".join(self.template.parameters)
            raise InputError(
                f"the event {self.name} has no values for {names}; its function takes t, R, omega, and parameters, "
                f"which must be bound by a call, ph.event({self.name})({names}), or have defaults"
            )
        return self.field

    @property
    def parameters(self) -> tuple[float, ...]:
        """All parameter values, flattened."""
        return self.bound.parameters

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Evaluate the function once in plain Python, raise a clear error if it fails; then trace it."""
        field = self.bound
        field.check(t, R, omega, context)
        value = field.value(t, R, omega, context)
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            raise InputError(
                f"the event {self.name} must return a number that passes through zero; it returned {value} {context}: "
                f"return the difference of the two sides instead of a comparison"
            )
        if not any(name[0] in "tRw" for name in symbols_in([self.graph])):
            raise InputError(
                f"the event {self.name} depends on none of t, R, omega, so it never happens; return a function of them"
            )

    @functools.cached_property
    def graph(self) -> Expr:
        """The function as a formula of the symbols t, R00..R22, w0..w2, p0, p1, ... (parameters); the user's axes."""
        formula: Expr = self.bound.traced(lift)
        return formula

    @functools.cached_property
    def text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of ``event_value(t, R, w, p)``, which returns a tuple of one number."""
        return source("event_value", "t, R, w, p", self.bound.unpack, [self.graph])

    def formula(self, t: Any, R: Any, omega: Any) -> Any:
        """Its values in the user's axes, for numbers or arrays."""
        return compiled(*self.text, floats.number)(t, R, omega, self.parameters)[0]

    def value(self, t: float, R: Any, omega: Any) -> float:
        """Its value at one state, in the user's axes."""
        return float(self.formula(t, R, omega))

    def kernel(self, number: Callable[[Any], Any], problem: Problem) -> Callable[..., Any]:
        """The kernel g(t, q, m, system) in principal axes, in one number type; its parameters are compiled in."""
        value, p = compiled(*self.text, number), tuple(number(x) for x in self.parameters)
        count = len(problem.field.parameters) if problem.field is not None else 0
        attitude, vector, _, _ = axes(problem.body.has_principal_rotation, count)

        @kernel
        def g(t: Any, q: Any, m: Any, system: Any) -> Any:
            return value(t, attitude(q, system), vector(times(system[1], m), system), p)[0]

        return g

    def happened(self, before: Any, after: Any) -> Any:
        """True if g passes through zero between two values (or arrays); a zero at `before` does not count."""
        rises, falls = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
        return (rises & (self.direction >= 0)) | (falls & (self.direction <= 0))


def _of_field(field: Field, direction: int, terminal: bool) -> Event:
    """Return an event from its function with bound parameters."""
    return Event(field.template, direction, terminal, field)


def event(function: Any = None, direction: int = 0, terminal: bool = False) -> Any:
    """Make an event from a function of t, R, omega (any of them) and parameters that returns one number.

    ``R[i][j]`` maps body to space, ``omega`` is the body angular velocity. `direction` is 1 for rising zeros, -1 for
    falling ones, 0 for both; a `terminal` event ends the run. If the function has parameters without defaults, call
    the event to bind them: ``ph.event(tilt)(0.3)``. Also works as a decorator.

    Examples
    --------
    >>> @ph.event
    ... def sideways(R):
    ...     return R[2][2]
    ...
    >>> sol = ph.solve(ph.problems.t_handle(), tol=1e-8, t_end=6.0, events=sideways)
    >>> sol.events[0].t.round(3)
    array([0.314, 0.942, 1.57 , 2.186, 2.626, 3.053, 3.666, 4.294, 4.922,
           5.55 ])
    """
    if isinstance(direction, bool) or not isinstance(direction, numbers.Real) or direction not in DIRECTIONS:
        raise InputError(f"direction must be -1 (falling), 0 (either way) or 1 (rising); got {direction!r}")
    terminal = flag("terminal", terminal)
    if function is None:
        return lambda decorated: event(decorated, direction, terminal)
    template = template_of(function, "event")
    return Event(template, int(direction), terminal, template() if template.complete else None)


def checked(events: Any, problem: Problem) -> list[Event]:
    """The events of a run as a list, each bound and evaluated once at the start."""
    if isinstance(events, Event):
        events = (events,)
    try:
        listed = [] if events is None else list(events)
    except TypeError:
        raise InputError(f"events must be a sequence of ph.event(...); got {type(events).__name__}") from None
    for one in listed:
        if not isinstance(one, Event):
            hint = f"; write ph.event({one.__name__})" if callable(one) and hasattr(one, "__name__") else ""
            raise InputError(f"events must be made by ph.event; got {type(one).__name__}{hint}")
        R = tuple(tuple(float(x) for x in row) for row in matrix(problem.quaternion))
        omega = tuple(float(x) for x in problem.omega)
        one.check(problem.t0, R, omega, f"at the start (t = {problem.t0:g})")
    return listed
