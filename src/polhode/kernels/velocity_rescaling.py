"""Stochastic velocity rescaling: one factor for all momenta, which gives the kinetic energy its canonical distribution.

With f degrees of freedom, K0 = f kT/2 and the time constant tau, the kinetic energy follows

    dK = (K0 - K) dt/tau + 2 sqrt(K K0/f) dW/sqrt(tau),

whose exact solution is that of an Ornstein-Uhlenbeck process of the f components: one of them along the momenta, and
f - 1 normal to them, of which only the sum of squares matters. G. Bussi, D. Donadio and M. Parrinello, J. Chem. Phys.
126 (2007) 014101, (A7); the sign of the factor: G. Bussi and M. Parrinello, Comput. Phys. Commun. 179 (2008) 26-29.
"""

from __future__ import annotations

from ..numbers.dispatch import kernel
from ..numbers.primitives import sqrt, where
from ..numbers.types import Number
from .ornstein_uhlenbeck import decay


@kernel
def rescaling(h: Number, tau: Number, kT: Number, kinetic: Number, xi: Number, rest: Number) -> Number:
    """The factor of all momenta for a step over h.

    kinetic : twice the kinetic energy; xi : a normal number; rest : the sum of squares of f - 1 normal numbers
    """
    mean, spread = decay(h / (2 * tau), kT)
    return factor(mean, spread, kinetic, xi, rest)


@kernel
def factor(mean: Number, spread: Number, kinetic: Number, xi: Number, rest: Number) -> Number:
    """The factor of all momenta, from the mean factor of a component and its standard deviation (`decay`)."""
    part = spread / sqrt(kinetic)
    along = mean + part * xi
    size = sqrt(along * along + part * part * rest)
    return where(along < 0, -size, size)
