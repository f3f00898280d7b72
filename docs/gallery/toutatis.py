"""Toutatis, a tumbling asteroid.

The long axis of Toutatis precesses about the angular momentum in 7.4 days while the body rotates about this axis in
5.4 days (Ostro et al., Science 270 (1995) 80; Takahashi, Busch and Scheeres, Astronomical Journal 146 (2013) 95). The
moments are in the ratio 3.2 : 3.1 : 1, and the curve is the path of the long axis in space over 60 days. Two of the
moments are nearly equal, so the angle between the axis and the angular momentum is nearly constant: it stays between
50.8 and 51.5 degrees.

How to: [the light curve of Toutatis](../toutatis.md), [exact solutions](../exact.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

moments = np.array([3.22, 3.09, 1.0])
precession, roll, tilt = 2 * np.pi / 7.4, 2 * np.pi / 5.41, np.radians(50)
along = precession * np.cos(tilt) + roll  # a symmetric body that precesses so: omega = precession L/|L| + roll e3
start = ph.Problem(ph.Body(moments), omega=[precession * np.sin(tilt), 0.0, along])
days = np.linspace(0, 60, 3000)
sol = ph.exact(start, days)
up = sol.spatial_momentum[0] / np.linalg.norm(sol.spatial_momentum[0])
angle = np.degrees(np.arccos(sol.matrix[:, :, 2] @ up))
assert 50.8 < angle.min() < angle.max() < 51.5
fig = plt.figure(figsize=(9, 3.6), layout="constrained")
left, right = fig.add_subplot(121), fig.add_subplot(122, projection="3d")
left.plot(days, angle)
left.set(xlabel="time [days]", ylabel="long axis from the momentum [degrees]")
sol.plot.attitude(ax=right)
fig.savefig("toutatis.png", dpi=120)
