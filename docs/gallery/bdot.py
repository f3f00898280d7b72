"""Detumbling with coils: the B-dot law.

A satellite of 4 kg leaves its launcher with eight degrees per second about a tilted axis. Once a second it measures
the Earth's magnetic field B in body axes, and commands a magnetic dipole m = -k dB/dt against its change. Coils exert
no torque along B, so part of the spin remains until the direction of the field has changed along the orbit. The law
brings the satellite to rest relative to B, which makes about two turns in a polar orbit. The spin must therefore end
near two revolutions per orbit (dashed line): from the fourth hour on it is between 1.5 and 2.5.

How to: [sampled-data control](../control.md), [orbits and environments](../environments.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

orbit = ph.Orbit(3.986004418e14, semi_major_axis=6.878e6, inclination=np.radians(97.4))
B = ph.fields.magnetic_field(orbit, strength=7.7e15, tilt=np.radians(170), rate=7.292e-5)
coils = ph.actuators.magnetorquer(B, max_dipole=0.05)


@ph.controller(period=1.0, coils=coils, before=[0.0, 0.0, 0.0])
def bdot(t, R, before, period, gain=2e4):
    b = R.T @ B(t)
    change = [(b[i] - before[i]) / period for i in range(3)]
    return {"coils": [ph.where(t > 0, -gain * change[i], 0.0) for i in range(3)], "before": b}


body = ph.Body([0.03, 0.035, 0.007])  # kg m^2
start = ph.Problem(body, omega=np.radians([5.0, -4.0, 4.8]))
sol = ph.solve(start, "verner87", dt=0.5, t_end=6 * 3600.0, control=bdot, every=20)
turns = np.linalg.norm(sol.omega, axis=1) * orbit.period / (2 * np.pi)  # revolutions per orbit
late = turns[sol.t > 4 * 3600]
assert 1.5 < late.min() < late.max() < 2.5
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogy(sol.t / 3600, turns)
left.axhline(2, color="grey", ls="--", lw=0.8)
left.set(xlabel="time [hours]", ylabel="spin [revolutions per orbit]")
for i, name in enumerate("xyz"):
    right.plot(sol.control.t / 3600, sol.control.memory["coils"][:, i], lw=0.6, label=name)
right.set(xlabel="time [hours]", ylabel="dipole of the coils [A m²]", xlim=(0, 2))
right.legend()
fig.savefig("bdot.png", dpi=120)
