"""Estimation and covariance against the truth: many seeded cases with noise, bias and gaps.

    python -m validation.estimation [CASES]

Every case has a random body, torque, start and noise. The first guess is off by some per cent. `within` is the share of
numbers whose error is at most 3 sigma (99.7 % for normal errors), `cases` the share of cases with all of them within,
`mean square` the mean of (error/sigma)^2 over numbers, which is 1 if the covariance is right. The second part compares
the covariance of the end of a motion with that of many motions with starts drawn from the initial one.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import polhode as ph

SIGMA_ATTITUDE, SIGMA_RATE = 1e-3, 1e-3
BIAS = 0.01
CLONES = 4000


def problem_of(rng: np.random.Generator) -> ph.Problem:
    """A random heavy body; its moments satisfy the triangle inequality."""
    a = rng.uniform(0.3, 1.5, 3)
    q = rng.normal(size=4)
    return ph.Problem(
        ph.Body((a.sum() - a).tolist()), ph.fields.gravity(mgl=rng.uniform(0.5, 2.0)), attitude=q / np.linalg.norm(q),
        omega=rng.normal(0, 1.0, 3),
    )  # fmt: skip


def rotated(q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Attitudes with small rotations r in body axes."""
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(r)
    return np.asarray(turned.as_quat(scalar_first=True))


def case(seed: int) -> tuple[np.ndarray, Any]:
    """Errors over sigma of all numbers of a case, and the fit."""
    rng = np.random.default_rng(seed)
    truth = problem_of(rng)
    t = np.linspace(0, 6, 61)
    kept = np.sort(rng.choice(61, 40, replace=False))
    kept = kept[(kept < 20) | (kept > 30)]  # a gap of a second
    sol = ph.solve(truth, step_tol=1e-12, times=t)
    bias = rng.normal(0, BIAS, 3)
    data = [
        ph.measurements.attitudes(
            t[kept], rotated(sol.quaternion[kept], rng.normal(0, SIGMA_ATTITUDE, (len(kept), 3))), sigma=SIGMA_ATTITUDE
        ),
        ph.measurements.rates(
            t, sol.omega + bias + rng.normal(0, SIGMA_RATE, sol.omega.shape), sigma=SIGMA_RATE, bias=True
        ),
    ]
    a = ((truth.body.moments.sum() - 2 * truth.body.moments) / 2) * np.exp(rng.normal(0, 0.05, 3))
    guess = ph.Problem(
        ph.Body((a.sum() - a).tolist()), truth.field, omega=truth.omega * (1 + rng.normal(0, 0.03, 3)),
        attitude=rotated(np.array([truth.quaternion]), rng.normal(0, 0.03, (1, 3)))[0],
    )  # fmt: skip
    found = ph.fit(guess, data, ["attitude", "omega", "inertia"])
    errors = [(found.values["omega"] - truth.omega) / found.sigma["omega"]]
    errors += [(found.values["inertia"] - truth.body.moments) / found.sigma["inertia"]]
    errors += [(found.values["bias 1"] - bias) / found.sigma["bias 1"]]
    return np.concatenate(errors), found


def spread(seed: int) -> np.ndarray:
    """Standard deviations of the end of many motions over those of the covariance, for six components."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(seed)
    truth = problem_of(rng)
    sigma = np.array([1e-4] * 3 + [1e-4 * np.linalg.norm(truth.momentum)] * 3)
    sol = ph.solve(truth, step_tol=1e-11, t_end=5.0, tangent=True)
    assert sol.tangent is not None
    predicted = sol.tangent.covariance(sigma).sigma[-1]
    change = rng.normal(0, 1, (CLONES, 6)) * sigma
    q = rotated(np.broadcast_to(truth.quaternion, (CLONES, 4)), change[:, :3])
    many = ph.ensemble(truth, attitude=q, momentum=np.array(truth.momentum) + change[:, 3:], step_tol=1e-10, t_end=5.0)
    middle = Rotation.from_quat(sol.quaternion[-1], scalar_first=True)
    turns = (middle.inv() * Rotation.from_quat(many.quaternion[-1], scalar_first=True)).as_rotvec()
    seen = np.concatenate([turns, many.momentum[-1] - sol.momentum[-1]], 1).std(0)
    return np.asarray(seen / predicted)


def main(cases: int) -> None:
    """Run all cases and print the shares."""
    warnings.simplefilter("ignore", ph.ResultWarning)
    began, errors, spoiled = time.perf_counter(), [], 0
    for seed in range(cases):
        error, found = case(seed)
        spoiled += not found.success or bool(found.undetermined)
        errors.append(error)
    all_errors = np.abs(np.array(errors))
    fine = np.isfinite(all_errors)
    within = all_errors[fine] <= 3
    whole = (all_errors <= 3).all(1)
    square = float((all_errors[fine] ** 2).mean())
    print(
        f"{cases} cases, {time.perf_counter() - began:.0f} s: within {100 * within.mean():.2f} % of numbers, ", end=""
    )
    print(f"cases {100 * whole.mean():.1f} %, mean square {square:.3f}, not determined or not converged {spoiled}")
    ratios = np.array([spread(seed) for seed in range(max(10, cases // 10))])
    print(
        f"true over predicted deviation, {len(ratios)} motions, {CLONES} clones each (statistical error "
        f"{1 / np.sqrt(2 * CLONES):.3f}): median {np.median(ratios):.4f}, smallest {ratios.min():.4f}, "
        f"largest {ratios.max():.4f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
