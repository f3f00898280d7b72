"""Steps of many bodies in arrays on an NVIDIA GPU, of CuPy, PyTorch or JAX, on the stream that their library uses.

A call returns before its steps are done, as calls of these libraries do. So a body that failed is reported by the next
call, or by `failed`, which waits for the GPU.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._memo import MADE
from ...errors import InputError
from ...methods import Method
from ...numbers import floats
from ...physics.fields.decorators import check_frame
from ...physics.queries import answering
from . import arrays
from .asked import check_askable, is_written_out, legs, takes_vectors
from .held import check_bodies, field_with

if TYPE_CHECKING:
    from .stepper import BatchStepper

THREADS = 128
"""Threads per block."""

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


def duplicate(array: Any, double: bool = False) -> Any:
    """Return a copy of an array on the GPU, by its own library; `double`: of doubles."""
    if library_of(array) == "torch":
        torch = importlib.import_module("torch")
        return array.detach().to(torch.float64 if double else array.dtype, copy=True)
    if arrays.is_functional(array):
        copy = importlib.import_module("jax").numpy.array(array, dtype=np.float64 if double else None, copy=True)
        return copy.block_until_ready()  # it is written outside JAX, which does not know of this stream
    return array.astype(np.float64 if double else array.dtype, copy=True)


class GpuSteps:
    """The steps of a `BatchStepper` in arrays on a GPU.

    What depends only on the arrays of a call is kept for the next call with the same memory: to look at an array
    takes longer than the steps of many thousand bodies.
    """

    def __init__(self, stepper: BatchStepper) -> None:
        from ...compile.cuda import card

        self.stepper, self.cuda = stepper, card()
        inertia, values, axes, tables = stepper.constants
        if tables:
            raise InputError("a stepper on a GPU takes no field with tables; give the torques as an array")
        self.constants = [self.cuda.to_device(x) for x in (inertia, values, axes)]
        self.turned = stepper.bodies.own is not None
        self.nothing = self.cuda.to_device(np.zeros((1, 3)))
        self.fault = self.cuda.mapped_array((1,), dtype=np.int64)
        self.fault[0] = 0
        self.flags: Any = None
        self.number = 0
        self.views: dict[Any, Any] = {}
        self.admitted: set[Any] = set()
        self.kernels: dict[Any, Any] = {}
        self.launches: dict[Any, Any] = {}

    # --- arrays ------------------------------------------------------------------------------------

    def view(self, name: str, array: Any) -> tuple[Any, Any]:
        """Return an array as an array of numba that shares its memory, and what identifies it."""
        key = description(array)
        found = self.views.get(key)
        if found is None:
            found = self._viewed(name, array)
            if len(self.views) >= VIEWS:
                self.views.clear()
                self.admitted.clear()
            if key is not None:
                self.views[key] = found
        return found, key

    def _viewed(self, name: str, array: Any) -> Any:
        if getattr(array, "requires_grad", False):
            raise InputError(f"{name} records gradients, which a step in place would break; pass {name}.detach()", name)
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            raise InputError(
                f"{name} must be on the GPU, as q is, and share its memory; got {type(array).__name__}", name
            )
        return self.cuda.from_cuda_array_interface(interface, sync=False)  # it does not keep the user's memory alive

    def states(self, q: Any, v: Any, stream: Any) -> tuple[Any, Any]:
        """Return arrays of states as arrays of numba; check them if they are new."""
        stepper, form = self.stepper, self.stepper.form
        (a, one), (b, two) = self.view("q", q), self.view(stepper.vector, v)
        if (one, two) in self.admitted and self.number == a.shape[0 if form.layout == "rows" else 1]:
            return a, b
        each = len(stepper.bodies.moments) > 1 or stepper.bodies.number > 1
        self.resize(check("q", a, 4, form.layout, stepper.bodies.number if each else None))
        check(stepper.vector, b, 3, form.layout, self.number)
        if a.dtype != b.dtype:
            raise InputError(f"q and {stepper.vector} must have the same dtype; got {a.dtype} and {b.dtype}")
        check_apart(q=a, **{stepper.vector: b})
        self.check_quaternions(a, stream)
        if one is not None and two is not None:
            self.admitted.add((one, two))
        return a, b

    def check_quaternions(self, a: Any, stream: int) -> None:
        """Refuse quaternions that are not of unit length; waits for the GPU."""
        from ...compile.cuda_in_place import checking

        form = self.stepper.form
        self.launch(self.kernel("check", lambda: checking(form.layout)), stream, a, self.flags, self.fault, self.number)
        bad = self.collected()
        if len(bad):
            one = np.asarray(a.copy_to_host())
            one = (one[bad[0]] if form.layout == "rows" else one[:, bad[0]]).tolist()
            raise InputError(
                f"q must hold unit quaternions; that of body {bad[0]} is {one}, of length {np.linalg.norm(one):.8g}, "
                "so divide by it",
                "q",
            )

    def resize(self, number: int) -> None:
        """Prepare for this number of bodies."""
        if number != self.number:
            self.number, self.flags = number, self.cuda.to_device(np.zeros(number, dtype=np.bool_))

    def torques(self, value: Any, parts: int | None, name: str = "torque") -> Any:
        """Return torques as an array of numba: those of each body, or of each sub-step and body."""
        array, layout = self.view(name, value)[0], self.stepper.form.layout
        shape = (self.number, 3) if layout == "rows" else (3, self.number)
        if array.shape != shape and array.shape != (parts, *shape):
            raise InputError(f"{name} must have the shape {shape} for {self.number} bodies; got {array.shape}", name)
        if array.dtype not in (arrays.DOUBLE, arrays.SINGLE) or not array.is_c_contiguous():
            raise InputError(f"{name} must be a contiguous array of float64 or float32 numbers", name)
        return array

    def apart(self, a: Any, b: Any, force: Any) -> Any:
        """Return torques; refuse those that share memory with a state."""
        key = id(a), id(b), id(force)  # views of known arrays remain until all are forgotten
        if key not in self.admitted:
            check_apart(q=a, **{self.stepper.vector: b}, torque=force)
            if all(any(x is known for known in self.views.values()) for x in (a, b, force)):
                self.admitted.add(key)
        return force

    # --- steps -------------------------------------------------------------------------------------

    def step(
        self, q: Any, v: Any, torque: Any, frame: str, h: Any, n: int, t: float, in_place: bool
    ) -> tuple[Any, Any]:  # fmt: skip
        """Make the steps; `h` returns the step, or one for each body."""
        self.report()
        stream = current_stream(q)
        functional = arrays.is_functional(q) or arrays.is_functional(v)
        if functional or not in_place:
            q, v = duplicate(q), duplicate(v)
        a, b = self.states(q, v, stream)
        self.stepper.resize(self.number)
        steps = h()
        if type(steps) is not float:
            steps = self.cuda.to_device(steps)
        if torque is not None and arrays.is_function(torque):
            self.ask(q, v, a, b, torque, check_frame(frame), steps, n, t, stream)
        else:
            force = self.nothing if torque is None else self.apart(a, b, self.torques(torque, n))
            held = None if torque is None else check_frame(frame)
            self.advance(self.stepper.method, a, b, force, held, steps, n, t, stream)
        if functional:
            self.cuda.synchronize()
        return q, v

    def advance(
        self, method: Method, q: Any, v: Any, force: Any, frame: str | None, h: Any, n: int, t: float, stream: int
    ) -> None:  # fmt: skip
        """Start the steps of a method with a torque held in a frame, or without one."""
        kind = frame, force.ndim == 3, type(h) is not float
        run = self.kernel((method, *kind), lambda: self.built(method, *kind))
        self.launch(run, stream, q, v, force, *self.constants, h, n, self.flags, self.fault, self.number, t)

    def built(self, method: Method, frame: str | None, each: bool, own_dt: bool) -> Any:
        """Return the kernel of a step."""
        from ...compile.batch.in_place import Call
        from ...compile.batch.layout import Sizes
        from ...compile.cuda_in_place import loop

        stepper, held = self.stepper, frame is not None
        field = field_with(stepper.bodies.field, method, frame)
        check_bodies(stepper.bodies, method, field)
        size = Sizes(stepper.bodies.values.shape[1] + 3 * held, 4 * self.turned, ())
        call, structure = Call(held, each, own_dt), None if field is None else field.structure

        def make() -> Any:
            torque = answering(method.asks, field, self.turned, floats.number)
            parts = method.build(floats.number), torque, size, stepper.form, call
            return loop(*parts, *method.processors(floats.number))

        return MADE(("in place on a GPU", method, structure, size, stepper.form, call), make)

    def ask(
        self, q: Any, v: Any, a: Any, b: Any, function: Any, frame: str, h: Any, n: int, t: float, stream: int
    ) -> None:  # fmt: skip
        """Make the kicks and drifts of a scheme with torques from a function, on copies of the states."""
        from ...compile.cuda_in_place import committing, kicking

        stepper, form = self.stepper, self.stepper.form
        method = stepper.method.unprocessed or stepper.method
        check_askable(stepper.method)
        if not is_written_out(method) or stepper.bodies.field is not None or type(h) is not float:
            raise InputError(
                f"on a GPU a function gives torques to kick-drift schemes over a free flow, such as strang(dmv10), "
                f"without a field and with one dt; got {stepper.method.name}"
            )
        if takes_vectors(function):
            raise InputError("on a GPU a torque function has two arguments, torque(t, q)")
        q, v = duplicate(q, double=True), duplicate(v, double=True)
        inside, vectors = self.view("q", q)[0], self.view(stepper.vector, v)[0]
        inertia, _, axes = self.constants
        push = self.kernel(("kick", frame), lambda: kicking(form, self.turned, frame == "space", False))
        found: Any = None
        for k in range(n):
            clock = 0.0
            for leg in legs(method):
                if leg.is_kick:
                    if found is None:
                        value = function(t + k * h + clock * h, q)
                        found = self.torques(value, None, "the result of the torque function")
                    self.launch(push, stream, inside, vectors, found, inertia, axes, h, leg.fraction, self.number)
                else:
                    assert method.drift is not None
                    self.advance(method.drift, inside, vectors, self.nothing, None, leg.fraction * h, 1, 0.0, stream)
                    found, clock = None, clock + leg.fraction
        commit = self.kernel("commit", lambda: committing(form))
        self.launch(commit, stream, inside, vectors, a, b, self.flags, self.fault, self.number)

    def kernel(self, key: Any, make: Any) -> Any:
        """Return a kernel, made once."""
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = make()
        return found

    def launch(self, run: Any, stream: int, *arguments: Any) -> None:
        """Start a kernel with one thread for each body."""
        key = run, stream, self.number
        found = self.launches.get(key)
        if found is None:
            queue = self.cuda.external_stream(stream) if stream else 0
            with warnings.catch_warnings():  # few bodies are not an error
                warnings.filterwarnings("ignore", message=".*under-utilization")
                found = self.launches[key] = run[-(-self.number // THREADS), min(THREADS, self.number), queue]
        found(*arguments)

    # --- faults ------------------------------------------------------------------------------------

    def collected(self) -> np.ndarray:
        """Return the bodies that failed since the last time; waits for the GPU."""
        self.cuda.synchronize()
        if not self.fault[0]:
            return np.empty(0, dtype=np.int64)
        found = np.flatnonzero(self.flags.copy_to_host())
        self.flags.copy_to_device(np.zeros(self.number, dtype=np.bool_))
        self.fault[0] = 0
        return found

    def report(self) -> None:
        """Warn of bodies that failed in an earlier call, if that is known by now; does not wait for the GPU."""
        self.stepper.note(self.collected() if self.fault[0] else np.empty(0, dtype=np.int64))


def check(name: str, array: Any, width: int, layout: str, number: int | None) -> int:
    """Refuse an array on a GPU that cannot hold the states of bodies; return their number."""
    if array.dtype not in (arrays.DOUBLE, arrays.SINGLE):
        raise InputError(f"{name} must hold float64 or float32 numbers; got {array.dtype}", name)
    found = arrays.check_shape(name, array.shape, width, layout, number)
    if not array.is_c_contiguous():
        raise InputError(f"{name} must be contiguous; its strides are {array.strides}", name)
    return found


def check_apart(**given: Any) -> None:
    """Refuse arrays that share memory."""
    begins = {name: int(array.__cuda_array_interface__["data"][0]) for name, array in given.items()}
    spans = [(name, begin, begin + given[name].nbytes) for name, begin in begins.items()]
    for i, (one, begin, end) in enumerate(spans):
        for two, first, last in spans[i + 1 :]:
            if begin < last and first < end:
                raise InputError(f"{one} and {two} share memory, so one would overwrite the other; pass a copy")
