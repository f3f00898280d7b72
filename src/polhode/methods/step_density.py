"""Variable steps that keep a symmetric method symmetric: the step density of Hairer and Soderlind.

A run keeps, beside (q, m), the time, the density rho, its growth G, and a floor of the monitor; with the nominal step h

    rho_half = rho_n + h/2 G(y_n),   y_{n+1} = Phi_s(y_n),   s = h/rho_half,   rho_{n+1} = rho_half + h/2 G(y_{n+1}).

The map with -h undoes it, and so does the map with h after a turn of the momentum, since G is odd in the momentum.
G is the logarithmic derivative along the motion of 1/Q, Q the wanted step, so rho Q stays at its first value, 1:

    1/Q^4 = (omega.omega)^2 + WEIGHT |I^-1 T|^2 + floor.

E. Hairer and G. Soderlind, SIAM J. Sci. Comput. 26 (2005) 1838-1851. docs/variable_steps.md has the measurements
behind the choice of the monitor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..carry import summed
from ..declare import Method, Step, methods
from ..errors import InputError
from ..scalar import Number, Vec3, kernel, where
from ..so3 import add, dot
from ._mechanics import gyration, velocity

MEMORY = 5
"""Numbers a run keeps: time, what rounding took from it, density, growth, floor of the monitor."""

WEIGHT = 32
"""How much a torque counts beside the turning; docs/variable_steps.md has the measurement."""

LONGEST = 16
"""How many times the first step a step may be: a body that nearly rests in a weak torque is still looked at."""

RUNAWAY = 2.0**200
"""The miss of a step whose density is not positive: the monitor changed by more than itself within the step."""


@kernel
def _monitor(w: Vec3, push: Vec3) -> Number:
    """The monitor 1/Q^4 without its floor, from the angular velocity and I^-1 T."""
    square = dot(w, w)
    return square * square + WEIGHT * dot(push, push)


def _kernels(corrector: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The kernels monitor(t, q, m, system, torque) and growth(..., floor); a corrector's torque comes as a pair."""

    @kernel
    def force(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
        if corrector:
            return torque(t, q, m, system)[0]
        return torque(t, q, m, system)

    @kernel
    def monitor(t: Any, q: Any, m: Any, system: Any, torque: Any) -> Any:
        return _monitor(velocity(m, system), velocity(force(t, q, m, system, torque), system))

    @kernel
    def growth(t: Any, q: Any, m: Any, system: Any, torque: Any, floor: Any) -> Any:
        """G = (1/Q^4)' Q^4/4; zero where there is nothing to measure with."""
        given, w = force(t, q, m, system, torque), velocity(m, system)
        a, push = velocity(add(gyration(m, system), given), system), velocity(given, system)
        rate = velocity(torque(t, q, m, system, a), system)
        size = _monitor(w, push) + floor
        return (2 * dot(w, w) * dot(w, a) + WEIGHT * dot(push, rate)) / (2 * where(size > 0, size, 1 + size))

    return monitor, growth


def _steps(base: Step, corrector: bool) -> tuple[Step, Step]:
    """The kernel that fills the memory, and the step."""
    monitor, growth = _kernels(corrector)

    @kernel
    def begin(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, _ = y
        floor = monitor(t, q, m, system, torque) / LONGEST**4
        rate = growth(t, q, m, system, torque, floor)
        zero = 0 * rate
        return (q, m, (t + zero, zero, 1 + zero, rate, floor + zero)), 0 * h

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, (time, low, density, rate, floor) = y
        half = density + h / 2 * rate
        sound = half > 0
        size = h / where(sound, half, 1 + 0 * half)
        (q, m), miss = base(size, time, (q, m), system, torque)
        begun = time
        time, low = summed(time, low, size)
        rate = growth(begun if corrector else time, q, m, system, torque, floor)  # potentials know no time
        memory = (time, low, half + h / 2 * rate, rate, floor)
        return (q, m, memory), where(sound, miss + 0 * half, RUNAWAY + 0 * half)

    return begin, step


MIDPOINT = {"energy_midpoint", "spatial_momentum_midpoint"}
"""What two half steps keep between them only while all steps are equal."""


def reversible(method: str | Method) -> Method:
    """The same method with steps that follow the motion, chosen so that it stays symmetric.

    ``dt`` is the first step; later ones are about dt Q(y)/Q(y_0) long, short where the body turns fast or a torque is
    strong. What holds for every step size holds on: order, symmetry, what is conserved for the free body. No map with
    steps that depend on the state is symplectic.
    """
    base = methods[method]
    if not base.symmetric:
        raise InputError(f"reversible() needs a symmetric method, and {base.name} is not one")
    if base.memory or base.compensated or base.before:
        raise InputError(
            f"reversible() takes a method whose state is (attitude, momentum), and {base.name} carries more from step "
            f"to step; apply reversible() to the method inside"
        )
    return dataclasses.replace(
        base, name=f"reversible({base.name})", aliases=(), symplectic=False, poisson=False,
        conserves=base.conserves - MIDPOINT, halves=(), flows=(), increments=False, memory=MEMORY, clock=True,
        torque_evals=base.torque_evals + (0 if base.torque_at_ends else 1), identity=f"reversible {base.identity}",
        before=lambda number: _steps(base.build(number), base.corrector)[0],
        build=lambda number: _steps(base.build(number), base.corrector)[1],
        cite="hairer2005", where=f"the integrating controller; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with time-reversible variable steps. {base.doc}",
    )  # fmt: skip


methods.add_combinator("reversible", reversible)
