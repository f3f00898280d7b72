"""Dumbbells share their energy.

Sixty grains, each made of two spheres, fly in a box with soft walls. Initially none of them rotates. Collisions make
them rotate until every degree of freedom has the same energy. A dumbbell has three degrees of freedom of translation
and two of rotation, because nothing turns it about its axis, so the rotation must end with two fifths of the kinetic
energy: in the second half of the run its mean share is 0.40, to 0.03. The forces are written in NumPy; the total
energy is conserved to 0.3 %.

How to: [molecules and grains](../molecules.md), [your own arrays](../batch_stepper.md).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

import polhode as ph

rng = np.random.default_rng(2)
number, size, stiffness = 60, 4.0, 400.0  # spheres of diameter 1 in a box of edges 2 x 4
grain = ph.sites([1.0, 1.0], [[0, 0, -0.4], [0, 0, 0.4]])


def contact(r):
    """Forces of springs between overlapping spheres and at the walls, and their energy."""
    i, j = cKDTree(r).query_pairs(1.0, output_type="ndarray").T
    i, j = i[i // 2 != j // 2], j[i // 2 != j // 2]  # the two spheres of a grain do not push each other
    d = r[i] - r[j]
    length = np.linalg.norm(d, axis=1)
    push = (1 / length - 1)[:, None] * d
    wall = np.clip(r, -size, size) - r
    force = wall.copy()
    np.add.at(force, i, push)
    np.add.at(force, j, -push)
    return stiffness * force, stiffness / 2 * (((1 - length) ** 2).sum() + (wall**2).sum())


def forces(t, x, q):
    return grain.gather(contact(grain.positions(x, q).reshape(-1, 3))[0].reshape(number, 2, 3), q)


lattice = 2.0 * np.stack(np.meshgrid(*[np.arange(4) - 1.5] * 3, indexing="ij"), -1).reshape(-1, 3)
x, p, pi = lattice[:number].copy(), 2.0 * rng.normal(size=(number, 3)), np.zeros((number, 3))
q = rng.normal(size=(number, 4))
q /= np.linalg.norm(q, axis=1)[:, None]
stepper = ph.batch_stepper(grain.moments, "strang(jacobi)", dt=0.005, masses=grain.mass)
turning = np.divide(0.5, grain.moments, out=np.zeros(3), where=grain.moments > 0)
moved, turned, stored = [], [], []
for _ in range(400):
    stepper.step(x, p, q, pi, forces, n=20)
    moved.append((p**2).sum() / (2 * grain.mass))
    turned.append((pi**2 * turning).sum())
    stored.append(contact(grain.positions(x, q).reshape(-1, 3))[1])
moved, turned, stored = np.array(moved), np.array(turned), np.array(stored)
total = moved + turned + stored
share = turned / (moved + turned)
assert abs(share[200:].mean() - 0.4) < 0.03
assert np.ptp(total) < 3e-3 * total.mean()
t = 0.1 * np.arange(1, 401)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for values, name in ((total, "total"), (moved, "translation"), (turned, "rotation"), (stored, "contacts")):
    ax.plot(t, values / number, lw=0.9, label=name)
ax.set(xlabel="time", ylabel="energy of a grain")
fig.legend(loc="outside upper center", ncols=4)
fig.savefig("dumbbells.png", dpi=120)
