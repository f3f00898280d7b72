"""A levitating top: neither too slow nor too fast.

A spinning magnet floats above a magnet of the opposite direction (the Levitron). If it is too slow, it turns over. If
it is too fast, its axis does not follow the field, and it slides off sideways (Berry 1996; Dullin and Easton 1999).
Sixty tops with different spins fly until they are lost, in a field to second order in the place, B = (-S x/2 - K x z,
-S y/2 - K y z, B0 + S z + K (z² - x²/2 - y²/2)). Linearised about the floating point, the horizontal motion has the
frequencies λ of (m λ² + μ K) (I1 λ² - I3 s λ + μ B0) = (μ S/2)², which are real for spins s between 10.5 and 41.9.
All tops 3 % inside these limits float until the end, and all that are 3 % outside are lost.

How to: [your own arrays](../batch_stepper.md), [molecules and grains](../molecules.md).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation

import polhode as ph

I1, I3, K = 0.011, 0.02, 0.1  # mass, weight, moment, B0 and -S are 1
spin = np.geomspace(6, 120, 60)


def forces(t, x, q):
    """Force, and torque in the body frame, on a moment opposite to the body axis e3."""
    turn = Rotation.from_quat(q, scalar_first=True)
    m = -turn.apply([0, 0, 1])
    (X, Y, Z), (mx, my, mz) = x.T, m.T
    B = np.stack([X / 2 - K * X * Z, Y / 2 - K * Y * Z, 1 - Z + K * (Z**2 - (X**2 + Y**2) / 2)], 1)
    side = 0.5 - K * Z
    force = np.stack(
        [mx * side - mz * K * X, my * side - mz * K * Y, -K * (mx * X + my * Y) + mz * (2 * K * Z - 1) - 1], 1
    )
    return force, turn.inv().apply(np.cross(m, B))


def floats(s):
    """Are all frequencies of the linearised motion real?"""
    return np.abs(np.roots([I1, -I3 * s, 1 + K * I1, -K * I3 * s, K - 0.25]).imag).max() < 1e-9


number = len(spin)
x, p = np.tile([0.02, 0.0, 0.0], (number, 1)), np.zeros((number, 3))
q, pi = np.tile([1.0, 0.0, 0.0, 0.0], (number, 1)), I3 * spin[:, None] * [0.0, 0.0, 1.0]
stepper = ph.batch_stepper([I1, I1, I3], "strang(jacobi)", dt=0.01, masses=1.0)
end, path = np.full(number, 100.0), []
for i in range(1000):
    stepper.step(x, p, q, pi, forces, n=10)
    away = np.linalg.norm(x, axis=1)
    path.append(np.where(end < 100, np.nan, away))
    end[(away > 0.5) & (end == 100)] = 0.1 * (i + 1)
    x[end < 100], p[end < 100] = 0.0, 0.0  # lost tops are put back, so that their numbers stay finite
fine = np.geomspace(6, 120, 4000)
low, high = fine[[floats(s) for s in fine]][[0, -1]]
assert abs(low - 10.5) < 0.05
assert abs(high - 41.9) < 0.05
assert end[(spin > 1.03 * low) & (spin < 0.97 * high)].min() == 100
assert end[(spin < 0.97 * low) | (spin > 1.03 * high)].max() < 100
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for i in (8, 24, 50):
    left.plot(0.1 * np.arange(1, 1001), np.array(path)[:, i], lw=0.8, label=f"spin {spin[i]:.0f}")
left.set(xlabel="time", ylabel="distance from the floating point", xlim=(0, 100))
left.legend()
right.axvspan(low, high, color="0.88", label="linear theory")
right.semilogx(spin, end, ".", label="flights")
right.set(xlabel="spin", ylabel="time of flight", ylim=(0, 108))
right.set_xticks([10, 20, 50, 100], ["10", "20", "50", "100"])
right.legend(loc="center")
fig.savefig("levitron.png", dpi=120)
