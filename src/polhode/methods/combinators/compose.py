"""Composition of methods, with declarations derived from their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.state import collapse, compensate, with_memory
from ...numbers.dispatch import kernel
from ..record import NEEDS, Build, Method
from ..registry import declare, methods


def after(first: Step, second: Step) -> Step:
    """Step kernel: `first` over h/2, then `second` over the rest."""

    @kernel
    def both(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        half = h / 2
        y, residual = first(half, t, y, system, torque)
        y, more = second(half, t + half, y, system, torque)
        return y, residual + more

    return both


def whole(method: Method) -> Build:
    """Return the builder of one step from state to state (q, m), processors and memory included."""
    if method.before is None and method.after is None and not method.memory:
        return method.build

    def build(number: Any) -> Step:
        before, after = method.processors(number)
        step = in_turn([part for part in (before, method.build(number), after) if part is not None])
        return forgetful(step, method.memory) if method.memory else step

    return build


def forgetful(step: Step, memory: int) -> Step:
    """Step kernel on (q, m) from a step that carries `memory` further numbers."""
    return _within(step, with_memory(memory))


def collapsed_step(step: Step) -> Step:
    """Step kernel on (q, m) from a step that carries low parts."""
    return _within(step, compensate)


def _within(step: Step, start_state: Callable[[Any], Any]) -> Step:
    @kernel
    def alone(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        y, residual = step(h, t, start_state(y), system, torque)
        return collapse(y), residual

    return alone


def require_fixed_step(method: Method) -> Method:
    """Return the method if it can be part of another one, that is, if its steps are h; else raise an error."""
    if not method.has_step:
        raise InputError(f"{method.name} is an exact motion without steps and cannot be part of another method")
    if method.has_own_time:
        raise InputError(
            f"{method.name} chooses its own steps and cannot be part of another method; make it the outermost one"
        )
    if method.noise is not None:
        raise InputError(f"{method.name} has noise and cannot be part of another method; make it the outermost one")
    if method.thermostat is not None:
        raise InputError(f"{method.name} has a chain and cannot be part of another method; make it the outermost one")
    return method


def scheme_of(name: str, given: str | Method) -> Method:
    """The scheme between two half steps of a thermostat `name`; a free flow stands for its Strang splitting."""
    chosen = require_fixed_step(methods[given])
    if chosen.needs == "free":
        chosen = methods.combinators["strang"](chosen)
    if chosen.memory or chosen.compensated:
        raise InputError(
            f"{name}() needs a scheme that carries attitude and momentum only, such as {name}(strang(jacobi)); "
            f"{chosen.name} carries more from step to step"
        )
    return chosen


def in_turn(steps: Sequence[Step]) -> Step:
    """Step kernel: all of these over the same h from the same t, one after the other."""
    first, *rest = steps
    if not rest:
        return first
    then = in_turn(rest)

    @kernel
    def both(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        y, residual = first(h, t, y, system, torque)
        y, more = then(h, t, y, system, torque)
        return y, residual + more

    return both


def halves(first: Method, second: Method, *, register: bool = True, **declared: Any) -> Method:
    """Build the method second_{h/2} o first_{h/2}.

    The declaration is derived: quantities that both parts conserve are conserved; the field must suit both;
    solves add up; a structure that both parts preserve is preserved. If the second part is the adjoint of the
    first, the caller declares ``symmetric=True, order=2``, and the checks verify it.
    """
    common = require_fixed_step(first).conserves & require_fixed_step(second).conserves
    if first.asks != second.asks:
        raise InputError(
            f"{first.name} and {second.name} need different data from the field ({first.asks}, and {second.asks}); "
            "halves() takes two methods that need the same"
        )
    midpoint = {"spatial_momentum_midpoint"} if "spatial_momentum" in common else set()
    derived: dict[str, Any] = {
        "name": f"halves({first.name},{second.name})",
        "order": min(first.order, second.order),
        "order_free": min(first.order_free, second.order_free),
        "symmetric": False,
        "symplectic": _both(first.symplectic, second.symplectic),
        "poisson": _both(first.poisson, second.poisson),
        "implicit": first.implicit or second.implicit,
        "solves": first.solves + second.solves,
        "torque_evals": first.torque_evals + second.torque_evals,
        "torque_at": (first.torque_at & {"start"}) | (second.torque_at & {"end"}),
        "conserves": common | midpoint,
        "needs": min(first.needs, second.needs, key=NEEDS.index),
        "cite": first.cite,
        "where": "",
        "halves": (first, second),
        "doc": _halves_description(first, second),
        "increments": first.increments and second.increments,
        "compensated": first.compensated and second.compensated,
        "asks": first.asks,
        "linear_bodies": first.linear_bodies and second.linear_bodies,
        "flat_bodies": first.flat_bodies and second.flat_bodies,
    }
    declared["conserves"] = frozenset(declared.get("conserves", ())) | derived["conserves"]
    return declare(
        lambda number: after(whole(first)(number), whole(second)(number)), register=register, **(derived | declared)
    )


def _halves_description(first: Method, second: Method) -> str:
    """Description of a composition of two half steps, with the formulas of both."""
    return rf"""{first.name}, then {second.name}, each over half the step.

$$\Phi_h = \Phi^{{(2)}}_{{h/2}} \circ \Phi^{{(1)}}_{{h/2}}$$

A step $\Phi^{{(1)}}_h$ of {first.name}:

{first.formula}

A step $\Phi^{{(2)}}_h$ of {second.name}:

{second.formula}"""


def _both(a: bool | None, b: bool | None) -> bool | None:
    return None if a is None or b is None else a and b
