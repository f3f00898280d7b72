"""Rotational diffusion of a protein.

A large molecule in a liquid loses its momentum long before it has turned: its attitude diffuses. With the diffusion
coefficients D1, D2, D3 about its axes, the mean cosine between the first axis and its initial direction decays as
exp(-(D2 + D3) t), and likewise for the other axes (Favro 1960). A hundred thousand molecules follow the three
exponentials to 0.006; the statistical error has a standard deviation of 0.002.

How to: [noise and temperature](../noise.md), [the method](../methods/brownian.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

D = np.array([1.0, 2.0, 6.0])  # per microsecond
bath = ph.fields.heat_bath(kT=1.0, friction=1 / D, seed=5)
number = 100_000
rest = np.zeros((number, 3))
many = ph.ensemble(np.ones((number, 3)), None, rest, "brownian(2)", field=bath, dt=0.01, steps=48, every=3)
cosine = np.einsum("nbii->ni", many.matrix) / number
rates = D.sum() - D
expected = np.exp(-rates * many.t[:, None])
assert np.abs(cosine - expected).max() < 0.006
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for i in range(3):
    ax.semilogy(many.t, cosine[:, i], "o", ms=3, color=f"C{i}", label=f"axis {i + 1}, rate {rates[i]:g}")
    ax.semilogy(many.t, expected[:, i], "--", lw=1, color=f"C{i}")
ax.set(xlabel="time [microseconds]", ylabel="mean cosine with the start")
ax.legend()
fig.savefig("diffusion.png", dpi=120)
