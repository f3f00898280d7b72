"""The modified energy of symplectic steps, which they conserve instead of the energy.

A step composed of exact flows, first of E_1, then of E_2, and so on, is itself the flow of a modified energy
H~ = H + h^p H_p + ... over h, up to terms smaller than any power of h (Hairer, Lubich and Wanner, Geometric Numerical
Integration, chapter IX). With L_E F = {F, E}, the change of F along the flow of E, the step is

    exp(h L_1) exp(h L_2) ... = exp(sum_w c_w L_w1 L_w2 ... L_wn),

with the sum over words w in the energies. It is a Lie series, so by the theorem of Dynkin, Specht and Wever every
product can be replaced by 1/n of the nested commutator of its factors. Since [L_A, L_B] = L_C with C = L_A B,

    h H~ = sum_w (c_w/n) L_w1 L_w2 ... L_w(n-1) E_wn.

On T*SO(3) the flow of E(R, m) has q' = q (0, omega)/2 and m' = m x omega + T with omega = dE/dm and T the torque of E.
The derivatives along flows are computed with nested dual numbers: exact, for any potential.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import conj, cross, dot, mul, times, unrotate
from ..methods import Method, methods
from ..methods.flows import total
from ..methods.queries import TorqueAndCorrector
from ..methods.ranking import fitting, listed
from ..methods.record import Flow
from ..numbers import floats
from ..numbers.dual import Dual, tangent
from ..numbers.exact import converted
from ..numbers.multiprecision import mp, number, public, working
from ..numbers.precision import GUARD_DIGITS
from ..physics.problem import Problem
from ..results.trajectory import Trajectory
from ..run.integrator import torque_kernel

MOST_TERMS = 12
"""Most corrections; their cost grows exponentially."""

DIGITS = 60
"""Digits of the coefficients c_w."""

Letter = Callable[..., Any] | str
Word = tuple[int, ...]
Series = list[dict[Word, Any]]
"""A noncommutative series, by powers of h: [0] holds the words of weight 0, and so on."""


# --- the logarithm of a product of exponentials -----------------------------------------------------


def _product(p: Series, q: Series) -> Series:
    """The product through the highest power of h in use."""
    top = len(p)
    found: Series = [{} for _ in range(top)]
    for i, j in itertools.product(range(top), range(top)):
        if i + j < top:
            into = found[i + j]
            for (x, a), (y, b) in itertools.product(p[i].items(), q[j].items()):
                into[x + y] = into.get(x + y, 0) + a * b
    return found


def _scaled(p: Series, factor: Any) -> Series:
    return [{word: value * factor for word, value in part.items()} for part in p]


def _sum(p: Series, q: Series) -> Series:
    found = [dict(part) for part in p]
    for into, part in zip(found, q, strict=True):
        for word, value in part.items():
            into[word] = into.get(word, 0) + value
    return found


def _one(top: int) -> Series:
    one: Series = [{} for _ in range(top + 1)]
    one[0][()] = mp.mpf(1)
    return one


def _exponential(exponent: Series) -> Series:
    power = found = _one(len(exponent) - 1)
    for k in range(1, len(exponent)):
        power = _scaled(_product(power, exponent), mp.mpf(1) / k)
        found = _sum(found, power)
    return found


def _logarithm(series: Series) -> Series:
    rest = [{}, *series[1:]]
    power, found = rest, rest
    for k in range(2, len(series)):
        power = _product(power, rest)
        found = _sum(found, _scaled(power, mp.mpf((-1) ** (k + 1)) / k))
    return found


def logarithm(flows: Sequence[Flow], top: int) -> tuple[list[Letter], Series]:
    """The energies of the flows, and the coefficients c_w of their words through the power `top` of h."""
    letters = list(dict.fromkeys(term.energy for flow in flows for term in flow))
    with mp.workdps(DIGITS):
        series = _one(top)
        for flow in flows:
            exponent: Series = [{} for _ in range(top + 1)]
            for term in flow:
                if term.weight <= top:
                    time = mp.fprod(converted(t, number) for t in term.times)
                    exponent[term.weight][(letters.index(term.energy),)] = time
            series = _product(series, _exponential(exponent))
        return letters, _logarithm(series)


# --- derivatives along the flows --------------------------------------------------------------------


class Mechanics:
    """Energies and their flows for one problem, at states in principal axes, in one number type."""

    def __init__(self, problem: Problem, method: Method, number: Callable[[Any], Any]) -> None:
        self.problem, self.number = problem, number
        _, self.system = problem.kernel_data(number)
        self.principal_to_body: Any = problem.principal(number)[1]
        self.corrector = method.asks.find(TorqueAndCorrector) is not None
        self.torque = torque_kernel(problem, number, method)

    def state(self, q: Any, m: Any) -> Any:
        """Convert a state from the user's axes."""
        return (
            (mul(q, self.principal_to_body), unrotate(self.principal_to_body, m)) if self.principal_to_body else (q, m)
        )

    def energy(self, letter: Letter, y: Any) -> tuple[Any, Any, Any]:
        """An energy, its angular velocity dE/dm, and its torque; None for a zero one."""
        q, m = y
        if callable(letter):
            value, omega = letter(m, self.system)
            return value, omega, None
        force = self.torque(0, q, m, self.system)
        force, correction_torque = force if self.corrector else (force, None)
        if letter == "V":
            return dot(force, times(self.system[1], force)), None, correction_torque
        return (
            self.problem.potential(mul(q, conj(self.principal_to_body)) if self.principal_to_body else q, self.number),
            None,
            force,
        )

    def perturbed(self, letter: Letter, y: Any, level: int) -> Any:
        """The state y + eps X(y), X the field of the energy."""
        (q, m), (_, omega, force) = y, self.energy(letter, y)
        if omega is None:
            return q, tuple(Dual(level, x, f) for x, f in zip(m, force, strict=True))
        turning = mul(q, (0 * omega[0], *omega))
        return (
            tuple(Dual(level, x, r / 2) for x, r in zip(q, turning, strict=True)),
            tuple(Dual(level, x, r) for x, r in zip(m, cross(m, omega), strict=True)),
        )

    def nested(self, letters: Sequence[Letter], words: dict[Word, Any], y: Any, level: int = 1) -> Any:
        """The sum of c_w L_w1 ... L_w(n-1) E_wn over words of one length, grouped by common prefixes."""
        if all(len(word) == 1 for word in words):
            return total(c * self.energy(letters[word[0]], y)[0] for word, c in words.items())
        groups: dict[int, dict[Word, Any]] = {}
        for word, c in words.items():
            groups.setdefault(word[0], {})[word[1:]] = c
        return total(
            tangent(self.nested(letters, rest, self.perturbed(letters[first], y, level), level + 1), level)
            for first, rest in groups.items()
        )


# --- the modified energy ----------------------------------------------------------------------------


def powers(method: Method, problem: Problem, terms: int) -> list[int]:
    """The powers of h of the first corrections, starting at the order, in steps of 2 if the method is symmetric."""
    order = method.order_free if problem.field is None else method.order
    if order == math.inf:
        return []
    stride = 2 if method.symmetric else 1
    return [int(order) + stride * i for i in range(terms)]


def correction(method: Method, problem: Problem, power: int) -> Callable[[Mechanics, Any], Any]:
    """The function H_power of (mechanics, state)."""
    flows = [tuple(t for t in flow if problem.field is not None or callable(t.energy)) for flow in method.flows]
    letters, series = logarithm(flows, power + 1)
    lengths: dict[int, dict[Word, Any]] = {}
    for word, c in series[power + 1].items():
        *_, a, b = (-1, *word)
        if len(word) == 1 or a < b:  # L_a E_b = -L_b E_a
            other = series[power + 1].get((*word[:-2], b, a), 0) if len(word) > 1 else 0
            lengths.setdefault(len(word), {})[word] = (c - other) / len(word)

    def value(mechanics: Mechanics, y: Any) -> Any:
        found = [0 * y[1][0]]
        for words in lengths.values():
            own = {word: mechanics.number(c) for word, c in words.items()}
            found.append(mechanics.nested(letters, own, y))
        return total(found)

    return value


def corrections(method: Method, problem: Problem, terms: int) -> Callable[[Mechanics, Any, Any], Any]:
    """The function h^p H_p + ... of (mechanics, state, h), with `terms` terms."""
    found = [(power, correction(method, problem, power)) for power in powers(method, problem, terms)]
    return lambda mechanics, y, h: sum(h**power * value(mechanics, y) for power, value in found)


def check_flows(method: Method, problem: Problem) -> None:
    """Reject a method or a problem whose modified energy is not available."""
    if problem.field is not None and problem.needs != "potential":
        raise InputError(
            f"a modified energy needs a potential, and {problem.field!r} is a torque; make it with @ph.potential"
        )
    if not method.flows:
        why = "is not symplectic" if method.symplectic is False else "is not made of exact flows"
        known = listed(fitting("free", lambda m: m.flows))
        raise InputError(
            f"{method.name} {why}, so its modified energy is not available; use {known}, or strang, compositions "
            "and splittings of these"
        )


def modified_energy(problem: Problem, sol: Trajectory, terms: int = 1, method: str | Method | None = None) -> Any:
    """The modified energy along a trajectory: H + h^p H_p + ..., with `terms` corrections.

    Parameters
    ----------
    problem : the solved problem, free or with a potential
    sol : the result of `ph.solve`; for a run with ``digits=...`` all digits are used
    terms : number of corrections; 0 gives the energy itself
    method : the method of the run; needed only if it is not a registered name or expression

    Returns
    -------
    (n,) array of floats, or of mpmath numbers

    Examples
    --------
    >>> body = ph.problems.free_body()
    >>> sol = ph.solve(body, "dmv2", dt=0.1, steps=20)
    >>> ph.modified_energy(body, sol).shape
    (21,)
    """
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if not isinstance(sol, Trajectory):
        raise InputError(f"the second argument must be a trajectory from ph.solve; got {type(sol).__name__}")
    chosen = methods[sol.method if method is None else method]
    check_flows(chosen, problem)
    if isinstance(terms, bool) or not isinstance(terms, int) or not 0 <= terms <= MOST_TERMS:
        raise InputError(f"terms must be a whole number from 0 to {MOST_TERMS}; got {terms!r}")
    with working(DIGITS):
        more = corrections(chosen, problem, terms)
    if sol.mp is None:
        mechanics = Mechanics(problem, chosen, floats.number)
        y = mechanics.state(tuple(sol.quaternion.T), tuple(sol.momentum.T))
        return sol.energy + more(mechanics, y, sol.dt)
    with working((sol.info.digits or 0) + GUARD_DIGITS):
        mechanics = Mechanics(problem, chosen, number)
        h = number(sol.dt)
        kept = (np.vectorize(number, otypes=[object])(x) for x in (sol.mp.quaternion, sol.mp.momentum, sol.mp.energy))
        quaternions, momenta, energies = kept
        states = [mechanics.state(tuple(q), tuple(m)) for q, m in zip(quaternions, momenta, strict=True)]
        found = energies + np.array([more(mechanics, y, h) for y in states], dtype=object)
    return public(found)
