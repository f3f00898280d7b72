"""Statistics of methods with noise: temperature of each axis, rotational diffusion, a dipole in a field.

    python validation/temperature.py [bodies]

Every comparison is a score, (measured - exact)/sigma, with sigma the standard deviation of a mean over independent
bodies. A score beyond 3 has the probability 0.27 %, so of the 52 comparisons one is expected beyond 2.4, and
one beyond 3 in every seventh run; the seeds are fixed, another one for each temperature. The noise of a differentiable
molecular-dynamics package, which draws the four components of the quaternion momentum independently, is judged by the
same scores.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import polhode as ph

MOMENTS = (0.2, 1.0, 1.1)
FRICTIONS = (0.01, 0.1, 1.0, 10.0, 100.0)
STEPS = (0.02, 0.3, 3.0)
"""The free motion is exact here, so that the free body has no stability limit: it turns by radians in the last one."""
KT = 1.3
LIMIT = 3.0
"""Largest score that is accepted."""
RELAXATIONS = 3.0
"""Length of a run in units of the longest relaxation time I/Gamma, and at least `SHORTEST`."""
SHORTEST, LONGEST = 50, 4000
"""Least and largest number of steps of a run; for weak friction the longest is about one relaxation time."""


def gibbs(number: int, moments: tuple[float, ...] = MOMENTS, seed: int = 1) -> np.ndarray:
    """Momenta with the Gibbs distribution."""
    normal: np.ndarray = np.random.default_rng(seed).normal(size=(number, 3))
    return normal * np.sqrt(KT * np.array(moments))


def scores_of(momenta: np.ndarray) -> np.ndarray:
    """Scores of the temperatures of the axes: Pi_i^2/(I_i kT) has the mean 1 and the variance 2."""
    means = (momenta**2 / (KT * np.array(MOMENTS))).mean(0)
    scores: np.ndarray = (means - 1) / math.sqrt(2 / len(momenta))
    return scores


def temperatures(method: str, friction: float, dt: float, number: int, seed: int = 7) -> np.ndarray:
    """Scores of the axes after a run from the Gibbs distribution, which must not change."""
    steps = int(min(max(RELAXATIONS * max(MOMENTS) / (friction * dt), SHORTEST), LONGEST))
    bath = ph.fields.heat_bath(kT=KT, friction=friction, seed=seed)
    many = ph.ensemble([MOMENTS] * number, None, gibbs(number, seed=seed), method, field=bath, dt=dt, steps=steps)
    return scores_of(many.momentum[-1])


def cold(method: str, friction: float, dt: float, number: int) -> np.ndarray:
    """The same from rest, over ten relaxation times."""
    steps = math.ceil(10 * max(MOMENTS) / (friction * dt))
    bath = ph.fields.heat_bath(kT=KT, friction=friction, seed=8)
    many = ph.ensemble([MOMENTS] * number, None, [[0.0] * 3] * number, method, field=bath, dt=dt, steps=steps)
    return scores_of(many.momentum[-1])


# --- noise from the diagonal of the covariance ------------------------------------------------------


def columns(q: np.ndarray) -> np.ndarray:
    """The vectors P_1 q, P_2 q, P_3 q, (N, 3, 4): a momentum Pi is the quaternion momentum 2 sum_l Pi_l P_l q."""
    w, x, y, z = q.T
    return np.stack([np.stack(row, 1) for row in ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))], 1)


def drawn_in_components(number: int, diagonal: bool, gamma: float = 1.0, dt: float = 0.1, steps: int = 60) -> Any:
    """Scores of the axes with friction and noise on the quaternion momentum, attitudes drawn anew in every step.

    With `diagonal`, the four components of the noise are independent and have the right variances only; otherwise the
    noise is sum_l s_l P_l q xi_l (Davidchack, Ouldridge and Tretyakov 2015).
    """
    rng, moments = np.random.default_rng(3), np.array(MOMENTS)
    mass = 4 / np.sum(1 / moments)
    decay = np.exp(-gamma * mass * dt / (4 * moments))
    spread = 2 * np.sqrt(KT * moments * (1 - decay**2))
    momenta = gibbs(number)
    for _ in range(steps):
        q = rng.normal(size=(number, 4))
        P = columns(q / np.linalg.norm(q, axis=1)[:, None])
        if diagonal:
            noise = np.sqrt(np.einsum("l,nli->ni", spread**2, P**2)) * rng.normal(size=(number, 4))
        else:
            noise = np.einsum("l,nli,nl->ni", spread, P, rng.normal(size=(number, 3)))
        momenta = decay * momenta + np.einsum("nli,ni->nl", P, noise) / 2
    return scores_of(momenta)


# --- attitudes --------------------------------------------------------------------------------------


def diffusion(number: int, method: str = "baoab(rot123)") -> np.ndarray:
    """Scores of the mean of R_ii(t), from R = 1, for strong anisotropic friction: exp(-(D_j + D_k) t), D = kT/Gamma.

    L. D. Favro, Theory of the rotational Brownian motion of a free rigid body, Phys. Rev. 119 (1960) 53-62.
    Two known errors are a thousandth of the value here: the inertia delays the decay by about I/Gamma, and the step
    makes D larger by the factor (a/2) coth(a/2), a = Gamma dt/I, which is 1 + a^2/12.
    """
    moments = (1.0, 1.1, 1.2)
    friction, dt, steps = np.array([40.0, 60.0, 100.0]) * KT, 0.0025, 8000
    bath = ph.fields.heat_bath(kT=KT, friction=friction, seed=9)
    many = ph.ensemble([moments] * number, None, gibbs(number, moments), method, field=bath, dt=dt, steps=steps)
    w, *v = many.quaternion[-1].T
    kept = np.stack([2 * (w * w + x * x) - 1 for x in v], 1)
    D = KT / friction
    exact = np.exp(-(D.sum() - D) * dt * steps)
    scores: np.ndarray = (kept.mean(0) - exact) / (kept.std(0) / math.sqrt(number))
    return scores


def dipole(number: int, strength: float = 2.0, dt: float = 0.05, method: str = "baoab(rot123)") -> np.ndarray:
    """Score of the mean of the cosine between a dipole and the field: the Langevin function coth x - 1/x, x = mB/kT."""
    field = ph.fields.dipole(moment=[0, 0, strength * KT], field=[0, 0, 1.0])
    bath = ph.fields.heat_bath(kT=KT, friction=1.0, seed=10)
    q = np.random.default_rng(2).normal(size=(number, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    many = ph.ensemble([MOMENTS] * number, q, gibbs(number), method, field=field + bath, dt=dt, steps=600)
    w, x, y, z = many.quaternion[-1].T
    cosine = w * w - x * x - y * y + z * z
    exact = 1 / math.tanh(strength) - 1 / strength
    return np.array([(cosine.mean() - exact) / (cosine.std() / math.sqrt(number))])


def all_scores(number: int) -> Iterator[tuple[str, np.ndarray]]:
    """All comparisons, with their names."""
    for seed, (friction, dt) in enumerate(itertools.product(FRICTIONS, STEPS), start=100):  # independent runs
        scores = temperatures("baoab(jacobi)", friction, dt, number, seed)
        yield f"temperature, friction {friction:g}, dt {dt:g}", scores
    yield "temperature from rest", cold("obabo(jacobi)", 1.0, 0.1, number)
    yield "rotational diffusion (Favro)", diffusion(number)
    yield "dipole in a field (Langevin function)", dipole(number)


def main() -> None:
    """Print all scores, and those of the noise that is drawn in components."""
    number, bad = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, 0
    for name, scores in all_scores(number):
        bad += int((np.abs(scores) > LIMIT).sum())
        print(f"{name:45s}", " ".join(f"{x:6.2f}" for x in scores), flush=True)
    for diagonal in (False, True):
        scores = drawn_in_components(number, diagonal)
        told = "independent components (must be caught)" if diagonal else "three normal numbers"
        caught = bool((np.abs(scores) > LIMIT).any())
        bad += caught != diagonal
        print(f"{'quaternion momentum, ' + told:45s}", " ".join(f"{x:6.2f}" for x in scores))
    print("all as expected" if not bad else f"{bad} beyond {LIMIT:g} sigma")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
