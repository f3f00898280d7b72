"""The flip of a body about its intermediate axis.

A wing nut, a T-handle or a phone that spins about the axis of its intermediate moment of inertia flips periodically
(the Dzhanibekov effect; Poinsot's polhodes explain it, since they lead away from this axis). The curves are the exact
solution in elliptic functions; their period is 4 K/lambda with the complete elliptic integral K, and after two of
them the angular velocity is back to 1e-9.

How to: [exact solutions](../exact.md), [pictures of free bodies](../pictures.md#free-bodies).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.001, 2.0, 0.0])
sol = ph.exact(problem, np.linspace(0, 2 * float(ph.period(problem)), 2000))
assert np.abs(sol.omega[-1] - sol.omega[0]).max() < 1e-9
fig = plt.figure(figsize=(9, 3.6), layout="constrained")
left, right = fig.add_subplot(121), fig.add_subplot(122, projection="3d")
for i, name in enumerate("123"):
    left.plot(sol.t, sol.omega[:, i], label=rf"$\omega_{name}$")
left.set(xlabel="time", ylabel="angular velocity (body frame)")
left.legend()
sol.plot.polhode(ax=right)
fig.savefig("flip.png", dpi=120)
