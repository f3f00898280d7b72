"""Lennard-Jones and Coulomb forces between rigid molecules, with a smooth cut-off: for examples and validation.

Both potentials E(r) get the function S(r) of GROMACS, as in `pair_style lj/gromacs/coul/gromacs` of LAMMPS. With it,
energy, force and the derivative of the force vanish at the cut-off, so the energy is conserved there:

    S(r) = C + A/3 u^3 + B/4 u^4,    u = max(r - r_1, 0),    d = r_c - r_1,
    A = (d E'' - 3 E')/d^2,    B = (2 E' - d E'')/d^3,    C = -E + d E'/2 - d^2 E''/12    (E, E', E'' at r_c)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np
from scipy.spatial import cKDTree

import polhode as ph

COULOMB = 332.06371
"""Energy of two unit charges at a distance of 1 angstrom, in kcal/mol."""


def shift(E: float, first: float, second: float, d: float) -> tuple[float, float, float]:
    """Return A, B and C of the cut-off from a potential and its derivatives at the cut-off."""
    return (
        (d * second - 3 * first) / d**2,
        (2 * first - d * second) / d**3,
        -E + d * first / 2 - d * d * second / 12,
    )


@dataclasses.dataclass(frozen=True)
class Model:
    """Charges of the sites, and Lennard-Jones parameters of the first `lj_sites` sites.

    The cut-offs of both potentials begin at `lj_inner` and at 0, and end at `cutoff`.
    """

    charges: tuple[float, ...]
    epsilon: float
    sigma: float
    cutoff: float
    lj_inner: float
    lj_sites: int = 1

    @property
    def numbers(self) -> np.ndarray:
        """Numbers for the compiled loop: cut-off, 4 eps s^12, 4 eps s^6, start and A, B, C of both shifts."""
        rc, s6 = self.cutoff, self.sigma**6
        c6, c12 = 4 * self.epsilon * s6, 4 * self.epsilon * s6 * s6
        lj = shift(
            c12 / rc**12 - c6 / rc**6, -12 * c12 / rc**13 + 6 * c6 / rc**7, 156 * c12 / rc**14 - 42 * c6 / rc**8,
            rc - self.lj_inner,
        )  # fmt: skip
        return np.array([rc, c12, c6, self.lj_inner, *lj, *shift(1 / rc, -1 / rc**2, 2 / rc**3, rc)])


@numba.njit(fastmath=True, error_model="numpy")  # a division that may raise is not vectorised
def _charges(x: float, y: float, z: float, xs: Any, ys: Any, zs: Any, qq: float, p: Any) -> Any:
    """Coulomb force of sites on one site, and the energy."""
    fx, fy, fz, energy = 0.0, 0.0, 0.0, 0.0
    rc2, A, B, C = p[0] * p[0], p[7], p[8], p[9]
    for n in range(len(xs)):
        dx, dy, dz = x - xs[n], y - ys[n], z - zs[n]
        r2 = dx * dx + dy * dy + dz * dz
        here = 1.0 if r2 < rc2 else 0.0
        r = np.sqrt(r2)
        inverse = 1.0 / r
        f = here * (inverse * inverse * inverse - (A + B * r) * r)
        energy += here * (inverse + (A / 3 + B / 4 * r) * r2 * r + C)
        fx, fy, fz = fx + f * dx, fy + f * dy, fz + f * dz
    return qq * fx, qq * fy, qq * fz, qq * energy


@numba.njit(fastmath=True, error_model="numpy")  # a division that may raise is not vectorised
def _lennard_jones(x: float, y: float, z: float, xs: Any, ys: Any, zs: Any, p: Any) -> Any:
    """Lennard-Jones force of sites on one site, and the energy."""
    fx, fy, fz, energy = 0.0, 0.0, 0.0, 0.0
    rc2, c12, c6, start, A, B, C = p[0] * p[0], p[1], p[2], p[3], p[4], p[5], p[6]
    for n in range(len(xs)):
        dx, dy, dz = x - xs[n], y - ys[n], z - zs[n]
        r2 = dx * dx + dy * dy + dz * dz
        here = 1.0 if r2 < rc2 else 0.0
        r = np.sqrt(r2)
        u = max(r - start, 0.0)
        i2 = 1.0 / r2
        i6 = i2 * i2 * i2
        f = here * ((12 * c12 * i6 - 6 * c6) * i6 * i2 - (A + B * u) * u * u / r)
        energy += here * ((c12 * i6 - c6) * i6 + (A / 3 + B / 4 * u) * u * u * u + C)
        fx, fy, fz = fx + f * dx, fy + f * dy, fz + f * dz
    return fx, fy, fz, energy


@numba.njit(error_model="numpy")
def _gathered(r: Any, x: Any, i: int, neighbours: Any, images: Any, reach: float, to: Any) -> int:
    """Copy the sites of all molecules within reach of molecule i, each in its nearest image; return their number."""
    count = 0
    for k in range(len(neighbours)):
        j = neighbours[k]
        dx, dy = x[j, 0] - x[i, 0] - images[k, 0], x[j, 1] - x[i, 1] - images[k, 1]
        dz = x[j, 2] - x[i, 2] - images[k, 2]
        if dx * dx + dy * dy + dz * dz < reach * reach:
            for s in range(r.shape[1]):
                for c in range(3):
                    to[s, c, count] = r[j, s, c] - images[k, c]
            count += 1
    return count


@numba.njit(error_model="numpy")
def _all_forces(
    r: Any,
    x: Any,
    first: Any,
    neighbours: Any,
    images: Any,
    reach: float,
    charges: Any,
    p: Any,
    lj: int,
    out: Any,
) -> float:
    """Forces on all sites; each molecule reads its neighbours, so no two write to one place."""
    S, longest, energy = r.shape[1], 0, 0.0
    for i in range(r.shape[0]):
        longest = max(longest, first[i + 1] - first[i])
    near = np.empty((S, 3, longest))
    for i in range(r.shape[0]):
        begin, end = first[i], first[i + 1]
        n = _gathered(r, x, i, neighbours[begin:end], images[begin:end], reach, near)
        for a in range(S):
            fx, fy, fz = 0.0, 0.0, 0.0
            ax, ay, az = r[i, a, 0], r[i, a, 1], r[i, a, 2]
            if len(charges):
                for b in range(S):
                    qq = charges[a] * charges[b]
                    gx, gy, gz, e = _charges(ax, ay, az, near[b, 0, :n], near[b, 1, :n], near[b, 2, :n], qq, p)
                    fx, fy, fz, energy = fx + gx, fy + gy, fz + gz, energy + e / 2
            for b in range(lj if a < lj else 0):
                gx, gy, gz, e = _lennard_jones(ax, ay, az, near[b, 0, :n], near[b, 1, :n], near[b, 2, :n], p)
                fx, fy, fz, energy = fx + gx, fy + gy, fz + gz, energy + e / 2
            out[i, a, 0], out[i, a, 1], out[i, a, 2] = fx, fy, fz
    return energy


class Forces:
    """Forces on the sites of molecules of one kind in a periodic box; `energy` is that of the last call.

    The list of neighbours reaches further than the cut-off by `skin`, and is made anew when a centre has moved by half
    of it, or was wrapped.
    """

    def __init__(
        self, sites: ph.Sites, box: ph.PeriodicBox, model: Model, *, skin: float = 1.0, coulomb: bool = True,
        lj: bool = True,
    ) -> None:  # fmt: skip
        self.sites, self.box, self.model, self.skin = sites, box, model, skin
        self.lj_sites = model.lj_sites if lj else 0
        self.reach = model.cutoff + 2 * float(np.linalg.norm(sites.arms, axis=1).max())
        self.skin = min(skin, float(box.lengths.min()) / 2 - self.reach)
        box.check_cutoff(self.reach)
        self.charges = np.sqrt(COULOMB) * np.array(model.charges if coulomb else ())
        self.numbers = model.numbers
        self.lists, self.energy = 0, 0.0
        self._seen: np.ndarray | None = None

    def on_sites(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the forces on all sites, (N, S, 3)."""
        if self._seen is None or ((x - self._seen) ** 2).sum(axis=1).max() > (self.skin / 2) ** 2:
            self._list(x)
        r = self.sites.positions(x, q)
        forces = np.empty_like(r)
        self.energy = _all_forces(
            r, x, self._first, self._neighbours, self._images, self.reach, self.charges, self.numbers,
            self.lj_sites, forces,
        )  # fmt: skip
        return forces

    def __call__(self, t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return force and torque of every molecule, for `ph.batch_stepper`."""
        return self.sites.gather(self.on_sites(x, q), q)

    def _list(self, x: np.ndarray) -> None:
        """Find all pairs of molecules within reach, and order them by their first molecule."""
        tree = cKDTree(self.box.wrap(x), boxsize=self.box.lengths)
        pairs = tree.query_pairs(self.reach + self.skin, output_type="ndarray")
        both = np.concatenate([pairs, pairs[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        self._neighbours = np.ascontiguousarray(both[:, 1])
        d = x[both[:, 1]] - x[both[:, 0]]
        self._images = d - self.box.minimum_image(d)  # holds until the next list: no molecule is wrapped in between
        self._first = np.searchsorted(both[:, 0], np.arange(len(x) + 1))
        self._seen, self.lists = x.copy(), self.lists + 1
