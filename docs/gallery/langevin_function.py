"""Dipoles in a field, and Langevin's function.

Polar molecules in a field E at the temperature T point along it with the mean cosine coth x - 1/x, x = mu E/kT
(Langevin 1905). Sixteen field strengths are computed, with two thousand molecules each. After they have relaxed, the
means over molecules and times agree with the formula to 0.01.

How to: [noise and temperature](../noise.md), [parameters of ensembles](../ensembles.md#parameters).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation

import polhode as ph

number, moments = 2000, np.array([0.6, 1.0, 1.4])
x = np.repeat(np.geomspace(0.1, 20, 16), number)
bath = ph.fields.heat_bath(kT=1.0, friction=moments, seed=3)
field = ph.fields.dipole(moment=[0, 0, 1.0], field=[0, 0, 1.0]) + bath
rng = np.random.default_rng(3)
start = ph.Problem(ph.Body(moments), field, omega=[0.0, 0.0, 0.0])
strengths = x[:, None] * [0.0, 0.0, 1.0]
many = ph.ensemble(
    start, "baoab(symrot)", attitude=Rotation.random(len(x), rng=rng),
    momentum=rng.normal(size=(len(x), 3)) * np.sqrt(moments), params={"field": strengths},
    dt=0.05, steps=600, every=20,
)  # fmt: skip
cosine = many.matrix[:, :, 2, 2].reshape(-1, 16, number)
mean = cosine[10:].mean((0, 2))
expected = 1 / np.tanh(x[::number]) - 1 / x[::number]
assert np.abs(mean - expected).max() < 0.01
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for i in (0, 6, 9, 12, 15):
    left.plot(many.t, cosine[:, i].mean(1), label=f"x = {x[i * number]:.2g}")
left.set(xlabel="time", ylabel="mean cosine", ylim=(-0.1, 1.35))
left.legend(ncols=3, loc="upper center", fontsize="small")
fine = np.geomspace(0.08, 25, 200)
right.semilogx(fine, 1 / np.tanh(fine) - 1 / fine, "k--", lw=1, label="coth x - 1/x")
right.semilogx(x[::number], mean, "o", ms=4, label="mean of the molecules")
right.set(xlabel="x = dipole * field / kT", ylabel="mean cosine")
right.legend()
fig.savefig("langevin_function.png", dpi=120)
