"""Statistics of Brownian rotation and of the thermostats.

    python validation/thermostats.py [bodies]

Every comparison is a score, (measured - exact)/sigma, with sigma the standard deviation of a mean of independent
samples. A score beyond 3 has the probability 0.27 %, so of the 32 comparisons one is beyond 3 in about every twelfth
run; the seed is fixed. The kinetic energy of thermostatted bodies is compared with its canonical distribution, the
gamma distribution of f/2 degrees, by the test of Kolmogorov and Smirnov: its probability, at least 0.003, is given as
the score of a normal number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.stats

import polhode as ph

KT = 1.3
LIMIT = 3.0
"""Largest score that is accepted."""

# --- overdamped Brownian rotation -------------------------------------------------------------------

FRICTION = np.array([0.7, 1.3, 2.9])


def decays(D: np.ndarray, t: float) -> np.ndarray:
    """Exact means, from R = 1, of R_ii, of u_i u_j for u = R^T n, and of u_i^2, divided by or started at n = e.

    The first decay as exp(-(D_j + D_k) t), the second as exp(-(D_i + D_j + 4 D_k) t), and the third have the rates
    d(u_i^2)/dt = 2 sum_k D_k (u_j^2 - u_i^2), whose eigenvalues are Favro's 6 D +- 6 (D^2 - L^2)^(1/2).
    L. D. Favro, Theory of the rotational Brownian motion of a free rigid body, Phys. Rev. 119 (1960) 53-62.
    """
    others = np.roll(D, 1), np.roll(D, 2)
    first = np.exp(-(others[0] + others[1]) * t)
    second = np.exp(-(others[0] + others[1] + 4 * D) * t)
    rates = np.zeros((3, 3))
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for a, b in ((i, j), (j, i)):
            rates[a, b] += 2 * D[k]
            rates[a, a] -= 2 * D[k]
    third = scipy.linalg.expm(rates * t) @ np.array([0.0, 0.0, 1.0])
    return np.concatenate([first, second, third])


def diffusion(number: int, method: str = "brownian(2)", dt: float = 0.05, steps: int = 10) -> np.ndarray:
    """Scores of the means of the attitude against Favro's formulas, with an anisotropic diffusion tensor."""
    bath = ph.fields.heat_bath(kT=KT, friction=FRICTION, seed=11)
    moments, still = [[1.0, 1.1, 1.2]] * number, [[0.0] * 3] * number
    many = ph.ensemble(moments, None, still, method, field=bath, dt=dt, steps=steps)
    w, x, y, z = many.quaternion[-1].T
    R = np.array([
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ])  # fmt: skip
    products = []
    for k in range(3):  # n = (e_i + e_j)/sqrt(2), and u_i u_j starts at 1/2
        i, j = (k + 1) % 3, (k + 2) % 3
        u = (R[i] + R[j]) / math.sqrt(2)
        products.append(2 * u[i] * u[j])
    found = np.stack([R[0, 0], R[1, 1], R[2, 2], *products, *(R[2] ** 2)])
    exact = decays(KT / FRICTION, dt * steps)
    scores: np.ndarray = (found.mean(1) - exact) / (found.std(1) / math.sqrt(number))
    return scores


def dipole(number: int, strength: float = 2.0, method: str = "brownian(2)", dt: float = 0.02) -> np.ndarray:
    """Score of the mean of the cosine between a dipole and the field: the Langevin function coth x - 1/x, x = mB/kT."""
    field = ph.fields.dipole(moment=[0, 0, strength * KT], field=[0, 0, 1.0])
    bath = ph.fields.heat_bath(kT=KT, friction=FRICTION, seed=12)
    q = np.random.default_rng(2).normal(size=(number, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    moments, still = [[1.0, 1.1, 1.2]] * number, [[0.0] * 3] * number
    many = ph.ensemble(moments, q, still, method, field=field + bath, dt=dt, steps=200)
    w, x, y, z = many.quaternion[-1].T
    cosine = w * w - x * x - y * y + z * z
    exact = 1 / math.tanh(strength) - 1 / strength
    return np.array([(cosine.mean() - exact) / (cosine.std() / math.sqrt(number))])


# --- thermostats ------------------------------------------------------------------------------------

MOMENTS, MASS = np.array([0.4, 1.0, 1.1]), 1.7


def score_of(kinetic: np.ndarray, degrees: int) -> np.ndarray:
    """Scores of independent kinetic energies: of the mean, of the variance, and of the whole distribution."""
    x, n = kinetic / KT, len(kinetic)
    shape = degrees / 2
    mean = (x.mean() - shape) / math.sqrt(shape / n)
    # the fourth central moment of a gamma distribution is 3 a^2 + 6 a
    variance = (((x - shape) ** 2).mean() - shape) / math.sqrt((2 * shape**2 + 6 * shape) / n)
    probability = scipy.stats.kstest(x, scipy.stats.gamma(shape).cdf).pvalue
    return np.array([mean, variance, scipy.stats.norm.isf(probability / 2)])


def rescaled(samples: int, tau: float = 0.5, dt: float = 0.25) -> np.ndarray:
    """Scores of the kinetic energy of two free bodies, rotation and translation, by stochastic rescaling."""
    number = 2
    rng = np.random.default_rng(5)
    state = [
        np.zeros((number, 3)),
        rng.normal(size=(number, 3)),
        np.tile([1.0, 0, 0, 0], (number, 1)),
        np.ones((number, 3)),
    ]
    thermostat = ph.thermostats.bussi(kT=KT, tau=tau, seed=13)
    stepper = ph.batch_stepper([MOMENTS] * number, "strang(rot123)", dt, masses=MASS, thermostat=thermostat)
    found = []
    for _ in range(samples):  # ten relaxation times apart
        stepper.step(*state, n=math.ceil(10 * tau / dt))
        found.append(((state[1] ** 2).sum() / MASS + (state[3] ** 2 / MOMENTS).sum()) / 2)
    return score_of(np.array(found), 6 * number)


def _up(q: np.ndarray) -> np.ndarray:
    """The vertical in the body frame."""
    w, x, y, z = q.T
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)


def each_rescaled(number: int, moments: tuple[float, ...], method: str = "bussi(dmv4)") -> np.ndarray:
    """Scores of the kinetic energies of free bodies with a thermostat each, ten relaxation times after equal starts."""
    inertia, tau = np.array(moments), 0.5
    bath = ph.fields.heat_bath(kT=KT, friction=inertia / (2 * tau), seed=14)
    start = np.where(inertia > 0, 1.0, 0.0)
    many = ph.ensemble([ph.Body(moments)] * number, None, [start] * number, method, field=bath, dt=0.25, steps=20)
    turning = inertia > 0
    kinetic = (many.momentum[-1][:, turning] ** 2 / inertia[turning]).sum(1) / 2
    return score_of(kinetic, int(turning.sum()))


def _forces(t: float, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bodies on springs that are not linear, with weights that depend on their heights, and coupled to each other."""
    pull = -x - x * (x * x).sum(1, keepdims=True) + 0.3 * (np.roll(x, 1, 0) + np.roll(x, -1, 0) - 2 * x)
    e3 = np.array([0.0, 0.0, 1.0])
    return pull - _up(q)[:, 2:] * e3, -(1.0 + x[:, 2:]) * np.cross(e3, _up(q))


def chained(blocks: int, number: int = 8, dt: float = 0.02, tau: float = 0.4) -> np.ndarray:
    """Scores of the kinetic energies of translation and of rotation with chains: means and mean squares.

    A deterministic run has no independent samples: sigma is that of the means over blocks of forty time units,
    and includes the error of the step, of order dt^2, only as far as the score shows it.
    """
    rng = np.random.default_rng(7)
    state = [
        0.3 * rng.normal(size=(number, 3)),
        rng.normal(size=(number, 3)),
        np.tile([1.0, 0, 0, 0], (number, 1)),
        rng.normal(size=(number, 3)),
    ]
    thermostat = ph.thermostats.nose_hoover(kT=KT, tau=tau)
    stepper = ph.batch_stepper([MOMENTS] * number, "strang(rot123)", dt, masses=MASS, thermostat=thermostat)
    found = []
    for _ in range(blocks):
        within = []
        for _ in range(100):
            stepper.step(*state, _forces, n=20)
            within.append([(state[1] ** 2).sum() / MASS / 2, (state[3] ** 2 / MOMENTS).sum() / 2])
        found.append(within)
    x, shape = np.array(found[2:]) / KT, 1.5 * number
    means, squares = x.mean(1), ((x - shape) ** 2).mean(1)
    scores = [(a.mean(0) - shape) / (a.std(0, ddof=1) / math.sqrt(len(a))) for a in (means, squares)]
    return np.concatenate(scores)


def all_scores(number: int) -> Iterator[tuple[str, np.ndarray]]:
    """All comparisons, with their names."""
    yield "Brownian rotation (Favro)", diffusion(number)
    yield "Brownian rotation, long steps", diffusion(number, dt=0.25, steps=2)
    yield "Brownian dipole in a field", dipole(number)
    yield "kinetic energy, bussi", rescaled(number // 10)
    yield "kinetic energy of each body, bussi", each_rescaled(number, (0.4, 1.0, 1.1))
    yield "kinetic energy of linear bodies, bussi", each_rescaled(number, (0.9, 0.9, 0.0))
    yield "kinetic energy, nose_hoover", chained(max(number // 500, 10))


def main() -> None:
    """Print all scores."""
    number, bad = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, 0
    for name, scores in all_scores(number):
        bad += int((np.abs(scores) > LIMIT).sum())
        print(f"{name:45s}", " ".join(f"{x:6.2f}" for x in scores), flush=True)
    print("all as expected" if not bad else f"{bad} beyond {LIMIT:g} sigma")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
