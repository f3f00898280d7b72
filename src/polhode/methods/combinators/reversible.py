"""Variable steps that keep a symmetric method symmetric: the step density of Hairer and Soderlind.

A run carries, besides (q, m), the time, the density rho, its growth G, and a floor of the monitor. With the nominal
step h

    rho_half = rho_n + h/2 G(y_n),   y_{n+1} = Phi_s(y_n),   s = h/rho_half,   rho_{n+1} = rho_half + h/2 G(y_{n+1}).

The map with -h is its inverse, and so is the map with h after a reversal of the momentum, since G is odd in the
momentum. G is the logarithmic derivative along the motion of 1/Q, Q the desired step, so rho Q stays at its initial
value, 1:

    1/Q^4 = (omega.omega)^2 + PUSH |I^-1 T|^2 + STEEP sum_j |I^-1 dT/dtheta_j|^2 + floor.

E. Hairer and G. Soderlind, SIAM J. Sci. Comput. 26 (2005) 1838-1851. docs/variable_steps.md has the measurements
behind the choice of the monitor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import add, dot
from ...kernels.state import summed
from ...numbers.dispatch import kernel
from ...numbers.primitives import where
from ...numbers.types import Number
from ..mechanics import gyration, velocity
from ..queries import TorqueGradient
from ..record import Method
from ..registry import methods

MEMORY = 5
"""Numbers a run carries: time, its rounding error, density, growth, floor of the monitor."""

PUSH, STEEP = 64, 1
"""Weights of the torque and its steepness relative to the rotation; docs/variable_steps.md has the measurement."""

LONGEST = 16
"""Longest step in units of the first one, so that a body nearly at rest in a weak torque is still sampled."""

RUNAWAY = 2.0**200
"""Residual of a step whose density is not positive: the monitor changed by more than itself within the step."""


def _measure(base: Method) -> Callable[..., Any]:
    """Kernel (t, q, m, system, torque) -> the monitor x = 1/Q^4 without its floor, and x'/4.

    For a free flow `torque` is not called.
    """
    several = base.needs != "free" and len(base.asks.asked(0).shape) > 1

    @kernel
    def free(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
        w = velocity(m, system)
        square = dot(w, w)
        return square * square, square * dot(w, velocity(gyration(m, system), system))

    @kernel
    def measured(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
        force = torque(t, q, m, system)
        if several:  # then the torque comes first
            force = force[0]
        w, acceleration = velocity(m, system), velocity(force, system)
        a = velocity(add(gyration(m, system), force), system)
        rate, steep, steeper = torque(t, q, m, system, a)
        square = dot(w, w)
        size = square * square + PUSH * dot(acceleration, acceleration) + STEEP * steep
        return size, square * dot(w, a) + (PUSH * dot(acceleration, velocity(rate, system)) + STEEP * steeper / 2) / 2

    return free if base.needs == "free" else measured


@kernel
def _growth(size: Number, change: Number, floor: Number) -> Number:
    """G = x'/(4 x); zero if x is zero."""
    whole = size + floor
    return change / where(whole > 0, whole, 1 + 0 * whole)


def _steps(method: Method, number: Callable[[Any], Any]) -> tuple[Step, Step]:
    """Return the kernel that fills the memory, and the step kernel."""
    base, measured = method.build(number), _measure(method)

    @kernel
    def begin(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, _ = y
        size, change = measured(t, q, m, system, torque)
        floor = size / LONGEST**4
        zero = 0 * size
        return (q, m, (t + zero, zero, 1 + zero, _growth(size, change, floor), floor)), 0 * h

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, (time, low, density, growth, floor) = y
        half = density + h / 2 * growth
        sound = half > 0
        step_size = h / where(sound, half, 1 + 0 * half)
        (q, m), residual = base(step_size, time, (q, m), system, torque)
        time, low = summed(time, low, step_size)
        size, change = measured(time, q, m, system, torque)
        growth = _growth(size, change, floor)
        memory = (time, low, half + h / 2 * growth, growth, floor)
        return (q, m, memory), where(sound, residual + 0 * half, RUNAWAY + 0 * half)

    return begin, step


CONTROLLER = r"""
A run carries the time, the density $\rho$ of its steps, and the growth $G$ of the density. With the first step $h$

$$\begin{aligned}
\rho_{1/2} &= \rho_0 + \tfrac{h}{2}\,G(y_0), & s &= h/\rho_{1/2}, & & \\
y_1 &= \Phi_s(y_0), & t_1 &= t_0 + s, & \rho_1 &= \rho_{1/2} + \tfrac{h}{2}\,G(y_1)
\end{aligned}$$

starting from $\rho = 1$. $G = x'/(4 x)$ is the logarithmic rate, along the motion, of $x^{1/4}$ with the monitor

$$x = |\omega|^4 + %d\,|I^{-1} T|^2 + %d\,\sum_j |I^{-1}\,\partial T/\partial \theta_j|^2 + x_{\min}$$

where $\theta_j$ are the angles of rotation about the body axes, and $x_{\min}$, the first $x$ divided by the
fourth power of %d, limits a step to about this many times the first one. $\Phi_s$ is a step of %s
over $s$:

"""

MIDPOINT = {"energy_midpoint", "spatial_momentum_midpoint"}
"""Quantities that two half steps conserve at the midpoint only while all steps are equal."""


def reversible(method: str | Method) -> Method:
    """The same method with steps that follow the motion, chosen so that it stays symmetric.

    ``dt`` is the first step; later ones are about dt Q(y)/Q(y_0) long, short if the body rotates fast or a torque is
    strong. Properties that hold for every step size are kept: order, symmetry, conserved quantities of the free body.
    No map with steps that depend on the state is symplectic.
    """
    base = methods[method]
    if not base.has_step:
        raise InputError(
            f"reversible() varies the steps of a method, and {base.name} has none: it is an exact motion, "
            "which needs no variation"
        )
    if not base.symmetric:
        raise InputError(
            f"reversible() needs a symmetric method, such as reversible(imidm), and {base.name} is not symmetric"
        )
    if base.memory or base.compensated or base.before:
        raise InputError(
            f"reversible() takes a method whose state is (attitude, momentum), and {base.name} carries more from step "
            f"to step; apply reversible() to the inner method"
        )
    return varied(base)


def varied(base: Method) -> Method:
    """Return the method with these steps, whether or not it is symmetric.

    With a torque, the density of the steps evaluates it at the end of each step.
    """
    ends = base.torque_at if base.needs == "free" else base.torque_at | {"end"}
    return dataclasses.replace(
        base, name=f"reversible({base.name})", aliases=(), symplectic=False, poisson=False, memory=MEMORY, base=base,
        asks=base.asks if base.needs == "free" else base.asks & TorqueGradient(),
        conserves=base.conserves - MIDPOINT, halves=(), flows=(), symplectic_defect=None, increments=False,
        torque_evals=base.torque_evals + len(ends - base.torque_at), torque_at=ends, estimated=None,
        sequence=(), drift=None,
        before=lambda number: _steps(base, number)[0], build=lambda number: _steps(base, number)[1],
        cite="hairer2005", where=f"the integrating controller; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with time-reversible variable steps.\n"
        + CONTROLLER % (PUSH, STEEP, LONGEST, base.name) + base.formula,
    )  # fmt: skip


methods.add_combinator("reversible", reversible)
