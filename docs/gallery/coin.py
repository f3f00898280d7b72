"""The toss of a coin is not fair.

A coin tossed with heads up does not only turn over: its normal precesses about the angular momentum, on a cone of
half-angle ψ. If ψ is below 45 degrees, the coin never shows tails (Keller 1986; Diaconis, Holmes and Montgomery
2007). Above 45 degrees, the probability of heads after a long and uncertain time is 1/2 + arcsin(cot² ψ)/π. For
ninety angles, with four thousand exact tosses each, the fractions of heads agree with the formula to 0.03, and the
mean of the differences is below 0.002.

How to: [ensembles](../ensembles.md), [exact solutions](../exact.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

rng = np.random.default_rng(4)
number, angle = 4000, np.radians(np.arange(0.5, 90))
psi = np.repeat(angle, number)
momenta = np.stack([np.sin(psi), 0 * psi, np.cos(psi)], 1)  # body frame; heads look up at the start
times = 200 + rng.uniform(0, 32 * np.pi, len(psi))  # uncertain by sixteen turns of the precession
many = ph.ensemble([1.0, 1.0, 2.0], None, momenta, "jacobi", dt=times, steps=1)
w, x, y, z = many.quaternion[-1].T
height = 1 - 2 * (x**2 + y**2)  # vertical component of the normal
heads = (height > 0).reshape(-1, number).mean(1)
formula = 0.5 + np.arcsin(np.minimum(1 / np.tan(angle) ** 2, 1)) / np.pi
assert np.abs(heads - formula).max() < 0.03
assert abs((heads - formula).mean()) < 0.002
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.hist2d(np.degrees(psi), height, bins=(90, 80), cmap="magma_r", norm="log")
left.axhline(0, color="k", ls="--", lw=0.8)
left.set(xlabel="normal from the momentum, ψ [degrees]", ylabel="vertical component of the normal")
right.plot(np.degrees(angle), formula, "k--", lw=1, label="formula")
right.plot(np.degrees(angle), heads, ".", label="tosses")
right.set(xlabel="normal from the momentum, ψ [degrees]", ylabel="share of heads")
right.legend()
fig.savefig("coin.png", dpi=120)
