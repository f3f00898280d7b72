"""A body in six dimensions.

Euler's equations of a free body are integrable in any dimension (Manakov 1976): in six dimensions there are, besides
the energy, integrals that contain the momentum up to the sixth power. The discrete equations of Moser and Veselov
conserve all of them, here to 1e-13 over 1500 steps. The implicit midpoint rule conserves only the quadratic ones; it
changes the spectrum of the momentum (the Casimirs), which no free motion changes, by more than 5e-4.

How to: [bodies in N dimensions](../ndim.md).
"""

import matplotlib.pyplot as plt
import numpy as np

from polhode import ndim

body = ndim.Body([2.0, 1.6, 1.3, 0.9, 0.7, 0.5])
omega = np.triu(np.random.default_rng(1).normal(size=(6, 6)) / 3, 1)
M = body.momentum(omega - omega.T)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, method in zip(axes, ("moser_veselov", "imr"), strict=True):
    sol = ndim.solve(body, M, method=method, h=0.2, steps=1500, every=10)
    drift = sol.drift()
    assert drift["casimirs"] > 5e-4 if method == "imr" else max(drift.values()) < 1e-13
    for name in ("energy", "spatial_momentum", "casimirs", "quadratic", "integrals"):
        values = np.reshape(sol.invariants()[name], (len(sol.t), -1))
        change = np.abs(values - values[0]).max(1) / np.abs(values[0]).max()
        ax.semilogy(sol.t[1:], np.maximum(change[1:], 1e-17), lw=0.8, label=name.replace("_", " "))
    ax.set(xlabel="time", title=method)
axes[0].set(ylabel="relative change")
axes[0].legend(fontsize="small")
fig.savefig("six_dimensions.png", dpi=120)
