"""A game loop at sixty frames a second.

A thrown book turns about its intermediate axis and flips. Four methods step it sixty times a second for a minute.
Euler's method for the body rates (`fe`) multiplies the energy by nine in ten seconds. Euler's method with the angular
momentum kept in space (`fem`) turns the book to its long axis, with 96 % more energy. Runge-Kutta with a normalised
quaternion (`rk4_quat`) changes the energy by 1.4e-4. `dmv4` conserves energy and momentum to 1e-13.

How to: [your own loop](../python.md#single-steps-in-your-own-loop), [many bodies](../batch_stepper.md).
"""

import matplotlib.pyplot as plt
import numpy as np

import polhode as ph

book = ph.Body.box(0.24, 0.17, 0.03, mass=0.8)
start = ph.Problem(book, omega=[0.05, 12.0, 0.1])
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
end = {}
for method, seconds in (("fe", 10), ("fem", 60), ("rk4_quat", 60), ("dmv4", 60)):
    sol = ph.solve(start, method, dt=1 / 60, steps=60 * seconds)
    change = np.abs(sol.energy / sol.energy[0] - 1)
    end[method] = change.max()
    left.semilogy(sol.t[1:], np.maximum(change[1:], 1e-17), label=method, lw=0.8)
    right.plot(sol.t, sol.omega[:, 1], label=method, lw=0.9)
assert 7 < end["fe"] < 9
assert 0.95 < end["fem"] < 0.97
assert end["rk4_quat"] < 1.5e-4
assert end["dmv4"] < 1e-13
left.set(xlabel="time [s]", ylabel="relative energy error")
right.set(xlabel="time [s]", ylabel="rate about the middle axis [rad/s]", xlim=(0, 8), ylim=(-25, 25))
fig.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=4)
fig.savefig("game_loop.png", dpi=120)
