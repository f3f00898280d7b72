"""Why energy preservation (`ep`) helps symplectic splittings: the open question of Buss's talk of 2011, on his prism.

A splitting is, up to terms smaller than any power of h, the flow of a modified energy H~ = H + h^p H_p. In action and
angle of the polhode the orbit through m0 has the action at which H + h^p <H_p> equals H~(m0), <.> the mean over the
polhode. So its mean energy is off by h^p (H_p(m0) - <H_p>): a constant that depends on the starting point on the
polhode. The period T and the precession angle Phi of the polhode depend on the energy, and the attitude error grows by
dT/dE and dPhi/dE times this offset in every period. `ep` puts the body on the polhode of the right energy. There
remain the part h^p d<H_p>/dI of the frequencies, which no choice of the energy removes, and errors of the rotations.

The script measures, at equal numbers of steps,

1. the error at the end, the mean energy offset, and the drifts of phase and of precession per period, with and without
   `ep`, and the drifts without `ep` predicted by dT/dE and dPhi/dE times the offset;
2. the same splitting WITHOUT `ep`, started on a neighbouring polhode such that its mean energy is right: if the
   explanation holds it is as good as with `ep`;
3. the gain of `ep` for starts all along one polhode: it must vanish for starts with H_p(m0) = <H_p>.

Command: ``python validation/why_ep_helps_splittings.py [picture.png]`` (2 cores, Python 3.11: 12 s). Output:

    period 1.0174, 42.5 periods; dT/dlnE = -0.745, dPhi/dlnE = -0.729

    method            steps   error    energy   phase drift      precession drift   (per period)
    mry2_132            6000  7.1e-03  -1.5e-04  -1.20e-04 s       1.56e-04
      from the energy                        -1.12e-04 s       1.09e-04
    ep(mry2_132)        6000  1.5e-03   4.7e-15  -7.24e-06 s       4.43e-05
    right mean energy   6000  1.6e-03  -8.2e-15  -7.91e-06 s       4.64e-05
    mry2_321            1200  1.9e-03  -4.5e-05  -3.03e-05 s       1.48e-05
      from the energy                        -3.34e-05 s       3.27e-05
    ep(mry2_321)        1200  6.3e-04   1.3e-15   3.25e-06 s      -1.85e-05
    right mean energy   1200  6.1e-04  -1.8e-15   3.05e-06 s      -1.79e-05
    mry4_321             400  8.0e-04  -1.7e-05  -1.32e-05 s       9.39e-06
      from the energy                        -1.30e-05 s       1.27e-05
    ep(mry4_321)         400  1.4e-04   2.7e-15  -1.88e-07 s      -3.31e-06
    right mean energy    400  1.4e-04  -1.3e-15  -1.61e-07 s      -3.35e-06

    mry2_321, 1200 steps, starts along one polhode:
    phase   energy offset   error     with ep
    0.000     -4.5e-05    1.9e-03   6.3e-04
    0.042     -4.0e-05    1.7e-03   6.3e-04
    0.083     -2.6e-05    1.1e-03   6.3e-04
    0.125     -3.3e-06    5.9e-04   6.2e-04
    0.167      2.2e-05    1.2e-03   6.2e-04
    0.208      4.2e-05    2.0e-03   6.2e-04
    0.250      5.0e-05    2.4e-03   6.2e-04
    ... (the second half is similar)

So the splittings without `ep` are as good as with it if their mean energy is right (2), to a few per cent. Nearly all
of their phase drift, and with it the larger part of the error, comes from the energy offset (1). The gain of `ep`
depends on the start: none at the two phases where the offset changes sign, at most a factor of four (3).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.kernels.so3 import mul
from polhode.methods.combinators.polhode_projection import least_turn, to_polhode

ROWS = (("mry2_132", 6000), ("mry2_321", 1200), ("mry4_321", 400))
"""Splittings of the talk's table, each with about the number of steps for the talk's accuracy."""
PRISM = ph.problems.prism()
INERTIA = np.array(PRISM.body.moments)
END = PRISM.t_end
SHIFT = 1e-6
"""Relative change of the energy for the slopes of period and precession angle."""


def at_energy(problem: ph.Problem, factor: float) -> ph.Problem:
    """The problem started on a polhode with `factor` times the energy, with the same spatial momentum."""
    q, m = quaternion(problem), tuple(float(x) for x in problem.momentum)
    twice = float(np.sum(np.square(m) / INERTIA))
    change = to_polhode(m, (factor - 1) * twice, (None, tuple(1 / INERTIA), ()))
    turn = least_turn(change, m)
    step = mul(q, turn)
    new = np.add(q, step)
    return ph.Problem(PRISM.body, attitude=new / np.linalg.norm(new), momentum=np.add(m, change))


def quaternion(problem: ph.Problem) -> tuple[float, ...]:
    """The attitude of a problem as a quaternion."""
    return tuple(float(x) for x in problem.kernel_data(float)[0][0])


def slopes() -> tuple[float, float, float]:
    """Period of the polhode, and the derivatives of period and precession angle by the relative energy."""
    up, down = at_energy(PRISM, 1 + SHIFT), at_energy(PRISM, 1 - SHIFT)
    return (
        ph.period(PRISM), (ph.period(up) - ph.period(down)) / (2 * SHIFT),
        (ph.precession_angle(up) - ph.precession_angle(down)) / (2 * SHIFT),
    )  # fmt: skip


def displacement(matrix: np.ndarray, exact: np.ndarray) -> float:
    """The talk's error as interpreted in `papers/buss_table.py`: rms displacement of the points of the body."""
    v = Rotation.from_matrix(exact.T @ matrix).as_rotvec()
    return float(np.sqrt(v @ (INERTIA * v) / INERTIA.max()))


def mean_offset(sol: ph.Trajectory, period: float, energy: float) -> float:
    """Mean of the energy over whole periods minus the right one, relative."""
    whole = sol.t <= sol.t[0] + period * int((sol.t[-1] - sol.t[0]) / period)
    return float(np.trapezoid(sol.energy[whole], sol.t[whole]) / np.ptp(sol.t[whole]) / energy - 1)


def drifts(sol: ph.Trajectory, problem: ph.Problem, period: float) -> tuple[float, float]:
    """Drift per period along the polhode (in time), and of the rotation about the momentum (in radians).

    Means over the last period: the phase at which the exact momentum is closest, then the remaining rotation.
    """
    last = sol.t > sol.t[-1] - period
    times, ahead = sol.t[last], np.zeros(last.sum())
    for _ in range(4):
        exact = ph.exact(problem, times + ahead)
        rate = np.cross(exact.momentum, exact.omega)
        ahead += np.sum((sol.momentum[last] - exact.momentum) * rate, axis=1) / np.sum(rate**2, axis=1)
    exact = ph.exact(problem, times + ahead)
    L = np.asarray(exact.spatial_momentum[0])
    between = Rotation.from_matrix(sol.matrix[last] @ np.swapaxes(exact.matrix, 1, 2))
    turn = between.as_rotvec() @ L / np.linalg.norm(L)
    periods = (times - sol.t[0]) / period
    return float(np.mean(ahead / periods)), float(np.mean(turn / periods))


def balanced(name: str, steps: int, period: float) -> ph.Trajectory:
    """The splitting started on the polhode for which its mean energy is that of the prism."""
    factor, energy = 1.0, PRISM.energy()
    for _ in range(4):
        sol = ph.solve(at_energy(PRISM, factor), name, dt=END / steps, steps=steps)
        factor -= mean_offset(sol, period, energy)
    return sol


def compared() -> None:
    """Parts 1 and 2."""
    period, by_period, by_angle = slopes()
    exact = ph.exact(PRISM, [END]).matrix[0]
    print(f"period {period:.4f}, {END / period:.1f} periods; dT/dlnE = {by_period:.3f}, dPhi/dlnE = {by_angle:.3f}\n")
    print("method            steps   error    energy   phase drift      precession drift   (per period)")
    for name, steps in ROWS:
        runs = {f"{kind}": ph.solve(PRISM, kind, dt=END / steps, steps=steps) for kind in (name, f"ep({name})")}
        runs["right mean energy"] = balanced(name, steps, period)
        for kind, sol in runs.items():
            offset = mean_offset(sol, period, PRISM.energy())
            ahead, turn = drifts(sol, PRISM, period)
            error = displacement(sol.matrix[-1], exact)
            print(f"{kind:18s} {steps:5d}  {error:.1e} {offset:9.1e}  {ahead:9.2e} s      {turn:9.2e}")
            if kind == name:
                print(f"  {'from the energy':38s} {-by_period * offset:9.2e} s      {by_angle * offset:9.2e}")


def along_the_polhode(name: str = "mry2_321", steps: int = 1200, starts: int = 12) -> np.ndarray:
    """Part 3: for starts along one polhode the mean energy offset, and the errors without and with `ep`."""
    period = ph.period(PRISM)
    rows = []
    for s in np.arange(starts) * period / 2 / starts:
        now = ph.exact(PRISM, [s])
        problem = ph.Problem(PRISM.body, attitude=now.quaternion[0], momentum=now.momentum[0])
        exact = ph.exact(problem, [END]).matrix[0]
        plain, kept = (ph.solve(problem, kind, dt=END / steps, steps=steps) for kind in (name, f"ep({name})"))
        errors = [displacement(sol.matrix[-1], exact) for sol in (plain, kept)]
        rows.append((s / period, mean_offset(plain, period, problem.energy()), *errors))
    found = np.array(rows)
    print(f"\n{name}, {steps} steps, starts along one polhode:\nphase   energy offset   error     with ep")
    for phase, offset, without, kept in found:
        print(f"{phase:5.3f}   {offset:10.1e}    {without:.1e}   {kept:.1e}")
    return found


def picture(found: np.ndarray, path: str) -> None:
    """Plot the errors against the energy offset."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    axes.plot(found[:, 1], found[:, 2], "o", label="splitting")
    axes.plot(found[:, 1], found[:, 3], "s", label="with ep")
    axes.set(xlabel="relative offset of the mean energy", ylabel="displacement at the end", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    compared()
    found = along_the_polhode()
    if len(sys.argv) > 1:
        picture(found, sys.argv[1])
