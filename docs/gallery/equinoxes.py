"""The precession of the equinoxes.

Sun and Moon pull on the equatorial bulge of the Earth, and its axis moves along a cone in 25 700 years. Here the two
bodies move on circles in the ecliptic, and nothing is averaged: the run resolves the day and the semi-annual and
fortnightly nutations. Averaging predicts the precession rate 3/2 cos(obliquity) (C - A)/C times the sum of mu/(r³
spin): 15.9 arcseconds per year from the Sun and 34.6 from the Moon. The integrated axis moves at this rate to 0.05 %.
The observed rate is 50.4; the eccentricities and the inclination of the Moon's orbit are missing here.

How to: [fields of your own](../python.md), [orbits and environments](../environments.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

year, month = 365.256363, 27.321661  # days
sun, moon = (2 * np.pi / year) ** 2, (2 * np.pi / month) ** 2 / 82.3006  # mu/r^3; the Moon has 1/82.3 of both masses
spin, obliquity, ellipticity = 2 * np.pi * 1.00273791, np.radians(23.4393), 1 / 305.456


@ph.torque
def pull(t, R, sun, moon, year, month, bulge):
    torque = 0.0, 0.0, 0.0
    for strength, period in ((sun, year), (moon, month)):
        x, y, z = R.T @ (ph.math.cos(2 * np.pi * t / period), ph.math.sin(2 * np.pi * t / period), 0.0)
        torque = torque[0] + 3 * strength * bulge * y * z, torque[1] - 3 * strength * bulge * x * z, 0.0
    return torque


earth = ph.Body([1 - ellipticity, 1 - ellipticity, 1.0])
field = pull(sun, moon, year, month, ellipticity)
start = ph.Problem(earth, field, euler=("XYZ", [obliquity, 0.0, 0.0]), omega=[0.0, 0.0, spin])
sol = ph.solve(start, "strang(jacobi)", dt=year / 4000, steps=48000, every=10)
axis = sol.spatial_momentum / np.linalg.norm(sol.spatial_momentum, axis=1)[:, None]
longitude = -np.unwrap(np.arctan2(axis[:, 0], -axis[:, 1])) * 648000 / np.pi  # seconds of arc, backwards
tilt = (np.arccos(axis[:, 2]) - obliquity) * 648000 / np.pi
rate = np.polyfit(sol.t / year, longitude, 1)[0]
by_sun, by_moon = 1.5 * np.cos(obliquity) * ellipticity * np.array([sun, moon]) / spin * year * 648000 / np.pi
assert abs(by_sun - 15.9) < 0.05
assert abs(by_moon - 34.6) < 0.05
assert abs(rate / (by_sun + by_moon) - 1) < 5e-4
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(sol.t / year, longitude)
left.set(xlabel="time [years]", ylabel="precession of the axis [seconds of arc]")
right.plot(sol.t / year, tilt, lw=0.7)
right.set(xlabel="time [years]", ylabel="nutation in obliquity [seconds of arc]", xlim=(0, 2))
fig.savefig("equinoxes.png", dpi=120)
