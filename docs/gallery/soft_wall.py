"""The soft wall with large steps.

Krysl's example 5.4, with rotations of forty degrees per step, for forty thousand steps. The mean energies of three
methods over the first and the second half of the run differ by less than 1e-4. One method (the trapezoidal tableau
with all its terms) is not symmetric, and its energy drifts: the second mean is smaller by 9 % of the initial energy.

How to: [built-in fields](../fields.md), [schemes](../schemes.md), [very long runs](../long_runs.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

problem = ph.problems.soft_wall()
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for method in ("imidm", "imid", "trapm", "bbtrapwd"):
    sol = ph.solve(problem, method, dt=0.5, steps=40_000, every=20)
    first, second = np.array_split(sol.energy / sol.energy[0], 2)
    change = second.mean() - first.mean()
    assert change < -0.08 if method == "bbtrapwd" else abs(change) < 1e-4
    ax.plot(sol.t, sol.energy / sol.energy[0], label=method, linewidth=0.6)
ax.set(xlabel="time", ylabel="$H/H_0$")
ax.legend(ncols=4)
fig.savefig("soft_wall.png", dpi=120)
