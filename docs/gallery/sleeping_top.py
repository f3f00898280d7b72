"""A sleeping top, and one that is too slow.

An upright symmetric top is stable if its spin exceeds 2 sqrt(m g l I1)/I3, here 20. Above this value a small push
causes a small nutation; below it, the top falls and rises again. The curves are exact solutions (the Lagrange top):
with a spin of 20.5 the tilt stays below three degrees. A top that falls with the spin s comes down to a tilt with the
cosine 2 (s/20)² - 1, here to 0.1 degrees.

How to: [exact solutions](../exact.md), [potentials of your own](../python.md#torques-and-potentials).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph


@ph.potential
def weight(R, mgl):
    """U = m g l R33."""
    return mgl * R[2][2]


t = np.linspace(0, 12, 1500)
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for spin in (24.0, 20.5, 18.0, 12.0):
    start = ph.Problem(ph.Body([5.0, 5.0, 1.0]), weight(20.0), omega=[0.02, 0.0, spin])
    tilt = np.degrees(np.arccos(np.clip(ph.exact(start, t).matrix[:, 2, 2], -1, 1)))
    assert tilt.max() < 3 if spin > 20 else abs(tilt.max() - np.degrees(np.arccos(spin**2 / 200 - 1))) < 0.1
    ax.plot(t, tilt, label=f"spin {spin:g}")
ax.set(xlabel="time", ylabel="tilt [degrees]", yscale="log", ylim=(0.05, 200))
fig.legend(loc="outside upper center", ncols=4)
fig.savefig("sleeping_top.png", dpi=120)
