"""Gravity-gradient libration of a satellite.

In the named problem `libration`, the torque of a distant mass pulls the long axis towards it, and the body librates.
The energy error of two symmetric methods, one of them symplectic, stays bounded over a thousand oscillations: in the
second half of the run it is at most 1.01 times as large as in the first. The error of Runge-Kutta grows by a factor
above 1.8.

How to: [built-in fields](../fields.md), [orbits and environments](../environments.md), [which
method?](../which_method.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

problem = ph.problems.libration()
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for method in ("strang(symrot)", "mkrk(rk4)", "imidm"):
    sol = ph.solve(problem, method, dt=0.2, t_end=5000.0, every=25)
    error = np.abs(sol.energy[1:] / sol.energy[0] - 1)
    first, second = np.array_split(error, 2)
    growth = second.max() / first.max()
    assert growth > 1.8 if method == "mkrk(rk4)" else growth < 1.01
    ax.semilogy(sol.t[1:], error, label=method, linewidth=0.7)
ax.set(xlabel="time", ylabel="relative energy error")
fig.legend(loc="outside upper center", ncols=3)
fig.savefig("libration.png", dpi=120)
