"""A wheel that stabilises the intermediate axis.

A satellite that spins about its intermediate axis flips. A wheel on this axis can prevent it: linearised about the
spin, the motion is stable if the momentum of the wheel exceeds (I3 - I2) times the spin, here 0.8. In a hundred runs
with wheel momenta from 0 to 1.6, the largest deviation drops at this value: all runs with less than 0.78 leave the
axis by more than 10 degrees, and all with more than 0.8 stay within one degree.

How to: [rotors](../fields.md#rotors), [ensembles](../ensembles.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

body = ph.Body([1.0, 1.6, 2.4])
wheel = np.linspace(0, 1.6, 100)
momenta = wheel[:, None] * [0.0, 1.0, 0.0]
start = ph.Problem(body, ph.fields.gyrostat([0.0, 0.0, 0.0]), omega=[1e-3, 1.0, 0.0])
many = ph.ensemble(start, params={"momentum": momenta}, tol=1e-8, times=np.linspace(0, 300, 1501))
total = many.momentum + momenta
cosine = total[..., 1] / np.linalg.norm(total, axis=-1)
angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
worst = angle.max(0)
assert worst[wheel < 0.78].min() > 10
assert worst[wheel > 0.8].max() < 1
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for i in (0, 37, 49, 62):
    left.plot(many.t, angle[:, i], lw=0.9, label=f"wheel {wheel[i]:.2f}")
left.set(xlabel="time", ylabel="spin axis from the momentum [degrees]", xlim=(0, 150))
fig.legend(loc="outside upper center", ncols=4)
right.semilogy(wheel, worst, ".")
right.axvline(0.8, color="grey", ls="--", lw=0.8)
right.set(xlabel="momentum of the wheel", ylabel="largest angle [degrees]")
fig.savefig("rotor.png", dpi=120)
