"""JAX interface (`ph.jax`): a fixed-step run as a pure function that can be compiled, mapped and differentiated.

docs/jax.md has examples. Requires the extra `jax`, and JAX in double precision.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._extras import needed
from ..errors import InputError, ResultWarning
from ..kernels.so3 import mul, unit, unrotate
from ..methods import Method, methods
from ..methods.ranking import fitting, listed
from ..numbers import floats
from ..numbers.primitives import where
from ..physics.fields.sides import has_jumps
from ..physics.problem import Problem
from ..physics.validate import positive, whole_number
from ..symbolic.rows import Rows
from .cut_steps import warn_of_edges
from .integrator import beginning, check_fit, check_formula, torque_kernel
from .located_steps import crossing
from .noise import without_chain, without_noise

__all__ = ["flow"]


REMEDY = "use ph.gradient, or make the jump a steep slope (tanh)"
"""What helps where steps cross jumps of a field."""


def flow(
    problem: Problem, method: str | Method, *, dt: float, steps: int, every: int | None = None
) -> Callable[..., tuple[Any, Any]]:
    """Return the map from the initial state to the state after `steps` steps, as a function that JAX can trace.

    Parameters
    ----------
    problem : its field, t0 and principal axes are part of the map; its other values are defaults
    method : a name, an expression, or a Method; not exact for the free body, and without its own time
    dt, steps : step size and number of steps
    every : return the states of steps 0, every, 2 every, ... and the last, instead of the last only; time is axis 0

    Returns
    -------
    f(inertia=None, attitude=None, momentum=None, params=None) -> (quaternion, momentum)
        inertia: three principal moments; attitude: quaternion, SCALAR FIRST, body to space, normalised; momentum: in
        the body frame; params: a dict of field parameters. Omitted arguments take the problem's values. The results
        have the shapes (4,) and (3,), with `every` (n, 4) and (n, 3). They are NaN from a failed step on.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    chosen = _traceable(methods[method], problem)
    h, count = positive("dt", dt), whole_number("steps", steps)
    kept = None if every is None else whole_number("every", every)
    warn_of_edges(problem, chosen, problem.t0 + count * h, REMEDY)
    if problem.field is not None and has_jumps(problem.field):
        warnings.warn(crossing(problem, chosen, remedy=REMEDY), ResultWarning, stacklevel=2)
    backend = needed("polhode.compile.jax_target")
    torque, begun = torque_kernel(problem, floats.number, chosen), beginning(chosen)
    before, after = chosen.processors(floats.number)
    run = backend.advance(chosen.build(floats.number), torque, before, after, h, problem.t0, count, kept)

    def f(
        inertia: Any = None, attitude: Any = None, momentum: Any = None, params: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        given = {"inertia": inertia, "attitude": attitude, "momentum": momentum}
        y, system = _start(problem, given, params or {}, backend.doubles)
        q, m = problem.user_axes(*run(begun(y), system))
        return backend.stacked(q), backend.stacked(m)

    return f


def _traceable(method: Method, problem: Problem) -> Method:
    """Return the method; refuse it if it does not suit the problem or cannot be traced."""
    check_formula(problem, "ph.jax")
    check_fit(method, problem)
    without_noise(method, "ph.jax")
    without_chain(method, "ph.jax")
    if method.has_own_time:
        raise InputError(
            f"{method.name} chooses its own steps, so the time of step n depends on the initial state; ph.jax "
            "takes methods with a fixed dt"
        )
    if math.isinf(method.order_free):
        able = listed(fitting(problem.needs, lambda m: not (math.isinf(m.order_free) or m.has_own_time)))
        raise InputError(
            f"{method.name} uses elliptic functions, whose formulas are not smooth for symmetric bodies and spins "
            f"about an axis, so it cannot be differentiated; methods that can: {able}"
        )
    return method


def _start(problem: Problem, given: dict[str, Any], params: dict[str, Any], doubles: Callable[..., Any]) -> Any:
    """Return state and system in principal axes: `Problem.kernel_data` for traced numbers."""
    own: dict[str, Any] = {
        "inertia": problem.body.moments,
        "attitude": problem.quaternion,
        "momentum": problem.momentum,
    }
    inertia, q, m = (
        doubles(name, own[name] if value is None else value, np.shape(own[name])) for name, value in given.items()
    )
    q, axes = unit(q), problem.axes_quaternion
    if axes:
        q, m = mul(q, axes), unrotate(axes, m)  # type: ignore[arg-type]
    solid = tuple(i > 0 for i in inertia)
    m = tuple(where(s, x, 0 * x) for s, x in zip(solid, m, strict=True))
    inverse = tuple(where(s, 1 / where(s, i, 1 + i), 0 * i) for s, i in zip(solid, inertia, strict=True))
    return (q, m), (inertia, inverse, (*_parameters(problem, params, doubles), *axes))


def _parameters(problem: Problem, params: dict[str, Any], doubles: Callable[..., Any]) -> list[Any]:
    """Return the parameters of the field as numbers, in order; `params` override those of the problem."""
    known = problem.field.values if problem.field else {}
    for name in params:
        if name not in known:
            raise InputError(f"the field has no parameter {name!r}; it has {', '.join(known) or 'none'}")
    found = ((name, value, params.get(name, value)) for name, value in known.items())
    return [x for name, value, now in found for x in _numbers(name, value, now, doubles)]


def _numbers(name: str, value: Any, now: Any, doubles: Callable[..., Any]) -> Any:
    if not isinstance(value, Rows):
        return doubles(f"parameter {name}", now, np.shape(value))
    if now is not value:
        raise InputError(f"parameter {name} is rows of data; bind the field to other rows instead of giving params")
    return value.columns
