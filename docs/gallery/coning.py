"""Gyros on a vibrating drone: the coning error.

A strapdown gyro measures small rotation angles, and the attitude is a product of the rotations by these angles. If
the body vibrates along a cone, the rotations within an interval do not commute, and the product drifts about the axis
of the cone. Algorithms that use two or more samples correct this (Bortz 1971; Savage 1998). The exact attitude is
known. Over ten cycles of 11 degrees the errors decrease with the orders 2, 4, 4 and 6 in the number of samples,
measured between 32 and 128 samples per cycle, to 0.1.

How to: [attitude from gyro samples](../lie.md#attitude-and-velocity-from-gyro-samples).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

angle, rate = 0.2, 2 * np.pi


def exact(t):
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    return np.stack([c + 0 * t, s * np.cos(rate * t), s * np.sin(rate * t), 0 * t], -1)


def error(number, samples):
    """Largest error in radians with `number` samples in a cycle."""
    t = np.linspace(0, 10, 10 * number + 1)
    s = np.sin(angle)
    summed = np.stack([s * np.cos(rate * t), s * np.sin(rate * t), -2 * rate * np.sin(angle / 2) ** 2 * t], -1)
    sol = ph.strapdown(t, increments=np.diff(summed, axis=0), attitude=exact(0.0), samples=samples)
    return 2 * np.linalg.norm(sol.quaternion - exact(t), axis=1).max()


numbers = np.array([8, 16, 32, 64, 128])
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for samples, order in ((1, 2), (2, 4), (3, 4), (4, 6)):
    errors = [error(n, samples) for n in numbers]
    assert abs(np.log(errors[2] / errors[4]) / np.log(4) - order) < 0.1
    ax.loglog(numbers, errors, "o-", ms=4, label=f"{samples} at a time: order {order}")
ax.set(xlabel="samples in a cycle", ylabel="attitude error after ten cycles [rad]")
ax.set_xticks(numbers, [str(n) for n in numbers], minor=False)
ax.minorticks_off()
ax.legend()
fig.savefig("coning.png", dpi=120)
