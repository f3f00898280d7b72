"""The flyby of Apophis on 13 April 2029: spin states of many clones after it, and the covariance of one motion.

    python -m validation.apophis [CLONES]

The body, its periods and the orbit are those of docs/environments.md: moments (0.64, 0.97, 1) (Lee et al. 2022),
P_psi = 263 h and P_phi = 27.38 h in the short-axis mode (Pravec et al. 2014), a hyperbola with the periapsis at
38,000 km and e = 4.2. The first part draws all attitudes at the same probability, two days before the periapsis. The
second compares the covariance that the tangent of one motion carries through the flyby with the spread of clones, for
deviations of the attitude of 0.5 degrees and of the momentum of 0.26 %, the relative error of P_phi.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import polhode as ph

HOUR, DAY, EARTH = 3600.0, 86400.0, 3.986004418e14
PICTURE = Path(__file__).parents[1] / "docs" / "apophis.png"
SIGMA = np.radians(0.5), 0.0026


def problem() -> tuple[ph.Problem, float]:
    """The asteroid two days before the flyby, and the time two days after it."""
    body = ph.Body([0.64, 0.97, 1.0])
    orbit = ph.Orbit(EARTH, periapsis=3.8e7, eccentricity=4.2, periapsis_time=0.0)
    before = ph.tumbling(body, P_psi=263 * HOUR, P_phi=27.38 * HOUR, mode="SAM")
    field = ph.fields.orbit_gravity_gradient(body, orbit)
    attitude = Rotation.from_euler("xz", [0.4, 1.0])
    return ph.Problem(body, field, attitude=attitude, momentum=before.start, t0=-2 * DAY), 2 * DAY


def periods(start: ph.Problem, momentum: np.ndarray) -> np.ndarray:
    """P_phi, P_psi in hours and whether the mode is that of the long axis, for body momenta (n, 3)."""
    energy = (momentum**2 / start.body.moments).sum(1) / 2
    found = []
    for e, size in zip(energy, np.linalg.norm(momentum, axis=1), strict=True):
        one = ph.tumbling(start.body, energy=float(e), momentum=float(size))
        found.append((one.P_phi / HOUR, one.P_psi / HOUR, one.mode == "LAM"))
    return np.array(found, dtype=float)


def clones(start: ph.Problem, end: float, number: int) -> np.ndarray:
    """Body momenta after the flyby, for all attitudes at the same probability."""
    q = Rotation.random(number, random_state=0).as_quat(scalar_first=True)
    return np.asarray(ph.ensemble(start, attitude=q, step_tol=1e-8, t_end=end).momentum[-1])


def spread(start: ph.Problem, end: float, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of (d, Pi) after the flyby: of clones, and by the tangent."""
    size = float(np.linalg.norm(start.momentum))
    sigma = np.array([SIGMA[0]] * 3 + [SIGMA[1] * size] * 3)
    sol = ph.solve(start, step_tol=1e-10, t_end=end, tangent=True)
    assert sol.tangent is not None
    change = np.random.default_rng(1).normal(size=(number, 6)) * sigma
    first = Rotation.from_quat(start.quaternion, scalar_first=True) * Rotation.from_rotvec(change[:, :3])
    many = ph.ensemble(
        start, attitude=first.as_quat(scalar_first=True), momentum=np.array(start.momentum) + change[:, 3:],
        step_tol=1e-8, t_end=end,
    )  # fmt: skip
    middle = Rotation.from_quat(sol.quaternion[-1], scalar_first=True)
    turns = (middle.inv() * Rotation.from_quat(many.quaternion[-1], scalar_first=True)).as_rotvec()
    seen = np.concatenate([turns, many.momentum[-1] - sol.momentum[-1]], 1).std(0)
    return seen, sol.tangent.covariance(sigma).sigma[-1]


def picture(found: np.ndarray) -> None:
    """Draw the periods after the flyby."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for mode, (name, colour) in enumerate((("short-axis mode", "C0"), ("long-axis mode", "C3"))):
        some = found[found[:, 2] == mode]
        ax.plot(some[:, 0], some[:, 1], ".", markersize=1, color=colour)
        ax.plot([], [], "o", color=colour, label=f"after, {name}")
    ax.plot(27.38, 263, "k*", markersize=10, label="before, short-axis mode")
    ax.set(xlabel=r"$P_\phi$ [h]", ylabel=r"$P_\psi$ [h]")
    ax.legend(loc="lower right")
    fig.savefig(PICTURE, dpi=120)


def main(number: int) -> None:
    """Run both parts and print the figures."""
    (start, end), began = problem(), time.perf_counter()
    after = clones(start, end, number)
    took = time.perf_counter() - began
    size = np.linalg.norm(after, axis=1) / np.linalg.norm(start.momentum)
    found = periods(start, after[: min(number, 20_000)])
    print(f"{number} clones in {took:.0f} s (with compiling)")
    for name, values in (("|L| after / before", size), ("P_phi [h]", found[:, 0]), ("P_psi [h]", found[:, 1])):
        low, middle, high = np.percentile(values, [5, 50, 95])
        print(f"{name}: median {middle:.3g}, 5 % {low:.3g}, 95 % {high:.3g}")
    print(f"long-axis mode: {100 * found[:, 2].mean():.1f} %")
    seen, predicted = spread(start, end, number)
    print("deviations of clones / tangent:", np.array2string(seen / predicted, precision=3))
    picture(found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
