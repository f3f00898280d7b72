"""A million tumblers.

Bodies that start alike but for one part in a thousand of their moments of inertia: their long axes spread over the
circle of precession. `ph.ensemble` turns eight or sixteen of them at a time on every core, by the exact solution.
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

rng = np.random.default_rng(7)
moments = np.array([3.0, 2.8, 1.0]) * (1 + 1e-3 * rng.normal(size=(1_000_000, 3)))
fig, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharex=True, sharey=True)
for ax, time in zip(axes, (50.0, 200.0, 800.0, 3200.0), strict=True):
    many = ph.ensemble(moments, None, [1.0, 0.4, 1.2], "jacobi", dt=time, steps=1)
    w, x, y, z = many.quaternion[-1].T
    tip = 2 * np.stack([x * z + w * y, y * z - w * x], 1)  # of R e3
    ax.hist2d(tip[:, 0], tip[:, 1], bins=120, range=[[-1, 1], [-1, 1]], cmap="magma_r", norm="log")
    ax.set(title=f"t = {time:g}", aspect="equal")
fig.supxlabel("long axis in space, first and second component")
fig.savefig("tumblers.png", dpi=120)
