"""Arrays of CuPy, PyTorch and JAX on an NVIDIA GPU: checked, copied, and seen as arrays of numba without a copy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import InputError
from . import arrays

VIEWS = 64
"""Most arrays whose form is remembered."""


def library_of(array: Any) -> str:
    """Return the name of the library that an array belongs to."""
    return type(array).__module__.partition(".")[0]


def description(array: Any) -> Any:
    """Return what identifies the memory of an array and its form; None if its library has no quick answer."""
    library = library_of(array)
    if library == "torch":
        return array.data_ptr(), array.shape, array.dtype, array.is_contiguous(), array.requires_grad
    if library == "cupy":
        return array.data.ptr, array.shape, array.dtype, array.flags.c_contiguous
    return None


def current_stream(array: Any) -> int:
    """Return the address of the stream on which the library of an array works at present; 0 for the default one."""
    library = library_of(array)
    if library == "torch":
        return int(importlib.import_module("torch").cuda.current_stream(array.device).cuda_stream)
    return int(importlib.import_module("cupy").cuda.get_current_stream().ptr) if library == "cupy" else 0


def duplicate(array: Any, dtype: Any = None) -> Any:
    """Return a copy of an array on the GPU, by its own library, of these numbers (by default of the same ones)."""
    if library_of(array) == "torch":
        torch = importlib.import_module("torch")
        return array.detach().to(array.dtype if dtype is None else getattr(torch, np.dtype(dtype).name), copy=True)
    dtype = array.dtype if dtype is None else dtype
    if arrays.is_functional(array):
        jax = importlib.import_module("jax")
        with jax.enable_x64(True):  # doubles, however JAX is set
            copy = jax.numpy.array(array, dtype=dtype, copy=True)
        return copy.block_until_ready()  # it is written outside JAX, which does not know of this stream
    return array.astype(dtype, copy=True)


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of doubles on the GPU, of the library of another array, to be filled; for JAX of its numbers."""
    if library_of(like) == "torch":
        return like.new_empty(shape, dtype=importlib.import_module("torch").float64)
    if arrays.is_functional(like):
        return importlib.import_module("jax").numpy.zeros(shape, dtype=like.dtype).block_until_ready()
    return np.empty_like(like, shape=shape, dtype=np.float64)  # CuPy answers for its arrays


def zeros(like: Any) -> Any:
    """Return an array of zeros with the form of another array."""
    library = library_of(like)
    if library == "torch":
        return importlib.import_module("torch").zeros_like(like)
    return importlib.import_module("jax").numpy.zeros_like(like) if arrays.is_functional(like) else np.zeros_like(like)


def matching(values: np.ndarray, like: Any) -> Any:
    """Return numbers as an array of the library, device and precision of another array."""
    if library_of(like) == "torch":
        return like.new_tensor(values)
    if arrays.is_functional(like):
        return importlib.import_module("jax").numpy.asarray(values, dtype=like.dtype)
    return np.asarray(values, dtype=like.dtype, like=like)  # CuPy answers for its arrays


class Views:
    """Arrays of a user as arrays of numba that share their memory.

    What is known of an array is kept for the next call with the same memory: to look at one takes longer than the
    steps of many thousand bodies.

    Attributes
    ----------
    admitted : combinations of arrays that were checked
    """

    def __init__(self, cuda: Any) -> None:
        self.cuda = cuda
        self.known: dict[Any, Any] = {}
        self.admitted: set[Any] = set()

    def __call__(self, name: str, array: Any) -> tuple[Any, Any]:
        """Return the array of numba, and what identifies the memory; None if its library has no quick answer."""
        key = description(array)
        found = self.known.get(key)
        if found is None:
            found = self.shared(name, array)
            if len(self.known) >= VIEWS:
                self.known.clear()
                self.admitted.clear()
            if key is not None:
                self.known[key] = found
        return found, key

    def shared(self, name: str, array: Any) -> Any:
        """Return the array of numba."""
        if getattr(array, "requires_grad", False):
            raise InputError(f"{name} records gradients, which a step in place would break; pass {name}.detach()", name)
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            raise InputError(
                f"{name} must be on the GPU, as q is, and share its memory; got {type(array).__name__}", name
            )
        return self.cuda.from_cuda_array_interface(interface, sync=False)  # it does not keep the user's memory alive

    def remain(self, *found: Any) -> bool:
        """Return whether all these arrays of numba are kept, so that they are identified by `id`."""
        return all(any(x is known for known in self.known.values()) for x in found)


def check(name: str, array: Any, width: int, layout: str, number: int | None) -> int:
    """Refuse an array on a GPU that cannot hold the states of bodies; return their number."""
    if array.dtype not in (arrays.DOUBLE, arrays.SINGLE):
        raise InputError(f"{name} must hold float64 or float32 numbers; got {array.dtype}", name)
    found = arrays.check_shape(name, array.shape, width, layout, number)
    if not array.is_c_contiguous():
        raise InputError(f"{name} must be contiguous; its strides are {array.strides}, so pass a contiguous copy", name)
    return found


def check_apart(**given: Any) -> None:
    """Refuse arrays that share memory."""
    begins = {name: int(array.__cuda_array_interface__["data"][0]) for name, array in given.items()}
    spans = [(name, begin, begin + given[name].nbytes) for name, begin in begins.items()]
    for i, (one, begin, end) in enumerate(spans):
        for two, first, last in spans[i + 1 :]:
            if begin < last and first < end:
                raise InputError(f"{one} and {two} share memory, so one would overwrite the other; pass a copy")
