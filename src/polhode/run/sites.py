"""Rigid molecules made of sites: from positions and forces of sites to those of bodies, and back.

The body frame of a molecule has its origin in the centre of mass, and the principal axes as its axes. A site with the
arm a in this frame is at x + R(q) a. Forces f on the sites give

    F = sum f,    T = sum a x R^T f    (in the body frame)
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import rotate
from ..numbers.arrays import components
from ..physics.array_arguments import finite_rows, target
from ..physics.bodies import rows
from ..physics.body import Body
from ..physics.fields.decorators import check_frame
from ..physics.inertia_tensor import TOLERANCE
from ..physics.periodic_box import PeriodicBox, box_of
from ..physics.validate import positive, real_array
from .batch_stepper.arrays import check_apart, is_functional, is_on_gpu

if TYPE_CHECKING:
    from .site_files import Frames

MISFIT = 0.01
"""Largest distance of a site from its place in `fit`, in units of the longest arm."""

ONE_KIND = np.empty(0, dtype=np.int64)


def sites(masses: Any, positions: Any, kinds: Any = None) -> Sites:
    """Return the sites of rigid molecules, of one kind or of several.

        water = ph.sites([15.9994, 1.008, 1.008], [[0, 0, 0], [0.8165, 0.5774, 0], [-0.8165, 0.5774, 0]])
        stepper = ph.batch_stepper(water.moments, "strang(dmv10)", dt, masses=water.mass)

    Parameters
    ----------
    masses : (S,) of the sites of a molecule, or (K, S) of those of K kinds. Massless sites may carry forces
    positions : (S, 3), or (K, S, 3), in any axes and from any origin
    kinds : (N,) the kind of each molecule; only for several kinds

    Examples
    --------
    >>> water = ph.sites([16.0, 1.0, 1.0], [[0.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.8, 0.6, 0.0]])
    >>> water.positions([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]]).shape
    (1, 3, 3)
    """
    weights = real_array(
        masses, "masses must be the masses of sites, (S,), or of sites of K kinds, (K, S)", key="masses"
    )
    if weights.ndim not in (1, 2) or not weights.size:
        raise InputError(f"masses must have the shape (S,), or (K, S) for K kinds; got {weights.shape}", "masses")
    points = finite_rows("positions", positions, (*weights.shape, 3))
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(f"masses must be positive numbers, or zero; got {weights.tolist()}", "masses")
    if weights.ndim == 1:
        if kinds is not None:
            raise InputError("kinds is for several kinds: give masses (K, S) and positions (K, S, 3)", "kinds")
        return Sites([_Kind(weights, points, "")], ONE_KIND)
    if kinds is None:
        raise InputError("give kinds, the kind of each molecule", "kinds")
    found = [_Kind(w, r, f"kind {k}: ") for k, (w, r) in enumerate(zip(weights, points, strict=True))]
    return Sites(found, _checked_kinds(kinds, len(found)))


class Sites:
    """The sites of rigid molecules; created by `ph.sites`.

    The body frame has its origin at the centre of mass and its axes along the principal axes; axes that are already
    principal are kept. Attitudes are unit quaternions, scalar first, from this frame to space.

    Attributes
    ----------
    mass : the mass of a molecule; with several kinds (N,), of each molecule
    moments : (3,) or (N, 3) principal moments; a linear molecule has one that is zero
    arms : (S, 3) or (K, S, 3) sites in the body frame
    masses : (S,) or (K, S) masses of the sites
    centre, axes : (3,) and (3, 3), or (K, 3) and (K, 3, 3): the centre of mass and the principal axes (columns), in the
        axes of the given positions
    kinds : (N,) the kind of each molecule; empty if there is one kind

    Examples
    --------
    >>> water = ph.sites([16.0, 1.0, 1.0], [[0.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.8, 0.6, 0.0]])
    >>> float(water.masses[0])
    16.0
    """

    def __init__(self, found: list[_Kind], kinds: np.ndarray) -> None:
        self.kinds = kinds
        self._arms = np.array([kind.arms for kind in found])
        self._masses = np.array([kind.masses for kind in found])
        several = bool(kinds.size)
        mass, moments = np.array([kind.body.mass for kind in found]), np.array([kind.body.moments for kind in found])
        self.mass: Any = mass[kinds] if several else float(mass[0])
        self.moments = moments[kinds] if several else moments[0]
        pick = slice(None) if several else 0
        self.arms, self.masses = self._arms[pick], self._masses[pick]
        self.centre = np.array([kind.body.centre for kind in found])[pick]
        self.axes = np.array([kind.body.axes for kind in found])[pick]
        for array in (self._arms, self._masses, self.moments, self.centre, self.axes, self.kinds):
            array.flags.writeable = False
        self._gpu: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle no memory of a GPU."""
        return vars(self) | {"_gpu": None}

    def _on_gpu(self, q: Any, out: tuple[Any, ...]) -> Any:
        """Return what computes with arrays on a GPU; None if q is none."""
        if not is_on_gpu(q):
            return None
        if any(map(is_functional, out)):
            raise InputError("arrays of JAX cannot be filled; leave out and use the result", "out")
        if self._gpu is None:
            from .sites_on_gpu import SitesOnGpu

            self._gpu = SitesOnGpu(self, self.kinds, self._arms)
        return self._gpu

    @property
    def number(self) -> int:
        """Number of sites of a molecule."""
        return int(self._arms.shape[1])

    def positions(self, x: Any, q: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of all sites, (N, S, 3): x + R(q) a.

        Parameters
        ----------
        x, q : (N, 3) centres of mass and (N, 4) attitudes; if they are on a GPU, so is the result, and a molecule
            whose quaternion is not of unit length gets NaN
        out : array to fill
        """
        card = self._on_gpu(q, (out,))
        if card is not None:
            placed: Any = card.positions(x, q, out)
            return placed
        attitudes = self._attitudes(q)
        number = len(attitudes)
        centres = finite_rows("x", x, (number, 3))
        result = target("out", out, (number, self.number, 3))
        check_apart(x=centres, q=attitudes, out=result)
        _program("place")(centres, attitudes, self.kinds, self._arms, result)
        return result

    def velocities(self, velocity: Any, q: Any, omega: Any) -> np.ndarray:
        """Return the velocities of all sites, (N, S, 3), in the space frame: v + R(q) (omega x a).

        Parameters
        ----------
        velocity, q : (N, 3) velocities of the centres of mass and (N, 4) attitudes
        omega : (N, 3) angular velocities in the body frame
        """
        attitudes = self._attitudes(q)
        number = len(attitudes)
        v, spin = finite_rows("velocity", velocity, (number, 3)), finite_rows("omega", omega, (number, 3))
        turning = np.cross(spin[:, None], self._of_molecules(self._arms, number))
        return v[:, None] + rows(rotate(components(attitudes[:, None]), components(turning)))

    def gather(
        self, forces: Any, q: Any, *, frame: str = "body", out: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the force (N, 3), in the space frame, and the torque (N, 3) of each molecule.

        With masses times velocities of the sites instead of forces, these are momentum and angular momentum.

        Parameters
        ----------
        forces : (N, S, 3) forces on the sites, in the space frame
        q : (N, 4) attitudes; if arrays are on a GPU, so is the result, as for `positions`
        frame : "body" or "space", the frame of the torque
        out : two arrays to fill, for force and torque
        """
        if out is not None and not (isinstance(out, tuple | list) and len(out) == 2):
            raise InputError("out must be two arrays, for force and torque", "out")
        in_body = check_frame(frame) == "body"
        card = self._on_gpu(q, tuple(out or ()))
        if card is not None:
            gathered: tuple[Any, Any] = card.gather(forces, q, in_body, out)
            return gathered
        attitudes = self._attitudes(q)
        number = len(attitudes)
        given = real_array(forces, "forces must be an array (N, S, 3)", fresh=False, key="forces")
        if given.shape != (number, self.number, 3):  # NaN is the stepper's to report, molecule by molecule
            raise InputError(f"forces must have the shape {(number, self.number, 3)}; got {given.shape}", "forces")
        force, torque = (target("out", None if out is None else one, (number, 3)) for one in (out or (None, None)))
        check_apart(q=attitudes, forces=given, force=force, torque=torque)
        _program("gather", in_body)(given, attitudes, self.kinds, self._arms, force, torque)
        return force, torque

    def fit(
        self, positions: Any, *, box: PeriodicBox | None = None, tolerance: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return centres of mass (N, 3) and attitudes (N, 4) of molecules whose sites are at these positions.

        They minimise sum m |x + R a - r|^2 over the sites (Horn 1987, by the largest eigenvector of a 4x4 matrix). A
        linear molecule may be turned about its axis by any angle.

        Parameters
        ----------
        positions : (N, S, 3)
        box : if molecules may be cut at its faces; every site is taken to be the image nearest to the first one
        tolerance : largest distance of a site from its place in the rigid molecule; by default a hundredth of the
            longest arm
        """
        number = len(self.kinds) or None
        r = finite_rows("positions", positions, (number, self.number, 3))
        box = box_of(box)
        if box is not None:
            r = r[:, :1] + box.minimum_image(r - r[:, :1])
        weights, arms = (self._of_molecules(a, len(r)) for a in (self._masses, self._arms))
        x = np.einsum("ns,nsi->ni", weights, r) / weights.sum(axis=1)[:, None]
        q = _horn(np.einsum("ns,nsi,nsj->nij", weights, arms, r - x[:, None]))
        gaps = np.linalg.norm(self.positions(x, q) - r, axis=2).max(axis=1)
        allowed = MISFIT * np.linalg.norm(self._arms, axis=2).max() if tolerance is None else positive(
            "tolerance", tolerance
        )  # fmt: skip
        worst = int(gaps.argmax())
        if not gaps[worst] <= allowed:
            raise InputError(
                f"the positions of molecule {worst} do not fit its sites: one is {gaps[worst]:.3g} away, more than "
                f"{allowed:.3g}; check the order of the sites, give box= if molecules are cut, or a larger tolerance",
                "positions",
            )
        return x, q

    def frames(
        self, path: str | Path, *, symbols: Any, box: PeriodicBox | None = None, overwrite: bool = False
    ) -> AbstractContextManager[Frames]:
        """Write molecules over time to extended XYZ (``.xyz``) or GSD (``.gsd``, extra ``polhode[gsd]``).

            with water.frames("water.xyz", symbols=["O", "H", "H"], box=box) as file:
                file.write(x, q, t=0.0)

        The file appears at the end of the block, or not at all.

        Parameters
        ----------
        symbols : names of the sites of a molecule; for several kinds, a list for each kind
        box : the periodic box; GSD needs one
        """
        from . import site_files

        return site_files.frames(self, path, symbols, box, overwrite)

    def _of_molecules(self, array: np.ndarray, number: int) -> np.ndarray:
        """Numbers of the kinds, written out for all molecules."""
        return array[self.kinds] if self.kinds.size else np.broadcast_to(array, (number, *array.shape[1:]))

    def _attitudes(self, q: Any) -> np.ndarray:
        """Check attitudes (N, 4)."""
        found = finite_rows("q", q, (len(self.kinds) or None, 4))
        bad = _program("unit")(found)
        if bad >= 0:
            one = found[bad].tolist()
            raise InputError(f"q must hold unit quaternions; that of molecule {bad} is {one}", "q")
        return found

    def __repr__(self) -> str:
        kinds = f", {len(self._arms)} kinds, {len(self.kinds)} molecules" if self.kinds.size else ""
        return f"Sites({self.number} sites{kinds}, moments {self.moments.tolist() if not kinds else '(N, 3)'})"


class _Kind:
    """The sites of one kind of molecule in its body frame."""

    def __init__(self, masses: np.ndarray, points: np.ndarray, whose: str) -> None:
        heavy = masses > 0
        if not heavy.any():
            raise InputError(f"{whose}at least two sites need masses; all are zero", "masses")
        try:
            self.body = Body.from_points(points[heavy], masses[heavy])
        except InputError as fault:
            raise InputError(f"{whose}{fault}", "positions") from None
        self.masses, self.arms = masses, (points - self.body.centre) @ self.body.axes
        axis = self.body.linear_axis
        if axis is not None:
            self._straighten(axis, heavy, whose)

    def _straighten(self, axis: int, heavy: np.ndarray, whose: str) -> None:
        """Put the sites of a linear molecule exactly on its axis: a torque about it would have nothing to turn."""
        across = np.arange(3) != axis
        off = np.abs(self.arms[:, across]).max(axis=1) > np.sqrt(TOLERANCE) * np.abs(self.arms).max()
        if (off & ~heavy).any():
            raise InputError(
                f"{whose}site {int(np.flatnonzero(off & ~heavy)[0])} has no mass and is not on the axis of a linear "
                "molecule, where its force would have a torque about the axis; give it a mass", "positions",
            )  # fmt: skip
        self.arms[:, across] = 0.0


def _checked_kinds(kinds: Any, number: int) -> np.ndarray:
    """Return the kind of each molecule."""
    given = np.asarray(kinds) if not isinstance(kinds, str) else np.empty(0)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise InputError(f"kinds must be a row of whole numbers, one for each molecule; got {kinds!r}", "kinds")
    if not ((given >= 0) & (given < number)).all():
        raise InputError(f"kinds must be numbers from 0 to {number - 1}; got {given.min()} to {given.max()}", "kinds")
    return given.astype(np.int64)


def _horn(S: np.ndarray) -> np.ndarray:
    """Return the unit quaternions q that maximise sum m (R(q) a) . b, for S = sum m a b^T, (N, 3, 3).

    B. K. P. Horn, Closed-form solution of absolute orientation using unit quaternions, J. Opt. Soc. Am. A 4 (1987).
    """
    K = np.empty((len(S), 4, 4))
    trace = np.trace(S, axis1=1, axis2=2)
    K[:, 0, 0] = trace
    K[:, 0, 1:] = K[:, 1:, 0] = np.stack([S[:, 1, 2] - S[:, 2, 1], S[:, 2, 0] - S[:, 0, 2], S[:, 0, 1] - S[:, 1, 0]], 1)
    K[:, 1:, 1:] = S + S.swapaxes(1, 2) - trace[:, None, None] * np.eye(3)
    q: np.ndarray = np.linalg.eigh(K)[1][:, :, 3]
    return np.ascontiguousarray(q * np.where(q[:, :1] < 0, -1.0, 1.0))


def _program(name: str, in_body: bool = True) -> Any:
    """Return a compiled loop over molecules."""
    from ..compile.batch import in_place
    from ..compile.batch import sites as loops
    from ..compile.lazily import program

    if name == "unit":
        return program(lambda: in_place.checking("rows"), "unit quaternions", "rows").run
    if name == "place":
        return program(loops.placing, "sites", "place").run
    return program(lambda: loops.gathering(in_body), "sites", "gather", in_body).run
