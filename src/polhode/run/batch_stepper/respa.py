"""Multiple time steps: slow forces are asked rarely, fast ones often (r-RESPA).

With the Hamiltonian T + U_fast + U_slow, a step is an outer scheme that alternates kicks by U_slow with the motion of
T + U_fast, and that motion is n steps of an inner scheme. For Strang splittings and the outer step h,

    K_slow(h/2)  [K_fast(h/2n) D(h/n) K_fast(h/2n)]^n  K_slow(h/2)

M. Tuckerman, B. J. Berne and G. J. Martyna, Reversible multiple time scale molecular dynamics, J. Chem. Phys. 97,
1990 (1992).

This is no registered combinator: a method asks its field for one torque, and a field has no slow and fast parts.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...methods import Method, methods
from ...physics.validate import whole_number
from . import arrays
from .asked import SLOW, Leg, is_written_out, legs

MOST = 1_000_000
"""Largest number of inner steps: all kicks and drifts of an outer step are in memory."""


@dataclasses.dataclass(frozen=True)
class Respa:
    """Multiple time steps; created by `ph.respa`.

    Attributes
    ----------
    outer, inner : the schemes of the slow and of the fast forces
    n : number of inner steps in a drift of the outer scheme

    Examples
    --------
    >>> ph.respa("strang(dmv6)", "strang(dmv6)", 4).outer.name
    'strang(dmv6)'
    """

    outer: Method
    inner: Method
    n: int

    @property
    def name(self) -> str:
        """The expression that builds it."""
        return f"respa({self.outer.name}, {self.inner.name}, {self.n})"

    @property
    def order(self) -> int:
        """The smaller of the two orders."""
        return int(min(self.outer.order, self.inner.order))

    @property
    def symmetric(self) -> bool:
        """True if both schemes are."""
        return bool(self.outer.symmetric and self.inner.symmetric)

    @property
    def symplectic(self) -> bool:
        """True if both schemes are."""
        return bool(self.outer.symplectic and self.inner.symplectic)

    @property
    def legs(self) -> list[Leg]:
        """Slow kicks, fast kicks and drifts, with their fractions of the outer step."""
        found: list[Leg] = []
        for leg in legs(self.outer):
            if leg.is_kick:
                found.append(leg._replace(force=SLOW))
            else:
                found += [_shortened(inner, leg.fraction / self.n) for inner in legs(self.inner)] * self.n
        return found


def _shortened(leg: Leg, factor: float) -> Leg:
    """A kick or a drift over a part of its time."""
    time = leg.fraction * factor
    return leg._replace(parts=(leg.parts[0]._replace(time=Fraction(time)),), fraction=time)


def respa(outer: str | Method, inner: str | Method, n: int) -> Respa:
    """Return a scheme with multiple time steps, for `ph.batch_stepper`.

        scheme = ph.respa("strang(dmv10)", "strang(dmv10)", 4)
        ph.batch_stepper(moments, scheme, dt).step(q, pi, fast, slow=slow)
        ph.batch_stepper(moments, scheme, dt, masses=masses).step(x, p, q, pi, fast, slow=slow)

    The step `dt` is the outer one. In every drift of the outer scheme the inner scheme makes `n` steps.

    Parameters
    ----------
    outer : kick-drift scheme over a free flow, for the slow forces
    inner : kick-drift scheme over the same flow, for the fast forces
    n : number of inner steps

    Examples
    --------
    >>> ph.respa("strang(dmv6)", "strang(dmv6)", 4).n
    4
    """
    schemes = []
    for role, given in (("outer", outer), ("inner", inner)):
        method = methods[given]
        method = method.unprocessed or method
        if not is_written_out(method) or method.noise is not None:
            raise InputError(
                f"{role} must be a kick-drift scheme over a free flow, such as strang(dmv10), without noise; got "
                f"{method.name}",
                role,
            )
        schemes.append(method)
    first, second = schemes
    if first.drift != second.drift:
        assert first.drift is not None
        assert second.drift is not None
        raise InputError(
            f"outer and inner must have the same free flow; got {first.drift.name} and {second.drift.name}", "inner"
        )
    if whole_number("n", n) > MOST:
        raise InputError(f"n must be at most {MOST}; got {n!r}", "n")
    return Respa(first, second, int(n))


def check_slow(respa: Respa | None, fast: Any, slow: Any, masses: bool = False) -> None:
    """Refuse slow forces without multiple time steps, and the reverse.

    With masses a function gives forces and torques together, so both must be functions.
    """
    if respa is None:
        if slow is not None:
            raise InputError("slow forces need multiple time steps: ph.batch_stepper(..., ph.respa(...))", "slow")
    elif masses and not (arrays.is_function(fast) and arrays.is_function(slow)):
        raise InputError(f"{respa.name} needs two functions: step(x, p, q, pi, fast, slow=slow)")
    elif fast is None or slow is None:
        raise InputError(f"{respa.name} needs fast and slow torques: step(q, pi, fast, slow=slow)")
