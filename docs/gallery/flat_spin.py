"""Explorer 1 goes into a flat spin.

The first satellite of the USA was a rod that spun about its long axis. Its antennas bent, and within one orbit the
loss of energy brought it into a flat spin about a transverse axis. Here a very viscous core inside the body
dissipates the energy. The angular momentum is constant to a relative error of 1e-9; the energy falls to the least
value at this momentum, L²/(2 I_max), also to 1e-9.

How to: [dissipation](../fields.md#dissipation), [solving to a tolerance](../tolerance.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

body = ph.Body([1.0, 4.8, 5.0])  # a rod, with its long axis first
core = ph.fields.viscous_core(body, strength=0.05)
start = ph.Problem(body, core, omega=[3.0, 0.02, 0.01])
sol = ph.solve(start, tol=1e-9, times=np.linspace(0, 1500, 6001))
core_momentum = -0.05 * np.cross(sol.momentum, sol.omega) / body.moments
total = np.einsum("nij,nj->ni", sol.matrix, sol.momentum + core_momentum)
size = np.linalg.norm(total[0])
energy = ((sol.momentum / 2 + core_momentum) * sol.omega).sum(1)
assert np.abs(total - total[0]).max() < 1e-9 * size
assert energy[-1] < (1 + 1e-9) * size**2 / 10
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
tilt = np.degrees(np.arccos(np.clip(sol.matrix[:, :, 0] @ total[0] / size, -1, 1)))
left.plot(sol.t, tilt, lw=0.6)
left.set(xlabel="time", ylabel="long axis from the momentum [degrees]", yticks=(0, 30, 60, 90))
right.semilogy(sol.t, energy / (size**2 / 10) - 1)
right.set(xlabel="time", ylabel="energy above the flat spin [relative]")
fig.savefig("flat_spin.png", dpi=120)
