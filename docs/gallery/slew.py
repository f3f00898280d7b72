"""A slew by reaction wheels that run into their limits.

A satellite turns by 120 degrees under PD control, sampled at 2 Hz. The torque of its three wheels and their momentum
are limited, so the body coasts in the middle of the slew. The torque is held between samples. The total momentum of
body and wheels is constant to 1e-12.

How to: [sampled-data control](../control.md), [fields with their own states](../states.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

wheels = ph.actuators.wheels(max_torque=0.2, max_momentum=1.2)


@ph.controller(period=0.5, wheels=wheels)
def slew(R, omega, wheels, stiffness=0.6, damping=2.5):
    e = (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2
    return {"wheels": [stiffness * e[i] + damping * omega[i] for i in range(3)]}


body = ph.Body([8.0, 10.0, 12.0])
problem = ph.Problem(body, attitude=[0.5, 0.3, -0.5, 0.41**0.5], omega=[0.0, 0.0, 0.0])
sol = ph.solve(problem, "verner87", dt=0.05, t_end=60.0, control=slew)
total = np.einsum("nij,nj->ni", sol.matrix, sol.momentum + sol.states["wheels"])
assert np.abs(total).max() < 1e-12  # it was zero at the start
angle = np.degrees(2 * np.arccos(np.clip(np.abs(sol.quaternion[:, 0]), 0.0, 1.0)))
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
left.plot(sol.t, angle)
left.set(xlabel="time", ylabel="angle to the target (degrees)")
for i in range(3):
    middle.step(sol.control.t, sol.control.memory["wheels_rate"][:, i], where="post", label=f"wheel {i + 1}")
    right.plot(sol.t, sol.states["wheels"][:, i], label=f"wheel {i + 1}")
middle.set(xlabel="time", ylabel="torque of the motors", xlim=(0, 30))
right.axhline(1.2, color="grey", lw=0.8, ls="--")
right.axhline(-1.2, color="grey", lw=0.8, ls="--")
right.set(xlabel="time", ylabel="momentum of the wheels")
right.legend()
fig.savefig("slew.png", dpi=120)
