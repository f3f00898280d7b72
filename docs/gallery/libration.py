"""Gravity-gradient libration of a satellite.

The named problem `libration`: the torque of a distant mass pulls the long axis towards it, and the body librates. The
energy error of a symplectic method stays bounded over a thousand oscillations; the error of Runge-Kutta grows.
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

problem = ph.problems.libration()
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for method in ("strang(symrot)", "mkrk(rk4)", "imidm"):
    sol = ph.solve(problem, method, dt=0.2, t_end=5000.0, every=25)
    ax.semilogy(sol.t[1:], np.abs(sol.energy[1:] / sol.energy[0] - 1), label=method, linewidth=0.7)
ax.set(xlabel="time", ylabel="relative energy error")
ax.legend()
fig.savefig("libration.png", dpi=120)
