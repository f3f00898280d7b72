"""Steps of many bodies in arrays on an NVIDIA GPU, of CuPy, PyTorch or JAX, on the stream that their library uses.

A call returns before its steps are done, as calls of these libraries do. So a body that failed is reported by the next
call, or by `failed`, which waits for the GPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._memo import MADE
from ...errors import InputError
from ...methods import Method
from ...numbers import floats
from ...physics.fields import Field
from ...physics.fields.decorators import check_frame
from ...physics.fields.heat_bath import FIRST
from ...physics.queries import answering
from ..integrator import beginning
from . import arrays
from .gpu_arrays import Views, check, check_apart, current_stream, duplicate
from .held import chain_of, check_bodies, field_with

if TYPE_CHECKING:
    from .stepper import BatchStepper

THREADS = 128
"""Threads per block."""


class GpuSteps:
    """The steps of a `BatchStepper` in arrays on a GPU.

    Attributes
    ----------
    constants : moments, their inverses and principal axes of the bodies
    values, tables : parameters of the field (with noise, of every body), and its rows of data
    flags, lost : bodies that failed and were not reported, and bodies that failed so far in the present call
    fault : whether there are any; in memory that the processor reads, too
    nothing : in place of an array that is not given
    """

    def __init__(self, stepper: BatchStepper) -> None:
        from ...compile.cuda import card

        field = stepper.bodies.field
        if field is not None and field.opaque:
            raise InputError(
                f"only formulas run on a GPU, and {field.untraced[0].no_formula}; give its torque as an array"
            )
        self.stepper, self.cuda = stepper, card()
        inertia, values, axes, tables = stepper.constants
        self.constants = [self.sent(x) for x in (inertia, axes)]
        self.values, self.tables = self.sent(values), tuple(map(self.sent, tables))
        self.turned = stepper.bodies.own is not None
        self.nothing = self.sent(np.zeros((1, 3)))
        self.fault = self.cuda.mapped_array((1,), dtype=np.int64)
        self.fault[0] = 0
        self.flags: Any = None
        self.lost: Any = None
        self.number = 0
        self.view = Views(self.cuda)
        self.made: dict[Any, Any] = {}
        self.launches: dict[Any, Any] = {}

    # --- arrays ------------------------------------------------------------------------------------

    def sent(self, array: np.ndarray) -> Any:
        """Return constants in the memory of the GPU; waits until they are there, for kernels on every stream."""
        found = self.cuda.to_device(array)
        self.cuda.synchronize()
        return found

    def states(self, q: Any, v: Any, stream: int) -> tuple[Any, Any]:
        """Return arrays of states as arrays of numba; check them if they are new."""
        stepper, form = self.stepper, self.stepper.form
        (a, one), (b, two) = self.view("q", q), self.view(stepper.vector, v)
        if (one, two) in self.view.admitted and self.number == a.shape[0 if form.layout == "rows" else 1]:
            return a, b
        each = len(stepper.bodies.moments) > 1 or stepper.bodies.number > 1
        self.resize(check("q", a, 4, form.layout, stepper.bodies.number if each else None))
        check(stepper.vector, b, 3, form.layout, self.number)
        if a.dtype != b.dtype:
            raise InputError(
                f"q and {stepper.vector} must have the same dtype; got {a.dtype} and {b.dtype}, so convert one"
            )
        check_apart(q=a, **{stepper.vector: b})
        self.check_quaternions(a, stream)
        if one is not None and two is not None:
            self.view.admitted.add((one, two))
        return a, b

    def check_quaternions(self, a: Any, stream: int) -> None:
        """Refuse quaternions that are not of unit length; waits for the GPU."""
        from ...compile.cuda_in_place import checking

        form = self.stepper.form
        self.launch(self.kernel(checking, form.layout), stream, a, self.flags, self.fault, self.number)
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
        self.stepper.resize(number)
        if number == self.number:
            return
        self.number = number
        self.flags, self.lost = (self.sent(np.zeros(number, dtype=np.bool_)) for _ in range(2))
        if self.stepper.count is not None:
            self.values = self.sent(self.stepper.count.parameters())
        elif self.stepper.method.thermostat is not None:
            self.values = self.sent(self.stepper.constants[1])

    def vectors(self, name: str, value: Any, parts: int | None = None) -> Any:
        """Return vectors as an array of numba: those of each body, or of each sub-step and body."""
        array, layout = self.view(name, value)[0], self.stepper.form.layout
        shape = (self.number, 3) if layout == "rows" else (3, self.number)
        if array.shape != shape and array.shape != (parts, *shape):
            raise InputError(f"{name} must have the shape {shape} for {self.number} bodies; got {array.shape}", name)
        if array.dtype not in (arrays.DOUBLE, arrays.SINGLE) or not array.is_c_contiguous():
            raise InputError(arrays.PLAIN.format(name=name, dtype=array.dtype, strides=array.strides), name)
        return array

    def apart(self, a: Any, b: Any, force: Any) -> Any:
        """Return torques; refuse those that share memory with a state."""
        key = id(a), id(b), id(force)  # views of known arrays remain until all are forgotten
        if key not in self.view.admitted:
            check_apart(q=a, **{self.stepper.vector: b}, torque=force)
            if self.view.remain(a, b, force):
                self.view.admitted.add(key)
        return force

    # --- steps -------------------------------------------------------------------------------------

    def step(
        self, q: Any, v: Any, torque: Any, slow: Any, frame: str, h: Any, n: int, t: float, in_place: bool
    ) -> tuple[Any, Any]:  # fmt: skip
        """Make the steps; `h` returns the step, or one for each body."""
        (q, v), stream = self.opened((q, v), in_place)
        a, b = self.states(q, v, stream)
        steps = self.steps(h(), stream)
        if slow is not None or self.stepper.thermostat is not None or arrays.is_function(torque):
            from .gpu_trial import rotational_steps

            rotational_steps(self, (q, v), (a, b), torque, slow, check_frame(frame), steps, n, t, stream)
        else:
            force = self.nothing if torque is None else self.apart(a, b, self.vectors("torque", torque, n))
            held = None if torque is None else check_frame(frame)
            self.advance(self.stepper.method, a, b, force, held, steps, n, t, stream)
        self.stepper.counted(0, n)
        self.close(q, v)
        return q, v

    def opened(self, given: tuple[Any, ...], in_place: bool) -> tuple[tuple[Any, ...], int]:
        """Report earlier faults; return the arrays to be changed, and the stream of their library."""
        self.report()
        functional = any(map(arrays.is_functional, given))
        return tuple(map(duplicate, given)) if functional or not in_place else given, current_stream(given[-1])

    def close(self, *changed: Any) -> None:
        """Wait for the steps if the library of the arrays does not: JAX does not know of the stream."""
        if any(map(arrays.is_functional, changed)):
            self.cuda.synchronize()

    def steps(self, h: Any, stream: int) -> Any:
        """Return the step, or those of all bodies in the memory of the GPU."""
        return h if type(h) is float else self.cuda.to_device(h, stream=self.queue(stream))

    def advance(
        self, method: Method, q: Any, v: Any, force: Any, frame: str | None, h: Any, n: int, t: float, stream: int, *,
        further: int = 0, flags: Any = None,
    ) -> None:  # fmt: skip
        """Start the steps of a method with a torque held in a frame, or without one.

        further : number of steps of this call that were made before; flags : in place of those of the bodies
        """
        kind = frame, force.ndim == 3, type(h) is not float
        run = self.once((method, *kind), lambda: self.built(method, *kind))
        made = 0.0 if self.stepper.count is None else float(self.stepper.count.made + further)
        inertia, axes = self.constants
        flags = self.flags if flags is None else flags
        self.launch(
            run, stream, q, v, force, inertia, self.values, axes, self.tables, made, h, n, flags, self.fault,
            self.number, t,
        )  # fmt: skip

    def field_of(self, method: Method) -> Field | None:
        """Return the field of the steps of a method: the free flow between kicks has none."""
        is_whole = method is self.stepper.method or method.noise is not None
        return self.stepper.bodies.field if is_whole else None

    def built(self, method: Method, frame: str | None, each: bool, own_dt: bool) -> Any:
        """Return the kernel of a step."""
        from ...compile.batch.in_place import Call
        from ...compile.batch.layout import Sizes
        from ...compile.cuda_in_place import loop

        stepper, held, alone = self.stepper, frame is not None, self.field_of(method)
        field = field_with(alone, method, frame)
        check_bodies(stepper.bodies, method, field)
        parameters = 0 if alone is None else stepper.bodies.values.shape[1]
        size = Sizes(parameters + 3 * held, 4 * self.turned, () if field is None else tuple(field.columns))
        call, structure = Call(held, each, own_dt), None if field is None else field.structure
        count = (
            alone.bath + FIRST if alone is not None and alone.bath is not None and method.noise is not None else None
        )
        chain = None if method.thermostat is None else chain_of(stepper.bodies, method)

        def make() -> Any:
            torque = answering(method.asks, field, self.turned, floats.number)
            parts = method.build(floats.number), torque, size, stepper.form, call, beginning(method), method.memory > 0
            return loop(*parts, *method.processors(floats.number), count, chain)

        return MADE(("in place on a GPU", method, structure, size, stepper.form, call, count, chain), make)

    def kernel(self, make: Callable[..., Any], *form: Any) -> Any:
        """Return the kernel ``make(*form)``, made once for all steppers."""
        return MADE((make, *form), lambda: make(*form))

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what is made once for this stepper."""
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = make()
        return found

    def launch(self, run: Any, stream: int, *arguments: Any, threads: int | None = None) -> None:
        """Start a kernel with one thread for each body, or with this number of threads."""
        number = self.number if threads is None else threads
        key = run, stream, number
        found = self.launches.get(key)
        if found is None:
            queue = self.queue(stream)
            with warnings.catch_warnings():  # few bodies are not an error
                warnings.filterwarnings("ignore", message=".*under-utilization")
                found = self.launches[key] = run[-(-number // THREADS), min(THREADS, number), queue]
        found(*arguments)

    def queue(self, stream: int) -> Any:
        """Return the stream of an address."""
        return self.cuda.external_stream(stream) if stream else 0

    def wait(self, stream: int) -> None:
        """Wait for all that was started on a stream."""
        if stream:
            self.queue(stream).synchronize()
        else:
            self.cuda.synchronize()

    # --- faults ------------------------------------------------------------------------------------

    def collected(self) -> np.ndarray:
        """Return the bodies that failed since the last time; waits for the GPU."""
        self.cuda.synchronize()
        if not self.fault[0]:
            return np.empty(0, dtype=np.int64)
        found = np.flatnonzero(self.flags.copy_to_host())
        self.clear(self.flags)
        self.fault[0] = 0
        return found

    def clear(self, flags: Any) -> None:
        """Clear the flags of all bodies; waits for kernels on every stream, before and after."""
        self.cuda.synchronize()
        flags.copy_to_device(np.zeros(self.number, dtype=np.bool_))
        self.cuda.synchronize()

    def report(self) -> None:
        """Warn of bodies that failed in an earlier call, if that is known by now; does not wait for the GPU."""
        self.stepper.note(self.collected() if self.fault[0] else np.empty(0, dtype=np.int64))
