"""Cold molecules warm up.

Forty thousand rigid water molecules at 20 K are put into a bath at 300 K. If the friction about each axis is
proportional to the moment of inertia, g I, the mean energy relaxes exactly as exp(-2 g t), whatever the exchange
between the axes, and each axis ends with kT/2. The curve follows the exponential to 1.5 %, the statistical error of
so many molecules, and the final momenta have a Gaussian distribution.

How to: [noise and temperature](../noise.md), [thermostats](../thermostats.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

kB = 0.0083144626  # kJ/(mol K); lengths in nm, masses in g/mol, so times in ps
water = ph.sites([15.9994, 1.008, 1.008], [[0, 0, 0], [0.0816, 0.0577, 0], [-0.0816, 0.0577, 0]])
moments, g, number = water.moments, 1.0, 40_000
momenta = np.random.default_rng(1).normal(size=(number, 3)) * np.sqrt(kB * 20 * moments)
bath = ph.fields.heat_bath(kT=kB * 300, friction=g * moments, seed=1)
many = ph.ensemble(moments, None, momenta, "baoab(jacobi)", field=bath, dt=0.02, steps=200, every=4)
axes = (many.momentum**2 / moments).mean(1) / kB  # kelvin, about each axis
expected = 300 + (axes[0].mean() - 300) * np.exp(-2 * g * many.t)
assert np.abs(axes.mean(1) / expected - 1).max() < 0.015
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(many.t, axes, lw=0.9, label=["axis 1", "axis 2", "axis 3"])
left.plot(many.t, expected, "k--", lw=1, label="exponential")
left.set(xlabel="time [ps]", ylabel="rotational temperature [K]")
left.legend()
scaled = many.momentum[-1] / np.sqrt(kB * 300 * moments)
right.hist(scaled, bins=60, range=(-4, 4), density=True, histtype="step")
x = np.linspace(-4, 4, 200)
right.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), "k--", lw=1)
right.set(xlabel=r"momentum / $\sqrt{I\,kT}$ at 4 ps", ylabel="density")
fig.savefig("heat.png", dpi=120)
