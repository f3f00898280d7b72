"""The soft wall with large steps.

Krysl's example 5.4: forty degrees per step, forty thousand steps. The energy error of three methods stays bounded; one
method (the trapezoidal tableau with all its terms) is not symmetric, and its energy drifts.
"""

import matplotlib.pyplot as plt

import polhode as ph

problem = ph.problems.soft_wall()
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for method in ("imidm", "imid", "trapm", "bbtrapwd"):
    sol = ph.solve(problem, method, dt=0.5, steps=40_000, every=20)
    ax.plot(sol.t, sol.energy / sol.energy[0], label=method, linewidth=0.6)
ax.set(xlabel="time", ylabel="$H/H_0$")
ax.legend(ncols=4)
fig.savefig("soft_wall.png", dpi=120)
