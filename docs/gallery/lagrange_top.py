"""Waves, cusps and loops of a top.

The axis of a fast top nods while it precesses. If the axis is released at rest, its path has cusps; a push along the
precession turns them into waves, and a push against it into loops. These are the three figures of every textbook,
from the exact solution. Released at rest at the height u0 = cos(tilt), the axis falls to the root u of (I3 s)² (u0 -
u) = 2 I1 mgl (1 - u²), where s is the spin; the lowest point of the second path agrees with this root to 1e-6.

How to: [exact solutions](../exact.md), [built-in fields](../fields.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

I1, I3, mgl, spin, tilt = 1.0, 0.5, 4.0, 12.0, np.radians(40)
up, axis = np.array([0, 0, 1.0]), np.array([0, -np.sin(tilt), np.cos(tilt)])
t = np.linspace(0, 4, 4001)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", subplot_kw={"projection": "3d"})
for ax, push, name in zip(axes, (0.35, 0.0, -0.7), ("waves", "cusps", "loops"), strict=True):
    start = ph.Problem(
        ph.Body([I1, I1, I3]),
        ph.fields.gravity(mgl),
        euler=("XYZ", [tilt, 0, 0]),
        spatial_omega=spin * axis + push * up,
    )
    x, y, z = ph.exact(start, t).matrix[:, :, 2].T
    if name == "cusps":
        k, u0 = (I3 * spin) ** 2 / (2 * I1 * mgl), np.cos(tilt)
        lowest = (k - np.sqrt(k * k - 4 * (k * u0 - 1))) / 2  # of u² - k u + k u0 - 1
        assert abs(z.min() - lowest) < 1e-6
    ax.plot(x, y, z, lw=1.2)
    latitude, longitude = np.meshgrid(np.linspace(0, np.pi / 2, 8), np.linspace(0, 2 * np.pi, 25))
    ball = np.sin(latitude) * np.cos(longitude), np.sin(latitude) * np.sin(longitude), np.cos(latitude)
    ax.plot_wireframe(*ball, color="0.8", lw=0.4)
    ax.set(title=name, xlim=(-0.8, 0.8), ylim=(-0.8, 0.8), zlim=(0, 1), aspect="equal")
    ax.view_init(elev=55, azim=-15)
    ax.set_axis_off()
fig.savefig("lagrange_top.png", dpi=120)
