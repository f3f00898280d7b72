"""The capture of Mercury into the 3:2 resonance of rotation and orbit, against the formula of Goldreich and Peale.

    python -m validation.mercury [STARTS]

A planet spins down under tides with a constant time lag and passes the 3:2 resonance. Whether it is captured depends on
its phase. The share of captured starts is compared with the probability of Goldreich and Peale (Astronomical Journal 71
(1966) 425), for the asymmetry (B - A)/C = 1.2e-4 of Mercury and for larger ones. Units: semi-major axis, inverse mean
motion, and moment C = 1.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

PICTURE = Path(__file__).parents[1] / "docs" / "mercury.png"
ECCENTRICITY = 0.206
MERCURY = 1.2e-4
"""(B - A)/C, as Correia and Laskar (Nature 429 (2004) 848) take it."""

RESONANCE = 1.5
PER_ORBIT = 8
DT = 2 * np.pi / PER_ORBIT
METHOD = "verner87"
ABOVE, BELOW = (1.5, 2.0), 2.5
"""Starts above the resonance, and how far below it an escaped body is at the end, in half-widths of the resonance."""

SIZES = {1.2e-4: 1.0, 4e-4: 0.5, 1e-3: 0.5, 2e-3: 0.5}
"""Asymmetries, and the share of the starts that each of them gets."""


@dataclasses.dataclass(frozen=True)
class Planet:
    """A planet with an asymmetry (B - A)/C on an eccentric orbit, and the averages of its motion near the resonance."""

    asymmetry: float
    eccentricity: float = ECCENTRICITY
    loss: float = 0.06
    """Energy that tides take in the last turn before the resonance, relative to its depth: small, so slow tides."""

    @functools.cached_property
    def hansen(self) -> float:
        """H(e), the mean of cos(2 f - 3 M)/r^3: the strength of the 3:2 resonance, 7e/2 - 123 e^3/16 + ..."""
        f, r, M = self._orbit()
        return float(np.mean(np.cos(2 * f - 2 * RESONANCE * M) / r**2))

    def _orbit(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """True anomaly, distance and mean anomaly at equal steps of the eccentric anomaly, where dM = r dE."""
        E, e = np.arange(256) * 2 * np.pi / 256, self.eccentricity
        f = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
        return f, 1 - e * np.cos(E), E - e * np.sin(E)

    @property
    def libration(self) -> float:
        """Frequency of small librations, sqrt(3 (B - A)/C H): also the half-width of the resonance in the rate."""
        return float(np.sqrt(3 * self.asymmetry * self.hansen))

    @property
    def tidal_means(self) -> tuple[float, float]:
        """Means of r^-6 and of r^-6 times the rate of the true anomaly: the averaged tide is -K (f_1 rate - f_2)."""
        _, r, _ = self._orbit()
        rate = np.sqrt(1 - self.eccentricity**2) / r**2
        return float(np.mean(r**-5)), float(np.mean(r**-5 * rate))

    @property
    def drift(self) -> float:
        """The averaged tide at the resonance over K: f_1 3/2 - f_2, positive if the planet spins down through it."""
        first, second = self.tidal_means
        return RESONANCE * first - second

    @property
    def probability(self) -> float:
        """Probability of capture, 2/(1 + pi W/(2 Z w)), for a mean tide -W - Z x rate above the resonance, w libration.

        The last turn above the resonance takes the energy pi W + 2 Z w, with each value of what is left being equally
        likely; the turn back gives pi W - 2 Z w. The planet is captured if that is less than what is missing.
        """
        return float(min(1.0, 2 / (1 + np.pi * self.drift / (2 * self.tidal_means[0] * self.libration))))

    @property
    def lag(self) -> float:
        """K, such that the last turn takes the share `loss` of the depth w^2/2 of the resonance."""
        w = self.libration
        return float(self.loss * w * w / 2 / (np.pi * self.drift + 2 * self.tidal_means[0] * w))

    @property
    def problem(self) -> ph.Problem:
        """The planet at the pericentre, in the resonance."""
        body = ph.Body([0.98, 0.98 + self.asymmetry, 1.0])
        place = ph.Orbit(1.0, semi_major_axis=1.0, eccentricity=self.eccentricity).function
        swept = float(np.sqrt(1 - self.eccentricity**2))  # r^2 times the rate of the true anomaly

        @ph.torque
        def tides(t: Any, R: Any, omega: Any, A: Any, B: Any, K: Any) -> Any:
            x, y, _ = place(t)[0]
            square = x * x + y * y
            u, v = R[0][0] * x + R[1][0] * y, R[0][1] * x + R[1][1] * y
            gravity = 3 * (B - A) * u * v / (square * square * ph.math.sqrt(square))
            return [0 * u, 0 * u, gravity - K * (omega[2] - swept / square) / square**3]

        A, B, _ = body.moments.tolist()
        return ph.Problem(body, tides(A, B, self.lag), omega=[0.0, 0.0, RESONANCE])


@dataclasses.dataclass(frozen=True)
class Captures:
    """Shares of starts that were captured."""

    planet: Planet
    captured: np.ndarray
    rates: np.ndarray

    @property
    def share(self) -> float:
        """Share of captured starts."""
        return float(self.captured.mean())

    @property
    def sigma(self) -> float:
        """Standard deviation of the share if the formula holds (binomial)."""
        p = self.planet.probability
        return float(np.sqrt(p * (1 - p) / len(self.captured)))


def starts(planet: Planet, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Attitudes and rates at the pericentre: any angle, and somewhat faster than the resonance."""
    rng = np.random.default_rng(seed)
    half, above = rng.uniform(0, np.pi, number), rng.uniform(*ABOVE, number) * planet.libration
    zero = np.zeros(number)
    q = np.stack([np.cos(half), zero, zero, np.sin(half)], 1)
    return q, np.stack([zero, zero, RESONANCE + above], 1)


def captures(planet: Planet, number: int, seed: int = 0) -> Captures:
    """Let many starts above the resonance spin down, and count those that stay in it."""
    w = planet.libration
    q, omega = starts(planet, number, seed)
    many = ph.ensemble(
        planet.problem, METHOD, attitude=q, omega=omega, dt=DT, steps=PER_ORBIT * orbits_down(planet), progress=False
    )  # fmt: skip
    rates = many.omega[-1][:, 2] - RESONANCE
    if ((rates < -1.3 * w) & (rates > -1.6 * w)).any():
        raise RuntimeError("some starts are still near the edge of the resonance; run longer")
    return Captures(planet, rates > -1.3 * w, rates)


def orbits_down(planet: Planet) -> int:
    """Orbits from above the resonance to well below it, with some more for the passage."""
    time_down = (ABOVE[1] + BELOW) * planet.libration / (planet.lag * planet.drift)
    return int(np.ceil(1.3 * time_down / (2 * np.pi)))


def libration_period(planet: Planet, librations: float = 8.0) -> float:
    """Period of small librations about the resonance without tides, in orbits, from the phase at the pericentres."""
    start = planet.problem
    assert start.field is not None
    still = ph.Problem(start.body, start.field.bind(K=0.0), euler=("XYZ", [0.0, 0.0, 0.02]), omega=start.omega)
    orbits = int(librations * 2 * np.pi / planet.libration / (2 * np.pi))
    sol = ph.solve(still, METHOD, dt=DT, steps=PER_ORBIT * orbits, every=PER_ORBIT)
    phase = phases(sol)
    spot = np.flatnonzero((phase[1:] > 0) & (phase[:-1] <= 0))
    crossings = spot + phase[spot] / (phase[spot] - phase[spot + 1])
    return float(np.diff(crossings).mean())


def phases(sol: ph.Trajectory) -> np.ndarray:
    """Angle of the planet less 3/2 of the mean anomaly at pericentres, where half turns of a planet do not count."""
    angle = 2 * np.arctan2(sol.quaternion[:, 3], sol.quaternion[:, 0]) - RESONANCE * sol.t
    return np.asarray(np.mod(angle + np.pi / 2, np.pi) - np.pi / 2)


def examples(planet: Planet, found: Captures, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times in orbits and rates over the mean motion of a captured start and of one that escaped."""
    chosen = [int(np.flatnonzero(found.captured == kind)[0]) for kind in (True, False)]
    q, omega = starts(planet, len(found.captured), seed)
    many = ph.ensemble(
        planet.problem, METHOD, attitude=q[chosen], omega=omega[chosen], dt=DT, every=PER_ORBIT,
        steps=PER_ORBIT * orbits_down(planet), progress=False,
    )  # fmt: skip
    return [(many.t / (2 * np.pi), many.omega[:, i, 2]) for i in range(2)]


def picture(found: list[Captures], seed: int) -> None:
    """Draw two motions, and the shares with the formula."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    shown = next(one for one in found if one.planet.asymmetry == 1e-3)
    for (t, rate), name in zip(examples(shown.planet, shown, seed), ("captured", "not captured"), strict=True):
        left.plot(t, rate, linewidth=0.6, label=name)
    left.set(xlabel="orbits", ylabel="rate / mean motion at the pericentre", title=r"$(B - A)/C = 10^{-3}$")
    left.legend(fontsize="small")
    sizes = np.geomspace(5e-5, 4e-3, 60)
    right.semilogx(sizes, [Planet(x).probability for x in sizes], label="Goldreich and Peale 1966")
    right.errorbar(
        [one.planet.asymmetry for one in found], [one.share for one in found], [2 * one.sigma for one in found],
        fmt="o", capsize=3, label="share of starts, 2 sigma",
    )  # fmt: skip
    right.axvline(MERCURY, color="grey", linewidth=0.8, linestyle=":")
    right.annotate("Mercury", (MERCURY, 0.25), (3, 0), textcoords="offset points", color="grey")
    right.set(xlabel="(B - A)/C", ylabel="probability of capture", ylim=(0, 0.35))
    right.legend(fontsize="small", loc="upper left")
    fig.savefig(PICTURE, dpi=120)


def main(number: int, seed: int = 0) -> None:
    """Compare the libration period and the shares with their formulas."""
    for asymmetry in (MERCURY, 1e-3):
        planet = Planet(asymmetry)
        print(f"{asymmetry:g}: libration {libration_period(planet):.3f} orbits, formula {1 / planet.libration:.3f}")
    found = []
    for asymmetry, share in SIZES.items():
        began = time.perf_counter()
        one = captures(Planet(asymmetry), int(number * share), seed)
        found.append(one)
        print(
            f"(B - A)/C = {asymmetry:g}: captured {100 * one.share:.2f} % of {len(one.captured)}, formula "
            f"{100 * one.planet.probability:.2f} +- {100 * one.sigma:.2f} %, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    picture(found, seed)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2048)
