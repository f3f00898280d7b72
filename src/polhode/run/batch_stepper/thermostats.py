"""Thermostats that rescale the momenta of all bodies together, for the stepper of many bodies.

A thermostat is given to `ph.batch_stepper`, acts over half a step before and after every step, and so has a state of
its own. The kinetic energies come in groups: that of the rotation, or those of translation and rotation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.nose_hoover import chain_energy, chain_of, chain_step
from ...kernels.velocity_rescaling import rescaling
from ...methods.tables.compositions import compositions
from ...numbers import floats
from ...numbers.exact import converted
from ...numbers.gamma import sum_of_squares
from ...numbers.philox import normal_pair
from ...physics.fields.heat_bath import LARGEST, counter, temperature
from ...physics.validate import finite_number, real_array, whole_number

__all__ = ["Bussi", "NoseHoover", "bussi", "nose_hoover"]

STREAM = float(LARGEST - 1)
"""The body whose random numbers the thermostat of all bodies takes: no other body has this number."""

WEIGHTS = [float(converted(weight, floats.number)) for weight in compositions["suzuki4"].weights]
"""Weights of the composition by which a chain moves."""


@dataclasses.dataclass(frozen=True)
class Bussi:
    """Stochastic velocity rescaling: made by `bussi`."""

    kT: float
    tau: float
    seed: float
    degrees: tuple[int, ...] | None

    def begin(self, groups: int) -> Rescaling:
        """The thermostat at the start of a run."""
        return Rescaling(self, groups)


@dataclasses.dataclass(frozen=True)
class NoseHoover:
    """Nosé-Hoover chains: made by `nose_hoover`."""

    kT: float
    tau: float
    chain: int
    degrees: tuple[int, ...] | None

    def begin(self, groups: int) -> Chains:
        """The thermostat at the start of a run."""
        return Chains(self, groups)


def bussi(*, kT: Any, tau: Any, seed: Any = 0, degrees: Any = None) -> Bussi:
    """Stochastic velocity rescaling (Bussi, Donadio and Parrinello 2007): canonical, one random factor for all momenta.

    Parameters
    ----------
    kT : temperature times Boltzmann's constant, an energy
    tau : time constant with which the kinetic energy relaxes
    seed : whole number that chooses the random numbers
    degrees : number of degrees of freedom; by default three for the rotation of every body (two of a linear one) and
        three for its translation. If the total momentum is conserved and zero, give three less
    """
    return Bussi(temperature("kT", kT), _positive("tau", tau), counter("seed", seed), _degrees(degrees))


def nose_hoover(*, kT: Any, tau: Any, chain: Any = 3, degrees: Any = None) -> NoseHoover:
    """Nosé-Hoover chains for rigid bodies (Kamberaj, Low and Neal 2005): deterministic and reversible.

    Translation and rotation have a chain each. The energy of bodies and chains together is conserved.

    Parameters
    ----------
    kT : temperature times Boltzmann's constant, an energy
    tau : time constant: the period of the chain is about 2 pi tau
    chain : number of links
    degrees : number of degrees of freedom, with translation a pair (of translation, of rotation); by default as for
        `bussi`
    """
    return NoseHoover(_positive("kT", kT), _positive("tau", tau), whole_number("chain", chain), _degrees(degrees))


def _positive(name: str, value: Any) -> float:
    number = finite_number(name, value)
    if number <= 0:
        raise InputError(f"{name} must be positive; got {value!r}", name)
    return number


def _degrees(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    given = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(given) <= 2:
        raise InputError(f"degrees must be a whole number, or two of them; got {value!r}", "degrees")
    return tuple(whole_number("degrees", number) for number in given)


class Acting:
    """A thermostat in a run.

    Attributes
    ----------
    energy : the energy of the thermostat; the sum with that of the bodies changes by the error of the steps only
    state : its state as an array of numbers: set it to that of another run to continue this run
    """

    energy: float
    degrees: tuple[int, ...] = ()

    def __init__(self, given: tuple[int, ...] | None, groups: int) -> None:
        self.given, self.groups = given, groups
        if given is not None and groups > 1 and len(given) != groups and not self.joins_groups:
            raise InputError(f"degrees must be a pair, of translation and of rotation; got {given}", "degrees")
        if given is not None and len(given) > groups:
            raise InputError(f"degrees must be one number for bodies without masses; got {given}", "degrees")

    joins_groups = False
    """Whether the groups have one factor, so that their number of degrees may be given together."""

    def take(self, counted: tuple[int, ...]) -> None:
        """Take the degrees of freedom of each group as counted, unless they were given."""
        self.degrees = counted if self.given is None else self.given

    @property
    def state(self) -> np.ndarray:
        """The state as an array of numbers."""
        return self.numbers()

    @state.setter
    def state(self, value: Any) -> None:
        shape = self.state.shape
        expected = f"state must be finite numbers of shape {shape}, as this attribute was"
        given = real_array(value, expected)
        if given.shape != shape or not np.isfinite(given).all():
            raise InputError(f"{expected}; got {value!r}", "state")
        self.restore(given)

    def numbers(self) -> np.ndarray:
        """Return the state as an array."""
        raise NotImplementedError

    def restore(self, numbers: np.ndarray) -> None:
        """Take the state of such an array."""
        raise NotImplementedError

    def factors(self, h: float, kinetic: Sequence[float]) -> list[float]:
        """Act over the time h: the factor of the momenta of each group, from twice its kinetic energy."""
        raise NotImplementedError

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Return to the state before if an error is raised."""
        before = self.numbers()
        try:
            yield
        except BaseException:
            self.restore(before)
            raise


class Rescaling(Acting):
    """Stochastic velocity rescaling in a run; its state is the number of times that it acted, and its energy."""

    joins_groups = True

    def __init__(self, spec: Bussi, groups: int) -> None:
        super().__init__(spec.degrees, groups)
        self.spec, self.count, self.energy = spec, 0.0, 0.0

    def numbers(self) -> np.ndarray:
        """Return the number of times that it acted, and its energy."""
        return np.array([self.count, self.energy])

    def restore(self, numbers: np.ndarray) -> None:
        """Take the state of such an array."""
        self.count, self.energy = counter("the first number of state", numbers[0]), float(numbers[1])

    def factors(self, h: float, kinetic: Sequence[float]) -> list[float]:
        """One factor for all groups."""
        spec, total = self.spec, sum(kinetic)
        if h < 0:
            raise InputError(f"bussi has noise and runs forwards in time only; got dt = {2 * h:g}", "dt")
        xi, _ = normal_pair(spec.seed, STREAM, self.count, 0)
        rest = sum_of_squares(sum(self.degrees) - 1, spec.seed, STREAM, self.count, 1)
        factor = rescaling(h, spec.tau, spec.kT, total, xi, rest)
        self.count, self.energy = self.count + 1, self.energy - (factor * factor - 1) * total / 2
        return [factor] * len(kinetic)


class Chains(Acting):
    """Nosé-Hoover chains in a run; their state is (groups, 2, links), positions and velocities of the links."""

    def __init__(self, spec: NoseHoover, groups: int) -> None:
        super().__init__(spec.degrees, groups)
        self.spec = spec
        self.chains = [chain_of(spec.chain, spec.kT, spec.tau, 0)] * groups

    def take(self, counted: tuple[int, ...]) -> None:
        """Take the degrees of freedom of each group, and the masses of the links that follow from them."""
        super().take(counted)
        for i, count in enumerate(self.degrees):
            masses = chain_of(self.spec.chain, self.spec.kT, self.spec.tau, count).masses
            self.chains[i] = self.chains[i]._replace(degrees=count, masses=masses)

    @property
    def energy(self) -> float:  # type: ignore[override]
        """The energy of the chains."""
        return sum(float(chain_energy(chain)) for chain in self.chains)

    def numbers(self) -> np.ndarray:
        """Return positions and velocities of the links of every chain."""
        return np.array([(chain.positions, chain.velocities) for chain in self.chains], dtype=float)

    def restore(self, numbers: np.ndarray) -> None:
        """Take the state of such an array."""
        self.chains = [
            chain._replace(positions=tuple(x.tolist()), velocities=tuple(v.tolist()))
            for chain, (x, v) in zip(self.chains, numbers, strict=True)
        ]

    def factors(self, h: float, kinetic: Sequence[float]) -> list[float]:
        """A factor for each group."""
        found = []
        for i, twice in enumerate(kinetic):
            try:
                factor, self.chains[i] = chain_step(h, twice, self.chains[i], WEIGHTS)
            except ArithmeticError:
                factor = math.nan
            if not 0 < factor < math.inf:
                raise InputError(
                    f"the Nose-Hoover chains diverge in steps of dt = {2 * h:g} with tau = {self.spec.tau:g}; choose a "
                    "shorter dt or a longer tau", "dt",
                )  # fmt: skip
            found.append(float(factor))
        return found
