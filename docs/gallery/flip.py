"""The flip of a body about its intermediate axis.

A wing nut, a T-handle or a phone that spins about the axis of its intermediate moment of inertia flips periodically
(the Dzhanibekov effect; Poinsot's polhodes explain it, since they lead away from this axis). The curves are the exact
solution in elliptic functions.
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.001, 2.0, 0.0])
sol = ph.exact(problem, np.linspace(0, 2 * float(ph.period(problem)), 2000))
fig = plt.figure(figsize=(9, 3.6), layout="constrained")
left, right = fig.add_subplot(121), fig.add_subplot(122, projection="3d")
for i, name in enumerate("123"):
    left.plot(sol.t, sol.omega[:, i], label=rf"$\omega_{name}$")
left.set(xlabel="time", ylabel="angular velocity (body frame)")
left.legend()
sol.plot.polhode(ax=right)
fig.savefig("flip.png", dpi=120)
