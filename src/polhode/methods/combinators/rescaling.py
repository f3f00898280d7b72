"""Stochastic velocity rescaling of one body: random factors multiply its momentum between the steps of a scheme.

With K the rotational kinetic energy, f its degrees of freedom (three; two of a linear body) and the friction tensor
Gamma of the heat bath, the momentum follows

    dPi = (Pi x omega + T) dt + ((f - 1) kT/(2 K) - 1) g Pi dt + sqrt(g kT/K) Pi dW,   g = tr(Gamma I^-1)/f,

so that dK = 2 g (f kT/2 - K) dt + 2 sqrt(g kT K) dW with the time constant tau = 1/(2 g), plus the work of the torque.
The thermostat keeps the direction of the momentum, and the Gibbs distribution. Its step has no error
(`kernels/velocity_rescaling`), and the whole is a symmetric splitting.

G. Bussi, D. Donadio and M. Parrinello, J. Chem. Phys. 126 (2007) 014101; G. Bussi and M. Parrinello, Comput. Phys.
Commun. 179 (2008) 26-29.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...kernels.loops import Step
from ...kernels.ornstein_uhlenbeck import decay
from ...kernels.so3 import dot, scale, times
from ...kernels.state import counted
from ...kernels.velocity_rescaling import factor
from ...numbers.dispatch import kernel
from ...numbers.philox import normals
from ...numbers.primitives import where
from ...numbers.types import Vec3
from ..queries import MeanFriction
from ..record import RESCALING, Method, Noise
from ..registry import declare, methods
from .compose import scheme_of, whole

Number = Callable[[Any], Any]

MEMORY = 6
"""Numbers in the memory: of the step, of the seed and of the body; mean and standard deviation of a component over half
a step; 1 if the body has three degrees of freedom, 0 if it has two."""


@kernel
def third_degree(inertia: Vec3, zero: Any) -> Any:
    """1 if a body has three degrees of freedom, 0 if it is linear and has two; in the number type of `zero`."""
    a, b, c = inertia
    return where(a > 0, where(b > 0, where(c > 0, 1 + zero, zero), zero), zero)


@kernel
def _filled(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Fill the memory at the start of a run."""
    kT, diagonal, seed, body, first = torque(t, y[0], y[1], system, h)
    zero = 0 * h
    third = third_degree(system[0], zero)
    mean, spread = decay(h / 2 * dot(diagonal, system[1]) / (2 + third), kT)
    return (y[0], y[1], (zero + first, zero + seed, zero + body, zero + mean, zero + spread, third)), zero


@kernel
def _rescaled(m: Vec3, memory: Any, system: Any, xi: Vec3) -> Vec3:
    """The exact step of the thermostat over half a step: xi_1 acts along the momentum, the others normal to it."""
    rest = xi[1] * xi[1] + memory[5] * (xi[2] * xi[2])
    return scale(factor(memory[3], memory[4], dot(m, times(system[1], m)), xi[0], rest), m)


def _step(scheme: Step, draw: Callable[..., Any]) -> Step:
    """Step kernel: the thermostat over half a step, the scheme, the thermostat over half a step."""

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, memory = y
        m = _rescaled(m, memory, system, draw(memory[1], memory[2], memory[0], 0))
        (q, m), residual = scheme(h, t, (q, m), system, torque)
        m = _rescaled(m, memory, system, draw(memory[1], memory[2], memory[0], 1))
        return (q, m, counted(memory)), residual

    return step


FORMULA = r"""
A step is one of %s between two half steps of the thermostat. These multiply the momentum by a random factor,

$$\Pi \leftarrow \lambda\,\Pi, \qquad
\lambda^2 = \Bigl(e^{-g h/2} + \sigma\,\xi_1\Bigr)^2 + \sigma^2 \sum_{i=2}^{f} \xi_i^2, \qquad
\sigma^2 = \frac{kT}{2 K}\,(1 - e^{-g h}), \qquad g = \tfrac1f \operatorname{tr}(\Gamma I^{-1})$$

with the kinetic energy $K$ before it, the friction tensor $\Gamma$, the temperature $kT$, the $f$ degrees of freedom
(three; two of a linear body), and normal numbers $\xi$, given by the seed, the number of the body and the number of the
step. $\lambda$ has the sign of $e^{-g h/2} + \sigma\,\xi_1$. The scheme:

"""


def _measures(base: Method) -> tuple[float, float]:
    """Orders of the invariant measure, in a potential and free: the thermostat has no error, so those of the scheme.

    A scheme that conserves the energy and the volume of momenta keeps the density.
    """
    kept = base.poisson and "energy" in base.conserves
    return base.order, math.inf if kept else base.order_free


def bussi(scheme: str | Method) -> Method:
    """Stochastic velocity rescaling in a heat bath, over any scheme or free flow (bussi2007)."""
    base = scheme_of("bussi", scheme)

    def driven(number: Number, draw: Callable[..., Any]) -> Step:
        return _step(whole(base)(number), draw)

    return declare(
        lambda number: driven(number, normals), register=False, name=f"bussi({base.name})", order=base.order,
        order_free=base.order_free, symmetric=False, symplectic=False, poisson=False, implicit=base.implicit,
        solves=base.solves, torque_evals=base.torque_evals, torque_at=base.torque_at, conserves=(), needs=base.needs,
        asks=base.asks & MeanFriction(), memory=MEMORY, before=lambda number: _filled,
        noise=Noise(int(min(2, base.order)), *_measures(base), 2, driven, RESCALING),
        linear_bodies=base.linear_bodies, flat_bodies=base.flat_bodies, cite="bussi2007",
        where="(A7), for the rotation of one body",
        doc=f"Stochastic velocity rescaling over {base.name}.\n{FORMULA % base.name}{base.formula}",
    )  # fmt: skip


methods.add_combinator("bussi", bussi)
