"""JAX arrays as a number type: traced kernels can be differentiated (forward and reverse), mapped and compiled.

Implicit equations are solved by Newton's method with the exact Jacobian. They are differentiated at the solution by the
implicit function theorem (one linear system), not through the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from ..errors import InputError
from ..kernels.loops import Step, change_of_variables
from ..kernels.solvers import SWEEPS, final_residual, judged, unstarted
from ..kernels.state import collapse
from ..numbers.dispatch import Floats, register
from ..numbers.primitives import finite


def _tame(function: Callable[..., Any], singular: Callable[..., Any]) -> Callable[..., Any]:
    """The function with derivative zero at its singular points.

    JAX differentiates both branches of a `where`, and zero times an infinite derivative is NaN. A kernel takes the
    square root of zero only in the branch not selected, or multiplies it by zero.
    """

    def tamed(*x: Any) -> Any:
        there = singular(*x)
        elsewhere = (jnp.where(there, 0.5, a) for a in x)
        return jnp.where(there, lax.stop_gradient(function(*x)), function(*elsewhere))

    return tamed


class Traced:
    """JAX functions under the names used in kernels."""

    exp, log = jnp.exp, jnp.log
    sin, cos, tan, atan = jnp.sin, jnp.cos, jnp.tan, jnp.arctan
    sinh, cosh, tanh = jnp.sinh, jnp.cosh, jnp.tanh
    sqrt = staticmethod(_tame(jnp.sqrt, lambda x: x == 0))
    asin = staticmethod(_tame(jnp.arcsin, lambda x: abs(x) == 1))
    acos = staticmethod(_tame(jnp.arccos, lambda x: abs(x) == 1))
    atan2 = staticmethod(_tame(jnp.arctan2, lambda y, x: (y == 0) & (x == 0)))
    power = staticmethod(_tame(jnp.power, lambda x, y: x == 0))
    where, epsilon = jnp.where, Floats.epsilon
    stop_gradient = staticmethod(lax.stop_gradient)

    @staticmethod
    def bracket(x: Any, knots: Any) -> Any:
        """Index of the table interval that contains x."""
        return jnp.clip(jnp.searchsorted(jnp.asarray(knots), x, side="right") - 1, 0, len(knots) - 2)

    @staticmethod
    def take(index: Any, column: Any) -> Any:
        """An entry of a table."""
        return jnp.asarray(column)[index]

    @staticmethod
    def root(equation: Callable[..., Any], guess: Any, *given: Any, around: Any = 0.0) -> tuple[Any, Any]:
        """The x near the guess with equation(x, *given) = 0, and the residual; `around` as in `solvers.judged`."""
        start, shaped = ravel_pytree(guess)
        large = lax.stop_gradient(around)
        x, residual = lax.custom_root(
            lambda x: ravel_pytree(equation(shaped(x), *given))[0],
            start, lambda f, guess: _newton(f, guess, large), _linear, has_aux=True,
        )  # fmt: skip
        return shaped(x), residual


def _linear(f: Callable[..., Any], y: Any) -> Any:
    """The x with f(x) = y, f linear."""
    return jnp.linalg.solve(jax.jacfwd(f)(y), y)


def _newton(f: Callable[..., Any], guess: Any, around: Any) -> tuple[Any, Any]:
    """Newton's method with the stopping rule of `kernels/solvers.py`."""

    def sweep(now: Any) -> Any:
        x, track, _, count = now
        change = jnp.linalg.solve(jax.jacfwd(f)(x), f(x))
        x = x - change
        done, track = judged(jnp.linalg.norm(change), track, jnp.linalg.norm(x), around)
        return x, track, done, count + 1

    def goes_on(now: Any) -> Any:
        _, track, done, count = now
        return ~done & (count < SWEEPS) & finite(track[0])

    x, track, done, _ = lax.while_loop(goes_on, sweep, (guess, unstarted(jnp.zeros(())), jnp.array(False), 0))
    return x, final_residual(done, track[0], jnp.linalg.norm(x))


def _known(kind: Any) -> None:
    """Register a type and its subclasses."""
    register(kind, Traced)
    for derived in kind.__subclasses__():
        _known(derived)


_known(type(jnp.zeros(())))
_known(jax.core.Tracer)


def doubles(name: str, value: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The entries of an array of doubles, in order; an error for other input or if JAX is not set to doubles."""
    if not jax.config.jax_enable_x64:
        raise InputError(
            "JAX uses single precision by default, and the kernels need doubles: call this function inside "
            "`with jax.enable_x64(True):`, which leaves the rest of the program in single precision "
            '(docs/jax_step.md), or call jax.config.update("jax_enable_x64", True) at the start of the program'
        )
    try:
        given = jnp.asarray(value)
    except (TypeError, ValueError) as fault:
        raise InputError(f"{name} must be numbers of shape {shape}; got {value!r}") from fault
    if given.dtype in (jnp.float32, jnp.float16, jnp.bfloat16) or jnp.iscomplexobj(given):
        raise InputError(
            f"{name} must be doubles; got {given.dtype}. Convert it by .astype(jnp.float64), inside "
            "`with jax.enable_x64(True):`"
        )
    if given.shape != shape:
        raise InputError(f"{name} must have the shape {shape}; got {given.shape}. For many bodies use jax.vmap")
    return tuple(given.astype(jnp.float64).ravel())


def stacked(parts: Any) -> Any:
    """Numbers as one array, or numbers at many times with time first."""
    return jnp.stack(parts, -1)


def _or_nan(fine: Any, y: Any) -> Any:
    """The state if `fine`, else NaN."""
    return jax.tree.map(lambda x: jnp.where(fine, x, jnp.nan), y)


def advance(
    step: Step, torque: Callable[..., Any], before: Step | None, after: Step | None, h: float, t0: float, steps: int,
    every: int | None,
) -> Callable[[Any, Any], Any]:  # fmt: skip
    """The loop over steps: (y, system) -> (q, m) after the last one, or of steps 0, every, 2 every, ... and the last.

    `loops.stepping` branches on numbers, which a tracer cannot do. So this loop always runs to its end; after a failed
    step all states are NaN.
    """
    enter, made, look = change_of_variables(before), change_of_variables(step), change_of_variables(after)

    def run(y: Any, system: Any) -> Any:
        @jax.checkpoint  # reverse mode recomputes each step: cheaper than storing its intermediate numbers, in time too
        def one(y: Any, n: Any) -> Any:
            new, _, fine = made(h, t0 + n * h, y, system, torque)
            return _or_nan(fine, new), None

        def several(y: Any, first: Any, count: int) -> Any:
            return lax.scan(one, y, first + jnp.arange(count))[0]

        def seen(y: Any, n: Any) -> Any:
            new, _, fine = look(h, t0 + n * h, y, system, torque)
            return collapse(_or_nan(fine, new))

        def block(y: Any, first: Any) -> Any:
            y = several(y, first, stride)
            return y, seen(y, first + stride)

        start = collapse(y)
        new, _, fine = enter(h, t0, y, system, torque)
        y = _or_nan(fine, new)
        if every is None:
            return seen(several(y, 0, steps), steps)
        stride = min(every, steps)
        y, path = lax.scan(block, y, stride * jnp.arange(steps // stride))
        rest = steps % stride
        ends = [seen(several(y, steps - rest, rest), steps)] if rest else []
        return jax.tree.map(lambda first, kept, *last: jnp.hstack([first, kept, *last]), start, path, *ends)

    return run
