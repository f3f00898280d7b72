"""Midpoint, trapezoid, Verlet, and the Euler steps that compose them, for p' = f(u, t), u' = M^-1 p.

Section 2 of P. Krysl, Dynamically equivalent implicit algorithms (2006), equations (2)-(5), and section 2
of P. Krysl, Explicit time integrators derived from the midpoint rule. A step is built for a `Space` and has
the signature of every step of the library, with y = (u, p), system = (inverse mass,), force(t, u, p, system).

The terms of a declaration mean in R^n: `free` without force, when all seven methods are exact and conserve
the momentum; `symplectic` for du ^ dp; `poisson` for the canonical bracket, which is equivalent;
`energy_linear_potential` for a constant force; `needs` "attitude" for a force of time and configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..kernels.loops import Step
from ..kernels.solvers import broyden
from ..methods import Method, Methods
from ..methods.combinators.compose import halves
from ..methods.ranking import best_first, listed
from ..methods.record import Build
from ..methods.registry import declare
from ..numbers.dispatch import kernel
from .tuples import Space, norm

IMPLICIT_PAPER, EXPLICIT_PAPER = "krysl2006", "krysl2005"
FREE = ("energy", "spatial_momentum", "momentum_norm")


class Registry(Methods):
    """The methods of this family, by name."""

    def _unknown(self, label: str) -> str:
        return f"unknown method {label!r} for a vector space; there are {listed(best_first(self.values(), 'velocity'))}"


methods = Registry()


def _declared(build: Any, **declared: Any) -> Method:
    """Register an Euler step: first order, exact without force."""
    shared: dict[str, Any] = {
        "name": build.__name__, "order": 1, "order_free": math.inf, "symmetric": False, "torque_evals": 1,
        "conserves": FREE, "needs": "attitude", "doc": build.__doc__,
    }  # fmt: skip
    builder: Build = build
    implicit = {"implicit": declared["solves"] > 0, "poisson": declared["symplectic"]}
    return methods.add(declare(builder, register=False, **shared, **implicit, **declared))


def forced(value: Callable[..., Any]) -> Callable[..., Any]:
    """Kernel: the force(t, u, p, system) of a formula value(t, u)."""

    @kernel
    def force(t: Any, u: Any, p: Any, system: Any) -> Any:
        return value(t, u)

    return force


def forward_euler(space: Space) -> Step:
    r"""Forward Euler.

    $$p_1 = p_0 + h\,f_0, \qquad u_1 = u_0 + h\,M^{-1} p_0$$
    """
    along, product = space.vectors.along, space.product

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, force: Any) -> Any:
        u, p = y
        return (along(u, h, product(system[0], p)), along(p, h, force(t, u, p, system))), 0

    return step


def backward_euler(space: Space) -> Step:
    r"""Backward Euler.

    $$p_1 = p_0 + h\,f_1, \qquad u_1 = u_0 + h\,M^{-1} p_1$$

    Both equations are solved together for $u_1$.
    """
    along, product, unit = space.vectors.along, space.product, space.unit

    @kernel
    def landing(h: Any, t: Any, x: Any, y: Any, system: Any, force: Any) -> Any:
        """End of a step with the force at time t and configuration x."""
        u, p = y
        p = along(p, h, force(t, x, p, system))
        return along(u, h, product(system[0], p)), p

    @kernel
    def residual(x: Any, data: Any, system: Any, force: Any) -> Any:
        h, t, y = data
        u, _ = landing(h, t, x, y, system, force)
        return along(x, -1, u)

    root = broyden(residual, space.vectors)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, force: Any) -> Any:
        guess, _ = landing(h, t, y[0], y, system, force)
        x, residual = root(guess, unit(h), norm(y[0]), (h, t + h, y), system, force)
        return landing(h, t + h, x, y, system, force), residual

    return step


def symplectic_euler(space: Space) -> Step:
    r"""Symplectic Euler, the impulse first.

    $$p_1 = p_0 + h\,f_0, \qquad u_1 = u_0 + h\,M^{-1} p_1$$
    """
    along, product = space.vectors.along, space.product

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, force: Any) -> Any:
        u, p = y
        p = along(p, h, force(t, u, p, system))
        return (along(u, h, product(system[0], p)), p), 0

    return step


def symplectic_euler_adjoint(space: Space) -> Step:
    r"""Adjoint of symplectic Euler, the impulse last.

    $$u_1 = u_0 + h\,M^{-1} p_0, \qquad p_1 = p_0 + h\,f_1$$
    """
    along, product = space.vectors.along, space.product

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, force: Any) -> Any:
        u, p = y
        u = along(u, h, product(system[0], p))
        return (u, along(p, h, force(t + h, u, p, system))), 0

    return step


_forward = _declared(forward_euler, solves=0, symplectic=False, cite=IMPLICIT_PAPER, where="(2)", aliases=("fe",))
_backward = _declared(backward_euler, solves=1, symplectic=False, cite=IMPLICIT_PAPER, where="(3)", aliases=("be",))
_impulse_first = _declared(
    symplectic_euler, solves=0, symplectic=True, cite=EXPLICIT_PAPER, where="section 2, Phi", aliases=("Phi",)
)
_impulse_last = _declared(
    symplectic_euler_adjoint, solves=0, symplectic=True, cite=EXPLICIT_PAPER, where="section 2, Phi*", aliases=("Phi*",)
)


def _symmetric(first: Method, second: Method, **declared: Any) -> Method:
    """Compose a step and its adjoint, each over half the step."""
    shared: dict[str, Any] = {
        "order": 2, "symmetric": True, "conserves": ("energy_midpoint", "energy_linear_potential"),
    }  # fmt: skip
    return methods.add(halves(first, second, register=False, poisson=declared["symplectic"], **shared, **declared))


_symmetric(
    _forward, _backward, name="trapezoid", symplectic=False, where="(4)", aliases=("trap",),
    doc=r"""Trapezoidal rule: forward Euler (2), then backward Euler (3), each over half the step.

    $$p_1 = p_0 + \tfrac{h}{2}\,(f_0 + f_1), \qquad u_1 = u_0 + \tfrac{h}{2}\,M^{-1} (p_0 + p_1)$$

    Both equations are solved together for $u_1$.""",
)  # fmt: skip
_symmetric(
    _backward, _forward, name="midpoint", symplectic=True, torque_evals=1, where="(5)", aliases=("imid",),
    doc=r"""Midpoint rule: backward Euler (3), then forward Euler (2), each over half the step.

    $$\begin{aligned}
    \bar u &= u_0 + \tfrac{h}{2}\,M^{-1} \bar p, & \bar p &= p_0 + \tfrac{h}{2}\,f(\bar u, t + \tfrac{h}{2}), \\
    u_1 &= u_0 + h\,M^{-1} \bar p, & p_1 &= p_0 + h\,f(\bar u, t + \tfrac{h}{2})
    \end{aligned}$$

    The first two equations are solved for $\bar u$.""",
)  # fmt: skip
_symmetric(
    _impulse_first, _impulse_last, name="verlet", symplectic=True, where="section 2, Xi", aliases=("Xi", "leapfrog"),
    doc=r"""Verlet (explicit Newmark, gamma = 1/2): symplectic Euler, then its adjoint, each over half the step.

    $$\bar p = p_0 + \tfrac{h}{2}\,f_0, \qquad u_1 = u_0 + h\,M^{-1} \bar p, \qquad
    p_1 = \bar p + \tfrac{h}{2}\,f_1$$""",
)  # fmt: skip
