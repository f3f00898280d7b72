"""Statistics of Brownian rotation and of the thermostats.

    python validation/thermostats.py [bodies]

Every comparison is a score, (measured - exact)/sigma, with sigma the standard deviation of a mean of independent
samples. A score beyond 3 has the probability 0.27 %, so of the 21 comparisons one is beyond 3 in every eighteenth run;
the seed is fixed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
import scipy.linalg

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


def all_scores(number: int) -> Iterator[tuple[str, np.ndarray]]:
    """All comparisons, with their names."""
    yield "Brownian rotation (Favro)", diffusion(number)
    yield "Brownian rotation, long steps", diffusion(number, dt=0.25, steps=2)
    yield "Brownian dipole in a field", dipole(number)


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
