"""Poinsot's picture: polhode and herpolhode.

Without a torque the tip of the angular velocity, seen from the body, follows a polhode on the ellipsoid of constant
energy (left). In space the tip of the angular velocity stays in a plane and draws a herpolhode
there (right), between two circles that it touches in turn; "the polhode rolls without slipping on the herpolhode
lying in the invariable plane" (Goldstein). The distance of the plane from the centre is 2 E/L; along the exact
solution it is constant to 1e-13.

How to: [pictures of free bodies](../pictures.md#free-bodies), [exact solutions](../exact.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

body = ph.Body([1.0, 1.7, 2.2])
start = ph.Problem(body, omega=[0.4, 0.5, 1.0])
sol = ph.exact(start, np.linspace(0, 200, 2001))
L = sol.spatial_momentum[0]
distance = sol.spatial_omega @ L / np.linalg.norm(L)
assert np.ptp(distance) < 1e-13
assert abs(distance[0] - 2 * sol.energy[0] / np.linalg.norm(L)) < 1e-14
fig = plt.figure(figsize=(9, 4), layout="constrained")
ph.plots.polhode_family(body, ax=fig.add_subplot(121, projection="3d"))
ph.plots.herpolhode_plot(start, ax=fig.add_subplot(122), periods=7)
fig.savefig("poinsot.png", dpi=120)
