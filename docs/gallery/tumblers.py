"""A million tumblers.

The bodies start in the same state; their moments of inertia differ by one part in a thousand. Their long axes, viewed
along the angular momentum, spread over the ring in which they precess. `ph.ensemble` computes eight or sixteen bodies
at a time on every core, with the exact solution: for every body, the length of the momentum changes by less than
1e-14.

How to: [ensembles](../ensembles.md), [exact solutions](../exact.md).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation

import polhode as ph

rng = np.random.default_rng(7)
moments = np.array([2.5, 1.7, 1.0]) * (1 + 1e-3 * rng.normal(size=(1_000_000, 3)))
momentum = [1.0, 0.4, 1.2]  # body frame; the attitude at the start turns it to the third axis of space
start = Rotation.align_vectors([[0, 0, 1]], [momentum])[0].as_quat(scalar_first=True)
fig, axes = plt.subplots(1, 4, figsize=(9, 2.9), layout="constrained", sharex=True, sharey=True)
for ax, time in zip(axes, (50.0, 400.0, 1600.0, 12800.0), strict=True):
    many = ph.ensemble(moments, start, momentum, "jacobi", dt=time, steps=1)
    length = np.linalg.norm(many.momentum[-1], axis=1)
    assert np.abs(length / np.linalg.norm(momentum) - 1).max() < 1e-14
    w, x, y, z = many.quaternion[-1].T
    tip = 2 * np.stack([x * z + w * y, y * z - w * x], 1)  # of R e3
    ax.hist2d(tip[:, 0], tip[:, 1], bins=150, range=[[-1.05, 1.05]] * 2, cmap="magma_r", norm="log")
    ax.set(title=f"t = {time:g}", aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
fig.supxlabel("long axis in space, first and second component", fontsize=10)
fig.savefig("tumblers.png", dpi=120)
