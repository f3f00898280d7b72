"""Run a method for an N-dimensional body: from J, M0 and X0 to arrays of states."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import StateSpace, stepping
from ..lie.numbers import numbers_for
from ..methods.ranking import best_first, listed
from ..methods.record import Method
from ..physics.validate import finite_number, positive, whole_number
from ..results import motion
from ..results.progress import Progress
from ..results.recorder import Memory
from ..run.failures import smaller_step, unsolved
from ..run.fixed_step import RunState, solved
from ..run.integrator import Engine
from ..run.step_count import Interval, number_of_steps
from .body import Body, attitude_of, momentum_of, precise
from .family import BOUNDED, TAG, largest_step, methods
from .linear import plain
from .potential import Potential

MARGIN = 0.9
"""Fraction of the largest possible step that an error message proposes."""

NO_VALUE = "the state became infinite or NaN, or the potential has no value there"


@dataclasses.dataclass(frozen=True, repr=False)
class Motion(motion.Motion):
    """The result: arrays with time first.

    Attributes
    ----------
    t : (n,) times
    M : (n, N, N) angular momentum, body frame, skew
    X : (n, N, N) attitude, body to space, orthogonal
    omega : (n, N, N) angular velocity, body frame, skew
    energy : (n,) kinetic energy, plus potential energy if there is a potential
    body, method, h, status, potential : how it was made
    mp : with ``digits=...``, M, X and energy as arrays of mpmath numbers, and the digits
    """

    M: np.ndarray
    X: np.ndarray
    body: Body
    h: float | None = None
    mp: types.SimpleNamespace | None = None
    potential: Potential | None = None

    @functools.cached_property
    def omega(self) -> np.ndarray:
        """Angular velocity (n, N, N), body frame."""
        return self.body.omega(self.M)

    @functools.cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy (n,)."""
        return total_energy(self.body, self.potential, self.M, self.X)

    def invariants(self) -> dict[str, np.ndarray]:
        """Conserved quantities of the exact motion, by name, time first; `polhode.ndim.body` defines them.

        With a potential only the energy is conserved. After a run with `digits` they have all digits.
        """
        if self.mp is None:
            return self._invariants(self.body, self.M, self.X)
        numbers = numbers_for(self.mp.digits)
        with numbers.precision():
            found = self._invariants(self.body.in_digits(), precise(self.mp.M), precise(self.mp.X))
        return {word: numbers.public(value) for word, value in found.items()}

    def _invariants(self, body: Body, M: np.ndarray, X: np.ndarray) -> dict[str, np.ndarray]:
        if self.potential is None:
            return body.invariants(M, X)
        return {"energy": total_energy(body, self.potential, M, X)}

    def drift(self) -> dict[str, float]:
        """Largest change of each invariant since the first state, relative to its size (or the size of its terms).

        With a potential, relative to the initial kinetic energy or the initial total energy, whichever is larger.
        """
        found = {}
        scales = self.body.scales(self.M[0])
        if self.potential is not None:
            scales["energy"] = max(scales["energy"], abs(float(self.energy[0])))
        for word, value in self.invariants().items():
            change = self._changes(value)
            if word == "spatial_momentum":
                change = np.linalg.norm(change, axis=(-2, -1))
            scale = np.where(np.asarray(scales[word]) > 0, scales[word], 1.0)
            found[word] = float((change / scale).max())
        return found

    def _changes(self, value: np.ndarray) -> np.ndarray:
        """Absolute differences from the first row, in doubles."""
        if self.mp is None:
            return np.abs(value - value[0])
        with numbers_for(self.mp.digits).precision():
            exact = precise(value)
            return plain(np.abs(exact - exact[0]))

    @property
    def _space(self) -> str:
        return f"of a body in {self.body.n} dimensions"


def total_energy(body: Body, potential: Potential | None, M: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Kinetic energy of states, time first, plus the potential energy if there is a potential."""
    kinetic = body.energy(M)
    return kinetic if potential is None else kinetic + potential.energy(X, body.number)


def solve(
    J: Any,
    M0: Any,
    X0: Any = None,
    method: str | Method = "moser_veselov",
    *,
    h: float,
    steps: int | None = None,
    t_end: float | None = None,
    t0: float = 0.0,
    every: int = 1,
    potential: Callable[..., Any] | None = None,
    digits: int | None = None,
    progress: bool | Callable[[float], Any] | None = None,
) -> Motion:
    """Integrate M' = [M, Omega] + T(X), M = J Omega + Omega J, X' = X Omega with a fixed step.

    Parameters
    ----------
    J : a `Body`, or the diagonal of its mass tensor
    M0 : skew N x N matrix, the angular momentum in the body frame at t0; `Body.momentum` computes it from Omega
    X0 : orthogonal N x N matrix, body to space; by default the identity
    method : a name, alias or expression (``"yoshida4(moser_veselov)"``) of `polhode.ndim.methods`, or a Method
    h : step size, positive
    t_end, steps : end time or number of steps; give one of them
    every : keep steps 0, every, 2 every, ... and always the last
    potential : a plain function U of X, nested tuples X[i][j]; the torque is T = G^T X - X^T G, G = dU/dX. Without it T
        is zero. It needs a method with kicks, ``"strang(moser_veselov)"`` or ``"yoshida4(strang(moser_veselov))"``
    digits : run with this many digits in mpmath (slow); ``.mp`` then holds them
    progress : as in `polhode.run.solve`

    Raises
    ------
    InputError : an argument is invalid
    StepError : a step has no solution; ``.partial`` holds the Motion before it
    """
    chosen = methods[method]
    if chosen.family != TAG:
        able = listed(best_first(methods.values(), "free"))
        raise InputError(f"{chosen.name} is not a method for N-dimensional bodies; there are {able}")
    body, numbers = Body(J), numbers_for(digits)
    acting = None if potential is None else Potential(potential, body.n)
    if acting is not None and not chosen.takes("potential"):
        raise InputError(f"{chosen.name} takes no potential; use strang({chosen.name}), which adds kicks to it")
    y = (momentum_of(body, M0), tidied_attitude(attitude_of(body, X0)))
    start, h, every = Interval(finite_number("t0", t0)), positive("h", h), whole_number("every", every)
    count = number_of_steps(start, h, t_end, steps, "h")
    dtype = object if digits else float
    with numbers.precision():
        own = body.in_digits() if digits else body
        if digits:
            y = (precise(y[0]), orthogonalised(precise(y[1])))
        torque = acting.torque(own.number) if acting else (lambda X: 0 * X)
        advance = stepping(chosen.build(own), torque, STATE_SPACE)
    run = Engine(
        advance, y, own, numbers.number, lambda k: np.empty((k, 2 * body.n, body.n), dtype=dtype), True, numbers.digits,
        plain=True,
    )  # fmt: skip
    state = RunState(run, start, h, count, every, method=chosen, step="h")
    kept = Memory(functools.partial(_motion, body, acting, state))
    return solved(state, kept, Progress(progress, chosen.name, count), _explain)


# --- the state space of the loop --------------------------------------------------------------------


ORTHOGONAL = 2.0**-26
"""Largest deviation of X^T X from 1 after a step: half the digits, which `renormalise` extends to all."""


def is_valid(y: Any, residual: Any) -> bool:
    """Whether the step was solved, its momentum is finite, and its attitude is orthogonal."""
    M, X = plain(y[0]), plain(y[1])
    if not (residual <= 0 and np.isfinite(M).all() and np.isfinite(X).all()):
        return False
    return bool(np.abs(X.T @ X - np.eye(len(X))).max() <= ORTHOGONAL)


def tidied_attitude(X: np.ndarray) -> np.ndarray:
    """Remove the round-off of an orthogonal matrix: X - X (X^T X - 1)/2."""
    return X - X @ (X.T @ X - np.eye(len(X))) / 2


def orthogonalised(X: np.ndarray) -> np.ndarray:
    """Make an attitude that is orthogonal in doubles orthogonal in all its digits; each pass squares the error."""
    for _ in range(10):
        X = tidied_attitude(X)
    return X


def renormalise(y: Any) -> Any:
    """Return the state with an orthogonal attitude."""
    return y[0], tidied_attitude(y[1])


def write_row(rows: Any, i: int, y: Any) -> None:
    """Write one state into a row: M above X."""
    n = len(y[0])
    rows[i, :n], rows[i, n:] = y


STATE_SPACE = StateSpace(is_valid, renormalise, write_row)


def _motion(
    body: Body, potential: Potential | None, state: RunState[Any], t: np.ndarray, rows: np.ndarray, *, status: str,
    **timing: Any,
) -> Motion:  # fmt: skip
    """Build the result from the rows."""
    M, X, mp = rows[:, : body.n], rows[:, body.n :], None
    if state.run.digits:
        numbers = numbers_for(state.run.digits)
        with numbers.precision():
            energy = total_energy(body.in_digits(), potential, M, X)
        M, X, energy = map(numbers.public, (M, X, energy))
        mp = types.SimpleNamespace(M=M, X=X, energy=energy, digits=numbers.digits)
    times, method = t.astype(float), state.method.name
    return Motion(times, plain(M), plain(X), body, state.dt, mp, potential, method=method, status=status)


def _explain(state: RunState[Any]) -> str:
    """Reason why the next step failed, and an h to try."""
    limit, reach = largest_step(state.run.system.plain, plain(state.y[0])), BOUNDED.get(state.method.name, 0.0)
    if state.dt * reach >= limit:
        longest = f" (its longest inner step is {reach:.4g} h)" if reach > 1 else ""
        why = f"the Moser-Veselov equation has no solution for steps of {limit:.6g} or more here{longest}"
        return f"{why}; try h = {MARGIN * limit / reach:.2g}"
    why = NO_VALUE if math.isnan(state.residual) else unsolved(float(state.residual))
    smaller = smaller_step(state, state.dt / 2)
    return why + (f"; try h = {smaller:.2g}" if smaller else "")
