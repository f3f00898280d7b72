"""Sites of rigid molecules in arrays on an NVIDIA GPU, of CuPy, PyTorch or JAX."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .._memo import MADE
from ..errors import InputError
from .batch_stepper.arrays import DOUBLE, PLAIN, SINGLE, is_functional
from .batch_stepper.gpu import THREADS
from .batch_stepper.gpu_arrays import Views, check_apart, current_stream, empty

if TYPE_CHECKING:
    from .sites import Sites


class SitesOnGpu:
    """The arms and kinds of molecules in the memory of a GPU, and what is computed with them.

    Calls return before they are done, on the stream that the library of the arrays uses.
    """

    def __init__(self, sites: Sites, kinds: np.ndarray, arms: np.ndarray) -> None:
        from ..compile.cuda import card

        self.cuda, self.sites = card(), sites
        self.view = Views(self.cuda)
        self.kinds = self.cuda.to_device(np.array(kinds) if kinds.size else np.zeros(1, dtype=np.int64))
        self.arms = self.cuda.to_device(np.array(arms))
        self.cuda.synchronize()  # for kernels on every stream

    def positions(self, x: Any, q: Any, out: Any) -> Any:
        """Return the positions of all sites, (N, S, 3)."""
        from ..compile.cuda_sites import placing

        number = self._number(q)
        shape = number, self.sites.number, 3
        result = empty(q, shape) if out is None else out
        given = self._taken("q", q, (number, 4)), self._taken("x", x, (number, 3)), self._filled(result, shape)
        check_apart(q=given[0], x=given[1], out=given[2])
        self._launch(MADE((placing,), placing), q, given[1], given[0], self.kinds, self.arms, given[2], number)
        return result

    def gather(self, forces: Any, q: Any, in_body: bool, out: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """Return the force and the torque of each molecule, (N, 3)."""
        from ..compile.cuda_sites import gathering

        number = self._number(q)
        shape = number, 3
        force, torque = (empty(q, shape), empty(q, shape)) if out is None else out
        q_, f = self._taken("q", q, (number, 4)), self._taken("forces", forces, (number, self.sites.number, 3))
        one, two = self._filled(force, shape), self._filled(torque, shape)
        check_apart(q=q_, forces=f, force=one, torque=two)
        run = MADE((gathering, in_body), lambda: gathering(in_body))
        self._launch(run, q, f, q_, self.kinds, self.arms, one, two, number)
        return force, torque

    def _number(self, q: Any) -> int:
        """Number of molecules."""
        shape = tuple(self.view("q", q)[0].shape)
        known = len(self.sites.kinds) or None
        if len(shape) != 2 or shape[1] != 4 or not shape[0] or known not in (None, shape[0]):
            raise InputError(f"q must have the shape ({known or 'N'}, 4); got {shape}", "q")
        return int(shape[0])

    def _taken(self, name: str, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array as one of numba; check its form."""
        seen = self.view(name, array)[0]
        if tuple(seen.shape) != shape:
            raise InputError(f"{name} must have the shape {shape}; got {tuple(seen.shape)}", name)
        if seen.dtype not in (DOUBLE, SINGLE) or not seen.is_c_contiguous():
            raise InputError(PLAIN.format(name=name, dtype=seen.dtype, strides=seen.strides), name)
        return seen

    def _filled(self, out: Any, shape: tuple[int, ...]) -> Any:
        """Return an array to be filled as one of numba."""
        return self._taken("out", out, shape)

    def _launch(self, run: Any, q: Any, *arguments: Any) -> None:
        """Start a kernel with one thread for each molecule."""
        stream, number = current_stream(q), arguments[-1]
        queue = self.cuda.external_stream(stream) if stream else 0
        with warnings.catch_warnings():  # few molecules are not an error
            warnings.filterwarnings("ignore", message=".*under-utilization")
            run[-(-number // THREADS), min(THREADS, number), queue](*arguments)
        if is_functional(q):
            self.cuda.synchronize()  # JAX does not know of this stream
