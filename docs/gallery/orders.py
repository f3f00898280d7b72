"""Errors and steps: what an order means.

Five methods integrate the heavy top with three different moments up to the time 8. The slopes are the orders: between
steps of 0.04 and 0.02 each slope is the declared order to 0.25. Halving the step doubles the cost of every method. It
divides the error by 2 with order 1, and by 64 with order 6.

How to: [which method?](../which_method.md), [pictures of convergence](../pictures.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph
from polhode.analysis.convergence import convergence

methods = ("fem", "imidm", "strang(dmv6)", "yoshida4(dmv6)", "blanes_moan6(dmv6)")
steps = [0.16, 0.08, 0.04, 0.02]
rows = convergence(ph.problems.heavy_top(), methods, steps, t_end=8.0)
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for method in methods:
    mine = [row for row in rows if row.method == method]
    error = np.array([row.attitude_error for row in mine])
    assert abs(np.log2(error[-2] / error[-1]) - mine[0].order) < 0.25
    ax.loglog([row.dt for row in mine], error, "o-", ms=4, label=f"{method}, order {mine[0].order:g}")
ax.set(xlabel="step", ylabel="error of the attitude, norm of R")
ax.set_xticks(steps, [f"{step:g}" for step in steps])
ax.minorticks_off()
fig.legend(loc="outside right center", fontsize="small")
fig.savefig("orders.png", dpi=120)
